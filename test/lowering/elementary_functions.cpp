#include "raptor/lowering/elementary_functions.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "one_node.hpp"
#include "raptor/lowering/elementwise.hpp"

using namespace raptor;
using namespace raptor::test;
using model::unary;
using model::unary_kind;

namespace {

/// The function's values for given arguments, as the computes give them.
std::vector<float> values_of(const unary& op, std::vector<float> arguments) {
  const auto count = static_cast<std::int64_t>(arguments.size());
  one_node node(op, {given({count})}, {count}, dense);
  node.inputs = {model::make_value({count}, std::move(arguments))};
  interpreter machine(node.computes, node.inputs);
  machine.run({1 << 20, false, 0});
  return machine.value(node.result);
}
/// `count` arguments, evenly spaced in their logarithms.
std::vector<float> powers(double low, double high, int count = 20000) {
  std::vector<float> x;
  for (int i = 0; i <= count; ++i) x.push_back(static_cast<float>(low * std::pow(high / low, i / static_cast<double>(count))));
  return x;
}
std::vector<float> evenly(double low, double high, int count = 20000) {
  std::vector<float> x;
  for (int i = 0; i <= count; ++i) x.push_back(static_cast<float>(low + (high - low) * i / count));
  return x;
}
using exact = std::function<double(double)>;
/// Largest |value − exact| / max(|exact|, least).
double worst(const unary& op, const std::vector<float>& x, const exact& f, double least = 0) {
  const auto y = values_of(op, x);
  double result = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = f(double{x[i]});
    const double off = std::abs(double{y[i]} - expected), scale = std::max(std::abs(expected), least);
    if (off != 0) result = std::max(result, scale == 0 ? std::numeric_limits<double>::infinity() : off / scale);
    if (!std::isfinite(y[i])) return std::numeric_limits<double>::infinity();
  }
  return result;
}
std::vector<float> negated(std::vector<float> x) {
  for (auto& v : x) v = -v;
  return x;
}

}  // namespace

TEST_CASE("elementary functions keep their documented bounds over their domains") {
  const exact exponential = [](double x) { return std::exp(x); }, minus_one = [](double x) { return std::expm1(x); };
  CHECK(worst({unary_kind::exponential}, evenly(-87, 88), exponential) < 4e-5);
  CHECK(worst({unary_kind::exponential_minus_one}, evenly(-87, 0), minus_one) < 1e-6);
  CHECK(worst({unary_kind::exponential_minus_one}, negated(powers(1e-12, 1)), minus_one) < 1e-6);
  CHECK(worst({unary_kind::exponential_minus_one}, evenly(0, 88), minus_one) < 4e-5);
  const exact logarithm = [](double x) { return std::log(x); };
  CHECK(worst({unary_kind::logarithm}, powers(0x1p-31, 0x1p31), logarithm, 1) < 5e-7);
  CHECK(worst({unary_kind::logarithm}, evenly(0.5, 2), logarithm, 1) < 5e-7);
  const exact root = [](double x) { return std::sqrt(x); };
  CHECK(worst({unary_kind::square_root}, powers(0x1p-32, 0x1p31), root) < 3e-6);
  CHECK(worst({unary_kind::square_root}, powers(1e-30, 0x1p-32), root, 1) < 4e-6);
  const exact reciprocal = [](double x) { return 1 / x; };
  CHECK(worst({unary_kind::reciprocal}, powers(0x1p-31, 0x1p31), reciprocal) < 3e-6);
  CHECK(worst({unary_kind::reciprocal}, negated(powers(0x1p-31, 0x1p31)), reciprocal) < 3e-6);
  for (const float e : {0.25F, 0.5F, 1.5F, 2.5F, 3.75F, 7.3F, -0.25F, -0.5F, -0.75F})
    CHECK(worst({unary_kind::power, e}, powers(0x1p-15, 0x1p15), [e](double x) { return std::pow(x, double{e}); }) < 4e-6);
  CHECK(worst({unary_kind::power, -2.5F}, powers(0x1p-20, 0x1p20), [](double x) { return std::pow(x, -2.5); }) < 4e-6);
  const exact error_function = [](double x) { return std::erf(x); };
  CHECK(worst({unary_kind::error_function}, evenly(-6, 6), error_function) < 1e-6);
  CHECK(worst({unary_kind::error_function}, powers(1e-20, 100), error_function) < 1e-6);
  CHECK(worst({unary_kind::softplus}, evenly(-50, 50), [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, 1) < 4e-7);
}

TEST_CASE("zero stays what it is") {
  for (const auto kind : {unary_kind::square_root, unary_kind::error_function, unary_kind::exponential_minus_one, unary_kind::sign, unary_kind::floor, unary_kind::round})
    CHECK(values_of({kind}, {0.0F}).at(0) == 0);
  CHECK(values_of({unary_kind::power, 2.5F}, {0.0F}).at(0) == 0);
  CHECK(values_of({unary_kind::exponential}, {0.0F}).at(0) == 1);
}

TEST_CASE("arguments beyond the domain give finite results") {
  for (const auto& op : {unary{unary_kind::exponential}, {unary_kind::exponential_minus_one}, {unary_kind::reciprocal}})
    for (const auto v : values_of(op, {-1e30F, 1e30F, 0.0F, -0.0F})) CHECK(std::isfinite(v));
  CHECK(std::isfinite(values_of({unary_kind::logarithm}, {0.0F}).at(0)));
}

TEST_CASE("roots, logarithms and fractional powers of negative numbers are NaN") {
  for (const auto& op : {unary{unary_kind::logarithm}, {unary_kind::square_root}, {unary_kind::power, 0.3F}, {unary_kind::power, -0.5F}})
    for (const auto v : values_of(op, {-1e30F, -1.0F, -1e-37F})) CHECK(std::isnan(v));
}

TEST_CASE("sign, floor and round are exact") {
  std::vector<float> x{0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 0.49999997F, -0.49999997F, 1e-38F, -1e-38F, 1e-44F, 4194303.5F, 4194304.5F, 4194305.5F, 8388606.5F,
                       8388607.5F, 8388608.0F, 8388609.0F, -8388607.5F, 16777215.0F, 1.5e9F, -3e20F, 140737521909760.0F, 1e38F, -2147483648.0F, 1.0F, -1.0F};
  for (const auto v : noise(4000, 5, 100)) x.push_back(v);
  for (const auto v : noise(4000, 6, 1e7F)) x.push_back(v);
  const auto sign = values_of({unary_kind::sign}, x), floor = values_of({unary_kind::floor}, x), round = values_of({unary_kind::round}, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    CHECK(sign[i] == (x[i] > 0 ? 1.0F : -1.0F));
    CHECK(floor[i] == std::floor(x[i]));
    CHECK(round[i] == std::nearbyint(x[i]));
  }
}

TEST_CASE("elementary functions in every tiling and layout") {
  for (const auto kind : {unary_kind::exponential, unary_kind::error_function, unary_kind::softplus, unary_kind::round}) {
    for (const shape& sizes : {shape{}, shape{7}, shape{2, 3, 4, 5}, shape{2, 1100}, shape{2, 0, 3}}) CHECK(error_of(unary{kind}, {given(sizes)}, sizes, dense) <= 4e-5);
    for (const shape& sizes : {shape{1, 3, 4, 5}, shape{1, 100, 2, 60}}) CHECK(error_of(unary{kind}, {given(sizes)}, sizes, rows) <= 4e-5);
  }
  CHECK_THROWS_AS(one_node(unary{unary_kind::power, 1e9F}, {given({2})}, {2}, dense), error);
}
