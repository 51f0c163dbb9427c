#include "raptor/model/edit.hpp"

#include <doctest/doctest.h>

#include "rewrite_support.hpp"

using namespace raptor;
using namespace raptor::model;
using namespace raptor::model::testing;

TEST_CASE("build drops what no output needs and keeps graph inputs") {
  net n;
  const auto x = n.input({4}), unused = n.input({2});
  const auto y = n.add(unary{unary_kind::relu, 0, 0}, {x});
  n.add(unary{unary_kind::tanh, 0, 0}, {y});
  n.weights({3});
  static_cast<void>(unused);
  const auto g = remove_dead(n.done({y}));
  CHECK(g.node_count() == 1);
  CHECK(g.inputs.size() == 2);
  CHECK(g.tensors().size() == 3);
  check_graph(g);
  CHECK(to_text(remove_dead(g)) == to_text(g));
}

TEST_CASE("build sorts nodes that were added out of order") {
  net n;
  const auto x = n.input({4});
  const auto y = n.add(unary{unary_kind::relu, 0, 0}, {x});
  graph_edit e(n.done({y}));
  const auto inserted = e.add_node(unary{unary_kind::tanh, 0, 0}, {e.inputs[0]}, {"late", "Tanh", "", 1}, "late", {4});
  e.replace(0, unary{unary_kind::relu, 0, 0}, {inserted});
  const auto g = e.build();
  check_graph(g);
  REQUIRE(g.node_count() == 2);
  CHECK(name(g.at(0).op) == "tanh");
  CHECK(name(g.at(1).op) == "relu");
}

TEST_CASE("build refuses a cycle") {
  net n;
  const auto x = n.input({4});
  const auto y = n.add(unary{unary_kind::relu, 0, 0}, {x});
  const auto z = n.add(unary{unary_kind::tanh, 0, 0}, {y});
  graph_edit e(n.done({z}));
  e.replace(0, unary{unary_kind::relu, 0, 0}, {z});
  CHECK_THROWS_AS(static_cast<void>(e.build()), error);
}

TEST_CASE("users, redirection and names of outputs") {
  net n;
  const auto x = n.input({4});
  const auto y = n.add(unary{unary_kind::relu, 0, 0}, {x});
  const auto z = n.add(unary{unary_kind::identity, 0, 0}, {y});
  const auto sum = n.add(binary{binary_kind::add}, {y, y});
  graph_edit e(n.done({z, sum}));
  CHECK(e.users(y).size() == 3);
  CHECK_FALSE(e.has_one_use(y));
  CHECK(e.is_output(z));
  REQUIRE(e.alias(z, y));  // y takes the name of the output over
  CHECK(e.at(y).name == "n1");
  CHECK(e.is_output(y));
  CHECK(e.users(y).size() == 2);
  // An output that is already one, or a graph input, keeps its own node.
  CHECK_FALSE(e.alias(sum, y));
  CHECK_FALSE(e.alias(sum, x));
  const auto g = e.build();
  check_graph(g);
  CHECK(g.node_count() == 2);
  CHECK(g.at(g.outputs[0]).name == "n1");
}
