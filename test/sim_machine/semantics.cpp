#include "raptor/sim/semantics.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace {

using namespace raptor::sim;
using raptor::isa::opcode;

constexpr bool near(double a, double b, double tolerance) { return a - b <= tolerance && b - a <= tolerance; }

static_assert(element<opcode::vvadd>(1.5f, 2.0f) == 3.5f);
static_assert(element<opcode::vvsub>(1.5f, 2.0f) == -0.5f);
static_assert(element<opcode::vvmul>(1.5f, 2.0f) == 3.0f);
static_assert(element<opcode::vvmax>(1.5f, 2.0f) == 2.0f && element<opcode::vvmax>(2.0f, 1.5f) == 2.0f);
static_assert(element<opcode::vrsu>(1.5f, 2.0f) == 1.5f && element<opcode::vrsu>(2.5f, 2.0f) == 2.0f);
static_assert(element<opcode::vrsl>(1.5f, 2.0f) == 2.0f && element<opcode::vrsl>(2.5f, 2.0f) == 2.5f);
static_assert(element<opcode::vrelu>(-3.0f) == 0.0f && element<opcode::vrelu>(3.0f) == 3.0f);
static_assert(near(static_cast<double>(element<opcode::vsigm>(0.0f)), 0.5, 0));
static_assert(near(static_cast<double>(element<opcode::vtanh>(1.0f)), 0.76159415595576, 1e-7));

// A NaN is kept by every clamp, on either side.
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr bool is_nan(float x) { return x != x; }
static_assert(is_nan(element<opcode::vrelu>(nan)) && is_nan(element<opcode::vrsu>(nan, 1.0f)) && is_nan(element<opcode::vrsl>(nan, 1.0f)));
static_assert(is_nan(element<opcode::vvmax>(nan, 1.0f)) && is_nan(element<opcode::vvmax>(1.0f, nan)));

static_assert(judge_wait(1, 2) == wait_state::blocks && judge_wait(2, 2) == wait_state::passes &&
              judge_wait(3, 2) == wait_state::overshoots && judge_wait(0, 0) == wait_state::passes);

static_assert(is_communication(opcode::send) && !is_communication(opcode::ld));

// The functions at compile time, against the library at run time.
constexpr std::array arguments{-800.0, -100.0, -20.5, -3.0, -1.0, -0.3, -1e-3, -1e-5, 0.0, 1e-6, 0.2, 0.9, 2.0, 7.7, 33.0, 300.0};
constexpr auto exponentials = [] {
  std::array<double, arguments.size()> y{};
  for (std::size_t k = 0; k < y.size(); ++k) y[k] = constexpr_math::exp(arguments[k]);
  return y;
}();
constexpr auto tangents = [] {
  std::array<double, arguments.size()> y{};
  for (std::size_t k = 0; k < y.size(); ++k) y[k] = constexpr_math::tanh(arguments[k]);
  return y;
}();
static_assert(constexpr_math::exp(1000.0) == std::numeric_limits<double>::infinity());

TEST_CASE("elementary functions agree with the library's") {
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    CAPTURE(arguments[k]);
    CHECK(std::abs(exponentials[k] - std::exp(arguments[k])) <= 1e-13 * std::exp(arguments[k]));
    CHECK(std::abs(tangents[k] - std::tanh(arguments[k])) <= 1e-11 * std::abs(std::tanh(arguments[k])));
    CHECK(constexpr_math::exp(arguments[k]) == std::exp(arguments[k]));  // at run time it is the library's
  }
}

TEST_CASE("sigmoid does not overflow at either end") {
  CHECK(element<opcode::vsigm>(-1000.0f) == 0.0f);
  CHECK(element<opcode::vsigm>(1000.0f) == 1.0f);
  for (float x = -20.0f; x < 20.0f; x += 0.37f)
    CHECK(element<opcode::vsigm>(x) == doctest::Approx(1.0 / (1.0 + std::exp(-static_cast<double>(x)))));
}

TEST_CASE("every fault has words of its own") {
  for (int a = 0; a <= static_cast<int>(fault::overshoot); ++a)
    for (int b = 0; b < a; ++b) CHECK(describe(static_cast<fault>(a)) != describe(static_cast<fault>(b)));
}

}  // namespace
