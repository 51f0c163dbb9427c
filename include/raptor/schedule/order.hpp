#pragma once

#include <algorithm>
#include <vector>

#include "raptor/graph/topological_order.hpp"
#include "raptor/schedule/problem.hpp"

namespace raptor::schedule {

/// The one global order of a schedule, as vertices: by predicted start, equal starts in topological order. Every edge goes forward
/// in it, and on each processor it is the order of execution. Errors: malformed on a cycle. O((V + E) log V).
template <graph::directed_graph G, graph::index_map_of<G> Index>
[[nodiscard]] std::vector<graph::vertex_of<G>> global_order(const G& g, const placement& where, const Index& index) {
  auto order = graph::topological_order(g, index);
  std::stable_sort(order.begin(), order.end(), [&](const graph::vertex_of<G>& a, const graph::vertex_of<G>& b) {
    return where.start[graph::number(index, a)] < where.start[graph::number(index, b)];
  });
  return order;
}
template <graph::directed_graph G>
[[nodiscard]] std::vector<graph::vertex_of<G>> global_order(const G& g, const placement& where) {
  return global_order(g, where, graph::index_of(g));
}

}  // namespace raptor::schedule
