#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/convolution.hpp"

/// Convolutions with the kernel in the columns: the rows of a crossbar are the channels of a run of input pixels, its columns the outputs
/// that the run reaches (kernel row × output column × channel). One product an input run and slice of channels; no patch is gathered.
///
/// Two computes a part of the output channels and a phase of the rows (input row modulo the stride): `scatter` makes, for one input
/// row, one partial output row for each kernel row; `sum` adds the partial rows of an output row and the bias. A kernel of one row
/// needs no sum. Source: LOWERING, "kernel-in-columns".
namespace raptor::lowering {

/// Input pixels of one product, relative to the beginning of a period of the row, and the outputs that they reach.
struct column_run {
  std::int64_t first = 0, pixels = 0;
  std::int64_t out_first = 0, outs = 0;  ///< output columns, relative to the period's; outs = 0: none
};

/// How a row is cut into runs: the same runs in every period of `period` input pixels.
struct column_runs {
  std::int64_t period = 1;
  std::vector<column_run> runs;
};

/// Runs of `pixels` pixels; fewer than the stride: as many runs as a period of one stride takes.
[[nodiscard]] inline column_runs make_column_runs(const convolution_shape& s, std::int64_t pixels) {
  column_runs result;
  if (pixels >= s.stride_w) pixels -= pixels % s.stride_w;
  result.period = std::max(pixels, s.stride_w);
  for (std::int64_t first = 0; first < result.period; first += pixels) {
    column_run run{first, std::min(pixels, result.period - first), 0, 0};
    std::optional<interval> reached;
    for (std::int64_t p = 0; p < run.pixels; ++p)
      for (std::int64_t q = 0; q < s.kernel_w; ++q) {
        const std::int64_t at = first + p + s.pad_left - q * s.dilation_w;
        if (checked::floor_modulo(at, s.stride_w) != 0) continue;
        const std::int64_t out = checked::floor_divide(at, s.stride_w);
        if (!reached) reached = interval{out, out + 1};
        reached = interval{std::min(reached->begin, out), std::max(reached->end, out + 1)};
      }
    if (reached) run.out_first = reached->begin, run.outs = reached->size();
    result.runs.push_back(run);
  }
  return result;
}

/// Kernel rows that input rows of one phase meet.
[[nodiscard]] inline std::vector<std::int64_t> taps_of_phase(const convolution_shape& s, std::int64_t phase) {
  std::vector<std::int64_t> taps;
  for (std::int64_t r = 0; r < s.kernel_h; ++r)
    if (checked::floor_modulo(r * s.dilation_h - s.pad_top - phase, s.stride_h) == 0) taps.push_back(r);
  return taps;
}

/// Channels that one pair of computes turns into one another: whole groups, or some outputs of one group.
struct column_part {
  channel_block block;
  interval outputs;  ///< of the block, in matrix columns of one tap and output column

  [[nodiscard]] std::int64_t inputs(const convolution_shape& s) const { return block.groups * s.group_inputs(); }
};

/// The choice that lowering and cost share: parts and runs. Empty parts: it does not fit (`why`).
struct column_plan {
  std::vector<column_part> parts;
  column_runs runs;
  std::string why;
};

namespace detail {

[[nodiscard]] inline std::int64_t column_crossbars(const convolution_shape& s, const program::geometry& chip, const column_runs& runs, std::int64_t taps,
                                                   std::int64_t inputs, std::int64_t outputs) {
  std::int64_t sum = 0;
  for (const auto& run : runs.runs)
    if (run.outs > 0)
      sum += checked::divide_up(run.pixels * inputs, chip.crossbar_rows) * checked::divide_up(checked::multiply(taps * run.outs, outputs), chip.weight_columns);
  static_cast<void>(s);
  return sum;
}

/// Products and additions of one input row of a part, in picoseconds.
[[nodiscard]] inline double scatter_row_cost(const convolution_shape& s, const context& c, const column_runs& runs, std::int64_t taps, std::int64_t inputs,
                                             std::int64_t outputs) {
  double sum = 0;
  for (const auto& run : runs.runs) {
    if (run.outs == 0) continue;
    const auto slices = checked::divide_up(run.pixels * inputs, c.chip.crossbar_rows);
    const bool in_place = run.pixels * inputs % c.chip.crossbar_rows == 0;
    sum += static_cast<double>(slices) * static_cast<double>(c.time(isa::opcode::mvmul, taps * run.outs * outputs)) +
           static_cast<double>(slices - 1) * static_cast<double>(c.time(isa::opcode::vvadd, taps * run.outs * outputs)) +
           static_cast<double>(taps) * static_cast<double>(c.time(isa::opcode::vvadd, run.outs * outputs)) +
           (in_place ? 0.0 : static_cast<double>(c.time(isa::opcode::lmv, run.pixels * inputs)));
  }
  return sum * static_cast<double>(checked::divide_up(s.width, runs.period)) + static_cast<double>(taps) * static_cast<double>(c.time(isa::opcode::lldi, s.out_width * outputs));
}

/// Most kernel rows of a phase.
[[nodiscard]] inline std::int64_t most_taps(const convolution_shape& s) {
  std::size_t most = 0;
  for (std::int64_t phase = 0; phase < s.stride_h; ++phase) most = std::max(most, taps_of_phase(s, phase).size());
  return static_cast<std::int64_t>(most);
}

}  // namespace detail

[[nodiscard]] inline column_plan plan_columns(const convolution_shape& s, const program::geometry& chip, const context* c = nullptr) {
  column_plan plan;
  const std::int64_t capacity = chip.crossbars_per_core, taps = detail::most_taps(s);
  // Groups that share the rows of a crossbar.
  std::int64_t together = std::clamp<std::int64_t>(chip.crossbar_rows / s.group_inputs(), 1, s.groups);
  const auto single = make_column_runs(s, 1);
  const auto fits = [&](const column_runs& runs, std::int64_t inputs, std::int64_t outputs) {
    return detail::column_crossbars(s, chip, runs, taps, inputs, outputs) <= capacity;
  };
  while (together > 1 && !fits(single, together * s.group_inputs(), together * s.c())) --together;
  std::int64_t pieces = 1;
  const auto piece = [&] { return checked::divide_up(together * s.c(), pieces); };
  while (pieces < s.c() && !fits(single, together * s.group_inputs(), piece())) ++pieces;
  if (!fits(single, together * s.group_inputs(), piece())) {
    plan.why = "one output channel needs " + std::to_string(detail::column_crossbars(s, chip, single, taps, together * s.group_inputs(), 1)) +
               " crossbars, a core has " + std::to_string(capacity);
    return plan;
  }
  // More pixels in a product where their channels leave rows free; neighbouring pixels lie together where a part takes all channels.
  plan.runs = single;
  if (together == s.groups && pieces == 1) {
    double best = c ? detail::scatter_row_cost(s, *c, single, taps, s.channels, s.out_channels) : 0;
    for (std::int64_t pixels = 2; pixels <= std::min(s.width, chip.crossbar_rows / s.channels); ++pixels) {
      const auto runs = make_column_runs(s, pixels);
      if (!fits(runs, s.channels, s.out_channels)) break;
      const double cost = c ? detail::scatter_row_cost(s, *c, runs, taps, s.channels, s.out_channels) : 0;
      if (cost > best) continue;
      best = cost, plan.runs = runs;
    }
  }
  for (std::int64_t g = 0; g < s.groups; g += together) {
    const channel_block block{g, std::min(together, s.groups - g)};
    const std::int64_t outputs = block.groups * s.c();
    const std::int64_t size = pieces == 1 ? outputs : piece();
    for (std::int64_t m = 0; m < outputs; m += size) plan.parts.push_back({block, {m, std::min(outputs, m + size)}});
  }
  return plan;
}

namespace detail {

/// The matrix of a run: row (pixel, channel), column (kernel row, output column, output channel).
[[nodiscard]] inline logical_matrix column_matrix(const convolution_shape& s, const column_part& part, const column_run& run, const std::vector<std::int64_t>& taps,
                                                  const model::constant_ptr& weights) {
  const std::int64_t inputs = s.group_inputs(), outputs = part.outputs.size(), all_taps = s.taps();
  logical_matrix m{run.pixels * part.inputs(s), static_cast<std::int64_t>(taps.size()) * run.outs * outputs, {weights}, {}};
  for (std::int64_t p = 0; p < run.pixels; ++p)
    for (std::int64_t q = 0; q < s.kernel_w; ++q) {
      const std::int64_t at = run.first + p + s.pad_left - q * s.dilation_w;
      if (checked::floor_modulo(at, s.stride_w) != 0) continue;
      const std::int64_t out = checked::floor_divide(at, s.stride_w) - run.out_first;
      for (std::size_t t = 0; t < taps.size(); ++t)
        for (std::int64_t g = 0; g < part.block.groups; ++g) {
          const interval own = intersect(part.outputs, {g * s.c(), (g + 1) * s.c()});
          if (own.empty()) continue;
          const std::int64_t first_output = (part.block.first_group + g) * s.c() + (own.begin - g * s.c());
          m.blocks.push_back({0, (p * part.block.groups + g) * inputs, (static_cast<std::int64_t>(t) * run.outs + out) * outputs + (own.begin - part.outputs.begin),
                              inputs, own.size(), first_output * inputs * all_taps + taps[t] * s.kernel_w + q, all_taps, inputs * all_taps});
        }
    }
  return m;
}

/// The name of a part's computes.
[[nodiscard]] inline std::string part_name(const std::string& node, std::size_t part, std::size_t parts) {
  return parts > 1 ? node + "." + std::to_string(part) : node;
}

/// A row of `width` pixels that repeats one value a channel, made once a core.
[[nodiscard]] inline std::uint32_t repeated_row(context& c, kernel_builder& k, const std::string& name, const model::constant_ptr& values, interval channels,
                                                std::int64_t width) {
  const auto count = channels.size();
  std::vector<float> own(values->floats().begin() + channels.begin, values->floats().begin() + channels.end);
  const auto value = c.constant(name, {count}, std::move(own));
  const auto access = k.reads(value, {0}, {count});
  const auto row = k.scratch("bias", width * count, true);
  k.prologue([&] {
    k.copy(k.in(row), k.at(access, {0}), count);
    for (std::int64_t have = 1; have < width;) {
      const std::int64_t more = std::min(have, width - have);
      k.copy(k.in(row, have * count), k.in(row), more * count);
      have += more;
    }
  });
  return row;
}

}  // namespace detail

/// Lowers a convolution with the kernel in the columns. Requires: plan_columns has parts. Lanes: (n, input row of a phase) and (n, output row).
inline void lower_columns(context& c, model::vertex v, const std::string& strategy) {
  const auto& node = c.model.at(v);
  const convolution_shape s = shape_of(c.model, v);
  const auto plan = plan_columns(s, c.chip, &c);
  const auto weights = c.model.at(node.inputs[1]).data;
  const model::constant_ptr bias = node.inputs.size() > 2 && node.inputs[2].valid() ? c.model.at(node.inputs[2]).data : nullptr;
  const auto x = c.operand(node.inputs[0], layout::physical::nhwc_row_strip);
  const auto y = c.result_in_rows(node.outputs[0]);
  const affine n = tile_begin(0), row = tile_begin(1);

  for (std::size_t u = 0; u < plan.parts.size(); ++u) {
    const auto& part = plan.parts[u];
    const auto name = detail::part_name(node.from.node, u, plan.parts.size());
    const std::int64_t outputs = part.outputs.size(), c0 = part.block.first_group * s.group_inputs(), ci = part.inputs(s);
    const std::int64_t m0 = part.block.first_group * s.c() + part.outputs.begin;
    // One kernel row whose input rows all exist: products add to the output row itself.
    const bool direct = s.kernel_h == 1 && s.pad_top == 0 && (s.out_height - 1) * s.stride_h < s.height;
    std::vector<std::uint32_t> partial(static_cast<std::size_t>(s.kernel_h), 0);
    std::vector<std::int64_t> rows_of_phase(static_cast<std::size_t>(s.stride_h), 0);

    for (std::int64_t phase = 0; phase < s.stride_h; ++phase) {
      const auto taps = taps_of_phase(s, phase);
      if (taps.empty()) continue;
      const std::int64_t last = std::min(s.height - 1, (s.out_height - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h - s.pad_top);
      const std::int64_t rows = direct ? s.out_height : last < phase ? 0 : (last - phase) / s.stride_h + 1;
      rows_of_phase[static_cast<std::size_t>(phase)] = rows;
      kernel_builder k(name + (direct ? "" : s.stride_h > 1 ? ".scatter" + std::to_string(phase) : ".scatter"), {s.batch, rows});
      k.current().most = {1, 1};
      const affine in_row = row * s.stride_h + phase;
      const auto in = k.reads(x, {n, c0, in_row, 0}, {n + tile_extent(0), c0 + ci, in_row + tile_extent(1), s.width});
      std::vector<std::uint32_t> out;
      for (const auto r : taps) {
        if (direct) {
          out.push_back(k.writes(y, {n, m0, row, 0}, {n + tile_extent(0), m0 + outputs, row + tile_extent(1), s.out_width}));
          continue;
        }
        const auto value = c.intermediate(name + ".partial" + std::to_string(r), {s.batch, outputs, std::max<std::int64_t>(1, rows), s.out_width}, layout::physical::nhwc_row_strip);
        partial[static_cast<std::size_t>(r)] = value;
        out.push_back(k.writes(value, {n, 0, row, 0}, {n + tile_extent(0), outputs, row + tile_extent(1), s.out_width}));
      }
      if (rows == 0) continue;
      const auto at_out = [&](std::size_t t, const affine& ow) { return k.at(out[t], {n, direct ? m0 : 0, row, ow}); };
      if (direct && bias) {
        const auto first = detail::repeated_row(c, k, name + ".bias", bias, {m0, m0 + outputs}, s.out_width);
        k.copy(at_out(0, 0), k.in(first), s.out_width * outputs);
      } else {
        for (std::size_t t = 0; t < taps.size(); ++t) k.fill(at_out(t, 0), 0, s.out_width * outputs);
      }

      const auto taps_count = static_cast<std::int64_t>(taps.size());
      std::int64_t widest = 0;
      for (const auto& run : plan.runs.runs) widest = std::max(widest, checked::divide_up(taps_count * run.outs * outputs, c.chip.weight_columns) * c.chip.weight_columns);
      if (widest == 0) continue;
      const auto product_at = k.scratch("columns", widest);
      std::optional<std::uint32_t> zeros;
      const std::int64_t advance = plan.runs.period / s.stride_w;
      for (const auto& run : plan.runs.runs) {
        if (run.outs == 0) continue;
        const auto matrix = detail::column_matrix(s, part, run, taps, weights);
        product_emitter product(k, c.chip, matrix, matrix.rows, {0, {0, checked::divide_up(matrix.rows, c.chip.crossbar_rows)}, {0, matrix.columns}});
        const std::int64_t physical = checked::divide_up(matrix.columns, c.chip.weight_columns) * c.chip.weight_columns;
        // Period j: pixels from j · period + first on; those beyond the row are zero, outputs beyond it are left out.
        const auto emit = [&](const affine& j, std::int64_t pixels, interval kept) {
          std::vector<input_run> from{{0, pixels * ci, k.at(in, {n, c0, in_row, j * plan.runs.period + run.first}), 1, outside::never}};
          if (pixels < run.pixels) {
            if (!zeros) {
              zeros = k.scratch("zeros", run.pixels * ci, true);
              k.prologue([&] { k.fill(k.in(*zeros), 0, run.pixels * ci); });
            }
            from.push_back({pixels * ci, (run.pixels - pixels) * ci, k.in(*zeros), 0, outside::never});
          }
          product.emit(from, k.in(product_at), std::nullopt, physical);
          for (std::size_t t = 0; t < taps.size(); ++t) {
            const auto ow = j * advance + (run.out_first + kept.begin);
            k.vector(isa::opcode::vvadd, at_out(t, ow), at_out(t, ow), k.in(product_at, (static_cast<std::int64_t>(t) * run.outs + kept.begin) * outputs), kept.size() * outputs);
          }
        };
        const std::int64_t periods = run.first >= s.width ? 0 : (s.width - run.first - 1) / plan.runs.period + 1;
        const auto kept_of = [&](std::int64_t j) {
          const auto first = j * advance + run.out_first;
          const auto inside = intersect({first, first + run.outs}, {0, s.out_width});
          return inside.empty() ? interval{0, 0} : interval{inside.begin - first, inside.end - first};
        };
        const auto pixels_of = [&](std::int64_t j) { return std::min(run.pixels, s.width - j * plan.runs.period - run.first); };
        const auto whole_run = [&](std::int64_t j) { return pixels_of(j) == run.pixels && kept_of(j).size() == run.outs; };
        for (std::int64_t j = 0; j < periods;) {
          std::int64_t end = j;
          while (end < periods && whole_run(end)) ++end;
          if (end > j + 1) {
            k.loop(end - j, [&](const affine& i) { emit(i + j, run.pixels, {0, run.outs}); });
            j = end;
            continue;
          }
          if (!kept_of(j).empty()) emit(j, pixels_of(j), kept_of(j));
          ++j;
        }
      }
      c.add(v, k, strategy);
    }
    if (direct) continue;

    // The sum of an output row: input row = row · stride + tap · dilation − pad, row `shift` + output row of its phase.
    kernel_builder k(name, {s.batch, s.out_height});
    k.current().most = {1, 1};
    const auto target = k.writes(y, {n, m0, row, 0}, {n + tile_extent(0), m0 + outputs, row + tile_extent(1), s.out_width});
    const operand to = k.at(target, {n, m0, row, 0});
    struct source {
      operand from;
      bool always = false;  ///< its row exists for every output row
    };
    std::vector<source> sources;
    for (std::int64_t r = 0; r < s.kernel_h; ++r) {
      const std::int64_t first = r * s.dilation_h - s.pad_top, phase = checked::floor_modulo(first, s.stride_h), shift = checked::floor_divide(first, s.stride_h);
      const std::int64_t rows = rows_of_phase[static_cast<std::size_t>(phase)];
      if (rows == 0 || shift >= rows || shift + s.out_height <= 0) continue;
      const auto access = k.reads(partial[static_cast<std::size_t>(r)], {n, 0, row + shift, 0}, {n + tile_extent(0), outputs, row + shift + tile_extent(1), s.out_width});
      sources.push_back({k.at(access, {n, 0, row + shift, 0}), shift >= 0 && s.out_height - 1 + shift < rows});
    }
    std::stable_partition(sources.begin(), sources.end(), [](const source& a) { return a.always; });
    std::optional<operand> have;  // what the next addition adds to
    if (bias) have = k.in(detail::repeated_row(c, k, name + ".bias", bias, {m0, m0 + outputs}, s.out_width));
    std::size_t next = 0;
    const std::int64_t length = s.out_width * outputs;
    if (!have && !sources.empty() && sources[0].always) have = sources[next++].from;
    if (have && next < sources.size() && sources[next].always) {
      k.vector(isa::opcode::vvadd, to, sources[next].from, *have, length);
      ++next;
    } else if (have) {
      k.copy(to, *have, length);
    } else {
      k.fill(to, 0, length);
    }
    for (; next < sources.size(); ++next) {
      auto& add = k.vector(isa::opcode::vvadd, to, sources[next].from, to, length);
      if (!sources[next].always) add.when_outside = outside::skip;
    }
    c.add(v, k, strategy);
  }
  c.complete_rows(node.outputs[0], y);
}

/// Picoseconds of one core for all rows.
[[nodiscard]] inline double columns_cost(const convolution_shape& s, const context& c) {
  const auto plan = plan_columns(s, c.chip, &c);
  double sum = 0;
  for (const auto& part : plan.parts) {
    for (std::int64_t phase = 0; phase < s.stride_h; ++phase) {
      const auto taps = static_cast<std::int64_t>(taps_of_phase(s, phase).size());
      if (taps > 0) sum += detail::scatter_row_cost(s, c, plan.runs, taps, part.inputs(s), part.outputs.size()) * static_cast<double>(s.height) / static_cast<double>(s.stride_h);
    }
    if (s.kernel_h > 1) sum += static_cast<double>(s.kernel_h * s.out_height) * static_cast<double>(c.time(isa::opcode::vvadd, s.out_width * part.outputs.size()));
  }
  return sum * static_cast<double>(s.batch);
}

}  // namespace raptor::lowering
