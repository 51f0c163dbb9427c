#include "raptor/sim/trace.hpp"

#include <doctest/doctest.h>

#include <bit>

#include "support.hpp"

using namespace raptor::sim::test;

namespace {

std::vector<std::string> traced(const raptor::sim::loaded_program& program) {
  std::vector<std::string> lines;
  raptor::sim::execution_options options;
  options.trace = [&](std::string_view line) { lines.emplace_back(line); };
  try {
    static_cast<void>(raptor::sim::execute(program, std::vector<std::byte>(static_cast<std::size_t>(raptor::sim::total_size(program.inputs))), options));
  } catch (const raptor::error&) {
    lines.emplace_back("error");
  }
  return lines;
}

}  // namespace

TEST_CASE("one line an instruction, with the values that registers held before and after") {
  const auto lines = traced(make_program({{b::setbw(32, 32), b::sldi(1, 8), b::saddi(1, 1, 16), b::sldi(2, std::bit_cast<std::int32_t>(6.0f)), b::lldi(1, 0, 16),
                                           b::vrsu(1, 1, 2, 4), b::vector(raptor::isa::opcode::vrelu, 1, 1, 2, {3, 1}), b::nop()}}, 0, 0));
  REQUIRE(lines.size() == 8);
  CHECK(lines[0] == "core 0 index 0 | setbw ibiw=32, obiw=32 |");
  CHECK(lines[1] == "core 0 index 1 | sldi r1, imm=8 | -> r1=8");
  CHECK(lines[2] == "core 0 index 2 | saddi r1, r1, imm=16 | r1=8 -> r1=24");
  CHECK(has(lines[4], "core 0 index 4 | lldi r1, "));
  CHECK(has(lines[4], "| r1=24"));
  CHECK(has(lines[5], "| r1=24 r1=24 r2=1086324736 (6.000000)"));
  CHECK(has(lines[6], "| r1=24+1 r1=24+1"));
  CHECK(lines[7] == "core 0 index 7 | nop |");
}

TEST_CASE("both sides of a rendezvous appear when the data moves, a wait when it continues") {
  const auto lines = traced(make_program({{b::setbw(32, 32), b::sldi(1, 0), b::lldi(1, 0, 4), b::send(1, 1, 4), b::sync(2, 1)},
                                          {b::setbw(32, 32), b::sldi(3, 100), b::recv(3, 0, 4), b::wait(2, 1)}}, 0, 0));
  REQUIRE(lines.size() == 9);
  CHECK(lines[5] == "core 0 index 3 | send r1, core=1, size=4 | r1=0");
  CHECK(lines[6] == "core 1 index 2 | recv r3, core=0, size=4 | r3=100");
  CHECK(lines[7] == "core 1 index 3 | wait event=2, value=1 |");
  CHECK(lines[8] == "core 0 index 4 | sync core=1, event=2 |");
}

TEST_CASE("instructions before a failure are in the trace, the failing one is not") {
  const auto lines = traced(make_program({{b::setbw(32, 32), b::sldi(1, 0), b::vrelu(1, 1, 1)}}, 0, 0));
  REQUIRE(lines.size() == 3);
  CHECK(lines[1] == "core 0 index 1 | sldi r1, imm=0 | -> r1=0");
  CHECK(lines[2] == "error");
}

TEST_CASE("tracing does not change results") {
  const auto program = one_core({b::sldi(3, 4), b::vvadd(2, 1, 3, 1)}, 2, 1);
  raptor::sim::execution_options options;
  std::size_t lines = 0;
  options.trace = [&](std::string_view) { ++lines; };
  const auto input = to_bytes({1, 2});
  const auto with = raptor::sim::execute(program, input, options);
  CHECK(with.global_memory == raptor::sim::execute(program, input).global_memory);
  CHECK(lines == with.instructions());
}
