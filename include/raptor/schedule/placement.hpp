#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "raptor/schedule/copies.hpp"
#include "raptor/schedule/peft.hpp"
#include "raptor/schedule/schedule.hpp"
#include "raptor/schedule/task_graph.hpp"

namespace raptor::schedule {

/// The tiles of one compute that one copy of its weights does: neighbouring tiles, so that few rows are needed twice.
struct share {
  std::uint32_t compute = 0, copy = 0;
};

/// Placement policy: PEFT on the graph of shares, on physical cores, with the target's topology and each core's real
/// resident-weight capacity. A share is one task; its tiles follow each other in neighbouring bands of the lane space.
///
/// Requires: `copies` between 1 and the number of tiles of each compute that has any.
/// Errors: capacity, with needed and available crossbars. Cost: that of peft, in shares. Deterministic.
struct peft_placement {
  template <target::chip_target Target>
  void operator()(const Target& t, const lowering::compute_graph& g, const std::vector<std::int64_t>& copies, schedule& s) const {
    const auto& tiles = s.graph.tiles;
    std::vector<share> shares;
    std::vector<std::uint32_t> share_of(tiles.size());
    s.place.assign(tiles.size(), {});
    for (std::uint32_t v = 0; v < g.size(); ++v) {
      const auto& own = s.graph.of_compute[v];
      const auto count = std::min(static_cast<std::size_t>(copies[v]), own.size());
      for (std::size_t i = 0; i < own.size(); ++i) {
        const std::size_t copy = i * count / own.size();
        share_of[own[i]] = static_cast<std::uint32_t>(shares.size() + copy);
        s.place[own[i]].copy = static_cast<std::uint32_t>(copy);
      }
      for (std::size_t c = 0; c < count; ++c) shares.push_back({v, static_cast<std::uint32_t>(c)});
    }

    // One task a share; the tasks of one compute share its weights where they meet on a core.
    const program::geometry chip = t.chip();
    const auto head = family_heads(g);
    task_graph tasks(shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const auto size = crossbars_of(g.at(shares[i].compute), chip);
      tasks[i].name = g.at(shares[i].compute).name;
      if (size > 0) tasks[i].weights.push_back({head[shares[i].compute], size});
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> flow;
    for (std::uint32_t i = 0; i < tiles.size(); ++i) {
      tasks[share_of[i]].duration = checked::add(tasks[share_of[i]].duration, tile_time(t, g.at(tiles[i].compute), tiles[i].lanes));
      for (const auto p : s.graph.producers[i])
        if (share_of[p] != share_of[i]) flow[{share_of[p], share_of[i]}] += written(g, tiles[p]);
    }
    for (const auto& [edge, elements] : flow) boost::add_edge(edge.first, edge.second, task_edge{elements}, tasks);

    const placement where = peft{}(tasks, chip_costs(tasks, t), resident_weights(weights_of(tasks, t)));
    for (std::size_t i = 0; i < tiles.size(); ++i) s.place[i].core = static_cast<std::uint32_t>(where.processor[share_of[i]]);
  }

 private:
  static std::int64_t written(const lowering::compute_graph& g, const tile& t) {
    std::int64_t sum = 0;
    for (const auto& a : g.at(t.compute).accesses)
      if (a.mode != lowering::access_mode::read) sum += element_count(box_of(a, t.lanes));
    return sum;
  }
};

}  // namespace raptor::schedule
