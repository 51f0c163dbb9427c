#include "raptor/schedule/capacity.hpp"

#include <doctest/doctest.h>
#include <random>
#include <string>

#include "problems.hpp"
#include "raptor/schedule/check_schedule.hpp"
#include "raptor/schedule/heft.hpp"
#include "raptor/schedule/peft.hpp"

using namespace raptor;
using namespace raptor::schedule;

namespace {
using strings = std::vector<std::string>;
}

TEST_CASE("resident weights: shared sets count once a processor") {
  resident_weights capacity({{{{7, 4}}, {{7, 4}}, {{8, 4}}}, {4, 4}});
  capacity.begin(3, 2);
  CHECK(capacity.take(0, 0));
  CHECK(capacity.take(1, 0));        // the same weights
  CHECK_FALSE(capacity.take(2, 0));  // full
  CHECK(capacity.take(2, 1));
}

TEST_CASE("resident weights: a further copy only where no reservation suffers") {
  resident_weights capacity({{{{7, 4}}, {{7, 4}}, {{8, 4}}}, {4, 4}});
  capacity.begin(3, 2);
  CHECK(capacity.take(0, 1));        // the reservation of 8 moves to processor 0
  CHECK_FALSE(capacity.take(1, 0));  // a second copy of 7 would leave no room for 8
  CHECK(capacity.take(1, 1));
  CHECK(capacity.take(2, 0));

  resident_weights roomy({{{{7, 4}}, {{7, 4}}, {{8, 4}}}, {4, 8}});
  roomy.begin(3, 2);
  CHECK(roomy.take(0, 0));
  CHECK(roomy.take(1, 1));
  CHECK(roomy.take(2, 1));
}

TEST_CASE("resident weights: overlapping lists of sets") {
  // Tasks 0 and 1 share set 1: together they need 2 + 3 + 2 crossbars, not 10.
  resident_weights capacity({{{{0, 2}, {1, 3}}, {{1, 3}, {2, 2}}}, {7}});
  capacity.begin(2, 1);
  CHECK(capacity.take(1, 0));
  CHECK(capacity.take(0, 0));
}

TEST_CASE("resident weights: tasks without weights go anywhere, a set named twice counts once") {
  resident_weights capacity({{{}, {{5, 3}, {5, 3}}}, {3, 0}});
  capacity.begin(2, 2);
  CHECK(capacity.take(0, 1));
  CHECK_FALSE(capacity.take(1, 1));
  CHECK(capacity.take(1, 0));
}

TEST_CASE("resident weights: errors") {
  const auto failure = [](weight_requirements needs) {
    try {
      const auto tasks = needs.task.size(), processors = needs.capacity.size();
      resident_weights capacity(std::move(needs));
      capacity.begin(tasks, processors);
    } catch (const error& e) {
      return std::string(name(e.code())) + ": " + e.what();
    }
    return std::string("no error");
  };
  CHECK(failure({{{{0, 3}}, {{1, 3}}, {{2, 3}}}, {4, 4}}) ==
        "capacity: the weights do not fit the chip: 9 crossbars needed, 8 available on 2 cores");
  CHECK(failure({{{{0, 3}}, {{1, 3}}, {{2, 2}}}, {4, 4}}) ==
        "capacity: the weights do not fit the chip: 8 crossbars needed, 8 available on 2 cores, but sets of weights that cannot be divided (up to 3 "
        "crossbars) leave gaps");
  CHECK(failure({{{{0, 5}}}, {4, 4}}) ==
        "capacity: the weights do not fit the chip: 5 crossbars needed, 8 available on 2 cores; the largest indivisible set of weights needs 5 "
        "crossbars, a core has 4");
  CHECK(failure({{{{0, 1}}, {{0, 2}}}, {4}}) == "malformed: weights 0 have 1 crossbars and 2");
  CHECK(failure({{{{0, -1}}}, {4}}).starts_with("malformed: "));
  resident_weights capacity({{{}}, {1}});
  CHECK_THROWS_AS(capacity.begin(2, 1), error);
}

TEST_CASE("resident weights: whatever decreasing packing can place, the schedulers can") {
  std::mt19937 random(9);
  int tight = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t processors = 1 + random() % 6, tasks = 1 + random() % 40;
    const auto t = problems::random_table(random, tasks, processors);
    weight_requirements needs;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < tasks; ++i) {
      sizes.push_back(static_cast<std::int64_t>(random() % 9));
      needs.task.push_back({{static_cast<std::uint32_t>(i), sizes.back()}});
    }
    // The smallest equal capacity that first-fit decreasing manages: no slack to hide behind.
    std::int64_t capacity = 0;
    while (!try_pack(sizes, std::vector<std::int64_t>(processors, capacity))) ++capacity;
    needs.capacity.assign(processors, capacity);
    if (detail::total(sizes) == capacity * static_cast<std::int64_t>(processors)) ++tight;
    for (const auto& where : {heft{}(t.graph, t, resident_weights(needs)), peft{}(t.graph, t, resident_weights(needs))}) {
      CHECK(check_schedule(t.graph, t, where) == strings{});
      CHECK(check_capacity(where, needs) == strings{});
    }
  }
  CHECK(tight > 20);  // crossbars used to the last one
}

TEST_CASE("resident weights: shared sets in random lists, random takers") {
  std::mt19937 random(10);
  for (int round = 0; round < 300; ++round) {
    const std::size_t processors = 1 + random() % 5, tasks = 1 + random() % 30;
    weight_requirements needs;
    std::vector<std::int64_t> size;
    for (int i = 0; i < 12; ++i) size.push_back(static_cast<std::int64_t>(1 + random() % 6));
    for (std::size_t i = 0; i < tasks; ++i) {
      needs.task.emplace_back();
      for (std::size_t k = random() % 4; k > 0; --k) {
        const auto id = static_cast<std::uint32_t>(random() % 12);
        needs.task.back().push_back({id, size[id]});
      }
    }
    for (std::size_t p = 0; p < processors; ++p) needs.capacity.push_back(static_cast<std::int64_t>(10 + random() % 30));
    resident_weights capacity(needs);
    try {
      capacity.begin(tasks, processors);
    } catch (const error&) {
      continue;
    }
    placement where{std::vector<std::size_t>(tasks, 0), {}, {}};
    for (std::size_t i = 0; i < tasks; ++i) {
      bool placed = false;
      const std::size_t first = random() % processors;
      for (std::size_t k = 0; k < processors && !placed; ++k) {
        where.processor[i] = (first + k) % processors;
        placed = capacity.take(i, where.processor[i]);
      }
      CHECK(placed);
    }
    CHECK(check_capacity(where, needs) == strings{});
  }
}

TEST_CASE("check_capacity finds an overfull processor") {
  const weight_requirements needs{{{{0, 3}}, {{1, 3}}}, {4, 4}};
  CHECK(check_capacity({{0, 1}, {}, {}}, needs).empty());
  CHECK(check_capacity({{0, 0}, {}, {}}, needs) == strings{"processor 0 holds 6 crossbars of 4"});
  CHECK(check_capacity({{0, 2}, {}, {}}, needs).size() == 1);
}
