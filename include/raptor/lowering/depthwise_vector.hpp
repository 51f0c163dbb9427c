#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/convolution.hpp"

/// Depthwise convolutions on the vector unit: no patch, no product of pixels. Every tap is a product of a stretch of the image row with the
/// tap's weights, one a channel, and a sum. The weights come from a crossbar, one product a tap, once a core. Source: LOWERING,
/// "depthwise-vector".
namespace raptor::lowering {

/// How a depthwise convolution is cut: slices of channels, computes with weights of their own, and blocks of columns, the tiles of a row.
struct depthwise_plan {
  std::vector<interval> slices;
  std::int64_t block = 1;
};

namespace detail {

/// Picoseconds of `pixels` outputs of some channels.
[[nodiscard]] inline double depthwise_time(const convolution_shape& s, const context& c, std::int64_t channels, std::int64_t pixels) {
  const bool together = s.stride_w == 1;  // neighbouring pixels lie together; else they are done one by one
  const auto length = together ? pixels * channels : channels;
  const auto both = static_cast<double>(c.time(isa::opcode::vvmul, length) + c.time(isa::opcode::vvadd, length));
  return both * static_cast<double>(s.taps()) * static_cast<double>(together ? 1 : pixels);
}
/// Crossbars for the weights of some channels: one row, a column for each tap and channel, and one for the bias.
[[nodiscard]] inline std::int64_t depthwise_crossbars(const convolution_shape& s, const program::geometry& chip, std::int64_t channels) {
  return checked::divide_up(checked::multiply(s.taps() + 1, channels), chip.weight_columns);
}

}  // namespace detail

/// Cuts by channels first, which need nothing of each other's input, into as many tiles a row as the options ask for. Weights take at most
/// half a core.
[[nodiscard]] inline depthwise_plan plan_depthwise(const convolution_shape& s, const context& c) {
  constexpr std::int64_t enough = 64, longest = 4096;  // channels of a slice, elements of a vector
  const auto unit = s.stride_w == 1 ? std::int64_t{1} : enough;  // a pixel at a time: vectors of full words
  const double row = detail::depthwise_time(s, c, s.channels, s.out_width);
  const auto wanted = std::max<std::int64_t>(1, static_cast<std::int64_t>(row / c.tile_time(s.out_height) + 0.5));
  const auto capacity = std::max<std::int64_t>(1, c.chip.crossbars_per_core / 2) * c.chip.weight_columns;
  const auto fit = checked::divide_up(s.channels, std::max<std::int64_t>(1, capacity / (s.taps() + 1)));
  const auto count = std::clamp<std::int64_t>(std::min(wanted, s.channels / enough), fit, s.channels);
  depthwise_plan plan;
  std::int64_t begin = 0, most = 0;
  for (std::int64_t i = 1; i <= count; ++i) {
    auto end = checked::multiply(s.channels, i) / count;
    if (i < count && fit == 1) end = end / unit * unit;
    if (end <= begin) continue;
    plan.slices.push_back({begin, end});
    most = std::max(most, end - begin);
    begin = end;
  }
  const auto blocks = std::clamp<std::int64_t>(checked::divide_up(wanted, static_cast<std::int64_t>(plan.slices.size())), 1, s.out_width);
  plan.block = std::min(checked::divide_up(s.out_width, blocks), std::max<std::int64_t>(1, longest / most));
  return plan;
}

namespace detail {

/// One slice of the channels of a depthwise convolution.
class depthwise_lowering {
 public:
  depthwise_lowering(context& c, model::vertex v, interval slice, std::int64_t block, std::string name, std::uint32_t x, std::uint32_t y)
      : c_(c), s_(shape_of(c.model, v)), slice_(slice), block_(block), channels_(slice.size()), k_(std::move(name), {s_.batch, s_.out_height, s_.out_width}) {
    const auto& node = c.model.at(v);
    weights_ = c.model.at(node.inputs[1]).data;
    if (node.inputs.size() > 2 && node.inputs[2].valid()) bias_ = c.model.at(node.inputs[2]).data;
    k_.current().most = {1, 1, block};
    k_.current().granule = {1, 1, block};
    body(x, y);
  }
  [[nodiscard]] kernel_builder& kernel() noexcept { return k_; }

 private:
  /// One row: the weights of every tap, and the bias behind them.
  [[nodiscard]] logical_matrix table() const {
    const std::int64_t taps = s_.taps();
    logical_matrix m{1, (taps + 1) * channels_, {weights_}, {}};
    for (std::int64_t tap = 0; tap < taps; ++tap) m.blocks.push_back({0, 0, tap * channels_, 1, channels_, slice_.begin * taps + tap, 0, taps});
    if (bias_) {
      m.sources.push_back(bias_);
      m.blocks.push_back({1, 0, taps * channels_, 1, channels_, slice_.begin, 0, 1});
    }
    return m;
  }
  /// The table in local memory, each of its entries repeated for `times` pixels: one product with the constant one, once a core.
  [[nodiscard]] std::uint32_t resident_weights(std::int64_t times) {
    const auto matrix = table();
    const std::int64_t rows = c_.chip.crossbar_rows, entries = s_.taps() + 1, columns = c_.chip.weight_columns;
    const auto group = k_.group(cut(matrix, {0, 1}, {0, matrix.columns}));
    const auto one = k_.scratch("one", rows, true), once = k_.scratch("weights", checked::divide_up(matrix.columns, columns) * columns, true);
    k_.prologue([&] {
      k_.fill(k_.in(one), 0, rows);
      k_.fill(k_.in(one), 1, 1);
      k_.matrix(k_.in(once), k_.in(one), group);
    });
    if (times == 1) return once;
    const auto repeated = k_.scratch("repeated_weights", entries * times * channels_, true);
    k_.prologue([&] {
      k_.loop(entries, [&](const affine& i) {
        const affine at = i * (times * channels_);
        k_.copy(k_.in(repeated, at), k_.in(once, i * channels_), channels_);
        for (std::int64_t have = 1; have < times;) {
          const auto more = std::min(have, times - have);
          k_.copy(k_.in(repeated, at + have * channels_), k_.in(repeated, at), more * channels_);
          have += more;
        }
      });
    });
    return repeated;
  }

  /// Rows outside the image add nothing; columns outside it are zeros.
  void body(std::uint32_t x, std::uint32_t y) {
    const auto& s = s_;
    const affine n = tile_begin(0), row = tile_begin(1), column = tile_begin(2), top = row * s.stride_h - s.pad_top, left = column * s.stride_w - s.pad_left;
    const auto in = k_.reads(x, {n, slice_.begin, top, left},
                             {tile_end(0), slice_.end, top + (s.kernel_h - 1) * s.dilation_h + tile_extent(1), (tile_end(2) - 1) * s.stride_w - s.pad_left + (s.kernel_w - 1) * s.dilation_w + 1});
    const auto out = k_.writes(y, {n, slice_.begin, row, column}, {tile_end(0), slice_.end, tile_end(1), tile_end(2)});
    const bool together = s.stride_w == 1;
    const std::int64_t pixels = together ? block_ : 1, taps = s.taps();
    const auto resident = resident_weights(pixels);
    const auto product = k_.scratch("product", pixels * channels_);
    const auto weights = [&](std::int64_t tap) { return k_.in(resident, tap * pixels * channels_); };
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t r = tap / s.kernel_w, q = tap % s.kernel_w;
      k_.loop(together ? affine(1) : tile_extent(2), [&](const affine& i) {
        const auto from = k_.at(in, {n, slice_.begin, top + r * s.dilation_h, left + i * s.stride_w + q * s.dilation_w});
        const auto to = k_.at(out, {n, slice_.begin, row, column + i});
        const affine length = together ? tile_extent(2) * channels_ : affine(channels_);
        const bool alone = tap == 0 && !bias_;
        k_.vector(isa::opcode::vvmul, alone ? to : k_.in(product), from, weights(tap), length).when_outside = outside::zero;
        if (!alone) k_.vector(isa::opcode::vvadd, to, tap == 0 ? weights(taps) : to, k_.in(product), length);
      });
    }
  }

  context& c_;
  convolution_shape s_;
  interval slice_;
  std::int64_t block_, channels_;
  kernel_builder k_;
  model::constant_ptr weights_, bias_;
};

}  // namespace detail

/// Lowers a depthwise convolution with one output a channel. Lanes (n, output row, output column), a block of columns a tile.
inline void lower_depthwise_vector(context& c, model::vertex v, const std::string& strategy) {
  const auto& node = c.model.at(v);
  const auto plan = plan_depthwise(shape_of(c.model, v), c);
  const auto x = c.operand(node.inputs[0], layout::physical::nhwc_row_strip);
  const auto y = c.result_in_rows(node.outputs[0]);
  for (std::size_t i = 0; i < plan.slices.size(); ++i) {
    detail::depthwise_lowering slice(c, v, plan.slices[i], plan.block, node.from.node + (plan.slices.size() > 1 ? "." + std::to_string(i) : ""), x, y);
    c.add(v, slice.kernel(), strategy);
  }
  c.complete_rows(node.outputs[0], y);
}

/// Picoseconds of one core for all rows, crossbars included, and what their copies take to get the weights.
[[nodiscard]] inline double depthwise_vector_cost(const convolution_shape& s, const context& c) {
  const auto plan = plan_depthwise(s, c);
  double sum = 0;
  for (const auto& slice : plan.slices) {
    const auto channels = slice.size();
    const auto pixels = s.stride_w == 1 ? plan.block : 1;
    const double work = detail::depthwise_time(s, c, channels, plan.block) * static_cast<double>(s.batch * s.out_height * s.out_width) / static_cast<double>(plan.block);
    const double setup = static_cast<double>(c.time(isa::opcode::mvmul, (s.taps() + 1) * channels) + (s.taps() + 1) * c.time(isa::opcode::lmv, pixels * channels));
    sum += c.resource_cost(1, work, static_cast<double>(detail::depthwise_crossbars(s, c.chip, channels)), c.product_price((s.taps() + 1) * channels)) + c.copies(work) * setup;
  }
  return sum;
}

}  // namespace raptor::lowering
