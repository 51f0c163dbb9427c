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

/// Channels that come from one another: whole groups, or some outputs of one group.
struct column_part {
  channel_block block;
  interval outputs;  ///< of the block, in matrix columns of one tap and output column
};

/// The choice that lowering and cost share. Empty parts: it does not fit (`why`).
struct column_plan {
  std::vector<column_part> parts;
  column_runs runs;
  std::vector<interval> inputs;  ///< of a block: input channels of each scatter; several are added by the sum
  std::int64_t segments = 1;     ///< stretches of a row that are tiles of their own
  std::string why;
};

namespace detail {

[[nodiscard]] inline std::int64_t column_crossbars(const program::geometry& chip, const column_runs& runs, std::int64_t taps,
                                                   std::int64_t inputs, std::int64_t outputs) {
  std::int64_t sum = 0;
  for (const auto& run : runs.runs)
    if (run.outs > 0)
      sum += checked::divide_up(run.pixels * inputs, chip.crossbar_rows) * checked::divide_up(checked::multiply(taps * run.outs, outputs), chip.weight_columns);
  return sum;
}

/// Does every output pixel get exactly one product of each slice of channels? Then products are the partial results themselves.
[[nodiscard]] inline bool reached_once(const convolution_shape& s) {
  return s.taps() == 1 && s.pad_left == 0 && (s.out_width - 1) * s.stride_w < s.width;
}

/// Products and additions of one input row of a part, in picoseconds. `cuts`: how many such parts the sum adds.
[[nodiscard]] inline double scatter_row_cost(const convolution_shape& s, const context& c, const column_runs& runs, std::int64_t taps, std::int64_t inputs,
                                             std::int64_t outputs, std::size_t cuts) {
  double sum = 0;
  const bool once = reached_once(s), added = !once || cuts == 1;  // to what other products gave, or to a bias
  for (const auto& run : runs.runs) {
    if (run.outs == 0) continue;
    const auto slices = checked::divide_up(run.pixels * inputs, c.chip.crossbar_rows);
    const bool in_place = run.pixels * inputs % c.chip.crossbar_rows == 0;
    sum += static_cast<double>(slices) * static_cast<double>(c.time(isa::opcode::mvmul, taps * run.outs * outputs)) +
           static_cast<double>(slices - 1) * static_cast<double>(c.time(isa::opcode::vvadd, taps * run.outs * outputs)) +
           (added ? static_cast<double>(taps) * static_cast<double>(c.time(isa::opcode::vvadd, run.outs * outputs)) : 0.0) +
           (in_place ? 0.0 : static_cast<double>(c.time(isa::opcode::lmv, run.pixels * inputs)));
  }
  return sum * static_cast<double>(checked::divide_up(s.width, runs.period)) +
         (once ? 0.0 : static_cast<double>(taps) * static_cast<double>(c.time(isa::opcode::lldi, s.out_width * outputs)));
}

/// What the products of one input row of a part cost beside their time (context::product_price).
[[nodiscard]] inline double scatter_row_energy(const convolution_shape& s, const context& c, const column_runs& runs, std::int64_t taps, std::int64_t inputs,
                                               std::int64_t outputs) {
  double sum = 0;
  for (const auto& run : runs.runs)
    if (run.outs > 0)
      sum += static_cast<double>(checked::divide_up(run.pixels * inputs, c.chip.crossbar_rows)) * c.product_price(taps * run.outs * outputs);
  return sum * static_cast<double>(checked::divide_up(s.width, runs.period));
}

/// Most kernel rows of a phase.
[[nodiscard]] inline std::int64_t most_taps(const convolution_shape& s) {
  std::size_t most = 0;
  for (std::int64_t phase = 0; phase < s.stride_h; ++phase) most = std::max(most, taps_of_phase(s, phase).size());
  return static_cast<std::int64_t>(most);
}

}  // namespace detail

/// Groups share the rows of a crossbar; what does not fit a core is divided by output channels, and by slices of input channels where the
/// wider products that this allows save more than the additions cost.
[[nodiscard]] inline column_plan plan_columns(const convolution_shape& s, const program::geometry& chip, const context* c = nullptr) {
  column_plan plan;
  const std::int64_t taps = detail::most_taps(s);
  const auto single = make_column_runs(s, 1);
  // Of a part; what is too wide for it takes a core.
  std::int64_t capacity = c != nullptr ? c->part_crossbars() : chip.crossbars_per_core;
  const auto fits = [&](const column_runs& runs, std::int64_t inputs, std::int64_t outputs) {
    return detail::column_crossbars(chip, runs, taps, inputs, outputs) <= capacity;
  };
  if (!fits(single, std::min(s.group_inputs(), chip.crossbar_rows), 1)) capacity = chip.crossbars_per_core;
  std::int64_t together = std::clamp<std::int64_t>(chip.crossbar_rows / s.group_inputs(), 1, s.groups);
  while (together > 1 && !fits(single, together * s.group_inputs(), together * s.c())) --together;
  const std::int64_t channels = together * s.group_inputs(), outputs = together * s.c();
  const std::int64_t slices = checked::divide_up(channels, chip.crossbar_rows);

  // Ways to divide: `depth` slices in one core and one or several pixels a product, as many output channels as then fit. Neighbouring pixels lie
  // together where a part takes all channels.
  double least = 0;
  std::int64_t size = 0;
  const auto consider = [&](const column_runs& runs, std::int64_t inputs, std::int64_t cuts) {
    std::int64_t pieces = 1;
    while (pieces < outputs && !fits(runs, inputs, checked::divide_up(outputs, pieces))) ++pieces;
    const std::int64_t piece = checked::divide_up(outputs, pieces);
    if (!fits(runs, inputs, piece) || (pieces > 1 && together > 1)) return false;
    double cost = 0;
    if (c != nullptr) {
      const auto row = s.out_width * piece;
      const double extra = static_cast<double>(c->time(isa::opcode::vvadd, row) + 2 * c->time(isa::opcode::send, row));
      const auto rows = static_cast<double>(s.batch * s.height);
      const auto crossbars = detail::column_crossbars(chip, runs, taps, inputs, piece);
      cost = c->resource_cost(static_cast<double>(pieces * cuts), detail::scatter_row_cost(s, *c, runs, taps, inputs, piece, static_cast<std::size_t>(cuts)) * rows, static_cast<double>(crossbars),
                              detail::scatter_row_energy(s, *c, runs, taps, inputs, piece) * rows) +
             static_cast<double>(pieces * (cuts - 1) * taps * s.batch * s.out_height) * extra;
      if (2 * crossbars > chip.crossbars_per_core) cost *= c->options.large_part;
    }
    if (size != 0 && cost >= least) return true;
    least = cost, size = piece;
    plan.runs = runs;
    plan.inputs.clear();
    for (std::int64_t i = 0; i < channels; i += inputs) plan.inputs.push_back({i, std::min(channels, i + inputs)});
    return true;
  };
  for (std::int64_t depth = slices; depth >= 1; --depth) {
    const std::int64_t inputs = std::min(channels, depth * chip.crossbar_rows), cuts = checked::divide_up(channels, inputs);
    if (depth < slices && cuts == checked::divide_up(channels, std::min(channels, (depth + 1) * chip.crossbar_rows))) continue;  // no fewer cores
    if (consider(single, inputs, cuts) && c == nullptr) break;
  }
  if (size == 0) {
    plan.why = "one output channel needs " + std::to_string(detail::column_crossbars(chip, single, taps, std::min(channels, chip.crossbar_rows), 1)) +
               " crossbars, a core has " + std::to_string(capacity);
    return plan;
  }
  if (c != nullptr && together == s.groups)
    for (std::int64_t pixels = 2; pixels <= std::min(s.width, chip.crossbar_rows / s.channels); ++pixels) consider(make_column_runs(s, pixels), channels, 1);

  if (c != nullptr) {
    const double row = detail::scatter_row_cost(s, *c, plan.runs, taps, plan.inputs[0].size(), size, plan.inputs.size());
    plan.segments = std::clamp<std::int64_t>(static_cast<std::int64_t>(row / c->tile_time(s.out_height) + 0.5), 1,
                                             std::max<std::int64_t>(1, s.width / plan.runs.period / 2));
  }
  for (std::int64_t g = 0; g < s.groups; g += together) {
    const channel_block block{g, std::min(together, s.groups - g)};
    const std::int64_t all = block.groups * s.c();
    for (std::int64_t m = 0; m < all; m += size) plan.parts.push_back({block, {m, std::min(all, m + size)}});
  }
  return plan;
}

namespace detail {

/// Output channels of a block whose weights lie together.
struct column_weights {
  std::uint32_t constant = 0;     ///< which of the constants
  interval outputs, inputs;       ///< of the block
  std::int64_t first_output = 0;  ///< of the constant, for the first of them
};

/// The matrix of a run: row (pixel, channel), column (kernel row, output column, output channel).
[[nodiscard]] inline logical_matrix column_matrix(const convolution_shape& s, const column_part& part, interval channels, const column_run& run,
                                                  const std::vector<std::int64_t>& taps, const std::vector<model::constant_ptr>& constants,
                                                  const std::vector<column_weights>& weights) {
  const std::int64_t inputs = s.group_inputs(), outputs = part.outputs.size(), all_taps = s.taps();
  logical_matrix m{run.pixels * channels.size(), static_cast<std::int64_t>(taps.size()) * run.outs * outputs, constants, {}};
  for (std::int64_t p = 0; p < run.pixels; ++p)
    for (std::int64_t q = 0; q < s.kernel_w; ++q) {
      const std::int64_t at = run.first + p + s.pad_left - q * s.dilation_w;
      if (checked::floor_modulo(at, s.stride_w) != 0) continue;
      const std::int64_t out = checked::floor_divide(at, s.stride_w) - run.out_first;
      for (std::size_t t = 0; t < taps.size(); ++t)
        for (const auto& w : weights) {
          const interval own = intersect(part.outputs, w.outputs), in = intersect(channels, w.inputs);
          if (own.empty() || in.empty()) continue;
          const std::int64_t first_output = w.first_output + (own.begin - w.outputs.begin);
          m.blocks.push_back({w.constant, p * channels.size() + (in.begin - channels.begin), (static_cast<std::int64_t>(t) * run.outs + out) * outputs + (own.begin - part.outputs.begin),
                              in.size(), own.size(), (first_output * inputs + (in.begin - w.inputs.begin)) * all_taps + taps[t] * s.kernel_w + q, all_taps, inputs * all_taps});
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

/// A stretch of a row that is done as one tile: periods of input pixels, and the output columns that they reach.
struct row_segment {
  interval periods;  ///< of column_runs
  interval outs;     ///< output columns, within the image
};

/// Cuts a row into `count` stretches of periods, fewer where the row has fewer periods.
[[nodiscard]] inline std::vector<row_segment> segments_of(const convolution_shape& s, const column_runs& runs, std::int64_t count) {
  const std::int64_t periods = checked::divide_up(s.width, runs.period), advance = runs.period / s.stride_w;
  count = std::clamp<std::int64_t>(count, 1, periods);
  std::vector<row_segment> result;
  for (std::int64_t k = 0; k < count; ++k) {
    row_segment segment{{periods * k / count, periods * (k + 1) / count}, {s.out_width, 0}};
    for (const auto& run : runs.runs) {
      if (run.outs == 0) continue;
      segment.outs.begin = std::min(segment.outs.begin, segment.periods.begin * advance + run.out_first);
      segment.outs.end = std::max(segment.outs.end, (segment.periods.end - 1) * advance + run.out_first + run.outs);
    }
    segment.outs = intersect(segment.outs, {0, s.out_width});
    if (!segment.outs.empty()) result.push_back(segment);
  }
  return result;
}

namespace detail {

/// One part of a convolution or group with the kernel in the columns.
class column_lowering {
 public:
  column_lowering(context& c, const grouped_convolution& group, const column_plan& plan, const column_part& part, std::string name, std::string strategy)
      : c_(c), group_(group), s_(group.sizes), plan_(plan), part_(part), name_(std::move(name)), strategy_(std::move(strategy)),
        segments_(segments_of(s_, plan.runs, plan.segments)), outputs_(part.outputs.size()), m0_(part.block.first_group * s_.c() + part.outputs.begin) {
    for (const auto& m : group.members)
      if (const auto own = intersect(m.channels, {m0_, m0_ + outputs_}); !own.empty())
        results_.push_back({m, own, std::vector(static_cast<std::size_t>(s_.kernel_h), std::vector<std::uint32_t>(segments_.size() * cuts(), 0))});
    if (group.members.size() > 1)
      for (std::size_t i = 0; i < group.members.size(); ++i) weights_.push_back({static_cast<std::uint32_t>(i), group.members[i].channels, {0, s_.group_inputs()}, 0});
    else
      for (std::int64_t g = 0; g < part.block.groups; ++g)
        weights_.push_back({0, {g * s_.c(), (g + 1) * s_.c()}, {g * s_.group_inputs(), (g + 1) * s_.group_inputs()}, (part.block.first_group + g) * s_.c()});
    once_ = reached_once(s_);
    ensure(once_ || group.members.size() == 1, "convolutions lowered together: a product an output pixel", name_);
    // One kernel row whose input rows all exist, in one stretch: products add to the output row itself.
    direct_ = s_.kernel_h == 1 && s_.pad_top == 0 && (s_.out_height - 1) * s_.stride_h < s_.height && alone() && cuts() == 1;
    rows_of_phase_.assign(static_cast<std::size_t>(s_.stride_h), 0);
  }

  void run() {
    for (std::int64_t phase = 0; phase < s_.stride_h; ++phase) {
      const auto taps = taps_of_phase(s_, phase);
      if (taps.empty()) continue;
      const std::int64_t last = std::min(s_.height - 1, (s_.out_height - 1) * s_.stride_h + (s_.kernel_h - 1) * s_.dilation_h - s_.pad_top);
      const std::int64_t rows = direct_ ? s_.out_height : last < phase ? 0 : (last - phase) / s_.stride_h + 1;
      rows_of_phase_[static_cast<std::size_t>(phase)] = rows;
      if (rows == 0) continue;
      for (std::size_t cut = 0; cut < cuts(); ++cut) {
        const auto family = c_.new_family();
        for (std::size_t k = 0; k < segments_.size(); ++k) scatter(phase, taps, rows, k, cut, family);
      }
    }
    if (direct_) return;
    for (const auto& result : results_)
      for (std::size_t k = 0; k < segments_.size(); ++k) sum(result, k);
  }

 private:
  /// Output channels of the part that belong to one tensor.
  struct part_result {
    group_member of;
    interval channels;                                ///< of the group
    std::vector<std::vector<std::uint32_t>> partial;  ///< values by kernel row; then by cut of the inputs and stretch
    [[nodiscard]] std::int64_t first() const { return channels.begin - of.channels.begin; }  ///< channel of the tensor
  };
  /// What the values and sums of a result are called.
  [[nodiscard]] std::string name_of(const part_result& r) const { return results_.size() > 1 ? name_ + "." + c_.model.at(r.of.node).from.node : name_; }
  /// Do the stretches reach disjoint outputs that cover the row?
  [[nodiscard]] bool alone() const {
    std::int64_t end = 0;
    for (const auto& segment : segments_) {
      if (segment.outs.begin != end) return false;
      end = segment.outs.end;
    }
    return end == s_.out_width;
  }
  /// How many scatters the sum adds for each kernel row.
  [[nodiscard]] std::size_t cuts() const { return plan_.inputs.size(); }
  /// Output pixels of the widest run.
  [[nodiscard]] std::int64_t widest_run() const {
    std::int64_t widest = 1;
    for (const auto& run : plan_.runs.runs) widest = std::max(widest, run.outs);
    return widest;
  }
  [[nodiscard]] std::string suffix(std::size_t k) const { return segments_.size() > 1 ? "[" + std::to_string(k) + "]" : ""; }

  [[nodiscard]] std::string cut_name(std::size_t cut) const { return cuts() > 1 ? "c" + std::to_string(cut) : ""; }

  void scatter(std::int64_t phase, const std::vector<std::int64_t>& taps, std::int64_t rows, std::size_t segment_number, std::size_t cut,
               std::int64_t family) {
    // The last block of groups may hold fewer than the others.
    const interval channels{plan_.inputs[cut].begin, std::min(plan_.inputs[cut].end, part_.block.groups * s_.group_inputs())};
    const std::int64_t inputs = channels.size(), c0 = part_.block.first_group * s_.group_inputs() + channels.begin;
    const affine n = tile_begin(0), row = tile_begin(1);
    const auto& segment = segments_[segment_number];
    const std::int64_t width = segment.outs.size(), out0 = segment.outs.begin, period = plan_.runs.period, advance = period / s_.stride_w;
    kernel_builder k(name_ + (direct_ ? "" : s_.stride_h > 1 ? ".scatter" + std::to_string(phase) : ".scatter") + cut_name(cut) + suffix(segment_number), {s_.batch, rows});
    k.current().most = {1, 1};
    k.current().family = family;
    const affine in_row = row * s_.stride_h + phase;
    const auto in = k.reads(group_.x, {n, c0, in_row, segment.periods.begin * period},
                            {n + tile_extent(0), c0 + inputs, in_row + tile_extent(1), std::min(s_.width, segment.periods.end * period)});
    std::vector<std::vector<std::uint32_t>> out(results_.size());  // accesses: by result, then by kernel row
    for (std::size_t i = 0; i < results_.size(); ++i) {
      auto& result = results_[i];
      const std::int64_t count = result.channels.size();
      for (const auto r : taps) {
        if (direct_) {
          out[i].push_back(k.writes(result.of.value, {n, result.first(), row, out0}, {n + tile_extent(0), result.first() + count, row + tile_extent(1), segment.outs.end}));
          continue;
        }
        const auto value = c_.intermediate(name_of(result) + ".partial" + std::to_string(r) + cut_name(cut) + suffix(segment_number), {s_.batch, count, rows, width}, layout::physical::nhwc_row_strip);
        result.partial[static_cast<std::size_t>(r)][cut * segments_.size() + segment_number] = value;
        out[i].push_back(k.writes(value, {n, 0, row, 0}, {n + tile_extent(0), count, row + tile_extent(1), width}));
      }
    }
    // Output column `ow` of the image.
    const auto at_out = [&](std::size_t i, std::size_t t, const affine& ow) { return direct_ ? k.at(out[i][t], {n, results_[i].first(), row, ow}) : k.at(out[i][t], {n, 0, row, ow - out0}); };
    std::optional<operand> bias;
    if (direct_ && group_.bias) bias = k.in(repeated_row(c_, k, name_ + ".bias", group_.bias, {m0_, m0_ + outputs_}, once_ ? widest_run() : width));
    for (std::size_t t = 0; !once_ && t < taps.size(); ++t) {  // what products add to; a bias only where there is one kernel row
      if (bias) k.copy(at_out(0, t, out0), *bias, width * outputs_);
      else k.fill(at_out(0, t, out0), 0, width * outputs_);
    }

    const auto taps_count = static_cast<std::int64_t>(taps.size());
    std::int64_t widest = 1;
    for (const auto& run : plan_.runs.runs) widest = std::max(widest, physical(taps_count * run.outs * outputs_));
    const auto product_at = once_ ? 0 : k.scratch("columns", widest);
    std::optional<std::uint32_t> zeros;
    for (const auto& run : plan_.runs.runs) {
      if (run.outs == 0) continue;
      const auto matrix = column_matrix(s_, part_, channels, run, taps, group_.weights, weights_);
      product_emitter product(k, c_.chip, matrix, matrix.rows, {0, {0, checked::divide_up(matrix.rows, c_.chip.crossbar_rows)}, {0, matrix.columns}});
      // Period j: pixels from j · period + first on; those beyond the row are zero, outputs beyond it are left out.
      const auto emit = [&](const affine& j, std::int64_t pixels, interval kept) {
        std::vector<input_run> from{{0, pixels * inputs, k.at(in, {n, c0, in_row, j * period + run.first}), 1, outside::never}};
        if (pixels < run.pixels) {
          if (!zeros) {
            zeros = k.scratch("zeros", run.pixels * inputs, true);
            k.prologue([&] { k.fill(k.in(*zeros), 0, run.pixels * inputs); });
          }
          from.push_back({pixels * inputs, (run.pixels - pixels) * inputs, k.in(*zeros), 0, outside::never});
        }
        if (once_) {
          const affine first = j * advance + run.out_first;
          if (results_.size() == 1) {
            product.emit(from, at_out(0, 0, first), bias, kept.size() * outputs_);
            return;
          }
          std::vector<product_piece> pieces;
          for (std::int64_t pixel = 0; pixel < kept.size(); ++pixel)
            for (std::size_t i = 0; i < results_.size(); ++i)
              pieces.push_back({at_out(i, 0, first + pixel), pixel * outputs_ + results_[i].channels.begin - m0_, results_[i].channels.size()});
          product.emit(from, pieces, bias);
          return;
        }
        product.emit(from, k.in(product_at), std::nullopt, physical(matrix.columns));
        for (std::size_t t = 0; t < taps.size(); ++t) {
          const auto to = at_out(0, t, j * advance + (run.out_first + kept.begin));
          k.vector(isa::opcode::vvadd, to, to, k.in(product_at, (static_cast<std::int64_t>(t) * run.outs + kept.begin) * outputs_), kept.size() * outputs_);
        }
      };
      const auto kept_of = [&](std::int64_t j) {
        const auto first = j * advance + run.out_first;
        const auto inside = intersect({first, first + run.outs}, {0, s_.out_width});
        return inside.empty() ? interval{0, 0} : interval{inside.begin - first, inside.end - first};
      };
      const auto pixels_of = [&](std::int64_t j) { return std::min(run.pixels, s_.width - j * period - run.first); };
      const auto whole_run = [&](std::int64_t j) { return pixels_of(j) == run.pixels && kept_of(j).size() == run.outs; };
      for (std::int64_t j = segment.periods.begin; j < segment.periods.end && j * period + run.first < s_.width;) {
        std::int64_t end = j;
        while (end < segment.periods.end && whole_run(end)) ++end;
        if (end > j + 1) {
          const double time = c_.product_time(checked::divide_up(matrix.rows, c_.chip.crossbar_rows), matrix.columns);
          k.repeat(end - j, time, [&](const affine& i) { emit(i + j, run.pixels, {0, run.outs}); });
          j = end;
          continue;
        }
        if (!kept_of(j).empty()) emit(j, pixels_of(j), kept_of(j));
        ++j;
      }
    }
    c_.add(group_.members.front().node, k, strategy_, group_.op);
  }

  /// The sum of the output columns from where a stretch begins to reach to where the next one does. Input row = row · stride + tap · dilation −
  /// pad: row `shift` + output row of its phase.
  void sum(const part_result& r, std::size_t segment_number) {
    const std::int64_t count = r.channels.size();
    const affine n = tile_begin(0), row = tile_begin(1);
    const std::int64_t begin = segment_number == 0 ? 0 : segments_[segment_number].outs.begin;
    const std::int64_t end = segment_number + 1 < segments_.size() ? segments_[segment_number + 1].outs.begin : s_.out_width;
    if (end <= begin) return;
    kernel_builder k(name_of(r) + suffix(segment_number), {s_.batch, s_.out_height});
    k.current().most = {1, 1};
    const auto target = k.writes(r.of.value, {n, r.first(), row, begin}, {n + tile_extent(0), r.first() + count, row + tile_extent(1), end});
    const auto to = [&](std::int64_t ow) { return k.at(target, {n, r.first(), row, ow}); };
    struct source {
      operand from;
      interval outs;
      bool always = false;  ///< it covers all columns, and its row exists for every output row
    };
    std::vector<source> sources;
    for (std::int64_t tap = 0; tap < s_.kernel_h; ++tap) {
      const std::int64_t first = tap * s_.dilation_h - s_.pad_top, phase = checked::floor_modulo(first, s_.stride_h), shift = checked::floor_divide(first, s_.stride_h);
      const std::int64_t rows = rows_of_phase_[static_cast<std::size_t>(phase)];
      if (rows == 0 || shift >= rows || shift + s_.out_height <= 0) continue;
      // The first one is that of the cut whose core makes this sum, where the two can be one tile: each cut's core gets some of the sums.
      for (std::size_t i = 0; i < segments_.size() * cuts(); ++i) {
        const std::size_t j = (i + segment_number % cuts() * segments_.size()) % (segments_.size() * cuts());
        const auto& from = segments_[j % segments_.size()];
        const auto outs = intersect(from.outs, {begin, end});
        if (outs.empty()) continue;
        const std::int64_t at = outs.begin - from.outs.begin;
        const auto access = k.reads(r.partial[static_cast<std::size_t>(tap)][j], {n, 0, row + shift, at}, {n + tile_extent(0), count, row + shift + tile_extent(1), at + outs.size()});
        sources.push_back({k.at(access, {n, 0, row + shift, at}), outs, outs == interval{begin, end} && shift >= 0 && s_.out_height - 1 + shift < rows});
      }
    }
    std::stable_partition(sources.begin(), sources.end(), [](const source& a) { return a.always; });
    std::optional<operand> have;  // what the next addition adds to
    if (group_.bias) have = k.in(repeated_row(c_, k, name_of(r) + ".bias", group_.bias, r.channels, end - begin));
    std::size_t next = 0;
    const std::int64_t length = (end - begin) * count;
    if (!have && !sources.empty() && sources[0].always) have = sources[next++].from;
    if (have && next < sources.size() && sources[next].always) {
      k.vector(isa::opcode::vvadd, to(begin), sources[next].from, *have, length);
      ++next;
    } else if (have) {
      k.copy(to(begin), *have, length);
    } else {
      k.fill(to(begin), 0, length);
    }
    for (; next < sources.size(); ++next) {
      const auto& a = sources[next];
      k.vector(isa::opcode::vvadd, to(a.outs.begin), a.from, to(a.outs.begin), a.outs.size() * count).when_outside = outside::skip;
    }
    c_.add(r.of.node, k, strategy_);
  }

  [[nodiscard]] std::int64_t physical(std::int64_t columns) const { return checked::divide_up(columns, c_.chip.weight_columns) * c_.chip.weight_columns; }

  context& c_;
  const grouped_convolution& group_;
  const convolution_shape& s_;
  const column_plan& plan_;
  const column_part& part_;
  std::string name_, strategy_;
  std::vector<row_segment> segments_;
  std::int64_t outputs_, m0_;  ///< output channels of the part, and the first of them
  std::vector<column_weights> weights_;
  std::vector<part_result> results_;  ///< in the order of their channels; one, but of a group
  bool direct_ = false, once_ = false;
  std::vector<std::int64_t> rows_of_phase_;
};

}  // namespace detail

/// Lowers a convolution or group with the kernel in the columns. Requires: plan_columns has parts; a group's are reached_once. Lanes: (n, input row
/// of a phase) and (n, output row).
inline void lower_columns(context& c, const convolution_group& nodes, const std::string& strategy) {
  const auto x = c.operand(c.model.at(nodes.nodes.front()).inputs[0], layout::physical::nhwc_row_strip);
  const auto group = grouped(c, nodes, x, [&](model::tensor_id t) { return c.result_in_rows(t); });
  const auto plan = plan_columns(group.sizes, c.chip, &c);
  for (std::size_t u = 0; u < plan.parts.size(); ++u)
    detail::column_lowering(c, group, plan, plan.parts[u], detail::part_name(group.name, u, plan.parts.size()), strategy).run();
  for (const auto& m : group.members) c.complete_rows(c.model.at(m.node).outputs[0], m.value);
}

/// Picoseconds of one core for all rows, crossbars included (context::resource_cost).
[[nodiscard]] inline double columns_cost(const convolution_shape& s, const context& c) {
  const auto plan = plan_columns(s, c.chip, &c);
  double sum = 0;
  const auto number = [](auto x) { return static_cast<double>(x); };
  for (const auto& part : plan.parts) {
    const auto row = s.out_width * part.outputs.size();
    for (std::int64_t phase = 0; phase < s.stride_h; ++phase) {
      const auto taps = static_cast<std::int64_t>(taps_of_phase(s, phase).size());
      if (taps == 0) continue;
      for (const auto& inputs : plan.inputs) {
        const auto channels = std::min(inputs.size(), part.block.groups * s.group_inputs());
        const double work = detail::scatter_row_cost(s, c, plan.runs, taps, channels, part.outputs.size(), plan.inputs.size()) * number(s.batch * s.height) / number(s.stride_h);
        const double energy = detail::scatter_row_energy(s, c, plan.runs, taps, channels, part.outputs.size()) * number(s.batch * s.height) / number(s.stride_h);
        sum += c.resource_cost(1, work, number(detail::column_crossbars(c.chip, plan.runs, taps, channels, part.outputs.size())), energy);
      }
    }
    const auto cuts = static_cast<std::int64_t>(plan.inputs.size());
    if (s.kernel_h > 1 || cuts > 1)
      sum += number(s.batch * s.kernel_h * s.out_height * cuts) * number(c.time(isa::opcode::vvadd, row)) +
             number(s.batch * s.kernel_h * s.out_height * (cuts - 1) * 2) * number(c.time(isa::opcode::send, row));
  }
  return sum;
}

}  // namespace raptor::lowering
