#include "raptor/graph/topological_order.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <doctest/doctest.h>
#include <functional>
#include <string>

#include "foreign.hpp"

using namespace raptor;

namespace {
using adjacency = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    CHECK(e.code() == error_code::malformed);
    return e.what();
  }
  return "no error";
}
}  // namespace

TEST_CASE("topological order: the lowest free number first") {
  adjacency g(6);
  add_edge(5, 0, g);
  add_edge(4, 0, g);
  add_edge(5, 2, g);
  add_edge(2, 3, g);
  add_edge(3, 1, g);
  add_edge(4, 1, g);
  CHECK(graph::topological_order(g) == std::vector<std::size_t>{4, 5, 0, 2, 3, 1});
  CHECK(graph::topological_order(adjacency(0)).empty());
  CHECK(graph::topological_order(adjacency(3)) == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("topological order: parallel edges") {
  adjacency g(2);
  add_edge(1, 0, g);
  add_edge(1, 0, g);
  CHECK(graph::topological_order(g) == std::vector<std::size_t>{1, 0});
}

TEST_CASE("topological order: a cycle is named") {
  adjacency g(5);
  add_edge(0, 1, g);
  add_edge(1, 3, g);
  add_edge(3, 2, g);
  add_edge(2, 1, g);
  add_edge(2, 4, g);
  CHECK(message([&] { (void)graph::topological_order(g); }) == "the graph has a cycle: 1 -> 3 -> 2 -> 1");
  const auto names = [](std::size_t v) { return std::string(1, static_cast<char>('a' + v)); };
  CHECK(message([&] { (void)graph::topological_order(g, get(boost::vertex_index, g), names); }) == "the graph has a cycle: b -> d -> c -> b");

  adjacency self(2);
  add_edge(1, 1, self);
  CHECK(message([&] { (void)graph::topological_order(self); }) == "the graph has a cycle: 1 -> 1");
}

TEST_CASE("topological order: a long cycle is shortened") {
  constexpr std::size_t n = 1000;
  adjacency g(n);
  for (std::size_t i = 0; i < n; ++i) add_edge(i, (i + 1) % n, g);
  const auto text = message([&] { (void)graph::topological_order(g); });
  CHECK(text.starts_with("the graph has a cycle: 0 -> 1 -> "));
  CHECK(text.ends_with(" -> 999 -> 0"));
  CHECK(text.find(" more) -> ") != std::string::npos);
  CHECK(text.size() < 200);
}

TEST_CASE("topological order: compressed_sparse_row_graph and a foreign graph") {
  const std::vector<std::pair<std::size_t, std::size_t>> arcs = {{0, 3}, {2, 0}, {2, 1}, {3, 1}};
  using rows = boost::compressed_sparse_row_graph<boost::directedS>;
  const rows g(boost::edges_are_sorted, arcs.begin(), arcs.end(), 4);
  const auto order = graph::topological_order(g);
  CHECK(std::vector<std::size_t>(order.begin(), order.end()) == std::vector<std::size_t>{2, 0, 3, 1});

  std::vector<std::size_t> ids;
  for (const auto v : graph::topological_order(foreign::make(4, arcs), foreign::numbering{})) ids.push_back(v.id);
  CHECK(ids == std::vector<std::size_t>{2, 0, 3, 1});
  CHECK(message([] { (void)graph::topological_order(foreign::make(2, {{0, 1}, {1, 0}}), foreign::numbering{}); }) ==
        "the graph has a cycle: 0 -> 1 -> 0");
}
