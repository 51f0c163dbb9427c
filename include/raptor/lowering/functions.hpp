#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/pieces.hpp"

/// Functions that the instruction set has no instruction for, built from vector instructions.
namespace raptor::lowering {

namespace detail {

/// Interpolation at the Chebyshev points of [low, up] by Newton's divided differences, in powers of x. Cost: O(degree²).
template <class F>
[[nodiscard]] std::vector<double> interpolate(const F& f, double low, double up, int degree) {
  const auto points = static_cast<std::size_t>(degree) + 1;
  std::vector<double> x(points), difference(points);
  for (std::size_t i = 0; i < points; ++i) {
    x[i] = (low + up) / 2 + (up - low) / 2 * std::cos(std::numbers::pi * (2 * static_cast<double>(i) + 1) / (2 * static_cast<double>(points)));
    difference[i] = f(x[i]);
  }
  for (std::size_t order = 1; order < points; ++order)
    for (std::size_t i = points; i-- > order;) difference[i] = (difference[i] - difference[i - 1]) / (x[i] - x[i - order]);
  std::vector<double> powers{difference.back()};
  for (std::size_t i = points - 1; i-- > 0;) {  // powers · (x − x[i]) + difference[i]
    powers.push_back(0);
    for (std::size_t c = powers.size(); c-- > 0;) powers[c] = (c > 0 ? powers[c - 1] : 0) - x[i] * (c + 1 < powers.size() ? powers[c] : 0);
    powers[0] += difference[i];
  }
  return powers;
}

}  // namespace detail

/// e^x for x ≤ 0: sigmoid(x) / sigmoid(−x), where the divisor lies in [1/2, 1] and its reciprocal is a polynomial. Arguments below −87 count as −87,
/// NaN stays NaN. Error: relative, below 1e-6 (tested over the whole domain). Cost: 27 instructions for `chunk` elements.
class falling_exponential {
 public:
  /// Declares the constants, filled once a core.
  falling_exponential(kernel_builder& k, std::int64_t chunk) : chunk_(chunk) {
    for (const auto coefficient : coefficients()) coefficients_.push_back(filled(k, "coefficient", static_cast<float>(coefficient), chunk));
    minus_one_ = filled(k, "minus_one", -1, chunk);
    middle_ = filled(k, "middle", 0.75F, chunk);
    u_ = k.scratch("divisor", chunk), t_ = k.scratch("reciprocal", chunk);
  }
  /// Appends d = e^a for `length` ≤ chunk elements; d may be a.
  void apply(kernel_builder& k, const operand& d, const operand& a, std::int64_t length) const {
    using isa::opcode;
    ensure(length <= chunk_, "exponential of more elements than a chunk");
    const auto u = k.in(u_), t = k.in(t_);
    k.clamp(opcode::vrsl, d, a, -87, length);
    k.vector(opcode::vvmul, u, d, k.in(minus_one_), length);
    k.vector(opcode::vsigm, u, u, length);
    k.vector(opcode::vvsub, u, u, k.in(middle_), length);
    k.vector(opcode::vvmul, t, u, k.in(coefficients_.back()), length);
    for (std::size_t i = coefficients_.size() - 1; i-- > 0;) {
      k.vector(opcode::vvadd, t, t, k.in(coefficients_[i]), length);
      if (i > 0) k.vector(opcode::vvmul, t, t, u, length);
    }
    k.vector(opcode::vsigm, d, d, length);
    k.vector(opcode::vvmul, d, d, t, length);
  }
  /// The same in place for `length` elements of a temporary, in chunks.
  void apply_all(kernel_builder& k, std::uint32_t in_place, std::int64_t length) const {
    k.loop(length / chunk_, [&](const affine& i) { apply(k, k.in(in_place, i * chunk_), k.in(in_place, i * chunk_), chunk_); });
    const auto done = length / chunk_ * chunk_;
    if (done != length) apply(k, k.in(in_place, done), k.in(in_place, done), length - done);
  }
  /// Of the polynomial in u − 3/4 that approximates 1 / u on [1/2, 1], lowest degree first: 2 · Σ (−q)^i · Tᵢ in Chebyshev polynomials of
  /// (u − 3/4) / (1/4), expanded in powers.
  [[nodiscard]] static std::vector<double> coefficients() {
    // 1 / (3 + x) = (Σ' (−q)^i Tᵢ(x)) · 2 / √8 with q = 3 − √8, for x = 4 u − 3, and 1 / u = 4 / (3 + x).
    constexpr int degree = 10;
    const double root = std::sqrt(8.0), q = 3 - root;
    std::vector<double> sum(degree + 1, 0.0), before(degree + 1, 0.0), now(degree + 1, 0.0);
    before[0] = 1, now[1] = 1;
    const auto add = [&](const std::vector<double>& t, double factor) {
      for (std::size_t i = 0; i < t.size(); ++i) sum[i] += factor * t[i];
    };
    add(before, 4 / root);
    double weight = -q;
    for (int i = 1; i <= degree; ++i, weight *= -q) {
      add(now, 8 / root * weight);
      std::vector<double> next(degree + 1, 0.0);
      for (std::size_t p = 0; p <= degree; ++p) next[p] = (p > 0 ? 2 * now[p - 1] : 0) - before[p];
      before = std::exchange(now, std::move(next));
    }
    double power = 1;
    for (auto& coefficient : sum) {  // of x = 4 (u − 3/4)
      coefficient *= power;
      power *= 4;
    }
    return sum;
  }

 private:
  std::int64_t chunk_;
  std::uint32_t minus_one_ = 0, middle_ = 0, u_ = 0, t_ = 0;
  std::vector<std::uint32_t> coefficients_;
};

/// (1 + a · s)^(−beta) · scale for s ≥ 0, element-wise, while u = 1 + a · s stays below 2^20; larger arguments count as 2^20, NaN stays NaN.
///
/// N, the greatest of three tangents to −ln u, is a first −ln u. Then v = u · e^N lies in (0, 1], and a tangent to −ln v improves N, twice.
/// The result is e^(beta · N) times a quadratic polynomial of the last v. e^N is sigmoid(N) for N ≤ −16, so N is kept that much too small, and constant
/// factors take it back. The constants also hold a: the vectors are s + 1 / a for u, and with it v.
///
/// Requires: fits(a, beta, scale). Error: relative, below 3e-6 (tested over the whole domain). Cost: 27 instructions for `chunk` elements.
class falling_power {
 public:
  static constexpr int high = 20;  ///< of the domain

  /// Whether everything the instructions meet is a normal float.
  [[nodiscard]] static bool fits(double a, double beta, double scale) {
    const auto normal = [](double x) { return std::abs(x) >= 0x1p-100 && std::abs(x) <= 0x1p120; };
    if (!(a > 0) || !normal(a) || !(beta >= 0.5) || !(beta <= 1) || !(scale > 0)) return false;  // NaN too
    const auto d = design(a, beta, scale);
    // A slope is about the reciprocal of the v that it meets.
    return std::all_of(d.improve.begin(), d.improve.end(), [](double x) { return std::abs(x) >= 0x1p-60 && std::abs(x) <= 0x1p100; }) &&
           std::all_of(d.finish.begin(), d.finish.end(), normal);
  }
  /// Declares the constants, filled once a core.
  falling_power(kernel_builder& k, double a, double beta, std::int64_t chunk, double scale = 1) : chunk_(chunk) {
    ensure(fits(a, beta, scale), "falling power beyond its range");
    const auto d = design(a, beta, scale);
    const auto constant = [&](double x) { return filled(k, "coefficient", static_cast<float>(x), chunk); };
    top_ = static_cast<float>((std::ldexp(1.0, high) - 1) / a);
    unit_ = constant(1 / a);
    for (const auto& [slope, offset] : d.lines) lines_.push_back({constant(slope), constant(offset)});
    for (const auto slope : d.improve) improve_.push_back(constant(slope));
    for (std::size_t i = 0; i < finish_.size(); ++i) finish_[i] = constant(d.finish[i]);
    beta_ = constant(beta);
    logarithm_ = k.scratch("logarithm", chunk), step_ = k.scratch("step", chunk), rest_ = k.scratch("rest", chunk);
  }

  /// Appends d = (1 + a · s)^(−beta) · scale for `length` ≤ chunk elements of a temporary s, which is overwritten; d may be s.
  void apply(kernel_builder& k, const operand& d, const operand& s, const affine& length) const {
    using isa::opcode;
    ensure(!length.is_constant() || length.constant() <= chunk_, "power of more elements than a chunk");
    const auto n = k.in(logarithm_), t = k.in(step_), v = k.in(rest_);
    k.clamp(opcode::vrsu, s, s, top_, length);
    k.vector(opcode::vvadd, s, s, k.in(unit_), length);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto to = i == 0 ? n : t;
      k.vector(opcode::vvmul, to, s, k.in(lines_[i][0]), length);
      k.vector(opcode::vvadd, to, to, k.in(lines_[i][1]), length);
      if (i > 0) k.vector(opcode::vvmax, n, n, t, length);
    }
    const auto rest = [&] {
      k.vector(opcode::vsigm, v, n, length);
      k.vector(opcode::vvmul, v, v, s, length);
    };
    rest();
    for (const auto slope : improve_) {
      k.vector(opcode::vvmul, t, v, k.in(slope), length);
      k.vector(opcode::vvadd, n, n, t, length);
      rest();
    }
    k.vector(opcode::vvmul, n, n, k.in(beta_), length);
    k.vector(opcode::vsigm, n, n, length);
    k.vector(opcode::vvmul, t, v, k.in(finish_[2]), length);
    k.vector(opcode::vvadd, t, t, k.in(finish_[1]), length);
    k.vector(opcode::vvmul, t, t, v, length);
    k.vector(opcode::vvadd, t, t, k.in(finish_[0]), length);
    k.vector(opcode::vvmul, d, t, n, length);
  }

  /// The numbers behind it, for s + 1 / a and v as the vectors hold them.
  struct parameters {
    std::vector<std::array<double, 2>> lines;  ///< slope, offset
    std::vector<double> improve;               ///< slopes; the offsets are in `lines`
    std::array<double, 3> finish{};            ///< lowest degree first
  };
  [[nodiscard]] static parameters design(double a, double beta, double scale) {
    constexpr int tangents = 3, improvements = 2;  // the least work for this error
    parameters d;
    // The tangent at p, 1 − ln p − u / p, gives v = r · e^(1 − r) with r = u / p: 1 at r = 1 and less elsewhere. All ln v lie above −width where
    // each tangent serves from the lower to the upper r with ln v = −width.
    const auto bisect = [](double low, double up, const auto& below) {
      for (int i = 0; i < 100; ++i) (below((low + up) / 2) ? low : up) = (low + up) / 2;
      return (low + up) / 2;
    };
    const auto logarithm = [](double r) { return std::log(r) + 1 - r; };
    const auto first = [&](double width) { return bisect(1e-12, 1, [&](double r) { return logarithm(r) < -width; }); };
    const auto last = [&](double width) { return bisect(1, 1e3, [&](double r) { return logarithm(r) > -width; }); };
    const double width = bisect(0, 20, [&](double w) { return tangents * std::log(last(w) / first(w)) < high * std::numbers::ln2; });
    double below = 16 / beta;  // by how much N is too small
    double p = 1 / first(width);
    for (int i = 0; i < tangents; ++i, p *= last(width) / first(width)) d.lines.push_back({-a / p, 1 - std::log(p) - below});
    // The tangent to −ln v at 1 / m is 1 + ln m − m · v. The new v, m · v · e^(1 − m · v), is at most 1, and as small at both ends of [low, 1].
    double low = std::exp(-width);
    const auto held = [&] { return a * std::exp(below); };  // v over what the vector holds
    for (int i = 0; i < improvements; ++i) {
      const double m = -std::log(low) / (1 - low);
      d.improve.push_back(-m * held());
      below += 1 + std::log(m);
      low = m * std::exp(1 - m);
    }
    const auto power = detail::interpolate([&](double v) { return std::pow(v, -beta); }, low, 1, 2);
    const double lift = scale * std::exp(beta * below);
    d.finish = {power[0] * lift, power[1] * held() * lift, power[2] * held() * held() * lift};
    return d;
  }

 private:
  std::int64_t chunk_;
  float top_ = 0;
  std::vector<std::array<std::uint32_t, 2>> lines_;  ///< slope, offset
  std::vector<std::uint32_t> improve_;
  std::array<std::uint32_t, 3> finish_{};  ///< lowest degree first
  std::uint32_t unit_ = 0, beta_ = 0, logarithm_ = 0, step_ = 0, rest_ = 0;
};

/// u^exponent · scale for u in [2^low, 2^high], element-wise.
///
/// The instruction set gives no access to exponents, so the argument is reduced by comparisons: for s = …, 4, 2, 1 the step
/// t = clamp(u · 2^(24−s) − (2^24 − 1), 0, 1) is exactly 1 where u ≥ 2^s and exactly 0 below, and u becomes u · (t · 2^-s + 1 − t), which
/// is exact, while the result gets a factor of t · 2^(s · exponent) + 1 − t. What is left lies in [1, 2), where a polynomial of
/// the power (interpolated at Chebyshev points) takes over.
///
/// Requires: |exponent| ≤ 8, high − low ≤ 63, |exponent| · (high − low) ≤ 120, so that all factors are normal floats, and
/// scale · 2^(low · exponent) between 2^-120 and 2^120. Other arguments are clamped to the domain. Error: relative, below 2e-6 (tested over the whole domain; about 1e-6 is reached). NaN stays NaN.
/// Cost: 11 instructions for each of log2(high − low) steps and 2 for each of about 10 coefficients, in chunks of `chunk` elements.
class power_function {
 public:
  /// Declares the constants, filled once a core. Errors: unsupported, beyond what is required above.
  power_function(kernel_builder& k, double exponent, int low, int high, std::int64_t chunk, double scale = 1, const std::string& place = {})
      : chunk_(chunk), low_(low), high_(high) {
    const bool fits = std::abs(exponent) <= 8 && low <= high && high - low <= 63 && std::abs(exponent) * (high - low) <= 120 &&
                      std::abs(std::log2(std::abs(scale)) + low * exponent) <= 120;  // false for NaN
    if (!fits)
      throw error(error_code::unsupported, "power with exponent " + std::to_string(exponent) + " beyond the range of the vector unit", place);
    int first = 1;
    while (2 * first - 1 < high - low) first *= 2;
    if (low != 0) lift_ = filled(k, "lift", std::ldexp(1.0F, -low), chunk);
    one_ = filled(k, "one", 1, chunk);
    below_ = filled(k, "below", 16777215, chunk);  // 2^24 − 1
    for (int s = first; s >= 1; s /= 2)
      steps_.push_back({filled(k, "threshold", std::ldexp(1.0F, 24 - s), chunk), filled(k, "reduce", std::ldexp(1.0F, -s), chunk),
                        filled(k, "factor", static_cast<float>(std::exp2(s * exponent)), chunk)});
    middle_ = filled(k, "middle", 1.5F, chunk);
    for (const auto coefficient : coefficients(exponent)) coefficients_.push_back(filled(k, "coefficient", static_cast<float>(coefficient * scale * std::exp2(low * exponent)), chunk));
    u_ = k.scratch("argument", chunk), t_ = k.scratch("step", chunk), other_ = k.scratch("complement", chunk), factor_ = k.scratch("change", chunk);
    result_ = k.scratch("power", chunk);
  }

  /// Appends d = a^exponent · scale for `length` ≤ chunk elements; d may be a.
  void apply(kernel_builder& k, const operand& d, const operand& a, const affine& length) const {
    using isa::opcode;
    ensure(!length.is_constant() || length.constant() <= chunk_, "power of more elements than a chunk");
    const auto u = k.in(u_), t = k.in(t_), other = k.in(other_), factor = k.in(factor_), result = k.in(result_);
    const auto constant = [&](std::uint32_t c) { return k.in(c); };
    // Largest float below 2^(high + 1) at most, and what the steps can reduce.
    const int top = std::min(high_ - low_, (1 << steps_.size()) - 1);
    k.clamp(opcode::vrsl, u, a, std::ldexp(1.0F, low_), length);
    if (low_ != 0) k.vector(opcode::vvmul, u, u, constant(lift_), length);
    k.clamp(opcode::vrsu, u, u, std::nextafter(std::ldexp(1.0F, top + 1), 0.0F), length);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const auto& s = steps_[i];
      k.vector(opcode::vvmul, t, u, constant(s[0]), length);
      k.vector(opcode::vvsub, t, t, constant(below_), length);
      k.clamp(opcode::vrsl, t, t, 0, length);
      k.clamp(opcode::vrsu, t, t, 1, length);
      k.vector(opcode::vvsub, other, constant(one_), t, length);
      k.vector(opcode::vvmul, factor, t, constant(s[1]), length);
      k.vector(opcode::vvadd, factor, factor, other, length);
      k.vector(opcode::vvmul, u, u, factor, length);
      k.vector(opcode::vvmul, t, t, constant(s[2]), length);
      if (i == 0) {
        k.vector(opcode::vvadd, result, t, other, length);
      } else {
        k.vector(opcode::vvadd, t, t, other, length);
        k.vector(opcode::vvmul, result, result, t, length);
      }
    }
    k.vector(opcode::vvsub, u, u, constant(middle_), length);
    k.vector(opcode::vvmul, t, u, constant(coefficients_.back()), length);
    for (std::size_t i = coefficients_.size() - 1; i-- > 0;) {
      k.vector(opcode::vvadd, t, t, constant(coefficients_[i]), length);
      if (i > 0) k.vector(opcode::vvmul, t, t, u, length);
    }
    k.vector(opcode::vvmul, d, result, t, length);
  }
  /// The same for `length` elements from two temporaries' offsets on, in chunks.
  void apply_all(kernel_builder& k, std::uint32_t d, std::uint32_t a, std::int64_t length) const {
    k.loop(length / chunk_, [&](const affine& i) { apply(k, k.in(d, i * chunk_), k.in(a, i * chunk_), chunk_); });
    const auto done = length / chunk_ * chunk_;
    if (done != length) apply(k, k.in(d, done), k.in(a, done), length - done);
  }

  /// Coefficients of the polynomial in (u − 1.5) that approximates u^exponent on [1, 2], lowest degree first: the smallest degree whose
  /// relative error is below 2^-27, and at least 1.
  [[nodiscard]] static std::vector<double> coefficients(double exponent) {
    std::vector<double> best;
    for (int degree = 1; degree <= 24; ++degree) {
      best = detail::interpolate([&](double x) { return std::pow(1.5 + x, exponent); }, -0.5, 0.5, degree);  // of u − 1.5
      double worst = 0;
      for (int i = 0; i <= 512; ++i) {
        const double x = -0.5 + i / 512.0;
        double sum = 0;
        for (std::size_t c = best.size(); c-- > 0;) sum = sum * x + best[c];
        worst = std::max(worst, std::abs(sum / std::pow(1.5 + x, exponent) - 1));
      }
      if (worst < 7.4e-9) break;
    }
    return best;
  }

 private:
  std::int64_t chunk_;
  int low_, high_;
  std::uint32_t lift_ = 0, one_ = 0, below_ = 0, middle_ = 0, u_ = 0, t_ = 0, other_ = 0, factor_ = 0, result_ = 0;
  std::vector<std::array<std::uint32_t, 3>> steps_;
  std::vector<std::uint32_t> coefficients_;
};

}  // namespace raptor::lowering
