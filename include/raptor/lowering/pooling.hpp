#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/pieces.hpp"

/// Pools. A window is reduced axis by axis: maximum and sum are separable. Along an axis of `taps` elements, whole vectors are
/// combined with themselves, shifted, by doubling: log2(taps) instructions for all windows at once.
namespace raptor::lowering {

/// Largest buffer of a pool in elements; above it the window is taken for a hostile one.
inline constexpr std::int64_t pool_buffer_elements = std::int64_t{1} << 28;

/// One spatial axis of a pool: output o and tap k meet the image at o · stride + k · dilation − begin.
struct pool_axis {
  std::int64_t in = 0, out = 0, kernel = 0, stride = 1, dilation = 1, begin = 0, end = 0;

  /// Elements that a window spans.
  [[nodiscard]] std::int64_t span() const { return checked::add(checked::multiply(kernel - 1, dilation), std::int64_t{1}); }
  /// Extent of the padded image: it holds all of the image and all windows.
  [[nodiscard]] std::int64_t padded() const {
    return std::max(checked::add(begin, in), checked::add(checked::multiply(out - 1, stride), span()));
  }
  /// Taps of window o within [−before, in + after).
  [[nodiscard]] std::int64_t taps(std::int64_t o, std::int64_t before, std::int64_t after) const {
    const auto start = checked::multiply(o, stride) - begin;
    const auto first = start >= -before ? 0 : checked::divide_up(-before - start, dilation);
    const auto last = start >= in + after ? 0 : checked::divide_up(in + after - start, dilation);
    return std::max<std::int64_t>(0, std::min(last, kernel) - first);
  }
  /// The taps that meet the image for some output alone, so that no buffer or loop is longer than image and windows ask for.
  /// Nothing, where no window meets the image.
  [[nodiscard]] std::optional<pool_axis> trimmed() const {
    const auto reach = checked::multiply(out - 1, stride);
    // Rounded so that the image still begins within the padded one.
    const auto first = begin > reach ? std::min(checked::divide_up(begin - reach, dilation), begin / dilation) : 0;
    const auto last = std::min(kernel - 1, (checked::add(in, begin) - 1) / dilation);
    if (in == 0 || last < first || last * dilation - begin + reach < 0) return std::nullopt;
    pool_axis a = *this;
    a.kernel = last - first + 1;
    a.begin = begin - first * dilation;
    return a;
  }
  /// Taps that lie in the image for every output, [begin, end).
  [[nodiscard]] interval always() const {
    const auto first = begin > 0 ? checked::divide_up(begin, dilation) : 0;
    const auto room = in - 1 + begin - (out - 1) * stride;
    return {first, room < 0 ? first : std::min(kernel, room / dilation + 1)};
  }
};

namespace detail {

/// Result of a reduction along an axis, one operation short of complete: f(a, b), or a alone.
struct pending_reduction {
  std::uint32_t a = 0, b = 0;  ///< temporaries
  std::int64_t shift = 0;      ///< of b, in elements
  bool single = true;          ///< a alone
};
/// Appends all but the last of the operations that give r[i] = f over t < taps of base[i + t · unit], for i < need.
/// `free`: two temporaries to work in, as large as base.
[[nodiscard]] inline pending_reduction reduce_taps(kernel_builder& k, isa::opcode f, std::uint32_t base, std::array<std::uint32_t, 2> free,
                                                   std::int64_t unit, std::int64_t taps, const affine& need) {
  pending_reduction r{base, base, 0, true};
  std::int64_t done = 1;
  int bit = 62;
  while (bit > 0 && ((taps >> bit) & 1) == 0) --bit;
  const auto settle = [&] {  // the operation that is pending, for what later operations still reach
    if (r.single) return;
    const auto to = r.a != r.b && r.a != base ? r.a : (r.a == free[0] ? free[1] : free[0]);
    k.vector(f, k.in(to), k.in(r.a), k.in(r.b, r.shift), need + (taps - done) * unit);
    r = {to, to, 0, true};
  };
  while (bit-- > 0) {
    settle();
    r = {r.a, r.a, done * unit, false};
    done *= 2;
    if ((taps >> bit) & 1) {
      settle();
      r = {r.a, base, done * unit, false};
      ++done;
    }
  }
  return r;
}

/// 1 / number of taps; 0 where there is none, so that the sum of nothing stays 0.
[[nodiscard]] inline float reciprocal(std::int64_t count) { return count == 0 ? 0.0F : 1.0F / static_cast<float>(count); }

/// The counts of an axis, one an output.
[[nodiscard]] inline std::vector<std::int64_t> tap_counts(const pool_axis& a, bool with_padding) {
  std::vector<std::int64_t> counts;
  for (std::int64_t o = 0; o < a.out; ++o) counts.push_back(a.taps(o, with_padding ? a.begin : 0, with_padding ? a.end : 0));
  return counts;
}
[[nodiscard]] inline bool all_equal(const std::vector<std::int64_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [&](auto x) { return x == counts.front(); });
}

struct pool_request {
  model::pool op;
  std::vector<pool_axis> all, trimmed;  ///< as given, and without taps that never meet the image
  isa::opcode f = isa::opcode::vvmax;
  float neutral = 0;
};

/// The part of an axis that gives the outputs `outs`: the image's elements that their windows meet.
struct axis_part {
  interval outs, elements;
  pool_axis axis;  ///< of these elements alone
};
[[nodiscard]] inline axis_part part_of(const pool_axis& a, interval outs) {
  const auto first = [&](std::int64_t out) { return checked::multiply(out, a.stride) - a.begin; };
  const auto start = first(outs.begin), end = checked::add(first(outs.end - 1), a.span());
  axis_part part{outs, {std::clamp<std::int64_t>(start, 0, a.in), std::clamp<std::int64_t>(end, 0, a.in)}, a};
  part.axis.in = part.elements.size(), part.axis.out = outs.size(), part.axis.begin = part.elements.begin - start;
  return part;
}

/// Rows: the rows of the window are combined as they are, outside ones left out, into one padded row; then along the row. Some columns of each row.
inline void pool_row_part(context& c, model::vertex v, std::uint32_t x_value, std::uint32_t result, const pool_request& p, const axis_part& part, const std::string& suffix) {
  const shape in = c.out.values()[x_value].sizes, out = c.out.values()[result].sizes;
  const auto channels = in[1];
  const auto &rows = p.trimmed[0], &columns = part.axis;
  const auto padded = columns.padded(), width = columns.out, first_out = part.outs.begin;
  const auto elements = checked::multiply(padded, channels);

  kernel_builder k(compute_name(c, v) + suffix, {out[0], out[2]});
  one_row_a_tile(k);
  const auto n = tile_begin(0), h = tile_begin(1);
  const auto top = h * rows.stride - rows.begin;
  const auto x = k.reads(x_value, {n, 0, top, part.elements.begin},
                         {tile_end(0), channels, (tile_end(1) - 1) * rows.stride - rows.begin + rows.span(), part.elements.end});
  auto [low, high] = row_box(out);
  low[3] = part.outs.begin, high[3] = part.outs.end;
  const auto y = k.writes(result, low, high);

  const auto t = k.scratch("row", elements, padded != columns.in);
  if (padded != columns.in) k.prologue([&] { k.fill(k.in(t), p.neutral, elements); });
  const auto middle = k.in(t, columns.begin * channels);
  const auto length = columns.in * channels;
  const auto row = [&](const affine& tap) { return k.at(x, {n, 0, top + tap * rows.dilation, part.elements.begin}); };
  const auto accumulate = [&](std::int64_t first, std::int64_t last, outside when) {
    if (first >= last) return;
    k.loop(last - first, [&](const affine& i) { k.vector(p.f, middle, row(first + i), middle, length).when_outside = when; });
  };
  const auto always = rows.always();
  if (always.empty()) {
    k.fill(middle, p.neutral, length);
    accumulate(0, rows.kernel, outside::skip);
  } else {
    const auto first = always.begin;
    if (always.size() > 1)
      k.vector(p.f, middle, row(first), row(first + 1), length);
    else
      k.copy(middle, row(first), length);
    accumulate(0, first, outside::skip);
    accumulate(first + 2, always.end, outside::never);
    accumulate(std::max(always.end, first + 1), rows.kernel, outside::skip);
  }

  // Along the row; the last operation goes to the result, for all pixels at once where they are neighbours.
  std::array<std::uint32_t, 2> free{t, t};
  if (columns.kernel > 2) free[0] = k.scratch("taps", elements);
  if (columns.kernel > 3) free[1] = k.scratch("more_taps", elements);
  const auto r = reduce_taps(k, p.f, t, free, columns.dilation * channels, columns.kernel, ((width - 1) * columns.stride + 1) * channels);
  const bool neighbours = columns.stride == 1 || width == 1;
  k.loop(neighbours ? 1 : width, [&](const affine& w) {
    const auto from = w * (columns.stride * channels);
    const auto to = k.at(y, {n, 0, h, w + first_out});
    const affine count = neighbours ? width * channels : channels;
    if (r.single)
      k.copy(to, k.in(r.a, from), count);
    else
      k.vector(p.f, to, k.in(r.a, from), k.in(r.b, r.shift + from), count);
  });
  if (p.op.kind == model::pool_kind::max) {
    c.add(v, k);
    return;
  }

  // Divide by the number of taps: those of the row times those of the column.
  const auto row_counts = tap_counts(p.all[0], p.op.count_include_pad), all_column_counts = tap_counts(p.all[1], p.op.count_include_pad);
  const std::vector<std::int64_t> column_counts(all_column_counts.begin() + part.outs.begin, all_column_counts.begin() + part.outs.end);
  const bool one_row_count = all_equal(row_counts), one_column_count = all_equal(column_counts);
  const auto pixels = std::clamp<std::int64_t>(4096 / channels, 1, width);
  const auto scale_by = [&](std::uint32_t factors) {  // a vector of `pixels` pixels, for all chunks of the row
    const auto chunk = [&](const affine& w, std::int64_t count) {
      k.vector(isa::opcode::vvmul, k.at(y, {n, 0, h, w + first_out}), k.at(y, {n, 0, h, w + first_out}), k.in(factors), count * channels);
    };
    k.loop(width / pixels, [&](const affine& i) { chunk(i * pixels, pixels); });
    if (width % pixels != 0) chunk(width / pixels * pixels, width % pixels);
  };
  if (!one_row_count) {
    std::vector<float> factors;
    for (const auto count : row_counts) factors.push_back(reciprocal(one_column_count ? checked::multiply(count, column_counts[0]) : count));
    const auto table = k.reads(c.constant(compute_name(c, v, "divisors"), {out[2]}, std::move(factors)), {tile_begin(1)}, {tile_end(1)});
    const auto vector = k.scratch("row_factor", pixels * channels);
    k.gather(k.in(vector), k.at(table, {h}), pixels * channels, 0);
    scale_by(vector);
  }
  const auto row_count = one_row_count ? row_counts[0] : 1;
  if (one_column_count) {
    const auto count = checked::multiply(row_count, column_counts[0]);
    if (one_row_count && count != 1) scale_by(filled(k, "factor", reciprocal(count), pixels * channels));
  } else {
    const auto factors = k.scratch("column_factors", width * channels, true);
    k.prologue([&] {
      for (std::size_t first = 0; first < column_counts.size();) {
        std::size_t last = first;
        while (last < column_counts.size() && column_counts[last] == column_counts[first]) ++last;
        k.fill(k.in(factors, static_cast<std::int64_t>(first) * channels), reciprocal(checked::multiply(row_count, column_counts[first])),
               static_cast<std::int64_t>(last - first) * channels);
        first = last;
      }
    });
    k.vector(isa::opcode::vvmul, k.at(y, {n, 0, h, first_out}), k.at(y, {n, 0, h, first_out}), k.in(factors), width * channels);
  }
  c.add(v, k);
}

/// Rows, in stretches where a row takes longer than a tile should.
inline void pool_rows(context& c, model::vertex v, std::uint32_t x_value, std::uint32_t result, const pool_request& p) {
  const shape in = c.out.values()[x_value].sizes, out = c.out.values()[result].sizes;
  const auto& columns = p.trimmed[1];
  // Rows of the window, doublings along the row, and a factor.
  const auto operations = p.trimmed[0].kernel - 1 + static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(columns.kernel))) + (p.op.kind == model::pool_kind::max ? 0 : 1);
  const double row = static_cast<double>(operations) * static_cast<double>(c.time(p.f, columns.padded() * in[1]));
  const auto count = std::clamp<std::int64_t>(static_cast<std::int64_t>(row / c.tile_time(out[2]) + 0.5), 1, std::max<std::int64_t>(1, out[3] / 2));
  std::vector<axis_part> parts;
  for (std::int64_t i = 0; i < count; ++i) parts.push_back(part_of(columns, {out[3] * i / count, out[3] * (i + 1) / count}));
  // Windows beyond the image: all in one.
  if (std::any_of(parts.begin(), parts.end(), [](const axis_part& part) { return part.elements.empty(); })) parts = {part_of(columns, {0, out[3]})};
  for (std::size_t i = 0; i < parts.size(); ++i) pool_row_part(c, v, x_value, result, p, parts[i], parts.size() > 1 ? "[" + std::to_string(i) + "]" : "");
}

/// Dense, any number of spatial axes: one plane (n, c) after the other is padded in a buffer, reduced along each axis with vectors
/// as long as the buffer, and the windows' results picked with the strides.
inline void pool_planes(context& c, model::vertex v, std::uint32_t x_value, std::uint32_t result, const pool_request& p) {
  const shape in = c.out.values()[x_value].sizes, out = c.out.values()[result].sizes;
  const auto axes = p.trimmed.size();
  kernel_builder k(compute_name(c, v), {out[0], out[1]});
  const auto x_box = leading_box(in, 2), y_box = leading_box(out, 2);
  const auto x = k.reads(x_value, x_box.low, x_box.high), y = k.writes(result, y_box.low, y_box.high);
  const auto planes = lane_counts({out[0], out[1]}, 2);
  const auto coordinates = [&](const std::vector<affine>& plane, const std::vector<affine>& at) {
    std::vector<affine> all{tile_begin(0) + plane[0], tile_begin(1) + plane[1]};
    all.insert(all.end(), at.begin(), at.end());
    return all;
  };
  const std::vector<affine> origin(axes);
  const auto plane_elements = elements_from(out, 2);
  const bool average = p.op.kind == model::pool_kind::average;

  bool everything = average;
  for (const auto& a : p.all) everything = everything && a.out == 1 && a.begin == 0 && a.kernel == a.in && (a.dilation == 1 || a.kernel == 1);
  if (everything) {
    nest(k, planes, [&](const std::vector<affine>& plane) {
      k.vector(isa::opcode::vavg, k.at(y, coordinates(plane, origin)), k.at(x, coordinates(plane, origin)), elements_from(in, 2));
    });
    c.add(v, k);
    return;
  }

  shape padded;
  for (const auto& a : p.trimmed) padded.push_back(a.padded());
  const auto elements = element_count(padded);
  const auto strides = row_major_strides(padded);
  const bool pads = padded != shape(in.begin() + 2, in.end());
  const auto t = k.scratch("plane", elements, pads);
  if (pads) k.prologue([&] { k.fill(k.in(t), p.neutral, elements); });
  std::vector<std::uint32_t> work;
  std::size_t reduced = 0;
  for (const auto& a : p.trimmed) reduced += a.kernel > 1 ? 1 : 0;
  for (std::size_t i = 0; i < (reduced == 0 ? 0 : reduced == 1 ? 2 : 3); ++i) work.push_back(k.scratch("taps", elements));

  // Counts that differ from window to window come as a constant tensor; a single one as a filled vector.
  std::vector<std::vector<std::int64_t>> counts;
  bool one_count = true;
  if (average)
    for (const auto& a : p.all) {
      counts.push_back(tap_counts(a, p.op.count_include_pad));
      one_count = one_count && all_equal(counts.back());
    }
  std::uint32_t factors = 0;
  const auto factor_elements = plane_elements <= 16384 ? plane_elements : out.back();
  const shape out_plane(out.begin() + 2, out.end());
  float factor = 1;
  if (average && one_count) {
    std::int64_t product = 1;
    for (const auto& axis : counts) product = checked::multiply(product, axis[0]);
    factor = reciprocal(product);
    if (factor != 1) factors = filled(k, "factor", factor, factor_elements);
  } else if (average) {
    std::vector<float> table;
    table.reserve(static_cast<std::size_t>(plane_elements));
    const auto out_strides = row_major_strides(out_plane);
    for (std::int64_t i = 0; i < plane_elements; ++i) {
      std::int64_t product = 1;
      for (std::size_t a = 0; a < axes; ++a) product = checked::multiply(product, counts[a][static_cast<std::size_t>(i / out_strides[a] % out_plane[a])]);
      table.push_back(reciprocal(product));
    }
    factors = k.reads_whole(c.constant(compute_name(c, v, "divisors"), out_plane, std::move(table)), out_plane);
  }

  nest(k, planes, [&](const std::vector<affine>& plane) {
    // Copy the image into the padded plane, in runs over the inner axes that have no padding.
    std::size_t run = axes - 1;
    while (run > 0 && padded[run] == in[run + 2]) --run;
    std::vector<affine> outer;
    for (std::size_t a = 0; a < run; ++a) outer.emplace_back(in[a + 2]);
    nest(k, outer, [&](const std::vector<affine>& i) {
      std::vector<affine> from = i;
      from.resize(axes);
      affine to = 0;
      for (std::size_t a = 0; a < axes; ++a) to += (from[a] + p.trimmed[a].begin) * strides[a];
      k.copy(k.in(t, to), k.at(x, coordinates(plane, from)), elements_from(in, run + 2));
    });

    auto base = t;
    for (std::size_t a = 0; a < axes; ++a) {
      const auto& axis = p.trimmed[a];
      if (axis.kernel == 1) continue;
      std::int64_t need = 1;
      for (std::size_t b = 0; b < axes; ++b) need += (b <= a ? (p.trimmed[b].out - 1) * p.trimmed[b].stride : padded[b] - 1) * strides[b];
      std::array<std::uint32_t, 2> free{};
      std::size_t found = 0;
      for (const auto w : work)
        if (w != base && found < 2) free[found++] = w;
      const auto r = reduce_taps(k, p.f, base, free, axis.dilation * strides[a], axis.kernel, need);
      const auto to = r.a != r.b && r.a != base ? r.a : (r.a == free[0] ? free[1] : free[0]);
      k.vector(p.f, k.in(to), k.in(r.a), k.in(r.b, r.shift), need);
      base = to;
    }

    std::vector<affine> out_rows;
    for (std::size_t a = 0; a + 1 < axes; ++a) out_rows.emplace_back(out[a + 2]);
    nest(k, out_rows, [&](const std::vector<affine>& o) {
      std::vector<affine> to = o;
      to.emplace_back(0);
      affine from = 0;
      for (std::size_t a = 0; a < axes; ++a) from += to[a] * (p.trimmed[a].stride * strides[a]);
      const auto d = k.at(y, coordinates(plane, to));
      if (p.trimmed.back().stride == 1)
        k.copy(d, k.in(base, from), out.back());
      else
        k.gather(d, k.in(base, from), out.back(), p.trimmed.back().stride);
      if (average && one_count && factor != 1 && factor_elements != plane_elements) k.vector(isa::opcode::vvmul, d, d, k.in(factors), out.back());
    });
    if (average && (!one_count || (factor != 1 && factor_elements == plane_elements))) {
      const auto d = k.at(y, coordinates(plane, origin));
      k.vector(isa::opcode::vvmul, d, d, one_count ? k.in(factors) : k.at(factors, origin), plane_elements);
    }
  });
  c.add(v, k);
}

/// A pool over the whole image, on rows: one compute combines the pixels of each row as it comes, a second one the rows.
inline void pool_image(context& c, model::vertex v, std::uint32_t x_value, std::uint32_t result, const pool_request& p) {
  const shape in = c.out.values()[x_value].sizes;
  const auto channels = in[1];
  const auto rows = c.intermediate(compute_name(c, v, "rows"), {in[0], channels, in[2], 1}, layout::physical::nhwc_row_strip);
  // d = a combined with what lies `pixels` further on, pixel by pixel; one pixel: a copy.
  const auto combine = [&](kernel_builder& k, const operand& to, std::int64_t count, const auto& at) {
    if (count == 1) k.copy(to, at(0), channels);
    else k.vector(p.f, to, at(0), at(1), channels);
    if (count > 2) k.loop(count - 2, [&](const affine& i) { k.vector(p.f, to, to, at(i + 2), channels); });
  };
  {
    kernel_builder k(compute_name(c, v, "rows"), {in[0], in[2]});
    one_row_a_tile(k);
    const auto [low, high] = row_box(in);
    auto out_high = high;
    out_high[3] = 1;
    const auto x = k.reads(x_value, low, high), y = k.writes(rows, low, out_high);
    combine(k, k.at(y, {tile_begin(0), 0, tile_begin(1), 0}), in[3], [&](const affine& w) { return k.at(x, {tile_begin(0), 0, tile_begin(1), w}); });
    c.add(v, k);
  }
  kernel_builder k(compute_name(c, v), {in[0], 1});
  one_row_a_tile(k);
  const auto n = tile_begin(0);
  const auto x = k.reads(rows, {n, 0, 0, 0}, {tile_end(0), channels, in[2], 1}), y = k.writes(result, {n, 0, 0, 0}, {tile_end(0), channels, 1, 1});
  const operand to = k.at(y, {n, 0, 0, 0});
  combine(k, to, in[2], [&](const affine& h) { return k.at(x, {n, 0, h, 0}); });
  if (p.op.kind == model::pool_kind::average) {
    const auto factor = filled(k, "reciprocal", reciprocal(in[2] * in[3]), channels);
    k.vector(isa::opcode::vvmul, to, to, k.in(factor), channels);
  }
  c.add(v, k);
}

/// A pool none of whose windows meets the image: one number everywhere. Lanes are the images, or their rows in strips.
inline void pool_nothing(context& c, model::vertex v, std::uint32_t result, float everywhere) {
  const shape sizes = c.out.values()[result].sizes;
  const bool rows = in_rows(c, v);
  kernel_builder k(compute_name(c, v), rows ? shape{sizes[0], sizes[2]} : shape{sizes[0]});
  k.current().most.assign(k.current().lanes.size(), 1);
  std::vector<affine> low(sizes.size()), high(sizes.begin(), sizes.end());
  low[0] = tile_begin(0), high[0] = tile_end(0);
  if (rows) low[2] = tile_begin(1), high[2] = tile_end(1);
  const auto y = k.writes(result, low, high);
  k.fill(k.at(y, low), everywhere, element_count(sizes) / (rows ? sizes[0] * sizes[2] : sizes[0]));
  c.add(v, k);
}

}  // namespace detail

/// Maximum and average pools over any number of spatial axes; image rows for two of them. Windows without any element of the image
/// give the lowest float (maximum) or 0 (average). An average is the sum times the reciprocal of the count: relative error below
/// 2^-22 on top of the sum's.
/// Errors: mismatch, where attributes and shapes contradict each other; capacity, where a padded row or plane is beyond
/// pool_buffer_elements.
inline void lower(const model::pool& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const shape in = input_sizes(c, v), out = output_sizes(c, v);
  const auto require = [&](bool condition, const std::string& what) {
    if (!condition) throw error(error_code::mismatch, what, place_of(c, v));
  };
  require(in.size() >= 3 && in.size() == out.size() && in[0] == out[0] && in[1] == out[1], "a pool needs spatial axes in input and output");
  const auto axes = in.size() - 2;
  for (const auto* values : {&op.kernel, &op.strides, &op.dilations, &op.pads_begin, &op.pads_end})
    require(values->size() == axes, "a pool needs one value a spatial axis");
  const auto result = c.result(n.outputs[0]);
  if (is_empty_shape(out)) return add_empty(c, v, result);

  detail::pool_request p;
  p.op = op;
  bool some_window_is_empty = false;
  std::int64_t elements = 1;
  for (std::size_t a = 0; a < axes; ++a) {
    const pool_axis axis{in[a + 2], out[a + 2], op.kernel[a], op.strides[a], op.dilations[a], op.pads_begin[a], op.pads_end[a]};
    require(axis.kernel > 0 && axis.stride > 0 && axis.dilation > 0 && axis.begin >= 0 && axis.end >= 0,
            "kernel, strides and dilations of a pool must be positive, pads not negative");
    const auto trimmed = axis.trimmed();
    if (!trimmed) return detail::pool_nothing(c, v, result, op.kind == model::pool_kind::max ? std::numeric_limits<float>::lowest() : 0.0F);
    p.all.push_back(axis);
    p.trimmed.push_back(*trimmed);
    for (std::int64_t o = 0; o < axis.out; ++o) some_window_is_empty = some_window_is_empty || axis.taps(o, 0, 0) == 0;
    elements = checked::multiply(elements, trimmed->padded());
    if (elements > pool_buffer_elements)
      throw error(error_code::capacity, "a padded plane of the pool has more than 2^28 elements", place_of(c, v));
  }
  const bool max = op.kind == model::pool_kind::max;
  p.f = max ? isa::opcode::vvmax : isa::opcode::vvadd;
  if (max) p.neutral = some_window_is_empty ? std::numeric_limits<float>::lowest() : -std::numeric_limits<float>::infinity();
  const auto covers = [](const pool_axis& a) { return a.begin == 0 && a.end == 0 && a.kernel == a.in && a.dilation == 1 && a.out == 1; };
  if (in_rows(c, v) && covers(p.all[0]) && covers(p.all[1]) && in[2] > 1) return detail::pool_image(c, v, row_operand(c, n.inputs[0]), result, p);
  if (in_rows(c, v)) return detail::pool_rows(c, v, row_operand(c, n.inputs[0]), result, p);
  detail::pool_planes(c, v, c.operand(n.inputs[0], layout::physical::dense), result, p);
}

}  // namespace raptor::lowering
