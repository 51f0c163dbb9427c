#include "raptor/model/reference.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <random>

using namespace raptor;
using namespace raptor::model;

namespace {

/// Operators, operands and shapes that need not fit each other, from a fixed seed: small numbers that often do fit, and extremes.
struct source {
  std::mt19937 random;

  std::int64_t number() {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    constexpr std::array<std::int64_t, 14> extremes{-1, -2, most, -most, -most - 1, std::int64_t{1} << 40, -(std::int64_t{1} << 40), std::int64_t{1} << 31,
                                                    (std::int64_t{1} << 62) - 1, most / 2, 1000000, 65536, most - 1, 255};
    return random() % 8 == 0 ? extremes[random() % extremes.size()] : static_cast<std::int64_t>(random() % 5);
  }
  axis_values numbers(std::size_t count) {
    axis_values values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(number());
    return values;
  }
  axis_values some() { return numbers(random() % 5); }
  /// Of the right length most of the time.
  axis_values for_axes(std::size_t rank) { return random() % 10 == 0 ? some() : numbers(rank); }
  tensor_value value(std::size_t rank) {
    shape sizes;
    for (std::size_t i = 0; i < rank; ++i) sizes.push_back(static_cast<std::int64_t>(random() % 5));
    const auto count = static_cast<std::size_t>(element_count(sizes));
    if (random() % 8 == 0) return make_value(std::move(sizes), numbers(count));
    return make_value(std::move(sizes), std::vector<float>(count, 0.5F));
  }
  operation op(std::size_t rank) {
    const auto spatial = rank < 2 ? 0 : rank - 2;
    switch (random() % 15) {
      case 0: return convolution{for_axes(spatial), for_axes(spatial), for_axes(spatial), for_axes(spatial), for_axes(spatial), number()};
      case 1: return gemm{1, 1, random() % 2 == 0, random() % 2 == 0};
      case 2: return matmul{};
      case 3: return binary{static_cast<binary_kind>(random() % 8)};
      case 4: return unary{static_cast<unary_kind>(random() % 6), 1, 2};
      case 5: return softmax{number(), number()};
      case 6: return pool{static_cast<pool_kind>(random() % 2), for_axes(spatial), for_axes(spatial), for_axes(spatial), for_axes(spatial), for_axes(spatial), random() % 2 == 0};
      case 7: return batch_normalization{};
      case 8: return lrn{number(), 1, 1, 1};
      case 9: return reshape{};
      case 10: return transpose{for_axes(rank)};
      case 11: return concat{number()};
      case 12: return slice{for_axes(rank), for_axes(rank)};
      case 13: return pad{for_axes(rank), for_axes(rank), static_cast<pad_mode>(random() % 3), 1};
      default: return channel_shuffle{number()};
    }
  }
};

}  // namespace

TEST_CASE("operators that contradict their operands throw, and results have the shape that was asked for") {
  source s{std::mt19937(11)};
  int evaluated = 0;
  int refused = 0;
  for (int i = 0; i < 60000; ++i) {
    const std::size_t rank = s.random() % 6;
    std::vector<tensor_value> inputs;
    for (std::size_t k = 1 + s.random() % 3; k > 0; --k) inputs.push_back(s.random() % 20 == 0 ? tensor_value{} : s.value(s.random() % 4 == 0 ? s.random() % 4 : rank));
    shape out = s.random() % 3 != 0 && inputs[0].present() ? inputs[0].sizes : s.numbers(rank);
    if (!out.empty() && s.random() % 2 == 0) out[s.random() % out.size()] = s.number();
    const std::vector<shape> outputs(s.random() % 50 == 0 ? 2 : 1, out);
    try {
      const auto result = evaluate_node(s.op(rank), inputs, outputs, {}, {4096});
      REQUIRE(result.size() == 1);
      REQUIRE(result[0].sizes == out);
      const auto count = result[0].type() == element_type::f32 ? result[0].floats().size() : result[0].integers().size();
      REQUIRE(static_cast<std::int64_t>(count) == element_count(out));
      ++evaluated;
    } catch (const error& e) {
      REQUIRE((e.code() == error_code::mismatch || e.code() == error_code::capacity || e.code() == error_code::unsupported));
      REQUIRE_FALSE(e.place().empty());
      ++refused;
    }
  }
  CHECK(evaluated > 3000);
  CHECK(refused > 3000);
}
