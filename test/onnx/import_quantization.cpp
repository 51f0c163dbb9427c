#include "raptor/onnx/convert_quantization.hpp"

#include "import_support.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

namespace {
std::string bytes(model_builder& b, const std::string& name, const shape& sizes, ::onnx::TensorProto::DataType type, const std::vector<int>& values) {
  auto* t = b.proto().mutable_graph()->add_initializer();
  t->set_name(name);
  t->set_data_type(type);
  for (const auto size : sizes) t->add_dims(size);
  for (const auto v : values) t->add_int32_data(v);
  return name;
}
constexpr auto uint8 = ::onnx::TensorProto::UINT8;
constexpr auto int8 = ::onnx::TensorProto::INT8;
}  // namespace

TEST_CASE("constants: quantized weights become floats, one scale or one a slice") {
  auto b = at_opset(13);
  const auto x = b.input("x", {2, 3});
  const std::vector<float> scales{0.5F, 0.3F};
  b.node("DequantizeLinear", {bytes(b, "q", {2, 3}, int8, {-128, 0, 127, 3, 4, 5}), b.initializer("s", {2}, std::span<const float>(scales)), bytes(b, "z", {2}, int8, {0, 4})}, "w").attribute("axis", -2);
  b.node("Add", {x, "w"}, "y");
  const auto m = finish(std::move(b), {"y"});
  CHECK(import_checked(m).node_count() == 1);
  check_close(run(m, {std::vector<float>(6, 0.0F)})[0].floats(), {-64, 0, 63.5F, -0.3F, 0, 0.3F});
}

TEST_CASE("a pair of constants: halves to even, cut to the range of the type") {
  for (const bool is_signed : {false, true}) {
    auto b = at_opset(13);
    const auto x = b.input("x", {6});
    const std::vector<float> weights{0.75F, 1.25F, -0.75F, 1000, -1000, 0.1F};
    b.node("QuantizeLinear", {b.initializer("w", {6}, std::span<const float>(weights)), b.scalar("s", 0.5F), bytes(b, "z", {}, is_signed ? int8 : uint8, {is_signed ? -3 : 3})}, "q");
    b.node("DequantizeLinear", {"q", "s", "z"}, "back");
    b.node("Add", {x, "back"}, "y");
    const auto y = run(finish(std::move(b), {"y"}), {std::vector<float>(6, 0.0F)})[0].floats();
    if (is_signed) check_close(y, {1, 1, -1, 65, -62.5F, 0});
    else check_close(y, {1, 1, -1, 126, -1.5F, 0});
  }
}

TEST_CASE("a pair on a computed tensor: exact for scales that are powers of two") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 2, 4});
  const std::vector<float> scales{0.25F, 2};
  b.node("QuantizeLinear", {x, b.initializer("s", {2}, std::span<const float>(scales)), bytes(b, "z", {2}, uint8, {128, 0})}, "q").attribute("axis", 1);
  b.node("DequantizeLinear", {"q", "s", "z"}, "y").attribute("axis", 1);
  const auto y = run(finish(std::move(b), {"y"}), {{0.125F, 0.375F, -100, 100, 3, 5, -4, 1e9F}})[0].floats();
  CHECK(y == std::vector<float>{0, 0.5F, -32, 31.75F, 4, 4, 0, 510});
}

TEST_CASE("quantized computed tensors are read by DequantizeLinear alone; other scales are refused") {
  const auto quantized = [](float scale, const std::string& reader) {
    auto b = at_opset(13);
    b.node("QuantizeLinear", {b.input("x", {4}), b.scalar("s", scale), bytes(b, "z", {}, uint8, {1})}, "q");
    if (!reader.empty()) b.node(reader, {"q"}, "y");
    return failure(finish(std::move(b), {reader.empty() ? "q" : "y"}));
  };
  CHECK(mentions(quantized(0.3F, ""), "no power of two"));
  CHECK(mentions(quantized(0.5F, "Relu"), "only DequantizeLinear takes that"));
  CHECK(mentions(quantized(0.5F, ""), "only floating-point outputs"));
  CHECK(quantized(0.3F, "").code() == error_code::unsupported);
}
