#include "raptor/sync/repeating_rendezvous.hpp"

#include <doctest/doctest.h>

#include "raptor/sync/exact_count.hpp"
#include "staged_programs.hpp"

using namespace raptor;

using namespace raptor::test;

namespace {

std::size_t events(const program::program& p) {
  std::size_t count = 0;
  for (const auto& core : p.cores)
    program::for_each_operation(core.body, [&](const program::operation& o) { count += program::pattern_of(o.op) == program::pattern::event; });
  return count;
}

}  // namespace

TEST_CASE("what repeats orders its loads of inputs where messages do not") {
  auto p = empty_program(3);
  const auto x = add_input(p, 4, "x");
  const auto y = add_output(p, 12, "y");
  for (std::uint32_t c = 0; c < 3; ++c) add_buffer(p, static_cast<std::int32_t>(c), 4);
  const auto local = [](std::size_t c) { return place{static_cast<std::uint32_t>(2 + c), 0}; };
  const auto load = [&](std::size_t c) { add(p, c, make(opcode::ld, local(c), {x, 0}, 4)); };
  const auto store = [&](std::size_t c) { add(p, c, make(opcode::st, {y, affine(static_cast<std::int64_t>(4 * c))}, local(c), 4)); };
  const auto message = [&](std::size_t from, std::size_t to) {
    add(p, from, send_to(static_cast<std::int32_t>(to), local(from), 4));
    add(p, to, receive_from(static_cast<std::int32_t>(from), local(to), 4));
  };
  SUBCASE("one core loads") {
    load(0), load(0), message(0, 1), message(0, 2);
    CHECK(events(sync::repeating_rendezvous{}(p, {})) == 0);
    CHECK_NOTHROW(verify::check_happens_before(p));
  }
  SUBCASE("messages there and back order two cores that load") {
    load(0), message(0, 1), load(1), message(1, 0);
    CHECK(events(sync::repeating_rendezvous{}(p, {})) == 0);
    CHECK_NOTHROW(verify::check_happens_before(p));
  }
  SUBCASE("messages one way do not") {
    load(0), message(0, 1), load(1);
    CHECK_THROWS_AS(static_cast<void>(verify::check_happens_before(p)), error);
    const auto q = sync::repeating_rendezvous{}(p, {});
    CHECK(events(q) == 4);
    CHECK_NOTHROW(verify::check_happens_before(q));
  }
  SUBCASE("cores that never meet") {
    for (std::size_t c = 0; c < 3; ++c) load(c), store(c);
    const auto inputs = batch_of(p, 5, 1);
    const auto q = sync::repeating_rendezvous{}(p, {});
    CHECK(events(q) == 7);  // each but the leader one signal and one wait; the leader one wait and two signals
    CHECK_NOTHROW(verify::check_happens_before(q));
    const auto expected = one_by_one(p, inputs);
    std::size_t wrong = 0;
    for (std::uint32_t k = 0; k < 20; ++k) {
      wrong += !same_outputs(repeat_program(p, inputs, {k, k % 3}), expected);
      CHECK(same_outputs(repeat_program(q, inputs, {k, k % 3}), expected));
    }
    CHECK(wrong > 0);
  }
}

TEST_CASE("random programs of one stage with messages only are right when they repeat") {
  std::size_t planned = 0, wrong = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    staged_program::shape shape;
    shape.stages = 1, shape.most_cores = 5, shape.channels = false, shape.steps = 10 + seed;
    const staged_program made(seed, shape);
    const auto q = sync::exact_count{}(made.p, stages_of(made.stage));  // without channels it is repeating_rendezvous
    planned += events(q) > 0;
    CHECK_NOTHROW(verify::check_happens_before(q));
    const auto inputs = batch_of(q, 4, seed);
    const auto expected = one_by_one(made.p, inputs);
    for (std::uint32_t k = 0; k < 6; ++k) {
      const auto starved = static_cast<std::int64_t>(k % q.cores.size());
      CHECK(same_outputs(repeat_program(q, inputs, {k, starved}), expected));
      wrong += !same_outputs(repeat_program(made.p, inputs, {k, starved}), expected);
    }
  }
  CHECK(planned > 10);
  CHECK(wrong > 10);
}
