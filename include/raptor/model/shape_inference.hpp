#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "raptor/model/operators.hpp"
#include "raptor/support/box.hpp"
#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"

/// Static shape inference: pure functions from operator and operand shapes to the result's shape. It is the authority on
/// shapes (the onnx package infers some wrong and leaves others out, DEPENDENCIES.md), so every function checks what it is
/// given. Errors: mismatch, where operands do not fit each other; capacity, where a size overflows or is beyond `max_elements`.
/// Complexity: linear in the ranks. Source: ONNX operator specification, opsets 1 to 22.
namespace raptor::model {

/// Largest number of elements of one tensor that a model may have: far above any network for a chip of crossbars, and small
/// enough that sizes in bytes and bits never overflow. A file with a dimension of 2^40 is refused here, before anything is allocated.
inline constexpr std::int64_t max_elements = std::int64_t{1} << 31;
/// Largest rank. Broadcasting and strides are quadratic in it at worst; ONNX networks stay below 8.
inline constexpr std::size_t max_rank = 32;

/// Throws mismatch with `what` and the shapes that do not fit.
[[noreturn]] inline void shape_mismatch(const std::string& what, std::span<const shape> shapes) {
  std::string text = what;
  for (std::size_t i = 0; i < shapes.size(); ++i) text += (i == 0 ? ": " : " and ") + to_string(shapes[i]);
  throw error(error_code::mismatch, text);
}

[[noreturn]] inline void shape_mismatch(const std::string& what, std::initializer_list<shape> shapes) {
  shape_mismatch(what, std::span<const shape>(shapes.begin(), shapes.size()));
}

/// The shape itself, once it is known to be acceptable: rank, no negative size, at most `max_elements` elements.
[[nodiscard]] inline shape checked_shape(shape sizes) {
  if (sizes.size() > max_rank) throw error(error_code::capacity, "tensor of rank " + std::to_string(sizes.size()) + " is beyond the limit of " + std::to_string(max_rank));
  std::int64_t count = 1;
  bool zero = false;
  for (const auto size : sizes) {
    if (size < 0) throw error(error_code::mismatch, "negative size in shape " + to_string(sizes));
    zero = zero || size == 0;
    if (size > max_elements) count = max_elements + 1;
    if (size > 0 && count <= max_elements) count *= size;
  }
  if (count > max_elements && !zero)
    throw error(error_code::capacity, "tensor of shape " + to_string(sizes) + " has more than 2^31 elements");
  for (const auto size : sizes)
    if (size > max_elements) throw error(error_code::capacity, "dimension " + std::to_string(size) + " is beyond the limit of 2^31");
  return sizes;
}

/// A possibly negative axis as an index into `rank` axes. With `inclusive`, `rank` itself is allowed (Flatten, Unsqueeze).
[[nodiscard]] inline std::int64_t resolve_axis(std::int64_t axis, std::size_t rank, bool inclusive = false) {
  const auto r = static_cast<std::int64_t>(rank);
  const std::int64_t resolved = axis < 0 ? axis + r : axis;
  if (resolved < 0 || resolved > r || (resolved == r && !inclusive))
    throw error(error_code::mismatch, "axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  return resolved;
}

/// NumPy broadcasting of two shapes: aligned at the last axis, sizes equal or one of them 1.
[[nodiscard]] inline shape broadcast_shape(const shape& a, const shape& b) {
  shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (left != right && left != 1 && right != 1) shape_mismatch("shapes do not broadcast", {a, b});
    result[result.size() - 1 - i] = left == 1 ? right : left;
  }
  return checked_shape(std::move(result));
}

/// Window geometry of one spatial axis: what convolutions and pools share.
struct window_axis {
  std::int64_t kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;

  /// Elements that one window spans: (kernel − 1) · dilation + 1.
  [[nodiscard]] std::int64_t span() const { return checked::add(checked::multiply(kernel - 1, dilation), std::int64_t{1}); }
  /// Number of windows over `size` elements. With `ceil_mode` a last window that reaches past the end counts, unless it would
  /// begin in the padding at the end. Errors: mismatch, where not even one window fits.
  [[nodiscard]] std::int64_t windows(std::int64_t size, bool ceil_mode = false) const {
    const std::int64_t room = checked::add(size, checked::add(pad_begin, pad_end)) - span();
    if (room < 0 && !(ceil_mode && room > -stride))
      throw error(error_code::mismatch, "window of " + std::to_string(span()) + " does not fit " + std::to_string(size) + " elements with padding " +
                                            std::to_string(pad_begin) + " and " + std::to_string(pad_end));
    if (!ceil_mode) return room / stride + 1;
    std::int64_t count = room < 0 ? 1 : checked::divide_up(room, stride) + 1;
    if (count > 1 && (count - 1) * stride >= size + pad_begin) --count;
    return count;
  }
};

/// The axis `i` of a convolution or pool. Errors: mismatch, where a value is missing or not positive.
template <class Window>
[[nodiscard]] window_axis axis_of(const Window& w, std::size_t i) {
  const window_axis axis{w.kernel.at(i), w.strides.at(i), w.dilations.at(i), w.pads_begin.at(i), w.pads_end.at(i)};
  constexpr std::int64_t limit = max_elements;
  if (axis.kernel < 1 || axis.stride < 1 || axis.dilation < 1) throw error(error_code::mismatch, "kernel, stride and dilation must be at least 1");
  if (axis.kernel > limit || axis.stride > limit || axis.dilation > limit || axis.pad_begin > limit || axis.pad_end > limit)
    throw error(error_code::capacity, "kernel, stride, dilation or padding beyond 2^31");
  if (axis.pad_begin < 0 || axis.pad_end < 0) throw error(error_code::mismatch, "padding must not be negative");
  return axis;
}
/// Throws mismatch unless every attribute has one value for each of `spatial` axes.
template <class Window>
void require_axes(const Window& w, std::size_t spatial) {
  for (const auto* values : {&w.kernel, &w.strides, &w.dilations, &w.pads_begin, &w.pads_end})
    if (values->size() != spatial) throw error(error_code::mismatch, "expected " + std::to_string(spatial) + " values for kernel, strides, dilations and pads");
}

/// How a file asks for padding.
enum class auto_pad : std::uint8_t { none, same_upper, same_lower, valid };
/// Replaces the padding of an axis: `same` gives ceil(size / stride) windows, the odd element at the end (upper) or the beginning (lower).
[[nodiscard]] inline window_axis resolve_padding(window_axis axis, std::int64_t size, auto_pad mode) {
  if (mode == auto_pad::none) return axis;
  axis.pad_begin = axis.pad_end = 0;
  if (mode == auto_pad::valid || size == 0) return axis;
  const std::int64_t total = std::max<std::int64_t>(0, checked::add(checked::multiply(checked::divide_up(size, axis.stride) - 1, axis.stride), axis.span()) - size);
  axis.pad_begin = mode == auto_pad::same_upper ? total / 2 : total - total / 2;
  axis.pad_end = total - axis.pad_begin;
  return axis;
}

/// X [N, C, s…], W [M, C/groups, k…] → [N, M, windows…].
[[nodiscard]] inline shape convolution_shape(const convolution& op, const shape& x, const shape& w) {
  if (x.size() < 3 || x.size() != w.size()) shape_mismatch("convolution needs data and weights of one rank, at least 3", {x, w});
  if (op.groups < 1 || x[1] % op.groups != 0 || w[0] % op.groups != 0 || x[1] / op.groups != w[1])
    shape_mismatch("channels do not fit weights with " + std::to_string(op.groups) + " groups", {x, w});
  require_axes(op, x.size() - 2);
  shape result{x[0], w[0]};
  for (std::size_t i = 0; i + 2 < x.size(); ++i) {
    if (op.kernel[i] != w[i + 2]) shape_mismatch("kernel_shape does not agree with the weights", {shape(op.kernel), w});
    result.push_back(axis_of(op, i).windows(x[i + 2]));
  }
  return checked_shape(std::move(result));
}
/// X [N, C, s…] → [N, C, windows…].
[[nodiscard]] inline shape pool_shape(const pool& op, const shape& x, bool ceil_mode = false) {
  if (x.size() < 3) shape_mismatch("pooling needs data of rank 3 or more", {x});
  require_axes(op, x.size() - 2);
  shape result{x[0], x[1]};
  for (std::size_t i = 0; i + 2 < x.size(); ++i) result.push_back(axis_of(op, i).windows(x[i + 2], ceil_mode));
  return checked_shape(std::move(result));
}
/// A [M, K] or [K, M], B [K, N] or [N, K], C broadcastable to [M, N] → [M, N].
[[nodiscard]] inline shape gemm_shape(const gemm& op, const shape& a, const shape& b, const shape* c = nullptr) {
  if (a.size() != 2 || b.size() != 2) shape_mismatch("Gemm needs matrices", {a, b});
  const std::int64_t m = a[op.transpose_a ? 1 : 0], k = a[op.transpose_a ? 0 : 1];
  const std::int64_t n = b[op.transpose_b ? 0 : 1];
  if (k != b[op.transpose_b ? 1 : 0]) shape_mismatch("inner sizes of Gemm differ", {a, b});
  const shape result{m, n};
  if (c != nullptr && (c->size() > 2 || broadcast_shape(*c, result) != result)) shape_mismatch("C of Gemm does not broadcast to the result", {*c, result});
  return checked_shape(result);
}
/// NumPy matmul: [b…, M, K] · [b…, K, N] → [b…, M, N]; a vector counts as a row on the left and a column on the right.
[[nodiscard]] inline shape matmul_shape(shape a, shape b) {
  if (a.empty() || b.empty()) shape_mismatch("MatMul needs rank 1 or more", {a, b});
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  const std::int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
  if (k != b[b.size() - 2]) shape_mismatch("inner sizes of MatMul differ", {a, b});
  shape result = broadcast_shape(shape(a.begin(), a.end() - 2), shape(b.begin(), b.end() - 2));
  if (!row) result.push_back(m);
  if (!column) result.push_back(n);
  return checked_shape(std::move(result));
}
/// Output axis i has the size of input axis permutation[i].
[[nodiscard]] inline shape transpose_shape(const transpose& op, const shape& x) {
  std::vector<bool> seen(x.size(), false);
  shape result;
  for (const auto axis : op.permutation) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(x.size()) || seen[static_cast<std::size_t>(axis)])
      shape_mismatch("permutation of Transpose does not fit the data", {shape(op.permutation), x});
    seen[static_cast<std::size_t>(axis)] = true;
    result.push_back(x[static_cast<std::size_t>(axis)]);
  }
  if (result.size() != x.size()) shape_mismatch("permutation of Transpose does not fit the data", {shape(op.permutation), x});
  return result;
}
/// All sizes equal but along `axis`, where they add up.
[[nodiscard]] inline shape concat_shape(const concat& op, std::span<const shape> inputs) {
  if (inputs.empty()) throw error(error_code::mismatch, "Concat needs an input");
  shape result = inputs[0];
  const auto axis = static_cast<std::size_t>(resolve_axis(op.axis, result.size()));
  for (const auto& other : inputs.subspan(1)) {
    bool fits = other.size() == result.size();
    for (std::size_t i = 0; fits && i < result.size(); ++i) fits = i == axis || other[i] == result[i];
    if (!fits) shape_mismatch("shapes do not concatenate on axis " + std::to_string(axis), inputs);
    result[axis] = checked::add(result[axis], other[axis]);
  }
  return checked_shape(std::move(result));
}
/// One begin and one end an axis, negative in constant mode only; reflect and edge need data to repeat.
[[nodiscard]] inline shape pad_shape(const pad& op, const shape& x) {
  if (op.begin.size() != x.size() || op.end.size() != x.size()) shape_mismatch("Pad needs two values an axis", {shape(op.begin), x});
  shape result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool crops = op.begin[i] < 0 || op.end[i] < 0, grows = op.begin[i] > 0 || op.end[i] > 0;
    if (crops && op.mode != pad_mode::constant) throw error(error_code::unsupported, "negative padding in a mode other than constant");
    if (op.mode != pad_mode::constant && grows && x[i] == 0) shape_mismatch("reflected or edge padding of empty data", {x});
    const std::int64_t size = checked::add(x[i], checked::add(op.begin[i], op.end[i]));
    if (size < 0) shape_mismatch("Pad crops more than there is", {x});
    result.push_back(size);
  }
  return checked_shape(std::move(result));
}
/// Target of a Reshape: 0 copies the size of the same axis (unless `allow_zero`), one −1 takes what is left.
[[nodiscard]] inline shape reshape_shape(const shape& x, std::span<const std::int64_t> target, bool allow_zero = false) {
  const shape wanted(target.begin(), target.end());
  shape result;
  std::optional<std::size_t> open;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::int64_t size = wanted[i];
    if (size == 0 && !allow_zero) {
      if (i >= x.size()) shape_mismatch("Reshape copies a size that the data does not have", {x, wanted});
      size = x[i];
    }
    if (size == -1) {
      if (open) shape_mismatch("Reshape has more than one -1", {x, wanted});
      open = i;
      size = 1;
    }
    if (size < 0) shape_mismatch("Reshape to a negative size", {x, wanted});
    known = checked::multiply(known, size);
    result.push_back(size);
  }
  const std::int64_t count = element_count(x);
  if (open) {
    if (known == 0 || count % known != 0) shape_mismatch("cannot reshape " + std::to_string(count) + " elements", {x, wanted});
    result[*open] = count / known;
  } else if (known != count) {
    shape_mismatch("cannot reshape " + std::to_string(count) + " elements to " + std::to_string(known), {x, wanted});
  }
  return checked_shape(std::move(result));
}
/// One axis of a Slice after clamping: begin, step and number of elements. `start`, `end` as in NumPy, INT64 limits included.
struct slice_axis {
  std::int64_t begin = 0, step = 1, count = 0;
};
[[nodiscard]] inline slice_axis resolve_slice(std::int64_t size, std::int64_t start, std::int64_t end, std::int64_t step) {
  if (step == 0) throw error(error_code::mismatch, "Slice with step 0");
  const auto clamp = [size](std::int64_t v, std::int64_t low, std::int64_t high) { return std::clamp(v < 0 ? v + size : v, low, high); };
  const bool forward = step > 0;
  const std::int64_t begin = forward ? clamp(start, 0, size) : clamp(start, 0, std::max<std::int64_t>(size - 1, 0));
  const std::int64_t stop = forward ? clamp(end, 0, size) : clamp(end, -1, std::max<std::int64_t>(size - 1, 0));
  slice_axis result{begin, step, 0};
  if (size == 0) return result;
  // Unsigned arithmetic: the negation of the lowest step overflows otherwise.
  const auto width = static_cast<std::uint64_t>(forward ? std::max<std::int64_t>(stop - begin, 0) : std::max<std::int64_t>(begin - stop, 0));
  const std::uint64_t stride = forward ? static_cast<std::uint64_t>(step) : ~static_cast<std::uint64_t>(step) + 1;
  result.count = static_cast<std::int64_t>(width / stride + (width % stride != 0 ? 1 : 0));
  if (result.count <= 1) result.step = forward ? 1 : -1;  // a single element: any step would do, a small one cannot overflow
  return result;
}

/// The axes [first, last) become 1. Only a sum and a product of nothing are defined.
[[nodiscard]] inline shape reduce_shape(const reduce& op, shape x) {
  if (op.first < 0 || op.last < op.first || op.last > static_cast<std::int64_t>(x.size())) shape_mismatch("axes of a reduction are out of range", {x});
  for (auto d = static_cast<std::size_t>(op.first); d < static_cast<std::size_t>(op.last); ++d) {
    if (x[d] == 0 && (op.kind == reduce_kind::mean || op.kind == reduce_kind::maximum)) shape_mismatch("mean or maximum of nothing", {x});
    x[d] = 1;
  }
  return x;
}
/// Each axis times its factor.
[[nodiscard]] inline shape upsample_shape(const upsample& op, shape x) {
  if (op.factors.size() != x.size()) shape_mismatch("enlargement needs one factor an axis", {shape(op.factors), x});
  for (std::size_t d = 0; d < x.size(); ++d) {
    if (op.factors[d] < 1) shape_mismatch("factors of an enlargement must be at least 1", {shape(op.factors), x});
    x[d] = checked::multiply(x[d], op.factors[d]);
  }
  return checked_shape(std::move(x));
}

namespace detail {
/// Least and most number of inputs of an operator.
struct arity {
  using range = std::pair<std::size_t, std::size_t>;
  range operator()(const convolution&) const { return {2, 3}; }
  range operator()(const gemm&) const { return {2, 3}; }
  range operator()(const matmul&) const { return {2, 2}; }
  range operator()(const binary&) const { return {2, 2}; }
  range operator()(const batch_normalization&) const { return {5, 5}; }
  range operator()(const concat&) const { return {1, static_cast<std::size_t>(-1)}; }
  template <class Op>
  range operator()(const Op&) const { return {1, 1}; }
};
}  // namespace detail

/// Shape of the result where operator and operands determine it; nothing for reshape and slice, whose result says it, and for
/// pools the shape without ceil_mode. `inputs` holds the inputs that are there (only trailing ones are optional).
[[nodiscard]] inline std::optional<shape> infer_shape(const operation& op, std::span<const shape> inputs) {
  const auto need = [&](std::size_t least, std::size_t most) {
    if (inputs.size() < least || inputs.size() > most)
      throw error(error_code::mismatch, name(op) + " with " + std::to_string(inputs.size()) + " inputs");
  };
  struct visitor_type {
    std::span<const shape> in;
    std::optional<shape> operator()(const convolution& o) const {
      if (in.size() == 3 && in[2] != shape{in[1].empty() ? 0 : in[1][0]}) shape_mismatch("convolution bias is not one value an output channel", in);
      return convolution_shape(o, in[0], in[1]);
    }
    std::optional<shape> operator()(const gemm& o) const { return gemm_shape(o, in[0], in[1], in.size() > 2 ? &in[2] : nullptr); }
    std::optional<shape> operator()(const matmul&) const { return matmul_shape(in[0], in[1]); }
    std::optional<shape> operator()(const binary& o) const {
      shape result = broadcast_shape(in[0], in[1]);
      if (o.kind == binary_kind::prelu && result != in[0]) shape_mismatch("slope does not broadcast to the data", in);
      return result;
    }
    std::optional<shape> operator()(const unary&) const { return in[0]; }
    std::optional<shape> operator()(const softmax& o) const {
      if (o.first < 0 || o.last < o.first || o.last > static_cast<std::int64_t>(in[0].size())) shape_mismatch("axes of Softmax are out of range", in);
      return in[0];
    }
    std::optional<shape> operator()(const pool& o) const { return pool_shape(o, in[0]); }
    std::optional<shape> operator()(const batch_normalization&) const {
      if (in[0].size() < 2) shape_mismatch("BatchNormalization needs rank 2 or more", in.first(1));
      for (const auto& s : in.subspan(1))
        if (s != shape{in[0][1]}) shape_mismatch("BatchNormalization parameters are not one value a channel", {in[0], s});
      return in[0];
    }
    std::optional<shape> operator()(const lrn& o) const {
      if (in[0].size() < 2 || o.size < 1) shape_mismatch("LRN needs rank 2 or more and a size of at least 1", in);
      return in[0];
    }
    std::optional<shape> operator()(const reshape&) const { return std::nullopt; }
    std::optional<shape> operator()(const transpose& o) const { return transpose_shape(o, in[0]); }
    std::optional<shape> operator()(const concat& o) const { return concat_shape(o, in); }
    std::optional<shape> operator()(const slice&) const { return std::nullopt; }
    std::optional<shape> operator()(const pad& o) const { return pad_shape(o, in[0]); }
    std::optional<shape> operator()(const reduce& o) const { return reduce_shape(o, in[0]); }
    std::optional<shape> operator()(const upsample& o) const { return upsample_shape(o, in[0]); }
    std::optional<shape> operator()(const channel_shuffle& o) const {
      if (in[0].size() != 4 || o.groups < 1 || in[0][1] % o.groups != 0) shape_mismatch("channel shuffle needs rank 4 and channels divisible by its groups", in);
      return in[0];
    }
  };
  const auto [least, most] = std::visit(detail::arity{}, op);
  need(least, most);
  return std::visit(visitor_type{inputs}, op);
}

/// Throws mismatch unless `result` is a shape that the operator may produce from operands of these shapes: equal to the inferred
/// one; for pools also the ceil_mode one; for reshape any of as many elements; for slice any that stays inside the operand.
inline void check_result_shape(const operation& op, std::span<const shape> inputs, const shape& result) {
  const auto inferred = infer_shape(op, inputs);
  if (inferred && *inferred == result) return;
  if (const auto* p = std::get_if<pool>(&op)) {
    bool fits = result.size() == inputs[0].size() && result[0] == inputs[0][0] && result[1] == inputs[0][1];
    for (std::size_t i = 0; fits && i + 2 < result.size(); ++i) {
      const auto axis = axis_of(*p, i);
      fits = result[i + 2] == axis.windows(inputs[0][i + 2]) || result[i + 2] == axis.windows(inputs[0][i + 2], true);
    }
    if (fits) return;
  }
  if (std::holds_alternative<reshape>(op) && element_count(inputs[0]) == element_count(result)) return;
  if (const auto* s = std::get_if<slice>(&op)) {
    bool fits = result.size() == inputs[0].size() && s->begin.size() == result.size() && s->step.size() == result.size();
    for (std::size_t i = 0; fits && i < result.size(); ++i) {
      if (result[i] == 0) continue;
      const std::int64_t last = checked::add(s->begin[i], checked::multiply(result[i] - 1, s->step[i]));
      fits = s->step[i] != 0 && s->begin[i] >= 0 && s->begin[i] < inputs[0][i] && last >= 0 && last < inputs[0][i];
    }
    if (fits) return;
  }
  std::vector<shape> all(inputs.begin(), inputs.end());
  all.push_back(result);
  shape_mismatch(name(op) + " cannot have this result (last)", all);
}

}  // namespace raptor::model
