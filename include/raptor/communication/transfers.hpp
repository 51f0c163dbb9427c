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

/// The transfers of a schedule whose channels are point to point: its flows, with where they are needed first.
///
/// Requires: a schedule that check_schedule accepts. Cost: O(dependencies × accesses). Deterministic.
[[nodiscard]] inline transfer_lists collect_transfers(const lowering::compute_graph& computes, const schedule::schedule& s) {
  const auto needed = schedule::collect_flows(computes, s.graph, [&](std::uint32_t tile) { return s.place[tile].core; });
  std::vector<std::size_t> first_use(needed.flows.size(), s.order.size());
  for (std::size_t position = s.order.size(); position-- > 0;)
    for (const auto f : needed.of_tile[s.order[position]]) first_use[f] = position;
  transfer_lists result(s.graph.tiles.size());
  for (std::size_t f = 0; f < needed.flows.size(); ++f) {
    const auto& flow = needed.flows[f];
    result[flow.producer].push_back({flow.value, flow.core, first_use[f], flow.what});
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
