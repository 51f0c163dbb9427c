#include "raptor/schedule/local_search.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

using namespace raptor;

namespace {
/// Steps of one to either side on 0 … 99.
const auto step = [](int x, std::mt19937_64& random) { return std::clamp(x + (random() % 2 == 0 ? 1 : -1), 0, 99); };
}  // namespace

TEST_CASE("a local search walks down to the least choice, and ranks all that it has seen") {
  std::vector<int> choices{10, 90};
  std::size_t most = 0;
  const auto evaluate = [&](const std::vector<int>& list, std::size_t first) {
    std::vector<std::optional<int>> worth;
    for (std::size_t i = first; i < list.size(); ++i) worth.push_back(std::abs(list[i] - 42));
    most = std::max(most, worth.size());
    return worth;
  };
  const schedule::local_search search{.rounds = 100, .batch = 3, .width = 2, .seed = 7};
  const auto ranking = search(choices, step, evaluate);
  CHECK(choices[ranking.front().second] == 42);
  CHECK(ranking.front().first == 0);
  CHECK(ranking.size() == choices.size());
  CHECK(std::is_sorted(ranking.begin(), ranking.end()));
  CHECK(std::set<int>(choices.begin(), choices.end()).size() == choices.size());  // nothing is looked at twice
  CHECK(most <= 3);
  std::vector<int> again{10, 90};
  CHECK(search(again, step, evaluate) == ranking);
  CHECK(again == choices);
}

TEST_CASE("without rounds only the given choices count; what does not fit is left out; equals keep their order") {
  std::vector<int> choices{5, 3, 4, 3};
  const auto evaluate = [](const std::vector<int>& list, std::size_t first) {
    std::vector<std::optional<int>> worth;
    for (std::size_t i = first; i < list.size(); ++i) worth.push_back(list[i] == 4 ? std::nullopt : std::optional(list[i]));
    return worth;
  };
  const auto ranking = schedule::local_search{}(choices, step, evaluate);
  CHECK(ranking == std::vector<std::pair<int, std::size_t>>{{3, 1}, {3, 3}, {5, 0}});
  CHECK(choices.size() == 4);
  std::vector<int> none{4};
  CHECK(schedule::local_search{.rounds = 3}(none, step, evaluate).empty());
}

TEST_CASE("a local search ends where everything near is known") {
  std::vector<int> choices{0, 1};
  std::size_t calls = 0;
  const auto evaluate = [&](const std::vector<int>& list, std::size_t first) {
    ++calls;
    return std::vector<std::optional<int>>(list.size() - first, 1);
  };
  const auto ranking = schedule::local_search{.rounds = 1000}(choices, [](int x, std::mt19937_64&) { return 1 - x; }, evaluate);
  CHECK(ranking.size() == 2);
  CHECK(calls == 1);
}
