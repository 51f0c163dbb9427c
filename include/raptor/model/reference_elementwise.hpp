#pragma once

#include <cmath>
#include <limits>

#include "raptor/model/operators.hpp"
#include "raptor/model/reference_value.hpp"
#include "raptor/model/shape_inference.hpp"

/// Reference evaluation of element-wise operators and of the normalizations. Computed in double, rounded once to f32.
namespace raptor::model::reference {

/// Integer arithmetic wraps, as the operators of ONNX do. Errors: mismatch, for a division by zero and a negative exponent.
[[nodiscard]] inline std::int64_t apply(const call& c, binary_kind kind, std::int64_t a, std::int64_t b) {
  const auto bits = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  switch (kind) {
    case binary_kind::add: return static_cast<std::int64_t>(bits(a) + bits(b));
    case binary_kind::subtract: return static_cast<std::int64_t>(bits(a) - bits(b));
    case binary_kind::multiply: return static_cast<std::int64_t>(bits(a) * bits(b));
    case binary_kind::divide:
      c.require(b != 0, "integer division by zero");
      return b == -1 ? static_cast<std::int64_t>(0 - bits(a)) : a / b;
    case binary_kind::maximum: return std::max(a, b);
    case binary_kind::minimum: return std::min(a, b);
    case binary_kind::prelu: return a < 0 ? apply(c, binary_kind::multiply, a, b) : a;
    case binary_kind::power: {
      c.require(b >= 0, "an integer to a negative power");
      std::uint64_t result = 1;
      std::uint64_t square = bits(a);
      for (auto exponent = bits(b); exponent != 0; exponent >>= 1, square *= square)
        if (exponent & 1) result *= square;
      return static_cast<std::int64_t>(result);
    }
  }
  throw error(error_code::internal, "unknown binary operator", c.place);
}

/// NaN in either operand of maximum and minimum is kept.
[[nodiscard]] inline double apply(const call& c, binary_kind kind, double a, double b) {
  switch (kind) {
    case binary_kind::add: return a + b;
    case binary_kind::subtract: return a - b;
    case binary_kind::multiply: return a * b;
    case binary_kind::divide: return a / b;
    case binary_kind::maximum: return std::isnan(a) || a > b ? a : b;
    case binary_kind::minimum: return std::isnan(a) || a < b ? a : b;
    case binary_kind::power: return std::pow(a, b);
    case binary_kind::prelu: return a < 0 ? a * b : a;
  }
  throw error(error_code::internal, "unknown binary operator", c.place);
}

/// Operands are both f32 or both integers; power also takes one of each, and its result has the type of the base (rounded
/// towards zero).
[[nodiscard]] inline tensor_value evaluate(const binary& op, const call& c) {
  const shape sizes = broadcast_shape(c, c.input(0).sizes, c.input(1).sizes);
  c.expect_output(sizes);
  c.require(op.kind != binary_kind::prelu || sizes == c.input(0).sizes, "the slope does not broadcast to the data");
  const auto count = c.count(sizes);
  const auto a = broadcast_to(c, c.input(0), sizes);
  const auto b = broadcast_to(c, c.input(1), sizes);
  if (a.type() == element_type::i64) {
    c.require(b.type() == element_type::i64 || op.kind == binary_kind::power, "operands of different element types");
    std::vector<std::int64_t> out(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (b.type() == element_type::i64) {
        out[i] = apply(c, op.kind, a.integers()[i], b.integers()[i]);
      } else {
        const double power = apply(c, op.kind, static_cast<double>(a.integers()[i]), double{b.floats()[i]});
        c.require(std::abs(power) < 0x1p63, "a power that is no integer of 64 bits");
        out[i] = static_cast<std::int64_t>(power);
      }
    }
    return make_value(sizes, std::move(out));
  }
  std::vector<float> out(count);
  if (b.type() == element_type::i64) {
    c.require(op.kind == binary_kind::power, "operands of different element types");
    for (std::size_t i = 0; i < count; ++i)
      out[i] = static_cast<float>(apply(c, op.kind, double{a.floats()[i]}, static_cast<double>(b.integers()[i])));
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(apply(c, op.kind, double{a.floats()[i]}, double{b.floats()[i]}));
  }
  return make_value(sizes, std::move(out));
}

[[nodiscard]] inline double apply(const call& c, const unary& op, double x) {
  switch (op.kind) {
    case unary_kind::relu: return x < 0 ? 0 : x;
    case unary_kind::leaky_relu: return x < 0 ? x * double{op.a} : x;
    case unary_kind::clip: return std::isnan(x) ? x : std::min(std::max(x, double{op.a}), double{op.b});
    case unary_kind::sigmoid: return 1 / (1 + std::exp(-x));
    case unary_kind::tanh: return std::tanh(x);
    case unary_kind::identity: return x;
    case unary_kind::silu: return x / (1 + std::exp(-x));
    case unary_kind::exponential: return std::exp(x);
    case unary_kind::exponential_minus_one: return std::expm1(x);
    case unary_kind::logarithm: return std::log(x);
    case unary_kind::square_root: return std::sqrt(x);
    case unary_kind::reciprocal: return 1 / x;
    case unary_kind::power: return std::pow(x, double{op.a});
    case unary_kind::error_function: return std::erf(x);
    case unary_kind::softplus: return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    case unary_kind::sign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case unary_kind::floor: return std::floor(x);
    case unary_kind::round: return std::nearbyint(x);
  }
  throw error(error_code::internal, "unknown unary operator", c.place);
}

/// Identity and relu take integers too.
[[nodiscard]] inline tensor_value evaluate(const unary& op, const call& c) {
  const auto& in = c.input(0);
  c.expect_output(in.sizes);
  if (op.kind == unary_kind::identity) return in;
  const auto count = c.count(in.sizes);
  if (in.type() == element_type::i64 && op.kind == unary_kind::relu) {
    std::vector<std::int64_t> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = std::max(in.integers()[i], std::int64_t{0});
    return make_value(in.sizes, std::move(out));
  }
  const auto& x = c.floats(0);
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(apply(c, op, double{x[i]}));
  return make_value(in.sizes, std::move(out));
}

/// exp(x − max) / Σ exp(x − max), the sum over all axes of [first, last) together.
[[nodiscard]] inline tensor_value evaluate(const softmax& op, const call& c) {
  const auto& sizes = c.input(0).sizes;
  const auto& x = c.floats(0);
  c.require(0 <= op.first && op.first <= op.last && at(op.last) <= sizes.size(), "the axes do not exist");
  c.expect_output(sizes);
  std::vector<float> out(c.count(sizes));
  if (!out.empty()) {
    const auto length = at(element_count(std::span(sizes).subspan(at(op.first), at(op.last - op.first))));
    const auto stride = at(element_count(std::span(sizes).subspan(at(op.last))));
    for (std::size_t outer = 0; outer < out.size(); outer += length * stride)
      for (std::size_t inner = outer; inner < outer + stride; ++inner) {
        double largest = x[inner];
        for (std::size_t i = 0; i < length; ++i) largest = std::max(largest, double{x[inner + i * stride]});
        double sum = 0;
        for (std::size_t i = 0; i < length; ++i) sum += std::exp(double{x[inner + i * stride]} - largest);
        for (std::size_t i = 0; i < length; ++i)
          out[inner + i * stride] = static_cast<float>(std::exp(double{x[inner + i * stride]} - largest) / sum);
      }
  }
  return make_value(sizes, std::move(out));
}

/// Sums, means and products in double, in order; NaN in a maximum is kept.
[[nodiscard]] inline tensor_value evaluate(const reduce& op, const call& c) {
  const auto& sizes = c.input(0).sizes;
  const auto& x = c.floats(0);
  const shape result = reduce_shape(op, sizes);
  c.expect_output(result);
  std::vector<float> out(c.count(result));
  if (!out.empty()) {
    const auto length = at(element_count(std::span(sizes).subspan(at(op.first), at(op.last - op.first))));
    const auto stride = at(element_count(std::span(sizes).subspan(at(op.last))));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto first = i / stride * stride * length + i % stride;
      double value = op.kind == reduce_kind::product ? 1 : op.kind == reduce_kind::maximum ? double{x[first]} : 0;
      for (std::size_t k = 0; k < length; ++k) {
        const double element = x[first + k * stride];
        if (op.kind == reduce_kind::product) value *= element;
        else if (op.kind == reduce_kind::maximum) value = std::isnan(value) || value > element ? value : element;
        else value += element;
      }
      out[i] = static_cast<float>(op.kind == reduce_kind::mean ? value / static_cast<double>(length) : value);
    }
  }
  return make_value(result, std::move(out));
}

[[nodiscard]] inline tensor_value evaluate(const batch_normalization& op, const call& c) {
  const auto& sizes = c.input(0).sizes;
  const auto& x = c.floats(0);
  c.require(sizes.size() >= 2, "the input has no channel axis");
  for (std::size_t i = 1; i < 5; ++i)
    c.require(c.input(i).sizes == shape{sizes[1]}, "input " + std::to_string(i) + " has not one value a channel");
  const auto& scale = c.floats(1);
  const auto& bias = c.floats(2);
  const auto& mean = c.floats(3);
  const auto& variance = c.floats(4);
  c.expect_output(sizes);
  std::vector<float> out(c.count(sizes));
  if (!out.empty()) {
    const auto channels = at(sizes[1]);
    const auto plane = at(element_count(std::span(sizes).subspan(2)));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto channel = i / plane % channels;
      const double normalized = (double{x[i]} - double{mean[channel]}) / std::sqrt(double{variance[channel]} + double{op.epsilon});
      out[i] = static_cast<float>(normalized * double{scale[channel]} + double{bias[channel]});
    }
  }
  return make_value(sizes, std::move(out));
}

/// The window of channel c is [c − ⌊(size − 1) / 2⌋, c + ⌈(size − 1) / 2⌉], cut to the channels that exist.
[[nodiscard]] inline tensor_value evaluate(const lrn& op, const call& c) {
  const auto& sizes = c.input(0).sizes;
  const auto& x = c.floats(0);
  c.require(sizes.size() >= 2, "the input has no channel axis");
  c.require(op.size > 0, "the window is empty");
  c.expect_output(sizes);
  std::vector<float> out(c.count(sizes));
  if (!out.empty()) {
    const auto channels = sizes[1];
    const auto plane = element_count(std::span(sizes).subspan(2));
    const auto before = std::min((op.size - 1) / 2, channels);
    const auto after = std::min(op.size - 1 - (op.size - 1) / 2, channels);
    for (std::int64_t n = 0; n < sizes[0]; ++n)
      for (std::int64_t channel = 0; channel < channels; ++channel)
        for (std::int64_t p = 0; p < plane; ++p) {
          double squares = 0;
          for (auto k = std::max(channel - before, std::int64_t{0}); k <= std::min(channel + after, channels - 1); ++k) {
            const double value = x[at((n * channels + k) * plane + p)];
            squares += value * value;
          }
          const auto i = at((n * channels + channel) * plane + p);
          const double divisor = std::pow(double{op.bias} + double{op.alpha} / static_cast<double>(op.size) * squares, double{op.beta});
          out[i] = static_cast<float>(double{x[i]} / divisor);
        }
  }
  return make_value(sizes, std::move(out));
}

}  // namespace raptor::model::reference
