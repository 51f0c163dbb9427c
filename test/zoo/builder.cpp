#include "raptor/onnx/builder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <onnx/checker.h>

using namespace raptor;
using namespace raptor::onnx_io;

namespace {

std::vector<float> floats(const ::onnx::TensorProto& t) {
  std::vector<float> values(t.raw_data().size() / sizeof(float));
  std::memcpy(values.data(), t.raw_data().data(), t.raw_data().size());
  return values;
}

}  // namespace

TEST_CASE("a model of one convolution passes the ONNX checker") {
  model_builder b({.graph_name = "example", .seed = 1});
  const auto x = b.input("x", {1, 3, 8, 8});
  const auto w = b.he_uniform("w", {4, 3, 3, 3});
  const auto y = b.node("Conv", {x, w}, "y").attribute("pads", {1, 1, 1, 1}).attribute("group", 1).output();
  b.output(y, {1, 4, 8, 8});
  const auto model = std::move(b).take();
  CHECK_NOTHROW(::onnx::checker::check_model(model));
  CHECK(model.ir_version() == 7);
  CHECK(model.opset_import(0).version() == 13);
  CHECK(model.graph().name() == "example");
  REQUIRE(model.graph().node_size() == 1);
  CHECK(model.graph().node(0).output(0) == "y");
  CHECK(model.graph().initializer(0).raw_data().size() == 4 * 3 * 3 * 3 * 4);
}

TEST_CASE("attributes keep their kinds") {
  model_builder b;
  auto n = b.node("Made", {"a", "", "b"}, "n", 2, "some.domain");
  n.attribute("i", 3).attribute("f", 0.5F).attribute("d", 0.25).attribute("s", "text").attribute("l", {7, 8, 9});
  n.attribute("t", ::onnx::TensorProto());
  const auto& p = n.proto();
  CHECK(p.domain() == "some.domain");
  CHECK(p.input(1).empty());
  CHECK(n.output(0) == "n_0");
  CHECK(n.output(1) == "n_1");
  CHECK(p.attribute(0).type() == ::onnx::AttributeProto::INT);
  CHECK(p.attribute(0).i() == 3);
  CHECK(p.attribute(1).f() == 0.5F);
  CHECK(p.attribute(2).type() == ::onnx::AttributeProto::FLOAT);
  CHECK(p.attribute(2).f() == 0.25F);
  CHECK(p.attribute(3).type() == ::onnx::AttributeProto::STRING);
  CHECK(p.attribute(3).s() == "text");
  CHECK(p.attribute(4).ints_size() == 3);
  CHECK(p.attribute(4).ints(2) == 9);
  CHECK(p.attribute(5).type() == ::onnx::AttributeProto::TENSOR);
}

TEST_CASE("seeded numbers are fixed for ever") {
  // Recorded once: they depend on the standard's definition of mt19937_64 alone, so they hold on every machine.
  uniform_source a(0, "w"), again(0, "w"), other_seed(1, "w"), other_name(0, "v");
  const float first = a.next(0.0F, 1.0F);
  CHECK(first == again.next(0.0F, 1.0F));
  CHECK(first != other_seed.next(0.0F, 1.0F));
  CHECK(first != other_name.next(0.0F, 1.0F));
  CHECK(first == 0x1.65262p-2F);
  CHECK(a.next(1.0F, 0.1F) == 0x1.0dc06ep+0F);
}

TEST_CASE("seeded numbers fill their interval") {
  model_builder b({.seed = 5});
  b.uniform("u", {100, 100}, 2.0F, 0.5F);
  double sum = 0, squares = 0;
  float least = 9, most = -9;
  const auto values = floats(b.proto().graph().initializer(0));
  REQUIRE(values.size() == 10000);
  for (const float v : values) {
    sum += v;
    squares += (v - 2.0) * (v - 2.0);
    least = std::min(least, v);
    most = std::max(most, v);
  }
  CHECK(least >= 1.5F);
  CHECK(most <= 2.5F);
  CHECK(std::abs(sum / 10000 - 2.0) < 0.01);
  CHECK(std::abs(squares / 10000 - 0.25 / 3) < 0.003);
}

TEST_CASE("weights have variance gain squared over fan-in") {
  model_builder b;
  b.he_uniform("w", {50, 20, 3, 3}, 2.0);
  double squares = 0;
  const auto values = floats(b.proto().graph().initializer(0));
  for (const float v : values) squares += static_cast<double>(v) * v;
  CHECK(std::abs(squares / static_cast<double>(values.size()) * 180 / 4 - 1) < 0.05);
}

TEST_CASE("constants are little endian") {
  model_builder b;
  b.integers("shape", {1, -1});
  b.scalar("half", 0.5F);
  const auto& shape_tensor = b.proto().graph().initializer(0);
  CHECK(shape_tensor.data_type() == ::onnx::TensorProto::INT64);
  CHECK(shape_tensor.raw_data() == std::string("\1\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16));
  const auto& half = b.proto().graph().initializer(1);
  CHECK(half.dims_size() == 0);
  CHECK(half.raw_data() == std::string("\0\0\0\x3f", 4));
}

TEST_CASE("what cannot be stored is refused before it is allocated") {
  model_builder b;
  const std::vector<float> three(3);
  CHECK_THROWS_WITH_AS(b.initializer("w", {2, 2}, std::span<const float>(three)),
                       "initializer of shape 2x2 given 3 values", error);
  CHECK_THROWS_WITH_AS(b.uniform("w", {1 << 20, 1 << 20}, 0, 1), "the weights do not fit one ONNX file of 2 GiB", error);
  CHECK_THROWS_AS(b.uniform("w", {std::int64_t{1} << 40, std::int64_t{1} << 40}, 0, 1), error);
  CHECK(b.proto().graph().initializer_size() == 0);
}

TEST_CASE("a renamed value keeps its producer and its readers") {
  model_builder b;
  b.node("Relu", {"x"}, "a");
  b.node("Add", {"a", "a"}, "b");
  b.rename_value("a", "c");
  CHECK(b.proto().graph().node(0).output(0) == "c");
  CHECK(b.proto().graph().node(0).name() == "a");
  CHECK(b.proto().graph().node(1).input(0) == "c");
  CHECK(b.proto().graph().node(1).input(1) == "c");
}
