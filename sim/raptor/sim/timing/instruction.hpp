#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "raptor/isa/json_write.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/support/error.hpp"

/// What the timing model needs to know of an instruction. The unit of an opcode comes from the instruction table; its byte widths,
/// which the table's semantics do not determine, stand beside it here. Source: TIMING.md 2, 4, 7.
namespace raptor::sim::timing {

/// Where an instruction goes after decode.
enum class route : std::uint8_t { none, scalar, widths, matrix, vector, transfer };

/// The width in bytes by which an operand of a vector instruction is multiplied.
enum class width : std::uint8_t { none, input, output };

/// The timing row of an opcode.
struct traits {
  route to = route::none;
  bool pair_read = false;        ///< reads (rd, rs1) as register pairs: their single values read as 0 (TIMING.md 2)
  // Vector instructions only:
  std::uint8_t sources = 0;      ///< operands whose hazard range is checked
  bool second_access = false;    ///< reads two operands from memory
  bool offset_r1 = false;        ///< the source offsets apply
  bool offset_r2 = false;
  width offset_rd = width::none; ///< scale of the destination offset; none: there is no such offset
  width range_rd = width::none;  ///< scale of the destination's hazard range; none: no range at all
  bool one_result = false;       ///< the hazard range covers one element, whatever len says
  width stored = width::input;   ///< scale of the bytes written
};

namespace detail {
[[nodiscard]] constexpr traits traits_of(isa::opcode op) {
  using enum isa::opcode;
  const isa::instruction_info& entry = isa::infos[static_cast<std::size_t>(op)];
  traits t;
  switch (entry.unit) {
    case isa::unit::none: t.to = route::none; break;
    case isa::unit::scalar: t.to = route::scalar; break;
    case isa::unit::matrix: t.to = op == setbw ? route::widths : route::matrix; break;
    case isa::unit::vector: t.to = route::vector; break;
    case isa::unit::transfer: t.to = route::transfer; break;
  }
  t.pair_read = isa::has(entry.touches, isa::memory::reads_global) || isa::has(entry.touches, isa::memory::writes_global);
  if (t.to != route::vector || op == vsoftmax) return t;

  const bool two_operands = entry[isa::slot::word0] == isa::role::local_source;
  const bool bounded = entry[isa::slot::word0] == isa::role::bound;
  // Quirk 8: vmv has no ranges; vrsu and vrsl treat the value of their bound register as an address.
  t.sources = op == vmv ? 0 : two_operands || bounded ? 2 : 1;
  t.second_access = two_operands;
  t.offset_r1 = op != vmv;
  t.offset_r2 = two_operands || op == vrelu || op == vtanh || op == vsigm;
  const bool keeps_width = op == vvadd || op == vvsub || op == vvmax;
  t.offset_rd = op == vvdmul || op == vavg || op == vmv ? width::none : keeps_width || op == vrelu ? width::input : width::output;
  t.range_rd = op == vmv ? width::none : keeps_width ? width::input : width::output;
  t.one_result = op == vavg;
  // Quirk 15: the instructions with one result write len elements of the input width.
  const bool converts = op == vvmul || op == vvsll || op == vvsra || op == vtanh || op == vsigm || op == vrsu || op == vrsl;
  t.stored = converts ? width::output : width::input;
  return t;
}
}  // namespace detail

/// The timing rows, indexed by opcode.
inline constexpr auto traits_table = [] {
  std::array<traits, isa::opcode_count> rows{};
  for (std::size_t op = 0; op < rows.size(); ++op) rows[op] = detail::traits_of(static_cast<isa::opcode>(op));
  return rows;
}();
[[nodiscard]] constexpr const traits& traits_of(isa::opcode op) noexcept { return traits_table[static_cast<std::size_t>(op)]; }

/// One instruction as the model executes it: 32 bytes. All that pimsim-nn's JSON form can say, which is more than a binary record.
struct instruction {
  isa::opcode op = isa::opcode::nop;
  std::uint8_t rd = 0, rs1 = 0, rs2 = 0;
  std::int32_t length = 0;        ///< len: elements, or bytes of lldi and lmv
  std::int32_t size = 0;          ///< bytes of ld, st, send and recv; of lmv only its hazard range (quirk 8)
  std::int32_t target_offset = 0; ///< added to rd: by the select bit
  std::int32_t source_offset1 = 0; ///< added to rs1 and rs2: by bits of the value itself (quirk 2)
  std::int32_t source_offset2 = 0;
  std::int32_t a = 0;             ///< imm; mbiw; ibiw; peer core
  std::int32_t b = 0;             ///< array group; obiw; event register
  std::int32_t c = 0;             ///< awaited count
};

/// The instruction of a record in the wide form. Register numbers must be valid (see check_instruction).
[[nodiscard]] constexpr instruction make_instruction(const isa::json_fields& f) noexcept {
  instruction i;
  i.op = f.op;
  i.rd = static_cast<std::uint8_t>(f.rd);
  i.rs1 = static_cast<std::uint8_t>(f.rs1);
  i.rs2 = static_cast<std::uint8_t>(f.rs2);
  i.length = f.len;
  i.size = f.size;
  i.target_offset = (f.offset_select & 1) != 0 ? f.offset_value : 0;
  i.source_offset1 = (f.offset_value & 2) != 0 ? f.offset_value : 0;
  i.source_offset2 = (f.offset_value & 4) != 0 ? f.offset_value : 0;
  switch (f.op) {
    case isa::opcode::setbw: i.a = f.ibiw, i.b = f.obiw; break;
    case isa::opcode::mvmul: i.a = f.mbiw, i.b = f.group; break;
    case isa::opcode::send:
    case isa::opcode::recv: i.a = f.core; break;
    case isa::opcode::sync: i.a = f.core, i.b = f.event_register; break;
    case isa::opcode::wait: i.b = f.event_register, i.c = f.wait_value; break;
    default: i.a = f.imm; break;
  }
  return i;
}

/// The wide form of a binary record as pimsim-nn reads it (TIMING.md 14.4): sadd, ssub and smul lose their second register, and a
/// send's core is not a register. Requires a valid opcode.
[[nodiscard]] constexpr isa::json_fields read_binary(const isa::instruction& r) noexcept {
  isa::json_fields f;
  f.op = r.op;
  f.rd = r.rd;
  f.rs1 = r.r1;
  const traits& t = traits_of(r.op);
  switch (t.to) {
    case route::none: break;
    case route::scalar: f.imm = r.word0; break;
    case route::widths: f.ibiw = r.word1, f.obiw = r.word2; break;
    case route::matrix: f.mbiw = r.word0, f.relu = r.word1, f.group = r.word2; break;
    case route::vector: f.rs2 = r.word0, f.offset_select = r.word1, f.offset_value = r.word2, f.len = r.word3; break;
    case route::transfer: {
      using enum isa::opcode;
      f.offset_select = r.word1;
      f.offset_value = r.word2;
      (r.op == lldi || r.op == lmv ? f.len : f.size) = r.word3;
      if (r.op == send || r.op == recv || r.op == sync) f.core = r.word0;
      if (r.op == lldi) f.imm = r.word0;
      if (r.op == wait || r.op == sync) f.event_register = r.word1;
      if (r.op == wait) f.wait_value = r.word2;
      break;
    }
  }
  return f;
}

/// Refuses what pimsim-nn leaves undefined (TIMING.md 15): nop, register and event numbers beyond 31, weights of no width, and
/// negative widths and sizes. Errors: malformed with `place`. O(1).
inline void check_instruction(const isa::json_fields& f, const auto& place) {
  const auto refuse = [&](const std::string& what) {
    throw error(error_code::malformed, std::string(isa::mnemonic(f.op)) + ": " + what, place());
  };
  using enum isa::opcode;
  if (f.op == nop) refuse("the time of this instruction is undefined");
  const auto is_register = [](std::int32_t r) { return r >= 0 && r < isa::register_count; };
  if (!is_register(f.rd) || !is_register(f.rs1) || !is_register(f.rs2)) refuse("a register number is outside 0..31");
  if ((f.op == wait || f.op == sync) && (f.event_register < 0 || f.event_register >= isa::event_count)) refuse("the event register is outside 0..31");
  if (f.op == mvmul && f.mbiw <= 0) refuse("mbiw is " + std::to_string(f.mbiw) + ", but must be positive");
  if (f.op == setbw && (f.ibiw < 0 || f.obiw < 0)) refuse("a width is negative");
  const route to = traits_of(f.op).to;
  if ((to == route::vector || f.op == lldi || f.op == lmv) && f.len < 0) refuse("the length is negative");
  if (to == route::transfer && f.op != wait && f.op != sync && f.size < 0) refuse("the size is negative");
}

/// The stream of one core and its array groups: the number of crossbars of each.
struct core_stream {
  std::int64_t id = 0;
  std::vector<instruction> instructions;
  std::vector<std::int64_t> groups;
};

/// The cores of a program that exist, ascending ids.
struct program {
  std::vector<core_stream> cores;
  [[nodiscard]] std::size_t instruction_count() const noexcept {
    std::size_t count = 0;
    for (const auto& core : cores) count += core.instructions.size();
    return count;
  }
  /// Whether any core has an instruction; a program without has no meaningful time.
  [[nodiscard]] bool is_active() const noexcept { return instruction_count() != 0; }
};

}  // namespace raptor::sim::timing
