#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "raptor/sim/timing/decoded.hpp"
#include "raptor/support/error.hpp"

namespace raptor::sim::timing {

/// The instructions in flight, in program order. An entry that is done before older ones keeps its slot but is no hazard any more
/// (quirk 10). Source: TIMING.md 5.
///
/// Cost: O(1) per push and retirement, beside the search among the entries in flight.
class reorder_buffer {
 public:
  explicit reorder_buffer(std::int64_t capacity) : capacity_(static_cast<std::size_t>(capacity)), slots_(16) {}

  [[nodiscard]] bool full() const noexcept { return size_ == capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void push(const in_flight& e, const footprint& touches) {
    if (size_ == slots_.size()) grow();
    slots_[(head_ + size_) & (slots_.size() - 1)] = {e.serial, e.pc, false, touches};
    ++size_;
  }

  /// Whether an entry of this instruction is not done yet.
  [[nodiscard]] bool holds_open(std::uint64_t serial) const noexcept {
    for (std::size_t k = 0; k < size_; ++k)
      if (at(k).serial == serial && !at(k).done) return true;
    return false;
  }

  /// What a retirement changed.
  struct retirement {
    bool removed = false;
    std::uint32_t last_pc = 0;  ///< of the last entry removed
  };

  /// Marks an entry as done and removes the run of done entries at the front. Errors: execution, where there is no such entry.
  retirement retire(std::uint64_t serial) {
    std::size_t k = 0;
    while (k < size_ && at(k).serial != serial) ++k;
    if (k == size_) throw error(error_code::execution, "Can not find value");
    at(k).done = true;
    retirement r;
    while (size_ != 0 && at(0).done) {
      r = {true, at(0).pc};
      head_ = (head_ + 1) & (slots_.size() - 1);
      --size_;
    }
    return r;
  }

  /// The serial of the oldest entry not done that `f` conflicts with, or 0.
  [[nodiscard]] std::uint64_t blocker(const footprint& f) const noexcept {
    for (std::size_t k = 0; k < size_; ++k) {
      const slot& s = at(k);
      if (!s.done && f.conflicts_with(s.touches)) return s.serial;
    }
    return 0;
  }

 private:
  struct slot {
    std::uint64_t serial = 0;
    std::uint32_t pc = 0;
    bool done = false;
    footprint touches;
  };
  [[nodiscard]] const slot& at(std::size_t k) const noexcept { return slots_[(head_ + k) & (slots_.size() - 1)]; }
  [[nodiscard]] slot& at(std::size_t k) noexcept { return slots_[(head_ + k) & (slots_.size() - 1)]; }
  void grow() {
    std::vector<slot> larger(2 * slots_.size());
    for (std::size_t k = 0; k < size_; ++k) larger[k] = at(k);
    slots_ = std::move(larger);
    head_ = 0;
  }

  std::size_t capacity_;
  std::vector<slot> slots_;  // a ring; its size is a power of two
  std::size_t head_ = 0, size_ = 0;
};

}  // namespace raptor::sim::timing
