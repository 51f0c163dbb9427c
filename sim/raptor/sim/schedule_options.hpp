#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "raptor/sim/program.hpp"
#include "raptor/sim/stream_check.hpp"
#include "raptor/support/error.hpp"

/// Diagnostic schedules of the functional simulator: which legal order of the cores is executed. Source: PROVENANCE.md.
namespace raptor::sim {

enum class schedule_policy : std::uint8_t {
  greedy,      ///< a core runs until it blocks; cores take turns in the order in which they became able to run
  randomized,  ///< any core that can run, for a random number of instructions
  adversarial  ///< greedy, but the reader of one dependency is held back while its writer may overwrite what it reads
};

/// A write and a read of one range of global memory on two cores, by instruction index.
struct dependency_target {
  std::size_t writer_core = 0;
  std::size_t writer_index = 0;  ///< an st
  std::size_t reader_core = 0;
  std::size_t reader_index = 0;  ///< an ld or sld
  std::int64_t begin = 0;        ///< [begin, end) of global memory
  std::int64_t end = 0;
  std::optional<std::size_t> reader_iteration;        ///< hold back the read of this iteration only; default: of every one
  std::optional<std::size_t> least_writer_iteration;  ///< until the writer has written in this iteration or a later one; default: the one after the reader's
};

/// Delays a core for so many cycles at the start of each of its bodies.
struct core_stall {
  std::size_t core = 0;
  std::uint64_t cycles = 0;
};
/// Delays an instruction for so many cycles each time, or in one iteration only.
struct instruction_stall {
  std::size_t core = 0;
  std::size_t index = 0;
  std::optional<std::size_t> iteration;
  std::uint64_t cycles = 0;
};

/// The order of the cores. A cycle is one executed instruction of any core. Every schedule of a correct program gives the same outputs.
struct schedule_options {
  schedule_policy policy = schedule_policy::greedy;
  std::uint64_t seed = 0;                                ///< of randomized
  std::optional<dependency_target> target;               ///< of adversarial
  std::uint64_t deferral_budget = 10000;                 ///< of adversarial: most turns that other cores get while one read is held back
  std::optional<core_stall> stalled_core;                ///< with any policy
  std::optional<instruction_stall> stalled_instruction;  ///< with any policy
  bool global_barrier = false;                           ///< no core starts its next body before all have ended theirs

  [[nodiscard]] bool is_default() const {
    return policy == schedule_policy::greedy && !stalled_core && !stalled_instruction && !global_barrier;
  }
};

/// Refuses a schedule that does not fit the program: a policy without its target; cores, instructions and iterations that do not exist; a
/// target whose instructions do not access global memory. Errors: mismatch.
inline void check_schedule(const loaded_program& program, const schedule_options& schedule, std::size_t iterations) {
  const auto refuse = [](const std::string& what, const char* hint = "") { throw error(error_code::mismatch, what, "the diagnostic schedule", hint); };
  const auto check_core = [&](const char* what, std::size_t core) {
    if (core >= program.cores.size()) refuse(std::string(what) + " names core " + std::to_string(core) + ", the program has " + std::to_string(program.cores.size()) + " cores");
  };
  const auto check_instruction = [&](const char* what, std::size_t core, std::size_t index) -> const isa::instruction& {
    check_core(what, core);
    const auto& stream = program.cores[core].stream;
    if (index >= stream.size())
      refuse(std::string(what) + " names instruction " + std::to_string(index) + " of core " + std::to_string(core) + ", which has " + std::to_string(stream.size()));
    return stream[index];
  };
  const auto check_iteration = [&](const char* what, std::optional<std::size_t> iteration) {
    if (iteration && *iteration >= iterations) refuse(std::string(what) + " names iteration " + std::to_string(*iteration) + ", the last one is " + std::to_string(iterations - 1));
  };
  if (schedule.stalled_core) check_core("the stall", schedule.stalled_core->core);
  if (schedule.stalled_instruction) {
    check_instruction("the stall", schedule.stalled_instruction->core, schedule.stalled_instruction->index);
    check_iteration("the stall", schedule.stalled_instruction->iteration);
  }
  if (schedule.policy != schedule_policy::adversarial) return;
  if (!schedule.target) refuse("an adversarial schedule needs a target", "name a write and a read of one range of global memory");
  const dependency_target& target = *schedule.target;
  const auto& write = check_instruction("the target's writer", target.writer_core, target.writer_index);
  const auto& read = check_instruction("the target's reader", target.reader_core, target.reader_index);
  check_iteration("the target's reader", target.reader_iteration);
  check_iteration("the target's writer", target.least_writer_iteration);
  if (write.op != isa::opcode::st)
    refuse("the target's writer is no store to global memory: " + place_of(target.writer_core, target.writer_index, write), "name an st");
  if (read.op != isa::opcode::ld && read.op != isa::opcode::sld)
    refuse("the target's reader is no load from global memory: " + place_of(target.reader_core, target.reader_index, read), "name an ld or sld");
  if (target.writer_core == target.reader_core) refuse("the target's writer and reader are the same core, " + std::to_string(target.writer_core));
  if (target.begin < 0 || target.begin >= target.end)
    refuse("the target's range [" + std::to_string(target.begin) + ", " + std::to_string(target.end) + ") is empty or negative");
}

}  // namespace raptor::sim
