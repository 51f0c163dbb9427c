#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "raptor/support/error.hpp"

/// Arithmetic on sizes and addresses that never wraps: an overflow throws error_code::capacity with the operation.
namespace raptor::checked {

namespace detail {
template <class T>
[[noreturn]] void overflow(const char* operation, T a, T b) {
  throw error(error_code::capacity,
              "size overflow: " + std::to_string(a) + " " + operation + " " + std::to_string(b));
}
}  // namespace detail

template <class T>
  requires std::is_integral_v<T>
[[nodiscard]] constexpr T add(T a, T b) {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) detail::overflow("+", a, b);
  return result;
}

template <class T>
  requires std::is_integral_v<T>
[[nodiscard]] constexpr T multiply(T a, T b) {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) detail::overflow("*", a, b);
  return result;
}

/// Converts between integer types; throws where the value does not fit.
template <class To, class From>
  requires std::is_integral_v<To> && std::is_integral_v<From>
[[nodiscard]] constexpr To narrow(From value) {
  const To result = static_cast<To>(value);
  if (static_cast<From>(result) != value || (result < To{}) != (value < From{}))
    throw error(error_code::capacity, "value out of range: " + std::to_string(value));
  return result;
}

/// ceil(a / b) for a ≥ 0, b > 0.
template <class T>
  requires std::is_integral_v<T>
[[nodiscard]] constexpr T divide_up(T a, T b) {
  return a / b + (a % b != 0 ? T{1} : T{0});
}

/// Quotient rounded towards minus infinity, and the remainder in [0, divisor). Requires: divisor > 0.
[[nodiscard]] constexpr std::int64_t floor_divide(std::int64_t dividend, std::int64_t divisor) noexcept {
  return dividend / divisor - (dividend % divisor < 0 ? 1 : 0);
}
[[nodiscard]] constexpr std::int64_t floor_modulo(std::int64_t dividend, std::int64_t divisor) noexcept {
  return dividend % divisor + (dividend % divisor < 0 ? divisor : 0);
}

}  // namespace raptor::checked
