#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/schedule/schedule.hpp"

namespace raptor::sync {

/// Synchronization policy without any: what --pim-disable-synchronization asks for. A program with channels through global memory is wrong
/// with it, and one that repeats may be.
struct no_synchronization {
  [[nodiscard]] program::program operator()(program::program realized, const schedule::schedule&) const { return realized; }
};

/// Synchronization policy for programs that run once and whose cores meet only by rendezvous: no events are needed, and none are added.
///
/// Errors: internal, where a core loads what another core stores (a channel through global memory would need events).
/// Cost: O(items). Deterministic.
struct rendezvous_only {
  [[nodiscard]] program::program operator()(program::program realized, const schedule::schedule&) const {
    std::vector<std::int32_t> writer(realized.buffers.size(), -1);
    for (std::size_t core = 0; core < realized.cores.size(); ++core)
      program::for_each_operation(realized.cores[core].body, [&](const program::operation& o) {
        if (o.op == isa::opcode::st) writer.at(o.d.buffer) = static_cast<std::int32_t>(core);
      });
    for (const auto& core : realized.cores)
      program::for_each_operation(core.body, [&](const program::operation& o) {
        if (o.op == isa::opcode::ld)
          ensure(writer.at(o.a.buffer) < 0, "a buffer in global memory is stored and loaded without events", realized.buffers[o.a.buffer].name);
      });
    return realized;
  }
};

}  // namespace raptor::sync
