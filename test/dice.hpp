#pragma once

#include <cstdint>

namespace raptor_test {

/// Draws that are the same everywhere.
class dice {
 public:
  explicit dice(std::uint32_t seed) : state_(seed * 2654435761u + 12345u) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    state_ = state_ * 1664525u + 1013904223u;
    return low + static_cast<std::int64_t>((state_ >> 9) % static_cast<std::uint32_t>(high - low + 1));
  }

 private:
  std::uint32_t state_;
};

}  // namespace raptor_test
