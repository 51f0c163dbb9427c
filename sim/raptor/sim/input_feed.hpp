#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "raptor/isa/opcode.hpp"
#include "raptor/sim/memory_access.hpp"
#include "raptor/sim/program.hpp"

/// When the host places the next input of a batch. Source: INVARIANTS.md, Restart.
namespace raptor::sim {

/// "No instruction".
inline constexpr std::size_t no_instruction = static_cast<std::size_t>(-1);

namespace detail {

/// Registers of which some are known before the program runs: no instruction but sld takes a value from memory.
class known_registers {
 public:
  /// All zero, as at the start of a program.
  known_registers() { values_.fill(0); }

  [[nodiscard]] std::optional<std::int32_t> operator[](std::size_t r) const { return values_[r]; }

  /// What an instruction does to the registers.
  void apply(const isa::instruction& i) {
    using isa::opcode;
    const auto second = [&] { return values_[static_cast<std::size_t>(i.word0)]; };
    switch (i.op) {
      case opcode::sldi: values_[i.rd] = i.word0; break;
      case opcode::sld: values_[i.rd].reset(); break;
      case opcode::saddi: set(i, values_[i.r1], i.word0, [](auto a, auto b) { return a + b; }); break;
      case opcode::smuli: set(i, values_[i.r1], i.word0, [](auto a, auto b) { return a * b; }); break;
      case opcode::sadd: set(i, values_[i.r1], second(), [](auto a, auto b) { return a + b; }); break;
      case opcode::ssub: set(i, values_[i.r1], second(), [](auto a, auto b) { return a - b; }); break;
      case opcode::smul: set(i, values_[i.r1], second(), [](auto a, auto b) { return a * b; }); break;
      default: break;
    }
  }
  /// Keeps what both know alike; true where that forgets something.
  bool meet(const known_registers& other) {
    bool changed = false;
    for (std::size_t r = 0; r < values_.size(); ++r) {
      if (!values_[r] || values_[r] == other.values_[r]) continue;
      values_[r].reset();
      changed = true;
    }
    return changed;
  }

 private:
  template <class F>
  void set(const isa::instruction& i, std::optional<std::int32_t> a, std::optional<std::int32_t> b, F f) {
    values_[i.rd].reset();
    if (a && b) values_[i.rd] = static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(f(std::int64_t{*a}, std::int64_t{*b}))));
  }
  std::array<std::optional<std::int32_t>, isa::register_count> values_;
};

}  // namespace detail

/// The index of the last instruction of a stream that may read global memory of one of the regions, however often the stream restarts;
/// no_instruction where none does. An address that depends on an sld may be any.
/// Requires: the stream has passed check_stream. Cost: O(instructions · (regions + 1)), once more for each register that a restart changes.
[[nodiscard]] inline std::size_t last_read_of(std::span<const isa::instruction> stream, const std::vector<tensor_region>& regions) {
  const auto may_read = [&](const isa::instruction& i, const detail::known_registers& registers) {
    const bool load = i.op == isa::opcode::ld;
    const std::int64_t bytes = load ? i.word3 : memory_access::word;
    const std::int64_t offset = !load || (i.word1 & memory_access::r1_bit) != 0 ? i.word2 : 0;
    const auto base = registers[i.r1];
    for (const auto& region : regions) {
      if (region.size == 0 || bytes == 0) continue;
      if (!base || (*base + offset < region.address + region.size && region.address < *base + offset + bytes)) return true;
    }
    return false;
  };
  std::size_t last = no_instruction;
  detail::known_registers entry;
  for (bool changed = true; changed;) {
    detail::known_registers registers = entry;
    last = no_instruction;
    for (std::size_t k = 0; k < stream.size(); ++k) {
      const isa::instruction& i = stream[k];
      if ((i.op == isa::opcode::ld || i.op == isa::opcode::sld) && may_read(i, registers)) last = k;
      registers.apply(i);
    }
    changed = entry.meet(registers);
  }
  return last;
}

/// Says when input n + 1 of a batch may replace input n in global memory: as soon as every core that reads a graph input has done its
/// last read of body n. Nothing after that needs input n; a core that reads sooner than its input was placed finds what lies there.
/// Where no core reads an input, every core that runs counts as a reader until the end of its body.
class input_feed {
 public:
  /// For `inputs` ≥ 1. Requires: the streams have passed check_stream. Cost: of last_read_of for each core, none for one input.
  input_feed(const loaded_program& program, std::size_t inputs) : inputs_(inputs), last_reads_(program.cores.size(), no_instruction), done_(program.cores.size(), 0) {
    if (inputs_ == 1) return;
    for (std::size_t c = 0; c < last_reads_.size(); ++c) {
      last_reads_[c] = last_read_of(program.cores[c].stream, program.inputs);
      if (last_reads_[c] != no_instruction) readers_.push_back(c);
    }
    if (readers_.empty())
      for (std::size_t c = 0; c < last_reads_.size(); ++c)
        if (!program.cores[c].stream.empty()) last_reads_[c] = program.cores[c].stream.size(), readers_.push_back(c);
    behind_ = readers_.size();
  }

  /// The index of the instruction of a core after which it does not need the input of its body; the stream's size: at its end.
  [[nodiscard]] std::size_t last_read(std::size_t core) const { return last_reads_[core]; }

  /// Notes that a core has done the last read of one more body, and calls place(n) for every input that may be placed now, in order.
  /// Cost: O(readers) for each input.
  template <class Place>
  void read(std::size_t core, Place place) {
    if (done_[core]++ != placed_) return;
    --behind_;
    while (behind_ == 0 && placed_ + 1 < inputs_) {
      place(++placed_);
      for (const std::size_t reader : readers_)
        if (done_[reader] <= placed_) ++behind_;
    }
  }
  /// The inputs that no core will ever make room for: all behind the first where nothing runs.
  template <class Place>
  void finish(Place place) {
    while (readers_.empty() && placed_ + 1 < inputs_) place(++placed_);
  }

 private:
  std::size_t inputs_;
  std::size_t placed_ = 0;               ///< the input that lies in global memory
  std::vector<std::size_t> last_reads_;  ///< by core
  std::vector<std::size_t> done_;        ///< by core: bodies whose input it has read
  std::vector<std::size_t> readers_;
  std::size_t behind_ = 0;               ///< readers that still need the placed input
};

}  // namespace raptor::sim
