// Programs of narrow elements and their 32-bit twins (memory/widen.hpp): the same instructions, and what the twin computes.
#include "support.hpp"

#include <array>

#include "raptor/isa/table.hpp"
#include "raptor/memory/widen.hpp"

using namespace raptor;
using namespace system_test;

namespace {

/// Is a stream that of its twin but for widths, sizes in bytes and addresses? Registers are followed, so that an address is one where it is used
/// as such. Empty: yes; else the first difference.
std::string difference(const std::vector<isa::instruction>& narrow, const std::vector<isa::instruction>& wide, std::int32_t bits) {
  const std::int64_t factor = 32 / bits;
  if (narrow.size() != wide.size()) return std::to_string(narrow.size()) + " and " + std::to_string(wide.size()) + " instructions";
  std::array<std::int64_t, 256> before{}, after{};
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    const auto &a = narrow[i], &b = wide[i];
    const auto where = "instruction " + std::to_string(i) + ", " + std::string(isa::mnemonic(a.op)) + ": ";
    if (a.op != b.op) return where + std::string(isa::mnemonic(b.op));
    for (const auto slot : isa::all_slots) {
      const auto role = isa::info(a)[slot];
      const std::int64_t x = isa::get(a, slot), y = isa::get(b, slot);
      const auto what = where + std::string(isa::roles[static_cast<std::size_t>(role)].name) + " " + std::to_string(x) + " and " + std::to_string(y);
      switch (role) {
        case isa::role::input_bits:
        case isa::role::output_bits:
        case isa::role::weight_bits:
          if (x != bits || y != 32) return what;
          break;
        case isa::role::length_bytes:
        case isa::role::size_bytes:
          if (y != x * factor || x <= 0) return what;
          break;
        case isa::role::immediate:
          if (a.op != isa::opcode::sldi) return where + "an immediate";
          before[static_cast<std::size_t>(a.rd)] = x, after[static_cast<std::size_t>(b.rd)] = y;
          break;
        case isa::role::local_target:
        case isa::role::local_source:
        case isa::role::global_target:
        case isa::role::global_source:
        case isa::role::repeated:
          if (x != y) return what;
          if (after[static_cast<std::size_t>(y)] != factor * before[static_cast<std::size_t>(x)]) return where + "another address";
          break;
        case isa::role::stride:
        case isa::role::bound:
          if (x != y) return what;
          if (after[static_cast<std::size_t>(y)] != before[static_cast<std::size_t>(x)]) return where + "another number";
          break;
        default:
          if (x != y) return what;
      }
    }
  }
  return {};
}

}  // namespace

TEST_CASE("the twin of a narrow program: the same instructions, other widths, sizes and addresses; it computes the network") {
  struct network {
    const char* name;
    std::int64_t size;
  };
  for (const auto& [name, size] : {network{"tiny", 0}, {"lenet5", 0}, {"resnet18", 64}}) {
    const auto m = load_network(name, size);
    for (const std::int64_t bits : {8, 16}) {
      CAPTURE(name);
      CAPTURE(bits);
      auto options = chip(144, 64, 128);
      options.element_bits = bits;
      const auto narrow = compile(m, options).image;
      REQUIRE(narrow.bound.chip.element_bits == bits);
      const auto twin = memory::widen(narrow);
      memory::check_plan(twin);
      CHECK(twin.bound.chip.element_bits == 32);
      CHECK(twin.bound.chip.weight_bits == 32);
      CHECK(twin.bound.chip.weight_columns == narrow.bound.chip.weight_columns);
      CHECK(twin.bound.chip.crossbar_columns * twin.bound.chip.cell_bits / 32 == narrow.bound.chip.weight_columns);
      CHECK(twin.global_bytes == narrow.global_bytes * 32 / bits);
      std::size_t instructions = 0, active = 0;
      for (std::size_t core = 0; core < narrow.bound.cores.size(); ++core) {
        const auto a = emit::stream_of(narrow, core), b = emit::stream_of(twin, core);
        const auto found = difference(a, b, static_cast<std::int32_t>(bits));
        CAPTURE(core);
        CHECK(found == "");
        instructions += a.size(), active += !a.empty();
      }
      CHECK(active > 1);
      CHECK(instructions > 100);
      CHECK(relative_error(m, twin) <= 1e-4);
    }
  }
}

TEST_CASE("a program of 32 bits is its own twin; a twin beyond the address space is refused") {
  const auto m = load_network("tiny", 0);
  const auto same = compile(m, chip(6, 16, 64)).image;
  const auto twin = memory::widen(same);
  CHECK(twin.addresses == same.addresses);
  CHECK(twin.bound.chip.cell_bits == same.bound.chip.cell_bits);
  CHECK(twin.bound.chip.local_memory_bytes == same.bound.chip.local_memory_bytes);

  memory::image large;
  large.bound.chip.element_bits = large.bound.chip.weight_bits = 8;
  large.cores.resize(1);
  large.global_bytes = memory::address_space / 4;
  large.cores[0].bytes = memory::address_space / 4;
  CHECK(memory::widen(large).global_bytes == memory::address_space);
  const auto refused = [](const memory::image& image) {
    CHECK_THROWS_WITH_AS(static_cast<void>(memory::widen(image)), doctest::Contains("the 32-bit twin of the program needs more than the 2147483648 bytes"), error);
  };
  auto global = large, local = large;
  global.global_bytes += 64, local.cores[0].bytes += 64;
  refused(global), refused(local);
}
