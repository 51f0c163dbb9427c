#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "raptor/sim/byte_memory.hpp"
#include "raptor/sim/execution.hpp"
#include "raptor/sim/program.hpp"
#include "raptor/support/error.hpp"

/// The outputs of a batch, each under the iteration of the core that stored it. Source: PROVENANCE.md.
namespace raptor::sim {

/// Takes every store into an output region when it happens: a look at global memory at the end would show the outputs of different inputs.
class output_record {
 public:
  /// Errors: capacity where the outputs of `inputs` inputs exceed `limit` bytes.
  output_record(const loaded_program& program, std::size_t inputs, std::int64_t limit) : program_(program), iterations_(inputs) {
    for (const auto& region : program.outputs) {
      offsets_.push_back(bytes_);
      bytes_ = checked::add(bytes_, region.size);
      if (region.size == 0) continue;
      begin_ = std::min(begin_, region.address);
      end_ = std::max(end_, region.address + region.size);
    }
    if (bytes_ != 0 && static_cast<std::int64_t>(inputs) > limit / bytes_)
      throw error(error_code::capacity, "the outputs of " + std::to_string(inputs) + " inputs, " + std::to_string(bytes_) + " bytes each, exceed " +
                                            std::to_string(limit) + " bytes", {}, "run a shorter batch");
    is_stored_.resize(program.outputs.size(), false);
  }

  /// Notes a store under an iteration. Cost: O(1) outside of the outputs' range of addresses.
  void store(std::size_t iteration, std::int64_t address, std::span<const std::byte> bytes) {
    const std::int64_t end = address + static_cast<std::int64_t>(bytes.size());
    if (end <= begin_ || address >= end_) return;
    for (std::size_t r = 0; r < program_.outputs.size(); ++r) {
      const tensor_region& region = program_.outputs[r];
      const std::int64_t from = std::max(address, region.address), to = std::min(end, region.address + region.size);
      if (from >= to) continue;
      values& own = iterations_[iteration];
      if (own.bytes.empty()) own.bytes.resize(static_cast<std::size_t>(bytes_)), own.stored = byte_set(own.bytes.size());
      const auto at = static_cast<std::size_t>(offsets_[r] + from - region.address), count = static_cast<std::size_t>(to - from);
      std::memcpy(own.bytes.data() + at, bytes.data() + (from - address), count);
      own.stored.add(at, at + count);
      is_stored_[r] = true;
    }
  }

  /// The outputs of every input, in the order of loaded_program::outputs. What nobody ever stores has the contents that memory has when the input has
  /// been placed: an output that no core stores, a byte of an input, a constant.
  /// Errors: execution, with output and input, where a byte of an output was stored for some inputs or in part, but not here.
  [[nodiscard]] std::vector<std::vector<output_value>> take(std::span<const std::span<const std::byte>> inputs) {
    std::vector<std::vector<output_value>> result(iterations_.size());
    for (std::size_t n = 0; n < iterations_.size(); ++n) {
      values& own = iterations_[n];
      for (std::size_t r = 0; r < program_.outputs.size(); ++r) {
        const tensor_region& region = program_.outputs[r];
        std::vector<std::byte> bytes = resting(region, inputs[n]);
        const auto at = static_cast<std::size_t>(offsets_[r]), end = at + bytes.size();
        for (std::size_t k = at; is_stored_[r] && k < end; ++k) {
          const std::size_t missing = own.bytes.empty() ? k : own.stored.first_missing(k, end);
          if (missing != k) std::memcpy(bytes.data() + (k - at), own.bytes.data() + k, missing - k);
          if (missing != end && !rests(region.address + static_cast<std::int64_t>(missing - at)))
            throw error(error_code::execution, "byte " + std::to_string(missing - at) + " of output '" + region.name + "' was not stored for input " + std::to_string(n), {},
                        "every iteration of the streams must store every byte of an output");
          k = missing;
        }
        result[n].push_back({region, std::move(bytes)});
      }
      own = {};
    }
    return result;
  }

 private:
  struct values {
    std::vector<std::byte> bytes;  ///< of all outputs; empty: nothing stored yet
    byte_set stored;
  };

  /// True where a byte of global memory has a meaning that no core needs to store.
  [[nodiscard]] bool rests(std::int64_t address) const {
    if (address < program_.constant_bytes) return true;
    return std::any_of(program_.inputs.begin(), program_.inputs.end(),
                       [&](const tensor_region& input) { return input.address <= address && address < input.address + input.size; });
  }
  /// The contents of a region when an input has been placed and no core has stored anything.
  [[nodiscard]] std::vector<std::byte> resting(const tensor_region& region, std::span<const std::byte> input) const {
    const auto initial = program_.global_memory.begin() + region.address;
    std::vector<std::byte> bytes(initial, initial + region.size);
    std::size_t offset = 0;
    for (const auto& source : program_.inputs) {
      const std::int64_t from = std::max(source.address, region.address), to = std::min(source.address + source.size, region.address + region.size);
      if (from < to) std::memcpy(bytes.data() + (from - region.address), input.data() + offset + (from - source.address), static_cast<std::size_t>(to - from));
      offset += static_cast<std::size_t>(source.size);
    }
    return bytes;
  }

  const loaded_program& program_;
  std::vector<values> iterations_;
  std::vector<std::int64_t> offsets_;  ///< of each output in `bytes`
  std::vector<bool> is_stored_;        ///< by output: some core has stored a byte of it
  std::int64_t bytes_ = 0;
  std::int64_t begin_ = std::numeric_limits<std::int64_t>::max();  ///< addresses of all outputs
  std::int64_t end_ = 0;
};

}  // namespace raptor::sim
