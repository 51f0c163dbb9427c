#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "raptor/schedule/schedule.hpp"
#include "raptor/schedule/stages.hpp"

/// Placement and replication of each stage by itself, on its own cores.
namespace raptor::schedule {

/// Some cores of a chip as a chip of their own: core i of it is core `physical[i]`.
template <target::chip_target Target>
struct part_of_chip {
  const Target* whole;
  std::vector<std::uint32_t> physical;

  [[nodiscard]] program::geometry chip() const {
    program::geometry g = whole->chip();
    g.core_count = static_cast<std::int64_t>(physical.size());
    return g;
  }
  [[nodiscard]] picoseconds time(isa::opcode op, std::int64_t n) const { return whole->time(op, n); }
  [[nodiscard]] picoseconds transfer_time(std::size_t from, std::size_t to, std::int64_t n) const { return whole->transfer_time(physical.at(from), physical.at(to), n); }
  [[nodiscard]] picoseconds global_time(std::size_t core, std::int64_t n, bool store) const { return whole->global_time(physical.at(core), n, store); }
  [[nodiscard]] picoseconds global_port_time(std::int64_t n, bool store) const
    requires requires(const Target& t) { t.global_port_time(n, store); }
  {
    return whole->global_port_time(n, store);
  }
};

/// The cores of each stage: from core 0 on, always the one that is nearest to those of its stage, or, for a stage's first, to those of the
/// stage before, by the cost of links in both directions. Cost: O(cores²).
template <target::chip_target Target>
[[nodiscard]] std::vector<std::vector<std::uint32_t>> group_cores(const Target& t, const std::vector<std::int64_t>& sizes) {
  const auto count = static_cast<std::size_t>(program::geometry(t.chip()).core_count);
  std::vector<std::vector<std::uint32_t>> groups(sizes.size());
  std::vector<bool> taken(count, false);
  std::vector<picoseconds> distance(count, 0);
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    auto near = distance;  // the stage before draws its first core
    std::fill(distance.begin(), distance.end(), 0);
    while (groups[s].size() < static_cast<std::size_t>(sizes[s])) {
      std::size_t best = count;
      const auto& by = groups[s].empty() ? near : distance;
      for (std::size_t c = 0; c < count; ++c)
        if (!taken[c] && (best == count || by[c] < by[best])) best = c;
      ensure(best < count, "stages: more cores than the chip has");
      taken[best] = true;
      groups[s].push_back(static_cast<std::uint32_t>(best));
      for (std::size_t c = 0; c < count; ++c) distance[c] += t.transfer_time(best, c, 1) + t.transfer_time(c, best, 1);
    }
    std::sort(groups[s].begin(), groups[s].end());
  }
  return groups;
}

/// The tiles of one stage alone, numbered anew, with the number of each in the whole graph.
struct stage_tiles {
  tile_graph graph;
  std::vector<std::uint32_t> number;
};
[[nodiscard]] inline stage_tiles tiles_of_stage(const tile_graph& all, const std::vector<std::uint32_t>& stage, std::uint32_t wanted) {
  stage_tiles part;
  std::vector<std::uint32_t> own(all.tiles.size(), 0);
  part.graph.of_compute.resize(all.of_compute.size());
  for (std::uint32_t i = 0; i < all.tiles.size(); ++i) {
    if (stage[all.tiles[i].compute] != wanted) continue;
    own[i] = static_cast<std::uint32_t>(part.number.size());
    part.graph.of_compute[all.tiles[i].compute].push_back(own[i]);
    part.graph.tiles.push_back(all.tiles[i]);
    part.number.push_back(i);
    auto& producers = part.graph.producers.emplace_back();
    for (const auto p : all.producers[i])
      if (stage[all.tiles[p].compute] == wanted) producers.push_back(own[p]);
  }
  return part;
}

/// Places every stage by an inner placement policy, on its own cores. One stage: the inner policy's own placement.
template <class Inner, target::chip_target Target>
void place_stages(const Inner& inner, const Target& t, const lowering::compute_graph& g, const stage_plan& plan, const std::vector<std::int64_t>& copies, schedule& s) {
  if (plan.stages() == 1) return inner(t, g, copies, s);
  const auto groups = group_cores(t, plan.cores);
  s.place.assign(s.graph.tiles.size(), {});
  for (std::uint32_t k = 0; k < plan.stages(); ++k) {
    auto [tiles, number] = tiles_of_stage(s.graph, plan.stage, k);
    schedule part{};
    part.graph = std::move(tiles);
    const part_of_chip<Target> chip{&t, groups[k]};
    inner(chip, g, copies, part);
    for (std::size_t i = 0; i < number.size(); ++i) {
      s.place[number[i]] = part.place[i];
      s.place[number[i]].core = groups[k][part.place[i].core];
      s.place[number[i]].stage = k;
    }
  }
}

/// Candidates for the numbers of copies, one stage at a time: candidate i takes the i-th of every stage (or its last one).
template <class Replicate, target::chip_target Target>
[[nodiscard]] std::vector<std::vector<std::int64_t>> replicate_stages(const Replicate& replicate, const Target& t, const lowering::compute_graph& g, const stage_plan& plan,
                                                                      const tile_graph& tiles) {
  if (plan.stages() == 1) return replicate(t, g, tiles);
  const auto groups = group_cores(t, plan.cores);
  std::vector<std::vector<std::vector<std::int64_t>>> of_stage;
  std::size_t most = 0;
  for (std::uint32_t k = 0; k < plan.stages(); ++k) {
    of_stage.push_back(replicate(part_of_chip<Target>{&t, groups[k]}, g, tiles_of_stage(tiles, plan.stage, k).graph));
    most = std::max(most, of_stage.back().size());
  }
  std::vector<std::vector<std::int64_t>> result(most, std::vector<std::int64_t>(g.size(), 1));
  for (std::size_t i = 0; i < most; ++i)
    for (lowering::vertex v = 0; v < g.size(); ++v) {
      const auto& list = of_stage[plan.stage[v]];
      result[i][v] = list[std::min(i, list.size() - 1)][v];
    }
  return result;
}

}  // namespace raptor::schedule
