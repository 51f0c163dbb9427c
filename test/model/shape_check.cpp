#include "raptor/model/check.hpp"

#include <doctest/doctest.h>

#include <string>

#include "rewrite_support.hpp"

using namespace raptor;
using namespace raptor::model;
using namespace raptor::model::testing;

namespace {

/// Whether some fault of the graph mentions `text`.
bool has_fault(const graph& g, const std::string& text) {
  for (const auto& fault : find_faults(g))
    if (fault.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("a sound graph has no faults") {
  net n;
  const auto x = n.input({1, 3, 8, 8});
  const auto y = n.add(unary{unary_kind::relu, 0, 0}, {n.batch_norm(n.conv(x, 4, true))});
  const auto g = n.done({y});
  CHECK(find_faults(g).empty());
  check_graph(g);
}

TEST_CASE("every kind of fault is found") {
  net n;
  const auto x = n.input({1, 3, 4, 4});
  const auto c = n.constant_of({2}, {1, 2});
  SUBCASE("no outputs") { CHECK(has_fault(n.g, "no outputs")); }
  SUBCASE("a result of a wrong shape") {
    n.done({n.add(unary{unary_kind::relu, 0, 0}, {x}, {1, 3, 4, 5})});
    CHECK(has_fault(n.g, "cannot have this result"));
  }
  SUBCASE("a constant of a wrong size") {
    n.g.at(c).sizes = {3};
    n.done({x});
    CHECK(has_fault(n.g, "contents do not have the size"));
  }
  SUBCASE("a constant of another type") {
    n.g.at(c).type = element_type::i64;
    n.done({x});
    CHECK(has_fault(n.g, "not of its element type"));
  }
  SUBCASE("a negative size") {
    n.g.at(x).sizes = {-1};
    n.done({x});
    CHECK(has_fault(n.g, "negative size"));
  }
  SUBCASE("an operand that nothing computes") {
    const auto lost = n.g.add_tensor({"lost", element_type::f32, {4}, nullptr});
    n.done({n.add(unary{unary_kind::relu, 0, 0}, {lost})});
    CHECK(has_fault(n.g, "nothing computes its input \"lost\""));
  }
  SUBCASE("an output that nothing computes") {
    n.done({n.g.add_tensor({"lost", element_type::f32, {4}, nullptr})});
    CHECK(has_fault(n.g, "nothing computes graph output"));
  }
  SUBCASE("an operand that does not exist") {
    const auto t = n.g.add_tensor({"y", element_type::f32, {4}, nullptr});
    n.g.add_node({unary{unary_kind::relu, 0, 0}, {tensor_id()}, {t}, {"broken", "Relu", "", 1}});
    n.done({t});
    CHECK(has_fault(n.g, "input 0 is no tensor"));
  }
  SUBCASE("integers computed at run time") {
    n.g.at(x).type = element_type::i64;
    n.done({n.add(reshape{}, {x}, {48})});
    CHECK(has_fault(n.g, "of type i64"));
  }
  SUBCASE("an input that is there twice, or constant") {
    n.g.inputs = {x, x, c};
    n.done({x});
    CHECK(has_fault(n.g, "there twice"));
    CHECK(has_fault(n.g, "constant or computed"));
  }
  SUBCASE("check_graph reports all of them, with the step") {
    n.g.at(x).sizes = {-1};
    try {
      check_graph(n.g, "after a rewrite");
      FAIL("nothing was thrown");
    } catch (const error& e) {
      CHECK(e.code() == error_code::internal);
      CHECK(e.place() == "after a rewrite");
      CHECK(e.details().size() == 2);
    }
  }
}
