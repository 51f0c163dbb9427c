#include "raptor/verify/happens_before.hpp"

#include <doctest/doctest.h>

#include <ctime>

#include "../program/support.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

std::string check(const program::program& p) {
  try {
    static_cast<void>(verify::check_happens_before(p));
  } catch (const error& e) {
    return std::string(name(e.code())) + ": " + e.what() + " @ " + e.place();
  }
  return {};
}

/// A writer (core 0) and readers (from 1 on) of one channel; the local buffers have the numbers of the cores.
struct channel_program {
  program::program p;
  std::uint32_t channel = 0;
  explicit channel_program(std::size_t cores) : p(empty_program(cores)) {
    for (std::size_t c = 0; c < cores; ++c) add_buffer(p, static_cast<std::int32_t>(c), 64);
    channel = add_buffer(p, program::global_memory, 16, "channel");
  }
  [[nodiscard]] operation load(std::size_t core, std::int64_t at = 0, std::int64_t n = 4) const {
    return make(opcode::ld, {static_cast<std::uint32_t>(core), 0}, {channel, at}, n);
  }
  [[nodiscard]] operation store(std::size_t core, std::int64_t at = 0, std::int64_t n = 4) const {
    return make(opcode::st, {channel, at}, {static_cast<std::uint32_t>(core), 0}, n);
  }
};

/// Ready on event 0 of core 1, free on event 1 of core 0.
channel_program right() {
  channel_program c(2);
  add(c.p, 0, wait_for(1, 1)), add(c.p, 0, c.store(0)), add(c.p, 0, sync_to(1, 0));
  add(c.p, 1, sync_to(0, 1)), add(c.p, 1, wait_for(0, 1)), add(c.p, 1, c.load(1));
  return c;
}

}  // namespace

TEST_CASE("a channel with ready and free is proven; without either it is refused with names") {
  auto c = right();
  CHECK(check(c.p) == "");
  const auto report = verify::check_happens_before(c.p);
  CHECK(report.stores == 2);
  CHECK(report.loads == 2);
  CHECK(report.communication.waits == 4);
  CHECK(verify::has_events(c.p));
  SUBCASE("no ready") {
    c.p.cores[0].body.pop_back();
    c.p.cores[1].body.erase(c.p.cores[1].body.begin() + 1);
    CHECK(check(c.p) == "deadlock: core 1, item 1 of iteration 0 loads elements 0 to 4 of buffer 'channel', which no core has stored before @ core 1, item 1");
  }
  SUBCASE("no free") {
    c.p.cores[0].body.erase(c.p.cores[0].body.begin());
    c.p.cores[1].body.erase(c.p.cores[1].body.begin());
    CHECK(check(c.p).find("deadlock: overshoot") == 0);
  }
  SUBCASE("free waited for only after the store") {
    c.p.cores[0].body = {{c.store(0)}, {sync_to(1, 0)}, {wait_for(1, 1)}};
    CHECK(check(c.p).find("deadlock: overshoot") == 0);
  }
  SUBCASE("messages order as well as signals") {
    channel_program m(2);
    add(m.p, 0, m.store(0)), add(m.p, 0, send_to(1, {0, 0}, 1)), add(m.p, 0, receive_from(1, {0, 0}, 1));
    add(m.p, 1, receive_from(0, {1, 32}, 1)), add(m.p, 1, m.load(1)), add(m.p, 1, send_to(0, {1, 0}, 1));
    CHECK(check(m.p) == "");
    m.p.cores[0].body.pop_back(), m.p.cores[1].body.pop_back();
    CHECK(check(m.p) ==
          "deadlock: core 1, item 1 of iteration 0 loads elements 0 to 4 of buffer 'channel', and nothing keeps core 0, item 0 of iteration 1 from overwriting it before @ core 1, item 1");
    m.p.cores[1].body.insert(m.p.cores[1].body.begin(), {m.store(1, 8)});  // with it the load comes first in the order that is looked at
    CHECK(check(m.p) ==
          "deadlock: core 0, item 0 of iteration 1 stores elements 0 to 4 of buffer 'channel', and nothing orders the load of core 1, item 2 of iteration 0 before it @ core 0, item 0");
  }
}

TEST_CASE("single elements are told apart") {
  // Core 1 loads what comes before the signal, core 2 one element more.
  channel_program c(3);
  add(c.p, 0, wait_for(0, 2));
  add(c.p, 0, repeat(0, 4, {{c.store(0)}}));
  std::get<program::loop>(c.p.cores[0].body[1].what).body = {{make(opcode::st, {c.channel, loop_variable(0) * 2}, {0, 0}, 2)}};
  add(c.p, 0, sync_to(1, 0)), add(c.p, 0, sync_to(2, 0)), add(c.p, 0, c.store(0, 8));
  add(c.p, 1, sync_to(0, 0)), add(c.p, 1, wait_for(0, 1)), add(c.p, 1, c.load(1, 0, 8));
  add(c.p, 2, sync_to(0, 0)), add(c.p, 2, wait_for(0, 1)), add(c.p, 2, c.load(2, 3, 5));
  CHECK(check(c.p) == "");
  c.p.cores[2].body.back() = {c.load(2, 3, 6)};
  CHECK(check(c.p).find("deadlock: core 2, item 2 of iteration") == 0);
  CHECK(check(c.p).find("elements 8 to 9 of buffer 'channel'") != std::string::npos);
}

TEST_CASE("a load that gets the store of another iteration") {
  // Core 1 loads before core 0 stores: iteration 1 gets what iteration 0 stored.
  channel_program c(2);
  add(c.p, 0, receive_from(1, {0, 0}, 1)), add(c.p, 0, c.store(0)), add(c.p, 0, send_to(1, {0, 0}, 1));
  add(c.p, 1, send_to(0, {1, 0}, 1)), add(c.p, 1, receive_from(0, {1, 32}, 1));
  auto early = c;
  add(c.p, 1, c.load(1));
  CHECK(check(c.p) == "");
  early.p.cores[1].body.insert(early.p.cores[1].body.begin(), {c.load(1)});
  CHECK(check(early.p).find("which no core has stored before") != std::string::npos);
  add(early.p, 1, c.load(1));  // nobody's own store helps: the first load of iteration 1 is too early
  add(early.p, 0, c.load(0));
  CHECK(check(early.p).find("which no core has stored before") != std::string::npos);
  // The same inside one core.
  channel_program own(1);
  add(own.p, 0, own.store(0)), add(own.p, 0, own.load(0));
  CHECK(check(own.p) == "");
  std::swap(own.p.cores[0].body[0], own.p.cores[0].body[1]);
  CHECK(check(own.p) == "deadlock: core 0, item 0 of iteration 0 loads elements 0 to 4 of buffer 'channel', which no core has stored before @ core 0, item 0");
}

TEST_CASE("two cores that store the same element") {
  channel_program c(2);
  c.p.outputs.push_back({"channel", {1, 16}, c.channel});
  add(c.p, 0, c.store(0)), add(c.p, 1, c.store(1, 4));
  CHECK(check(c.p) == "");
  c.p.cores[1].body = {{c.store(1, 3)}};
  CHECK(check(c.p) ==
        "deadlock: core 1, item 0 of iteration 0 stores elements 3 to 4 of buffer 'channel', and nothing orders the store of core 0, item 0 of iteration 1 before it @ core 1, item 0");
}

TEST_CASE("signals and waits are counted before anything runs") {
  auto c = right();
  add(c.p, 0, sync_to(1, 0));
  CHECK(check(c.p) == "deadlock: event 0 of core 1 gets 2 signals in a body, its waits count 1 @ core 1");
  std::get<operation>(c.p.cores[1].body[1].what).count = 2;
  CHECK(check(c.p) == "");
  add(c.p, 0, repeat(0, 3, {{sync_to(1, 7)}}));
  CHECK(check(c.p) == "deadlock: event 7 of core 1 gets 3 signals in a body, its waits count 0 @ core 1");
}

TEST_CASE("signals of different iterations never make up one count") {
  // Cores 1 and 2 permit core 0; core 1 may run ahead and signal twice.
  auto p = empty_program(3);
  add(p, 1, sync_to(0, 0)), add(p, 2, sync_to(0, 0)), add(p, 0, wait_for(0, 2));
  CHECK(check(p).find("deadlock: overshoot") == 0);
  add(p, 0, sync_to(1, 0)), add(p, 1, wait_for(0, 1)), add(p, 0, sync_to(2, 0)), add(p, 2, wait_for(0, 1));
  CHECK(check(p) == "");
}

TEST_CASE("the host places the next input when all readers have done with this one") {
  auto p = empty_program(2);
  const auto x = add_input(p, 4, "x");
  add_buffer(p, 0, 4), add_buffer(p, 1, 4);
  add(p, 0, make(opcode::ld, {1, 0}, {x, 0}, 4)), add(p, 1, make(opcode::ld, {2, 0}, {x, 0}, 4));
  CHECK(check(p) ==
        "deadlock: core 0, item 0 of iteration 1 loads a graph input before core 1 is known to have done its last load of an input in iteration 0, which the host waits for @ core 0, item 0");
  CHECK(!verify::orders_input_loads(p));
  add(p, 0, send_to(1, {1, 0}, 1)), add(p, 1, receive_from(0, {2, 0}, 1));
  CHECK(check(p) == "");
  CHECK(verify::orders_input_loads(p));
  add(p, 0, make(opcode::st, {x, 0}, {1, 0}, 4));
  CHECK(check(p).find("malformed: st writes the graph input 'x'") == 0);
}

TEST_CASE("a million operations of 144 cores are proven in seconds") {
  constexpr std::size_t cores = 144;
  constexpr std::int64_t rows = 1000;
  auto p = empty_program(cores);
  for (std::size_t c = 0; c < cores; ++c) add_buffer(p, static_cast<std::int32_t>(c), 64);
  // Every core gets rows from the one before and passes them on, in a channel and in messages by turns.
  for (std::size_t c = 0; c + 1 < cores; ++c) {
    const auto next = static_cast<std::int32_t>(c + 1);
    const auto i = loop_variable(0);
    if (c % 2 == 0) {
      add(p, c, repeat(0, 7 * rows, {{send_to(next, {static_cast<std::uint32_t>(c), 0}, 4)}}));
      add(p, c + 1, repeat(0, 7 * rows, {{receive_from(static_cast<std::int32_t>(c), {static_cast<std::uint32_t>(c + 1), 0}, 4)}}));
    } else {
      const auto channel = add_buffer(p, program::global_memory, 4 * rows);
      p.cores[c + 1].body.insert(p.cores[c + 1].body.begin(), {sync_to(static_cast<std::int32_t>(c), 1)});
      add(p, c, wait_for(1, 1));
      add(p, c, repeat(0, rows, {{make(opcode::st, {channel, i * 4}, {static_cast<std::uint32_t>(c), 0}, 4)}}));
      add(p, c, sync_to(next, 0));
      add(p, c + 1, wait_for(0, 1));
      add(p, c + 1, repeat(0, rows, {{make(opcode::ld, {static_cast<std::uint32_t>(c + 1), 0}, {channel, i * 4}, 4)}}));
    }
  }
  const auto start = std::clock();
  const auto report = verify::check_happens_before(p);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  CHECK(report.communication.messages == 2 * 72 * 7 * rows);
  CHECK(report.loads == 2 * 71 * rows);
  MESSAGE(report.communication.messages << " messages, " << report.loads << " loads in " << seconds << " s");
  CHECK(seconds < 10);
}
