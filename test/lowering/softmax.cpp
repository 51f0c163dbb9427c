#include "raptor/lowering/softmax.hpp"

#include <doctest/doctest.h>

#include "one_node.hpp"

using namespace raptor;
using namespace raptor::test;

TEST_CASE("softmax over every range of axes") {
  for (const shape& sizes : {shape{}, shape{7}, shape{3, 5}, shape{2, 3, 4}, shape{2, 3, 4, 5}, shape{1, 10, 1, 1}, shape{1, 30, 20, 4}, shape{3, 1, 2}, shape{2, 0, 3}})
    for (std::int64_t first = 0; first <= static_cast<std::int64_t>(sizes.size()); ++first)
      for (std::int64_t last = first; last <= static_cast<std::int64_t>(sizes.size()); ++last) {
        CAPTURE(to_string(sizes));
        CAPTURE(first);
        CAPTURE(last);
        CHECK(error_of(model::softmax{first, last}, {given(sizes)}, sizes, dense, 20) <= 2e-6);
      }
  CHECK(one_node(model::softmax{1, 2}, {given({1, 1000})}, {1, 1000}, dense).statements() == 1);
  CHECK_THROWS_AS(static_cast<void>(one_node(model::softmax{1, 3}, {given({2, 2})}, {2, 2}, dense)), error);
}
