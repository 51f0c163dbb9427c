#pragma once

#include <array>
#include <boost/container/flat_map.hpp>
#include <cstdint>
#include <string>

/// pimsim-nn's hardware configuration as plain values: every field of TIMING section 13 under its JSON name, with the
/// default that a missing key takes; fields without effect among them. Reading it from JSON: target/configuration_json.hpp. Times in ns or cycles as there.
namespace raptor::target {

/// A local memory, or the global one. One port; an access of n bytes takes ceil(n / data_width) × latency cycles.
struct memory_configuration {
  std::int64_t memory_size = 1024 * 1024;  ///< bytes; of a core: a limit for the compiler, without effect on time and energy
  std::int64_t data_width = 16;  ///< bytes
  double period = 1;             ///< ns
  double static_power = 1;       ///< mW
  std::int64_t write_latency_cycle = 10;
  double write_dynamic_energy = 0;  ///< pJ
  std::int64_t read_latency_cycle = 8;
  double read_dynamic_energy = 0;  ///< pJ
};

/// The crossbars of one core and their converters.
struct matrix_configuration {
  std::int64_t xbar_array_count = 1;
  double period = 1 / 1.28;  ///< ns
  bool pipeline_mode = true;
  std::int64_t dac_resolution = 1;
  std::int64_t dac_latency_cycle = 1;
  double dac_static_power = 0;  ///< static powers of the matrix unit have no effect
  double dac_dynamic_power = 0;
  std::int64_t dac_count = 128;
  std::array<std::int64_t, 2> xbar_size = {128, 128};  ///< rows, columns
  std::int64_t cell_precision = 2;                     ///< bits of one cell
  double xbar_latency = 30;                            ///< ns
  double xbar_read_power = 0;
  std::int64_t sample_hold_latency_cycle = 1;
  double sample_hold_static_power = 0, sample_hold_dynamic_power = 0;
  std::int64_t adc_resolution = 1;  ///< has no effect
  std::int64_t adc_latency_cycle = 1;
  double adc_static_power = 0, adc_dynamic_power = 0;
  std::int64_t adc_count = 1;
  std::int64_t shift_adder_latency_cycle = 1;
  double shift_adder_static_power = 0, shift_adder_dynamic_power = 0;
  double input_buffer_static_power = 0, input_buffer_dynamic_power = 0;  ///< have no effect
  std::int64_t output_buffer_latency_cycle = 1;
  double output_buffer_static_power = 0, output_buffer_dynamic_power = 0;
};

struct core_configuration {
  double period = 1;          ///< ns, the clock of the whole chip
  std::int64_t rob_size = 1;  ///< instructions in flight
  std::int64_t global_memory_switch_id = -10;
  std::int64_t vector_width = 16;          ///< elements
  std::int64_t vector_latency_cycle = 8;   ///< used as ns
  double controller_static_power = 0, controller_dynamic_power = 0;  ///< have no effect
  double inst_fetch_static_power = 0, inst_fetch_dynamic_power = 0;
  double inst_decode_static_power = 0, inst_decode_dynamic_power = 0;
  double inst_decode_offset_static_power = 0, inst_decode_offset_dynamic_power = 0;
  double reg_file_static_power = 0, reg_file_read_dynamic_power = 0, reg_file_write_dynamic_power = 0;
  double scalar_static_power = 0, scalar_dynamic_power = 0;
  double vector_alu_static_power = 0, vector_alu_dynamic_energy = 0;
  double vector_reg_static_power = 0, vector_reg_read_dynamic_energy = 0, vector_reg_write_dynamic_energy = 0;
  double transfer_static_power = 0;
  double transfer_dynamic_power = 0;  ///< has no effect
  matrix_configuration matrix_config;
  memory_configuration local_memory_config;
};

/// The network file: node → node → value; core ids, and the global memory's id. A missing entry counts as 0.
struct network_table {
  using rows = boost::container::flat_map<std::int64_t, boost::container::flat_map<std::int64_t, double>>;
  rows latency;  ///< ns per flit
  rows energy;   ///< pJ per flit
};

struct network_configuration {
  std::int64_t bus_width = 16;                    ///< bytes per flit
  std::array<std::int64_t, 2> layout = {0, 0};    ///< must be given
  std::string bus_topology = "mesh";              ///< has no effect
  std::string net_config_file_path;               ///< relative to the folder of the hardware file
  network_table table;                            ///< contents of that file
};

struct chip_configuration {
  std::int64_t core_cnt = 1;
  std::int64_t global_memory_switch_id = -10;
  core_configuration core_config;
  memory_configuration global_memory_config;
  network_configuration network_config;
};

struct simulation_configuration {
  std::int64_t sim_mode = 0;  ///< 0 throughput, 1 latency
  double sim_time = 1;        ///< ms
  double latency_timeout_ms = 60000;
  std::int64_t report_verbose_level = 0;
};

struct configuration {
  chip_configuration chip_config;
  simulation_configuration sim_config;
};

}  // namespace raptor::target
