#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "raptor/sim/timing_model/network.hpp"
#include "raptor/sim/timing_model/processes.hpp"

/// The scripts of the execution units (TIMING 7) and their energy (TIMING 12).
namespace raptor::sim::timing {

/// Ceiling of the crossbar's counts: plain truncation (quirk 14).
[[nodiscard]] constexpr std::int64_t crossbar_quotient(std::int64_t a, std::int64_t b) noexcept { return b == 0 ? 0 : a / b; }

/// Cycles and energy (pJ) of one crossbar for one input vector of so many bits (TIMING 7 and 12).
struct crossbar_cost {
  std::int64_t cycles;
  double energy;
};
[[nodiscard]] inline crossbar_cost cost_of_crossbar(const target::matrix_configuration& m, std::int32_t input_bits) {
  const double p = m.period;
  const std::int64_t inputs = crossbar_quotient(input_bits, m.dac_resolution) * crossbar_quotient(m.xbar_size[0], m.dac_count);
  const std::int64_t conversions = crossbar_quotient(m.xbar_size[1], m.adc_count);
  const std::int64_t front = m.dac_latency_cycle + static_cast<std::int64_t>(std::ceil(m.xbar_latency / p)) + m.sample_hold_latency_cycle;
  const std::int64_t tail = m.shift_adder_latency_cycle + m.output_buffer_latency_cycle;
  const std::int64_t back = m.adc_latency_cycle + tail + (conversions - 1) * std::max(m.adc_latency_cycle, tail);
  const std::int64_t cycles = m.pipeline_mode ? front + back + (inputs - 1) * std::max(front, back) : (front + back) * inputs;
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const double front_energy = p * m.dac_dynamic_power * number(m.dac_latency_cycle) * number(m.dac_count) + m.xbar_read_power * m.xbar_latency +
                              p * m.sample_hold_dynamic_power * number(m.sample_hold_latency_cycle) * number(m.xbar_size[1]);
  const double back_energy = number(conversions) * (p * m.adc_dynamic_power * number(m.adc_latency_cycle) * number(m.adc_count) +
                                                    p * m.shift_adder_dynamic_power * number(m.shift_adder_latency_cycle) +
                                                    p * m.output_buffer_dynamic_power * number(m.output_buffer_latency_cycle));
  return {cycles, number(inputs) * (front_energy + back_energy)};
}

template <observes Observer>
class units {
 public:
  units(std::vector<node<Observer>>& nodes, const target::configuration& hardware, scheduler& next, network<Observer>& out, Observer& observer)
      : nodes_(nodes), c_(hardware.chip_config.core_config), next_(next), out_(out), observer_(observer), period_(picoseconds(c_.period)) {}

  /// Goes on with a unit's script until it is suspended.
  void run(process& p) {
    node<Observer>& n = nodes_[p.owner];
    if (p.step == 0) p.job = n.state.job(p.unit), p.started = next_.now;
    if (p.unit == transfer_unit) run_transfer(p, n);
    else if (p.unit == vector_unit) run_vector(p, n);
    else run_group(p, n);
  }

 private:
  using opcode = isa::opcode;

  [[nodiscard]] instant access(node<Observer>& n, const flight& job, bool read, std::int64_t bytes, instant delay = 0) {
    const instant d = n.state.local().access(next_.now, read, bytes, delay);
    if constexpr (Observer::enabled) observer_.spend(n.state.index(), job.pc, component::local_memory, n.state.local().last_energy(), bytes);
    return d;
  }
  void pause(process& p, std::uint8_t step, instant delay) {
    p.step = step;
    next_.wait(p, delay);
  }
  void sleep(process& p, std::uint8_t step, signal s) noexcept { p.step = step, p.waits_for = s; }
  void complete(process& p, node<Observer>& n) {
    n.state.complete(p.unit);
    next_.active.insert(n.state.index());
    if constexpr (Observer::enabled) {
      const flight& job = n.state.at(p.job);
      observer_.executed(n.state.index(), p.unit, job.pc, n.state.instruction(job), p.started, next_.now);
    }
    sleep(p, 0, signal::start);
  }

  void run_vector(process& p, node<Observer>& n) {
    const auto& i = n.state.instruction(n.state.at(p.job));
    switch (p.step) {
      case 0: {
        const std::int64_t bytes = bytes_of(n.state.at(p.job).input_bits) * i.length;
        const bool two = i.op == opcode::vvadd || i.op == opcode::vvsub || i.op == opcode::vvmul || i.op == opcode::vvdmul || i.op == opcode::vvmax ||
                         i.op == opcode::vvsll || i.op == opcode::vvsra;
        instant d = access(n, n.state.at(p.job), true, bytes);
        if (two) d = access(n, n.state.at(p.job), true, bytes, d);
        const auto steps = static_cast<double>(ceiling(i.length, c_.vector_width));
        const double energy = c_.vector_alu_dynamic_energy * steps + (c_.vector_reg_read_dynamic_energy * 2 + c_.vector_reg_write_dynamic_energy) * steps;
        n.state.spend_vector(energy);
        if constexpr (Observer::enabled) observer_.spend(n.state.index(), n.state.at(p.job).pc, component::vector, energy, 0);
        const instant computing = picoseconds(steps * static_cast<double>(c_.vector_latency_cycle));  // cycles are ns (quirk 16)
        n.vector_busy += computing;
        return pause(p, 1, d + computing);
      }
      case 1: {
        const bool output_width = i.op == opcode::vvmul || i.op == opcode::vvsll || i.op == opcode::vvsra || i.op == opcode::vtanh || i.op == opcode::vsigm ||
                                  i.op == opcode::vrsu || i.op == opcode::vrsl;
        return pause(p, 2, access(n, n.state.at(p.job), false, bytes_of(output_width ? n.state.at(p.job).output_bits : n.state.at(p.job).input_bits) * i.length));
      }
      default: complete(p, n);
    }
  }
  void run_group(process& p, node<Observer>& n) {
    const auto& m = c_.matrix_config;
    const auto g = static_cast<std::size_t>(p.unit);
    const auto crossbars = n.state.program().groups[g];
    switch (p.step) {
      case 0: {
        const instant d = access(n, n.state.at(p.job), true, m.xbar_size[0] * bytes_of(n.state.at(p.job).input_bits) * 8);  // quirk 13
        const auto& [cycles, one] = crossbar(n.state.at(p.job).input_bits);
        const double energy = one * static_cast<double>(crossbars);
        n.state.spend_matrix(energy);
        if constexpr (Observer::enabled) observer_.spend(n.state.index(), n.state.at(p.job).pc, component::matrix, energy, 0);
        const instant computing = picoseconds(static_cast<double>(cycles) * m.period);
        n.group_busy[g] += computing;
        return pause(p, 1, d + computing);
      }
      case 1: {
        const std::int64_t columns = m.cell_precision * m.xbar_size[1] / n.state.instruction(n.state.at(p.job)).immediate;
        return pause(p, 2, access(n, n.state.at(p.job), false, columns * bytes_of(n.state.at(p.job).output_bits) * crossbars));
      }
      default: complete(p, n);
    }
  }
  void run_transfer(process& p, node<Observer>& n) {
    const auto& i = n.state.instruction(n.state.at(p.job));
    const std::int64_t pc = n.state.at(p.job).pc;
    constexpr std::uint8_t done = 9;
    if (p.step == done) return complete(p, n);
    switch (i.op) {
      case opcode::lmv: {
        const instant read = access(n, n.state.at(p.job), true, i.length);
        return pause(p, done, access(n, n.state.at(p.job), false, i.length, read));
      }
      case opcode::lldi: return pause(p, done, access(n, n.state.at(p.job), false, i.length));
      case opcode::send:
        if (p.step == 0) {
          n.send_to = i.immediate, n.send_tag = pc;
          sleep(p, 1, signal::go);
          return out_.queue(n, {message::type::ready, i.immediate, 1, pc, pc, next_.now});
        }
        if (p.step == 1) return pause(p, 2, access(n, n.state.at(p.job), true, i.length));
        out_.queue(n, {message::type::data, i.immediate, i.length, pc, pc, next_.now});
        n.send_to = -1;
        return complete(p, n);
      case opcode::recv: {
        if (p.step == 1) {
          n.receive_from = -1;
          return pause(p, done, access(n, n.state.at(p.job), false, i.length));
        }
        n.receive_from = i.immediate;
        sleep(p, 1, signal::data);
        const auto known = n.waiting.find(i.immediate);
        if (known != n.waiting.end() && known->second.information != -1)
          out_.queue(n, {message::type::go, i.immediate, 1, std::exchange(known->second.information, -1), pc, next_.now});
        return;
      }
      case opcode::sync:
        out_.queue(n, {message::type::sync, i.immediate, 1, i.select, pc, next_.now});
        return pause(p, done, period_);
      case opcode::wait: {
        auto& counter = n.events[static_cast<std::size_t>(i.select)];
        if (p.step == 0) {
          n.wanted_event = i.select, n.wanted_value = i.value;
          if (counter < i.value) return sleep(p, 1, signal::sync);
        }
        counter -= i.value;  // the surplus is kept (quirk 26)
        n.wanted_event = n.wanted_value = -1;
        if constexpr (Observer::enabled) observer_.waited(n.state.index(), pc, i.select, i.value, next_.now);
        return complete(p, n);
      }
      case opcode::ld:
        if (p.step == 1) return pause(p, done, access(n, n.state.at(p.job), false, i.length));
        sleep(p, 1, signal::request_done);
        return out_.queue(n, {message::type::read, 0, 1, i.length, pc, next_.now});
      case opcode::st:
        if (p.step == 0) return pause(p, 1, access(n, n.state.at(p.job), true, i.length));
        if (p.step == 2) return complete(p, n);
        sleep(p, 2, signal::request_done);
        return out_.queue(n, {message::type::write, 0, i.length, i.length, pc, next_.now});
      default: return complete(p, n);
    }
  }

  [[nodiscard]] const crossbar_cost& crossbar(std::int32_t input_bits) {
    if (last_ == nullptr || last_bits_ != input_bits) {
      last_bits_ = input_bits;
      last_ = &crossbars_.try_emplace(input_bits, cost_of_crossbar(c_.matrix_config, input_bits)).first->second;
    }
    return *last_;
  }

  std::vector<node<Observer>>& nodes_;
  const target::core_configuration& c_;
  scheduler& next_;
  network<Observer>& out_;
  Observer& observer_;
  instant period_;
  std::map<std::int32_t, crossbar_cost> crossbars_;
  const crossbar_cost* last_ = nullptr;
  std::int32_t last_bits_ = 0;
};

}  // namespace raptor::sim::timing
