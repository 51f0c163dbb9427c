#pragma once

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>

#include "raptor/sim/timing_model/pending.hpp"
#include "raptor/support/error.hpp"
#include "raptor/target/configuration.hpp"

namespace raptor::sim::timing {

/// A number as messages say it: six digits.
[[nodiscard]] inline std::string in_words(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}
/// ps(x): x ns as whole picoseconds (TIMING 1). Errors: execution beyond 10⁴ seconds, so that sums of durations stay in range.
[[nodiscard]] inline instant picoseconds(double nanoseconds) {
  if (!(nanoseconds > -1e13 && nanoseconds < 1e13))
    throw error(error_code::execution, "a duration of " + in_words(nanoseconds) + " ns is outside the simulator's range", {},
                "check the latencies and periods of the hardware file");
  return nanoseconds != 0 ? static_cast<instant>(nanoseconds * 1000.0 + 0.5) : 0;
}
/// The smallest whole number that is at least a / b, as TIMING 1 takes it in floating point (equal below 2⁵²). Requires b > 0.
[[nodiscard]] constexpr std::int64_t ceiling(std::int64_t a, std::int64_t b) noexcept {
  if (static_cast<std::uint64_t>(a) < (1u << 30) && static_cast<std::uint64_t>(b) < (1u << 30))
    return (static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b) - 1) / static_cast<std::uint32_t>(b);
  return a / b + (a % b > 0 ? 1 : 0);
}

/// A memory with one port, first come first served (TIMING 8).
class memory_port {
 public:
  /// The configuration must outlive the port.
  explicit memory_port(const target::memory_configuration& c) : configuration_(&c) {}

  /// An access at `now`: the delay until it is complete, queueing included, behind `delay` where the port was free.
  [[nodiscard]] instant access(instant now, bool read, std::int64_t bytes, instant delay = 0) {
    const std::int64_t n = ceiling(bytes, configuration_->data_width);
    const auto count = static_cast<double>(n);
    last_energy_ = (read ? configuration_->read_dynamic_energy : configuration_->write_dynamic_energy) * count;
    dynamic_ += last_energy_;
    const double cycles = count * static_cast<double>(read ? configuration_->read_latency_cycle : configuration_->write_latency_cycle);
    const instant latency = picoseconds(cycles * configuration_->period);
    busy_ += latency;
    if (now > free_) {
      free_ = now + latency;
      return delay + latency;
    }
    free_ += latency;
    return free_ - now;
  }
  [[nodiscard]] double dynamic_energy() const noexcept { return dynamic_; }
  [[nodiscard]] double static_power() const noexcept { return configuration_->static_power; }
  /// Time that accesses took, without queueing.
  [[nodiscard]] instant busy() const noexcept { return busy_; }
  /// Of the last access, pJ.
  [[nodiscard]] double last_energy() const noexcept { return last_energy_; }
  /// When the last access ends.
  [[nodiscard]] instant free_at() const noexcept { return free_; }

 private:
  const target::memory_configuration* configuration_;
  instant free_ = 0, busy_ = 0;
  double dynamic_ = 0, last_energy_ = 0;
};

}  // namespace raptor::sim::timing
