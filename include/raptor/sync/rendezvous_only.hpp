#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "raptor/program/program.hpp"
#include "raptor/schedule/schedule.hpp"

namespace raptor::sync {

/// Synchronization policy for programs whose cores meet only by rendezvous: no events are needed, and none are added.
///
/// Errors: internal, where a core loads what another core stores (a channel through global memory would need events).
/// Cost: O(items). Deterministic.
struct rendezvous_only {
  [[nodiscard]] program::program operator()(program::program realized, const schedule::schedule&) const {
    std::vector<std::int32_t> writer(realized.buffers.size(), -1);
    for (std::size_t core = 0; core < realized.cores.size(); ++core)
      visit(realized.cores[core].body, [&](const program::operation& o) {
        if (o.op == isa::opcode::st) writer.at(o.d.buffer) = static_cast<std::int32_t>(core);
      });
    for (const auto& core : realized.cores)
      visit(core.body, [&](const program::operation& o) {
        if (o.op == isa::opcode::ld)
          ensure(writer.at(o.a.buffer) < 0, "a buffer in global memory is stored and loaded without events", realized.buffers[o.a.buffer].name);
      });
    return realized;
  }

 private:
  template <class F>
  static void visit(const std::vector<program::item>& items, const F& f) {
    for (const auto& i : items) {
      if (const auto* l = std::get_if<program::loop>(&i.what)) visit(l->body, f);
      else f(std::get<program::operation>(i.what));
    }
  }
};

}  // namespace raptor::sync
