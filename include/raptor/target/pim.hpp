#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"
#include "raptor/target/concept.hpp"
#include "raptor/target/configuration.hpp"
#include "raptor/target/validate.hpp"

namespace raptor::target {

/// The target options of the command line. An empty one takes the configuration's value.
struct pim_flags {
  std::optional<std::int64_t> core_count;
  std::optional<std::int64_t> crossbar_count;  ///< in each core
  std::optional<std::int64_t> crossbar_size;   ///< rows and columns
};

/// Largest chip that is accepted, so that a mistyped number is an error and not an endless run.
inline constexpr std::int64_t most_cores = 65536;
inline constexpr std::int64_t most_table_cores = 4096;  ///< with a latency matrix, which is square
inline constexpr std::int64_t most_crossbars = 1 << 20;
inline constexpr std::int64_t most_crossbar_size = 65536;

/// ns → whole ps, rounded as the simulator does; at most 1e17, so that sums of a few cannot overflow.
[[nodiscard]] inline picoseconds to_picoseconds(double nanoseconds) noexcept {
  return static_cast<picoseconds>(std::min(std::trunc(nanoseconds * 1000 + 0.5), 1e17));
}

/// A chip of crossbar cores on a mesh: sizes, and the time of instructions as in the timing model (TIMING 7 to 10).
///
/// Guarantees: models chip_target. `time` is exact for an instruction alone in its core; contention, waiting for a
/// partner and hazards with more than one instruction in flight are left to the simulator.
/// Errors: usage for a number out of range, mismatch where a flag contradicts the configuration, capacity where a
/// weight does not fit one crossbar row.
/// Cost: construction O(cores²) with a network table, O(1) without; every query O(1).
class pim {
 public:
  /// Without a hardware configuration: pimsim-nn's default timing, 16 ADCs, as many DACs as rows, a cell holds a whole
  /// weight, and cores row by row on a nearly square mesh (2 × hops + 2 ns a flit, 15 ns to the global memory).
  pim(std::int64_t core_count, std::int64_t crossbar_count, std::int64_t crossbar_size, std::int64_t element_bits = 32) {
    require("--core-count", core_count, most_cores);
    require("--crossbar-count", crossbar_count, most_crossbars);
    require("--crossbar-size", crossbar_size, most_crossbar_size);
    configuration c;
    c.chip_config.core_cnt = core_count;
    auto& matrix = c.chip_config.core_config.matrix_config;
    matrix.xbar_array_count = crossbar_count;
    matrix.xbar_size = {crossbar_size, crossbar_size};
    matrix.dac_count = crossbar_size;
    matrix.adc_count = default_adc_count;
    matrix.cell_precision = element_bits;
    mesh_width_ = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(core_count))));
    c.chip_config.network_config.layout = {divide_up(core_count, mesh_width_), mesh_width_};
    finish(std::move(c), element_bits);
  }

  /// From a hardware configuration; a core's local memory is what it says, or the format's default of 1 MiB. Errors: those of `validate`; usage for a chip beyond most_table_cores.
  /// \param element_bits width of elements and weights: 32, 16 or 8
  explicit pim(configuration c, std::int64_t element_bits = 32) {
    validate(c);
    require("chip_config.core_cnt", c.chip_config.core_cnt, most_table_cores);
    require("chip_config.core_config.matrix_config.xbar_array_count", c.chip_config.core_config.matrix_config.xbar_array_count,
            most_crossbars);
    for (const auto size : c.chip_config.core_config.matrix_config.xbar_size)
      require("chip_config.core_config.matrix_config.xbar_size", size, most_crossbar_size);
    read_network(c.chip_config);
    c.chip_config.network_config.table = {};
    chip_.local_memory_bytes = c.chip_config.core_config.local_memory_config.memory_size;
    finish(std::move(c), element_bits);
  }

  [[nodiscard]] const program::geometry& chip() const noexcept { return chip_; }
  [[nodiscard]] std::size_t core_count() const noexcept { return static_cast<std::size_t>(chip_.core_count); }
  /// The parameters behind the timing; the network table is left out.
  [[nodiscard]] const configuration& parameters() const noexcept { return *parameters_; }

  /// Time of one flit between two cores, in ns as in the network table.
  [[nodiscard]] double flit_time(std::size_t from, std::size_t to) const {
    check_core(from);
    check_core(to);
    if (latency_) return (*latency_)[from * core_count() + to];
    const auto hops = [&](std::int64_t a, std::int64_t b) { return a < b ? b - a : a - b; };
    const auto s = static_cast<std::int64_t>(from), d = static_cast<std::int64_t>(to);
    const auto distance = hops(s / mesh_width_, d / mesh_width_) + hops(s % mesh_width_, d % mesh_width_);
    return distance == 0 ? 0.0 : 2.0 * static_cast<double>(distance) + 2.0;
  }
  /// Time of one flit from a core to the global memory, in ns.
  [[nodiscard]] double global_flit_time(std::size_t core) const {
    check_core(core);
    return global_latency_ ? (*global_latency_)[core] : 15.0;
  }

  /// One instruction on an idle core, from its issue to the issue of an instruction that needs its result. `n` in
  /// elements; mvmul: used columns. ld, st, send and recv are answered for core 0 and its neighbour.
  [[nodiscard]] picoseconds time(isa::opcode op, std::int64_t n) const {
    using isa::opcode;
    switch (op) {
      case opcode::nop: case opcode::sldi: case opcode::sld: case opcode::sadd: case opcode::ssub: case opcode::smul:
      case opcode::saddi: case opcode::smuli: case opcode::setbw:
        return period_;
      case opcode::mvmul: return matrix_time(n);
      case opcode::vvadd: case opcode::vvsub: case opcode::vvmul: case opcode::vvdmul: case opcode::vvmax: case opcode::vvsll:
      case opcode::vvsra:
        return vector_time(n, 2);
      case opcode::vavg: case opcode::vrelu: case opcode::vtanh: case opcode::vsigm: case opcode::vsoftmax: case opcode::vmv:
      case opcode::vrsu: case opcode::vrsl:
        return vector_time(n, 1);
      case opcode::lldi: return issue(local(false, bytes(n)));
      case opcode::lmv: return issue(local(true, bytes(n)) + local(false, bytes(n)));
      case opcode::ld: return global_time(0, n, false);
      case opcode::st: return global_time(0, n, true);
      case opcode::send: case opcode::recv: return transfer_time(0, core_count() > 1 ? 1 : 0, n);
      case opcode::wait: return issue(0);
      case opcode::sync: return issue(period_);
    }
    return period_;
  }

  /// Energy of one mvmul in picojoules: that of all crossbars of the columns, used or not. `columns`: used ones.
  [[nodiscard]] double product_energy(std::int64_t columns) const {
    return static_cast<double>(divide_up(std::max<std::int64_t>(columns, 1), chip_.weight_columns)) * crossbar_energy_;
  }

  /// A matched send and receive with idle switches, the receiver waiting: ready, go, local read, data, local write.
  /// From a core to itself: a local copy.
  [[nodiscard]] picoseconds transfer_time(std::size_t from, std::size_t to, std::int64_t elements) const {
    if (from == to) {
      check_core(from);
      return time(isa::opcode::lmv, elements);
    }
    const double n = bytes(elements), there = flit_time(from, to), back = flit_time(to, from);
    return issue(message(1, there) + message(1, back) + local(true, n) + message(n, there) + local(false, n));
  }
  /// One ld (store false) or st (true) without contention.
  [[nodiscard]] picoseconds global_time(std::size_t core, std::int64_t elements, bool store) const {
    const double n = bytes(elements), flit = global_flit_time(core);
    const auto& memory = parameters_->chip_config.global_memory_config;
    if (store) return issue(local(true, n) + message(n, flit) + access(memory, false, n) + 1);  // woken by the switch: the edge after
    return issue(message(1, flit) + access(memory, true, n) + local(false, n));
  }
  /// The part of it that the global memory's one port is busy.
  [[nodiscard]] picoseconds global_port_time(std::int64_t elements, bool store) const {
    return access(parameters_->chip_config.global_memory_config, !store, bytes(elements));
  }

 private:
  static constexpr std::int64_t default_adc_count = 16;

  static void require(const std::string& field, std::int64_t value, std::int64_t most) {
    if (value < 1 || value > most)
      throw error(error_code::usage, field + " is " + std::to_string(value) + ", but must be from 1 to " + std::to_string(most), field);
  }
  [[nodiscard]] static std::int64_t divide_up(std::int64_t a, std::int64_t b) { return checked::divide_up(a, b); }

  void read_network(const chip_configuration& c) {
    const auto cores = static_cast<std::size_t>(c.core_cnt);
    std::vector<double> latency(cores * cores, 0.0), global(cores, 0.0);  // a missing entry counts as 0
    for (const auto& [from, row] : c.network_config.table.latency) {
      if (from < 0 || from >= c.core_cnt) continue;
      const auto source = static_cast<std::size_t>(from);
      for (const auto& [to, value] : row) {
        if (to >= 0 && to < c.core_cnt) latency[source * cores + static_cast<std::size_t>(to)] = value;
        if (to == c.global_memory_switch_id) global[source] = value;
      }
    }
    latency_ = std::make_shared<const std::vector<double>>(std::move(latency));
    global_latency_ = std::make_shared<const std::vector<double>>(std::move(global));
  }

  void finish(configuration c, std::int64_t element_bits) {
    if (element_bits != 32 && element_bits != 16 && element_bits != 8)
      throw error(error_code::usage, "element width is " + std::to_string(element_bits) + ", but must be 32, 16 or 8", "--element-bits");
    const auto& matrix = c.chip_config.core_config.matrix_config;
    chip_.core_count = c.chip_config.core_cnt;
    chip_.crossbars_per_core = matrix.xbar_array_count;
    chip_.crossbar_rows = matrix.xbar_size[0];
    chip_.crossbar_columns = matrix.xbar_size[1];
    chip_.cell_bits = matrix.cell_precision;
    chip_.weight_bits = element_bits;
    chip_.element_bits = element_bits;
    chip_.adc_count = matrix.adc_count;
    chip_.weight_columns = checked::multiply(matrix.xbar_size[1], matrix.cell_precision) / element_bits;
    if (chip_.weight_columns < 1)
      throw error(error_code::capacity,
                  "a crossbar of " + std::to_string(matrix.xbar_size[1]) + " columns of " + std::to_string(matrix.cell_precision) +
                      "-bit cells cannot hold a " + std::to_string(element_bits) + "-bit weight",
                  "chip_config.core_config.matrix_config.cell_precision", "choose narrower weights with --element-bits");
    parameters_ = std::make_shared<const configuration>(std::move(c));
    period_ = std::max<picoseconds>(1, to_picoseconds(parameters_->chip_config.core_config.period));
    matrix_read_ = local(true, bytes(chip_.crossbar_rows) * 8);
    matrix_compute_ = matrix_cycles();
    crossbar_energy_ = matrix_energy();
  }

  /// Cycles of the conversion pipeline for one product; qdiv truncates, as the simulator's does.
  [[nodiscard]] picoseconds matrix_cycles() const {
    const auto& m = parameters_->chip_config.core_config.matrix_config;
    const auto number = [](auto v) { return static_cast<double>(v); };
    const auto quotient = [](std::int64_t a, std::int64_t b) { return b == 0 ? std::int64_t{0} : a / b; };
    const double n = number(quotient(chip_.element_bits, m.dac_resolution)) * number(quotient(m.xbar_size[0], m.dac_count));
    const double a = number(quotient(m.xbar_size[1], m.adc_count));
    const double front = number(m.dac_latency_cycle) + std::ceil(m.xbar_latency / m.period) + number(m.sample_hold_latency_cycle);
    const double tail = number(m.shift_adder_latency_cycle) + number(m.output_buffer_latency_cycle);
    const double adc = number(m.adc_latency_cycle);
    const double back = adc + tail + (a - 1) * std::max(adc, tail);
    const double cycles = m.pipeline_mode ? front + back + (n - 1) * std::max(front, back) : n * (front + back);
    return to_picoseconds(cycles * m.period);
  }

  /// Picojoules of one crossbar in one product.
  [[nodiscard]] double matrix_energy() const {
    const auto& m = parameters_->chip_config.core_config.matrix_config;
    const auto number = [](auto v) { return static_cast<double>(v); };
    const auto quotient = [](std::int64_t a, std::int64_t b) { return b == 0 ? std::int64_t{0} : a / b; };
    const double n = number(quotient(chip_.element_bits, m.dac_resolution)) * number(quotient(m.xbar_size[0], m.dac_count));
    const double front = m.period * m.dac_dynamic_power * number(m.dac_latency_cycle) * number(m.dac_count) + m.xbar_read_power * m.xbar_latency +
                         m.period * m.sample_hold_dynamic_power * number(m.sample_hold_latency_cycle) * number(m.xbar_size[1]);
    const double back = number(quotient(m.xbar_size[1], m.adc_count)) * m.period *
                        (m.adc_dynamic_power * number(m.adc_latency_cycle) * number(m.adc_count) + m.shift_adder_dynamic_power * number(m.shift_adder_latency_cycle) +
                         m.output_buffer_dynamic_power * number(m.output_buffer_latency_cycle));
    return n * (front + back);
  }

  void check_core(std::size_t core) const {
    if (core >= core_count())
      throw error(error_code::internal, "core " + std::to_string(core) + " of a chip with " + std::to_string(core_count()) + " cores");
  }
  [[nodiscard]] double bytes(std::int64_t elements) const noexcept {
    return static_cast<double>(std::max<std::int64_t>(elements, 0)) * static_cast<double>(chip_.element_bits / 8);
  }
  [[nodiscard]] static picoseconds access(const memory_configuration& m, bool read, double n) noexcept {
    const auto cycles = static_cast<double>(read ? m.read_latency_cycle : m.write_latency_cycle);
    return to_picoseconds(std::ceil(n / static_cast<double>(m.data_width)) * cycles * m.period);
  }
  [[nodiscard]] picoseconds local(bool read, double n) const noexcept {
    return access(parameters_->chip_config.core_config.local_memory_config, read, n);
  }
  /// A message of n bytes: whole ns, truncated.
  [[nodiscard]] picoseconds message(double n, double flit) const noexcept {
    const double flits = std::ceil(n / static_cast<double>(parameters_->chip_config.network_config.bus_width));
    return to_picoseconds(std::trunc(flits * flit));
  }
  /// Execution of `duration` to whole clock edges, then one edge for the commit and one for the next start.
  [[nodiscard]] picoseconds issue(picoseconds duration) const noexcept {
    picoseconds edges = std::max<picoseconds>(1, duration / period_ + (duration % period_ != 0 ? 1 : 0));
    if (edges == 1 && duration > 0) edges = 2;  // a completion just one period after the start is taken one edge later
    return (edges + 2) * period_;
  }
  [[nodiscard]] picoseconds vector_time(std::int64_t n, int reads) const noexcept {
    const auto& core = parameters_->chip_config.core_config;
    const double length = static_cast<double>(std::max<std::int64_t>(n, 0));
    const auto compute = to_picoseconds(std::ceil(length / static_cast<double>(core.vector_width)) * static_cast<double>(core.vector_latency_cycle));
    return issue(reads * local(true, bytes(n)) + compute + local(false, bytes(n)));
  }
  [[nodiscard]] picoseconds matrix_time(std::int64_t columns) const {
    const auto used = divide_up(std::max<std::int64_t>(columns, 1), chip_.weight_columns);
    const auto write = local(false, bytes(chip_.weight_columns) * static_cast<double>(used));
    return issue(matrix_read_ + matrix_compute_ + write) + period_;  // one edge in the router
  }

  program::geometry chip_;
  std::shared_ptr<const configuration> parameters_;
  std::shared_ptr<const std::vector<double>> latency_;         ///< cores × cores; null: mesh by formula
  std::shared_ptr<const std::vector<double>> global_latency_;  ///< cores
  std::int64_t mesh_width_ = 1;
  picoseconds period_ = 1;
  picoseconds matrix_read_ = 0;
  picoseconds matrix_compute_ = 0;
  double crossbar_energy_ = 0;  ///< pJ
};
static_assert(chip_target<pim>);

/// The target of a command line: flags alone, a configuration alone, or both where they agree.
/// Errors: usage where neither gives a size, mismatch (with both values) where they contradict each other.
[[nodiscard]] inline pim make_pim_target(const pim_flags& flags, const std::optional<configuration>& given = {}, std::int64_t element_bits = 32) {
  if (!given) {
    const auto value = [](const std::optional<std::int64_t>& flag, const char* name) {
      if (!flag)
        throw error(error_code::usage, std::string("missing ") + name, name,
                    "give --core-count, --crossbar-count and --crossbar-size, or --pim-target-config");
      return *flag;
    };
    const auto cores = value(flags.core_count, "--core-count");
    const auto count = value(flags.crossbar_count, "--crossbar-count");
    const auto size = value(flags.crossbar_size, "--crossbar-size");
    return pim(cores, count, size, element_bits);
  }
  const auto agree = [](const std::optional<std::int64_t>& flag, const char* name, std::int64_t value, const char* field) {
    if (flag && *flag != value)
      throw error(error_code::mismatch,
                  std::string(name) + " is " + std::to_string(*flag) + ", but " + field + " of the configuration is " + std::to_string(value),
                  name, std::string("leave ") + name + " out, or make them agree");
  };
  const auto& chip = given->chip_config;
  const auto& matrix = chip.core_config.matrix_config;
  agree(flags.core_count, "--core-count", chip.core_cnt, "chip_config.core_cnt");
  agree(flags.crossbar_count, "--crossbar-count", matrix.xbar_array_count, "chip_config.core_config.matrix_config.xbar_array_count");
  agree(flags.crossbar_size, "--crossbar-size", matrix.xbar_size[0], "chip_config.core_config.matrix_config.xbar_size[0]");
  agree(flags.crossbar_size, "--crossbar-size", matrix.xbar_size[1], "chip_config.core_config.matrix_config.xbar_size[1]");
  return pim(*given, element_bits);
}

}  // namespace raptor::target
