#include "raptor/schedule/spread_placement.hpp"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <set>

#include "tiled_networks.hpp"

using namespace raptor;
using namespace raptor::test;
using namespace raptor::schedule;

namespace {

using counts = std::vector<std::int64_t>;

/// Crossbars of each family, at its head.
counts family_sizes(const lowering::compute_graph& g, const program::geometry& chip) {
  counts sizes(g.size(), 0);
  const auto head = family_heads(g);
  for (std::uint32_t v = 0; v < g.size(); ++v)
    if (head[v] == v) sizes[v] = crossbars_of(g.at(v), chip);
  return sizes;
}

/// One compute of `columns` columns of weights and `height` rows, each of `iterations` times 100 ps.
void add_layer(lowering::compute_graph& g, std::int64_t columns, std::int64_t height, std::int64_t iterations, std::int64_t family = -1) {
  using namespace lowering;
  const auto to = g.add_value({"v", {1, 4, std::max<std::int64_t>(height, 1), 8}, layout::physical::nhwc_row_strip, origin::computed, {}});
  kernel_builder k("layer", {1, height});
  k.current().most = {1, 1};
  k.current().family = family;
  k.writes(to, {0, 0, tile_begin(1), 0}, {1, 4, tile_end(1), 8});
  const auto t = k.scratch("t", 100);
  if (columns > 0) k.group({16, columns, {numbers(1)}, {}});
  k.loop(iterations, [&](const affine&) { k.fill(k.in(t), 0, 90); });
  g.add_compute(k.take());
}

}  // namespace

TEST_CASE("the head of a family is its first compute") {
  lowering::compute_graph g;
  for (const std::int64_t family : {-1, 5, 0, 5, -1, 0, 5}) add_layer(g, 16, 1, 2, family);
  CHECK(family_heads(g) == std::vector<std::uint32_t>{0, 1, 2, 1, 4, 2, 1});
  CHECK(family_heads(lowering::compute_graph{}).empty());
}

TEST_CASE("copies by hand") {
  // 100 and 25 units of work, a crossbar each, ten crossbars: four fifths to the first.
  lowering::compute_graph g;
  add_layer(g, 16, 20, 40), add_layer(g, 16, 20, 10);
  const uneven_target t{10, 1};
  const auto tiles = make_tiles(t, g);
  REQUIRE(tiles.tiles.size() == 40);
  CHECK(bottleneck_replication{.occupancy = 1}(t, g, tiles) == counts{8, 2});
  CHECK(bottleneck_replication{.occupancy = 0.2}(t, g, tiles) == counts{1, 1});
  CHECK(bottleneck_replication{.most = 3, .occupancy = 1}(t, g, tiles) == counts{3, 3});
  CHECK(bottleneck_replication{.occupancy = 1, .power = 2}(t, g, tiles) == counts{7, 3});  // after the square root: 6.7 to 3.3
  CHECK(no_replication{}(t, g, tiles) == counts{1, 1});
  // Two computes of a family share their copies and are one work of 125: as many copies as fit, no more than tiles.
  lowering::compute_graph one;
  add_layer(one, 16, 3, 40, 7), add_layer(one, 16, 3, 10, 7);
  CHECK(bottleneck_replication{.occupancy = 1}(t, one, make_tiles(t, one)) == counts{6, 6});
}

TEST_CASE("one copy of everything is a candidate where copies save little") {
  lowering::compute_graph g;
  add_layer(g, 16, 20, 40), add_layer(g, 16, 20, 10);
  const auto single = [&](const uneven_target& t) {
    const auto all = replication_portfolio{}(t, g, make_tiles(t, g));
    return std::count(all.begin(), all.end(), counts{1, 1});
  };
  CHECK(single({10, 1}) == 0);  // the longest share is a seventh with copies
  CHECK(single({2, 2}) == 1);   // half
  const auto tiles = make_tiles(uneven_target{10, 1}, g);
  const auto one = static_cast<double>(work_of(uneven_target{10, 1}, g.at(0), tiles, 0));
  CHECK(longest_share(uneven_target{10, 1}, g, tiles, {1, 1}) == one);
  CHECK(longest_share(uneven_target{10, 1}, g, tiles, {8, 1}) == doctest::Approx(one / 4));  // the other's then is
}

TEST_CASE("copies: one to the number of tiles, within the crossbars, equal in a family") {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    const auto g = layered_network(seed, 8);
    const uneven_target t{1 + seed % 12, 4 + seed % 3};
    const auto tiles = make_tiles(t, g);
    const auto head = family_heads(g);
    const auto sizes = family_sizes(g, t.chip());
    const auto all = replication_portfolio{}(t, g, tiles);
    REQUIRE(!all.empty());
    CHECK(all.size() <= replication_portfolio{}.candidates.size() + 1);
    CHECK(all[0] == bottleneck_replication{}(t, g, tiles));
    CHECK(std::set<counts>(all.begin(), all.end()).size() == all.size());
    CHECK(replication_portfolio{}(t, g, tiles) == all);
    std::int64_t first = 0;
    for (const auto size : sizes) first += size;
    for (const auto& copies : all) {
      REQUIRE(copies.size() == g.size());
      std::vector<std::int64_t> count(g.size(), 0);
      std::int64_t used = 0;
      for (std::uint32_t v = 0; v < g.size(); ++v) {
        count[head[v]] += static_cast<std::int64_t>(tiles.of_compute[v].size());
        used += sizes[v] * copies[v];
        CHECK(copies[v] == copies[head[v]]);
        CHECK(copies[v] >= 1);
      }
      for (std::uint32_t v = 0; v < g.size(); ++v) CHECK(copies[v] <= std::min(count[head[v]], t.cores));
      CHECK(used <= std::max(first, t.cores * t.crossbars));
      if (first >= t.cores * t.crossbars)
        for (std::uint32_t v = 0; v < g.size(); ++v) CHECK((copies[v] == 1 || sizes[head[v]] == 0));
    }
  }
}

TEST_CASE("placement: no core is overfull, no family has more copies than asked for; or the first ones do not fit") {
  std::size_t placed = 0, refused = 0, several = 0;
  for (std::uint32_t seed = 0; seed < 250; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    const auto g = layered_network(seed, 3 + seed % 7);
    const uneven_target t{1 + seed % 7, 3 + seed % 4};
    const auto head = family_heads(g);
    const auto sizes = family_sizes(g, t.chip());
    for (const bool bands : {false, true}) {
      CAPTURE(bands);
      schedule::schedule s;
      s.graph = make_tiles(t, g, {20'000, 16});
      std::vector<std::size_t> count(g.size(), 0);
      for (std::uint32_t v = 0; v < g.size(); ++v) count[head[v]] += s.graph.of_compute[v].size();
      counts copies(g.size(), 1);
      for (std::uint32_t v = 0; v < g.size(); ++v) copies[v] = head[v] == v ? 1 + static_cast<std::int64_t>(dice() % std::max<std::size_t>(1, count[v])) : copies[head[v]];
      const auto fits = try_pack(sizes, counts(static_cast<std::size_t>(t.cores), t.crossbars)).has_value();
      try {
        spread_placement{.bands = bands}(t, g, copies, s);
        ++placed;
      } catch (const error& e) {
        CHECK(e.code() == error_code::capacity);
        CHECK(std::string(e.what()).find(" crossbars needed, " + std::to_string(t.cores * t.crossbars) + " available") != std::string::npos);
        CHECK(!fits);
        ++refused;
        continue;
      }
      std::vector<std::set<std::uint32_t>> families(static_cast<std::size_t>(t.cores)), cores_of(g.size());
      std::vector<std::map<std::uint32_t, std::uint32_t>> numbers(g.size());  // core → copy
      REQUIRE(s.place.size() == s.graph.tiles.size());
      for (std::uint32_t i = 0; i < s.place.size(); ++i) {
        const auto& p = s.place[i];
        const auto v = s.graph.tiles[i].compute;
        REQUIRE(p.core < t.cores);
        CHECK(numbers[v].try_emplace(p.core, p.copy).first->second == p.copy);
        if (sizes[head[v]] == 0) continue;
        families[p.core].insert(head[v]);
        cores_of[head[v]].insert(p.core);
      }
      for (const auto& list : families) {
        std::int64_t used = 0;
        for (const auto v : list) used += sizes[v];
        CHECK(used <= t.crossbars);
      }
      for (std::uint32_t v = 0; v < g.size(); ++v) {
        CHECK(static_cast<std::int64_t>(cores_of[v].size()) <= copies[v]);
        several += cores_of[v].size() > 1;
        std::set<std::uint32_t> distinct;  // copies are numbered from 0, one a core
        for (const auto& [core, number] : numbers[v]) distinct.insert(number);
        CHECK(distinct.size() == numbers[v].size());
        if (!distinct.empty()) CHECK(*distinct.rbegin() == distinct.size() - 1);
      }
      schedule::schedule again;
      again.graph = s.graph;
      spread_placement{.bands = bands}(t, g, copies, again);
      for (std::size_t i = 0; i < s.place.size(); ++i) CHECK((s.place[i].core == again.place[i].core && s.place[i].copy == again.place[i].copy));
    }
  }
  CHECK(placed > 100);
  CHECK(refused > 20);
  CHECK(several > 100);
}

TEST_CASE("placement: all copies where there is room, and what gives way where there is not") {
  // Four cores of two crossbars; 8 rows in each layer.
  const uneven_target t{4, 2};
  const auto cores_used = [&](const lowering::compute_graph& g, const counts& copies, bool bands, std::uint32_t v) {
    schedule::schedule s;
    s.graph = make_tiles(t, g);
    spread_placement{.bands = bands}(t, g, copies, s);
    std::vector<std::uint32_t> cores;
    for (const auto i : s.graph.of_compute[v]) cores.push_back(s.place[i].core);
    return cores;
  };
  const auto distinct = [](const std::vector<std::uint32_t>& cores) { return std::set<std::uint32_t>(cores.begin(), cores.end()).size(); };
  lowering::compute_graph g;
  add_layer(g, 16, 8, 10), add_layer(g, 16, 8, 10);
  for (const bool bands : {false, true}) {
    CHECK(distinct(cores_used(g, {4, 4}, bands, 0)) == 4);
    CHECK(distinct(cores_used(g, {4, 4}, bands, 1)) == 4);
    CHECK(distinct(cores_used(g, {3, 1}, bands, 0)) == 3);
    CHECK(distinct(cores_used(g, {8, 1}, bands, 0)) == 4);  // a core has a copy once
  }
  // In turn, or neighbours together.
  const auto dealt = cores_used(g, {2, 1}, false, 0), banded = cores_used(g, {2, 1}, true, 0);
  for (std::size_t i = 0; i + 2 < 8; ++i) CHECK((dealt[i] == dealt[i + 2] && dealt[i] != dealt[i + 1]));
  for (std::size_t i = 1; i < 8; ++i) CHECK((banded[i] == banded[i - 1]) == (i != 4));
  // Two crossbars a core: a layer of two and one of one do not share a core.
  lowering::compute_graph tight;
  add_layer(tight, 32, 8, 100), add_layer(tight, 16, 8, 10);
  CHECK(distinct(cores_used(tight, {4, 4}, false, 0)) + (distinct(cores_used(tight, {4, 4}, false, 1)) + 1) / 2 <= 4);
  CHECK(distinct(cores_used(tight, {4, 4}, false, 0)) >= 2);  // it takes ten times as long: the other one gives way
  // A weight set larger than a core, and more than all cores have.
  lowering::compute_graph large;
  add_layer(large, 48, 8, 10);
  CHECK_THROWS_WITH_AS(static_cast<void>(cores_used(large, {1}, false, 0)), doctest::Contains("3 crossbars needed, 8 available"), error);
  lowering::compute_graph many;
  for (int i = 0; i < 9; ++i) add_layer(many, 16, 8, 10);
  CHECK_THROWS_WITH_AS(static_cast<void>(cores_used(many, counts(9, 1), false, 0)), doctest::Contains("9 crossbars needed, 8 available"), error);
  // The same nine as one family need one crossbar.
  lowering::compute_graph family;
  for (int i = 0; i < 9; ++i) add_layer(family, 16, 8, 10, 3);
  CHECK(distinct(cores_used(family, counts(9, 1), false, 8)) == 1);
  // Computes without lanes, and none at all.
  lowering::compute_graph empty;
  add_layer(empty, 16, 0, 10, 1), add_layer(empty, 16, 8, 10, 1);
  CHECK(distinct(cores_used(empty, {2, 2}, false, 1)) == 2);
  CHECK(cores_used(empty, {2, 2}, true, 0).empty());
  schedule::schedule nothing;
  spread_placement{}(t, lowering::compute_graph{}, {}, nothing);
  CHECK(nothing.place.empty());
}

TEST_CASE("the load of transfers by hand") {
  using namespace lowering;
  compute_graph g;
  const auto image = [&](const char* name) { return g.add_value({name, {1, 4, 6, 8}, layout::physical::nhwc_row_strip, origin::computed, {}}); };
  const auto a = image("a"), b = image("b"), c = image("c"), d = image("d");
  const auto compute = [&](std::optional<std::uint32_t> from, std::uint32_t to, bool weights, std::int64_t family = -1) {
    kernel_builder k("k", {1, 6});
    k.current().most = {1, 1};
    k.current().family = family;
    if (from) k.reads(*from, {0, 0, tile_begin(1), 0}, {1, 4, tile_end(1), 8});
    k.writes(to, {0, 0, tile_begin(1), 0}, {1, 4, tile_end(1), 8});
    if (weights) k.group({16, 16, {numbers(1)}, {}});
    g.add_compute(k.take());
  };
  // a goes to b and c, which share their weights: once. d is made of c without weights; e of d, both without: nothing.
  compute({}, a, true), compute(a, b, true, 3), compute(a, c, true, 3), compute(c, d, false), compute(d, image("e"), false);
  const uneven_target t{4};
  const auto tiles = make_tiles(t, g);
  REQUIRE(tiles.tiles.size() == 30);
  const auto row = t.transfer_time(0, 2, 32);
  CHECK(transfer_load(t, g, tiles) == std::vector<picoseconds>{6 * row, 6 * row, 6 * row, 6 * row, 0});
  CHECK(transfer_load(uneven_target{1}, g, tiles) == std::vector<picoseconds>(5, 0));
}

TEST_CASE("cores that send each other much change places until they are close together") {
  std::size_t shorter = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const auto g = layered_network(seed);
    const uneven_target t{2 + seed % 6};
    const auto before = scattered(t, g, seed + 1);
    auto after = before;
    bring_together(t, g, after);
    // A new name for every core.
    std::map<std::uint32_t, std::uint32_t> names;
    std::set<std::uint32_t> used;
    for (std::size_t i = 0; i < before.place.size(); ++i) {
      CHECK(after.place[i].core < t.cores);
      CHECK(names.try_emplace(before.place[i].core, after.place[i].core).first->second == after.place[i].core);
    }
    for (const auto& [old, now] : names) used.insert(now);
    CHECK(used.size() == names.size());
    const auto total = [&](const schedule::schedule& s) {
      picoseconds sum = 0;
      for (const auto& f : collect_flows(g, s.graph, [&](std::uint32_t i) { return s.place[i].core; }).flows) sum += t.transfer_time(s.place[f.producer].core, f.core, element_count(f.what));
      return sum;
    };
    CHECK(total(after) <= total(before));
    shorter += total(after) < total(before);
    auto again = after;
    bring_together(t, g, again);
    CHECK(total(again) == total(after));
    auto limited = before;
    bring_together(t, g, limited, 1);  // no time for a sweep
    CHECK(total(limited) == total(before));
  }
  CHECK(shorter > 20);
}

TEST_CASE("tiles that nobody feeds go to idle cores, not to their consumers") {
  using namespace lowering;
  const uneven_target t{4, 2};
  compute_graph g;
  const auto image = g.add_value({"image", {1, 4, 8, 8}, layout::physical::nhwc_row_strip, origin::computed, {}});
  const auto result = g.add_value({"result", {1, 4, 8, 8}, layout::physical::nhwc_row_strip, origin::computed, {}});
  kernel_builder source("source", {1, 8}), layer("layer", {1, 8});
  for (auto* k : {&source, &layer}) k->current().most = {1, 1};
  source.writes(image, {0, 0, tile_begin(1), 0}, {1, 4, tile_end(1), 8});
  const auto u = source.scratch("t", 100);
  source.loop(2, [&](const affine&) { source.fill(source.in(u), 0, 90); });
  layer.reads(image, {0, 0, tile_begin(1), 0}, {1, 4, tile_end(1), 8});
  layer.writes(result, {0, 0, tile_begin(1), 0}, {1, 4, tile_end(1), 8});
  const auto w = layer.scratch("t", 100);
  layer.group({16, 16, {numbers(1)}, {}});
  layer.loop(40, [&](const affine&) { layer.fill(layer.in(w), 0, 90); });
  g.add_compute(source.take()), g.add_compute(layer.take());
  schedule::schedule s;
  s.graph = make_tiles(t, g);
  spread_placement{}(t, g, {1, 1}, s);
  std::set<std::uint32_t> sources, layers;
  for (const auto i : s.graph.of_compute[0]) sources.insert(s.place[i].core);
  for (const auto i : s.graph.of_compute[1]) layers.insert(s.place[i].core);
  CHECK(layers.size() == 1);
  CHECK(sources.size() == 3);
  CHECK(!sources.contains(*layers.begin()));
}
