#include <doctest/doctest.h>

#include <map>

#include "../sync/mutants.hpp"
#include "../sync/staged_programs.hpp"
#include "raptor/emit/in_memory.hpp"
#include "raptor/memory/plan.hpp"
#include "raptor/program/binding.hpp"
#include "raptor/sim/from_emitted.hpp"
#include "raptor/sim/schedule_trials.hpp"
#include "raptor/sync/exact_count.hpp"

// Single faults in the events of random pipelines, executed under schedules that try to make them show. The static verifier finds every one
// of them (test/sync/mutations.cpp); here no fault may show that the verifier does not find, and the right programs show none.

using namespace raptor;
using namespace raptor::test;

namespace {

using batch = std::vector<std::vector<std::byte>>;

sim::loaded_program emitted(const program::program& realized) { return sim::from_emitted(emit::build(memory::plan(program::bind(realized)))); }

}  // namespace

TEST_CASE("faults in the events of pipelines show under adversarial schedules, and only faults that the verifier finds") {
  struct count {
    std::size_t mutants = 0, refused = 0, greedy = 0, adversarial = 0, other = 0;
  };
  std::map<std::string, count> counts;
  std::size_t schedules = 0;
  for (std::uint32_t seed = 100; seed < 110; ++seed) {
    CAPTURE(seed);
    staged_program::shape shape;
    shape.stages = 2 + seed % 4;
    const staged_program made(seed, shape);
    const auto scope = seed % 2 == 0 ? sync::restart_scope::all_cores : sync::restart_scope::input_readers;
    const auto right = sync::exact_count{scope}(made.p, stages_of(made.stage));
    batch inputs;
    for (const auto& entry : batch_of(right, 4, seed)) inputs.emplace_back(std::as_bytes(std::span(entry)).begin(), std::as_bytes(std::span(entry)).end());
    const auto program = emitted(right);
    std::vector<std::vector<std::byte>> expected;
    for (const auto& entry : inputs) expected.push_back(sim::bytes_of(sim::execute_batch(program, batch{entry}).outputs.front()));
    sim::trial_options options;
    options.random_schedules = 8;
    const auto fine = sim::try_schedules(program, inputs, expected, options);
    schedules += fine.trials;
    CHECK(fine.failures == std::vector<std::string>{});
    const auto mutants = mutants_of(right);
    for (std::size_t k = seed % 3; k < mutants.size(); k += 3) {
      const auto& m = mutants[k];
      auto& now = counts[m.what];
      ++now.mutants;
      const auto wrong = m.of(right);
      const bool found = refused(wrong);
      now.refused += found;
      const auto shown = sim::try_schedules(emitted(wrong), inputs, expected, options).failures;
      if (shown.empty()) continue;
      if (!found) FAIL_CHECK(m.what << ": " << shown.front());
      const auto by = [&](const char* kind) { return std::any_of(shown.begin(), shown.end(), [&](const std::string& s) { return s.starts_with(kind); }); };
      ++(by("greedy") ? now.greedy : by("the load") ? now.adversarial : now.other);
    }
  }
  MESSAGE(schedules << " schedules of right programs");
  for (const auto& [what, n] : counts) {
    MESSAGE(what << ": " << n.mutants << " mutants, " << n.refused << " refused by the verifier; shown by greedy " << n.greedy << ", adversarial " << n.adversarial
                 << ", stalls or random order " << n.other);
    CHECK(n.mutants >= 5);
    CHECK(n.greedy + n.adversarial + n.other > 0);
  }
  CHECK(schedules > 200);
}
