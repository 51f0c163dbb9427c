#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

/// The arithmetic of the vector unit on 32-bit floats (ISA, Instructions). Pointers are float-aligned; a destination equals a
/// source or does not overlap it. Sums run in the order of the elements, so that a result never depends on the host.
namespace raptor::sim::kernels {

/// out[k] = f(a[k]).
template <class F>
void map(float* out, const float* a, std::size_t n, F f) {
  for (std::size_t k = 0; k < n; ++k) out[k] = f(a[k]);
}

/// out[k] = f(a[k], b[k]).
template <class F>
void zip(float* out, const float* a, const float* b, std::size_t n, F f) {
  for (std::size_t k = 0; k < n; ++k) out[k] = f(a[k], b[k]);
}

/// Σ a[k] · b[k].
[[nodiscard]] inline float dot(const float* a, const float* b, std::size_t n) noexcept {
  float sum = 0.0f;
  for (std::size_t k = 0; k < n; ++k) sum += a[k] * b[k];
  return sum;
}

/// max(a, b) and min(a, b); NaN wins, so that a fault does not disappear in a clamp.
[[nodiscard]] inline float maximum(float a, float b) noexcept { return a > b || a != a ? a : b; }
[[nodiscard]] inline float minimum(float a, float b) noexcept { return a < b || a != a ? a : b; }
/// max(x, 0); keeps NaN.
[[nodiscard]] inline float relu(float x) noexcept { return x < 0.0f ? 0.0f : x; }
[[nodiscard]] inline float sigmoid(float x) noexcept {
  if (x >= 0.0f) return 1.0f / (1.0f + std::exp(-x));
  const float e = std::exp(x);  // exp(-x) would overflow
  return e / (1.0f + e);
}

/// out = softmax(a), shifted by the largest element so that exp cannot overflow. n ≥ 1.
inline void softmax(float* out, const float* a, std::size_t n) noexcept {
  float largest = a[0];
  for (std::size_t k = 1; k < n; ++k) largest = maximum(largest, a[k]);
  float sum = 0.0f;
  for (std::size_t k = 0; k < n; ++k) {
    out[k] = std::exp(a[k] - largest);
    sum += out[k];
  }
  for (std::size_t k = 0; k < n; ++k) out[k] /= sum;
}

/// The float that a register's bits are.
[[nodiscard]] inline float bound(std::int32_t bits) noexcept { return std::bit_cast<float>(bits); }

}  // namespace raptor::sim::kernels
