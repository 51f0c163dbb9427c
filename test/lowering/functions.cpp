#include "raptor/lowering/functions.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "interpreter.hpp"

using namespace raptor;

namespace {
/// What `body(kernel, temporary that holds x, length)` makes of x; it returns the temporary with the result.
template <class Body>
std::vector<float> made_of(const std::vector<float>& x, const Body& body) {
  lowering::compute_graph g;
  const auto n = static_cast<std::int64_t>(x.size());
  lowering::value input{"x", {n}, layout::physical::dense, lowering::origin::input, {}};
  input.input = 0;
  const auto from = g.add_value(input), to = g.add_value({"y", {n}, layout::physical::dense, lowering::origin::computed, {}});
  lowering::kernel_builder k("power", {});
  const auto a = k.reads(from, {0}, {n}), y = k.writes(to, {0}, {n});
  const auto t = k.scratch("x", n);
  k.copy(k.in(t), k.at(a, {0}), n);
  const std::uint32_t result = body(k, t, n);
  k.copy(k.at(y, {0}), k.in(result), n);
  g.add_compute(k.take());
  test::interpreter machine(g, {model::make_value(shape{n}, x)});
  machine.run({});
  return machine.value(to);
}
/// x^exponent · scale by the kernel, with the domain [2^low, 2^high].
std::vector<float> powers(const std::vector<float>& x, double exponent, int low, int high, double scale = 1) {
  return made_of(x, [&](lowering::kernel_builder& k, std::uint32_t t, std::int64_t n) {
    const lowering::power_function power(k, exponent, low, high, 256, scale);
    const auto r = k.scratch("y", n);
    power.apply_all(k, r, t, n);
    return r;
  });
}
double worst(const std::vector<float>& x, double exponent, int low, int high, double scale = 1) {
  const auto y = powers(x, exponent, low, high, scale);
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    error = std::max(error, std::abs(static_cast<double>(y[i]) / (std::pow(static_cast<double>(x[i]), exponent) * scale) - 1));
  return error;
}
/// Many points of [2^low, 2^high], powers of two and their neighbours included.
std::vector<float> domain(int low, int high) {
  std::vector<float> x;
  for (int e = low; e <= high; ++e) {
    x.push_back(std::ldexp(1.0F, e));
    if (e > low) x.push_back(std::nextafter(x.back(), 0.0F));
    if (e == high) break;
    x.push_back(std::nextafter(std::ldexp(1.0F, e), std::numeric_limits<float>::max()));
    for (int i = 1; i < 64; ++i) x.push_back(std::ldexp(1.0F + static_cast<float>(i) / 64.0F, e));
  }
  return x;
}
}  // namespace

TEST_CASE("powers: relative error below 2e-6 from 2^-20 to 2^20") {
  for (const double exponent : {-0.75, -0.5, -1.0, 0.5, 0.75, 1.0, 2.0, -2.0, 0.0, -0.1, 1.0 / 3, 3.0, -3.0}) {
    CAPTURE(exponent);
    CHECK(worst(domain(-20, 20), exponent, -20, 20) < 2e-6);
  }
}

TEST_CASE("powers: other domains and scales") {
  for (const double exponent : {-0.75, 0.5, -1.0, 1.7}) {
    CAPTURE(exponent);
    CHECK(worst(domain(0, 31), exponent, 0, 31) < 2e-6);
    CHECK(worst(domain(0, 63), exponent, 0, 63, 0.5) < 2e-6);
    CHECK(worst(domain(-3, -3), exponent, -3, -3) < 2e-6);
    CHECK(worst(domain(0, 1), exponent, 0, 1, 3) < 2e-6);
    CHECK(worst(domain(-40, 10), exponent, -40, 10, 100) < 2e-6);
  }
}

TEST_CASE("powers: arguments beyond the domain are clamped, NaN stays") {
  const auto y = powers({0.0F, -5.0F, 1e-30F, 1e30F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}, -1, -20, 20);
  CHECK(y[0] == doctest::Approx(1048576));
  CHECK(y[1] == doctest::Approx(1048576));
  CHECK(y[2] == doctest::Approx(1048576));
  CHECK(y[3] <= 1.0F / 1048576);
  CHECK(y[3] > 0);
  CHECK(y[4] == y[3]);
  CHECK(std::isnan(y[5]));
}

TEST_CASE("falling powers: relative error below 3e-6 while 1 + a s is below 2^20, larger arguments are clamped, NaN stays") {
  for (const double beta : {0.5, 0.6, 0.75, 1.0})
    for (const double a : {0.1, 2e-5, 0x1p-40})
      for (const double scale : {1.0, 0x1p-40, 2.0}) {
        CAPTURE(beta);
        CAPTURE(a);
        CAPTURE(scale);
        REQUIRE(lowering::falling_power::fits(a, beta, scale));
        auto x = domain(0, lowering::falling_power::high);
        for (auto& s : x) s = static_cast<float>((s - 1) / a);
        const auto count = x.size();
        x.insert(x.end(), {1e30F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()});
        const auto result = made_of(x, [&](lowering::kernel_builder& k, std::uint32_t t, std::int64_t n) {
          lowering::falling_power(k, a, beta, n, scale).apply(k, k.in(t), k.in(t), n);
          return t;
        });
        double error = 0;
        for (std::size_t i = 0; i < count; ++i)
          error = std::max(error, std::abs(double{result[i]} / (std::pow(1 + a * double{x[i]}, -beta) * scale) - 1));
        CHECK(error < 3e-6);
        CHECK(double{result[count]} == doctest::Approx(std::exp2(-20 * beta) * scale).epsilon(3e-6));
        CHECK(result[count + 1] == result[count]);
        CHECK(std::isnan(result[count + 2]));
      }
  const auto fits = lowering::falling_power::fits;
  CHECK_FALSE(fits(0, 0.75, 1));
  CHECK_FALSE(fits(0x1p60, 0.75, 1));
  CHECK_FALSE(fits(0x1p-110, 0.75, 1));
  CHECK_FALSE(fits(1, 0.25, 1));
  CHECK_FALSE(fits(1, 1.25, 1));
  CHECK_FALSE(fits(1, 0.75, 0));
  CHECK_FALSE(fits(1, 0.75, 0x1p60));
  CHECK_FALSE(fits(1, std::nan(""), 1));
}

TEST_CASE("powers: what does not fit floats is refused") {
  lowering::kernel_builder k("power", {});
  CHECK_THROWS_AS(lowering::power_function(k, 9, -1, 1, 16), error);
  CHECK_THROWS_AS(lowering::power_function(k, 7, -20, 20, 16), error);
  CHECK_THROWS_AS(lowering::power_function(k, std::nan(""), 0, 1, 16), error);
  CHECK_THROWS_AS(lowering::power_function(k, 1, 0, 64, 16), error);
  CHECK_THROWS_AS(lowering::power_function(k, 1, 0, 1, 16, 0.0), error);
}

TEST_CASE("falling exponentials: relative error below 1e-6 from -87 to 0") {
  lowering::compute_graph g;
  std::vector<float> x{0, -0.0F, -1e-30F, -87, -88, -1000, -std::numeric_limits<float>::infinity(), std::nanf("")};
  const std::size_t special = x.size();
  for (int i = 0; i <= 20000; ++i) x.push_back(-87.0F * static_cast<float>(i) / 20000.0F);
  for (int i = 0; i < 2000; ++i) x.push_back(-std::ldexp(1.0F, -20) * static_cast<float>(i));
  const auto n = static_cast<std::int64_t>(x.size());
  lowering::value input{"x", {n}, layout::physical::dense, lowering::origin::input, {}};
  input.input = 0;
  const auto from = g.add_value(input), to = g.add_value({"y", {n}, layout::physical::dense, lowering::origin::computed, {}});
  lowering::kernel_builder k("exponential", {});
  const auto a = k.reads(from, {0}, {n}), y = k.writes(to, {0}, {n});
  const lowering::falling_exponential exponential(k, 256);
  const auto t = k.scratch("x", n);
  k.copy(k.in(t), k.at(a, {0}), n);
  exponential.apply_all(k, t, n);
  k.copy(k.at(y, {0}), k.in(t), n);
  g.add_compute(k.take());
  test::interpreter machine(g, {model::make_value(shape{n}, x)});
  machine.run({});
  const auto values = machine.value(to);
  double error = 0;
  for (std::size_t i = special; i < x.size(); ++i) error = std::max(error, std::abs(double{values[i]} / std::exp(double{x[i]}) - 1));
  CHECK(error < 1e-6);
  CHECK(values[0] == doctest::Approx(1).epsilon(1e-6));
  CHECK(values[2] == doctest::Approx(1).epsilon(1e-6));
  CHECK(values[4] == values[3]);
  CHECK(values[6] == values[3]);
  CHECK(std::isnan(values[7]));
}
