#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "raptor/support/checked.hpp"

namespace raptor {

/// Sizes of a tensor or of a lane space, outermost dimension first. Empty: a scalar (one element).
using shape = std::vector<std::int64_t>;

/// Number of elements; throws on overflow. A scalar has 1.
[[nodiscard]] inline std::int64_t element_count(std::span<const std::int64_t> sizes) {
  std::int64_t count = 1;
  for (const auto size : sizes) count = checked::multiply(count, size);
  return count;
}

/// Row-major strides in elements.
[[nodiscard]] inline std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = checked::multiply(strides[d], sizes[d]);
  return strides;
}

/// "1x3x224x224"; "scalar" for rank 0.
[[nodiscard]] inline std::string to_string(std::span<const std::int64_t> sizes) {
  if (sizes.empty()) return "scalar";
  std::string text;
  for (const auto size : sizes) {
    if (!text.empty()) text += 'x';
    text += std::to_string(size);
  }
  return text;
}

/// A half-open interval [begin, end). Empty where end ≤ begin.
struct interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] constexpr std::int64_t size() const noexcept { return end > begin ? end - begin : 0; }
  [[nodiscard]] constexpr bool empty() const noexcept { return end <= begin; }
  [[nodiscard]] constexpr bool contains(std::int64_t i) const noexcept { return begin <= i && i < end; }
  [[nodiscard]] constexpr bool contains(const interval& o) const noexcept {
    return o.empty() || (begin <= o.begin && o.end <= end);
  }
  friend constexpr bool operator==(const interval&, const interval&) = default;
  friend constexpr auto operator<=>(const interval&, const interval&) = default;
};

[[nodiscard]] constexpr interval intersect(interval a, interval b) noexcept {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}
[[nodiscard]] constexpr interval hull(interval a, interval b) noexcept {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

/// A product of intervals, one a dimension. Rank 0 is the box of a scalar and is not empty.
using box = boost::container::small_vector<interval, 4>;  // most tensors have four dimensions or fewer: no allocation

[[nodiscard]] inline box whole(std::span<const std::int64_t> sizes) {
  box result;
  for (const auto size : sizes) result.push_back({0, size});
  return result;
}
[[nodiscard]] inline bool is_empty(const box& b) {
  return std::any_of(b.begin(), b.end(), [](const interval& i) { return i.empty(); });
}
[[nodiscard]] inline std::int64_t element_count(const box& b) {
  std::int64_t count = 1;
  for (const auto& i : b) count = checked::multiply(count, i.size());
  return count;
}
[[nodiscard]] inline shape extents(const box& b) {
  shape result;
  for (const auto& i : b) result.push_back(i.size());
  return result;
}
[[nodiscard]] inline bool contains(const box& outer, const box& inner) {
  if (is_empty(inner)) return true;
  for (std::size_t d = 0; d < outer.size(); ++d)
    if (!outer[d].contains(inner[d])) return false;
  return true;
}
[[nodiscard]] inline box intersect(const box& a, const box& b) {
  box result(a.size());
  for (std::size_t d = 0; d < a.size(); ++d) result[d] = intersect(a[d], b[d]);
  return result;
}
/// Smallest box that contains both. An empty box is neutral.
[[nodiscard]] inline box hull(const box& a, const box& b) {
  if (is_empty(a)) return b;
  if (is_empty(b)) return a;
  box result(a.size());
  for (std::size_t d = 0; d < a.size(); ++d) result[d] = hull(a[d], b[d]);
  return result;
}
/// The parts of `a` outside `b`, as at most 2 × rank disjoint boxes in a fixed order.
[[nodiscard]] inline std::vector<box> subtract(box a, const box& b) {
  if (is_empty(a)) return {};
  const box common = intersect(a, b);
  if (is_empty(common)) return {a};
  std::vector<box> parts;
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (a[d].begin < common[d].begin) {
      box part = a;
      part[d] = {a[d].begin, common[d].begin};
      parts.push_back(part);
    }
    if (common[d].end < a[d].end) {
      box part = a;
      part[d] = {common[d].end, a[d].end};
      parts.push_back(part);
    }
    a[d] = common[d];
  }
  return parts;
}
/// "[0,1) [0,64) [3,6)".
[[nodiscard]] inline std::string to_string(const box& b) {
  std::string text;
  for (const auto& i : b)
    text += (text.empty() ? "[" : " [") + std::to_string(i.begin) + "," + std::to_string(i.end) + ")";
  return text.empty() ? "scalar" : text;
}

}  // namespace raptor
