#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "raptor/isa/opcode.hpp"
#include "raptor/sim/semantics.hpp"

/// The loops of the vector unit on 32-bit floats; what one element becomes is sim/semantics.hpp's element<Op>. Pointers are
/// float-aligned; a destination equals a source or does not overlap it. Sums run in the order of the elements, as the constexpr
/// machine has them, so that both give the same bits.
namespace raptor::sim::kernels {

/// out[k] = element<Op>(a[k]), or element<Op>(a[k], bound) for the clamps.
template <isa::opcode Op>
void map(float* out, const float* a, std::size_t n, float bound = 0.0f) noexcept {
  for (std::size_t k = 0; k < n; ++k) out[k] = element<Op>(a[k], bound);
}

/// out[k] = element<Op>(a[k], b[k]).
template <isa::opcode Op>
void zip(float* out, const float* a, const float* b, std::size_t n) noexcept {
  for (std::size_t k = 0; k < n; ++k) out[k] = element<Op>(a[k], b[k]);
}

/// Σ a[k] · b[k].
[[nodiscard]] inline float dot(const float* a, const float* b, std::size_t n) noexcept {
  float sum = 0.0f;
  for (std::size_t k = 0; k < n; ++k) sum += a[k] * b[k];
  return sum;
}

/// out = softmax(a), shifted by the largest element so that exp cannot overflow. n ≥ 1.
inline void softmax(float* out, const float* a, std::size_t n) noexcept {
  float largest = a[0];
  for (std::size_t k = 1; k < n; ++k) largest = element<isa::opcode::vvmax>(largest, a[k]);
  float sum = 0.0f;
  for (std::size_t k = 0; k < n; ++k) {
    out[k] = static_cast<float>(std::exp(static_cast<double>(a[k] - largest)));
    sum += out[k];
  }
  for (std::size_t k = 0; k < n; ++k) out[k] /= sum;
}

/// The float that a register's bits are.
[[nodiscard]] inline float bound(std::int32_t bits) noexcept { return std::bit_cast<float>(bits); }

}  // namespace raptor::sim::kernels
