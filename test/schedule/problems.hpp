#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "raptor/schedule/task_graph.hpp"

/// Published and random problems for the scheduler tests.
namespace problems {

using raptor::schedule::picoseconds;

struct volume {
  picoseconds time = 0;
};
using dag = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, boost::no_property, volume>;

struct table {
  dag graph;
  std::vector<std::vector<picoseconds>> times;  ///< by task and processor

  [[nodiscard]] std::size_t processors() const { return times.front().size(); }
  [[nodiscard]] picoseconds work(std::size_t task, std::size_t p) const { return times[task][p]; }
  [[nodiscard]] picoseconds transfer(const dag::edge_descriptor& e, std::size_t p, std::size_t q) const { return p == q ? 0 : graph[e].time; }
};

struct link {
  std::size_t from, to;
  picoseconds time;
};
inline table make(std::vector<std::vector<picoseconds>> times, const std::vector<link>& links) {
  table t{dag(times.size()), std::move(times)};
  for (const auto& l : links) add_edge(l.from - 1, l.to - 1, volume{l.time}, t.graph);
  return t;
}

/// Topcuoglu, Hariri, Wu 2002, figure 2: ten tasks, three processors; HEFT needs 80.
inline table heft_paper() {
  return make({{14, 16, 9}, {13, 19, 18}, {11, 13, 19}, {13, 8, 17}, {12, 13, 10}, {13, 16, 9}, {7, 15, 11}, {5, 11, 14}, {18, 12, 20}, {21, 7, 16}},
              {{1, 2, 18}, {1, 3, 12}, {1, 4, 9}, {1, 5, 11}, {1, 6, 14}, {2, 8, 19}, {2, 9, 16}, {3, 7, 23}, {4, 8, 27}, {4, 9, 23}, {5, 9, 13},
               {6, 8, 15}, {7, 10, 17}, {8, 10, 11}, {9, 10, 13}});
}
/// Arabnejad, Barbosa 2014, figure 3: ten tasks, three processors; PEFT needs 122, HEFT 133.
inline table peft_paper() {
  return make({{22, 21, 36}, {22, 18, 18}, {32, 27, 43}, {7, 10, 4}, {29, 27, 35}, {26, 17, 24}, {14, 25, 30}, {29, 23, 36}, {15, 21, 8}, {13, 16, 33}},
              {{1, 2, 17}, {1, 3, 31}, {1, 4, 29}, {1, 5, 13}, {1, 6, 7}, {2, 8, 3}, {2, 9, 30}, {3, 7, 16}, {4, 8, 11}, {4, 9, 7}, {5, 9, 57},
               {6, 8, 5}, {7, 10, 9}, {8, 10, 42}, {9, 10, 7}});
}

/// Random times, edges from lower to higher numbers.
inline table random_table(std::mt19937& random, std::size_t tasks, std::size_t processors) {
  table t{dag(tasks), {}};
  for (std::size_t i = 0; i < tasks; ++i) {
    t.times.emplace_back();
    for (std::size_t p = 0; p < processors; ++p) t.times.back().push_back(static_cast<picoseconds>(random() % 50));  // 0 included
    for (std::size_t k = random() % 4; k > 0 && i > 0; --k) add_edge(random() % i, i, volume{static_cast<picoseconds>(random() % 60)}, t.graph);
  }
  return t;
}

}  // namespace problems
