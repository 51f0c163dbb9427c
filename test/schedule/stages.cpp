#include "raptor/schedule/stages.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "../lowering/interpreter.hpp"
#include "raptor/communication/accumulation.hpp"
#include "raptor/schedule/forwarding.hpp"
#include "raptor/schedule/interval.hpp"
#include "raptor/schedule/pipeline_partition.hpp"
#include "raptor/schedule/staged.hpp"
#include "raptor/schedule/text.hpp"
#include "tiled_networks.hpp"

using namespace raptor;
using namespace raptor::test;
using namespace raptor::schedule;
using layout::physical;

namespace {

/// Sums of one or two earlier tensors, element by element; of images a half of the channels or of the rows each, where a layer has two parts.
struct sums {
  lowering::compute_graph graph;
  std::vector<std::uint32_t> tensors;
};
sums random_sums(std::uint32_t seed, physical layout) {
  using namespace lowering;
  std::mt19937 dice(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(dice() % n); };
  sums s;
  auto& g = s.graph;
  const shape sizes = layout == physical::dense && seed % 2 == 0 ? shape{4, 6} : shape{1, 4, 6, 5};
  g.inputs.push_back({"x", sizes});
  value input{"x", sizes, layout == physical::nhwc_row_strip ? physical::nchw_row_strip : layout, origin::input, {}};
  input.input = 0;
  const auto x = g.add_value(std::move(input));
  s.tensors.push_back(x);
  const auto rows = layout == physical::dense ? std::size_t{0} : std::size_t{2};  // the dimension of the lanes
  for (std::size_t layer = 0; layer < 7; ++layer) {
    const auto to = g.add_value({"v" + std::to_string(layer), sizes, layout, origin::computed, {}});
    const auto division = layout == physical::dense ? 2 * below(2) : below(3);  // none; channels; rows
    const auto first = s.tensors[static_cast<std::size_t>(below(static_cast<std::uint32_t>(s.tensors.size())))];
    const auto second = s.tensors[static_cast<std::size_t>(below(static_cast<std::uint32_t>(s.tensors.size())))];
    for (std::int64_t part = 0; part < (division == 0 ? 1 : 2); ++part) {
      box own = whole(sizes);
      if (division == 1) own[1] = {2 * part, 2 * part + 2};
      if (division == 2) own[rows] = {part * sizes[rows] / 2, (part + 1) * sizes[rows] / 2};
      const bool images = layout != physical::dense;
      kernel_builder k("sum", images ? shape{1, own[2].size()} : shape{own[0].size()});
      k.current().most = images ? shape{1, 1} : shape{1};
      std::vector<affine> low, high, at;
      for (const auto& i : own) low.emplace_back(i.begin), high.emplace_back(i.end);
      const auto lane = images ? std::size_t{1} : std::size_t{0};
      low[rows] = tile_begin(lane) + own[rows].begin, high[rows] = tile_end(lane) + own[rows].begin;
      at = low;
      const auto a = k.reads(first, low, high), b = k.reads(second, low, high), y = k.writes(to, low, high);
      // Element by element, whatever the layouts.
      const auto nest = [&](const auto& self, std::size_t d) -> void {
        if (d == sizes.size()) {
          k.vector(isa::opcode::vvadd, k.at(y, at), k.at(a, at), k.at(b, at), 1);
          return;
        }
        if (d == rows) return self(self, d + 1);
        k.loop(own[d].size(), [&](const affine& i) {
          at[d] = i + own[d].begin;
          self(self, d + 1);
        });
      };
      nest(nest, 0);
      auto c = k.take();
      c.node = static_cast<std::uint32_t>(layer * 2 + static_cast<std::size_t>(part));
      g.add_compute(std::move(c));
    }
    s.tensors.push_back(to);
  }
  return s;
}

/// Replication policy with one candidate.
struct bottleneck_list {
  template <target::chip_target Target>
  [[nodiscard]] std::vector<std::vector<std::int64_t>> operator()(const Target& t, const lowering::compute_graph& g, const tile_graph& tiles) const {
    return {bottleneck_replication{.occupancy = 0.6}(t, g, tiles)};
  }
};

/// A stage for each compute, never before those that it reads from.
stage_plan random_plan(const lowering::compute_graph& g, std::uint32_t stages, std::uint32_t seed) {
  std::mt19937 dice(seed);
  stage_plan plan{{}, std::vector<std::int64_t>(stages, 2)};
  for (lowering::vertex v = 0; v < g.size(); ++v) {
    std::uint32_t least = 0;
    for (const auto [e, end] = boost::in_edges(v, g.structure()); const auto edge : boost::make_iterator_range(e, end)) least = std::max(least, plan.stage[boost::source(edge, g.structure())]);
    plan.stage.push_back(std::min<std::uint32_t>(stages - 1, least + (dice() % 3 == 0 ? static_cast<std::uint32_t>(dice() % stages) : 0)));
  }
  return plan;
}

std::vector<float> last_value(const lowering::compute_graph& g, std::uint32_t v) {
  const auto& sizes = g.values().at(0).sizes;
  std::vector<float> x(static_cast<std::size_t>(element_count(sizes)));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 2;
  interpreter run(g, {model::make_value(sizes, x)});
  run.run({});
  return run.value(v);
}

}  // namespace

TEST_CASE("values that live longer are passed on from stage to stage, and nothing else changes") {
  std::size_t copies = 0, unchanged = 0;
  for (const auto layout : {physical::nhwc_row_strip, physical::nchw_row_strip, physical::dense})
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
      CAPTURE(seed);
      auto [g, tensors] = random_sums(seed, layout);
      g.value_at(tensors.back()).result = 0;
      g.outputs.push_back({"y", g.values()[tensors.back()].sizes});
      const auto plan = random_plan(g, 1 + seed % 6, seed + 99);
      const auto staged = forward_values(g, plan);
      check_stages(staged.computes, staged.plan, static_cast<std::int64_t>(2 * plan.stages()));
      std::size_t delivered = 0;
      for (lowering::vertex v = 0; v < staged.computes.size(); ++v) copies += staged.computes.at(v).op == "forward";
      unchanged += staged.computes.size() == g.size();
      CHECK(last_value(staged.computes, tensors.back()).size() == last_value(g, tensors.back()).size());
      // The result may be in several values, one a stage of its writers; each element is in one of them.
      const auto expected = last_value(g, tensors.back());
      for (std::uint32_t v = 0; v < staged.computes.values().size(); ++v)
        if (staged.computes.values()[v].result == 0) ++delivered;
      CHECK(delivered == 1);  // nothing reads the result
      CHECK(last_value(staged.computes, tensors.back()) == expected);
    }
  CHECK(copies > 300);
  CHECK(unchanged > 20);
}

TEST_CASE("what is wrong with stages is said") {
  auto [g, tensors] = random_sums(3, physical::nhwc_row_strip);
  stage_plan plan{std::vector<std::uint32_t>(g.size(), 0), {4}};
  check_stages(g, plan, 4);
  CHECK_THROWS_WITH_AS(check_stages(g, plan, 5), doctest::Contains("not those of the chip"), error);
  plan.stage[0] = 1;
  CHECK_THROWS_WITH_AS(check_stages(g, plan, 4), doctest::Contains("a compute is in none"), error);
  plan.cores = {2, 2};
  CHECK_THROWS_WITH_AS(check_stages(g, plan, 4), doctest::Contains("graph input is not in stage 0"), error);
  CHECK_THROWS_WITH_AS(static_cast<void>(forward_values(g, plan)), doctest::Contains("goes backward"), error);
}

TEST_CASE("the cores of a stage lie together, and every core is in one stage") {
  // Cores on a line: runs of it.
  const auto groups = group_cores(uneven_target{10, 1}, {3, 1, 6});
  REQUIRE(groups.size() == 3);
  CHECK(groups[0] == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(groups[1] == std::vector<std::uint32_t>{3});
  CHECK(groups[2] == std::vector<std::uint32_t>{4, 5, 6, 7, 8, 9});
}

TEST_CASE("a partition covers the chip, keeps operations and shared weights together, and fits") {
  std::set<std::size_t> sizes;
  for (std::uint32_t seed = 0; seed < 40; ++seed)
    for (const std::int64_t count : {1, 2, 3, 5}) {
      CAPTURE(seed);
      CAPTURE(count);
      const uneven_target t{12, 4};
      auto g = communication::chain_accumulation{}(layered_network(seed, 8));
      const pipeline_partition partition{{count}};
      const auto plans = partition(t, g);
      REQUIRE(!plans.empty());
      for (const auto& plan : plans) {
        CHECK(plan.stages() <= static_cast<std::size_t>(count));
        const auto staged = forward_values(g, plan);
        check_stages(staged.computes, staged.plan, 12);
        std::set<std::uint32_t> used(plan.stage.begin(), plan.stage.end());
        CHECK(used.size() == plan.stages());  // no stage is empty
        sizes.insert(plan.stages());
        schedule::schedule s{};
        s.graph = make_tiles(t, staged.computes);
        const auto copies = replicate_stages(bottleneck_list{}, t, staged.computes, staged.plan, s.graph);
        place_stages(spread_placement{}, t, staged.computes, staged.plan, copies.at(0), s);
        const auto groups = group_cores(t, staged.plan.cores);
        for (std::size_t i = 0; i < s.place.size(); ++i) {
          const auto stage = staged.plan.stage[s.graph.tiles[i].compute];
          CHECK(s.place[i].stage == stage);
          if (plan.stages() > 1) CHECK(std::binary_search(groups[stage].begin(), groups[stage].end(), s.place[i].core));
        }
        rendezvous_order{2000}(t, staged.computes, s);
        check_schedule(s, 12);
        const auto again = partition.rebalance(t, staged.computes, staged.plan, s);
        if (again) CHECK(std::accumulate(again->begin(), again->end(), std::int64_t{0}) == 12);
      }
    }
  CHECK(sizes == std::set<std::size_t>{1, 2, 3, 5});
}

TEST_CASE("the cut for the least time is the best of all cuts") {
  std::mt19937 dice(5);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const std::size_t n = 6;
    const program::geometry chip{.core_count = 9, .crossbars_per_core = 4};
    std::vector<double> work, held, spread;
    std::vector<std::uint32_t> order(n);
    for (std::size_t u = 0; u < n; ++u) {
      const auto below = [&](unsigned limit) { return static_cast<double>(dice() % limit); };
      work.push_back(1 + below(100)), held.push_back(below(7)), spread.push_back(below(40));
      order[u] = static_cast<std::uint32_t>(n - 1 - u);
    }
    // The time of a cut: the least for which the cores suffice, among the times at which a stage changes its number of cores.
    const auto cores_of = [&](const std::vector<std::uint32_t>& stage, double time) {
      double sum = 0;
      for (std::uint32_t k = 0; k < 3; ++k) {
        double w = 0, h = 0, passes = 0;
        for (std::size_t u = 0; u < n; ++u)
          if (stage[u] == k) w += work[u], h += held[u], passes += 0.5 * spread[u];
        sum += time > passes ? std::max({1.0, std::ceil(w / (time - passes)), std::ceil(h / 4)}) : 1e9;
      }
      return sum;
    };
    const auto fits = [&](const std::vector<std::uint32_t>& stage, double time) { return cores_of(stage, time) <= 9; };
    const auto got = schedule::detail::cut_for_least_time(order, work, held, spread, chip, 3);
    const bool possible = std::accumulate(held.begin(), held.end(), 0.0) <= 9 * 4 - 3 * 4;  // each of three stages wastes less than a core
    if (possible) REQUIRE(!got.empty());
    if (got.empty()) continue;
    double low = 0, high = 1e6;  // of what was found
    for (int i = 0; i < 60; ++i) (fits(got, 0.5 * (low + high)) ? high : low) = 0.5 * (low + high);
    for (std::size_t a = 1; a < n; ++a)
      for (std::size_t b = a + 1; b < n; ++b) {
        std::vector<std::uint32_t> other(n);
        for (std::size_t i = 0; i < n; ++i) other[order[i]] = i < a ? 0 : i < b ? 1 : 2;
        CHECK_FALSE(fits(other, 0.99 * high));
      }
  }
  // Weights that no division of the chip holds.
  CHECK(schedule::detail::cut_for_least_time({0, 1}, {1, 1}, {5, 5}, {0, 0}, {.core_count = 2, .crossbars_per_core = 4}, 2).empty());
}

TEST_CASE("what goes through global memory is stored once and loaded by each receiver") {
  std::size_t channels = 0, several = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const uneven_target t{9, 4};
    auto g = communication::chain_accumulation{}(layered_network(seed, 8));
    const auto plan = pipeline_partition{{3}}(t, g).front();
    const auto staged = forward_values(g, plan);
    schedule::schedule s{};
    s.graph = make_tiles(t, staged.computes, {20'000, 16});
    place_stages(spread_placement{}, t, staged.computes, staged.plan, std::vector<std::int64_t>(staged.computes.size(), 1), s);
    rendezvous_order order{2000};
    order.stages_by_memory = true;
    order.rounds = 1 + static_cast<int>(seed % 3);
    order(t, staged.computes, s);
    check_schedule(s, 9);
    REQUIRE(s.durations.size() == s.steps.size());
    std::vector<int> finished(s.graph.tiles.size(), 0), stored(s.channels.size(), 0), arrived(s.flows.size(), 0), receivers(s.channels.size(), 0);
    for (const auto& f : s.flows) {
      const bool across = std::any_of(s.place.begin(), s.place.end(), [&](const placed& p) { return p.core == f.core && p.stage != s.place[f.producer].stage; });
      CHECK((f.channel != no_channel) == across);
      if (f.channel == no_channel) continue;
      CHECK(contains(s.channels[f.channel].what, f.what));
      ++receivers[f.channel];
    }
    for (const auto n : receivers) several += n > 1;
    const auto flows = collect_flows(staged.computes, s.graph, [&](std::uint32_t tile) { return s.place[tile].core; });
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> needed(s.graph.tiles.size());  // by tile: flow, item that needs it
    for (std::uint32_t f = 0; f < flows.flows.size(); ++f)
      for (const auto& r : flows.readers[f]) needed[r.tile].emplace_back(f, r.item);
    for (const auto& x : s.steps) {
      if (x.what == step::kind::compute) {
        for (const auto& [f, item] : needed[x.index]) CHECK((arrived[f] == 1 || x.end <= cursor{item, 0}));
        if (x.end.item >= staged.computes.at(s.graph.tiles[x.index].compute).body.size()) finished[x.index] = 1;
      } else if (x.what == step::kind::store) {
        CHECK(finished[s.channels[x.index].producer] == 1);
        CHECK(++stored[x.index] == 1);
      } else {
        const auto& f = s.flows[x.index];
        CHECK((x.what == step::kind::load) == (f.channel != no_channel));
        if (x.what == step::kind::load) CHECK(stored[f.channel] == 1);
        else CHECK(finished[f.producer] == 1);
        CHECK(++arrived[x.index] == 1);
      }
    }
    CHECK(std::count(stored.begin(), stored.end(), 1) == static_cast<std::ptrdiff_t>(s.channels.size()));
    CHECK(std::count(arrived.begin(), arrived.end(), 1) == static_cast<std::ptrdiff_t>(s.flows.size()));
    channels += s.channels.size();
    const auto text = to_text(s);
    const auto read = parse_text(text, staged.computes);
    CHECK(read.channels == s.channels);
    CHECK(read.flows == s.flows);
    CHECK(read.steps == s.steps);
    CHECK(to_text(read) == text);
  }
  CHECK(channels > 200);
  CHECK(several > 10);
}

TEST_CASE("intervals by hand") {
  // Two tiles of 100 and 300 on two cores and a message of 10 between them: the second core repeats every 310.
  schedule::schedule s{};
  s.graph.tiles = {{0, {}}, {1, {}}};
  s.place.resize(2);
  s.place[1].core = 1, s.place[1].stage = 1;
  s.flows = {{0, 0, 1, {}}};
  const auto tile = [](std::uint32_t i) { return step{step::kind::compute, i, {}, {1, 0}}; };
  s.steps = {tile(0), {step::kind::transfer, 0, {}, {}}, tile(1)};
  s.durations = {100, 10, 300};
  CHECK(steady_interval(s, s.durations, 2) == 310);
  CHECK(steady_interval(s, s.durations, 2, 0) == 110);
  CHECK(steady_interval(s, s.durations, 2, 1) == 310);
  CHECK(predicted_interval{2}(s) == 310);
  // Through memory: the store waits until the reader has begun the input before; the reader loads 20 and computes 300.
  s.channels = {{0, 0, {}}};
  s.flows[0].channel = 0;
  s.steps = {tile(0), {step::kind::store, 0, {}, {}}, {step::kind::load, 0, {}, {}}, tile(1)};
  s.durations = {100, 30, 20, 300};
  // The reader of input n begins when it has ended n − 1; only then n + 1 is stored: 30 + 20 + 300 from one to the next.
  CHECK(steady_interval(s, s.durations, 2) == 350);
  CHECK(steady_interval(s, s.durations, 2, 1) == 320);
  // The port of the global memory is one for all.
  s.durations = {1, 200, 200, 1};
  CHECK(steady_interval(s, s.durations, 2) == 401);
}
