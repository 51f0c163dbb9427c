#pragma once

#include <algorithm>
#include <boost/property_map/function_property_map.hpp>
#include <limits>
#include <vector>

#include "raptor/graph/longest_path.hpp"
#include "raptor/schedule/problem.hpp"

namespace raptor::schedule {

/// The costs' means as property maps, for graph::longest_to_end and others.
template <class G, costs_of<G> Costs>
[[nodiscard]] auto mean_work_map(const Costs& costs) {
  return boost::make_function_property_map<graph::vertex_of<G>>(
      [&costs](const graph::vertex_of<G>& v) { return detail::not_negative(mean_work<G>(costs, v), "a task"); });
}
template <class G, costs_of<G> Costs>
[[nodiscard]] auto mean_transfer_map(const Costs& costs) {
  return boost::make_function_property_map<graph::edge_of<G>>(
      [&costs](const graph::edge_of<G>& e) { return detail::not_negative(mean_transfer<G>(costs, e), "an edge"); });
}

/// Upward rank (Topcuoglu, Hariri, Wu 2002, eq. 5): mean work plus the longest mean way to an exit, by vertex number.
/// O(V·P + E·P) for the means. Errors: malformed on a cycle or a negative cost, capacity on overflow.
template <graph::directed_graph G, costs_of<G> Costs, graph::index_map_of<G> Index>
[[nodiscard]] std::vector<picoseconds> upward_rank(const G& g, const Costs& costs, const Index& index) {
  return graph::longest_to_end(g, mean_work_map<G>(costs), mean_transfer_map<G>(costs), index, graph::topological_order(g, index));
}

/// Downward rank (the same paper, eq. 7): longest mean way from an entry, without the task itself, by vertex number.
template <graph::directed_graph G, costs_of<G> Costs, graph::index_map_of<G> Index>
[[nodiscard]] std::vector<picoseconds> downward_rank(const G& g, const Costs& costs, const Index& index) {
  return graph::longest_from_start(g, mean_work_map<G>(costs), mean_transfer_map<G>(costs), index, graph::topological_order(g, index));
}

/// The optimistic cost table (Arabnejad, Barbosa 2014, eq. 4): for a task on processor p the longest of the shortest ways from
/// its finish to the end, every successor on its best processor and transfers between processors at their mean:
/// oct(t, p) = max over t → s of min over q of (oct(s, q) + work(s, q) + (p ≠ q) · mean transfer).
struct optimistic_costs {
  std::size_t processors = 0;
  std::vector<picoseconds> table;  ///< task × processor, row major

  [[nodiscard]] picoseconds operator()(std::size_t task, std::size_t processor) const { return table[task * processors + processor]; }
  /// Mean over the processors: PEFT's priority.
  [[nodiscard]] double rank(std::size_t task) const {
    double sum = 0;
    for (std::size_t p = 0; p < processors; ++p) sum += static_cast<double>((*this)(task, p));
    return sum / static_cast<double>(processors);
  }
};

namespace detail {
struct two_smallest {
  static constexpr picoseconds infinite = std::numeric_limits<picoseconds>::max();
  picoseconds first = infinite, second = infinite;
  std::size_t where = 0;  ///< processor of the first
  void add(picoseconds value, std::size_t processor) {
    if (value < first) {
      second = first;
      first = value;
      where = processor;
    } else {
      second = std::min(second, value);
    }
  }
};
}  // namespace detail

/// O((V + E)·P) and the means: only the smallest of oct(s, q) + work(s, q) over the other processors matters, so that the two
/// smallest of a task serve all p. Memory V·P. Errors: as upward_rank.
template <graph::directed_graph G, costs_of<G> Costs, graph::index_map_of<G> Index>
[[nodiscard]] optimistic_costs optimistic_cost_table(const G& g, const Costs& costs, const Index& index) {
  const std::size_t processors = detail::processor_count<G>(costs);
  const auto order = graph::topological_order(g, index);
  optimistic_costs oct{processors, std::vector<picoseconds>(order.size() * processors, 0)};
  // For each task done: oct + work on every processor, and the two smallest of them.
  std::vector<picoseconds> through(order.size() * processors, 0);
  std::vector<detail::two_smallest> least(order.size());
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const auto task = graph::number(index, *at);
    for (const auto& e : graph::out_edges_of(*at, g)) {
      const auto next = graph::number(index, graph::edge_target(e, g));
      const auto transfer = detail::not_negative(mean_transfer<G>(costs, e), "an edge");
      for (std::size_t p = 0; p < processors; ++p) {
        const auto& l = least[next];
        picoseconds best = through[next * processors + p];
        const auto elsewhere = l.where == p ? l.second : l.first;
        if (elsewhere != detail::two_smallest::infinite) best = std::min(best, checked::add(elsewhere, transfer));
        auto& cell = oct.table[task * processors + p];
        cell = std::max(cell, best);
      }
    }
    for (std::size_t p = 0; p < processors; ++p) {
      const auto sum = checked::add(oct(task, p), detail::not_negative(costs.work(*at, p), "a task"));
      through[task * processors + p] = sum;
      least[task].add(sum, p);
    }
  }
  return oct;
}

}  // namespace raptor::schedule
