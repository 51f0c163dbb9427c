#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/box_copy.hpp"

/// Operators that move elements without arithmetic. Dense tensors: boxes copied with an offset and a step an axis; image rows: one row
/// a tile.
namespace raptor::lowering {

/// Most boxes that one operator is taken apart into (reflected padding of many periods has one a period).
inline constexpr std::int64_t most_boxes = 1024;

/// Reshape: a flat copy. Lanes are the leading dimensions that both shapes share, and the greatest common divisor of the first two that
/// differ, so that a tile is a box in both.
inline void lower(const model::reshape&, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape a = input_sizes(c, v), b = output_sizes(c, v);
  if (is_empty_shape(b)) return add_empty(c, v, result);
  struct lane {
    std::size_t in, out;              ///< dimensions
    std::int64_t in_step, out_step;   ///< what one lane is there
  };
  std::vector<lane> all;
  shape sizes;  // of the lanes, and the rest
  std::size_t i = 0, j = 0;
  std::int64_t rest = element_count(b);
  for (bool more = true; more;) {
    while (i < a.size() && a[i] == 1) ++i;
    while (j < b.size() && b[j] == 1) ++j;
    if (i == a.size() || j == b.size()) break;
    const auto common = std::gcd(a[i], b[j]);
    more = a[i] == b[j];
    if (common == 1) break;
    all.push_back({i, j, a[i] / common, b[j] / common});
    sizes.push_back(common);
    rest /= common;
    ++i, ++j;
  }
  sizes.push_back(rest);
  const auto lanes = std::min(all.size(), dense_lanes(sizes));

  kernel_builder k(compute_name(c, v), leading(sizes, lanes));
  auto from = leading_box(a, 0), to = leading_box(b, 0);
  for (std::size_t d = 0; d < lanes; ++d) {
    from.low[all[d].in] = tile_begin(d) * all[d].in_step, from.high[all[d].in] = tile_end(d) * all[d].in_step;
    to.low[all[d].out] = tile_begin(d) * all[d].out_step, to.high[all[d].out] = tile_end(d) * all[d].out_step;
  }
  const auto x = k.reads(c.operand(n.inputs[0], layout::physical::dense), from.low, from.high);
  const auto y = k.writes(result, to.low, to.high);
  const auto inner = elements_from(sizes, lanes);
  nest(k, lane_counts(sizes, lanes == 0 ? 0 : lanes - 1), [&](const std::vector<affine>& at) {
    auto source = from.low, target = to.low;
    for (std::size_t d = 0; d < at.size(); ++d) {
      source[all[d].in] += at[d] * all[d].in_step;
      target[all[d].out] += at[d] * all[d].out_step;
    }
    k.copy(k.at(y, target), k.at(x, source), lanes == 0 ? affine(inner) : tile_extent(lanes - 1) * inner);
  });
  c.add(v, k);
}

/// Transpose of any rank: a run is the longest group of inner output axes that lie one after the other in the input, gathered with the
/// distance of the last of them, or copied where that is 1.
/// Errors: mismatch, where the permutation is none of the input's axes.
inline void lower(const model::transpose& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape in = input_sizes(c, v), sizes = output_sizes(c, v);
  const auto rank = sizes.size();
  std::vector<std::size_t> permutation;
  std::vector<bool> seen(rank);
  bool fits = op.permutation.size() == rank && in.size() == rank;
  for (std::size_t d = 0; fits && d < rank; ++d) {
    const auto axis = op.permutation[d];
    fits = axis >= 0 && axis < static_cast<std::int64_t>(rank) && !seen[static_cast<std::size_t>(axis)] && in[static_cast<std::size_t>(axis)] == sizes[d];
    if (!fits) break;
    permutation.push_back(static_cast<std::size_t>(axis));
    seen[static_cast<std::size_t>(axis)] = true;
  }
  if (!fits) throw error(error_code::mismatch, "the permutation does not fit the shapes", place_of(c, v));
  if (is_empty_shape(sizes)) return add_empty(c, v, result);

  const auto lanes = dense_lanes(sizes);
  // The run: output axes [run, rank), which end at input axis `last`. Axes of size 1 belong anywhere.
  std::size_t run = rank, first = rank, last = rank;
  while (run > lanes) {
    const auto axis = permutation[run - 1];
    if (sizes[run - 1] != 1) {
      bool neighbour = first == rank;
      if (!neighbour && axis < first) {
        neighbour = true;
        for (auto d = axis + 1; d < first; ++d) neighbour = neighbour && in[d] == 1;
      }
      if (!neighbour) break;
      first = axis;
      if (last == rank) last = axis;
    }
    --run;
  }
  const bool contiguous = last == rank || elements_from(in, last + 1) == 1;

  kernel_builder k(compute_name(c, v), leading(sizes, lanes));
  const auto to = leading_box(sizes, lanes);
  affine_box from;
  from.low.resize(rank), from.high.resize(rank);
  for (std::size_t d = 0; d < rank; ++d) from.low[permutation[d]] = to.low[d], from.high[permutation[d]] = to.high[d];
  const auto x = k.reads(c.operand(n.inputs[0], layout::physical::dense), from.low, from.high);
  const auto y = k.writes(result, to.low, to.high);
  auto counts = lane_counts(sizes, lanes);
  for (std::size_t d = lanes; d < run; ++d) counts.emplace_back(sizes[d]);
  nest(k, counts, [&](const std::vector<affine>& i) {
    auto target = to.low, source = from.low;
    for (std::size_t d = 0; d < i.size(); ++d) target[d] += i[d], source[permutation[d]] += i[d];
    const auto length = elements_from(sizes, run);
    if (contiguous)
      k.copy(k.at(y, target), k.at(x, source), length);
    else
      k.gather(k.at(y, target), k.at(x, source), length, 1, static_cast<std::int32_t>(last));
  });
  c.add(v, k);
}

/// Concat. Dense: one compute an input. Image rows, along channels: one compute that assembles whole rows.
inline void lower(const model::concat& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape sizes = output_sizes(c, v);
  const auto axis = static_cast<std::size_t>(op.axis);
  if (op.axis < 0 || axis >= sizes.size()) throw error(error_code::mismatch, "the axis of the concatenation does not exist", place_of(c, v));
  if (is_empty_shape(sizes)) return add_empty(c, v, result);
  if (in_rows(c, v)) {
    ensure(axis == 1, "rows are concatenated along channels", place_of(c, v));
    kernel_builder k(compute_name(c, v), {sizes[0], sizes[2]});
    one_row_a_tile(k);
    std::vector<std::uint32_t> inputs;
    for (const auto t : n.inputs) {
      const shape own = c.model.at(t).sizes;
      if (own[1] == 0) continue;
      const auto [low, high] = row_box(own);
      inputs.push_back(k.reads(row_operand(c, t), low, high));
    }
    const auto [low, high] = row_box(sizes);
    const auto y = k.writes(result, low, high);
    std::int64_t channel = 0;
    std::size_t i = 0;
    for (const auto t : n.inputs) {
      const auto channels = c.model.at(t).sizes[1];
      if (channels == 0) continue;
      detail::row_copy r{inputs[i++], y, channels, sizes[3]};
      r.to_channel = channel;
      r.all_channels = channels == sizes[1];
      detail::copy_row(k, r);
      channel += channels;
    }
    c.add(v, k);
    return;
  }
  shape to(sizes.size(), 0);
  const bool parts = n.inputs.size() > 1;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const shape own = input_sizes(c, v, i);
    if (!is_empty_shape(own))
      detail::copy_box(c, v, {c.operand(n.inputs[i], layout::physical::dense), result, own, to, shape(sizes.size(), 0), shape(sizes.size(), 1)},
                       parts ? std::to_string(i) : "");
    to[axis] += own[axis];
  }
}

/// Slice: any begin and step. Image rows: steps of 1.
/// Errors: mismatch, where the slice leaves the input.
inline void lower(const model::slice& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape in = input_sizes(c, v), out = output_sizes(c, v);
  const auto rank = out.size();
  bool fits = op.begin.size() == rank && op.step.size() == rank && in.size() == rank;
  for (std::size_t d = 0; fits && d < rank; ++d) {
    if (out[d] == 0) continue;
    const auto last = checked::add(op.begin[d], checked::multiply(out[d] - 1, op.step[d]));
    fits = op.begin[d] >= 0 && op.begin[d] < in[d] && last >= 0 && last < in[d];
  }
  if (!fits) throw error(error_code::mismatch, "the slice leaves its input", place_of(c, v));
  if (is_empty_shape(out)) return add_empty(c, v, result);
  if (!in_rows(c, v)) return detail::copy_box(c, v, {c.operand(n.inputs[0], layout::physical::dense), result, out, shape(rank, 0), op.begin, op.step});
  for (std::size_t d = 0; d < rank; ++d) ensure(op.step[d] == 1 || out[d] == 1, "rows are sliced one by one", place_of(c, v));

  kernel_builder k(compute_name(c, v), {out[0], out[2]});
  one_row_a_tile(k);
  // The source box and the lanes differ by the slice's beginning; images that differ move whole tensors.
  const auto first = op.begin[0];
  const bool all = out[1] == in[1];
  const auto x = k.reads(row_operand(c, n.inputs[0]), {tile_begin(0) + first, op.begin[1], tile_begin(1) + op.begin[2], all ? 0 : op.begin[3]},
                         {tile_end(0) + first, op.begin[1] + out[1], tile_end(1) + op.begin[2], all ? in[3] : op.begin[3] + out[3]});
  const auto [low, high] = row_box(out);
  const auto y = k.writes(result, low, high);
  const auto image = tile_begin(0), h = tile_begin(1);
  k.loop(all ? 1 : out[3], [&](const affine& w) {
    k.copy(k.at(y, {image, 0, h, w}), k.at(x, {image + first, op.begin[1], h + op.begin[2], op.begin[3] + w}), all ? out[1] * out[3] : out[1]);
  });
  c.add(v, k);
}

namespace detail {

/// A part of an axis of a padded tensor: output [to, to + count) is input from, from + step, …
struct pad_segment {
  std::int64_t to = 0, count = 0, from = 0, step = 1;
};
/// The parts of an axis where every element comes from the input (reflect, edge). Errors: unsupported beyond `most_boxes`.
[[nodiscard]] inline std::vector<pad_segment> pad_segments(model::pad_mode mode, std::int64_t in, std::int64_t begin, std::int64_t out,
                                                           const std::string& place) {
  std::vector<pad_segment> parts;
  for (std::int64_t o = 0; o < out;) {
    const auto i = o - begin;
    pad_segment s{o, 0, 0, 1};
    if (i >= 0 && i < in) {
      s.from = i, s.count = in - i;
    } else if (mode == model::pad_mode::edge || in == 1) {
      s.from = i < 0 ? 0 : in - 1, s.step = 0, s.count = i < 0 ? -i : out - o;
    } else {  // back and forth, with a period of 2 · (in − 1); the turning points belong to the part that they begin
      const auto period = 2 * (in - 1);
      const auto at = (i % period + period) % period;
      s.from = at < in - 1 ? at : period - at;
      s.step = at < in - 1 ? 1 : -1;
      s.count = at < in - 1 ? in - 1 - at : period - at;
      if (i < 0) s.count = std::min(s.count, -i);
    }
    s.count = std::min(s.count, out - o);
    o += s.count;
    parts.push_back(s);
    if (static_cast<std::int64_t>(parts.size()) > most_boxes)
      throw error(error_code::unsupported, "padding that repeats its input more than " + std::to_string(most_boxes) + " times", place);
  }
  return parts;
}

}  // namespace detail

/// Pad in all modes, crops included. Dense: the input is copied and the rest filled (constant), or the result is the product of
/// the axes' parts that run forwards, backwards or stand still (reflect, edge). Image rows: constant mode, no padding of the batch.
/// Errors: mismatch; unsupported, where reflection or repetition takes more than most_boxes parts.
inline void lower(const model::pad& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape in = input_sizes(c, v), out = output_sizes(c, v);
  const auto rank = out.size();
  bool fits = op.begin.size() == rank && op.end.size() == rank && in.size() == rank;
  for (std::size_t d = 0; fits && d < rank; ++d) fits = out[d] == checked::add(checked::add(in[d], op.begin[d]), op.end[d]);
  if (!fits) throw error(error_code::mismatch, "the padding does not fit the shapes", place_of(c, v));
  if (is_empty_shape(out)) return add_empty(c, v, result);

  // What remains of the input, in coordinates of the result.
  box kept;
  for (std::size_t d = 0; d < rank; ++d) kept.push_back(intersect(interval{op.begin[d], op.begin[d] + in[d]}, interval{0, out[d]}));
  if (in_rows(c, v)) {
    ensure(op.mode == model::pad_mode::constant && op.begin[0] == 0 && op.end[0] == 0, "rows are padded with constants within images", place_of(c, v));
    kernel_builder k(compute_name(c, v), {out[0], out[2]});
    one_row_a_tile(k);
    const auto [low, high] = row_box(out);
    const bool nothing = is_empty(kept);
    std::uint32_t x = 0;
    if (!nothing)
      x = k.reads(row_operand(c, n.inputs[0]), {tile_begin(0), 0, tile_begin(1) - op.begin[2], 0}, {tile_end(0), in[1], tile_end(1) - op.begin[2], in[3]});
    const auto y = k.writes(result, low, high);
    if (kept != whole(out)) k.fill(k.at(y, {tile_begin(0), 0, tile_begin(1), 0}), op.value, out[1] * out[3]);
    if (!nothing) {
      detail::row_copy r{x, y, kept[1].size(), kept[3].size()};
      r.from_channel = kept[1].begin - op.begin[1], r.from_column = kept[3].begin - op.begin[3];
      r.to_channel = kept[1].begin, r.to_column = kept[3].begin, r.row_offset = -op.begin[2];
      r.all_channels = in[1] == out[1] && kept[1].size() == out[1];
      r.when = kept[2].size() == out[2] ? outside::never : outside::skip;
      detail::copy_row(k, r);
    }
    c.add(v, k);
    return;
  }
  const auto x = c.operand(n.inputs[0], layout::physical::dense);
  const auto parts_of = [&](std::size_t d) { return detail::pad_segments(op.mode, in[d], op.begin[d], out[d], place_of(c, v)); };
  if (op.mode == model::pad_mode::constant) {
    if (!is_empty(kept)) {
      shape to, from;
      for (std::size_t d = 0; d < rank; ++d) to.push_back(kept[d].begin), from.push_back(kept[d].begin - op.begin[d]);
      detail::copy_box(c, v, {x, result, extents(kept), to, from, shape(rank, 1)});
    }
    std::size_t number = 0;
    for (const auto& part : subtract(whole(out), kept)) {
      shape begin;
      for (const auto& side : part) begin.push_back(side.begin);
      detail::fill_box(c, v, result, begin, extents(part), op.value, "fill" + std::to_string(number++));
    }
    return;
  }
  std::vector<std::vector<detail::pad_segment>> axes;
  std::int64_t boxes = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    if (in[d] == 0) throw error(error_code::mismatch, "an empty axis cannot be reflected or repeated", place_of(c, v));
    axes.push_back(parts_of(d));
    boxes = checked::multiply(boxes, static_cast<std::int64_t>(axes.back().size()));
    if (boxes > most_boxes)
      throw error(error_code::unsupported, "padding that is made of more than " + std::to_string(most_boxes) + " parts", place_of(c, v));
  }
  for (std::int64_t number = 0; number < boxes; ++number) {
    box_copy b{x, result, {}, {}, {}, {}};
    auto rest = number;
    for (const auto& axis : axes) {
      const auto& s = axis[static_cast<std::size_t>(rest) % axis.size()];
      rest /= static_cast<std::int64_t>(axis.size());
      b.count.push_back(s.count), b.to.push_back(s.to), b.from.push_back(s.from), b.step.push_back(s.step);
    }
    detail::copy_box(c, v, b, boxes == 1 ? "" : std::to_string(number));
  }
}

/// Channel shuffle: output channel j · groups + g is input channel g · (C / groups) + j. Dense: one copy a channel. Image rows: a gather
/// for each j and pixel, or, where that is less, the row turned to C × W and back, with the channels exchanged on the way.
/// Errors: mismatch.
inline void lower(const model::channel_shuffle& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape sizes = output_sizes(c, v);
  if (sizes.size() != 4 || input_sizes(c, v) != sizes || op.groups < 1 || sizes[1] % op.groups != 0)
    throw error(error_code::mismatch, "a channel shuffle needs rank 4 and channels that its groups divide", place_of(c, v));
  if (is_empty_shape(sizes)) return add_empty(c, v, result);
  const auto channels = sizes[1], width = sizes[3], each = channels / op.groups;
  kernel_builder k(compute_name(c, v), {sizes[0], sizes[2]});
  const auto [low, high] = row_box(sizes);
  const bool rows = in_rows(c, v);
  const auto x = k.reads(rows ? row_operand(c, n.inputs[0]) : c.operand(n.inputs[0], layout::physical::dense), low, high);
  const auto y = k.writes(result, low, high);
  const auto h = tile_begin(1);
  // For each output channel, in order.
  const auto each_channel = [&](const auto& body) {
    nest(k, {each, op.groups}, [&](const std::vector<affine>& i) { body(i[0] * op.groups + i[1], i[1] * each + i[0]); });
  };
  if (!rows) {
    k.loop(sizes[0] == 1 ? affine(1) : tile_extent(0), [&](const affine& i) {
      const auto image = tile_begin(0) + i;
      each_channel([&](const affine& out, const affine& in) { k.copy(k.at(y, {image, out, h, 0}), k.at(x, {image, in, h, 0}), tile_extent(1) * width); });
    });
  } else {
    one_row_a_tile(k);
    const auto image = tile_begin(0);
    if (width * each <= channels + width) {
      nest(k, {width, each}, [&](const std::vector<affine>& i) {
        k.gather(k.at(y, {image, i[1] * op.groups, h, i[0]}), k.at(x, {image, i[1], h, i[0]}), op.groups, each);
      });
    } else {
      const auto turned = k.scratch("turned", channels * width);
      each_channel([&](const affine& out, const affine& in) { k.gather(k.in(turned, out * width), k.at(x, {image, in, h, 0}), width, 1, 3); });
      k.loop(width, [&](const affine& w) { k.gather(k.at(y, {image, 0, h, w}), k.in(turned, w), channels, width); });
    }
  }
  c.add(v, k);
}

}  // namespace raptor::lowering
