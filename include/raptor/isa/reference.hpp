#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "raptor/isa/digits.hpp"
#include "raptor/isa/json_write.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/isa/text.hpp"

/// The instruction reference as Markdown, from the table alone. docs/INSTRUCTIONS.md is this text; a test compares the two.
namespace raptor::isa {

/// An instruction with a plausible value in every field, for examples and tests. `seed` varies the values; all of them are valid.
[[nodiscard]] constexpr instruction sample(opcode op, std::int32_t seed = 0) {
  const auto& entry = info(op);
  instruction i;
  i.op = op;
  std::int32_t next_register = 3 + seed;
  for (const slot s : all_slots) {
    std::int32_t value = 0;
    switch (entry[s]) {
      case role::unused:
      case role::repeated: break;
      case role::immediate: value = seed % 2 == 0 ? 4096 + seed : -4096 - seed; break;
      case role::fill_byte: value = seed % 256; break;
      case role::offset_select: value = seed % 8; break;
      case role::offset_value:
      case role::global_offset: value = seed % 8 == 0 ? 0 : 16 - seed; break;
      case role::length:
      case role::length_bytes:
      case role::size_bytes: value = 64 + seed; break;
      case role::peer_core: value = 7 + seed; break;
      case role::event: value = (5 + seed) % event_count; break;
      case role::expected: value = 2 + seed; break;
      case role::weight_bits: value = seed % 2 == 0 ? 32 : 8; break;
      case role::relu: value = seed % 2; break;
      case role::group: value = 1 + seed; break;
      case role::input_bits:
      case role::output_bits: value = seed % 2 == 0 ? 32 : 16; break;
      default: value = next_register++ % register_count; break;
    }
    set(i, s, value);
  }
  if (entry[slot::rd] == role::repeated) i.rd = i.r1;
  return i;
}

namespace reference_parts {

constexpr void append_bytes(std::string& out, byte_range r) {
  append_number(out, static_cast<std::int64_t>(r.offset));
  if (r.size > 1) {
    out.append("…");
    append_number(out, static_cast<std::int64_t>(r.offset + r.size - 1));
  }
}

[[nodiscard]] constexpr std::string_view describe(element_class e) noexcept {
  switch (e) {
    case element_class::none: return "none";
    case element_class::bytes: return "bytes";
    case element_class::words: return "32-bit integers, wrapping";
    case element_class::setbw_any: return "as setbw chose: 32-bit floats, or 8- or 16-bit integers";
    case element_class::setbw_integer: return "as setbw chose, integers only; an error on 32-bit floats";
  }
  return "";
}

[[nodiscard]] constexpr std::string describe(memory m) {
  std::string text;
  const auto add = [&](memory part, std::string_view words) {
    if (has(m, part)) text.append(text.empty() ? "" : ", ").append(words);
  };
  add(memory::reads_local, "reads local");
  add(memory::writes_local, "writes local");
  add(memory::reads_global, "reads global");
  add(memory::writes_global, "writes global");
  return text.empty() ? "none" : text;
}

[[nodiscard]] constexpr std::string_view describe(emission e) noexcept {
  switch (e) {
    case emission::standard: return "";
    case emission::extension: return "An extension: functional execution only, unsupported for timing.";
    case emission::never: return "Never emitted: its form or effect is broken or undefined in the timing simulator.";
  }
  return "";
}

/// Several units' sections, in this order.
inline constexpr unit sections[] = {unit::scalar, unit::matrix, unit::vector, unit::transfer, unit::none};

inline constexpr std::string_view head = R"(# Instruction reference

Generated from the table in `include/raptor/isa/table.hpp`; do not edit. To renew it: `raptor-isa-reference > docs/INSTRUCTIONS.md`.

`[r]` is memory at the register's value. Register numbers are 0 to 31, event registers 0 to 31. An offset applies to the address in rd, r1
or r2 where bit 0, 1 or 2 of offset_select is set; it counts elements for vector instructions, else bytes. In the text
form an offset of zero is left out, `#` starts a comment, and numbers are decimal or 0x and a 32-bit pattern.

)";

}  // namespace reference_parts

/// The whole reference, ending with a line end.
[[nodiscard]] constexpr std::string reference() {
  using namespace reference_parts;
  std::string out(head);

  out.append("## The record\n\n20 bytes, little endian, behind a file header of 12 bytes.\n\n| bytes | field |\n|---|---|\n| ");
  append_bytes(out, opcode_bytes);
  out.append(" | opcode |\n");
  for (const slot s : {slot::rd, slot::r1}) {
    out.append("| ");
    append_bytes(out, slot_bytes[static_cast<std::size_t>(s)]);
    out.append(" | ").append(slot_names[static_cast<std::size_t>(s)]).append(" |\n");
  }
  out.append("| ");
  append_bytes(out, flags_bytes);
  out.append(" | flags, 0 |\n");
  for (const slot s : {slot::word0, slot::word1, slot::word2, slot::word3}) {
    out.append("| ");
    append_bytes(out, slot_bytes[static_cast<std::size_t>(s)]);
    out.append(" | ").append(slot_names[static_cast<std::size_t>(s)]).append(" |\n");
  }

  out.append("\n## All instructions\n\n| code | instruction | unit | example | effect |\n|---|---|---|---|---|\n");
  for (const auto& entry : infos) {
    out.append("| ");
    append_number(out, static_cast<std::int64_t>(entry.op));
    out.append(" | [").append(entry.mnemonic).append("](#").append(entry.mnemonic).append(") | ").append(name(entry.unit));
    out.append(" | `").append(to_text(sample(entry.op))).append("` | ").append(entry.effect).append(" |\n");
  }

  for (const unit u : sections) {
    out.append("\n## Unit: ").append(name(u)).append("\n");
    for (const auto& entry : infos) {
      if (entry.unit != u) continue;
      out.append("\n### ").append(entry.mnemonic).append("\n\n");
      out.append("Opcode ");
      append_number(out, static_cast<std::int64_t>(entry.op));
      out.append(". Effect: ").append(entry.effect).append(".");
      if (const auto remark = describe(entry.emitted); !remark.empty()) out.append(" ").append(remark);
      out.append("\n\n- Elements: ").append(describe(entry.elements)).append("\n- Memory: ").append(describe(entry.touches));
      out.append("\n- Text: `").append(to_text(sample(entry.op, 1))).append("`\n- JSON: `");
      out.append(to_json(sample(entry.op, 1))).append("`\n");
      bool any = false;
      for (const slot s : all_slots) any = any || entry[s] != role::unused;
      if (!any) continue;
      out.append("\n| field | bytes | meaning | in text | in JSON |\n|---|---|---|---|---|\n");
      for (const slot s : all_slots) {
        const role meaning = entry[s];
        if (meaning == role::unused) continue;
        out.append("| ").append(slot_names[static_cast<std::size_t>(s)]).append(" | ");
        append_bytes(out, slot_bytes[static_cast<std::size_t>(s)]);
        out.append(" | ").append(info(meaning).name).append(" | ");
        if (is_register(meaning)) out.append(text_parts::is_positional(meaning) ? "rN" : "-");
        else out.append(info(meaning).key);
        out.append(" | ");
        if (meaning == role::offset_select || meaning == role::offset_value) out.append("offset.");
        out.append(json_parts::key_of(entry, s)).append(" |\n");
      }
    }
  }
  return out;
}

}  // namespace raptor::isa
