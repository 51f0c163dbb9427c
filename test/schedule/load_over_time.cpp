#include "raptor/schedule/load_over_time.hpp"

#include <doctest/doctest.h>

using namespace raptor::schedule;

namespace {

/// Computes of three tiles each: 0 feeds 1 and 1 feeds 2, row by row; all rows of 2 feed the one tile of 3.
tile_graph three_rows() {
  tile_graph g;
  for (std::uint32_t v = 0; v < 4; ++v) {
    auto& own = g.of_compute.emplace_back();
    for (std::uint32_t row = 0; row < (v < 3 ? 3U : 1U); ++row) {
      own.push_back(static_cast<std::uint32_t>(g.tiles.size()));
      g.tiles.push_back({v, {}});
      auto& from = g.producers.emplace_back();
      if (v > 0 && v < 3) from.push_back(3 * (v - 1) + row);
      if (v == 3) from = {6, 7, 8};
    }
  }
  return g;
}

}  // namespace

TEST_CASE("tiles wait for their inputs and, with weights, for the copy that they share") {
  const auto g = three_rows();
  const auto ten = [](std::uint32_t) { return 10.0; };
  // One copy each, ten periods of 5: compute 0 at 0, 10, 20; 1 at 10, 20, 30; 2 at 20, 30, 40; 3 at 50, which ends at 60 = 12 periods.
  CHECK(expected_periods(g, {1, 1, 1, 1}, {4, 4, 4, 4}, 12, ten) == std::vector<std::size_t>{1, 3, 5, 3, 5, 7, 5, 7, 9, 11});
  // Three copies, or no weights: all rows at once; 40 in all.
  CHECK(expected_periods(g, {3, 3, 3, 1}, {4, 4, 4, 4}, 8, ten) == std::vector<std::size_t>{1, 1, 1, 3, 3, 3, 5, 5, 5, 7});
  CHECK(expected_periods(g, {1, 1, 1, 1}, {0, 0, 0, 0}, 8, ten) == std::vector<std::size_t>{1, 1, 1, 3, 3, 3, 5, 5, 5, 7});
  // Two copies of the first one: its third tile waits for its first one.
  CHECK(expected_periods(g, {2, 3, 3, 1}, {4, 4, 4, 4}, 10, ten) == std::vector<std::size_t>{1, 1, 3, 3, 3, 5, 5, 5, 7, 9});
  CHECK(expected_periods(g, {1, 1, 1, 1}, {4, 4, 4, 4}, 1, ten) == std::vector<std::size_t>(10, 0));
  CHECK(expected_periods(g, {1, 1, 1, 1}, {4, 4, 4, 4}, 7, [](std::uint32_t) { return 0.0; }) == std::vector<std::size_t>(10, 0));
  CHECK(expected_periods(tile_graph{}, {}, {}, 4, ten).empty());
}

TEST_CASE("the periods of a schedule are those of the middles of its tiles") {
  std::vector<placed> place(3);
  place[0].finish = 10, place[1].start = 40, place[1].finish = 60, place[2].start = 100, place[2].finish = 100;
  CHECK(scheduled_periods(place, 100, 4) == std::vector<std::size_t>{0, 2, 3});
}

TEST_CASE("load counts less the further away its period is, down to what remote load counts") {
  load_profile near(4, 0.25, 1);
  near.add(1, 1);
  CHECK(near.seen() == std::vector<double>{0.625, 1, 0.625, 0.5});
  load_profile two(4, 0.25, 1);
  two.add(0, 0.5), two.add(2, 0.5);
  CHECK(two.seen() == std::vector<double>{0.75, 0.625, 0.75, 0.53125});
  load_profile alike(3, 1, 1);
  alike.add(2, 1);
  CHECK(alike.seen() == std::vector<double>{1, 1, 1});

  load_over_time load(2, 4);
  load.add(1, near, 8), load.add(1, two, 16);
  CHECK(load.at(1, 0) == 5 + 12);
  CHECK(load.at(1, 3) == 4 + 8.5);
  CHECK(load.at(0, 0) == 0);
  load.clear();
  CHECK(load.at(1, 0) == 0);
}
