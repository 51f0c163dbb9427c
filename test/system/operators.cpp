// Operators through the whole chain: imported, compiled, executed, against the reference evaluator.
#include "support.hpp"

using namespace raptor;
using namespace system_test;
using onnx_io::model_builder;

namespace {

double error_of(model_builder b, const std::vector<std::pair<std::string, shape>>& outputs, const tools::compile_options& options = chip(4, 256, 32)) {
  for (const auto& [name, sizes] : outputs) b.output(name, sizes);
  const auto m = load(std::move(b).take());
  return relative_error(m, compile(m, options).image);
}
model_builder at_opset(std::int64_t opset) { return model_builder({.graph_name = "test", .opset = opset}); }
tools::compile_options standard_softmax() {
  auto options = chip(4, 256, 32);
  options.lowering.softmax = lowering::softmax_lowering::standard;
  return options;
}

/// Largest error of an element as a part of the element, over all outputs.
double error_of_elements(model_builder b, const std::string& output, const shape& sizes) {
  b.output(output, sizes);
  const auto m = load(std::move(b).take());
  std::vector<model::tensor_value> inputs;
  std::vector<std::byte> bytes;
  for (const auto t : m.imported.inputs) {
    inputs.push_back(model::make_value(m.imported.at(t).sizes, numbers(element_count(m.imported.at(t).sizes), 7 + static_cast<std::uint32_t>(inputs.size()))));
    const auto from = std::as_bytes(std::span(inputs.back().floats()));
    bytes.insert(bytes.end(), from.begin(), from.end());
  }
  const auto got = tools::execute_image(compile(m, chip(2, 16, 32)).image, bytes).outputs.at(0).values();
  const auto want = model::evaluate(m.imported, inputs).at(0).floats();
  REQUIRE(got.size() == want.size());
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    if (got[i] != want[i]) worst = std::max(worst, std::abs(static_cast<double>(got[i]) / static_cast<double>(want[i]) - 1));
  return worst;
}

}  // namespace

TEST_CASE("a product over nothing is zero, with constant weights too") {
  auto b = at_opset(13);
  const auto x = b.input("x", {3, 0}), z = b.input("z", {3, 4});
  b.node("Gemm", {x, b.initializer("w", {0, 4}, std::span<const float>())}, "p");
  b.node("Add", {"p", z}, "y");
  CHECK(error_of(std::move(b), {{"y", {3, 4}}}) == 0);
}

TEST_CASE("images without elements pass through convolution, pool and activation") {
  auto b = at_opset(13);
  const auto x = b.input("x", {0, 3, 8, 8}), z = b.input("z", {2});
  b.node("Conv", {x, b.he_uniform("w", {4, 3, 3, 3}), b.uniform("b", {4}, 0, 1)}, "c").attribute("pads", {1, 1, 1, 1});
  b.node("Relu", {"c"}, "r");
  b.node("MaxPool", {"r"}, "y").attribute("kernel_shape", {2, 2}).attribute("strides", {2, 2});
  b.node("Neg", {z}, "n");
  CHECK(error_of(std::move(b), {{"y", {0, 4, 4, 4}}, {"n", {2}}}) == 0);
}

TEST_CASE("recurrent networks, weights in crossbars or computed") {
  for (const bool constant : {true, false}) {
    CAPTURE(constant);
    auto b = at_opset(14);
    const auto weights = [&](const std::string& name, const shape& sizes) { return constant ? b.uniform(name, sizes, 0, 0.5F) : b.input(name, sizes); };
    const auto x = b.input("x", {5, 2, 6});
    b.node("LSTM", {x, weights("w", {2, 32, 6}), weights("r", {2, 32, 8}), weights("b", {2, 64}), b.integers("lengths", {5, 3}), b.input("h", {2, 2, 8}), b.input("c", {2, 2, 8}), weights("p", {2, 24})}, "lstm", 3)
        .attribute("hidden_size", 8).attribute("direction", "bidirectional");
    b.node("GRU", {x, weights("gw", {1, 24, 6}), weights("gr", {1, 24, 8}), weights("gb", {1, 48})}, "gru", 2).attribute("hidden_size", 8).attribute("linear_before_reset", 1);
    b.node("RNN", {x, weights("rw", {1, 8, 6}), weights("rr", {1, 8, 8})}, "rnn", 2).attribute("hidden_size", 8).attribute("direction", "reverse");
    const auto name = [&](int node, int output) { return b.proto().graph().node(node).output(output); };
    const std::vector<std::pair<std::string, shape>> outputs{{name(0, 0), {5, 2, 2, 8}}, {name(0, 1), {2, 2, 8}}, {name(0, 2), {2, 2, 8}}, {name(1, 0), {5, 1, 2, 8}}, {name(2, 0), {5, 1, 2, 8}}};
    CHECK(error_of(std::move(b), outputs) <= 2e-6);
  }
}

TEST_CASE("the steps of a recurrent network share their weights") {
  for (const std::string op : {"LSTM", "GRU", "RNN"}) {
    CAPTURE(op);
    const std::int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
    auto b = at_opset(14);
    b.node(op, {b.input("x", {20, 1, 6}), b.uniform("w", {1, gates * 8, 6}, 0, 0.5F), b.uniform("r", {1, gates * 8, 8}, 0, 0.5F), b.uniform("b", {1, 2 * gates * 8}, 0, 0.5F)}, "y").attribute("hidden_size", 8);
    // One crossbar for the input's weights, and one (GRU: two) for those of the state.
    CHECK(error_of(std::move(b), {{"y", {20, 1, 1, 8}}}, chip(1, op == "GRU" ? 3 : 2, 32)) <= 2e-6);
  }
}

TEST_CASE("attention by Einsum; softmax by the extension and by standard instructions") {
  for (const bool standard : {false, true}) {
    CAPTURE(standard);
    auto b = at_opset(13);
    const auto q = b.input("q", {1, 6, 2, 4}), k = b.input("k", {1, 7, 2, 4}), v = b.input("v", {1, 7, 2, 4});
    b.node("Einsum", {q, k}, "scores").attribute("equation", "bqhd,bkhd->bhqk");
    b.node("Softmax", {"scores"}, "weights").attribute("axis", -1);
    b.node("Einsum", {"weights", v}, "y").attribute("equation", "bhqk,bkhd->bqhd");
    CHECK(error_of(std::move(b), {{"y", {1, 6, 2, 4}}}, standard ? standard_softmax() : chip(4, 256, 32)) <= 5e-6);
  }
}

TEST_CASE("x times its sigmoid, quantization by powers of two, powers, ceil_mode with large pads") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 4, 6, 6});
  b.node("Sigmoid", {x}, "s");
  b.node("Mul", {"s", x}, "silu");
  b.node("QuantizeLinear", {x, b.scalar("scale", 0.0078125F)}, "q");
  b.node("DequantizeLinear", {"q", "scale"}, "d");
  b.node("Pow", {b.scalar("two", 2), x}, "pow");
  b.node("MaxPool", {x}, "pool").attribute("kernel_shape", {2, 2}).attribute("strides", {1, 1}).attribute("pads", {3, 3, 3, 3}).attribute("ceil_mode", 1);
  b.node("Clip", {"pool", b.scalar("low", -2)}, "clipped");
  CHECK(error_of(std::move(b), {{"silu", {1, 4, 6, 6}}, {"d", {1, 4, 6, 6}}, {"pow", {1, 4, 6, 6}}, {"clipped", {1, 4, 10, 10}}}) <= 4e-5);
}

TEST_CASE("powers with computed exponents keep their documented bound") {
  for (const bool negative : {false, true}) {
    CAPTURE(negative);
    auto b = at_opset(13);
    const auto x = b.input("x", {2000}), y = b.input("y", {2000});
    b.node("Mul", {x, b.scalar("wide", negative ? 8 : 1000)}, "scaled");
    if (negative) {  // odd whole bases to whole exponents
      b.node("Floor", {"scaled"}, "whole");
      b.node("Mul", {"whole", b.scalar("two", 2)}, "even");
      b.node("Add", {"even", b.scalar("one", 1)}, "base");
      b.node("Mul", {y, b.scalar("range", 12)}, "real");
      b.node("Floor", {"real"}, "exponent");
    } else {
      b.node("Add", {"scaled", b.scalar("offset", 1001)}, "base");
      b.node("Mul", {y, b.scalar("range", 10)}, "exponent");
    }
    b.node("Pow", {"base", "exponent"}, "p");
    CHECK(error_of_elements(std::move(b), "p", {2000}) < 2e-4);
  }
}
