#include "raptor/support/box.hpp"

#include <doctest/doctest.h>

using namespace raptor;

TEST_CASE("intersection, hull and containment") {
  const box a{{0, 4}, {2, 6}}, b{{1, 9}, {0, 3}};
  CHECK(intersect(a, b) == box{{1, 4}, {2, 3}});
  CHECK(hull(a, b) == box{{0, 9}, {0, 6}});
  CHECK(contains(hull(a, b), a));
  CHECK_FALSE(contains(a, b));
  CHECK(is_empty(intersect(a, box{{4, 5}, {2, 6}})));
  CHECK(hull(box{{3, 3}, {0, 1}}, a) == a);
  CHECK(element_count(box{}) == 1);
}

TEST_CASE("subtraction gives disjoint parts that cover the difference") {
  const box a{{0, 5}, {0, 5}};
  for (std::int64_t x0 = -1; x0 < 6; ++x0)
    for (std::int64_t x1 = x0; x1 < 7; ++x1)
      for (std::int64_t y0 = -1; y0 < 6; y0 += 2) {
        const box b{{x0, x1}, {y0, y0 + 3}};
        const auto parts = subtract(a, b);
        CHECK(parts.size() <= 4);
        for (std::int64_t x = 0; x < 5; ++x)
          for (std::int64_t y = 0; y < 5; ++y) {
            int times = 0;
            for (const auto& p : parts) times += p[0].contains(x) && p[1].contains(y) ? 1 : 0;
            const bool inside = b[0].contains(x) && b[1].contains(y);
            CHECK(times == (inside ? 0 : 1));
          }
      }
}

TEST_CASE("sizes that overflow are errors") {
  const shape huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
  CHECK_THROWS_AS(static_cast<void>(element_count(huge)), error);
  CHECK(element_count(shape{}) == 1);
  CHECK(to_string(shape{1, 3, 224, 224}) == "1x3x224x224");
  CHECK(row_major_strides(shape{2, 3, 4}) == std::vector<std::int64_t>{12, 4, 1});
}
