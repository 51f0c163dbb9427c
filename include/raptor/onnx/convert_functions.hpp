#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "raptor/onnx/convert_constant.hpp"
#include "raptor/onnx/convert_layers.hpp"
#include "raptor/onnx/node_context.hpp"

/// Functions, reductions and normalizations of computed tensors, as compositions of model operators. Constants fold.
/// Source: ONNX Operators.md, Changelog.md. Domains and error bounds of the functions: lowering/elementary_functions.hpp.
namespace raptor::onnx_io::convert {

inline tensor_id plus(node_context& c, tensor_id a, tensor_id b) { return c.add(binary{binary_kind::add}, {a, b}); }
inline tensor_id minus(node_context& c, tensor_id a, tensor_id b) { return c.add(binary{binary_kind::subtract}, {a, b}); }
inline tensor_id times(node_context& c, tensor_id a, tensor_id b) { return c.add(binary{binary_kind::multiply}, {a, b}); }
inline tensor_id times(node_context& c, tensor_id a, float factor) { return factor == 1 ? a : times(c, a, c.scalar(factor)); }
inline tensor_id plus(node_context& c, tensor_id a, float term) { return term == 0 ? a : plus(c, a, c.scalar(term)); }
inline tensor_id function(node_context& c, unary_kind kind, tensor_id x, float a = 0, float b = 0) { return c.add(unary{kind, a, b}, {x}); }
/// x for x > 0, else 0; and the rest of x.
inline tensor_id positive_part(node_context& c, tensor_id x) { return function(c, unary_kind::relu, x); }
inline tensor_id negative_part(node_context& c, tensor_id x) { return function(c, unary_kind::clip, x, -std::numeric_limits<float>::infinity(), 0); }

/// Element-wise functions of one operand.
inline void elementary(node_context& c) {
  const auto& op = c.op();
  const auto x = c.input(0);
  if (c.at(x).is_constant()) return constant_function(c);
  c.ignore({"consumed_inputs"});
  if (op == "Exp") return c.result(function(c, unary_kind::exponential, x));
  if (op == "Log") return c.result(function(c, unary_kind::logarithm, x));
  if (op == "Sqrt") return c.result(function(c, unary_kind::square_root, x));
  if (op == "Reciprocal") return c.result(function(c, unary_kind::reciprocal, x));
  if (op == "Sign") return c.result(function(c, unary_kind::sign, x));
  if (op == "Floor") return c.result(function(c, unary_kind::floor, x));
  if (op == "Round") return c.result(function(c, unary_kind::round, x));
  if (op == "Ceil") return c.result(times(c, function(c, unary_kind::floor, times(c, x, -1.0F)), -1.0F));
  constant_function(c);
}
/// Activations that are made of elementary functions.
inline void smooth_activation(node_context& c) {
  c.ignore({"consumed_inputs"});
  const auto& op = c.op();
  const auto x = c.input(0);
  if (op == "Erf") return c.result(function(c, unary_kind::error_function, x));
  if (op == "Softplus") return c.result(function(c, unary_kind::softplus, x));
  if (op == "Softsign") {
    const auto magnitude = c.add(binary{binary_kind::maximum}, {x, times(c, x, -1.0F)});
    return c.result(times(c, x, function(c, unary_kind::reciprocal, plus(c, magnitude, 1.0F))));
  }
  if (op == "Mish") return c.result(times(c, x, function(c, unary_kind::tanh, function(c, unary_kind::softplus, x))));
  if (op == "Gelu") {
    const std::string approximate = c.text("approximate", "none");
    tensor_id inner;
    if (approximate == "tanh") {
      const auto cube = times(c, times(c, x, x), x);
      const auto argument = plus(c, times(c, cube, static_cast<float>(0.044715 * std::sqrt(2 / std::numbers::pi))), times(c, x, static_cast<float>(std::sqrt(2 / std::numbers::pi))));
      inner = function(c, unary_kind::tanh, argument);
    } else {
      c.require(approximate == "none", "approximate \"" + approximate + "\" is unknown");
      inner = function(c, unary_kind::error_function, times(c, x, static_cast<float>(1 / std::numbers::sqrt2)));
    }
    return c.result(times(c, times(c, x, 0.5F), plus(c, inner, 1.0F)));
  }
  const bool selu = op == "Selu", celu = op == "Celu";
  const float alpha = c.real("alpha", selu ? 1.67326319217681884765625F : 1.0F);
  const float gamma = selu ? c.real("gamma", 1.05070102214813232421875F) : 1.0F;
  if (celu) c.require(alpha != 0, "alpha is 0");
  // x where it is positive, α · (e^(x / α) − 1) or α · (e^x − 1) elsewhere.
  auto below = negative_part(c, x);
  if (celu) below = alpha > 0 ? times(c, below, 1.0F / alpha) : (c.unsupported("negative alpha"), below);
  below = times(c, function(c, unary_kind::exponential_minus_one, below), alpha);
  c.result(times(c, plus(c, positive_part(c, x), below), gamma));
}

/// Division by a computed tensor: a product with its reciprocal.
inline void divide(node_context& c) {
  const auto a = c.input(0), b = legacy_operand(c, a, c.input(1));
  if (c.at(b).is_constant() || c.at(b).type != element_type::f32) return c.result(c.add(binary{binary_kind::divide}, {a, b}));
  c.result(times(c, a, function(c, unary_kind::reciprocal, b)));
}
/// x to a power of which only the exponent's kind is known: e^(y · log |x|), with the sign of an odd power of a negative base, and NaN where a
/// negative base has a fractional exponent. |x| is cut to the domain of the logarithm, the product to that of the exponential.
/// Error: relative, 2e-4 over results between 2^-120 and 2^120.
inline tensor_id power_of_any(node_context& c, tensor_id x, tensor_id y) {
  const auto magnitude = c.add(binary{binary_kind::maximum}, {x, times(c, x, -1.0F)});
  auto exponent = times(c, y, function(c, unary_kind::logarithm, magnitude));
  const auto negative = positive_part(c, times(c, function(c, unary_kind::sign, x), -1.0F));  // 1 or 0
  const auto whole = function(c, unary_kind::floor, y);
  const auto fractional = function(c, unary_kind::sign, minus(c, y, whole));
  const auto odd = minus(c, whole, times(c, function(c, unary_kind::floor, times(c, whole, 0.5F)), 2.0F));
  // 1, or a negative number whose logarithm is NaN.
  exponent = plus(c, exponent, function(c, unary_kind::logarithm, plus(c, times(c, times(c, negative, fractional), -2.0F), 1.0F)));
  const auto signs = plus(c, times(c, times(c, negative, odd), -2.0F), 1.0F);
  return times(c, function(c, unary_kind::exponential, exponent), signs);
}
/// One constant exponent of magnitude up to 64: products, reciprocals of them, or unary power. Others: power_of_any. Constants fold.
inline void general_power(node_context& c) {
  const auto x = c.input(0);
  auto y = legacy_operand(c, x, c.input(1));
  if (c.at(x).is_constant() && c.at(y).is_constant()) return c.result(c.add(binary{binary_kind::power}, {x, y}));
  if (c.at(y).is_constant() && c.at(y).type == element_type::i64) {
    const auto& integers = c.at(y).data->integers();
    y = c.constant_float_tensor(shape(c.at(y).sizes), std::vector<float>(integers.begin(), integers.end()));
  }
  const auto is_one_exponent = [&] {
    if (!c.at(y).is_constant() || broadcast_shape(c.at(x).sizes, c.at(y).sizes) != c.at(x).sizes) return false;
    const auto& all = c.at(y).data->floats();
    return !all.empty() && std::abs(all[0]) <= 64 && std::all_of(all.begin(), all.end(), [&](float e) { return e == all[0]; });
  };
  if (!is_one_exponent()) return c.result(power_of_any(c, x, y));
  const float exponent = c.at(y).data->floats()[0], magnitude = std::abs(exponent);
  if (exponent == 0.5F) return c.result(function(c, unary_kind::square_root, x));
  if (std::nearbyint(magnitude) != magnitude) return c.result(function(c, unary_kind::power, x, exponent));
  if (exponent == 0) {  // of anything
    const shape sizes = c.at(x).sizes;
    require_foldable(c, element_count(sizes));
    return c.result(c.constant_float_tensor(sizes, std::vector<float>(static_cast<std::size_t>(element_count(sizes)), 1.0F)));
  }
  auto left = static_cast<int>(magnitude);
  tensor_id result, square = x;
  for (bool first = true; left != 0; left >>= 1) {
    if (left & 1) {
      result = first ? square : times(c, result, square);
      first = false;
    }
    if (left > 1) square = times(c, square, square);
  }
  if (exponent < 0) result = function(c, unary_kind::reciprocal, result);
  c.result(result == x ? function(c, unary_kind::identity, x) : result);
}
inline void mean_of_operands(node_context& c) {
  c.ignore({"consumed_inputs"});
  auto sum = c.input(0);
  for (std::size_t i = 1; i < c.input_count(); ++i) sum = plus(c, sum, c.input(i));
  sum = times(c, sum, 1.0F / static_cast<float>(c.input_count()));
  c.result(sum == c.input(0) ? function(c, unary_kind::identity, sum) : sum);
}

/// Reduction over the marked axes, which stay with size 1: one model reduction a group of neighbouring axes.
inline tensor_id reduced(node_context& c, tensor_id x, reduce_kind kind, const std::vector<bool>& axes) {
  const shape sizes = c.at(x).sizes;
  const auto rank = sizes.size();
  const bool image = rank == 4 && !axes[0] && !axes[1] && axes[2] && axes[3] && element_count(sizes) > 0;
  if (image && kind == reduce_kind::mean) return whole_image_pool(c, x, pool_kind::average);
  if (image && kind == reduce_kind::maximum) return whole_image_pool(c, x, pool_kind::max);
  for (std::size_t last = rank; last > 0;) {
    if (!axes[last - 1]) {
      --last;
      continue;
    }
    auto first = last;
    std::int64_t length = 1;
    while (first > 0 && axes[first - 1]) length *= sizes[--first];
    const bool ends = last == rank;
    // A mean of vectors is their sum times a constant.
    const auto own = kind == reduce_kind::mean && !ends && length > 0 ? reduce_kind::sum : kind;
    x = c.add(reduce{own, static_cast<std::int64_t>(first), static_cast<std::int64_t>(last)}, {x});
    if (own != kind) x = times(c, x, 1.0F / static_cast<float>(length));
    last = first;
  }
  return x;
}
/// All Reduce operators. Axes as attribute, or as input since opset 13 (ReduceSum) or 18.
inline void reduction(node_context& c) {
  const auto& op = c.op();
  const auto x = c.input(0);
  const bool folds = op == "ReduceSum" || op == "ReduceProd" || op == "ReduceMax" || op == "ReduceMin";
  if (c.at(x).is_constant() && folds) return constant_reduce(c);
  const shape sizes = c.at(x).sizes;
  const bool keep = c.integer("keepdims", 1) != 0, nothing = c.integer("noop_with_empty_axes", 0) != 0;
  const auto given = c.attribute_or_input("axes", op == "ReduceSum" ? 12 : 17, 1).value_or(std::vector<std::int64_t>{});
  std::vector<bool> axes(sizes.size(), given.empty() && !nothing);
  for (const auto axis : given) axes[static_cast<std::size_t>(resolve_axis(axis, sizes.size()))] = true;
  const auto over = [&](tensor_id t, reduce_kind kind) { return reduced(c, t, kind, axes); };
  tensor_id value;
  if (op == "ReduceSum") value = over(x, reduce_kind::sum);
  else if (op == "ReduceMean") value = over(x, reduce_kind::mean);
  else if (op == "ReduceMax") value = over(x, reduce_kind::maximum);
  else if (op == "ReduceMin") value = times(c, over(times(c, x, -1.0F), reduce_kind::maximum), -1.0F);
  else if (op == "ReduceProd") value = over(x, reduce_kind::product);
  else if (op == "ReduceL1") value = over(c.add(binary{binary_kind::maximum}, {x, times(c, x, -1.0F)}), reduce_kind::sum);
  else if (op == "ReduceSumSquare") value = over(times(c, x, x), reduce_kind::sum);
  else if (op == "ReduceL2") value = function(c, unary_kind::square_root, over(times(c, x, x), reduce_kind::sum));
  else if (op == "ReduceLogSum") value = function(c, unary_kind::logarithm, over(x, reduce_kind::sum));
  else {
    const auto largest = over(x, reduce_kind::maximum);
    const auto sum = over(function(c, unary_kind::exponential, minus(c, x, largest)), reduce_kind::sum);
    value = plus(c, largest, function(c, unary_kind::logarithm, sum));
  }
  shape result;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (keep || !axes[d]) result.push_back(axes[d] ? 1 : sizes[d]);
  value = c.reshaped(value, std::move(result));
  c.result(value == x ? function(c, unary_kind::identity, x) : value);
}
inline void log_softmax(node_context& c) {
  const auto x = c.input(0);
  const shape sizes = c.at(x).sizes;
  const bool joint = c.opset() < 13;
  const auto first = static_cast<std::size_t>(resolve_axis(c.integer("axis", joint ? 1 : -1), sizes.size(), joint));
  std::vector<bool> axes(sizes.size(), false);
  for (std::size_t d = first; d < (joint ? sizes.size() : first + 1); ++d) axes[d] = true;
  const auto centred = minus(c, x, reduced(c, x, reduce_kind::maximum, axes));
  const auto sum = reduced(c, function(c, unary_kind::exponential, centred), reduce_kind::sum, axes);
  c.result(minus(c, centred, function(c, unary_kind::logarithm, sum)));
}

/// (x − mean) and 1 / sqrt(variance + epsilon) over the marked axes.
struct standardization {
  tensor_id mean, centred, inverse;
};
inline standardization standardize(node_context& c, tensor_id x, const std::vector<bool>& axes, float epsilon) {
  standardization s;
  s.mean = reduced(c, x, reduce_kind::mean, axes);
  s.centred = minus(c, x, s.mean);
  const auto variance = reduced(c, times(c, s.centred, s.centred), reduce_kind::mean, axes);
  s.inverse = function(c, unary_kind::power, plus(c, variance, epsilon), -0.5F);
  return s;
}
/// One value a channel (axis 1), so that it broadcasts to data of a rank.
inline tensor_id by_channel(node_context& c, std::size_t input, const shape& x) {
  c.require(c.sizes(input) == shape{x[1]}, "input " + std::to_string(input) + " must have one value a channel");
  shape aligned(x.size() - 1, 1);
  aligned[0] = x[1];
  return c.reshaped(c.input(input), std::move(aligned));
}
inline void layer_normalization(node_context& c) {
  const auto x = c.input(0);
  const shape sizes = c.at(x).sizes;
  const auto first = static_cast<std::size_t>(resolve_axis(c.integer("axis", -1), sizes.size()));
  const float epsilon = c.real("epsilon", 1e-5F);
  c.require(c.integer("stash_type", 1) == 1, "stash_type other than float");
  std::vector<bool> axes(sizes.size(), false);
  for (auto d = first; d < sizes.size(); ++d) axes[d] = true;
  const auto s = standardize(c, x, axes, epsilon);
  auto value = times(c, times(c, s.centred, s.inverse), c.input(1));
  if (c.has(2)) value = plus(c, value, c.input(2));
  if (c.at(value).sizes != sizes) c.malformed("scale or bias do not broadcast to the data");
  c.result(value);
  if (c.wants(1)) c.result(s.mean, 1);
  if (c.wants(2)) c.result(s.inverse, 2);
}
inline void instance_normalization(node_context& c) {
  c.ignore({"consumed_inputs"});
  const auto x = c.input(0);
  const shape sizes = c.at(x).sizes;
  c.require(sizes.size() >= 3, "data must have rank 3 or more");
  std::vector<bool> axes(sizes.size(), true);
  axes[0] = axes[1] = false;
  const auto s = standardize(c, x, axes, c.real("epsilon", 1e-5F));
  c.result(plus(c, times(c, times(c, s.centred, s.inverse), by_channel(c, 1, sizes)), by_channel(c, 2, sizes)));
}
/// Before opset 21 scale and bias have one value a group, since then one value a channel.
inline void group_normalization(node_context& c) {
  const auto x = c.input(0);
  const shape sizes = c.at(x).sizes;
  const auto groups = c.integer("num_groups", 0);
  c.require(c.integer("stash_type", 1) == 1, "stash_type other than float");
  c.require(sizes.size() >= 2 && groups > 0 && sizes[1] % groups == 0, "num_groups does not divide the channels");
  const shape grouped{sizes[0], groups, element_count(std::span(sizes).subspan(1)) / groups};
  const auto s = standardize(c, c.reshaped(x, grouped), {false, false, true}, c.real("epsilon", 1e-5F));
  auto value = times(c, s.centred, s.inverse);
  const auto parameter = [&](std::size_t i, const shape& data) { return by_channel(c, i, data); };
  if (c.opset() < 21) value = plus(c, times(c, value, parameter(1, grouped)), parameter(2, grouped));
  value = c.reshaped(value, sizes);
  if (c.opset() >= 21) value = plus(c, times(c, value, parameter(1, sizes)), parameter(2, sizes));
  c.result(value);
}
inline void mean_variance_normalization(node_context& c) {
  const auto x = c.input(0);
  std::vector<bool> axes(c.at(x).sizes.size(), false);
  for (const auto axis : c.integers("axes").value_or(axis_values{0, 2, 3})) axes[static_cast<std::size_t>(resolve_axis(axis, axes.size()))] = true;
  // The mean of the squares around the mean: a difference of means can round below 0.
  const auto centred = minus(c, x, reduced(c, x, reduce_kind::mean, axes));
  const auto variance = reduced(c, times(c, centred, centred), reduce_kind::mean, axes);
  c.result(times(c, centred, function(c, unary_kind::reciprocal, plus(c, function(c, unary_kind::square_root, variance), 1e-9F))));
}
/// With constant parameters one operator, which folds into its producer; with computed ones their arithmetic.
inline void any_batch_norm(node_context& c) {
  bool constant = true;
  for (std::size_t i = 1; i < 5; ++i) constant = constant && c.operand(i).is_constant();
  if (constant) return batch_norm(c);
  c.ignore({"momentum", "consumed_inputs", "is_test"});
  if (c.integer("training_mode", 0) != 0) c.unsupported("training mode");
  if (c.integer("spatial", 1) == 0) c.unsupported("statistics for each element (spatial = 0)");
  const shape sizes = c.sizes(0);
  c.require(sizes.size() >= 2, "data must have rank 2 or more");
  const auto inverse = function(c, unary_kind::power, plus(c, by_channel(c, 4, sizes), c.real("epsilon", 1e-5F)), -0.5F);
  const auto factor = times(c, by_channel(c, 1, sizes), inverse);
  c.result(plus(c, times(c, minus(c, c.input(0), by_channel(c, 3, sizes)), factor), by_channel(c, 2, sizes)));
}

}  // namespace raptor::onnx_io::convert
