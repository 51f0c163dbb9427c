#include "raptor/sim/schedule_trials.hpp"

#include <doctest/doctest.h>

#include "pipelines.hpp"

using namespace raptor::sim::test;
using raptor::sim::memory_dependencies;
using raptor::sim::trial_options;
using raptor::sim::try_schedules;

namespace {

std::vector<std::vector<std::byte>> expected_bytes(const pipeline& p, const batch& inputs) {
  std::vector<std::vector<std::byte>> all;
  for (const auto& values : p.expected(inputs)) all.push_back(to_bytes(values));
  return all;
}

}  // namespace

TEST_CASE("the dependencies of a chain: each store with the load of the next core") {
  const auto found = memory_dependencies(chain{3, 8}.program());
  REQUIRE(found.size() == 2);
  CHECK(found[0].writer_core == 0);
  CHECK(found[0].writer_index == 7);
  CHECK(found[0].reader_core == 1);
  CHECK(found[0].reader_index == 6);
  CHECK(found[0].begin == 16);
  CHECK(found[0].end == 24);
  CHECK(found[1].writer_core == 1);
  CHECK(found[1].reader_core == 2);
}

TEST_CASE("of several loads of a store the last one counts, parts that do not overlap do not, nor loads of the same core") {
  const stream writer{b::setbw(32, 32), b::sldi(1, 0), b::lldi(1, 0, 16), b::sldi(2, 100), b::st(2, 1, 8), b::sldi(2, 108), b::st(2, 1, 8), b::ld(1, 2, 4)};
  const stream reader{b::setbw(32, 32), b::sldi(1, 96), b::ld(1, 1, 5), b::sldi(2, 104), b::ld(1, 2, 8), b::sldi(2, 200), b::ld(1, 2, 4)};
  const auto found = memory_dependencies(make_program({writer, reader}, 0, 100));
  REQUIRE(found.size() == 2);
  CHECK(found[0].writer_index == 4);
  CHECK(found[0].reader_index == 4);
  CHECK(found[0].begin == 104);
  CHECK(found[0].end == 108);
  CHECK(found[1].writer_index == 6);
  CHECK(found[1].reader_index == 4);
  CHECK(found[1].begin == 108);
  CHECK(found[1].end == 112);
}

TEST_CASE("correct pipelines pass all trials; each wait of an event that protects memory is needed") {
  std::size_t mutants = 0;
  for (unsigned seed = 100; seed < 112; ++seed) {
    const pipeline p(seed);
    const auto inputs = numbered_inputs(3, 2);
    const auto expected = expected_bytes(p, inputs);
    trial_options few;
    few.random_schedules = 4;
    trial_options until_first = few;
    until_first.until_first_failure = true;
    CAPTURE(seed);
    const auto good = try_schedules(p.program, inputs, expected, few);
    CHECK_MESSAGE(good.failures.empty(), (good.failures.empty() ? "" : good.failures.front()));
    CHECK(good.trials >= 1 + 4 + p.program.cores.size() + p.protections.size());
    CHECK(good.held_reads == 2 * p.protections.size());
    for (std::size_t core = 0; core < p.program.cores.size(); ++core)
      for (std::size_t index = 0; index < p.program.cores[core].stream.size(); ++index) {
        const auto& i = p.program.cores[core].stream[index];
        if (i.op != raptor::isa::opcode::wait && i.op != raptor::isa::opcode::sync) continue;
        CAPTURE(core);
        CAPTURE(index);
        CHECK(try_schedules(p.without(core, index), inputs, expected, until_first).failures.size() == 1);
        ++mutants;
      }
  }
  CHECK(mutants > 150);
}

TEST_CASE("without expected outputs the greedy schedule gives them, and the others are compared with it") {
  const pipeline p(7);
  const auto inputs = numbered_inputs(3, 2);
  CHECK(try_schedules(p.program, inputs).failures.empty());
  const auto& target = p.protections.front();
  CHECK_FALSE(try_schedules(p.without(target.writer, target.wait_index), inputs).failures.empty());
  auto wrong = expected_bytes(p, inputs);
  wrong[1][0] ^= std::byte{1};
  const auto result = try_schedules(p.program, inputs, wrong);
  CHECK(result.failures.size() == result.trials);
  CHECK(result.failures.front() == "greedy: the outputs of input 1 differ");
}

TEST_CASE("a wait that is overtaken between its signals is found") {
  // Both cores signal, then wait: the one that is slow in between finds two signals.
  const auto meet = [](int other) { return stream{b::setbw(32, 32), b::sync(0, other), b::wait(0, 1)}; };
  const auto result = try_schedules(make_program({meet(1), meet(0)}, 0, 0), batch(3));
  CHECK(result.failures.size() >= 2);
  CHECK(result.failures.back() == "the wait of core 1, instruction 2 late: overshoot: event 0 is at 2, above the awaited 1");
}

TEST_CASE("samples of the trials, and inputs of another size") {
  const pipeline p(7);
  trial_options one;
  one.random_schedules = 2;
  one.most_of_a_kind = 1;
  const auto sampled = try_schedules(p.program, numbered_inputs(2, 2), {}, one);
  CHECK(sampled.trials == 1 + 2 + 4);
  trial_options all;
  all.random_schedules = 2;
  const auto complete = try_schedules(p.program, numbered_inputs(2, 2), {}, all);
  CHECK(complete.trials == complete.possible);
  CHECK(sampled.possible == complete.possible);
  one.most_of_a_kind = 0;
  CHECK(try_schedules(p.program, numbered_inputs(2, 2), {}, one).trials == 1 + 2);
  CHECK_THROWS_AS(static_cast<void>(try_schedules(p.program, numbered_inputs(2, 3))), raptor::error);
}
