#include "raptor/communication/regions.hpp"

#include <doctest/doctest.h>

using namespace raptor;
using namespace raptor::communication;

TEST_CASE("a strip row is stored pixel by pixel") {
  const auto r = make_region({{0, 1}, {0, 8}, {3, 4}, {-1, 5}}, layout::physical::nhwc_row_strip);
  CHECK(r.strides == std::vector<std::int64_t>{48, 1, 48, 8});
  CHECK(offset_of(r, {{0, 1}, {2, 3}, {3, 4}, {0, 1}}) == 10);
}

TEST_CASE("fragments are the image rows inside the tensor") {
  const shape sizes{2, 3, 4, 5};
  const auto parts = fragments({{0, 2}, {0, 3}, {-1, 2}, {0, 5}}, sizes, layout::physical::nhwc_row_strip);
  REQUIRE(parts.size() == 4);
  CHECK(parts[0].first == 0);
  CHECK(parts[3].first == 5);
  CHECK(parts[3].second == box{{1, 2}, {0, 3}, {1, 2}, {0, 5}});
  CHECK(fragments({{0, 2}}, {2}, layout::physical::dense).size() == 1);
}

TEST_CASE("a copy has the longest runs that both sides share, and moves every element once") {
  const auto dense = make_region(whole(shape{1, 3, 4, 5}), layout::physical::dense);
  const auto row = make_region({{0, 1}, {0, 3}, {2, 3}, {0, 5}}, layout::physical::nchw_row_strip);
  const box what{{0, 1}, {0, 3}, {2, 3}, {0, 5}};
  const auto copy = plan_copy(what, dense, row);
  CHECK(copy.run == 5);
  CHECK(copy.counts == std::vector<std::int64_t>{3});
  CHECK(copy.from_steps == std::vector<std::int64_t>{20});
  CHECK(copy.to_steps == std::vector<std::int64_t>{5});
  CHECK(plan_copy(whole(shape{1, 3, 4, 5}), dense, dense).single());

  const auto strip = make_region(what, layout::physical::nhwc_row_strip);
  const auto transposing = plan_copy(what, dense, strip);
  std::int64_t elements = transposing.run;
  for (const auto n : transposing.counts) elements *= n;
  CHECK(elements == 15);
  CHECK(transposing.run == 1);
}
