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

/// What became of a trial.
struct trial_outcome {
  std::string failure;                           ///< empty: none
  std::uint64_t held_reads = 0;
  std::vector<std::vector<std::byte>> outputs;  ///< [input], one after the other; empty where the schedule ran into an error
};

struct trial_result {
  std::size_t trials = 0;
  std::size_t possible = 0;           ///< trials without trial_options::most_of_a_kind
  std::uint64_t held_reads = 0;       ///< of all adversarial schedules
  std::vector<std::string> failures;  ///< one line a schedule that did not give the expected outputs, or mixed inputs

  void add(trial_outcome outcome) {
    ++trials;
    held_reads += outcome.held_reads;
    if (!outcome.failure.empty()) failures.push_back(std::move(outcome.failure));
  }
};

/// A schedule that is tried, and what it is called.
struct schedule_trial {
  std::string what;
  schedule_options schedule;
};

/// The schedules that are tried: the greedy one, random ones, with each core late, with each wait late, with each store that another core loads from late,
/// and an adversarial one for each of memory_dependencies(). `possible`: how many there are without samples.
/// Cost: that of memory_dependencies.
[[nodiscard]] inline std::vector<schedule_trial> planned_trials(const loaded_program& program, const trial_options& options, std::size_t& possible) {
  std::vector<schedule_trial> trials{{"greedy", {}}};
  for (std::size_t seed = 0; seed < options.random_schedules; ++seed) {
    auto& trial = trials.emplace_back(schedule_trial{"random with seed " + std::to_string(seed), {}});
    trial.schedule.policy = schedule_policy::randomized;
    trial.schedule.seed = seed;
  }
  possible = trials.size();
  const auto sampled = [&](std::size_t count, auto make) {
    const std::size_t most = std::min(count, options.most_of_a_kind);
    for (std::size_t k = 0; k < most; ++k) trials.push_back(make(k * count / most));
    possible += count;
  };
  constexpr std::uint64_t as_late_as_possible = std::uint64_t{1} << 62;
  const auto place = [](std::size_t core, std::size_t index) { return "core " + std::to_string(core) + ", instruction " + std::to_string(index); };

  std::vector<std::size_t> active;
  for (std::size_t c = 0; c < program.cores.size(); ++c)
    if (!program.cores[c].stream.empty()) active.push_back(c);
  sampled(active.size(), [&](std::size_t k) {
    schedule_trial trial{"core " + std::to_string(active[k]) + " late", {}};
    trial.schedule.stalled_core = core_stall{active[k], as_late_as_possible};
    return trial;
  });
  std::vector<instruction_stall> waits;
  for (const std::size_t c : active)
    for (std::size_t k = 0; k < program.cores[c].stream.size(); ++k)
      if (program.cores[c].stream[k].op == isa::opcode::wait) waits.push_back({c, k, {}, as_late_as_possible});
  sampled(waits.size(), [&](std::size_t k) {
    schedule_trial trial{"the wait of " + place(waits[k].core, waits[k].index) + " late", {}};
    trial.schedule.stalled_instruction = waits[k];
    return trial;
  });
  const auto dependencies = memory_dependencies(program);
  std::vector<const dependency_target*> stores;
  for (const auto& d : dependencies)
    if (stores.empty() || stores.back()->writer_core != d.writer_core || stores.back()->writer_index != d.writer_index) stores.push_back(&d);
  sampled(stores.size(), [&](std::size_t k) {
    const dependency_target& d = *stores[k];
    schedule_trial trial{"the store of " + place(d.writer_core, d.writer_index) + " late", {}};
    trial.schedule.stalled_instruction = instruction_stall{d.writer_core, d.writer_index, {}, as_late_as_possible};
    return trial;
  });
  sampled(dependencies.size(), [&](std::size_t k) {
    const dependency_target& d = dependencies[k];
    schedule_trial trial{"the load of " + place(d.reader_core, d.reader_index) + " held back for the store of " + place(d.writer_core, d.writer_index), {}};
    trial.schedule.policy = schedule_policy::adversarial;
    trial.schedule.target = d;
    return trial;
  });
  return trials;
}

/// Runs a batch under one schedule. `expected`: as the outputs of the result; empty: only errors, mixes and outputs of another input are failures.
/// `execution`: limits; its schedule and provenance are replaced. Errors: mismatch of the inputs; what the schedule runs into is a failure, not an error.
/// Cost: that of execute_batch with provenance.
[[nodiscard]] inline trial_outcome try_schedule(const loaded_program& program, std::span<const std::vector<std::byte>> inputs, const schedule_trial& trial,
                                                const std::vector<std::vector<std::byte>>& expected, execution_options execution) {
  execution.schedule = trial.schedule;
  execution.provenance = true;
  trial_outcome result;
  try {
    const batch_result run = execute_batch(program, inputs, execution);
    result.held_reads = run.diagnosis.held_reads;
    result.failure = run.diagnosis.fault();
    for (const auto& outputs : run.outputs) result.outputs.push_back(bytes_of(outputs));
    for (std::size_t n = expected.size(); n-- > 0;)
      if (n >= result.outputs.size() || result.outputs[n] != expected[n]) result.failure = "the outputs of input " + std::to_string(n) + " differ";
  } catch (const error& e) {
    if (e.code() == error_code::mismatch) throw;
    result.failure = e.what();
  }
  if (!result.failure.empty()) result.failure = trial.what + ": " + result.failure;
  return result;
}

/// Runs a batch under the schedules of planned_trials, and says which of them end otherwise than expected. `expected`: [input], the outputs one after
/// the other; empty: those of the first schedule that gives any. Errors and cost: those of try_schedule, for each.
[[nodiscard]] inline trial_result try_schedules(const loaded_program& program, std::span<const std::vector<std::byte>> inputs,
                                                std::vector<std::vector<std::byte>> expected = {}, const trial_options& options = {}) {
  trial_result result;
  for (const auto& trial : planned_trials(program, options, result.possible)) {
    auto outcome = try_schedule(program, inputs, trial, expected, options.execution);
    if (expected.empty()) expected = std::move(outcome.outputs);
    result.add(std::move(outcome));
    if (options.until_first_failure && !result.failures.empty()) break;
  }
  return result;
}

}  // namespace raptor::sim
