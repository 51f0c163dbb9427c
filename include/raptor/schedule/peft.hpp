#pragma once

#include "raptor/schedule/list_scheduling.hpp"
#include "raptor/schedule/ranks.hpp"

namespace raptor::schedule {

/// PEFT (Arabnejad, Barbosa: List scheduling algorithm for heterogeneous systems by an optimistic cost table, 2014): ready tasks by
/// decreasing mean of their row of the table, each where finish + optimistic cost to the end is least, gaps used.
/// The table uses mean transfers, the finish the exact ones between the two processors (the target's topology).
///
/// Requires: an acyclic graph, costs that are not negative, a capacity policy (default: none).
/// Guarantees: check_schedule accepts the result. Determinism: ties by earlier finish, then lowest number.
/// Errors: malformed (cycle, negative cost), capacity. Cost: O((V + E)·P) and the search for gaps; V·P memory.
/// Example: `const auto where = peft{}(g, chip_costs(g, target), resident_weights(needs));`  See also: heft.
struct peft {
  template <graph::directed_graph G, costs_of<G> Costs, capacity_policy Capacity, graph::index_map_of<G> Index>
  [[nodiscard]] placement operator()(const G& g, const Costs& costs, const Capacity& capacity, const Index& index) const {
    Capacity(capacity).begin(graph::vertex_count(g), detail::processor_count<G>(costs));  // weights that do not fit: before V·P memory is spent
    const auto oct = optimistic_cost_table(g, costs, index);
    std::vector<double> rank(graph::vertex_count(g));
    for (std::size_t task = 0; task < rank.size(); ++task) rank[task] = oct.rank(task);
    return list_schedule(g, costs, capacity, index, rank,
                         [&](std::size_t task, std::size_t p, picoseconds finish) { return checked::add(finish, oct(task, p)); });
  }
  template <graph::directed_graph G, costs_of<G> Costs, capacity_policy Capacity = unlimited>
  [[nodiscard]] placement operator()(const G& g, const Costs& costs, const Capacity& capacity = {}) const {
    return (*this)(g, costs, capacity, graph::index_of(g));
  }
};

}  // namespace raptor::schedule
