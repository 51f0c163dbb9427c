#pragma once

#include <cstdint>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"

namespace raptor::schedule {

/// Partition policy of latency scheduling: every compute in stage 0.
struct single_stage {
  template <class Target>
  [[nodiscard]] std::vector<std::uint32_t> operator()(const Target&, const lowering::compute_graph& g) const {
    return std::vector<std::uint32_t>(g.size(), 0);
  }
};

/// Throws internal unless every edge stays in its stage or advances by one, and readers of graph inputs are in stage 0
/// (INVARIANTS, "Pipeline stages").
inline void check_stages(const lowering::compute_graph& g, const std::vector<std::uint32_t>& stage) {
  ensure(stage.size() == g.size(), "stages: one a compute");
  for (lowering::vertex v = 0; v < g.size(); ++v) {
    for (const auto& a : g.at(v).accesses) {
      if (a.mode != lowering::access_mode::read) continue;
      if (g.values()[a.value].from == lowering::origin::input) ensure(stage[v] == 0, "stages: a reader of a graph input is not in stage 0", g.at(v).name);
      for (const auto w : g.writers(a.value))
        ensure(w == v || stage[w] == stage[v] || stage[w] + 1 == stage[v], "stages: an edge neither stays in its stage nor advances by one", g.at(v).name);
    }
  }
}

}  // namespace raptor::schedule
