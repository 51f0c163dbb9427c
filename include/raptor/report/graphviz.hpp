#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"
#include "raptor/report/format.hpp"
#include "raptor/schedule/schedule.hpp"

namespace raptor::report {

/// A compute graph for Graphviz (`dot -Tsvg`): a box a compute, an ellipse a graph input or output, an edge a value. With a schedule every
/// box also says its cores and predicted times. Computes with resident weights are filled. Cost: O(computes + edges + tiles · log).
[[nodiscard]] inline std::string graphviz(const lowering::compute_graph& g, const schedule::schedule* s = nullptr) {
  std::string text = "digraph " + dot_text(g.name) + " {\n  rankdir=TB;\n  node [shape=box, fontname=\"Helvetica\", fontsize=10];\n  edge [fontname=\"Helvetica\", fontsize=8];\n";
  for (std::size_t i = 0; i < g.inputs.size(); ++i)
    text += "  in" + std::to_string(i) + " [shape=ellipse, label=" + dot_text(clipped(g.inputs[i].name) + "\n" + to_string(g.inputs[i].sizes)) + "];\n";
  for (std::size_t i = 0; i < g.outputs.size(); ++i)
    text += "  out" + std::to_string(i) + " [shape=ellipse, label=" + dot_text(clipped(g.outputs[i].name) + "\n" + to_string(g.outputs[i].sizes)) + "];\n";
  for (lowering::vertex v = 0; v < g.size(); ++v) {
    const auto& c = g.at(v);
    std::string label = clipped(c.name) + "\n" + clipped(c.op) + (c.strategy.empty() ? "" : ", " + clipped(c.strategy)) + "\nlanes " + to_string(c.lanes);
    if (!c.groups.empty()) label += ", " + std::to_string(c.groups.size()) + (c.groups.size() == 1 ? " array group" : " array groups");
    if (s != nullptr) {
      std::set<std::uint32_t> cores;
      schedule::picoseconds start = 0, finish = 0;
      const auto& tiles = s->graph.of_compute.at(v);
      for (std::size_t i = 0; i < tiles.size(); ++i) {
        const auto& p = s->place[tiles[i]];
        cores.insert(p.core);
        start = i == 0 ? p.start : std::min(start, p.start), finish = std::max(finish, p.finish);
      }
      label += "\n" + std::to_string(tiles.size()) + (tiles.size() == 1 ? " tile, core" : " tiles, core");
      std::size_t shown = 0;
      for (const auto core : cores) {
        if (++shown > 8) {
          label += " and " + std::to_string(cores.size() - 8) + " more";
          break;
        }
        label += " " + std::to_string(core);
      }
      label += "\n" + microseconds(start) + " to " + microseconds(finish) + " us";
    }
    text += "  c" + std::to_string(v) + " [label=" + dot_text(label) + (c.groups.empty() ? "" : ", style=filled, fillcolor=\"#dce6f2\"") + "];\n";
  }
  const auto edge = [&](const std::string& from, const std::string& to, const lowering::value& v) {
    text += "  " + from + " -> " + to + " [label=" + dot_text(to_string(v.sizes) + (v.layout == layout::physical::dense ? "" : std::string("\n") + layout::name(v.layout))) + "];\n";
  };
  for (lowering::vertex v = 0; v < g.size(); ++v) {
    std::set<std::pair<lowering::vertex, std::uint32_t>> drawn;
    for (const auto& a : g.at(v).accesses) {
      const auto& value = g.values()[a.value];
      const std::string own = "c" + std::to_string(v);
      if (a.mode != lowering::access_mode::read) {
        if (value.result >= 0 && drawn.emplace(g.size(), a.value).second) edge(own, "out" + std::to_string(value.result), value);
        continue;
      }
      if (value.from == lowering::origin::input && drawn.emplace(g.size() + 1, a.value).second) edge("in" + std::to_string(value.input), own, value);
      for (const auto w : g.writers(a.value))
        if (w != v && drawn.emplace(w, a.value).second) edge("c" + std::to_string(w), own, value);
    }
  }
  return text + "}\n";
}

}  // namespace raptor::report
