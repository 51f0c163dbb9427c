#include "raptor/graph/structure.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <doctest/doctest.h>
#include <string>

#include "foreign.hpp"

using namespace raptor;

namespace {
using adjacency = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;
using chain_list = std::vector<std::vector<std::size_t>>;

//  0 → 1 → 2 → 4 → 5      6
//       ↘ 3 ↗
adjacency example() {
  adjacency g(7);
  add_edge(0, 1, g);
  add_edge(1, 2, g);
  add_edge(1, 3, g);
  add_edge(2, 4, g);
  add_edge(3, 4, g);
  add_edge(4, 5, g);
  return g;
}
}  // namespace

TEST_CASE("levels") { CHECK(graph::levels(example()) == std::vector<std::size_t>{0, 1, 2, 2, 3, 4, 0}); }

TEST_CASE("reachability") {
  const auto reached = graph::reachability(example());
  std::vector<std::string> rows;
  for (const auto& row : reached) {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) text += row[i] ? '1' : '0';
    rows.push_back(text);
  }
  CHECK(rows == std::vector<std::string>{"0111110", "0011110", "0000110", "0000110", "0000010", "0000000", "0000000"});
}

TEST_CASE("linear chains") {
  CHECK(graph::linear_chains(example()) == chain_list{{0, 1}, {2}, {3}, {4, 5}, {6}});
  adjacency g(3);
  add_edge(2, 1, g);
  add_edge(2, 1, g);  // twice the same: still a chain
  add_edge(1, 0, g);
  CHECK(graph::linear_chains(g) == chain_list{{2, 1, 0}});
  CHECK(graph::linear_chains(adjacency(0)).empty());
}

TEST_CASE("structure of a foreign graph") {
  const auto g = foreign::make(4, {{0, 1}, {1, 2}, {1, 3}});
  CHECK(graph::levels(g, foreign::numbering{}) == std::vector<std::size_t>{0, 1, 2, 2});
  CHECK(graph::reachability(g, foreign::numbering{})[0].count() == 3);
  CHECK(graph::linear_chains(g, foreign::numbering{}).size() == 3);
  CHECK_THROWS_AS((void)graph::levels(foreign::make(1, {{0, 0}}), foreign::numbering{}), error);
}
