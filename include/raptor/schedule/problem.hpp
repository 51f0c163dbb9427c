#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "raptor/graph/concepts.hpp"
#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"
#include "raptor/target/concept.hpp"

/// List scheduling of a task graph on processors: what the algorithms ask for and what they answer. They know nothing of
/// crossbars or ONNX: a graph (graph::directed_graph), costs, and a capacity policy (schedule/capacity.hpp).
namespace raptor::schedule {

using target::picoseconds;

/// Costs of tasks and edges of graph `G` on processors 0 … processors() − 1; none is negative.
/// - `work(task, processor)`: duration of the task there
/// - `transfer(edge, from, to)`: from the producer's finish on `from` until the data is usable on `to`; usually 0 where equal
/// Optional, where they are known more cheaply than by averaging: `mean_work(task)` over the processors,
/// `mean_transfer(edge)` over the pairs of different processors.
template <class C, class G>
concept costs_of = requires(const C& costs, graph::vertex_of<G> task, graph::edge_of<G> edge, std::size_t processor) {
  { costs.processors() } -> std::convertible_to<std::size_t>;
  { costs.work(task, processor) } -> std::convertible_to<picoseconds>;
  { costs.transfer(edge, processor, processor) } -> std::convertible_to<picoseconds>;
};

/// Costs from two functions, `work(task, processor)` and `transfer(edge, from, to)`.
template <class Work, class Transfer>
struct function_costs {
  std::size_t count = 0;
  Work work;
  Transfer transfer;
  [[nodiscard]] std::size_t processors() const noexcept { return count; }
};
template <class Work, class Transfer>
function_costs(std::size_t, Work, Transfer) -> function_costs<Work, Transfer>;

/// Where and when each task runs, by vertex number.
struct placement {
  std::vector<std::size_t> processor;
  std::vector<picoseconds> start, finish;

  [[nodiscard]] picoseconds makespan() const { return finish.empty() ? 0 : *std::max_element(finish.begin(), finish.end()); }
  friend bool operator==(const placement&, const placement&) = default;
};

namespace detail {
/// The nearest whole number of picoseconds, within what the type holds.
[[nodiscard]] inline picoseconds rounded(double value) { return static_cast<picoseconds>(std::clamp(std::round(value), -9e18, 9e18)); }
}  // namespace detail

/// Mean duration of a task over all processors, rounded. O(P), or what the costs offer.
template <class G, costs_of<G> Costs>
[[nodiscard]] picoseconds mean_work(const Costs& costs, const graph::vertex_of<G>& task) {
  if constexpr (requires { costs.mean_work(task); }) {
    return costs.mean_work(task);
  } else {
    double sum = 0;
    const std::size_t processors = costs.processors();
    for (std::size_t p = 0; p < processors; ++p) sum += static_cast<double>(costs.work(task, p));
    return detail::rounded(sum / static_cast<double>(processors));
  }
}

/// Mean time of an edge over pairs of different processors, rounded: over all pairs up to 32 processors, above that over eight
/// distances spread evenly (8 × P pairs, the same for every edge), so that a large chip does not cost P² an edge. 0 on one processor.
template <class G, costs_of<G> Costs>
[[nodiscard]] picoseconds mean_transfer(const Costs& costs, const graph::edge_of<G>& edge) {
  if constexpr (requires { costs.mean_transfer(edge); }) {
    return costs.mean_transfer(edge);
  } else {
    const std::size_t processors = costs.processors();
    if (processors < 2) return 0;
    constexpr std::size_t most_distances = 31, sampled = 8;
    const std::size_t distances = processors - 1 <= most_distances ? processors - 1 : sampled;
    double sum = 0;
    for (std::size_t k = 0; k < distances; ++k) {
      const std::size_t distance = 1 + k * (processors - 1) / distances;
      for (std::size_t p = 0; p < processors; ++p) sum += static_cast<double>(costs.transfer(edge, p, (p + distance) % processors));
    }
    return detail::rounded(sum / static_cast<double>(distances * processors));
  }
}

namespace detail {
/// A cost as it comes from the user's type, checked.
[[nodiscard]] inline picoseconds not_negative(picoseconds cost, const char* what) {
  if (cost < 0) throw error(error_code::malformed, std::string(what) + " has the negative cost " + std::to_string(cost));
  return cost;
}
template <class G, costs_of<G> Costs>
[[nodiscard]] std::size_t processor_count(const Costs& costs) {
  const std::size_t processors = costs.processors();
  if (processors == 0) throw error(error_code::capacity, "there is no processor to schedule on");
  return processors;
}
}  // namespace detail

}  // namespace raptor::schedule
