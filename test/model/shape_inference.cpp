#include "raptor/model/shape_inference.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using namespace raptor;
using namespace raptor::model;

namespace {

template <class Call>
error_code failure(Call call) {
  try {
    call();
  } catch (const error& e) {
    CHECK_FALSE(std::string(e.what()).empty());
    return e.code();
  }
  FAIL("nothing was thrown");
  return error_code::internal;
}
convolution conv2(axis_values kernel, axis_values strides, axis_values dilations, axis_values begin, axis_values end, std::int64_t groups = 1) {
  return {std::move(kernel), std::move(strides), std::move(dilations), std::move(begin), std::move(end), groups};
}

}  // namespace

TEST_CASE("broadcasting aligns at the last axis") {
  struct row { shape a, b, result; };
  const row rows[] = {{{}, {}, {}}, {{3}, {}, {3}}, {{2, 3}, {3}, {2, 3}}, {{2, 1}, {1, 4}, {2, 4}}, {{0}, {1}, {0}}, {{1, 2, 3}, {5, 1, 1}, {5, 2, 3}}};
  for (const auto& r : rows) {
    CHECK(broadcast_shape(r.a, r.b) == r.result);
    CHECK(broadcast_shape(r.b, r.a) == r.result);
  }
  CHECK(failure([] { (void)broadcast_shape({2, 3}, {4}); }) == error_code::mismatch);
  CHECK(failure([] { (void)broadcast_shape({0}, {2}); }) == error_code::mismatch);
}

TEST_CASE("hostile sizes are refused before anything is allocated") {
  CHECK(failure([] { (void)checked_shape({std::int64_t{1} << 40}); }) == error_code::capacity);
  CHECK(failure([] { (void)checked_shape({1 << 20, 1 << 20, 1 << 20, 1 << 20}); }) == error_code::capacity);
  CHECK(failure([] { (void)checked_shape({std::int64_t{1} << 62, 0}); }) == error_code::capacity);
  CHECK(failure([] { (void)checked_shape({-1}); }) == error_code::mismatch);
  CHECK(failure([] { (void)checked_shape(shape(100, 1)); }) == error_code::capacity);
  CHECK(checked_shape({1 << 16, 1 << 15}) == shape{1 << 16, 1 << 15});
  CHECK(checked_shape({0, 1 << 30, 1 << 30}) == shape{0, 1 << 30, 1 << 30});
}

TEST_CASE("windows of one axis") {
  struct row { window_axis axis; std::int64_t size, floor, ceil; };
  const row rows[] = {
      {{3, 1, 1, 0, 0}, 5, 3, 3}, {{2, 2, 1, 0, 0}, 5, 2, 3},
      {{3, 2, 2, 1, 1}, 8, 3, 4},                             // span 5
      {{1, 2, 1, 0, 0}, 4, 2, 2},                             // ceil((4 - 1) / 2) + 1 = 3, but the third would begin at the end
      {{2, 3, 1, 0, 1}, 3, 1, 1},                             // a window that begins in the padding at the end does not count
      {{3, 2, 1, 1, 1}, 1, 1, 1}, {{1, 1, 1, 0, 0}, 1, 1, 1}};
  for (const auto& r : rows) {
    CHECK(r.axis.windows(r.size) == r.floor);
    CHECK(r.axis.windows(r.size, true) == r.ceil);
  }
  CHECK(failure([] { (void)window_axis{4, 1, 1, 0, 0}.windows(3); }) == error_code::mismatch);
  CHECK(failure([] { (void)window_axis{4, 1, 1, 0, 0}.windows(3, true); }) == error_code::mismatch);
}

TEST_CASE("auto_pad: ceil(size / stride) windows, the odd element at the end or the beginning") {
  const window_axis even{2, 2, 1, 9, 9};
  const auto upper = resolve_padding(even, 5, auto_pad::same_upper), lower = resolve_padding(even, 5, auto_pad::same_lower);
  CHECK(upper.pad_begin == 0);
  CHECK(upper.pad_end == 1);
  CHECK(lower.pad_begin == 1);
  CHECK(lower.pad_end == 0);
  CHECK(upper.windows(5) == 3);
  CHECK(lower.windows(5) == 3);
  const auto valid = resolve_padding(even, 5, auto_pad::valid);
  CHECK(valid.pad_begin + valid.pad_end == 0);
  CHECK(resolve_padding(even, 5, auto_pad::none).pad_begin == 9);
  CHECK(resolve_padding({1, 3, 1, 0, 0}, 7, auto_pad::same_upper).pad_end == 0);  // a stride larger than the kernel needs no padding
  CHECK(resolve_padding({3, 1, 2, 0, 0}, 6, auto_pad::same_upper).windows(6) == 6);
}

TEST_CASE("convolution: groups, strides, dilations, asymmetric pads") {
  CHECK(convolution_shape(conv2({3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}), {1, 3, 8, 8}, {4, 3, 3, 3}) == shape{1, 4, 8, 8});
  CHECK(convolution_shape(conv2({3, 3}, {2, 1}, {2, 2}, {0, 1}, {2, 3}, 4), {1, 4, 8, 8}, {8, 1, 3, 3}) == shape{1, 8, 3, 8});
  CHECK(convolution_shape({{3}, {1}, {1}, {0}, {0}, 1}, {2, 3, 8}, {5, 3, 3}) == shape{2, 5, 6});
  const auto plain = conv2({3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0});
  CHECK(failure([&] { (void)convolution_shape(plain, {1, 3, 8, 8}, {4, 2, 3, 3}); }) == error_code::mismatch);   // channels
  CHECK(failure([&] { (void)convolution_shape(plain, {1, 3, 8, 8}, {4, 3, 5, 5}); }) == error_code::mismatch);   // kernel
  CHECK(failure([&] { (void)convolution_shape(plain, {1, 3, 2, 2}, {4, 3, 3, 3}); }) == error_code::mismatch);   // no window
  CHECK(failure([&] { (void)convolution_shape(conv2({3, 3}, {0, 1}, {1, 1}, {0, 0}, {0, 0}), {1, 3, 8, 8}, {4, 3, 3, 3}); }) == error_code::mismatch);
  CHECK(failure([&] { (void)convolution_shape(conv2({3, 3}, {1, 1}, {std::int64_t{1} << 60, 1}, {0, 0}, {0, 0}), {1, 3, 8, 8}, {4, 3, 3, 3}); }) == error_code::capacity);
  const std::vector<shape> wrong_bias{{1, 3, 8, 8}, {4, 3, 3, 3}, {3}};
  CHECK(failure([&] { (void)infer_shape(plain, wrong_bias); }) == error_code::mismatch);
}

TEST_CASE("contractions") {
  CHECK(gemm_shape({1, 1, true, true}, {3, 2}, {4, 3}) == shape{2, 4});
  const shape vector{4}, column{2, 1}, wrong{3};
  CHECK(gemm_shape({}, {2, 3}, {3, 4}, &vector) == shape{2, 4});
  CHECK(gemm_shape({}, {2, 3}, {3, 4}, &column) == shape{2, 4});
  CHECK(failure([&] { (void)gemm_shape({}, {2, 3}, {3, 4}, &wrong); }) == error_code::mismatch);
  CHECK(failure([] { (void)gemm_shape({}, {2, 3}, {4, 3}); }) == error_code::mismatch);
  struct row { shape a, b, result; };
  const row rows[] = {{{2, 3}, {3, 4}, {2, 4}}, {{3}, {3}, {}}, {{3}, {3, 4}, {4}}, {{2, 3}, {3}, {2}},
                      {{5, 1, 2, 3}, {7, 3, 4}, {5, 7, 2, 4}}, {{5, 2, 3}, {3}, {5, 2}}};
  for (const auto& r : rows) CHECK(matmul_shape(r.a, r.b) == r.result);
  CHECK(failure([] { (void)matmul_shape({}, {3}); }) == error_code::mismatch);
  CHECK(failure([] { (void)matmul_shape({2, 3}, {2, 3}); }) == error_code::mismatch);
}

TEST_CASE("movement of elements") {
  CHECK(transpose_shape({{2, 0, 1}}, {4, 5, 6}) == shape{6, 4, 5});
  CHECK(failure([] { (void)transpose_shape({{0, 0}}, {4, 5}); }) == error_code::mismatch);
  CHECK(failure([] { (void)transpose_shape({{0}}, {4, 5}); }) == error_code::mismatch);
  const std::vector<shape> parts{{1, 2, 3}, {1, 4, 3}};
  CHECK(concat_shape({1}, parts) == shape{1, 6, 3});
  CHECK(failure([&] { (void)concat_shape({2}, parts); }) == error_code::mismatch);
  CHECK(failure([&] { (void)concat_shape({3}, parts); }) == error_code::mismatch);
  CHECK(pad_shape({{1, -2}, {0, -1}, pad_mode::constant, 0}, {4, 6}) == shape{5, 3});
  CHECK(failure([] { (void)pad_shape({{-3}, {-3}, pad_mode::constant, 0}, {4}); }) == error_code::mismatch);
  CHECK(failure([] { (void)pad_shape({{-1}, {0}, pad_mode::edge, 0}, {4}); }) == error_code::unsupported);
  CHECK(failure([] { (void)pad_shape({{1}, {0}, pad_mode::reflect, 0}, {0}); }) == error_code::mismatch);
}

TEST_CASE("reshape with 0 and -1") {
  struct row { shape x, target, result; bool allow_zero; };
  const row rows[] = {{{2, 3, 4}, {0, -1}, {2, 12}, false}, {{2, 3, 4}, {4, 0, -1}, {4, 3, 2}, false}, {{2, 3}, {6}, {6}, false},
                      {{1}, {}, {}, false}, {{0, 3}, {3, 0}, {3, 0}, true}, {{0, 3}, {0, 3}, {0, 3}, false}, {{}, {1, -1}, {1, 1}, false}};
  for (const auto& r : rows) CHECK(reshape_shape(r.x, r.target, r.allow_zero) == r.result);
  for (const auto& target : {shape{5}, shape{-1, -1}, shape{-2, 3}, shape{4, -1}, shape{0, 0, 0}})
    CHECK(failure([&] { (void)reshape_shape({2, 3}, target); }) == error_code::mismatch);
  CHECK(failure([] { (void)reshape_shape({2, 3}, shape{std::int64_t{1} << 40, std::int64_t{1} << 40}); }) == error_code::capacity);
  CHECK(failure([] { (void)reshape_shape({0, 3}, shape{-1, 0}, true); }) == error_code::mismatch);
}

TEST_CASE("slices: negative indices and steps, INT64 limits") {
  struct row { std::int64_t size, start, end, step, begin, count; };
  const row rows[] = {
      {10, 2, 8, 3, 2, 2},  {10, -3, INT64_MAX, 1, 7, 3}, {10, INT64_MAX, INT64_MIN, -1, 9, 10}, {10, 8, 2, -3, 8, 2},
      {10, 0, -1, 1, 0, 9}, {10, 5, 5, 1, 5, 0},          {10, -20, 20, 4, 0, 3},                {10, -1, INT64_MIN, INT64_MIN, 9, 1},
      {10, 0, 10, INT64_MAX, 0, 1}, {0, 0, INT64_MAX, 1, 0, 0}, {0, INT64_MAX, INT64_MIN, -1, 0, 0}, {3, 0, -5, -1, 0, 1}};
  for (const auto& r : rows) {
    const auto part = resolve_slice(r.size, r.start, r.end, r.step);
    CAPTURE(r.start);
    CAPTURE(r.end);
    CHECK(part.count == r.count);
    if (r.count > 0) CHECK(part.begin == r.begin);
    if (r.count > 1) CHECK(part.step == r.step);
  }
  CHECK(failure([] { (void)resolve_slice(3, 0, 3, 0); }) == error_code::mismatch);
}

TEST_CASE("axes: negative ones count from the end") {
  CHECK(resolve_axis(-1, 4) == 3);
  CHECK(resolve_axis(-4, 4) == 0);
  CHECK(resolve_axis(4, 4, true) == 4);
  CHECK(failure([] { (void)resolve_axis(4, 4); }) == error_code::mismatch);
  CHECK(failure([] { (void)resolve_axis(-5, 4); }) == error_code::mismatch);
  CHECK(failure([] { (void)resolve_axis(0, 0); }) == error_code::mismatch);
}

TEST_CASE("results that an operator may have") {
  const std::vector<shape> image{{1, 1, 1, 5}};
  const pool row{pool_kind::average, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}, true};
  check_result_shape(row, image, {1, 1, 1, 2});
  check_result_shape(row, image, {1, 1, 1, 3});  // ceil_mode
  CHECK(failure([&] { check_result_shape(row, image, {1, 1, 1, 4}); }) == error_code::mismatch);
  check_result_shape(reshape{}, image, {5});
  CHECK(failure([&] { check_result_shape(reshape{}, image, {6}); }) == error_code::mismatch);
  check_result_shape(slice{{0, 0, 0, 4}, {1, 1, 1, -2}}, image, {1, 1, 1, 3});
  CHECK(failure([&] { check_result_shape(slice{{0, 0, 0, 4}, {1, 1, 1, -2}}, image, {1, 1, 1, 4}); }) == error_code::mismatch);
  CHECK(failure([&] { check_result_shape(unary{unary_kind::relu, 0, 0}, image, {1, 1, 5, 1}); }) == error_code::mismatch);
  CHECK(failure([&] { (void)infer_shape(matmul{}, image); }) == error_code::mismatch);  // one operand is missing
  const std::vector<shape> data_and_slope{{1, 3}, {2, 1, 3}};
  CHECK(failure([&] { (void)infer_shape(binary{binary_kind::prelu}, data_and_slope); }) == error_code::mismatch);
}
