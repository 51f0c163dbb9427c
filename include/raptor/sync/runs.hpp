#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace raptor::sync {

/// The delay of a member that must not join a run.
inline constexpr std::int64_t impossible_delay = std::numeric_limits<std::int64_t>::max();

/// Cuts members 0 … n - 1, in order, into at most `most` runs so that the longest delay of any member is least; members are on their own where
/// there is room. `delay(first, k)`: what it costs that member k belongs to the run that begins with `first`; it must not grow
/// with `first`. Returns the first member of each run; empty where n > 0 and even the longest possible runs are too many.
/// Cost: O(n · log longest) calls.
template <class Delay>
[[nodiscard]] std::vector<std::size_t> cut_runs(std::size_t n, std::size_t most, const Delay& delay) {
  const auto greedy = [&](std::int64_t allowed) {
    std::vector<std::size_t> starts;
    for (std::size_t k = 0; k < n; ++k)
      if (starts.empty() || delay(starts.back(), k) > allowed) starts.push_back(k);
    return starts;
  };
  if (n <= most) {
    std::vector<std::size_t> all(n);
    for (std::size_t k = 0; k < n; ++k) all[k] = k;
    return all;
  }
  std::int64_t low = 0, high = impossible_delay - 1;
  if (greedy(high).size() > most) return {};
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (greedy(middle).size() <= most) high = middle;
    else low = middle + 1;
  }
  return greedy(low);
}

}  // namespace raptor::sync
