#pragma once

#include <array>
#include <cstdint>

#include "raptor/isa/table.hpp"
#include "raptor/sim/timing_model/hazards.hpp"

/// The register file as its ports see it (TIMING 12, "Counting evaluations"), and the scalar unit's function.
namespace raptor::sim::timing {

/// A scalar operation that decode offers to the scalar unit: its place in the stream (−1: none) and the values it reads.
/// Equal offers are one operation.
struct scalar_offer {
  std::uint64_t address = 0;  ///< of sld
  std::int32_t pc = -1;
  std::int32_t rs1 = 0, rs2 = 0;
  /// Without branches: offers differ as often as not.
  friend bool operator==(const scalar_offer& a, const scalar_offer& b) noexcept {
    return ((a.address ^ b.address) | static_cast<std::uint64_t>(static_cast<std::uint32_t>((a.pc ^ b.pc) | (a.rs1 ^ b.rs1) | (a.rs2 ^ b.rs2)))) == 0;
  }
};

struct register_write {
  std::uint32_t number = 0;
  std::int32_t value = 0;
  friend bool operator==(const register_write& a, const register_write& b) noexcept {
    return ((a.number ^ b.number) | static_cast<std::uint32_t>(a.value ^ b.value)) == 0;
  }
};

/// What a scalar operation writes, wrapping.
[[nodiscard]] inline register_write execute_scalar(const timed_instruction& i, const scalar_offer& s) noexcept {
  const auto wrap = [](std::int64_t v) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(v)); };
  const std::int64_t a = s.rs1, b = s.rs2, c = i.immediate;
  switch (i.op) {
    case isa::opcode::sadd: return {i.rd, wrap(a + b)};
    case isa::opcode::saddi: return {i.rd, wrap(a + c)};
    case isa::opcode::ssub: return {i.rd, wrap(a - b)};
    case isa::opcode::smul: return {i.rd, wrap(a * b)};
    case isa::opcode::smuli: return {i.rd, wrap(a * c)};
    case isa::opcode::sldi: return {i.rd, i.immediate};
    default: return {0, 0};  // sld writes 0 into r0 (quirk 4)
  }
}

/// 32 registers behind one read and one write port. A written value is forwarded from the write port at once and stored one
/// cycle later. The functions tell what changed, because changes are what costs energy.
class register_file {
 public:
  /// A clock edge: true where the value on its way into the array changes.
  bool edge() noexcept {
    const bool changed = port_ != delayed_;
    delayed_ = port_;
    return changed;
  }
  [[nodiscard]] bool edge_changes() const noexcept { return port_ != delayed_; }
  /// The delayed value arrives.
  void store() noexcept { array_[delayed_.number] = delayed_.value; }
  /// True where the write port changes: a write that repeats the previous one is invisible.
  bool write(const register_write& w) noexcept {
    const bool changed = w != port_;
    port_ = w;
    return changed;
  }
  /// True where the read address changes.
  bool address(const timed_instruction& i) noexcept {
    const bool pair = i.op == isa::opcode::sld || i.op == isa::opcode::ld || i.op == isa::opcode::st;
    const std::uint32_t wanted = i.rd | static_cast<std::uint32_t>(i.rs1) << 8 | static_cast<std::uint32_t>(i.rs2) << 16 | (pair ? 1u << 24 : 0u);
    const bool changed = wanted != address_;
    address_ = wanted;
    return changed;
  }
  /// One evaluation of the read port: true where its outputs change.
  bool read() noexcept {
    const std::uint32_t rd = address_ & 255, rs1 = address_ >> 8 & 255, rs2 = address_ >> 16 & 255;
    operand_values now{0, 0, value(rs2)};
    std::uint64_t rd_pair = 0, rs1_pair = 0;
    if (address_ >> 24 != 0) rd_pair = pair(rd), rs1_pair = pair(rs1);
    else now.rd = value(rd), now.rs1 = value(rs1);
    const bool changed = (static_cast<std::uint64_t>(static_cast<std::uint32_t>((now.rd ^ values_.rd) | (now.rs1 ^ values_.rs1) | (now.rs2 ^ values_.rs2))) |
                          (rd_pair ^ rd_pair_) | (rs1_pair ^ rs1_pair_)) != 0;
    values_ = now, rd_pair_ = rd_pair, rs1_pair_ = rs1_pair;
    return changed;
  }
  /// Outputs of the read port; a pair read leaves rd and rs1 at 0.
  [[nodiscard]] const operand_values& values() const noexcept { return values_; }
  [[nodiscard]] std::uint64_t rs1_pair() const noexcept { return rs1_pair_; }

 private:
  [[nodiscard]] std::int32_t value(std::uint32_t r) const noexcept { return r == port_.number ? port_.value : array_[r]; }
  [[nodiscard]] std::uint64_t pair(std::uint32_t r) const noexcept {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(value(r))) << 32 | static_cast<std::uint32_t>(value(r + 1));
  }
  register_write port_, delayed_;
  std::uint32_t address_ = 0;
  operand_values values_;
  std::uint64_t rd_pair_ = 0, rs1_pair_ = 0;
  std::array<std::int32_t, isa::register_count + 1> array_{};
};

}  // namespace raptor::sim::timing
