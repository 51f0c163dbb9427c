#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "raptor/schedule/steps.hpp"
#include "raptor/schedule/tiles.hpp"

namespace raptor::schedule {

/// Where and when a tile runs.
struct placed {
  std::uint32_t core = 0;
  std::uint32_t copy = 0;   ///< which copy of the compute's weights it uses
  std::uint32_t stage = 0;
  picoseconds start = 0, finish = 0;  ///< predicted
};

/// tile → core, stage and position in one global order.
struct schedule {
  tile_graph graph;
  std::vector<placed> place;             ///< by tile
  std::vector<std::uint32_t> order;      ///< tiles by predicted start; producers before consumers
  /// Tiles and transfers in one global order, where the order policy decided both; empty: every tile at once, followed by its transfers.
  std::vector<step> steps;
  std::vector<flow> flows;               ///< that steps refer to
  picoseconds predicted = 0;             ///< finish of the last tile
  std::vector<channel> channels;         ///< that flows go through
  std::vector<picoseconds> durations;    ///< predicted, by step; empty: not known
};

/// Order policy: simulates the cores with the target's cost model. A tile is ready when its producers are done and what it
/// needs has crossed the chip; a free core takes the tile that has been ready longest (then the one of lower number).
///
/// Guarantees: `order` is topological. Cost: O((tiles + dependencies) · log tiles). Deterministic.
struct ready_order {
  template <target::chip_target Target>
  void operator()(const Target& t, const lowering::compute_graph& g, schedule& s) const {
    const auto& tiles = s.graph.tiles;
    std::vector<std::vector<std::uint32_t>> consumers(tiles.size());
    std::vector<std::size_t> waiting(tiles.size(), 0);
    std::vector<picoseconds> ready(tiles.size(), 0);
    for (std::uint32_t i = 0; i < tiles.size(); ++i) {
      waiting[i] = s.graph.producers[i].size();
      for (const auto p : s.graph.producers[i]) consumers[p].push_back(i);
    }
    std::vector<std::int64_t> written(tiles.size(), 0);
    for (std::uint32_t i = 0; i < tiles.size(); ++i)
      for (const auto& a : g.at(tiles[i].compute).accesses)
        if (a.mode != lowering::access_mode::read) written[i] += element_count(box_of(a, tiles[i].lanes));

    using candidate = std::tuple<picoseconds, picoseconds, std::uint32_t>;  // start, ready, tile
    std::priority_queue<candidate, std::vector<candidate>, std::greater<>> queue;
    std::vector<picoseconds> free(static_cast<std::size_t>(t.chip().core_count), 0);
    for (std::uint32_t i = 0; i < tiles.size(); ++i)
      if (waiting[i] == 0) queue.emplace(0, 0, i);
    s.order.clear(), s.steps.clear(), s.flows.clear(), s.channels.clear(), s.durations.clear();
    s.predicted = 0;
    while (!queue.empty()) {
      const auto [start, since, i] = queue.top();
      queue.pop();
      auto& place = s.place[i];
      if (free[place.core] > start) {  // the core was taken meanwhile: queue again for when it is free
        queue.emplace(free[place.core], since, i);
        continue;
      }
      place.start = start;
      place.finish = start + std::max<picoseconds>(1, tile_time(t, g.at(tiles[i].compute), tiles[i].lanes));
      free[place.core] = place.finish;
      s.predicted = std::max(s.predicted, place.finish);
      s.order.push_back(i);
      for (const auto c : consumers[i]) {
        auto at = place.finish;
        if (s.place[c].core != place.core) at += t.transfer_time(place.core, s.place[c].core, written[i]);
        ready[c] = std::max(ready[c], at);
        if (--waiting[c] == 0) queue.emplace(std::max(ready[c], free[s.place[c].core]), ready[c], c);
      }
    }
    ensure(s.order.size() == tiles.size(), "order: the tiles have a cyclic dependency");
  }
};

/// Throws internal unless the schedule is complete: every tile placed on a core of the chip and ordered once after its producers.
inline void check_schedule(const schedule& s, std::int64_t cores) {
  std::vector<std::size_t> position(s.graph.tiles.size(), s.order.size());
  for (std::size_t i = 0; i < s.order.size(); ++i) position.at(s.order[i]) = i;
  for (std::size_t i = 0; i < s.graph.tiles.size(); ++i) {
    ensure(position[i] < s.order.size(), "schedule: a tile has no position");
    ensure(s.place[i].core < cores, "schedule: a tile is on no core of the chip");
    for (const auto p : s.graph.producers[i]) ensure(position[p] < position[i], "schedule: a tile precedes its producer");
  }
}

}  // namespace raptor::schedule
