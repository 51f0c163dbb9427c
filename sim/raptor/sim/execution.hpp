#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "raptor/sim/byte_memory.hpp"
#include "raptor/sim/program.hpp"
#include "raptor/sim/schedule_options.hpp"
#include "raptor/sim/stream_check.hpp"

/// What a caller of the functional simulator chooses and gets.
namespace raptor::sim {

static_assert(std::endian::native == std::endian::little, "memory images are little endian and used in place");

struct execution_options {
  /// Also report reads of global memory that nothing has written: neither memory.bin's constants nor the host's inputs nor a st. Where
  /// the program does not record which bytes are constants (loaded_program::constant_bytes), only the outputs count as unwritten.
  bool check_global_memory = false;
  /// Most bytes of local memory that one core may address; at most 2^31.
  std::int64_t local_memory_limit = local_memory::address_limit;
  /// Most bytes of local memory reserved for all cores together.
  std::int64_t total_memory_limit = std::int64_t{4} << 30;
  /// Receives one line (without its end) for each executed instruction; empty: no trace, at no cost.
  std::function<void(std::string_view)> trace;

  /// Follow which inputs every byte depends on, for diagnosis_summary; off: at no cost.
  bool provenance = false;
  /// Receives the events of PROVENANCE.md, one JSON line (without its end) each; turns provenance on.
  std::function<void(std::string_view)> provenance_trace;
  /// Which legal order of the cores is executed. The default costs nothing.
  schedule_options schedule;

  [[nodiscard]] bool follows_provenance() const { return provenance || provenance_trace; }
  /// Something is observed or ordered that the plain executor does not offer.
  [[nodiscard]] bool is_diagnosis() const { return trace || follows_provenance() || !schedule.is_default(); }
};

/// What a diagnosis has found.
struct diagnosis_summary {
  std::uint64_t mixes = 0;                  ///< results with a byte that depends on more than one input
  std::string first_mix;                    ///< the instruction of the first one
  std::uint64_t foreign_output_stores = 0;  ///< stores into an output whose data depends on another input than that of the storing body
  std::uint64_t held_reads = 0;             ///< reads of the target that an adversarial schedule has held back
  std::uint64_t overtaken_reads = 0;        ///< those of them before which the writer had written again: faults of the program

  /// How inputs got into each other; empty: they did not, as far as provenance was followed.
  [[nodiscard]] std::string fault() const {
    if (mixes != 0) return "inputs mix at " + first_mix;
    return foreign_output_stores != 0 ? "an output depends on another input" : "";
  }
};

/// The final contents of one output.
struct output_value {
  tensor_region region;
  std::vector<std::byte> bytes;

  /// The elements as floats. Errors: mismatch where the size is not a multiple of 4.
  [[nodiscard]] std::vector<float> values() const {
    if (bytes.size() % sizeof(float) != 0)
      throw error(error_code::mismatch, "output '" + region.name + "' of " + std::to_string(bytes.size()) + " bytes does not hold floats");
    std::vector<float> result(bytes.size() / sizeof(float));
    if (!result.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
};

struct core_statistics {
  opcode_counts counts{};                  ///< executed instructions
  std::uint64_t instructions = 0;
  std::int64_t local_memory = 0;           ///< bytes: one past the highest address written
  std::uint64_t multiply_accumulates = 0;  ///< of mvmul, whole groups
};

/// Sums over the cores of a run.
[[nodiscard]] inline opcode_counts total_counts(const std::vector<core_statistics>& cores) {
  opcode_counts total{};
  for (const auto& core : cores)
    for (std::size_t op = 0; op < total.size(); ++op) total[op] += core.counts[op];
  return total;
}
[[nodiscard]] inline std::uint64_t total_instructions(const std::vector<core_statistics>& cores) {
  std::uint64_t total = 0;
  for (const auto& core : cores) total += core.instructions;
  return total;
}

/// The bytes of outputs, one after the other, as raptor-sim writes them.
[[nodiscard]] inline std::vector<std::byte> bytes_of(const std::vector<output_value>& outputs) {
  std::vector<std::byte> all;
  for (const auto& output : outputs) all.insert(all.end(), output.bytes.begin(), output.bytes.end());
  return all;
}

struct execution_result {
  std::vector<output_value> outputs;     ///< in the order of loaded_program::outputs
  std::vector<std::byte> global_memory;  ///< final contents
  std::vector<core_statistics> cores;
  diagnosis_summary diagnosis;           ///< as far as the options asked for one

  [[nodiscard]] opcode_counts total_counts() const { return sim::total_counts(cores); }
  [[nodiscard]] std::uint64_t instructions() const { return total_instructions(cores); }
  [[nodiscard]] std::vector<std::byte> output_bytes() const { return bytes_of(outputs); }
  /// The output of that name. Errors: mismatch where there is none.
  [[nodiscard]] const output_value& output(std::string_view name) const {
    for (const auto& candidate : outputs)
      if (candidate.region.name == name) return candidate;
    throw error(error_code::mismatch, "the program has no output '" + std::string(name) + "'");
  }
};

/// What a batch gives.
struct batch_result {
  std::vector<std::vector<output_value>> outputs;  ///< [input], in the order of loaded_program::outputs
  std::vector<std::byte> global_memory;            ///< final contents
  std::vector<core_statistics> cores;              ///< of all inputs together
  diagnosis_summary diagnosis;                     ///< as far as the options asked for one
};

}  // namespace raptor::sim
