#pragma once

#include <cmath>
#include <limits>

#include "raptor/model/reference_value.hpp"

namespace raptor::model {

/// How far a tensor is from what it should be.
struct difference {
  double absolute = 0;     ///< largest |actual − expected|
  double largest = 0;      ///< largest finite |expected|
  double excess = 0;       ///< largest |actual − expected| − relative tolerance · |expected|
  std::int64_t where = -1; ///< row-major index of the largest difference; −1: the tensors are equal

  /// Largest difference in terms of the largest expected element; 0 / 0 is 0.
  [[nodiscard]] double relative() const noexcept {
    if (absolute == 0) return 0;
    return largest == 0 ? std::numeric_limits<double>::infinity() : absolute / largest;
  }
};

/// Compares two tensors of floats or two of integers. NaN equals NaN, an infinity only itself; any other difference with
/// them is infinite. `relative_tolerance` enters `excess` only: |a − e| ≤ absolute + relative · |e| is excess ≤ absolute.
/// Errors: mismatch, where shapes or element types differ.
[[nodiscard]] inline difference compare(const tensor_value& actual, const tensor_value& expected, double relative_tolerance = 0) {
  if (!actual.present() || !expected.present()) throw error(error_code::mismatch, "a tensor to compare is absent");
  if (actual.sizes != expected.sizes || actual.type() != expected.type())
    throw error(error_code::mismatch, "got " + std::string(name(actual.type())) + " " + to_string(actual.sizes) + ", expected " +
                                          name(expected.type()) + " " + to_string(expected.sizes));
  difference d;
  const auto visit = [&](const auto& a, const auto& e) {
    for (std::size_t i = 0; i < e.size(); ++i) {
      const auto x = static_cast<double>(a[i]);
      const auto y = static_cast<double>(e[i]);
      if (std::isfinite(y)) d.largest = std::max(d.largest, std::abs(y));
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      double distance = std::abs(x - y);
      if (!std::isfinite(distance)) distance = std::numeric_limits<double>::infinity();
      d.excess = std::max(d.excess, std::isfinite(distance) ? distance - relative_tolerance * std::abs(y) : distance);
      if (d.where < 0 || distance > d.absolute) {
        d.absolute = distance;
        d.where = static_cast<std::int64_t>(i);
      }
    }
  };
  if (expected.type() == element_type::f32)
    visit(actual.floats(), expected.floats());
  else
    visit(actual.integers(), expected.integers());
  return d;
}

}  // namespace raptor::model
