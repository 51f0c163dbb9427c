#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "raptor/layout/planner.hpp"
#include "raptor/model/graph.hpp"
#include "raptor/report/convolutions.hpp"
#include "raptor/report/format.hpp"
#include "raptor/report/strategies.hpp"
#include "raptor/schedule/copies.hpp"
#include "raptor/schedule/schedule.hpp"

/// raptor-compile --explain: what an operator got, and what the alternatives would have cost.
namespace raptor::report {

/// Insertions, deletions and substitutions that turn one text into the other. Cost: O(product of the lengths).
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// At most `most` of the names, the nearest first, each once; those that contain the wanted text or are contained in it come before the others.
[[nodiscard]] inline std::vector<std::string> near_names(const std::string& wanted, const std::vector<std::string>& names, std::size_t most = 5) {
  std::set<std::pair<std::size_t, std::string>> sorted;
  for (const auto& name : names) {
    if (name.empty()) continue;
    const bool part = name.find(wanted) != name.npos || wanted.find(name) != wanted.npos;
    const std::string_view a(wanted), b(name);
    sorted.emplace(part ? 0 : 1 + edit_distance(a.substr(0, 200), b.substr(0, 200)), name);
  }
  std::vector<std::string> result;
  for (const auto& [distance, name] : sorted)
    if (result.size() < most) result.push_back(name);
  return result;
}

/// The nodes that a name means: all of them for "all" (where no node is called so), else those of that name.
/// Errors: usage, where there is none; it names the nearest ones, or says that the rewrites left nothing of a node of `imported`.
[[nodiscard]] inline std::vector<model::vertex> named_nodes(const model::graph& g, const model::graph& imported, const std::string& name) {
  std::vector<model::vertex> found;
  std::vector<std::string> names;
  for (model::vertex v = 0; v < g.node_count(); ++v) {
    names.push_back(g.at(v).from.node);
    if (names.back() == name) found.push_back(v);
  }
  if (found.empty() && name == "all")
    for (model::vertex v = 0; v < g.node_count(); ++v) found.push_back(v);
  if (!found.empty() || name == "all") return found;
  bool gone = false;
  for (model::vertex v = 0; v < imported.node_count(); ++v) gone = gone || imported.at(v).from.node == name;
  std::string list;
  for (const auto& near : near_names(name, names)) list += (list.empty() ? "" : ", ") + clipped(near);
  throw error(error_code::usage, "--explain=" + clipped(name) + (gone ? ": the rewrites made this node part of another one" : ": no node has this name") +
                                     (list.empty() ? "; the model has no nodes" : "; near it: " + list + " (or all)"));
}

/// What explain is told; it refers to all of it.
template <target::chip_target Target, class Strategies>
struct explained {
  const Target& target;
  const model::graph& model;
  const layout::plan& plan;
  const lowering::lowered& lowered;
  const lowering::compute_graph& computes;
  const schedule::schedule& schedule;
  strategy_table<Target, Strategies>& strategies;
};

namespace explain_parts {

/// One line for some computes: where and when they run.
struct share_of_chip {
  std::size_t tiles = 0;
  std::set<std::uint32_t> cores, stages;
  picoseconds start = 0, finish = 0, busy = 0;

  void add(const schedule::schedule& s, std::uint32_t tile) {
    const auto& p = s.place.at(tile);
    start = tiles == 0 ? p.start : std::min(start, p.start), finish = std::max(finish, p.finish);
    busy += p.finish - p.start;
    cores.insert(p.core), stages.insert(p.stage);
    ++tiles;
  }
};

[[nodiscard]] inline std::string list_of(const std::set<std::uint32_t>& numbers, std::size_t most = 24) {
  std::string text;
  std::size_t shown = 0;
  for (const auto n : numbers) {
    if (++shown > most) return text + " ... (" + std::to_string(numbers.size()) + ")";
    text += " " + std::to_string(n);
  }
  return text;
}

[[nodiscard]] inline std::string name_of(const layout::alternative& a) {
  std::string text;
  for (const auto operand : a.operands) text += std::string(text.empty() ? "" : ", ") + layout::name(operand);
  return text + " -> " + layout::name(a.result);
}

/// Times of one core and crossbars, in columns.
[[nodiscard]] inline std::string row_of(const std::string& name, const demand& d, std::int64_t crossbars) {
  return "    " + left(name, 24) + right(microseconds(d.matrix), 12) + right(microseconds(d.vector), 12) + right(microseconds(d.copies), 12) +
         right(microseconds(d.serial()), 12) + right(std::to_string(d.products), 10) + right(std::to_string(crossbars), 11);
}

}  // namespace explain_parts

/// What a node got and why: layout, strategy, tiles, copies, cores and stages, predicted time, crossbars; of a convolution what every strategy
/// would have asked for, or why it does not apply. Times in microseconds. Deterministic.
///
/// `instead`: by strategy, what is predicted of the whole model with it at this node; may be empty.
/// Requires: a compilation up to its schedule. Cost: O(tiles + strategies) a node.
template <target::chip_target Target, class Strategies>
[[nodiscard]] std::string explain(const explained<Target, Strategies>& e, model::vertex v, const std::map<std::string, std::string>& instead = {}) {
  using namespace explain_parts;
  const program::geometry chip = e.target.chip();
  const auto& n = e.model.at(v);
  std::string text = clipped(n.from.describe(), 200) + "\n";
  for (const auto t : n.outputs) text += "  gives     " + clipped(e.model.at(t).name) + ", " + to_string(e.model.at(t).sizes) + "\n";

  const auto& chosen = e.plan.chosen.at(v);
  text += "  layout    " + name_of(chosen) + "\n";
  const double potential = layout::descending_layout::potential(e.model, e.plan);
  for (const auto& a : layout::alternatives_of(e.model, v)) {
    if (a.operands == chosen.operands && a.result == chosen.result) continue;
    auto other = e.plan;
    other.chosen[v] = a;
    const double more = layout::descending_layout::potential(e.model, other) - potential;
    text += "            instead " + name_of(a) + ": about " + std::to_string(static_cast<std::int64_t>(more)) + (more < 0 ? "" : " more") + " instructions, all else the same\n";
  }

  const auto choice = std::find_if(e.lowered.convolutions.begin(), e.lowered.convolutions.end(), [&](const auto& c) { return c.node == v; });
  const bool convolution = choice != e.lowered.convolutions.end();
  const bool together = convolution && !choice->together.empty();
  if (together)
    text += "  together  with " + lowered_together_with(e.model, *choice) + ": they read the same tensor, one product gives the channels of all; the computes are those of " +
            clipped(e.model.at(choice->together.front()).from.node) + "\n";

  // The computes of the node.
  std::vector<lowering::vertex> own;
  for (lowering::vertex c = 0; c < e.computes.size(); ++c)
    if (e.computes.at(c).node == v) own.push_back(c);
  if (own.empty() && !together) return text + "  computes  none: nothing is left to do, or it was merged into a neighbour\n";
  share_of_chip all;
  demand work;
  std::int64_t crossbars = 0, copied = 0;
  std::set<std::string> strategies;
  std::vector<std::string> rows;
  const auto head = schedule::family_heads(e.computes);
  for (const auto c : own) {
    const auto& compute = e.computes.at(c);
    share_of_chip one;
    for (const auto tile : e.schedule.graph.of_compute.at(c)) {
      one.add(e.schedule, tile), all.add(e.schedule, tile);
      work += demand_of(e.target, e.computes, e.schedule.graph.tiles[tile]);
    }
    const auto size = schedule::crossbars_of(compute, chip);
    if (head[c] == c) crossbars += size, copied += size * static_cast<std::int64_t>(one.cores.size());
    if (!compute.strategy.empty()) strategies.insert(compute.strategy);
    rows.push_back("    " + left(clipped(compute.name, 30), 32) + right(std::to_string(one.tiles), 6) + right(std::to_string(one.cores.size()), 8) + right(std::to_string(size), 11) +
                   right(microseconds(one.start), 12) + right(microseconds(one.finish), 12) + right(microseconds(one.busy), 12) + "\n");
  }
  if (!own.empty()) {
    std::string names;
    for (const auto& s : strategies) names += (names.empty() ? "" : ", ") + s;
    text += "  strategy  " + (names.empty() ? std::string("-") : names) + "\n";
    text += "  got       " + std::to_string(all.tiles) + (all.tiles == 1 ? " tile" : " tiles") + " on " + std::to_string(all.cores.size()) + (all.cores.size() == 1 ? " core:" : " cores:") +
            list_of(all.cores) + "; stage" + list_of(all.stages) + "\n";
    text += "  crossbars " + std::to_string(crossbars) + " of one copy, " + std::to_string(copied) + " of all copies\n";
    text += "  predicted from " + microseconds(all.start) + " to " + microseconds(all.finish) + ", " + microseconds(all.busy) + " of cores; the whole model takes " +
            microseconds(e.schedule.predicted) + "\n";
    text += "  computes                            tiles  copies  crossbars       start      finish     of cores\n";
    constexpr std::size_t most_rows = 16;
    for (std::size_t i = 0; i < std::min(rows.size(), most_rows); ++i) text += rows[i];
    if (rows.size() > most_rows) text += "    ... and " + std::to_string(rows.size() - most_rows) + " more\n";
  }
  text += "  work of one core                  matrix      vector      copies         all  products  crossbars\n";
  if (!own.empty()) text += row_of("this program", work, crossbars) + "\n";

  if (!convolution) return text;
  std::string refused;
  for (const auto& s : e.strategies.of(v)) {
    if (!s.refused.empty()) {
      refused += "    " + left(s.name, 24) + " does not apply: " + clipped(s.refused, 200) + "\n";
      continue;
    }
    text += row_of(s.name, s.work, s.crossbars) + (together ? "  alone" : s.name == choice->strategy ? "  chosen" : "") + ", cost " + microseconds(s.cost);
    const auto whole = instead.find(s.name);
    text += (whole == instead.end() ? "" : "; the whole model then: " + whole->second) + "\n";
  }
  text += refused;
  if (together) text += "    its share of what the group costs is " + microseconds(choice->cost) + "\n";
  text += "    the cost is what competes: all work, and " + microseconds(e.lowered.price.crossbar) + " for each crossbar of as many copies as bring a core's share down to " +
          microseconds(e.lowered.price.share) + "\n";
  if (e.lowered.options.convolution_at(n.from.node) != "auto") text += "    the strategy was forced by --pim-conv-lowering\n";
  return text;
}

}  // namespace raptor::report
