// The fast executor against the plain constexpr machine on random programs: the same end, the same bits.

#include "raptor/sim/machine.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "support.hpp"

namespace sim = raptor::sim;
using namespace raptor::sim::test;
using raptor::isa::instruction;
using raptor::isa::opcode;

namespace {

constexpr std::int32_t local_bytes = 192;
constexpr std::int32_t global_bytes = 128;
constexpr std::size_t rows = 3;
constexpr std::size_t columns = 5;

/// Random but mostly sensible streams: registers hold small addresses, lengths are short.
class generator {
 public:
  explicit generator(unsigned seed) : random_(seed) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  float value() { return static_cast<float>(below(41) - 20) * 0.25f; }

  instruction one(int cores) {
    const auto reg = [&] { return static_cast<std::uint8_t>(below(8)); };
    const auto op = static_cast<opcode>(below(raptor::isa::opcode_count));
    const b::offset offset = below(5) == 0 ? b::offset{below(8), below(7) - 2} : b::offset{};
    switch (op) {
      case opcode::sldi: return b::sldi(reg(), 4 * below(40));
      case opcode::saddi: return b::saddi(reg(), reg(), 4 * (below(9) - 3));
      case opcode::smuli: return b::smuli(reg(), reg(), below(3));
      case opcode::sadd: return b::sadd(reg(), reg(), reg());
      case opcode::ssub: return b::ssub(reg(), reg(), reg());
      case opcode::smul: return below(6) == 0 ? b::smul(reg(), reg(), reg()) : b::sldi(reg(), below(4));
      case opcode::sld: return below(8) == 0 ? b::sld(reg(), reg(), below(9) - 4) : b::sldi(reg(), below(60));
      case opcode::setbw: return b::setbw(32, 32);
      case opcode::mvmul: return b::mvmul(reg(), reg(), 0, 32, below(2));
      case opcode::vvsll:
      case opcode::vvsra: return b::sldi(reg(), 4 * below(24));
      case opcode::vvdmul:
      case opcode::vavg: return b::vector(op, reg(), reg(), reg(), 1 + below(4), offset);
      case opcode::vvadd:
      case opcode::vvsub:
      case opcode::vvmul:
      case opcode::vvmax:
      case opcode::vmv:
      case opcode::vrsu:
      case opcode::vrsl: return b::vector(op, reg(), reg(), reg(), below(5), offset);
      case opcode::vrelu:
      case opcode::vtanh:
      case opcode::vsigm:
      case opcode::vsoftmax: return b::vector(op, reg(), reg(), below(5), offset);
      case opcode::ld: return b::ld(reg(), reg(), below(20), offset);
      case opcode::st: return b::st(reg(), reg(), below(20), offset);
      case opcode::lldi: return b::lldi(reg(), below(3) == 0 ? 0x40 : 0, below(40), offset);
      case opcode::lmv: return b::lmv(reg(), reg(), below(20), offset);
      case opcode::send: return b::send(reg(), below(cores), 4 * below(3), offset);
      case opcode::recv: return b::recv(reg(), below(cores), 4 * below(3), offset);
      case opcode::wait: return b::wait(below(2), below(2));
      case opcode::sync: return b::sync(below(2), below(cores));
      default: return b::nop();
    }
  }

  stream start() {
    stream s{b::setbw(32, 32)};
    for (std::uint8_t r = 0; r < 8; ++r) s.push_back(b::sldi(r, 4 * below(30)));
    s.push_back(b::sldi(8, 0));
    s.push_back(b::lldi(8, 0, 100));  // most reads find something
    s.push_back(b::ld(8, 8, 48));
    return s;
  }

 private:
  std::mt19937 random_;
};

template <std::size_t Cores>
struct pair_of_runs {
  sim::loaded_program program;
  sim::machine<sim::machine_size{Cores, local_bytes, global_bytes, rows, columns, 1}> machine;

  pair_of_runs(generator& g, const std::vector<stream>& streams) {
    program = make_program(streams, 0, 0);
    std::vector<float> initial(global_bytes / 4);
    for (auto& x : initial) x = g.value();
    program.global_memory = to_bytes(initial);
    machine.global(0, initial);
    for (std::size_t c = 0; c < Cores; ++c) {
      std::vector<float> weights(rows * columns);
      for (auto& w : weights) w = g.below(3) == 0 ? 0.0f : g.value();
      weights[weights.size() - columns] = 1.0f;  // the last row is used: no rule about unused rows applies
      program.cores[c].groups = {sim::make_group(rows, columns, weights)};
      machine.load(c, program.cores[c].stream).weights(c, 0, columns, weights);
    }
  }
  bool same_global(const sim::execution_result& result) const {
    for (std::int64_t a = 0; a < global_bytes; a += 4) {
      std::uint32_t got = 0;
      std::memcpy(&got, result.global_memory.data() + a, 4);
      const float expected = machine.global_float(a);
      float value = 0;
      std::memcpy(&value, &got, 4);
      if (expected != expected && value != value) continue;  // the bits of a NaN are nobody's promise
      if (std::bit_cast<std::uint32_t>(expected) != got) return false;
    }
    return true;
  }
};

/// True where an error text reports the machine's fault. Where an instruction breaks several rules about memory at once, either may be named.
bool reports(const std::string& text, sim::fault what) {
  switch (what) {
    case sim::fault::local_range:
    case sim::fault::unwritten_local:
    case sim::fault::global_range: return has(text, "nothing has written byte") || has(text, "negative") || has(text, "beyond");
    case sim::fault::overlap: return has(text, "overlaps the source") || has(text, "nothing has written byte") || has(text, "beyond");
    case sim::fault::size_mismatch: return has(text, "receives");
    case sim::fault::overshoot: return has(text, "overshoot");
    default: return false;
  }
}

}  // namespace

TEST_CASE("one core: random programs end alike, instruction for instruction") {
  int finished = 0, faulted = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    generator g(seed);
    auto s = g.start();
    const int length = 1 + g.below(12);
    for (int k = 0; k < length; ++k) {
      auto i = g.one(1);
      while (i.op == opcode::send || i.op == opcode::recv || i.op == opcode::wait) i = g.one(1);
      s.push_back(i);
    }
    s.push_back(b::sldi(8, 0));
    s.push_back(b::st(8, 8, 48));
    pair_of_runs<1> runs(g, {s});
    const auto end = runs.machine.run();
    sim::execution_options options;
    options.local_memory_limit = local_bytes;
    CAPTURE(seed);
    try {
      const auto result = sim::execute(runs.program, {}, options);
      REQUIRE(end.finished());
      CHECK(runs.same_global(result));
      ++finished;
    } catch (const raptor::error& e) {
      const std::string text = raptor::describe(e);
      const std::string place = "core 0, instruction ";
      REQUIRE(e.place().rfind(place, 0) == 0);
      const auto index = std::stoul(e.place().substr(place.size()));
      if (has(text, "overlap it partly")) continue;  // a rule that only the executor has: see vector_unit.hpp
      REQUIRE(end.state == sim::run_state::faulted);
      CHECK(end.index == index);
      CHECK_MESSAGE(reports(text, end.what), text);
      ++faulted;
    }
  }
  CHECK(finished > 500);
  CHECK(faulted > 500);
}

TEST_CASE("three cores: random programs end alike") {
  int finished = 0, deadlocked = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    generator g(seed);
    std::vector<stream> streams;
    for (int c = 0; c < 3; ++c) streams.push_back(g.start());
    // One global order of messages and signals, as compiled programs have it, or else a random one.
    const bool ordered = g.below(3) != 0;
    for (int k = 0; k < 6; ++k) {
      const int from = g.below(3), to = (from + 1 + g.below(2)) % 3;
      const auto reg = [&] { return static_cast<std::uint8_t>(g.below(8)); };
      if (ordered && g.below(2) == 0) {
        streams[static_cast<std::size_t>(from)].push_back(b::send(reg(), to, 8));
        streams[static_cast<std::size_t>(to)].push_back(b::recv(reg(), from, 8));
      } else if (ordered) {
        streams[static_cast<std::size_t>(from)].push_back(b::sync(from, to));
        streams[static_cast<std::size_t>(to)].push_back(b::wait(from, 1));
      } else {
        streams[static_cast<std::size_t>(from)].push_back(g.below(2) == 0 ? b::send(reg(), to, 8) : b::recv(reg(), to, 8));
      }
      auto i = g.one(3);
      while (raptor::sim::is_communication(i.op) || i.op == opcode::st) i = g.one(3);
      streams[static_cast<std::size_t>(g.below(3))].push_back(i);
    }
    // Disjoint results behind all that is loaded, so that no order of loads and stores matters.
    for (std::size_t c = 0; c < 3; ++c) {
      for (auto& i : streams[c])
        if (i.op == opcode::ld || i.op == opcode::sld) i = b::ld(8, 8, 48);
      streams[c].push_back(b::sldi(8, static_cast<std::int32_t>(64 + 20 * c)));
      streams[c].push_back(b::sldi(9, 0));
      streams[c].push_back(b::st(8, 9, 20));
    }
    pair_of_runs<3> runs(g, streams);
    const auto end = runs.machine.run();
    sim::execution_options options;
    options.local_memory_limit = local_bytes;
    CAPTURE(seed);
    try {
      const auto result = sim::execute(runs.program, {}, options);
      if (end.what == sim::fault::overshoot) continue;  // whether a wait sees too many signals depends on the order of cores
      REQUIRE(end.finished());
      CHECK(runs.same_global(result));
      ++finished;
    } catch (const raptor::error& e) {
      const std::string text = raptor::describe(e);
      if (has(text, "overlap it partly") || has(text, "overshoot") || end.what == sim::fault::overshoot) continue;
      REQUIRE_FALSE(end.finished());
      if (e.code() != raptor::error_code::deadlock) continue;  // of several faults in several cores either may come first
      CHECK(end.state == sim::run_state::deadlocked);
      ++deadlocked;
    }
  }
  CHECK(finished > 500);
  CHECK(deadlocked > 200);
}
