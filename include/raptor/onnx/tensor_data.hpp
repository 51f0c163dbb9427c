#pragma once

#include <onnx/onnx_pb.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/model/shape_inference.hpp"
#include "raptor/model/tensor.hpp"
#include "raptor/onnx/wire.hpp"
#include "raptor/support/error.hpp"

/// Reading TensorProto: every floating type becomes f32, every integer type i64, whatever field or file holds the data.
/// Errors: malformed, where data and shape disagree; unsupported, for strings and complex numbers; io, for external files.
/// Source: onnx.proto (TensorProto), ExternalData.md. Cost: linear in the data; nothing is allocated before the size of
/// the data that is really there has been compared with the shape.
namespace raptor::onnx_io {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

namespace detail {

/// IEEE binary16 → f32, exact.
[[nodiscard]] inline float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t widened = exponent == 0x1f ? 0xffu : exponent + 112;
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}
/// bfloat16 → f32: the upper half of the same number.
[[nodiscard]] inline float bfloat_to_float(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// How the bytes of one ONNX element type are read.
struct element_format {
  std::int32_t data_type;
  std::size_t bytes;
  model::element_type type;
  std::string_view name;
};
inline constexpr element_format element_formats[] = {
    {1, 4, model::element_type::f32, "float"},    {2, 1, model::element_type::i64, "uint8"},     {3, 1, model::element_type::i64, "int8"},
    {4, 2, model::element_type::i64, "uint16"},   {5, 2, model::element_type::i64, "int16"},     {6, 4, model::element_type::i64, "int32"},
    {7, 8, model::element_type::i64, "int64"},    {9, 1, model::element_type::boolean, "bool"},  {10, 2, model::element_type::f32, "float16"},
    {11, 8, model::element_type::f32, "double"},  {12, 4, model::element_type::i64, "uint32"},   {13, 8, model::element_type::i64, "uint64"},
    {16, 2, model::element_type::f32, "bfloat16"},
};

template <class T>
[[nodiscard]] T load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
[[nodiscard]] inline std::int64_t unsigned_to_integer(std::uint64_t value, const std::string& tensor) {
  if (value > static_cast<std::uint64_t>(INT64_MAX)) throw error(error_code::unsupported, "tensor \"" + tensor + "\" holds a uint64 value above 2^63 - 1");
  return static_cast<std::int64_t>(value);
}

/// `count` elements in the encoding of raw_data, as floats.
[[nodiscard]] inline std::vector<float> raw_floats(const char* bytes, std::size_t count, std::int32_t data_type) {
  std::vector<float> values(count);
  if (data_type == 1 && count != 0) std::memcpy(values.data(), bytes, count * sizeof(float));
  if (data_type == 10) for (std::size_t i = 0; i < count; ++i) values[i] = half_to_float(load<std::uint16_t>(bytes + 2 * i));
  if (data_type == 16) for (std::size_t i = 0; i < count; ++i) values[i] = bfloat_to_float(load<std::uint16_t>(bytes + 2 * i));
  if (data_type == 11) for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(load<double>(bytes + 8 * i));
  return values;
}
/// The same as integers.
[[nodiscard]] inline std::vector<std::int64_t> raw_integers(const char* bytes, std::size_t count, std::int32_t data_type, const std::string& tensor) {
  std::vector<std::int64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) switch (data_type) {
      case 2: values[i] = load<std::uint8_t>(bytes + i); break;
      case 3: values[i] = load<std::int8_t>(bytes + i); break;
      case 4: values[i] = load<std::uint16_t>(bytes + 2 * i); break;
      case 5: values[i] = load<std::int16_t>(bytes + 2 * i); break;
      case 6: values[i] = load<std::int32_t>(bytes + 4 * i); break;
      case 7: values[i] = load<std::int64_t>(bytes + 8 * i); break;
      case 9: values[i] = load<std::uint8_t>(bytes + i) != 0 ? 1 : 0; break;
      case 12: values[i] = load<std::uint32_t>(bytes + 4 * i); break;
      default: values[i] = unsigned_to_integer(load<std::uint64_t>(bytes + 8 * i), tensor); break;
    }
  return values;
}

/// Bytes of an external tensor. The location is relative to `folder` and must stay inside it, symbolic links included.
[[nodiscard]] inline std::string read_external(const ::onnx::TensorProto& t, const std::filesystem::path& folder, std::uint64_t expected) {
  namespace fs = std::filesystem;
  const std::string place = "tensor \"" + t.name() + "\"";
  std::string location;
  std::uint64_t offset = 0, length = expected;
  const auto number = [&](const std::string& key, const std::string& text) {
    if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
      throw error(error_code::malformed, "external data: " + key + " is not a number: \"" + text.substr(0, 40) + "\"", place);
    return std::stoull(text);
  };
  for (const auto& entry : t.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number("offset", entry.value());
    if (entry.key() == "length") length = number("length", entry.value());
  }
  if (location.empty()) throw error(error_code::malformed, "external data without a location", place);
  if (location.find('\0') != std::string::npos) throw error(error_code::malformed, "external data: location holds a zero byte", place);
  const fs::path relative(location);
  bool leaves = relative.is_absolute();
  for (const auto& part : relative) leaves = leaves || part == "..";
  std::error_code ec;
  const fs::path base = fs::weakly_canonical(folder.empty() ? fs::path(".") : folder, ec);
  fs::path file = ec ? relative : fs::weakly_canonical(base / relative, ec);
  if (!leaves && !ec) {
    const auto inside = file.lexically_relative(base);
    leaves = inside.empty() || *inside.begin() == "..";
  }
  if (leaves) throw error(error_code::malformed, "external data \"" + location + "\" lies outside the folder of the model", place, "keep external data beside the model file");
  if (ec || !fs::is_regular_file(file, ec)) throw error(error_code::io, "external data file \"" + location + "\" not found", place, "it belongs beside the model file");
  const std::uint64_t available = fs::file_size(file, ec);
  if (ec) throw error(error_code::io, "cannot read external data file \"" + location + "\"", place);
  if (length != expected)
    throw error(error_code::malformed, "external data \"" + location + "\" gives " + std::to_string(length) + " bytes, the shape needs " + std::to_string(expected), place);
  if (offset > available || length > available - offset)
    throw error(error_code::malformed, "external data file \"" + location + "\" is too short: " + std::to_string(available) + " bytes, " + std::to_string(length) +
                                           " needed from offset " + std::to_string(offset), place);
  std::string bytes(static_cast<std::size_t>(length), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  stream.read(bytes.data(), static_cast<std::streamsize>(length));
  if (!stream) throw error(error_code::io, "cannot read external data file \"" + location + "\"", place);
  return bytes;
}

}  // namespace detail

/// Element type of an ONNX data type. Errors: unsupported, for strings, complex numbers and types narrower than a byte.
[[nodiscard]] inline const detail::element_format& format_of(std::int32_t data_type, const std::string& place) {
  for (const auto& format : detail::element_formats)
    if (format.data_type == data_type) return format;
  const std::string type_name = ::onnx::TensorProto_DataType_IsValid(data_type) ? ::onnx::TensorProto_DataType_Name(static_cast<::onnx::TensorProto_DataType>(data_type))
                                                                              : std::to_string(data_type);
  throw error(error_code::unsupported, "element type " + type_name + " is not supported", place);
}

/// A TensorProto as a constant tensor. `folder`: where external data is looked for.
[[nodiscard]] inline model::tensor read_tensor(const ::onnx::TensorProto& t, const std::filesystem::path& folder) {
  const std::string place = "tensor \"" + t.name() + "\"";
  const auto& format = format_of(t.data_type(), place);
  model::tensor result{t.name(), format.type, {}, nullptr};
  try {
    result.sizes = model::checked_shape(shape(t.dims().begin(), t.dims().end()));
  } catch (const error& e) {
    throw error(error_code::malformed, e.what(), place);
  }
  if (t.has_segment()) throw error(error_code::unsupported, "tensors stored in segments are not supported", place);
  const auto count = static_cast<std::size_t>(element_count(result.sizes));
  const bool floating = format.type == model::element_type::f32;
  const auto wrong_size = [&](std::uint64_t there, const char* unit, std::uint64_t needed) {
    return error(error_code::malformed, "tensor \"" + t.name() + "\" of shape " + to_string(result.sizes) + " (" + std::string(format.name) + ") has " +
                                            std::to_string(there) + " " + unit + ", needs " + std::to_string(needed), place);
  };
  model::constant data;
  const auto from_raw = [&](const std::string& bytes) {
    if (bytes.size() != count * format.bytes) throw wrong_size(bytes.size(), "bytes", count * format.bytes);
    if (floating) data.values = detail::raw_floats(bytes.data(), count, format.data_type);
    else data.values = detail::raw_integers(bytes.data(), count, format.data_type, t.name());
  };
  const auto check_count = [&](int there) {
    if (static_cast<std::size_t>(there) != count) throw wrong_size(static_cast<std::uint64_t>(there), "values", count);
  };
  if (t.data_location() == ::onnx::TensorProto::EXTERNAL) {
    from_raw(detail::read_external(t, folder, count * format.bytes));
  } else if (t.has_raw_data()) {
    from_raw(t.raw_data());
  } else if (floating) {
    std::vector<float> values;
    const auto copy = [&](const auto& field, auto convert) {
      check_count(field.size());
      values.reserve(count);
      for (const auto v : field) values.push_back(convert(v));
    };
    switch (format.data_type) {
      case 1: copy(t.float_data(), [](float v) { return v; }); break;
      case 11: copy(t.double_data(), [](double v) { return static_cast<float>(v); }); break;
      case 10: copy(t.int32_data(), [](std::int32_t v) { return detail::half_to_float(static_cast<std::uint16_t>(v)); }); break;
      default: copy(t.int32_data(), [](std::int32_t v) { return detail::bfloat_to_float(static_cast<std::uint16_t>(v)); }); break;
    }
    data.values = std::move(values);
  } else {
    std::vector<std::int64_t> values;
    const auto copy = [&](const auto& field, auto convert) {
      check_count(field.size());
      values.reserve(count);
      for (const auto v : field) values.push_back(convert(v));
    };
    switch (format.data_type) {
      case 7: copy(t.int64_data(), [](std::int64_t v) { return v; }); break;
      case 12: case 13: copy(t.uint64_data(), [&](std::uint64_t v) { return detail::unsigned_to_integer(v, t.name()); }); break;
      case 9: copy(t.int32_data(), [](std::int32_t v) { return std::int64_t{v != 0 ? 1 : 0}; }); break;
      default: copy(t.int32_data(), [](std::int32_t v) { return std::int64_t{v}; }); break;
    }
    data.values = std::move(values);
  }
  result.data = std::make_shared<const model::constant>(std::move(data));
  return result;
}

/// A file that holds one TensorProto, such as input_0.pb of the ONNX backend tests. Errors: as parse_message_file and read_tensor.
[[nodiscard]] inline model::tensor read_tensor_file(const std::filesystem::path& file) {
  ::onnx::TensorProto proto;
  parse_message_file(proto, file, "not an ONNX tensor");
  return read_tensor(proto, file.parent_path());
}

}  // namespace raptor::onnx_io
