// Functional and timing simulation of one program agree on the order of everything that cores tell one another.
#include "cross_core.hpp"

#include "support.hpp"

using namespace raptor;
using namespace timing_test;
namespace build = isa::build;

namespace {

/// Cores that talk to one another at random, without a deadlock: all of it follows one order of events.
sim::loaded_program random_talk(std::uint32_t seed, std::size_t cores, std::size_t events) {
  dice draw(seed);
  sim::loaded_program p;
  p.global_memory.resize(4096);
  p.cores.resize(cores);
  const auto core = [&] { return static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(cores) - 1)); };
  const auto append = [&](std::size_t c, const isa::instruction& i) { p.cores[c].stream.push_back(i); };
  for (std::size_t c = 0; c < cores; ++c) {
    append(c, build::setbw(32, 32));
    append(c, build::sldi(1, 0));
    append(c, build::sldi(2, 2048));
    append(c, build::lldi(1, 1, 4096));
  }
  std::vector<std::int32_t> registers(cores, 0);  // an event register is used once, so that its signals never mix
  for (std::size_t k = 0; k < events; ++k) {
    const auto a = core();
    auto b = core();
    if (b == a) b = (a + 1) % cores;
    for (auto work = draw(0, 3); work > 0; --work) append(a, build::lmv(2, 1, static_cast<std::int32_t>(draw(1, 1500))));
    if (draw(0, 3) != 0 || registers[b] == isa::event_count) {
      const auto bytes = static_cast<std::int32_t>(draw(1, 900));
      append(a, build::send(1, static_cast<std::int32_t>(b), bytes));
      append(b, build::recv(2, static_cast<std::int32_t>(a), bytes));
    } else {
      const auto signals = draw(1, 3);
      for (std::int64_t s = 0; s < signals; ++s) {
        auto from = core();
        if (from == b) from = a;
        append(from, build::sync(registers[b], static_cast<std::int32_t>(b)));
      }
      append(b, build::wait(registers[b]++, static_cast<std::int32_t>(signals)));
    }
  }
  for (std::size_t c = 0; c < cores; ++c) append(c, build::lldi(1, 0, 1));
  return p;
}

}  // namespace

TEST_CASE("messages and signals have the same partners and the same order in both simulators") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    const std::size_t cores = 2 + seed % 7;
    const auto p = random_talk(seed, cores, 60);
    auto chip = hardware(cores, static_cast<double>(1 + seed % 5));
    chip.chip_config.core_config.rob_size = 1 + seed % 4;
    const auto functional = cross_core::functional_events(p);
    CHECK(functional.pairs.size() + functional.waits.size() == 60);
    CHECK(functional == cross_core::timed_events(p, chip));
  }
}
