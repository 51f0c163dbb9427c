#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "raptor/lowering/pieces.hpp"

/// Computes that copy or fill a box, from which the movements are made.
namespace raptor::lowering {

/// y[to + i] = x[from + i · step] for 0 ≤ i < count, in each axis; both dense and of the same rank. A step may be 0 or negative.
struct box_copy {
  std::uint32_t x = 0, y = 0;
  shape count, to, from, step;
};

namespace detail {

/// First dimension of the longest run that ends at the last dimension and starts no earlier than `least`: everything after its
/// first dimension is taken completely. `complete(d)`, `steps(d)`: dimension d is taken completely, is taken one by one.
template <class Complete, class Steps>
[[nodiscard]] std::size_t run_start(std::size_t rank, std::size_t least, const Complete& complete, const Steps& steps) {
  std::size_t run = rank;
  while (run > least && steps(run - 1)) {
    --run;
    if (!complete(run)) break;
  }
  return run;
}

/// Adds the compute of a box copy. Requires: count has no zero.
inline void copy_box(context& c, model::vertex v, const box_copy& b, const std::string& part = {}) {
  const shape x_sizes = c.out.values()[b.x].sizes, y_sizes = c.out.values()[b.y].sizes;
  const auto rank = b.count.size();
  const auto lanes = dense_lanes(b.count);
  const auto step = [&](std::size_t d) { return b.count[d] == 1 ? std::int64_t{1} : b.step[d]; };
  kernel_builder k(compute_name(c, v, part), leading(b.count, lanes));
  affine_box from, to;
  for (std::size_t d = 0; d < rank; ++d) {
    const affine first = d < lanes ? tile_begin(d) : affine(0), last = (d < lanes ? tile_end(d) : affine(b.count[d])) - 1;
    to.push(b.to[d] + first, b.to[d] + last + 1);
    from.push(b.from[d] + (step(d) < 0 ? last : first) * step(d), b.from[d] + (step(d) < 0 ? first : last) * step(d) + 1);
  }
  const auto x = k.reads(b.x, from.low, from.high), y = k.writes(b.y, to.low, to.high);

  const auto complete = [&](std::size_t d) { return step(d) == 1 && b.count[d] == x_sizes[d] && b.count[d] == y_sizes[d]; };
  auto run = run_start(rank, lanes, complete, [&](std::size_t d) { return step(d) == 1; });
  // Nothing contiguous: gather along the last dimension that has more than one element.
  std::size_t gathered = rank;
  if (run == rank && rank > lanes) {
    gathered = rank - 1;
    run = gathered;
  } else if (run > lanes && elements_from(b.count, run) == 1) {
    auto last = run;
    while (last > lanes && b.count[last - 1] == 1 && x_sizes[last - 1] == 1) --last;
    if (last > lanes && b.count[last - 1] > 1 && step(last - 1) != 1 && elements_from(x_sizes, last) == 1 && elements_from(y_sizes, last) == 1) gathered = run = last - 1;
  }
  bool whole_extent = gathered == rank && run == lanes && lanes > 0 && step(lanes - 1) == 1;
  for (std::size_t d = lanes; d < rank; ++d) whole_extent = whole_extent && complete(d);
  const auto inner = elements_from(b.count, run);

  auto counts = lane_counts(b.count, lanes - (whole_extent ? 1 : 0));
  if (!whole_extent)
    for (std::size_t d = lanes; d < run; ++d) counts.emplace_back(b.count[d]);
  nest(k, counts, [&](const std::vector<affine>& i) {
    std::vector<affine> source, target;
    for (std::size_t d = 0; d < rank; ++d) {
      affine at = d < lanes ? tile_begin(d) : affine(0);
      if (d < i.size()) at += i[d];
      source.push_back(b.from[d] + at * step(d));
      target.push_back(b.to[d] + at);
    }
    if (gathered != rank)
      k.gather(k.at(y, target), k.at(x, source), inner, step(gathered), static_cast<std::int32_t>(gathered));
    else
      k.copy(k.at(y, target), k.at(x, source), whole_extent ? tile_extent(lanes - 1) * inner : affine(inner));
  });
  c.add(v, k);
}

/// Adds a compute that fills the box [begin, begin + count) of a dense tensor. Requires: count has no zero.
inline void fill_box(context& c, model::vertex v, std::uint32_t result, const shape& begin, const shape& count, float element,
                     const std::string& part = {}) {
  const shape sizes = c.out.values()[result].sizes;
  const auto rank = sizes.size();
  const auto lanes = dense_lanes(count);
  kernel_builder k(compute_name(c, v, part), leading(count, lanes));
  affine_box to;
  for (std::size_t d = 0; d < rank; ++d)
    d < lanes ? to.push(begin[d] + tile_begin(d), begin[d] + tile_end(d)) : to.push(begin[d], begin[d] + count[d]);
  const auto y = k.writes(result, to.low, to.high);
  const auto run = run_start(rank, lanes, [&](std::size_t d) { return count[d] == sizes[d]; }, [](std::size_t) { return true; });
  auto counts = lane_counts(count, lanes);
  for (std::size_t d = lanes; d < run; ++d) counts.emplace_back(count[d]);
  nest(k, counts, [&](const std::vector<affine>& i) {
    auto at = to.low;
    for (std::size_t d = 0; d < i.size(); ++d) at[d] += i[d];
    k.fill(k.at(y, at), element, elements_from(count, run));
  });
  c.add(v, k);
}

/// One row a tile, W × C: copies `channels` channels of `width` pixels from one (channel, column) on to another; the source row is
/// the tile's row plus `row_offset`, and `when` says what happens where there is none.
struct row_copy {
  std::uint32_t x = 0, y = 0;  ///< accesses
  std::int64_t channels = 0, width = 0;
  std::int64_t from_channel = 0, from_column = 0, to_channel = 0, to_column = 0, row_offset = 0;
  bool all_channels = false;  ///< both tensors have no other channels: pixels are neighbours
  outside when = outside::never;
};
inline void copy_row(kernel_builder& k, const row_copy& r) {
  const auto n = tile_begin(0), h = tile_begin(1);
  k.loop(r.all_channels ? 1 : r.width, [&](const affine& w) {
    k.copy(k.at(r.y, {n, r.to_channel, h, r.to_column + w}), k.at(r.x, {n, r.from_channel, h + r.row_offset, r.from_column + w}),
           r.all_channels ? r.channels * r.width : r.channels)
        .when_outside = r.when;
  });
}

}  // namespace detail
}  // namespace raptor::lowering
