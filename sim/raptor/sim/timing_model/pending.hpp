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

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] item earliest() const noexcept { return {times_[1], entries_[1]}; }
  /// Earliest time of an entry that does not stand first.
  [[nodiscard]] instant second() const noexcept { return size_ < 2 ? never : times_[3] < times_[2] ? times_[3] : times_[2]; }

  void insert(instant time, Entry entry) {
    if (++size_ + 2 > times_.size()) {
      times_.resize(2 * times_.size(), never);
      entries_.resize(times_.size());
    }
    instant* const times = times_.data();
    Entry* const entries = entries_.data();
    std::size_t i = size_;
    for (; i > 1 && times[i >> 1] > time; i >>= 1) times[i] = times[i >> 1], entries[i] = entries[i >> 1];
    times[i] = time, entries[i] = entry;
  }
  item extract() {
    const item top = earliest(), last{times_[size_], entries_[size_]};
    times_[size_--] = never;
    if (!empty()) sift(last);
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
        const item last{times_[n], entries_[n]};
        times_[n] = never;
        const std::size_t at = sift(last);
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
  /// Puts an entry into the vacant root, whose place the last one left; where it came to rest. The earlier child, the left one of
  /// two equals, goes up while it is strictly earlier.
  std::size_t sift(item moved) noexcept {
    instant* const times = times_.data();
    Entry* const entries = entries_.data();
    std::size_t i = 1;
    for (std::size_t child = 2; child <= size_; child = 2 * i) {
      child += static_cast<std::size_t>(times[child + 1] < times[child]);
      if (times[child] >= moved.time) break;
      times[i] = times[child], entries[i] = entries[child];
      i = child;
    }
    times[i] = moved.time, entries[i] = moved.entry;
    return i;
  }

  // 1-based; behind the last entry, times are `never`. Two arrays, so that what was just written can be read again at once.
  std::vector<instant> times_ = std::vector<instant>(8, never);
  std::vector<Entry> entries_ = std::vector<Entry>(8);
  std::size_t size_ = 0;
};

}  // namespace raptor::sim::timing
