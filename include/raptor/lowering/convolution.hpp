#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "raptor/lowering/context.hpp"
#include "raptor/lowering/matrix_product.hpp"

/// What all convolution strategies share: the numbers of a convolution, its weight matrices, and the window kernel.
namespace raptor::lowering {

/// Sizes of a two-dimensional convolution (LOWERING, "Convolutions": k, c, p).
struct convolution_shape {
  std::int64_t batch = 1, channels = 0, height = 0, width = 0;             ///< input
  std::int64_t out_channels = 0, out_height = 0, out_width = 0;            ///< output
  std::int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, pad_top = 0, pad_left = 0;
  std::int64_t groups = 1;

  [[nodiscard]] std::int64_t taps() const { return kernel_h * kernel_w; }
  [[nodiscard]] std::int64_t group_inputs() const { return channels / groups; }
  [[nodiscard]] std::int64_t group_outputs() const { return out_channels / groups; }
  [[nodiscard]] std::int64_t k() const { return group_inputs() * taps(); }
  [[nodiscard]] std::int64_t c() const { return group_outputs(); }
  [[nodiscard]] std::int64_t positions() const { return batch * out_height * out_width; }
  friend auto operator<=>(const convolution_shape&, const convolution_shape&) = default;
};

[[nodiscard]] inline convolution_shape shape_of(const model::graph& g, model::vertex v) {
  const auto& n = g.at(v);
  const auto& op = std::get<model::convolution>(n.op);
  const auto &x = g.at(n.inputs[0]).sizes, &y = g.at(n.outputs[0]).sizes;
  if (x.size() != 4)
    throw error(error_code::unsupported, "convolution of rank " + std::to_string(x.size()) + ": only images (rank 4) are lowered", n.from.describe());
  return {x[0], x[1], x[2], x[3], y[1], y[2], y[3], op.kernel[0], op.kernel[1], op.strides[0], op.strides[1],
          op.dilations[0], op.dilations[1], op.pads_begin[0], op.pads_begin[1], op.groups};
}

/// A convolution, or several that read the same tensor through the same windows: their output channels lie side by side in one matrix, in this order.
struct convolution_group {
  std::vector<model::vertex> nodes;  ///< ascending; at least one, and of several ones each has one group
  convolution_group(model::vertex v) : nodes{v} {}  // NOLINT(google-explicit-constructor): a convolution is a group of one
  explicit convolution_group(std::vector<model::vertex> several) : nodes(std::move(several)) {}
};
/// The sizes of one convolution that gives the output channels of all.
[[nodiscard]] inline convolution_shape shape_of(const model::graph& g, const convolution_group& group) {
  auto s = shape_of(g, group.nodes.front());
  for (std::size_t i = 1; i < group.nodes.size(); ++i) s.out_channels = checked::add(s.out_channels, shape_of(g, group.nodes[i]).out_channels);
  return s;
}

/// A convolution of a group, and the value of its result.
struct group_member {
  model::vertex node = 0;
  std::uint32_t value = 0;
  interval channels;  ///< of the group's output channels
};
/// What the lowering of a convolution or group begins with.
struct grouped_convolution {
  convolution_shape sizes;
  std::uint32_t x = 0;                        ///< value
  std::vector<group_member> members;          ///< consecutive channels
  std::vector<model::constant_ptr> weights;   ///< of each member
  model::constant_ptr bias;                   ///< one value an output channel, zeros where a member has none; null where none has one
  std::string name, op;                       ///< the members', joined by "+"
};
/// `x`: the value that all read; `result(tensor)`: the value of a result.
template <class Result>
[[nodiscard]] grouped_convolution grouped(const context& c, const convolution_group& group, std::uint32_t x, const Result& result) {
  grouped_convolution g;
  g.sizes = shape_of(c.model, group), g.x = x;
  std::vector<float> biases;
  std::int64_t channel = 0;
  for (const auto v : group.nodes) {
    const auto& n = c.model.at(v);
    const auto end = channel + shape_of(c.model, v).out_channels;
    g.members.push_back({v, result(n.outputs[0]), {channel, end}});
    g.weights.push_back(c.model.at(n.inputs[1]).data);
    if (n.inputs.size() > 2 && n.inputs[2].valid()) {
      g.bias = c.model.at(n.inputs[2]).data;
      biases.insert(biases.end(), g.bias->floats().begin(), g.bias->floats().end());
    }
    biases.resize(static_cast<std::size_t>(end));
    channel = end;
    g.name += (g.name.empty() ? "" : "+") + n.from.node, g.op += (g.op.empty() ? "" : "+") + name(n.op);
  }
  if (group.nodes.size() > 1 && g.bias) g.bias = std::make_shared<const model::constant>(model::constant{std::move(biases)});
  return g;
}

/// Channels of consecutive groups that share one matrix, block-diagonally where they are several.
struct channel_block {
  std::int64_t first_group = 0, groups = 1;
};

/// Weight matrix of a block: rows in the order (kernel row, kernel column, channel of the block), columns are its output channels.
[[nodiscard]] inline logical_matrix window_matrix(const convolution_shape& s, const channel_block& block, const model::constant_ptr& weights) {
  const std::int64_t inputs = s.group_inputs(), outputs = s.group_outputs(), taps = s.taps();
  logical_matrix m{taps * block.groups * inputs, block.groups * outputs, {weights}, {}};
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t g = 0; g < block.groups; ++g)
      m.blocks.push_back({0, (tap * block.groups + g) * inputs, g * outputs, inputs, outputs,
                          (block.first_group + g) * outputs * inputs * taps + tap, taps, inputs * taps});
  return m;
}

/// Pixels of a kernel row that `windows` neighbouring windows reach together.
[[nodiscard]] inline std::int64_t shared_pixels(const convolution_shape& s, std::int64_t windows) {
  return (windows - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
}
/// Toeplitz matrix of neighbouring windows: rows in the order (kernel row, pixel that any window reaches, channel), columns (window, output channel).
[[nodiscard]] inline logical_matrix toeplitz_matrix(const convolution_shape& s, std::int64_t windows, const model::constant_ptr& weights) {
  const std::int64_t pixels = shared_pixels(s, windows), taps = s.taps();
  logical_matrix m{s.kernel_h * pixels * s.channels, windows * s.out_channels, {weights}, {}};
  for (std::int64_t r = 0; r < s.kernel_h; ++r)
    for (std::int64_t i = 0; i < windows; ++i)
      for (std::int64_t q = 0; q < s.kernel_w; ++q)
        m.blocks.push_back({0, (r * pixels + i * s.stride_w + q * s.dilation_w) * s.channels, i * s.out_channels, s.channels, s.out_channels,
                            r * s.kernel_w + q, taps, s.channels * taps});
  return m;
}

/// Groups are packed into one matrix while its rows fit a crossbar and its columns a core: one product then serves all of them.
[[nodiscard]] inline std::vector<channel_block> pack_groups(const convolution_shape& s, const program::geometry& chip, bool bias_row) {
  const std::int64_t rows = chip.crossbar_rows - (bias_row ? 1 : 0);
  const std::int64_t together = std::max<std::int64_t>(1, std::min(rows / s.k(), checked::multiply(chip.weight_columns, chip.crossbars_per_core) / s.c()));
  std::vector<channel_block> blocks;
  for (std::int64_t g = 0; g < s.groups; g += together) blocks.push_back({g, std::min(together, s.groups - g)});
  return blocks;
}

/// A convolution (or a group) to be lowered: sizes, where its data lies, and how its window kernel is to be made.
struct window_plan {
  convolution_shape sizes;
  std::uint32_t x = 0;                 ///< value; strips or dense
  std::vector<group_member> outputs;   ///< strips or dense where it is one, else strips
  std::function<logical_matrix(const channel_block&)> matrix;
  model::constant_ptr bias;    ///< one value an output channel; null for none
  std::string name, op, strategy;
  std::int64_t pack = 1;       ///< neighbouring windows of a row that share a product
  bool shared = false;         ///< they share the pixels that they have in common (`matrix` is their Toeplitz matrix); else block-diagonally
};

/// Stretches of an output row, whole products each, so that one takes about as long as the options ask of a tile.
[[nodiscard]] inline std::vector<interval> cut_row(const context& c, const convolution_shape& s, std::int64_t pack, const std::vector<logical_matrix>& matrices) {
  const std::int64_t products = checked::divide_up(s.out_width, pack);
  double one = 0;
  for (const auto& m : matrices) one += c.product_time(checked::divide_up(m.rows, c.chip.crossbar_rows), m.columns);
  const auto wanted = static_cast<std::int64_t>(one * static_cast<double>(products) / c.tile_time(s.out_height) + 0.5);
  const std::int64_t least = 2 * one > c.tile_time(s.out_height) ? 1 : 2;  // products of a stretch
  const std::int64_t count = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, products / least));
  std::vector<interval> result;
  for (std::int64_t i = 0; i < count; ++i)
    result.push_back({products * i / count * pack, std::min(s.out_width, products * (i + 1) / count * pack)});
  return result;
}

/// Computes for a convolution whose windows are gathered as they are needed: one image row a tile, one compute a part (as
/// many crossbars as a core has); parts that cut a matrix by rows accumulate.
///
/// Input rows are read from strips where they lie; from a dense image every needed row is first gathered into W × C.
/// A dense result is gathered back channel by channel at the end of the row. Of a group every product gives all members' channels.
/// Source: LOWERING, "Convolutions". Requires: several outputs are strips, fit one core, and have one window a product.
inline void lower_windows(context& c, model::vertex v, const window_plan& how) {
  const convolution_shape& s = how.sizes;
  const bool has_bias = how.bias != nullptr;
  const bool strip_in = c.out.values()[how.x].layout == layout::physical::nhwc_row_strip;
  const bool several = how.outputs.size() > 1;
  const bool strip_out = std::all_of(how.outputs.begin(), how.outputs.end(), [&](const auto& o) { return c.out.values()[o.value].layout == layout::physical::nhwc_row_strip; });

  // Matrices, one a block; the bias is a further crossbar row where one is free, else it is added per window.
  const auto blocks = pack_groups(s, c.chip, has_bias);
  std::vector<logical_matrix> matrices;
  std::vector<std::int64_t> inputs;
  std::vector<bool> bias_inside;
  for (const auto& block : blocks) {
    auto m = how.shared ? how.matrix(block) : block_diagonal(how.matrix(block), how.pack);
    inputs.push_back(m.rows);
    bias_inside.push_back(has_bias && m.rows % c.chip.crossbar_rows != 0);
    if (bias_inside.back())
      append_bias_row(m, how.bias, block.first_group * s.c(), block.groups * s.c(), how.pack);
    matrices.push_back(std::move(m));
  }

  // Windows that share a product stay together, whatever the size of parts: what they give is not cut by columns.
  const auto parts = split_for_capacity(matrices, c.chip, how.pack > 1 ? c.chip.crossbars_per_core : c.part_crossbars());
  ensure(!several || (strip_out && parts.size() == 1 && how.pack == 1), "convolutions lowered together: rows of one core, a window a product", how.name);

  // Rows that take long are cut into stretches of whole products, which share the weights.
  std::vector<interval> stretches{{0, s.out_width}};
  if (strip_in && strip_out) stretches = cut_row(c, s, how.pack, matrices);

  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto family = c.new_family();
    for (std::size_t stretch = 0; stretch < stretches.size(); ++stretch) {
      const auto& part = parts[p];
      const auto& outs = stretches[stretch];
      kernel_builder k(how.name + (parts.size() > 1 ? "." + std::to_string(p) : "") + (stretches.size() > 1 ? "[" + std::to_string(stretch) + "]" : ""),
                       {s.batch, s.out_height});
      k.current().most = {1, 1};
      k.current().family = family;
      const affine n = tile_begin(0), oh = tile_begin(1);

      // Which kernel rows and channels the part needs.
      interval kernel_rows{s.kernel_h, 0}, channels{s.channels, 0}, out_channels{s.out_channels, 0};
      bool accumulates = false;
      for (const auto& piece : part) {
        const auto& block = blocks[piece.matrix];
        const std::int64_t row = s.kernel_w * block.groups * s.group_inputs();
        const std::int64_t first = piece.slices.begin * c.chip.crossbar_rows;
        const std::int64_t last = std::min(inputs[piece.matrix], piece.slices.end * c.chip.crossbar_rows);
        const bool whole_window = how.pack > 1 || first >= last;
        const interval needed = whole_window ? interval{0, s.kernel_h} : interval{first / row, checked::divide_up(last, row)};
        kernel_rows = {std::min(kernel_rows.begin, needed.begin), std::max(kernel_rows.end, needed.end)};
        const std::int64_t c0 = block.first_group * s.group_inputs(), o0 = block.first_group * s.c();
        channels = {std::min(channels.begin, c0), std::max(channels.end, c0 + block.groups * s.group_inputs())};
        const std::int64_t out0 = how.pack > 1 ? 0 : piece.columns.begin;
        const std::int64_t out1 = how.pack > 1 ? block.groups * s.c() : piece.columns.end;
        out_channels = {std::min(out_channels.begin, o0 + out0), std::max(out_channels.end, o0 + out1)};
        accumulates = accumulates || piece.slices.size() < checked::divide_up(matrices[piece.matrix].rows, c.chip.crossbar_rows);
      }
      const affine h0 = oh * s.stride_h - s.pad_top;
      const std::int64_t w0 = outs.begin * s.stride_w - s.pad_left, padded = (outs.size() - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
      // A dense image is read inside its bounds only: rows are padded in the gathered copy.
      const interval columns = strip_in ? interval{w0, w0 + padded} : interval{0, s.width};
      const auto in = k.reads(how.x, {n, channels.begin, h0 + kernel_rows.begin * s.dilation_h, columns.begin},
                              {n + tile_extent(0), channels.end, h0 + (kernel_rows.end - 1) * s.dilation_h + tile_extent(1), columns.end});
      std::vector<std::uint32_t> out;  // access a tensor
      for (const auto& o : how.outputs) {
        const auto own = several ? interval{0, o.channels.size()} : out_channels;
        out.push_back(k.writes(o.value, {n, own.begin, oh, outs.begin}, {n + tile_extent(0), own.end, oh + tile_extent(1), outs.end},
                               accumulates ? access_mode::accumulate : access_mode::assign));
      }

      // Dense input: the needed rows, W × C with their horizontal padding.
      std::uint32_t rows = 0;
      const std::int64_t row_elements = padded * channels.size();
      if (!strip_in) {
        rows = k.scratch("rows", kernel_rows.size() * row_elements, true);
        k.prologue([&] { k.fill(k.in(rows), 0, kernel_rows.size() * row_elements); });
        const std::int64_t first = std::max<std::int64_t>(0, -w0), last = std::min(padded, s.width - w0);
        for (std::int64_t r = kernel_rows.begin; r < kernel_rows.end; ++r) {
          const affine row_start = (r - kernel_rows.begin) * row_elements;
          if (last > first)
            k.loop(last - first, [&](const affine& i) {
              auto& gather = k.gather(k.in(rows, row_start + (i + first) * channels.size()),
                                      k.at(in, {n, channels.begin, h0 + r * s.dilation_h, i + (w0 + first)}), channels.size(), 1, 1);
              gather.when_outside = outside::zero;
            });
        }
      }
      const auto source = [&](std::int64_t r, const affine& w, std::int64_t channel) -> operand {
        if (strip_in) return k.at(in, {n, channel, h0 + r * s.dilation_h, w + w0});
        return k.in(rows, (r - kernel_rows.begin) * row_elements + w * channels.size() + (channel - channels.begin));
      };
      std::uint32_t result_row = 0;
      if (!strip_out) result_row = k.scratch("result", s.out_width * out_channels.size());
      const auto target = [&](const affine& ow, std::int64_t channel) -> operand {
        if (strip_out) return k.at(out[0], {n, channel, oh, ow + outs.begin});
        return k.in(result_row, ow * out_channels.size() + (channel - out_channels.begin));
      };

      for (const auto& piece : part) {
        const auto& block = blocks[piece.matrix];
        const std::int64_t block_inputs = block.groups * s.group_inputs(), c0 = block.first_group * s.group_inputs();
        const std::int64_t window = s.taps() * block_inputs;
        const bool contiguous = s.dilation_w == 1 && block_inputs == channels.size() && (!strip_in || block_inputs == s.channels);
        product_emitter product(k, c.chip, matrices[piece.matrix], inputs[piece.matrix], piece);

        // The bias, where it is no crossbar row: the piece with the first slice adds it.
        std::optional<operand> bias;
        if (has_bias && !bias_inside[piece.matrix] && piece.slices.begin == 0) {
          const std::int64_t per_window = block.groups * s.c();
          std::vector<float> repeated;
          for (std::int64_t i = 0; i < how.pack; ++i)
            for (std::int64_t j = 0; j < per_window; ++j)
              repeated.push_back(how.bias->floats().at(static_cast<std::size_t>(block.first_group * s.c() + j)));
          const auto value = c.constant(k.current().name + ".bias", {how.pack * per_window}, std::move(repeated));
          const auto access = k.reads(value, {piece.columns.begin}, {piece.columns.end});
          bias = k.at(access, {piece.columns.begin});
        }

        // Runs of `windows` windows from position `ow` on.
        const auto runs_of = [&](const affine& ow, std::int64_t windows) {
          std::vector<input_run> runs;
          if (how.shared) {
            const std::int64_t row = shared_pixels(s, how.pack) * s.channels;
            for (std::int64_t r = 0; r < s.kernel_h; ++r)
              runs.push_back({r * row, shared_pixels(s, windows) * s.channels, source(r, ow * s.stride_w, 0), 1, strip_in ? outside::zero : outside::never});
            return runs;
          }
          for (std::int64_t i = 0; i < windows; ++i)
            for (std::int64_t r = kernel_rows.begin; r < kernel_rows.end; ++r)
              for (std::int64_t q = 0; q < (contiguous ? 1 : s.kernel_w); ++q) {
                const std::int64_t first = i * window + (r * s.kernel_w + q) * block_inputs;
                const auto from = source(r, (ow + i) * s.stride_w + q * s.dilation_w, c0);
                runs.push_back({first, contiguous ? s.kernel_w * block_inputs : block_inputs, from, 1, strip_in ? outside::zero : outside::never});
              }
          return runs;
        };
        const std::int64_t full = outs.size() / how.pack, rest = outs.size() % how.pack;
        const std::int64_t o0 = block.first_group * s.c() + (how.pack > 1 ? 0 : piece.columns.begin);
        const double time = c.product_time(piece.slices.size(), piece.columns.size());
        if (several) {
          k.repeat(full, time, [&](const affine& ow) {
            std::vector<product_piece> pieces;
            for (std::size_t i = 0; i < out.size(); ++i)
              pieces.push_back({k.at(out[i], {n, 0, oh, ow + outs.begin}), how.outputs[i].channels.begin, how.outputs[i].channels.size()});
            product.emit(runs_of(ow, 1), pieces, bias);
          });
          continue;
        }
        if (full > 0) k.repeat(full, time, [&](const affine& i) { product.emit(runs_of(i * how.pack, how.pack), target(i * how.pack, o0), bias); });
        if (rest > 0) product.emit(runs_of(full * how.pack, rest), target(full * how.pack, o0), bias, rest * block.groups * s.c());
      }
      if (!strip_out)
        k.loop(out_channels.size(), [&](const affine& i) {
          k.gather(k.at(out[0], {n, i + out_channels.begin, oh, 0}), k.in(result_row, i), s.out_width, out_channels.size());
        });
      c.add(v, k, how.strategy, how.op);
    }
  }
}

/// The plan of a convolution node or group in the layouts chosen for it.
[[nodiscard]] inline window_plan plan_windows(context& c, const convolution_group& nodes, std::string strategy, std::int64_t pack = 1) {
  const auto first = nodes.nodes.front();
  const auto x = c.operand(c.model.at(first).inputs[0], c.chosen(first).operands[0]);
  auto group = grouped(c, nodes, x, [&](model::tensor_id t) { return c.result(t); });
  window_plan plan;
  plan.sizes = group.sizes, plan.x = x, plan.outputs = group.members, plan.bias = group.bias, plan.name = std::move(group.name), plan.op = std::move(group.op);
  std::vector<std::pair<convolution_shape, model::constant_ptr>> members;
  for (std::size_t i = 0; i < nodes.nodes.size(); ++i) members.emplace_back(shape_of(c.model, nodes.nodes[i]), group.weights[i]);
  plan.matrix = [members](const channel_block& block) {
    auto all = window_matrix(members.front().first, block, members.front().second);
    for (std::size_t i = 1; i < members.size(); ++i)
      append_columns(all, window_matrix(members[i].first, block, members[i].second));
    return all;
  };
  plan.strategy = std::move(strategy);
  plan.pack = pack;
  return plan;
}

/// Explicit im2col: all windows of a convolution as the pixels of an image of strips with groups × k channels, in the order
/// (group, kernel row, kernel column, channel of the group). Lanes (n, output row). Returns the value.
[[nodiscard]] inline std::uint32_t lower_im2col(context& c, model::vertex v, const window_plan& plan) {
  const convolution_shape& s = plan.sizes;
  const auto patches = c.intermediate(plan.name + ".im2col", {s.batch, s.groups * s.k(), s.out_height, s.out_width}, layout::physical::nhwc_row_strip);
  const bool strip_in = c.out.values()[plan.x].layout == layout::physical::nhwc_row_strip;
  kernel_builder k(plan.name + ".im2col", {s.batch, s.out_height});
  k.current().most = {1, 1};
  const affine n = tile_begin(0), oh = tile_begin(1), h0 = oh * s.stride_h - s.pad_top;
  const auto in = k.reads(plan.x, {n, 0, h0, 0}, {tile_end(0), s.channels, h0 + (s.kernel_h - 1) * s.dilation_h + tile_extent(1), s.width});
  const auto out = k.writes(patches, {n, 0, oh, 0}, {tile_end(0), s.groups * s.k(), tile_end(1), s.out_width});
  for (std::int64_t q = 0; q < s.kernel_w; ++q) {
    // Output columns whose tap q lies inside the image: [first, last).
    const std::int64_t shift = q * s.dilation_w - s.pad_left;
    const std::int64_t first = std::clamp<std::int64_t>(shift >= 0 ? 0 : checked::divide_up(-shift, s.stride_w), 0, s.out_width);
    const std::int64_t last = std::clamp<std::int64_t>(shift >= s.width ? 0 : checked::divide_up(s.width - shift, s.stride_w), first, s.out_width);
    for (std::int64_t r = 0; r < s.kernel_h; ++r)
      for (std::int64_t g = 0; g < s.groups; ++g) {
        const std::int64_t row = g * s.k() + (r * s.kernel_w + q) * s.group_inputs();
        const auto zero = [&](std::int64_t from, std::int64_t to) {
          if (to > from) k.loop(to - from, [&](const affine& i) { k.fill(k.at(out, {n, row, oh, i + from}), 0, s.group_inputs()); });
        };
        zero(0, first);
        if (last > first)
          k.loop(last - first, [&](const affine& i) {
            const operand to = k.at(out, {n, row, oh, i + first});
            const operand from = k.at(in, {n, g * s.group_inputs(), h0 + r * s.dilation_h, i * s.stride_w + (first * s.stride_w + shift)});
            (strip_in ? k.copy(to, from, s.group_inputs()) : k.gather(to, from, s.group_inputs(), 1, 1)).when_outside = outside::zero;
          });
        zero(last, s.out_width);
      }
  }
  c.add(v, k, "im2col");
  return patches;
}

/// The contraction that follows lower_im2col: a 1 × 1 convolution of the patches.
[[nodiscard]] inline window_plan plan_contraction(context& c, model::vertex v, std::uint32_t patches, window_plan plan) {
  const convolution_shape s = plan.sizes;
  const auto weights = c.model.at(c.model.at(v).inputs[1]).data;
  plan.x = patches;
  plan.sizes = {s.batch, s.groups * s.k(), s.out_height, s.out_width, s.out_channels, s.out_height, s.out_width,
                1, 1, 1, 1, 1, 1, 0, 0, s.groups};
  plan.matrix = [s, weights](const channel_block& block) {
    logical_matrix all{block.groups * s.k(), block.groups * s.c(), {weights}, {}};
    for (std::int64_t g = 0; g < block.groups; ++g)
      for (std::int64_t tap = 0; tap < s.taps(); ++tap)
        all.blocks.push_back({0, g * s.k() + tap * s.group_inputs(), g * s.c(), s.group_inputs(), s.c(),
                              (block.first_group + g) * s.c() * s.k() + tap, s.taps(), s.k()});
    return all;
  };
  return plan;
}

}  // namespace raptor::lowering
