#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "raptor/isa/opcode.hpp"
#include "raptor/sim/deadlock.hpp"
#include "raptor/sim/execution.hpp"
#include "raptor/sim/memory_access.hpp"
#include "raptor/sim/program.hpp"
#include "raptor/sim/stream_check.hpp"
#include "raptor/sim/trace.hpp"
#include "raptor/sim/vector_unit.hpp"
#include "raptor/support/error.hpp"

/// The functional simulator: executes all cores of a program once (latency mode), in 32-bit floats. Source: ISA.md.
namespace raptor::sim {

/// Executes a program. A core runs until it blocks on a send, recv or wait; cores that can run take turns in the order in
/// which they became able to (core ids at the start), in one thread: the same program and input give the same result, trace
/// and error text everywhere. `Traced`: whether execution_options::trace is served; without, tracing costs nothing.
///
/// Requires: every stream has passed check_stream.
template <bool Traced>
class executor {
 public:
  executor(const loaded_program& program, const execution_options& options)
      : program_(program), options_(options), memory_(program, options), vector_(memory_), cores_(program.cores.size()) {
    for (std::size_t c = 0; c < cores_.size(); ++c) {
      cores_[c].id = c;
      cores_[c].stream = program.cores[c].stream.data();
      cores_[c].size = program.cores[c].stream.size();
    }
  }

  /// Puts the host's data into global memory. Requires: the range lies inside.
  void store_global(std::int64_t address, std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    std::memcpy(memory_.global(address), bytes.data(), bytes.size());
    memory_.mark_global(address, static_cast<std::int64_t>(bytes.size()));
  }

  /// Runs all streams to their end. Errors: those of ISA.md, with core and instruction.
  void run() {
    std::size_t left = 0;
    for (auto& core : cores_) {
      if (core.size == 0) continue;
      ++left;
      ready_.push_back(core.id);
    }
    while (!ready_.empty()) {
      core_state& core = cores_[ready_.front()];
      ready_.pop_front();
      if (run_core(core)) --left;
    }
    if (left == 0) return;
    std::vector<core_position> positions;
    for (const auto& core : cores_) positions.push_back({core.next, core.events});
    throw_deadlock(program_, positions);
  }

  [[nodiscard]] std::vector<std::byte> take_global_memory() { return memory_.take_global(); }
  [[nodiscard]] std::int64_t local_extent(std::size_t core) const { return cores_[core].memory.extent(); }

 private:
  // --- transfers ----------------------------------------------------------------------------------

  void load(core_state& core, const isa::instruction& i) {
    if (i.word3 == 0) return;
    const std::int64_t target = memory_access::address(core, i, i.rd, memory_access::rd_bit, 1);
    const std::int64_t source = memory_access::address(core, i, i.r1, memory_access::r1_bit, 1);
    memory_.require_global(core, source, i.word3, "reads");
    memory_.require_global_written(core, source, i.word3);
    memory_.reserve(core, target, i.word3);
    std::memcpy(core.memory.at(target), memory_.global(source), static_cast<std::size_t>(i.word3));
    core.memory.mark(target, target + i.word3);
  }
  void store(core_state& core, const isa::instruction& i) {
    if (i.word3 == 0) return;
    const std::int64_t target = memory_access::address(core, i, i.rd, memory_access::rd_bit, 1);
    const std::int64_t source = memory_access::address(core, i, i.r1, memory_access::r1_bit, 1);
    memory_.require_global(core, target, i.word3, "writes");
    memory_.require(core, source, i.word3);
    std::memcpy(memory_.global(target), core.memory.at(source), static_cast<std::size_t>(i.word3));
    memory_.mark_global(target, i.word3);
  }
  void fill(core_state& core, const isa::instruction& i) {
    if (i.word3 == 0) return;
    const std::int64_t target = memory_access::address(core, i, i.rd, memory_access::rd_bit, 1);
    memory_.reserve(core, target, i.word3);
    std::memset(core.memory.at(target), i.word0 & 0xff, static_cast<std::size_t>(i.word3));
    core.memory.mark(target, target + i.word3);
  }
  void copy(core_state& core, const isa::instruction& i) {
    if (i.word3 == 0) return;
    const std::int64_t target = memory_access::address(core, i, i.rd, memory_access::rd_bit, 1);
    const std::int64_t source = memory_access::address(core, i, i.r1, memory_access::r1_bit, 1);
    memory_.reserve(core, target, i.word3);
    memory_.require(core, source, i.word3);
    if (target < source + i.word3 && source < target + i.word3) memory_.fail_overlap(core, target, source, i.word3, i.word3);
    std::memcpy(core.memory.at(target), core.memory.at(source), static_cast<std::size_t>(i.word3));
    core.memory.mark(target, target + i.word3);
  }

  /// Moves the bytes of a send and its recv. Both cores stand at their instruction; neither is completed here.
  void deliver(core_state& sender, core_state& receiver) {
    const isa::instruction& out = sender.stream[sender.next];
    const isa::instruction& in = receiver.stream[receiver.next];
    if (out.word3 != in.word3)
      memory_.fail(receiver,
                   "receives " + std::to_string(in.word3) + " bytes, but " + place_of(sender.id, sender.next, out) + " sends " +
                       std::to_string(out.word3),
                   "the n-th send from a to b meets the n-th recv at b from a");
    if (out.word3 == 0) return;
    const std::int64_t source = memory_access::address(sender, out, out.r1, memory_access::r1_bit, 1);
    const std::int64_t target = memory_access::address(receiver, in, in.rd, memory_access::rd_bit, 1);
    memory_.require(sender, source, out.word3);
    memory_.reserve(receiver, target, in.word3);
    std::memcpy(receiver.memory.at(target), sender.memory.at(source), static_cast<std::size_t>(in.word3));
    receiver.memory.mark(target, target + in.word3);
  }

  /// A rendezvous from this core's side: true where the peer stood ready and the bytes have moved.
  [[nodiscard]] bool meet(core_state& core, const isa::instruction& i) {
    core_state& peer = cores_[static_cast<std::size_t>(i.word0)];
    const bool sends = i.op == isa::opcode::send;
    // Reported at once, not when the peer comes.
    if (sends && i.word3 != 0) memory_.require(core, memory_access::address(core, i, i.r1, memory_access::r1_bit, 1), i.word3);
    const core_status counterpart = sends ? core_status::receiving : core_status::sending;
    if (&peer == &core || peer.state != counterpart || static_cast<std::size_t>(peer.stream[peer.next].word0) != core.id) {
      core.state = sends ? core_status::sending : core_status::receiving;
      return false;
    }
    if (sends)
      deliver(core, peer);
    else
      deliver(peer, core);
    resume(peer);
    return true;
  }

  /// True where the event register equals the count; then it is reset.
  [[nodiscard]] bool take_event(core_state& core, const isa::instruction& i) {
    std::int64_t& count = core.events[static_cast<std::size_t>(i.word1)];
    if (count > i.word2)
      memory_.fail(core,
                   "overshoot: event " + std::to_string(i.word1) + " is at " + std::to_string(count) + ", above the awaited " + std::to_string(i.word2),
                   "a wait needs exactly its count of signals");
    if (count < i.word2) {
      core.state = core_status::waiting;
      return false;
    }
    count = 0;
    return true;
  }
  void signal(const isa::instruction& i) {
    core_state& target = cores_[static_cast<std::size_t>(i.word0)];
    const std::int64_t count = ++target.events[static_cast<std::size_t>(i.word1)];
    if (target.state != core_status::waiting) return;
    const isa::instruction& wait = target.stream[target.next];
    if (wait.word1 != i.word1 || wait.word2 != count) return;
    target.events[static_cast<std::size_t>(i.word1)] = 0;
    resume(target);
  }

  /// Completes the instruction at which a blocked core stands.
  void resume(core_state& core) {
    trace_completed(core);
    ++core.next;
    core.state = core_status::running;
    ready_.push_back(core.id);
  }

  // --- the loop -----------------------------------------------------------------------------------

  void trace_started(core_state& core, const isa::instruction& i) {
    if constexpr (Traced) core.trace_line = trace_before(core.id, core.next, i, core.registers);
  }
  void trace_completed(core_state& core) {
    if constexpr (Traced) options_.trace(core.trace_line + trace_after(core.stream[core.next], core.registers));
  }

  /// Runs one core until it blocks (false) or its stream ends (true).
  bool run_core(core_state& core) {
    using isa::opcode;
    auto& registers = core.registers;
    const auto wrapped = [](std::int64_t value) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(value))); };
    for (; core.next < core.size; ++core.next) {
      const isa::instruction& i = core.stream[core.next];
      trace_started(core, i);
      switch (i.op) {
        case opcode::nop:
        case opcode::setbw: break;  // check_stream admits 32-bit elements only
        case opcode::sldi: registers[i.rd] = i.word0; break;
        case opcode::sld: load_register(core, i); break;
        case opcode::sadd: registers[i.rd] = wrapped(std::int64_t{registers[i.r1]} + registers[static_cast<std::size_t>(i.word0)]); break;
        case opcode::ssub: registers[i.rd] = wrapped(std::int64_t{registers[i.r1]} - registers[static_cast<std::size_t>(i.word0)]); break;
        case opcode::smul: registers[i.rd] = wrapped(std::int64_t{registers[i.r1]} * registers[static_cast<std::size_t>(i.word0)]); break;
        case opcode::saddi: registers[i.rd] = wrapped(std::int64_t{registers[i.r1]} + i.word0); break;
        case opcode::smuli: registers[i.rd] = wrapped(std::int64_t{registers[i.r1]} * i.word0); break;
        case opcode::mvmul: vector_.matrix_product(core, i, *program_.cores[core.id].groups[static_cast<std::size_t>(i.word2)].weights); break;
        case opcode::vvadd: vector_.two_sources<opcode::vvadd>(core, i); break;
        case opcode::vvsub: vector_.two_sources<opcode::vvsub>(core, i); break;
        case opcode::vvmul: vector_.two_sources<opcode::vvmul>(core, i); break;
        case opcode::vvmax: vector_.two_sources<opcode::vvmax>(core, i); break;
        case opcode::vvdmul: vector_.dot_product(core, i); break;
        case opcode::vvsll:
        case opcode::vvsra: memory_.fail(core, "shifts are for integers; the elements are 32-bit floats");
        case opcode::vavg: vector_.mean(core, i); break;
        case opcode::vrelu: vector_.map_source<opcode::vrelu>(core, i); break;
        case opcode::vtanh: vector_.map_source<opcode::vtanh>(core, i); break;
        case opcode::vsigm: vector_.map_source<opcode::vsigm>(core, i); break;
        case opcode::vsoftmax: vector_.one_source(core, i, kernels::softmax); break;
        case opcode::vmv: vector_.gather(core, i); break;
        case opcode::vrsu: vector_.map_source<opcode::vrsu>(core, i, kernels::bound(registers[static_cast<std::size_t>(i.word0)])); break;
        case opcode::vrsl: vector_.map_source<opcode::vrsl>(core, i, kernels::bound(registers[static_cast<std::size_t>(i.word0)])); break;
        case opcode::ld: load(core, i); break;
        case opcode::st: store(core, i); break;
        case opcode::lldi: fill(core, i); break;
        case opcode::lmv: copy(core, i); break;
        case opcode::send:
        case opcode::recv:
          if (!meet(core, i)) return false;
          break;
        case opcode::wait:
          if (!take_event(core, i)) return false;
          break;
        case opcode::sync: signal(i); break;
      }
      trace_completed(core);
    }
    return true;
  }

  void load_register(core_state& core, const isa::instruction& i) {
    const std::int64_t source = std::int64_t{core.registers[i.r1]} + i.word2;
    memory_.require_global(core, source, memory_access::word, "reads");
    memory_.require_global_written(core, source, memory_access::word);
    std::memcpy(&core.registers[i.rd], memory_.global(source), sizeof(std::int32_t));
  }

  const loaded_program& program_;
  const execution_options& options_;
  memory_access memory_;
  vector_unit vector_;
  std::vector<core_state> cores_;
  std::deque<std::size_t> ready_;
};

namespace detail {

inline void check_regions(const loaded_program& program, const std::vector<tensor_region>& regions, const char* kind) {
  const auto size = static_cast<std::int64_t>(program.global_memory.size());
  for (const auto& region : regions)
    if (region.address < 0 || region.size < 0 || region.size > size || region.address > size - region.size)
      throw error(error_code::malformed, std::string(kind) + " '" + region.name + "' at " + std::to_string(region.address) + " of " +
                                             std::to_string(region.size) + " bytes is not inside global memory of " + std::to_string(size) +
                                             " bytes");
}

template <bool Traced>
[[nodiscard]] execution_result execute(const loaded_program& program, std::span<const std::byte> input, const execution_options& options) {
  execution_result result;
  for (std::size_t c = 0; c < program.cores.size(); ++c) {
    const stream_summary summary = check_stream(program, c);
    result.cores.push_back({summary.counts, program.cores[c].stream.size(), 0, summary.multiply_accumulates});
  }
  executor<Traced> machine(program, options);
  std::size_t offset = 0;
  for (const auto& region : program.inputs) {
    const auto bytes = static_cast<std::size_t>(region.size);
    machine.store_global(region.address, input.subspan(offset, bytes));
    offset += bytes;
  }
  machine.run();
  for (std::size_t c = 0; c < program.cores.size(); ++c) result.cores[c].local_memory = machine.local_extent(c);
  result.global_memory = machine.take_global_memory();
  for (const auto& region : program.outputs) {
    const auto begin = result.global_memory.begin() + region.address;
    result.outputs.push_back({region, std::vector<std::byte>(begin, begin + region.size)});
  }
  return result;
}

}  // namespace detail

/// Executes a program on one input: the raw bytes of all inputs in graph order.
///
/// Errors: mismatch (size of the input), malformed / unsupported (check_stream), execution (ISA.md's list, with core and
/// instruction), deadlock (with its cycle), capacity (memory limits of `options`).
/// Cost: the program's arithmetic, plus one copy of global memory; local memory is reserved as it is used.
[[nodiscard]] inline execution_result execute(const loaded_program& program, std::span<const std::byte> input,
                                              const execution_options& options = {}) {
  detail::check_regions(program, program.inputs, "input");
  detail::check_regions(program, program.outputs, "output");
  const std::int64_t expected = total_size(program.inputs);
  if (static_cast<std::int64_t>(input.size()) != expected) {
    std::vector<std::string> details;
    for (const auto& region : program.inputs) {
      std::string line = "input '" + region.name + "'";
      if (!region.sizes.empty()) line.append(" ").append(to_string(region.sizes));
      details.push_back(line.append(": ").append(std::to_string(region.size)).append(" bytes"));
    }
    throw error(error_code::mismatch,
                "the input has " + std::to_string(input.size()) + " bytes, the program expects " + std::to_string(expected), {},
                "give the raw little-endian bytes of all inputs, one after the other")
        .with_details(std::move(details));
  }
  return options.trace ? detail::execute<true>(program, input, options) : detail::execute<false>(program, input, options);
}

}  // namespace raptor::sim
