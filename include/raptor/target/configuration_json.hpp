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
#include "raptor/support/json_extent.hpp"
#include "raptor/target/configuration.hpp"
#include "raptor/target/network_json.hpp"
#include "raptor/target/validate.hpp"

/// Reading pimsim-nn's hardware configuration from JSON text. The file system stays outside: the caller gives the texts.
namespace raptor::target {

namespace detail {
using json = nlohmann::json;

/// Follows a parse without building anything, so that a fault can be named by the field where it happened (an overflowing
/// number has no value to point at) and so that the extent is limited.
class json_position : public json_extent {
 public:
  using json_extent::json_extent;
  bool key(string_t& name) override {
    path_.back() = name;
    return json_extent::key(name);
  }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& why) override {
    const bool number = why.id == 406;  // number overflow
    throw error(error_code::malformed,
                file_ + (number ? ": " + path() + " is not a finite number: " + shorten(token)
                                : ": not valid JSON at byte " + std::to_string(position) + (path().empty() ? "" : ", in " + path()) + ": " + why.what()),
                path().empty() ? file_ : path());
  }

 private:
  bool enter() override {
    path_.emplace_back();
    return json_extent::enter();
  }
  bool leave() override {
    path_.pop_back();
    return json_extent::leave();
  }
  [[nodiscard]] static std::string shorten(const std::string& text) { return text.size() > 40 ? text.substr(0, 40) + "..." : text; }
  [[nodiscard]] std::string path() const {
    std::string all;
    for (const auto& part : path_)
      if (!part.empty()) all += (all.empty() ? "" : ".") + shorten(part);
    return all;
  }
  std::vector<std::string> path_;
};

/// A hardware file has some hundred fields.
inline constexpr json_limits hardware_limits{std::size_t{1} << 14, 64};

/// Parsed JSON. Errors: malformed; capacity, beyond hardware_limits.
[[nodiscard]] inline json parse_json(std::string_view text, const std::string& file) {
  check_json_tokens(text, file);
  json_position position(file, hardware_limits);
  json::sax_parse(text.begin(), text.end(), &position);
  json result = json::parse(text.begin(), text.end());
  if (!result.is_object()) throw error(error_code::malformed, file + ": not a JSON object", file);
  return result;
}

/// A number as pimsim-nn converts it: a fraction is cut, one that does not fit becomes the least.
template <class Integer>
[[nodiscard]] Integer converted(const json& value) {
  if (!value.is_number_float()) return value.get<Integer>();
  const auto real = value.get<double>();
  const double most = -static_cast<double>(std::numeric_limits<Integer>::min());
  return real > -most - 1 && real < most ? static_cast<Integer>(real) : std::numeric_limits<Integer>::min();
}

/// Reads the fields of one object; unknown keys are ignored, missing ones leave the default. Where objects are not required, values are
/// converted as pimsim-nn does, and what cannot be is refused in the JSON library's words. Errors: malformed, with the field's path.
class object_reader {
 public:
  object_reader(const json* object, std::string path, bool required) : object_(object), path_(std::move(path)), required_(required) {}

  [[nodiscard]] object_reader child(const std::string& name) const {
    const json* value = find(name);
    const std::string path = field(name);
    if (value == nullptr && required_) throw error(error_code::malformed, "missing object " + path, path);
    if (value != nullptr) check_object(*value, path, required_);
    return {value, path, required_};
  }
  static void check_object(const json& value, const std::string& path, bool required) {
    if (value.is_object()) return;
    if (required) throw error(error_code::malformed, path + " is not an object", path);
    in_library_words(path, [&] { static_cast<void>(value.value("", 0)); });  // throws
  }
  void read(const char* name, std::int64_t& out) const {
    read_value(name, [&](const json& value) { out = required_ ? integer(value, field(name)) : converted<std::int32_t>(value); });
  }
  void read_long(const char* name, std::int64_t& out) const {
    read_value(name, [&](const json& value) { out = required_ ? integer(value, field(name)) : converted<std::int64_t>(value); });
  }
  void read(const char* name, double& out) const {
    read_value(name, [&](const json& value) { out = required_ ? number(value, field(name)) : value.get<double>(); });
  }
  void read(const char* name, bool& out) const {
    read_value(name, [&](const json& value) {
      if (required_ && !value.is_boolean()) throw error(error_code::malformed, field(name) + " is not true or false", field(name));
      out = value.get<bool>();
    });
  }
  void read(const char* name, std::string& out) const {
    read_value(name, [&](const json& value) {
      if (required_ && !value.is_string()) throw error(error_code::malformed, field(name) + " is not a string", field(name));
      out = value.get<std::string>();
    });
  }
  void read(const char* name, std::array<std::int64_t, 2>& out) const {
    read_value(name, [&](const json& value) {
      if (required_ && (!value.is_array() || value.size() != 2)) throw error(error_code::malformed, field(name) + " is not a list of two numbers", field(name));
      for (std::size_t i = 0; i < 2; ++i)
        out[i] = required_ ? integer(value[i], field(name) + "[" + std::to_string(i) + "]") : converted<std::int32_t>(value.at(i));
    });
  }
  [[nodiscard]] static double number(const json& value, const std::string& path) {
    if (!value.is_number()) throw error(error_code::malformed, path + " is not a number", path);
    return value.get<double>();
  }

 private:
  /// Calls `read` with the value, where there is one.
  template <class Read>
  void read_value(const char* name, const Read& read) const {
    if (const json* value = find(name)) in_library_words(field(name), [&] { read(*value); });
  }
  template <class Read>
  static void in_library_words(const std::string& path, const Read& read) {
    try {
      read();
    } catch (const json::exception& e) {
      throw error(error_code::malformed, e.what(), path);
    }
  }
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

/// The configuration in a parsed file, without the network file's contents; types are checked, ranges are not (see validate).
/// Errors: malformed with the field's path; optional: in the JSON library's words.
[[nodiscard]] inline configuration configuration_from(const nlohmann::json& document, objects presence) {
  if (presence == objects::optional) detail::object_reader::check_object(document, "", false);
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

/// The network file. Errors: malformed with the field's path, for example "latency.3.7"; capacity, for more nodes than 65,536 cores have. O(text).
[[nodiscard]] inline network_table parse_network(std::string_view text, const std::string& file) {
  check_json_tokens(text, file);
  detail::json_position position(file, {std::numeric_limits<std::size_t>::max(), 64});
  nlohmann::json::sax_parse(text.begin(), text.end(), &position);
  detail::network_events events(file, objects::required);
  nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  return events.take();
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
