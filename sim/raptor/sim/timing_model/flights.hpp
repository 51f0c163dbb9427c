#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "raptor/sim/timing_model/hazards.hpp"
#include "raptor/support/error.hpp"

/// Where a core keeps decoded instructions: the pool that they live in, and first-in-first-out queues of them.
namespace raptor::sim::timing {

/// The simulator's words for a fault inside its own machinery (TIMING 14.5).
[[nodiscard]] inline std::string uncaught(const char* text) { return std::string("Error: (E549) uncaught exception: ") + text; }

/// First in, first out. Grows as needed. Amortized O(1).
class flight_queue {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] flight*& operator[](std::size_t i) noexcept { return slots_[(head_ + i) & (slots_.size() - 1)]; }
  [[nodiscard]] flight*& front() noexcept { return slots_[head_]; }
  void push_back(flight* f) {
    if (count_ == slots_.size()) grow();
    (*this)[count_++] = f;
  }
  void pop_front() noexcept {
    head_ = (head_ + 1) & (slots_.size() - 1);
    --count_;
  }

 private:
  void grow() {
    std::vector<flight*> larger(2 * slots_.size());
    for (std::size_t i = 0; i < count_; ++i) larger[i] = (*this)[i];
    slots_.swap(larger);
    head_ = 0;
  }
  std::vector<flight*> slots_ = std::vector<flight*>(4);  // a power of two
  std::size_t head_ = 0, count_ = 0;
};

/// Flights at fixed places, used in turn. A place is free again when its flight is not in the reorder buffer; flights that are not there
/// yet, or just left it, are among the last few taken.
class flight_pool {
 public:
  [[nodiscard]] flight& take() {
    if (++next_ == blocks_.size() * block_size) next_ = 0;
    if (blocks_.empty() || place().recorded) {
      next_ = blocks_.size() * block_size;
      blocks_.push_back(std::make_unique<std::array<flight, block_size>>());
    }
    return place() = flight{};
  }

 private:
  static constexpr std::size_t block_size = 16;
  [[nodiscard]] flight& place() const noexcept { return (*blocks_[next_ / block_size])[next_ % block_size]; }
  std::vector<std::unique_ptr<std::array<flight, block_size>>> blocks_;
  std::size_t next_ = 0;
};

/// A FIFO of dispatched instructions (TIMING 5). An entry done out of order keeps its slot (quirk 10).
class reorder_buffer {
 public:
  explicit reorder_buffer(std::int64_t capacity) : capacity_(capacity) {}
  [[nodiscard]] bool full() const noexcept { return static_cast<std::int64_t>(entries_.size()) == capacity_; }
  /// Errors: execution where it is still in the buffer (TIMING 3.3: streams of one instruction in throughput mode).
  void push(flight& f) {
    if (f.recorded) throw error(error_code::execution, uncaught("Performance Counter Repeated"));
    f.recorded = f.open = true;
    entries_.push_back(&f);
  }
  /// An open entry that conflicts with `x`; nullptr: none.
  [[nodiscard]] const flight* find_conflict(const flight& x) noexcept {
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i]->open && conflict(x, *entries_[i])) return entries_[i];
    return nullptr;
  }
  /// Marks an entry done; removes it and the done ones behind it where it is the oldest. The place in the stream of the last one
  /// removed; −1: none.
  [[nodiscard]] std::int64_t retire(flight& done) {
    if (!done.open) throw error(error_code::execution, uncaught("Can not find value"));
    done.open = false;
    std::int64_t last = -1;
    while (!entries_.empty() && !entries_.front()->open) {
      last = entries_.front()->pc;
      entries_.front()->recorded = false;
      entries_.pop_front();
    }
    return last;
  }
  [[nodiscard]] const flight* oldest() noexcept { return entries_.empty() ? nullptr : entries_.front(); }

 private:
  std::int64_t capacity_;
  flight_queue entries_;
};

}  // namespace raptor::sim::timing
