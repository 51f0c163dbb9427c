#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "raptor/lowering/box_copy.hpp"

namespace raptor::lowering {

/// Softmax jointly over the axes [first, last), dense. Where they are the last ones, one vsoftmax a lane. Otherwise the tile is
/// turned so that the joint axes lie innermost, and turned back: lanes are the axes before them and the first after.
/// Errors: mismatch, where the axes do not exist.
inline void lower(const model::softmax& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape sizes = output_sizes(c, v);
  const auto rank = sizes.size();
  if (op.first < 0 || op.last < op.first || op.last > static_cast<std::int64_t>(rank) || input_sizes(c, v) != sizes)
    throw error(error_code::mismatch, "the axes of the softmax do not exist", place_of(c, v));
  if (is_empty_shape(sizes)) return add_empty(c, v, result);
  const auto first = static_cast<std::size_t>(op.first), last = static_cast<std::size_t>(op.last);
  if (first == last) return detail::fill_box(c, v, result, shape(rank, 0), sizes, 1.0F);  // each element alone
  const auto x_value = c.operand(n.inputs[0], layout::physical::dense);
  const auto after = elements_from(sizes, last), joint = elements_from(sizes, first) / after;

  if (after == 1) {
    kernel_builder k(compute_name(c, v), leading(sizes, first));
    const auto b = leading_box(sizes, first);
    const auto x = k.reads(x_value, b.low, b.high), y = k.writes(result, b.low, b.high);
    nest(k, lane_counts(sizes, first), [&](const std::vector<affine>& i) {
      auto at = b.low;
      for (std::size_t d = 0; d < first; ++d) at[d] += i[d];
      k.vector(isa::opcode::vsoftmax, k.at(y, at), k.at(x, at), joint);
    });
    c.add(v, k);
    return;
  }

  shape lanes = leading(sizes, first);
  lanes.push_back(sizes[last]);
  kernel_builder k(compute_name(c, v), lanes);
  affine_box b;
  for (std::size_t d = 0; d < rank; ++d)
    d < first ? b.push(tile_begin(d), tile_end(d)) : d == last ? b.push(tile_begin(first), tile_end(first)) : b.push(0, sizes[d]);
  const auto x = k.reads(x_value, b.low, b.high), y = k.writes(result, b.low, b.high);
  const auto inner = elements_from(sizes, last + 1);
  const auto extent = sizes[last] == 1 ? affine(1) : tile_extent(first);
  const auto gathered = k.scratch("gathered", joint);
  const auto turned = k.scratch("turned", extent * (inner * joint));
  nest(k, lane_counts(sizes, first), [&](const std::vector<affine>& i) {
    auto at = b.low;
    for (std::size_t d = 0; d < first; ++d) at[d] += i[d];
    std::vector<affine> others{extent};
    for (std::size_t d = last + 1; d < rank; ++d) others.emplace_back(sizes[d]);
    nest(k, others, [&](const std::vector<affine>& j) {
      auto from = at;
      affine to = 0;
      for (std::size_t d = last; d < rank; ++d) {
        from[d] += j[d - last];
        to += j[d - last] * elements_from(sizes, d + 1);
      }
      k.gather(k.in(gathered), k.at(x, from), joint, 1, static_cast<std::int32_t>(last - 1));
      k.vector(isa::opcode::vsoftmax, k.in(turned, to * joint), k.in(gathered), joint);
    });
    std::vector<affine> joints;
    for (std::size_t d = first; d < last; ++d) joints.emplace_back(sizes[d]);
    nest(k, joints, [&](const std::vector<affine>& j) {
      auto to = at;
      affine from = 0;
      for (std::size_t d = first; d < last; ++d) {
        to[d] += j[d - first];
        from = from * sizes[d] + j[d - first];
      }
      k.gather(k.at(y, to), k.in(turned, from), extent * inner, joint);
    });
  });
  c.add(v, k);
}

}  // namespace raptor::lowering
