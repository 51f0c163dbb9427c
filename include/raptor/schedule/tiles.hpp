#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"
#include "raptor/target/concept.hpp"

/// Tiles: the boxes of lanes that are done in one go on one core; what they read from each other; what they cost.
namespace raptor::schedule {

using target::picoseconds;

/// A range of lanes of one compute.
struct tile {
  std::uint32_t compute = 0;  ///< vertex of the compute graph
  box lanes;
};

namespace detail {
/// A symbol's value in a tile; loops stand at their first iteration.
[[nodiscard]] inline std::int64_t lane_value(symbol s, const box& lanes) {
  if (s.what == symbol::kind::loop) return 0;
  return s.what == symbol::kind::begin ? lanes[s.index].begin : lanes[s.index].size();
}
}  // namespace detail

/// The box that a tile touches through an access; reads may reach outside the tensor.
[[nodiscard]] inline box box_of(const lowering::access& a, const box& lanes) {
  const auto value = [&](symbol s) { return detail::lane_value(s, lanes); };
  box result;
  for (std::size_t d = 0; d < a.low.size(); ++d) result.push_back({a.low[d].evaluate(value), a.high[d].evaluate(value)});
  return result;
}

/// A tile and those that it reads from.
struct tile_graph {
  std::vector<tile> tiles;                               ///< in vertex order of their computes, lanes ascending
  std::vector<std::vector<std::uint32_t>> of_compute;    ///< by vertex
  std::vector<std::vector<std::uint32_t>> producers;     ///< by tile: tiles of other computes, ascending, each once
};

/// How large tiles are. `longest`: a tile of a compute that may be cut takes about this long.
struct tile_options {
  picoseconds longest = 4'000'000;
  std::int64_t most_tiles = 256;  ///< of one compute, where its granule and most allow
};

namespace detail {

template <target::chip_target Target>
picoseconds time_of(const Target& t, std::span<const lowering::item> items, const box& lanes) {
  const auto value = [&](symbol s) { return lane_value(s, lanes); };
  picoseconds sum = 0;
  for (const auto& item : items) {
    if (const auto* l = std::get_if<lowering::loop>(&item.what)) {
      sum += l->count.evaluate(value) * time_of(t, l->body, lanes);
    } else {
      const auto& s = std::get<lowering::statement>(item.what);
      sum += t.time(s.op, s.length.evaluate(value));
    }
  }
  return sum;
}

/// Cuts a lane space into boxes: `pieces[d]` intervals a dimension, whole granules each.
inline void cut(const lowering::compute& c, const std::vector<std::int64_t>& size, std::uint32_t vertex, box& lanes, std::vector<tile>& out) {
  const std::size_t d = lanes.size();
  if (d == c.lanes.size()) {
    out.push_back({vertex, lanes});
    return;
  }
  for (std::int64_t begin = 0; begin < c.lanes[d]; begin += size[d]) {
    lanes.push_back({begin, std::min(c.lanes[d], begin + size[d])});
    cut(c, size, vertex, lanes, out);
    lanes.pop_back();
  }
}

}  // namespace detail

/// Predicted duration of a tile on an otherwise idle core.
template <target::chip_target Target>
[[nodiscard]] picoseconds tile_time(const Target& t, const lowering::compute& c, const box& lanes) {
  return detail::time_of(t, c.body, lanes);
}

/// Tile extents of a compute: at most `most` a dimension, else cut from the outermost dimension on until a tile is no longer
/// than the options ask for.
template <target::chip_target Target>
[[nodiscard]] std::vector<std::int64_t> tile_extents(const Target& t, const lowering::compute& c, const tile_options& options) {
  std::vector<std::int64_t> size(c.lanes);
  std::int64_t tiles = 1;
  for (std::size_t d = 0; d < size.size(); ++d) {
    size[d] = std::max<std::int64_t>(1, size[d]);
    if (c.most[d] != 0) size[d] = std::min(size[d], std::max(c.granule[d], c.most[d] / c.granule[d] * c.granule[d]));
    tiles *= checked::divide_up(std::max<std::int64_t>(1, c.lanes[d]), size[d]);
  }
  for (std::size_t d = 0; d < size.size(); ++d) {
    box first;
    for (const auto s : size) first.push_back({0, s});
    const auto wanted = std::min(checked::divide_up(tile_time(t, c, first), options.longest), std::max<std::int64_t>(1, options.most_tiles / tiles));
    if (wanted <= 1) break;
    const auto granules = checked::divide_up(size[d], c.granule[d]);
    const auto cut_size = checked::divide_up(granules, std::min(granules, wanted)) * c.granule[d];
    tiles *= checked::divide_up(size[d], cut_size);
    size[d] = std::min(size[d], cut_size);
  }
  return size;
}

/// All tiles of a compute graph and their dependencies.
///
/// Cost: O(tiles · log + dependencies). Deterministic.
template <target::chip_target Target>
[[nodiscard]] tile_graph make_tiles(const Target& t, const lowering::compute_graph& g, const tile_options& options = {}) {
  tile_graph result;
  result.of_compute.resize(g.size());
  for (lowering::vertex v = 0; v < g.size(); ++v) {
    if (element_count(g.at(v).lanes) == 0) continue;
    const auto first = result.tiles.size();
    box lanes;
    detail::cut(g.at(v), tile_extents(t, g.at(v), options), static_cast<std::uint32_t>(v), lanes, result.tiles);
    for (auto i = first; i < result.tiles.size(); ++i) result.of_compute[v].push_back(static_cast<std::uint32_t>(i));
  }

  // Writers of each value, sorted by the begin of their box in the dimension in which the boxes differ most.
  struct writer {
    box where;
    std::uint32_t tile;
  };
  struct writers {
    std::size_t key = 0;
    std::int64_t longest = 0;
    std::vector<writer> list;
  };
  std::vector<writers> of_value(g.values().size());
  for (std::uint32_t i = 0; i < result.tiles.size(); ++i)
    for (const auto& a : g.at(result.tiles[i].compute).accesses)
      if (a.mode != lowering::access_mode::read) of_value[a.value].list.push_back({box_of(a, result.tiles[i].lanes), i});
  for (auto& w : of_value) {
    if (w.list.empty()) continue;
    std::size_t most = 0;
    for (std::size_t d = 0; d < w.list[0].where.size(); ++d) {
      std::vector<std::int64_t> begins;
      for (const auto& x : w.list) begins.push_back(x.where[d].begin);
      std::sort(begins.begin(), begins.end());
      const auto distinct = static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
      if (distinct > most) most = distinct, w.key = d;
    }
    if (!w.list[0].where.empty())
      std::stable_sort(w.list.begin(), w.list.end(), [&](const writer& a, const writer& b) { return a.where[w.key].begin < b.where[w.key].begin; });
    for (const auto& x : w.list)
      if (!x.where.empty()) w.longest = std::max(w.longest, x.where[w.key].size());
  }

  result.producers.resize(result.tiles.size());
  for (std::uint32_t i = 0; i < result.tiles.size(); ++i) {
    auto& producers = result.producers[i];
    for (const auto& a : g.at(result.tiles[i].compute).accesses) {
      const auto& w = of_value[a.value];
      if (a.mode != lowering::access_mode::read || w.list.empty()) continue;
      const box needed = box_of(a, result.tiles[i].lanes);
      auto at = w.list.begin();
      if (!needed.empty())
        at = std::lower_bound(w.list.begin(), w.list.end(), needed[w.key].begin - w.longest,
                              [&](const writer& x, std::int64_t begin) { return x.where[w.key].begin < begin; });
      for (; at != w.list.end() && (needed.empty() || at->where[w.key].begin < needed[w.key].end); ++at)
        if (at->tile != i && !is_empty(intersect(at->where, needed))) producers.push_back(at->tile);
    }
    std::sort(producers.begin(), producers.end());
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
  }
  return result;
}

}  // namespace raptor::schedule
