#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "raptor/sim/executor.hpp"
#include "raptor/sim/global_access.hpp"
#include "raptor/sim/schedule_options.hpp"

/// Looks for a legal schedule under which a program is wrong. Source: PROVENANCE.md; INVARIANTS.md, "Data that crosses global memory".
namespace raptor::sim {

/// For every store to global memory and every other core that loads what it stores: the store, and the last load of that core which touches it. In the
/// order of the stores; accesses whose addresses are not known before the program runs are left out.
/// Cost: O(n log n) in the accesses n, and the pairs that overlap.
[[nodiscard]] inline std::vector<dependency_target> memory_dependencies(const loaded_program& program) {
  struct access {
    std::size_t core, index;
    std::int64_t begin, end;
  };
  std::vector<access> stores, loads;
  for (std::size_t c = 0; c < program.cores.size(); ++c)
    for_each_global_access(program.cores[c].stream, [&](const global_access& a) {
      if (a.begin) (a.is_store ? stores : loads).push_back({c, a.index, *a.begin, *a.begin + a.bytes});
    });
  std::sort(loads.begin(), loads.end(), [](const access& a, const access& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::int64_t longest = 0;
  for (const auto& load : loads) longest = std::max(longest, load.end - load.begin);
  std::vector<dependency_target> found;
  for (const auto& store : stores) {
    std::map<std::size_t, const access*> last;  // by reader
    auto load = std::lower_bound(loads.begin(), loads.end(), store.begin - longest, [](const access& a, std::int64_t address) { return a.begin < address; });
    for (; load != loads.end() && load->begin < store.end; ++load) {
      if (load->end <= store.begin || load->core == store.core) continue;
      const access*& known = last[load->core];
      if (known == nullptr || known->index < load->index) known = &*load;
    }
    for (const auto& [reader, l] : last)
      found.push_back({store.core, store.index, reader, l->index, std::max(store.begin, l->begin), std::min(store.end, l->end), {}, {}});
  }
  return found;
}

/// How many schedules are tried.
struct trial_options {
  std::size_t random_schedules = 20;  ///< with seeds from 0 on
  std::size_t most_of_a_kind = std::numeric_limits<std::size_t>::max();  ///< of the adversarial schedules and of each kind of stall: evenly spread samples
  bool until_first_failure = false;   ///< enough to know that a program is wrong
  execution_options execution;        ///< limits; its schedule and provenance are replaced
};

struct trial_result {
  std::size_t trials = 0;
  std::uint64_t held_reads = 0;       ///< of all adversarial schedules
  std::vector<std::string> failures;  ///< one line a schedule that did not give the expected outputs, or mixed inputs
};

/// Runs a batch under the greedy schedule, random ones, with each core late, with each wait late, with each store that another core loads from late, and under an adversarial
/// schedule for each of memory_dependencies(); says which of them end otherwise than expected. `expected`: [input], the outputs one after the other;
/// empty: those of the greedy schedule. Errors: mismatch of the inputs; what a schedule runs into is a failure, not an error.
/// Cost: that of execute_batch with provenance for each schedule.
[[nodiscard]] inline trial_result try_schedules(const loaded_program& program, std::span<const std::vector<std::byte>> inputs,
                                                std::vector<std::vector<std::byte>> expected = {}, const trial_options& options = {}) {
  trial_result result;
  const auto attempt = [&](const std::string& what, const schedule_options& schedule) {
    if (options.until_first_failure && !result.failures.empty()) return;
    execution_options execution = options.execution;
    execution.schedule = schedule;
    execution.provenance = true;
    ++result.trials;
    const auto fail = [&](const std::string& how) { result.failures.push_back(what + ": " + how); };
    try {
      const batch_result run = execute_batch(program, inputs, execution);
      result.held_reads += run.diagnosis.held_reads;
      if (expected.empty())
        for (const auto& outputs : run.outputs) expected.push_back(bytes_of(outputs));
      for (std::size_t n = 0; n < expected.size(); ++n)
        if (n >= run.outputs.size() || bytes_of(run.outputs[n]) != expected[n]) return fail("the outputs of input " + std::to_string(n) + " differ");
      if (run.diagnosis.mixes != 0) return fail("inputs mix at " + run.diagnosis.first_mix);
      if (run.diagnosis.foreign_output_stores != 0) return fail("an output depends on another input");
    } catch (const error& e) {
      if (e.code() == error_code::mismatch) throw;
      fail(e.what());
    }
  };
  const auto sampled = [&](std::size_t count, auto f) {
    const std::size_t most = std::min(count, options.most_of_a_kind);
    for (std::size_t k = 0; k < most; ++k) f(k * count / most);
  };
  constexpr std::uint64_t as_late_as_possible = std::uint64_t{1} << 62;

  attempt("greedy", {});
  for (std::size_t seed = 0; seed < options.random_schedules; ++seed) {
    schedule_options schedule;
    schedule.policy = schedule_policy::randomized;
    schedule.seed = seed;
    attempt("random with seed " + std::to_string(seed), schedule);
  }
  std::vector<std::size_t> active;
  for (std::size_t c = 0; c < program.cores.size(); ++c)
    if (!program.cores[c].stream.empty()) active.push_back(c);
  sampled(active.size(), [&](std::size_t k) {
    schedule_options schedule;
    schedule.stalled_core = core_stall{active[k], as_late_as_possible};
    attempt("core " + std::to_string(active[k]) + " late", schedule);
  });
  std::vector<instruction_stall> waits;
  for (const std::size_t c : active)
    for (std::size_t k = 0; k < program.cores[c].stream.size(); ++k)
      if (program.cores[c].stream[k].op == isa::opcode::wait) waits.push_back({c, k, {}, as_late_as_possible});
  sampled(waits.size(), [&](std::size_t k) {
    schedule_options schedule;
    schedule.stalled_instruction = waits[k];
    attempt("the wait of core " + std::to_string(waits[k].core) + ", instruction " + std::to_string(waits[k].index) + " late", schedule);
  });
  const auto dependencies = memory_dependencies(program);
  const auto store_place = [&](const dependency_target& d) { return "core " + std::to_string(d.writer_core) + ", instruction " + std::to_string(d.writer_index); };
  std::vector<const dependency_target*> stores;
  for (const auto& d : dependencies)
    if (stores.empty() || stores.back()->writer_core != d.writer_core || stores.back()->writer_index != d.writer_index) stores.push_back(&d);
  sampled(stores.size(), [&](std::size_t k) {
    schedule_options schedule;
    schedule.stalled_instruction = instruction_stall{stores[k]->writer_core, stores[k]->writer_index, {}, as_late_as_possible};
    attempt("the store of " + store_place(*stores[k]) + " late", schedule);
  });
  sampled(dependencies.size(), [&](std::size_t k) {
    const dependency_target& d = dependencies[k];
    schedule_options schedule;
    schedule.policy = schedule_policy::adversarial;
    schedule.target = d;
    attempt("the load of core " + std::to_string(d.reader_core) + ", instruction " + std::to_string(d.reader_index) + " held back for the store of " + store_place(d), schedule);
  });
  return result;
}

}  // namespace raptor::sim
