#include <doctest/doctest.h>

#include <map>
#include <optional>

#include "raptor/sync/check_plan.hpp"
#include "raptor/sync/exact_count.hpp"
#include "raptor/verify/happens_before.hpp"
#include "staged_programs.hpp"

// Every single fault that is made in the events of a right program is found by the static verifier; how many of them also show in
// executions is counted, and none shows that was not found.

using namespace raptor;
using namespace raptor::test;

namespace {

struct mutant {
  std::string what;
  program::program p;
};

const operation* top(const item& i) { return std::get_if<operation>(&i.what); }

std::vector<mutant> mutants_of(const program::program& p) {
  std::vector<mutant> result;
  for (std::size_t c = 0; c < p.cores.size(); ++c) {
    const auto& body = p.cores[c].body;
    const auto change = [&](const char* what, const auto& f) {
      result.push_back({what, p});
      f(result.back().p.cores[c].body);
    };
    const auto blocks = [](const item& i) {
      bool found = false;
      program::for_each_operation(i, [&](const operation& o) { found |= program::is_communication(o.op) && o.op != opcode::sync; });
      return found;
    };
    std::size_t first_blocking = 0, entry = 0;
    while (first_blocking < body.size() && !blocks(body[first_blocking])) ++first_blocking;
    while (entry < body.size() && top(body[entry]) != nullptr && top(body[entry])->op == opcode::sync) ++entry;
    for (std::size_t i = 0; i < body.size(); ++i) {
      const auto* o = top(body[i]);
      if (o == nullptr) continue;
      const auto at = static_cast<std::ptrdiff_t>(i);
      if (o->op == opcode::sync) change("a signal removed", [&](std::vector<item>& b) { b.erase(b.begin() + at); });
      if (o->op == opcode::wait) {
        change("a wait removed", [&](std::vector<item>& b) { b.erase(b.begin() + at); });
        if (o->count > 1) change("a count lowered", [&](std::vector<item>& b) { --std::get<operation>(b[i].what).count; });
      }
      const bool frees = o->op == opcode::sync && i < entry && body[i].origin < p.origins.size() && p.origins[body[i].origin] == "channel free";
      if (frees && first_blocking < body.size())
        change("a permission moved behind the first blocking operation", [&](std::vector<item>& b) {
          std::rotate(b.begin() + at, b.begin() + at + 1, b.begin() + static_cast<std::ptrdiff_t>(first_blocking) + 1);
        });
      // Harmless where messages order both cores anyway, or where the access is not what the wait is for.
      if (o->op == opcode::wait && i + 1 < body.size() && top(body[i + 1]) != nullptr && program::is_global_access(top(body[i + 1])->op))
        change("a wait moved behind the access", [&](std::vector<item>& b) { std::swap(b[i], b[i + 1]); });
    }
  }
  return result;
}

bool refused(const program::program& p) {
  try {
    static_cast<void>(verify::check_happens_before(p));
    sync::check_free_signals(p);
  } catch (const error&) {
    return true;
  }
  return false;
}

bool misbehaves(const program::program& p, const std::vector<std::vector<float>>& inputs, const batch_outputs& expected) {
  for (std::uint32_t k = 0; k < 8; ++k)
    for (const std::int64_t starved : {std::int64_t{-1}, static_cast<std::int64_t>(k % p.cores.size())}) try {
        if (!same_outputs(repeat_program(p, inputs, {k, starved}), expected)) return true;
      } catch (const std::runtime_error&) {
        return true;
      }
  return false;
}

}  // namespace

TEST_CASE("every single fault in the events of a program is found") {
  struct count {
    std::size_t mutants = 0, refused = 0, seen = 0;
  };
  std::map<std::string, count> counts;
  for (std::uint32_t seed = 100; seed < 110; ++seed) {
    CAPTURE(seed);
    staged_program::shape shape;
    shape.stages = 2 + seed % 4;
    const staged_program made(seed, shape);
    for (const auto scope : {sync::restart_scope::all_cores, sync::restart_scope::input_readers}) {
      const auto right = sync::exact_count{scope}(made.p, stages_of(made.stage));
      REQUIRE(!refused(right));
      const auto inputs = batch_of(4, static_cast<std::size_t>(right.buffers[right.inputs[0].buffer].elements), seed);
      const auto expected = one_by_one(right, inputs);
      for (const auto& m : mutants_of(right)) {
        auto& now = counts[m.what];
        ++now.mutants;
        const bool caught = refused(m.p);
        now.refused += caught;
        const bool seen = misbehaves(m.p, inputs, expected);
        now.seen += seen;
        if (!caught && (seen || m.what != "a wait moved behind the access")) FAIL_CHECK(m.what);
      }
    }
  }
  for (const auto& [what, n] : counts) {
    MESSAGE(what << ": " << n.mutants << " mutants, " << n.refused << " refused by the verifier, " << n.seen << " seen in executions");
    CHECK(n.mutants >= 20);
    CHECK(n.refused >= n.seen);
    CHECK(n.seen > 0);
  }
  CHECK(counts.size() == 5);
}
