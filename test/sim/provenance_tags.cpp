#include "raptor/sim/provenance_tags.hpp"

#include <doctest/doctest.h>

#include <vector>

using raptor::sim::tag;
using raptor::sim::tag_memory;
using raptor::sim::tag_table;

TEST_CASE("merging tags") {
  tag_table tags;
  const tag zero = tags.sample(0), one = tags.sample(1), last = tags.sample(63);
  CHECK(tags.sample(0) == zero);
  CHECK(zero != one);
  CHECK(tags.sample(64) == tag_table::unknown);
  const std::vector<tag> all{tag_table::uninitialized, tag_table::unknown, tag_table::constant, zero, one, last, tags.merge(zero, last)};
  for (const tag a : all) {
    CHECK(tags.merge(a, a) == a);
    CHECK(tags.merge(a, tag_table::uninitialized) == a);
    CHECK(tags.merge(a, tag_table::unknown) == tag_table::unknown);
    if (a != tag_table::uninitialized) CHECK(tags.merge(a, tag_table::constant) == a);
    for (const tag b : all) {
      CHECK(tags.merge(a, b) == tags.merge(b, a));
      for (const tag c : all) CHECK(tags.merge(tags.merge(a, b), c) == tags.merge(a, tags.merge(b, c)));
    }
  }
  const tag both = tags.merge(zero, last);
  CHECK(tags.samples(both) == ((std::uint64_t{1} << 63) | 1));
  CHECK(tags.is_mixed(both));
  for (const tag t : {tag_table::uninitialized, tag_table::unknown, tag_table::constant, zero, one, last}) CHECK_FALSE(tags.is_mixed(t));
}

TEST_CASE("ranges") {
  tag_table tags;
  const tag zero = tags.sample(0), one = tags.sample(1);
  const std::vector<tag> range{tag_table::uninitialized, zero, zero, tag_table::constant, one};
  CHECK(tags.merge(range.data(), 0) == tag_table::uninitialized);
  CHECK(tags.merge(range.data(), 1) == tag_table::uninitialized);
  CHECK(tags.merge(range.data(), 4) == zero);
  CHECK(tags.merge(range.data(), 5) == tags.merge(zero, one));
  CHECK_FALSE(tags.has_mixed(range.data(), 5));  // each byte depends on one at most
  const std::vector<tag> mixed{zero, tags.merge(zero, one)};
  CHECK(tags.has_mixed(mixed.data(), 2));
  CHECK_FALSE(tags.has_mixed(mixed.data(), 1));
  CHECK_FALSE(tags.has_mixed(mixed.data(), 0));
  CHECK_FALSE(tag_table::is_uniform(mixed.data(), 0));
  CHECK(tag_table::is_uniform(mixed.data(), 1));
}

TEST_CASE("ranges of one tag, and of one that differs anywhere") {
  tag_table tags;
  const tag zero = tags.sample(0), one = tags.sample(1), both = tags.merge(zero, one);
  for (std::size_t size = 1; size < 40; ++size) {
    std::vector<tag> range(size, zero);
    CHECK(tag_table::is_uniform(range.data(), size));
    CHECK(tags.merge(range.data(), size) == zero);
    CHECK_FALSE(tags.has_mixed(range.data(), size));
    for (std::size_t at = 0; at < size; ++at) {
      CAPTURE(size);
      CAPTURE(at);
      range[at] = one;
      CHECK(tag_table::is_uniform(range.data(), size) == (size == 1));
      CHECK(tags.merge(range.data(), size) == (size == 1 ? one : both));
      range[at] = both;
      CHECK(tags.merge(range.data(), size) == both);
      CHECK(tags.has_mixed(range.data(), size));
      range[at] = zero;
    }
  }
}

TEST_CASE("a memory of tags starts uninitialized and keeps its tags when it grows") {
  tag_memory memory;
  CHECK(memory.at(3, 2)[1] == tag_table::uninitialized);
  memory.at(3, 2)[1] = 7;
  CHECK(memory.at(100000, 1)[0] == tag_table::uninitialized);
  CHECK(memory.at(4, 1)[0] == 7);
}
