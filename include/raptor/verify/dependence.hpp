#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/support/box.hpp"

/// Order of accesses inside a nest of loops: can one access come before another one to the same elements? One whole-number problem for
/// each direction of dependence (U. Banerjee, "Dependence Analysis", 1997, chapters 4 and 5), never by trying iterations.
namespace raptor::verify {

/// An access of an item: the operation's place in the text and the loops around it.
struct nested_access {
  const program::operation* op = nullptr;
  program::effect what;
  std::vector<const program::loop*> loops;  ///< outermost first
  std::size_t position = 0;                 ///< of the operation in the text of the item
};

/// All accesses of an item, in the order of its text; loops that never run are left out. Cost: linear.
[[nodiscard]] inline std::vector<nested_access> accesses_of(const program::program& p, const program::core_program& core, const program::item& i) {
  std::vector<nested_access> result;
  std::vector<const program::loop*> loops;
  std::size_t position = 0;
  const auto visit = [&](const auto& self, const program::item& now) -> void {
    if (const auto* o = std::get_if<program::operation>(&now.what)) {
      for (const auto& e : program::effects_of(p, core, *o)) result.push_back({o, e, loops, position});
      ++position;
      return;
    }
    const auto& l = std::get<program::loop>(now.what);
    if (l.count <= 0) return;
    loops.push_back(&l);
    for (const auto& inner : l.body) self(self, inner);
    loops.pop_back();
  };
  visit(visit, i);
  return result;
}

namespace dependence_parts {

/// A loop variable, or the difference of two, with its coefficient in a distance. `low` to `high`, both included.
struct unknown {
  std::int64_t coefficient = 0, low = 0, high = 0;
};

/// Is there a value of constant + Σ coefficient · unknown strictly between `low` and `high`? Branch and bound over whole numbers, largest
/// coefficient first: where loops step over one another (all that compilers make), each level leaves one or two values.
/// Yes as well where `budget` nodes do not decide it.
[[nodiscard]] inline bool reaches(std::int64_t constant, std::vector<unknown> unknowns, std::int64_t low, std::int64_t high, int budget = 4096) {
  using checked::add;
  using checked::multiply;
  std::erase_if(unknowns, [](const unknown& u) { return u.coefficient == 0; });
  for (auto& u : unknowns)
    if (u.coefficient < 0) u = {checked::multiply(u.coefficient, std::int64_t{-1}), -u.high, -u.low};
  std::stable_sort(unknowns.begin(), unknowns.end(), [](const unknown& a, const unknown& b) { return a.coefficient > b.coefficient; });
  std::vector<interval> rest(unknowns.size() + 1);  // bounds of what the unknowns from k on add, both included
  for (std::size_t k = unknowns.size(); k-- > 0;)
    rest[k] = {add(rest[k + 1].begin, multiply(unknowns[k].coefficient, unknowns[k].low)),
               add(rest[k + 1].end, multiply(unknowns[k].coefficient, unknowns[k].high))};
  const auto floor_divide = [](std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); };
  const auto search = [&](const auto& self, std::size_t k, std::int64_t value) -> bool {
    if (add(value, rest[k].end) <= low || add(value, rest[k].begin) >= high) return false;
    if (k == unknowns.size() || --budget < 0) return true;
    const auto& u = unknowns[k];
    // low < value + c · v + rest < high for some rest
    const std::int64_t first = std::max(u.low, floor_divide(add(low, -add(value, rest[k + 1].end)), u.coefficient) + 1);
    const std::int64_t last = std::min(u.high, floor_divide(add(high, -add(value, rest[k + 1].begin)) - 1, u.coefficient));
    for (std::int64_t v = first; v <= last; ++v)
      if (self(self, k + 1, add(value, multiply(u.coefficient, v)))) return true;
    return false;
  };
  return search(search, 0, constant);
}

}  // namespace dependence_parts

/// True where it is proven that `early` never executes before `late` on common elements of one storage, given the storage
/// offsets of their buffers. An operation that is both executes its reads before its writes element by element where it is
/// element-wise with equal offsets; otherwise its own overlap counts as executed before.
[[nodiscard]] inline bool never_before(const nested_access& early, std::int64_t early_offset, const nested_access& late, std::int64_t late_offset) {
  using checked::add;
  const auto& f = early.what.where->offset;
  const auto& g = late.what.where->offset;
  const std::int64_t constant = add(add(f.constant(), early_offset), -add(g.constant(), late_offset));
  const auto coefficient = [](const affine& a, const program::loop* l) { return a.coefficient({symbol::kind::loop, l->variable}); };
  std::size_t common = 0;
  while (common < early.loops.size() && common < late.loops.size() && early.loops[common] == late.loops[common]) ++common;

  /// Can both touch one element where the first `equal` common loops are in the same iteration, common loop `equal` (if `carried`) in an
  /// earlier one for `early`, and everything inside is free? f + [low, high) meets g + [low, high).
  const auto may_meet = [&](std::size_t equal, bool carried) {
    std::vector<dependence_parts::unknown> unknowns;
    std::size_t free = equal;
    for (std::size_t k = 0; k < equal; ++k)  // one variable for both
      unknowns.push_back({add(coefficient(f, early.loops[k]), -coefficient(g, early.loops[k])), 0, early.loops[k]->count - 1});
    if (carried) {  // i for early, i + d for late
      const auto* l = early.loops[free++];
      unknowns.push_back({add(coefficient(f, l), -coefficient(g, l)), 0, l->count - 2});
      unknowns.push_back({-coefficient(g, l), 1, l->count - 1});
    }
    for (std::size_t k = free; k < std::max(early.loops.size(), late.loops.size()); ++k) {
      const bool both = k < common && coefficient(f, early.loops[k]) == coefficient(g, late.loops[k]);
      if (both) {
        unknowns.push_back({coefficient(f, early.loops[k]), 1 - early.loops[k]->count, early.loops[k]->count - 1});
        continue;
      }
      if (k < early.loops.size()) unknowns.push_back({coefficient(f, early.loops[k]), 0, early.loops[k]->count - 1});
      if (k < late.loops.size()) unknowns.push_back({-coefficient(g, late.loops[k]), 0, late.loops[k]->count - 1});
    }
    return dependence_parts::reaches(constant, std::move(unknowns), add(late.what.low(), -early.what.high()), add(late.what.high(), -early.what.low()));
  };
  for (std::size_t k = 0; k < common; ++k)
    if (early.loops[k]->count >= 2 && may_meet(k, true)) return false;
  // The same iteration of all common loops: the text decides, and for one operation its kind.
  if (early.position > late.position) return true;
  if (early.op == late.op) {
    if (!early.what.writes || late.what.writes) return true;  // reads come first; an operation writes each element once
    if (program::is_elementwise(early.op->op) && f - g == affine(add(late_offset, -early_offset))) return true;
  }
  return !may_meet(common, false);
}

}  // namespace raptor::verify
