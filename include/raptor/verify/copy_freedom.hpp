#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "raptor/memory/lifetime.hpp"
#include "raptor/program/effects.hpp"
#include "raptor/program/equality.hpp"
#include "raptor/program/program.hpp"
#include "raptor/support/error.hpp"
#include "raptor/verify/dependence.hpp"

/// The proof behind --pim-verify-bufferization-copy-freedom.
namespace raptor::verify {

struct copy_freedom_report {
  std::int64_t copies_kept = 0;      ///< explicit lmv of the realized program that are still there (in the text)
  std::int64_t copies_removed = 0;   ///< that became views
  std::int64_t in_place = 0;         ///< results that took the place of an operand
  std::int64_t shared_buffers = 0;   ///< buffers without storage of their own
};

namespace copy_freedom_parts {

[[nodiscard]] inline error fail(std::string message, std::size_t core, std::size_t item) {
  return error(error_code::internal, "binding is not copy free: " + std::move(message),
               "core " + std::to_string(core) + ", item " + std::to_string(item));
}

/// Bound buffers differ from realized ones by new views of whole storage only.
inline void check_buffers(const program::program& realized, const program::program& bound) {
  const auto bad = [&](const std::string& what, const std::string& name = {}) {
    throw error(error_code::internal, "binding is not copy free: " + what, name);
  };
  if (realized.buffers.size() != bound.buffers.size() || realized.cores.size() != bound.cores.size()) bad("it added or lost buffers or cores");
  if (!(realized.chip == bound.chip) || realized.inputs != bound.inputs || realized.outputs != bound.outputs)
    bad("it changed the chip, an input or an output");
  for (std::size_t b = 0; b < bound.buffers.size(); ++b) {
    const auto &before = realized.buffers[b], &after = bound.buffers[b];
    if (before.core != after.core || before.elements != after.elements || !program::same_data(before.data, after.data)) bad("it changed a buffer", after.name);
    if (after.view_of == program::none) {
      if (before.view_of != program::none) bad("it separated a view from its owner", after.name);
      continue;
    }
    if (after.view_of >= bound.buffers.size() || bound.buffers[after.view_of].view_of != program::none) bad("a view of no storage", after.name);
    const auto& owner = bound.buffers[after.view_of];
    if (owner.core != after.core || after.view_offset < 0 || checked::add(after.view_offset, after.elements) > owner.elements)
      bad("a view outside its owner", after.name);
    if (before.view_of == after.view_of && before.view_offset == after.view_offset) continue;
    if (after.core == program::global_memory) bad("it aliases buffers in global memory", after.name);
    // What shared storage before shares it at the same distance now.
    const auto was = program::locate(realized, static_cast<std::uint32_t>(b));
    const auto root = program::locate(bound, was.root), now = program::locate(bound, static_cast<std::uint32_t>(b));
    if (root.root != now.root || root.offset + was.offset != now.offset) bad("it moved a view within its owner", after.name);
  }
}

/// The realized items that a core's bound body keeps, in order; checks that the others are copies that became empty.
[[nodiscard]] inline std::vector<bool> match_items(const program::program& realized, const program::program& bound, std::size_t core,
                                                   copy_freedom_report& report) {
  const auto &before = realized.cores[core].body, &after = bound.cores[core].body;
  std::vector<bool> kept(before.size(), false);
  std::size_t next = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (next < after.size() && before[i] == after[next]) {
      kept[i] = true;
      ++next;
      program::for_each_operation(before[i], [&](const program::operation& o) { report.copies_kept += o.op == isa::opcode::lmv; });
      continue;
    }
    const auto* o = std::get_if<program::operation>(&before[i].what);
    if (o == nullptr || o->op != isa::opcode::lmv) throw fail("an item is missing that is no copy, or was changed", core, i);
    const auto from = program::locate(bound, o->a.buffer), to = program::locate(bound, o->d.buffer);
    if (from.root != to.root || affine(from.offset) + o->a.offset != affine(to.offset) + o->d.offset)
      throw fail("a copy is missing between buffers that do not share storage", core, i);
    ++report.copies_removed;
  }
  if (next != after.size()) throw fail("an item was inserted", core, next);
  return kept;
}

/// Storage of the realized program that shares storage in the bound one for the first time.
struct unit {
  std::uint32_t root = program::none;  ///< realized owner
  interval place;                      ///< elements in the bound owner
  interval life;                       ///< realized items that touch it
};

}  // namespace copy_freedom_parts

/// Proves, independently of how binding decided, that the bound program holds exactly the explicit copies of the realized one but for
/// those that became empty because both sides share storage, that nothing was inserted, and that every read of every
/// operation sees the value that it sees in the realized program.
///
/// Method: for every two realized storages that overlap in the bound program, their lifetimes in top-level items are disjoint (then the
/// later one is written before it is read, and the earlier one is dead), or they meet in one item. That item is a removed
/// copy that covers the whole common part, or no write of the later storage can come before an access of the earlier one to the same element
/// (dependence.hpp). Requires that the realized program reads only what was written (verify/program.hpp).
/// Errors: internal, with core and item. Cost: near linear in the text of the programs. Returns the counts.
inline copy_freedom_report check_copy_freedom(const program::program& realized, const program::program& bound) {
  using namespace copy_freedom_parts;
  copy_freedom_report report;
  check_buffers(realized, bound);
  const auto lives = memory::lifetimes(realized);
  std::vector<std::map<std::uint32_t, std::vector<unit>>> shared(realized.cores.size());  // core → bound owner → units
  for (std::size_t b = 0; b < realized.buffers.size(); ++b) {
    const auto& buffer = realized.buffers[b];
    if (bound.buffers[b].view_of != program::none) ++report.shared_buffers;
    if (buffer.view_of != program::none || buffer.core == program::global_memory || lives[b].empty()) continue;
    const auto at = program::locate(bound, static_cast<std::uint32_t>(b));
    shared[static_cast<std::size_t>(buffer.core)][at.root].push_back(
        {static_cast<std::uint32_t>(b), {at.offset, at.offset + buffer.elements}, lives[b]});
  }
  for (std::size_t c = 0; c < realized.cores.size(); ++c) {
    const auto& core = realized.cores[c];
    if (core.groups != bound.cores[c].groups) throw fail("the array groups changed", c, 0);
    const auto kept = match_items(realized, bound, c, report);
    for (auto& [owner, units] : shared[c]) {
      if (units.size() < 2) continue;
      std::sort(units.begin(), units.end(), [](const unit& a, const unit& b) {
        return std::pair(a.life, a.root) < std::pair(b.life, b.root);
      });
      std::vector<std::size_t> alive;
      for (std::size_t u = 0; u < units.size(); ++u) {
        const unit& later = units[u];
        std::erase_if(alive, [&](std::size_t k) { return units[k].life.end <= later.life.begin; });
        for (const std::size_t k : alive) {
          const unit& earlier = units[k];
          if (intersect(earlier.place, later.place).empty()) continue;
          const auto where = static_cast<std::size_t>(later.life.begin);
          const auto names = "'" + realized.buffers[earlier.root].name + "' and '" + realized.buffers[later.root].name + "'";
          if (earlier.life.end != later.life.begin + 1) {
            // Both born and dead in one item may be listed in either order; anything else is an overlap in time.
            throw fail("buffers " + names + " share storage and are in use at the same time", c, where);
          }
          const auto& item = core.body[where];
          if (!kept[where]) {
            const auto& copy = std::get<program::operation>(item.what);
            const auto from = program::locate(realized, copy.a.buffer), to = program::locate(realized, copy.d.buffer);
            if (from.root != earlier.root || to.root != later.root) throw fail("a removed copy is not between " + names, c, where);
            const std::int64_t begin = to.offset + copy.d.offset.constant();
            if (begin != 0 || copy.length != realized.buffers[later.root].elements)
              throw fail("a removed copy does not fill '" + realized.buffers[later.root].name + "'", c, where);
            continue;
          }
          const auto accesses = accesses_of(realized, core, item);
          const auto ordered = [&](const unit& first, const unit& second) {
            for (const auto& write : accesses) {
              const auto w = program::locate(realized, write.what.where->buffer);
              if (!write.what.writes || w.root != second.root) continue;
              for (const auto& access : accesses) {
                const auto a = program::locate(realized, access.what.where->buffer);
                if (a.root == first.root && !never_before(write, second.place.begin + w.offset, access, first.place.begin + a.offset)) return false;
              }
            }
            return true;
          };
          const bool either = earlier.life == later.life && ordered(later, earlier);
          if (!either && !ordered(earlier, later))
            throw fail("a write of one of " + names + " may come before the last use of the other", c, where);
          ++report.in_place;
        }
        alive.push_back(u);
      }
    }
  }
  return report;
}

}  // namespace raptor::verify
