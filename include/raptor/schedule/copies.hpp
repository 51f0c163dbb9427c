#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
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

/// For each compute the first one of its family: where copies of the family's weights are counted.
[[nodiscard]] inline std::vector<std::uint32_t> family_heads(const lowering::compute_graph& g) {
  std::vector<std::uint32_t> head(g.size());
  std::map<std::int64_t, std::uint32_t> first;
  for (std::uint32_t v = 0; v < g.size(); ++v) head[v] = g.at(v).family < 0 ? v : first.try_emplace(g.at(v).family, v).first->second;
  return head;
}

/// Crossbars that one copy of everything occupies.
[[nodiscard]] inline std::int64_t total_crossbars(const lowering::compute_graph& g, const program::geometry& chip) {
  const auto head = family_heads(g);
  std::int64_t sum = 0;
  for (std::uint32_t v = 0; v < g.size(); ++v)
    if (head[v] == v) sum = checked::add(sum, crossbars_of(g.at(v), chip));
  return sum;
}

/// Predicted time of all tiles of a compute, one after another.
template <target::chip_target Target>
[[nodiscard]] picoseconds work_of(const Target& t, const lowering::compute& c, const tile_graph& tiles, std::size_t vertex) {
  picoseconds sum = 0;
  for (const auto i : tiles.of_compute[vertex]) sum = checked::add(sum, tile_time(t, c, tiles.tiles[i].lanes));
  return sum;
}

/// Replication policy: over how many cores the tiles of each compute are divided, each with a copy of the weights; computes of one family
/// share their copies. The family that takes longest gets one more while crossbars are free, so that the longest share shrinks (BOUNDS, "Replication").
///
/// `most`: copies of one compute; `occupancy`: share of the chip's crossbars that copies may fill, the rest is left for packing.
/// Guarantees: between 1 and the number of tiles; 1 where only the first copies fit. Cost: O(copies · log computes). Deterministic.
struct bottleneck_replication {
  std::int64_t most = 1024;
  double occupancy = 0.95;
  double power = 1;  ///< who gets the next copy: the largest work / copies^power / size^price
  double price = 0;

  template <target::chip_target Target>
  [[nodiscard]] std::vector<std::int64_t> operator()(const Target& t, const lowering::compute_graph& g, const tile_graph& tiles) const {
    const program::geometry chip = t.chip();
    const auto head = family_heads(g);
    std::vector<std::int64_t> copies(g.size(), 1), size(g.size(), 0), count(g.size(), 0);
    std::vector<picoseconds> work(g.size(), 0);
    std::int64_t used = 0;
    using entry = std::pair<double, std::size_t>;
    const auto shorter = [](const entry& a, const entry& b) { return a.first != b.first ? a.first < b.first : a.second > b.second; };
    const auto worth = [&](std::size_t v) {
      return static_cast<double>(work[v]) / std::pow(static_cast<double>(copies[v]), power) / std::pow(static_cast<double>(std::max<std::int64_t>(1, size[v])), price);
    };
    std::priority_queue<entry, std::vector<entry>, decltype(shorter)> longest(shorter);
    for (std::size_t v = 0; v < g.size(); ++v) {
      if (head[v] == v) size[v] = crossbars_of(g.at(v), chip);
      work[head[v]] += work_of(t, g.at(v), tiles, v);
      count[head[v]] += static_cast<std::int64_t>(tiles.of_compute[v].size());
    }
    for (std::size_t v = 0; v < g.size(); ++v)
      if (count[v] > 0) used += size[v];
    for (std::size_t v = 0; v < g.size(); ++v)
      if (head[v] == v) longest.emplace(worth(v), v);
    const auto budget = static_cast<std::int64_t>(occupancy * static_cast<double>(chip.core_count * chip.crossbars_per_core));
    while (!longest.empty()) {
      const auto v = longest.top().second;
      longest.pop();
      const auto limit = std::min({most, chip.core_count, count[v]});
      if (copies[v] >= limit || used + size[v] > budget) continue;
      used += size[v];
      ++copies[v];
      longest.emplace(worth(v), v);
    }
    for (std::size_t v = 0; v < g.size(); ++v) copies[v] = copies[head[v]];
    return copies;
  }
};

/// Predicted time of the longest share: the work of a family divided evenly by its copies. Cost: that of every tile's time.
template <target::chip_target Target>
[[nodiscard]] double longest_share(const Target& t, const lowering::compute_graph& g, const tile_graph& tiles, const std::vector<std::int64_t>& copies) {
  const auto head = family_heads(g);
  std::vector<picoseconds> work(g.size(), 0);
  double longest = 0;
  for (std::size_t v = 0; v < g.size(); ++v) {
    auto& sum = work[head[v]];
    sum = checked::add(sum, work_of(t, g.at(v), tiles, v));
    longest = std::max(longest, static_cast<double>(sum) / static_cast<double>(copies[v]));
  }
  return longest;
}

/// Replication policy: several candidates, for the evaluator to choose from: the bottleneck's, those of the square-root rule for layers that run one
/// after another (BOUNDS, "Replication"), and some in between, those first that win most often; one copy of everything where the longest share is then at most `alone` times as long.
struct replication_portfolio {
  double alone = 3;
  std::vector<bottleneck_replication> candidates{{}, {.price = 0.25}, {.power = 1.5, .price = 0.5}, {.occupancy = 0.85}, {.power = 1.5}, {.power = 2, .price = 1}, {.power = 2}, {.occupancy = 0.7}};

  template <target::chip_target Target>
  [[nodiscard]] std::vector<std::vector<std::int64_t>> operator()(const Target& t, const lowering::compute_graph& g, const tile_graph& tiles) const {
    std::vector<std::vector<std::int64_t>> result;
    for (const auto& c : candidates) {
      auto copies = c(t, g, tiles);
      if (std::find(result.begin(), result.end(), copies) == result.end()) result.push_back(std::move(copies));
    }
    std::vector<std::int64_t> single(g.size(), 1);
    const bool known = std::find(result.begin(), result.end(), single) != result.end();
    if (!known && (result.empty() || longest_share(t, g, tiles, single) <= alone * longest_share(t, g, tiles, result.front()))) result.push_back(std::move(single));
    return result;
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
