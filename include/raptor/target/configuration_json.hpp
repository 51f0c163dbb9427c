#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "raptor/support/error.hpp"
#include "raptor/target/configuration.hpp"
#include "raptor/target/validate.hpp"

/// Reading pimsim-nn's hardware configuration from JSON text. The file system stays outside: the caller gives the texts.
namespace raptor::target {

namespace detail {
using json = nlohmann::json;

/// Follows a parse without building anything, so that a fault can be named by the field where it happened (an overflowing
/// number has no value to point at) and so that nesting is limited.
class json_position : public nlohmann::json_sax<json> {
 public:
  static constexpr std::size_t most_depth = 64;
  explicit json_position(std::string file) : file_(std::move(file)) {}
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool key(string_t& name) override {
    path_.back() = name;
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& why) override {
    const bool number = why.id == 406;  // number overflow
    throw error(error_code::malformed,
                file_ + (number ? ": " + path() + " is not a finite number: " + shorten(token)
                                : ": not valid JSON at byte " + std::to_string(position) + (path().empty() ? "" : ", in " + path()) + ": " + why.what()),
                path().empty() ? file_ : path());
  }

 private:
  bool enter() {
    if (path_.size() == most_depth) throw error(error_code::malformed, file_ + ": nested too deeply, in " + path_.front(), file_);
    path_.emplace_back();
    return true;
  }
  bool leave() {
    path_.pop_back();
    return true;
  }
  [[nodiscard]] static std::string shorten(const std::string& text) { return text.size() > 40 ? text.substr(0, 40) + "..." : text; }
  [[nodiscard]] std::string path() const {
    std::string all;
    for (const auto& part : path_)
      if (!part.empty()) all += (all.empty() ? "" : ".") + shorten(part);
    return all;
  }
  std::string file_;
  std::vector<std::string> path_;
};

/// Parsed JSON. Errors: malformed.
[[nodiscard]] inline json parse_json(std::string_view text, const std::string& file) {
  json_position position(file);
  json::sax_parse(text.begin(), text.end(), &position);
  json result = json::parse(text.begin(), text.end());
  if (!result.is_object()) throw error(error_code::malformed, file + ": not a JSON object", file);
  return result;
}

/// Reads the fields of one object; unknown keys are ignored, missing ones leave the default. Where objects are not required, values are
/// converted as pimsim-nn does, and the JSON library's exceptions say what cannot be.
class object_reader {
 public:
  object_reader(const json* object, std::string path, bool required) : object_(object), path_(std::move(path)), required_(required) {}

  [[nodiscard]] object_reader child(const std::string& name) const {
    const json* value = find(name);
    const std::string path = field(name);
    if (value == nullptr && required_) throw error(error_code::malformed, "missing object " + path, path);
    if (value != nullptr && !value->is_object()) {
      if (!required_) static_cast<void>(value->value("", 0));  // throws
      throw error(error_code::malformed, path + " is not an object", path);
    }
    return {value, path, required_};
  }
  void read(const char* name, std::int64_t& out) const {
    if (const json* value = find(name)) out = required_ ? integer(*value, field(name)) : value->get<std::int32_t>();
  }
  void read_long(const char* name, std::int64_t& out) const {
    if (const json* value = find(name)) out = required_ ? integer(*value, field(name)) : value->get<std::int64_t>();
  }
  void read(const char* name, double& out) const {
    if (const json* value = find(name)) out = required_ ? number(*value, field(name)) : value->get<double>();
  }
  void read(const char* name, bool& out) const {
    const json* value = find(name);
    if (value == nullptr) return;
    if (required_ && !value->is_boolean()) throw error(error_code::malformed, field(name) + " is not true or false", field(name));
    out = value->get<bool>();
  }
  void read(const char* name, std::string& out) const {
    const json* value = find(name);
    if (value == nullptr) return;
    if (required_ && !value->is_string()) throw error(error_code::malformed, field(name) + " is not a string", field(name));
    out = value->get<std::string>();
  }
  void read(const char* name, std::array<std::int64_t, 2>& out) const {
    const json* value = find(name);
    if (value == nullptr) return;
    if (!required_) {
      const auto pair = value->get<std::pair<std::int32_t, std::int32_t>>();
      out = {pair.first, pair.second};
      return;
    }
    if (!value->is_array() || value->size() != 2) throw error(error_code::malformed, field(name) + " is not a list of two numbers", field(name));
    for (std::size_t i = 0; i < 2; ++i) out[i] = integer((*value)[i], field(name) + "[" + std::to_string(i) + "]");
  }
  [[nodiscard]] static double number(const json& value, const std::string& path) {
    if (!value.is_number()) throw error(error_code::malformed, path + " is not a number", path);
    return value.get<double>();
  }

 private:
  [[nodiscard]] static std::int64_t integer(const json& value, const std::string& path) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      throw error(error_code::malformed, path + " is " + std::to_string(value.get<std::uint64_t>()) + ", which is too large", path);
    if (value.is_number_integer()) return value.get<std::int64_t>();
    const double real = number(value, path);
    if (real != std::trunc(real) || std::fabs(real) > 9e15) throw error(error_code::malformed, path + " is " + value.dump() + ", not a whole number", path);
    return static_cast<std::int64_t>(real);
  }
  [[nodiscard]] std::string field(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }
  [[nodiscard]] const json* find(const std::string& name) const {
    if (object_ == nullptr) return nullptr;
    const auto found = object_->find(name);
    return found == object_->end() ? nullptr : &*found;
  }
  const json* object_;
  std::string path_;
  bool required_;
};

inline void read_memory(const object_reader& from, memory_configuration& m) {
  from.read_long("memory_size", m.memory_size);
  from.read("data_width", m.data_width);
  from.read("period", m.period);
  from.read("static_power", m.static_power);
  from.read("write_latency_cycle", m.write_latency_cycle);
  from.read("write_dynamic_energy", m.write_dynamic_energy);
  from.read("read_latency_cycle", m.read_latency_cycle);
  from.read("read_dynamic_energy", m.read_dynamic_energy);
}

inline void read_matrix(const object_reader& from, matrix_configuration& m) {
  from.read("xbar_array_count", m.xbar_array_count);
  from.read("period", m.period);
  from.read("pipeline_mode", m.pipeline_mode);
  from.read("dac_resolution", m.dac_resolution);
  from.read("dac_latency_cycle", m.dac_latency_cycle);
  from.read("dac_static_power", m.dac_static_power);
  from.read("dac_dynamic_power", m.dac_dynamic_power);
  from.read("dac_count", m.dac_count);
  from.read("xbar_size", m.xbar_size);
  from.read("cell_precision", m.cell_precision);
  from.read("xbar_latency", m.xbar_latency);
  from.read("xbar_read_power", m.xbar_read_power);
  from.read("sample_hold_latency_cycle", m.sample_hold_latency_cycle);
  from.read("sample_hold_static_power", m.sample_hold_static_power);
  from.read("sample_hold_dynamic_power", m.sample_hold_dynamic_power);
  from.read("adc_resolution", m.adc_resolution);
  from.read("adc_latency_cycle", m.adc_latency_cycle);
  from.read("adc_static_power", m.adc_static_power);
  from.read("adc_dynamic_power", m.adc_dynamic_power);
  from.read("adc_count", m.adc_count);
  from.read("shift_adder_latency_cycle", m.shift_adder_latency_cycle);
  from.read("shift_adder_static_power", m.shift_adder_static_power);
  from.read("shift_adder_dynamic_power", m.shift_adder_dynamic_power);
  from.read("input_buffer_static_power", m.input_buffer_static_power);
  from.read("input_buffer_dynamic_power", m.input_buffer_dynamic_power);
  from.read("output_buffer_latency_cycle", m.output_buffer_latency_cycle);
  from.read("output_buffer_static_power", m.output_buffer_static_power);
  from.read("output_buffer_dynamic_power", m.output_buffer_dynamic_power);
}

inline void read_core(const object_reader& from, core_configuration& c) {
  from.read("period", c.period);
  from.read("rob_size", c.rob_size);
  from.read("global_memory_switch_id", c.global_memory_switch_id);
  from.read("vector_width", c.vector_width);
  from.read("vector_latency_cycle", c.vector_latency_cycle);
  from.read("controller_static_power", c.controller_static_power);
  from.read("controller_dynamic_power", c.controller_dynamic_power);
  from.read("inst_fetch_static_power", c.inst_fetch_static_power);
  from.read("inst_fetch_dynamic_power", c.inst_fetch_dynamic_power);
  from.read("inst_decode_static_power", c.inst_decode_static_power);
  from.read("inst_decode_dynamic_power", c.inst_decode_dynamic_power);
  from.read("inst_decode_offset_static_power", c.inst_decode_offset_static_power);
  from.read("inst_decode_offset_dynamic_power", c.inst_decode_offset_dynamic_power);
  from.read("reg_file_static_power", c.reg_file_static_power);
  from.read("reg_file_read_dynamic_power", c.reg_file_read_dynamic_power);
  from.read("reg_file_write_dynamic_power", c.reg_file_write_dynamic_power);
  from.read("scalar_static_power", c.scalar_static_power);
  from.read("scalar_dynamic_power", c.scalar_dynamic_power);
  from.read("vector_alu_static_power", c.vector_alu_static_power);
  from.read("vector_alu_dynamic_energy", c.vector_alu_dynamic_energy);
  from.read("vector_reg_static_power", c.vector_reg_static_power);
  from.read("vector_reg_read_dynamic_energy", c.vector_reg_read_dynamic_energy);
  from.read("vector_reg_write_dynamic_energy", c.vector_reg_write_dynamic_energy);
  from.read("transfer_static_power", c.transfer_static_power);
  from.read("transfer_dynamic_power", c.transfer_dynamic_power);
  read_matrix(from.child("matrix_config"), c.matrix_config);
  read_memory(from.child("local_memory_config"), c.local_memory_config);
}
}  // namespace detail

/// Whether every object of the format must be there and every value be what it should (the compiler); or a missing object takes its
/// fields' defaults, and values are converted and refused as pimsim-nn does (the simulator).
enum class objects { required, optional };

/// The configuration in a parsed file, without the network file's contents; types are checked, ranges are not (see validate).
/// Errors: required: malformed with the field's path; optional: nlohmann::json::exception.
[[nodiscard]] inline configuration configuration_from(const nlohmann::json& document, objects presence) {
  if (presence == objects::optional) static_cast<void>(document.value("", 0));  // throws where it is no object
  const detail::object_reader root(&document, "", presence == objects::required);
  configuration c;
  const auto chip = root.child("chip_config");
  chip.read("core_cnt", c.chip_config.core_cnt);
  chip.read("global_memory_switch_id", c.chip_config.global_memory_switch_id);
  detail::read_core(chip.child("core_config"), c.chip_config.core_config);
  detail::read_memory(chip.child("global_memory_config"), c.chip_config.global_memory_config);
  const auto network = chip.child("network_config");
  network.read("bus_width", c.chip_config.network_config.bus_width);
  network.read("layout", c.chip_config.network_config.layout);
  network.read("bus_topology", c.chip_config.network_config.bus_topology);
  network.read("net_config_file_path", c.chip_config.network_config.net_config_file_path);
  const auto sim = root.child("sim_config");
  sim.read("sim_mode", c.sim_config.sim_mode);
  sim.read("sim_time", c.sim_config.sim_time);
  sim.read("latency_timeout_ms", c.sim_config.latency_timeout_ms);
  sim.read("report_verbose_level", c.sim_config.report_verbose_level);
  return c;
}
/// The same from text. \param file names the text in messages. O(text).
[[nodiscard]] inline configuration parse_configuration(std::string_view text, const std::string& file, objects presence = objects::required) {
  return configuration_from(detail::parse_json(text, file), presence);
}

/// The network file. Errors: malformed with the field's path, for example "latency.3.7". O(text).
[[nodiscard]] inline network_table parse_network(std::string_view text, const std::string& file) {
  const auto document = detail::parse_json(text, file);
  network_table table;
  for (const auto& [what, rows] : {std::pair{"latency", &table.latency}, std::pair{"energy", &table.energy}}) {
    const auto found = document.find(what);
    if (found == document.end()) throw error(error_code::malformed, file + ": missing object " + what, what);
    const auto node = [&](const std::string& id, const std::string& place) {
      std::int64_t value = 0;
      const std::size_t digits = id.starts_with('-') ? 1 : 0;
      if (id.size() == digits || id.size() > 10 || id.find_first_not_of("0123456789", digits) != std::string::npos)
        throw error(error_code::malformed, file + ": '" + id.substr(0, 40) + "' in " + place + " is not the number of a node", place);
      for (const char c : id.substr(digits)) value = value * 10 + (c - '0');
      return digits == 1 ? -value : value;
    };
    if (!found->is_object()) throw error(error_code::malformed, file + ": " + what + " is not an object", what);
    for (const auto& [from, row] : found->items()) {
      const std::string place = std::string(what) + "." + from.substr(0, 40);
      if (!row.is_object()) throw error(error_code::malformed, file + ": " + place + " is not an object", place);
      auto& out = (*rows)[node(from, what)];
      for (const auto& [to, value] : row.items()) out[node(to, place)] = detail::object_reader::number(value, place + "." + to.substr(0, 40));
    }
  }
  return table;
}

/// A whole configuration, with the network file that it names (relative to its folder), validated.
/// \param load path → contents as std::string; throws where the file cannot be read (only the tools touch the file system)
/// Errors: malformed or mismatch, naming the field; what `load` throws. Example: `read_configuration("p144.json", load)`.
template <class Load>
  requires std::convertible_to<std::invoke_result_t<const Load&, const std::string&>, std::string>
[[nodiscard]] configuration read_configuration(const std::string& path, const Load& load) {
  const std::string text = load(path);
  configuration c = parse_configuration(text, path);
  auto& network = c.chip_config.network_config;
  if (network.net_config_file_path.empty())
    throw error(error_code::malformed, "missing chip_config.network_config.net_config_file_path", "chip_config.network_config.net_config_file_path",
                "name the file with the latency matrix");
  const auto file = (std::filesystem::path(path).parent_path() / network.net_config_file_path).string();
  std::string table;
  try {
    table = load(file);
  } catch (const error& e) {
    throw error(e.code(), std::string(e.what()) + ", which chip_config.network_config.net_config_file_path names", file, e.hint());
  }
  network.table = parse_network(table, file);
  validate(c);
  return c;
}

}  // namespace raptor::target
