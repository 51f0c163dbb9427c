#pragma once

#include <cstdint>

#include "../lowering/text_graphs.hpp"
#include "raptor/schedule/schedule.hpp"

namespace raptor::test {

/// A target of small_chip with round times: every instruction 10 ps and 1 ps an element.
struct round_target {
  std::int64_t cores = 2;
  [[nodiscard]] program::geometry chip() const { return small_chip(cores); }
  [[nodiscard]] schedule::picoseconds time(isa::opcode, std::int64_t n) const { return 10 + n; }
  [[nodiscard]] schedule::picoseconds transfer_time(std::size_t, std::size_t, std::int64_t n) const { return 20 + n; }
  [[nodiscard]] schedule::picoseconds global_time(std::size_t, std::int64_t n, bool) const { return 30 + n; }
};

/// small_graph with one row a tile, ordered; all computes but the last are divided between two cores by rows, the last is on core 1.
[[nodiscard]] inline schedule::schedule spread(const lowering::compute_graph& g, std::int64_t cores = 2) {
  schedule::schedule s;
  s.graph = schedule::make_tiles(round_target{cores}, g, {1, 256});
  s.place.resize(s.graph.tiles.size());
  for (std::size_t i = 0; i < s.place.size(); ++i) {
    const auto& t = s.graph.tiles[i];
    const bool second = cores > 1 && (t.compute == 2 || t.lanes[1].begin % 2 == 1);
    s.place[i].core = second ? 1 : 0;
    s.place[i].copy = t.compute == 2 ? 0 : s.place[i].core;
  }
  schedule::ready_order{}(round_target{cores}, g, s);
  return s;
}

}  // namespace raptor::test
