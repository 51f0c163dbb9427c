#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The pending set of the timing model (TIMING 10.1): one binary heap for the whole chip, ordered by time only. How it
/// treats equal times is observable, so the heap is exactly the one that is specified there.
namespace raptor::sim::timing {

/// Whole picoseconds since the start.
using instant = std::int64_t;

/// `Entry`: what is woken; the clock is the entry that compares equal to `Entry{}`.
template <class Entry>
class pending_set {
 public:
  struct item {
    instant time;
    Entry entry;
  };

  [[nodiscard]] bool empty() const noexcept { return heap_.size() == 1; }
  [[nodiscard]] std::size_t size() const noexcept { return heap_.size() - 1; }
  [[nodiscard]] const item& earliest() const noexcept { return heap_[1]; }

  void insert(instant time, Entry entry) {
    heap_.push_back({});
    std::size_t i = heap_.size() - 1;
    for (; i > 1 && heap_[i >> 1].time > time; i >>= 1) heap_[i] = heap_[i >> 1];
    heap_[i] = {time, entry};
  }
  item extract() {
    const item top = heap_[1];
    place_ = 0;
    const item last = heap_.back();
    heap_.pop_back();
    const std::size_t n = heap_.size() - 1;
    if (n == 0) return top;
    std::size_t i = 1;
    for (;;) {
      const std::size_t left = 2 * i;
      if (left > n) break;
      std::size_t best = i;
      instant least = last.time;
      if (heap_[left].time < least) best = left, least = heap_[left].time;
      if (left < n && heap_[left + 1].time < least) best = left + 1;
      if (best == i) break;
      heap_[i] = heap_[best];
      i = best;
    }
    heap_[i] = last;
    place_ = i;
    return top;
  }

  /// Where the clock stands first and nothing but its edges, `period` apart, happens for a while: runs `edges` of them.
  /// An edge is "extract clock, insert clock"; it rotates entries along the path from the last place to the root, which
  /// repeats after a few edges, so that whole rotations are skipped. The result is that of running every edge.
  void run_idle_edges(instant period, std::int64_t edges) {
    struct path {
      std::array<Entry, 64> entries;
      std::size_t length = 0;
      std::int64_t at = 0;
    };
    std::array<path, 16> seen;
    std::size_t known = 0;
    for (std::int64_t done = 0; done < edges;) {
      // Contents of the path; equal contents after steps that stayed on it mean an equal heap.
      path now;
      for (std::size_t i = heap_.size() - 1; i > 1; i >>= 1) now.entries[now.length++] = heap_[i].entry;
      now.at = done;
      bool repeated = false;
      for (std::size_t s = 0; s < known && !repeated; ++s) {
        bool equal = true;
        for (std::size_t i = 0; equal && i < now.length; ++i) equal = seen[s].entries[i] == now.entries[i];
        if (!equal) continue;
        const std::int64_t rotation = done - seen[s].at, skipped = (edges - done) / rotation * rotation;
        heap_[1].time += skipped * period;
        done += skipped;
        repeated = true;
      }
      if (repeated) known = 0;
      if (done >= edges) return;
      if (known == seen.size()) known = 0;
      if (!repeated) seen[known++] = now;
      const std::size_t last = heap_.size() - 1;
      const item clock = extract();
      bool on_path = place_ == 0;
      for (std::size_t i = last >> 1; i >= 1 && !on_path; i >>= 1) on_path = i == place_;
      if (!on_path) known = 0;  // something beside the path changed
      insert(clock.time + period, clock.entry);
      ++done;
    }
  }

  /// Earliest time of an entry that is not first. Requires: size() > 1.
  [[nodiscard]] instant second() const noexcept {
    return heap_.size() > 3 && heap_[3].time < heap_[2].time ? heap_[3].time : heap_[2].time;
  }

 private:
  std::vector<item> heap_{1};  // 1-based
  std::size_t place_ = 0;      // where the last extraction put the moved entry
};

}  // namespace raptor::sim::timing
