#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "raptor/isa/check.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/isa/text.hpp"
#include "raptor/sim/program.hpp"
#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"

/// What can be said of a stream before it runs: ranges of fields, groups and cores that exist, element widths that this
/// build executes. Driven by the roles of the instruction table, so a new field is checked as soon as it has a role.
namespace raptor::sim {

/// "core 3, instruction 12: mvmul r1, …": the place of every error that a program causes. With an iteration, of a stream that restarts:
/// "core 3, iteration 2, instruction 12: …".
[[nodiscard]] inline std::string place_of(std::size_t core, std::size_t index, const isa::instruction& i, std::optional<std::size_t> iteration = {}) {
  return "core " + std::to_string(core) + (iteration ? ", iteration " + std::to_string(*iteration) : "") + ", instruction " + std::to_string(index) + ": " +
         (isa::is_valid(i.op) ? isa::to_text(i) : "opcode " + std::to_string(static_cast<int>(i.op)));
}

/// How often each opcode occurs, indexed by its value.
using opcode_counts = std::array<std::uint64_t, isa::opcode_count>;

/// What one stream consists of. Streams have no branches: each instruction is executed exactly once an input.
struct stream_summary {
  opcode_counts counts{};
  std::uint64_t multiply_accumulates = 0;  ///< of mvmul: crossbar rows × group columns each
};

/// Checks the stream of one core. O(instructions).
/// Errors, all with core and instruction: malformed (a field that no machine could execute), execution (an instruction
/// that ISA.md forbids), unsupported (8- and 16-bit elements).
[[nodiscard]] inline stream_summary check_stream(const loaded_program& program, std::size_t core) {
  const core_program& own = program.cores[core];
  const isa::limits chip{checked::narrow<std::int32_t>(program.cores.size()), checked::narrow<std::int32_t>(own.groups.size())};
  stream_summary summary;
  bool widths_known = false;
  for (std::size_t index = 0; index < own.stream.size(); ++index) {
    const isa::instruction& i = own.stream[index];
    const auto refuse = [&](error_code code, const std::string& message, const char* hint = "") {
      throw error(code, message, place_of(core, index, i), hint);
    };
    if (!isa::is_valid(i.op) || isa::find_fault(i, chip)) isa::check(i, place_of(core, index, i), chip);
    ++summary.counts[static_cast<std::size_t>(i.op)];

    if (i.op == isa::opcode::setbw) {
      if (i.word1 != 32 || i.word2 != 32)
        refuse(error_code::unsupported, "8- and 16-bit elements have no functional definition yet",
               "compile with 32-bit elements to execute the program");
      widths_known = true;
      continue;
    }
    const isa::instruction_info& info = isa::infos[static_cast<std::size_t>(i.op)];
    if (info.elements == isa::element_class::setbw_any || info.elements == isa::element_class::setbw_integer) {
      if (!widths_known) refuse(error_code::execution, "no setbw has chosen the element widths", "a stream starts with setbw");
      if (info.elements == isa::element_class::setbw_integer)
        refuse(error_code::execution, "shifts are for integers; the elements are 32-bit floats");
    }
    if (i.op == isa::opcode::mvmul) {
      if (i.word0 != 32) refuse(error_code::unsupported, "weights of " + std::to_string(i.word0) + " bits have no functional definition yet",
                                "compile with 32-bit elements to execute the program");
      const auto& weights = own.groups[static_cast<std::size_t>(i.word2)].weights;
      if (!weights) refuse(error_code::execution, "array group " + std::to_string(i.word2) + " has no weights");
      summary.multiply_accumulates += static_cast<std::uint64_t>(weights->rows()) * weights->columns();
    }
    if ((i.op == isa::opcode::vavg || i.op == isa::opcode::vvdmul) && i.word3 == 0)
      refuse(error_code::execution, "a mean or dot product of no elements");
  }
  return summary;
}

}  // namespace raptor::sim
