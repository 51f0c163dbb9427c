#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "raptor/graph/concepts.hpp"
#include "raptor/schedule/capacity.hpp"
#include "raptor/schedule/problem.hpp"

namespace raptor::schedule {

/// The postcondition of every scheduler. Empty: correct; else the violations found, at most 20:
/// - each task is on one processor that exists, starts at 0 or later and takes its work's time there
/// - no task starts before each input's producer has finished and the transfer has ended
/// - no two tasks of one processor overlap (a task without duration takes no room).
/// O((V + E) + V log V).
template <graph::directed_graph G, costs_of<G> Costs, graph::index_map_of<G> Index>
[[nodiscard]] std::vector<std::string> check_schedule(const G& g, const Costs& costs, const placement& result, const Index& index) {
  constexpr std::size_t most = 20;
  std::vector<std::string> found;
  const auto complain = [&](std::string text) {
    if (found.size() < most) found.push_back(std::move(text));
  };
  const auto name = [](std::size_t task) { return "task " + std::to_string(task); };
  const std::size_t tasks = graph::vertex_count(g), processors = costs.processors();
  if (result.processor.size() != tasks || result.start.size() != tasks || result.finish.size() != tasks)
    return {"the placement has another number of tasks than the graph"};
  for (std::size_t t = 0; t < tasks; ++t)
    if (result.processor[t] >= processors) complain(name(t) + " is on processor " + std::to_string(result.processor[t]) + ", which does not exist");
  if (!found.empty()) return found;
  for (const auto v : graph::vertices_of(g)) {
    const auto t = graph::number(index, v);
    const picoseconds work = costs.work(v, result.processor[t]);
    if (result.start[t] < 0 || result.finish[t] - result.start[t] != work)
      complain(name(t) + " runs from " + std::to_string(result.start[t]) + " to " + std::to_string(result.finish[t]) + ", but takes " + std::to_string(work));
    for (const auto& e : graph::out_edges_of(v, g)) {
      const auto to = graph::number(index, graph::edge_target(e, g));
      const picoseconds arrival = result.finish[t] + costs.transfer(e, result.processor[t], result.processor[to]);
      if (result.start[to] < arrival)
        complain(name(to) + " starts at " + std::to_string(result.start[to]) + ", but the data of " + name(t) + " arrives at " + std::to_string(arrival));
    }
  }
  std::vector<std::size_t> order;
  for (std::size_t t = 0; t < tasks; ++t)
    if (result.finish[t] > result.start[t]) order.push_back(t);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (result.processor[a] != result.processor[b]) return result.processor[a] < result.processor[b];
    if (result.start[a] != result.start[b]) return result.start[a] < result.start[b];
    return result.finish[a] < result.finish[b];
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto a = order[i - 1], b = order[i];
    if (result.processor[a] == result.processor[b] && result.start[b] < result.finish[a])
      complain(name(a) + " and " + name(b) + " overlap on processor " + std::to_string(result.processor[a]));
  }
  return found;
}
template <graph::directed_graph G, costs_of<G> Costs>
[[nodiscard]] std::vector<std::string> check_schedule(const G& g, const Costs& costs, const placement& result) {
  return check_schedule(g, costs, result, graph::index_of(g));
}

/// Resident weights: the distinct sets that the tasks of each processor need fit its capacity. Empty: correct.
[[nodiscard]] inline std::vector<std::string> check_capacity(const placement& result, const weight_requirements& needs) {
  std::vector<std::string> found;
  if (needs.task.size() != result.processor.size()) return {"the requirements have another number of tasks than the placement"};
  std::vector<std::map<std::uint32_t, std::int64_t>> held(needs.capacity.size());
  for (std::size_t t = 0; t < needs.task.size(); ++t) {
    if (result.processor[t] >= held.size()) return {"task " + std::to_string(t) + " is on a processor that does not exist"};
    for (const auto& s : needs.task[t]) held[result.processor[t]][s.id] = s.crossbars;
  }
  for (std::size_t p = 0; p < held.size(); ++p) {
    std::int64_t used = 0;
    for (const auto& [id, crossbars] : held[p]) used = checked::add(used, crossbars);
    if (used > needs.capacity[p])
      found.push_back("processor " + std::to_string(p) + " holds " + std::to_string(used) + " crossbars of " + std::to_string(needs.capacity[p]));
  }
  return found;
}

}  // namespace raptor::schedule
