#include "raptor/schedule/peft.hpp"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <doctest/doctest.h>
#include <random>
#include <string>

#include "../graph/foreign.hpp"
#include "problems.hpp"
#include "raptor/schedule/check_schedule.hpp"
#include "raptor/schedule/heft.hpp"
#include "raptor/schedule/order.hpp"
#include "raptor/target/pim.hpp"

using namespace raptor;
using namespace raptor::schedule;

namespace {
using strings = std::vector<std::string>;

/// A capacity policy that satisfies the concept and no more: processor p takes only tasks of its parity.
struct parity {
  void begin(std::size_t, std::size_t) const {}
  bool take(std::size_t task, std::size_t processor) const { return task % 2 == processor % 2; }
};
struct nobody {
  void begin(std::size_t, std::size_t) const {}
  bool take(std::size_t, std::size_t) const { return false; }
};
}  // namespace

TEST_CASE("HEFT: the published schedule") {
  const auto t = problems::heft_paper();
  const auto where = heft{}(t.graph, t);
  CHECK(check_schedule(t.graph, t, where) == strings{});
  CHECK(where.makespan() == 80);
  CHECK(where.processor == std::vector<std::size_t>{2, 0, 2, 1, 2, 1, 2, 0, 1, 1});
  CHECK(where.start == std::vector<picoseconds>{0, 27, 9, 18, 28, 26, 38, 57, 56, 73});
}

TEST_CASE("PEFT: the published schedule") {
  const auto t = problems::peft_paper();
  const auto where = peft{}(t.graph, t);
  CHECK(check_schedule(t.graph, t, where) == strings{});
  CHECK(where.makespan() == 122);
  CHECK(where.processor[0] == 0);
  CHECK(heft{}(t.graph, t).makespan() == 133);
}

TEST_CASE("list scheduling: gaps are used") {
  // Task 0 → 1 with a long transfer to the faster processor leaves a gap there that task 2 fills.
  const auto t = problems::make({{10, 100}, {100, 10}, {90, 5}}, {{1, 2, 20}});
  const auto where = heft{}(t.graph, t);
  CHECK(check_schedule(t.graph, t, where) == strings{});
  CHECK(where.processor == std::vector<std::size_t>{0, 1, 1});
  CHECK(where.start == std::vector<picoseconds>{0, 30, 0});
  timeline line;
  line.occupy(10, 20);
  line.occupy(30, 40);
  CHECK(line.earliest(0, 10) == 0);
  CHECK(line.earliest(0, 11) == 40);
  CHECK(line.earliest(5, 6) == 20);
  CHECK(line.earliest(12, 10) == 20);
  CHECK(line.earliest(12, 0) == 20);
  line.occupy(20, 30);
  CHECK(line.earliest(9, 1) == 9);
  CHECK(line.earliest(9, 2) == 40);
}

TEST_CASE("list scheduling: ties go to the lowest numbers") {
  const auto t = problems::make({{5, 5, 5}, {5, 5, 5}, {5, 5, 5}, {5, 5, 5}}, {});
  for (const auto& where : {heft{}(t.graph, t), peft{}(t.graph, t)}) {
    CHECK(where.processor == std::vector<std::size_t>{0, 1, 2, 0});
    CHECK(where.start == std::vector<picoseconds>{0, 0, 0, 5});
  }
}

TEST_CASE("list scheduling: random problems satisfy the postcondition and repeat") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const auto t = problems::random_table(random, random() % 40, 1 + random() % 6);
    if (t.times.empty()) continue;
    for (const auto& where : {heft{}(t.graph, t), peft{}(t.graph, t)}) {
      CHECK(check_schedule(t.graph, t, where) == strings{});
      const auto order = global_order(t.graph, where);
      std::vector<std::size_t> position(order.size());
      for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
      for (const auto v : graph::vertices_of(t.graph))
        for (const auto& e : graph::out_edges_of(v, t.graph)) CHECK(position[v] < position[boost::target(e, t.graph)]);
      for (std::size_t i = 1; i < order.size(); ++i) CHECK(where.start[order[i - 1]] <= where.start[order[i]]);
    }
    CHECK(peft{}(t.graph, t) == peft{}(t.graph, t));
  }
}

TEST_CASE("list scheduling: a capacity policy of one's own") {
  std::mt19937 random(6);
  const auto t = problems::random_table(random, 60, 4);
  for (const auto& where : {heft{}(t.graph, t, parity{}), peft{}(t.graph, t, parity{})}) {
    CHECK(check_schedule(t.graph, t, where) == strings{});
    for (std::size_t i = 0; i < 60; ++i) CHECK(where.processor[i] % 2 == i % 2);
  }
  try {
    (void)peft{}(t.graph, t, nobody{});
    CHECK(false);
  } catch (const error& e) {
    CHECK(e.code() == error_code::capacity);
  }
}

TEST_CASE("list scheduling: a foreign graph and compressed rows give what an adjacency list gives") {
  std::mt19937 random(8);
  for (int round = 0; round < 20; ++round) {
    const auto t = problems::random_table(random, 1 + random() % 30, 3);
    std::vector<std::pair<std::size_t, std::size_t>> arcs;
    std::vector<picoseconds> times;
    for (const auto v : graph::vertices_of(t.graph))
      for (const auto& e : graph::out_edges_of(v, t.graph)) {
        arcs.emplace_back(v, boost::target(e, t.graph));
        times.push_back(t.graph[e].time);
      }
    const auto expected = peft{}(t.graph, t);
    const auto g = foreign::make(t.times.size(), arcs);
    const function_costs costs{3, [&](foreign::node v, std::size_t p) { return t.times[v.id][p]; },
                               [&](foreign::arc e, std::size_t p, std::size_t q) { return p == q ? 0 : times[e.position]; }};
    const auto where = peft{}(g, costs, unlimited{}, foreign::numbering{});
    CHECK(where == expected);
    CHECK(check_schedule(g, costs, where, foreign::numbering{}) == strings{});
    CHECK(heft{}(g, costs, unlimited{}, foreign::numbering{}) == heft{}(t.graph, t));

    using rows = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, problems::volume>;
    std::vector<problems::volume> volumes;
    for (const auto time : times) volumes.push_back({time});
    const rows compressed(boost::edges_are_unsorted_multi_pass, arcs.begin(), arcs.end(), volumes.begin(), t.times.size());
    const function_costs row_costs{3, [&](std::size_t v, std::size_t p) { return t.times[v][p]; },
                                   [&](const rows::edge_descriptor& e, std::size_t p, std::size_t q) { return p == q ? 0 : compressed[e].time; }};
    CHECK(peft{}(compressed, row_costs) == expected);
  }
}

TEST_CASE("list scheduling: malformed problems") {
  auto t = problems::make({{1}, {1}}, {{1, 2, 0}, {2, 1, 0}});
  CHECK_THROWS_AS((void)peft{}(t.graph, t), error);
  t = problems::make({{1, 2}, {1, 1}}, {{1, 2, -5}});
  CHECK_THROWS_AS((void)peft{}(t.graph, t), error);
  t = problems::make({{}}, {});
  CHECK_THROWS_AS((void)peft{}(t.graph, t), error);
  constexpr auto huge = std::numeric_limits<picoseconds>::max() / 2 + 1;
  t = problems::make({{huge}, {huge}}, {});
  CHECK_THROWS_AS((void)heft{}(t.graph, t), error);
  const problems::table empty;
  CHECK(peft{}(empty.graph, function_costs{2, [](std::size_t, std::size_t) { return picoseconds{1}; },
                                           [](const problems::dag::edge_descriptor&, std::size_t, std::size_t) { return picoseconds{0}; }})
            .makespan() == 0);
}

TEST_CASE("check_schedule finds each kind of fault") {
  const auto t = problems::make({{4, 4}, {4, 4}, {4, 4}}, {{1, 2, 3}});
  const placement good{{0, 1, 0}, {0, 7, 4}, {4, 11, 8}};
  CHECK(check_schedule(t.graph, t, good).empty());
  auto bad = good;
  bad.start[1] = 6, bad.finish[1] = 10;
  CHECK(check_schedule(t.graph, t, bad) == strings{"task 1 starts at 6, but the data of task 0 arrives at 7"});
  bad = good;
  bad.start[2] = 3, bad.finish[2] = 7;
  CHECK(check_schedule(t.graph, t, bad) == strings{"task 0 and task 2 overlap on processor 0"});
  bad = good;
  bad.finish[2] = 9;
  CHECK(check_schedule(t.graph, t, bad) == strings{"task 2 runs from 4 to 9, but takes 4"});
  bad = good;
  bad.processor[1] = 2;
  CHECK(check_schedule(t.graph, t, bad) == strings{"task 1 is on processor 2, which does not exist"});
  bad.start.pop_back();
  CHECK(check_schedule(t.graph, t, bad).size() == 1);
}

TEST_CASE("PEFT on a chip: topology and capacity count") {
  // A chain whose every task fills a core: each goes to a neighbour of the one before it.
  const target::pim chip(16, 8, 64);
  task_graph g(10);
  for (const auto v : graph::vertices_of(g)) {
    g[v].duration = 1'000'000;
    g[v].weights = {{static_cast<std::uint32_t>(v), 8}};
    if (v > 0) add_edge(v - 1, v, task_edge{4096}, g);
  }
  const chip_costs costs(g, chip);
  const auto needs = weights_of(g, chip);
  for (const auto& where : {peft{}(g, costs, resident_weights(needs)), heft{}(g, costs, resident_weights(needs))}) {
    CHECK(check_schedule(g, costs, where) == strings{});
    CHECK(check_capacity(where, needs) == strings{});
    for (std::size_t i = 1; i < 10; ++i) CHECK(chip.flit_time(where.processor[i - 1], where.processor[i]) == 4);
  }
  // Without weights everything stays on one core: no transfer is free.
  const auto where = peft{}(g, costs);
  CHECK(where.makespan() == 10'000'000);
  CHECK(where.processor == std::vector<std::size_t>(10, 0));
}

TEST_CASE("PEFT: two thousand tasks on 144 cores") {
  std::mt19937 random(1);
  const target::pim chip(144, 64, 128);
  task_graph g;
  for (std::size_t i = 0; i < 2000; ++i) {
    const auto v = add_vertex(g);
    g[v].duration = 1000 * (1000 + static_cast<picoseconds>(random() % 100000));
    g[v].weights = {{static_cast<std::uint32_t>(i), static_cast<std::int64_t>(1 + random() % 8)}};
    for (int k = 0; k < 3 && i > 0; ++k)
      add_edge(i < 200 ? random() % i : i - 200 + random() % 200, v, task_edge{static_cast<std::int64_t>(random() % 500)}, g);
  }
  const auto needs = weights_of(g, chip);
  const chip_costs costs(g, chip);
  const auto where = peft{}(g, costs, resident_weights(needs));
  CHECK(check_schedule(g, costs, where) == strings{});
  CHECK(check_capacity(where, needs) == strings{});
}

TEST_CASE("PEFT on a chip: the mean transfer of equal edges is averaged once, and is the mean") {
  const target::pim chip(40, 8, 64);
  task_graph g(4);
  add_edge(0, 1, task_edge{100}, g);
  add_edge(0, 2, task_edge{100}, g);
  add_edge(0, 3, task_edge{7}, g);
  const chip_costs costs(g, chip);
  const auto work = [&](const auto& v, std::size_t p) { return costs.work(v, p); };
  const auto transfer = [&](const auto& e, std::size_t p, std::size_t q) { return costs.transfer(e, p, q); };
  for (int round = 0; round < 2; ++round)
    for (const auto& e : graph::out_edges_of(graph::vertex_of<task_graph>{0}, g))
      CHECK(mean_transfer<task_graph>(costs, e) == mean_transfer<task_graph>(function_costs{40, work, transfer}, e));
}

TEST_CASE("PEFT on a chip: weights that do not fit are refused before the costs are tabled") {
  const target::pim chip(4096, 1, 2);
  task_graph g(6000);
  for (const auto v : graph::vertices_of(g)) g[v].weights = {{static_cast<std::uint32_t>(v), 1}};
  const chip_costs chip_of(g, chip);
  std::int64_t asked = 0;
  const auto work = [&](const auto& v, std::size_t p) { return ++asked, chip_of.work(v, p); };
  const auto transfer = [&](const auto& e, std::size_t p, std::size_t q) { return ++asked, chip_of.transfer(e, p, q); };
  const function_costs costs{4096, work, transfer};
  try {
    (void)peft{}(g, costs, resident_weights(weights_of(g, chip)));
    FAIL("refused");
  } catch (const error& e) {
    CHECK(e.code() == error_code::capacity);
    CHECK(std::string(e.what()).find("6000 crossbars needed, 4096 available") != std::string::npos);
  }
  CHECK(asked == 0);
}
