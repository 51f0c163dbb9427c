#include "raptor/sim/executor.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>

#include "support.hpp"

using namespace raptor::sim::test;
using raptor::sim::execute;
using raptor::sim::make_group;
using raptor::isa::opcode;
using floats = std::vector<float>;

namespace {

/// A body that leaves integer registers to be read: stores `reg` through lldi? No instruction stores a register, so registers are
/// observed as addresses: the value is used as the local address of a fill of 4 bytes that is then copied to the output.
floats fill_at(const stream& computes_r5, std::int32_t expected_address) {
  stream body = computes_r5;
  body.push_back(b::lldi(5, 0x40, 4));  // 0x40404040 as a float is 3.0039…
  body.push_back(b::sldi(6, expected_address));
  body.push_back(b::lmv(2, 6, 4));
  return run(body, {1.0f}, 1);
}
const floats filled{std::bit_cast<float>(0x40404040u)};

}  // namespace

TEST_CASE("scalar arithmetic") {
  CHECK(fill_at({b::sldi(5, 1000)}, 1000) == filled);
  CHECK(fill_at({b::sldi(4, 900), b::saddi(5, 4, 100)}, 1000) == filled);
  CHECK(fill_at({b::sldi(4, 250), b::smuli(5, 4, 4)}, 1000) == filled);
  CHECK(fill_at({b::sldi(4, 250), b::sldi(3, 750), b::sadd(5, 4, 3)}, 1000) == filled);
  CHECK(fill_at({b::sldi(4, 1250), b::sldi(3, 250), b::ssub(5, 4, 3)}, 1000) == filled);
  CHECK(fill_at({b::sldi(4, 50), b::sldi(3, 20), b::smul(5, 4, 3)}, 1000) == filled);
}

TEST_CASE("scalar arithmetic wraps at 32 bits") {
  CHECK(fill_at({b::sldi(4, 2147483647), b::saddi(5, 4, 1), b::sldi(4, -2147483647 - 1), b::ssub(5, 5, 4), b::saddi(5, 5, 1000)}, 1000) == filled);
  CHECK(fill_at({b::sldi(4, 65536), b::smul(5, 4, 4), b::saddi(5, 5, 1000)}, 1000) == filled);
  CHECK(fill_at({b::sldi(4, 0x40000001), b::smuli(5, 4, 4), b::saddi(5, 5, 996)}, 1000) == filled);
}

TEST_CASE("sld loads four bytes from global memory, with its offset") {
  // The input, at global address 0, holds the integers 7 and 1000.
  const floats in{std::bit_cast<float>(7), std::bit_cast<float>(1000)};
  stream body{b::sldi(4, 1), b::sld(5, 4, 3), b::lldi(5, 0x40, 4), b::sldi(6, 1000), b::lmv(2, 6, 4)};
  CHECK(run(body, in, 1) == filled);
}

TEST_CASE("nop does nothing") { CHECK(run({b::nop(), b::lmv(2, 1, 4)}, {5.0f}, 1) == floats{5.0f}); }

TEST_CASE("element-wise instructions with two sources") {
  const floats in{1, -2, 3, 10, 20, -30};
  const auto apply = [&](opcode op) { return run({b::sldi(3, 12), b::vector(op, 2, 1, 3, 3)}, in, 3); };
  CHECK(apply(opcode::vvadd) == floats{11, 18, -27});
  CHECK(apply(opcode::vvsub) == floats{-9, -22, 33});
  CHECK(apply(opcode::vvmul) == floats{10, -40, -90});
  CHECK(apply(opcode::vvmax) == floats{10, 20, 3});
}

TEST_CASE("a destination may equal a source") {
  CHECK(run({b::sldi(3, 8), b::vvadd(1, 1, 3, 2), b::lmv(2, 1, 8)}, {1, 2, 10, 20}, 2) == floats{11, 22});
  CHECK(run({b::sldi(3, 8), b::vvsub(3, 1, 3, 2), b::lmv(2, 3, 8)}, {1, 2, 10, 20}, 2) == floats{-9, -18});
  CHECK(run({b::vvmul(1, 1, 1, 2), b::lmv(2, 1, 8)}, {3, 4}, 2) == floats{9, 16});
  CHECK(run({b::vrelu(1, 1, 2), b::lmv(2, 1, 8)}, {-3, 4}, 2) == floats{0, 4});
  CHECK(run({b::vsoftmax(1, 1, 2), b::lmv(2, 1, 8)}, {5, 5}, 2) == floats{0.5f, 0.5f});
}

TEST_CASE("long vectors use the same arithmetic as short ones") {
  floats in(50);
  for (std::size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k) - 20.5f;
  const auto out = run({b::sldi(3, 4), b::vvadd(2, 1, 3, 49), b::vrelu(2, 2, 49)}, in, 49);
  for (std::size_t k = 0; k < 49; ++k) CHECK(out[k] == std::max(in[k] + in[k + 1], 0.0f));
}

TEST_CASE("vvdmul is a dot product, one element") { CHECK(run({b::sldi(3, 12), b::vvdmul(2, 1, 3, 3)}, {1, 2, 3, 4, 5, 6}, 1) == floats{32}); }

TEST_CASE("vavg is a mean with a stride") {
  CHECK(run({b::sldi(3, 1), b::vavg(2, 1, 3, 4)}, {1, 2, 3, 6}, 1) == floats{3});
  CHECK(run({b::sldi(3, 2), b::vavg(2, 1, 3, 3)}, {1, 100, 2, 100, 6}, 1) == floats{3});
  CHECK(run({b::sldi(3, 0), b::vavg(2, 1, 3, 3)}, {7}, 1) == floats{7});
}

TEST_CASE("vmv gathers with a stride") {
  CHECK(run({b::sldi(3, 2), b::vmv(2, 1, 3, 3)}, {1, 9, 2, 9, 3}, 3) == floats{1, 2, 3});
  CHECK(run({b::sldi(3, 1), b::vmv(2, 1, 3, 3)}, {1, 2, 3}, 3) == floats{1, 2, 3});
  CHECK(run({b::sldi(3, 0), b::vmv(2, 1, 3, 3)}, {4}, 3) == floats{4, 4, 4});
  CHECK(run({b::sldi(3, -1), b::sldi(4, 8), b::vmv(2, 4, 3, 3)}, {1, 2, 3}, 3) == floats{3, 2, 1});
  CHECK(run({b::sldi(3, 2), b::vmv(1, 1, 3, 3), b::lmv(2, 1, 12)}, {1, 9, 2, 9, 3}, 3) == floats{1, 2, 3});
}

TEST_CASE("activations") {
  CHECK(run({b::vrelu(2, 1, 3)}, {-1, 0, 2}, 3) == floats{0, 0, 2});
  const auto tanh = run({b::vtanh(2, 1, 2)}, {0.5f, -3.0f}, 2);
  CHECK(tanh[0] == doctest::Approx(std::tanh(0.5)).epsilon(1e-6));
  CHECK(tanh[1] == doctest::Approx(std::tanh(-3.0)).epsilon(1e-6));
  const auto sigmoid = run({b::vsigm(2, 1, 4)}, {0.0f, 2.0f, -100.0f, 100.0f}, 4);
  CHECK(sigmoid[0] == 0.5f);
  CHECK(sigmoid[1] == doctest::Approx(1 / (1 + std::exp(-2.0))).epsilon(1e-6));
  CHECK(sigmoid[2] >= 0.0f);
  CHECK(sigmoid[2] < 1e-40f);
  CHECK(sigmoid[3] == 1.0f);
}

TEST_CASE("vsoftmax, also of large values") {
  const auto out = run({b::vsoftmax(2, 1, 3)}, {1000, 1001, 1002}, 3);
  const double sum = 1 + std::exp(-1.0) + std::exp(-2.0);
  CHECK(out[0] == doctest::Approx(std::exp(-2.0) / sum).epsilon(1e-6));
  CHECK(out[2] == doctest::Approx(1 / sum).epsilon(1e-6));
}

TEST_CASE("vrsu and vrsl clamp at the float that a register holds") {
  const auto six = std::bit_cast<std::int32_t>(6.0f);
  const auto minus_one = std::bit_cast<std::int32_t>(-1.0f);
  CHECK(run({b::sldi(3, six), b::vrsu(2, 1, 3, 3)}, {-5, 6, 7.5f}, 3) == floats{-5, 6, 6});
  CHECK(run({b::sldi(3, minus_one), b::vrsl(2, 1, 3, 3)}, {-5, 6, -0.5f}, 3) == floats{-1, 6, -0.5f});
}

TEST_CASE("NaN does not disappear in a maximum, a clamp or relu") {
  const float nan = std::nanf("");
  const auto zero = std::bit_cast<std::int32_t>(0.0f);
  CHECK(std::isnan(run({b::sldi(3, 4), b::vvmax(2, 1, 3, 1)}, {nan, 1}, 1)[0]));
  CHECK(std::isnan(run({b::sldi(3, 4), b::vvmax(2, 1, 3, 1)}, {1, nan}, 1)[0]));
  CHECK(std::isnan(run({b::vrelu(2, 1, 1)}, {nan}, 1)[0]));
  CHECK(std::isnan(run({b::sldi(3, zero), b::vrsu(2, 1, 3, 1)}, {nan}, 1)[0]));
  CHECK(std::isnan(run({b::sldi(3, zero), b::vrsl(2, 1, 3, 1)}, {nan}, 1)[0]));
}

TEST_CASE("offsets count elements for vectors and bytes for transfers") {
  const floats in{1, 2, 3, 4};
  // select: 1 destination, 2 first source, 4 second source
  CHECK(run({b::vector(opcode::vvadd, 2, 1, 1, 2, {2, 1})}, in, 2) == floats{3, 5});
  CHECK(run({b::vector(opcode::vvadd, 2, 1, 1, 2, {4, 2})}, in, 2) == floats{4, 6});
  CHECK(run({b::lldi(2, 0, 4), b::vector(opcode::vrelu, 2, 1, 1, {1, 1})}, in, 2) == floats{0, 1});
  CHECK(run({b::lmv(2, 1, 8, {2, 8})}, in, 2) == floats{3, 4});
  CHECK(run({b::lldi(2, 0, 4), b::lmv(2, 1, 4, {1, 4})}, in, 2) == floats{0, 1});
  CHECK(run({b::ld(2, 1, 8, {2, 4})}, in, 2) == floats{2, 3});
  CHECK(run({b::sldi(3, 252), b::ld(3, 1, 8, {1, 4})}, in, 2) == floats{1, 2});
  CHECK(run({b::sldi(3, 244), b::lldi(3, 0x40, 4, {1, 12})}, in, 1) == filled);
}

TEST_CASE("addresses that are not multiples of four") {
  const floats in{1, 2, 3, 4};
  const stream body{b::sldi(3, 1001), b::lmv(3, 1, 16), b::sldi(4, 1009), b::sldi(5, 2003), b::vvadd(5, 3, 4, 2), b::vrelu(5, 5, 2), b::lmv(2, 5, 8)};
  CHECK(run(body, in, 2) == floats{4, 6});
  CHECK(run({b::sldi(3, 1001), b::lmv(3, 1, 16), b::sldi(4, 3), b::sldi(5, 2003), b::vmv(5, 3, 4, 2), b::lmv(2, 5, 8)}, in, 2) == floats{1, 4});
}

TEST_CASE("instructions of length 0 touch no memory") {
  const stream body{b::sldi(3, -8), b::vvadd(3, 3, 3, 0), b::vrelu(3, 3, 0), b::vmv(3, 3, 3, 0), b::vsoftmax(3, 3, 0), b::ld(3, 3, 0), b::st(3, 3, 0),
                    b::lldi(3, 0, 0), b::lmv(3, 3, 0), b::lmv(2, 1, 4)};
  CHECK(run(body, {5.0f}, 1) == floats{5.0f});
}

TEST_CASE("mvmul multiplies by the weights of its group and can clamp") {
  auto program = one_core({b::mvmul(2, 1, 1)}, 2, 3);
  program.cores[0].groups = {make_group(2, 1, {0, 0}), make_group(2, 3, {1, 2, -3, 10, 20, -30})};
  CHECK(execute(program, to_bytes({1, 2})).outputs[0].values() == floats{21, 42, -63});
  program.cores[0].stream[4] = b::mvmul(2, 1, 1, 32, 1);
  CHECK(execute(program, to_bytes({1, 2})).outputs[0].values() == floats{21, 42, 0});
}

TEST_CASE("mvmul may write over its own input, at any address") {
  for (const std::int32_t target : {0, 4, 1, 256}) {
    auto program = one_core({b::sldi(5, target), b::mvmul(5, 1, 0), b::lldi(2, 0, 8), b::lmv(2, 5, 8)}, 2, 2);
    if (target == 256) program = one_core({b::mvmul(2, 1, 0)}, 2, 2);
    program.cores[0].groups = {make_group(2, 2, {1, 2, 3, 4})};
    CHECK(execute(program, to_bytes({1, 10})).outputs[0].values() == floats{31, 42});
  }
}

TEST_CASE("send and recv meet in both orders of arrival and keep the order of messages") {
  // Core 0 sends 1 then 2; core 1 receives them swapped into place and stores.
  const stream sender{b::setbw(32, 32), b::sldi(1, 0), b::sldi(2, 4), b::ld(1, 1, 8), b::send(1, 1, 4), b::send(2, 1, 4)};
  const stream receiver{b::setbw(32, 32), b::sldi(1, 4), b::sldi(2, 0), b::recv(1, 0, 4), b::recv(2, 0, 4), b::sldi(3, 8), b::st(3, 2, 8)};
  CHECK(execute(make_program({sender, receiver}, 2, 2), to_bytes({1, 2})).outputs[0].values() == floats{2, 1});
  stream mirrored_receiver = receiver, mirrored_sender = sender;
  for (auto& i : mirrored_receiver) if (i.op == opcode::recv) i.word0 = 1;
  for (auto& i : mirrored_sender) if (i.op == opcode::send) i.word0 = 0;
  CHECK(execute(make_program({mirrored_receiver, mirrored_sender}, 2, 2), to_bytes({1, 2})).outputs[0].values() == floats{2, 1});
}

TEST_CASE("send and recv use offsets in bytes") {
  const stream sender{b::setbw(32, 32), b::sldi(1, 0), b::ld(1, 1, 8), b::send(1, 1, 4, {2, 4})};
  const stream receiver{b::setbw(32, 32), b::sldi(1, 100), b::recv(1, 0, 4, {1, 8}), b::sldi(2, 108), b::sldi(3, 8), b::st(3, 2, 4)};
  CHECK(execute(make_program({sender, receiver}, 2, 1), to_bytes({1, 2})).outputs[0].values() == floats{2});
}

TEST_CASE("a wait continues at exactly its count and resets the register") {
  // Two writers store, then signal; the reader waits for both, loads and adds. Then one more signal for a second wait.
  const auto writer = [](std::int32_t at) {
    return stream{b::setbw(32, 32), b::sldi(1, 0), b::sldi(2, at), b::ld(1, 2, 4), b::sldi(3, at + 16), b::st(3, 1, 4), b::sync(3, 2)};
  };
  stream first = writer(0);
  first.push_back(b::wait(5, 1));
  first.push_back(b::sync(3, 2));
  const stream reader{b::setbw(32, 32), b::wait(3, 2), b::sldi(1, 0), b::sldi(2, 16), b::ld(1, 2, 8), b::sync(5, 0), b::wait(3, 1), b::sldi(3, 4),
                      b::vvadd(1, 1, 3, 1), b::sldi(4, 8), b::st(4, 1, 4)};
  auto program = make_program({first, writer(4), reader}, 2, 1);
  program.global_memory.resize(64);
  CHECK(execute(program, to_bytes({3, 4})).outputs[0].values() == floats{7});
  CHECK(execute(make_program({{b::setbw(32, 32), b::sync(0, 0), b::wait(0, 1), b::wait(0, 0)}}, 0, 0), {}).instructions() == 4);
}

TEST_CASE("results: counts of opcodes and cores, local memory, multiply-accumulates, names") {
  auto program = one_core({b::mvmul(2, 1, 0), b::mvmul(2, 1, 0)}, 2, 3);
  program.cores[0].groups = {make_group(2, 3, floats(6, 1.0f))};
  program.cores.emplace_back();
  const auto result = execute(program, to_bytes({1, 2}));
  CHECK(result.instructions() == 9);
  CHECK(result.total_counts()[static_cast<std::size_t>(opcode::mvmul)] == 2);
  CHECK(result.total_counts()[static_cast<std::size_t>(opcode::sldi)] == 4);
  CHECK(result.cores.size() == 2);
  CHECK(result.cores[0].multiply_accumulates == 12);
  CHECK(result.cores[0].local_memory == 256 + 12);
  CHECK(result.cores[1].instructions == 0);
  CHECK(result.cores[1].local_memory == 0);
  CHECK(result.output("y").values() == floats{3, 3, 3});
  CHECK(to_floats(result.output_bytes()) == floats{3, 3, 3});
  CHECK(to_floats(result.global_memory) == floats{1, 2, 3, 3, 3});
  CHECK_THROWS_AS(static_cast<void>(result.output("z")), raptor::error);
}

TEST_CASE("a program is not changed by its execution") {
  const auto program = one_core({b::lmv(2, 1, 4)}, 1, 1);
  const auto before = program.global_memory;
  CHECK(execute(program, to_bytes({5})).outputs[0].values() == floats{5});
  CHECK(program.global_memory == before);
  CHECK(execute(program, to_bytes({6})).outputs[0].values() == floats{6});
}
