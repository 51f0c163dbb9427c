#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/convolution_strategies.hpp"
#include "raptor/model/graph.hpp"
#include "raptor/report/format.hpp"

/// reports/conv_lowering.txt.
namespace raptor::report {

/// The report's size is bounded whatever the model: so many convolutions are described, then counted.
inline constexpr std::size_t most_convolutions = 200;

/// LOWERING, "Chunk positions": max(1, min(limit / k, p, chunk option)), rounded down to a multiple of pack where it is
/// larger than pack.
[[nodiscard]] inline std::int64_t chunk_positions(const lowering::convolution_shape& s, std::int64_t pack, const lowering::lowering_options& options) {
  const auto positions =
      std::max<std::int64_t>(1, std::min({options.im2col_max_elements / std::max<std::int64_t>(1, s.k()), s.positions(), options.stream_chunk_positions}));
  return positions > pack ? positions / pack * pack : positions;
}

/// The other members of the group that a convolution was lowered in, by name, the first ones where they are many; empty: it was lowered alone.
[[nodiscard]] inline std::string lowered_together_with(const model::graph& g, const lowering::convolution_choice& choice, std::size_t most = 12) {
  std::string text;
  std::size_t shown = 0;
  for (const auto v : choice.together) {
    if (v == choice.node) continue;
    if (++shown <= most) text += (text.empty() ? "" : ", ") + clipped(g.at(v).from.node, 60);
  }
  return shown > most ? text + " and " + std::to_string(shown - most) + " more" : text;
}

/// How every convolution of a model was lowered, and why: sizes, the chosen strategy with its cost, the runner-up, and what
/// the strategies that do not apply said. Of one that was lowered together with others: with which, and its share of their cost; the runner-up is then
/// the best strategy for it alone. Costs are those of one core for all windows, in microseconds.
///
/// Deterministic. Cost: linear in the convolutions; at most `most` of them are described.
[[nodiscard]] inline std::string convolution_report(const model::graph& g, const std::vector<lowering::convolution_choice>& choices, const program::geometry& chip,
                                                    const lowering::lowering_options& options, std::size_t most = most_convolutions) {
  std::string text = "convolutions of " + (g.name.empty() ? std::string("the model") : clipped(g.name)) + ": " + std::to_string(choices.size()) + "\n";
  text += "crossbar " + std::to_string(chip.crossbar_rows) + " x " + std::to_string(chip.weight_columns) + ", strategy " + clipped(options.convolution) +
          ", im2col limit " + std::to_string(options.im2col_max_elements) + " elements, chunks of at most " + std::to_string(options.stream_chunk_positions) +
          " positions\n";

  std::map<std::string, std::pair<std::size_t, double>> by_strategy;
  double all = 0;
  for (const auto& c : choices) {
    auto& [count, cost] = by_strategy[c.strategy];
    ++count, cost += c.cost, all += c.cost;
  }
  if (!choices.empty()) text += "\nstrategy                convolutions   microseconds of one core\n";
  const auto row = [&](const std::string& name, std::size_t count, double cost) {
    text += left(name, 24) + right(std::to_string(count), 12) + right(microseconds(cost), 27) + "\n";
  };
  for (const auto& [name, sum] : by_strategy) row(clipped(name, 60), sum.first, sum.second);
  if (by_strategy.size() > 1) row("all", choices.size(), all);

  const auto pair = [](std::int64_t h, std::int64_t w) { return std::to_string(h) + "x" + std::to_string(w); };
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i == most) {
      text += "\n... and " + std::to_string(choices.size() - most) + " more convolutions\n";
      break;
    }
    const auto& c = choices[i];
    const auto& s = c.sizes;
    const auto pack = lowering::detail::windows_together(s, chip);
    text += "\n" + clipped(g.at(c.node).from.describe()) + "\n";
    text += "  " + std::to_string(s.batch) + "x" + std::to_string(s.channels) + "x" + pair(s.height, s.width) + " -> " + std::to_string(s.batch) + "x" +
            std::to_string(s.out_channels) + "x" + pair(s.out_height, s.out_width) + ", kernel " + pair(s.kernel_h, s.kernel_w) + ", strides " +
            pair(s.stride_h, s.stride_w);
    if (s.dilation_h != 1 || s.dilation_w != 1) text += ", dilations " + pair(s.dilation_h, s.dilation_w);
    if (s.groups != 1) text += ", groups " + std::to_string(s.groups);
    text += "\n  k = " + std::to_string(s.k()) + ", c = " + std::to_string(s.c()) + ", p = " + std::to_string(s.positions()) + ", pack = " + std::to_string(pack) +
            ", chunk = " + std::to_string(chunk_positions(s, pack, options)) + " positions\n";
    if (c.strategy.empty()) {
      text += "  chosen   none: it has no output elements\n";
      continue;
    }
    text += "  chosen   " + clipped(c.strategy) + "  " + microseconds(c.cost) + " us\n";
    const auto others = lowered_together_with(g, c);
    if (!others.empty()) text += "  together with " + others + "\n";
    const std::pair<std::string, double>* next = nullptr;
    for (const auto& candidate : c.candidates)
      if ((candidate.first != c.strategy || !others.empty()) && (next == nullptr || candidate.second < next->second)) next = &candidate;
    if (next != nullptr) text += "  next     " + clipped(next->first) + "  " + microseconds(next->second) + " us" + (others.empty() ? "" : ", alone") + "\n";
    else text += "  next     none, no other strategy applies\n";
    std::size_t shown = 0;
    for (const auto& [name, reason] : c.refused) {
      if (++shown > 12) {
        text += "  refused  ... and " + std::to_string(c.refused.size() - 12) + " more\n";
        break;
      }
      text += "  refused  " + clipped(name) + ": " + clipped(reason, 200) + "\n";
    }
  }
  return text;
}

}  // namespace raptor::report
