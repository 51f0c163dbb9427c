#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "raptor/schedule/copies.hpp"
#include "raptor/schedule/producer_writes.hpp"
#include "raptor/schedule/tiles.hpp"

namespace raptor::schedule {

/// By compute: the time for which its tiles keep their cores busy with sending and receiving, before it is known where anything runs.
///
/// Every producing tile sends what it writes once to each family of computes that reads of it, halfway across the chip. Computes of one family,
/// and computes without weights among themselves, are taken to share a core. Zero on a chip of one core. Cost: O(n log n) in what is read and written.
template <target::chip_target Target>
[[nodiscard]] std::vector<picoseconds> transfer_load(const Target& t, const lowering::compute_graph& g, const tile_graph& tiles) {
  std::vector<picoseconds> load(g.size(), 0);
  const program::geometry chip = t.chip();
  if (chip.core_count < 2) return load;
  const auto halfway = static_cast<std::size_t>(chip.core_count / 2);
  const auto head = family_heads(g);
  struct message {
    std::uint32_t value = 0, to = 0;  // head of the family
    std::uint32_t compute = 0;        // the one that receives it
    box what;
  };
  std::vector<std::vector<message>> sent(tiles.tiles.size());
  for (std::uint32_t i = 0; i < tiles.tiles.size(); ++i) {
    const auto reader = tiles.tiles[i].compute;
    const producer_writes written(g, tiles, i);
    for (const auto& a : g.at(reader).accesses) {
      if (a.mode != lowering::access_mode::read || g.values()[a.value].from != lowering::origin::computed) continue;
      const box needed = intersect(box_of(a, tiles.tiles[i].lanes), whole(g.values()[a.value].sizes));
      for (const auto& w : written.of(a.value)) {
        const auto p = w.producer;
        const auto writer = tiles.tiles[p].compute;
        if (head[writer] == head[reader] || (g.at(writer).groups.empty() && g.at(reader).groups.empty())) continue;
        box part = intersect(needed, box_of(*w.box, tiles.tiles[p].lanes));
        if (is_empty(part)) continue;
        const auto known = std::find_if(sent[p].begin(), sent[p].end(), [&](const message& m) { return m.value == a.value && m.to == head[reader]; });
        if (known == sent[p].end()) sent[p].push_back({a.value, head[reader], reader, std::move(part)});
        else known->what = hull(known->what, part);
      }
    }
  }
  for (std::uint32_t p = 0; p < sent.size(); ++p)
    for (const auto& m : sent[p]) {
      const auto time = t.transfer_time(0, halfway, element_count(m.what));
      for (const auto v : {tiles.tiles[p].compute, m.compute}) load[v] = checked::add(load[v], time);
    }
  return load;
}

}  // namespace raptor::schedule
