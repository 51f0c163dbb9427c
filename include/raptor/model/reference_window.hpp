#pragma once

#include <limits>

#include "raptor/model/operators.hpp"
#include "raptor/model/reference_value.hpp"

/// Reference evaluation of convolutions and pools, for any number of spatial axes.
namespace raptor::model::reference {

/// One spatial axis of a window operator: index o of the output and k of the kernel meet at o · stride + k · dilation − begin.
struct window_axis {
  std::int64_t in, out, kernel, stride, dilation, begin, end;

  /// Output indices whose element k lies in the image.
  [[nodiscard]] interval outputs_at(std::int64_t k) const {
    const std::int64_t shift = k * dilation - begin;
    const auto first = shift >= 0 ? 0 : checked::divide_up(-shift, stride);
    const auto last = shift >= in ? 0 : checked::divide_up(in - shift, stride);
    return {std::min(first, out), std::min(last, out)};
  }
  /// Kernel indices of output o that lie in [0 − before, in + after).
  [[nodiscard]] interval kernel_at(std::int64_t o, std::int64_t before, std::int64_t after) const {
    const std::int64_t start = o * stride - begin;
    const auto first = start >= -before ? 0 : checked::divide_up(-before - start, dilation);
    const auto last = start >= in + after ? 0 : checked::divide_up(in + after - start, dilation);
    return {std::min(first, kernel), std::min(last, kernel)};
  }
};

/// The spatial axes of an operator on an input [N, C, …]. Errors: mismatch, where attributes, input and output contradict
/// each other. `may_ceil`: the output may be rounded up. Every product of these values fits an int64.
template <class Op>
[[nodiscard]] std::vector<window_axis> window_axes(const Op& op, const call& c, bool may_ceil) {
  const auto& in = c.input(0).sizes;
  const auto& out = c.output();
  c.require(in.size() >= 3 && out.size() == in.size(), "the input or the output has no spatial axes");
  const auto rank = in.size() - 2;
  for (const auto* values : {&op.kernel, &op.strides, &op.dilations, &op.pads_begin, &op.pads_end})
    c.require(values->size() == rank, "the attributes have not one value a spatial axis");
  constexpr std::int64_t most = std::int64_t{1} << 40;
  std::vector<window_axis> axes;
  for (std::size_t a = 0; a < rank; ++a) {
    const window_axis axis{in[a + 2], out[a + 2], op.kernel[a], op.strides[a], op.dilations[a], op.pads_begin[a], op.pads_end[a]};
    c.require(axis.kernel > 0 && axis.stride > 0 && axis.dilation > 0, "a kernel, stride or dilation is not positive");
    for (const auto value : {axis.in, axis.out, axis.stride, axis.begin, axis.end})
      c.require(value <= most && value >= -most, "a size, stride or pad is too large");
    const auto extent = checked::add(checked::multiply(axis.kernel - 1, axis.dilation), std::int64_t{1});
    c.require(extent <= most, "the kernel is too large");
    const auto room = axis.in + axis.begin + axis.end - extent;
    c.require(room >= 0 || (may_ceil && room > -axis.stride), "the kernel is larger than the padded input");
    static_cast<void>(checked::multiply(axis.out, axis.stride));
    const auto floor = room < 0 ? 0 : room / axis.stride + 1;
    // Rounded up, without a last window that would begin in the padding at the end.
    const auto up = room < 0 ? 1 : checked::divide_up(room, axis.stride) + 1;
    const auto ceil = up > 1 && checked::multiply(up - 1, axis.stride) >= axis.in + axis.begin ? up - 1 : up;
    c.require(axis.out == floor || (may_ceil && axis.out == ceil),
              "spatial axis " + std::to_string(a) + " of the output should be " + std::to_string(floor) + ", not " + std::to_string(axis.out));
    axes.push_back(axis);
  }
  return axes;
}

/// Adds one input plane convolved with one kernel to an output plane, row by row of the last axis.
struct plane_accumulator {
  std::vector<window_axis> axes;
  std::vector<std::vector<interval>> outputs;  ///< outputs_at, an axis and kernel index
  std::vector<double> sum;                     ///< the output plane

  plane_accumulator(std::vector<window_axis> spatial, std::size_t plane) : axes(std::move(spatial)), sum(plane) {
    for (const auto& axis : axes) {
      outputs.emplace_back();
      for (std::int64_t k = 0; k < axis.kernel; ++k) outputs.back().push_back(axis.outputs_at(k));
    }
  }
  /// `x`: the input plane; `w`: the kernel; both row major. `row`, `in_row`, `w_row`: offsets of the outer axes.
  void add(const float* x, const float* w, std::size_t a = 0, std::int64_t row = 0, std::int64_t in_row = 0, std::int64_t w_row = 0) {
    const auto& axis = axes[a];
    for (std::int64_t k = 0; k < axis.kernel; ++k) {
      const auto [first, last] = outputs[a][at(k)];
      if (first >= last) continue;
      const auto in_first = in_row * axis.in + first * axis.stride + k * axis.dilation - axis.begin;
      if (a + 1 == axes.size()) {
        add_row(sum.data() + row * axis.out + first, x + in_first, last - first, axis.stride, double{w[w_row * axis.kernel + k]});
      } else {
        for (std::int64_t o = first; o < last; ++o)
          add(x, w, a + 1, row * axis.out + o, in_first + (o - first) * axis.stride, w_row * axis.kernel + k);
      }
    }
  }
  static void add_row(double* out, const float* x, std::int64_t count, std::int64_t stride, double w) {
    if (stride == 1) {
      for (std::int64_t i = 0; i < count; ++i) out[i] += w * double{x[i]};
    } else {
      for (std::int64_t i = 0; i < count; ++i) out[i] += w * double{x[i * stride]};
    }
  }
};

/// Y[n,m,o…] = B[m] + Σ X[n, group(m) · C/groups + c, o · stride + k · dilation − pad …] · W[m,c,k…].
[[nodiscard]] inline tensor_value evaluate(const convolution& op, const call& c) {
  const auto& in = c.input(0).sizes;
  const auto& weights = c.input(1).sizes;
  const auto& x = c.floats(0);
  const auto& w = c.floats(1);
  const auto axes = window_axes(op, c, false);
  const auto& out = c.output();
  c.require(weights.size() == in.size() && axis_values(weights.begin() + 2, weights.end()) == op.kernel,
            "the weights of shape " + to_string(weights) + " do not have the kernel's shape");
  c.require(op.groups > 0 && weights[0] % op.groups == 0 && checked::multiply(weights[1], op.groups) == in[1],
            "weights of shape " + to_string(weights) + " in " + std::to_string(op.groups) + " groups do not fit " + std::to_string(in[1]) + " channels");
  c.require(!c.has(2) || c.input(2).sizes == shape{weights[0]}, "the bias has not one value an output channel");
  c.require(out[0] == in[0] && out[1] == weights[0], "the output should have " + std::to_string(weights[0]) + " channels");

  std::vector<float> result(c.count(out));
  if (!result.empty()) {
    const auto in_plane = element_count(std::span(in).subspan(2));
    const auto out_plane = element_count(std::span(out).subspan(2));
    const auto kernel = element_count(op.kernel);
    const auto maps = weights[0];
    const auto depth = w.empty() ? 0 : weights[1];
    plane_accumulator plane(depth == 0 ? std::vector<window_axis>{} : axes, at(out_plane));
    for (std::int64_t n = 0; n < in[0]; ++n)
      for (std::int64_t m = 0; m < maps; ++m) {
        std::fill(plane.sum.begin(), plane.sum.end(), c.has(2) ? double{c.floats(2)[at(m)]} : 0.0);
        const auto channel = m / (maps / op.groups) * depth;
        for (std::int64_t d = 0; d < depth; ++d)
          plane.add(x.data() + (n * in[1] + channel + d) * in_plane, w.data() + (m * depth + d) * kernel);
        for (std::int64_t i = 0; i < out_plane; ++i) result[at((n * maps + m) * out_plane + i)] = static_cast<float>(plane.sum[at(i)]);
      }
  }
  return make_value(out, std::move(result));
}

/// A maximum over a window without any element of the image is the lowest finite value, an average over one is 0.
[[nodiscard]] inline tensor_value evaluate(const pool& op, const call& c) {
  const auto& in = c.input(0).sizes;
  const auto& x = c.floats(0);
  const auto axes = window_axes(op, c, true);
  const auto& out = c.output();
  c.require(out[0] == in[0] && out[1] == in[1], "a pool keeps batch and channels");

  std::vector<float> result(c.count(out));
  if (!result.empty()) {
    struct {
      const std::vector<window_axis>& axes;
      bool is_max, count_pads;
      double value = 0;
      const float* x = nullptr;
      box kernel;  // of the present window
      std::vector<std::int64_t> start;

      void window(std::size_t a, std::int64_t in_row) {
        if (a == axes.size()) {
          const double element = x[in_row];
          value = is_max ? std::max(value, element) : value + element;
          return;
        }
        for (auto k = kernel[a].begin; k < kernel[a].end; ++k) window(a + 1, in_row * axes[a].in + start[a] + k * axes[a].dilation);
      }
      float* plane(std::size_t a, std::int64_t divisor, float* to) {
        if (a < axes.size()) {
          const auto& axis = axes[a];
          for (std::int64_t o = 0; o < axis.out; ++o) {
            kernel[a] = axis.kernel_at(o, 0, 0);
            start[a] = o * axis.stride - axis.begin;
            const auto counted = count_pads ? axis.kernel_at(o, axis.begin, axis.end) : kernel[a];
            to = plane(a + 1, checked::multiply(divisor, counted.size()), to);
          }
          return to;
        }
        const bool nothing = is_empty(kernel);
        value = is_max ? -std::numeric_limits<double>::infinity() : 0;
        window(0, 0);
        if (is_max)
          *to++ = nothing ? std::numeric_limits<float>::lowest() : static_cast<float>(value);
        else
          *to++ = nothing ? 0.0F : static_cast<float>(value / static_cast<double>(divisor));
        return to;
      }
    } walk{axes, op.kind == pool_kind::max, op.count_include_pad, 0, nullptr, box(axes.size()), std::vector<std::int64_t>(axes.size())};
    const auto in_plane = element_count(std::span(in).subspan(2));
    float* to = result.data();
    for (std::int64_t p = 0; p < in[0] * in[1]; ++p) {
      walk.x = x.data() + p * in_plane;
      to = walk.plane(0, 1, to);
    }
  }
  return make_value(out, std::move(result));
}

}  // namespace raptor::model::reference
