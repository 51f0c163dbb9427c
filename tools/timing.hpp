#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

/// raptor-sim --timing (timing.cpp).
namespace raptor::tools {

struct timing_options {
  std::filesystem::path program, hardware;
  std::string instruction_mode = "auto";  ///< or "single", "directory"
  std::optional<std::string> mode;        ///< "latency" or "throughput"; empty: the hardware file's
  std::optional<double> sim_time_ms;      ///< empty: the hardware file's
  std::filesystem::path trace, profile;   ///< files to write; empty: none
  bool energy_breakdown = false;
  bool json = false;
};
/// Prints time, power, energy and the use of resources, as text or as one JSON object; returns the exit status (0 for ok and skip, 1
/// otherwise). Errors: as text, they are thrown.
[[nodiscard]] int run_timing(const timing_options& options);

}  // namespace raptor::tools
