#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "raptor/schedule/capacity.hpp"
#include "raptor/schedule/problem.hpp"
#include "raptor/target/concept.hpp"

/// A task graph ready to use, for callers that have no graph of their own, and its costs on a chip of alike cores.
namespace raptor::schedule {

struct task {
  std::string name;
  picoseconds duration = 0;          ///< on any core
  std::vector<weight_set> weights;   ///< resident where the task runs
};
struct task_edge {
  std::int64_t elements = 0;  ///< sent where the two tasks are on different cores
};
using task_graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, task, task_edge>;

/// Costs of a graph whose vertices bundle `duration` and whose edges bundle `elements` on a target. Refers to both.
/// The mean transfer is averaged once for each number of elements: on thousands of cores the edges of one layer are many and alike.
/// Not for use by several threads at a time.
template <class G, target::chip_target Target>
class chip_costs {
 public:
  chip_costs(const G& g, const Target& chip) : graph_(&g), target_(&chip), processors_(static_cast<std::size_t>(chip.chip().core_count)) {}

  [[nodiscard]] std::size_t processors() const noexcept { return processors_; }
  [[nodiscard]] picoseconds work(const graph::vertex_of<G>& v, std::size_t) const { return (*graph_)[v].duration; }
  [[nodiscard]] picoseconds mean_work(const graph::vertex_of<G>& v) const { return (*graph_)[v].duration; }
  [[nodiscard]] picoseconds transfer(const graph::edge_of<G>& e, std::size_t from, std::size_t to) const {
    return from == to ? 0 : target_->transfer_time(from, to, (*graph_)[e].elements);
  }
  [[nodiscard]] picoseconds mean_transfer(const graph::edge_of<G>& e) const {
    const auto [known, added] = means_.try_emplace((*graph_)[e].elements, 0);
    if (added) {
      const auto each = [&](const graph::edge_of<G>& edge, std::size_t from, std::size_t to) { return transfer(edge, from, to); };
      const auto none = [](const graph::vertex_of<G>&, std::size_t) { return picoseconds{0}; };
      known->second = raptor::schedule::mean_transfer<G>(function_costs{processors_, none, each}, e);
    }
    return known->second;
  }

 private:
  const G* graph_;
  const Target* target_;
  std::size_t processors_;
  mutable std::map<std::int64_t, picoseconds> means_;  ///< by elements
};

/// The resident weights of a task graph on a target.
template <target::chip_target Target>
[[nodiscard]] weight_requirements weights_of(const task_graph& g, const Target& chip) {
  const program::geometry sizes = chip.chip();
  weight_requirements needs;
  for (const auto v : graph::vertices_of(g)) needs.task.push_back(g[v].weights);
  needs.capacity.assign(static_cast<std::size_t>(sizes.core_count), sizes.crossbars_per_core);
  return needs;
}

}  // namespace raptor::schedule
