#include "raptor/sim/deadlock.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

using namespace raptor::sim::test;

namespace {

/// setbw, an address and 4 written bytes: communication starts at instruction 3.
stream behind_start(const stream& rest) {
  stream s{b::setbw(32, 32), b::sldi(1, 0), b::lldi(1, 0, 4)};
  s.insert(s.end(), rest.begin(), rest.end());
  return s;
}
std::string failure_of_all(const std::vector<stream>& rests) {
  std::vector<stream> streams;
  for (const auto& rest : rests) streams.push_back(behind_start(rest));
  return failure(make_program(std::move(streams), 0, 0));
}

}  // namespace

TEST_CASE("two cores that both receive first: the whole text") {
  CHECK(failure_of_all({{b::recv(1, 1, 4), b::send(1, 1, 4)}, {b::recv(1, 0, 4), b::send(1, 0, 4)}}) ==
        "deadlock error: deadlock: cycle core 0 @3 -> core 1 @3 -> core 0\n"
        "  at: core 0, instruction 3: recv r1, core=1, size=4\n"
        "  - core 0, instruction 3: recv r1, core=1, size=4: waits for a send of core 1, which is at instruction 3\n"
        "  - core 1, instruction 3: recv r1, core=0, size=4: waits for a send of core 0, which is at instruction 3\n"
        "  hint: the n-th send from a to b meets the n-th recv at b from a; a wait needs exactly its count of signals");
}

TEST_CASE("a cycle of three sends, with a core that is only blocked behind it") {
  const auto text = failure_of_all({{b::send(1, 2, 4)}, {b::sldi(2, 0), b::send(1, 2, 4), b::recv(1, 3, 4)}, {b::send(1, 3, 4)}, {b::send(1, 1, 4)}});
  CHECK(has(text, "cycle core 1 @4 -> core 2 @3 -> core 3 @3 -> core 1\n"));
  CHECK(has(text, "- core 0, instruction 3: send"));
  CHECK(text.find("- core 1") < text.find("- core 0"));
}

TEST_CASE("a peer that has finished") {
  const auto text = failure_of_all({{b::recv(1, 1, 4)}, {}});
  CHECK(has(text, "deadlock: core 0 waits for ever\n"));
  CHECK(has(text, "waits for a send of core 1, which has finished"));
  CHECK(has(failure_of_all({{}, {b::send(1, 0, 4)}}), "waits for a recv of core 0, which has finished"));
}

TEST_CASE("a send to oneself waits for itself") { CHECK(has(failure_of_all({{b::send(1, 0, 4)}}), "cycle core 0 @3 -> core 0\n")); }

TEST_CASE("a wait that nobody signals") {
  const auto text = failure_of_all({{b::wait(7, 2)}, {b::sync(7, 0)}});
  CHECK(has(text, "core 0 waits for ever"));
  CHECK(has(text, "waits for event 7 to reach 2, it is at 1 and only 0 more signals exist in the program"));
}

TEST_CASE("a cycle through an event and a rendezvous") {
  const auto text = failure_of_all({{b::wait(3, 1), b::send(1, 1, 4)}, {b::recv(1, 0, 4), b::sync(3, 0)}});
  CHECK(has(text, "cycle core 0 @3 -> core 1 @3 -> core 0\n"));
  CHECK(has(text, "waits for event 3 to reach 1, it is at 0; core 1, which is at instruction 3, would signal"));
}

TEST_CASE("a signal that would only come after one's own wait") {
  CHECK(has(failure_of_all({{b::wait(3, 1), b::sync(3, 0)}}), "cycle core 0 @3 -> core 0\n"));
}

TEST_CASE("two independent cycles are both reported") {
  const auto text = failure_of_all({{b::recv(1, 1, 4)}, {b::recv(1, 0, 4)}, {b::recv(1, 3, 4)}, {b::recv(1, 2, 4)}, {b::recv(1, 0, 4)}});
  CHECK(has(text, "deadlock: cycle core 0 @3 -> core 1 @3 -> core 0; cycle core 2 @3 -> core 3 @3 -> core 2\n"));
  CHECK(has(text, "- core 4, instruction 3"));
}

TEST_CASE("both a cycle and a wait for ever") {
  const auto text = failure_of_all({{b::recv(1, 1, 4)}, {b::recv(1, 0, 4)}, {b::recv(1, 3, 4)}, {}});
  CHECK(has(text, "cycle core 0 @3 -> core 1 @3 -> core 0; core 2 waits for ever"));
}

TEST_CASE("many blocked cores are capped in the text") {
  std::vector<stream> rests(60, stream{b::recv(1, 59, 4)});
  const auto text = failure_of_all(rests);
  CHECK(has(text, "cycle core 59 @3 -> core 59"));
  CHECK(has(text, "... and 40 more"));
}
