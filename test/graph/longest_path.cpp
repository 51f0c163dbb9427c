#include "raptor/graph/longest_path.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <cstdint>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <random>

#include "foreign.hpp"

using namespace raptor;

namespace {
struct cost {
  std::int64_t value = 0;
};
struct length {
  std::int64_t value = 0;
};
using adjacency = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, cost, length>;

adjacency diamond() {
  adjacency g;
  for (const std::int64_t c : {2, 3, 5, 1}) add_vertex(cost{c}, g);
  add_edge(0, 1, length{10}, g);
  add_edge(0, 2, length{1}, g);
  add_edge(1, 3, length{0}, g);
  add_edge(2, 3, length{4}, g);
  return g;
}
}  // namespace

TEST_CASE("longest path: both ends' costs and the edges'") {
  const auto g = diamond();
  const auto index = get(boost::vertex_index, g);
  const auto order = graph::topological_order(g);
  const auto work = get(&cost::value, g);
  const auto transfer = get(&length::value, g);
  CHECK(graph::longest_to_end(g, work, transfer, index, order) == std::vector<std::int64_t>{16, 4, 10, 1});
  CHECK(graph::longest_from_start(g, work, transfer, index, order) == std::vector<std::int64_t>{0, 12, 3, 15});
  const auto path = graph::critical_path(g, work, transfer);
  CHECK(path.length == 16);
  CHECK(path.vertices == std::vector<std::size_t>{0, 1, 3});
}

TEST_CASE("critical path: injected costs change it, equal ways take the lowest numbers") {
  const auto g = diamond();
  const auto one = boost::static_property_map<int>(1);
  const auto none = boost::static_property_map<int>(0);
  const auto path = graph::critical_path(g, one, none);
  CHECK(path.length == 3);
  CHECK(path.vertices == std::vector<std::size_t>{0, 1, 3});
  const auto heavy = boost::make_function_property_map<std::size_t>([](std::size_t v) { return v == 2 ? 100 : 1; });
  CHECK(graph::critical_path(g, heavy, none).vertices == std::vector<std::size_t>{0, 2, 3});
  const adjacency empty;
  CHECK(graph::critical_path(empty, one, none).vertices.empty());
}

TEST_CASE("longest path: an overflow is an error") {
  adjacency g(2);
  g[0].value = g[1].value = std::numeric_limits<std::int64_t>::max();
  add_edge(0, 1, length{1}, g);
  CHECK_THROWS_AS((void)graph::critical_path(g, get(&cost::value, g), get(&length::value, g)), error);
}

TEST_CASE("longest path: a foreign graph, against all paths of small random graphs") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::size_t nodes = 1 + random() % 8;
    std::vector<std::pair<std::size_t, std::size_t>> arcs;
    for (std::size_t a = 0; a < nodes; ++a)
      for (std::size_t b = a + 1; b < nodes; ++b)
        if (random() % 3 == 0) arcs.emplace_back(a, b);
    const auto g = foreign::make(nodes, arcs);
    std::vector<int> work, transfer;
    for (std::size_t i = 0; i < nodes; ++i) work.push_back(static_cast<int>(random() % 20));
    for (std::size_t i = 0; i < arcs.size(); ++i) transfer.push_back(static_cast<int>(random() % 20));
    const std::function<int(std::size_t)> longest = [&](std::size_t v) {
      int best = 0;
      for (std::size_t e = g.first[v]; e < g.first[v + 1]; ++e) best = std::max(best, transfer[e] + longest(g.to[e]));
      return work[v] + best;
    };
    int expected = 0;
    for (std::size_t v = 0; v < nodes; ++v) expected = std::max(expected, longest(v));
    const auto vertex_cost = boost::make_function_property_map<foreign::node>([&](foreign::node v) { return work[v.id]; });
    const auto edge_cost = boost::make_function_property_map<foreign::arc>([&](foreign::arc e) { return transfer[e.position]; });
    const auto path = graph::critical_path(g, vertex_cost, edge_cost, foreign::numbering{});
    CHECK(path.length == expected);
    int sum = 0;
    for (std::size_t i = 0; i < path.vertices.size(); ++i) {
      sum += work[path.vertices[i].id];
      if (i == 0) continue;
      const auto from = path.vertices[i - 1].id;
      bool found = false;
      for (std::size_t e = g.first[from]; e < g.first[from + 1]; ++e)
        if (g.to[e] == path.vertices[i].id) {
          sum += transfer[e];
          found = true;
        }
      CHECK(found);
    }
    CHECK(sum == expected);
  }
}
