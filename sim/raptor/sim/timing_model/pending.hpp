#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

/// The pending set of the timing model (TIMING 10.1): one binary heap for the whole chip, ordered by time only. How it
/// treats equal times is observable, so the heap is exactly the one that is specified there.
namespace raptor::sim::timing {

/// Whole picoseconds since the start.
using instant = std::int64_t;
inline constexpr instant never = std::numeric_limits<instant>::max();

/// `Entry`: what is woken; small and copyable.
template <class Entry>
class pending_set {
 public:
  struct item {
    instant time;
    Entry entry;
  };

  [[nodiscard]] bool empty() const noexcept { return times_.size() == 1; }
  [[nodiscard]] std::size_t size() const noexcept { return times_.size() - 1; }
  [[nodiscard]] item earliest() const noexcept { return {times_[1], entries_[1]}; }
  /// Earliest time of an entry that does not stand first.
  [[nodiscard]] instant second() const noexcept {
    if (times_.size() <= 2) return never;
    return times_.size() > 3 && times_[3] < times_[2] ? times_[3] : times_[2];
  }

  void insert(instant time, Entry entry) {
    times_.push_back(time);
    entries_.push_back(entry);
    std::size_t i = size();
    for (; i > 1 && times_[i >> 1] > time; i >>= 1) move(i >> 1, i);
    times_[i] = time, entries_[i] = entry;
  }
  item extract() {
    const item top = earliest(), last{times_.back(), entries_.back()};
    times_.pop_back();
    entries_.pop_back();
    if (!empty()) sift(last, size());
    return top;
  }

  /// Where the clock stands first and nothing but its edges, `period` apart, happens for a while: runs `edges` of them.
  /// Requires: every other entry is later than each of these edges' next one.
  /// An edge is "extract clock, insert clock". The last entry goes down from the root to some place, and then the path
  /// from the last place to the root moves down by one, the clock becoming its head again. Where the entry stops on that
  /// path, what is below on the path has the same time as it, so this and all further edges only rotate that part of the
  /// path, and whole rotations are skipped. Cost: O(log² n), however many edges.
  void run_idle_edges(instant period, std::int64_t edges) {
    const item clock{times_[1] + edges * period, entries_[1]};
    const std::size_t n = size();
    if (n > 2) {
      bool rotates = false;
      while (edges > 0) {
        --edges;
        const std::size_t at = sift({times_[n], entries_[n]}, n - 1);
        for (std::size_t i = n; i > 1; i >>= 1) move(i >> 1, i);
        if (rotates) continue;
        const auto below = static_cast<unsigned>(std::bit_width(n) - std::bit_width(at));  // levels from there to the last place
        if (n >> below != at) continue;
        rotates = true;
        edges %= below;
      }
    }
    times_[1] = clock.time, entries_[1] = clock.entry;
  }

 private:
  void move(std::size_t from, std::size_t to) noexcept { times_[to] = times_[from], entries_[to] = entries_[from]; }
  /// Puts an entry into the vacant root of the first `n` places; where it came to rest.
  std::size_t sift(item moved, std::size_t n) noexcept {
    std::size_t i = 1;
    for (std::size_t left = 2; left <= n; left = 2 * i) {
      std::size_t best = i;
      instant least = moved.time;
      if (times_[left] < least) best = left, least = times_[left];
      if (left < n && times_[left + 1] < least) best = left + 1;
      if (best == i) break;
      move(best, i);
      i = best;
    }
    times_[i] = moved.time, entries_[i] = moved.entry;
    return i;
  }

  // 1-based. Two arrays, so that what was just written can be read again at once.
  std::vector<instant> times_{0};
  std::vector<Entry> entries_{Entry{}};
};

}  // namespace raptor::sim::timing
