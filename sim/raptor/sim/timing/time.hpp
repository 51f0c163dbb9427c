#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "raptor/support/error.hpp"

/// Time of the timing model: integer picoseconds. Source: TIMING.md 1.
namespace raptor::sim::timing {

using picoseconds = std::int64_t;

/// No instant of a run lies beyond this (about 13 days of simulated time): sums of a few times never overflow.
inline constexpr picoseconds most_time = std::int64_t{1} << 60;

/// x ns as picoseconds, rounded half up. Errors: capacity where the time cannot be represented (also for NaN and negatives).
[[nodiscard]] inline picoseconds from_ns(double ns) {
  if (ns == 0) return 0;
  const double rounded = ns * 1000.0 + 0.5;
  if (!(rounded >= 0 && rounded < static_cast<double>(most_time)))
    throw error(error_code::capacity, "a duration of " + std::to_string(ns) + " ns is outside the range of the timing model");
  return static_cast<picoseconds>(rounded);
}

/// x ms as picoseconds. A value beyond the range becomes the largest time: it is only ever used as a limit.
[[nodiscard]] inline picoseconds from_ms(double ms) noexcept {
  const double rounded = ms * 1e9 + 0.5;
  return rounded < static_cast<double>(most_time) ? static_cast<picoseconds>(rounded) : most_time;
}

/// Picoseconds in the units of the report, with the roundings of the reference (TIMING.md 11).
[[nodiscard]] inline double to_seconds(picoseconds t) noexcept { return static_cast<double>(t) * 1000.0 * 1e-15; }
[[nodiscard]] inline double to_ms(picoseconds t) noexcept { return to_seconds(t) * 1000; }

/// ceil(a / b) of counts. Equal to the ceiling in floating point for operands below 2^53. Requires b > 0.
[[nodiscard]] constexpr std::int64_t ceiling(std::int64_t a, std::int64_t b) noexcept { return a > 0 ? (a - 1) / b + 1 : 0; }

/// The crossbar's "ceiling", which truncates (TIMING.md 1, quirk 14). Zero for a zero divisor. Requires a, b >= 0.
[[nodiscard]] constexpr std::int64_t truncating_quotient(std::int64_t a, std::int64_t b) noexcept { return b == 0 ? 0 : a / b; }

}  // namespace raptor::sim::timing
