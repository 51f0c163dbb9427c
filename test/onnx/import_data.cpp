#include "raptor/onnx/tensor_data.hpp"

#include <bit>
#include <cstring>

#include "import_support.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

namespace {

::onnx::TensorProto tensor_of(std::int32_t type, const shape& sizes) {
  ::onnx::TensorProto t;
  t.set_name("w");
  t.set_data_type(type);
  for (const auto size : sizes) t.add_dims(size);
  return t;
}
template <class Word>
std::string bytes_of(const std::vector<Word>& words) {
  std::string bytes(words.size() * sizeof(Word), '\0');
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}
void external(::onnx::TensorProto& t, const std::string& location, const std::string& offset = "", const std::string& length = "") {
  t.set_data_location(::onnx::TensorProto::EXTERNAL);
  const auto entry = [&](const std::string& key, const std::string& value) {
    if (value.empty()) return;
    auto* e = t.add_external_data();
    e->set_key(key);
    e->set_value(value);
  };
  entry("location", location);
  entry("offset", offset);
  entry("length", length);
}
error read_failure(const ::onnx::TensorProto& t, const std::filesystem::path& folder = ".") {
  try {
    static_cast<void>(read_tensor(t, folder));
  } catch (const error& e) {
    return e;
  }
  FAIL("the tensor was read");
  return error(error_code::internal, "");
}

}  // namespace

TEST_CASE("encodings of one weight") {
  const std::vector<float> expected{1, -2, 0.5F, 0.25F};
  const std::vector<std::uint16_t> half{0x3c00, 0xc000, 0x3800, 0x3400}, brain{0x3f80, 0xc000, 0x3f00, 0x3e80};
  std::vector<::onnx::TensorProto> tensors;
  auto t = tensor_of(::onnx::TensorProto::FLOAT, {4});
  for (const auto v : expected) t.add_float_data(v);
  tensors.push_back(t);
  t = tensor_of(::onnx::TensorProto::FLOAT, {4});
  t.set_raw_data(bytes_of(expected));
  tensors.push_back(t);
  t = tensor_of(::onnx::TensorProto::FLOAT16, {4});
  t.set_raw_data(bytes_of(half));
  tensors.push_back(t);
  t = tensor_of(::onnx::TensorProto::FLOAT16, {4});
  for (const auto v : half) t.add_int32_data(v);
  tensors.push_back(t);
  t = tensor_of(::onnx::TensorProto::BFLOAT16, {4});
  t.set_raw_data(bytes_of(brain));
  tensors.push_back(t);
  t = tensor_of(::onnx::TensorProto::BFLOAT16, {4});
  for (const auto v : brain) t.add_int32_data(v);
  tensors.push_back(t);
  t = tensor_of(::onnx::TensorProto::DOUBLE, {4});
  for (const auto v : expected) t.add_double_data(double{v});
  tensors.push_back(t);
  t = tensor_of(::onnx::TensorProto::DOUBLE, {4});
  t.set_raw_data(bytes_of(std::vector<double>(expected.begin(), expected.end())));
  tensors.push_back(t);
  for (const auto& proto : tensors) {
    const auto read = read_tensor(proto, ".");
    CHECK(read.type == model::element_type::f32);
    CHECK(read.sizes == shape{4});
    CHECK(read.data->floats() == expected);
  }
}

TEST_CASE("every float16 value is exact") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float v = detail::half_to_float(static_cast<std::uint16_t>(bits));
    const std::uint32_t exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
    if (exponent == 0x1f) {
      const bool kind = fraction == 0 ? std::isinf(v) : std::isnan(v);
      REQUIRE(kind);
      continue;
    }
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
    REQUIRE(double{v} == ((bits & 0x8000) != 0 ? -magnitude : magnitude));
    REQUIRE(std::signbit(v) == ((bits & 0x8000) != 0));
  }
}

TEST_CASE("integer types, in fields and raw") {
  struct row { std::int32_t type; std::string raw; std::vector<std::int64_t> values; };
  const row rows[] = {{::onnx::TensorProto::INT8, bytes_of(std::vector<std::int8_t>{-1, 5}), {-1, 5}},
                      {::onnx::TensorProto::UINT8, bytes_of(std::vector<std::uint8_t>{255, 5}), {255, 5}},
                      {::onnx::TensorProto::INT16, bytes_of(std::vector<std::int16_t>{-300, 5}), {-300, 5}},
                      {::onnx::TensorProto::UINT16, bytes_of(std::vector<std::uint16_t>{65535, 5}), {65535, 5}},
                      {::onnx::TensorProto::INT32, bytes_of(std::vector<std::int32_t>{-70000, 5}), {-70000, 5}},
                      {::onnx::TensorProto::UINT32, bytes_of(std::vector<std::uint32_t>{4294967295u, 5}), {4294967295, 5}},
                      {::onnx::TensorProto::INT64, bytes_of(std::vector<std::int64_t>{INT64_MIN, 5}), {INT64_MIN, 5}},
                      {::onnx::TensorProto::UINT64, bytes_of(std::vector<std::uint64_t>{7, 5}), {7, 5}},
                      {::onnx::TensorProto::BOOL, std::string("\x02\x00", 2), {1, 0}}};
  for (const auto& r : rows) {
    CAPTURE(r.type);
    auto t = tensor_of(r.type, {2});
    t.set_raw_data(r.raw);
    CHECK(read_tensor(t, ".").data->integers() == r.values);
    auto u = tensor_of(r.type, {2});
    for (const auto v : r.values) {
      if (r.type == ::onnx::TensorProto::INT64) u.add_int64_data(v);
      else if (r.type == ::onnx::TensorProto::UINT64 || r.type == ::onnx::TensorProto::UINT32) u.add_uint64_data(static_cast<std::uint64_t>(v));
      else u.add_int32_data(static_cast<std::int32_t>(v));
    }
    CHECK(read_tensor(u, ".").data->integers() == r.values);
  }
}

TEST_CASE("data that does not match its shape, hostile sizes, types without numbers") {
  auto t = tensor_of(::onnx::TensorProto::FLOAT, {3});
  t.set_raw_data(std::string(8, '\0'));
  CHECK(read_failure(t).code() == error_code::malformed);
  CHECK(mentions(read_failure(t), "has 8 bytes, needs 12"));
  t = tensor_of(::onnx::TensorProto::FLOAT, {3});
  t.add_float_data(1);
  CHECK(mentions(read_failure(t), "has 1 values, needs 3"));
  CHECK(mentions(read_failure(tensor_of(::onnx::TensorProto::FLOAT, {3})), "needs 3"));
  for (const auto& sizes : {shape{std::int64_t{1} << 40}, shape{-1}, shape{1 << 30, 1 << 30, 1 << 30}}) CHECK(read_failure(tensor_of(::onnx::TensorProto::FLOAT, sizes)).code() == error_code::malformed);
  // The largest shape that is allowed, with no data: refused before it is allocated.
  CHECK(mentions(read_failure(tensor_of(::onnx::TensorProto::FLOAT, {1 << 30, 2})), "has 0 values"));
  for (const auto type : {::onnx::TensorProto::STRING, ::onnx::TensorProto::COMPLEX64}) CHECK(read_failure(tensor_of(type, {1})).code() == error_code::unsupported);
  CHECK(read_failure(tensor_of(4242, {1})).code() == error_code::unsupported);
  t = tensor_of(::onnx::TensorProto::UINT64, {1});
  t.add_uint64_data(UINT64_MAX);
  CHECK(mentions(read_failure(t), "above 2^63"));
}

TEST_CASE("external data beside the model") {
  const temporary_folder folder("external");
  const std::vector<float> values{9, 1, -2, 0.5F, 9};
  folder.write("model/weights/w.bin", bytes_of(values));
  folder.write("secret.bin", bytes_of(values));
  auto b = at_opset(13);
  const auto x = b.input("x", {3});
  b.node("Add", {x, "w"}, "y");
  auto t = tensor_of(::onnx::TensorProto::FLOAT, {3});
  external(t, "weights/w.bin", "4", "12");
  *b.proto().mutable_graph()->add_initializer() = t;
  const auto m = finish(std::move(b), {"y"});
  const auto file = folder.write("model/model.onnx", m.SerializeAsString());
  const auto g = import_model(file);
  model::check_graph(g);
  const std::vector<float> zeros(3, 0.0F);
  CHECK(model::evaluate(g, std::vector{model::make_value({3}, zeros)})[0].floats() == std::vector<float>{1, -2, 0.5F});

  const auto attempt = [&](const std::string& location, const std::string& offset = "", const std::string& length = "") {
    auto e = tensor_of(::onnx::TensorProto::FLOAT, {5});
    external(e, location, offset, length);
    return read_failure(e, folder.path() / "model");
  };
  for (const std::string outside : {"../secret.bin", "weights/../../secret.bin", "/etc/passwd"}) {
    CHECK(attempt(outside).code() == error_code::malformed);
    CHECK(mentions(attempt(outside), "outside the folder"));
  }
  std::error_code ec;
  std::filesystem::create_symlink("../secret.bin", folder.path() / "model" / "link.bin", ec);
  if (!ec) CHECK(mentions(attempt("link.bin"), "outside the folder"));
  CHECK(attempt("missing.bin").code() == error_code::io);
  CHECK(mentions(attempt("missing.bin"), "missing.bin"));
  CHECK(mentions(attempt("weights/w.bin", "4"), "\"weights/w.bin\" is too short: 20 bytes, 20 needed from offset 4"));
  CHECK(mentions(attempt("weights/w.bin", "18446744073709551615"), "offset is not a number"));
  CHECK(mentions(attempt("weights/w.bin", "999999999999999999"), "too short"));
  CHECK(mentions(attempt("weights/w.bin", "-4"), "offset is not a number"));
  CHECK(mentions(attempt("weights/w.bin", "", "16"), "gives 16 bytes, the shape needs 20"));
  CHECK(mentions(attempt(""), "without a location"));
  CHECK(attempt("weights").code() == error_code::io);
  auto huge = tensor_of(::onnx::TensorProto::FLOAT, {1 << 30});
  external(huge, "weights/w.bin");
  CHECK(mentions(read_failure(huge, folder.path() / "model"), "too short"));
}

TEST_CASE("constants of every kind") {
  auto b = at_opset(13);
  const auto x = b.input("x", {2});
  auto t = tensor_of(::onnx::TensorProto::FLOAT, {2});
  t.add_float_data(1);
  t.add_float_data(2);
  b.node("Constant", {}, "tensor").attribute("value", t);
  b.node("Constant", {}, "number").attribute("value_float", 3.0F);
  auto floats = b.node("Constant", {}, "numbers");
  auto* a = floats.proto().add_attribute();
  a->set_name("value_floats");
  a->set_type(::onnx::AttributeProto::FLOATS);
  a->add_floats(4);
  a->add_floats(5);
  b.node("Constant", {}, "count").attribute("value_int", 2);
  b.node("Constant", {}, "counts").attribute("value_ints", {1, 2});
  b.node("Sum", {x, "tensor", "number", "numbers"}, "sum");
  b.node("Mul", {"counts", "count"}, "target");
  b.node("Div", {"target", "counts"}, "twos");
  b.node("Sub", {"twos", b.integers("bias", {1, 0})}, "shape");
  b.node("Reshape", {"sum", "shape"}, "y");
  const auto y = run(finish(std::move(b), {"y"}), {{0, 0}})[0];
  CHECK(y.sizes == shape{1, 2});
  check_close(y.floats(), {8, 10});
  auto bad = at_opset(13);
  bad.node("Constant", {}, "c").attribute("value_string", "text");
  bad.node("Add", {bad.input("x", {1}), "c"}, "y");
  CHECK(mentions(failure(finish(std::move(bad), {"y"})), "string constants"));
}

TEST_CASE("a file with one tensor") {
  const temporary_folder folder("tensor_file");
  auto t = tensor_of(::onnx::TensorProto::FLOAT, {2});
  t.add_float_data(1);
  t.add_float_data(2);
  CHECK(read_tensor_file(folder.write("input_0.pb", t.SerializeAsString())).data->floats() == std::vector<float>{1, 2});
  CHECK_THROWS_AS(static_cast<void>(read_tensor_file(folder.path() / "missing.pb")), error);
  CHECK_THROWS_AS(static_cast<void>(read_tensor_file(folder.write("broken.pb", "\xff\xff"))), error);
}
