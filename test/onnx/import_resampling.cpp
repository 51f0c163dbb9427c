#include "raptor/onnx/convert_resampling.hpp"

#include "import_support.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

TEST_CASE("Upsample by integers is one enlargement of any axes") {
  auto b = at_opset(9);
  const auto x = b.input("x", {1, 1, 2, 2});
  const std::vector<float> scales{1, 1, 2, 3};
  b.node("Upsample", {x, b.initializer("scales", {4}, std::span<const float>(scales))}, "y");
  const auto m = finish(std::move(b), {"y"});
  CHECK(import_checked(m).node_count() == 1);
  check_close(run(m, {{1, 2, 3, 4}})[0].floats(), {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});
}

TEST_CASE("Resize") {
  const auto resized = [](std::int64_t width, const std::string& mode, const std::string& coordinates) {
    auto b = at_opset(13);
    const auto x = b.input("x", {1, 1, 1, 4});
    auto node = b.node("Resize", {x, "", "", b.integers("sizes", {1, 1, 1, width})}, "y");
    node.attribute("mode", mode).attribute("coordinate_transformation_mode", coordinates);
    return finish(std::move(b), {"y"});
  };
  const std::vector<float> x{1, 2, 3, 4};
  check_close(run(resized(8, "nearest", "asymmetric"), {x})[0].floats(), {1, 1, 2, 2, 3, 3, 4, 4});
  check_close(run(resized(8, "linear", "half_pixel"), {x})[0].floats(), {1, 1.25F, 1.75F, 2.25F, 2.75F, 3.25F, 3.75F, 4});
  check_close(run(resized(7, "linear", "align_corners"), {x})[0].floats(), {1, 1.5F, 2, 2.5F, 3, 3.5F, 4});
  check_close(run(resized(6, "nearest", "asymmetric"), {x})[0].floats(), {1, 2, 2, 3, 4, 4});
  // The coordinates of the corners are those of the whole length that results.
  check_close(run(resized(2, "linear", "align_corners"), {x})[0].floats(), {1, 4});
  CHECK(failure(resized(6, "lanczos", "asymmetric")).code() == error_code::unsupported);
  CHECK(failure(resized(6, "linear", "sideways")).code() == error_code::unsupported);
}

TEST_CASE("an axis may keep its size under a scale that is not 1") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 1, 4, 1});
  const std::vector<float> scales{1, 1, 1.2F, 2};
  b.node("Resize", {x, "", b.initializer("scales", {4}, std::span<const float>(scales))}, "y").attribute("coordinate_transformation_mode", "asymmetric").attribute("nearest_mode", "floor");
  check_close(run(finish(std::move(b), {"y"}), {{1, 2, 3, 4}})[0].floats(), {1, 1, 1, 1, 2, 2, 3, 3});
}

TEST_CASE("Resize of a region that reaches beyond the data extrapolates") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 1, 2, 2});
  const std::vector<float> roi{0, 0, 0, -1, 1, 1, 1, 1};
  b.node("Resize", {x, b.initializer("roi", {8}, std::span<const float>(roi)), "", b.integers("sizes", {1, 1, 3, 3})}, "y")
      .attribute("mode", "linear").attribute("coordinate_transformation_mode", "tf_crop_and_resize").attribute("extrapolation_value", 10.0F);
  // Columns -1, 0 and 1 of the data; rows 0, 0.5 and 1.
  check_close(run(finish(std::move(b), {"y"}), {{1, 2, 3, 4}})[0].floats(), {10, 1, 2, 10, 2, 3, 10, 3, 4});
}

TEST_CASE("DepthToSpace undoes SpaceToDepth") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 2, 4, 6});
  b.node("SpaceToDepth", {x}, "deep").attribute("blocksize", 2);
  b.node("DepthToSpace", {"deep"}, "y").attribute("blocksize", 2);
  const auto y = run(finish(std::move(b), {"deep", "y"}), {counting(48)});
  CHECK(y[0].sizes == shape{1, 8, 2, 3});
  CHECK(y[1].floats() == counting(48));
}

TEST_CASE("ConvTranspose: stride, output_padding, groups") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 1, 2, 2});
  const std::vector<float> w{1, 2, 3, 4};
  b.node("ConvTranspose", {x, b.initializer("w", {1, 1, 2, 2}, std::span<const float>(w))}, "y").attribute("strides", {2, 2}).attribute("output_padding", {0, 1});
  const auto y = run(finish(std::move(b), {"y"}), {{1, 2, 3, 4}})[0];
  REQUIRE(y.sizes == shape{1, 1, 4, 5});
  check_close(y.floats(), {1, 2, 2, 4, 0, 3, 4, 6, 8, 0, 3, 6, 4, 8, 0, 9, 12, 12, 16, 0});

  auto g = at_opset(13);
  const auto z = g.input("x", {1, 2, 1, 2});
  const std::vector<float> two{1, 2, 10, 20};
  g.node("ConvTranspose", {z, g.initializer("w", {2, 1, 1, 2}, std::span<const float>(two))}, "y").attribute("group", 2);
  check_close(run(finish(std::move(g), {"y"}), {{1, 1, 1, 2}})[0].floats(), {1, 3, 2, 10, 40, 40});
}

TEST_CASE("a convolution with computed weights equals the one with constant weights") {
  const auto model_of = [](bool constant) {
    auto b = at_opset(13);
    const auto x = b.input("x", {2, 4, 5, 6});
    const auto weights = counting(4 * 2 * 3 * 2, -20);
    const std::string w = constant ? b.initializer("w", {4, 2, 3, 2}, std::span<const float>(weights)) : b.input("w", {4, 2, 3, 2});
    b.node("Conv", {x, w}, "y").attribute("group", 2).attribute("strides", {2, 1}).attribute("dilations", {1, 2}).attribute("pads", {1, 0, 2, 1});
    return finish(std::move(b), {"y"});
  };
  const auto x = counting(240, -100), weights = counting(48, -20);
  const auto expected = run(model_of(true), {x})[0], y = run(model_of(false), {x, weights})[0];
  CHECK(y.sizes == expected.sizes);
  check_close(y.floats(), expected.floats());
}
