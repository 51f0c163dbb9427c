#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "raptor/schedule/packing.hpp"
#include "raptor/schedule/problem.hpp"

/// How many copies of its weights each layer gets (BOUNDS, "Replication"). A layer of w windows on r copies takes
/// ceil(w / r) × time; the interval between inputs is that of the slowest layer.
namespace raptor::schedule {

struct replicable {
  std::int64_t windows = 1;        ///< output positions, each done by one copy
  picoseconds time = 0;            ///< of one window on one copy
  std::vector<std::int64_t> sets;  ///< crossbars of each indivisible set of one copy; sets may lie in different cores
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  ///< copies; more than `windows` are never used

  [[nodiscard]] std::int64_t crossbars() const { return detail::total(sets); }
};

struct replication {
  std::vector<std::int64_t> copies;  ///< by layer, at least 1
  picoseconds interval = 0;          ///< of the slowest layer
  std::int64_t crossbars = 0;        ///< of all copies
  friend bool operator==(const replication&, const replication&) = default;
};

/// Time of all windows of a layer on `copies` copies. Errors: capacity on overflow.
[[nodiscard]] inline picoseconds layer_time(const replicable& layer, std::int64_t copies) {
  return checked::multiply(checked::divide_up(layer.windows, copies), layer.time);
}

namespace detail {
inline void check_layers(std::span<const replicable> layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& l = layers[i];
    if (l.windows < 1 || l.time < 0 || l.most < 1 || std::any_of(l.sets.begin(), l.sets.end(), [](auto s) { return s < 0; }))
      throw error(error_code::malformed, "layer " + std::to_string(i) + " to be replicated has no windows, a negative time or size, or no copy");
  }
}
[[nodiscard]] inline std::int64_t most_copies(const replicable& layer) { return std::min(layer.most, layer.windows); }
[[nodiscard]] inline replication summarize(std::span<const replicable> layers, std::vector<std::int64_t> copies) {
  replication result{std::move(copies), 0, 0};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    result.interval = std::max(result.interval, layer_time(layers[i], result.copies[i]));
    result.crossbars = checked::add(result.crossbars, checked::multiply(layers[i].crossbars(), result.copies[i]));
  }
  return result;
}
[[noreturn]] inline void no_room(std::int64_t needed, std::int64_t available) {
  throw error(error_code::capacity,
              "the weights do not fit: " + std::to_string(needed) + " crossbars needed for one copy of each layer, " + std::to_string(available) + " available", {},
              "use more or larger cores, larger crossbars or narrower weights");
}
}  // namespace detail

/// The fewest copies with which every layer finishes within `interval`; none where a layer cannot. O(n).
[[nodiscard]] inline std::optional<std::vector<std::int64_t>> copies_for_interval(std::span<const replicable> layers, picoseconds interval) {
  std::vector<std::int64_t> copies;
  for (const auto& layer : layers) {
    const std::int64_t rounds = layer.time == 0 ? layer.windows : std::min(layer.windows, interval / layer.time);
    if (rounds < 1) return std::nullopt;
    copies.push_back(checked::divide_up(layer.windows, rounds));
    if (copies.back() > detail::most_copies(layer)) return std::nullopt;
  }
  return copies;
}

/// The shortest interval whose fewest copies `fits(copies)` accepts, by binary search over the interval.
///
/// Requires: fits is monotone (fewer copies fit where more do); where it is only nearly so (bin packing), the result still fits.
/// Errors: malformed; capacity where not even one copy of each layer fits. Cost: O((n + fits) · log(largest layer time)).
template <std::predicate<const std::vector<std::int64_t>&> Fits>
[[nodiscard]] replication replicate_by_interval(std::span<const replicable> layers, const Fits& fits) {
  detail::check_layers(layers);
  std::vector<std::int64_t> best(layers.size(), 1);
  std::int64_t needed = 0;
  picoseconds high = 0;
  for (const auto& layer : layers) {
    high = std::max(high, layer_time(layer, 1));
    needed = checked::add(needed, layer.crossbars());
  }
  if (!fits(best)) throw error(error_code::capacity, "one copy of each layer does not fit: " + std::to_string(needed) + " crossbars needed");
  for (picoseconds low = 0; low < high;) {  // `high` fits with `best`, everything below `low` does not
    const picoseconds middle = low + (high - low) / 2;
    auto copies = copies_for_interval(layers, middle);
    if (copies && fits(*copies)) {
      best = *std::move(copies);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return detail::summarize(layers, std::move(best));
}

/// The shortest interval for a budget of crossbars, packing left aside. Exact. Errors and cost: as above.
[[nodiscard]] inline replication replicate_by_interval(std::span<const replicable> layers, std::int64_t budget) {
  detail::check_layers(layers);
  const auto needed = [&](const std::vector<std::int64_t>& copies) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) sum = checked::add(sum, checked::multiply(layers[i].crossbars(), copies[i]));
    return sum;
  };
  if (const auto one = needed(std::vector<std::int64_t>(layers.size(), 1)); one > budget) detail::no_room(one, budget);
  return replicate_by_interval(layers, [&](const std::vector<std::int64_t>& copies) { return needed(copies) <= budget; });
}

/// The same optimum by raising the slowest layer (equal ones: the first) to the next useful number of copies until that no longer
/// fits. Exact, because a layer needs at least these copies for any shorter interval, and the cost only grows. The result has the
/// fewest copies for its interval. Errors: malformed, capacity. Cost: O(n + steps · log n), at most Σ 2·√windows steps.
[[nodiscard]] inline replication replicate_greedily(std::span<const replicable> layers, std::int64_t budget) {
  detail::check_layers(layers);
  std::vector<std::int64_t> copies(layers.size(), 1);
  const std::int64_t one = detail::summarize(layers, copies).crossbars;
  if (one > budget) detail::no_room(one, budget);
  std::int64_t left = budget - one;
  using entry = std::pair<picoseconds, std::size_t>;
  const auto faster = [](const entry& a, const entry& b) { return a.first < b.first || (a.first == b.first && a.second > b.second); };
  std::priority_queue<entry, std::vector<entry>, decltype(faster)> slowest(faster);
  for (std::size_t i = 0; i < layers.size(); ++i) slowest.push({layer_time(layers[i], 1), i});
  while (!slowest.empty()) {
    const auto [time, i] = slowest.top();
    const std::int64_t rounds = checked::divide_up(layers[i].windows, copies[i]);
    if (rounds == 1 || time == 0) break;
    const std::int64_t next = checked::divide_up(layers[i].windows, rounds - 1);
    const std::int64_t size = layers[i].crossbars();
    if (next > detail::most_copies(layers[i]) || (size > 0 && next - copies[i] > left / size)) break;
    left -= (next - copies[i]) * size;
    copies[i] = next;
    slowest.pop();
    slowest.push({layer_time(layers[i], next), i});
  }
  // Layers as slow as the last one may have been raised in vain: back to what the interval reached needs.
  const auto reached = detail::summarize(layers, copies).interval;
  if (const auto fewest = copies_for_interval(layers, reached)) copies = *fewest;
  return detail::summarize(layers, std::move(copies));
}

/// The shortest interval whose copies also pack into the cores: sets are indivisible and stay in one core (first-fit decreasing).
/// Errors: malformed; capacity with needed and available. Cost: O(log(time) · S log S), S sets of all copies.
[[nodiscard]] inline replication replicate_packed(std::span<const replicable> layers, std::span<const std::int64_t> capacities) {
  detail::check_layers(layers);
  const std::int64_t available = detail::total(capacities);
  const auto sets = [&](const std::vector<std::int64_t>& copies) {
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < layers.size(); ++i)
      for (const auto set : layers[i].sets)
        if (set > 0) all.insert(all.end(), static_cast<std::size_t>(copies[i]), set);
    return all;
  };
  (void)pack(sets(std::vector<std::int64_t>(layers.size(), 1)), capacities);  // throws where one copy does not fit
  return replicate_by_interval(layers, [&](const std::vector<std::int64_t>& copies) {
    std::int64_t needed = 0;  // before the list is made, so that it stays as small as the chip
    for (std::size_t i = 0; i < layers.size(); ++i) needed = checked::add(needed, checked::multiply(layers[i].crossbars(), copies[i]));
    return needed <= available && try_pack(sets(copies), capacities).has_value();
  });
}

/// For one input at a time, layer after layer: the sum of layer times. Repeatedly the layer whose next useful number of copies
/// saves most time per crossbar; close to copies in proportion to √(windows · time / crossbars). Not exact (a knapsack).
/// Errors: malformed, capacity. Cost: O(n + steps · log n), as replicate_greedily.
[[nodiscard]] inline replication replicate_for_latency(std::span<const replicable> layers, std::int64_t budget) {
  detail::check_layers(layers);
  std::vector<std::int64_t> copies(layers.size(), 1);
  const std::int64_t one = detail::summarize(layers, copies).crossbars;
  if (one > budget) detail::no_room(one, budget);
  std::int64_t left = budget - one;
  struct offer {
    double gain;
    std::size_t layer;
    std::int64_t next;
  };
  const auto worse = [](const offer& a, const offer& b) { return a.gain < b.gain || (a.gain == b.gain && a.layer > b.layer); };
  std::priority_queue<offer, std::vector<offer>, decltype(worse)> offers(worse);
  const auto propose = [&](std::size_t i) {
    const auto& layer = layers[i];
    const std::int64_t rounds = checked::divide_up(layer.windows, copies[i]);
    if (rounds == 1 || layer.time == 0) return;
    const std::int64_t next = checked::divide_up(layer.windows, rounds - 1);
    if (next > detail::most_copies(layer)) return;
    const auto saved = static_cast<double>(layer_time(layer, copies[i]) - layer_time(layer, next));
    const auto paid = static_cast<double>(next - copies[i]) * static_cast<double>(std::max<std::int64_t>(1, layer.crossbars()));
    offers.push({saved / paid, i, next});
  };
  for (std::size_t i = 0; i < layers.size(); ++i) propose(i);
  while (!offers.empty()) {
    const auto best = offers.top();
    offers.pop();
    const std::int64_t size = layers[best.layer].crossbars(), more = best.next - copies[best.layer];
    if (size > 0 && more > left / size) continue;  // too large; smaller ones may still fit
    left -= more * size;
    copies[best.layer] = best.next;
    propose(best.layer);
  }
  return detail::summarize(layers, std::move(copies));
}

}  // namespace raptor::schedule
