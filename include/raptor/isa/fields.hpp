#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "raptor/isa/opcode.hpp"

/// What the rows of the instruction table are made of: the fields of the record, what a field can mean, and the
/// run-time view of a row. The rows themselves are in isa/table.hpp.
namespace raptor::isa {

/// The fields of the binary record that carry operands, in record order.
enum class slot : std::uint8_t { rd, r1, word0, word1, word2, word3 };
inline constexpr std::size_t slot_count = 6;

/// Where the bytes of a field are in the 20-byte record (ARTIFACTS, core_N.pim).
struct byte_range {
  std::size_t offset = 0;
  std::size_t size = 0;
};
inline constexpr std::size_t record_size = 20;
inline constexpr byte_range opcode_bytes{0, 1};
inline constexpr byte_range flags_bytes{3, 1};
inline constexpr std::array<byte_range, slot_count> slot_bytes{{{1, 1}, {2, 1}, {4, 4}, {8, 4}, {12, 4}, {16, 4}}};

/// What a field of one instruction means.
enum class role : std::uint8_t {
  unused,          ///< zero
  result,          ///< register that receives a number
  number,          ///< register whose value is a number
  local_target,    ///< register with the local address that is written
  local_source,    ///< register with a local address that is read
  global_target,   ///< register with the global address that is written
  global_source,   ///< register with a global address that is read
  repeated,        ///< repeats the register in r1 (rd of send)
  stride,          ///< register whose value is a stride in elements
  bound,           ///< register whose value is a bound: for 32-bit floats its bit pattern
  immediate,       ///< a number
  fill_byte,       ///< a number, of which the low 8 bits are stored
  offset_select,   ///< bit 0 adds the offset to rd, bit 1 to r1, bit 2 to r2
  offset_value,    ///< the offset, in elements for vector instructions, else in bytes
  global_offset,   ///< bytes that are always added to a global address (sld)
  length,          ///< elements
  length_bytes,    ///< bytes, named a length (lldi, lmv)
  size_bytes,      ///< bytes
  peer_core,       ///< the core at the other end
  event,           ///< event register
  expected,        ///< count that an event register must reach
  weight_bits,     ///< mbiw: bits of a weight
  relu,            ///< 1: results clamp at zero
  group,           ///< array group of the core
  input_bits,      ///< ibiw
  output_bits      ///< obiw
};
inline constexpr std::size_t role_count = 26;

/// Name, in the text form and in pimsim-nn's JSON form, of each role that is not a register. Registers are positional in the text
/// form, and named by their field in JSON: rd, rs1, rs2.
struct role_info {
  role value;
  std::string_view name;         ///< as the reference prints it
  std::string_view key;          ///< text form; empty: a register
  std::string_view json;         ///< JSON form; empty: a register
  bool is_register;
};
inline constexpr std::array<role_info, role_count> roles{{
    {role::unused, "-", "", "", false},
    {role::result, "result register", "", "", true},
    {role::number, "source register", "", "", true},
    {role::local_target, "local address register, written", "", "", true},
    {role::local_source, "local address register, read", "", "", true},
    {role::global_target, "global address register, written", "", "", true},
    {role::global_source, "global address register, read", "", "", true},
    {role::repeated, "the same register as r1", "", "", true},
    {role::stride, "stride register, elements", "", "", true},
    {role::bound, "bound register", "", "", true},
    {role::immediate, "immediate", "imm", "imm", false},
    {role::fill_byte, "immediate, low byte", "imm", "imm", false},
    {role::offset_select, "offset select", "offset_select", "offset_select", false},
    {role::offset_value, "offset value", "offset_value", "offset_value", false},
    {role::global_offset, "offset, bytes", "offset_value", "offset_value", false},
    {role::length, "length, elements", "len", "len", false},
    {role::length_bytes, "length, bytes", "len", "len", false},
    {role::size_bytes, "size, bytes", "size", "size", false},
    {role::peer_core, "peer core", "core", "core", false},
    {role::event, "event register", "event", "event_register", false},
    {role::expected, "expected count", "value", "wait_value", false},
    {role::weight_bits, "bits of a weight", "mbiw", "mbiw", false},
    {role::relu, "clamp at zero", "relu", "relu", false},
    {role::group, "array group", "group", "group", false},
    {role::input_bits, "bits of an input", "ibiw", "ibiw", false},
    {role::output_bits, "bits of an output", "obiw", "obiw", false},
}};

[[nodiscard]] constexpr const role_info& info(role r) noexcept { return roles[static_cast<std::size_t>(r)]; }
[[nodiscard]] constexpr bool is_register(role r) noexcept { return info(r).is_register; }
/// A register whose value is an address, so that an offset can apply to it.
[[nodiscard]] constexpr bool is_address(role r) noexcept {
  return r == role::local_target || r == role::local_source || r == role::global_target || r == role::global_source;
}

/// The memories that an instruction touches; a set of bits.
enum class memory : std::uint8_t { none = 0, reads_local = 1, writes_local = 2, reads_global = 4, writes_global = 8 };
[[nodiscard]] constexpr memory operator|(memory a, memory b) noexcept {
  return static_cast<memory>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
[[nodiscard]] constexpr bool has(memory set, memory part) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(part)) == static_cast<unsigned>(part);
}

/// What the elements of an instruction are.
enum class element_class : std::uint8_t {
  none,          ///< no elements
  bytes,         ///< bytes, whatever setbw said
  words,         ///< 32-bit integers
  setbw_any,     ///< the widths that setbw chose, floats or integers
  setbw_integer  ///< the widths that setbw chose, integers only
};

/// Whether emitted programs contain an instruction (ISA.md, constraints of the timing simulator).
enum class emission : std::uint8_t {
  standard,   ///< may be emitted
  extension,  ///< functional only: timing does not support it
  never       ///< broken or undefined in the timing simulator
};

/// The run-time view of one row of the table.
struct instruction_info {
  opcode op = opcode::nop;
  std::string_view mnemonic;
  isa::unit unit = isa::unit::none;
  std::array<role, slot_count> fields{};
  memory touches = memory::none;
  element_class elements = element_class::none;
  emission emitted = emission::standard;
  std::string_view effect;  ///< one sentence for the reference

  [[nodiscard]] constexpr role operator[](slot s) const noexcept { return fields[static_cast<std::size_t>(s)]; }
};

/// The value of a field of a record.
[[nodiscard]] constexpr std::int32_t get(const instruction& i, slot s) noexcept {
  switch (s) {
    case slot::rd: return i.rd;
    case slot::r1: return i.r1;
    case slot::word0: return i.word0;
    case slot::word1: return i.word1;
    case slot::word2: return i.word2;
    case slot::word3: return i.word3;
  }
  return 0;
}

/// Stores a field. Returns false, and stores nothing, where the value does not fit the field (rd, r1: 0 to 255).
constexpr bool set(instruction& i, slot s, std::int32_t value) noexcept {
  if (s == slot::rd || s == slot::r1) {
    if (value < 0 || value > 255) return false;
    (s == slot::rd ? i.rd : i.r1) = static_cast<std::uint8_t>(value);
    return true;
  }
  switch (s) {
    case slot::word0: i.word0 = value; break;
    case slot::word1: i.word1 = value; break;
    case slot::word2: i.word2 = value; break;
    default: i.word3 = value; break;
  }
  return true;
}

/// Names of the record's fields: rd, r1, word0 … word3.
inline constexpr std::array<std::string_view, slot_count> slot_names{"rd", "r1", "word0", "word1", "word2", "word3"};
inline constexpr std::array<slot, slot_count> all_slots{slot::rd, slot::r1, slot::word0, slot::word1, slot::word2, slot::word3};

[[nodiscard]] constexpr std::string_view name(unit u) noexcept {
  switch (u) {
    case unit::none: return "none";
    case unit::scalar: return "scalar";
    case unit::matrix: return "matrix";
    case unit::vector: return "vector";
    case unit::transfer: return "transfer";
  }
  return "unknown";
}

}  // namespace raptor::isa
