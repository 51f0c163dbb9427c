#pragma once

#include <cstdint>
#include <limits>

#include "raptor/sim/timing_model/program.hpp"
#include "raptor/target/configuration.hpp"

/// Decoded unit instructions and the local memory that they read and write (TIMING 2 and 4).
namespace raptor::sim::timing {

/// A closed range of local memory. Where an instruction has none: one that overlaps nothing.
struct range {
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = std::numeric_limits<std::int64_t>::min();
};
/// Ranges that merely touch do conflict (quirk 6).
[[nodiscard]] constexpr bool overlap(const range& a, const range& b) noexcept { return !(a.last < b.first || a.first > b.last); }

/// A decoded unit instruction on its way through dispatch, the reorder buffer and a unit. One line of a cache.
struct alignas(64) flight {
  range read, write;
  std::int64_t second_read = std::numeric_limits<std::int64_t>::max();  ///< where a second range as long as `read` begins
  std::int32_t pc = 0;                                                   ///< place in the stream
  std::int32_t input_bits = 0, output_bits = 0;
  std::uint32_t next = 0;  ///< behind it in the reorder buffer
  kind unit = kind::none;
  bool recorded = false;  ///< in the reorder buffer
  bool open = false;      ///< in the reorder buffer and not committed
};
static_assert(sizeof(flight) == 64);

/// Write-write overlap is never detected (quirk 7).
[[nodiscard]] constexpr bool conflict(const flight& a, const flight& b) noexcept {
  const auto second = [](const flight& f) {  // modulo 2^64: none stays none
    const auto length = static_cast<std::uint64_t>(f.read.last) - static_cast<std::uint64_t>(f.read.first);
    return range{f.second_read, static_cast<std::int64_t>(static_cast<std::uint64_t>(f.second_read) + length)};
  };
  return overlap(a.write, b.read) || overlap(b.write, a.read) || overlap(a.write, second(b)) || overlap(b.write, second(a));
}

/// ceil(bits / 8).
[[nodiscard]] constexpr std::int64_t bytes_of(std::int32_t bits) noexcept { return (static_cast<std::int64_t>(bits) + 7) >> 3; }

/// Values of the three registers that an instruction names.
struct operand_values {
  std::int32_t rd = 0, rs1 = 0, rs2 = 0;
};

/// Ranges that an instruction reads and writes (TIMING 2 and 4, quirks 2, 3 and 8).
inline void find_hazards(flight& x, const timed_instruction& i, const operand_values& values, const target::matrix_configuration& m,
                         const std::vector<std::int32_t>& groups) {
  using isa::opcode;
  const std::int64_t ib = bytes_of(x.input_bits), ob = bytes_of(x.output_bits), n = i.length;
  const std::int64_t od = (i.select & 1) != 0 ? i.value : 0, o1 = (i.value & 2) != 0 ? i.value : 0, o2 = (i.value & 4) != 0 ? i.value : 0;
  const std::int64_t rd = values.rd, r1 = values.rs1, r2 = values.rs2;
  const auto at = [](std::int64_t from, std::int64_t bytes) { return range{from, from + bytes}; };
  if (x.unit == kind::transfer) {
    const std::int64_t a = r1 + o1, d = rd + od;
    switch (i.op) {
      case opcode::ld: case opcode::recv: x.write = at(d, n); break;
      case opcode::st: case opcode::send: x.read = at(a, n); break;
      case opcode::lldi: x.write = at(d, 1); break;
      case opcode::lmv: x.read = at(a, i.immediate), x.write = at(d, i.immediate); break;
      default: break;
    }
  } else if (x.unit == kind::vector) {
    const bool no_second_offset = i.op == opcode::vavg || i.op == opcode::vrsu || i.op == opcode::vrsl;
    const range a = at(r1 + ib * o1, n * ib);
    const std::int64_t second = no_second_offset ? r2 : r2 + ib * o2;
    switch (i.op) {
      case opcode::vrelu: x.read = a, x.write = at(rd + ib * od, n * ob); break;
      case opcode::vtanh: case opcode::vsigm: x.read = a, x.write = at(rd + ob * od, n * ob); break;
      case opcode::vavg: x.read = a, x.write = at(rd, ob); break;
      case opcode::vmv: break;
      case opcode::vvadd: case opcode::vvsub: case opcode::vvmax: x.read = a, x.second_read = second, x.write = at(rd + ib * od, n * ib); break;
      case opcode::vvdmul: x.read = a, x.second_read = second, x.write = at(rd, n * ob); break;
      default: x.read = a, x.second_read = second, x.write = at(rd + ob * od, n * ob); break;
    }
  } else if (x.unit == kind::matrix) {
    x.read = at(r1, m.xbar_size[0] * ib);
    x.write = at(rd, m.xbar_size[1] * m.cell_precision / i.immediate * groups[static_cast<std::size_t>(i.select)] * ob);
  }
}

}  // namespace raptor::sim::timing
