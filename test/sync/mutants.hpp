#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/sync/check_plan.hpp"
#include "raptor/verify/happens_before.hpp"

/// Single faults in the events of a program.
namespace raptor::test {

/// A fault, and how to make it: the program is copied only then.
struct mutant {
  std::string what;
  std::size_t core = 0;
  std::vector<program::item> body;  ///< of that core

  [[nodiscard]] program::program of(program::program p) const {
    p.cores[core].body = body;
    return p;
  }
};

inline const program::operation* top(const program::item& i) { return std::get_if<program::operation>(&i.what); }

[[nodiscard]] inline std::vector<mutant> mutants_of(const program::program& p) {
  std::vector<mutant> result;
  for (std::size_t c = 0; c < p.cores.size(); ++c) {
    const auto& body = p.cores[c].body;
    const auto change = [&](const char* what, const auto& f) {
      result.push_back({what, c, body});
      f(result.back().body);
    };
    const auto blocks = [](const program::item& i) {
      bool found = false;
      program::for_each_operation(i, [&](const program::operation& o) { found |= program::is_communication(o.op) && o.op != isa::opcode::sync; });
      return found;
    };
    std::size_t first_blocking = 0, entry = 0;
    while (first_blocking < body.size() && !blocks(body[first_blocking])) ++first_blocking;
    while (entry < body.size() && top(body[entry]) != nullptr && top(body[entry])->op == isa::opcode::sync) ++entry;
    for (std::size_t i = 0; i < body.size(); ++i) {
      const auto* o = top(body[i]);
      if (o == nullptr) continue;
      const auto at = static_cast<std::ptrdiff_t>(i);
      if (o->op == isa::opcode::sync) change("a signal removed", [&](std::vector<program::item>& b) { b.erase(b.begin() + at); });
      if (o->op == isa::opcode::wait) {
        change("a wait removed", [&](std::vector<program::item>& b) { b.erase(b.begin() + at); });
        if (o->count > 1) change("a count lowered", [&](std::vector<program::item>& b) { --std::get<program::operation>(b[i].what).count; });
      }
      const bool frees = o->op == isa::opcode::sync && i < entry && body[i].origin < p.origins.size() && p.origins[body[i].origin] == "channel free";
      if (frees && first_blocking < body.size())
        change("a permission moved behind the first blocking operation", [&](std::vector<program::item>& b) {
          std::rotate(b.begin() + at, b.begin() + at + 1, b.begin() + static_cast<std::ptrdiff_t>(first_blocking) + 1);
        });
      // Harmless where messages order both cores anyway, or where the access is not what the wait is for.
      if (o->op == isa::opcode::wait && i + 1 < body.size() && top(body[i + 1]) != nullptr && program::is_global_access(top(body[i + 1])->op))
        change("a wait moved behind the access", [&](std::vector<program::item>& b) { std::swap(b[i], b[i + 1]); });
    }
  }
  return result;
}

/// Does the static verifier find it?
[[nodiscard]] inline bool refused(const program::program& p) {
  try {
    static_cast<void>(verify::check_happens_before(p));
    sync::check_free_signals(p);
  } catch (const error&) {
    return true;
  }
  return false;
}

}  // namespace raptor::test
