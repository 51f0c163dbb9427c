#include "raptor/verify/deadlock.hpp"

#include <doctest/doctest.h>

#include <chrono>

#include "../program/support.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

program::program cores_with_buffers(std::size_t cores) {
  auto p = empty_program(cores);
  for (std::size_t c = 0; c < cores; ++c) add_buffer(p, static_cast<std::int32_t>(c), 64);
  return p;
}
/// Each core's buffer has the core's number.
void send(program::program& p, std::size_t from, std::size_t to, std::int64_t n = 4) {
  add(p, from, send_to(static_cast<std::int32_t>(to), {static_cast<std::uint32_t>(from), 0}, n));
}
void receive(program::program& p, std::size_t from, std::size_t to, std::int64_t n = 4) {
  add(p, to, receive_from(static_cast<std::int32_t>(from), {static_cast<std::uint32_t>(to), 0}, n));
}

std::string check(const program::program& p, int rounds = 1) {
  verify::deadlock_options options;
  options.rounds = rounds;
  try {
    static_cast<void>(verify::check_deadlock(p, options));
  } catch (const error& e) {
    std::string text = std::string(name(e.code())) + ": " + e.what();
    for (const auto& detail : e.details()) text += "\n" + detail;
    return text;
  }
  return {};
}

}  // namespace

TEST_CASE("programs in one global order never block") {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const random_program random(seed, 2 + seed % 5);
    CHECK(check(random.get()).empty());
    CHECK(check(random.get(), 3).empty());
  }
}

TEST_CASE("two cores that both send first block, and the cycle is named") {
  auto p = cores_with_buffers(3);
  send(p, 2, 1);
  receive(p, 2, 1);
  send(p, 1, 2), receive(p, 2, 1);
  send(p, 2, 1), receive(p, 1, 2);
  CHECK(check(p) ==
        "deadlock: communication deadlock, cores 1 -> 2 -> 1\n"
        "core 1, item 1, communication 1: send 4 elements to core 2\n"
        "core 2, item 1, communication 1: send 4 elements to core 1");
}

TEST_CASE("a ring of three") {
  auto p = cores_with_buffers(4);
  for (std::size_t c = 0; c < 3; ++c) {
    add(p, c, repeat(0, 2, {{receive_from(static_cast<std::int32_t>((c + 2) % 3), {static_cast<std::uint32_t>(c), 0}, 4)}}));
    add(p, c, repeat(0, 2, {{send_to(static_cast<std::int32_t>((c + 1) % 3), {static_cast<std::uint32_t>(c), 0}, 4)}}));
  }
  const auto text = check(p);
  CHECK(text.find("deadlock: communication deadlock, cores 0 -> 2 -> 1 -> 0\n") == 0);
  CHECK(text.find("core 1, item 0, communication 0: recv 4 elements from core 0") != text.npos);
}

TEST_CASE("a partner that is missing") {
  auto p = cores_with_buffers(2);
  send(p, 0, 1);
  CHECK(check(p) == "deadlock: communication never completes: 1 cores stay blocked\ncore 0, item 0, communication 0: send 4 elements to core 1: core 1 has ended");
  receive(p, 0, 1, 5);
  CHECK(check(p).find("deadlock: sizes of a message differ") == 0);
}

TEST_CASE("events: ready and free between a writer and a reader, round after round") {
  // INVARIANTS.md: the reader sends FREE at its entry; the writer waits for it before it stores, then signals READY.
  auto p = cores_with_buffers(2);
  add(p, 1, sync_to(0, 0));
  add(p, 1, wait_for(1, 1));
  add(p, 0, wait_for(0, 1));
  add(p, 0, sync_to(1, 1));
  CHECK(check(p).empty());
  CHECK(check(p, 4).empty());
  verify::deadlock_options twice;
  twice.rounds = 2;
  const auto report = verify::check_deadlock(p, twice);
  CHECK(report.signals == 4);
  CHECK(report.waits == 4);
  CHECK(report.messages == 0);
}

TEST_CASE("without FREE the next round's signal may come before the wait of this one") {
  auto p = cores_with_buffers(2);
  add(p, 0, sync_to(1, 1));
  add(p, 1, wait_for(1, 1));
  CHECK(check(p).empty());  // right once
  const auto text = check(p, 2);
  CHECK(text.find("deadlock: overshoot: ") == 0);
}

TEST_CASE("one register for two waits that are not ordered is an overshoot in some schedule") {
  auto p = cores_with_buffers(3);
  // Cores 1 and 2 signal independently; core 0 waits once for each on the same register.
  add(p, 1, sync_to(0, 5));
  add(p, 2, sync_to(0, 5));
  add(p, 0, wait_for(5, 1));
  add(p, 0, wait_for(5, 1));
  CHECK(check(p).find("deadlock: overshoot: ") == 0);
  SUBCASE("ordered by a message it is right") {
    p.cores[2].body.clear();
    receive(p, 0, 2);
    add(p, 2, sync_to(0, 5));
    p.cores[0].body.pop_back();
    send(p, 0, 2);
    add(p, 0, wait_for(5, 1));
    CHECK(check(p).empty());
  }
  SUBCASE("as one wait for two it is right") {
    p.cores[0].body.clear();
    add(p, 0, wait_for(5, 2));
    CHECK(check(p).empty());
  }
  SUBCASE("on two registers it is right") {
    p.cores[2].body.clear();
    add(p, 2, sync_to(0, 6));
    p.cores[0].body.pop_back();
    add(p, 0, wait_for(6, 1));
    CHECK(check(p).empty());
  }
}

TEST_CASE("signals that are missing, left over, or too many") {
  auto p = cores_with_buffers(2);
  add(p, 0, wait_for(3, 2));
  add(p, 1, sync_to(0, 3));
  CHECK(check(p) == "deadlock: communication never completes: 1 cores stay blocked\n"
                    "core 0, item 0, communication 0: wait event 3 for 2 signals, has 1: no core has a signal left for it");
  add(p, 1, sync_to(0, 3));
  CHECK(check(p).empty());
  add(p, 1, sync_to(0, 3));
  CHECK(check(p).find("deadlock: overshoot: ") == 0);
  auto left = cores_with_buffers(2);
  add(left, 1, sync_to(0, 3));
  CHECK(check(left) == "deadlock: 1 signals on event 3 of core 0 are never waited for");
}

TEST_CASE("a cycle through an event and a message; signals that arrived make no edge") {
  auto p = cores_with_buffers(3);
  add(p, 2, sync_to(0, 1));  // supplied
  add(p, 0, wait_for(1, 2));
  send(p, 0, 1);
  receive(p, 0, 1);
  add(p, 1, sync_to(0, 1));
  CHECK(check(p) ==
        "deadlock: communication deadlock, cores 0 -> 1 -> 0\n"
        "core 0, item 0, communication 0: wait event 1 for 2 signals, has 1\n"
        "core 1, item 0, communication 0: recv 4 elements from core 0");
}

TEST_CASE("a hostile number of repetitions is refused") {
  auto p = cores_with_buffers(2);
  const auto many = std::int64_t{1} << 50;
  add(p, 0, repeat(0, many, {{send_to(1, {0, 0}, 4)}}));
  add(p, 1, repeat(0, many, {{receive_from(0, {1, 0}, 4)}}));
  verify::deadlock_options options;
  options.most_operations = 100000;
  CHECK_THROWS_AS(static_cast<void>(verify::check_deadlock(p, options)), error);
}

TEST_CASE("a million messages") {
  auto p = cores_with_buffers(144);
  for (std::size_t c = 0; c < 144; ++c) {
    const auto next = static_cast<std::int32_t>((c + 1) % 144), previous = static_cast<std::int32_t>((c + 143) % 144);
    const auto b = static_cast<std::uint32_t>(c);
    std::vector<item> body{{send_to(next, {b, 0}, 4)}, {receive_from(previous, {b, 0}, 4)}};
    if (c == 0) std::swap(body[0], body[1]);
    add(p, c, repeat(0, 7000, std::move(body)));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto report = verify::check_deadlock(p);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE(report.messages << " messages in " << seconds << " s");
  CHECK(report.messages == 144 * 7000);
}
