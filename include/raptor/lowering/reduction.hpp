#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "raptor/lowering/pieces.hpp"

/// Sum, mean, maximum and product over neighbouring axes of a dense tensor.
namespace raptor::lowering {

namespace detail {

/// Coordinates of element number `index` of the box of the axes [first, rank), added to `at`.
[[nodiscard]] inline std::vector<affine> offset_by(std::vector<affine> at, const shape& sizes, std::size_t first, std::int64_t index) {
  for (std::size_t d = first; d < sizes.size(); ++d) {
    const auto inner = elements_from(sizes, d + 1);
    at[d] += index / inner;
    index %= inner;
  }
  return at;
}

}  // namespace detail

/// Longest run that one vavg takes: it adds its elements one after the other, so its error grows with their number.
inline constexpr std::int64_t longest_vavg = 4096;

/// Lanes: the axes before, and the first after. Nothing after: a mean of at most longest_vavg elements is one vavg, a sum a mean times its
/// length, others a tree of vector instructions over halves. Otherwise vectors of the axes after are accumulated in the result.
/// Errors: mismatch, where the axes do not exist or nothing is reduced to a maximum or mean.
inline void lower(const model::reduce& op, model::vertex v, context& c) {
  require_floats(c, v);
  using model::reduce_kind;
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape in = input_sizes(c, v), out = output_sizes(c, v);
  const auto rank = in.size();
  if (op.first < 0 || op.last < op.first || op.last > static_cast<std::int64_t>(rank) || out.size() != rank)
    throw error(error_code::mismatch, "the axes of the reduction do not exist", place_of(c, v));
  if (is_empty_shape(out)) return add_empty(c, v, result);
  const auto first = static_cast<std::size_t>(op.first), last = static_cast<std::size_t>(op.last);
  const auto inner = elements_from(in, last);
  const auto joint = element_count(std::span(in).subspan(first, last - first));
  if (joint == 0 && (op.kind == reduce_kind::mean || op.kind == reduce_kind::maximum))
    throw error(error_code::mismatch, "a mean or maximum of nothing", place_of(c, v));

  const bool ends = last == rank;
  shape lanes = leading(in, first);
  if (!ends) lanes.push_back(in[last]);
  kernel_builder k(compute_name(c, v), lanes);
  affine_box from, to;
  for (std::size_t d = 0; d < rank; ++d) {
    const bool lane = d < first || (d == last && !ends);
    const auto dimension = d < first ? d : first;
    lane ? from.push(tile_begin(dimension), tile_end(dimension)) : from.push(0, in[d]);
    lane ? to.push(tile_begin(dimension), tile_end(dimension)) : to.push(0, out[d]);
  }
  const float neutral = op.kind == reduce_kind::product ? 1.0F : 0.0F;
  if (joint == 0) {
    const auto y = k.writes(result, to.low, to.high);
    nest(k, lane_counts(in, first), [&](const std::vector<affine>& i) {
      auto at = to.low;
      for (std::size_t d = 0; d < first; ++d) at[d] += i[d];
      k.fill(k.at(y, at), neutral, ends ? affine(1) : (in[last] == 1 ? affine(1) : tile_extent(first)) * (inner / in[last]));
    });
    c.add(v, k);
    return;
  }
  const auto x = k.reads(c.operand(n.inputs[0], layout::physical::dense), from.low, from.high);
  const auto y = k.writes(result, to.low, to.high);
  const auto code = op.kind == reduce_kind::maximum ? isa::opcode::vvmax : op.kind == reduce_kind::product ? isa::opcode::vvmul : isa::opcode::vvadd;
  const auto moved = [&](std::vector<affine> at, const std::vector<affine>& i) {
    for (std::size_t d = 0; d < first; ++d) at[d] += i[d];
    return at;
  };

  if (ends || inner == 1) {
    const bool sums = (op.kind == reduce_kind::sum || op.kind == reduce_kind::mean) && joint <= longest_vavg;
    // After a vavg that is to be a sum, or a tree that is to be a mean.
    const float factor = op.kind == reduce_kind::sum && sums ? static_cast<float>(joint) : op.kind == reduce_kind::mean && !sums ? 1.0F / static_cast<float>(joint) : 1.0F;
    const auto scale = factor != 1 ? filled(k, "factor", factor, 1) : 0;
    const auto half = !sums && joint > 2 ? k.scratch("half", (joint + 1) / 2) : 0;
    nest(k, lane_counts(in, first), [&](const std::vector<affine>& i) {
      const auto source = moved(from.low, i), target = moved(to.low, i);
      if (joint == 1) {
        k.copy(k.at(y, target), k.at(x, source), 1);
      } else if (sums) {
        k.vector(isa::opcode::vavg, k.at(y, target), k.at(x, source), joint);
      } else if (joint == 2) {
        k.vector(code, k.at(y, target), k.at(x, source), k.at(x, detail::offset_by(source, in, first, 1)), 1);
      } else {
        // [0, half) with [rest, length); the middle of an odd length stays where it is.
        const auto rest = (joint + 1) / 2;
        k.vector(code, k.in(half), k.at(x, source), k.at(x, detail::offset_by(source, in, first, rest)), joint / 2);
        if (joint % 2 != 0) k.copy(k.in(half, joint / 2), k.at(x, detail::offset_by(source, in, first, joint / 2)), 1);
        for (auto length = rest; length > 1; length = (length + 1) / 2) {
          const bool done = length == 2;
          k.vector(code, done ? k.at(y, target) : k.in(half), k.in(half), k.in(half, (length + 1) / 2), length / 2);
        }
      }
      if (factor != 1) k.vector(isa::opcode::vvmul, k.at(y, target), k.at(y, target), k.in(scale), 1);
    });
    c.add(v, k);
    return;
  }

  const auto length = (in[last] == 1 ? affine(1) : tile_extent(first)) * (inner / in[last]);
  const auto weight = op.kind == reduce_kind::mean ? filled(k, "weight", 1.0F / static_cast<float>(joint), inner) : 0;
  nest(k, lane_counts(in, first), [&](const std::vector<affine>& i) {
    const auto source = moved(from.low, i), target = moved(to.low, i);
    if (op.kind == reduce_kind::maximum) k.copy(k.at(y, target), k.at(x, source), length);
    else k.fill(k.at(y, target), neutral, length);
    std::vector<affine> joints;
    for (std::size_t d = first; d < last; ++d) joints.emplace_back(in[d]);
    nest(k, joints, [&](const std::vector<affine>& j) {
      auto at = source;
      for (std::size_t d = first; d < last; ++d) at[d] += j[d - first];
      k.vector(code, k.at(y, target), k.at(y, target), k.at(x, at), length);
    });
    if (op.kind == reduce_kind::mean) k.vector(isa::opcode::vvmul, k.at(y, target), k.at(y, target), k.in(weight), length);
  });
  c.add(v, k);
}

}  // namespace raptor::lowering
