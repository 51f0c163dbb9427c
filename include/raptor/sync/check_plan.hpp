#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "raptor/program/shared_memory.hpp"
#include "raptor/sync/relations.hpp"

namespace raptor::sync {

/// What the exact-count policy promises of its programs beside verify::check_happens_before: every reader of a channel signals each of its
/// writers at the begin of its body, before anything but signals, on an event that the writer waits for before the first store that
/// can overwrite what the reader loads (INVARIANTS, "Data that crosses global memory": FREE).
///
/// Errors: deadlock with both cores; as find_relations. Cost: O(a · log a) in the number a of unrolled accesses to channels.
inline void check_free_signals(const program::program& p) {
  const auto needs = find_relations(p, program::shared_memory(p));
  const auto top = [](const program::item& i) { return std::get_if<program::operation>(&i.what); };
  for (std::size_t writer = 0; writer < p.cores.size(); ++writer) {
    for (const auto& o : needs.overwrites[writer]) {
      std::set<std::int32_t> signalled;
      for (const auto& i : p.cores[o.reader].body) {
        const auto* first = top(i);
        if (first == nullptr || first->op != isa::opcode::sync) break;
        if (first->peer == static_cast<std::int32_t>(writer)) signalled.insert(first->event);
      }
      bool awaited = false;
      for (std::size_t i = 0; i < o.item && !awaited; ++i)
        if (const auto* w = top(p.cores[writer].body[i]); w != nullptr && w->op == isa::opcode::wait) awaited = signalled.contains(w->event);
      if (!awaited)
        throw error(error_code::deadlock,
                    "core " + std::to_string(o.reader) + " does not permit core " + std::to_string(writer) + " at the begin of its body to overwrite what it loads",
                    "core " + std::to_string(writer) + ", item " + std::to_string(o.item), "the permission comes before anything that can block, the wait for it before the store");
    }
  }
}

}  // namespace raptor::sync
