#include "raptor/sim/machine.hpp"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "raptor/isa/build.hpp"

namespace {

using namespace raptor;
using namespace raptor::sim;
using namespace raptor::isa::build;
using isa::instruction;
using isa::opcode;

/// Runs one program on one core; global memory starts with the floats of `data` at address 0.
template <machine_size Size = machine_size{}, std::size_t N>
constexpr machine<Size> after(const std::array<instruction, N>& program, std::initializer_list<float> data = {}) {
  machine<Size> m;
  m.global(0, std::span<const float>(data.begin(), data.size())).load(0, program);
  if (!m.run().finished()) throw "the program does not finish";
  m.load(0, {});  // the program may not outlive this call
  return m;
}

template <machine_size Size = machine_size{}, std::size_t N>
constexpr fault fault_of(const std::array<instruction, N>& program, std::size_t index, std::initializer_list<float> data = {}) {
  machine<Size> m;
  m.global(0, std::span<const float>(data.begin(), data.size())).load(0, program);
  const auto end = m.run();
  if (end.state != run_state::faulted || end.index != index || end.core != 0) throw "another end is expected";
  return end.what;
}

// --- scalar ---------------------------------------------------------------------------------------------------------------------

static_assert(after(std::array{nop()}).reg(0, 0) == 0);
static_assert(after(std::array{sldi(31, -7)}).reg(0, 31) == -7);
static_assert(after(std::array{sldi(1, 5), saddi(2, 1, -8)}).reg(0, 2) == -3);
static_assert(after(std::array{sldi(1, 2147483647), saddi(1, 1, 1)}).reg(0, 1) == -2147483647 - 1);
static_assert(after(std::array{sldi(1, 65536), smuli(2, 1, 65537)}).reg(0, 2) == 65536);
static_assert(after(std::array{sldi(1, 5), sldi(2, 7), sadd(3, 1, 2)}).reg(0, 3) == 12);
static_assert(after(std::array{sldi(1, 5), sldi(2, 7), ssub(3, 1, 2)}).reg(0, 3) == -2);
static_assert(after(std::array{sldi(1, -2147483647 - 1), sldi(2, 1), ssub(3, 1, 2)}).reg(0, 3) == 2147483647);
static_assert(after(std::array{sldi(1, 5), sldi(2, -7), smul(3, 1, 2)}).reg(0, 3) == -35);
static_assert(after(std::array{sldi(1, 4), sld(3, 1, 4)}, {0.0f, 0.0f, 1.0f}).reg(0, 3) == 0x3f800000);
static_assert(fault_of(std::array{sldi(1, 61), sld(3, 1)}, 1) == fault::global_range);
static_assert(fault_of(std::array{sldi(1, -4), sld(3, 1)}, 1) == fault::global_range);

// --- matrix ---------------------------------------------------------------------------------------------------------------------

constexpr float product(std::int64_t column, int relu) {
  machine<{.rows = 3, .columns = 2, .groups = 2}> m;
  constexpr std::array x{1.0f, 2.0f, -3.0f};
  constexpr std::array w{1.0f, 10.0f, 2.0f, 20.0f, 4.0f, 5.0f};
  const std::array program{setbw(32, 32), ld(0, 0, 12), sldi(1, 4), mvmul(1, 0, 1, 32, relu)};  // the output overlaps the input
  m.global(0, x).weights(0, 1, 2, w).load(0, program);
  if (!m.run().finished()) throw "does not finish";
  return m.local_float(0, 4 + 4 * column);
}
static_assert(product(0, 0) == 1.0f + 4.0f - 12.0f && product(1, 0) == 10.0f + 40.0f - 15.0f);
static_assert(product(0, 1) == 0.0f && product(1, 1) == 35.0f);
// All rows are read, used by weights or not.
static_assert(fault_of<machine_size{.rows = 3, .columns = 2}>(std::array{setbw(32, 32), ld(0, 0, 8), sldi(1, 16), mvmul(1, 0, 0)}, 3) ==
              fault::unwritten_local);
static_assert(fault_of(std::array{setbw(32, 32), mvmul(1, 0, 1)}, 1) == fault::bad_field);
static_assert(fault_of(std::array{mvmul(1, 0, 0)}, 0) == fault::widths_not_set);
static_assert(fault_of(std::array{setbw(8, 8), mvmul(1, 0, 0)}, 1) == fault::unsupported_width);
static_assert(fault_of(std::array{setbw(8, 7)}, 0) == fault::bad_field);

// --- vector ---------------------------------------------------------------------------------------------------------------------

/// a at 0, b at 16, both of 4 elements, the output at 32; the instruction uses r0 = 0, r1 = 16, r2 = 32, r3 = `third`.
constexpr machine<machine_size{}> vector_machine(instruction i, std::initializer_list<float> data, std::int32_t third = 0) {
  return after(std::array{setbw(32, 32), ld(0, 0, 32), sldi(1, 16), sldi(2, 32), sldi(3, third), i}, data);
}
constexpr bool gives(instruction i, std::initializer_list<float> data, std::initializer_list<float> expected, std::int32_t third = 0) {
  const auto m = vector_machine(i, data, third);
  std::int64_t at = 32;
  for (const float e : expected) {
    if (m.local_float(0, at) != e) return false;
    at += 4;
  }
  return at == 64 || !m.is_written(0, at);  // and nothing behind it
}

static_assert(gives(vvadd(2, 0, 1, 4), {1, 2, 3, 4, 10, 20, 30, 40}, {11, 22, 33, 44}));
static_assert(gives(vvsub(2, 0, 1, 3), {1, 2, 3, 4, 10, 20, 30, 40}, {-9, -18, -27}));
static_assert(gives(vvmul(2, 0, 1, 4), {1, 2, 3, 4, 10, 20, 30, 40}, {10, 40, 90, 160}));
static_assert(gives(vvmax(2, 0, 1, 4), {1, 25, 3, -4, 10, 20, -30, -40}, {10, 25, 3, -4}));
static_assert(gives(vvdmul(2, 0, 1, 4), {1, 2, 3, 4, 10, 20, 30, 40}, {300}));
static_assert(gives(vrelu(2, 0, 4), {1, -2, 0, -4}, {1, 0, 0, 0}));
static_assert(gives(vavg(2, 0, 3, 4), {1, 100, 3, 100, 5, 100, 7, 100}, {4}, 2));
static_assert(gives(vavg(2, 1, 3, 4), {2, 3, 4, 5, 6}, {4.5f}, -1));
static_assert(gives(vavg(2, 1, 3, 2), {2, 3, 4, 5, 6}, {6}, 0));
static_assert(gives(vmv(2, 0, 3, 3), {1, 2, 3, 4, 5, 6, 7, 8}, {1, 4, 7}, 3));
static_assert(gives(vmv(2, 0, 3, 2), {1, 2}, {1, 1}, 0));
static_assert(gives(vmv(2, 1, 3, 3), {1, 2, 3, 4, 5}, {5, 4, 3}, -1));
static_assert(gives(vrsu(2, 0, 3, 4), {1, 7, -3, 6}, {1, 6, -3, 6}, std::bit_cast<std::int32_t>(6.0f)));
static_assert(gives(vrsl(2, 0, 3, 4), {1, 7, -3, 6}, {1, 7, 0.5f, 6}, std::bit_cast<std::int32_t>(0.5f)));
static_assert(gives(vvadd(2, 0, 1, 0), {}, {}));
// A destination may equal a source, but not overlap it partly; a gather may stay where it starts.
static_assert(after(std::array{setbw(32, 32), ld(0, 0, 8), vvadd(0, 0, 0, 2)}, {3, 4}).local_float(0, 4) == 8);
static_assert(fault_of(std::array{setbw(32, 32), ld(0, 0, 12), sldi(1, 4), vvadd(1, 0, 0, 2)}, 3) == fault::overlap);
static_assert(fault_of(std::array{setbw(32, 32), ld(0, 0, 12), sldi(1, 4), vvmax(0, 0, 1, 2)}, 3) == fault::overlap);
static_assert(fault_of(std::array{setbw(32, 32), ld(0, 0, 12), sldi(1, 4), vrelu(0, 1, 2)}, 3) == fault::overlap);
static_assert(fault_of(std::array{setbw(32, 32), ld(0, 0, 12), sldi(1, 4), vsoftmax(0, 1, 2)}, 3) == fault::overlap);
static_assert(after(std::array{setbw(32, 32), ld(0, 0, 20), sldi(1, 2), vmv(0, 0, 1, 3)}, {1, 2, 3, 4, 5}).local_float(0, 8) == 5);
static_assert(fault_of(std::array{setbw(32, 32), ld(0, 0, 20), sldi(1, 2), sldi(2, 4), vmv(2, 0, 1, 3)}, 4) == fault::overlap);

constexpr bool near(float a, float b) { return a - b < 1e-6f && b - a < 1e-6f; }
static_assert(near(vector_machine(vtanh(2, 0, 2), {0.5f, -2.0f}).local_float(0, 36), -0.96402758f));
static_assert(near(vector_machine(vsigm(2, 0, 2), {0.5f, -2.0f}).local_float(0, 36), 0.11920292f));
static_assert(near(vector_machine(vsoftmax(2, 0, 3), {1, 2, 3}).local_float(0, 32), 0.09003057f));
static_assert(near(vector_machine(vsoftmax(2, 0, 3), {1001, 1002, 1003}).local_float(0, 40), 0.66524096f));

// Offsets count elements; bit 0 moves rd, bit 1 r1, bit 2 r2.
static_assert(after(std::array{setbw(32, 32), ld(0, 0, 32), sldi(1, 16), sldi(2, 32), vector(opcode::vvadd, 2, 0, 1, 2, {1, 1})},
                    {1, 2, 3, 4, 10, 20, 30, 40}).local_float(0, 36) == 11);
static_assert(gives(vector(opcode::vvadd, 2, 0, 1, 2, {2, 2}), {1, 2, 3, 4, 10, 20, 30, 40}, {13, 24}));
static_assert(gives(vector(opcode::vvadd, 2, 0, 1, 2, {4, 2}), {1, 2, 3, 4, 10, 20, 30, 40}, {31, 42}));
static_assert(gives(vector(opcode::vvadd, 2, 0, 1, 2, {6, 2}), {1, 2, 3, 4, 10, 20, 30, 40}, {33, 44}));
static_assert(gives(vector(opcode::vmv, 2, 0, 3, 2, {6, 1}), {1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}, 2));  // a stride is no address

static_assert(fault_of(std::array{setbw(32, 32), vvsll(0, 0, 0, 1)}, 1) == fault::integers_only);
static_assert(fault_of(std::array{setbw(32, 32), vvsra(0, 0, 0, 1)}, 1) == fault::integers_only);
static_assert(fault_of(std::array{vrelu(0, 0, 1)}, 0) == fault::widths_not_set);
static_assert(fault_of(std::array{setbw(16, 32), vrelu(0, 0, 1)}, 1) == fault::unsupported_width);
static_assert(fault_of(std::array{setbw(32, 32), vavg(0, 0, 0, 0)}, 1) == fault::no_elements);
static_assert(fault_of(std::array{setbw(32, 32), vvdmul(0, 0, 0, 0)}, 1) == fault::no_elements);
static_assert(fault_of(std::array{setbw(32, 32), vrelu(0, 0, -1)}, 1) == fault::bad_field);
static_assert(fault_of(std::array{setbw(32, 32), vrelu(0, 0, 1)}, 1) == fault::unwritten_local);
static_assert(fault_of(std::array{setbw(32, 32), ld(0, 0, 7), vrelu(0, 0, 2)}, 2) == fault::unwritten_local);
static_assert(fault_of(std::array{setbw(32, 32), ld(0, 0, 8), sldi(1, 61), vrelu(1, 0, 1)}, 3) == fault::local_range);
static_assert(fault_of(std::array{setbw(32, 32), sldi(1, -4), vrelu(0, 1, 1)}, 2) == fault::local_range);
static_assert(fault_of(std::array{setbw(32, 32), ld(0, 0, 8), sldi(1, 2147483647), vmv(0, 0, 1, 3)}, 3) == fault::local_range);
static_assert(fault_of(std::array{setbw(32, 32), ld(0, 0, 4), sldi(1, 2), vmv(0, 0, 1, 2)}, 3) == fault::unwritten_local);

// --- transfer -------------------------------------------------------------------------------------------------------------------

static_assert(after(std::array{sldi(1, 8), ld(1, 0, 8)}, {1.5f, 2.5f}).local_float(0, 12) == 2.5f);
static_assert(after(std::array{sldi(1, 8), ld(1, 0, 4, {1, 4})}, {1.5f, 2.5f}).local_float(0, 12) == 1.5f);
static_assert(after(std::array{sldi(1, 8), ld(1, 0, 4, {2, 4})}, {1.5f, 2.5f}).local_float(0, 8) == 2.5f);
static_assert(after(std::array{sldi(1, 32), lldi(0, 0, 8), ld(0, 0, 4), st(1, 0, 8)}, {1.5f}).global_float(32) == 1.5f);
static_assert(after(std::array{sldi(1, 32), ld(0, 0, 8), st(1, 0, 4, {3, 4})}, {1.5f, 2.5f}).global_float(36) == 2.5f);
static_assert(after(std::array{sldi(1, 3), lldi(1, 0x1ff, 2)}).local_byte(0, 4) == std::byte{0xff});
static_assert(!after(std::array{sldi(1, 3), lldi(1, 0x1ff, 2)}).is_written(0, 5));
static_assert(after(std::array{sldi(1, 8), ld(0, 0, 8), lmv(1, 0, 8)}, {1.5f, 2.5f}).local_float(0, 12) == 2.5f);
static_assert(fault_of(std::array{sldi(1, 7), ld(0, 0, 8), lmv(1, 0, 8)}, 2) == fault::overlap);
static_assert(fault_of(std::array{sldi(1, 1), ld(1, 0, 8), lmv(0, 1, 8)}, 2) == fault::overlap);
static_assert(fault_of(std::array{ld(0, 0, 8), lmv(0, 0, 8)}, 1) == fault::overlap);
static_assert(after(std::array{sldi(1, -900), lmv(1, 1, 0), ld(0, 1, 0), st(1, 0, 0), lldi(1, 0, 0)}).reg(0, 1) == -900);  // nothing is anywhere
static_assert(fault_of(std::array{lmv(0, 0, -1)}, 0) == fault::bad_field);
static_assert(fault_of(std::array{sldi(1, 60), ld(0, 1, 5)}, 1) == fault::global_range);
static_assert(fault_of(std::array{sldi(1, 60), ld(1, 0, 5)}, 1) == fault::local_range);
static_assert(fault_of(std::array{lldi(0, 0, 8), sldi(1, 60), st(1, 0, 5)}, 2) == fault::global_range);
static_assert(fault_of(std::array{st(0, 0, 4)}, 0) == fault::unwritten_local);

constexpr fault unwritten_global(std::int32_t size, bool checked) {
  machine<machine_size{}> m;
  const std::array program{ld(0, 0, size)};
  m.global(0, std::array{1.0f}).check_global_initialization(checked).load(0, program);
  return m.run().what;
}
static_assert(unwritten_global(8, true) == fault::unwritten_global);
static_assert(unwritten_global(8, false) == fault::none && unwritten_global(4, true) == fault::none);

// --- several cores --------------------------------------------------------------------------------------------------------------

constexpr machine_size two{.cores = 2};

template <std::size_t A, std::size_t B>
constexpr auto run_two(const std::array<instruction, A>& a, const std::array<instruction, B>& b) {
  machine<two> m;
  m.global(0, std::array{1.5f, 2.5f, 3.5f}).load(0, a).load(1, b);
  return m.run();
}

constexpr float through_send() {
  machine<two> m;
  const std::array a{ld(0, 0, 8), sldi(1, 4), send(1, 1, 4), recv(0, 1, 4), sldi(2, 48), st(2, 0, 4)};
  const std::array b{setbw(32, 32), sldi(3, 20), recv(3, 0, 4), vvadd(3, 3, 3, 1), send(3, 0, 4)};
  m.global(0, std::array{1.5f, 2.5f}).load(0, a).load(1, b);
  if (!m.run().finished()) throw "does not finish";
  return m.global_float(48);
}
static_assert(through_send() == 5.0f);

constexpr float through_offsets() {
  machine<two> m;
  const std::array a{ld(0, 0, 8), send(0, 1, 4, {2, 4})};
  const std::array b{recv(0, 0, 4, {1, 8})};
  m.global(0, std::array{1.5f, 2.5f}).load(0, a).load(1, b);
  if (!m.run().finished()) throw "does not finish";
  return m.local_float(1, 8);
}
static_assert(through_offsets() == 2.5f);

static_assert(run_two(std::array{ld(0, 0, 8), send(0, 1, 8)}, std::array{recv(0, 0, 4)}).what == fault::size_mismatch);
static_assert(run_two(std::array{send(0, 1, 8)}, std::array{recv(0, 0, 8)}).what == fault::unwritten_local);
static_assert(run_two(std::array{ld(0, 0, 8), send(0, 1, 8)}, std::array{sldi(1, 60), recv(1, 0, 8)}).what == fault::local_range);
static_assert(run_two(std::array{send(0, 2, 8)}, std::array{nop()}).what == fault::bad_field);

constexpr bool events_count() {
  machine<two> m;
  const std::array a{sync(3, 1), sync(3, 1), sync(4, 1)};
  const std::array b{wait(3, 2), sldi(1, 9), wait(5, 0)};
  m.load(0, a).load(1, b);
  return m.run().finished() && m.event(1, 3) == 0 && m.event(1, 4) == 1 && m.reg(1, 1) == 9;
}
static_assert(events_count());

constexpr bool events_survive_a_restart() {
  machine<{}> m;
  const std::array program{sync(0, 0)};
  m.load(0, program);
  return m.run().finished() && m.run().finished() && m.event(0, 0) == 2;
}
static_assert(events_survive_a_restart());

static_assert(fault_of(std::array{sync(0, 0), sync(0, 0), wait(0, 1)}, 2) == fault::overshoot);
static_assert(fault_of(std::array{wait(32, 1)}, 0) == fault::bad_field);
static_assert(fault_of(std::array{sync(0, 1)}, 0) == fault::bad_field);
static_assert(fault_of(std::array{instruction{static_cast<opcode>(33), 0, 0, 0, 0, 0, 0}}, 0) == fault::unknown_opcode);
static_assert(fault_of(std::array{sldi(32, 0)}, 0) == fault::bad_field);

// --- deadlock -------------------------------------------------------------------------------------------------------------------

constexpr bool is_cycle(const machine<two>::result& r, std::size_t length) {
  return r.state == run_state::deadlocked && r.is_cycle && r.chain_length == length;
}
static_assert(is_cycle(run_two(std::array{recv(0, 1, 4), send(0, 1, 4)}, std::array{recv(0, 0, 4), send(0, 0, 4)}), 2));
static_assert(is_cycle(run_two(std::array{wait(0, 1), sync(0, 1)}, std::array{wait(0, 1), sync(0, 0)}), 2));
static_assert(is_cycle(run_two(std::array{recv(0, 1, 4)}, std::array{wait(0, 1), sync(0, 1)}), 1));  // a core that waits for itself
static_assert(is_cycle(run_two(std::array{send(0, 0, 4)}, std::array{nop()}), 1));                   // and one that sends to itself
static_assert(!run_two(std::array{recv(0, 1, 4)}, std::array{nop()}).is_cycle);                      // nobody left to send
static_assert(run_two(std::array{recv(0, 1, 4)}, std::array{nop()}).state == run_state::deadlocked);
static_assert(run_two(std::array{wait(0, 1)}, std::array{sync(1, 0)}).state == run_state::deadlocked);

TEST_CASE("the end of a run in words") {
  const auto words = [](std::vector<instruction> a, std::vector<instruction> b) {
    machine<two> m;
    m.load(0, a).load(1, b);
    return m.describe(m.run());
  };
  CHECK(words({nop()}, {nop()}) == "finished");
  CHECK(words({nop()}, {nop(), st(0, 0, 4)}) ==
        "core 1, instruction 1 (st r0, r0, size=4): reads local memory that nothing has written");
  CHECK(words({recv(0, 1, 4)}, {nop(), recv(1, 0, 4)}) ==
        "deadlock: core 0, instruction 0 (recv r0, core=1, size=4) waits for core 1, instruction 1 (recv r1, core=0, size=4) waits for "
        "the first");
  CHECK(words({recv(0, 1, 4)}, {}) ==
        "deadlock: core 0, instruction 0 (recv r0, core=1, size=4) waits for nobody who could release it");
  CHECK(words({}, {wait(2, 1), sync(2, 1)}) == "deadlock: core 1, instruction 0 (wait event=2, value=1) waits for itself");
}

TEST_CASE("a program whose cores meet ends alike under every order of execution") {
  constexpr machine_size three{.cores = 3, .local_bytes = 32, .global_bytes = 32};
  const std::vector<instruction> a{setbw(32, 32), ld(0, 0, 8), send(0, 1, 8), wait(0, 2), sldi(1, 16), ld(1, 1, 4), vvadd(0, 0, 1, 1),
                                   sldi(2, 24), st(2, 0, 4)};
  const std::vector<instruction> b{setbw(32, 32), recv(0, 0, 8), vvmul(0, 0, 0, 2), send(0, 2, 8), sync(0, 0)};
  const std::vector<instruction> c{setbw(32, 32), recv(0, 1, 8), sldi(1, 4), vvadd(0, 0, 1, 1), sldi(2, 16), st(2, 0, 4), sync(0, 0)};
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    machine<three> m;
    m.global(0, std::array{2.0f, 3.0f}).load(0, a).load(1, b).load(2, c);
    const auto end = m.run([&](std::span<const std::size_t> runnable) { return runnable[random() % runnable.size()]; });
    REQUIRE(end.finished());
    CHECK(m.global_float(16) == 13.0f);
    CHECK(m.global_float(24) == 15.0f);
  }
}

TEST_CASE("a fault changes nothing") {
  machine<machine_size{}> m;
  const std::vector<instruction> program{setbw(32, 32), ld(0, 0, 32), sldi(1, 40), vvadd(1, 0, 0, 8)};
  m.global(0, std::array{1.0f, 2.0f}).load(0, program);
  const auto end = m.run();
  CHECK(end.what == fault::local_range);
  CHECK_FALSE(m.is_written(0, 40));
}

TEST_CASE("random programs never do worse than a fault or a deadlock") {
  std::mt19937 random(17);
  int ends[3] = {};
  for (int round = 0; round < 3000; ++round) {
    constexpr machine_size three{.cores = 3, .local_bytes = 48, .global_bytes = 48};
    std::array<std::vector<instruction>, 3> programs;
    machine<three> m;
    for (std::size_t core = 0; core < 3; ++core) {
      programs[core].push_back(setbw(32, 32));
      for (int n = 0; n < 8; ++n) {
        instruction i{static_cast<opcode>(random() % 34), 0, 0, 0, 0, 0, 0};
        for (const isa::slot s : isa::all_slots)
          isa::set(i, s, random() % 30 == 0 ? static_cast<std::int32_t>(random() % 250) : static_cast<std::int32_t>(random() % 4));
        if (i.op == opcode::send) i.rd = i.r1;
        programs[core].push_back(random() % 3 == 0 ? sldi(static_cast<std::uint8_t>(random() % 4), static_cast<std::int32_t>(random() % 50)) : i);
      }
      m.load(core, programs[core]);
    }
    const auto end = m.run();
    ++ends[static_cast<int>(end.state)];
    CHECK_FALSE(m.describe(end).empty());
  }
  CHECK(ends[0] + ends[1] + ends[2] == 3000);
  CHECK(ends[1] > 0);
  CHECK(ends[2] > 0);
}

}  // namespace
