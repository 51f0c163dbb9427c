#include "raptor/lowering/movement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "one_node.hpp"

using namespace raptor;
using namespace raptor::test;

TEST_CASE("reshape is a flat copy whatever the shapes share") {
  const std::pair<shape, shape> cases[] = {{{2, 3, 4}, {24}},       {{24}, {2, 3, 4}},          {{1, 512, 7, 7}, {1, 25088}}, {{6, 4}, {4, 6}},
                                           {{2, 3, 4}, {2, 3, 4}},  {{1, 1}, {}},               {{}, {1, 1, 1}},              {{4, 9}, {6, 6}},
                                           {{2, 3, 5}, {3, 2, 5}},  {{5, 7}, {7, 5}},           {{3, 1, 200}, {1, 3, 10, 20}}, {{2, 0, 3}, {0, 5}},
                                           {{40, 30, 20}, {40, 600}}, {{8, 100, 30}, {4, 200, 30}}, {{1, 2, 1, 3}, {2, 3, 1, 1}}, {{12, 35}, {20, 21}}};
  for (const auto& [from, to] : cases) {
    CAPTURE(to_string(from));
    CAPTURE(to_string(to));
    CHECK(error_of(model::reshape{}, {given(from)}, to, dense) == 0);
  }
  // A flatten of an image has a lane a channel, so that it can be spread over cores.
  CHECK(one_node(model::reshape{}, {given({1, 512, 7, 7})}, {1, 25088}, dense).computes.at(0).lanes == shape{512});
}

TEST_CASE("every permutation up to rank 4, and some of rank 5 and 6") {
  for (const shape& sizes : {shape{}, shape{5}, shape{3, 4}, shape{2, 3, 4}, shape{1, 30, 40}, shape{2, 3, 4, 5}, shape{2, 1, 30, 20}, shape{3, 1, 1, 2}, shape{2, 0, 3}}) {
    model::axis_values permutation(sizes.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    do {
      shape out;
      for (const auto axis : permutation) out.push_back(sizes[static_cast<std::size_t>(axis)]);
      CAPTURE(to_string(sizes));
      CAPTURE(to_string(permutation));
      CHECK(error_of(model::transpose{permutation}, {given(sizes)}, out, dense) == 0);
    } while (std::next_permutation(permutation.begin(), permutation.end()));
  }
  CHECK(error_of(model::transpose{{4, 0, 3, 1, 2}}, {given({2, 3, 4, 5, 6})}, {6, 2, 5, 3, 4}, dense) == 0);
  CHECK(error_of(model::transpose{{0, 2, 3, 1, 5, 4}}, {given({2, 3, 4, 2, 3, 2})}, {2, 4, 2, 3, 2, 3}, dense) == 0);
  CHECK(error_of(model::transpose{{5, 4, 3, 2, 1, 0}}, {given({2, 3, 4, 2, 3, 2})}, {2, 3, 2, 4, 3, 2}, dense) == 0);
  CHECK_THROWS_AS(static_cast<void>(one_node(model::transpose{{0, 0}}, {given({2, 2})}, {2, 2}, dense)), error);
  CHECK_THROWS_AS(static_cast<void>(one_node(model::transpose{{0, 7}}, {given({2, 2})}, {2, 2}, dense)), error);
}

TEST_CASE("concat along every axis, with constants and empty operands") {
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    shape a{2, 3, 4}, b{2, 3, 4}, none{2, 3, 4}, out{2, 3, 4};
    const auto at = static_cast<std::size_t>(axis);
    a[at] = 5, b[at] = 1, none[at] = 0, out[at] = 11;
    shape last = out;
    last[at] = 5;
    CHECK(error_of(model::concat{axis}, {given(a), fixed(b), given(none), given(last)}, out, dense) == 0);
  }
  CHECK(error_of(model::concat{0}, {given({7})}, {7}, dense) == 0);
  CHECK(error_of(model::concat{1}, {given({2, 30, 20, 10}), given({2, 5, 20, 10})}, {2, 35, 20, 10}, dense) == 0);
  CHECK(error_of(model::concat{1}, {given({2, 3, 4, 5}), given({2, 1, 4, 5}), given({2, 8, 4, 5})}, {2, 12, 4, 5}, rows) == 0);
  CHECK(error_of(model::concat{1}, {given({1, 3, 4, 5})}, {1, 3, 4, 5}, rows) == 0);
  CHECK(error_of(model::concat{1}, {given({2, 0, 3}), given({2, 0, 3})}, {2, 0, 3}, dense) == 0);
}

TEST_CASE("slices with any begin and step") {
  struct slice_case {
    shape in, begin, step, out;
  };
  const slice_case cases[] = {{{10}, {2}, {3}, {3}},
                              {{10}, {9}, {-1}, {10}},
                              {{10}, {8}, {-3}, {3}},
                              {{4, 5}, {1, 0}, {1, 1}, {2, 5}},
                              {{4, 5}, {0, 1}, {2, 2}, {2, 2}},
                              {{4, 5}, {3, 4}, {-1, -2}, {4, 3}},
                              {{2, 3, 4, 5}, {0, 2, 1, 0}, {1, -1, 2, 1}, {2, 3, 2, 5}},
                              {{2, 3, 40, 50}, {0, 1, 0, 0}, {1, 1, 1, 1}, {2, 2, 40, 50}},
                              {{600, 1, 1}, {5, 0, 0}, {7, 1, 1}, {80, 1, 1}},
                              {{600, 1}, {599, 0}, {-1, 1}, {600, 1}},
                              {{30000, 1}, {29999, 0}, {-2, 1}, {15000, 1}},
                              {{3, 4}, {1, 2}, {5, -9}, {1, 1}},
                              {{3, 4}, {0, 0}, {1, 1}, {3, 0}},
                              {{}, {}, {}, {}}};
  for (const auto& s : cases) {
    CAPTURE(to_string(s.in));
    CAPTURE(to_string(s.step));
    CHECK(error_of(model::slice{s.begin, s.step}, {given(s.in)}, s.out, dense) == 0);
  }
  CHECK(error_of(model::slice{{1, 2, 1, 1}, {1, 1, 1, 1}}, {given({3, 6, 4, 5})}, {2, 3, 2, 3}, rows) == 0);
  CHECK(error_of(model::slice{{0, 0, 1, 2}, {1, 1, 1, 1}}, {given({1, 6, 4, 5})}, {1, 6, 3, 3}, rows) == 0);
  CHECK(error_of(model::slice{{0, 3, 0, 0}, {1, 1, 1, 1}}, {given({1, 6, 4, 5})}, {1, 3, 4, 5}, rows) == 0);
  CHECK_THROWS_AS(static_cast<void>(one_node(model::slice{{8}, {3}}, {given({10})}, {3}, dense)), error);
}

TEST_CASE("pads of every mode, crops, and padding of many periods") {
  struct pad_case {
    shape in, begin, end;
  };
  const pad_case cases[] = {{{5}, {2}, {3}},           {{3, 4}, {0, 1}, {2, 0}},      {{2, 3, 4, 5}, {0, 0, 1, 2}, {0, 0, 3, 0}},
                            {{1, 2, 3}, {1, 1, 1}, {1, 1, 1}}, {{4}, {0}, {0}},       {{3}, {7}, {9}},
                            {{1, 4}, {2, 0}, {2, 0}},  {{2, 30, 40}, {0, 3, 3}, {0, 3, 3}}};
  for (const auto& p : cases)
    for (const auto mode : {model::pad_mode::constant, model::pad_mode::reflect, model::pad_mode::edge}) {
      CAPTURE(to_string(p.in));
      CAPTURE(static_cast<int>(mode));
      shape out;
      for (std::size_t d = 0; d < p.in.size(); ++d) out.push_back(p.in[d] + p.begin[d] + p.end[d]);
      CHECK(error_of(model::pad{p.begin, p.end, mode, 1.5F}, {given(p.in)}, out, dense) == 0);
    }
  const auto constant = model::pad_mode::constant;
  CHECK(error_of(model::pad{{-1, 2}, {2, -3}, constant, -1}, {given({4, 5})}, {5, 4}, dense) == 0);
  CHECK(error_of(model::pad{{-3, 0}, {5, 0}, constant, 2}, {given({3, 2})}, {5, 2}, dense) == 0);  // nothing is left of the input
  CHECK(error_of(model::pad{{1, 1}, {1, 1}, constant, 2}, {given({0, 2})}, {2, 4}, dense) == 0);
  CHECK(error_of(model::pad{{0, -2}, {0, 0}, constant, 2}, {given({3, 2})}, {3, 0}, dense) == 0);
  CHECK(error_of(model::pad{{}, {}, constant, 2}, {given({})}, {}, dense) == 0);
  for (const float value : {0.0F, -3.0F}) {
    CHECK(error_of(model::pad{{0, 0, 1, 2}, {0, 0, 3, 1}, constant, value}, {given({2, 3, 4, 5})}, {2, 3, 8, 8}, rows) == 0);
    CHECK(error_of(model::pad{{0, 2, 0, 0}, {0, 1, 0, 0}, constant, value}, {given({1, 3, 4, 5})}, {1, 6, 4, 5}, rows) == 0);
    CHECK(error_of(model::pad{{0, -1, -1, -2}, {0, 3, 2, 1}, constant, value}, {given({1, 3, 4, 5})}, {1, 5, 5, 4}, rows) == 0);
    CHECK(error_of(model::pad{{0, 0, -1, 0}, {0, 0, -1, -2}, constant, value}, {given({1, 3, 4, 5})}, {1, 3, 2, 3}, rows) == 0);
    CHECK(error_of(model::pad{{0, 0, -4, 0}, {0, 0, 3, 0}, constant, value}, {given({1, 3, 4, 5})}, {1, 3, 3, 5}, rows) == 0);
  }
  CHECK_THROWS_AS(static_cast<void>(one_node(model::pad{{100000}, {100000}, model::pad_mode::reflect}, {given({2})}, {200002}, dense)), error);
}

TEST_CASE("channel shuffles") {
  for (const auto layout : {dense, rows}) {
    CHECK(error_of(model::channel_shuffle{3}, {given({2, 12, 3, 4})}, {2, 12, 3, 4}, layout) == 0);
    CHECK(error_of(model::channel_shuffle{1}, {given({1, 5, 3, 4})}, {1, 5, 3, 4}, layout) == 0);
    CHECK(error_of(model::channel_shuffle{5}, {given({1, 5, 3, 4})}, {1, 5, 3, 4}, layout) == 0);
    CHECK(error_of(model::channel_shuffle{2}, {given({1, 58, 2, 28})}, {1, 58, 2, 28}, layout) == 0);
    CHECK(error_of(model::channel_shuffle{4}, {given({1, 8, 2, 1})}, {1, 8, 2, 1}, layout) == 0);
  }
  CHECK_THROWS_AS(static_cast<void>(one_node(model::channel_shuffle{4}, {given({1, 6, 2, 2})}, {1, 6, 2, 2}, dense)), error);
}
