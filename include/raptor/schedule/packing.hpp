#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"

/// Packing of indivisible weight sets (array groups) into the crossbars of cores.
namespace raptor::schedule {

/// Items by decreasing size, equal ones by index.
[[nodiscard]] inline std::vector<std::size_t> by_decreasing_size(std::span<const std::int64_t> sizes) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  return order;
}

/// The first bin with enough room, in O(log bins).
class first_fit {
 public:
  explicit first_fit(std::span<const std::int64_t> rooms) : leaves_(std::bit_ceil(std::max<std::size_t>(rooms.size(), 1))), most_(2 * leaves_, -1) {
    std::copy(rooms.begin(), rooms.end(), most_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t n = leaves_; n-- > 1;) most_[n] = std::max(most_[2 * n], most_[2 * n + 1]);
  }
  /// Puts an item of `size` ≥ 0 into the first bin that has room; none: no bin has.
  [[nodiscard]] std::optional<std::size_t> put(std::int64_t size) {
    if (most_[1] < size) return std::nullopt;
    std::size_t n = 1;
    while (n < leaves_) n = most_[2 * n] >= size ? 2 * n : 2 * n + 1;
    most_[n] -= size;
    const std::size_t bin = n - leaves_;
    while ((n /= 2) >= 1) most_[n] = std::max(most_[2 * n], most_[2 * n + 1]);
    return bin;
  }

 private:
  std::size_t leaves_;
  std::vector<std::int64_t> most_;  ///< a heap-shaped tree of the largest room below each node
};

/// First-fit decreasing: the bin of each item, or none where some item finds no room. Among equal bins it opens at most
/// 11/9 × optimum + 6/9 of them (Dósa 2007). O(n log n + n log m).
[[nodiscard]] inline std::optional<std::vector<std::size_t>> try_pack(std::span<const std::int64_t> sizes, std::span<const std::int64_t> capacities) {
  first_fit bins(capacities);
  std::vector<std::size_t> bin(sizes.size());
  for (const auto item : by_decreasing_size(sizes)) {
    const auto found = bins.put(sizes[item]);
    if (!found) return std::nullopt;
    bin[item] = *found;
  }
  return bin;
}

namespace detail {
[[nodiscard]] inline std::int64_t total(std::span<const std::int64_t> sizes) {
  std::int64_t sum = 0;
  for (const auto size : sizes) sum = checked::add(sum, size);
  return sum;
}
/// Why weight sets of these sizes do not fit.
[[nodiscard]] inline error does_not_fit(std::span<const std::int64_t> sizes, std::span<const std::int64_t> capacities, std::int64_t needed) {
  const auto available = total(capacities);
  const auto largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  const auto core = capacities.empty() ? 0 : *std::max_element(capacities.begin(), capacities.end());
  std::string text = "the weights do not fit the chip: " + std::to_string(needed) + " crossbars needed, " + std::to_string(available) + " available on " +
                     std::to_string(capacities.size()) + (capacities.size() == 1 ? " core" : " cores");
  if (largest > core) text += "; the largest indivisible set of weights needs " + std::to_string(largest) + " crossbars, a core has " + std::to_string(core);
  else if (needed <= available) text += ", but sets of weights that cannot be divided (up to " + std::to_string(largest) + " crossbars) leave gaps";
  return error(error_code::capacity, text, {}, "use more or larger cores, larger crossbars or narrower weights");
}
}  // namespace detail

/// As try_pack. Errors: capacity, with the crossbars needed and available.
[[nodiscard]] inline std::vector<std::size_t> pack(std::span<const std::int64_t> sizes, std::span<const std::int64_t> capacities) {
  for (const auto size : sizes)
    if (size < 0) throw error(error_code::malformed, "a set of weights has the size " + std::to_string(size));
  auto packed = try_pack(sizes, capacities);
  if (!packed) throw detail::does_not_fit(sizes, capacities, detail::total(sizes));
  return *std::move(packed);
}

/// Verifier: every item in a bin that exists, no bin above its capacity. Empty: correct; else the first violation.
[[nodiscard]] inline std::string check_packing(std::span<const std::int64_t> sizes, std::span<const std::int64_t> capacities, std::span<const std::size_t> bin) {
  if (bin.size() != sizes.size()) return "not one bin for each item";
  std::vector<std::int64_t> used(capacities.size(), 0);
  for (std::size_t i = 0; i < bin.size(); ++i) {
    if (bin[i] >= capacities.size()) return "item " + std::to_string(i) + " is in bin " + std::to_string(bin[i]) + ", which does not exist";
    used[bin[i]] = checked::add(used[bin[i]], sizes[i]);
  }
  for (std::size_t b = 0; b < used.size(); ++b)
    if (used[b] > capacities[b]) return "bin " + std::to_string(b) + " holds " + std::to_string(used[b]) + " of " + std::to_string(capacities[b]);
  return {};
}

}  // namespace raptor::schedule
