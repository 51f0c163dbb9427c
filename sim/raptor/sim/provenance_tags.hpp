#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "raptor/sim/byte_memory.hpp"

/// On which inputs of a batch a byte depends. Source: PROVENANCE.md.
namespace raptor::sim {

/// What is known of a byte: a number of a tag_table. Small, because there is one for every byte of memory; 0 for memory that nothing has written.
using tag = std::uint32_t;

/// The tags of a run, and how they merge: unknown absorbs everything, uninitialized is neutral, sets of samples unite.
class tag_table {
 public:
  static constexpr tag uninitialized = 0;
  static constexpr tag unknown = 1;
  static constexpr tag constant = 2;  ///< depends on no sample
  static constexpr std::size_t sample_limit = 64;

  tag_table() : sets_{0, 0, 0}, tags_{{0, constant}} {}

  /// The tag of data that came in with a sample; unknown from sample_limit on.
  [[nodiscard]] tag sample(std::size_t number) { return number < sample_limit ? tag_of(std::uint64_t{1} << number) : unknown; }
  [[nodiscard]] tag merge(tag a, tag b) {
    if (a == b || b == uninitialized) return a;
    if (a == uninitialized) return b;
    if (a == unknown || b == unknown) return unknown;
    if (a == constant) return b;
    if (b == constant) return a;
    return tag_of(sets_[a] | sets_[b]);
  }
  /// True for a range that is not empty and whose bytes all have one tag: most are, and that is seen many tags at a time.
  [[nodiscard]] static bool is_uniform(const tag* tags, std::size_t count) {
    return count != 0 && std::memcmp(tags, tags + 1, (count - 1) * sizeof(tag)) == 0;
  }
  /// The merge of a range of memory.
  [[nodiscard]] tag merge(const tag* tags, std::size_t count) {
    if (is_uniform(tags, count)) return tags[0];
    tag result = uninitialized, last = uninitialized;
    for (std::size_t k = 0; k < count; ++k) {
      if (tags[k] == last) continue;
      last = tags[k];
      result = merge(result, last);
    }
    return result;
  }
  /// One bit a sample; none for a constant, unknown and uninitialized.
  [[nodiscard]] std::uint64_t samples(tag t) const { return sets_[t]; }
  /// Depends on more than one sample.
  [[nodiscard]] bool is_mixed(tag t) const { return !std::has_single_bit(sets_[t]) && sets_[t] != 0; }
  /// True where a single byte of the range does.
  [[nodiscard]] bool has_mixed(const tag* tags, std::size_t count) const {
    if (is_uniform(tags, count)) return is_mixed(tags[0]);
    tag last = uninitialized;
    for (std::size_t k = 0; k < count; ++k) {
      if (tags[k] == last) continue;
      last = tags[k];
      if (is_mixed(last)) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] tag tag_of(std::uint64_t set) {
    const auto [found, is_new] = tags_.try_emplace(set, static_cast<tag>(sets_.size()));
    if (is_new) sets_.push_back(set);
    return found->second;
  }
  std::vector<std::uint64_t> sets_;  ///< by tag
  std::map<std::uint64_t, tag> tags_;
};

/// The tags of a memory, by address. It grows as addresses are used; what has not been written is uninitialized.
class tag_memory {
 public:
  /// The tags from an address on; `count` of them may be used until the memory grows again. Requires: address ≥ 0.
  [[nodiscard]] tag* at(std::int64_t address, std::size_t count) {
    const auto begin = static_cast<std::size_t>(address);
    if (begin + count > tags_.size()) grow(begin + count);
    return tags_.data() + begin;
  }

 private:
  void grow(std::size_t size) {
    zeroed_storage<tag> larger(std::max(size, 2 * tags_.size()));
    if (tags_.size() != 0) std::memcpy(larger.data(), tags_.data(), tags_.size() * sizeof(tag));
    tags_ = std::move(larger);
  }
  zeroed_storage<tag> tags_;
};

}  // namespace raptor::sim
