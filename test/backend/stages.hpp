#pragma once

#include <string>
#include <vector>

#include "harness.hpp"

namespace raptor::backend {

/// Where the package libonnx-testdata installs its data.
inline constexpr const char* default_root = "/usr/share/libonnx-testdata/data";

/// How a test is compiled. The default chip has small crossbars, so that even these tests need several, on few cores that have
/// to talk to one another.
struct compile_settings {
  std::int64_t cores = 4, crossbars = 64, crossbar_size = 32;
  std::string convolution = "auto";  ///< strategy to force
  bool spatial_planning = true;
};

/// The reference evaluator on the graph after all rewrites, with each step of them checked.
[[nodiscard]] stage rewritten_stage();
/// Compiles with the default pipeline, verifies the realized and the bound program, executes in the functional simulator.
[[nodiscard]] stage executed_stage(const compile_settings& settings = {});

/// The stages of the table, in the order of its columns.
[[nodiscard]] std::vector<stage> all_stages();

}  // namespace raptor::backend
