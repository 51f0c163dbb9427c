#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "raptor/support/error.hpp"
#include "raptor/target/configuration.hpp"

namespace raptor::target {

/// Largest value of a number in a configuration (ns, cycles, counts, mW, pJ), so that products of a few stay representable.
inline constexpr double most_parameter = 1e9;

namespace detail {
/// Checks of one object's fields; `place` is the dotted path up to it.
struct field_check {
  std::string place;
  void refuse(const std::string& name, double value, const std::string& rule) const {
    std::string text = std::to_string(value);
    if (std::isfinite(value) && value == std::trunc(value) && std::fabs(value) < 1e15) text = std::to_string(static_cast<std::int64_t>(value));
    throw error(error_code::malformed, place + "." + name + " is " + text + ", but must be " + rule, place + "." + name);
  }
  template <class T>
  void not_negative(const std::string& name, T value) const {
    const auto v = static_cast<double>(value);
    if (!std::isfinite(v)) refuse(name, v, "finite");
    if (v < 0) refuse(name, v, "0 or more");
    if (v > most_parameter) refuse(name, v, "at most 1000000000");
  }
  template <class T>
  void positive(const std::string& name, T value) const {
    const auto v = static_cast<double>(value);
    not_negative(name, v);
    if (v == 0) refuse(name, v, "greater than 0");
  }
};

inline void validate_memory(const std::string& place, const memory_configuration& m) {
  const field_check field{place};
  field.positive("data_width", m.data_width);
  field.positive("period", m.period);
  field.not_negative("static_power", m.static_power);
  field.not_negative("write_latency_cycle", m.write_latency_cycle);
  field.not_negative("write_dynamic_energy", m.write_dynamic_energy);
  field.not_negative("read_latency_cycle", m.read_latency_cycle);
  field.not_negative("read_dynamic_energy", m.read_dynamic_energy);
}

inline void validate_matrix(const std::string& place, const matrix_configuration& m) {
  const field_check field{place};
  field.positive("xbar_array_count", m.xbar_array_count);
  field.positive("period", m.period);
  field.positive("dac_resolution", m.dac_resolution);
  field.not_negative("dac_latency_cycle", m.dac_latency_cycle);
  field.not_negative("dac_dynamic_power", m.dac_dynamic_power);
  field.positive("dac_count", m.dac_count);
  field.positive("xbar_size[0]", m.xbar_size[0]);
  field.positive("xbar_size[1]", m.xbar_size[1]);
  field.positive("cell_precision", m.cell_precision);
  field.not_negative("xbar_latency", m.xbar_latency);
  field.not_negative("xbar_read_power", m.xbar_read_power);
  field.not_negative("sample_hold_latency_cycle", m.sample_hold_latency_cycle);
  field.not_negative("sample_hold_dynamic_power", m.sample_hold_dynamic_power);
  field.not_negative("adc_latency_cycle", m.adc_latency_cycle);
  field.not_negative("adc_dynamic_power", m.adc_dynamic_power);
  field.positive("adc_count", m.adc_count);
  field.not_negative("shift_adder_latency_cycle", m.shift_adder_latency_cycle);
  field.not_negative("shift_adder_dynamic_power", m.shift_adder_dynamic_power);
  field.not_negative("output_buffer_latency_cycle", m.output_buffer_latency_cycle);
  field.not_negative("output_buffer_dynamic_power", m.output_buffer_dynamic_power);
}

inline void validate_core(const std::string& place, const core_configuration& c) {
  const field_check field{place};
  field.positive("period", c.period);
  field.positive("rob_size", c.rob_size);
  field.positive("vector_width", c.vector_width);
  field.not_negative("vector_latency_cycle", c.vector_latency_cycle);
  field.not_negative("inst_fetch_static_power", c.inst_fetch_static_power);
  field.not_negative("inst_fetch_dynamic_power", c.inst_fetch_dynamic_power);
  field.not_negative("inst_decode_static_power", c.inst_decode_static_power);
  field.not_negative("inst_decode_dynamic_power", c.inst_decode_dynamic_power);
  field.not_negative("inst_decode_offset_static_power", c.inst_decode_offset_static_power);
  field.not_negative("inst_decode_offset_dynamic_power", c.inst_decode_offset_dynamic_power);
  field.not_negative("reg_file_static_power", c.reg_file_static_power);
  field.not_negative("reg_file_read_dynamic_power", c.reg_file_read_dynamic_power);
  field.not_negative("reg_file_write_dynamic_power", c.reg_file_write_dynamic_power);
  field.not_negative("scalar_static_power", c.scalar_static_power);
  field.not_negative("scalar_dynamic_power", c.scalar_dynamic_power);
  field.not_negative("vector_alu_static_power", c.vector_alu_static_power);
  field.not_negative("vector_alu_dynamic_energy", c.vector_alu_dynamic_energy);
  field.not_negative("vector_reg_static_power", c.vector_reg_static_power);
  field.not_negative("vector_reg_read_dynamic_energy", c.vector_reg_read_dynamic_energy);
  field.not_negative("vector_reg_write_dynamic_energy", c.vector_reg_write_dynamic_energy);
  field.not_negative("transfer_static_power", c.transfer_static_power);
  validate_matrix(place + ".matrix_config", c.matrix_config);
  validate_memory(place + ".local_memory_config", c.local_memory_config);
}

/// Every core of the chip has a row; no entry is negative or not finite.
inline void validate_network(const network_table& table, std::int64_t cores) {
  for (const auto& [what, rows] : {std::pair{"latency", &table.latency}, std::pair{"energy", &table.energy}})
    for (const auto& [from, row] : *rows)
      for (const auto& [to, value] : row) field_check{std::string(what) + "." + std::to_string(from)}.not_negative(std::to_string(to), value);
  for (std::int64_t core = 0; core < cores; ++core)
    if (!table.latency.contains(core))
      throw error(error_code::malformed, "the latency matrix has no row for core " + std::to_string(core), "latency." + std::to_string(core),
                  "the network file needs one row for each of the " + std::to_string(cores) + " cores of chip_config.core_cnt");
}
}  // namespace detail

/// Whether a chip can be modelled: stricter than the simulator, which hangs on some zeros. Errors: malformed with the field's
/// path as place, mismatch where the two ids of the global memory differ. O(size of the network table).
inline void validate(const configuration& c) {
  const auto& chip = c.chip_config;
  const detail::field_check field{"chip_config"};
  field.positive("core_cnt", chip.core_cnt);
  if (chip.global_memory_switch_id != chip.core_config.global_memory_switch_id)
    throw error(error_code::mismatch,
                "chip_config.global_memory_switch_id is " + std::to_string(chip.global_memory_switch_id) +
                    ", but chip_config.core_config.global_memory_switch_id is " + std::to_string(chip.core_config.global_memory_switch_id),
                "chip_config.global_memory_switch_id");
  if (chip.global_memory_switch_id >= 0 && chip.global_memory_switch_id < chip.core_cnt)
    throw error(error_code::mismatch, "chip_config.global_memory_switch_id is " + std::to_string(chip.global_memory_switch_id) + ", which is a core",
                "chip_config.global_memory_switch_id");
  detail::validate_core("chip_config.core_config", chip.core_config);
  detail::validate_memory("chip_config.global_memory_config", chip.global_memory_config);
  const detail::field_check network{"chip_config.network_config"};
  network.positive("bus_width", chip.network_config.bus_width);
  network.positive("layout[0]", chip.network_config.layout[0]);
  network.positive("layout[1]", chip.network_config.layout[1]);
  const detail::field_check sim{"sim_config"};
  if (c.sim_config.sim_mode != 0 && c.sim_config.sim_mode != 1)
    sim.refuse("sim_mode", static_cast<double>(c.sim_config.sim_mode), "0 (throughput) or 1 (latency)");
  sim.positive("sim_time", c.sim_config.sim_time);
  sim.positive("latency_timeout_ms", c.sim_config.latency_timeout_ms);
  sim.not_negative("report_verbose_level", c.sim_config.report_verbose_level);
  detail::validate_network(chip.network_config.table, chip.core_cnt);
}

}  // namespace raptor::target
