// What the fuzz targets found, each as its kind.
#include "import_support.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

TEST_CASE("a weight that is read for the first time may move the tensors of the graph") {
  // The number of tensors before the operator decides when their storage grows: every number up to 70.
  for (int before = 0; before <= 70; ++before) {
    CAPTURE(before);
    auto b = at_opset(13);
    auto x = b.input("x", {1, 2, 3, 3});
    for (int i = 0; i < before; ++i) x = b.node("Relu", {x}, "r" + std::to_string(i)).output();
    const auto w = b.he_uniform("w", {2, 3, 2, 2});
    const auto bias = b.uniform("b", {3}, 0.0F, 1.0F);
    const auto y = b.node("ConvTranspose", {x, w, bias}, "y").output();
    const auto scale = b.uniform("s", {3}, 1.0F, 0.5F), shift = b.uniform("t", {3}, 0.0F, 1.0F);
    const auto z = b.node("InstanceNormalization", {y, scale, shift}, "z").output();
    const auto g = import_checked(finish(std::move(b), {z}));
    CHECK(g.at(g.outputs[0]).sizes == shape{1, 3, 4, 4});
  }
}

TEST_CASE("a small file that folds without end is refused before long") {
  // Every ReduceSum reads 2^24 elements and makes one.
  auto b = at_opset(13);
  const auto x = b.input("x", {1});
  auto large = b.node("ConstantOfShape", {b.integers("sizes", {1 << 12, 1 << 12})}, "large").output();
  auto sum = x;
  for (int i = 0; i < 2000; ++i) {
    const auto one = b.node("ReduceSum", {large, b.integers("axes" + std::to_string(i), {0, 1})}, "r" + std::to_string(i)).attribute("keepdims", 0).output();
    sum = b.node("Add", {sum, one}, "a" + std::to_string(i)).output();
  }
  try {
    static_cast<void>(import_model(finish(std::move(b), {sum}), "."));
    FAIL("it was imported");
  } catch (const error& e) {
    std::string all = e.what();
    for (const auto& detail : e.details()) all += "\n" + detail;
    CHECK(all.find("constant folding takes more than 2^29 operations") != std::string::npos);
  }
}

TEST_CASE("large weights may be reordered while they are folded") {
  // 2^24 elements of weights, turned six times: more than folding may create for a file without weights.
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 1 << 12});
  auto w = b.initializer("w", {1 << 12, 1 << 12}, std::span<const float>(std::vector<float>(std::size_t{1} << 24, 1.0F)));
  for (int i = 0; i < 6; ++i) w = b.node("Transpose", {w}, "t" + std::to_string(i)).attribute("perm", {1, 0}).output();
  const auto y = b.node("MatMul", {x, w}, "y").output();
  const auto g = import_model(finish(std::move(b), {y}), ".");
  CHECK(g.node_count() == 1);
}
