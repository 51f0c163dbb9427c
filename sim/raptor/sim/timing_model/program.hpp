#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "raptor/isa/json_write.hpp"
#include "raptor/isa/table.hpp"

/// Programs as the timing model reads them: only what time and energy depend on.
namespace raptor::sim::timing {

enum class kind : std::uint8_t { none, scalar, widths, matrix, vector, transfer };

/// One instruction. `length` and `size` differ for lmv only (its hazard uses size, which binary programs do not have).
struct timed_instruction {
  isa::opcode op = isa::opcode::nop;
  kind what = kind::none;
  std::uint8_t rd = 0, rs1 = 0, rs2 = 0;
  std::int32_t immediate = 0;  ///< imm, mbiw or core
  std::int32_t length = 0;     ///< elements; bytes for lldi and lmv
  std::int32_t size = 0;       ///< bytes
  std::int32_t select = 0;     ///< offset_select, group, event register or ibiw
  std::int32_t value = 0;      ///< offset_value, wait value or obiw
};

[[nodiscard]] constexpr kind kind_of(isa::opcode op) noexcept {
  if (op == isa::opcode::setbw) return kind::widths;
  switch (isa::info(op).unit) {
    case isa::unit::scalar: return kind::scalar;
    case isa::unit::matrix: return kind::matrix;
    case isa::unit::vector: return kind::vector;
    case isa::unit::transfer: return kind::transfer;
    case isa::unit::none: break;
  }
  return kind::none;
}

/// From the JSON form, which has more fields than a binary record.
[[nodiscard]] inline timed_instruction from_json(const isa::json_fields& j) {
  timed_instruction i;
  i.op = j.op, i.what = kind_of(j.op);
  i.rd = static_cast<std::uint8_t>(j.rd), i.rs1 = static_cast<std::uint8_t>(j.rs1), i.rs2 = static_cast<std::uint8_t>(j.rs2);
  i.length = j.len, i.size = j.size, i.select = j.offset_select, i.value = j.offset_value;
  switch (i.what) {
    case kind::scalar: i.immediate = j.imm; break;
    case kind::widths: i.select = j.ibiw, i.value = j.obiw; break;
    case kind::matrix: i.immediate = j.mbiw, i.select = j.group; break;
    case kind::transfer:
      i.immediate = j.core;
      if (j.op == isa::opcode::wait || j.op == isa::opcode::sync) i.select = j.event_register, i.value = j.wait_value;
      break;
    default: break;
  }
  return i;
}
/// From a binary record (TIMING 14.4).
[[nodiscard]] inline timed_instruction from_record(const isa::instruction& r) {
  timed_instruction i;
  i.op = r.op, i.what = kind_of(r.op), i.rd = r.rd, i.rs1 = r.r1;
  i.select = r.word1, i.value = r.word2;
  switch (i.what) {
    case kind::scalar: i.immediate = r.word0, i.select = 0; break;
    case kind::widths: break;
    case kind::matrix: i.immediate = r.word0, i.select = r.word2, i.value = 0; break;
    case kind::vector: i.rs2 = static_cast<std::uint8_t>(r.word0), i.length = r.word3; break;
    case kind::transfer:
      i.immediate = r.word0;
      if (r.op == isa::opcode::lldi || r.op == isa::opcode::lmv) i.length = r.word3;
      else i.size = r.word3;
      break;
    case kind::none: break;
  }
  return i;
}

/// One core that exists in the program.
struct timed_core {
  std::int64_t id = 0;
  std::vector<timed_instruction> stream;
  std::vector<std::int64_t> groups;  ///< crossbars of each array group
};
struct timed_program {
  std::vector<timed_core> cores;  ///< ascending ids
};

}  // namespace raptor::sim::timing
