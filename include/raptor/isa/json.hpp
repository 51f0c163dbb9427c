#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "raptor/isa/json_write.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/support/error.hpp"
#include "raptor/support/json_extent.hpp"

/// Reading the JSON form of instruction streams (core_N.json). The file is parsed as a stream of events, so that millions of
/// instructions need no more memory than their records.
namespace raptor::isa {

namespace json_parts {

/// Receives the parser's events and calls `consume(const json_fields&, index)` for each instruction.
///
/// Accepts: an array of objects; in each, "op" (a string, required), the numbers of json_keys, and "offset" (an object with its two
/// numbers); the last of equal keys counts. Other keys are ignored with all they contain. Numbers of other kinds become integers
/// (fractions are cut); an immediate may also be an unsigned bit pattern.
template <class Consume>
class stream_handler {
 public:
  stream_handler(std::string_view file_name, Consume& consume) : file_name_(file_name), consume_(consume) {}

  using json = nlohmann::json;

  bool null() { return scalar("null"); }
  bool boolean(bool value) { return number(value ? 1 : 0); }
  bool number_integer(json::number_integer_t value) { return number(value); }
  bool number_unsigned(json::number_unsigned_t value) {
    return number(value > std::numeric_limits<std::uint32_t>::max() ? out_of_range : static_cast<std::int64_t>(value));
  }
  bool number_float(json::number_float_t value, const json::string_t&) {
    return number(std::abs(value) < 9e9 ? static_cast<std::int64_t>(value) : out_of_range);
  }
  bool string(json::string_t& value) {
    if (depth_ == 2 && key_ == "op") {
      fields_.op = lookup(value, place()).op;
      has_op_ = true;
      return true;
    }
    return scalar("a string");
  }
  bool binary(json::binary_t&) { return scalar("binary data"); }

  bool start_object(std::size_t) {
    if (depth_ == 0) throw fail("an array of instructions is expected, not an object");
    reject_nested("an object");
    ++depth_;
    if (depth_ == 2) {
      fields_ = {};
      has_op_ = false;
    } else if (depth_ == 3) {
      in_offset_ = key_ == "offset";
    }
    return true;
  }
  bool end_object() {
    --depth_;
    if (depth_ == 1) {
      if (!has_op_) throw fail("an instruction without 'op'");
      consume_(static_cast<const json_fields&>(fields_), index_);
      ++index_;
    } else if (depth_ == 2) {
      in_offset_ = false;
    }
    return true;
  }
  bool start_array(std::size_t) {
    if (depth_ == 1) throw fail("an instruction is an object, not an array");
    if (depth_ == 2 && key_ == "offset") throw fail("field 'offset' is an array, not an object");
    reject_nested("an array");
    ++depth_;
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool key(json::string_t& value) {
    if (depth_ == 2 || (depth_ == 3 && in_offset_)) key_ = value;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception& e) {
    throw error(error_code::malformed, "not valid JSON: " + std::string(e.what()).substr(0, 300), place());
  }

 private:
  /// Larger than every number that a field accepts.
  static constexpr std::int64_t out_of_range = std::numeric_limits<std::int64_t>::max();

  std::string file_name_;
  Consume& consume_;
  std::size_t depth_ = 0;
  std::size_t index_ = 0;
  bool in_offset_ = false;
  bool has_op_ = false;
  std::string key_;
  json_fields fields_;

  [[nodiscard]] std::string place() const { return file_name_ + ", instruction " + std::to_string(index_); }
  [[nodiscard]] error fail(std::string message) const { return error(error_code::malformed, std::move(message), place()); }

  /// The number of the form that the parser is at, of an instruction's own or of its offset; json_keys.size() elsewhere.
  [[nodiscard]] std::size_t current() const {
    if (depth_ == 2) return find_json_key(key_);
    if (depth_ == 3 && in_offset_ && (key_ == "offset_select" || key_ == "offset_value")) return find_json_key(key_);
    return json_keys.size();
  }
  [[nodiscard]] bool at_number() const { return current() != json_keys.size(); }

  void reject_nested(const char* kind) const {
    if (at_number()) throw fail("field '" + key_ + "' is " + kind + ", not a number");
    if (depth_ == 2 && key_ == "op") throw fail(std::string("field 'op' is ") + kind + ", not a string");
  }

  /// A value that is not a number where one is wanted.
  bool scalar(const char* kind) {
    if (depth_ == 0) throw fail(std::string("an array of instructions is expected, not ") + kind);
    if (depth_ == 1) throw fail(std::string("an instruction is an object, not ") + kind);
    if (at_number()) throw fail("field '" + key_ + "' is " + kind + ", not a number");
    if (depth_ == 2 && key_ == "op") throw fail(std::string("field 'op' is ") + kind + ", not a string");
    if (depth_ == 2 && key_ == "offset") throw fail(std::string("field 'offset' is ") + kind + ", not an object");
    return true;
  }

  bool number(std::int64_t value) {
    if (!at_number()) return scalar("a number");
    const auto field = json_keys[current()].field;
    const bool bit_pattern = field == &json_fields::imm && value >= 0 && value <= std::numeric_limits<std::uint32_t>::max();
    if (!bit_pattern && (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()))
      throw fail("field '" + key_ + "' does not fit 32 bits");
    fields_.*(field) = static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
    if (field == &json_fields::rd) fields_.has_rd = true;
    if (field == &json_fields::rs1) fields_.has_rs1 = true;
    return true;
  }
};

}  // namespace json_parts

/// Reads a core_N.json file and calls `consume(const json_fields&, std::size_t index)` for each instruction in order.
///
/// Errors: error_code::malformed with file and instruction index as place; capacity, a token that is too long. Memory: constant, beside the text. Nesting of any depth costs
/// no stack.
template <class Consume>
  requires std::is_invocable_v<Consume&, const json_fields&, std::size_t>
void for_each_json(std::string_view text, std::string_view file_name, Consume consume) {
  check_json_tokens(text, std::string(file_name));
  json_parts::stream_handler<Consume> handler(file_name, consume);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
}

/// Reads a core_N.json file into records. Errors as `for_each_json`; also for a register number that a record cannot hold.
[[nodiscard]] inline std::vector<instruction> parse_json(std::string_view text, std::string_view file_name) {
  std::vector<instruction> program;
  constexpr std::size_t shortest = sizeof(R"({"op":"ld"},)") - 1;
  program.reserve(std::min(static_cast<std::size_t>(std::count(text.begin(), text.end(), '{')), text.size() / shortest + 1));
  for_each_json(text, file_name, [&](const json_fields& fields, std::size_t index) {
    if (fields.rd >= 0 && fields.rd <= 255 && fields.rs1 >= 0 && fields.rs1 <= 255) {
      program.push_back(from_fields(fields));
    } else {
      static_cast<void>(from_fields(fields, std::string(file_name) + ", instruction " + std::to_string(index)));
    }
  });
  return program;
}

}  // namespace raptor::isa
