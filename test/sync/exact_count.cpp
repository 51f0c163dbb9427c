#include "raptor/sync/exact_count.hpp"

#include <doctest/doctest.h>

#include "raptor/sync/check_plan.hpp"
#include "raptor/verify/happens_before.hpp"
#include "raptor/verify/program.hpp"
#include "staged_programs.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

/// A core's operations in one line: loops in brackets, events with their register, target or count.
std::string line(const program::program& p, std::size_t core) {
  std::string text;
  const auto write = [&](const auto& self, const std::vector<item>& body) -> void {
    for (const auto& i : body) {
      if (const auto* l = std::get_if<program::loop>(&i.what)) {
        text += "[ ";
        self(self, l->body);
        text += "] ";
        continue;
      }
      const auto& o = std::get<operation>(i.what);
      text += isa::mnemonic(o.op);
      if (o.op == opcode::sync) text += std::to_string(o.event) + ">" + std::to_string(o.peer);
      if (o.op == opcode::wait) text += std::to_string(o.event) + "=" + std::to_string(o.count);
      text += ' ';
    }
  };
  write(write, p.cores[core].body);
  if (!text.empty()) text.pop_back();
  return text;
}

/// Cores with a local buffer each, numbered as the cores.
program::program cores_with_buffers(std::size_t cores) {
  auto p = empty_program(cores);
  for (std::size_t c = 0; c < cores; ++c) add_buffer(p, static_cast<std::int32_t>(c), 64);
  return p;
}
operation load_from(std::uint32_t buffer, std::uint32_t local, std::int64_t offset = 0, std::int64_t n = 4) {
  return make(opcode::ld, {local, 0}, {buffer, offset}, n);
}
operation store_to(std::uint32_t buffer, std::uint32_t local, std::int64_t offset = 0, std::int64_t n = 4) {
  return make(opcode::st, {buffer, offset}, {local, 0}, n);
}
std::string failure(const auto& f) {
  try {
    f();
  } catch (const error& e) {
    return std::string(name(e.code())) + ": " + e.what() + " @ " + e.place();
  }
  return {};
}

}  // namespace

TEST_CASE("one writer, one reader: ready and free") {
  auto p = cores_with_buffers(2);
  const auto channel = add_buffer(p, program::global_memory, 4, "channel");
  add(p, 0, fill({0, 0}, 1, 4));
  add(p, 0, store_to(channel, 0));
  add(p, 0, fill({0, 0}, 2, 4));
  add(p, 1, fill({1, 0}, 1, 4));
  add(p, 1, load_from(channel, 1));
  add(p, 1, fill({1, 0}, 2, 4));
  SUBCASE("of the channel alone") {
    const auto q = sync::exact_count{sync::restart_scope::input_readers}(p, stages_of({0, 1}));
    CHECK(line(q, 0) == "lldi wait0=1 st sync0>1 lldi");
    CHECK(line(q, 1) == "sync0>0 lldi wait0=1 ld lldi");
    CHECK(q.origins.size() == 2);
    const auto report = verify::check_happens_before(q);
    CHECK(report.loads == 2);
    CHECK(report.stores == 2);
    CHECK(report.communication.signals == 4);
  }
  SUBCASE("with the restart of the downstream core") {
    const auto q = sync::exact_count{}(p, stages_of({0, 1}));
    CHECK(line(q, 0) == "lldi wait1=1 st sync1>1 lldi wait0=1 sync0>1");
    CHECK(line(q, 1) == "sync1>0 sync0>0 lldi wait1=1 ld lldi wait0=1");
    CHECK_NOTHROW(verify::check_happens_before(q));
    CHECK_NOTHROW(sync::check_free_signals(q));
  }
  CHECK(failure([&] { verify::check_happens_before(p); }).find("nothing keeps core 0, item 1 of iteration 1 from overwriting it before") != std::string::npos);
}

TEST_CASE("several transfers of one pair need one permission, and one with the same first store one wait") {
  auto p = cores_with_buffers(3);
  const auto a = add_buffer(p, program::global_memory, 8, "a"), b = add_buffer(p, program::global_memory, 4, "b");
  add(p, 0, store_to(a, 0));
  add(p, 0, store_to(b, 0));
  add(p, 0, store_to(a, 0, 4));
  add(p, 1, load_from(a, 1)), add(p, 1, load_from(b, 1)), add(p, 1, load_from(a, 1, 4));
  add(p, 2, load_from(a, 2, 0, 8));
  const auto q = sync::exact_count{sync::restart_scope::input_readers}(p, stages_of({0, 1, 1}));
  CHECK(line(q, 0) == "wait0=2 st sync0>1 st sync1>1 st sync2>1 sync0>2");
  CHECK(line(q, 1) == "sync0>0 wait0=1 ld wait1=1 ld wait2=1 ld");
  CHECK(line(q, 2) == "sync0>0 wait0=1 ld");
  CHECK_NOTHROW(verify::check_happens_before(q));
}

TEST_CASE("the barrier signals by dissemination and is permitted; the tree releases what lies downstream") {
  auto p = cores_with_buffers(7);
  const auto input = add_input(p, 4, "x");
  const auto channel = add_buffer(p, program::global_memory, 4, "channel");
  for (std::uint32_t c = 0; c < 3; ++c) add(p, c, load_from(input, c));
  add(p, 0, store_to(channel, 0));
  for (std::uint32_t c = 3; c < 7; ++c) add(p, c, fill({c, 0}, 0, 4));
  add(p, 6, load_from(channel, 6));
  const auto q = sync::exact_count{}(p, stages_of({0, 0, 0, 2, 2, 1, 1}));
  // Downstream in the order 5 6 3 4: 5 is the root, 6 and 3 its children, 4 the child of 6.
  CHECK(line(q, 0) == "sync0>1 sync0>2 ld wait4=1 st sync2>6 wait0=2 sync1>1 wait1=1 sync2>2 wait2=1 wait3=1 sync0>5");
  CHECK(line(q, 1) == "sync0>0 sync0>2 ld wait0=2 sync1>2 wait1=1 sync2>0 wait2=1");
  CHECK(line(q, 5) == "sync3>0 lldi wait0=1 wait1=2 sync0>6 sync0>3");
  CHECK(line(q, 6) == "sync4>0 sync1>5 lldi wait2=1 ld wait0=1 wait1=1 sync0>4");
  CHECK(line(q, 3) == "sync1>5 lldi wait0=1");
  CHECK(line(q, 4) == "sync1>6 lldi wait0=1");
  CHECK_NOTHROW(verify::check_happens_before(q));
}

TEST_CASE("a barrier without permissions overshoots") {
  auto p = cores_with_buffers(2);
  for (std::int32_t c = 0; c < 2; ++c) {
    add(p, static_cast<std::size_t>(c), sync_to(1 - c, 0));
    add(p, static_cast<std::size_t>(c), wait_for(0, 1));
  }
  CHECK(failure([&] { verify::check_happens_before(p); }).find("deadlock: overshoot") == 0);
}

TEST_CASE("random programs of several stages are proven, and right in every schedule tried") {
  std::size_t channels = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    staged_program::shape shape;
    shape.stages = 1 + seed % 5;
    shape.most_cores = 1 + seed % 4;
    shape.steps = 40 + seed % 40;
    const staged_program made(seed, shape);
    REQUIRE_NOTHROW(verify::check_program(made.p));
    for (const auto scope : {sync::restart_scope::all_cores, sync::restart_scope::input_readers}) {
      const auto q = sync::exact_count{scope}(made.p, stages_of(made.stage));
      REQUIRE_NOTHROW(verify::check_program(q));
      const auto report = verify::check_happens_before(q);
      REQUIRE_NOTHROW(sync::check_free_signals(q));
      channels += static_cast<std::size_t>(report.loads);
      const auto inputs = batch_of(q, 4, seed);
      const auto expected = one_by_one(q, inputs);
      for (std::uint32_t k = 0; k < 4; ++k) {
        CHECK(same_outputs(repeat_program(q, inputs, {k, -1}), expected));
        CHECK(same_outputs(repeat_program(q, inputs, {k, static_cast<std::int64_t>(k % q.cores.size())}), expected));
      }
    }
  }
  CHECK(channels > 500);
}

TEST_CASE("early grouping never makes a cycle with a message") {
  // One wait for both stores would need the message that comes after it.
  auto p = cores_with_buffers(2);
  const auto a = add_buffer(p, program::global_memory, 4, "a"), b = add_buffer(p, program::global_memory, 4, "b");
  add(p, 0, store_to(a, 0)), add(p, 0, receive_from(1, {0, 0}, 4)), add(p, 0, store_to(b, 0));
  add(p, 1, load_from(a, 1)), add(p, 1, send_to(0, {1, 0}, 4)), add(p, 1, load_from(b, 1));
  const auto q = sync::exact_count{sync::restart_scope::input_readers}(p, stages_of({0, 0}));
  CHECK(line(q, 1) == "sync0>0 wait0=1 ld send wait1=1 ld");
  CHECK_NOTHROW(verify::check_happens_before(q));
  // With many such exchanges the registers do not suffice, and the core is named.
  for (int k = 0; k < 40; ++k) {
    const auto c = add_buffer(p, program::global_memory, 4, "c" + std::to_string(k));
    add(p, 0, receive_from(1, {0, 0}, 4)), add(p, 0, store_to(c, 0));
    add(p, 1, send_to(0, {1, 0}, 4)), add(p, 1, load_from(c, 1));
  }
  CHECK(failure([&] { static_cast<void>(sync::exact_count{}(p, stages_of({0, 0}))); }) ==
        "capacity: it needs at least 42 event registers for what it loads from other cores; 30 of 32 are left @ core 1");
}

TEST_CASE("waits merge where registers are short") {
  // Core 1 loads from core 0 and stores for core 2, item by item, 40 of each.
  auto p = cores_with_buffers(3);
  const auto in = add_buffer(p, program::global_memory, 160, "in"), out = add_buffer(p, program::global_memory, 160, "out");
  for (int k = 0; k < 40; ++k) {
    add(p, 0, fill({0, 0}, 1, 4)), add(p, 0, store_to(in, 0, 4 * k));
    add(p, 1, load_from(in, 1, 4 * k)), add(p, 1, store_to(out, 1, 4 * k));
    add(p, 2, load_from(out, 2, 4 * k));
  }
  const auto q = sync::exact_count{}(p, stages_of({0, 1, 2}));
  CHECK_NOTHROW(verify::check_happens_before(q));
  CHECK_NOTHROW(sync::check_free_signals(q));
  std::size_t waits = 0;
  for (const auto& i : q.cores[1].body) waits += std::get<operation>(i.what).op == opcode::wait;
  CHECK(waits <= 32);
  CHECK(waits >= 20);  // no more is merged than that the longest wait is least
  // Many readers with stores of their own: the waits for them merge to what is left.
  auto many = cores_with_buffers(42);
  const auto shared = add_buffer(many, program::global_memory, 164, "shared");
  std::vector<std::uint32_t> stage{0};
  for (std::uint32_t r = 1; r < 42; ++r) {
    add(many, 0, store_to(shared, 0, 4 * (r - 1)));
    add(many, r, load_from(shared, r, 4 * (r - 1)));
    stage.push_back(1);
  }
  const auto merged = sync::exact_count{}(many, stages_of(stage));
  CHECK_NOTHROW(verify::check_happens_before(merged));
  CHECK_NOTHROW(sync::check_free_signals(merged));
  std::size_t permissions = 0;
  waits = 0;
  for (const auto& i : merged.cores[0].body)
    if (const auto& o = std::get<operation>(i.what); o.op == opcode::wait) ++waits, permissions += static_cast<std::size_t>(o.count);
  CHECK(permissions == 41 + 1);  // every reader once, and the root of the release tree
  CHECK(waits <= 32);
}

TEST_CASE("channels that cannot be planned are refused") {
  auto p = cores_with_buffers(2);
  const auto a = add_buffer(p, program::global_memory, 4, "a");
  SUBCASE("two writers") {
    add(p, 0, store_to(a, 0)), add(p, 1, store_to(a, 1)), add(p, 1, load_from(a, 1));
    CHECK(failure([&] { static_cast<void>(sync::exact_count{}(p, stages_of({0, 0}))); }) ==
          "unsupported: elements 0 to 4 of buffer 'a' are stored by core 0 and core 1 @ core 1, item 0");
  }
  SUBCASE("no writer") {
    add(p, 0, load_from(a, 0));
    CHECK(failure([&] { static_cast<void>(sync::exact_count{}(p, stages_of({0, 0}))); }) ==
          "malformed: it loads elements 0 to 4 of buffer 'a', which no core stores @ core 0, item 0");
  }
  SUBCASE("a load and the message that its store needs in one item") {
    add(p, 0, receive_from(1, {0, 0}, 4)), add(p, 0, store_to(a, 0));
    add(p, 1, repeat(0, 1, {{send_to(0, {1, 0}, 4)}, {load_from(a, 1)}}));
    CHECK(failure([&] { static_cast<void>(sync::exact_count{}(p, stages_of({0, 0}))); }).find("deadlock: no order of the top-level items") == 0);
  }
}
