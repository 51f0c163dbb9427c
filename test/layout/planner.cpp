#include "raptor/layout/planner.hpp"

#include <doctest/doctest.h>

using namespace raptor;
using model::element_type;

namespace {

model::constant_ptr zeros(std::size_t count) { return std::make_shared<const model::constant>(model::constant{std::vector<float>(count)}); }

/// x → conv → relu → max pool → y, on an image wide enough that strips pay.
model::graph chain() {
  model::graph g;
  const auto x = g.add_tensor({"x", element_type::f32, {1, 16, 32, 32}, nullptr});
  const auto w = g.add_tensor({"w", element_type::f32, {16, 16, 3, 3}, zeros(16 * 16 * 9)});
  std::vector<model::tensor_id> t;
  for (const char* name : {"a", "b"}) t.push_back(g.add_tensor({name, element_type::f32, {1, 16, 32, 32}, nullptr}));
  const auto y = g.add_tensor({"y", element_type::f32, {1, 16, 16, 16}, nullptr});
  g.add_node({model::convolution{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, {x, w}, {t[0]}, {"conv", "Conv", "", 13}});
  g.add_node({model::unary{model::unary_kind::relu, 0, 0}, {t[0]}, {t[1]}, {"relu", "Relu", "", 13}});
  g.add_node({model::pool{model::pool_kind::max, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, false}, {t[1]}, {y}, {"pool", "MaxPool", "", 13}});
  g.inputs = {x}, g.outputs = {y};
  return g;
}

}  // namespace

TEST_CASE("the first alternative is dense for everything") {
  const auto g = chain();
  for (model::vertex v = 0; v < g.node_count(); ++v) {
    const auto all = layout::alternatives_of(g, v);
    REQUIRE(all.size() == 2);
    CHECK(all[0].result == layout::physical::dense);
    for (const auto o : all[0].operands) CHECK(o == layout::physical::dense);
    CHECK(all[1].result == layout::physical::nhwc_row_strip);
  }
  const auto dense = layout::dense_layout{}(g);
  CHECK_NOTHROW(layout::check_plan(g, dense));
}

TEST_CASE("descent takes strips where they pay, and is never worse than dense") {
  const auto g = chain();
  const auto dense = layout::dense_layout{}(g), planned = layout::descending_layout{}(g);
  CHECK_NOTHROW(layout::check_plan(g, planned));
  CHECK(layout::descending_layout::potential(g, planned) < layout::descending_layout::potential(g, dense));
  CHECK(planned.chosen[0].result == layout::physical::nhwc_row_strip);
  CHECK(planned.rounds <= 2 * g.node_count() + 1);
}

TEST_CASE("a plan that is no alternative is found") {
  const auto g = chain();
  auto plan = layout::dense_layout{}(g);
  plan.chosen[1].result = layout::physical::nchw_row_strip;
  CHECK_THROWS_AS(layout::check_plan(g, plan), error);
  plan.chosen.pop_back();
  CHECK_THROWS_AS(layout::check_plan(g, plan), error);
}
