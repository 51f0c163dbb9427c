#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace raptor::sim {

/// Zeroed storage that costs real memory only where it is touched (the system maps large zeroed blocks lazily), so that
/// a program which writes one byte at a high address does not need gigabytes.
template <class T>
class zeroed_storage {
 public:
  zeroed_storage() = default;
  explicit zeroed_storage(std::size_t count) : data_(static_cast<T*>(std::calloc(std::max<std::size_t>(count, 1), sizeof(T)))), size_(count) {
    if (!data_) throw std::bad_alloc();
  }
  [[nodiscard]] T* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct release {
    void operator()(T* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<T[], release> data_;
  std::size_t size_ = 0;
};

/// A set of byte addresses, one bit each: which bytes have been written. Ranges are tested and set 64 at a time.
class byte_set {
 public:
  byte_set() = default;
  explicit byte_set(std::size_t bytes) : words_((bytes + 63) / 64) {}

  /// Addresses that fit; a multiple of 64.
  [[nodiscard]] std::size_t capacity() const noexcept { return words_.size() * 64; }

  /// Adds [begin, end). Requires end ≤ capacity().
  void add(std::size_t begin, std::size_t end) noexcept {
    for_words(begin, end, [this](std::size_t w, std::uint64_t mask) {
      words_.data()[w] |= mask;
      return true;
    });
  }
  /// Removes [begin, end). Requires end ≤ capacity().
  void remove(std::size_t begin, std::size_t end) noexcept {
    for_words(begin, end, [this](std::size_t w, std::uint64_t mask) {
      words_.data()[w] &= ~mask;
      return true;
    });
  }
  /// True where all of [begin, end) is in the set. Requires end ≤ capacity().
  [[nodiscard]] bool contains(std::size_t begin, std::size_t end) const noexcept {
    return for_words(begin, end, [this](std::size_t w, std::uint64_t mask) { return (words_.data()[w] & mask) == mask; });
  }
  /// The lowest address of [begin, end) that is not in the set, or `end`.
  [[nodiscard]] std::size_t first_missing(std::size_t begin, std::size_t end) const noexcept {
    std::size_t found = end;
    for_words(begin, end, [&](std::size_t w, std::uint64_t mask) {
      const std::uint64_t missing = mask & ~words_.data()[w];
      if (missing == 0) return true;
      found = w * 64 + static_cast<std::size_t>(std::countr_zero(missing));
      return false;
    });
    return found;
  }
  /// Room for `bytes` addresses; what is in the set stays.
  void grow(std::size_t bytes, std::size_t used_bytes) {
    zeroed_storage<std::uint64_t> larger((bytes + 63) / 64);
    const std::size_t used = std::min(words_.size(), (used_bytes + 63) / 64);
    if (used != 0) std::memcpy(larger.data(), words_.data(), used * sizeof(std::uint64_t));
    words_ = std::move(larger);
  }

 private:
  /// Calls f(word index, mask) for the words of [begin, end) until it returns false; the last result.
  template <class F>
  static bool for_words(std::size_t begin, std::size_t end, F f) {
    if (begin >= end) return true;
    const std::size_t first = begin / 64;
    const std::size_t last = (end - 1) / 64;
    const std::uint64_t head = ~std::uint64_t{0} << (begin % 64);
    const std::uint64_t tail = ~std::uint64_t{0} >> (63 - (end - 1) % 64);
    if (first == last) return f(first, head & tail);
    if (!f(first, head)) return false;
    for (std::size_t w = first + 1; w < last; ++w)
      if (!f(w, ~std::uint64_t{0})) return false;
    return f(last, tail);
  }

  zeroed_storage<std::uint64_t> words_;
};

/// The local memory of one core: grows on demand and knows which bytes have been written.
///
/// Addresses are below 2^31 (ISA, Machine). The owner grows it (capacity_for doubles).
class local_memory {
 public:
  static constexpr std::int64_t address_limit = std::int64_t{1} << 31;

  [[nodiscard]] std::byte* at(std::int64_t address) const noexcept { return bytes_.data() + address; }
  /// One past the highest byte that a write has reached.
  [[nodiscard]] std::int64_t extent() const noexcept { return extent_; }
  [[nodiscard]] std::int64_t capacity() const noexcept { return static_cast<std::int64_t>(bytes_.size()); }

  /// A capacity of at least `end` and at most `limit` that keeps the cost of growing linear. Requires end ≤ limit.
  [[nodiscard]] std::int64_t capacity_for(std::int64_t end, std::int64_t limit) const noexcept {
    return std::min(limit, std::max({end, 2 * capacity(), std::int64_t{4096}}));
  }
  /// Makes [0, new_capacity) addressable, never less than before. Pointers from at() become invalid.
  void grow(std::int64_t new_capacity) {
    if (new_capacity <= capacity()) return;
    zeroed_storage<std::byte> larger(static_cast<std::size_t>(new_capacity));
    if (extent_ != 0) std::memcpy(larger.data(), bytes_.data(), static_cast<std::size_t>(extent_));
    written_.grow(larger.size(), static_cast<std::size_t>(extent_));
    bytes_ = std::move(larger);
  }
  /// Notes that [begin, end) has been written. Requires end ≤ capacity().
  void mark(std::int64_t begin, std::int64_t end) noexcept {
    written_.add(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
    extent_ = std::max(extent_, end);
  }
  /// True where all of [begin, end) has been written. An empty range is.
  [[nodiscard]] bool written(std::int64_t begin, std::int64_t end) const noexcept {
    return begin >= end || (end <= extent_ && written_.contains(static_cast<std::size_t>(begin), static_cast<std::size_t>(end)));
  }
  /// The lowest byte of [begin, end) that has not been written, or `end`.
  [[nodiscard]] std::int64_t first_unwritten(std::int64_t begin, std::int64_t end) const noexcept {
    const std::int64_t known = std::max(begin, std::min(end, extent_));
    const auto found = static_cast<std::int64_t>(written_.first_missing(static_cast<std::size_t>(begin), static_cast<std::size_t>(known)));
    return found < known ? found : known;
  }

 private:
  zeroed_storage<std::byte> bytes_;
  byte_set written_;
  std::int64_t extent_ = 0;
};

}  // namespace raptor::sim
