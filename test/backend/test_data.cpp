#include "raptor/onnx/test_data.hpp"

#include <doctest/doctest.h>

#include "raptor/onnx/builder.hpp"

using namespace raptor;
using namespace raptor::onnx_io;

namespace {

::onnx::TensorProto tensor(const shape& sizes, const std::vector<float>& elements) {
  ::onnx::TensorProto t;
  t.set_data_type(::onnx::TensorProto::FLOAT);
  for (const auto size : sizes) t.add_dims(size);
  for (const auto e : elements) t.add_float_data(e);
  return t;
}
/// z = x · w + b, where b is an initializer that is also listed as an input, as files of IR version 3 have it.
::onnx::ModelProto affine() {
  model_builder b({.ir_version = 3});
  const auto x = b.input("x", {1, 2});
  const auto bias = b.input("b", {1});
  const auto w = b.input("w", {2, 1});
  b.initializer("b", {1}, std::vector<float>{7});
  const auto product = b.node("MatMul", {x, w}, "product").output();
  b.output(b.node("Add", {product, bias}, "z").output(), {1, 1});
  return std::move(b).take();
}
struct folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "raptor_test_data";
  folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~folder() { std::filesystem::remove_all(path); }
  void write(const std::string& file, const ::onnx::TensorProto& t) const {
    std::ofstream stream(path / file, std::ios::binary);
    t.SerializeToOstream(&stream);
  }
};

}  // namespace

TEST_CASE("recorded data is read in graph order, initializers left out") {
  const folder f;
  f.write("input_0.pb", tensor({1, 2}, {1, 2}));
  f.write("input_1.pb", tensor({2, 1}, {3, 4}));
  f.write("output_0.pb", tensor({1, 1}, {18}));
  const auto data = read_test_data(f.path, affine().graph());
  REQUIRE(data.inputs.size() == 2);
  CHECK(data.inputs[0].name() == "x");
  CHECK(data.inputs[1].name() == "w");
  REQUIRE(data.outputs.size() == 1);
  const auto value = value_of(data.outputs[0]);
  CHECK(value.sizes == shape{1, 1});
  CHECK(value.floats() == std::vector<float>{18});
}

TEST_CASE("missing and broken files are named") {
  const folder f;
  f.write("input_0.pb", tensor({1, 2}, {1, 2}));
  const auto code = [&] {
    try {
      static_cast<void>(read_test_data(f.path, affine().graph()));
    } catch (const error& e) {
      CHECK(e.place().find("input_1.pb") != std::string::npos);
      return e.code();
    }
    return error_code::internal;
  };
  CHECK(code() == error_code::io);
  std::ofstream(f.path / "input_1.pb") << "\xff\xff\xff";
  CHECK(code() == error_code::malformed);
  auto sequences = affine();
  sequences.mutable_graph()->mutable_input(2)->mutable_type()->mutable_sequence_type();
  try {
    static_cast<void>(read_test_data(f.path, sequences.graph()));
    FAIL("nothing was thrown");
  } catch (const error& e) {
    CHECK(e.code() == error_code::unsupported);
  }
}

TEST_CASE("inputs become initializers") {
  test_data data;
  data.inputs = {tensor({1, 2}, {1, 2}), tensor({2, 1}, {3, 4})};
  data.inputs[0].set_name("x");
  data.inputs[1].set_name("w");
  const auto [model, rest] = with_constants(affine(), data);
  REQUIRE(rest.inputs.size() == 1);
  CHECK(rest.inputs[0].name() == "x");
  REQUIRE(model.graph().input_size() == 2);
  CHECK(model.graph().input(0).name() == "x");
  CHECK(model.graph().input(1).name() == "b");
  REQUIRE(model.graph().initializer_size() == 2);
  CHECK(model.graph().initializer(1).name() == "w");
  CHECK(model.ir_version() == 4);
  const auto [constant, nothing] = with_constants(affine(), data, 0);
  CHECK(nothing.inputs.empty());
  CHECK(constant.graph().input_size() == 1);
  CHECK(constant.graph().initializer_size() == 3);
}

TEST_CASE("a missing folder has no tests") { CHECK(list_backend_tests("no/such/folder").empty()); }
