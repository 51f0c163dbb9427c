#include "raptor/model/reference.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "raptor/model/reference_compare.hpp"

using namespace raptor;
using namespace raptor::model;

namespace {

using floats = std::vector<float>;

tensor_id computed(graph& g, std::string name, shape sizes) { return g.add_tensor({std::move(name), element_type::f32, std::move(sizes), nullptr}); }
tensor_id fixed(graph& g, std::string name, shape sizes, floats elements) {
  auto value = make_value(std::move(sizes), std::move(elements));
  return g.add_tensor({std::move(name), element_type::f32, value.sizes, value.data});
}

/// y = relu(x · w + b), z = x · w; x is [1, 2].
struct small_network {
  graph g;
  tensor_id x, product, sum, y;
  small_network() {
    g.name = "small";
    x = computed(g, "x", {1, 2});
    const auto w = fixed(g, "w", {2, 2}, {1, -1, 1, 1});
    const auto b = fixed(g, "b", {2}, {0.5F, -10});
    product = computed(g, "product", {1, 2});
    sum = computed(g, "sum", {1, 2});
    y = computed(g, "y", {1, 2});
    g.inputs = {x};
    g.add_node({matmul{}, {x, w}, {product}, {"m", "MatMul", "", 13}});
    g.add_node({binary{binary_kind::add}, {product, b}, {sum}, {"a", "Add", "", 13}});
    g.add_node({unary{unary_kind::relu}, {sum}, {y}, {"r", "Relu", "", 13}});
    g.outputs = {y, product};
  }
};

}  // namespace

TEST_CASE("a graph is evaluated in order, its outputs in graph order") {
  const small_network n;
  const std::vector<tensor_value> inputs{make_value(shape{1, 2}, floats{3, 4})};
  const auto outputs = evaluate(n.g, inputs);
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[0].floats() == floats{7.5F, 0});
  CHECK(outputs[1].floats() == floats{7, 1});
}

TEST_CASE("intermediate tensors are kept only on request") {
  const small_network n;
  const std::vector<tensor_value> inputs{make_value(shape{1, 2}, floats{3, 4})};
  const auto all = evaluate_tensors(n.g, inputs, true);
  REQUIRE(all.size() == n.g.tensors().size());
  CHECK(all[n.sum.index()].floats() == floats{7.5F, -9});
  CHECK(all[n.x.index()].floats() == floats{3, 4});
  const auto few = evaluate_tensors(n.g, inputs, false);
  CHECK_FALSE(few[n.sum.index()].present());
  CHECK(few[n.product.index()].present());
}

TEST_CASE("inputs and constants may be outputs, and a tensor may be read twice by one node") {
  graph g;
  const auto x = computed(g, "x", {2});
  const auto k = fixed(g, "k", {1}, {9});
  const auto y = computed(g, "y", {2});
  g.inputs = {x};
  g.add_node({binary{binary_kind::multiply}, {x, x}, {y}, {"square", "Mul", "", 13}});
  g.outputs = {x, k, y, y};
  const std::vector<tensor_value> inputs{make_value(shape{2}, floats{2, 3})};
  const auto outputs = evaluate(g, inputs);
  CHECK(outputs[0].floats() == floats{2, 3});
  CHECK(outputs[1].floats() == floats{9});
  CHECK(outputs[2].floats() == floats{4, 9});
  CHECK(outputs[3].floats() == floats{4, 9});
}

TEST_CASE("wrong inputs are named") {
  const small_network n;
  const auto message = [&](const std::vector<tensor_value>& inputs) -> std::string {
    try {
      static_cast<void>(evaluate(n.g, inputs));
    } catch (const error& e) {
      CHECK(e.code() == error_code::mismatch);
      return e.what();
    }
    return "";
  };
  CHECK(message({}) == "0 inputs given to a model that has 1");
  CHECK(message({make_value(shape{2, 1}, floats{3, 4})}) == "input \"x\" should be f32 1x2, not f32 2x1");
  CHECK(message({make_value(shape{1, 2}, std::vector<std::int64_t>{3, 4})}) == "input \"x\" should be f32 1x2, not i64 1x2");
  CHECK(message({tensor_value{}}) == "input \"x\" should be f32 1x2, not absent");
}

TEST_CASE("an error has the node as its place") {
  graph g;
  const auto x = computed(g, "x", {2});
  const auto y = computed(g, "y", {3});
  g.inputs = {x};
  g.add_node({unary{unary_kind::relu}, {x}, {y}, {"act", "Relu", "", 13}});
  g.outputs = {y};
  try {
    static_cast<void>(evaluate(g, std::vector<tensor_value>{make_value(shape{2}, floats{1, 2})}));
    FAIL("nothing was thrown");
  } catch (const error& e) {
    CHECK(e.place() == "Relu \"act\" (ai.onnx, opset 13)");
    CHECK(std::string(e.what()) == "the output should have shape 2, not 3");
  }
}

TEST_CASE("tensors beyond the limit are refused before they are made") {
  graph g;
  const auto x = computed(g, "x", {1000, 1});
  const auto z = computed(g, "z", {1, 1000});
  const auto y = computed(g, "y", {1000, 1000});
  g.inputs = {x, z};
  g.add_node({binary{}, {x, z}, {y}, {"a", "Add", "", 13}});
  g.outputs = {y};
  const std::vector<tensor_value> inputs{make_value(shape{1000, 1}, floats(1000)), make_value(shape{1, 1000}, floats(1000))};
  CHECK(evaluate(g, inputs)[0].floats().size() == 1000000);
  try {
    static_cast<void>(evaluate(g, inputs, {999999}));
    FAIL("nothing was thrown");
  } catch (const error& e) {
    CHECK(e.code() == error_code::capacity);
  }
}

TEST_CASE("compare: largest differences, and what is not finite") {
  const auto value = [](floats elements) {
    const auto length = static_cast<std::int64_t>(elements.size());
    return make_value(shape{length}, std::move(elements));
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  auto d = compare(value({1, 2, -8}), value({1, 2.5F, -8.25F}));
  CHECK(d.absolute == 0.5);
  CHECK(d.largest == 8.25);
  CHECK(d.where == 1);
  CHECK(d.relative() == 0.5 / 8.25);
  CHECK(compare(value({1, 2, -8}), value({1, 2.5F, -8.25F}), 0.25).excess == 0);
  CHECK(compare(value({1, 2, -8}), value({1, 2.5F, -8.25F}), 0.125).excess == 0.1875);
  CHECK(compare(value({nan, infinity}), value({nan, infinity})).where == -1);
  CHECK(compare(value({nan}), value({1})).absolute == std::numeric_limits<double>::infinity());
  CHECK(compare(value({1}), value({infinity}), 1).excess == std::numeric_limits<double>::infinity());
  CHECK(compare(value({0}), value({0})).relative() == 0);
  CHECK_THROWS_AS(static_cast<void>(compare(value({1}), value({1, 2}))), error);
}
