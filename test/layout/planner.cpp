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

TEST_CASE("the layouts do not depend on the batch") {
  // A first layer of three channels, whose strips pay by little.
  const auto stem = [](std::int64_t batch) {
    model::graph g;
    const auto x = g.add_tensor({"x", element_type::f32, {batch, 3, 224, 224}, nullptr});
    const auto w = g.add_tensor({"w", element_type::f32, {32, 3, 3, 3}, zeros(32 * 3 * 9)}), u = g.add_tensor({"u", element_type::f32, {32, 32, 3, 3}, zeros(32 * 32 * 9)});
    const auto a = g.add_tensor({"a", element_type::f32, {batch, 32, 111, 111}, nullptr}), b = g.add_tensor({"b", element_type::f32, {batch, 32, 111, 111}, nullptr});
    const auto y = g.add_tensor({"y", element_type::f32, {batch, 32, 109, 109}, nullptr});
    g.add_node({model::convolution{{3, 3}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, 1}, {x, w}, {a}, {"conv", "Conv", "", 13}});
    g.add_node({model::unary{model::unary_kind::relu, 0, 0}, {a}, {b}, {"relu", "Relu", "", 13}});
    g.add_node({model::convolution{{3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, {b, u}, {y}, {"next", "Conv", "", 13}});
    g.inputs = {x}, g.outputs = {y};
    return g;
  };
  for (const std::int64_t batch : {1, 2, 4, 16}) {
    CAPTURE(batch);
    const auto g = stem(batch);
    const auto plan = layout::descending_layout{}(g);
    for (model::vertex v = 0; v < g.node_count(); ++v) CHECK(plan.chosen[v].result == layout::physical::nhwc_row_strip);
  }
}
