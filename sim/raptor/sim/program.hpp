#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "raptor/isa/opcode.hpp"
#include "raptor/sim/crossbar_matrix.hpp"
#include "raptor/support/box.hpp"

/// What the simulators execute: a program in memory, whether it was read from an artifact directory (sim/artifact.hpp)
/// or put together by hand.
namespace raptor::sim {

/// One input or output of the network in global memory.
struct tensor_region {
  std::string name;
  std::int64_t address = 0;                ///< bytes, in global memory
  std::int64_t size = 0;                   ///< bytes
  shape sizes;                             ///< elements a dimension; empty: not recorded
  std::string element_type = "float32";
};

/// An array group of a core: so many crossbars side by side that share their input.
struct array_group {
  std::int64_t crossbars = 1;
  std::shared_ptr<const crossbar_matrix> weights;  ///< crossbar rows × group columns; replicas share one
};

/// What one core holds and runs.
struct core_program {
  std::vector<isa::instruction> stream;
  std::vector<array_group> groups;  ///< index: array group number
};

/// A whole chip's program. Core ids are indices into `cores`.
struct loaded_program {
  std::vector<core_program> cores;
  std::vector<std::byte> global_memory;  ///< initial contents; its size is the size of global memory
  std::int64_t constant_bytes = -1;      ///< global memory below is initialized by the file; -1: not recorded
  std::vector<tensor_region> inputs;     ///< graph order
  std::vector<tensor_region> outputs;    ///< graph order
};

/// Bytes of all regions together.
[[nodiscard]] inline std::int64_t total_size(const std::vector<tensor_region>& regions) {
  std::int64_t bytes = 0;
  for (const auto& region : regions) bytes = checked::add(bytes, region.size);
  return bytes;
}

/// Shorthand for programs made by hand: an array group of one crossbar from row-major weights.
[[nodiscard]] inline array_group make_group(std::size_t rows, std::size_t columns, const std::vector<float>& values) {
  return {1, std::make_shared<const crossbar_matrix>(rows, columns, values)};
}

}  // namespace raptor::sim
