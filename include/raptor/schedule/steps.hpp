#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/layout/physical.hpp"
#include "raptor/schedule/producer_writes.hpp"
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

/// One step of the global order: a part of a tile, a flow by rendezvous, one side of a flow through global memory, or what a core sets up once
/// for the compute of a tile (at the latest before the first such tile, whether or not there is a step for it).
struct step {
  enum class kind : std::uint8_t { compute, transfer, store, load, prepare };
  kind what = kind::compute;
  std::uint32_t index = 0;  ///< compute, prepare: tile; transfer, load: flow; store: channel
  cursor begin, end;        ///< compute: of the kernel's body
  friend bool operator==(const step&, const step&) = default;
};

/// A part of a tile that is done without a pause.
struct atom {
  cursor end;
  picoseconds time = 0;
};

/// By access of a compute: the item of its body that reads or writes it first; 0 where none does.
[[nodiscard]] inline std::vector<std::uint32_t> first_items(const lowering::compute& c) {
  const auto count = static_cast<std::uint32_t>(c.body.size());
  std::vector<std::uint32_t> first(c.accesses.size(), count);
  const auto visit = [&](const auto& self, const lowering::item& item, std::uint32_t number) -> void {
    if (const auto* l = std::get_if<lowering::loop>(&item.what)) {
      for (const auto& inner : l->body) self(self, inner, number);
      return;
    }
    const auto& s = std::get<lowering::statement>(item.what);
    for (const auto* o : {&s.d, &s.a, &s.b})
      if (o->what == lowering::operand::kind::value) first[o->index] = std::min(first[o->index], number);
  };
  for (std::uint32_t i = 0; i < count; ++i) visit(visit, c.body[i], i);
  std::replace(first.begin(), first.end(), count, std::uint32_t{0});
  return first;
}

/// Items of a compute's body that begin to read something that another compute makes, ascending: what comes before can be done without it.
[[nodiscard]] inline std::vector<std::uint32_t> late_items(const lowering::compute& c, const std::deque<lowering::value>& values) {
  const auto first = first_items(c);
  std::vector<std::uint32_t> late;
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i] > 0 && c.accesses[i].mode == lowering::access_mode::read && values[c.accesses[i].value].from == lowering::origin::computed) late.push_back(first[i]);
  std::sort(late.begin(), late.end());
  late.erase(std::unique(late.begin(), late.end()), late.end());
  return late;
}

/// Cuts a tile's body between top-level statements and iterations of top-level loops into parts of about `longest`, and before each of the
/// items `stops` (ascending). The last part ends behind the body; every part takes time. Cost: O(statements + parts).
template <target::chip_target Target>
[[nodiscard]] std::vector<atom> atoms_of(const Target& t, const lowering::compute& c, const box& lanes, picoseconds longest, std::span<const std::uint32_t> stops = {}) {
  std::vector<atom> result;
  const auto count = static_cast<std::uint32_t>(c.body.size());
  atom open;
  for (std::uint32_t i = 0; i < count; ++i) {
    while (!stops.empty() && stops.front() < i) stops = stops.subspan(1);
    if (!stops.empty() && stops.front() == i && open.time > 0) {
      result.push_back(open);
      open.time = 0;
    }
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

/// The part of a tile that does an item of its body first.
[[nodiscard]] inline std::uint32_t part_of(const std::vector<atom>& parts, std::uint32_t item) {
  std::uint32_t k = 0;
  while (k + 1 < parts.size() && parts[k].end <= cursor{item, 0}) ++k;
  return k;
}

/// A tile that waits for something, and the item of its body that needs it first.
struct reader {
  std::uint32_t tile = 0, item = 0;
  friend bool operator==(const reader&, const reader&) = default;
};

/// The flows that a placement needs: every (producing tile, value, receiving core) once, by producer, core, value.
/// `of_tile`: flows that each tile waits for. `core_of(tile)`: where it runs.
struct flow_list {
  std::vector<flow> flows;
  std::vector<std::vector<std::uint32_t>> of_tile;
  std::vector<std::vector<reader>> readers;        ///< by flow: the tiles that wait for it, each once, ascending
  std::vector<std::vector<reader>> local_readers;  ///< by tile: tiles of the same core that wait for it, each once, ascending
};
template <class CoreOf>
[[nodiscard]] flow_list collect_flows(const lowering::compute_graph& computes, const tile_graph& graph, const CoreOf& core_of) {
  struct need {
    std::uint32_t producer, core, value, tile, item;
    box what;
  };
  flow_list result;
  result.of_tile.resize(graph.tiles.size()), result.local_readers.resize(graph.tiles.size());
  // Tiles come in ascending order: a reader that is known already is the last one.
  const auto note = [](std::vector<reader>& list, std::uint32_t tile, std::uint32_t item) {
    if (list.empty() || list.back().tile != tile) list.push_back({tile, item});
    else list.back().item = std::min(list.back().item, item);
  };
  std::vector<std::vector<std::uint32_t>> first;
  for (lowering::vertex v = 0; v < computes.size(); ++v) first.push_back(first_items(computes.at(v)));
  std::vector<need> needs;
  for (std::uint32_t tile = 0; tile < graph.tiles.size(); ++tile) {
    const std::uint32_t core = core_of(tile), compute = graph.tiles[tile].compute;
    const producer_writes written(computes, graph, tile);
    for (std::size_t k = 0; k < computes.at(compute).accesses.size(); ++k) {
      const auto& a = computes.at(compute).accesses[k];
      if (a.mode != lowering::access_mode::read || computes.values()[a.value].from != lowering::origin::computed) continue;
      const box needed = intersect(box_of(a, graph.tiles[tile].lanes), whole(computes.values()[a.value].sizes));
      for (const auto& w : written.of(a.value)) {
        box part = intersect(needed, box_of(*w.box, graph.tiles[w.producer].lanes));
        if (is_empty(part)) continue;
        if (core_of(w.producer) == core) note(result.local_readers[w.producer], tile, first[compute][k]);
        else needs.push_back({w.producer, core, a.value, tile, first[compute][k], std::move(part)});
      }
    }
  }
  std::stable_sort(needs.begin(), needs.end(), [](const need& a, const need& b) { return std::tie(a.producer, a.core, a.value) < std::tie(b.producer, b.core, b.value); });
  for (const auto& n : needs) {
    const bool same = !result.flows.empty() && result.flows.back().producer == n.producer && result.flows.back().core == n.core && result.flows.back().value == n.value;
    if (same) {
      result.flows.back().what = hull(result.flows.back().what, n.what);
    } else {
      result.flows.push_back({n.producer, n.value, n.core, n.what});
      result.readers.emplace_back();
    }
    note(result.readers.back(), n.tile, n.item);
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
