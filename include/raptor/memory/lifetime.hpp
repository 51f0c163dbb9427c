#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/support/box.hpp"

/// When storage is in use.
namespace raptor::memory {

/// For every buffer, the top-level items [first, last + 1) of its core's body that touch it; empty where none does.
/// A buffer in global memory is in use all the time, [0, max), since cores do not share a clock.
///
/// Guarantees: with `resolve_views` the interval of a buffer that owns storage covers those of all its views, and a view
/// has an empty interval. Errors: malformed for a place that names no buffer. Cost: linear in the text of the program.
[[nodiscard]] inline std::vector<interval> lifetimes(const program::program& p, bool resolve_views = true) {
  std::vector<interval> result(p.buffers.size());
  for (const auto& core : p.cores)
    for (std::size_t i = 0; i < core.body.size(); ++i) {
      const interval now{static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1};
      program::for_each_operation(core.body[i], [&](const program::operation& o) {
        for (const auto& e : program::effects_of(p, core, o)) {
          if (e.where->buffer >= p.buffers.size())
            throw error(error_code::malformed, "an operation names buffer " + std::to_string(e.where->buffer) + " of " +
                                                   std::to_string(p.buffers.size()));
          const auto at = resolve_views ? program::locate(p, e.where->buffer).root : e.where->buffer;
          result.at(at) = hull(result.at(at), now);
        }
      });
    }
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].core == program::global_memory) result[b] = {0, std::numeric_limits<std::int64_t>::max()};
  return result;
}

}  // namespace raptor::memory
