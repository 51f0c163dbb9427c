#include "raptor/sim/from_emitted.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

using namespace raptor::sim::test;

TEST_CASE("what was emitted in memory runs like what was loaded") {
  raptor::emit::in_memory emitted;
  const auto hand_made = one_core({b::mvmul(2, 1, 0)}, 2, 3);
  emitted.streams = {hand_made.cores[0].stream, {}};
  emitted.groups = {{{1, 0}}, {{1, 0}}};
  emitted.contents = {{2, 3, {1, 2, 3, 10, 20, 30}}};
  emitted.global_memory = hand_made.global_memory;
  emitted.inputs = {{"x", 0, 8, {2}}};
  emitted.outputs = {{"y", 8, 12, {3}}};
  const auto program = raptor::sim::from_emitted(emitted);
  CHECK(program.cores[0].groups[0].weights == program.cores[1].groups[0].weights);
  CHECK(raptor::sim::execute(program, to_bytes({1, 2})).output("y").values() == std::vector<float>{21, 42, 63});

  emitted.groups[1][0].content = 1;
  CHECK_THROWS_WITH_AS(static_cast<void>(raptor::sim::from_emitted(emitted)), "an array group without contents", raptor::error);
  emitted.groups.pop_back();
  CHECK_THROWS_AS(static_cast<void>(raptor::sim::from_emitted(emitted)), raptor::error);
}
