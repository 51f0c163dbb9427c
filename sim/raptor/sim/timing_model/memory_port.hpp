#pragma once

#include <cmath>
#include <cstdint>

#include "raptor/sim/timing_model/pending.hpp"
#include "raptor/target/configuration.hpp"

namespace raptor::sim::timing {

/// ps(x): x ns as whole picoseconds (TIMING 1).
[[nodiscard]] inline instant picoseconds(double nanoseconds) noexcept {
  return nanoseconds != 0 ? static_cast<instant>(nanoseconds * 1000.0 + 0.5) : 0;
}
/// A true ceiling, taken in floating point (TIMING 1).
[[nodiscard]] inline std::int64_t ceiling(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(a) * 1.0 / static_cast<double>(b)));
}

/// A memory with one port, first come first served (TIMING 8).
class memory_port {
 public:
  explicit memory_port(const target::memory_configuration& c) : configuration_(c) {}

  /// An access at `now`: the delay until it is complete, queueing included, behind `delay` where the port was free.
  [[nodiscard]] instant access(instant now, bool read, std::int64_t bytes, instant delay = 0) {
    const std::int64_t n = ceiling(bytes, configuration_.data_width);
    const auto count = static_cast<double>(n);
    dynamic_ += (read ? configuration_.read_dynamic_energy : configuration_.write_dynamic_energy) * count;
    const auto cycles = static_cast<double>(n * (read ? configuration_.read_latency_cycle : configuration_.write_latency_cycle));
    const instant latency = picoseconds(cycles * configuration_.period);
    if (now > free_) {
      free_ = now + latency;
      return delay + latency;
    }
    free_ += latency;
    return free_ - now;
  }
  [[nodiscard]] double dynamic_energy() const noexcept { return dynamic_; }
  [[nodiscard]] double static_power() const noexcept { return configuration_.static_power; }

 private:
  target::memory_configuration configuration_;
  instant free_ = 0;
  double dynamic_ = 0;
};

}  // namespace raptor::sim::timing
