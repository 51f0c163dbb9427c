#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "raptor/isa/opcode.hpp"
#include "raptor/sim/memory_access.hpp"

/// What can be said of the accesses to global memory before a program runs.
namespace raptor::sim {

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

/// An access to global memory: [begin, begin + bytes), or anywhere where the address depends on an sld.
struct global_access {
  std::size_t index = 0;  ///< of the ld, sld or st
  bool is_store = false;
  std::optional<std::int64_t> begin;
  std::int64_t bytes = 0;

  [[nodiscard]] bool may_touch(std::int64_t from, std::int64_t to) const { return !begin || (*begin < to && from < *begin + bytes); }
};

/// Calls f(global_access) for the accesses of a stream in their order, as they are in every body: addresses that differ from body to body are left open.
/// Requires: the stream has passed check_stream. Cost: O(instructions), once more for each register that a restart changes.
template <class F>
void for_each_global_access(std::span<const isa::instruction> stream, F f) {
  known_registers entry;
  for (bool changed = true; changed;) {
    known_registers registers = entry;
    for (const auto& i : stream) registers.apply(i);
    changed = entry.meet(registers);
  }
  for (std::size_t k = 0; k < stream.size(); ++k) {
    const isa::instruction& i = stream[k];
    const bool is_word = i.op == isa::opcode::sld;
    if ((i.op == isa::opcode::ld || i.op == isa::opcode::st || is_word) && (is_word || i.word3 != 0)) {
      const bool is_store = i.op == isa::opcode::st;
      const auto bit = is_store ? memory_access::rd_bit : memory_access::r1_bit;
      const std::int64_t offset = is_word || (i.word1 & bit) != 0 ? i.word2 : 0;
      const auto base = entry[is_store ? i.rd : i.r1];
      std::optional<std::int64_t> begin;
      if (base) begin = *base + offset;
      f(global_access{k, is_store, begin, is_word ? memory_access::word : i.word3});
    }
    entry.apply(i);
  }
}

}  // namespace raptor::sim
