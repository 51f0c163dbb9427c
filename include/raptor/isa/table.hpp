#pragma once

#include <boost/hana/ext/std/integral_constant.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "raptor/isa/fields.hpp"
#include "raptor/support/error.hpp"

/// The instruction set as one compile-time table: a Boost.Hana tuple with one row an opcode. Codecs, checks, the reference, the
/// constexpr machine and the executors are all driven by it. Source: ISA.md, ARTIFACTS.md (core_N.pim).
namespace raptor::isa {

/// A field of the record in its meaning for one instruction, as a type.
template <slot Slot, role Role>
struct field_t {
  static constexpr isa::slot slot = Slot;
  static constexpr role meaning = Role;
};

/// A row: the opcode and the fields as types (for compile-time dispatch), the rest as values.
template <opcode Op, class... Fields>
struct row_t {
  static constexpr opcode code = Op;
  using fields_type = boost::hana::tuple<Fields...>;
  instruction_info info;
};

namespace table_parts {

template <role Role> inline constexpr field_t<slot::rd, Role> rd{};
template <role Role> inline constexpr field_t<slot::r1, Role> r1{};
template <role Role> inline constexpr field_t<slot::word0, Role> word0{};
template <role Role> inline constexpr field_t<slot::word1, Role> word1{};
template <role Role> inline constexpr field_t<slot::word2, Role> word2{};
template <role Role> inline constexpr field_t<slot::word3, Role> word3{};

/// Every named field has bytes of its own, none of them the opcode's or the flags'.
template <class... Fields>
consteval bool fields_are_disjoint() {
  std::array<int, record_size> owners{};
  const auto claim = [&](byte_range r) {
    for (std::size_t b = 0; b < r.size; ++b) ++owners.at(r.offset + b);
  };
  claim(opcode_bytes);
  claim(flags_bytes);
  (claim(slot_bytes[static_cast<std::size_t>(Fields::slot)]), ...);
  for (const int count : owners)
    if (count > 1) return false;
  return true;
}

template <opcode Op, class... Fields>
constexpr row_t<Op, Fields...> row(std::string_view mnemonic, unit where, boost::hana::tuple<Fields...>, memory touches,
                                   element_class elements, emission emitted, std::string_view effect) {
  static_assert(fields_are_disjoint<Fields...>(), "two operands of an instruction share bytes of the record");
  instruction_info info{Op, mnemonic, where, {}, touches, elements, emitted, effect};
  ((info.fields[static_cast<std::size_t>(Fields::slot)] = Fields::meaning), ...);
  return {info};
}

inline constexpr auto fields = boost::hana::make_tuple;

// The tail that all vector and most transfer instructions share.
inline constexpr auto select = word1<role::offset_select>;
inline constexpr auto offset = word2<role::offset_value>;
inline constexpr auto len = word3<role::length>;
inline constexpr auto len_bytes = word3<role::length_bytes>;
inline constexpr auto size = word3<role::size_bytes>;
inline constexpr auto target = rd<role::local_target>;
inline constexpr auto source = r1<role::local_source>;

inline constexpr auto two_sources = fields(target, source, word0<role::local_source>, select, offset, len);
inline constexpr auto one_source = fields(target, source, select, offset, len);
inline constexpr auto strided = fields(target, source, word0<role::stride>, select, offset, len);
inline constexpr auto bounded = fields(target, source, word0<role::bound>, select, offset, len);
inline constexpr auto three_registers = fields(rd<role::result>, r1<role::number>, word0<role::number>);
inline constexpr auto register_immediate = fields(rd<role::result>, r1<role::number>, word0<role::immediate>);

inline constexpr auto local = memory::reads_local | memory::writes_local;

}  // namespace table_parts

/// The table, in opcode order.
inline constexpr auto table = [] {
  using namespace table_parts;
  using enum opcode;
  using enum emission;
  constexpr auto none = memory::none;
  constexpr auto any = element_class::setbw_any;
  constexpr auto integer = element_class::setbw_integer;
  constexpr auto words = element_class::words;
  constexpr auto bytes = element_class::bytes;
  constexpr auto no_elements = element_class::none;
  return boost::hana::make_tuple(
      row<nop>("nop", unit::none, fields(), none, no_elements, never, "nothing"),
      row<sldi>("sldi", unit::scalar, fields(rd<role::result>, word0<role::immediate>), none, words, standard, "rd = imm"),
      row<sld>("sld", unit::scalar, fields(rd<role::result>, r1<role::global_source>, word2<role::global_offset>),
               memory::reads_global, words, never, "rd = the 4 bytes of global memory at [r1] + offset"),
      row<sadd>("sadd", unit::scalar, three_registers, none, words, never, "rd = r1 + r2, wrapping"),
      row<ssub>("ssub", unit::scalar, three_registers, none, words, never, "rd = r1 - r2, wrapping"),
      row<smul>("smul", unit::scalar, three_registers, none, words, never, "rd = r1 × r2, wrapping"),
      row<saddi>("saddi", unit::scalar, register_immediate, none, words, standard, "rd = r1 + imm, wrapping"),
      row<smuli>("smuli", unit::scalar, register_immediate, none, words, standard, "rd = r1 × imm, wrapping"),
      row<setbw>("setbw", unit::matrix, fields(word1<role::input_bits>, word2<role::output_bits>), none, no_elements, standard,
                 "inputs and outputs of matrix and vector instructions have these widths from here on"),
      row<mvmul>("mvmul", unit::matrix,
                 fields(target, source, word0<role::weight_bits>, word1<role::relu>, word2<role::group>), local, any, standard,
                 "out[j] = Σ_i in[i] · M[i][j] over all crossbar rows i and all columns j of the group; relu = 1 clamps at 0"),
      row<vvadd>("vvadd", unit::vector, two_sources, local, any, standard, "out[k] = a[k] + b[k]"),
      row<vvsub>("vvsub", unit::vector, two_sources, local, any, standard, "out[k] = a[k] - b[k]"),
      row<vvmul>("vvmul", unit::vector, two_sources, local, any, standard, "out[k] = a[k] · b[k]"),
      row<vvdmul>("vvdmul", unit::vector, two_sources, local, any, standard, "out[0] = Σ_k a[k] · b[k]"),
      row<vvmax>("vvmax", unit::vector, two_sources, local, any, standard, "out[k] = max(a[k], b[k])"),
      row<vvsll>("vvsll", unit::vector, two_sources, local, integer, standard, "out[k] = a[k] shifted left by b[k]"),
      row<vvsra>("vvsra", unit::vector, two_sources, local, integer, standard, "out[k] = a[k] shifted right by b[k], keeping the sign"),
      row<vavg>("vavg", unit::vector, strided, local, any, standard, "out[0] = the mean of a[k · stride], k below len"),
      row<vrelu>("vrelu", unit::vector, one_source, local, any, standard, "out[k] = max(a[k], 0)"),
      row<vtanh>("vtanh", unit::vector, one_source, local, any, standard, "out[k] = tanh(a[k])"),
      row<vsigm>("vsigm", unit::vector, one_source, local, any, standard, "out[k] = 1 / (1 + exp(-a[k]))"),
      row<vsoftmax>("vsoftmax", unit::vector, one_source, local, any, extension, "out = softmax of the len elements of a"),
      row<vmv>("vmv", unit::vector, strided, local, any, standard, "out[k] = a[k · stride]"),
      row<vrsu>("vrsu", unit::vector, bounded, local, any, standard, "out[k] = min(a[k], bound), in the output width"),
      row<vrsl>("vrsl", unit::vector, bounded, local, any, standard, "out[k] = max(a[k], bound), in the output width"),
      row<ld>("ld", unit::transfer, fields(target, r1<role::global_source>, select, offset, size),
              memory::reads_global | memory::writes_local, bytes, standard, "copies size bytes from global to local memory"),
      row<st>("st", unit::transfer, fields(rd<role::global_target>, source, select, offset, size),
              memory::reads_local | memory::writes_global, bytes, standard, "copies size bytes from local to global memory"),
      row<lldi>("lldi", unit::transfer, fields(target, word0<role::fill_byte>, select, offset, len_bytes), memory::writes_local,
                bytes, standard, "sets len bytes to the low byte of imm"),
      row<lmv>("lmv", unit::transfer, fields(target, source, select, offset, len_bytes), local, bytes, standard,
               "copies len bytes inside local memory; the ranges must not overlap"),
      row<send>("send", unit::transfer,
                fields(rd<role::repeated>, source, word0<role::peer_core>, select, offset, size), memory::reads_local, bytes,
                standard, "gives size bytes to the matching recv of the peer; both cores go on when the bytes have arrived"),
      row<recv>("recv", unit::transfer, fields(target, word0<role::peer_core>, select, offset, size), memory::writes_local, bytes,
                standard, "takes size bytes from the matching send of the peer"),
      row<wait>("wait", unit::transfer, fields(word1<role::event>, word2<role::expected>), none, no_elements, standard,
                "blocks until the event register equals value, then sets it to 0; above it is an error"),
      row<sync>("sync", unit::transfer, fields(word0<role::peer_core>, word1<role::event>), none, no_elements, standard,
                "adds 1 to an event register of the target core"));
}();

/// The rows' run-time views, indexed by opcode value.
inline constexpr auto infos = boost::hana::unpack(table, [](const auto&... rows) {
  return std::array<instruction_info, sizeof...(rows)>{rows.info...};
});

[[nodiscard]] constexpr bool is_valid(opcode op) noexcept { return static_cast<int>(op) < opcode_count; }

/// The row of an opcode. Throws error_code::malformed for a value outside the enumeration. O(1).
[[nodiscard]] constexpr const instruction_info& info(opcode op) {
  if (!is_valid(op)) throw error(error_code::malformed, "unknown opcode " + std::to_string(static_cast<int>(op)));
  return infos[static_cast<std::size_t>(op)];
}
[[nodiscard]] constexpr const instruction_info& info(const instruction& i) { return info(i.op); }

/// The mnemonic; "?" for a value outside the enumeration, so that messages can always be written.
[[nodiscard]] constexpr std::string_view mnemonic(opcode op) noexcept {
  return is_valid(op) ? infos[static_cast<std::size_t>(op)].mnemonic : std::string_view{"?"};
}

/// The index of a mnemonic in `infos`, or infos.size(). O(number of opcodes) comparisons of short strings.
[[nodiscard]] constexpr std::size_t find_index(std::string_view mnemonic) noexcept {
  std::size_t index = 0;
  while (index < infos.size() && infos[index].mnemonic != mnemonic) ++index;
  return index;
}

/// The row of a mnemonic, or nullptr.
[[nodiscard]] constexpr const instruction_info* find(std::string_view mnemonic) noexcept {
  const auto index = find_index(mnemonic);
  return index < infos.size() ? &infos[index] : nullptr;
}

/// The row of a mnemonic. Throws error_code::malformed where there is none.
[[nodiscard]] constexpr const instruction_info& lookup(std::string_view mnemonic, std::string place = {}) {
  const auto index = find_index(mnemonic);
  if (index == infos.size())
    throw error(error_code::malformed, "unknown operation '" + std::string(mnemonic.substr(0, 40)) + "'", std::move(place),
                "docs/INSTRUCTIONS.md lists all operations");
  return infos[index];
}

/// Calls `f(std::integral_constant<opcode, op>{})` with the opcode as a constant, so that one template serves all opcodes.
/// Requires is_valid(op) and a result type that is the same for all opcodes.
template <class F>
constexpr auto dispatch(opcode op, F&& f) {
  using result = std::invoke_result_t<F&, std::integral_constant<opcode, opcode::nop>>;
  return [&]<std::size_t... I>(std::index_sequence<I...>) -> result {
    if constexpr (std::is_void_v<result>) {
      static_cast<void>(((static_cast<std::size_t>(op) == I &&
                          (f(std::integral_constant<opcode, static_cast<opcode>(I)>{}), true)) || ...));
    } else {
      result value{};
      static_cast<void>(((static_cast<std::size_t>(op) == I &&
                          (value = f(std::integral_constant<opcode, static_cast<opcode>(I)>{}), true)) || ...));
      return value;
    }
  }(std::make_index_sequence<static_cast<std::size_t>(opcode_count)>{});
}

// Proofs about the encodings: complete, in order, and disjoint.
namespace table_parts {

consteval bool rows_are_the_enumeration() {
  std::size_t next = 0;
  bool ok = true;
  boost::hana::for_each(table, [&](const auto& r) {
    ok = ok && static_cast<std::size_t>(std::remove_cvref_t<decltype(r)>::code) == next && r.info.op == r.code;
    ++next;
  });
  return ok && next == static_cast<std::size_t>(opcode_count);
}

consteval bool mnemonics_are_unique() {
  for (std::size_t a = 0; a < infos.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (infos[a].mnemonic == infos[b].mnemonic) return false;
  return true;
}

/// No instruction names two fields alike in a text form, so that reading back is unambiguous.
consteval bool keys_are_unique() {
  for (const auto& entry : infos)
    for (std::size_t a = 0; a < slot_count; ++a)
      for (std::size_t b = 0; b < a; ++b) {
        const auto& x = isa::info(entry.fields[a]);
        const auto& y = isa::info(entry.fields[b]);
        if (!x.key.empty() && (x.key == y.key || x.json == y.json)) return false;
      }
  return true;
}

consteval bool roles_are_indexed() {
  for (std::size_t r = 0; r < roles.size(); ++r)
    if (static_cast<std::size_t>(roles[r].value) != r) return false;
  return true;
}

/// All fields together with opcode and flags cover the record exactly once.
consteval bool record_is_covered() {
  std::array<int, record_size> owners{};
  const auto claim = [&](byte_range r) {
    for (std::size_t b = 0; b < r.size; ++b) ++owners.at(r.offset + b);
  };
  claim(opcode_bytes);
  claim(flags_bytes);
  for (const auto& r : slot_bytes) claim(r);
  for (const int count : owners)
    if (count != 1) return false;
  return true;
}

static_assert(rows_are_the_enumeration(), "the table has one row an opcode, in the order of the enumeration");
static_assert(mnemonics_are_unique(), "two opcodes share a mnemonic");
static_assert(keys_are_unique(), "two fields of one instruction share a name");
static_assert(roles_are_indexed(), "isa::roles is indexed by the role");
static_assert(record_is_covered(), "opcode, flags and fields cover the record exactly once");

}  // namespace table_parts

}  // namespace raptor::isa
