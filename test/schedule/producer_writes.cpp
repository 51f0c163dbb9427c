#include "raptor/schedule/producer_writes.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "raptor/schedule/steps.hpp"
#include "tiled_networks.hpp"

using namespace raptor;
using namespace raptor::test;

TEST_CASE("writes of the producers of a tile, by value, in their order") {
  std::size_t several = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const auto g = layered_network(seed);
    const auto graph = schedule::make_tiles(uneven_target{}, g);
    for (std::uint32_t tile = 0; tile < graph.tiles.size(); ++tile) {
      const schedule::producer_writes written(g, graph, tile);
      for (std::uint32_t value = 0; value < g.values().size(); ++value) {
        using found = std::vector<std::pair<std::uint32_t, const lowering::access*>>;
        found expected, is;
        for (const auto p : graph.producers[tile])
          for (const auto& w : g.at(graph.tiles[p].compute).accesses)
            if (w.mode != lowering::access_mode::read && w.value == value) expected.emplace_back(p, &w);
        for (const auto& w : written.of(value)) is.emplace_back(w.producer, w.box);
        CHECK(is == expected);
        several += is.size() > 1;
      }
    }
  }
  CHECK(several > 100);
}

TEST_CASE("a compute that reads thousands of values has its flows in a moment") {
  using namespace lowering;
  compute_graph g;
  constexpr std::uint32_t count = 4000;
  kernel_builder sum("sum", {1, 1});
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto v = g.add_value({"v" + std::to_string(i), {1, 4}, layout::physical::dense, origin::computed, {}});
    kernel_builder k("c", {1, 1});
    k.writes(v, {0, 0}, {1, 4});
    g.add_compute(k.take());
    sum.reads(v, {0, 0}, {1, 4});
  }
  g.add_compute(sum.take());
  const auto graph = schedule::make_tiles(uneven_target{}, g);
  const auto start = std::chrono::steady_clock::now();
  const auto list = schedule::collect_flows(g, graph, [](std::uint32_t tile) { return tile % 2; });
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK(list.flows.size() == count / 2);
  CHECK(list.of_tile.back().size() == count / 2);
  CHECK(seconds < 5);
}
