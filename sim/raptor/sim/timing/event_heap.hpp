#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "raptor/sim/timing/time.hpp"

namespace raptor::sim::timing {

/// A suspended process and when it goes on.
struct timed_entry {
  picoseconds time = 0;
  std::uint32_t process = 0;
  friend constexpr bool operator==(const timed_entry&, const timed_entry&) = default;
};

/// All timed suspensions of the chip: a 1-based array heap ordered by time only. The order of equal times follows from the exact moves
/// of insert and extract, and is part of the observable behaviour. Source: TIMING.md 10.1, quirk 22.
///
/// Cost: O(log n) each.
class event_heap {
 public:
  event_heap() : entries_(1) {}

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size() - 1; }
  [[nodiscard]] const timed_entry& top() const noexcept { return entries_[1]; }

  /// Puts the entry at the end; while its parent is strictly later, they swap.
  void insert(timed_entry e) {
    entries_.push_back(e);
    std::size_t at = entries_.size() - 1;
    while (at > 1 && entries_[at >> 1].time > e.time) {
      entries_[at] = entries_[at >> 1];
      at >>= 1;
    }
    entries_[at] = e;
  }

  /// Takes the root; the last entry moves there and sinks: left child if strictly earlier, then right if strictly earlier still.
  /// Requires size() > 0.
  timed_entry extract() noexcept {
    const timed_entry root = entries_[1];
    const timed_entry last = entries_.back();
    entries_.pop_back();
    const std::size_t count = size();
    if (count == 0) return root;
    std::size_t at = 1;
    for (std::size_t left = 2; left <= count; left = 2 * at) {
      std::size_t best = at;
      picoseconds earliest = last.time;
      if (entries_[left].time < earliest) best = left, earliest = entries_[left].time;
      if (left < count && entries_[left + 1].time < earliest) best = left + 1;
      if (best == at) break;
      entries_[at] = entries_[best];
      at = best;
    }
    entries_[at] = last;
    return root;
  }

  /// The earliest time of the entries behind the root, or `otherwise`.
  [[nodiscard]] picoseconds second(picoseconds otherwise) const noexcept {
    for (std::size_t k = 2; k < entries_.size() && k <= 3; ++k)
      if (entries_[k].time < otherwise) otherwise = entries_[k].time;
    return otherwise;
  }

  /// Equals `count` times "extract the root, insert it `period` later", where the root stays strictly earliest throughout.
  ///
  /// The operation only rotates entries, so the order repeats after few steps; whole periods are jumped over (TIMING.md 10.1).
  /// Cost: O(size) for long stretches, never O(count) beyond a constant.
  void rotate(std::int64_t count, picoseconds period) {
    if (size() == 1) {
      entries_[1].time += count * period;
      return;
    }
    // A snapshot after the transient; if the order does not come back to it in time, a later one with more patience.
    std::int64_t snapshot_at = count > 48 ? 8 : count;
    std::int64_t patience = 16;
    bool has_snapshot = false;
    for (std::int64_t done = 0; done < count;) {
      if (done == snapshot_at) {
        snapshot_ = entries_;
        has_snapshot = true;
      }
      timed_entry root = extract();
      root.time += period;
      insert(root);
      ++done;
      if (!has_snapshot) continue;
      const std::int64_t cycle = done - snapshot_at;
      if (same_order()) {
        const std::int64_t jump = (count - done) / cycle * cycle;
        entries_[1].time += jump * period;
        done += jump;
        has_snapshot = false;  // fewer than one cycle is left
      } else if (cycle == patience) {
        has_snapshot = false;
        snapshot_at = done;
        patience *= 2;
      }
    }
  }

 private:
  std::vector<timed_entry> entries_;
  std::vector<timed_entry> snapshot_;

  [[nodiscard]] bool same_order() const noexcept {
    for (std::size_t k = 2; k < entries_.size(); ++k)
      if (entries_[k].process != snapshot_[k].process) return false;
    return true;
  }
};

}  // namespace raptor::sim::timing
