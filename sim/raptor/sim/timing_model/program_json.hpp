#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/sim/timing_model/program.hpp"
#include "raptor/support/error.hpp"
#include "raptor/support/json_extent.hpp"

/// Programs in JSON (TIMING 14.1 to 14.3), read event by event, so that a program of millions of instructions takes no more memory than
/// its instructions. Faults have the texts of TIMING 14.5; those of an instruction are kept until the text has proved to be JSON.
namespace raptor::sim::timing {

/// A fault that is reported later; `json`: one of the JSON library's own words.
struct json_fault {
  error_code code = error_code::malformed;
  std::string text;
  bool json = false;
};

namespace json_parts {

/// Register numbers that the model can hold; others are undefined in the reference (TIMING 15) and refused.
inline void check_registers(std::int64_t rd, std::int64_t rs1, std::int64_t rs2) {
  for (const auto r : {rd, rs1, rs2})
    if (r < 0 || r >= isa::register_count) throw error(error_code::malformed, "register number " + std::to_string(r) + " is outside 0..31");
}

/// What an instruction's object says under one key.
struct found {
  const char* type = nullptr;  ///< of the value; nullptr: the key is absent
  std::int32_t number = 0;
};

/// Keys of an instruction. The two of the nested offset stand last.
enum key : std::uint8_t { rd, rs1, rs2, imm, len, size, core, mbiw, relu, group, ibiw, obiw, event_register, wait_value, offset_value, offset, inner_value, inner_select, op, unknown };
inline constexpr std::array<std::string_view, 16> key_names{"rd",   "rs1",  "rs2",  "imm",  "len",            "size",       "core",         "mbiw",
                                                            "relu", "group", "ibiw", "obiw", "event_register", "wait_value", "offset_value", "offset"};

/// One object of an instruction list, as far as it has been read.
class instruction_fields {
 public:
  void clear() noexcept {
    all_ = {};
    name_.clear();
  }
  [[nodiscard]] static key find(std::string_view name, bool nested) noexcept {
    if (nested) return name == "offset_value" ? inner_value : name == "offset_select" ? inner_select : unknown;
    if (name == "op") return op;
    for (std::size_t k = 0; k < key_names.size(); ++k)
      if (key_names[k] == name) return static_cast<key>(k);
    return unknown;
  }
  void set(key k, const char* type, std::int32_t number = 0) {
    if (k == unknown) return;
    all_[k] = {type, number};
    if (k == offset) all_[inner_value] = all_[inner_select] = {};
  }
  void set_text(key k, std::string& text) {
    set(k, "string");
    if (k == op) name_.swap(text);
  }
  /// The instruction. Errors: json::exception's words in a json_fault's form, or malformed and unsupported as errors.
  [[nodiscard]] timed_instruction build() const {
    if (all_[op].type == nullptr) throw json_error("[json.exception.out_of_range.403] key 'op' not found");
    if (std::string_view(all_[op].type) != "string") throw wrong_type("string", all_[op].type);
    if (name_ == "vsoftmax") throw error(error_code::unsupported, "pimsim-nn does not support opcode vsoftmax");
    const auto* const info = isa::find(name_);
    if (info == nullptr) throw error(error_code::malformed, "Opcode::_from_string: invalid argument");
    isa::json_fields f;
    f.op = info->op;
    f.rd = number(rd), f.rs1 = number(rs1), f.rs2 = number(rs2);
    switch (info->unit) {
      case isa::unit::scalar: f.imm = number(imm), f.offset_value = number(offset_value); break;
      case isa::unit::matrix: f.mbiw = number(mbiw), f.group = number(group), f.relu = number(relu), f.ibiw = number(ibiw), f.obiw = number(obiw); break;
      case isa::unit::vector: f.len = number(len), read_offset(f); break;
      case isa::unit::transfer:
        f.size = number(size), f.imm = number(imm), f.len = number(len), f.core = number(core);
        read_offset(f);
        f.wait_value = number(wait_value), f.event_register = number(event_register);
        break;
      case isa::unit::none: break;
    }
    check_registers(f.rd, f.rs1, f.rs2);
    return from_json(f);
  }

  /// Words of the JSON library.
  struct json_error : error {
    explicit json_error(std::string text) : error(error_code::malformed, std::move(text)) {}
  };

 private:
  [[nodiscard]] static json_error wrong_type(const char* wanted, const char* is) {
    return json_error(std::string("[json.exception.type_error.302] type must be ") + wanted + ", but is " + is);
  }
  [[nodiscard]] std::int32_t number(key k) const {
    const auto& f = all_[k];
    if (f.type != nullptr && std::string_view(f.type) != "number" && std::string_view(f.type) != "boolean") throw wrong_type("number", f.type);
    return f.number;
  }
  void read_offset(isa::json_fields& f) const {
    const char* const type = all_[offset].type;
    if (type == nullptr) return;
    if (std::string_view(type) != "object") throw json_error(std::string("[json.exception.type_error.306] cannot use value() with ") + type);
    f.offset_value = number(inner_value), f.offset_select = number(inner_select);
  }
  std::array<found, unknown> all_{};
  std::string name_;
};

/// The number in "core<number>" as it is written without leading zeros, where it is below `count`; −1 for another name.
[[nodiscard]] inline std::int64_t core_number(std::string_view name, std::int64_t count) {
  if (!name.starts_with("core")) return -1;
  const auto digits = name.substr(4);
  if (digits.empty() || digits.size() > 10 || digits.find_first_not_of("0123456789") != std::string_view::npos || (digits[0] == '0' && digits.size() > 1)) return -1;
  const auto number = std::stoll(std::string(digits));
  return number < count ? number : -1;
}

/// Numbers of other kinds are converted to int.
[[nodiscard]] inline std::int32_t to_int(double value) noexcept {
  return value > -2147483649.0 && value < 2147483648.0 ? static_cast<std::int32_t>(value) : std::numeric_limits<std::int32_t>::min();
}
[[nodiscard]] constexpr std::int32_t to_int(std::uint64_t value) noexcept { return static_cast<std::int32_t>(static_cast<std::uint32_t>(value)); }

}  // namespace json_parts

/// The instructions of one core, or why there are none.
struct json_stream {
  std::deque<timed_instruction> instructions;  ///< grows without moving what is there
  std::optional<json_fault> fault;
};

/// Takes the events of a JSON text: a list of instructions (a core's file), or the single file with `config` and a list for each
/// core, whose other keys are skipped.
class program_events : public nlohmann::json_sax<nlohmann::json> {
 public:
  using json = nlohmann::json;
  enum class form { core_file, single_file };
  /// `core_count`: of a single file, only the lists of core0 up to this number are kept.
  explicit program_events(form f, std::int64_t core_count = 0) : form_(f), core_count_(core_count) {}

  /// core_file: the list at the top; no value where the text is no list.
  std::optional<json_stream> list;
  /// single_file: the text of `config`, empty where that is no object; and by number what is called core<number>, no value where that is no
  /// list. Not an object: none of it.
  std::string config;
  std::map<std::int64_t, std::optional<json_stream>> cores;

  bool null() override { return in_config() ? add("null") : leaf("null", 0); }
  bool boolean(bool v) override { return in_config() ? add(v ? "true" : "false") : leaf("boolean", v ? 1 : 0); }
  bool number_integer(number_integer_t v) override { return in_config() ? add(std::to_string(v)) : leaf("number", json_parts::to_int(static_cast<std::uint64_t>(v))); }
  bool number_unsigned(number_unsigned_t v) override { return in_config() ? add(std::to_string(v)) : leaf("number", json_parts::to_int(v)); }
  bool number_float(number_float_t v, const string_t& text) override { return in_config() ? add(text) : leaf("number", json_parts::to_int(v)); }
  bool binary(binary_t&) override { return leaf("binary", 0); }
  bool string(string_t& text) override {
    if (in_config()) return add("\"\"");  // no field that is kept is a string, whatever it says
    if (depth_ == instruction_depth()) fields_.set_text(key_, text);
    else static_cast<void>(leaf("string", 0));
    return true;
  }
  bool key(string_t& name) override {
    if (in_config()) add_key(name);
    else if (form_ == form::single_file && depth_ == 1) is_config_ = name == "config", top_core_ = json_parts::core_number(name, core_count_);
    else if (list_ != nullptr && depth_ == instruction_depth()) key_ = json_parts::instruction_fields::find(name, false);
    else if (list_ != nullptr && depth_ == instruction_depth() + 1 && in_offset_) key_ = json_parts::instruction_fields::find(name, true);
    return true;
  }
  bool start_object(std::size_t) override {
    if (in_config()) return open("{");
    if (form_ == form::single_file && depth_ == 1 && is_config_) return open_config();
    if (form_ == form::single_file && depth_ == 1) not_a_list();
    if (list_ != nullptr && depth_ + 1 == instruction_depth()) fields_.clear();
    else if (list_ != nullptr && depth_ == instruction_depth()) fields_.set(key_, "object"), in_offset_ = key_ == json_parts::offset;
    else if (list_ != nullptr && in_offset_ && depth_ == instruction_depth() + 1) fields_.set(key_, "object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (in_config()) return close("}");
    --depth_;
    if (list_ == nullptr) return true;
    if (depth_ + 1 == instruction_depth()) finish_instruction();
    else if (depth_ == instruction_depth()) in_offset_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    if (in_config()) return open("[");
    if (form_ == form::single_file && depth_ == 1 && is_config_) config.clear();
    const bool begins = form_ == form::core_file ? depth_ == 0 : depth_ == 1 && top_core_ >= 0;
    if (begins) {
      auto& target = form_ == form::core_file ? list : cores[top_core_];
      target.emplace();
      list_ = &*target;
    } else if (list_ != nullptr && depth_ + 1 == instruction_depth()) {
      not_an_object("array");
    } else if (list_ != nullptr && (depth_ == instruction_depth() || (in_offset_ && depth_ == instruction_depth() + 1))) {
      fields_.set(key_, "array");
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    if (in_config()) return close("]");
    --depth_;
    if (list_ != nullptr && depth_ + 2 == instruction_depth()) list_ = nullptr;
    return true;
  }
  [[noreturn]] bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& why) override {
    throw error(error_code::malformed, why.what());
  }

 private:
  /// Depth inside an instruction's object.
  [[nodiscard]] int instruction_depth() const noexcept { return form_ == form::core_file ? 2 : 3; }
  [[nodiscard]] bool in_config() const noexcept { return config_depth_ > 0; }

  bool leaf(const char* type, std::int32_t number) {
    if (list_ == nullptr) {
      if (form_ == form::single_file && depth_ == 1) not_a_list();
    } else if (depth_ + 1 == instruction_depth()) {
      not_an_object(type);
    } else if (depth_ == instruction_depth() || (depth_ == instruction_depth() + 1 && in_offset_)) {
      fields_.set(key_, type, number);
    }
    return true;
  }
  void not_a_list() {
    if (is_config_) config.clear();
    else if (top_core_ >= 0) cores[top_core_] = std::nullopt;
  }
  void not_an_object(const char* type) { fail({error_code::malformed, std::string("[json.exception.type_error.304] cannot use at() with ") + type, true}); }
  void fail(json_fault f) {
    if (!list_->fault) list_->fault = std::move(f);
    list_->instructions = {};
  }
  void finish_instruction() {
    if (list_->fault) return;
    try {
      list_->instructions.push_back(fields_.build());
    } catch (const json_parts::instruction_fields::json_error& e) {
      fail({e.code(), e.what(), true});
    } catch (const error& e) {
      fail({e.code(), e.what(), false});
    }
  }

  // The configuration is kept as text, of its fields only those that are read.
  static constexpr std::size_t most_text = std::size_t{1} << 22;  ///< the text may have been compressed, so that its size limits nothing
  static constexpr std::string_view fields_read[] = {"core_cnt", "array_group_map"};

  bool open_config() {
    config = "{";
    config_depth_ = 1;
    is_read_ = false;
    return true;
  }
  void write(std::string_view text) {
    if (config.size() + text.size() > most_text) throw error(error_code::capacity, "config has too many values");
    config += text;
  }
  void separate() {
    if (std::string_view("{[:").find(config.back()) == std::string_view::npos) write(",");
  }
  void add_key(const std::string& name) {
    if (config_depth_ == 1) is_read_ = std::find(std::begin(fields_read), std::end(fields_read), name) != std::end(fields_read);
    if (!is_read_) return;
    separate();
    write(json(name).dump());
    write(":");
  }
  bool add(std::string_view value) {
    if (!is_read_) return true;
    separate();
    write(value);
    return true;
  }
  bool open(std::string_view bracket) {
    if (config_depth_ == json_limits{}.depth) throw error(error_code::malformed, "config is nested too deeply");
    ++config_depth_;
    return add(bracket);
  }
  bool close(std::string_view bracket) {
    --config_depth_;
    if (is_read_ || config_depth_ == 0) write(bracket);
    return true;
  }

  form form_;
  int depth_ = 0;
  std::int64_t core_count_;
  bool is_config_ = false;      ///< the value at the top is the configuration,
  std::int64_t top_core_ = -1;  ///< or this core's list
  json_stream* list_ = nullptr;
  json_parts::key key_ = json_parts::unknown;
  bool in_offset_ = false;
  json_parts::instruction_fields fields_;
  std::size_t config_depth_ = 0;  ///< of the place inside the configuration; 0: elsewhere
  bool is_read_ = false;          ///< the place lies in a field that is read
};

}  // namespace raptor::sim::timing
