#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "raptor/sim/timing_model/observer.hpp"

namespace raptor::sim::timing {

/// What can limit a program.
enum class resource : std::uint8_t { matrix, vector, issue, local_memory, global_memory, network };
inline constexpr std::size_t resource_count = 6;
inline constexpr const char* resource_names[resource_count] = {"matrix units", "vector unit", "issue", "local memory", "global memory", "network"};

/// How much of the run a resource was in use, waiting not included: array groups and vector units while they compute, issue one cycle an
/// instruction, memories during accesses, switches while a message is on the network.
struct resource_use {
  double busiest = 0;     ///< part of the run, of the array group, core, switch or memory that was used most
  double mean = 0;        ///< mean over the cores that have instructions; matrix units: over their array groups
  std::int64_t core = -1; ///< the core of the busiest; −1: none, or the global memory
};

struct core_timing {
  std::int64_t core = 0;
  double finish_ms = 0;     ///< latency mode
  std::int64_t rounds = 0;  ///< throughput mode
  bool active = false;      ///< has instructions
  std::array<double, component_count> energy_pj{};  ///< dynamic, by component; network and global memory: 0
  double static_power_mw = 0;
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

  double elapsed_ns = 0;                                  ///< of the whole run
  double static_power_mw = 0;                             ///< of the whole chip
  std::array<double, component_count> dynamic_energy_pj{};  ///< of the whole run, by component
  std::array<resource_use, resource_count> use{};
  resource binding = resource::issue;  ///< the resource whose busiest instance was used most: no schedule is shorter than its use
  std::int64_t instructions = 0;       ///< fetched
  std::vector<std::string> blocked;    ///< throughput mode: what cores wait for in vain, one line each
};

/// Six decimals, as in the simulator's time-out message.
[[nodiscard]] inline std::string fixed(double value) {
  char text[400];
  const int n = std::snprintf(text, sizeof text, "%.6f", value);
  return std::string(text, static_cast<std::size_t>(n));
}

}  // namespace raptor::sim::timing
