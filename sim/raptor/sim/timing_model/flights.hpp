#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "raptor/sim/timing_model/hazards.hpp"
#include "raptor/support/error.hpp"

/// Where a core keeps decoded instructions: the pool that they live in, the reorder buffer, and queues.
namespace raptor::sim::timing {

/// The simulator's words for a fault inside its own machinery (TIMING 14.5).
[[nodiscard]] inline std::string uncaught(const char* text) { return std::string("Error: (E549) uncaught exception: ") + text; }

/// First in, first out. Grows as needed. Amortized O(1).
template <class T>
class queue_of {
 public:
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  void push_back(const T& value) {
    if (count_ == slots_.size()) grow();
    slots_[(head_ + count_++) & (slots_.size() - 1)] = value;
  }
  T take_front() noexcept {
    const T value = slots_[head_];
    head_ = (head_ + 1) & (slots_.size() - 1);
    --count_;
    return value;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 4 : 2 * slots_.size());
    for (std::size_t i = 0; i < count_; ++i) larger[i] = slots_[(head_ + i) & (slots_.size() - 1)];
    slots_.swap(larger);
    head_ = 0;
  }
  std::vector<T> slots_;  // none or a power of two
  std::size_t head_ = 0, count_ = 0;
};

/// A flight by its number in the pool.
using flight_number = std::uint32_t;
inline constexpr flight_number no_flight = 0;

/// Flights of one core, used in turn. A place is free again when its flight is not in the reorder buffer; flights that are not there
/// yet, or just left it, are among the last few taken.
class flight_pool {
 public:
  [[nodiscard]] flight& operator[](flight_number n) noexcept { return places_[n]; }
  [[nodiscard]] const flight& operator[](flight_number n) const noexcept { return places_[n]; }
  [[nodiscard]] flight_number take() {
    if (++next_ == places_.size()) next_ = 1;
    if (places_[next_].recorded) {
      next_ = static_cast<flight_number>(places_.size());
      places_.resize(2 * places_.size());
    }
    places_[next_] = flight{};
    return next_;
  }

 private:
  std::vector<flight> places_ = std::vector<flight>(9);  // 0 is no flight
  flight_number next_ = 0;
};

/// A FIFO of dispatched instructions (TIMING 5). An entry done out of order keeps its slot (quirk 10).
class reorder_buffer {
 public:
  explicit reorder_buffer(std::int64_t capacity) : capacity_(capacity) {}
  [[nodiscard]] bool full() const noexcept { return count_ == capacity_; }
  [[nodiscard]] flight_number oldest() const noexcept { return head_; }
  /// Errors: execution where it is still in the buffer (TIMING 3.3: streams of one instruction in throughput mode).
  void push(flight_pool& pool, flight_number n) {
    flight& f = pool[n];
    if (f.recorded) throw error(error_code::execution, uncaught("Performance Counter Repeated"));
    f.recorded = f.open = true;
    f.next = no_flight;
    (head_ == no_flight ? head_ : pool[tail_].next) = n;
    tail_ = n;
    ++count_;
  }
  /// An open entry that conflicts with `x`.
  [[nodiscard]] flight_number find_conflict(const flight_pool& pool, const flight& x) const noexcept {
    for (flight_number n = head_; n != no_flight; n = pool[n].next)
      if (pool[n].open && conflict(x, pool[n])) return n;
    return no_flight;
  }
  /// Marks an entry done; removes it and the done ones behind it where it is the oldest. The place in the stream of the last one
  /// removed; −1: none.
  [[nodiscard]] std::int32_t retire(flight_pool& pool, flight_number done) {
    if (!pool[done].open) throw error(error_code::execution, uncaught("Can not find value"));
    pool[done].open = false;
    std::int32_t last = -1;
    while (head_ != no_flight && !pool[head_].open) {
      flight& f = pool[head_];
      last = f.pc;
      f.recorded = false;
      head_ = f.next;
      --count_;
    }
    return last;
  }

 private:
  std::int64_t capacity_, count_ = 0;
  flight_number head_ = no_flight, tail_ = no_flight;
};

}  // namespace raptor::sim::timing
