#pragma once

#include <cstdint>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"
#include "raptor/lowering/kernel_builder.hpp"

namespace raptor::lowering {

/// How the box of an access falls into runs that every core stores contiguously: a run covers the innermost dimensions of
/// the memory order that the box takes in full, and the extent of the next one; the other dimensions are loops.
struct run_structure {
  std::vector<std::size_t> loops;  ///< dimensions outside a run, outermost first
  std::vector<affine> counts;      ///< their extents
  std::int64_t length = 1;         ///< elements in a run
};

[[nodiscard]] inline run_structure runs_of(const access& a, const value& v) {
  const auto order = layout::memory_order(v.layout, v.sizes.size());
  const auto extent = [&](std::size_t d) { return a.high[d] - a.low[d]; };
  run_structure result;
  std::size_t inner = order.size();
  bool open = true;  // may the next dimension still join the run?
  while (inner > layout::fragment_dimensions(v.layout) && open && extent(order[inner - 1]).is_constant()) {
    const auto d = order[--inner];
    result.length = checked::multiply(result.length, extent(d).constant());
    open = extent(d).constant() == v.sizes[d];
  }
  for (std::size_t i = 0; i < inner; ++i) {
    result.loops.push_back(order[i]);
    result.counts.push_back(extent(order[i]));
  }
  return result;
}

/// Appends `body(coordinates of a run's first element)` for every run of an access's box.
template <class Body>
void for_each_run(kernel_builder& k, const access& a, const run_structure& runs, const Body& body) {
  std::vector<affine> at = a.low;
  const auto nest = [&](const auto& self, std::size_t i) -> void {
    if (i == runs.loops.size()) {
      body(at);
      return;
    }
    k.loop(runs.counts[i], [&](const affine& index) {
      at[runs.loops[i]] = a.low[runs.loops[i]] + index;
      self(self, i + 1);
    });
  };
  nest(nest, 0);
}

}  // namespace raptor::lowering
