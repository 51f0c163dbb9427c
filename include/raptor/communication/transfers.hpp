#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "raptor/communication/regions.hpp"
#include "raptor/schedule/schedule.hpp"

namespace raptor::communication {

/// What the core of a producing tile sends to another core right after the tile: the hull of all that the other core's
/// tiles read of it.
struct transfer {
  std::uint32_t value = 0;
  std::uint32_t core = 0;     ///< the receiver
  std::size_t first_use = 0;  ///< position in the global order of the first tile there that reads it
  box what;
  friend bool operator==(const transfer&, const transfer&) = default;
};

/// By producing tile, in the order in which they are sent: by first use, then receiver, then value.
using transfer_lists = std::vector<std::vector<transfer>>;

/// The transfers of a schedule whose channels are point to point: every (producing tile, value, receiving core) once.
///
/// Requires: a schedule that check_schedule accepts. Cost: O(dependencies × accesses). Deterministic.
[[nodiscard]] inline transfer_lists collect_transfers(const lowering::compute_graph& computes, const schedule::schedule& s) {
  transfer_lists result(s.graph.tiles.size());
  const auto compute_of = [&](std::uint32_t tile) -> const lowering::compute& { return computes.at(s.graph.tiles[tile].compute); };
  for (std::size_t position = 0; position < s.order.size(); ++position) {
    const auto tile = s.order[position];
    const auto core = s.place[tile].core;
    for (const auto& a : compute_of(tile).accesses) {
      if (a.mode != lowering::access_mode::read || computes.values()[a.value].from != lowering::origin::computed) continue;
      const box needed = intersect(schedule::box_of(a, s.graph.tiles[tile].lanes), whole(computes.values()[a.value].sizes));
      for (const auto producer : s.graph.producers[tile]) {
        if (s.place[producer].core == core) continue;
        for (const auto& w : compute_of(producer).accesses) {
          if (w.mode == lowering::access_mode::read || w.value != a.value) continue;
          const box part = intersect(needed, schedule::box_of(w, s.graph.tiles[producer].lanes));
          if (is_empty(part)) continue;
          auto& list = result[producer];
          const auto at = std::find_if(list.begin(), list.end(), [&](const transfer& t) { return t.value == a.value && t.core == core; });
          if (at == list.end()) list.push_back({a.value, core, position, part});
          else at->what = hull(at->what, part);
        }
      }
    }
  }
  for (auto& list : result)
    std::sort(list.begin(), list.end(), [](const transfer& a, const transfer& b) {
      return std::tuple(a.first_use, a.core, a.value) < std::tuple(b.first_use, b.core, b.value);
    });
  return result;
}

/// Messages that a transfer takes: one a fragment of its value's layout.
[[nodiscard]] inline std::size_t messages_of(const transfer& t, const lowering::value& v) { return fragments(t.what, v.sizes, v.layout).size(); }

}  // namespace raptor::communication
