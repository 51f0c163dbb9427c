#include "raptor/schedule/search.hpp"

#include <doctest/doctest.h>

using namespace raptor;

TEST_CASE("the least candidate is kept, the first among equals") {
  const std::vector<int> choices{3, 1, 2, 1};
  const auto [best, chosen] = schedule::keep_best(choices, [](int x) { return 10 * x; }, [](int x) { return x; });
  CHECK(best == 10);
  CHECK(chosen == 1);
}

TEST_CASE("a choice that does not fit is passed over while another does") {
  const std::vector<int> choices{1, 2, 3};
  const auto make = [](int x) -> int {
    if (x == 1) throw error(error_code::capacity, "too large");
    return x;
  };
  CHECK(schedule::keep_best(choices, make, [](int x) { return x; }).first == 2);
  const auto none = [](int) -> int { throw error(error_code::capacity, "too large"); };
  CHECK_THROWS_WITH_AS(static_cast<void>(schedule::keep_best(choices, none, [](int x) { return x; })), "too large", error);
}

TEST_CASE("errors other than capacity end the search") {
  const std::vector<int> choices{1, 2};
  const auto make = [](int x) -> int {
    if (x == 1) throw error(error_code::internal, "broken");
    return x;
  };
  CHECK_THROWS_WITH_AS(static_cast<void>(schedule::keep_best(choices, make, [](int x) { return x; })), "broken", error);
}

TEST_CASE("nothing is found where no choice fits, and among no choices") {
  const auto none = [](int) -> int { throw error(error_code::capacity, "too large"); };
  CHECK_FALSE(schedule::find_best(std::vector<int>{1, 2}, none, [](int x) { return x; }).has_value());
  CHECK_FALSE(schedule::find_best(std::vector<int>{}, none, [](int x) { return x; }).has_value());
  CHECK(schedule::find_best(std::vector<int>{2, 1}, [](int x) { return x; }, [](int x) { return x; })->second == 1);
}
