// Diagnostic schedules: correct programs give the same outputs under all of them, wrong ones are caught.

#include "raptor/sim/turns.hpp"

#include <doctest/doctest.h>

#include "pipelines.hpp"

using namespace raptor::sim::test;
using raptor::sim::dependency_target;
using raptor::sim::execute_batch;
using raptor::sim::execution_options;
using raptor::sim::schedule_policy;
using floats = std::vector<float>;

namespace {

execution_options randomized(std::uint64_t seed) {
  execution_options options;
  options.schedule.policy = schedule_policy::randomized;
  options.schedule.seed = seed;
  return options;
}
execution_options adversarial(const pipeline::protection& p) {
  execution_options options;
  options.schedule.policy = schedule_policy::adversarial;
  options.schedule.target = {p.writer, p.store_index, p.reader, p.load_index, p.address, p.address + pipeline::bytes, {}, {}};
  options.provenance = true;
  return options;
}
/// True where a batch ends otherwise than expected: an error, other outputs, or data of several inputs in one result.
bool is_caught(const raptor::sim::loaded_program& program, const batch& inputs, const std::vector<floats>& expected, const execution_options& options) {
  try {
    const auto result = execute_batch(program, inputs, options);
    return first_outputs(result) != expected || result.diagnosis.mixes != 0 || result.diagnosis.foreign_output_stores != 0;
  } catch (const raptor::error&) {
    return true;
  }
}
/// The order in which instructions complete.
std::vector<std::string> order_of(const raptor::sim::loaded_program& program, const batch& inputs, execution_options options) {
  std::vector<std::string> lines;
  options.trace = [&](std::string_view line) { lines.emplace_back(line.substr(0, line.find('|'))); };
  static_cast<void>(execute_batch(program, inputs, options));
  return lines;
}

/// Two cores that store a constant twice each, without a word to one another.
const raptor::sim::loaded_program two_alone = [] {
  const stream s{b::setbw(32, 32), b::sldi(1, 0), b::lldi(1, 0, 4)};
  return make_program({s, s}, 0, 0);
}();

}  // namespace

TEST_CASE("correct pipelines give the same outputs under every schedule") {
  for (unsigned seed = 0; seed < 25; ++seed) {
    const pipeline p(seed);
    const auto inputs = numbered_inputs(4, 2);
    const auto expected = p.expected(inputs);
    CAPTURE(seed);
    CHECK(first_outputs(execute_batch(p.program, inputs)) == expected);
    for (std::uint64_t s = 0; s < 10; ++s) CHECK_FALSE(is_caught(p.program, inputs, expected, randomized(s)));
    for (const auto& target : p.protections) {
      CHECK_FALSE(is_caught(p.program, inputs, expected, adversarial(target)));
      const auto found = execute_batch(p.program, inputs, adversarial(target)).diagnosis;
      CHECK(found.held_reads == inputs.size() - 1);  // behind the last read nothing is written
      CHECK(found.overtaken_reads == 0);
    }
    execution_options options;
    options.provenance = true;
    options.schedule.global_barrier = true;
    CHECK_FALSE(is_caught(p.program, inputs, expected, options));
    for (std::size_t core = 0; core < p.program.cores.size(); ++core) {
      options.schedule = {};
      options.schedule.stalled_core = {core, 100};
      options.schedule.stalled_instruction = {(core + 1) % p.program.cores.size(), 5, {}, 30};
      CHECK_FALSE(is_caught(p.program, inputs, expected, options));
    }
  }
}

TEST_CASE("a missing wait for FREE is caught by the adversarial schedule of one of its reads") {
  std::size_t mutants = 0, greedy_caught = 0;
  for (unsigned seed = 0; seed < 25; ++seed) {
    const pipeline p(seed);
    const auto inputs = numbered_inputs(4, 2);
    const auto expected = p.expected(inputs);
    for (const auto& target : p.protections) {
      CAPTURE(seed);
      CAPTURE(target.writer);
      const auto mutant = p.without(target.writer, target.wait_index);
      CHECK(is_caught(mutant, inputs, expected, adversarial(target)));
      if (is_caught(mutant, inputs, expected, {})) ++greedy_caught;
      // One core at a time from input to input is right again: the fault is one between iterations.
      execution_options barrier;
      barrier.schedule.global_barrier = true;
      CHECK_FALSE(is_caught(mutant, inputs, expected, barrier));
      ++mutants;
    }
  }
  CHECK(mutants > 80);
  CHECK(greedy_caught < mutants);  // else the test would need no schedule
}

TEST_CASE("a missing wait for READY is caught by a random schedule or by a stall of the reader's writers") {
  std::size_t mutants = 0;
  for (unsigned seed = 0; seed < 25; ++seed) {
    const pipeline p(seed);
    const auto inputs = numbered_inputs(4, 2);
    const auto expected = p.expected(inputs);
    for (const auto& wait : p.ready_waits) {
      const auto mutant = p.without(wait.core, wait.index);
      bool caught = false;
      for (std::uint64_t s = 0; s < 20 && !caught; ++s) caught = is_caught(mutant, inputs, expected, randomized(s));
      CAPTURE(seed);
      CHECK(caught);
      ++mutants;
    }
  }
  CHECK(mutants > 40);
}

TEST_CASE("data of two inputs in one result: the adversarial schedule shows the mix") {
  // Two writers, one reader that adds both; the second writer does not wait for FREE.
  std::size_t mixes = 0;
  for (unsigned seed = 0; seed < 25; ++seed) {
    const pipeline p(seed);
    for (const auto& target : p.protections) {
      try {
        const auto result = execute_batch(p.without(target.writer, target.wait_index), numbered_inputs(4, 2), adversarial(target));
        if (result.diagnosis.mixes == 0) continue;
        ++mixes;
        CHECK(has(result.diagnosis.first_mix, "core "));
        CHECK(has(result.diagnosis.first_mix, ", iteration "));
        CHECK(result.diagnosis.overtaken_reads != 0);
      } catch (const raptor::error&) {
      }
    }
  }
  CHECK(mixes > 10);
}

TEST_CASE("random schedules repeat with their seed and differ without") {
  const pipeline p(3);
  const auto inputs = numbered_inputs(3, 2);
  const auto first = order_of(p.program, inputs, randomized(1));
  CHECK(first == order_of(p.program, inputs, randomized(1)));
  CHECK(first != order_of(p.program, inputs, randomized(2)));
  CHECK(first != order_of(p.program, inputs, {}));
  CHECK(first.size() == order_of(p.program, inputs, {}).size());
}

TEST_CASE("the order of a seed is the same everywhere") {
  // The draws as schedule_turns documents them; std::mt19937_64 is the same everywhere.
  std::string cores;
  for (const auto& line : order_of(two_alone, batch(1), randomized(5489))) cores += line[5];
  std::string again;
  std::mt19937_64 random(5489);
  std::vector<int> ready{0, 1}, left{3, 3};
  while (!ready.empty()) {
    const auto draw = random();
    const auto at = static_cast<std::ptrdiff_t>(draw % ready.size());
    const int core = ready[static_cast<std::size_t>(at)];
    ready.erase(ready.begin() + at);
    auto quantum = std::uint64_t{1} << ((draw >> 32) % 12);
    int& rest = left[static_cast<std::size_t>(core)];
    for (; quantum != 0 && rest != 0; --quantum, --rest) again += static_cast<char>('0' + core);
    if (rest != 0) ready.push_back(core);
  }
  CHECK(cores == again);
}

TEST_CASE("a stalled core runs later, and alone its time passes at once") {
  execution_options options;
  options.schedule.stalled_core = {0, 4};
  const auto lines = order_of(two_alone, batch(1), options);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0] == "core 1 index 0 ");
  CHECK(lines[3] == "core 0 index 0 ");
  options.schedule.stalled_core = {};
  options.schedule.stalled_instruction = {0, 1, 1, 1000000000000};
  const auto later = order_of(two_alone, batch(2), options);
  REQUIRE(later.size() == 12);
  CHECK(later[3] == "core 0 index 0 ");  // the second body begins
  CHECK(later[4] == "core 1 index 0 ");
  CHECK(later[10] == "core 0 index 1 ");
}

TEST_CASE("a global barrier separates the bodies") {
  execution_options options;
  options.schedule.global_barrier = true;
  std::string cores;
  for (const auto& line : order_of(two_alone, batch(2), options)) cores += line[5];
  CHECK(cores == "000111000111");
  CHECK(order_of(two_alone, batch(2), {})[3] == "core 0 index 0 ");
  // A core that never arrives: the others wait for it.
  const auto text = batch_failure(make_program({{b::setbw(32, 32)}, {b::setbw(32, 32), b::wait(0, 1)}}, 0, 0), batch(2), options);
  CHECK_MESSAGE(has(text, "deadlock: core 1 waits for ever"), text);
  CHECK_MESSAGE(has(text, "waits at the global barrier for core 1, which is at instruction 1 of iteration 0"), text);
}

TEST_CASE("the deferral budget and the iterations of a target bound the adversary") {
  // A writer that never waits, a reader that is held at its first load.
  const chain c{2, 4};
  auto program = c.program();
  program.cores[0].stream[6] = b::nop();  // the wait for FREE
  const auto inputs = numbered_inputs(3, 1);
  REQUIRE(program.cores[0].stream[7].op == raptor::isa::opcode::st);
  REQUIRE(program.cores[1].stream[6].op == raptor::isa::opcode::ld);
  execution_options options;
  options.schedule.policy = schedule_policy::adversarial;
  options.schedule.target = dependency_target{0, 7, 1, 6, 8, 12, {}, {}};
  // Core 0 never blocks: it is one turn, and its third READY is too many for core 1 unless core 1 comes in between.
  CHECK(is_caught(program, inputs, c.expected(inputs), options));
  options.schedule.target->reader_iteration = 1;
  const auto only_second = order_of(c.program(), inputs, options);
  options.schedule.deferral_budget = 0;
  CHECK(order_of(c.program(), inputs, options) == order_of(c.program(), inputs, {}));
  CHECK(only_second.size() == order_of(c.program(), inputs, {}).size());
  options.schedule.target->begin = 12, options.schedule.target->end = 16;  // nothing touches these bytes
  options.schedule.deferral_budget = 1000;
  CHECK(order_of(c.program(), inputs, options) == order_of(c.program(), inputs, {}));
}

TEST_CASE("schedules that do not fit the program") {
  const chain c{2, 4};
  const auto program = c.program();
  const auto refusal = [&](auto change) {
    execution_options options;
    options.schedule.policy = schedule_policy::adversarial;
    options.schedule.target = dependency_target{0, 7, 1, 6, 8, 12, {}, {}};
    change(options.schedule);
    return batch_failure(program, numbered_inputs(2, 1), options);
  };
  CHECK(refusal([](auto&) {}).empty());
  CHECK(has(refusal([](auto& s) { s.target.reset(); }), "mismatch error: an adversarial schedule needs a target"));
  CHECK(has(refusal([](auto& s) { s.target->writer_core = 2; }), "the target's writer names core 2, the program has 2 cores"));
  CHECK(has(refusal([](auto& s) { s.target->reader_index = 99; }), "the target's reader names instruction 99 of core 1, which has"));
  CHECK(has(refusal([](auto& s) { s.target->writer_index = 1; }), "the target's writer is no store to global memory: core 0, instruction 1: sldi"));
  CHECK(has(refusal([](auto& s) { s.target->reader_index = 8; }), "the target's reader is no load from global memory: core 1, instruction 8: st"));
  CHECK(has(refusal([](auto& s) { s.target->reader_core = 0, s.target->reader_index = 4; }), "are the same core, 0"));
  CHECK(has(refusal([](auto& s) { s.target->end = 8; }), "the target's range [8, 8) is empty"));
  CHECK(has(refusal([](auto& s) { s.stalled_core = {7, 1}; }), "the stall names core 7"));
  CHECK(has(refusal([](auto& s) { s.stalled_instruction = {1, 70, {}, 1}; }), "the stall names instruction 70 of core 1"));
  CHECK(has(refusal([](auto& s) { s.stalled_instruction = {1, 7, 2, 1}; }), "the stall names iteration 2, the last one is 1"));
  CHECK(has(refusal([](auto& s) { s.target->reader_iteration = 2; }), "the target's reader names iteration 2, the last one is 1"));
  CHECK(has(refusal([](auto& s) { s.target->least_writer_iteration = 5; }), "the target's writer names iteration 5"));
}

TEST_CASE("a barrier with one register a round can be signalled twice before its wait") {
  // Both cores signal, then wait: the one that is slow in between finds two signals. A leader that gathers and releases cannot be overtaken.
  const auto meet = [](int other) { return stream{b::setbw(32, 32), b::sync(0, other), b::nop(), b::wait(0, 1)}; };
  const auto overtaken = make_program({meet(1), meet(0)}, 0, 0);
  execution_options options;
  options.schedule.stalled_instruction = {1, 2, {}, 50};
  CHECK(batch_failure(overtaken, batch(3)).empty());
  CHECK(has(batch_failure(overtaken, batch(3), options), "overshoot: event 0 is at 2"));
  const stream leader{b::setbw(32, 32), b::nop(), b::wait(0, 1), b::sync(1, 1)}, other{b::setbw(32, 32), b::sync(0, 0), b::nop(), b::wait(1, 1)};
  CHECK(batch_failure(make_program({leader, other}, 0, 0), batch(3), options).empty());
}
