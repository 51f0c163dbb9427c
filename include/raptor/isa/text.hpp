#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/isa/digits.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/support/error.hpp"

/// The text form: one line an instruction, registers first, then named numbers:
///
///     sldi r3, imm=4096
///     mvmul r3, r4, mbiw=32, relu=0, group=2
///     send r5, core=7, size=256
///
/// An offset is written where it is not zero. A register that only repeats another (rd of send) is not written. What the table leaves
/// unused but a record fills anyway is written under the record's own field name (`rd=5`, `word3=1`), so that every record with a
/// valid opcode reads back as it was. Numbers are decimal, or 0x and a 32-bit pattern. `#` starts a comment; an
/// index `12:` before an instruction is skipped.
namespace raptor::isa {

namespace text_parts {

[[nodiscard]] constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

[[nodiscard]] constexpr std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// A number that stands for zero where it is left out.
[[nodiscard]] constexpr bool is_optional(role r) noexcept {
  return r == role::offset_select || r == role::offset_value || r == role::global_offset;
}

/// A register that stands as rN in the line.
[[nodiscard]] constexpr bool is_positional(role r) noexcept { return is_register(r) && r != role::repeated; }

[[noreturn]] inline void fail(std::string message, std::string_view line, std::string place, std::string hint = {}) {
  throw error(error_code::malformed, std::move(message) + " in '" + std::string(line.substr(0, 100)) + "'", std::move(place),
              std::move(hint));
}

}  // namespace text_parts

/// Appends the line of an instruction, without a line end. Requires a valid opcode (else error_code::malformed).
constexpr void append_text(std::string& out, const instruction& i) {
  const auto& entry = info(i);
  out.append(entry.mnemonic);
  bool first = true;
  const auto separate = [&] {
    out.append(first ? " " : ", ");
    first = false;
  };
  const auto named = [&](std::string_view key, std::int32_t value) {
    separate();
    out.append(key);
    out.push_back('=');
    append_number(out, value);
  };
  for (const slot s : all_slots)
    if (text_parts::is_positional(entry[s])) {
      separate();
      out.push_back('r');
      append_number(out, get(i, s));
    }
  for (const slot s : all_slots) {
    const role meaning = entry[s];
    const std::int32_t value = get(i, s);
    if (text_parts::is_positional(meaning)) continue;
    if (meaning == role::repeated ? i.rd != i.r1 : meaning == role::unused && value != 0)
      named(slot_names[static_cast<std::size_t>(s)], value);
    else if (!info(meaning).key.empty() && (value != 0 || !text_parts::is_optional(meaning)))
      named(info(meaning).key, value);
  }
}

[[nodiscard]] constexpr std::string to_text(const instruction& i) {
  std::string line;
  append_text(line, i);
  return line;
}

/// Reads one line. Throws error_code::malformed, with `place`, for an unknown operation or operand, a missing or repeated operand, and a
/// number that its field cannot hold. The values themselves are isa/check.hpp's to judge.
[[nodiscard]] constexpr instruction parse_text(std::string_view line, std::string_view place = {}) {
  using text_parts::fail;
  const std::string_view whole = line;
  line = text_parts::trim(line.substr(0, line.find('#')));
  if (const auto colon = line.find(':'); colon != line.npos && parse_number(line.substr(0, colon)))
    line = text_parts::trim(line.substr(colon + 1));
  if (line.empty()) fail("no instruction", whole, std::string(place));

  std::size_t length = 0;
  while (length < line.size() && !text_parts::is_space(line[length])) ++length;
  const auto& entry = lookup(line.substr(0, length), std::string(place));
  line = text_parts::trim(line.substr(length));

  instruction result;
  result.op = entry.op;
  std::array<bool, slot_count> given{};
  const auto store = [&](slot s, std::string_view number) {
    const auto value = parse_number(number);
    if (!value) fail("'" + std::string(number.substr(0, 40)) + "' is not a 32-bit number", whole, std::string(place));
    if (given[static_cast<std::size_t>(s)]) fail("an operand is given twice", whole, std::string(place));
    if (!set(result, s, *value)) fail("a register field holds 0 to 255", whole, std::string(place));
    given[static_cast<std::size_t>(s)] = true;
  };
  /// The field that a name stands for: a role's name, or the record's own name for a field without one.
  const auto find_slot = [&](std::string_view key) -> std::optional<slot> {
    for (const slot s : all_slots) {
      const role meaning = entry[s];
      if (!info(meaning).key.empty() && info(meaning).key == key) return s;
      if ((meaning == role::unused || meaning == role::repeated) && slot_names[static_cast<std::size_t>(s)] == key) return s;
    }
    return std::nullopt;
  };

  while (!line.empty()) {
    const auto comma = line.find(',');
    const auto operand = text_parts::trim(line.substr(0, comma));
    if (comma != line.npos && text_parts::trim(line.substr(comma + 1)).empty())
      fail("an operand is missing after the last comma", whole, std::string(place));
    line = comma == line.npos ? std::string_view{} : text_parts::trim(line.substr(comma + 1));
    if (const auto equals = operand.find('='); equals != operand.npos) {
      const auto key = text_parts::trim(operand.substr(0, equals));
      const auto where = find_slot(key);
      if (!where)
        fail(std::string(entry.mnemonic) + " has no operand '" + std::string(key.substr(0, 40)) + "'", whole, std::string(place),
             "docs/INSTRUCTIONS.md lists the operands");
      store(*where, text_parts::trim(operand.substr(equals + 1)));
    } else if (operand.size() > 1 && operand.front() == 'r') {
      std::size_t next = 0;
      while (next < slot_count && (given[next] || !text_parts::is_positional(entry.fields[next]))) ++next;
      if (next == slot_count) fail(std::string(entry.mnemonic) + " takes fewer registers", whole, std::string(place));
      store(all_slots[next], operand.substr(1));
    } else {
      fail("'" + std::string(operand.substr(0, 40)) + "' is neither a register rN nor name=number", whole, std::string(place));
    }
  }
  for (const slot s : all_slots) {
    const role meaning = entry[s];
    if (given[static_cast<std::size_t>(s)] || meaning == role::unused || text_parts::is_optional(meaning)) continue;
    if (meaning == role::repeated) continue;
    fail(std::string(entry.mnemonic) + " lacks " +
             (is_register(meaning) ? "a register (" + std::string(info(meaning).name) + ")" : std::string(info(meaning).key) + "="),
         whole, std::string(place));
  }
  if (entry[slot::rd] == role::repeated && !given[0]) result.rd = result.r1;
  return result;
}

/// Prints a stream, one line an instruction, with its index where `indices` is set. The result reads back with `assemble`.
[[nodiscard]] constexpr std::string disassemble(std::span<const instruction> program, bool indices = false) {
  std::string text;
  for (std::size_t n = 0; n < program.size(); ++n) {
    if (indices) {
      append_number(text, static_cast<std::int64_t>(n));
      text.append(": ");
    }
    append_text(text, program[n]);
    text.push_back('\n');
  }
  return text;
}

/// Reads a stream: lines, of which blank ones and comments are skipped. Errors as `parse_text`, the place is `name`, line N (from 1).
[[nodiscard]] constexpr std::vector<instruction> assemble(std::string_view text, std::string_view name = "program") {
  std::vector<instruction> program;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
    if (text_parts::trim(line.substr(0, line.find('#'))).empty()) continue;
    std::string place(name);
    place.append(", line ");
    append_number(place, static_cast<std::int64_t>(number));
    program.push_back(parse_text(line, place));
  }
  return program;
}

}  // namespace raptor::isa
