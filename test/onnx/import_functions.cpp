#include "raptor/onnx/convert_functions.hpp"

#include <cmath>

#include "import_support.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

namespace {
/// What one operator of one input computes.
std::vector<float> values_of(const std::string& op, const shape& sizes, const std::vector<float>& x, std::int64_t opset = 20) {
  auto b = at_opset(opset);
  b.node(op, {b.input("x", sizes)}, "y");
  return run(finish(std::move(b), {"y"}), {x})[0].floats();
}
}  // namespace

TEST_CASE("functions and activations") {
  const std::vector<float> x{0.25F, 1, 2.5F, -1.5F};
  const auto check = [&](const std::string& op, auto f) {
    CAPTURE(op);
    std::vector<float> expected;
    for (const auto v : x) expected.push_back(static_cast<float>(f(double{v})));
    check_close(values_of(op, {4}, x), expected);
  };
  check("Exp", [](double v) { return std::exp(v); });
  check("Erf", [](double v) { return std::erf(v); });
  check("Reciprocal", [](double v) { return 1 / v; });
  check("Sign", [](double v) { return v > 0 ? 1 : -1; });
  check("Floor", [](double v) { return std::floor(v); });
  check("Ceil", [](double v) { return std::ceil(v); });
  check("Round", [](double v) { return std::nearbyint(v); });
  check("Softplus", [](double v) { return std::log1p(std::exp(v)); });
  check("Softsign", [](double v) { return v / (1 + std::abs(v)); });
  check("Mish", [](double v) { return v * std::tanh(std::log1p(std::exp(v))); });
  check("Gelu", [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); });
  check("Elu", [](double v) { return v > 0 ? v : std::expm1(v); });
  check("Selu", [](double v) { return 1.0507009873554805 * (v > 0 ? v : 1.6732632423543772 * std::expm1(v)); });
}

TEST_CASE("powers with one constant exponent; a computed divisor") {
  for (const float e : {-2.0F, -0.5F, 0.0F, 0.5F, 1.0F, 2.5F, 5.0F}) {
    CAPTURE(e);
    auto b = at_opset(13);
    const auto x = b.input("x", {3});
    b.node("Pow", {x, b.scalar("e", e)}, "y");
    const auto y = run(finish(std::move(b), {"y"}), {{0.5F, 1, 3}})[0].floats();
    check_close(y, {std::pow(0.5F, e), 1, std::pow(3.0F, e)});
  }
  auto b = at_opset(13);
  b.node("Div", {b.input("x", {2, 2}), b.input("d", {2})}, "y");
  check_close(run(finish(std::move(b), {"y"}), {{1, 2, 3, 4}, {2, -4}})[0].floats(), {0.5F, -0.5F, 1.5F, -1});
}

TEST_CASE("powers with any exponents: computed, different, large; of negative bases") {
  const std::vector<float> x{2, 3, -2, -3, -2, 0.5F, 1, 10}, e{3, -0.5F, 3, 2, 0.5F, 70, 0, -2};
  const auto check = [&](const std::vector<float>& y) {
    REQUIRE(y.size() == x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(i);
      const double expected = std::pow(double{x[i]}, double{e[i]});
      if (std::isnan(expected)) CHECK(std::isnan(y[i]));
      else CHECK(y[i] == doctest::Approx(expected).epsilon(1e-5));
    }
  };
  const auto values = [](const ::onnx::ModelProto& m, const std::vector<std::vector<float>>& inputs) {
    std::vector<model::tensor_value> given;
    const auto g = import_checked(m);
    for (std::size_t i = 0; i < inputs.size(); ++i) given.push_back(model::make_value(g.at(g.inputs.at(i)).sizes, inputs[i]));
    return model::evaluate(g, given)[0].floats();
  };
  auto computed = at_opset(13);
  computed.node("Pow", {computed.input("x", {8}), computed.input("e", {8})}, "y");
  check(values(finish(std::move(computed), {"y"}), {x, e}));
  auto constant = at_opset(13);
  constant.node("Pow", {constant.input("x", {8}), constant.initializer("e", {8}, std::span<const float>(e))}, "y");
  check(values(finish(std::move(constant), {"y"}), {x}));
  auto base = at_opset(13);
  base.node("Pow", {base.scalar("x", 2), base.input("e", {3})}, "y");
  check_close(run(finish(std::move(base), {"y"}), {{-1, 0.5F, 4}})[0].floats(), {0.5F, std::sqrt(2.0F), 16});
}

TEST_CASE("reductions over any axes") {
  const auto x = counting(24);  // 2 × 3 × 4
  const auto reduce = [&](const std::string& op, std::vector<std::int64_t> axes, std::int64_t keep) {
    auto b = at_opset(13);
    const auto in = b.input("x", {2, 3, 4});
    if (op == "ReduceSum") b.node(op, {in, b.integers("axes", axes)}, "y").attribute("keepdims", keep);
    else b.node(op, {in}, "y").attribute("axes", axes).attribute("keepdims", keep);
    return run(finish(std::move(b), {"y"}), {x})[0];
  };
  CHECK(reduce("ReduceSum", {0, 2}, 1).sizes == shape{1, 3, 1});
  CHECK(reduce("ReduceSum", {-1, 0}, 0).sizes == shape{3});
  check_close(reduce("ReduceSum", {0, 2}, 0).floats(), {68, 100, 132});
  check_close(reduce("ReduceMean", {1}, 0).floats(), {5, 6, 7, 8, 17, 18, 19, 20});
  check_close(reduce("ReduceMax", {1, 2}, 0).floats(), {12, 24});
  check_close(reduce("ReduceMin", {1, 2}, 0).floats(), {1, 13});
  check_close(reduce("ReduceL1", {1, 2}, 0).floats(), {78, 222});
  check_close(reduce("ReduceL2", {1, 2}, 0).floats(), {std::sqrt(650.0F), std::sqrt(4250.0F)});
  check_close(reduce("ReduceSumSquare", {1, 2}, 0).floats(), {650, 4250});
  check_close(reduce("ReduceLogSum", {1, 2}, 0).floats(), {std::log(78.0F), std::log(222.0F)});
  check_close(reduce("ReduceLogSumExp", {1, 2}, 0).floats(), {12.458675F, 24.458675F});
}

TEST_CASE("normalizations") {
  auto b = at_opset(18);
  const auto x = b.input("x", {1, 2, 2, 2});
  b.node("InstanceNormalization", {x, b.input("s", {2}), b.input("t", {2})}, "instance");
  b.node("LayerNormalization", {x, b.input("g", {2})}, "layer");
  b.node("GroupNormalization", {x, "s", "t"}, "group").attribute("num_groups", 2);
  const auto y = run(finish(std::move(b), {"instance", "layer", "group"}), {{1, 3, 1, 3, 2, 2, 6, 6}, {1, 2}, {0, 10}, {1, 1}});
  const std::vector<float> expected{-1, 1, -1, 1, 8, 8, 12, 12};
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    REQUIRE(y[i].floats().size() == 8);
    for (std::size_t k = 0; k < 8; ++k) CHECK(y[i].floats()[k] == doctest::Approx(expected[k]).epsilon(1e-4));
  }
  for (std::size_t k = 0; k < 4; ++k) CHECK(y[1].floats()[k] == doctest::Approx(k % 2 == 0 ? -1 : 1).epsilon(1e-4));
  for (std::size_t k = 4; k < 8; ++k) CHECK(y[1].floats()[k] == doctest::Approx(0));
}
