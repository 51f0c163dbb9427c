#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "raptor/isa/opcode.hpp"
#include "raptor/sim/deadlock.hpp"
#include "raptor/sim/execution.hpp"
#include "raptor/sim/input_feed.hpp"
#include "raptor/sim/memory_access.hpp"
#include "raptor/sim/output_record.hpp"
#include "raptor/sim/program.hpp"
#include "raptor/sim/provenance.hpp"
#include "raptor/sim/schedule_options.hpp"
#include "raptor/sim/stream_check.hpp"
#include "raptor/sim/trace.hpp"
#include "raptor/sim/turns.hpp"
#include "raptor/sim/vector_unit.hpp"
#include "raptor/support/error.hpp"

/// The functional simulator: executes all cores of a program in 32-bit floats, once (latency mode) or once for each input of a batch
/// (throughput mode). Source: ISA.md, INVARIANTS.md.
namespace raptor::sim {

/// Executes a program on a batch of inputs; one input is a batch of one. A core that ends its stream starts it again at once until it has run it
/// for every input; registers, events and local memory keep their values. It runs until it blocks on a send, recv or wait; cores that can run
/// take turns in the order in which they became able to (core ids at the start), in one thread: the same program and inputs give the same
/// result, trace and error text everywhere. `Diagnosed`: whether traces, provenance and schedules of execution_options are served; without, they
/// cost nothing.
///
/// Requires: every stream has passed check_stream; at least one input, each of the size of all input regions together.
template <bool Diagnosed>
class executor {
 public:
  executor(const loaded_program& program, std::span<const std::span<const std::byte>> inputs, const execution_options& options)
      : program_(program), options_(options), inputs_(inputs), memory_(program, options, inputs.size()), vector_(memory_), cores_(program.cores.size()),
        feed_(program, inputs.size()), turns_(make_turns()) {
    if constexpr (Diagnosed) {
      if (options_.follows_provenance()) provenance_.emplace(program, inputs.size(), options);
      if (provenance_) turns_.observe([this](const schedule_event& e) { provenance_->scheduled(e, turns_.cycle()); });
    }
    for (std::size_t c = 0; c < cores_.size(); ++c) {
      cores_[c].id = c;
      cores_[c].stream = program.cores[c].stream.data();
      cores_[c].size = program.cores[c].stream.size();
      cores_[c].last_input_read = feed_.last_read(c);
    }
  }

  /// Keeps the outputs of every input for take_outputs(). Call it before run(). Errors: of output_record.
  void record_outputs() { outputs_.emplace(program_, inputs_.size(), options_.total_memory_limit); }

  /// Runs all streams to their end, for every input. Errors: those of ISA.md, with core and instruction.
  void run() {
    place_input(0);
    std::size_t left = 0;
    for (auto& core : cores_) {
      if (core.size == 0) continue;
      ++left;
      turns_.add(core.id);
    }
    while (const auto next = turns_.next())
      if (run_core(cores_[*next])) --left;
    if (left != 0) report_deadlock();
    feed_.finish([this](std::size_t n) { place_input(n); });
  }

  [[nodiscard]] std::vector<std::byte> take_global_memory() { return memory_.take_global(); }
  /// Requires: record_outputs() and run(). Errors: of output_record::take.
  [[nodiscard]] std::vector<std::vector<output_value>> take_outputs() { return outputs_->take(inputs_); }
  [[nodiscard]] std::int64_t local_extent(std::size_t core) const { return cores_[core].memory.extent(); }
  [[nodiscard]] diagnosis_summary diagnosis() const {
    diagnosis_summary summary;
    if (provenance_) summary = provenance_->summary();
    if constexpr (Diagnosed) summary.held_reads = turns_.held_reads(), summary.overtaken_reads = turns_.overtaken_reads();
    return summary;
  }

 private:
  using turns = std::conditional_t<Diagnosed, schedule_turns, ready_queue>;
  [[nodiscard]] turns make_turns() const {
    if constexpr (Diagnosed) {
      const auto running = std::count_if(program_.cores.begin(), program_.cores.end(), [](const core_program& core) { return !core.stream.empty(); });
      return schedule_turns(options_.schedule, static_cast<std::size_t>(running), inputs_.size());
    } else {
      return {};
    }
  }

  // --- the host -----------------------------------------------------------------------------------

  void place_input(std::size_t n) {
    std::size_t offset = 0;
    for (const auto& region : program_.inputs) {
      const auto bytes = inputs_[n].subspan(offset, static_cast<std::size_t>(region.size));
      offset += bytes.size();
      if (bytes.empty()) continue;
      if constexpr (Diagnosed)
        if (provenance_) provenance_->placed(region, n, turns_.cycle());
      std::memcpy(memory_.global(region.address), bytes.data(), bytes.size());
      memory_.mark_global(region.address, region.size);
    }
  }
  /// After an instruction, or at the end of the body: the core may have done its last read of the input.
  void note_read(const core_state& core) {
    if (core.next != core.last_input_read) [[likely]]
      return;
    feed_.read(core.id, [this](std::size_t n) { place_input(n); });
  }

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
    if (outputs_) outputs_->store(core.iteration, target, {memory_.global(target), static_cast<std::size_t>(i.word3)});
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
                   "receives " + std::to_string(in.word3) + " bytes, but " + memory_.place(sender) + " sends " +
                       std::to_string(out.word3),
                   "the n-th send from a to b meets the n-th recv at b from a");
    if (out.word3 == 0) return;
    const std::int64_t source = memory_access::address(sender, out, out.r1, memory_access::r1_bit, 1);
    const std::int64_t target = memory_access::address(receiver, in, in.rd, memory_access::rd_bit, 1);
    memory_.require(sender, source, out.word3);
    memory_.reserve(receiver, target, in.word3);
    std::memcpy(receiver.memory.at(target), sender.memory.at(source), static_cast<std::size_t>(in.word3));
    receiver.memory.mark(target, target + in.word3);
    if constexpr (Diagnosed)
      if (provenance_) provenance_->transferred(sender, receiver, source, target, turns_.cycle());
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
    event_register& event = core.events[static_cast<std::size_t>(i.word1)];
    if (event.count > i.word2) report_overshoot(core, i, event);
    if (event.count < i.word2) {
      core.state = core_status::waiting;
      return false;
    }
    event.reset();
    return true;
  }
  void signal(const core_state& core, const isa::instruction& i) {
    core_state& target = cores_[static_cast<std::size_t>(i.word0)];
    event_register& event = target.events[static_cast<std::size_t>(i.word1)];
    event.add({core.id, core.next, core.iteration});
    if (target.state != core_status::waiting) return;
    const isa::instruction& wait = target.stream[target.next];
    if (wait.word1 != i.word1 || wait.word2 != event.count) return;
    event.reset();
    resume(target);
  }
  [[noreturn, gnu::noinline, gnu::cold]] void report_overshoot(const core_state& core, const isa::instruction& i, const event_register& event) const {
    std::vector<std::string> details;
    for (const auto& from : event.contributors)
      details.push_back("signalled by " + memory_.place(from.core, from.index, cores_[from.core].stream[from.index], from.iteration));
    const auto others = event.count - static_cast<std::int64_t>(details.size());
    if (others != 0) details.push_back("and by " + std::to_string(others) + " more after these");
    throw error(error_code::execution,
                "overshoot: event " + std::to_string(i.word1) + " is at " + std::to_string(event.count) + ", above the awaited " + std::to_string(i.word2),
                memory_.place(core), "a wait needs exactly its count of signals since the wait before it")
        .with_details(std::move(details));
  }
  [[noreturn, gnu::noinline, gnu::cold]] void report_deadlock() const {
    std::vector<core_position> positions;
    for (const auto& core : cores_) {
      core_position& position = positions.emplace_back(core_position{core.next, core.iteration, core.state == core_status::at_barrier, {}});
      for (std::size_t e = 0; e < core.events.size(); ++e) position.events[e] = core.events[e].count;
    }
    throw_deadlock(program_, positions, inputs_.size());
  }

  /// Completes the instruction at which a blocked core stands.
  void resume(core_state& core) {
    completed(core);
    ++core.next;
    core.state = core_status::running;
    turns_.add(core.id);
  }

  // --- the loop -----------------------------------------------------------------------------------

  void started(core_state& core, const isa::instruction& i) {
    if constexpr (Diagnosed)
      if (options_.trace) core.trace_line = trace_before(core.id, core.next, i, core.registers);
  }
  void completed(core_state& core) {
    if constexpr (Diagnosed) {
      const isa::instruction& i = core.stream[core.next];
      if (options_.trace) options_.trace(core.trace_line + trace_after(i, core.registers));
      if (provenance_) provenance_->executed(core, i, turns_.cycle());
      turns_.executed(core);
    }
  }

  /// Runs one core until it blocks or its turn ends (false) or it has run its stream for the last input (true).
  bool run_core(core_state& core) {
    for (;;) {
      if (!run_body(core)) return false;
      note_read(core);
      if (++core.iteration == inputs_.size()) return true;
      core.next = 0;
      if constexpr (Diagnosed) {
        if (!turns_.has_barrier()) continue;
        core.state = core_status::at_barrier;
        for (const std::size_t c : turns_.arrive(core.id)) {
          cores_[c].state = core_status::running;
          turns_.add(c);
        }
        return false;
      }
    }
  }

  /// Runs one core until it blocks or its turn ends (false) or its stream ends (true).
  bool run_body(core_state& core) {
    using isa::opcode;
    auto& registers = core.registers;
    const auto wrapped = [](std::int64_t value) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(value))); };
    for (; core.next < core.size; ++core.next) {
      if constexpr (Diagnosed)
        if (!turns_.may_execute(core)) return false;
      const isa::instruction& i = core.stream[core.next];
      started(core, i);
      switch (i.op) {
        case opcode::nop:
        case opcode::setbw: break;  // check_stream admits 32-bit elements only
        case opcode::sldi: registers[i.rd] = i.word0; break;
        case opcode::sld:
          load_register(core, i);
          completed(core);
          note_read(core);
          continue;
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
        case opcode::ld:
          load(core, i);
          completed(core);
          note_read(core);
          continue;
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
        case opcode::sync: signal(core, i); break;
      }
      completed(core);
    }
    return true;
  }

  void load_register(core_state& core, const isa::instruction& i) {
    const std::int64_t source = std::int64_t{core.registers[i.r1]} + i.word2;
    memory_.require_global(core, source, memory_access::word, "reads");
    memory_.require_global_written(core, source, memory_access::word);
    if constexpr (Diagnosed)
      if (provenance_) provenance_->loaded_register(core, source, turns_.cycle());
    std::memcpy(&core.registers[i.rd], memory_.global(source), sizeof(std::int32_t));
  }

  const loaded_program& program_;
  const execution_options& options_;
  std::span<const std::span<const std::byte>> inputs_;
  memory_access memory_;
  vector_unit vector_;
  std::vector<core_state> cores_;
  input_feed feed_;
  std::optional<output_record> outputs_;
  turns turns_;
  std::optional<provenance_recorder> provenance_;  ///< only where Diagnosed
};

/// Refuses regions that are not inside global memory. `kind`: "input", for the error. Errors: malformed, with the region's name.
inline void check_regions(const loaded_program& program, const std::vector<tensor_region>& regions, const char* kind) {
  const auto size = static_cast<std::int64_t>(program.global_memory.size());
  for (const auto& region : regions)
    if (region.address < 0 || region.size < 0 || region.size > size || region.address > size - region.size)
      throw error(error_code::malformed, std::string(kind) + " '" + region.name + "' at " + std::to_string(region.address) + " of " +
                                             std::to_string(region.size) + " bytes is not inside global memory of " + std::to_string(size) +
                                             " bytes");
}

namespace detail {

/// Statistics of the streams for so many inputs; checks the program first.
[[nodiscard]] inline std::vector<core_statistics> check_program(const loaded_program& program, std::size_t inputs) {
  check_regions(program, program.inputs, "input");
  check_regions(program, program.outputs, "output");
  std::vector<core_statistics> cores;
  for (std::size_t c = 0; c < program.cores.size(); ++c) {
    stream_summary summary = check_stream(program, c);
    for (auto& count : summary.counts) count *= inputs;
    cores.push_back({summary.counts, program.cores[c].stream.size() * inputs, 0, summary.multiply_accumulates * inputs});
  }
  return cores;
}

template <bool Diagnosed>
[[nodiscard]] execution_result execute(const loaded_program& program, std::span<const std::byte> input, const execution_options& options) {
  execution_result result;
  result.cores = check_program(program, 1);
  if constexpr (Diagnosed) check_schedule(program, options.schedule, 1);
  executor<Diagnosed> machine(program, std::span(&input, 1), options);
  machine.run();
  for (std::size_t c = 0; c < program.cores.size(); ++c) result.cores[c].local_memory = machine.local_extent(c);
  result.diagnosis = machine.diagnosis();
  result.global_memory = machine.take_global_memory();
  for (const auto& region : program.outputs) {
    const auto begin = result.global_memory.begin() + region.address;
    result.outputs.push_back({region, std::vector<std::byte>(begin, begin + region.size)});
  }
  return result;
}

template <bool Diagnosed>
[[nodiscard]] batch_result execute_batch(const loaded_program& program, std::span<const std::span<const std::byte>> inputs, const execution_options& options) {
  batch_result result;
  result.cores = check_program(program, inputs.size());
  if constexpr (Diagnosed) check_schedule(program, options.schedule, inputs.size());
  executor<Diagnosed> machine(program, inputs, options);
  machine.record_outputs();
  machine.run();
  for (std::size_t c = 0; c < program.cores.size(); ++c) result.cores[c].local_memory = machine.local_extent(c);
  result.outputs = machine.take_outputs();
  result.diagnosis = machine.diagnosis();
  result.global_memory = machine.take_global_memory();
  return result;
}

}  // namespace detail

/// Refuses an input whose size is not that of all input regions together. `place`: where the input comes from, for the error.
/// Errors: mismatch, with both sizes and the program's inputs.
inline void check_input_size(const loaded_program& program, std::size_t size, const std::string& place = {}) {
  const std::int64_t expected = total_size(program.inputs);
  if (static_cast<std::int64_t>(size) == expected) return;
  std::vector<std::string> details;
  for (const auto& region : program.inputs) {
    std::string line = "input '" + region.name + "'";
    if (!region.sizes.empty()) line.append(" ").append(to_string(region.sizes));
    details.push_back(line.append(": ").append(std::to_string(region.size)).append(" bytes"));
  }
  throw error(error_code::mismatch, "the input has " + std::to_string(size) + " bytes, the program expects " + std::to_string(expected), place,
              "give the raw little-endian bytes of all inputs, one after the other")
      .with_details(std::move(details));
}

/// Executes a program on one input: the raw bytes of all inputs in graph order. The outputs are the contents of their regions at the end.
///
/// Errors: mismatch (size of the input; a schedule that does not fit the program), malformed / unsupported (check_stream), execution (ISA.md's list, with core and
/// instruction), deadlock (with its cycle), capacity (memory limits of `options`).
/// Cost: the program's arithmetic, plus one copy of global memory; local memory is reserved as it is used.
[[nodiscard]] inline execution_result execute(const loaded_program& program, std::span<const std::byte> input,
                                              const execution_options& options = {}) {
  check_input_size(program, input.size());
  return options.is_diagnosis() ? detail::execute<true>(program, input, options) : detail::execute<false>(program, input, options);
}

/// Executes a program on a batch of inputs, each as for execute(). Every core runs its stream once for each of them and restarts by itself, as on the
/// chip; the host places the next input as input_feed says. Outputs are recorded at each store, under the storing core's own iteration.
///
/// Errors: those of execute(), with the iteration too; mismatch for an empty batch; execution where an output was not stored for some
/// input; capacity where all outputs together exceed execution_options::total_memory_limit.
/// Cost: that of execute() for each input, and the memory of all outputs.
[[nodiscard]] inline batch_result execute_batch(const loaded_program& program, std::span<const std::vector<std::byte>> inputs,
                                                const execution_options& options = {}) {
  if (inputs.empty()) throw error(error_code::mismatch, "the batch has no input", {}, "give at least one");
  std::vector<std::span<const std::byte>> views;
  for (const auto& input : inputs) {
    check_input_size(program, input.size(), "input " + std::to_string(views.size()) + " of the batch");
    views.emplace_back(input);
  }
  return options.is_diagnosis() ? detail::execute_batch<true>(program, views, options) : detail::execute_batch<false>(program, views, options);
}

}  // namespace raptor::sim
