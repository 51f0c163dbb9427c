#include "raptor/support/affine.hpp"

#include <doctest/doctest.h>

using namespace raptor;

namespace {
const affine b0 = symbol{symbol::kind::begin, 0}, e1 = symbol{symbol::kind::extent, 1}, i0 = symbol{symbol::kind::loop, 0};
}

TEST_CASE("arithmetic keeps a normal form") {
  const affine a = 3 + 2 * b0 - i0 * 4, same = i0 * -4 + b0 + 3 + b0;
  CHECK(a == same);
  CHECK((a - same) == affine(0));
  CHECK((a - same).is_constant());
  CHECK((a * 0).terms().empty());
  CHECK(a.coefficient({symbol::kind::loop, 0}) == -4);
  CHECK(a.evaluate([](symbol s) { return s.what == symbol::kind::begin ? 10 : 1; }) == 19);
}

TEST_CASE("substitution") {
  const affine a = b0 + e1 * 2 + i0;
  const auto fixed = a.substitute([](symbol s) -> std::pair<bool, affine> {
    if (s.what == symbol::kind::loop) return {false, {}};
    return {true, affine(s.what == symbol::kind::begin ? 5 : 7)};
  });
  CHECK(fixed == 19 + i0);
}

TEST_CASE("text reads back") {
  for (const affine& a : {affine(0), affine(-7), 3 + 2 * b0 - i0 * 4, b0 - e1, i0 * -1, affine(std::int64_t{1} << 40) + e1 * 100})
    CHECK(parse_affine(to_string(a)) == a);
  CHECK(to_string(3 + 2 * b0 - i0 * 4) == "3+2*b0-4*i0");
  for (const char* wrong : {"", "+", "3+", "b", "x1", "2*", "3 + b0", "+3", "99999999999999999999", "3b0"})
    CHECK_THROWS_AS(static_cast<void>(parse_affine(wrong)), error);
}

TEST_CASE("overflow is an error") {
  CHECK_THROWS_AS(static_cast<void>(affine(INT64_MAX) + affine(1)), error);
  CHECK_THROWS_AS(static_cast<void>(b0 * INT64_MAX * 2), error);
}
