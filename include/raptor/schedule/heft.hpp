#pragma once

#include "raptor/schedule/list_scheduling.hpp"
#include "raptor/schedule/ranks.hpp"

namespace raptor::schedule {

/// HEFT (Topcuoglu, Hariri, Wu: Performance-effective and low-complexity task scheduling for heterogeneous computing, 2002):
/// tasks by decreasing upward rank, each where it finishes earliest, gaps used.
///
/// Requires: an acyclic graph, costs that are not negative, a capacity policy (default: none).
/// Guarantees: check_schedule accepts the result. Determinism: ties by lowest number.
/// Errors: malformed (cycle, negative cost), capacity. Cost: O((V + E)·P) and the search for gaps.
/// Example: `const auto where = heft{}(g, function_costs{4, work, transfer});`  See also: peft.
struct heft {
  template <graph::directed_graph G, costs_of<G> Costs, capacity_policy Capacity, graph::index_map_of<G> Index>
  [[nodiscard]] placement operator()(const G& g, const Costs& costs, const Capacity& capacity, const Index& index) const {
    return list_schedule(g, costs, capacity, index, upward_rank(g, costs, index),
                         [](std::size_t, std::size_t, picoseconds finish) { return finish; });
  }
  template <graph::directed_graph G, costs_of<G> Costs, capacity_policy Capacity = unlimited>
  [[nodiscard]] placement operator()(const G& g, const Costs& costs, const Capacity& capacity = {}) const {
    return (*this)(g, costs, capacity, graph::index_of(g));
  }
};

}  // namespace raptor::schedule
