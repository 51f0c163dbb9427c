#include "raptor/schedule/steps.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <tuple>

#include "tiled_networks.hpp"

using namespace raptor;
using namespace raptor::test;
using schedule::cursor;

TEST_CASE("parts of a body by hand") {
  // A statement of 15 ps; 10 iterations of 30; none; a statement of 110.
  lowering::kernel_builder k("c", {1, 8});
  const auto t = k.scratch("t", 100);
  k.fill(k.in(t), 0, 5);
  k.loop(10, [&](const affine&) { k.fill(k.in(t), 0, 20); });
  k.loop(0, [&](const affine&) { k.fill(k.in(t), 0, 20); });
  k.fill(k.in(t), 0, 100);
  const auto c = k.take();
  const auto parts = [&](schedule::picoseconds longest) {
    std::vector<std::tuple<std::uint32_t, std::int64_t, schedule::picoseconds>> list;
    for (const auto& a : schedule::atoms_of(round_target{}, c, {{0, 1}, {0, 1}}, longest)) list.emplace_back(a.end.item, a.end.iteration, a.time);
    return list;
  };
  using expected = decltype(parts(1));
  CHECK(parts(1'000'000) == expected{{4, 0, 425}});
  CHECK(parts(100) == expected{{1, 3, 15 + 3 * 30}, {1, 7, 4 * 30}, {4, 0, 3 * 30 + 110}});
  CHECK(parts(165) == expected{{1, 5, 15 + 5 * 30}, {4, 0, 5 * 30 + 110}});
  CHECK(parts(150) == expected{{1, 5, 15 + 5 * 30}, {2, 0, 5 * 30}, {4, 0, 110}});
  CHECK(parts(1).size() == 12);
  CHECK(parts(1).back() == std::tuple(4U, std::int64_t{0}, schedule::picoseconds{110}));
  // Stops cut where the body has begun to take time.
  const std::vector<std::uint32_t> stops{0, 1, 3};
  std::vector<std::tuple<std::uint32_t, std::int64_t, schedule::picoseconds>> stopped;
  for (const auto& a : schedule::atoms_of(round_target{}, c, {{0, 1}, {0, 1}}, 1'000'000, stops)) stopped.emplace_back(a.end.item, a.end.iteration, a.time);
  CHECK(stopped == expected{{1, 0, 15}, {3, 0, 300}, {4, 0, 110}});
  const auto cut = schedule::atoms_of(round_target{}, c, {{0, 1}, {0, 1}}, 1'000'000, stops);
  for (const auto& [item, part] : std::map<std::uint32_t, std::uint32_t>{{0, 0}, {1, 1}, {2, 1}, {3, 2}}) CHECK(schedule::part_of(cut, item) == part);
  // Loops without iterations are no parts of their own.
  lowering::kernel_builder idle("i", {1, 8});
  const auto u = idle.scratch("t", 100);
  idle.loop(0, [&](const affine&) { idle.fill(idle.in(u), 0, 20); });
  idle.fill(idle.in(u), 0, 100);
  for (int i = 0; i < 2; ++i) idle.loop(0, [&](const affine&) { idle.fill(idle.in(u), 0, 20); });
  const auto whole_body = schedule::atoms_of(round_target{}, idle.take(), {{0, 1}, {0, 1}}, 100);
  REQUIRE(whole_body.size() == 1);
  CHECK(whole_body[0].end == cursor{4, 0});
  CHECK(whole_body[0].time == 110);
  // Nothing to do is still one part, of the least time.
  const auto nothing = schedule::atoms_of(round_target{}, lowering::kernel_builder("n", {1, 8}).take(), {{0, 1}, {0, 1}}, 100);
  REQUIRE(nothing.size() == 1);
  CHECK(nothing[0].end == cursor{0, 0});
  CHECK(nothing[0].time == 1);
}

TEST_CASE("the parts of random bodies follow one another to the end, and take what the tile takes") {
  const uneven_target t;
  std::size_t several = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const auto g = layered_network(seed);
    const auto tiles = schedule::make_tiles(t, g);
    for (const auto& tile : tiles.tiles)
      for (const schedule::picoseconds longest : {1, 500, 3000, 1'000'000'000}) {
        const auto& c = g.at(tile.compute);
        const auto parts = schedule::atoms_of(t, c, tile.lanes, longest);
        REQUIRE(!parts.empty());
        several += parts.size() > 1;
        CHECK(parts.back().end == cursor{static_cast<std::uint32_t>(c.body.size()), 0});
        schedule::picoseconds sum = 0;
        cursor at;
        for (const auto& p : parts) {
          CHECK(at < p.end);
          CHECK(p.time > 0);
          if (p.end.iteration > 0) {
            const auto& l = std::get<lowering::loop>(c.body.at(p.end.item).what);
            CHECK(p.end.iteration < l.count.evaluate([&](symbol s) { return schedule::detail::lane_value(s, tile.lanes); }));
          }
          // A part is no shorter than asked for, but for the last one and those that the next iteration would make too long.
          if (&p != &parts.back() && p.end.iteration == 0) CHECK(p.time >= longest);
          sum += p.time;
          at = p.end;
        }
        CHECK(sum == std::max<schedule::picoseconds>(1, schedule::tile_time(t, c, tile.lanes)));
      }
  }
  CHECK(several > 1000);
}

TEST_CASE("flows: each producer, core and value once; the hull of what is read") {
  const uneven_target t;
  std::size_t shared = 0;
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    CAPTURE(seed);
    const auto g = layered_network(seed);
    const auto s = scattered(t, g, seed + 1);
    const auto core = [&](std::uint32_t tile) { return s.place[tile].core; };
    const auto list = schedule::collect_flows(g, s.graph, core);
    // What each flow must hold, from the boxes of all pairs of tiles.
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::pair<box, std::set<std::uint32_t>>> needed;
    for (std::uint32_t i = 0; i < s.graph.tiles.size(); ++i)
      for (std::uint32_t p = 0; p < s.graph.tiles.size(); ++p)
        for (const auto& a : g.at(s.graph.tiles[i].compute).accesses)
          for (const auto& w : g.at(s.graph.tiles[p].compute).accesses) {
            if (core(i) == core(p) || a.mode != lowering::access_mode::read || w.mode == lowering::access_mode::read || a.value != w.value) continue;
            const auto part = intersect(schedule::box_of(a, s.graph.tiles[i].lanes), schedule::box_of(w, s.graph.tiles[p].lanes));
            if (is_empty(part)) continue;
            auto& [what, tiles] = needed[{p, core(i), a.value}];
            what = what.empty() ? part : hull(what, part);
            tiles.insert(i);
          }
    REQUIRE(list.flows.size() == needed.size());
    REQUIRE(list.of_tile.size() == s.graph.tiles.size());
    std::size_t f = 0;
    std::vector<std::set<std::uint32_t>> waits(s.graph.tiles.size());
    REQUIRE(list.readers.size() == list.flows.size());
    for (const auto& [key, need] : needed) {  // by producer, core, value
      CHECK(list.flows[f] == schedule::flow{std::get<0>(key), std::get<2>(key), std::get<1>(key), need.first});
      for (const auto tile : need.second) waits[tile].insert(static_cast<std::uint32_t>(f));
      std::set<std::uint32_t> readers;
      for (const auto& r : list.readers[f]) readers.insert(r.tile);
      CHECK(readers == need.second);
      CHECK(readers.size() == list.readers[f].size());
      shared += need.second.size() > 1;
      ++f;
    }
    for (std::size_t i = 0; i < waits.size(); ++i) CHECK(list.of_tile[i] == std::vector<std::uint32_t>(waits[i].begin(), waits[i].end()));
    // Every producer that is not remote has its readers on the same core.
    for (std::uint32_t p = 0; p < s.graph.tiles.size(); ++p)
      for (const auto& r : list.local_readers[p]) {
        CHECK(core(p) == core(r.tile));
        CHECK(std::count(s.graph.producers[r.tile].begin(), s.graph.producers[r.tile].end(), p) == 1);
        CHECK(schedule::first_items(g.at(s.graph.tiles[r.tile].compute)).size() == g.at(s.graph.tiles[r.tile].compute).accesses.size());
      }
    // On one core nothing flows.
    CHECK(schedule::collect_flows(g, s.graph, [](std::uint32_t) { return 0U; }).flows.empty());
  }
  CHECK(shared > 100);
}
