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
/// A value that a register already holds is not loaded again. Values are addresses (in elements) or numbers: an address never shares a register
/// with an equal number, so that which registers are loaded does not depend on the width of an element. The victim is the register used longest ago, among those that the current
/// instruction does not use. With `global_pairs`, registers 28 and 30 are kept for global addresses: their successors 29 and 31
/// are never written, so they hold the high word 0 that a formal pair needs (registers start at 0 and keep their values
/// when a stream restarts). Nothing is known of the other registers at the start, because a stream repeats.
///
/// Cost: constant, one pass over 32 values (vectorized) a request. Deterministic.
class register_file {
 public:
  explicit register_file(bool global_pairs) : global_pairs_(global_pairs) {
    for (std::size_t r = 0; r < bits_.size(); ++r) bits_[r] = 1u << r;
    const std::size_t locals = global_pairs ? 28 : 32;
    for (auto& ring : {local_ring, global_ring}) newer_[ring] = older_[ring] = static_cast<std::uint8_t>(ring);
    for (std::size_t r = locals; r-- > 0;) link(r, local_ring);  // register 0 goes first
    for (const std::size_t r : {30u, 28u})
      if (global_pairs) link(r, global_ring);
    if (global_pairs) known_ = bits_[29] | bits_[31];
  }

  /// Forgets which registers the last instruction used, but not what they hold.
  void next_instruction() noexcept { pinned_ = 0; }

  /// A register that holds a local address; calls `load(register)` first where none does. `allowed`: bit set of registers that may be used.
  template <class Load>
  [[nodiscard]] std::uint8_t local(std::int64_t address, const Load& load, std::uint32_t allowed = ~0u) {
    if (const std::uint32_t holders = holding(address) & allowed; holders != 0) return use(holders);
    return replace(local_ring, address, load);
  }
  /// A register that holds a number (a stride, a bound).
  template <class Load>
  [[nodiscard]] std::uint8_t number(std::int32_t value, const Load& load) {
    return local(numbers + value, load);
  }
  /// An even register that holds a global address and whose successor holds 0. Requires `global_pairs`.
  template <class Load>
  [[nodiscard]] std::uint8_t global(std::int64_t address, const Load& load) {
    ensure(global_pairs_, "a global address in a stream without register pairs");
    if (const std::uint32_t holders = holding(address) & ((1u << 28) | (1u << 30)); holders != 0) return use(holders);
    return replace(global_ring, address, load);
  }

 private:
  // Two rings of registers in the order of their last use, each with its head behind the registers: newer_[head] is the oldest.
  static constexpr std::size_t local_ring = 32, global_ring = 33;

  static constexpr std::int64_t numbers = std::int64_t{1} << 40;  ///< apart from every address

  std::array<std::int64_t, isa::register_count> values_{};
  std::array<std::uint32_t, isa::register_count> bits_{};
  std::array<std::uint8_t, isa::register_count + 2> newer_{}, older_{};
  std::uint32_t known_ = 0, pinned_ = 0, linked_ = 0;
  bool global_pairs_;

  /// Becomes the oldest of a ring.
  void link(std::size_t r, std::size_t head) noexcept {
    linked_ |= bits_[r];
    newer_[r] = newer_[head], older_[r] = static_cast<std::uint8_t>(head);
    older_[newer_[r]] = newer_[head] = static_cast<std::uint8_t>(r);
  }
  /// Becomes the newest of its ring. Registers 29 and 31 may be in none.
  void touch(std::size_t r) noexcept {
    if ((linked_ & bits_[r]) == 0) return;
    const std::size_t head = global_pairs_ && r >= 28 ? global_ring : local_ring;
    newer_[older_[r]] = newer_[r], older_[newer_[r]] = older_[r];
    older_[r] = older_[head], newer_[r] = static_cast<std::uint8_t>(head);
    newer_[older_[r]] = older_[head] = static_cast<std::uint8_t>(r);
  }

  [[nodiscard]] std::uint32_t holding(std::int64_t value) const noexcept {
    std::uint32_t mask = 0;
    for (std::size_t r = 0; r < values_.size(); ++r) mask |= values_[r] == value ? bits_[r] : 0u;
    return mask & known_;
  }
  std::uint8_t use(std::uint32_t holders) noexcept {
    const auto r = static_cast<std::size_t>(std::countr_zero(holders));
    pinned_ |= bits_[r];
    touch(r);
    return static_cast<std::uint8_t>(r);
  }
  template <class Load>
  std::uint8_t replace(std::size_t head, std::int64_t value, const Load& load) {
    std::size_t victim = newer_[head];
    while (victim != head && (pinned_ & bits_[victim]) != 0) victim = newer_[victim];
    ensure(victim != head, "an instruction needs more registers than there are");
    values_[victim] = value;
    known_ |= bits_[victim];
    load(static_cast<std::uint8_t>(victim));
    return use(bits_[victim]);
  }
};

}  // namespace raptor::emit
