#include "raptor/onnx/convert_layers.hpp"

#include "import_support.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

TEST_CASE("SAME with an even kernel") {
  for (const std::string mode : {"SAME_LOWER", "SAME_UPPER"}) {
    auto b = at_opset(13);
    const auto x = b.input("x", {1, 1, 5, 5});
    const std::vector<float> ones(4, 1.0F);
    const auto w = b.initializer("w", {1, 1, 2, 2}, std::span<const float>(ones));
    b.node("Conv", {x, w}, "y").attribute("strides", {2, 2}).attribute("auto_pad", mode);
    const auto y = run(finish(std::move(b), {"y"}), {counting(25)})[0];
    REQUIRE(y.sizes == shape{1, 1, 3, 3});
    if (mode == "SAME_LOWER") {
      CHECK(y.floats()[0] == 1);
      CHECK(y.floats()[1] == 5);
      CHECK(y.floats()[4] == 40);
    } else {
      CHECK(y.floats()[0] == 16);
    }
  }
}

TEST_CASE("divisor under ceil_mode") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 1, 1, 5});
  b.node("AveragePool", {x}, "y").attribute("kernel_shape", {1, 2}).attribute("strides", {1, 2}).attribute("ceil_mode", 1).attribute("count_include_pad", 1);
  check_close(run(finish(std::move(b), {"y"}), {counting(5)})[0].floats(), {1.5F, 3.5F, 5.0F});
}

TEST_CASE("Softmax before opset 13 is joint over the last axes") {
  for (const std::int64_t opset : {7, 11, 13, 18}) {
    auto b = at_opset(opset);
    const auto x = b.input("x", {2, 3, 4});
    b.node("Softmax", {x}, "y");
    const auto y = run(finish(std::move(b), {"y"}), {std::vector<float>(24, 0.0F)})[0];
    for (const auto v : y.floats()) CHECK(v == doctest::Approx(opset < 13 ? 1.0 / 12 : 1.0 / 4));
  }
}

TEST_CASE("Softmax along a negative axis") {
  auto b = at_opset(13);
  const auto x = b.input("x", {2, 3, 1});
  b.node("Softmax", {x}, "y").attribute("axis", -2);
  const auto y = run(finish(std::move(b), {"y"}), {std::vector<float>(6, 5.0F)})[0];
  for (const auto v : y.floats()) CHECK(v == doctest::Approx(1.0 / 3));
}

TEST_CASE("Gemm with everything") {
  // A 3x2 transposed, B 4x3 transposed: the product of row i and column j is the sum over k of A[k][i] B[j][k].
  const auto a = counting(6), bm = counting(12, -5), c = std::vector<float>{1, -1, 2, 0.5F};
  std::vector<float> expected;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < 3; ++k) sum += a[k * 2 + i] * bm[j * 3 + k];
      expected.push_back(0.5F * sum);
    }
  std::vector<float> with_c = expected;
  for (std::size_t i = 0; i < 8; ++i) with_c[i] += 2 * c[i % 4];
  for (const std::string kind : {"constant", "absent", "input"}) {
    CAPTURE(kind);
    auto b = at_opset(13);
    std::vector<std::string> inputs{b.input("a", {3, 2}), b.initializer("b", {4, 3}, std::span<const float>(bm))};
    if (kind == "constant") inputs.push_back(b.initializer("c", {4}, std::span<const float>(c)));
    if (kind == "input") inputs.push_back(b.input("c", {4}));
    b.node("Gemm", inputs, "y").attribute("transA", 1).attribute("transB", 1).attribute("alpha", 0.5F).attribute("beta", 2.0F);
    std::vector<std::vector<float>> values{a};
    if (kind == "input") values.push_back(c);
    check_close(run(finish(std::move(b), {"y"}), values)[0].floats(), kind == "absent" ? expected : with_c);
  }
}

TEST_CASE("a Conv whose result is read twice keeps its weights; one without bias gets one when it is folded") {
  const auto build = [](bool shared) {
    auto b = at_opset(13);
    const auto x = b.input("x", {1, 2, 4, 4});
    b.node("Conv", {x, b.he_uniform("w", {3, 2, 3, 3})}, "c");
    b.node("BatchNormalization", {"c", b.uniform("scale", {3}, 1, 0.5F), b.uniform("shift", {3}, 0, 1), b.uniform("mean", {3}, 0, 1), b.uniform("var", {3}, 1, 0.5F)}, "out1");
    if (shared) b.node("Relu", {"c"}, "out2");
    return finish(std::move(b), shared ? std::vector<std::string>{"out1", "out2"} : std::vector<std::string>{"out1"});
  };
  run(build(true), {counting(32)});
  const auto kept = model::canonicalize(import_checked(build(true))), folded = model::canonicalize(import_checked(build(false)));
  CHECK(kept.node_count() == 4);
  CHECK(kept.at(0).inputs.size() == 2);
  CHECK(folded.node_count() == 1);
  CHECK(folded.at(0).inputs.size() == 3);
}

TEST_CASE("hard convolution: depthwise with multiplier, dilations, asymmetric pads and strides, no kernel_shape, no bias") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 4, 9, 7});
  const auto w = b.he_uniform("w", {8, 1, 3, 3});
  b.node("Conv", {x, w}, "y").attribute("group", 4).attribute("dilations", {2, 2}).attribute("pads", {0, 1, 2, 3}).attribute("strides", {2, 1});
  const auto m = finish(std::move(b), {"y"});
  const auto g = import_checked(m);
  const auto& op = std::get<model::convolution>(g.at(0).op);
  CHECK(op.kernel == shape{3, 3});
  CHECK(op.groups == 4);
  CHECK(op.pads_begin == shape{0, 1});
  CHECK(op.pads_end == shape{2, 3});
  const auto y = run(m, {counting(4 * 9 * 7)})[0];
  REQUIRE(y.sizes == shape{1, 8, 4, 7});
  // The definition, by hand: output channel m reads input channel m / 2.
  const auto& weights = g.at(g.at(0).inputs[1]).data->floats();
  const auto in = counting(4 * 9 * 7);
  for (std::int64_t channel = 0; channel < 8; ++channel)
    for (std::int64_t oy = 0; oy < 4; ++oy)
      for (std::int64_t ox = 0; ox < 7; ++ox) {
        double sum = 0;
        for (std::int64_t ky = 0; ky < 3; ++ky)
          for (std::int64_t kx = 0; kx < 3; ++kx) {
            const std::int64_t iy = oy * 2 + ky * 2, ix = ox + kx * 2 - 1;
            if (iy < 0 || iy >= 9 || ix < 0 || ix >= 7) continue;
            sum += static_cast<double>(in[static_cast<std::size_t>((channel / 2 * 9 + iy) * 7 + ix)]) * static_cast<double>(weights[static_cast<std::size_t>((channel * 3 + ky) * 3 + kx)]);
          }
        CHECK(y.floats()[static_cast<std::size_t>((channel * 4 + oy) * 7 + ox)] == doctest::Approx(sum).epsilon(1e-5));
      }
}

TEST_CASE("windows that lie wholly in padding") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 1, 1, 2});
  b.node("AveragePool", {x}, "y").attribute("kernel_shape", {1, 2}).attribute("pads", {0, 3, 0, 0}).attribute("count_include_pad", 1);
  check_close(run(finish(std::move(b), {"y"}), {{2, 4}})[0].floats(), {0, 0, 1, 3});
}

TEST_CASE("Pad before a pool, as attribute and as input") {
  for (const std::int64_t opset : {7, 13, 18}) {
    auto b = at_opset(opset);
    const auto x = b.input("x", {1, 1, 2, 2});
    if (opset < 11) b.node("Pad", {x}, "p").attribute("pads", {0, 0, 1, 1, 0, 0, 1, 1});
    else if (opset < 18) b.node("Pad", {x, b.integers("pads", {0, 0, 1, 1, 0, 0, 1, 1})}, "p");
    else b.node("Pad", {x, b.integers("pads", {1, 1, 1, 1}), "", b.integers("axes", {-2, -1})}, "p");
    b.node("AveragePool", {"p"}, "y").attribute("kernel_shape", {2, 2}).attribute("strides", {2, 2});
    const auto m = finish(std::move(b), {"y"});
    check_close(run(m, {{4, 8, 12, 16}})[0].floats(), {1, 2, 3, 4});
    CHECK(model::canonicalize(import_checked(m)).node_count() == 1);
  }
}

TEST_CASE("pools: global ones, one-dimensional ones, dilations since opset 19") {
  auto b = at_opset(19, 9);
  const auto x = b.input("x", {1, 2, 4});
  b.node("GlobalAveragePool", {x}, "mean");
  b.node("GlobalMaxPool", {x}, "max");
  b.node("AveragePool", {x}, "spread").attribute("kernel_shape", {2}).attribute("dilations", {2});
  const auto y = run(finish(std::move(b), {"mean", "max", "spread"}), {counting(8)});
  check_close(y[0].floats(), {2.5F, 6.5F});
  CHECK(y[0].sizes == shape{1, 2, 1});
  check_close(y[1].floats(), {4, 8});
  check_close(y[2].floats(), {2, 3, 6, 7});
}

TEST_CASE("pools over volumes") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 1, 2, 2, 4});
  b.node("MaxPool", {x}, "max").attribute("kernel_shape", {2, 2, 2}).attribute("strides", {1, 1, 2});
  b.node("AveragePool", {x}, "mean").attribute("kernel_shape", {2, 1, 1});
  b.node("GlobalAveragePool", {x}, "all");
  const auto y = run(finish(std::move(b), {"max", "mean", "all"}), {counting(16)});
  check_close(y[0].floats(), {14, 16});
  check_close(y[1].floats(), {5, 6, 7, 8, 9, 10, 11, 12});
  check_close(y[2].floats(), {8.5F});
  auto deep = at_opset(13);
  deep.node("MaxPool", {deep.input("x", {1, 1, 2, 2, 2, 2})}, "y").attribute("kernel_shape", {1, 1, 1, 1});
  CHECK(mentions(failure(finish(std::move(deep), {"y"})), "ranks 3 to 5"));
}

TEST_CASE("Clip: attributes, inputs, one bound, computed bounds, integers") {
  const std::vector<float> x{-2, 0.5F, 9};
  const auto check = [&](::onnx::ModelProto m, const std::vector<float>& expected) { check_close(run(m, {x})[0].floats(), expected); };
  {
    auto b = at_opset(7);
    b.node("Clip", {b.input("x", {3})}, "y").attribute("min", -1.0F).attribute("max", 6.0F);
    check(finish(std::move(b), {"y"}), {-1, 0.5F, 6});
  }
  {
    auto b = at_opset(13);
    b.node("Clip", {b.input("x", {3}), b.scalar("low", -1), b.scalar("high", 6)}, "y");
    check(finish(std::move(b), {"y"}), {-1, 0.5F, 6});
  }
  {
    auto b = at_opset(13);
    b.node("Clip", {b.input("x", {3}), "", b.scalar("high", 6)}, "y");
    check(finish(std::move(b), {"y"}), {-2, 0.5F, 6});
  }
  auto b = at_opset(13);
  b.node("Clip", {b.input("x", {3}), b.input("low", {}), b.input("high", {})}, "y");
  check_close(run(finish(std::move(b), {"y"}), {x, {-1}, {6}})[0].floats(), {-1, 0.5F, 6});
}

TEST_CASE("activations and their defaults") {
  auto b = at_opset(16);
  const auto x = b.input("x", {1, 2, 1, 2});
  const std::vector<float> slope{0.5F, 0.25F};
  b.node("Relu", {x}, "relu");
  b.node("LeakyRelu", {x}, "leaky");
  b.node("Sigmoid", {x}, "sigmoid");
  b.node("Tanh", {x}, "tanh");
  b.node("PRelu", {x, b.initializer("slope", {2, 1, 1}, std::span<const float>(slope))}, "prelu");
  b.node("HardSigmoid", {x}, "hard_sigmoid");
  b.node("HardSwish", {x}, "hard_swish");
  b.node("Neg", {x}, "neg");
  b.node("Abs", {x}, "abs");
  b.node("Pow", {x, b.scalar("two", 2)}, "pow");
  const auto y = run(finish(std::move(b), {"relu", "leaky", "sigmoid", "tanh", "prelu", "hard_sigmoid", "hard_swish", "neg", "abs", "pow"}), {{-1, 2, -4, 0}});
  check_close(y[0].floats(), {0, 2, 0, 0});
  check_close(y[1].floats(), {-0.01F, 2, -0.04F, 0});
  check_close(y[2].floats(), {0.2689414F, 0.8807971F, 0.01798621F, 0.5F});
  check_close(y[3].floats(), {-0.7615942F, 0.9640276F, -0.9993293F, 0});
  check_close(y[4].floats(), {-0.5F, 2, -1, 0});
  check_close(y[5].floats(), {0.3F, 0.9F, 0, 0.5F});
  check_close(y[6].floats(), {-1.0F / 3, 5.0F / 3, 0, 0});
  check_close(y[7].floats(), {1, -2, 4, 0});
  check_close(y[8].floats(), {1, 2, 4, 0});
  check_close(y[9].floats(), {1, 4, 16, 0});
}

TEST_CASE("element-wise operators before opset 7 broadcast at an axis") {
  auto b = at_opset(6, 3);
  const auto x = b.input("x", {2, 3, 2}), c = b.input("c", {3});
  b.node("Add", {x, c}, "y").attribute("broadcast", 1).attribute("axis", 1);
  check_close(run(finish(std::move(b), {"y"}), {std::vector<float>(12, 0.0F), {1, 2, 3}})[0].floats(), {1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3});
}

TEST_CASE("Sum, Max and Min of any number of operands; ReduceMean over an image") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 1, 2, 2});
  b.node("Sum", {x, x, x}, "sum");
  b.node("Max", {x, b.scalar("two", 2)}, "max");
  b.node("Min", {x}, "min");
  b.node("ReduceMean", {x}, "mean").attribute("axes", {2, -1}).attribute("keepdims", 0);
  const auto y = run(finish(std::move(b), {"sum", "max", "min", "mean"}), {counting(4)});
  check_close(y[0].floats(), {3, 6, 9, 12});
  check_close(y[1].floats(), {2, 2, 3, 4});
  check_close(y[2].floats(), {1, 2, 3, 4});
  check_close(y[3].floats(), {2.5F});
  CHECK(y[3].sizes == shape{1, 1});
}

TEST_CASE("Identity and Dropout chains vanish; training is refused") {
  auto b = at_opset(13);
  const auto x = b.input("x", {3});
  b.node("Identity", {x}, "a");
  b.node("Dropout", {"a"}, "d", 1).attribute("seed", 1);
  b.node("Relu", {"d"}, "r");
  b.node("Dropout", {"r", b.scalar("ratio", 0.5F)}, "e");
  b.node("Identity", {"e"}, "y");
  const auto g = model::canonicalize(import_checked(finish(std::move(b), {"y"})));
  CHECK(g.node_count() == 1);
  CHECK(g.at(g.outputs[0]).name == "y");

  auto t = at_opset(13);
  t.input("x", {3});
  auto training = t.proto().mutable_graph()->add_initializer();
  training->set_name("training");
  training->set_data_type(::onnx::TensorProto::BOOL);
  training->add_int32_data(1);
  t.node("Dropout", {"x", "", "training"}, "y");
  CHECK(mentions(failure(finish(std::move(t), {"y"})), "training mode"));
}
