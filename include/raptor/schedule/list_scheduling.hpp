#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "raptor/graph/topological_order.hpp"
#include "raptor/schedule/capacity.hpp"
#include "raptor/schedule/problem.hpp"

namespace raptor::schedule {

/// Busy time of one processor. Adjacent intervals are merged, so that a full processor stays short.
class timeline {
 public:
  /// The earliest start ≥ `ready` of a free stretch of `duration`, gaps between busy intervals included. O(log n + gaps passed).
  [[nodiscard]] picoseconds earliest(picoseconds ready, picoseconds duration) const {
    auto at = std::upper_bound(busy_.begin(), busy_.end(), ready, [](picoseconds t, const stretch& s) { return t < s.finish; });
    picoseconds start = ready;
    for (; at != busy_.end() && checked::add(start, duration) > at->start; ++at) start = std::max(start, at->finish);
    return start;
  }
  /// Marks [start, finish) as busy; it must be free.
  void occupy(picoseconds start, picoseconds finish) {
    if (start == finish) return;
    auto at = std::lower_bound(busy_.begin(), busy_.end(), start, [](const stretch& s, picoseconds t) { return s.start < t; });
    const bool joins_next = at != busy_.end() && at->start == finish;
    const bool joins_last = at != busy_.begin() && std::prev(at)->finish == start;
    if (joins_last && joins_next) {
      std::prev(at)->finish = at->finish;
      busy_.erase(at);
    } else if (joins_last) {
      std::prev(at)->finish = finish;
    } else if (joins_next) {
      at->start = start;
    } else {
      busy_.insert(at, {start, finish});
    }
  }

 private:
  struct stretch {
    picoseconds start, finish;
  };
  std::vector<stretch> busy_;
};

/// The skeleton that list schedulers share: among the ready tasks the one of the highest priority (equal: the lowest number) goes to
/// the processor of the lowest score that takes it (equal: the earlier finish, then the lower number), at the earliest time
/// that its inputs and a gap of the processor allow.
///
/// \param priority by task number; \param score (task number, processor, finish) → picoseconds
/// Requires: index numbers the vertices 0 … V − 1. Guarantees: check_schedule accepts the result.
/// Errors: malformed on a cycle or a negative cost; capacity where no processor takes a task, or a time overflows.
/// Cost: O((V + E)·P) queries of the costs, V·P searches for a gap, O(V log V) for the ready list.
template <graph::directed_graph G, costs_of<G> Costs, capacity_policy Capacity, graph::index_map_of<G> Index, class Priority, class Score>
  requires std::invocable<const Score&, std::size_t, std::size_t, picoseconds>
[[nodiscard]] placement list_schedule(const G& g, const Costs& costs, Capacity capacity, const Index& index, const std::vector<Priority>& priority,
                                      const Score& score) {
  const std::size_t processors = detail::processor_count<G>(costs);
  const std::size_t tasks = graph::vertex_count(g);
  placement result{std::vector<std::size_t>(tasks, 0), std::vector<picoseconds>(tasks, 0), std::vector<picoseconds>(tasks, 0)};
  if (tasks == 0) return result;
  capacity.begin(tasks, processors);

  // Edges that end at a task; the graph need not offer in_edges.
  std::vector<std::vector<graph::edge_of<G>>> inputs(tasks);
  std::vector<std::size_t> waiting(tasks, 0);
  const auto order = graph::topological_order(g, index);
  for (const auto v : order)
    for (const auto& e : graph::out_edges_of(v, g)) {
      const auto to = graph::number(index, graph::edge_target(e, g));
      inputs[to].push_back(e);
      ++waiting[to];
    }

  using entry = std::pair<Priority, std::size_t>;
  const auto less_urgent = [](const entry& a, const entry& b) { return a.first < b.first || (a.first == b.first && a.second > b.second); };
  std::priority_queue<entry, std::vector<entry>, decltype(less_urgent)> ready(less_urgent);
  std::vector<graph::vertex_of<G>> vertex(tasks);
  for (const auto v : order) {
    const auto task = graph::number(index, v);
    vertex[task] = v;
    if (waiting[task] == 0) ready.push({priority[task], task});
  }

  struct candidate {
    picoseconds score, finish, start;
    std::size_t processor;
  };
  const auto better = [](const candidate& a, const candidate& b) {
    if (a.score != b.score) return a.score < b.score;
    return a.finish != b.finish ? a.finish < b.finish : a.processor < b.processor;
  };
  std::vector<candidate> candidates;
  std::vector<timeline> lines(processors);
  while (!ready.empty()) {
    const std::size_t task = ready.top().second;
    ready.pop();
    const auto v = vertex[task];
    candidates.clear();
    for (std::size_t p = 0; p < processors; ++p) {
      picoseconds available = 0;
      for (const auto& e : inputs[task]) {
        const auto from = graph::number(index, graph::edge_source(e, g));
        const picoseconds transfer = detail::not_negative(costs.transfer(e, result.processor[from], p), "an edge");
        available = std::max(available, checked::add(result.finish[from], transfer));
      }
      const picoseconds duration = detail::not_negative(costs.work(v, p), "a task");
      const picoseconds start = lines[p].earliest(available, duration);
      const picoseconds finish = checked::add(start, duration);
      candidates.push_back({score(task, p, finish), finish, start, p});
    }
    bool placed = false;
    for (auto first = candidates.begin(); first != candidates.end() && !placed; ++first) {
      std::iter_swap(first, std::min_element(first, candidates.end(), better));
      if (!capacity.take(task, first->processor)) continue;
      placed = true;
      result.processor[task] = first->processor;
      result.start[task] = first->start;
      result.finish[task] = first->finish;
      lines[first->processor].occupy(first->start, first->finish);
    }
    if (!placed)
      throw error(error_code::capacity, "no processor of " + std::to_string(processors) + " takes task " + std::to_string(task), {},
                  "the capacity policy refused every processor");
    for (const auto& e : graph::out_edges_of(v, g)) {
      const auto to = graph::number(index, graph::edge_target(e, g));
      if (--waiting[to] == 0) ready.push({priority[to], to});
    }
  }
  return result;
}

}  // namespace raptor::schedule
