#include "raptor/sim/timing_model/pending.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using raptor::sim::timing::pending_set;

namespace {

/// Everything that is pending, in the order in which it comes out.
std::vector<std::pair<std::int64_t, int>> drained(pending_set<int> set) {
  std::vector<std::pair<std::int64_t, int>> result;
  while (!set.empty()) {
    const auto item = set.extract();
    result.emplace_back(item.time, item.entry);
  }
  return result;
}

}  // namespace

TEST_CASE("entries come out by time; equal times neither first in first out nor last in first out") {
  pending_set<int> set;
  for (int i = 1; i <= 5; ++i) set.insert(10, i);
  std::vector<int> order;
  for (const auto& [time, entry] : drained(set)) order.push_back(entry);
  CHECK(order == std::vector<int>{1, 5, 4, 3, 2});
}

TEST_CASE("running idle edges at once is running each of them") {
  std::uint32_t state = 1;
  const auto draw = [&](std::uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return state / 65536u % n;
  };
  for (int round = 0; round < 300; ++round) {
    pending_set<int> one, many;
    const auto count = draw(40) + 1;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto time = static_cast<std::int64_t>(100000 + draw(5) * 10);
      one.insert(time, static_cast<int>(i + 1));
      many.insert(time, static_cast<int>(i + 1));
    }
    one.insert(7, 0);
    many.insert(7, 0);
    const auto edges = static_cast<std::int64_t>(draw(200) + 1);
    for (std::int64_t i = 0; i < edges; ++i) {
      const auto clock = one.extract();
      one.insert(clock.time + 7, clock.entry);
    }
    many.run_idle_edges(7, edges);
    CHECK(drained(one) == drained(many));
  }
}
