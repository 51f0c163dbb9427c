#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

/// raptor-sim --timing (timing.cpp).
namespace raptor::tools {

struct timing_options {
  std::filesystem::path program, hardware;
  std::optional<std::string> mode;        ///< "latency" or "throughput"; empty: the hardware file's
  std::optional<double> sim_time_ms;      ///< empty: the hardware file's
  bool json = false;
};
/// Prints time, power and energy, as text or as one JSON object; returns the exit status (0 for ok and skip, 1 otherwise).
[[nodiscard]] int run_timing(const timing_options& options);

}  // namespace raptor::tools
