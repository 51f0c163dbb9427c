#include "raptor/lowering/upsampling.hpp"

#include <doctest/doctest.h>

#include "one_node.hpp"

using namespace raptor;
using namespace raptor::test;
using model::upsample;

TEST_CASE("enlargement equals the reference in every tiling and layout") {
  struct enlargement {
    shape sizes, factors;
  };
  const enlargement cases[] = {{{5}, {3}}, {{2, 3}, {2, 1}}, {{2, 3, 4, 5}, {1, 1, 2, 2}}, {{1, 3, 4, 5}, {1, 1, 3, 1}}, {{1, 3, 4, 1}, {1, 1, 1, 4}}, {{2, 2, 1, 3}, {3, 2, 1, 2}}, {{1, 0, 2, 2}, {1, 1, 2, 2}}};
  for (const auto& e : cases) {
    CAPTURE(to_string(e.factors));
    const upsample op{e.factors};
    CHECK(error_of(op, {given(e.sizes)}, model::upsample_shape(op, e.sizes), dense) == 0);
    if (e.sizes.size() == 4 && e.factors[0] == 1 && e.factors[1] == 1)
      CHECK(error_of(op, {given(e.sizes)}, model::upsample_shape(op, e.sizes), rows) == 0);
  }
  CHECK_THROWS_AS(one_node(upsample{{2, 0}}, {given({2, 3})}, {4, 0}, dense), error);
}
