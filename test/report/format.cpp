#include "raptor/report/format.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace raptor::report;

TEST_CASE("times") {
  CHECK(microseconds(std::int64_t{0}) == "0.000");
  CHECK(microseconds(std::int64_t{17400000}) == "17.400");
  CHECK(microseconds(std::int64_t{499}) == "0.000");
  CHECK(microseconds(std::int64_t{500}) == "0.001");
  CHECK(microseconds(std::int64_t{-1234567}) == "-1.235");
  CHECK(microseconds(std::numeric_limits<std::int64_t>::min()) == "-9223372036854.776");
  CHECK(microseconds(1500.4) == "0.002");
  CHECK(microseconds(std::numeric_limits<double>::infinity()) == "unknown");
  CHECK(microseconds(1e300) == "unknown");
}
TEST_CASE("ratios") {
  CHECK(ratio(3, 2) == "1.50");
  CHECK(ratio(1, 100) == "0.01");
  CHECK(ratio(7, 0) == "-");
  CHECK(ratio(std::numeric_limits<std::int64_t>::max(), 1) == "1000000000000000.00");
}
TEST_CASE("texts") {
  CHECK(clipped("abc") == "abc");
  CHECK(clipped("a\nb") == "a?b");
  CHECK(clipped("abcdefgh", 6) == "abc...");
  CHECK(clipped("ab\xc3\xa9\xc3\xa9\xc3\xa9", 6) == "ab...");  // not inside a character
  CHECK(csv_field("plain") == "plain");
  CHECK(csv_field("a,\"b\"\n") == "\"a,\"\"b\"\"\n\"");
  CHECK(dot_text("a\"b\\c\nd\t") == "\"a\\\"b\\\\c\\nd?\"");
  CHECK(left("ab", 4) + "|" == "ab  |");
  CHECK(right("ab", 4) == "  ab");
  CHECK(right("abcde", 4) == " abcde");
}
