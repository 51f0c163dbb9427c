#include "raptor/schedule/ranks.hpp"

#include <doctest/doctest.h>
#include <random>

#include "problems.hpp"

using namespace raptor;
using namespace raptor::schedule;

TEST_CASE("ranks: the published upward ranks") {
  auto t = problems::heft_paper();
  for (auto& row : t.times)
    for (auto& time : row) time *= 3;
  for (const auto v : graph::vertices_of(t.graph))
    for (const auto& e : graph::out_edges_of(v, t.graph)) t.graph[e].time *= 3;
  const auto rank = upward_rank(t.graph, t, get(boost::vertex_index, t.graph));
  // Published: 108 77 80 80 69 63 1/3 42 2/3 35 2/3 44 1/3 14 2/3; times three, so that the means are whole.
  CHECK(rank == std::vector<picoseconds>{324, 231, 240, 240, 207, 190, 128, 107, 133, 44});
}

TEST_CASE("ranks: downward rank of an entry is 0 and of a successor its mean way") {
  const auto t = problems::heft_paper();
  const auto rank = downward_rank(t.graph, t, get(boost::vertex_index, t.graph));
  CHECK(rank[0] == 0);
  CHECK(rank[1] == 13 + 18);
  CHECK(rank[3] == 13 + 9);
  CHECK(rank[8] == 13 + 18 + 17 + 16);  // through task 1
}

TEST_CASE("ranks: the published optimistic cost table") {
  const auto t = problems::peft_paper();
  const auto oct = optimistic_cost_table(t.graph, t, get(boost::vertex_index, t.graph));
  CHECK(oct.table == std::vector<picoseconds>{64, 68, 86, 42, 39, 42, 27, 41, 43, 42, 39, 50, 28, 37, 28, 42, 39, 44, 13, 16, 22, 13, 16, 33, 13, 16, 20, 0, 0, 0});
  CHECK(oct.rank(0) == doctest::Approx(72.667).epsilon(0.001));
  CHECK(oct.rank(9) == 0);
}

TEST_CASE("ranks: the optimistic cost table against its definition") {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    const std::size_t processors = 1 + random() % 5;
    const auto t = problems::random_table(random, 1 + random() % 12, processors);
    const auto oct = optimistic_cost_table(t.graph, t, get(boost::vertex_index, t.graph));
    for (const auto v : graph::vertices_of(t.graph))
      for (std::size_t p = 0; p < processors; ++p) {
        picoseconds longest = 0;
        for (const auto& e : graph::out_edges_of(v, t.graph)) {
          const auto s = boost::target(e, t.graph);
          picoseconds best = std::numeric_limits<picoseconds>::max();
          for (std::size_t q = 0; q < processors; ++q) best = std::min(best, oct(s, q) + t.times[s][q] + (p == q ? 0 : t.graph[e].time));
          longest = std::max(longest, best);
        }
        CHECK(oct(v, p) == longest);
      }
  }
}

TEST_CASE("ranks: means over pairs of processors") {
  problems::dag g(2);
  const auto e = add_edge(0, 1, problems::volume{}, g).first;
  const auto work = [](std::size_t, std::size_t p) { return static_cast<picoseconds>(p); };
  const auto distance = [](const auto&, std::size_t p, std::size_t q) { return static_cast<picoseconds>(p < q ? q - p : p - q); };
  CHECK(mean_work<problems::dag>(function_costs{5, work, distance}, 0) == 2);
  CHECK(mean_transfer<problems::dag>(function_costs{3, work, distance}, e) == 1);   // (1 + 2 + 1) · 2 / 6, rounded
  CHECK(mean_transfer<problems::dag>(function_costs{30, work, distance}, e) == 10);  // 31 / 3
  CHECK(mean_transfer<problems::dag>(function_costs{1, work, distance}, e) == 0);
  // Sampled on a larger chip: within a tenth of 145 / 3.
  CHECK(static_cast<double>(mean_transfer<problems::dag>(function_costs{144, work, distance}, e)) == doctest::Approx(145.0 / 3).epsilon(0.1));
}

TEST_CASE("ranks: negative costs and cycles are errors") {
  auto t = problems::make({{1}, {-1}}, {{1, 2, 0}});
  CHECK_THROWS_AS((void)upward_rank(t.graph, t, get(boost::vertex_index, t.graph)), error);
  CHECK_THROWS_AS((void)optimistic_cost_table(t.graph, t, get(boost::vertex_index, t.graph)), error);
  t = problems::make({{1}, {1}}, {{1, 2, 0}, {2, 1, 0}});
  CHECK_THROWS_AS((void)upward_rank(t.graph, t, get(boost::vertex_index, t.graph)), error);
}
