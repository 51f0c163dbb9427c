#include "raptor/schedule/replication.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <random>
#include <string>

using namespace raptor;
using namespace raptor::schedule;

namespace {
using layers = std::vector<replicable>;
using counts = std::vector<std::int64_t>;
}  // namespace

TEST_CASE("replication by hand") {
  // 100 and 25 windows; 1 crossbar a copy: four fifths of the budget to the first.
  const layers two = {{100, 10, {1}}, {25, 10, {1}}};
  const auto r = replicate_greedily(two, 10);
  CHECK(r.copies == counts{8, 2});
  CHECK(r.interval == 130);
  CHECK(r.crossbars == 10);
  CHECK(replicate_by_interval(two, 10) == r);
  CHECK(replicate_greedily(two, 2).copies == counts{1, 1});
  CHECK(replicate_greedily(two, 1000000).copies == counts{100, 25});
  CHECK(replicate_greedily(layers{}, 0).copies.empty());
  CHECK(replicate_by_interval(layers{}, 0).interval == 0);
}

TEST_CASE("replication: layers without crossbars and a limit of copies") {
  const layers l = {{64, 3, {}, 4}, {64, 1, {2}}};
  const auto r = replicate_greedily(l, 4);
  CHECK(r.copies == counts{4, 2});
  CHECK(r.interval == 48);
  CHECK(replicate_by_interval(l, 4) == r);
}

TEST_CASE("replication: the greedy, the search and every choice agree") {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    layers l;
    std::int64_t one = 0;
    for (std::size_t i = 1 + random() % 3; i > 0; --i) {
      replicable layer{static_cast<std::int64_t>(1 + random() % 9), static_cast<picoseconds>(random() % 6), {static_cast<std::int64_t>(random() % 4)}};
      if (random() % 4 == 0) layer.most = static_cast<std::int64_t>(1 + random() % 4);
      one += layer.crossbars();
      l.push_back(layer);
    }
    const std::int64_t budget = one + static_cast<std::int64_t>(random() % 20);
    picoseconds best = std::numeric_limits<picoseconds>::max();
    const std::function<void(std::size_t, std::int64_t, picoseconds)> every = [&](std::size_t i, std::int64_t left, picoseconds interval) {
      if (left < 0) return;
      if (i == l.size()) {
        best = std::min(best, interval);
        return;
      }
      for (std::int64_t r = 1; r <= std::min(l[i].most, l[i].windows); ++r) every(i + 1, left - r * l[i].crossbars(), std::max(interval, layer_time(l[i], r)));
    };
    every(0, budget, 0);
    const auto greedy = replicate_greedily(l, budget);
    CHECK(greedy.interval == best);
    CHECK(greedy.crossbars <= budget);
    CHECK(replicate_by_interval(l, budget) == greedy);
  }
}

TEST_CASE("replication: large networks, greedy and search still equal") {
  std::mt19937 random(12);
  for (int round = 0; round < 20; ++round) {
    layers l;
    for (int i = 0; i < 60; ++i)
      l.push_back({static_cast<std::int64_t>(1 + random() % 50176), static_cast<picoseconds>(1000 + random() % 7000000), {static_cast<std::int64_t>(1 + random() % 40)}});
    CHECK(replicate_greedily(l, 9216) == replicate_by_interval(l, 9216));
  }
}

TEST_CASE("replication: packed copies fit their cores") {
  // 3 crossbars a copy, cores of 4: a budget of 12 has room for 4 copies, three cores only for 3.
  const layers l = {{12, 5, {3}}};
  CHECK(replicate_by_interval(l, 12).copies == counts{4});
  const auto r = replicate_packed(l, counts{4, 4, 4});
  CHECK(r.copies == counts{3});
  CHECK(r.interval == 20);
  // Divisible copies use the gaps.
  CHECK(replicate_packed(layers{{12, 5, {1, 2}}}, counts{4, 4, 4}).copies == counts{4});
  // A layer without crossbars costs nothing, however many windows it has.
  CHECK(replicate_packed(layers{{1'000'000'000'000, 1, {0}}}, counts{1}).interval == 1);
}

TEST_CASE("replication for latency") {
  // Equal times and crossbars: copies follow the square root of the windows, 20 : 10 for 4 : 1.
  const layers l = {{4000, 10, {1}}, {1000, 10, {1}}};
  const auto r = replicate_for_latency(l, 30);
  CHECK(r.copies == counts{20, 10});
  CHECK(r.crossbars == 30);
  const auto sum = [&](const counts& c) { return layer_time(l[0], c[0]) + layer_time(l[1], c[1]); };
  for (std::int64_t a = 1; a < 30; ++a) CHECK(sum(r.copies) <= sum({a, 30 - a}));
  CHECK(replicate_for_latency(layers{{10, 0, {1}}}, 5).copies == counts{1});
}

TEST_CASE("replication: errors") {
  const auto message = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const error& e) {
      return std::string(name(e.code())) + ": " + e.what();
    }
    return std::string("no error");
  };
  const layers l = {{4, 1, {3}}, {4, 1, {2, 4}}};
  const std::string text = "capacity: the weights do not fit: 9 crossbars needed for one copy of each layer, 8 available";
  CHECK(message([&] { (void)replicate_greedily(l, 8); }) == text);
  CHECK(message([&] { (void)replicate_by_interval(l, 8); }) == text);
  CHECK(message([&] { (void)replicate_for_latency(l, 8); }) == text);
  CHECK(message([&] { (void)replicate_packed(l, counts{4, 4}); }).starts_with("capacity: the weights do not fit the chip: 9 crossbars needed, 8 available"));
  CHECK(message([] { (void)replicate_greedily(layers{{0, 1, {1}}}, 8); }).starts_with("malformed: layer 0"));
  CHECK(message([] { (void)replicate_by_interval(layers{{1, -1, {1}}}, 8); }).starts_with("malformed: layer 0"));
}
