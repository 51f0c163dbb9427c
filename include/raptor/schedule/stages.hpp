#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"

/// Pipeline stages: groups of computes that work on different inputs at the same time, each on cores of its own.
/// Source: INVARIANTS, "Pipeline stages".
namespace raptor::schedule {

/// Which stage each compute is in, and how many cores each stage has.
struct stage_plan {
  std::vector<std::uint32_t> stage;  ///< by compute
  std::vector<std::int64_t> cores;   ///< by stage; together all cores of the chip

  [[nodiscard]] std::size_t stages() const noexcept { return cores.size(); }
  friend bool operator==(const stage_plan&, const stage_plan&) = default;
};

/// Partition policy of latency scheduling: every compute in stage 0, which has all cores.
struct single_stage {
  template <class Target>
  [[nodiscard]] stage_plan operator()(const Target& t, const lowering::compute_graph& g) const {
    return {std::vector<std::uint32_t>(g.size(), 0), {t.chip().core_count}};
  }
};

/// Throws internal unless the stages cover the chip's cores once, every edge stays in its stage or advances by one, readers of graph inputs are in
/// stage 0, and computes that share weights or a node of the model share a stage.
inline void check_stages(const lowering::compute_graph& g, const stage_plan& plan, std::int64_t cores) {
  ensure(plan.stage.size() == g.size(), "stages: one a compute");
  ensure(std::accumulate(plan.cores.begin(), plan.cores.end(), std::int64_t{0}) == cores, "stages: their cores are not those of the chip");
  for (const auto k : plan.cores) ensure(k > 0, "stages: one has no cores");
  for (lowering::vertex v = 0; v < g.size(); ++v) {
    ensure(plan.stage[v] < plan.stages(), "stages: a compute is in none", g.at(v).name);
    for (const auto& a : g.at(v).accesses) {
      if (a.mode != lowering::access_mode::read) continue;
      if (g.values()[a.value].from == lowering::origin::input) ensure(plan.stage[v] == 0, "stages: a reader of a graph input is not in stage 0", g.at(v).name);
      for (const auto w : g.writers(a.value))
        ensure(w == v || !g.meets(w, a) || plan.stage[w] == plan.stage[v] || plan.stage[w] + 1 == plan.stage[v],
               "stages: an edge neither stays in its stage nor advances by one", g.at(v).name);
    }
  }
  std::vector<std::int64_t> of_family, of_node;
  const auto same = [&](std::vector<std::int64_t>& known, std::int64_t key, lowering::vertex v, const char* what) {
    if (key < 0) return;
    if (known.size() <= static_cast<std::size_t>(key)) known.resize(static_cast<std::size_t>(key) + 1, -1);
    auto& stage = known[static_cast<std::size_t>(key)];
    if (stage < 0) stage = plan.stage[v];
    ensure(stage == plan.stage[v], what, g.at(v).name);
  };
  for (lowering::vertex v = 0; v < g.size(); ++v) {
    same(of_family, g.at(v).family, v, "stages: computes that share weights are in several");
    if (g.at(v).op != "forward") same(of_node, g.at(v).node == 0xffffffffu ? -1 : std::int64_t{g.at(v).node}, v, "stages: an operation is in several");
  }
}

}  // namespace raptor::schedule
