#include "raptor/lowering/pooling.hpp"

#include <doctest/doctest.h>

#include "one_node.hpp"
#include "raptor/model/shape_inference.hpp"

using namespace raptor;
using namespace raptor::test;
using model::pool;
using model::pool_kind;

namespace {
pool make(pool_kind kind, shape kernel, shape strides, shape begin, shape end, bool with_padding = false, shape dilations = {}) {
  if (dilations.empty()) dilations.assign(kernel.size(), 1);
  return {kind, kernel, strides, dilations, begin, end, with_padding};
}
/// Errors in both layouts where the image has two axes, rows whole and in stretches, with and without ceil_mode.
double worst_of(const pool& op, const shape& in) {
  double worst = 0;
  for (const bool ceil : {false, true}) {
    const auto out = model::pool_shape(op, in, ceil);
    worst = std::max(worst, error_of(op, {given(in)}, out, dense));
    if (in.size() != 4) continue;
    for (const std::int64_t tile_time : {std::int64_t{20'000'000}, std::int64_t{4'000}, std::int64_t{1}}) {
      lowering::lowering_options options;
      options.tile_time = tile_time;
      worst = std::max(worst, error_of(op, {given(in)}, out, rows, 4, options));
    }
  }
  return worst;
}
}  // namespace

TEST_CASE("pools equal the reference over kernels, strides, pads, dilations and ceil_mode") {
  for (const auto kind : {pool_kind::max, pool_kind::average})
    for (const bool with_padding : {false, true}) {
      if (kind == pool_kind::max && with_padding) continue;
      CAPTURE(static_cast<int>(kind));
      CAPTURE(with_padding);
      const double tolerance = kind == pool_kind::max ? 0 : 5e-7;
      CHECK(worst_of(make(kind, {2, 2}, {2, 2}, {0, 0}, {0, 0}, with_padding), {1, 3, 8, 8}) <= tolerance);
      CHECK(worst_of(make(kind, {2, 2}, {2, 2}, {0, 0}, {0, 0}, with_padding), {2, 3, 7, 9}) <= tolerance);
      CHECK(worst_of(make(kind, {3, 3}, {2, 2}, {1, 1}, {1, 1}, with_padding), {1, 4, 8, 7}) <= tolerance);
      CHECK(worst_of(make(kind, {3, 3}, {1, 1}, {1, 1}, {1, 1}, with_padding), {1, 4, 5, 6}) <= tolerance);
      CHECK(worst_of(make(kind, {3, 3}, {2, 2}, {0, 0}, {0, 0}, with_padding), {1, 5, 8, 8}) <= tolerance);
      CHECK(worst_of(make(kind, {1, 1}, {2, 2}, {0, 0}, {0, 0}, with_padding), {1, 2, 5, 5}) <= tolerance);
      CHECK(worst_of(make(kind, {1, 1}, {1, 1}, {0, 0}, {0, 0}, with_padding), {1, 2, 3, 5}) <= tolerance);
      CHECK(worst_of(make(kind, {5, 7}, {1, 3}, {2, 0}, {1, 5}, with_padding), {2, 3, 9, 11}) <= tolerance);
      CHECK(worst_of(make(kind, {4, 5}, {3, 1}, {3, 1}, {0, 4}, with_padding), {1, 2, 7, 6}) <= tolerance);
      CHECK(worst_of(make(kind, {3, 2}, {1, 2}, {1, 0}, {2, 1}, with_padding, {2, 3}), {1, 3, 8, 9}) <= tolerance);
      CHECK(worst_of(make(kind, {6, 9}, {1, 1}, {5, 8}, {5, 8}, with_padding), {1, 1, 3, 4}) <= tolerance);
      CHECK(worst_of(make(kind, {7, 6}, {1, 1}, {0, 0}, {0, 0}, with_padding), {2, 5, 7, 6}) <= tolerance);   // global
      CHECK(worst_of(make(kind, {1, 1}, {1, 1}, {0, 0}, {0, 0}, with_padding), {2, 3, 1, 1}) <= tolerance);
      CHECK(worst_of(make(kind, {2, 1}, {5, 4}, {0, 0}, {0, 0}, with_padding), {1, 900, 4, 5}) <= tolerance);
      CHECK(worst_of(make(kind, {3, 3}, {2, 2}, {0, 1}, {1, 1}, with_padding), {1, 700, 4, 8}) <= tolerance);
      CHECK(worst_of(make(kind, {3, 3}, {2, 2}, {1, 0}, {1, 0}, with_padding), {1, 700, 4, 9}) <= tolerance);
      CHECK(worst_of(make(kind, {4}, {2}, {1}, {2}, with_padding), {2, 3, 11}) <= tolerance);
      CHECK(worst_of(make(kind, {32}, {1}, {0}, {0}, with_padding), {1, 2, 40}) <= tolerance);
      CHECK(worst_of(make(kind, {2, 3, 2}, {1, 2, 2}, {1, 1, 0}, {0, 1, 1}, with_padding), {1, 2, 4, 5, 6}) <= tolerance);
      CHECK(worst_of(make(kind, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {0, 0, 0}, with_padding, {2, 1, 2}), {2, 2, 5, 4, 5}) <= tolerance);
      CHECK(worst_of(make(kind, {3, 3}, {1, 1}, {0, 0}, {0, 0}, with_padding, {1, 1}), {1, 1, 200, 150}) <= tolerance);  // rows of their own factor
    }
}

TEST_CASE("rows that take long are cut into stretches, each of which reads what its windows meet") {
  lowering::lowering_options options;
  options.tile_time = 1;
  const one_node pooled(make(pool_kind::max, {3, 3}, {2, 2}, {1, 1}, {1, 1}), {given({1, 4, 8, 12})}, {1, 4, 4, 6}, rows, 4, options);
  REQUIRE(pooled.computes.size() == 4);  // the first one brings the image into rows
  const std::pair<std::int64_t, std::int64_t> read[] = {{0, 4}, {3, 8}, {7, 12}};
  for (lowering::vertex v = 0; v < 3; ++v) {
    const auto& accesses = pooled.computes.at(v + 1).accesses;
    CHECK(accesses[0].low[3] == affine(read[v].first));
    CHECK(accesses[0].high[3] == affine(read[v].second));
    CHECK(accesses[1].low[3] == affine(static_cast<std::int64_t>(2 * v)));
  }
  // Windows that meet nothing of the image: in one.
  const one_node beyond(make(pool_kind::max, {1, 1}, {1, 1}, {0, 5}, {0, 5}), {given({1, 4, 8, 3})}, {1, 4, 8, 13}, rows, 4, options);
  CHECK(beyond.computes.size() == 2);
}

TEST_CASE("every window length from 1 to 20 reduces right") {
  for (std::int64_t taps = 1; taps <= 20; ++taps) {
    CAPTURE(taps);
    CHECK(worst_of(make(pool_kind::max, {1, taps}, {1, 2}, {0, taps / 2}, {0, taps / 3}), {1, 2, 2, 23}) == 0);
    CHECK(worst_of(make(pool_kind::average, {1, taps}, {1, 1}, {0, 0}, {0, 0}), {1, 2, 2, 23}) <= 5e-7);
  }
}

TEST_CASE("windows without any element of the image") {
  // Kernel 2 with a pad of 3: the first windows meet padding only.
  for (const auto kind : {pool_kind::max, pool_kind::average}) {
    const auto op = make(kind, {2, 2}, {1, 1}, {3, 3}, {3, 3});
    const auto out = model::pool_shape(op, {1, 2, 3, 3});
    CHECK(error_of(op, {given({1, 2, 3, 3})}, out, dense) <= 5e-7);
    CHECK(error_of(op, {given({1, 2, 3, 3})}, out, rows) <= 5e-7);
    const auto rounded_up = model::pool_shape(op, {1, 2, 3, 3}, true);
    CHECK(rounded_up == shape{1, 2, 7, 7});
    CHECK(error_of(op, {given({1, 2, 3, 3})}, rounded_up, dense) <= 5e-7);
    CHECK(error_of(op, {given({1, 2, 3, 3})}, rounded_up, rows) <= 5e-7);
  }
  // One window, and it lies before the image.
  for (const auto kind : {pool_kind::max, pool_kind::average})
    for (const auto layout : {dense, rows}) CHECK(error_of(make(kind, {1, 1}, {9, 9}, {2, 2}, {0, 0}), {given({1, 1, 3, 3})}, {1, 1, 1, 1}, layout) == 0);
}

TEST_CASE("hostile attributes end in an error, not in memory") {
  const auto huge = std::int64_t{1} << 40;
  CHECK_THROWS_AS(static_cast<void>(one_node(make(pool_kind::max, {huge, huge}, {huge, huge}, {huge, huge}, {huge, huge}, false, {huge, huge}), {given({1, 1, 3, 3})}, {1, 1, 9, 9}, dense)), error);
  CHECK_THROWS_AS(static_cast<void>(one_node(make(pool_kind::max, {1, 1}, {huge, huge}, {0, 0}, {0, 0}), {given({1, 1, 3, 3})}, {1, 1, 9, 9}, rows)), error);
  CHECK_THROWS_AS(static_cast<void>(one_node(make(pool_kind::max, {1}, {1, 1}, {0, 0}, {0, 0}), {given({1, 1, 3, 3})}, {1, 1, 3, 3}, rows)), error);
  CHECK_THROWS_AS(static_cast<void>(one_node(make(pool_kind::max, {0, 1}, {1, 1}, {0, 0}, {0, 0}), {given({1, 1, 3, 3})}, {1, 1, 3, 3}, dense)), error);
}
