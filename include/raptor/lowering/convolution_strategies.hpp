#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "raptor/lowering/convolution.hpp"
#include "raptor/lowering/depthwise_vector.hpp"
#include "raptor/lowering/kernel_in_columns.hpp"

/// The convolution strategies of LOWERING, one type each. A strategy says whether it applies (and why not), what it costs
/// and lowers a node:
///
///     struct my_strategy {
///       static constexpr const char* name = "my-strategy";
///       std::optional<std::string> refuses(const convolution_shape&, const program::geometry&, const lowering_options&) const;
///       double cost(const convolution_shape&, const context&) const;  // picoseconds of one core for all windows
///       void lower(context&, model::vertex) const;  // or (context&, const convolution_group&), where it can lower several together (siblings.hpp), and
///       static bool together(const convolution_shape&, const context&);  // then says whether it can, by the sizes of all
///     };
/// A list of strategies is a std::tuple; policies | with<convolution_slot>(…) takes a user's own.
namespace raptor::lowering {

namespace detail {

[[nodiscard]] inline std::string sizes_text(const convolution_shape& s, const program::geometry& chip) {
  return "k = " + std::to_string(s.k()) + ", c = " + std::to_string(s.c()) + ", crossbar " + std::to_string(chip.crossbar_rows) + " x " +
         std::to_string(chip.weight_columns);
}
[[nodiscard]] inline bool rows_fit(const convolution_shape& s, const program::geometry& chip) { return s.k() <= chip.crossbar_rows; }
[[nodiscard]] inline bool columns_fit(const convolution_shape& s, const program::geometry& chip) { return s.c() <= chip.weight_columns; }
[[nodiscard]] inline bool is_depthwise(const convolution_shape& s) { return s.groups == s.channels && s.groups > 1; }

/// Windows of one row that share a crossbar block-diagonally: max(1, X / max(k, c)), at most a row.
[[nodiscard]] inline std::int64_t windows_together(const convolution_shape& s, const program::geometry& chip) {
  const auto pack = std::min(chip.crossbar_rows / s.k(), chip.weight_columns / s.c());
  return std::clamp<std::int64_t>(pack, 1, std::max<std::int64_t>(1, s.out_width));
}

/// Picoseconds of one core for all windows of a window kernel with `pack` windows a product.
[[nodiscard]] inline double window_cost(const convolution_shape& s, const context& c, std::int64_t pack) {
  const auto packed = pack_groups(s, c.chip, true);
  const auto together = packed.front().groups, blocks_count = static_cast<std::int64_t>(packed.size());
  const auto blocks = static_cast<double>(blocks_count);
  const std::int64_t inputs = together * s.k(), outputs = pack * together * s.c();
  const auto slices = checked::divide_up(pack * inputs, c.chip.crossbar_rows);
  const bool contiguous = s.dilation_w == 1 && together == s.groups;
  const double runs = static_cast<double>(contiguous ? s.kernel_h : s.taps());
  const double one = blocks * (static_cast<double>(pack) * runs * static_cast<double>(c.time(isa::opcode::lmv, contiguous ? inputs / s.kernel_h : inputs / s.taps())) +
                               static_cast<double>(slices) * static_cast<double>(c.time(isa::opcode::mvmul, outputs)) +
                               static_cast<double>(slices - 1) * static_cast<double>(c.time(isa::opcode::vvadd, outputs)) +
                               static_cast<double>(c.time(isa::opcode::lmv, outputs)));
  // Slices beyond one core: a partial row crosses to the next core, which adds it.
  const auto crossbars = slices * checked::divide_up(outputs, c.chip.weight_columns);
  const auto crossings = static_cast<double>(checked::divide_up(crossbars, c.part_crossbars()) - 1);
  const auto row = s.out_width * s.c();
  const double crossing = 2 * static_cast<double>(c.time(isa::opcode::send, row)) + static_cast<double>(c.time(isa::opcode::vvadd, row));
  const double products = static_cast<double>(checked::divide_up(s.out_width, pack) * s.batch * s.out_height), work = one * products;
  const double energy = products * blocks * static_cast<double>(slices) * c.product_price(outputs);
  const double all = blocks * static_cast<double>(crossbars), parts = std::max(1.0, all / static_cast<double>(c.part_crossbars()));
  return c.resource_cost(parts, work / parts, all / parts, energy / parts) + crossings * crossing * static_cast<double>(s.batch * s.out_height);
}
/// Picoseconds of one core to write all patches out and move them once.
[[nodiscard]] inline double im2col_cost(const convolution_shape& s, const context& c) {
  return static_cast<double>(s.positions() * s.taps() * s.groups) * static_cast<double>(c.time(isa::opcode::vmv, s.group_inputs())) +
         static_cast<double>(s.batch * s.out_height) * static_cast<double>(c.time(isa::opcode::lmv, s.out_width * s.groups * s.k()));
}

/// Do all windows of a convolution of one group fit one part, a window a product?
[[nodiscard]] inline bool one_part(const convolution_shape& s, const context& c) {
  return checked::divide_up(s.k(), c.chip.crossbar_rows) * checked::divide_up(s.c(), c.chip.weight_columns) <= c.part_crossbars();
}

}  // namespace detail

/// Depthwise: rows are the taps of as many channels as fit, block-diagonal; one mvmul gives all of them.
struct depthwise {
  static constexpr const char* name = "depthwise";
  [[nodiscard]] std::optional<std::string> refuses(const convolution_shape& s, const program::geometry& chip, const lowering_options&) const {
    if (!detail::is_depthwise(s)) return "group = " + std::to_string(s.groups) + " is not the number of input channels, " + std::to_string(s.channels);
    if (!detail::rows_fit(s, chip)) return "the taps of one channel do not fit a crossbar: " + detail::sizes_text(s, chip);
    return std::nullopt;
  }
  [[nodiscard]] double cost(const convolution_shape& s, const context& c) const { return detail::window_cost(s, c, 1); }
  void lower(context& c, model::vertex v) const { lower_windows(c, v, plan_windows(c, v, name)); }
};

/// Depthwise on the vector unit: products and sums over stretches of rows.
struct depthwise_vector {
  static constexpr const char* name = "depthwise-vector";
  [[nodiscard]] std::optional<std::string> refuses(const convolution_shape& s, const program::geometry& chip, const lowering_options&) const {
    if (!detail::is_depthwise(s)) return "group = " + std::to_string(s.groups) + " is not the number of input channels, " + std::to_string(s.channels);
    if (detail::depthwise_crossbars(s, chip, 1) > chip.crossbars_per_core) return "a core has too few crossbars for " + std::to_string(s.taps()) + " taps";
    if (s.c() != 1) return "every channel has " + std::to_string(s.c()) + " outputs, not one";
    return std::nullopt;
  }
  [[nodiscard]] double cost(const convolution_shape& s, const context& c) const { return depthwise_vector_cost(s, c); }
  void lower(context& c, model::vertex v) const { lower_depthwise_vector(c, v, name); }
};

/// All patches materialized; `pack` positions share one crossbar block-diagonally.
struct packed_im2col {
  static constexpr const char* name = "packed-im2col";
  [[nodiscard]] std::optional<std::string> refuses(const convolution_shape& s, const program::geometry& chip, const lowering_options& options) const {
    if (s.groups != 1) return "it packs windows of one group, the convolution has " + std::to_string(s.groups);
    if (detail::windows_together(s, chip) < 2) return "two windows do not fit one crossbar: " + detail::sizes_text(s, chip);
    if (s.positions() * s.k() > options.im2col_max_elements)
      return "im2col has " + std::to_string(s.positions() * s.k()) + " elements, --pim-conv-im2col-max-elements allows " + std::to_string(options.im2col_max_elements);
    return std::nullopt;
  }
  [[nodiscard]] double cost(const convolution_shape& s, const context& c) const {
    return detail::window_cost(s, c, detail::windows_together(s, c.chip)) + detail::im2col_cost(s, c);
  }
  void lower(context& c, model::vertex v) const {
    const auto plan = plan_windows(c, v, name, detail::windows_together(shape_of(c.model, v), c.chip));
    const auto patches = lower_im2col(c, v, plan);
    lower_windows(c, v, plan_contraction(c, v, patches, plan));
  }
};

/// As packed-im2col, but patches are gathered as they are needed.
struct streamed_packed {
  static constexpr const char* name = "streamed-packed";
  [[nodiscard]] std::optional<std::string> refuses(const convolution_shape& s, const program::geometry& chip, const lowering_options&) const {
    if (s.groups != 1) return "it packs windows of one group, the convolution has " + std::to_string(s.groups);
    if (detail::windows_together(s, chip) < 2) return "two windows do not fit one crossbar: " + detail::sizes_text(s, chip);
    return std::nullopt;
  }
  [[nodiscard]] double cost(const convolution_shape& s, const context& c) const {
    return detail::window_cost(s, c, detail::windows_together(s, c.chip));
  }
  void lower(context& c, model::vertex v) const {
    lower_windows(c, v, plan_windows(c, v, name, detail::windows_together(shape_of(c.model, v), c.chip)));
  }
};

/// One patch, one mvmul.
struct streamed_patch {
  static constexpr const char* name = "streamed-patch";
  [[nodiscard]] std::optional<std::string> refuses(const convolution_shape& s, const program::geometry& chip, const lowering_options&) const {
    if (!detail::rows_fit(s, chip) || !detail::columns_fit(s, chip)) return "the window does not fit one crossbar: " + detail::sizes_text(s, chip);
    return std::nullopt;
  }
  [[nodiscard]] double cost(const convolution_shape& s, const context& c) const { return detail::window_cost(s, c, 1); }
  [[nodiscard]] static bool together(const convolution_shape& s, const context& c) { return detail::one_part(s, c); }
  void lower(context& c, const convolution_group& g) const { lower_windows(c, g.nodes.front(), plan_windows(c, g, name)); }
};

/// The same patch drives one array group that holds all column tiles (several parts where they do not fit one core).
struct output_channel_tiled {
  static constexpr const char* name = "output-channel-tiled";
  [[nodiscard]] std::optional<std::string> refuses(const convolution_shape& s, const program::geometry& chip, const lowering_options&) const {
    if (!detail::rows_fit(s, chip) || detail::columns_fit(s, chip)) return "it needs k within and c beyond one crossbar: " + detail::sizes_text(s, chip);
    return std::nullopt;
  }
  [[nodiscard]] double cost(const convolution_shape& s, const context& c) const { return detail::window_cost(s, c, 1); }
  [[nodiscard]] static bool together(const convolution_shape& s, const context& c) { return detail::one_part(s, c); }
  void lower(context& c, const convolution_group& g) const { lower_windows(c, g.nodes.front(), plan_windows(c, g, name)); }
};

/// Row blocks of the patch, one mvmul each, partial sums added.
struct input_k_tiled {
  static constexpr const char* name = "input-k-tiled";
  [[nodiscard]] std::optional<std::string> refuses(const convolution_shape& s, const program::geometry& chip, const lowering_options&) const {
    if (detail::rows_fit(s, chip) || !detail::columns_fit(s, chip)) return "it needs k beyond and c within one crossbar: " + detail::sizes_text(s, chip);
    return std::nullopt;
  }
  [[nodiscard]] double cost(const convolution_shape& s, const context& c) const { return detail::window_cost(s, c, 1); }
  [[nodiscard]] static bool together(const convolution_shape& s, const context& c) { return detail::one_part(s, c); }
  void lower(context& c, const convolution_group& g) const { lower_windows(c, g.nodes.front(), plan_windows(c, g, name)); }
};

/// Row blocks and column tiles.
struct tiled_2d {
  static constexpr const char* name = "tiled-2d";
  [[nodiscard]] std::optional<std::string> refuses(const convolution_shape& s, const program::geometry& chip, const lowering_options&) const {
    if (detail::rows_fit(s, chip) || detail::columns_fit(s, chip)) return "it needs k and c beyond one crossbar: " + detail::sizes_text(s, chip);
    return std::nullopt;
  }
  [[nodiscard]] double cost(const convolution_shape& s, const context& c) const { return detail::window_cost(s, c, 1); }
  [[nodiscard]] static bool together(const convolution_shape& s, const context& c) { return detail::one_part(s, c); }
  void lower(context& c, const convolution_group& g) const { lower_windows(c, g.nodes.front(), plan_windows(c, g, name)); }
};

/// Explicit im2col, then a contraction: the compatibility baseline. Always applies.
struct legacy {
  static constexpr const char* name = "legacy";
  [[nodiscard]] std::optional<std::string> refuses(const convolution_shape&, const program::geometry&, const lowering_options&) const { return std::nullopt; }
  [[nodiscard]] double cost(const convolution_shape& s, const context& c) const { return detail::window_cost(s, c, 1) + detail::im2col_cost(s, c); }
  void lower(context& c, model::vertex v) const {
    const auto plan = plan_windows(c, v, name);
    const auto patches = lower_im2col(c, v, plan);
    lower_windows(c, v, plan_contraction(c, v, patches, plan));
  }
};

/// Neighbouring windows share the pixels that they have in common: rows are the pixels of all of them, columns windows × output channels.
struct toeplitz {
  static constexpr const char* name = "toeplitz";
  [[nodiscard]] std::optional<std::string> refuses(const convolution_shape& s, const program::geometry& chip, const lowering_options&) const {
    if (s.groups != 1) return "it packs windows of one group, the convolution has " + std::to_string(s.groups);
    if (s.out_width < 2 || crossbars(s, chip, 2) > chip.crossbars_per_core) return "two windows do not fit a core: " + detail::sizes_text(s, chip);
    return std::nullopt;
  }
  [[nodiscard]] double cost(const convolution_shape& s, const context& c) const { return cost_of(s, c, windows(s, c)); }
  void lower(context& c, model::vertex v) const {
    const auto s = shape_of(c.model, v);
    auto plan = plan_windows(c, v, name, windows(s, c));
    const auto weights = c.model.at(c.model.at(v).inputs[1]).data;
    plan.shared = true;
    plan.matrix = [s, weights, together = plan.pack](const channel_block&) { return toeplitz_matrix(s, together, weights); };
    lower_windows(c, v, plan);
  }

 private:
  [[nodiscard]] static std::int64_t slices(const convolution_shape& s, const program::geometry& chip, std::int64_t windows) {
    return checked::divide_up(s.kernel_h * shared_pixels(s, windows) * s.channels + 1, chip.crossbar_rows);
  }
  [[nodiscard]] static std::int64_t crossbars(const convolution_shape& s, const program::geometry& chip, std::int64_t windows) {
    return slices(s, chip, windows) * checked::divide_up(windows * s.out_channels, chip.weight_columns);
  }
  [[nodiscard]] static double cost_of(const convolution_shape& s, const context& c, std::int64_t windows) {
    const auto n = slices(s, c.chip, windows);
    const auto time = [&](isa::opcode op, std::int64_t length) { return static_cast<double>(c.time(op, length)); };
    const double one = static_cast<double>(n) * time(isa::opcode::mvmul, windows * s.out_channels) + static_cast<double>(n - 1) * time(isa::opcode::vvadd, windows * s.out_channels) +
                       static_cast<double>(s.kernel_h) * time(isa::opcode::lmv, shared_pixels(s, windows) * s.channels) + time(isa::opcode::lmv, windows * s.out_channels);
    const auto products = static_cast<double>(checked::divide_up(s.out_width, windows) * s.batch * s.out_height);
    const double energy = products * static_cast<double>(n) * c.product_price(windows * s.out_channels);
    return c.resource_cost(1, one * products, static_cast<double>(crossbars(s, c.chip, windows)), energy);
  }
  /// The number of windows of the least cost.
  [[nodiscard]] static std::int64_t windows(const convolution_shape& s, const context& c) {
    std::int64_t best = 2;
    double least = std::numeric_limits<double>::max();
    const std::int64_t most = std::max(c.part_crossbars(), crossbars(s, c.chip, 2));
    for (std::int64_t n = 2; n <= s.out_width && crossbars(s, c.chip, n) <= most; ++n) {
      const double cost = cost_of(s, c, n);
      if (cost < least) best = n, least = cost;
    }
    return best;
  }
};

/// Channels of a run of input pixels in the rows, kernel positions × output channels in the columns.
struct kernel_in_columns {
  static constexpr const char* name = "kernel-in-columns";
  [[nodiscard]] std::optional<std::string> refuses(const convolution_shape& s, const program::geometry& chip, const lowering_options&) const {
    const auto plan = plan_columns(s, chip);
    if (plan.parts.empty()) return plan.why;
    return std::nullopt;
  }
  [[nodiscard]] double cost(const convolution_shape& s, const context& c) const { return columns_cost(s, c); }
  [[nodiscard]] static bool together(const convolution_shape& s, const context&) { return detail::reached_once(s); }
  void lower(context& c, const convolution_group& g) const { lower_columns(c, g, name); }
};

/// The strategies that the tools offer, in order of preference among equal costs.
using default_convolution_strategies = std::tuple<depthwise, depthwise_vector, streamed_packed, streamed_patch, output_channel_tiled, input_k_tiled, tiled_2d, toeplitz, kernel_in_columns, packed_im2col, legacy>;

/// Why a node got its strategy, for the report.
struct convolution_choice {
  model::vertex node = 0;
  convolution_shape sizes;
  std::string strategy;
  double cost = 0;                                              ///< picoseconds of one core
  std::vector<std::pair<std::string, double>> candidates;      ///< all that apply
  std::vector<std::pair<std::string, std::string>> refused;    ///< and why the others do not
  std::vector<model::vertex> together{};  ///< the group that it was lowered in (siblings.hpp), itself included; `cost` is then its share. Empty: alone
};

/// Prices where the convolutions' work, each at its least cost, is divided evenly over the chip: a share is half of what a core then has to do,
/// and all crossbars together are worth as much as all cores.
template <class... Strategies>
[[nodiscard]] context::prices fair_prices(const context& c, const std::tuple<Strategies...>& strategies) {
  double sum = 0;
  for (model::vertex v = 0; v < c.model.node_count(); ++v) {
    const auto& n = c.model.at(v);
    if (!std::holds_alternative<model::convolution>(n.op) || c.model.at(n.inputs[0]).sizes.size() != 4) continue;
    const auto s = shape_of(c.model, v);
    if (s.positions() == 0 || s.k() == 0) continue;
    std::optional<double> least;
    std::apply([&](const auto&... strategy) {
      (..., (strategy.refuses(s, c.chip, c.options) ? void() : void(least = std::min(least.value_or(std::numeric_limits<double>::max()), strategy.cost(s, c)))));
    }, strategies);
    sum += least.value_or(0);
  }
  const auto cores = static_cast<double>(c.chip.core_count);
  return {sum / (2 * cores), c.options.crossbar_weight * sum / (cores * static_cast<double>(c.chip.crossbars_per_core))};
}

/// What a convolution is to be lowered by: the forced strategy, or the cheapest that applies (the first among equals).
/// Errors: unsupported, where the forced strategy does not apply (names the node and says why) or is unknown; where the
/// weights are computed at run time.
template <class... Strategies>
[[nodiscard]] convolution_choice choose_strategy(const context& c, model::vertex v, const std::tuple<Strategies...>& strategies) {
  const auto& n = c.model.at(v);
  if (!c.model.at(n.inputs[1]).is_constant() || (n.inputs.size() > 2 && n.inputs[2].valid() && !c.model.at(n.inputs[2]).is_constant()))
    throw error(error_code::unsupported, "convolution whose weights or bias are computed at run time", n.from.describe(),
                "crossbars hold constant weights: make them initializers");
  convolution_choice choice{v, shape_of(c.model, v), {}, 0, {}, {}};
  const std::string& wanted = c.options.convolution_at(n.from.node);
  bool known = wanted == "auto";
  const auto consider = [&](const auto& strategy) {
    const bool forced = wanted == strategy.name;
    known = known || forced;
    if (auto reason = strategy.refuses(choice.sizes, c.chip, c.options)) {
      if (forced)
        throw error(error_code::unsupported, std::string("convolution strategy ") + strategy.name + " does not apply: " + *reason, n.from.describe(),
                    "use --pim-conv-lowering=auto, or another strategy");
      choice.refused.emplace_back(strategy.name, *reason);
      return;
    }
    const double cost = strategy.cost(choice.sizes, c);
    choice.candidates.emplace_back(strategy.name, cost);
    if (wanted != "auto" && !forced) return;
    if (choice.strategy.empty() || cost < choice.cost) choice.strategy = strategy.name, choice.cost = cost;
  };
  std::apply([&](const auto&... strategy) { (consider(strategy), ...); }, strategies);
  if (!known) throw error(error_code::usage, "unknown convolution strategy '" + wanted + "'");
  return choice;
}

/// Lowers a convolution, or a group, by the strategy of a name.
template <class... Strategies>
void lower_by(context& c, const convolution_group& group, const std::string& strategy, const std::tuple<Strategies...>& strategies) {
  const auto lower = [&](const auto& s) {
    if (strategy != s.name) return;
    if constexpr (requires { s.lower(c, group); }) s.lower(c, group);
    else s.lower(c, group.nodes.front());
  };
  std::apply([&](const auto&... s) { (lower(s), ...); }, strategies);
}

/// Lowers a convolution by what choose_strategy says. Errors: its errors.
template <class... Strategies>
convolution_choice lower_convolution(context& c, model::vertex v, const std::tuple<Strategies...>& strategies) {
  auto choice = choose_strategy(c, v, strategies);
  if (element_count(c.model.at(c.model.at(v).outputs[0]).sizes) > 0) lower_by(c, v, choice.strategy, strategies);
  return choice;
}

}  // namespace raptor::lowering
