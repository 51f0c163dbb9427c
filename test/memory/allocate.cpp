#include "raptor/memory/allocate.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <random>

using namespace raptor;
using memory::block;

namespace {

std::vector<block> random_blocks(std::size_t count, std::uint32_t seed, std::int64_t longest) {
  std::mt19937 dice(seed);
  std::vector<block> blocks;
  for (std::size_t k = 0; k < count; ++k) {
    const auto begin = static_cast<std::int64_t>(dice() % (count + 1));
    const std::int64_t size = 64 * static_cast<std::int64_t>(dice() % 10 == 0 ? dice() % 400 : dice() % 20);
    blocks.push_back({size, {begin, begin + 1 + static_cast<std::int64_t>(dice() % static_cast<std::uint32_t>(longest))}});
  }
  return blocks;
}

/// The property, by comparing all pairs.
void check(const std::vector<block>& blocks, const memory::allocation& result) {
  std::int64_t used = 0;
  for (std::size_t a = 0; a < blocks.size(); ++a) {
    CHECK(result.addresses[a] >= 0);
    CHECK(result.addresses[a] % 64 == 0);
    used = std::max(used, result.addresses[a] + blocks[a].size);
    for (std::size_t b = 0; b < a; ++b) {
      const bool in_time = !intersect(blocks[a].life, blocks[b].life).empty();
      const bool in_space = !intersect({result.addresses[a], result.addresses[a] + blocks[a].size},
                                       {result.addresses[b], result.addresses[b] + blocks[b].size}).empty();
      if (in_time && in_space) FAIL_CHECK("blocks " << a << " and " << b << " overlap");
    }
  }
  CHECK(result.used >= used);
  CHECK(result.used >= memory::peak_demand(blocks));
}

}  // namespace

TEST_CASE("blocks that live together never overlap") {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const auto blocks = random_blocks(seed * 5, seed, seed % 3 == 0 ? 4 : 60);
    check(blocks, memory::allocate_by_birth(blocks));
    check(blocks, memory::allocate_by_size(blocks));
    check(blocks, memory::allocate(blocks, 1 << 30));
  }
}

TEST_CASE("peak demand counts what lives at one time") {
  CHECK(memory::peak_demand({}) == 0);
  const std::vector<block> blocks{{100, {0, 2}}, {50, {2, 3}}, {30, {1, 3}}, {7, {9, 10}}};
  CHECK(memory::peak_demand(blocks) == 130);
}

TEST_CASE("addresses are used again, holes merge, the top hole grows") {
  const std::vector<block> blocks{{64, {0, 1}}, {64, {0, 1}}, {128, {1, 2}}, {192, {2, 3}}};
  const auto result = memory::allocate_by_birth(blocks);
  CHECK(result.addresses == std::vector<std::int64_t>{0, 64, 0, 0});
  CHECK(result.used == 192);
}

TEST_CASE("the better allocation is taken where the limit asks for it") {
  // By birth the long small block lands between the two large ones.
  const std::vector<block> blocks{{64, {0, 2}}, {64, {1, 4}}, {128, {2, 4}}};
  CHECK(memory::allocate_by_birth(blocks).used == 256);
  CHECK(memory::allocate_by_size(blocks).used == 192);
  CHECK(memory::allocate(blocks, 1 << 20).used == 192);
  CHECK(memory::allocate(blocks, 1 << 20, 0).used == 256);
  CHECK(memory::allocate(blocks, 200, 0).used == 192);
}

TEST_CASE("twenty thousand buffers of a core") {
  const auto blocks = random_blocks(20000, 1, 30);
  const auto start = std::chrono::steady_clock::now();
  const auto result = memory::allocate(blocks, 1 << 30);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE("allocate: " << seconds << " s, " << result.used << " bytes, at least " << memory::peak_demand(blocks));
  CHECK(result.used < 3 * memory::peak_demand(blocks));
}
