#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "raptor/graph/concepts.hpp"
#include "raptor/graph/topological_order.hpp"

namespace raptor::graph {

template <class VertexCost, class EdgeCost>
using path_value = std::common_type_t<value_of<VertexCost>, value_of<EdgeCost>>;

/// Longest path that starts at each vertex, both ends' costs included, by vertex number: cost(v) + max over edges
/// v → s of (cost(edge) + result(s)). `order`: a topological order of g. O(V + E). Errors: capacity on overflow.
template <directed_graph G, readable_map<vertex_of<G>> VertexCost, readable_map<edge_of<G>> EdgeCost, index_map_of<G> Index>
[[nodiscard]] auto longest_to_end(const G& g, const VertexCost& vertex_cost, const EdgeCost& edge_cost, const Index& index,
                                  const std::vector<vertex_of<G>>& order) {
  using value = path_value<VertexCost, EdgeCost>;
  std::vector<value> longest(vertex_count(g), value{});
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    value after{};
    for (const auto& e : out_edges_of(*at, g))
      after = std::max(after, plus(static_cast<value>(get(edge_cost, e)), longest[number(index, edge_target(e, g))]));
    longest[number(index, *at)] = plus(static_cast<value>(get(vertex_cost, *at)), after);
  }
  return longest;
}

/// Longest path that ends just before each vertex (its earliest start on unlimited resources), by vertex number:
/// max over edges p → v of (result(p) + cost(p) + cost(edge)), 0 for a source. O(V + E). Errors: capacity on overflow.
template <directed_graph G, readable_map<vertex_of<G>> VertexCost, readable_map<edge_of<G>> EdgeCost, index_map_of<G> Index>
[[nodiscard]] auto longest_from_start(const G& g, const VertexCost& vertex_cost, const EdgeCost& edge_cost, const Index& index,
                                      const std::vector<vertex_of<G>>& order) {
  using value = path_value<VertexCost, EdgeCost>;
  std::vector<value> longest(vertex_count(g), value{});
  for (const auto v : order) {
    const value finish = plus(longest[number(index, v)], static_cast<value>(get(vertex_cost, v)));
    for (const auto& e : out_edges_of(v, g)) {
      auto& next = longest[number(index, edge_target(e, g))];
      next = std::max(next, plus(finish, static_cast<value>(get(edge_cost, e))));
    }
  }
  return longest;
}

template <class Vertex, class Value>
struct path {
  std::vector<Vertex> vertices;
  Value length{};
};

/// A longest path of the whole graph; among equal ones that of the lowest numbers. Costs must not be negative.
/// Empty for an empty graph. O((V + E) log V). Errors: malformed on a cycle, capacity on overflow.
template <directed_graph G, readable_map<vertex_of<G>> VertexCost, readable_map<edge_of<G>> EdgeCost, index_map_of<G> Index>
[[nodiscard]] auto critical_path(const G& g, const VertexCost& vertex_cost, const EdgeCost& edge_cost, const Index& index) {
  using value = path_value<VertexCost, EdgeCost>;
  const auto order = topological_order(g, index);
  const auto longest = longest_to_end(g, vertex_cost, edge_cost, index, order);
  path<vertex_of<G>, value> result;
  if (order.empty()) return result;
  const auto better = [&](const vertex_of<G>& a, value av, const vertex_of<G>& b, value bv) {
    return av > bv || (av == bv && number(index, a) < number(index, b));
  };
  auto at = order.front();
  for (const auto v : order)
    if (better(v, longest[number(index, v)], at, longest[number(index, at)])) at = v;
  result.length = longest[number(index, at)];
  for (bool more = true; more;) {
    result.vertices.push_back(at);
    more = false;
    auto next = at;
    value best{};
    for (const auto& e : out_edges_of(at, g)) {
      const auto to = edge_target(e, g);
      const value through = plus(static_cast<value>(get(edge_cost, e)), longest[number(index, to)]);
      if (!more || better(to, through, next, best)) {
        more = true;
        next = to;
        best = through;
      }
    }
    at = next;
  }
  return result;
}
template <directed_graph G, readable_map<vertex_of<G>> VertexCost, readable_map<edge_of<G>> EdgeCost>
[[nodiscard]] auto critical_path(const G& g, const VertexCost& vertex_cost, const EdgeCost& edge_cost) {
  return critical_path(g, vertex_cost, edge_cost, index_of(g));
}

}  // namespace raptor::graph
