#pragma once

#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "raptor/graph/concepts.hpp"
#include "raptor/support/error.hpp"

namespace raptor::graph {

/// Names a vertex by its number, for messages.
template <class Index>
struct number_name {
  Index index;
  template <class Vertex>
  [[nodiscard]] std::string operator()(const Vertex& v) const {
    return std::to_string(number(index, v));
  }
};

/// Number of edges that end at each vertex, by vertex number. O(V + E).
template <directed_graph G, index_map_of<G> Index>
[[nodiscard]] std::vector<std::size_t> in_degrees(const G& g, const Index& index) {
  std::vector<std::size_t> degree(vertex_count(g), 0);
  for (const auto v : vertices_of(g))
    for (const auto& e : out_edges_of(v, g)) ++degree[number(index, edge_target(e, g))];
  return degree;
}

namespace detail {
/// A cycle among the vertices that still have predecessors, as "a -> b -> a".
template <class G, class Index, class Name>
[[nodiscard]] std::string cycle_text(const G& g, const Index& index, const Name& name, const std::vector<std::size_t>& degree) {
  // Every vertex left over has a predecessor left over: walking backwards must meet itself.
  std::vector<std::size_t> before(degree.size(), degree.size());
  std::vector<vertex_of<G>> by_number(degree.size());
  for (const auto v : vertices_of(g)) {
    by_number[number(index, v)] = v;
    if (degree[number(index, v)] == 0) continue;
    for (const auto& e : out_edges_of(v, g)) {
      const auto to = number(index, edge_target(e, g));
      if (before[to] == degree.size()) before[to] = number(index, v);
    }
  }
  std::size_t at = 0;
  while (at < degree.size() && degree[at] == 0) ++at;
  std::vector<bool> seen(degree.size(), false);
  while (!seen[at]) {
    seen[at] = true;
    at = before[at];
  }
  std::vector<std::size_t> cycle{at};
  for (auto v = before[at]; v != at; v = before[v]) cycle.push_back(v);
  constexpr std::size_t most = 12;
  std::string text = name(by_number[at]);
  for (std::size_t i = cycle.size(); i-- > 0;) {
    if (cycle.size() > most && i == cycle.size() - most / 2 && i > most / 2) {
      text += " -> ... (" + std::to_string(i - most / 2) + " more)";
      i = most / 2;
    }
    text += " -> " + name(by_number[cycle[i]]);
  }
  return text;
}
}  // namespace detail

/// All vertices, each after its predecessors; among those that are free the lowest number first, so that the order depends
/// on nothing but the graph. Errors: malformed on a cycle, which the message names. O((V + E) log V).
template <directed_graph G, index_map_of<G> Index, class Name = number_name<Index>>
[[nodiscard]] std::vector<vertex_of<G>> topological_order(const G& g, const Index& index, const Name& name) {
  auto degree = in_degrees(g, index);
  using entry = std::pair<std::size_t, vertex_of<G>>;
  const auto later = [](const entry& a, const entry& b) { return a.first > b.first; };
  std::priority_queue<entry, std::vector<entry>, decltype(later)> ready(later);
  for (const auto v : vertices_of(g))
    if (degree[number(index, v)] == 0) ready.push({number(index, v), v});
  std::vector<vertex_of<G>> order;
  order.reserve(degree.size());
  while (!ready.empty()) {
    const auto v = ready.top().second;
    ready.pop();
    order.push_back(v);
    for (const auto& e : out_edges_of(v, g)) {
      const auto to = edge_target(e, g);
      if (--degree[number(index, to)] == 0) ready.push({number(index, to), to});
    }
  }
  if (order.size() != degree.size())
    throw error(error_code::malformed, "the graph has a cycle: " + detail::cycle_text(g, index, name, degree), {},
                "a dataflow graph must be acyclic");
  return order;
}
template <directed_graph G, index_map_of<G> Index>
[[nodiscard]] std::vector<vertex_of<G>> topological_order(const G& g, const Index& index) {
  return topological_order(g, index, number_name<Index>{index});
}
template <directed_graph G>
[[nodiscard]] std::vector<vertex_of<G>> topological_order(const G& g) {
  return topological_order(g, index_of(g));
}

}  // namespace raptor::graph
