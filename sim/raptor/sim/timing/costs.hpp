#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "raptor/sim/timing/instruction.hpp"
#include "raptor/sim/timing/time.hpp"
#include "raptor/target/configuration.hpp"

/// Times and energies that follow from the configuration alone: crossbars, vector unit, network. Source: TIMING.md 7, 9, 12.
namespace raptor::sim::timing {

/// The computation of one array group, for one width of its inputs.
struct crossbar_cost {
  picoseconds time = 0;
  double energy = 0;  ///< pJ of one crossbar
};

/// Cycles and energy of a crossbar; both depend on the input width only.
class crossbar_costs {
 public:
  explicit crossbar_costs(const target::matrix_configuration& m) : m_(m) {}

  [[nodiscard]] const crossbar_cost& of(std::int32_t input_bits) {
    for (const auto& entry : known_)
      if (entry.bits == input_bits) return entry.cost;
    if (known_.size() == most_known) known_.clear();
    return known_.emplace_back(entry_t{input_bits, compute(input_bits)}).cost;
  }

 private:
  struct entry_t {
    std::int32_t bits;
    crossbar_cost cost;
  };
  static constexpr std::size_t most_known = 16;

  [[nodiscard]] crossbar_cost compute(std::int32_t input_bits) const {
    const auto real = [](std::int64_t x) { return static_cast<double>(x); };
    const std::int64_t n_dac = truncating_quotient(input_bits, m_.dac_resolution) * truncating_quotient(m_.xbar_size[0], m_.dac_count);
    const std::int64_t n_adc = truncating_quotient(m_.xbar_size[1], m_.adc_count);
    // In floating point, so that hostile counts end in the range check of from_ns; exact for all sensible ones.
    const double n = real(n_dac);
    const double front = real(m_.dac_latency_cycle) + std::ceil(m_.xbar_latency / m_.period) + real(m_.sample_hold_latency_cycle);
    const double tail = real(m_.shift_adder_latency_cycle) + real(m_.output_buffer_latency_cycle);
    const double back = real(m_.adc_latency_cycle) + tail + (real(n_adc) - 1) * std::max(real(m_.adc_latency_cycle), tail);
    const double cycles = m_.pipeline_mode ? front + back + (n - 1) * std::max(front, back) : (front + back) * n;
    const double p = m_.period;
    const double front_energy = p * m_.dac_dynamic_power * real(m_.dac_latency_cycle) * real(m_.dac_count) + m_.xbar_read_power * m_.xbar_latency +
                                p * m_.sample_hold_dynamic_power * real(m_.sample_hold_latency_cycle) * real(m_.xbar_size[1]);
    const double back_energy = real(n_adc) * (p * m_.adc_dynamic_power * real(m_.adc_latency_cycle) * real(m_.adc_count) +
                                              p * m_.shift_adder_dynamic_power * real(m_.shift_adder_latency_cycle) +
                                              p * m_.output_buffer_dynamic_power * real(m_.output_buffer_latency_cycle));
    return {from_ns(cycles * p), n * (front_energy + back_energy)};
  }

  target::matrix_configuration m_;
  std::vector<entry_t> known_;
};

/// Latency and energy of one flit between any two nodes. Missing entries of the table count as 0.
class network_costs {
 public:
  struct link {
    double latency = 0;  ///< ns per flit
    double energy = 0;   ///< pJ per flit
  };

  /// \param p nodes are its cores, by index, and last the global memory.
  network_costs(const target::chip_configuration& chip, const program& p) : bus_(chip.network_config.bus_width), nodes_(p.cores.size() + 1) {
    std::unordered_map<std::int64_t, std::size_t> index;
    for (std::size_t c = 0; c < p.cores.size(); ++c) index[p.cores[c].id] = c;
    index[chip.global_memory_switch_id] = p.cores.size();
    is_dense_ = nodes_ <= 1024;
    if (is_dense_) dense_.resize(nodes_ * nodes_);
    const auto fill = [&](const target::network_table::rows& rows, double link::*field) {
      for (const auto& [from, row] : rows) {
        const auto source = index.find(from);
        if (source == index.end()) continue;
        for (const auto& [to, value] : row)
          if (const auto goal = index.find(to); goal != index.end()) {
            const std::size_t key = source->second * nodes_ + goal->second;
            (is_dense_ ? dense_[key] : sparse_[key]).*field = value;
          }
      }
    };
    fill(chip.network_config.table.latency, &link::latency);
    fill(chip.network_config.table.energy, &link::energy);
  }

  /// Charges a message and returns its time, whole ns (quirk 20).
  picoseconds send(std::size_t from, std::size_t to, std::int64_t bytes) {
    const std::size_t key = from * nodes_ + to;
    link l;
    if (is_dense_) l = dense_[key];
    else if (const auto found = sparse_.find(key); found != sparse_.end()) l = found->second;
    const auto flits = static_cast<double>(ceiling(bytes, bus_));
    energy_ += flits * l.energy;
    bytes_ += bytes;
    return from_ns(std::trunc(flits * l.latency));
  }

  [[nodiscard]] double dynamic_energy() const noexcept { return energy_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::int64_t bus_;
  std::size_t nodes_;
  bool is_dense_ = true;
  std::vector<link> dense_;
  std::unordered_map<std::size_t, link> sparse_;
  double energy_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace raptor::sim::timing
