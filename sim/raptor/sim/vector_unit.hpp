#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "raptor/isa/opcode.hpp"
#include "raptor/sim/crossbar_matrix.hpp"
#include "raptor/sim/kernels.hpp"
#include "raptor/sim/memory_access.hpp"

/// Vector and matrix instructions of the functional simulator on 32-bit floats. Source: ISA.md, Instructions.
namespace raptor::sim {

/// Executes by form: one source, two sources, strided source, matrix product. Every function checks its addresses first and
/// leaves memory as it was where it fails. Local memory is byte addressed: floats are used in place where the address
/// is a multiple of 4, else through a scratch buffer. Nothing is allocated once the scratch buffers have grown.
class vector_unit {
 public:
  explicit vector_unit(memory_access& memory) : memory_(memory) {}

  /// rd = kernel(r1): kernel(out, in, count).
  template <class Kernel>
  void one_source(core_state& core, const isa::instruction& i, Kernel kernel) {
    if (i.word3 == 0) return;
    const auto count = static_cast<std::size_t>(i.word3);
    const std::int64_t bytes = word * i.word3;
    const std::int64_t target = memory_access::address(core, i, i.rd, rd_bit, word);
    const std::int64_t source = memory_access::address(core, i, i.r1, r1_bit, word);
    memory_.reserve(core, target, bytes);
    memory_.require(core, source, bytes);
    memory_.refuse_partial_overlap(core, target, source, bytes);
    const float* in = floats(core, source, count, first_scratch_);
    produce(core, target, count, [&](float* out) { kernel(out, in, count); });
  }

  /// rd[k] = element<Op>(r1[k]), or with a bound.
  template <isa::opcode Op>
  void map_source(core_state& core, const isa::instruction& i, float bound = 0.0f) {
    one_source(core, i, [bound](float* out, const float* in, std::size_t count) { kernels::map<Op>(out, in, count, bound); });
  }

  /// rd[k] = element<Op>(r1[k], r2[k]).
  template <isa::opcode Op>
  void two_sources(core_state& core, const isa::instruction& i) {
    if (i.word3 == 0) return;
    const auto count = static_cast<std::size_t>(i.word3);
    const std::int64_t bytes = word * i.word3;
    const std::int64_t target = memory_access::address(core, i, i.rd, rd_bit, word);
    const std::int64_t a = memory_access::address(core, i, i.r1, r1_bit, word);
    const std::int64_t b = memory_access::address(core, i, static_cast<unsigned>(i.word0), r2_bit, word);
    memory_.reserve(core, target, bytes);
    memory_.require(core, a, bytes);
    memory_.require(core, b, bytes);
    memory_.refuse_partial_overlap(core, target, a, bytes);
    memory_.refuse_partial_overlap(core, target, b, bytes);
    const float* x = floats(core, a, count, first_scratch_);
    const float* y = floats(core, b, count, second_scratch_);
    produce(core, target, count, [&](float* out) { kernels::zip<Op>(out, x, y, count); });
  }

  void dot_product(core_state& core, const isa::instruction& i) {
    const auto count = static_cast<std::size_t>(i.word3);
    const std::int64_t bytes = word * i.word3;
    const std::int64_t target = memory_access::address(core, i, i.rd, rd_bit, word);
    const std::int64_t a = memory_access::address(core, i, i.r1, r1_bit, word);
    const std::int64_t b = memory_access::address(core, i, static_cast<unsigned>(i.word0), r2_bit, word);
    memory_.reserve(core, target, word);
    memory_.require(core, a, bytes);
    memory_.require(core, b, bytes);
    const float sum = kernels::dot(floats(core, a, count, first_scratch_), floats(core, b, count, second_scratch_), count);
    produce(core, target, 1, [&](float* out) { *out = sum; });
  }

  void mean(core_state& core, const isa::instruction& i) {
    const std::int64_t target = memory_access::address(core, i, i.rd, rd_bit, word);
    memory_.reserve(core, target, word);
    const strided_source s = require_strided(core, i);
    float sum = 0.0f;
    for (std::int64_t k = 0; k < i.word3; ++k) sum += float_at(core, s.first + k * s.step);
    const float result = sum / static_cast<float>(i.word3);
    produce(core, target, 1, [&](float* out) { *out = result; });
  }

  void gather(core_state& core, const isa::instruction& i) {
    if (i.word3 == 0) return;
    const std::int64_t bytes = word * i.word3;
    const std::int64_t target = memory_access::address(core, i, i.rd, rd_bit, word);
    memory_.reserve(core, target, bytes);
    const strided_source s = require_strided(core, i);
    const bool overlaps = target < s.lowest + s.extent && s.lowest < target + bytes;
    // In place and forwards every element is read before it is overwritten.
    if (overlaps && (target != s.first || s.step < word)) memory_.fail_overlap(core, target, s.lowest, bytes, s.extent);
    if (s.step == word) {
      std::memmove(core.memory.at(target), core.memory.at(s.first), static_cast<std::size_t>(bytes));
    } else {
      for (std::int64_t k = 0; k < i.word3; ++k) std::memcpy(core.memory.at(target + k * word), core.memory.at(s.first + k * s.step), sizeof(float));
    }
    core.memory.mark(target, target + bytes);
  }

  void matrix_product(core_state& core, const isa::instruction& i, const crossbar_matrix& weights) {
    const std::size_t rows = weights.rows();
    const std::size_t columns = weights.columns();
    const std::int64_t in_bytes = word * static_cast<std::int64_t>(rows);
    const std::int64_t out_bytes = word * static_cast<std::int64_t>(columns);
    const std::int64_t target = core.registers[i.rd];
    const std::int64_t source = core.registers[i.r1];
    memory_.reserve(core, target, out_bytes);
    memory_.require(core, source, in_bytes);
    const float* in = floats(core, source, rows, first_scratch_);
    const bool finite = all_finite(in, rows);
    if (!finite && !all_finite(in + weights.used_rows(), rows - weights.used_rows()))
      memory_.fail(core, "the inputs of crossbar rows " + std::to_string(weights.used_rows()) + " ... " + std::to_string(rows - 1) +
                     ", which have no weights, are not finite",
           "set the tail of the input to zero once");
    const bool overlaps = target < source + in_bytes && source < target + out_bytes;
    const auto compute = [&](float* out) {
      weights.multiply(in, out, finite);
      if (i.word1 != 0) kernels::map<isa::opcode::vrelu>(out, out, columns);
    };
    if (!overlaps) {
      produce(core, target, columns, compute);
    } else {
      if (product_scratch_.size() < columns) product_scratch_.resize(columns);
      compute(product_scratch_.data());
      std::memcpy(core.memory.at(target), product_scratch_.data(), columns * sizeof(float));
      core.memory.mark(target, target + out_bytes);
    }
  }

 private:
  static constexpr std::int64_t word = memory_access::word;
  static constexpr std::int32_t rd_bit = memory_access::rd_bit;
  static constexpr std::int32_t r1_bit = memory_access::r1_bit;
  static constexpr std::int32_t r2_bit = memory_access::r2_bit;

  /// Floats at a byte address: in place where the address allows it, else a copy in `scratch`.
  [[nodiscard]] static const float* floats(const core_state& core, std::int64_t address, std::size_t count, std::vector<float>& scratch) {
    if (address % word == 0) [[likely]]
      return reinterpret_cast<const float*>(core.memory.at(address));
    if (scratch.size() < count) scratch.resize(count);
    std::memcpy(scratch.data(), core.memory.at(address), count * sizeof(float));
    return scratch.data();
  }
  /// Calls `compute(float*)` for `count` results at a byte address, then notes them as written.
  template <class F>
  void produce(core_state& core, std::int64_t address, std::size_t count, F compute) {
    if (address % word == 0) [[likely]] {
      compute(reinterpret_cast<float*>(core.memory.at(address)));
    } else {
      if (result_scratch_.size() < count) result_scratch_.resize(count);
      compute(result_scratch_.data());
      std::memcpy(core.memory.at(address), result_scratch_.data(), count * sizeof(float));
    }
    core.memory.mark(address, address + static_cast<std::int64_t>(count) * word);
  }

  /// The source of vavg and vmv: `count` elements `stride` elements apart. The lowest address of an element is
  /// returned for the overlap test, all elements are checked.
  struct strided_source {
    std::int64_t first = 0;   ///< address of element 0
    std::int64_t step = 0;    ///< bytes from one element to the next, may be 0 or negative
    std::int64_t lowest = 0;  ///< address of the lowest element
    std::int64_t extent = 0;  ///< bytes from the lowest element to the end of the highest
  };
  [[nodiscard]] strided_source require_strided(const core_state& core, const isa::instruction& i) const {
    strided_source s;
    s.first = memory_access::address(core, i, i.r1, r1_bit, word);
    s.step = word * core.registers[static_cast<std::size_t>(i.word0)];
    const std::int64_t last = s.first + (i.word3 - std::int64_t{1}) * s.step;  // below 2^31 · 2^33: no overflow
    s.lowest = std::min(s.first, last);
    s.extent = std::max(s.first, last) - s.lowest + word;
    if (s.lowest < 0) memory_.fail(core, "negative local address " + std::to_string(s.lowest));
    if (s.lowest + s.extent > core.memory.extent()) memory_.fail_unwritten(core, std::max(s.first, last), word);
    if (s.step == word) {
      memory_.require(core, s.first, s.extent);
    } else {
      for (std::int64_t k = 0; k < i.word3; ++k) memory_.require(core, s.first + k * s.step, word);
    }
    return s;
  }
  [[nodiscard]] static float float_at(const core_state& core, std::int64_t address) noexcept {
    float value = 0;
    std::memcpy(&value, core.memory.at(address), sizeof value);
    return value;
  }

  memory_access& memory_;
  std::vector<float> first_scratch_, second_scratch_, result_scratch_, product_scratch_;
};

}  // namespace raptor::sim
