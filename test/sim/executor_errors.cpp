#include "raptor/sim/executor.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "support.hpp"

using namespace raptor::sim::test;
using raptor::sim::execute;
using raptor::sim::execution_options;
using raptor::sim::make_group;
using raptor::isa::instruction;
using raptor::isa::opcode;

namespace {

const stream start{b::setbw(32, 32), b::sldi(1, 0), b::sldi(2, 256), b::lldi(1, 0, 16)};

/// The error of `last` behind `start`: instruction 4 of core 0. Local bytes [0, 16) are written.
std::string failure_after_start(stream last) {
  stream s = start;
  s.insert(s.end(), last.begin(), last.end());
  return failure(make_program({std::move(s)}, 0, 4));
}

}  // namespace

TEST_CASE("errors name core, instruction and text") {
  const auto text = failure(make_program({{}, {b::setbw(32, 32), b::sldi(3, 8), b::vrelu(3, 3, 4)}}, 0, 0));
  CHECK(has(text, "execution error: reads local memory [8, 24) but nothing has written byte 8"));
  CHECK(has(text, "at: core 1, instruction 2: vrelu r3, r3"));
}

TEST_CASE("reading local memory that nothing has written") {
  for (const auto& i : {b::vvadd(2, 1, 2, 2), b::vvadd(2, 2, 1, 2), b::vvdmul(2, 1, 2, 1), b::vrelu(2, 1, 5), b::vtanh(2, 2, 1), b::vsigm(2, 2, 1),
                        b::vsoftmax(2, 2, 1), b::vrsu(2, 2, 1, 1), b::vrsl(2, 2, 1, 1), b::st(1, 2, 4), b::lmv(2, 2, 0), b::lmv(1, 2, 4),
                        b::send(2, 0, 1), b::lmv(2, 1, 17)}) {
    const auto text = failure_after_start({i});
    if (i.word3 == 0) {
      CHECK(text.empty());
      continue;
    }
    CHECK_MESSAGE(has(text, "nothing has written byte"), text);
    CHECK_MESSAGE(has(text, "core 0, instruction 4"), text);
  }
  CHECK(has(failure_after_start({b::lmv(2, 1, 17)}), "[0, 17) but nothing has written byte 16"));
  CHECK(has(failure_after_start({b::sldi(3, 1000), b::vmv(2, 1, 3, 2)}), "nothing has written byte 4000"));
  CHECK(has(failure_after_start({b::sldi(3, 2), b::vmv(2, 1, 3, 3)}), "nothing has written byte 16"));
  CHECK(has(failure_after_start({b::sldi(3, 2), b::vavg(2, 1, 3, 3)}), "nothing has written byte 16"));
  CHECK(failure_after_start({b::sldi(3, 3), b::vmv(2, 1, 3, 2)}).empty());
  // A hole between two written elements is no fault of a strided read, but one of a dense read.
  const stream hole{b::sldi(3, 24), b::lldi(3, 0, 4), b::sldi(3, 6)};
  stream strided = hole, dense = hole;
  strided.push_back(b::vmv(2, 1, 3, 2));
  dense.push_back(b::vrelu(2, 1, 7));
  CHECK(failure_after_start(strided).empty());
  CHECK(has(failure_after_start(dense), "nothing has written byte 16"));
}

TEST_CASE("a failed instruction does not count its own destination as written") {
  CHECK(has(failure_after_start({b::vvadd(2, 2, 1, 2)}), "nothing has written byte 256"));
  CHECK(has(failure_after_start({b::vrelu(2, 2, 2)}), "nothing has written byte 256"));
}

TEST_CASE("negative addresses") {
  for (const auto& i : {b::vrelu(3, 1, 1), b::vrelu(2, 3, 1), b::vvdmul(3, 1, 1, 1), b::lldi(3, 0, 1), b::lmv(3, 1, 1), b::lmv(2, 3, 1), b::ld(3, 1, 1),
                        b::st(1, 3, 1), b::send(3, 0, 1), b::vmv(2, 3, 1, 1), b::vavg(3, 1, 1, 1)})
    CHECK_MESSAGE(has(failure_after_start({b::sldi(3, -4), i}), "negative local address -4"), raptor::isa::to_text(i));
  CHECK(has(failure_after_start({b::sldi(3, -1), b::vmv(2, 1, 3, 2)}), "negative local address -4"));
  CHECK(has(failure_after_start({b::lmv(2, 1, 4, {2, -8})}), "negative local address -8"));
  CHECK(has(failure_after_start({b::sldi(3, -4), b::ld(2, 3, 4)}), "negative global address -4"));
  CHECK(has(failure_after_start({b::sldi(3, -4), b::st(3, 1, 4)}), "negative global address -4"));
  CHECK(has(failure_after_start({b::sld(3, 1, -4)}), "negative global address -4"));
}

TEST_CASE("access beyond global memory") {
  CHECK(failure_after_start({b::ld(2, 1, 16)}).empty());
  CHECK(has(failure_after_start({b::ld(2, 1, 17)}), "reads global memory [0, 17), beyond its 16 bytes"));
  CHECK(has(failure_after_start({b::sldi(3, 4), b::st(3, 1, 13)}), "writes global memory [4, 17), beyond its 16 bytes"));
  CHECK(has(failure_after_start({b::sldi(3, 13), b::sld(4, 3)}), "reads global memory [13, 17)"));
  CHECK(has(failure_after_start({b::sldi(3, std::numeric_limits<std::int32_t>::max()), b::ld(2, 3, std::numeric_limits<std::int32_t>::max())}),
            "beyond its 16 bytes"));
}

TEST_CASE("local memory is bounded by the space of addresses and by the options") {
  const auto max = std::numeric_limits<std::int32_t>::max();
  CHECK(has(failure_after_start({b::sldi(3, max), b::lldi(3, 0, 2)}), "beyond its 2147483648 bytes"));
  CHECK(failure_after_start({b::sldi(3, max), b::lldi(3, 0, 1)}).empty());  // lazily mapped: costs pages, not gigabytes
  const auto program = make_program({{b::setbw(32, 32), b::sldi(3, 90), b::lldi(3, 0, 11)}}, 0, 0);
  execution_options options;
  options.local_memory_limit = 101;
  CHECK(failure(program, {}, options).empty());
  options.local_memory_limit = 100;
  CHECK(has(failure(program, {}, options), "writes local memory [90, 101), beyond its 100 bytes"));
  options.local_memory_limit = 1 << 20;
  options.total_memory_limit = 100;
  CHECK(has(failure(program, {}, options), "capacity error: local memories exceed 100 bytes together"));
  options.total_memory_limit = 101;
  CHECK(failure(program, {}, options).empty());
  CHECK(has(failure(make_program({program.cores[0].stream, program.cores[0].stream}, 0, 0), {}, options), "core 1, instruction 2"));
}

TEST_CASE("overlapping copies") {
  CHECK(has(failure_after_start({b::sldi(3, 4), b::lmv(3, 1, 8)}), "the destination [4, 12) overlaps the source [0, 8)"));
  CHECK(has(failure_after_start({b::lmv(1, 1, 8)}), "lmv needs disjoint ranges"));
  CHECK(failure_after_start({b::sldi(3, 8), b::lmv(3, 1, 8)}).empty());
  CHECK(has(failure_after_start({b::sldi(3, 4), b::vrelu(3, 1, 2)}), "overlaps the source"));
  CHECK(has(failure_after_start({b::sldi(3, 4), b::vvadd(3, 1, 3, 2)}), "overlaps the source"));
  CHECK(has(failure_after_start({b::sldi(3, 4), b::sldi(4, 1), b::vmv(3, 1, 4, 2)}), "overlaps the source"));
}

TEST_CASE("fields that no machine can execute") {
  const auto expect = [](const instruction& i, const char* part) {
    const auto text = failure_of({i});
    CHECK_MESSAGE(has(text, part), text);
    CHECK_MESSAGE(has(text, "core 0, instruction 1"), text);
  };
  expect({static_cast<opcode>(33), 0, 0, 0, 0, 0, 0}, "unknown opcode 33");
  expect({static_cast<opcode>(255), 0, 0, 0, 0, 0, 0}, "unknown opcode 255");
  expect(b::sldi(32, 0), "is not a register");
  expect(b::saddi(0, 200, 0), "is not a register");
  expect({opcode::sadd, 0, 0, 32, 0, 0, 0}, "is not a register");
  expect({opcode::vvadd, 0, 0, -1, 0, 0, 1}, "is not a register");
  expect(b::mvmul(0, 0, 0), "is not an array group of the core");
  expect(b::mvmul(0, 0, -1), "is not an array group of the core");
  expect(b::wait(32, 1), "is not an event register");
  expect(b::sync(-1, 0), "is not an event register");
  expect(b::sync(0, 1), "is not a core of the chip");
  expect(b::send(0, 1, 4), "is not a core of the chip");
  expect(b::recv(0, -1, 4), "is not a core of the chip");
  expect(b::wait(0, -1), "negative");
  expect(b::vrelu(0, 0, -1), "is negative");
  expect(b::ld(0, 0, -4), "is negative");
  expect(b::lldi(0, 0, -4), "is negative");
  expect(b::setbw(12, 32), "is not 8, 16 or 32");
}

TEST_CASE("what 32-bit floats do not have") {
  CHECK(has(failure_of({b::sldi(1, 0), b::lldi(1, 0, 8), b::vvsll(1, 1, 1, 1)}), "execution error: shifts are for integers"));
  CHECK(has(failure_of({b::vvsra(1, 1, 1, 1)}), "core 0, instruction 1"));
  CHECK(has(failure_of({b::setbw(8, 32)}), "unsupported error: 8- and 16-bit elements"));
  CHECK(has(failure_of({b::setbw(32, 16)}), "core 0, instruction 1"));
  auto program = one_core({b::mvmul(2, 1, 0, 8)}, 2, 2);
  program.cores[0].groups = {make_group(2, 2, {1, 2, 3, 4})};
  CHECK(has(failure(program), "unsupported error: weights of 8 bits"));
}

TEST_CASE("vector and matrix instructions need setbw first") {
  CHECK(has(failure(make_program({{b::vrelu(0, 0, 0)}}, 0, 0)), "no setbw has chosen the element widths"));
  auto program = make_program({{b::mvmul(0, 0, 0)}}, 0, 0);
  program.cores[0].groups = {make_group(1, 1, {1})};
  CHECK(has(failure(program), "no setbw"));
  CHECK(failure(make_program({{b::sldi(0, 0), b::lldi(0, 0, 4)}}, 0, 0)).empty());
}

TEST_CASE("means and dot products of nothing") {
  CHECK(has(failure_of({b::vavg(0, 0, 0, 0)}), "of no elements"));
  CHECK(has(failure_of({b::vvdmul(0, 0, 0, 0)}), "of no elements"));
}

TEST_CASE("mvmul reads every crossbar row") {
  auto program = one_core({b::mvmul(2, 1, 0)}, 2, 1);
  program.cores[0].groups = {make_group(3, 1, {1, 1, 0})};
  CHECK(has(failure(program), "reads local memory [0, 12) but nothing has written byte 8"));
  program = one_core({b::sldi(3, 8), b::lldi(3, 0, 4), b::mvmul(2, 1, 0)}, 2, 1);
  program.cores[0].groups = {make_group(3, 1, {1, 1, 0})};
  CHECK(failure(program).empty());
  program = one_core({b::sldi(3, 8), b::lldi(3, 0xff, 4), b::mvmul(2, 1, 0)}, 2, 1);  // NaN where no weight is
  program.cores[0].groups = {make_group(3, 1, {1, 1, 0})};
  CHECK(has(failure(program), "the inputs of crossbar rows 2 ... 2, which have no weights, are not finite"));
  program.cores[0].groups = {{1, nullptr}};
  CHECK(has(failure(program), "array group 0 has no weights"));
}

TEST_CASE("send and recv must agree about the size") {
  const stream sender{b::setbw(32, 32), b::sldi(1, 0), b::lldi(1, 0, 8), b::send(1, 1, 8)};
  const stream receiver{b::setbw(32, 32), b::recv(1, 0, 4)};
  for (const bool sender_first : {true, false}) {
    auto s = sender, r = receiver;
    if (!sender_first) s[3].word0 = 0, r[1].word0 = 1;
    const auto text = failure(make_program(sender_first ? std::vector<stream>{s, r} : std::vector<stream>{r, s}, 0, 0));
    CHECK_MESSAGE(has(text, "receives 4 bytes, but core "), text);
    CHECK_MESSAGE(has(text, "sends 8"), text);
    CHECK_MESSAGE(has(text, ", instruction 1: recv"), text);
  }
}

TEST_CASE("overshoot") {
  const auto text = failure(make_program({{b::setbw(32, 32), b::sync(4, 1), b::sync(4, 1)}, {b::setbw(32, 32), b::wait(4, 1)}}, 0, 0));
  CHECK(has(text, "overshoot: event 4 is at 2, above the awaited 1"));
  CHECK(has(text, "core 1, instruction 1: wait"));
}

TEST_CASE("a wrong input size names the sizes") {
  auto program = one_core({b::lmv(2, 1, 4)}, 3, 1);
  program.inputs.push_back({"second", 0, 4, {}});
  const auto text = failure(program, std::vector<std::byte>(15));
  CHECK(has(text, "mismatch error: the input has 15 bytes, the program expects 16"));
  CHECK(has(text, "input 'x' 3: 12 bytes"));
  CHECK(has(text, "input 'second': 4 bytes"));
  CHECK(has(failure(program, {}), "the input has 0 bytes"));
}

TEST_CASE("inputs and outputs outside global memory") {
  auto program = one_core({b::lmv(2, 1, 4)}, 1, 1);
  program.outputs[0].address = 5;
  CHECK(has(failure(program, std::vector<std::byte>(4)), "output 'y' at 5 of 4 bytes is not inside global memory of 8 bytes"));
  program.outputs[0] = {"y", -1, 1, {}};
  CHECK(has(failure(program, std::vector<std::byte>(4)), "output 'y' at -1"));
  program.outputs[0] = {"y", 0, -1, {}};
  CHECK(has(failure(program, std::vector<std::byte>(4)), "malformed"));
  program.inputs[0].size = std::numeric_limits<std::int64_t>::max();
  CHECK(has(failure(program, {}), "input 'x'"));
}

TEST_CASE("the check of global memory reports outputs that are read before they are stored") {
  execution_options checking;
  checking.check_global_memory = true;
  // Input bytes [0, 4), output bytes [4, 8).
  const auto reads_output = one_core({b::sldi(3, 4), b::ld(2, 3, 4)}, 1, 1);
  CHECK(failure(reads_output).empty());
  const auto text = failure(reads_output, std::vector<std::byte>(4), checking);
  CHECK_MESSAGE(has(text, "reads global memory [4, 8) but nothing has written byte 4"), text);
  CHECK(has(failure(one_core({b::sldi(3, 2), b::sld(4, 3)}, 1, 1), std::vector<std::byte>(4), checking), "written byte 4"));
  const auto stores_first = one_core({b::sldi(3, 4), b::st(3, 1, 4), b::ld(2, 3, 4)}, 1, 1);
  CHECK(failure(stores_first, std::vector<std::byte>(4), checking).empty());
}

TEST_CASE("the check of global memory knows the constants where they are recorded") {
  execution_options checking;
  checking.check_global_memory = true;
  // Constants [8, 12) behind the input [0, 4) and the output [4, 8), then 4 bytes that cores exchange.
  auto reads_constant = one_core({b::sldi(3, 8), b::ld(2, 3, 4)}, 1, 1);
  auto reads_channel = one_core({b::sldi(3, 12), b::ld(2, 3, 4)}, 1, 1);
  auto writes_channel = one_core({b::sldi(3, 12), b::st(3, 1, 4), b::ld(2, 3, 4)}, 1, 1);
  for (auto* program : {&reads_constant, &reads_channel, &writes_channel}) {
    program->global_memory.resize(16);
    program->constant_bytes = 12;
  }
  const std::vector<std::byte> input(4);
  CHECK(failure(reads_constant, input, checking).empty());
  CHECK(has(failure(reads_channel, input, checking), "nothing has written byte 12"));
  CHECK(failure(writes_channel, input, checking).empty());
  reads_channel.constant_bytes = -1;
  CHECK(failure(reads_channel, input, checking).empty());
}

TEST_CASE("outputs that do not hold floats") {
  auto program = one_core({b::lmv(2, 1, 4)}, 1, 1);
  program.outputs[0].size = 3;
  const auto result = execute(program, to_bytes({1}));
  CHECK(result.outputs[0].bytes.size() == 3);
  CHECK_THROWS_AS(static_cast<void>(result.outputs[0].values()), raptor::error);
}
