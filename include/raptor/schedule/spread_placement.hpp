#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "raptor/schedule/copies.hpp"
#include "raptor/schedule/load_over_time.hpp"
#include "raptor/schedule/near_cores.hpp"
#include "raptor/schedule/packing.hpp"
#include "raptor/schedule/producer_writes.hpp"
#include "raptor/schedule/schedule.hpp"
#include "raptor/schedule/transfer_load.hpp"

namespace raptor::schedule {

/// Placement policy for pinned weights: copies go where the cores are least loaded when these weights are in use; tiles of a compute are dealt to
/// its copies; tiles without weights go to where most of their input is, unless that core does much at that time already. Load is work and
/// transfers, at the times that the schedule has where it was ordered before, else at those that load_over_time.hpp expects. Cores that send each
/// other much lie close together.
///
/// Requires: `copies` between 1 and the number of tiles of each compute that has any. Copies that find no room are left out, the first
/// ones are packed. Errors: capacity, with needed and available crossbars. Cost: O(copies × cores + dependencies). Deterministic.
struct spread_placement {
  bool bands = false;   ///< neighbouring tiles go to one copy; else they are dealt in turn
  std::vector<double> bounds{1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.5, 1000.0};  ///< of a core's load, as multiples of the mean
  std::size_t periods = 32;  ///< of the run, see load_over_time.hpp
  double remote = 0.1;  ///< what load far away in time counts, where load in the same period counts 1; 1: all load is alike, as for streams of inputs
  double fading = 0.6;  ///< how fast load counts less from period to period
  double crowd = 0.1;   ///< time of waiting that a tile without weights expects for each unit of its core's load then
  double same = 0.1;    ///< and for each unit of what its core does of the same operator without weights
  int refinements = 0;  ///< how often the best schedule is made again from its own times

  template <target::chip_target Target>
  void operator()(const Target& t, const lowering::compute_graph& g, const std::vector<std::int64_t>& copies, schedule& s) const {
    const auto& tiles = s.graph.tiles;
    const program::geometry chip = t.chip();
    const auto cores = static_cast<std::size_t>(chip.core_count);
    const auto before = std::exchange(s.place, std::vector<placed>(tiles.size()));

    const auto head = family_heads(g);
    std::vector<std::int64_t> size(g.size());
    std::vector<picoseconds> work(g.size(), 0);  // of the family, at its head
    std::vector<std::size_t> tiles_of(g.size(), 0);  // of the family, at its head
    const auto moving = transfer_load(t, g, s.graph);
    for (lowering::vertex v = 0; v < g.size(); ++v) {
      size[v] = crossbars_of(g.at(v), chip), work[head[v]] += work_of(t, g.at(v), s.graph, v) + moving[v];
      tiles_of[head[v]] += s.graph.of_compute[v].size();
    }
    const auto load_of_tile = [&](std::uint32_t tile) {
      const auto v = tiles[tile].compute;
      return static_cast<double>(tile_time(t, g.at(v), tiles[tile].lanes)) + static_cast<double>(moving[v]) / static_cast<double>(s.graph.of_compute[v].size());
    };
    // When tiles are done, and of each family with weights how its load is seen from each period, and from which one its cores are looked at.
    const auto when = s.predicted > 0 ? scheduled_periods(before, s.predicted, periods) : expected_periods(s.graph, copies, size, periods, load_of_tile);
    std::vector<load_profile> single, profile(g.size(), load_profile(periods, remote, fading));
    for (std::size_t p = 0; p < periods; ++p) single.emplace_back(periods, remote, fading).add(p, 1);
    std::vector<std::size_t> centre(g.size(), 0);
    for (lowering::vertex v = 0; v < g.size(); ++v)
      for (const auto i : s.graph.of_compute[v]) {
        profile[head[v]].add(when[i], 1 / static_cast<double>(tiles_of[head[v]]));
        centre[head[v]] += when[i];
      }
    for (lowering::vertex v = 0; v < g.size(); ++v)
      if (tiles_of[v] > 0) centre[v] /= tiles_of[v];

    // Load of each core, every family's work divided by its copies.
    load_over_time load(cores, periods);
    std::vector<std::int64_t> room(cores, chip.crossbars_per_core);
    std::vector<std::vector<std::uint32_t>> at(g.size());  // cores of each family's copies
    std::vector<std::uint32_t> holds(cores, 0);            // the family that was placed last, plus one
    std::vector<std::int64_t> planned = copies;
    const auto share = [&](lowering::vertex v) { return static_cast<double>(work[v]) / static_cast<double>(planned[v]); };
    const auto put = [&](lowering::vertex v, std::size_t core) {
      at[v].push_back(static_cast<std::uint32_t>(core));
      holds[core] = static_cast<std::uint32_t>(v) + 1;
      room[core] -= size[v];
      load.add(core, profile[v], share(v));
    };
    const auto clear = [&] {
      room.assign(cores, chip.crossbars_per_core);
      holds.assign(cores, 0);
      load.clear();
      for (auto& list : at) list.clear();
    };
    // Of the cores with room whose load stays within the bound the fullest or the least loaded one. The copies of one family are placed one
    // after another.
    const auto best_core = [&](lowering::vertex v, double bound, bool fullest) {
      std::size_t best = cores;
      std::pair<double, double> least;
      for (std::size_t c = 0; c < cores; ++c) {
        if (room[c] < size[v] || holds[c] == v + 1) continue;
        const double now = load.at(c, centre[v]);
        if (now > 0 && now + share(v) > bound) continue;
        const auto space = static_cast<double>(room[c]);
        const std::pair cost = fullest ? std::pair{space, now} : std::pair{now, space};
        if (best == cores || cost < least) best = c, least = cost;
      }
      return best;
    };
    std::vector<lowering::vertex> weighted;
    for (lowering::vertex v = 0; v < g.size(); ++v)
      if (head[v] == v && size[v] > 0 && tiles_of[v] > 0) weighted.push_back(v);
    std::stable_sort(weighted.begin(), weighted.end(), [&](auto a, auto b) { return size[a] > size[b]; });
    // All copies by decreasing size, within the least of some bounds on the load; where there is none, the family that misses a copy least
    // gives one up.
    double fair = 0;
    for (const auto w : work) fair += static_cast<double>(w) / static_cast<double>(cores);
    const auto place_all = [&](double bound, bool fullest) {
      clear();
      for (const auto v : weighted)
        for (std::int64_t k = 0; k < planned[v]; ++k) {
          const auto c = best_core(v, bound, fullest);
          if (c == cores) return false;
          put(v, c);
        }
      return true;
    };
    const auto place_within = [&] {
      for (const double bound : bounds)
        for (const bool fullest : {false, true})
          if (place_all(bound * fair, fullest)) return true;
      return false;
    };
    while (!place_within()) {
      clear();
      // About one copy in 64 goes at a time, so that this takes a few dozen rounds at most.
      std::vector<std::pair<double, std::size_t>> after;  // share with one copy less, position
      std::int64_t extra = 0;
      for (std::size_t i = 0; i < weighted.size(); ++i) {
        const auto v = weighted[i];
        extra += planned[v] - 1;
        if (planned[v] > 1) after.emplace_back(static_cast<double>(work[v]) / static_cast<double>(planned[v] - 1), i);
      }
      if (extra > 0) {
        std::make_heap(after.begin(), after.end(), std::greater<>());
        for (std::int64_t gone = std::max<std::int64_t>(1, extra / 64); gone > 0 && !after.empty(); --gone) {
          std::pop_heap(after.begin(), after.end(), std::greater<>());
          const auto i = after.back().second;
          after.pop_back();
          const auto v = weighted[i];
          if (--planned[v] > 1) {
            after.emplace_back(static_cast<double>(work[v]) / static_cast<double>(planned[v] - 1), i);
            std::push_heap(after.begin(), after.end(), std::greater<>());
          }
        }
        continue;
      }
      std::vector<std::int64_t> sizes, capacities(cores, chip.crossbars_per_core);  // packed without regard to load
      for (const auto v : weighted) sizes.push_back(size[v]);
      const auto bins = pack(sizes, capacities);
      for (std::size_t i = 0; i < weighted.size(); ++i) put(weighted[i], bins[i]);
      break;
    }

    // Tiles of a family in turn: the first one of each compute, then the second ones; in bands: each compute for itself.
    std::vector<std::vector<std::pair<std::size_t, std::uint32_t>>> turns(g.size());
    for (lowering::vertex v = 0; v < g.size(); ++v)
      for (std::size_t i = 0; size[v] > 0 && i < s.graph.of_compute[v].size(); ++i) turns[head[v]].emplace_back(i, s.graph.of_compute[v][i]);
    for (const auto v : weighted) {
      std::sort(turns[v].begin(), turns[v].end());
      const auto count = std::min(at[v].size(), turns[v].size());
      for (std::size_t k = 0; k < turns[v].size(); ++k) {
        const auto [i, tile] = turns[v][k];
        s.place[tile].core = at[v][bands ? i * count / s.graph.of_compute[tiles[tile].compute].size() : k % count];
      }
    }
    // Tiles without weights, in topological order of the computes.
    std::map<std::uint32_t, std::vector<double>> of_operator;  // load of each core by node of the model
    std::vector<double> then(cores, 0);                        // load of each core when a tile is done
    const auto put_tile = [&](std::uint32_t tile, std::size_t core) {
      s.place[tile].core = static_cast<std::uint32_t>(core);
      load.add(core, single[when[tile]], load_of_tile(tile));
    };
    for (lowering::vertex v = 0; v < g.size(); ++v) {
      if (size[v] > 0 || s.graph.of_compute[v].empty()) continue;
      auto& own = of_operator.try_emplace(g.at(v).node, cores, 0.0).first->second;
      for (const auto tile : s.graph.of_compute[v]) {
        for (std::size_t c = 0; c < cores; ++c) then[c] = load.at(c, when[tile]);
        const auto core = near(t, g, s, tile, then, own);
        put_tile(tile, core);
        own[core] += load_of_tile(tile);
      }
    }
    // Tiles that nobody feeds go to the least loaded cores: what they bring is needed first, when their consumers are busy with it. They were placed
    // with the others as well, which so leave them room.
    for (std::uint32_t i = 0; i < tiles.size(); ++i) {
      if (!s.graph.producers[i].empty() || size[tiles[i].compute] != 0) continue;
      std::size_t least = 0;
      for (std::size_t c = 1; c < cores; ++c)
        if (load.at(c, when[i]) < load.at(least, when[i])) least = c;
      put_tile(i, least);
    }
    bring_together(t, g, s);
    // Copies are numbered per compute, by core.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
    std::vector<std::uint32_t> next(g.size(), 0);
    for (std::uint32_t i = 0; i < tiles.size(); ++i) {
      const auto [known, added] = numbers.try_emplace({tiles[i].compute, s.place[i].core}, next[tiles[i].compute]);
      if (added) ++next[tiles[i].compute];
      s.place[i].copy = known->second;
    }
  }

 private:
  /// The producer's core, or one of the least loaded ones, to which moving everything else costs least, its load included.
  template <target::chip_target Target>
  [[nodiscard]] std::uint32_t near(const Target& t, const lowering::compute_graph& g, const schedule& s, std::uint32_t tile, const std::vector<double>& load,
                                   const std::vector<double>& own_operator) const {
    const auto& own = s.graph.tiles[tile];
    const producer_writes written(g, s.graph, tile);
    std::vector<std::pair<std::uint32_t, std::int64_t>> sources;  // core, elements
    for (const auto& a : g.at(own.compute).accesses) {
      if (a.mode != lowering::access_mode::read) continue;
      const box needed = box_of(a, own.lanes);
      for (const auto& w : written.of(a.value)) {
        const auto n = element_count(intersect(needed, box_of(*w.box, s.graph.tiles[w.producer].lanes)));
        if (n > 0) sources.emplace_back(s.place[w.producer].core, n);
      }
    }
    std::vector<std::uint32_t> candidates;
    for (const auto& [core, n] : sources) candidates.push_back(core);
    // And the least loaded cores, for tiles that take long.
    std::vector<std::pair<double, std::uint32_t>> idle;
    for (std::uint32_t c = 0; c < load.size(); ++c) idle.emplace_back(load[c], c);
    const auto few = std::min<std::size_t>(idle.size(), 8);
    std::partial_sort(idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(few), idle.end());
    for (std::size_t k = 0; k < few; ++k) candidates.push_back(idle[k].second);
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    std::uint32_t best = 0;
    double least = std::numeric_limits<double>::max();
    for (const auto c : candidates) {
      double cost = crowd * load[c] + same * own_operator[c];
      for (const auto& [core, n] : sources)
        if (core != c) cost += static_cast<double>(t.transfer_time(core, c, n));
      if (cost < least) best = c, least = cost;
    }
    return best;
  }
};

}  // namespace raptor::schedule
