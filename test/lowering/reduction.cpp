#include "raptor/lowering/reduction.hpp"

#include <doctest/doctest.h>

#include "one_node.hpp"

using namespace raptor;
using namespace raptor::test;
using model::reduce;
using model::reduce_kind;

TEST_CASE("reductions equal the reference in every tiling") {
  for (const auto kind : {reduce_kind::sum, reduce_kind::mean, reduce_kind::maximum, reduce_kind::product})
    for (const shape& sizes : {shape{7}, shape{2, 3}, shape{3, 1, 5}, shape{2, 3, 4, 5}, shape{1, 6, 33}, shape{4, 1, 1}})
      for (std::int64_t first = 0; first < static_cast<std::int64_t>(sizes.size()); ++first)
        for (std::int64_t last = first; last <= static_cast<std::int64_t>(sizes.size()); ++last) {
          CAPTURE(std::string(model::name(kind)));
          CAPTURE(to_string(sizes));
          CAPTURE(first);
          CAPTURE(last);
          const reduce op{kind, first, last};
          CHECK(error_of(op, {given(sizes)}, model::reduce_shape(op, sizes), dense, 1.5F) <= 1e-5);
        }
  CHECK(error_of(reduce{reduce_kind::sum, 1, 2}, {given({2, 0, 3})}, {2, 1, 3}, dense) == 0);
  CHECK(error_of(reduce{reduce_kind::product, 1, 3}, {given({2, 0, 3})}, {2, 1, 1}, dense) == 0);
  CHECK(error_of(reduce{reduce_kind::sum, 1, 2}, {given({2, 5, 0})}, {2, 1, 0}, dense) == 0);
}

TEST_CASE("a mean over the last axes is one instruction, a maximum a tree") {
  CHECK(one_node(reduce{reduce_kind::mean, 1, 3}, {given({1, 30, 20})}, {1, 1, 1}, dense).statements() == 1);
  CHECK(one_node(reduce{reduce_kind::maximum, 0, 1}, {given({1024})}, {1}, dense).statements() == 10);
}

TEST_CASE("long sums lose no more than short ones") {
  // All of one sign and size, so that what an addition loses adds up.
  const std::vector<float> tenths(100000, 0.1F);
  for (const auto kind : {reduce_kind::sum, reduce_kind::mean}) {
    one_node node(reduce{kind, 0, 1}, {given({100000})}, {1}, dense);
    node.inputs = {model::make_value({100000}, tenths)};
    CHECK(node.worst() <= 2e-6);
  }
}

TEST_CASE("axes that do not exist are refused") {
  CHECK_THROWS_AS(one_node(reduce{reduce_kind::sum, 1, 3}, {given({2, 3})}, {2, 1}, dense), error);
  CHECK_THROWS_AS(static_cast<void>(model::reduce_shape({reduce_kind::maximum, 0, 1}, {0, 2})), error);
}
