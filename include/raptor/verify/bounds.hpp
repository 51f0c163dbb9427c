#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "raptor/isa/table.hpp"
#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/program/unrolled.hpp"
#include "raptor/support/error.hpp"

/// Static form of a program: indices, places over all loop values, overlapping operands.
namespace raptor::verify {

namespace bounds_parts {

/// True where two runs of `length` elements of one storage overlap in some iteration. `distance`: of their first elements, affine in loop
/// variables with the given counts. Exact for one or two free variables that matter; beyond that an overlap that the bounds
/// allow is looked for in at most `tries` combinations, and none found means none reported.
template <class Count>
[[nodiscard]] bool may_overlap(const affine& distance, std::int64_t low, std::int64_t high, const Count& count_of, std::int64_t tries = 1 << 16) {
  std::int64_t least = distance.constant(), most = least;
  std::vector<std::pair<std::int64_t, std::int64_t>> moves;  // coefficient, count
  std::int64_t combinations = 1;
  for (const auto& t : distance.terms()) {
    const std::int64_t count = count_of(t.variable);
    const std::int64_t reach = checked::multiply(t.coefficient, count - 1);
    (reach < 0 ? least : most) = checked::add(reach < 0 ? least : most, reach);
    moves.emplace_back(t.coefficient, count);
    combinations = combinations > tries || count > tries ? tries + 1 : combinations * count;
  }
  if (most <= low || least >= high) return false;
  if (moves.empty()) return true;
  if (combinations > tries) return false;
  std::vector<std::int64_t> values(moves.size(), 0);
  std::int64_t now = distance.constant();
  for (;;) {
    if (low < now && now < high) return true;
    std::size_t k = 0;
    for (; k < moves.size(); ++k) {
      if (++values[k] < moves[k].second) {
        now += moves[k].first;
        break;
      }
      now -= moves[k].first * (moves[k].second - 1);
      values[k] = 0;
    }
    if (k == moves.size()) return false;
  }
}

}  // namespace bounds_parts

/// Checks every operation of one core: it is one that programs have; its buffers exist and lie in the memory that it uses; every place
/// stays inside its buffer over all loop values (mvmul with all crossbar rows and all columns of its group); lengths are positive; group,
/// peer and event exist; the array groups fit the core's crossbars and the weights the crossbar's rows; lmv never overlaps itself, and
/// other operations write either exactly where they read or elsewhere.
///
/// Errors: malformed for what a file could break, capacity for too many crossbars, each with core and item. Cost: linear in the text.
inline void check_bounds(const program::program& p, std::size_t core_index) {
  using program::pattern;
  const auto& core = p.cores[core_index];
  const std::string name = "core " + std::to_string(core_index);
  std::int64_t crossbars_used = 0;
  for (std::size_t g = 0; g < core.groups.size(); ++g) {
    if (core.groups[g] >= p.weights.size())
      throw error(error_code::malformed, "array group " + std::to_string(g) + " holds weights that do not exist", name);
    const auto& matrix = p.weights[core.groups[g]];
    if (matrix.rows < 0 || matrix.rows > p.chip.crossbar_rows || matrix.columns < 1)
      throw error(error_code::malformed, "array group " + std::to_string(g) + " holds " + std::to_string(matrix.rows) + " x " +
                                             std::to_string(matrix.columns) + " weights, a crossbar has " + std::to_string(p.chip.crossbar_rows) + " rows",
                  name);
    crossbars_used = checked::add(crossbars_used, crossbars(matrix, p.chip));
  }
  if (crossbars_used > p.chip.crossbars_per_core)
    throw error(error_code::capacity, std::to_string(crossbars_used) + " crossbars needed, " + std::to_string(p.chip.crossbars_per_core) + " available",
                name, "use more cores or more crossbars in each");

  const program::unrolled body(core.body, name);
  body.each_range([&](const program::operation& o, const auto& ranges, std::size_t item) {
    const auto fail = [&](const std::string& what) {
      throw error(error_code::malformed, std::string(isa::mnemonic(o.op)) + ": " + what, name + ", item " + std::to_string(item));
    };
    const auto kind = program::pattern_of(o.op);
    if (kind == pattern::invalid) fail("not an operation of a program");
    if (kind != pattern::event && o.length < 1) fail("length " + std::to_string(o.length));
    if ((kind == pattern::give || kind == pattern::take || o.op == isa::opcode::sync) &&
        (o.peer < 0 || static_cast<std::size_t>(o.peer) >= p.cores.size()))
      fail("peer " + std::to_string(o.peer) + " of " + std::to_string(p.cores.size()) + " cores");
    if ((kind == pattern::give || kind == pattern::take) && static_cast<std::size_t>(o.peer) == core_index) fail("a core talks to itself");
    if (kind == pattern::event && (o.event < 0 || o.event >= isa::event_count)) fail("event register " + std::to_string(o.event));
    if (o.op == isa::opcode::wait && o.count < 1) fail("waits for " + std::to_string(o.count) + " signals");
    if (kind == pattern::matrix && o.group < core.groups.size() && core.groups[o.group] < p.weights.size() &&
        o.length > p.weights[core.groups[o.group]].columns)
      fail("uses " + std::to_string(o.length) + " columns of " + std::to_string(p.weights[core.groups[o.group]].columns));
    for (const auto& e : program::effects_of(p, core, o)) {
      const std::size_t place = e.where == &o.d ? 0 : e.where == &o.a ? 1 : 2;
      if (e.where->buffer >= p.buffers.size()) fail("a buffer that does not exist");
      const auto& buffer = p.buffers[e.where->buffer];
      const bool global = (o.op == isa::opcode::ld && place == 1) || (o.op == isa::opcode::st && place == 0);
      if (buffer.core != (global ? program::global_memory : static_cast<std::int32_t>(core_index)))
        fail("buffer '" + buffer.name + "' lies in another memory");
      const std::int64_t low = checked::add(ranges[place].low, e.low()), high = checked::add(ranges[place].high, e.high());
      if (low < 0 || high > buffer.elements)
        fail(std::string(e.writes ? "writes" : "reads") + " elements " + std::to_string(low) + " to " + std::to_string(high) + " of buffer '" + buffer.name +
             "', which has " + std::to_string(buffer.elements));
    }
  });

  // Overlapping operands. The counts of the enclosing loops bound the distance of the two places.
  std::vector<const program::loop*> loops;
  const auto visit = [&](const auto& self, const program::item& now, std::size_t item) -> void {
    if (const auto* l = std::get_if<program::loop>(&now.what)) {
      if (l->count <= 0) return;
      loops.push_back(l);
      for (const auto& inner : l->body) self(self, inner, item);
      loops.pop_back();
      return;
    }
    const auto& o = std::get<program::operation>(now.what);
    if (o.op == isa::opcode::ld || o.op == isa::opcode::st) return;
    const auto effects = program::effects_of(p, core, o);
    for (const auto& write : effects) {
      if (!write.writes) continue;
      const auto to = program::locate(p, write.where->buffer);
      for (const auto& read : effects) {
        if (read.writes) continue;
        const auto from = program::locate(p, read.where->buffer);
        if (from.root != to.root) continue;
        const affine distance = write.where->offset + affine(to.offset) - read.where->offset - affine(from.offset);
        if (program::is_elementwise(o.op) && distance == affine(0)) continue;
        const auto kind = program::pattern_of(o.op);
        if (kind == pattern::dot || kind == pattern::mean) continue;  // one element, written after everything was read
        const auto count_of = [&](symbol s) {
          for (const auto* l : loops)
            if (l->variable == s.index) return l->count;
          return std::int64_t{1};
        };
        // write [d + wl, d + wh) meets read [rl, rh): rl - wh < d < rh - wl
        if (bounds_parts::may_overlap(distance, read.low() - write.high(), read.high() - write.low(), count_of))
          throw error(error_code::malformed, std::string(isa::mnemonic(o.op)) + ": its result overlaps an operand in buffer '" + p.buffers[from.root].name + "'",
                      name + ", item " + std::to_string(item));
      }
    }
  };
  for (std::size_t i = 0; i < core.body.size(); ++i) visit(visit, core.body[i], i);
}

}  // namespace raptor::verify
