#include "raptor/sim/byte_memory.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using raptor::sim::byte_set;
using raptor::sim::local_memory;

TEST_CASE("byte_set agrees with a plain set on random ranges") {
  constexpr std::size_t size = 500;
  byte_set set(size);
  std::vector<bool> plain(size, false);
  std::mt19937 random(3);
  std::uniform_int_distribution<std::size_t> place(0, size);
  for (int step = 0; step < 3000; ++step) {
    std::size_t begin = place(random), end = place(random);
    if (step % 3 != 0) end = std::min(size, begin + end % 70);
    if (begin > end) std::swap(begin, end);
    std::size_t first = begin;
    while (first < end && plain[first]) ++first;
    CHECK(set.contains(begin, end) == (first == end));
    CHECK(set.first_missing(begin, end) == first);
    if (step % 2 == 0) set.add(begin, end);
    else set.remove(begin, end);
    for (std::size_t k = begin; k < end; ++k) plain[k] = step % 2 == 0;
  }
}

TEST_CASE("local memory grows, keeps its contents and knows what was written") {
  local_memory memory;
  CHECK(memory.capacity() == 0);
  CHECK(memory.written(10, 10));
  CHECK_FALSE(memory.written(0, 1));
  memory.grow(8);
  *memory.at(5) = std::byte{42};
  memory.mark(4, 8);
  CHECK(memory.extent() == 8);
  memory.grow(1 << 20);
  CHECK(memory.capacity() >= 1 << 20);
  CHECK(*memory.at(5) == std::byte{42});
  CHECK(memory.written(4, 8));
  CHECK_FALSE(memory.written(3, 8));
  CHECK_FALSE(memory.written(4, 9));
  CHECK(memory.first_unwritten(0, 20) == 0);
  CHECK(memory.first_unwritten(4, 20) == 8);
  CHECK(memory.first_unwritten(100, 104) == 100);
  CHECK(memory.first_unwritten(local_memory::address_limit - 4, local_memory::address_limit) == local_memory::address_limit - 4);
}

TEST_CASE("capacity doubles and stops at the limit of addresses") {
  constexpr auto limit = local_memory::address_limit;
  local_memory memory;
  CHECK(memory.capacity_for(1, limit) == 4096);
  CHECK(memory.capacity_for(1, 256) == 256);
  memory.grow(4096);
  CHECK(memory.capacity_for(4097, limit) == 8192);
  CHECK(memory.capacity_for(20000, limit) == 20000);
  CHECK(memory.capacity_for(limit, limit) == limit);
  memory.grow(100);
  CHECK(memory.capacity() == 4096);
}
