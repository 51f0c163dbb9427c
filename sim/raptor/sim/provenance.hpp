#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "raptor/isa/table.hpp"
#include "raptor/sim/execution.hpp"
#include "raptor/sim/memory_access.hpp"
#include "raptor/sim/provenance_events.hpp"
#include "raptor/sim/provenance_tags.hpp"
#include "raptor/support/error.hpp"

/// A shadow execution that says of every byte on which inputs it depends. Source: PROVENANCE.md.
namespace raptor::sim {

/// Follows the tags of all memories and writes the events. It is told of each instruction after the executor has done it: addresses have been checked,
/// and no instruction but those on registers changes the registers.
/// Cost: a tag of 4 bytes for each byte of memory, the bytes that an instruction touches, and its event where there is a receiver.
class provenance_recorder {
 public:
  provenance_recorder(const loaded_program& program, std::size_t samples, const execution_options& options)
      : program_(program), events_(tags_, options.provenance_trace), local_(program.cores.size()) {
    const std::size_t size = program.global_memory.size();
    tag* const global = global_.at(0, size);
    const auto known = program.constant_bytes < 0 ? size : std::min(size, static_cast<std::size_t>(program.constant_bytes));
    std::fill(global, global + known, tag_table::constant);
    for (const auto* regions : {&program.inputs, &program.outputs})
      for (const auto& region : *regions)
        if (program.constant_bytes < 0) std::fill_n(global + region.address, region.size, tag_table::uninitialized);
    if (!events_.is_on()) return;
    versions_.resize(size, 0);
    events_.begin("provenance_trace_start").number("schema", 1).number("core_count", program.cores.size()).end();
    write_schedule(events_, options.schedule);
    events_.begin("batch_start").number("batch_size", samples).end();
  }

  [[nodiscard]] const diagnosis_summary& summary() const noexcept { return summary_; }

  /// The host has placed part of an input.
  void placed(const tensor_region& region, std::size_t sample, std::uint64_t cycle) {
    const auto count = static_cast<std::size_t>(region.size);
    const tag value = tags_.sample(sample);
    if (events_.is_on()) {
      const event_place at{cycle, -1, 0, sample};
      const auto before = write(region.address, count, at, value);
      events_.begin("external_input_store", at).number("address", region.address).number("size", region.size).number("sample", sample)
          .number("version", writes_.size()).numbers("overwritten_versions", before).data(value, false).end();
    }
    std::fill_n(global_.at(region.address, count), count, value);
  }
  /// A word of global memory has been loaded into a register.
  void loaded_register(const core_state& core, std::int64_t source, std::uint64_t cycle) {
    if (!events_.is_on()) return;
    report_load(event_place_of(core, cycle), source, -1, static_cast<std::size_t>(memory_access::word));
  }
  /// A send and its recv have met; both cores stand at them.
  void transferred(const core_state& sender, const core_state& receiver, std::int64_t source, std::int64_t target, std::uint64_t cycle) {
    const auto count = static_cast<std::size_t>(receiver.stream[receiver.next].word3);
    tag* const to = local_[receiver.id].at(target, count);
    std::memmove(to, local_[sender.id].at(source, count), count * sizeof(tag));  // two cores, two memories: both pointers hold
    if (!events_.is_on()) return;
    events_.begin("send_recv_transfer", event_place_of(receiver, cycle)).number("sender_core", sender.id).number("receiver_core", receiver.id)
        .number("sender_pc", sender.next).number("sender_iteration", sender.iteration).number("source_address", source).number("destination_address", target)
        .number("size", count).data(tags_.merge(to, count), tags_.has_mixed(to, count)).end();
  }
  /// An instruction has been executed; the core stands at it. Those of other functions do nothing here.
  void executed(const core_state& core, const isa::instruction& i, std::uint64_t cycle) {
    using isa::opcode;
    if (i.word3 == 0 && i.op != opcode::mvmul) return;
    switch (i.op) {
      case opcode::ld: return load(core, i, cycle);
      case opcode::st: return store(core, i, cycle);
      case opcode::lldi: return fill(core, i, cycle);
      case opcode::lmv: return copy(core, i, cycle);
      case opcode::vmv: return gather(core, i, cycle);
      case opcode::mvmul: return multiply(core, i, cycle);
      case opcode::vavg: return average(core, i, cycle);
      case opcode::vvdmul: return reduce(core, i, cycle, {source(core, i), second_source(core, i)}, memory_access::word);
      case opcode::vsoftmax: return reduce(core, i, cycle, {source(core, i)}, memory_access::word * i.word3);
      case opcode::vvadd:
      case opcode::vvsub:
      case opcode::vvmul:
      case opcode::vvmax: return element_wise(core, i, cycle, {source(core, i), second_source(core, i)});
      case opcode::vrelu:
      case opcode::vtanh:
      case opcode::vsigm:
      case opcode::vrsu:
      case opcode::vrsl: return element_wise(core, i, cycle, {source(core, i)});
      default: return;
    }
  }
  /// What the schedule has done.
  void scheduled(const schedule_event& e, std::uint64_t cycle) {
    if (!events_.is_on()) return;
    if (e.what == schedule_event::kind::decision) {
      events_.begin("scheduler_decision").number("cycle", cycle).text("reason", e.reason).number("selected_core", e.core).number("deferrals", e.deferrals).end();
      return;
    }
    const bool whole = e.what == schedule_event::kind::core_stall;
    events_.begin(whole ? "diagnostic_core_stall" : "diagnostic_target_stall", {cycle, static_cast<std::int64_t>(e.core), e.index, e.iteration})
        .number("remaining_cycles", e.remaining_cycles).end();
  }

 private:
  static constexpr std::int64_t word = memory_access::word;
  static constexpr auto word_size = static_cast<std::size_t>(memory_access::word);

  [[nodiscard]] static event_place event_place_of(const core_state& core, std::uint64_t cycle) {
    return {cycle, static_cast<std::int64_t>(core.id), core.next, core.iteration};
  }
  [[nodiscard]] static std::int64_t target(const core_state& core, const isa::instruction& i, std::int64_t scale = word) {
    return memory_access::address(core, i, i.rd, memory_access::rd_bit, scale);
  }
  [[nodiscard]] static std::int64_t source(const core_state& core, const isa::instruction& i, std::int64_t scale = word) {
    return memory_access::address(core, i, i.r1, memory_access::r1_bit, scale);
  }
  [[nodiscard]] static std::int64_t second_source(const core_state& core, const isa::instruction& i) {
    return memory_access::address(core, i, static_cast<unsigned>(i.word0), memory_access::r2_bit, word);
  }

  // --- global memory ------------------------------------------------------------------------------

  /// The distinct versions of a range, ascending.
  [[nodiscard]] std::vector<std::uint64_t> versions(std::int64_t address, std::size_t count) const {
    std::vector<std::uint64_t> found;
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint64_t version = versions_[static_cast<std::size_t>(address) + k];
      if (found.empty() || found.back() != version) found.push_back(version);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }
  /// Gives a range the next version; the versions that it had.
  std::vector<std::uint64_t> write(std::int64_t address, std::size_t count, const event_place& at, tag value) {
    auto before = versions(address, count);
    writes_.push_back({at, value});
    std::fill_n(versions_.begin() + address, count, writes_.size());
    return before;
  }
  void report_load(const event_place& at, std::int64_t from, std::int64_t to, std::size_t count) {
    const tag* const tags = global_.at(from, count);
    const auto read = versions(from, count);
    events_.begin("global_load", at).number("address", from);
    if (to >= 0) events_.number("local_address", to);
    events_.number("size", count).numbers("versions", read).writers("last_writers", read, writes_).data(tags_.merge(tags, count), tags_.has_mixed(tags, count)).end();
  }
  void load(const core_state& core, const isa::instruction& i, std::uint64_t cycle) {
    const std::int64_t to = target(core, i, 1), from = source(core, i, 1);
    const auto count = static_cast<std::size_t>(i.word3);
    std::memcpy(local_[core.id].at(to, count), global_.at(from, count), count * sizeof(tag));
    if (events_.is_on()) report_load(event_place_of(core, cycle), from, to, count);
  }
  void store(const core_state& core, const isa::instruction& i, std::uint64_t cycle) {
    const std::int64_t to = target(core, i, 1), from = source(core, i, 1);
    const auto count = static_cast<std::size_t>(i.word3);
    const tag* const tags = local_[core.id].at(from, count);
    const tag merged = tags_.merge(tags, count);
    note_output(core, to, count, tags);
    if (events_.is_on()) {
      const auto at = event_place_of(core, cycle);
      const auto before = write(to, count, at, merged);
      events_.begin("global_store", at).number("address", to).number("local_address", from).number("size", count).number("version", writes_.size())
          .numbers("overwritten_versions", before).writers("overwritten_writers", before, writes_).data(merged, tags_.has_mixed(tags, count)).end();
    }
    std::memcpy(global_.at(to, count), tags, count * sizeof(tag));
  }
  /// Counts stores into an output that depend on another sample than that of the body which stores.
  void note_output(const core_state& core, std::int64_t address, std::size_t count, const tag* tags) {
    const std::int64_t end = address + static_cast<std::int64_t>(count);
    for (const auto& region : program_.outputs) {
      const std::int64_t from = std::max(address, region.address), to = std::min(end, region.address + region.size);
      if (from >= to) continue;
      const tag merged = tags_.merge(tags + (from - address), static_cast<std::size_t>(to - from));
      if (merged != tag_table::unknown && (tags_.samples(merged) & ~tags_.samples(tags_.sample(core.iteration))) != 0) ++summary_.foreign_output_stores;
    }
  }

  // --- local memory -------------------------------------------------------------------------------

  /// Writes the event of a result, and that of a mix.
  void report_result(const core_state& core, const isa::instruction& i, std::uint64_t cycle, std::int64_t address, std::size_t bytes, std::span<const tag> operands) {
    const tag* const tags = local_[core.id].at(address, bytes);
    const bool mixed = tags_.has_mixed(tags, bytes);
    if (mixed && summary_.mixes++ == 0) summary_.first_mix = place_of(core.id, core.next, i, core.iteration);
    if (!events_.is_on()) return;
    const tag merged = tags_.merge(tags, bytes);
    for (const char* event : {"local_compute", "cross_sample_data_mix"}) {
      events_.begin(event, event_place_of(core, cycle)).text("operation", isa::info(i).mnemonic).number("destination_address", address).number("size", bytes)
          .operands(operands).data(merged, mixed).end();
      if (!mixed) return;
    }
  }
  void fill(const core_state& core, const isa::instruction& i, std::uint64_t cycle) {
    const std::int64_t to = target(core, i, 1);
    const auto count = static_cast<std::size_t>(i.word3);
    std::fill_n(local_[core.id].at(to, count), count, tag_table::constant);
    report_result(core, i, cycle, to, count, {});
  }
  void copy(const core_state& core, const isa::instruction& i, std::uint64_t cycle) {
    const std::int64_t to = target(core, i, 1), from = source(core, i, 1);
    const auto count = static_cast<std::size_t>(i.word3);
    tag* const memory = local_[core.id].at(0, static_cast<std::size_t>(std::max(to, from)) + count);
    std::memcpy(memory + to, memory + from, count * sizeof(tag));
    const std::array operands{merged(memory + to, count)};
    report_result(core, i, cycle, to, count, operands);
  }
  void gather(const core_state& core, const isa::instruction& i, std::uint64_t cycle) {
    const std::int64_t to = target(core, i), from = source(core, i);
    const std::int64_t step = word * core.registers[static_cast<std::size_t>(i.word0)];
    const auto count = word_size * static_cast<std::size_t>(i.word3);
    const std::int64_t highest = std::max({to + word * i.word3, from + word, from + (i.word3 - 1) * step + word});
    tag* const memory = local_[core.id].at(0, static_cast<std::size_t>(highest));
    for (std::int64_t k = 0; k < i.word3; ++k) std::memmove(memory + to + k * word, memory + from + k * step, word_size * sizeof(tag));
    const std::array operands{merged(memory + to, count)};
    report_result(core, i, cycle, to, count, operands);
  }
  void multiply(const core_state& core, const isa::instruction& i, std::uint64_t cycle) {
    const crossbar_matrix& weights = *program_.cores[core.id].groups[static_cast<std::size_t>(i.word2)].weights;
    const std::int64_t to = core.registers[i.rd], from = core.registers[i.r1];
    const tag* const in = local_[core.id].at(from, word_size * weights.rows());
    tag all = tag_table::uninitialized;
    for (const auto& [begin, end] : weights.weighted_rows()) all = tags_.merge(all, tags_.merge(in + word_size * begin, word_size * (end - begin)));
    // A column of zeros is a constant, not a byte that nothing has written.
    all = tags_.merge(all, tag_table::constant);
    const auto count = word_size * weights.columns();
    std::fill_n(local_[core.id].at(to, count), count, all);
    const std::array operands{all};
    report_result(core, i, cycle, to, count, operands);
  }
  void average(const core_state& core, const isa::instruction& i, std::uint64_t cycle) {
    const std::int64_t to = target(core, i), from = source(core, i);
    const std::int64_t step = word * core.registers[static_cast<std::size_t>(i.word0)];
    const std::int64_t highest = std::max({to + word, from + word, from + (i.word3 - 1) * step + word});
    tag* const memory = local_[core.id].at(0, static_cast<std::size_t>(highest));
    tag all = tag_table::uninitialized;
    for (std::int64_t k = 0; k < i.word3; ++k) all = tags_.merge(all, tags_.merge(memory + from + k * step, word_size));
    std::fill_n(memory + to, word_size, all);
    const std::array operands{all};
    report_result(core, i, cycle, to, word_size, operands);
  }
  /// Every byte of the result depends on all of the operands.
  void reduce(const core_state& core, const isa::instruction& i, std::uint64_t cycle, std::initializer_list<std::int64_t> sources, std::int64_t bytes) {
    const std::int64_t to = target(core, i);
    const auto count = word_size * static_cast<std::size_t>(i.word3), results = static_cast<std::size_t>(bytes);
    std::vector<tag>& operands = operands_;
    operands.clear();
    tag all = tag_table::uninitialized;
    for (const std::int64_t from : sources) {
      operands.push_back(merged(local_[core.id].at(from, count), count));
      all = tags_.merge(all, operands.back());
    }
    std::fill_n(local_[core.id].at(to, results), results, all);
    report_result(core, i, cycle, to, results, operands);
  }
  /// Every element of the result depends on the elements at its position.
  void element_wise(const core_state& core, const isa::instruction& i, std::uint64_t cycle, std::initializer_list<std::int64_t> sources) {
    const std::int64_t to = target(core, i);
    const auto count = word_size * static_cast<std::size_t>(i.word3);
    const std::int64_t first = *sources.begin(), last = *(sources.end() - 1);
    tag* const memory = local_[core.id].at(0, static_cast<std::size_t>(std::max({to, first, last})) + count);
    operands_.clear();
    bool uniform = true;
    tag all = tag_table::uninitialized;
    for (const std::int64_t from : sources) {
      operands_.push_back(merged(memory + from, count));
      uniform = uniform && tag_table::is_uniform(memory + from, count);
      all = tags_.merge(all, operands_.back());
    }
    if (uniform) {
      std::fill_n(memory + to, count, all);
    } else {
      for (std::size_t k = 0; k < count; k += word_size) {
        const tag element = tags_.merge(tags_.merge(memory + first + k, word_size), tags_.merge(memory + last + k, word_size));
        std::fill_n(memory + to + k, word_size, element);
      }
    }
    report_result(core, i, cycle, to, count, operands_);
  }
  [[nodiscard]] tag merged(const tag* tags, std::size_t count) { return tags_.merge(tags, count); }

  const loaded_program& program_;
  tag_table tags_;
  provenance_events events_;
  tag_memory global_;
  std::vector<tag_memory> local_;        ///< by core
  std::vector<std::uint64_t> versions_;  ///< of each byte of global memory; 0: not written in this run
  std::vector<global_write> writes_;
  std::vector<tag> operands_;
  diagnosis_summary summary_;  ///< but for reads, which the schedule counts
};

}  // namespace raptor::sim
