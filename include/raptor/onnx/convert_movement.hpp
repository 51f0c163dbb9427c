#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "raptor/onnx/node_context.hpp"

/// Conversion of the operators that move elements: reshapes, transposes, joins, cuts and padding. They work on integers too,
/// where everything is constant (shape arithmetic). Source: ONNX Operators.md, Changelog.md.
namespace raptor::onnx_io::convert {

using namespace model;  // NOLINT: the operators are the vocabulary of this file

inline void identity(node_context& c) { c.result(c.add(unary{unary_kind::identity, 0, 0}, {c.input(0)})); }

/// A reshape node even where the shape stays: the result is a tensor of its own.
inline void to_shape(node_context& c, shape target) { c.result(c.add(reshape{}, {c.input(0)}, std::move(target))); }

inline void reshape_node(node_context& c) {
  c.ignore({"consumed_inputs"});
  const bool allow_zero = c.integer("allowzero", 0) != 0;
  const auto target = c.attribute_or_input("shape", 4, 1);
  c.require(target.has_value(), "shape is missing");
  to_shape(c, reshape_shape(c.sizes(0), *target, allow_zero));
}
inline void flatten(node_context& c) {
  const shape x = c.sizes(0);
  const auto axis = static_cast<std::size_t>(resolve_axis(c.integer("axis", 1), x.size(), true));
  const auto rows = element_count(std::span(x).first(axis)), columns = element_count(std::span(x).subspan(axis));
  to_shape(c, {rows, columns});
}
inline void squeeze(node_context& c) {
  const shape x = c.sizes(0);
  const auto axes = c.attribute_or_input("axes", 12, 1);
  std::vector<bool> drop(x.size(), false);
  if (!axes)
    for (std::size_t i = 0; i < x.size(); ++i) drop[i] = x[i] == 1;
  else
    for (const auto axis : *axes) {
      const auto i = static_cast<std::size_t>(resolve_axis(axis, x.size()));
      if (x[i] != 1) throw error(error_code::mismatch, "cannot squeeze axis " + std::to_string(axis) + " of " + to_string(x));
      drop[i] = true;
    }
  shape result;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!drop[i]) result.push_back(x[i]);
  to_shape(c, std::move(result));
}
inline void unsqueeze(node_context& c) {
  const shape x = c.sizes(0);
  const auto axes = c.attribute_or_input("axes", 12, 1);
  c.require(axes.has_value(), "axes are missing");
  c.require(axes->size() <= max_rank, "too many axes");
  const std::size_t rank = x.size() + axes->size();
  std::vector<bool> added(rank, false);
  for (const auto axis : *axes) {
    const auto i = static_cast<std::size_t>(resolve_axis(axis, rank));
    c.require(!added[i], "axis " + std::to_string(axis) + " is given twice");
    added[i] = true;
  }
  shape result;
  for (std::size_t i = 0, next = 0; i < rank; ++i) result.push_back(added[i] ? 1 : x[next++]);
  to_shape(c, std::move(result));
}
inline void transpose_node(node_context& c) {
  const std::size_t rank = c.sizes(0).size();
  axis_values reversed;
  for (std::size_t i = rank; i-- > 0;) reversed.push_back(static_cast<std::int64_t>(i));
  c.result(c.add(transpose{c.integers("perm").value_or(reversed)}, {c.input(0)}));
}
inline void concat_node(node_context& c) {
  std::vector<tensor_id> inputs;
  for (std::size_t i = 0; i < c.input_count(); ++i) inputs.push_back(c.input(i));
  c.require(!inputs.empty(), "no inputs");
  c.require(c.opset() < 4 || c.has_attribute("axis"), "axis is missing");
  const auto axis = resolve_axis(c.integer("axis", 1), c.sizes(0).size());
  c.result(c.add(concat{axis}, std::move(inputs)));
}

/// `count` elements from `begin` on one axis, everything on the others.
inline tensor_id cut(node_context& c, tensor_id t, std::size_t axis, std::int64_t begin, std::int64_t count, std::int64_t step = 1) {
  shape result = c.at(t).sizes;
  slice op{axis_values(result.size(), 0), axis_values(result.size(), 1)};
  op.begin[axis] = begin;
  op.step[axis] = step;
  result[axis] = count;
  return c.add(std::move(op), {t}, std::move(result));
}
/// Sizes as attribute (before opset 13) or input, or equal parts; since opset 18 the last may be smaller.
inline void split(node_context& c) {
  const shape x = c.sizes(0);
  const auto axis = static_cast<std::size_t>(resolve_axis(c.integer("axis", 0), x.size()));
  const auto parts = static_cast<std::int64_t>(c.output_count());
  auto lengths = c.attribute_or_input("split", 12, 1);
  if (!lengths && c.opset() < 2 && c.has(1)) lengths = c.constant_integers(1, "split");
  if (c.opset() >= 18 && c.has_attribute("num_outputs")) c.require(c.integer("num_outputs", 0) == parts, "num_outputs is not the number of outputs");
  if (!lengths) {
    c.require(parts > 0, "no outputs");
    const auto length = checked::divide_up(x[axis], parts);
    if (x[axis] % parts != 0 && c.opset() < 18) throw error(error_code::mismatch, "cannot split " + std::to_string(x[axis]) + " into " + std::to_string(parts) + " equal parts");
    lengths.emplace();
    for (std::int64_t i = 0, left = x[axis]; i < parts; ++i) {
      lengths->push_back(std::min(length, left));
      left -= lengths->back();
    }
  }
  std::int64_t total = 0;
  for (const auto length : *lengths) {
    c.require(length >= 0, "negative length");
    total = checked::add(total, length);
  }
  if (static_cast<std::int64_t>(lengths->size()) != parts || total != x[axis])
    throw error(error_code::mismatch, "lengths of Split add up to " + std::to_string(total) + " for " + std::to_string(parts) +
                                          " outputs, axis " + std::to_string(axis) + " has " + std::to_string(x[axis]));
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < lengths->size(); ++i) {
    if (c.wants(i)) c.result(cut(c, c.input(0), axis, begin, (*lengths)[i]), i);
    begin += (*lengths)[i];
  }
}
/// Starts, ends, axes and steps as attributes (before opset 10) or constant inputs.
inline void slice_node(node_context& c) {
  const shape x = c.sizes(0);
  const auto starts = c.attribute_or_input("starts", 9, 1), ends = c.attribute_or_input("ends", 9, 2);
  c.require(starts && ends && starts->size() == ends->size(), "starts and ends must be given, and be equally many");
  const auto axes = c.attribute_or_input("axes", 9, 3);
  std::optional<std::vector<std::int64_t>> steps;
  if (c.opset() >= 10 && c.has(4)) steps = c.constant_integers(4, "steps");
  c.require((!axes || axes->size() == starts->size()) && (!steps || steps->size() == starts->size()), "axes and steps must be as many as starts");
  slice op{axis_values(x.size(), 0), axis_values(x.size(), 1)};
  shape result = x;
  std::vector<bool> seen(x.size(), false);
  for (std::size_t k = 0; k < starts->size(); ++k) {
    const auto i = static_cast<std::size_t>(resolve_axis(axes ? (*axes)[k] : static_cast<std::int64_t>(k), x.size()));
    c.require(!seen[i], "axis " + std::to_string(i) + " is given twice");
    seen[i] = true;
    const auto part = resolve_slice(x[i], (*starts)[k], (*ends)[k], steps ? (*steps)[k] : 1);
    op.begin[i] = part.count == 0 ? 0 : part.begin;
    op.step[i] = part.step;
    result[i] = part.count;
  }
  c.result(c.add(std::move(op), {c.input(0)}, std::move(result)));
}
/// Pads as attribute (before opset 11) or constant input; axes since opset 18.
inline void pad_node(node_context& c) {
  const shape x = c.sizes(0);
  pad op;
  const std::string mode = c.text("mode", "constant");
  if (mode == "reflect") op.mode = pad_mode::reflect;
  else if (mode == "edge") op.mode = pad_mode::edge;
  else if (mode != "constant") c.unsupported("mode \"" + mode + "\"");
  auto pads = c.opset() < 2 ? c.integers("paddings") : c.attribute_or_input("pads", 10, 1);
  c.require(pads.has_value(), "pads are missing");
  axis_values axes;
  if (c.opset() >= 18 && c.has(3)) {
    axes = c.constant_integers(3, "axes");
    for (auto& axis : axes) axis = resolve_axis(axis, x.size());
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  c.require(pads->size() == 2 * axes.size(), "pads has " + std::to_string(pads->size()) + " values, needs " + std::to_string(2 * axes.size()));
  op.begin = op.end = axis_values(x.size(), 0);
  for (std::size_t k = 0; k < axes.size(); ++k) {
    op.begin[static_cast<std::size_t>(axes[k])] = (*pads)[k];
    op.end[static_cast<std::size_t>(axes[k])] = (*pads)[k + axes.size()];
  }
  if (c.opset() < 11) op.value = c.real("value", 0);
  else if (c.has(2)) op.value = c.constant_real(2, "constant_value");
  if (op.mode != pad_mode::constant) op.value = 0;
  c.result(c.add(std::move(op), {c.input(0)}));
}

/// Copies along each axis: a Concat of the tensor with itself, axis by axis.
inline void tile(node_context& c) {
  const shape x = c.sizes(0);
  c.require(c.opset() >= 6, "Tile before opset 6");
  const auto repeats = c.constant_integers(1, "repeats");
  c.require(repeats.size() == x.size(), "repeats must have one value an axis");
  auto t = c.input(0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    c.require(repeats[i] >= 0, "negative repeat");
    if (repeats[i] > 4096) c.unsupported("more than 4096 repeats");
    if (repeats[i] == 0) t = cut(c, t, i, 0, 0);
    else if (repeats[i] > 1) t = c.add(concat{static_cast<std::int64_t>(i)}, std::vector<tensor_id>(static_cast<std::size_t>(repeats[i]), t));
  }
  if (t == c.input(0)) t = c.add(unary{unary_kind::identity, 0, 0}, {t});
  c.result(t);
}
/// Broadcast to a constant shape: a product with ones.
inline void expand(node_context& c) {
  const auto target = c.constant_integers(1, "shape");
  const shape x = c.sizes(0);
  const shape result = broadcast_shape(x, checked_shape(shape(target.begin(), target.end())));
  if (result == x) return identity(c);
  const auto count = static_cast<std::size_t>(element_count(result));
  if (c.operand(0).type == element_type::f32) {
    // The ones need the new sizes only; the axes that exist broadcast.
    shape ones = result;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[x.size() - 1 - i] != 1) ones[ones.size() - 1 - i] = 1;
    const auto ones_count = static_cast<std::size_t>(element_count(ones));
    if (element_count(ones) > fold_element_limit) c.unsupported("expansion to more than 2^24 elements");
    return c.result(c.add(binary{binary_kind::multiply}, {c.input(0), c.constant_float_tensor(ones, std::vector<float>(ones_count, 1.0F))}));
  }
  if (element_count(result) > fold_element_limit) c.unsupported("expansion to more than 2^24 elements");
  c.result(c.add(binary{binary_kind::multiply}, {c.input(0), c.constant_integer_tensor(result, std::vector<std::int64_t>(count, 1))}));
}
/// Constant indices. One index, or evenly spaced ones, are a slice; others a concatenation of slices.
inline void gather(node_context& c) {
  const shape x = c.sizes(0);
  const auto axis = static_cast<std::size_t>(resolve_axis(c.integer("axis", 0), x.size()));
  const auto& indices = c.operand(1);
  if (!indices.is_constant()) c.unsupported("indices are computed at run time, they must be constant");
  c.require(indices.type == element_type::i64, "indices must be integers");
  const shape index_shape = indices.sizes;
  auto index = indices.data->integers();
  for (auto& i : index) {
    const auto original = i;
    if (i < 0) i += x[axis];
    if (i < 0 || i >= x[axis]) throw error(error_code::mismatch, "index " + std::to_string(original) + " is out of range for axis " + std::to_string(axis) + " of " + to_string(x));
  }
  const auto count = static_cast<std::int64_t>(index.size());
  const std::int64_t step = count > 1 ? index[1] - index[0] : 1;
  bool even = step != 0;
  for (std::size_t k = 1; k < index.size(); ++k) even = even && index[k] - index[k - 1] == step;
  tensor_id t;
  if (even) {
    t = cut(c, c.input(0), axis, count == 0 ? 0 : index[0], count, step);
  } else {
    if (count > 4096) c.unsupported("more than 4096 indices that are not evenly spaced");
    std::vector<tensor_id> parts;
    for (const auto i : index) parts.push_back(cut(c, c.input(0), axis, i, 1));
    t = c.add(concat{static_cast<std::int64_t>(axis)}, std::move(parts));
  }
  shape result(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  result.insert(result.end(), index_shape.begin(), index_shape.end());
  result.insert(result.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
  c.result(c.reshaped(t, std::move(result)));
}

}  // namespace raptor::onnx_io::convert
