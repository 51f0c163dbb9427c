#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "raptor/isa/digits.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/support/error.hpp"

/// What a record's fields must satisfy by themselves, from the table's roles. What depends on values at run time (addresses, sizes
/// that meet, events that reach their count) is the simulators' and the verifier's.
namespace raptor::isa {

/// The counts of the chip that bound peer cores and array groups. The default knows no chip and bounds nothing.
struct limits {
  std::int32_t core_count = std::numeric_limits<std::int32_t>::max();
  std::int32_t group_count = std::numeric_limits<std::int32_t>::max();
};

/// A field at fault, and why. `reason` empty: none.
struct field_fault {
  isa::slot slot = slot::rd;
  role meaning = role::unused;
  std::int32_t value = 0;
  std::string_view reason;

  [[nodiscard]] constexpr explicit operator bool() const noexcept { return !reason.empty(); }
};

/// Why a value is not one of `meaning`; empty where it is.
[[nodiscard]] constexpr std::string_view fault_of(role meaning, std::int32_t value, limits chip = {}) noexcept {
  if (is_register(meaning)) return value >= 0 && value < register_count ? "" : "is not a register, there are 0 to 31";
  switch (meaning) {
    case role::offset_select: return value >= 0 && value <= 7 ? "" : "has bits beyond the three that select";
    case role::length:
    case role::length_bytes:
    case role::size_bytes: return value >= 0 ? "" : "is negative";
    case role::peer_core: return value >= 0 && value < chip.core_count ? "" : "is not a core of the chip";
    case role::event: return value >= 0 && value < event_count ? "" : "is not an event register, there are 0 to 31";
    case role::expected: return value >= 0 ? "" : "is negative, a count never reaches it";
    case role::weight_bits: return value >= 1 && value <= 32 ? "" : "is not between 1 and 32";
    case role::relu: return value == 0 || value == 1 ? "" : "is neither 0 nor 1";
    case role::group: return value >= 0 && value < chip.group_count ? "" : "is not an array group of the core";
    case role::input_bits:
    case role::output_bits: return value == 8 || value == 16 || value == 32 ? "" : "is not 8, 16 or 32";
    default: return "";
  }
}

/// The first field at fault in record order. Requires a valid opcode. Fields that the table leaves unused are not judged.
[[nodiscard]] constexpr field_fault find_fault(const instruction& i, limits chip = {}) {
  const auto& entry = info(i);
  for (const slot s : all_slots) {
    const auto reason = fault_of(entry[s], get(i, s), chip);
    if (!reason.empty()) return {s, entry[s], get(i, s), reason};
    if (entry[s] == role::repeated && i.rd != i.r1) return {s, entry[s], get(i, s), "differs from the register in r1"};
  }
  return {};
}

/// True where every field that the table leaves unused is zero, as emitted programs have it.
[[nodiscard]] constexpr bool is_canonical(const instruction& i) {
  const auto& entry = info(i);
  for (const slot s : all_slots)
    if (entry[s] == role::unused && get(i, s) != 0) return false;
  return true;
}

/// Throws error_code::malformed with the mnemonic, the field and its value where `find_fault` finds one, or the opcode is unknown.
constexpr void check(const instruction& i, std::string place = {}, limits chip = {}) {
  if (!is_valid(i.op))
    throw error(error_code::malformed, "unknown opcode " + std::to_string(static_cast<int>(i.op)), std::move(place));
  if (const auto fault = find_fault(i, chip))
    throw error(error_code::malformed,
                std::string(mnemonic(i.op)) + ": " + std::string(info(fault.meaning).name) + " " + std::to_string(fault.value) +
                    " (field " + std::string(slot_names[static_cast<std::size_t>(fault.slot)]) + ") " + std::string(fault.reason),
                std::move(place));
}

/// Checks a stream; the place of an error is `name`, instruction N. O(instructions).
constexpr void check(std::span<const instruction> program, std::string_view name, limits chip = {}) {
  for (std::size_t n = 0; n < program.size(); ++n)
    if (!is_valid(program[n].op) || find_fault(program[n], chip))
      check(program[n], std::string(name) + ", instruction " + std::to_string(n), chip);
}

}  // namespace raptor::isa
