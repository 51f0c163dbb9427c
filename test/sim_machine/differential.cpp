// The constexpr machine and the fast executor were written apart from each other; programs must not be able to tell them apart.

#include "raptor/sim/machine.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "raptor/isa/build.hpp"
#include "raptor/sim/executor.hpp"

namespace {

using namespace raptor;
using namespace raptor::isa::build;
using isa::instruction;
using isa::opcode;

// Programs work in the last bytes of local memory, so that they also run beyond it.
constexpr std::size_t local_bytes = 4096;
constexpr std::int32_t window = 256;
constexpr std::int32_t window_begin = static_cast<std::int32_t>(local_bytes) - window;
constexpr std::size_t global_bytes = 1024;
constexpr std::size_t rows = 3;
constexpr std::size_t columns = 4;
constexpr std::size_t core_count = 3;
using plain_machine = sim::machine<{.cores = core_count,
                                    .local_bytes = local_bytes,
                                    .global_bytes = global_bytes,
                                    .rows = rows,
                                    .columns = columns,
                                    .groups = 1}>;

struct outcome {
  bool finished = false;
  bool deadlocked = false;
  std::string place;  ///< of a fault: "core c, instruction n"
  std::string words;  ///< for the message of a test that fails
  std::vector<float> global;
};

std::vector<float> initial_global() {
  std::vector<float> values(global_bytes / 4);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(static_cast<int>(k * 7 % 11) - 5);
  return values;
}

const std::vector<float> weights{1, -1, 2, 0, 0.5f, 3, -2, 1, 0, 1, 1, -0.5f};

outcome run_plain(const std::array<std::vector<instruction>, core_count>& programs) {
  plain_machine m;
  m.global(0, initial_global());
  for (std::size_t c = 0; c < core_count; ++c) m.weights(c, 0, columns, weights).load(c, programs[c]);
  const auto end = m.run();
  outcome o;
  o.finished = end.finished();
  o.deadlocked = end.state == sim::run_state::deadlocked;
  o.words = m.describe(end);
  if (end.state == sim::run_state::faulted) o.place = "core " + std::to_string(end.core) + ", instruction " + std::to_string(end.index);
  for (std::size_t k = 0; k < global_bytes; k += 4) o.global.push_back(m.global_float(static_cast<std::int64_t>(k)));
  return o;
}

outcome run_fast(const std::array<std::vector<instruction>, core_count>& programs) {
  sim::loaded_program program;
  const auto initial = initial_global();
  program.global_memory.resize(global_bytes);
  std::memcpy(program.global_memory.data(), initial.data(), global_bytes);
  for (const auto& stream : programs) program.cores.push_back({stream, {sim::make_group(rows, columns, weights)}});
  sim::execution_options options;
  options.local_memory_limit = local_bytes;
  outcome o;
  try {
    const auto result = sim::execute(program, {}, options);
    o.finished = true;
    o.global.resize(global_bytes / 4);
    std::memcpy(o.global.data(), result.global_memory.data(), global_bytes);
  } catch (const error& e) {
    o.deadlocked = e.code() == error_code::deadlock;
    o.words = describe(e);
    if (!o.deadlocked) {
      CHECK(e.code() == error_code::execution);
      o.place = e.place().substr(0, e.place().find(':'));
    }
  }
  return o;
}

/// Equal up to rounding, which may differ where sums run in another order; infinities and NaN are alike.
bool agree(float a, float b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::isfinite(a) == std::isfinite(b);
  return std::abs(a - b) <= 1e-5f * (1.0f + std::abs(a));
}

using generator = std::mt19937;
std::int32_t below(generator& random, unsigned n) { return static_cast<std::int32_t>(random() % n); }
std::uint8_t any_reg(generator& random) { return static_cast<std::uint8_t>(random() % 6); }

/// An instruction of one core that the static checks accept; addresses and lengths are often, not always, in range.
instruction random_instruction(generator& random) {
  constexpr opcode vectors[] = {opcode::vvadd, opcode::vvsub, opcode::vvmax, opcode::vvdmul, opcode::vavg, opcode::vrelu, opcode::vtanh,
                                opcode::vsigm, opcode::vsoftmax, opcode::vmv, opcode::vrsu, opcode::vrsl};
  const auto rd = any_reg(random);
  const auto r1 = any_reg(random);
  const auto r2 = any_reg(random);
  const auto offset_of = [&](std::int32_t unit) {
    return random() % 4 == 0 ? offset{below(random, 8), unit * (below(random, 9) - 3)} : offset{};
  };
  const auto len = below(random, 9);
  switch (random() % 14) {
    case 0: return sldi(rd, window_begin + 4 * below(random, 60));
    case 9: return sldi(rd, 4 * below(random, 200));
    case 1: return sldi(rd, below(random, 5));
    case 2: return saddi(rd, r1, 4 * (below(random, 9) - 4));
    case 3: return random() % 2 == 0 ? smuli(rd, r1, below(random, 3) - 1) : sadd(rd, r1, r2);
    case 4: return random() % 2 == 0 ? ssub(rd, r1, r2) : smul(rd, r1, r2);
    case 5: return random() % 3 == 0 ? mvmul(rd, r1, 0, 32, below(random, 2)) : sld(rd, r1, 4 * below(random, 3));
    case 6: return ld(rd, r1, 4 * len, offset_of(4));
    case 7: return st(rd, r1, 4 * len, offset_of(4));
    case 8: return random() % 2 == 0 ? lldi(rd, random() % 2 == 0 ? 0 : 0x3f, 4 * len, offset_of(4)) : lmv(rd, r1, 4 * len, offset_of(4));
    default: {
      const opcode op = vectors[random() % std::size(vectors)];
      const bool needs_elements = op == opcode::vavg || op == opcode::vvdmul;
      instruction i = vector(op, rd, r1, 0, needs_elements ? len + 1 : len, offset_of(1));
      if (isa::info(op)[isa::slot::word0] != isa::role::unused) i.word0 = r2;
      return i;
    }
  }
}

/// Everything in local memory, to where the comparison sees it.
void append_dump(std::vector<instruction>& program, std::size_t core) {
  program.push_back(sldi(8, window_begin));
  program.push_back(sldi(9, static_cast<std::int32_t>(256 * (core + 1))));
  program.push_back(st(9, 8, window));
}

TEST_CASE("one core: random programs end alike, at the same instruction, with the same memory") {
  int finished = 0;
  int faulted = 0;
  for (unsigned seed = 0; seed < 20000; ++seed) {
    generator random(seed);
    std::array<std::vector<instruction>, core_count> programs;
    auto& program = programs[random() % core_count];
    const auto core = static_cast<std::size_t>(&program - programs.data());
    program = {setbw(32, 32)};
    const bool initialized = random() % 5 != 0;
    if (initialized) {
      program.push_back(sldi(1, window_begin));
      program.push_back(lldi(1, 0, window));
      program.push_back(ld(1, 0, 128));
    }
    for (std::uint8_t r = 0; r < 6; ++r) program.push_back(sldi(r, (r == 5 ? 0 : window_begin) + 4 * below(random, 40)));
    const int length = 1 + below(random, 12);
    for (int n = 0; n < length; ++n) program.push_back(random_instruction(random));
    if (initialized) append_dump(program, core);

    const auto plain = run_plain(programs);
    const auto fast = run_fast(programs);
    CAPTURE(seed);
    CAPTURE(plain.words);
    CAPTURE(fast.words);
    REQUIRE(plain.finished == fast.finished);
    REQUIRE(plain.place == fast.place);
    REQUIRE_FALSE(fast.deadlocked);
    if (!plain.finished) {
      ++faulted;
      continue;
    }
    ++finished;
    for (std::size_t k = 0; k < plain.global.size(); ++k) {
      CAPTURE(k);
      REQUIRE(agree(plain.global[k], fast.global[k]));
    }
  }
  CHECK(finished > 2000);
  CHECK(faulted > 2000);
}

TEST_CASE("several cores: programs made in one global order finish alike; cut short, they deadlock alike") {
  int finished = 0;
  int deadlocked = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    generator random(seed);
    std::array<std::vector<instruction>, core_count> programs;
    for (std::size_t c = 0; c < core_count; ++c) {
      programs[c] = {setbw(32, 32), sldi(0, window_begin), lldi(0, 0, window), sldi(1, static_cast<std::int32_t>(16 * c)), ld(0, 1, 64)};
      for (std::uint8_t r = 0; r < 4; ++r) programs[c].push_back(sldi(r, window_begin + 32 * r));
    }
    for (int n = 0; n < 12; ++n) {
      const auto a = random() % core_count;
      const auto b = (a + 1 + random() % (core_count - 1)) % core_count;
      const auto size = 4 * below(random, 8);
      const auto reg_of = [&] { return static_cast<std::uint8_t>(random() % 4); };
      switch (random() % 4) {
        case 0:
          programs[a].push_back(sync(n, static_cast<std::int32_t>(b)));  // each its own register, so that none overshoots
          programs[b].push_back(wait(n, 1));
          break;
        case 1:
          programs[a].push_back(vvadd(reg_of(), reg_of(), reg_of(), 4));
          break;
        default:
          programs[a].push_back(send(reg_of(), static_cast<std::int32_t>(b), size, {below(random, 4), 4 * below(random, 3)}));
          programs[b].push_back(recv(reg_of(), static_cast<std::int32_t>(a), size, {below(random, 4), 4 * below(random, 3)}));
      }
    }
    // An instruction that its partner awaits is lost, now and then.
    if (random() % 4 == 0) {
      auto& victim = programs[random() % core_count];
      if (sim::is_communication(victim.back().op)) victim.pop_back();
    }
    for (std::size_t c = 0; c < core_count; ++c) append_dump(programs[c], c);

    const auto plain = run_plain(programs);
    const auto fast = run_fast(programs);
    CAPTURE(seed);
    CAPTURE(plain.words);
    CAPTURE(fast.words);
    REQUIRE(plain.finished == fast.finished);
    REQUIRE(plain.deadlocked == fast.deadlocked);
    deadlocked += plain.deadlocked ? 1 : 0;
    if (!plain.finished) continue;
    ++finished;
    for (std::size_t k = 0; k < plain.global.size(); ++k) REQUIRE(agree(plain.global[k], fast.global[k]));
  }
  CHECK(finished > 1000);
  CHECK(deadlocked > 100);
}

}  // namespace
