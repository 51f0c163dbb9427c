#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "raptor/onnx/convert_functions.hpp"
#include "raptor/onnx/node_context.hpp"

/// QuantizeLinear and DequantizeLinear. Constants fold. Of a computed tensor the pair is arithmetic: the quantized tensor is one of floats
/// that hold integers, which only DequantizeLinear may read. Source: ONNX Operators.md, Changelog.md.
namespace raptor::onnx_io::convert {

/// The integers of a quantized type.
struct quantized_range {
  std::int32_t data_type;
  std::int64_t low, high;
};
[[nodiscard]] inline quantized_range quantized_range_of(node_context& c, std::int32_t data_type) {
  constexpr quantized_range known[] = {{2, 0, 255}, {3, -128, 127}, {4, 0, 65535}, {5, -32768, 32767}};
  for (const auto& range : known)
    if (range.data_type == data_type) return range;
  c.unsupported("quantization to " + std::string(format_of(data_type, "zero_point").name));
}

/// Scale and zero point of a node, one value each or one a slice of an axis, in a shape that broadcasts to the data.
struct quantization {
  tensor_id scale;
  std::vector<float> scales;
  std::vector<std::int64_t> zeros;  ///< as many as scales
  shape sizes;
};
/// Errors: unsupported, where they are computed or belong to blocks.
inline quantization read_quantization(node_context& c) {
  if (c.integer("block_size", 0) != 0) c.unsupported("blocks of their own scale");
  const shape data = c.sizes(0), scale = c.sizes(1);
  const auto axis = c.integer("axis", 1);
  if (!c.operand(1).is_constant()) c.unsupported("a computed scale");
  c.require(c.operand(1).type == element_type::f32, "the scale must be of floats");
  quantization q;
  q.scales = c.operand(1).data->floats();
  for (const auto s : q.scales) c.require(std::isfinite(s) && s > 0, "a scale must be positive");
  if (element_count(scale) != 1) {
    const auto a = static_cast<std::size_t>(resolve_axis(axis, data.size()));
    c.require(scale == shape{data[a]}, "the scale must have one value, or one for each slice of its axis");
    q.sizes.assign(data.size() - a, 1);
    q.sizes[0] = data[a];
  }
  q.zeros.assign(q.scales.size(), 0);
  if (c.has(2)) {
    if (!c.operand(2).is_constant()) c.unsupported("a computed zero point");
    c.require(c.operand(2).type == element_type::i64, "the zero point must be of integers");
    c.require(element_count(c.sizes(2)) == element_count(scale), "scale and zero point must be equally many");
    q.zeros = c.operand(2).data->integers();
    for (const auto z : q.zeros) c.require(z >= -65535 && z <= 65535, "the zero point does not fit its type");
  }
  q.scale = c.constant_float_tensor(q.sizes, q.scales);
  return q;
}
/// t plus `sign` times the zero points.
[[nodiscard]] inline tensor_id shifted(node_context& c, tensor_id t, const quantization& q, std::int64_t sign) {
  if (std::all_of(q.zeros.begin(), q.zeros.end(), [](auto z) { return z == 0; })) return t;
  std::vector<float> terms;
  for (const auto z : q.zeros) terms.push_back(static_cast<float>(sign * z));
  return plus(c, t, c.constant_float_tensor(q.sizes, std::move(terms)));
}
/// For each element of data of these sizes, which scale it has.
[[nodiscard]] inline std::vector<std::size_t> scale_of_each(const shape& data, const quantization& q) {
  std::vector<std::size_t> index(static_cast<std::size_t>(element_count(data)), 0);
  if (q.sizes.empty()) return index;
  const auto inner = element_count(std::span(data).subspan(data.size() - q.sizes.size() + 1));
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = static_cast<std::size_t>(static_cast<std::int64_t>(i) / inner % q.sizes[0]);
  return index;
}

/// (x − zero point) · scale: one rounding, as the standard has it.
inline void dequantize(node_context& c) {
  const auto q = read_quantization(c);
  const auto x = c.input(0);
  if (c.at(x).type != element_type::f32 && c.at(x).is_constant()) {
    const shape sizes = c.at(x).sizes;
    require_foldable(c, element_count(sizes));
    const auto index = scale_of_each(sizes, q);
    std::vector<float> values;
    for (const auto v : c.at(x).data->integers()) {
      const auto i = index[values.size()];
      values.push_back(static_cast<float>(static_cast<double>(v) - static_cast<double>(q.zeros[i])) * q.scales[i]);
    }
    return c.result(c.constant_float_tensor(sizes, std::move(values)));
  }
  c.require(c.at(x).type != element_type::f32 || c.quantized(0), "the data must be quantized");
  c.result(times(c, shifted(c, x, q, -1), q.scale));
}
/// The integers nearest to x / scale, halves to even, plus the zero point, cut to the type's range. A computed tensor needs scales that are
/// powers of two: then the product with the reciprocal is the quotient; others would round differently now and then.
inline void quantize(node_context& c) {
  const auto q = read_quantization(c);
  c.ignore({"saturate"});
  std::int32_t data_type = static_cast<std::int32_t>(std::clamp<std::int64_t>(c.integer("output_dtype", 0), 0, 1000));
  if (c.has(2)) data_type = c.data_type(2);
  const auto range = quantized_range_of(c, data_type == 0 ? 2 : data_type);
  if (c.has(2) && data_type == 0) c.unsupported("a zero point whose type is not known; make it an initializer");
  auto x = c.input(0);
  c.require(c.at(x).type == element_type::f32, "the data must be of floats");
  const shape sizes = c.at(x).sizes;
  if (c.at(x).is_constant()) {
    require_foldable(c, element_count(sizes));
    const auto index = scale_of_each(sizes, q);
    std::vector<std::int64_t> values;
    for (const auto v : c.at(x).data->floats()) {
      const auto i = index[values.size()];
      c.require(!std::isnan(v), "quantization of a NaN");
      const double nearest = std::nearbyint(double{v / q.scales[i]}) + static_cast<double>(q.zeros[i]);
      values.push_back(static_cast<std::int64_t>(std::clamp(nearest, static_cast<double>(range.low), static_cast<double>(range.high))));
    }
    return c.result(c.constant_integer_tensor(sizes, std::move(values)));
  }
  std::vector<float> reciprocals;
  for (const auto s : q.scales) {
    int exponent = 0;
    if (std::frexp(s, &exponent) != 0.5F || std::abs(exponent) > 100)
      c.unsupported("quantization of a computed tensor by a scale (" + std::to_string(s) + ") that is no power of two: the vector unit has no exact quotient");
    reciprocals.push_back(1 / s);
  }
  x = times(c, x, c.constant_float_tensor(q.sizes, std::move(reciprocals)));
  x = shifted(c, function(c, unary_kind::round, x), q, 1);
  c.quantized_result(function(c, unary_kind::clip, x, static_cast<float>(range.low), static_cast<float>(range.high)), range.data_type);
}

}  // namespace raptor::onnx_io::convert
