#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "raptor/isa/digits.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/support/error.hpp"

/// The JSON form of instructions with pimsim-nn's field names, writing side, and the wide record that both sides share. Reading is in
/// isa/json.hpp, which needs the JSON library. Source: ARTIFACTS (last paragraph), TIMING.md 14.3.
namespace raptor::isa {

/// All fields that the JSON form can carry, as pimsim-nn reads them: more than a binary record holds (an lmv can have a size beside its
/// len, an immediate can stand beside rs2). A timing model that has to follow such files uses this; everyone else `instruction`.
struct json_fields {
  opcode op = opcode::nop;
  std::int32_t rd = 0, rs1 = 0, rs2 = 0;
  std::int32_t imm = 0, len = 0, size = 0, core = 0;
  std::int32_t offset_select = 0, offset_value = 0;
  std::int32_t mbiw = 0, relu = 0, group = 0, ibiw = 0, obiw = 0;
  std::int32_t event_register = 0, wait_value = 0;
  bool has_rd = false, has_rs1 = false;

  friend constexpr bool operator==(const json_fields&, const json_fields&) = default;
};

/// One number of the JSON form: its key and where it is kept. The offset's two stand in a nested object for all but scalar
/// instructions.
struct json_key {
  std::string_view key;
  std::int32_t json_fields::*field;
};
inline constexpr std::array<json_key, 16> json_keys{{{"rd", &json_fields::rd},
                                                     {"rs1", &json_fields::rs1},
                                                     {"rs2", &json_fields::rs2},
                                                     {"imm", &json_fields::imm},
                                                     {"len", &json_fields::len},
                                                     {"size", &json_fields::size},
                                                     {"core", &json_fields::core},
                                                     {"offset_select", &json_fields::offset_select},
                                                     {"offset_value", &json_fields::offset_value},
                                                     {"mbiw", &json_fields::mbiw},
                                                     {"relu", &json_fields::relu},
                                                     {"group", &json_fields::group},
                                                     {"ibiw", &json_fields::ibiw},
                                                     {"obiw", &json_fields::obiw},
                                                     {"event_register", &json_fields::event_register},
                                                     {"wait_value", &json_fields::wait_value}}};

/// The index of a key in json_keys, or json_keys.size() where the form has no such number.
[[nodiscard]] constexpr std::size_t find_json_key(std::string_view key) noexcept {
  std::size_t index = 0;
  while (index < json_keys.size() && json_keys[index].key != key) ++index;
  return index;
}

namespace json_parts {

/// The key of a field of an instruction; empty: not part of the JSON form. Registers are named by their field. A vector instruction
/// without a third register still carries rs2, because pimsim-nn reads it.
[[nodiscard]] constexpr std::string_view key_of(const instruction_info& entry, slot s) noexcept {
  if (s == slot::rd) return "rd";
  if (s == slot::r1) return "rs1";
  const role meaning = entry[s];
  if (is_register(meaning)) return "rs2";
  if (meaning == role::unused) return s == slot::word0 && entry.unit == unit::vector ? "rs2" : "";
  return info(meaning).json;
}

}  // namespace json_parts

/// The wide record of an instruction. Requires a valid opcode. Words that the table leaves unused are lost.
[[nodiscard]] constexpr json_fields to_fields(const instruction& i) {
  const auto& entry = info(i);
  json_fields fields;
  fields.op = i.op;
  for (const slot s : all_slots)
    if (const auto key = find_json_key(json_parts::key_of(entry, s)); key != json_keys.size())
      fields.*(json_keys[key].field) = get(i, s);
  fields.has_rd = fields.has_rs1 = true;
  return fields;
}

/// The record of a wide record. A send whose file gives only one of rd and rs1 gets it in both. Throws error_code::malformed, with
/// `place`, for a register number that the record cannot hold.
[[nodiscard]] constexpr instruction from_fields(json_fields fields, std::string_view place = {}) {
  const auto& entry = info(fields.op);
  instruction i;
  i.op = fields.op;
  if (entry[slot::rd] == role::repeated && fields.has_rd != fields.has_rs1)
    (fields.has_rd ? fields.rs1 : fields.rd) = fields.has_rd ? fields.rd : fields.rs1;
  for (const slot s : all_slots) {
    const auto key = find_json_key(json_parts::key_of(entry, s));
    if (key == json_keys.size()) continue;
    const std::int32_t value = fields.*(json_keys[key].field);
    if (!set(i, s, value))
      throw error(error_code::malformed,
                  std::string(entry.mnemonic) + ": " + std::string(json_keys[key].key) + " " + std::to_string(value) +
                      " is not a register, there are 0 to 31",
                  std::string(place));
  }
  return i;
}

/// Appends one object: {"op":"vrelu","rd":1,"rs1":2,"len":64,"offset":{"offset_select":0,"offset_value":0}}.
///
/// All fields that the table names are written, others where they are not zero. Requires a valid opcode.
constexpr void append_json(std::string& out, const instruction& i) {
  const auto& entry = info(i);
  out.append("{\"op\":\"").append(entry.mnemonic).append("\"");
  const auto number = [&](std::string_view key, std::int32_t value) {
    out.append(",\"").append(key).append("\":");
    append_number(out, value);
  };
  for (const slot s : all_slots) {
    const role meaning = entry[s];
    const auto key = json_parts::key_of(entry, s);
    if (key.empty() || meaning == role::offset_select || meaning == role::offset_value) continue;
    if (meaning != role::unused || get(i, s) != 0) number(key, get(i, s));
  }
  if (entry[slot::word1] == role::offset_select) {
    out.append(",\"offset\":{\"offset_select\":");
    append_number(out, i.word1);
    out.append(",\"offset_value\":");
    append_number(out, i.word2);
    out.push_back('}');
  }
  out.push_back('}');
}

[[nodiscard]] constexpr std::string to_json(const instruction& i) {
  std::string text;
  append_json(text, i);
  return text;
}

/// Builds a core_N.json file instruction by instruction: an array, one object a line.
class json_writer {
 public:
  constexpr void push(const instruction& i) {
    text_.append(started_ ? ",\n" : "[\n");
    started_ = true;
    append_json(text_, i);
  }
  /// What has been made so far, for a caller that writes a long stream in parts; the writer forgets it.
  [[nodiscard]] constexpr std::string take() { return std::exchange(text_, {}); }
  /// Bytes that `take` would return.
  [[nodiscard]] constexpr std::size_t pending() const noexcept { return text_.size(); }
  /// The rest of the file; the writer starts anew.
  [[nodiscard]] constexpr std::string finish() {
    text_.append(started_ ? "\n]\n" : "[]\n");
    started_ = false;
    return std::exchange(text_, {});
  }

 private:
  std::string text_;
  bool started_ = false;
};

/// A whole core_N.json file.
[[nodiscard]] constexpr std::string to_json(std::span<const instruction> program) {
  json_writer writer;
  for (const auto& i : program) writer.push(i);
  return writer.finish();
}

}  // namespace raptor::isa
