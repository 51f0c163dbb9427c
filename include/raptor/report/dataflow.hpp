#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "raptor/communication/transfers.hpp"
#include "raptor/lowering/compute_graph.hpp"
#include "raptor/lowering/tile_range.hpp"
#include "raptor/report/format.hpp"
#include "raptor/schedule/copies.hpp"
#include "raptor/schedule/schedule.hpp"

/// Dataflow as node and edge files that Gephi imports (reports/spatial1 … spatial4).
namespace raptor::report {

/// Two CSV files with header lines; ids are numbers, equal in both.
struct csv_files {
  std::string nodes, edges;
};

/// The tiles of one copy of a compute on one core, as a vertex of scheduled dataflow.
struct scheduled_share {
  std::uint32_t compute = 0, copy = 0, core = 0, stage = 0;
  std::size_t tiles = 0;
  schedule::picoseconds start = 0, finish = 0, busy = 0;  ///< of the first and last tile; sum of all
};
/// What flows from one share to another through one value: elements that tiles need (one needed by two tiles counts twice), and
/// what is sent for it.
struct share_flow {
  std::uint32_t from = 0, to = 0, value = 0;
  std::int64_t elements = 0;
  std::size_t transfers = 0, messages = 0;
  std::int64_t sent = 0;  ///< elements in transfers
};
struct share_graph {
  std::vector<scheduled_share> shares;  ///< by compute, core, copy
  std::vector<std::uint32_t> of_tile;
  std::vector<share_flow> flows;        ///< by from, to, value
};

/// Shares of a schedule and what flows between them. A transfer that several shares of a core read is booked to the one that reads
/// it first. Cost: O(dependencies × accesses · log). Deterministic.
[[nodiscard]] inline share_graph shares_of(const lowering::compute_graph& g, const schedule::schedule& s, const communication::transfer_lists* transfers = nullptr) {
  share_graph result;
  const auto& tiles = s.graph.tiles;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> known;
  const auto key = [&](std::size_t i) { return std::tuple(tiles[i].compute, s.place[i].core, s.place[i].copy); };
  for (std::size_t i = 0; i < tiles.size(); ++i) known.emplace(key(i), 0);
  for (auto& [k, index] : known) {
    index = static_cast<std::uint32_t>(result.shares.size());
    result.shares.push_back({std::get<0>(k), std::get<2>(k), std::get<1>(k), 0, 0, 0, 0, 0});
  }
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    result.of_tile.push_back(known.at(key(i)));
    auto& share = result.shares[result.of_tile.back()];
    const auto& p = s.place[i];
    share.stage = p.stage;
    share.start = share.tiles == 0 ? p.start : std::min(share.start, p.start);
    share.finish = std::max(share.finish, p.finish);
    share.busy = checked::add(share.busy, p.finish - p.start);
    ++share.tiles;
  }
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, share_flow> flows;
  const auto flow = [&](std::uint32_t from, std::uint32_t to, std::uint32_t value) -> share_flow& {
    auto& f = flows[{from, to, value}];
    f.from = from, f.to = to, f.value = value;
    return f;
  };
  for (std::size_t i = 0; i < tiles.size(); ++i)
    for (const auto& a : g.at(tiles[i].compute).accesses) {
      if (a.mode != lowering::access_mode::read || g.values()[a.value].from != lowering::origin::computed) continue;
      const box needed = schedule::box_of(a, tiles[i].lanes);
      for (const auto p : s.graph.producers[i]) {
        if (result.of_tile[p] == result.of_tile[i]) continue;
        for (const auto& w : g.at(tiles[p].compute).accesses) {
          if (w.mode == lowering::access_mode::read || w.value != a.value) continue;
          const auto elements = element_count(intersect(needed, schedule::box_of(w, tiles[p].lanes)));
          if (elements > 0) {
            auto& f = flow(result.of_tile[p], result.of_tile[i], a.value);
            f.elements = checked::add(f.elements, elements);
          }
        }
      }
    }
  if (transfers != nullptr)
    for (std::size_t p = 0; p < transfers->size(); ++p)
      for (const auto& t : (*transfers)[p]) {
        auto& f = flow(result.of_tile[p], result.of_tile[s.order.at(t.first_use)], t.value);
        ++f.transfers;
        f.messages += communication::messages_of(t, g.values()[t.value]);
        f.sent = checked::add(f.sent, element_count(t.what));
      }
  for (const auto& [k, f] : flows) result.flows.push_back(f);
  return result;
}

namespace dataflow_parts {

/// Appends lines of fields that are written as they are given.
class csv_writer {
 public:
  template <class... Fields>
  void line(const Fields&... fields) {
    bool first = true;
    const auto add = [&](const auto& field) {
      if (!first) text += ',';
      first = false;
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(field)>>) text += std::to_string(field);
      else text += csv_field(field);
    };
    (add(fields), ...);
    text += '\n';
  }
  std::string text;
};

[[nodiscard]] inline std::int64_t bytes(std::int64_t elements, const program::geometry& chip) {
  return checked::divide_up(checked::multiply(elements, chip.element_bits), std::int64_t{8});
}
[[nodiscard]] inline std::size_t statements(const std::vector<lowering::item>& items) {
  std::size_t count = 0;
  for (const auto& i : items) count += std::holds_alternative<lowering::loop>(i.what) ? statements(std::get<lowering::loop>(i.what).body) : 1;
  return count;
}
[[nodiscard]] inline std::int64_t hull_elements(const lowering::compute_graph& g, const lowering::compute& c, const lowering::access& a) {
  if (element_count(c.lanes) == 0) return 0;
  return element_count(intersect(lowering::hull_of(a, c), whole(g.values()[a.value].sizes)));
}
/// Calls `load(compute, input, elements)` and `store(compute, output, elements)` for every access of graph inputs and results.
template <class Load, class Store>
void for_each_port(const lowering::compute_graph& g, const Load& load, const Store& store) {
  for (lowering::vertex v = 0; v < g.size(); ++v)
    for (const auto& a : g.at(v).accesses) {
      const auto& value = g.values()[a.value];
      if (a.mode == lowering::access_mode::read && value.from == lowering::origin::input) load(v, value.input, a);
      if (a.mode != lowering::access_mode::read && value.result >= 0) store(v, value.result, a);
    }
}

}  // namespace dataflow_parts

/// spatial1 (lowered) and spatial2 (merged): a node a compute, graph input and graph output, an edge a value between two of them.
/// Elements of an edge: of the hull of all that the reader reads. Cost: O(computes + edges). Deterministic.
[[nodiscard]] inline csv_files dataflow(const lowering::compute_graph& g, const program::geometry& chip) {
  using namespace dataflow_parts;
  csv_writer nodes, edges;
  nodes.line("Id", "Label", "Kind", "Operator", "Strategy", "Node", "Lanes", "Groups", "Crossbars", "Statements");
  for (lowering::vertex v = 0; v < g.size(); ++v) {
    const auto& c = g.at(v);
    nodes.line(v, c.name, "compute", c.op, c.strategy, c.node == lowering::compute{}.node ? std::string() : std::to_string(c.node), to_string(c.lanes),
               c.groups.size(), schedule::crossbars_of(c, chip), statements(c.body));
  }
  const auto first_input = g.size(), first_output = g.size() + g.inputs.size();
  for (std::size_t i = 0; i < g.inputs.size(); ++i) nodes.line(first_input + i, g.inputs[i].name, "input", "", "", "", to_string(g.inputs[i].sizes), 0, 0, 0);
  for (std::size_t i = 0; i < g.outputs.size(); ++i) nodes.line(first_output + i, g.outputs[i].name, "output", "", "", "", to_string(g.outputs[i].sizes), 0, 0, 0);

  std::size_t id = 0;
  edges.line("Source", "Target", "Type", "Id", "Label", "Shape", "Layout", "Elements", "Bytes");
  const auto edge = [&](std::size_t from, std::size_t to, const lowering::value& v, std::int64_t elements) {
    edges.line(from, to, "Directed", id++, v.name, to_string(v.sizes), layout::name(v.layout), elements, bytes(elements, chip));
  };
  for (lowering::vertex v = 0; v < g.size(); ++v)
    for (const auto& a : g.at(v).accesses) {
      if (a.mode != lowering::access_mode::read) continue;
      auto writers = g.writers(a.value);
      writers.erase(std::unique(writers.begin(), writers.end()), writers.end());
      for (const auto w : writers)
        if (w != v) edge(w, v, g.values()[a.value], hull_elements(g, g.at(v), a));
    }
  for_each_port(
      g, [&](lowering::vertex v, std::int32_t input, const lowering::access& a) { edge(first_input + static_cast<std::size_t>(input), v, g.values()[a.value], hull_elements(g, g.at(v), a)); },
      [&](lowering::vertex v, std::int32_t output, const lowering::access& a) { edge(v, first_output + static_cast<std::size_t>(output), g.values()[a.value], hull_elements(g, g.at(v), a)); });
  return {std::move(nodes.text), std::move(edges.text)};
}

/// spatial3 (scheduled) and, with transfers, spatial4 (realized): a node a share (the tiles of one copy of a compute on one core) with
/// core, stage and predicted times in picoseconds, and the graph's inputs and outputs; an edge what flows between two of them. With transfers
/// an edge also has what is sent for it, so that SentBytes adds up to the traffic between cores. Cost: that of shares_of. Deterministic.
[[nodiscard]] inline csv_files dataflow(const lowering::compute_graph& g, const schedule::schedule& s, const program::geometry& chip,
                                        const communication::transfer_lists* transfers = nullptr) {
  using namespace dataflow_parts;
  const auto all = shares_of(g, s, transfers);
  csv_writer nodes, edges;
  nodes.line("Id", "Label", "Kind", "Operator", "Strategy", "Copy", "Core", "Stage", "Tiles", "Start", "Finish", "Busy");
  std::vector<std::vector<std::size_t>> of_compute(g.size());
  for (std::size_t i = 0; i < all.shares.size(); ++i) {
    const auto& x = all.shares[i];
    const auto& c = g.at(x.compute);
    of_compute[x.compute].push_back(i);
    nodes.line(i, c.name + "#" + std::to_string(x.copy), "share", c.op, c.strategy, x.copy, x.core, x.stage, x.tiles, x.start, x.finish, x.busy);
  }
  const auto first_input = all.shares.size(), first_output = first_input + g.inputs.size();
  for (std::size_t i = 0; i < g.inputs.size(); ++i) nodes.line(first_input + i, g.inputs[i].name, "input", "", "", "", -1, "", 0, 0, 0, 0);
  for (std::size_t i = 0; i < g.outputs.size(); ++i) nodes.line(first_output + i, g.outputs[i].name, "output", "", "", "", -1, "", 0, s.predicted, s.predicted, 0);

  std::size_t id = 0;
  if (transfers != nullptr) edges.line("Source", "Target", "Type", "Id", "Label", "Kind", "Elements", "Bytes", "Transfers", "Messages", "SentBytes");
  else edges.line("Source", "Target", "Type", "Id", "Label", "Kind", "Elements", "Bytes");
  const auto edge = [&](std::size_t from, std::size_t to, const std::string& label, const char* kind, std::int64_t elements, const share_flow& f) {
    if (transfers != nullptr) edges.line(from, to, "Directed", id++, label, kind, elements, bytes(elements, chip), f.transfers, f.messages, bytes(f.sent, chip));
    else edges.line(from, to, "Directed", id++, label, kind, elements, bytes(elements, chip));
  };
  for (const auto& f : all.flows)
    edge(f.from, f.to, g.values()[f.value].name, all.shares[f.from].core == all.shares[f.to].core ? "local" : "remote", f.elements, f);
  // Loads and stores, by share: the hull of its tiles' boxes.
  const auto hull_in = [&](std::size_t share, const lowering::access& a) {
    box sum(a.low.size(), interval{0, 0});
    bool any = false;
    for (const auto tile : s.graph.of_compute[all.shares[share].compute]) {
      if (all.of_tile[tile] != share) continue;
      const box touched = intersect(schedule::box_of(a, s.graph.tiles[tile].lanes), whole(g.values()[a.value].sizes));
      sum = any ? hull(sum, touched) : touched;
      any = true;
    }
    return any ? element_count(sum) : 0;
  };
  for_each_port(
      g,
      [&](lowering::vertex v, std::int32_t input, const lowering::access& a) {
        for (const auto share : of_compute[v]) edge(first_input + static_cast<std::size_t>(input), share, g.values()[a.value].name, "load", hull_in(share, a), {});
      },
      [&](lowering::vertex v, std::int32_t output, const lowering::access& a) {
        for (const auto share : of_compute[v]) edge(share, first_output + static_cast<std::size_t>(output), g.values()[a.value].name, "store", hull_in(share, a), {});
      });
  return {std::move(nodes.text), std::move(edges.text)};
}

}  // namespace raptor::report
