#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "raptor/program/program.hpp"
#include "raptor/schedule/tiles.hpp"

namespace raptor::schedule {

/// Crossbars that one copy of a compute's weights occupies.
[[nodiscard]] inline std::int64_t crossbars_of(const lowering::compute& c, const program::geometry& chip) {
  std::int64_t sum = 0;
  for (const auto& g : c.groups) sum = checked::add(sum, program::crossbars(g, chip));
  return sum;
}

/// Predicted time of all tiles of a compute, one after another.
template <target::chip_target Target>
[[nodiscard]] picoseconds work_of(const Target& t, const lowering::compute& c, const tile_graph& tiles, std::size_t vertex) {
  picoseconds sum = 0;
  for (const auto i : tiles.of_compute[vertex]) sum = checked::add(sum, tile_time(t, c, tiles.tiles[i].lanes));
  return sum;
}

/// Replication policy: over how many cores the tiles of each compute are divided, each with a copy of the weights. The
/// compute that takes longest gets one more while crossbars are free, so that the longest share shrinks (BOUNDS, "Replication").
///
/// `most`: copies of one compute; `occupancy`: share of the chip's crossbars that copies may fill, the rest is left for packing.
/// Guarantees: between 1 and the number of tiles; 1 where only the first copies fit. Cost: O(copies · log computes). Deterministic.
struct bottleneck_replication {
  std::int64_t most = 144;
  double occupancy = 0.95;

  template <target::chip_target Target>
  [[nodiscard]] std::vector<std::int64_t> operator()(const Target& t, const lowering::compute_graph& g, const tile_graph& tiles) const {
    const program::geometry chip = t.chip();
    std::vector<std::int64_t> copies(g.size(), 1), size(g.size(), 0);
    std::vector<picoseconds> work(g.size(), 0);
    std::int64_t used = 0;
    using entry = std::pair<picoseconds, std::size_t>;
    const auto shorter = [](const entry& a, const entry& b) { return a.first != b.first ? a.first < b.first : a.second > b.second; };
    std::priority_queue<entry, std::vector<entry>, decltype(shorter)> longest(shorter);
    for (std::size_t v = 0; v < g.size(); ++v) {
      size[v] = crossbars_of(g.at(v), chip), work[v] = work_of(t, g.at(v), tiles, v);
      used += size[v];
      longest.emplace(work[v], v);
    }
    const auto budget = static_cast<std::int64_t>(occupancy * static_cast<double>(chip.core_count * chip.crossbars_per_core));
    while (!longest.empty()) {
      const auto v = longest.top().second;
      longest.pop();
      const auto limit = std::min({most, chip.core_count, static_cast<std::int64_t>(tiles.of_compute[v].size())});
      if (copies[v] >= limit || used + size[v] > budget) continue;
      used += size[v];
      ++copies[v];
      longest.emplace(work[v] / copies[v], v);
    }
    return copies;
  }
};

/// Replication policy: one copy of everything.
struct no_replication {
  template <target::chip_target Target>
  [[nodiscard]] std::vector<std::int64_t> operator()(const Target&, const lowering::compute_graph& g, const tile_graph&) const {
    return std::vector<std::int64_t>(g.size(), 1);
  }
};

}  // namespace raptor::schedule
