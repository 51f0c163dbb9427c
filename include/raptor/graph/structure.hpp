#pragma once

#include <algorithm>
#include <boost/dynamic_bitset.hpp>
#include <vector>

#include "raptor/graph/concepts.hpp"
#include "raptor/graph/topological_order.hpp"

namespace raptor::graph {

/// Edges on the longest way from a source to each vertex, by vertex number. O((V + E) log V). Errors: malformed on a cycle.
template <directed_graph G, index_map_of<G> Index>
[[nodiscard]] std::vector<std::size_t> levels(const G& g, const Index& index) {
  std::vector<std::size_t> level(vertex_count(g), 0);
  for (const auto v : topological_order(g, index))
    for (const auto& e : out_edges_of(v, g)) {
      auto& next = level[number(index, edge_target(e, g))];
      next = std::max(next, level[number(index, v)] + 1);
    }
  return level;
}
template <directed_graph G>
[[nodiscard]] std::vector<std::size_t> levels(const G& g) {
  return levels(g, index_of(g));
}

/// For each vertex the set of vertices that a path of at least one edge reaches. O(V × E / 64) time, V² bits of memory.
/// Errors: malformed on a cycle.
template <directed_graph G, index_map_of<G> Index>
[[nodiscard]] std::vector<boost::dynamic_bitset<>> reachability(const G& g, const Index& index) {
  const auto order = topological_order(g, index);
  std::vector<boost::dynamic_bitset<>> reached(order.size(), boost::dynamic_bitset<>(order.size()));
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    auto& mine = reached[number(index, *at)];
    for (const auto& e : out_edges_of(*at, g)) {
      const auto to = number(index, edge_target(e, g));
      mine.set(to);
      mine |= reached[to];
    }
  }
  return reached;
}
template <directed_graph G>
[[nodiscard]] std::vector<boost::dynamic_bitset<>> reachability(const G& g) {
  return reachability(g, index_of(g));
}

/// The maximal linear chains: runs v0 → v1 → … where each vi has the one successor vi+1 and that has the one predecessor vi
/// (parallel edges count once). Every vertex is in exactly one chain, many of them alone; chains in topological order of
/// their first vertex. O((V + E) log V). Errors: malformed on a cycle.
template <directed_graph G, index_map_of<G> Index>
[[nodiscard]] std::vector<std::vector<vertex_of<G>>> linear_chains(const G& g, const Index& index) {
  const auto order = topological_order(g, index);
  constexpr auto nobody = static_cast<std::size_t>(-1), several = static_cast<std::size_t>(-2);
  std::vector<std::size_t> next(order.size(), nobody), previous(order.size(), nobody), chain(order.size(), nobody);
  const auto note = [](std::size_t& slot, std::size_t value) { slot = slot == nobody || slot == value ? value : several; };
  for (const auto v : order)
    for (const auto& e : out_edges_of(v, g)) {
      note(next[number(index, v)], number(index, edge_target(e, g)));
      note(previous[number(index, edge_target(e, g))], number(index, v));
    }
  std::vector<std::vector<vertex_of<G>>> chains;
  for (const auto v : order) {
    const auto at = number(index, v), before = previous[at];
    if (before < several && next[before] == at) {
      chain[at] = chain[before];
    } else {
      chain[at] = chains.size();
      chains.emplace_back();
    }
    chains[chain[at]].push_back(v);
  }
  return chains;
}
template <directed_graph G>
[[nodiscard]] std::vector<std::vector<vertex_of<G>>> linear_chains(const G& g) {
  return linear_chains(g, index_of(g));
}

}  // namespace raptor::graph
