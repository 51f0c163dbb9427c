#pragma once

#include <cstdint>

#include "raptor/sim/timing/time.hpp"
#include "raptor/support/error.hpp"
#include "raptor/target/configuration.hpp"

namespace raptor::sim::timing {

/// A local or the global memory: one port, first come first served in the order of the calls. Source: TIMING.md 8.
class memory_port {
 public:
  /// \param m data_width must be positive.
  explicit memory_port(const target::memory_configuration& m)
      : width_(m.data_width), period_(m.period), read_{m.read_latency_cycle, m.read_dynamic_energy}, write_{m.write_latency_cycle, m.write_dynamic_energy} {}

  /// Reserves the port for an access of `bytes` at `now`. Returns the delay until it is complete, queueing included. A second access
  /// right behind a first one returns the completion of both. O(1).
  picoseconds read(std::int64_t bytes, picoseconds now) { return access(read_, bytes, now); }
  picoseconds write(std::int64_t bytes, picoseconds now) { return access(write_, bytes, now); }

  [[nodiscard]] double dynamic_energy() const noexcept { return energy_; }  ///< pJ
  [[nodiscard]] picoseconds busy() const noexcept { return busy_; }         ///< time for which the port was occupied
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }      ///< bytes moved

 private:
  struct direction {
    std::int64_t latency_cycles;
    double energy;
    std::int64_t last_count = 0;  // most accesses of a program have one of few sizes
    picoseconds last_latency = 0;
  };

  picoseconds access(direction& d, std::int64_t size, picoseconds now) {
    const std::int64_t count = ceiling(size, width_);
    energy_ += d.energy * static_cast<double>(count);
    if (count != d.last_count) {
      d.last_latency = from_ns(static_cast<double>(count) * static_cast<double>(d.latency_cycles) * period_);
      d.last_count = count;
    }
    free_ = (now > free_ ? now : free_) + d.last_latency;
    if (free_ > most_time) throw error(error_code::capacity, "the accesses to a memory end beyond the range of the timing model");
    busy_ += d.last_latency;
    bytes_ += size;
    return free_ - now;
  }

  std::int64_t width_;
  double period_;
  direction read_, write_;
  picoseconds free_ = 0;
  double energy_ = 0;
  picoseconds busy_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace raptor::sim::timing
