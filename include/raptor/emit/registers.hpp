#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "raptor/isa/opcode.hpp"
#include "raptor/support/error.hpp"

/// The one owner of address registers.
namespace raptor::emit {

/// What the 32 registers of a core hold while its stream is produced, and which of them the current instruction needs.
///
/// A value that a register already holds is not loaded again. The victim is the register used longest ago, among those that the current
/// instruction does not use. With `global_pairs`, registers 28 and 30 are kept for global addresses: their successors 29 and 31
/// are never written, so they hold the high word 0 that a formal pair needs (registers start at 0 and keep their values
/// when a stream restarts). Nothing is known of the other registers at the start, because a stream repeats.
///
/// Cost: constant, one pass over 32 values a request. Deterministic.
class register_file {
 public:
  explicit register_file(bool global_pairs) : global_pairs_(global_pairs), local_count_(global_pairs ? 28 : 32) {
    if (global_pairs) known_ = (1u << 29) | (1u << 31);
  }

  /// Forgets which registers the last instruction used, but not what they hold.
  void next_instruction() noexcept { pinned_ = 0; }

  /// A register that holds `value`; calls `load(register)` first where none does. `allowed`: bit set of registers that may be used.
  template <class Load>
  [[nodiscard]] std::uint8_t local(std::int32_t value, const Load& load, std::uint32_t allowed = ~0u) {
    if (const std::uint32_t holders = holding(value) & allowed; holders != 0) return use(holders);
    return replace(0, local_count_, 1, value, load);
  }
  /// An even register that holds a global address and whose successor holds 0. Requires `global_pairs`.
  template <class Load>
  [[nodiscard]] std::uint8_t global(std::int32_t address, const Load& load) {
    ensure(global_pairs_, "a global address in a stream without register pairs");
    if (const std::uint32_t holders = holding(address) & ((1u << 28) | (1u << 30)); holders != 0) return use(holders);
    return replace(28, 32, 2, address, load);
  }

 private:
  std::array<std::int32_t, isa::register_count> values_{};
  std::array<std::uint64_t, isa::register_count> used_{};
  std::uint64_t now_ = 0;
  std::uint32_t known_ = 0, pinned_ = 0;
  bool global_pairs_;
  std::size_t local_count_;

  [[nodiscard]] std::uint32_t holding(std::int32_t value) const noexcept {
    std::uint32_t mask = 0;
    for (std::size_t r = 0; r < values_.size(); ++r) mask |= static_cast<std::uint32_t>(values_[r] == value) << r;
    return mask & known_;
  }
  std::uint8_t use(std::uint32_t holders) noexcept {
    const auto r = static_cast<std::size_t>(std::countr_zero(holders));
    pinned_ |= 1u << r;
    used_[r] = ++now_;
    return static_cast<std::uint8_t>(r);
  }
  template <class Load>
  std::uint8_t replace(std::size_t begin, std::size_t end, std::size_t step, std::int32_t value, const Load& load) {
    std::size_t victim = end;
    for (std::size_t r = begin; r < end; r += step)
      if ((pinned_ >> r & 1u) == 0 && (victim == end || used_[r] < used_[victim])) victim = r;
    ensure(victim != end, "an instruction needs more registers than there are");
    values_[victim] = value;
    known_ |= 1u << victim;
    load(static_cast<std::uint8_t>(victim));
    return use(1u << victim);
  }
};

}  // namespace raptor::emit
