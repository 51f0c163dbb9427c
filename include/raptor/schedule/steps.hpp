#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/layout/physical.hpp"
#include "raptor/schedule/tiles.hpp"

/// What cores do in the one global order of a schedule: parts of tiles, and flows of data between cores.
namespace raptor::schedule {

/// A position in a kernel's body: before iteration `iteration` of item number `item` (a statement is one iteration).
struct cursor {
  std::uint32_t item = 0;
  std::int64_t iteration = 0;
  friend auto operator<=>(const cursor&, const cursor&) = default;
};

inline constexpr std::uint32_t no_channel = 0xffffffffu;

/// What the core of a producing tile sends to another core: the hull of all that the other core's tiles read of it.
struct flow {
  std::uint32_t producer = 0;  ///< tile
  std::uint32_t value = 0;
  std::uint32_t core = 0;      ///< the receiver
  box what;
  std::uint32_t channel = no_channel;  ///< in global memory, which it goes through; none: a rendezvous
  friend bool operator==(const flow&, const flow&) = default;
};

/// A buffer in global memory: the core of a producing tile stores there, once for all receivers, what flows to other cores.
struct channel {
  std::uint32_t producer = 0;  ///< tile
  std::uint32_t value = 0;
  box what;                    ///< hull of its flows
  friend bool operator==(const channel&, const channel&) = default;
};

/// One step of the global order: a part of a tile, a flow by rendezvous, or one side of a flow through global memory.
struct step {
  enum class kind : std::uint8_t { compute, transfer, store, load };
  kind what = kind::compute;
  std::uint32_t index = 0;  ///< compute: tile; transfer, load: flow; store: channel
  cursor begin, end;        ///< compute: of the kernel's body
  friend bool operator==(const step&, const step&) = default;
};

/// A part of a tile that is done without a pause.
struct atom {
  cursor end;
  picoseconds time = 0;
};

/// Cuts a tile's body between top-level statements and iterations of top-level loops into parts of about `longest`.
/// The last part ends behind the body; every part takes time. Cost: O(statements + parts).
template <target::chip_target Target>
[[nodiscard]] std::vector<atom> atoms_of(const Target& t, const lowering::compute& c, const box& lanes, picoseconds longest) {
  std::vector<atom> result;
  const auto count = static_cast<std::uint32_t>(c.body.size());
  atom open;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto* l = std::get_if<lowering::loop>(&c.body[i].what);
    if (l == nullptr) {
      open.time += detail::time_of(t, {&c.body[i], 1}, lanes);
      open.end = {i + 1, 0};
    } else {
      const auto iterations = l->count.evaluate([&](symbol x) { return detail::lane_value(x, lanes); });
      const auto one = std::max<picoseconds>(1, detail::time_of(t, l->body, lanes));
      for (std::int64_t done = 0; done < iterations;) {
        const auto room = std::max<std::int64_t>(1, (longest - open.time) / one);
        const auto take = std::min(room, iterations - done);
        done += take;
        open.time += take * one;
        open.end = done == iterations ? cursor{i + 1, 0} : cursor{i, done};
        if (open.time >= longest && !(done == iterations && i + 1 == count)) {
          result.push_back(open);
          open.time = 0;
        }
      }
      open.end = std::max(open.end, cursor{i + 1, 0});
      continue;
    }
    if (open.time >= longest && i + 1 < count) {
      result.push_back(open);
      open.time = 0;
    }
  }
  if (open.time == 0 && !result.empty()) {  // only loops without iterations are left
    result.back().end = {count, 0};
    return result;
  }
  open.end = {count, 0};
  open.time = std::max<picoseconds>(open.time, 1);
  result.push_back(open);
  return result;
}

/// The flows that a placement needs: every (producing tile, value, receiving core) once, by producer, core, value.
/// `of_tile`: flows that each tile waits for. `core_of(tile)`: where it runs.
struct flow_list {
  std::vector<flow> flows;
  std::vector<std::vector<std::uint32_t>> of_tile;
};
template <class CoreOf>
[[nodiscard]] flow_list collect_flows(const lowering::compute_graph& computes, const tile_graph& graph, const CoreOf& core_of) {
  struct need {
    std::uint32_t producer, core, value, tile;
    box what;
  };
  std::vector<need> needs;
  for (std::uint32_t tile = 0; tile < graph.tiles.size(); ++tile) {
    const std::uint32_t core = core_of(tile);
    for (const auto& a : computes.at(graph.tiles[tile].compute).accesses) {
      if (a.mode != lowering::access_mode::read || computes.values()[a.value].from != lowering::origin::computed) continue;
      const box needed = intersect(box_of(a, graph.tiles[tile].lanes), whole(computes.values()[a.value].sizes));
      for (const auto producer : graph.producers[tile]) {
        if (core_of(producer) == core) continue;
        for (const auto& w : computes.at(graph.tiles[producer].compute).accesses) {
          if (w.mode == lowering::access_mode::read || w.value != a.value) continue;
          box part = intersect(needed, box_of(w, graph.tiles[producer].lanes));
          if (!is_empty(part)) needs.push_back({producer, core, a.value, tile, std::move(part)});
        }
      }
    }
  }
  std::stable_sort(needs.begin(), needs.end(), [](const need& a, const need& b) { return std::tie(a.producer, a.core, a.value) < std::tie(b.producer, b.core, b.value); });
  flow_list result;
  result.of_tile.resize(graph.tiles.size());
  for (const auto& n : needs) {
    const bool same = !result.flows.empty() && result.flows.back().producer == n.producer && result.flows.back().core == n.core && result.flows.back().value == n.value;
    if (same) result.flows.back().what = hull(result.flows.back().what, n.what);
    else result.flows.push_back({n.producer, n.value, n.core, n.what});
    auto& own = result.of_tile[n.tile];
    const auto number = static_cast<std::uint32_t>(result.flows.size() - 1);
    if (own.empty() || own.back() != number) own.push_back(number);
  }
  for (auto& own : result.of_tile) {
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
  }
  return result;
}

}  // namespace raptor::schedule
