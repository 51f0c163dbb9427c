#include "raptor/schedule/rendezvous_order.hpp"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <set>

#include "tiled_networks.hpp"

using namespace raptor;
using namespace raptor::test;
using schedule::cursor;
using schedule::picoseconds;

namespace {

/// The time of a flow: a message for each row of the image, and moving the pixels one by one on each side that holds other channels too.
template <class Target>
picoseconds flow_time(const Target& t, const lowering::compute_graph& g, const schedule::schedule& s, const schedule::flow& f) {
  const auto rows = f.what[0].size() * f.what[2].size(), channels = f.what[1].size(), columns = f.what[3].size();
  picoseconds moving = 0;
  for (const auto core : {s.place[f.producer].core, f.core}) {
    bool others = false;
    for (std::uint32_t i = 0; i < s.place.size(); ++i)
      for (const auto& a : g.at(s.graph.tiles[i].compute).accesses)
        if (s.place[i].core == core && a.value == f.value && !f.what[1].contains(intersect(schedule::box_of(a, s.graph.tiles[i].lanes)[1], {0, g.values()[f.value].sizes[1]}))) others = true;
    if (others && columns > 1) moving += columns * t.time(isa::opcode::lmv, channels);
  }
  return rows * (t.transfer_time(s.place[f.producer].core, f.core, channels * columns) + moving);
}

/// Does an order do everything once, each thing after what it needs, and do its predicted times leave every core one activity at a time?
/// Returns how many tiles begin before their producers are done.
template <class Target>
std::size_t check_order(const Target& t, const lowering::compute_graph& g, const schedule::schedule& s, picoseconds atom) {
  const auto& tiles = s.graph.tiles;
  const auto cores = t.chip().core_count;
  schedule::check_schedule(s, cores);
  const auto flows = schedule::collect_flows(g, s.graph, [&](std::uint32_t tile) { return s.place[tile].core; });
  CHECK(s.flows == flows.flows);
  std::vector<std::map<std::uint32_t, std::uint32_t>> local(tiles.size()), remote(tiles.size());  // what each tile waits for, and the item that needs it
  for (std::uint32_t i = 0; i < tiles.size(); ++i)
    for (const auto& r : flows.local_readers[i]) local[r.tile][i] = r.item;
  for (std::uint32_t f = 0; f < flows.flows.size(); ++f)
    for (const auto& r : flows.readers[f]) remote[r.tile][f] = r.item;

  std::vector<cursor> done(tiles.size());
  std::vector<std::size_t> parts(tiles.size(), 0);
  std::vector<bool> complete(tiles.size(), false), moved(s.flows.size(), false), started(tiles.size(), false);
  std::size_t early = 0;  // tiles that begin before all their inputs are there
  // The cores do their own steps as early as they can, in this order; the prediction, in which they may wait, is never earlier.
  std::vector<picoseconds> clock(static_cast<std::size_t>(cores), 0);
  std::vector<std::set<std::uint32_t>> open(static_cast<std::size_t>(cores));  // computes in the middle of a tile
  std::vector<std::uint32_t> begun;
  for (const auto& x : s.steps) {
    if (x.what == schedule::step::kind::transfer) {
      REQUIRE(x.index < s.flows.size());
      const auto& f = s.flows[x.index];
      CHECK(!moved[x.index]);
      CHECK(complete[f.producer]);
      moved[x.index] = true;
      auto &from = clock[s.place[f.producer].core], &to = clock[f.core];
      from = to = std::max(from, to) + flow_time(t, g, s, f);
      continue;
    }
    const auto i = x.index;
    REQUIRE(i < tiles.size());
    const auto& c = g.at(tiles[i].compute);
    const auto core = s.place[i].core;
    const auto expected = schedule::atoms_of(t, c, tiles[i].lanes, atom, schedule::late_items(c, g.values()));
    REQUIRE(parts[i] < expected.size());
    CHECK(x.begin == done[i]);
    CHECK(x.end == expected[parts[i]].end);
    for (const auto& [p, item] : local[i]) CHECK((complete[p] || x.end <= cursor{item, 0}));
    for (const auto& [f, item] : remote[i]) CHECK((moved[f] || x.end <= cursor{item, 0}));
    if (parts[i] == 0) {
      begun.push_back(i);
      started[i] = true;
      bool all = true;
      for (const auto p : s.graph.producers[i]) {
        CHECK(started[p]);
        all = all && complete[p];
      }
      early += !all;
      CHECK(open[core].insert(tiles[i].compute).second);  // tiles of one compute share their scratch
      CHECK(s.place[i].start >= clock[core]);
    }
    clock[core] += expected[parts[i]].time;
    done[i] = x.end;
    if (++parts[i] < expected.size()) continue;
    complete[i] = true;
    open[core].erase(tiles[i].compute);
    CHECK(s.place[i].finish >= clock[core]);
  }
  CHECK(std::count(complete.begin(), complete.end(), true) == static_cast<std::ptrdiff_t>(tiles.size()));
  CHECK(std::count(moved.begin(), moved.end(), true) == static_cast<std::ptrdiff_t>(s.flows.size()));
  CHECK(s.order == begun);
  picoseconds last = 0, before = 0;
  for (const auto i : s.order) {
    CHECK(before <= s.place[i].start);
    before = s.place[i].start;
    last = std::max(last, s.place[i].finish);
  }
  CHECK(s.predicted == last);
  return early;
}

}  // namespace

TEST_CASE("random networks on random cores: the order is complete, possible, predicted and repeatable") {
  std::size_t undivided = 0, paused = 0, transfers = 0, early = 0;
  for (std::uint32_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    const auto g = layered_network(seed, 3 + seed % 6);
    const uneven_target t{1 + seed % 5};
    for (const picoseconds atom : {1, 2000, 1'000'000'000}) {
      CAPTURE(atom);
      auto s = scattered(t, g, seed * 7 + 1);
      schedule::rendezvous_order order{atom};
      order.pace = seed % 3 * 0.1;
      order(t, g, s);
      early += check_order(t, g, s, atom);
      paused += s.steps.size() - s.flows.size() - s.order.size();
      transfers += s.flows.size();
      auto again = scattered(t, g, seed * 7 + 1);
      order(t, g, again);
      CHECK(again.steps == s.steps);
      CHECK(again.order == s.order);
      // Where tiles have one part, their predicted times are those of the core alone.
      bool whole = atom == 1'000'000'000;
      for (lowering::vertex v = 0; v < g.size(); ++v) whole = whole && schedule::late_items(g.at(v), g.values()).empty();
      if (!whole) continue;
      ++undivided;
      std::map<std::uint32_t, picoseconds> free;
      for (const auto i : s.order) {
        CHECK(free[s.place[i].core] <= s.place[i].start);
        free[s.place[i].core] = s.place[i].finish;
        CHECK(s.place[i].finish - s.place[i].start == std::max<picoseconds>(1, schedule::tile_time(t, g.at(s.graph.tiles[i].compute), s.graph.tiles[i].lanes)));
      }
      // An order that ran before leaves nothing behind.
      order(t, g, s);
      CHECK(s.steps == again.steps);
    }
  }
  CHECK(undivided > 5);
  CHECK(paused > 1000);
  CHECK(transfers > 1000);
  CHECK(early > 100);
}

TEST_CASE("what is produced is sent before the producer goes on, which pauses for transfers") {
  using namespace lowering;
  compute_graph g;
  const auto image = [&](const char* name) { return g.add_value({name, {1, 4, 1, 8}, layout::physical::nhwc_row_strip, origin::computed, {}}); };
  const auto a = image("a"), b = image("b"), y = image("y"), z = image("z"), w = image("w");
  const auto compute = [&](const char* name, std::vector<std::uint32_t> from, std::uint32_t to, std::int64_t iterations) {
    kernel_builder k(name, {1, 1});
    for (const auto v : from) k.reads(v, {0, 0, 0, 0}, {1, 4, 1, 8});
    k.writes(to, {0, 0, 0, 0}, {1, 4, 1, 8});
    const auto t = k.scratch("t", 100);
    k.loop(iterations, [&](const affine&) { k.fill(k.in(t), 0, 90); });
    g.add_compute(k.take());
  };
  // y runs on core 1, the others on core 0. An iteration takes 100 ps, a row that travels 52.
  compute("a", {}, a, 2), compute("b", {}, b, 30), compute("y", {a}, y, 20), compute("z", {b, y}, z, 2), compute("w", {y}, w, 15);
  schedule::schedule s;
  s.graph = schedule::make_tiles(round_target{}, g, {1'000'000, 256});
  REQUIRE(s.graph.tiles.size() == 5);
  s.place.resize(5);
  s.place[2].core = 1;
  schedule::rendezvous_order{300}(round_target{}, g, s);
  static_cast<void>(check_order(round_target{}, g, s, 300));
  // a has the longest way to the end: itself, y, w and two transfers. Then b in parts of 300, until y is done in the middle of one.
  CHECK(s.place[0].finish == 200);
  CHECK(s.place[2].start == 252);
  CHECK(s.place[2].finish == 2252);
  CHECK(s.place[1].start == 252);
  CHECK(s.place[1].finish == 252 + 30 * 100 + 52);
  CHECK(s.place[4].start == 3304);
  CHECK(s.place[3].start == 4804);
  CHECK(s.predicted == 5004);
  std::vector<std::uint32_t> seen;  // on core 0; flows as 100 and 101
  for (const auto& x : s.steps)
    if (x.what == schedule::step::kind::transfer) seen.push_back(100 + x.index);
    else if (x.index != 2 && (seen.empty() || seen.back() != x.index)) seen.push_back(x.index);
  CHECK(seen == std::vector<std::uint32_t>{0, 100, 1, 101, 1, 4, 3});
}

namespace {
struct three_cores : round_target {
  [[nodiscard]] program::geometry chip() const {
    auto g = round_target::chip();
    g.core_count = 3;
    return g;
  }
};
}  // namespace

TEST_CASE("a tile begins before its last inputs are there, and the first rows go first where the pace asks for it") {
  using namespace lowering;
  compute_graph g;
  const auto image = [&](const char* name, std::int64_t rows) { return g.add_value({name, {1, 4, rows, 8}, layout::physical::nhwc_row_strip, origin::computed, {}}); };
  const auto a = image("a", 1), b = image("b", 1), y = image("y", 1);
  // Each works for a while; b and y then add what the one before sends.
  const auto compute = [&](const char* name, std::optional<std::uint32_t> from, std::uint32_t to, std::int64_t iterations) {
    kernel_builder k(name, {1, 1});
    const auto t = k.scratch("t", 100);
    k.loop(iterations, [&](const affine&) { k.fill(k.in(t), 0, 90); });
    const auto out = k.writes(to, {0, 0, 0, 0}, {1, 4, 1, 8});
    if (from) {
      const auto in = k.reads(*from, {0, 0, 0, 0}, {1, 4, 1, 8});
      k.copy(k.at(out, {0, 0, 0, 0}), k.at(in, {0, 0, 0, 0}), 32);
    }
    g.add_compute(k.take());
  };
  compute("a", {}, a, 20), compute("b", a, b, 20), compute("y", b, y, 20);
  CHECK(schedule::late_items(g.at(0), g.values()).empty());
  CHECK(schedule::late_items(g.at(2), g.values()) == std::vector<std::uint32_t>{1});
  schedule::schedule s;
  s.graph = schedule::make_tiles(three_cores{}, g, {1'000'000, 256});
  s.place.resize(3);
  s.place[1].core = 1, s.place[2].core = 2;
  schedule::rendezvous_order{1'000'000}(three_cores{}, g, s);
  CHECK(check_order(three_cores{}, g, s, 1'000'000) == 1);  // y; a is one part, so that b's first part comes behind it
  for (const auto& p : s.place) CHECK(p.start == 0);
  const auto copy = three_cores{}.time(isa::opcode::lmv, 32), flow = flow_time(three_cores{}, g, s, s.flows[0]);
  CHECK(s.predicted == 2000 + 2 * (flow + copy));
}

TEST_CASE("paces: the first one decides, the others may improve it") {
  const uneven_target t{3};
  const auto g = layered_network(5, 6);
  std::vector<picoseconds> times;
  for (const double pace : {0.0, 0.2, 0.5}) {
    auto s = scattered(t, g, 9);
    schedule::rendezvous_order order{2000};
    order.pace = pace;
    order(t, g, s);
    times.push_back(s.predicted);
  }
  auto s = scattered(t, g, 9);
  const schedule::paced_order paced{schedule::rendezvous_order{2000}, {0.0, 0.2, 0.5}};
  paced(t, g, s);
  CHECK(s.predicted == times.front());
  paced.improve(t, g, s, [](const schedule::schedule& x) { return x.predicted; });
  CHECK(s.predicted == *std::min_element(times.begin(), times.end()));
  static_cast<void>(check_order(t, g, s, 2000));
  paced.improve(t, g, s, [&](const schedule::schedule& x) { return -x.predicted; });  // what is less is for the caller to say
  CHECK(s.predicted >= *std::max_element(times.begin() + 1, times.end()));
}

TEST_CASE("a core loads a constant for the first compute that needs it, in every round") {
  using namespace lowering;
  compute_graph g;
  const auto image = [&](const char* name) { return g.add_value({name, {1, 4, 2, 8}, layout::physical::nhwc_row_strip, origin::computed, {}}); };
  const auto bias = g.add_value({"bias", {8}, layout::physical::dense, origin::constant, numbers(8)});
  for (const auto* name : {"a", "b"}) {
    kernel_builder k(name, {1, 2});
    k.current().most = {1, 1};
    k.reads(bias, {0}, {8});
    k.writes(image(name), {0, 0, tile_begin(1), 0}, {1, 4, tile_end(1), 8});
    const auto t = k.scratch("t", 100, true);
    k.prologue([&] { k.fill(k.in(t), 0, 90); });
    k.fill(k.in(t), 0, 90);
    g.add_compute(k.take());
  }
  // Loading 8 elements takes 38 ps, a prologue 100 and each tile 100.
  for (const int rounds : {1, 3})
    for (const bool apart : {false, true}) {
      CAPTURE(rounds);
      CAPTURE(apart);
      schedule::schedule s;
      s.graph = schedule::make_tiles(round_target{}, g, {1, 256});
      s.place.resize(s.graph.tiles.size());
      for (std::size_t i = 2; apart && i < 4; ++i) s.place.at(i).core = 1;
      schedule::rendezvous_order order{1000};
      order.rounds = rounds;
      order(round_target{}, g, s);
      picoseconds prepared = 0;
      for (std::size_t i = 0; i < s.steps.size(); ++i)
        if (s.steps[i].what == schedule::step::kind::prepare) prepared += s.durations[i];
      CHECK(prepared == (apart ? 2 * 138 : 238));
    }
}

TEST_CASE("a core sets up each compute once, before its first tile, while it has nothing else to do") {
  using namespace lowering;
  compute_graph g;
  const auto image = [&](const char* name) { return g.add_value({name, {1, 4, 2, 8}, layout::physical::nhwc_row_strip, origin::computed, {}}); };
  const auto a = image("a"), b = image("b"), c = image("c");
  const auto bias = g.add_value({"bias", {8}, layout::physical::dense, origin::constant, numbers(8)});
  const auto compute = [&](const char* name, std::vector<std::uint32_t> from, std::uint32_t to, std::int64_t iterations, bool constant, std::int64_t prologue) {
    kernel_builder k(name, {1, 2});
    k.current().most = {1, 1};
    for (const auto v : from) k.reads(v, {0, 0, tile_begin(1), 0}, {1, 4, tile_end(1), 8});
    if (constant) k.reads(bias, {0}, {8});
    k.writes(to, {0, 0, tile_begin(1), 0}, {1, 4, tile_end(1), 8});
    const auto t = k.scratch("t", 100, true);
    k.prologue([&] { k.loop(prologue, [&](const affine&) { k.fill(k.in(t), 0, 90); }); });
    k.loop(iterations, [&](const affine&) { k.fill(k.in(t), 0, 90); });
    g.add_compute(k.take());
  };
  // An iteration takes 100 ps, loading 8 elements 38. a is on core 0, b and c on core 1.
  compute("a", {}, a, 10, false, 0), compute("b", {a}, b, 1, true, 2), compute("c", {b}, c, 1, false, 30);
  schedule::schedule s;
  s.graph = schedule::make_tiles(round_target{}, g, {1, 256});
  REQUIRE(s.graph.tiles.size() == 6);
  s.place.resize(6);
  for (std::size_t i = 2; i < 6; ++i) s.place[i].core = 1;
  schedule::rendezvous_order{1000}(round_target{}, g, s);
  using kind = schedule::step::kind;
  std::vector<std::pair<kind, std::uint32_t>> of_core;
  std::vector<picoseconds> durations;
  for (std::size_t i = 0; i < s.steps.size(); ++i)
    if (s.steps[i].what == kind::prepare) of_core.emplace_back(kind::prepare, s.steps[i].index), durations.push_back(s.durations[i]);
    else if (s.steps[i].what == kind::compute && s.place[s.steps[i].index].core == 1) of_core.emplace_back(kind::compute, s.steps[i].index);
  REQUIRE(of_core.size() == 6);
  CHECK(of_core[0] == std::pair{kind::prepare, 2u});  // b's, then c's, while a is made
  CHECK(of_core[1] == std::pair{kind::prepare, 4u});
  CHECK(durations == std::vector<picoseconds>{238, 3000});
  CHECK(s.place[0].finish == 1000);
  CHECK(s.place[2].start >= 3238);  // what is set up cannot be interrupted
  // Without time to spare each setup comes right before the first tile of its compute.
  for (std::size_t i = 0; i < 6; ++i) s.place[i].core = 0;
  schedule::rendezvous_order{1000}(round_target{}, g, s);
  std::vector<std::string> names;
  for (const auto& x : s.steps) names.push_back((x.what == kind::prepare ? "prepare " : "") + g.at(s.graph.tiles[x.index].compute).name);
  CHECK(std::count(names.begin(), names.end(), "prepare b") == 1);
  CHECK(std::count(names.begin(), names.end(), "prepare c") == 1);
  CHECK(std::find(names.begin(), names.end(), "prepare b") < std::find(names.begin(), names.end(), "b"));
  CHECK(std::find(names.begin(), names.end(), "prepare c") < std::find(names.begin(), names.end(), "c"));
  CHECK(s.predicted == 2000 + 238 + 200 + 3000 + 200);
}
