#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "raptor/lowering/box_copy.hpp"
#include "raptor/lowering/functions.hpp"

namespace raptor::lowering {

/// Softmax of a run of consecutive elements: one vsoftmax, or standard instructions: the exponentials of the differences to the maximum,
/// times the reciprocal of their sum (power_function). Maximum and sum are trees. Standard: about 35 instructions on the run, 80 on one
/// element and 2 · log2(length) on parts of the run. Error: relative, 5e-6 for results above 1e-30 (tested); smaller ones are at least about 1e-38 / length.
class softmax_run {
 public:
  /// Declares constants and temporaries for runs of `length` elements.
  softmax_run(kernel_builder& k, softmax_lowering how, std::int64_t length) : length_(length), standard_(how == softmax_lowering::standard) {
    if (!standard_) return;
    if (length == 1) {
      one_ = filled(k, "one", 1, 1);
      return;
    }
    const auto chunk = checked::divide_up(length, checked::divide_up(length, most_chunk));
    exponential_.emplace(k, chunk);
    // The sum of exponentials whose largest is 1 lies in [1, length].
    reciprocal_.emplace(k, -1, 0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(length))), 1);
    run_ = k.scratch("run", length), work_ = k.scratch("halves", length), one_ = k.scratch("single", 1);
  }
  /// Appends d = softmax(a); d may be a.
  void apply(kernel_builder& k, const operand& d, const operand& a) const {
    using isa::opcode;
    if (!standard_) {
      k.vector(opcode::vsoftmax, d, a, length_);
      return;
    }
    if (length_ == 1) {  // 1, or NaN
      k.vector(opcode::vvsub, d, a, a, 1);
      k.vector(opcode::vvadd, d, d, k.in(one_), 1);
      return;
    }
    const auto run = k.in(run_), work = k.in(work_), one = k.in(one_);
    k.copy(run, a, length_);
    halve(k, opcode::vvmax);
    k.gather(k.in(work_, 1), work, length_ - 1, 0);
    k.vector(opcode::vvsub, run, run, work, length_);
    exponential_->apply_all(k, run_, length_);
    halve(k, opcode::vvadd);
    reciprocal_->apply(k, one, work, 1);
    k.gather(work, one, length_, 0);
    k.vector(opcode::vvmul, d, run, work, length_);
  }

 private:
  /// work[0] = the run's elements combined: one half with the other; the middle of an odd length stays where it is.
  void halve(kernel_builder& k, isa::opcode f) const {
    auto from = run_;
    for (auto left = length_; left > 1; left = (left + 1) / 2, from = work_) {
      k.vector(f, k.in(work_), k.in(from), k.in(from, (left + 1) / 2), left / 2);
      if (left % 2 != 0 && from != work_) k.copy(k.in(work_, left / 2), k.in(run_, left / 2), 1);
    }
  }

  static constexpr std::int64_t most_chunk = 512;
  std::int64_t length_;
  bool standard_;
  std::optional<falling_exponential> exponential_;
  std::optional<power_function> reciprocal_;
  std::uint32_t run_ = 0, work_ = 0, one_ = 0;
};

/// Softmax jointly over the axes [first, last), dense. Where they are the last ones, one softmax_run a lane. Otherwise the tile is
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
    const softmax_run run(k, c.options.softmax, joint);
    nest(k, lane_counts(sizes, first), [&](const std::vector<affine>& i) {
      auto at = b.low;
      for (std::size_t d = 0; d < first; ++d) at[d] += i[d];
      run.apply(k, k.at(y, at), k.at(x, at));
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
  const softmax_run run(k, c.options.softmax, joint);
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
      run.apply(k, k.in(turned, to * joint), k.in(gathered));
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
