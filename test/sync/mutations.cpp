#include <doctest/doctest.h>

#include <map>

#include "raptor/sync/exact_count.hpp"
#include "mutants.hpp"
#include "staged_programs.hpp"

// Every single fault that is made in the events of a right program is found by the static verifier; how many of them also show in
// executions is counted, and none shows that was not found.

using namespace raptor;
using namespace raptor::test;

namespace {

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
      const auto inputs = batch_of(right, 4, seed);
      const auto expected = one_by_one(right, inputs);
      for (const auto& m : mutants_of(right)) {
        auto& now = counts[m.what];
        ++now.mutants;
        const auto wrong = m.of(right);
        const bool caught = refused(wrong);
        now.refused += caught;
        const bool seen = misbehaves(wrong, inputs, expected);
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
