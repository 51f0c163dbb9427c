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
