#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "raptor/isa/opcode.hpp"
#include "raptor/sim/byte_memory.hpp"
#include "raptor/sim/execution.hpp"
#include "raptor/sim/program.hpp"
#include "raptor/sim/stream_check.hpp"
#include "raptor/support/error.hpp"

/// The state of a core in the functional simulator, and every check of an address. Source: ISA.md, Machine and Errors.
namespace raptor::sim {

/// What a core does, or waits for, at its next instruction.
enum class core_status : std::uint8_t { running, sending, receiving, waiting, at_barrier };

/// The sync that a signal came from.
struct signal_origin {
  std::size_t core = 0;
  std::size_t index = 0;
  std::size_t iteration = 0;
};

/// An event register, and who signalled since its last successful wait.
struct event_register {
  static constexpr std::size_t most_contributors = 16;  ///< that are kept, for the text of an overshoot

  std::int64_t count = 0;
  std::vector<signal_origin> contributors;

  void add(const signal_origin& from) {
    ++count;
    if (contributors.size() < most_contributors) contributors.push_back(from);
  }
  void reset() noexcept {
    count = 0;
    contributors.clear();
  }
};

struct core_state {
  std::size_t id = 0;
  const isa::instruction* stream = nullptr;
  std::size_t size = 0;
  std::size_t next = 0;       ///< the instruction that runs or blocks
  std::size_t iteration = 0;  ///< bodies that it has completed: the number of its input
  std::size_t last_input_read = 0;  ///< index of the instruction after which it does not need its input; see input_feed
  core_status state = core_status::running;
  std::array<std::int32_t, isa::register_count> registers{};
  std::array<event_register, isa::event_count> events{};
  local_memory memory;
  std::string trace_line;  ///< of the current instruction, where a trace is written
};

/// Global memory, the bounds of all memories, and the errors that name core and instruction.
///
/// The usual order of an instruction is: reserve() the destination (which may move local memory), require() the sources, take
/// pointers, compute, mark the destination as written.
class memory_access {
 public:
  static constexpr std::int64_t word = sizeof(float);
  static constexpr std::int32_t rd_bit = 1;  ///< of offset_select
  static constexpr std::int32_t r1_bit = 2;
  static constexpr std::int32_t r2_bit = 4;

  memory_access(const loaded_program& program, const execution_options& options, std::size_t iterations)
      : options_(options), global_(program.global_memory), names_iterations_(iterations > 1) {
    if (!options_.check_global_memory) return;
    global_written_ = byte_set(global_.size());
    if (program.constant_bytes >= 0) {
      global_written_.add(0, std::min(static_cast<std::size_t>(program.constant_bytes), global_.size()));
      return;
    }
    global_written_.add(0, global_.size());
    for (const auto& region : program.outputs)
      global_written_.remove(static_cast<std::size_t>(region.address), static_cast<std::size_t>(region.address + region.size));
  }

  // --- errors -------------------------------------------------------------------------------------

  /// The place of an instruction in errors; with its iteration where the program runs for several inputs.
  [[nodiscard]] std::string place(std::size_t core, std::size_t index, const isa::instruction& i, std::size_t iteration) const {
    return place_of(core, index, i, names_iterations_ ? std::optional(iteration) : std::nullopt);
  }
  [[nodiscard]] std::string place(const core_state& core) const { return place(core.id, core.next, core.stream[core.next], core.iteration); }

  [[noreturn, gnu::noinline, gnu::cold]] void fail(const core_state& core, const std::string& message, const char* hint = "",
                                                   error_code code = error_code::execution) const {
    throw error(code, message, place(core), hint);
  }
  [[nodiscard]] static std::string range_text(std::int64_t address, std::int64_t bytes) {
    return "[" + std::to_string(address) + ", " + std::to_string(address + bytes) + ")";
  }
  [[noreturn, gnu::noinline, gnu::cold]] void fail_unwritten(const core_state& core, std::int64_t address, std::int64_t bytes) const {
    if (address < 0) fail(core, "negative local address " + std::to_string(address));
    const std::int64_t byte = core.memory.first_unwritten(address, address + bytes);
    fail(core, "reads local memory " + range_text(address, bytes) + " but nothing has written byte " + std::to_string(byte),
         "data must be loaded, received, computed or set by lldi before it is read");
  }
  [[noreturn, gnu::noinline, gnu::cold]] void fail_overlap(const core_state& core, std::int64_t target, std::int64_t source,
                                                           std::int64_t target_bytes, std::int64_t source_bytes) const {
    fail(core, "the destination " + range_text(target, target_bytes) + " overlaps the source " + range_text(source, source_bytes),
         core.stream[core.next].op == isa::opcode::lmv ? "lmv needs disjoint ranges" : "a destination may equal a source, not overlap it partly");
  }

  // --- addresses and memory -----------------------------------------------------------------------

  /// Value of an address register, with the offset if its bit of offset_select is set; `scale`: bytes an offset unit.
  [[nodiscard]] static std::int64_t address(const core_state& core, const isa::instruction& i, unsigned reg, std::int32_t bit,
                                            std::int64_t scale) noexcept {
    const std::int64_t base = core.registers[reg];
    return (i.word1 & bit) != 0 ? base + scale * i.word2 : base;
  }

  /// Makes [address, address + bytes) writable. Pointers into the memory become invalid.
  void reserve(core_state& core, std::int64_t address, std::int64_t bytes) {
    const std::int64_t end = address + bytes;
    if (address >= 0 && end <= core.memory.capacity()) [[likely]]
      return;
    if (address < 0) fail(core, "negative local address " + std::to_string(address));
    const std::int64_t limit = std::min(options_.local_memory_limit, local_memory::address_limit);
    if (end > limit) fail(core, "writes local memory " + range_text(address, bytes) + ", beyond its " + std::to_string(limit) + " bytes");
    const std::int64_t left = options_.total_memory_limit - local_total_;
    std::int64_t more = core.memory.capacity_for(end, limit) - core.memory.capacity();
    if (more > left) more = end - core.memory.capacity();  // exactly what is needed may still fit
    if (more > left)
      fail(core, "local memories exceed " + std::to_string(options_.total_memory_limit) + " bytes together",
           "the simulator bounds what a program may use of the host", error_code::capacity);
    core.memory.grow(core.memory.capacity() + more);
    local_total_ += more;
  }
  /// Checks that [address, address + bytes) has been written.
  void require(const core_state& core, std::int64_t address, std::int64_t bytes) const {
    if (address < 0 || !core.memory.written(address, address + bytes)) [[unlikely]]
      fail_unwritten(core, address, bytes);
  }
  void require_global(const core_state& core, std::int64_t address, std::int64_t bytes, const char* verb) const {
    if (address < 0) fail(core, "negative global address " + std::to_string(address));
    if (bytes > static_cast<std::int64_t>(global_.size()) || address > static_cast<std::int64_t>(global_.size()) - bytes)
      fail(core, std::string(verb) + " global memory " + range_text(address, bytes) + ", beyond its " + std::to_string(global_.size()) + " bytes");
  }
  void require_global_written(const core_state& core, std::int64_t address, std::int64_t bytes) const {
    if (!options_.check_global_memory) return;
    const auto begin = static_cast<std::size_t>(address);
    const auto end = static_cast<std::size_t>(address + bytes);
    if (!global_written_.contains(begin, end))
      fail(core, "reads global memory " + range_text(address, bytes) + " but nothing has written byte " +
                     std::to_string(global_written_.first_missing(begin, end)));
  }
  void mark_global(std::int64_t address, std::int64_t bytes) {
    if (options_.check_global_memory)
      global_written_.add(static_cast<std::size_t>(address), static_cast<std::size_t>(address + bytes));
  }
  void refuse_partial_overlap(const core_state& core, std::int64_t target, std::int64_t source, std::int64_t bytes) const {
    if (target != source && target < source + bytes && source < target + bytes) [[unlikely]]
      fail_overlap(core, target, source, bytes, bytes);
  }

  [[nodiscard]] std::byte* global(std::int64_t address) noexcept { return global_.data() + address; }
  [[nodiscard]] std::vector<std::byte> take_global() noexcept { return std::move(global_); }

 private:
  const execution_options& options_;
  std::vector<std::byte> global_;
  byte_set global_written_;  ///< used only with check_global_memory
  std::int64_t local_total_ = 0;
  bool names_iterations_;
};

}  // namespace raptor::sim
