#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include "raptor/sim/timing/instruction.hpp"
#include "raptor/target/configuration.hpp"

/// What decode makes of a unit instruction: its bytes, and the ranges of local memory that it reads and writes. Source: TIMING.md 4.
namespace raptor::sim::timing {

/// A closed range of local memory, or none. Ranges that merely touch do overlap (quirk 6).
struct closed_range {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  [[nodiscard]] constexpr bool overlaps(const closed_range& o) const noexcept { return last >= o.first && first <= o.last; }
};

/// The local memory that an instruction touches.
struct footprint {
  closed_range read1, read2, written;

  /// Whether an instruction has to wait for an earlier one. Two writes are never compared (quirk 7).
  [[nodiscard]] constexpr bool conflicts_with(const footprint& earlier) const noexcept {
    return written.overlaps(earlier.read1) || written.overlaps(earlier.read2) || read1.overlaps(earlier.written) || read2.overlaps(earlier.written);
  }
};

/// A unit instruction on its way from decode to commit. `serial` numbers the decodings of a core from 1; 0 is no instruction.
struct in_flight {
  std::uint64_t serial = 0;
  const instruction* what = nullptr;
  std::uint32_t pc = 0;
  route to = route::none;
  std::int32_t input_bits = 0;
  std::int32_t input_bytes = 0, output_bytes = 0;
  [[nodiscard]] explicit operator bool() const noexcept { return serial != 0; }
};

/// The values that an instruction reads from the register file; an offer to the scalar unit is told apart by them.
struct register_values {
  std::int32_t rd = 0, rs1 = 0, rs2 = 0;
  std::uint64_t rd_pair = 0, rs1_pair = 0;
  friend constexpr bool operator==(const register_values&, const register_values&) = default;
};

namespace detail {
/// Product that saturates, so that no hostile size overflows. Requires non-negative operands.
[[nodiscard]] constexpr std::int64_t bounded_product(std::int64_t a, std::int64_t b) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 61;
  return b != 0 && a > most / b ? most : a * b;
}
[[nodiscard]] constexpr closed_range range(std::int64_t start, std::int64_t size) noexcept { return {start, start + size}; }
}  // namespace detail

/// The footprint of a unit instruction with the register values and widths of this moment.
/// \param crossbars of the array group that a matrix instruction names
[[nodiscard]] inline footprint make_footprint(const instruction& i, route to, const register_values& v, std::int64_t ib, std::int64_t ob,
                                              const target::matrix_configuration& m, std::int64_t crossbars) noexcept {
  using detail::range;
  footprint f;
  switch (to) {
    case route::vector: {
      const traits& t = traits_of(i.op);
      if (t.range_rd == width::none) break;
      const auto scale = [&](width w) { return w == width::input ? ib : w == width::output ? ob : 0; };
      if (t.sources > 0) f.read1 = range(v.rs1 + (t.offset_r1 ? ib * i.source_offset1 : 0), i.length * ib);
      if (t.sources > 1) f.read2 = range(v.rs2 + (t.offset_r2 ? ib * i.source_offset2 : 0), i.length * ib);
      f.written = range(v.rd + scale(t.offset_rd) * i.target_offset, t.one_result ? ob : i.length * scale(t.range_rd));
      break;
    }
    case route::matrix: {
      const std::int64_t columns = detail::bounded_product(m.xbar_size[1], m.cell_precision) / i.a;
      f.read1 = range(v.rs1, detail::bounded_product(m.xbar_size[0], ib));
      f.written = range(v.rd, detail::bounded_product(detail::bounded_product(columns, crossbars), ob));
      break;
    }
    case route::transfer: {
      const std::int64_t source = std::int64_t{v.rs1} + i.source_offset1;
      const std::int64_t target = std::int64_t{v.rd} + i.target_offset;
      using enum isa::opcode;
      if (i.op == ld || i.op == recv) f.written = range(target, i.size);
      else if (i.op == st || i.op == send) f.read1 = range(source, i.size);
      else if (i.op == lldi) f.written = range(target, 1);  // quirk 8
      else if (i.op == lmv) f.read1 = range(source, i.size), f.written = range(target, i.size);
      break;
    }
    default: break;
  }
  return f;
}

}  // namespace raptor::sim::timing
