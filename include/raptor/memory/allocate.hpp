#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "raptor/support/box.hpp"

/// Addresses for blocks of which only those that live at the same time must not overlap (dynamic storage allocation).
/// Everything here is pure: no program, no buffers.
namespace raptor::memory {

/// `size` units during `life` (half open, not empty).
struct block {
  std::int64_t size = 0;
  interval life;
};
struct allocation {
  std::vector<std::int64_t> addresses;  ///< one a block
  std::int64_t used = 0;                ///< largest end of a block
};

/// Most units in use at one time: no allocation can use fewer. Cost: O(n log n).
[[nodiscard]] inline std::int64_t peak_demand(std::span<const block> blocks) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;
  changes.reserve(2 * blocks.size());
  for (const auto& b : blocks) {
    changes.emplace_back(b.life.begin, b.size);
    changes.emplace_back(b.life.end, -b.size);
  }
  std::sort(changes.begin(), changes.end());  // at equal times what ends comes first
  std::int64_t now = 0, most = 0;
  for (const auto& change : changes) most = std::max(most, now = checked::add(now, change.second));
  return most;
}

/// In order of birth, each block into the smallest hole that holds it (best fit; the lowest of equals), holes merging as blocks die.
/// Deterministic. Cost: O(n log n).
[[nodiscard]] inline allocation allocate_by_birth(std::span<const block> blocks) {
  std::vector<std::size_t> births(blocks.size()), deaths;
  std::iota(births.begin(), births.end(), std::size_t{0});
  deaths = births;
  std::stable_sort(births.begin(), births.end(), [&](std::size_t a, std::size_t b) {
    if (blocks[a].life.begin != blocks[b].life.begin) return blocks[a].life.begin < blocks[b].life.begin;
    return blocks[a].size > blocks[b].size;
  });
  std::stable_sort(deaths.begin(), deaths.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].life.end < blocks[b].life.end; });

  allocation result;
  result.addresses.assign(blocks.size(), 0);
  std::map<std::int64_t, std::int64_t> holes;             // begin → end; never touching
  std::set<std::pair<std::int64_t, std::int64_t>> sizes;  // (size, begin) of the same
  const auto remove = [&](std::map<std::int64_t, std::int64_t>::iterator hole) {
    sizes.erase({hole->second - hole->first, hole->first});
    return holes.erase(hole);
  };
  const auto insert = [&](std::int64_t begin, std::int64_t end) {
    if (end <= begin) return;
    holes.emplace(begin, end);
    sizes.emplace(end - begin, begin);
  };
  std::size_t dead = 0;
  for (const std::size_t b : births) {
    for (; dead < deaths.size() && blocks[deaths[dead]].life.end <= blocks[b].life.begin; ++dead) {
      std::int64_t begin = result.addresses[deaths[dead]], end = begin + blocks[deaths[dead]].size;
      if (begin == end) continue;
      auto next = holes.lower_bound(begin);
      if (next != holes.end() && next->first == end) {
        end = next->second;
        next = remove(next);
      }
      if (next != holes.begin() && std::prev(next)->second == begin) {
        begin = std::prev(next)->first;
        remove(std::prev(next));
      }
      insert(begin, end);
    }
    const std::int64_t size = blocks[b].size;
    if (size == 0) continue;
    if (const auto fit = sizes.lower_bound({size, 0}); fit != sizes.end()) {
      const std::int64_t begin = fit->second, end = begin + fit->first;
      remove(holes.find(begin));
      result.addresses[b] = begin;
      insert(begin + size, end);
    } else {
      std::int64_t begin = result.used;
      if (!holes.empty() && std::prev(holes.end())->second == result.used) {  // the hole at the top grows
        begin = std::prev(holes.end())->first;
        remove(std::prev(holes.end()));
      }
      result.addresses[b] = begin;
      result.used = checked::add(begin, size);
    }
  }
  return result;
}

/// In order of falling size, each block into the tightest gap between the blocks that live at the same time (greedy by size).
/// Often closer to the lower bound than allocate_by_birth. Deterministic. Cost: O(n²).
[[nodiscard]] inline allocation allocate_by_size(std::span<const block> blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return blocks[a].size > blocks[b].size; });
  allocation result;
  result.addresses.assign(blocks.size(), 0);
  struct placed {
    std::int64_t begin, end;
    interval life;
  };
  std::vector<placed> taken;  // by address
  for (const std::size_t b : order) {
    const auto& wanted = blocks[b];
    if (wanted.size == 0) continue;
    std::int64_t top = 0, best = -1, best_gap = 0;
    for (const auto& other : taken) {
      if (intersect(other.life, wanted.life).empty()) continue;
      const std::int64_t gap = other.begin - top;
      if (gap >= wanted.size && (best < 0 || gap < best_gap)) best = top, best_gap = gap;
      top = std::max(top, other.end);
    }
    const std::int64_t begin = best < 0 ? top : best;
    const placed entry{begin, checked::add(begin, wanted.size), wanted.life};
    taken.insert(std::upper_bound(taken.begin(), taken.end(), entry,
                                  [](const placed& x, const placed& y) { return x.begin < y.begin; }),
                 entry);
    result.addresses[b] = begin;
    result.used = std::max(result.used, entry.end);
  }
  return result;
}

/// The better of the two; the quadratic one is tried only where it can help and is affordable, or where `limit` is exceeded.
[[nodiscard]] inline allocation allocate(std::span<const block> blocks, std::int64_t limit, std::size_t affordable = 1024) {
  allocation first = allocate_by_birth(blocks);
  const std::int64_t least = peak_demand(blocks);
  if (first.used == least || (blocks.size() > affordable && first.used <= limit) || least > limit) return first;
  allocation second = allocate_by_size(blocks);
  return second.used < first.used ? second : first;
}

}  // namespace raptor::memory
