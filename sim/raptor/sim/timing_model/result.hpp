#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace raptor::sim::timing {

struct core_timing {
  std::int64_t core = 0;
  double finish_ms = 0;     ///< latency mode
  std::int64_t rounds = 0;  ///< throughput mode
  bool active = false;      ///< has instructions
};

/// Time and energy of one run (TIMING 11).
struct timing_result {
  bool latency_mode = true;
  double latency_ms = 0;    ///< throughput mode: the average
  double energy_pj = 0;     ///< throughput mode: per sample
  double power_mw = 0;
  std::int64_t samples = 0; ///< throughput mode
  double samples_per_second = 0;
  std::vector<core_timing> cores;
};

/// Six decimals, as in the simulator's time-out message.
[[nodiscard]] inline std::string fixed(double value) {
  char text[400];
  const int n = std::snprintf(text, sizeof text, "%.6f", value);
  return std::string(text, static_cast<std::size_t>(n));
}

}  // namespace raptor::sim::timing
