#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "raptor/sim/timing_model/memory_port.hpp"
#include "raptor/support/error.hpp"
#include "raptor/support/file_text.hpp"
#include "raptor/support/json_extent.hpp"
#include "raptor/target/configuration.hpp"
#include "raptor/target/configuration_json.hpp"

/// The hardware and network files as pimsim-nn reads and refuses them (TIMING 13 and 14.5).
namespace raptor::sim::timing {

namespace hardware_parts {

[[nodiscard]] inline error malformed(std::string text, std::string hint = {}) { return error(error_code::malformed, std::move(text), {}, std::move(hint)); }

}  // namespace hardware_parts

/// The simulator's own validation, in its order, first failure wins (TIMING 13); then what it accepts but cannot run.
inline void validate_as_simulator(const target::configuration& c) {
  using hardware_parts::malformed;
  const auto negative = [](std::initializer_list<double> values) { return std::any_of(values.begin(), values.end(), [](double v) { return v < 0; }); };
  const auto number = [](std::int64_t v) { return static_cast<double>(v); };
  const auto memory = [&](const target::memory_configuration& m) {
    if (negative({number(m.memory_size), number(m.data_width), m.period, m.static_power, number(m.write_latency_cycle), m.write_dynamic_energy,
                  number(m.read_latency_cycle), m.read_dynamic_energy}))
      throw malformed("MemoryConfig not valid");
  };
  const auto& core = c.chip_config.core_config;
  const auto& m = core.matrix_config;
  memory(core.local_memory_config);
  if (negative({number(m.xbar_array_count), m.period, number(m.dac_resolution), number(m.dac_latency_cycle), m.dac_static_power, m.dac_dynamic_power, number(m.dac_count),
                number(m.xbar_size[0]), number(m.xbar_size[1]), number(m.cell_precision), m.xbar_latency, m.xbar_read_power, number(m.sample_hold_latency_cycle),
                m.sample_hold_static_power, m.sample_hold_dynamic_power, number(m.adc_resolution), number(m.adc_latency_cycle), m.adc_static_power, m.adc_dynamic_power,
                number(m.adc_count), number(m.shift_adder_latency_cycle), m.shift_adder_static_power, m.shift_adder_dynamic_power, m.input_buffer_static_power,
                m.input_buffer_dynamic_power, number(m.output_buffer_latency_cycle), m.output_buffer_static_power, m.output_buffer_dynamic_power}))
    throw malformed("MatrixConfig not valid");
  if (negative({core.period, core.controller_static_power, core.controller_dynamic_power, number(core.vector_width), number(core.vector_latency_cycle),
                core.inst_fetch_static_power, core.inst_fetch_dynamic_power, core.inst_decode_static_power, core.inst_decode_dynamic_power,
                core.inst_decode_offset_static_power, core.inst_decode_offset_dynamic_power, core.reg_file_static_power, core.reg_file_read_dynamic_power,
                core.reg_file_write_dynamic_power, core.scalar_static_power, core.scalar_dynamic_power, core.vector_alu_static_power, core.vector_alu_dynamic_energy,
                core.vector_reg_static_power, core.vector_reg_read_dynamic_energy, core.vector_reg_write_dynamic_energy, core.transfer_static_power,
                core.transfer_dynamic_power}))
    throw malformed("CoreConfig not valid");
  memory(c.chip_config.global_memory_config);
  const auto& network = c.chip_config.network_config;
  if (network.bus_width <= 0 || network.layout[0] <= 0 || network.layout[1] <= 0) throw malformed("BusConfig not valid");
  if (c.chip_config.core_cnt <= 0) throw malformed("ChipConfig not valid");
  const auto& s = c.sim_config;
  if (s.sim_time <= 0 || s.latency_timeout_ms <= 0 || s.report_verbose_level < 0 || (s.sim_mode != 0 && s.sim_mode != 1)) throw malformed("SimConfig not valid");
  const auto impossible = [](const char* field, const char* why) {
    return malformed(std::string("chip_config.") + field + " " + why, "the simulator would hang or compute nothing sensible");
  };
  if (picoseconds(core.period) <= 0) throw impossible("core_config.period", "is less than a picosecond");
  if (core.period > 1e9) throw impossible("core_config.period", "is more than a second");
  if (m.period <= 0) throw impossible("core_config.matrix_config.period", "is 0");
  if (core.local_memory_config.data_width == 0) throw impossible("core_config.local_memory_config.data_width", "is 0");
  if (c.chip_config.global_memory_config.data_width == 0) throw impossible("global_memory_config.data_width", "is 0");
  if (core.vector_width == 0) throw impossible("core_config.vector_width", "is 0");
  if (core.rob_size < 0) throw impossible("core_config.rob_size", "is negative");
}

/// The hardware file, validated as the simulator does; its network table is read by read_network, after the program.
/// Errors: io and malformed with pimsim-nn's words; capacity, beyond target::detail::hardware_limits.
[[nodiscard]] inline target::configuration read_hardware(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw error(error_code::io, "Failed to open simulator config: " + file.string());
  const std::string text = file_text(in, file);
  check_json_extent(text, file.string(), target::detail::hardware_limits);
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    throw hardware_parts::malformed("Failed to parse simulator config '" + file.string() + "': " + e.what());
  }
  auto c = target::configuration_from(document, target::objects::optional);
  validate_as_simulator(c);
  return c;
}
/// Reads the network file that the hardware file names, relative to its folder. Errors: io, malformed.
inline void read_network(target::configuration& c, const std::filesystem::path& folder) {
  auto& network = c.chip_config.network_config;
  const auto file = folder / network.net_config_file_path;
  std::ifstream in(file, std::ios::binary);
  if (!in) throw error(error_code::io, "Failed to open network latency/energy file: " + file.string());
  target::detail::network_events events(file.string(), target::objects::optional);
  nlohmann::json::sax_parse(in, &events);
  network.table = events.take();
}

}  // namespace raptor::sim::timing
