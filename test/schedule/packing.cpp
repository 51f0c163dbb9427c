#include "raptor/schedule/packing.hpp"

#include <doctest/doctest.h>
#include <random>
#include <string>

using namespace raptor;
using namespace raptor::schedule;

namespace {
using sizes = std::vector<std::int64_t>;
using bins = std::vector<std::size_t>;
}  // namespace

TEST_CASE("packing: first-fit decreasing by hand") {
  CHECK(pack(sizes{2, 5, 4, 7, 1, 3, 8}, sizes{10, 10, 10}) == bins{0, 2, 2, 1, 2, 1, 0});
  CHECK(pack(sizes{3, 3, 3}, sizes{3, 9}) == bins{0, 1, 1});
  CHECK(pack(sizes{}, sizes{}).empty());
  CHECK(pack(sizes{0, 0}, sizes{0}) == bins{0, 0});
}

TEST_CASE("packing: the tree finds what a plain search finds") {
  std::mt19937 random(2);
  int packed = 0;
  for (int round = 0; round < 500; ++round) {
    sizes items, rooms;
    for (std::size_t i = random() % 20; i > 0; --i) items.push_back(static_cast<std::int64_t>(random() % 12));
    for (std::size_t i = random() % 9; i > 0; --i) rooms.push_back(static_cast<std::int64_t>(random() % 25));
    auto left = rooms;
    bins expected(items.size());
    bool fits = true;
    for (const auto i : by_decreasing_size(items)) {
      std::size_t b = 0;
      while (b < left.size() && left[b] < items[i]) ++b;
      if (b == left.size()) {
        fits = false;
        break;
      }
      left[b] -= items[i];
      expected[i] = b;
    }
    const auto found = try_pack(items, rooms);
    CHECK(found.has_value() == fits);
    if (!fits || !found) continue;
    ++packed;
    CHECK(*found == expected);
    CHECK(check_packing(items, rooms, *found).empty());
  }
  CHECK(packed > 50);
}

TEST_CASE("packing: errors give needed and available") {
  const auto message = [](const sizes& items, const sizes& rooms) {
    try {
      (void)pack(items, rooms);
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK(message({5, 5}, {8}) == "the weights do not fit the chip: 10 crossbars needed, 8 available on 1 core");
  CHECK(message({9}, {8, 8}) ==
        "the weights do not fit the chip: 9 crossbars needed, 16 available on 2 cores; the largest indivisible set of weights needs 9 crossbars, a core has 8");
  CHECK(message({-1}, {8}) == "a set of weights has the size -1");
}

TEST_CASE("packing: the verifier finds faults") {
  CHECK(check_packing(sizes{2, 3}, sizes{4}, bins{0}) == "not one bin for each item");
  CHECK(check_packing(sizes{2}, sizes{4}, bins{1}) == "item 0 is in bin 1, which does not exist");
  CHECK(check_packing(sizes{2, 3}, sizes{4}, bins{0, 0}) == "bin 0 holds 5 of 4");
}
