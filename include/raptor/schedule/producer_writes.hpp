#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"
#include "raptor/schedule/tiles.hpp"

namespace raptor::schedule {

/// What the producers of one tile write, found by value: a tile may read thousands of values, each of another producer.
///
/// The graphs must outlive it. Cost: O(n log n) in the writes of the producers, O(log n) for each question.
class producer_writes {
 public:
  struct write {
    std::uint32_t value = 0;
    std::uint32_t producer = 0;             ///< tile
    const lowering::access* box = nullptr;  ///< in the lanes of the producer
  };

  producer_writes(const lowering::compute_graph& computes, const tile_graph& graph, std::uint32_t tile) {
    for (const auto producer : graph.producers[tile])
      for (const auto& a : computes.at(graph.tiles[producer].compute).accesses)
        if (a.mode != lowering::access_mode::read) writes_.push_back({a.value, producer, &a});
    if (!std::is_sorted(writes_.begin(), writes_.end(), by_value)) std::stable_sort(writes_.begin(), writes_.end(), by_value);
  }
  /// Writes of a value, in the order of the producers and of their accesses.
  [[nodiscard]] std::span<const write> of(std::uint32_t value) const {
    const auto [first, last] = std::equal_range(writes_.begin(), writes_.end(), write{value, 0, nullptr}, by_value);
    return {first, last};
  }

 private:
  static bool by_value(const write& a, const write& b) noexcept { return a.value < b.value; }

  std::vector<write> writes_;
};

}  // namespace raptor::schedule
