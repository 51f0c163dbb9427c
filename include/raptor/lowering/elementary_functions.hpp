#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/functions.hpp"
#include "raptor/model/operators.hpp"

/// Elementary functions of one computed operand, from vector instructions alone.
namespace raptor::lowering {

/// Chebyshev interpolation of f on [middle − half, middle + half]: coefficients in (x − middle) / half, lowest degree first.
template <class F>
[[nodiscard]] std::vector<double> chebyshev_polynomial(const F& f, double middle, double half, int degree) {
  const auto points = static_cast<std::size_t>(degree) + 1;
  std::vector<double> x(points), difference(points);
  for (std::size_t i = 0; i < points; ++i) {
    x[i] = std::cos(std::numbers::pi * (2 * static_cast<double>(i) + 1) / (2 * static_cast<double>(points)));
    difference[i] = f(middle + half * x[i]);
  }
  // Newton's divided differences, expanded in powers.
  for (std::size_t order = 1; order < points; ++order)
    for (std::size_t i = points; i-- > order;) difference[i] = (difference[i] - difference[i - 1]) / (x[i] - x[i - order]);
  std::vector<double> powers{difference.back()};
  for (std::size_t i = points - 1; i-- > 0;) {
    powers.push_back(0);
    for (std::size_t p = powers.size(); p-- > 0;) powers[p] = (p > 0 ? powers[p - 1] : 0) - x[i] * (p + 1 < powers.size() ? powers[p] : 0);
    powers[0] += difference[i];
  }
  return powers;
}

/// The functions of model::unary that have no instruction. Domains (arguments beyond them are clamped, so that results stay finite) and
/// error bounds, which the tests measure over the whole domain:
///
/// | function | domain | error |
/// |---|---|---|
/// | exponential | [-87, 88] | relative 4e-5: (polynomial of x / 128)^128 |
/// | exponential_minus_one | [-87, 88] | relative 4e-5, for negative arguments 1e-6: q ← q · (q + 2) seven times |
/// | logarithm | [2^-31, 2^32) | 5e-7 · max(1, abs(log x)) absolute: exponent by comparisons, polynomial of the mantissa |
/// | square_root | [2^-32, 2^31], and 0; absolute error below 4e-6 under it | relative 3e-6: x · x^-0.5 |
/// | reciprocal | magnitudes [2^-31, 2^31]; 0 gives 0 | relative 3e-6: sign · abs(x)^-1 |
/// | power | positive, as power_function; 0 gives 0 for positive exponents | relative 4e-6 |
/// | error_function | all | relative 1e-6: tanh(x · P(x²)) |
/// | softplus | all | 4e-7 absolute: max(x, 0) − log(sigmoid(abs x)) |
/// | sign, floor, round | all finite ones | exact |
///
/// Logarithm, square_root and power give NaN for arguments below -2^-126.
/// Cost: 4 (sign) to about 110 (power) instructions a chunk.
class elementary_function {
 public:
  /// Elements that are computed in one go; every constant takes as many.
  static constexpr std::int64_t most_chunk = 512;

  [[nodiscard]] static bool covers(model::unary_kind kind) noexcept { return kind >= model::unary_kind::exponential; }

  /// `longest`: of the runs that follow. Errors: unsupported, for exponents beyond power_function.
  elementary_function(kernel_builder& k, const model::unary& op, std::int64_t longest, const std::string& place)
      : op_(op), longest_(longest), chunk_(checked::divide_up(longest, checked::divide_up(longest, most_chunk))) {
    using model::unary_kind;
    switch (op.kind) {
      case unary_kind::square_root: power_.emplace(k, -0.5, -32, 31, chunk_, 1.0, place); break;
      case unary_kind::reciprocal: power_.emplace(k, -1, -31, 31, chunk_, 1.0, place); break;
      case unary_kind::power: {
        // The part of the exponent below 0, for the widest domain; what remains is a product.
        if (!(std::abs(op.a) <= 64)) throw error(error_code::unsupported, "power with exponent " + std::to_string(op.a), place);
        products_ = op.a > 0 ? static_cast<int>(std::ceil(op.a)) : 0;
        const double rest = static_cast<double>(op.a) - products_;
        const int width = static_cast<int>(std::min(62.0, 120 / std::max(1e-3, std::abs(rest))));
        power_.emplace(k, rest, -width / 2, width - width / 2, chunk_, 1.0, place);
        break;
      }
      default: break;
    }
    if (longest_ > chunk_) buffer_ = k.scratch("run", longest_);
  }

  /// Appends d = f(a) for a run of at most `longest` elements; d may be a.
  void apply_run(kernel_builder& k, const operand& d, const operand& a, std::int64_t length) {
    ensure(length <= longest_, "a run longer than announced");
    if (length <= chunk_) return apply(k, d, a, length);
    // A run may cross dimensions of its tensor, a temporary is flat.
    k.copy(k.in(buffer_), a, length);
    k.loop(length / chunk_, [&](const affine& i) { apply(k, k.in(buffer_, i * chunk_), k.in(buffer_, i * chunk_), chunk_); });
    const auto done = length / chunk_ * chunk_;
    if (done != length) apply(k, k.in(buffer_, done), k.in(buffer_, done), length - done);
    k.copy(d, k.in(buffer_), length);
  }

 private:
  using code = isa::opcode;

  /// Vectors of one chunk.
  struct vectors {
    elementary_function& f;
    kernel_builder& k;
    std::int64_t length;
    [[nodiscard]] operand number(double value) const {
      const auto element = static_cast<float>(value);
      const auto [known, fresh] = f.constants_.try_emplace(std::bit_cast<std::uint32_t>(element), 0);
      if (fresh) known->second = filled(k, "constant", element, f.chunk_);
      return k.in(known->second);
    }
    [[nodiscard]] operand temporary(std::size_t i) const {
      while (f.temporaries_.size() <= i) f.temporaries_.push_back(k.scratch("function", f.chunk_));
      return k.in(f.temporaries_[i]);
    }
    void multiply(const operand& d, const operand& a, const operand& b) const { k.vector(code::vvmul, d, a, b, length); }
    void add(const operand& d, const operand& a, const operand& b) const { k.vector(code::vvadd, d, a, b, length); }
    void subtract(const operand& d, const operand& a, const operand& b) const { k.vector(code::vvsub, d, a, b, length); }
    void maximum(const operand& d, const operand& a, const operand& b) const { k.vector(code::vvmax, d, a, b, length); }
    void at_least(const operand& d, const operand& a, float bound) const { k.clamp(code::vrsl, d, a, bound, length); }
    void at_most(const operand& d, const operand& a, float bound) const { k.clamp(code::vrsu, d, a, bound, length); }
    void within(const operand& d, const operand& a, float low, float high) const {
      at_least(d, a, low);
      at_most(d, d, high);
    }
    void magnitude(const operand& d, const operand& a) const {  // d is not a
      multiply(d, a, number(-1));
      maximum(d, d, a);
    }
    /// d = Σ coefficient[i] · x^i; d is not x. Requires: at least two coefficients.
    void polynomial(const operand& d, const operand& x, const std::vector<double>& coefficients) const {
      multiply(d, x, number(coefficients.back()));
      for (std::size_t i = coefficients.size() - 1; i-- > 0;) {
        add(d, d, number(coefficients[i]));
        if (i > 0) multiply(d, d, x);
      }
    }
    /// ±1 for magnitudes of at least `least`, and 0 for 0. Two factors, as one could overflow what it is multiplied with.
    void sign(const operand& d, const operand& a, float factor, int times) const {
      multiply(d, a, number(factor));
      within(d, d, -1, 1);
      for (; times > 1; --times) {
        multiply(d, d, number(factor));
        within(d, d, -1, 1);
      }
    }
    /// d = NaN where a is negative, else 0: 0 · −∞.
    void refuse_negative(const operand& d, const operand& a) const {
      at_most(d, a, 0);
      multiply(d, d, number(0x1p127));
      multiply(d, d, number(0x1p127));
      multiply(d, d, number(0));
    }
    /// Nearest integer within ±2^22, halves to even: adding 1.5 · 2^23 drops the fraction.
    void round(const operand& d) const {
      add(d, d, number(12582912));
      subtract(d, d, number(12582912));
    }
  };

  void apply(kernel_builder& k, const operand& d, const operand& a, std::int64_t length) {
    using model::unary_kind;
    const vectors v{*this, k, length};
    const auto x = v.temporary(0), y = v.temporary(1);
    switch (op_.kind) {
      case unary_kind::exponential:
        exponential_step(v, x, y, a, true);
        for (int i = 0; i < 7; ++i) v.multiply(i == 6 ? d : y, y, y);
        return;
      case unary_kind::exponential_minus_one:
        exponential_step(v, x, y, a, false);
        for (int i = 0; i < 7; ++i) {
          v.add(x, y, v.number(2));
          v.multiply(i == 6 ? d : y, y, x);
        }
        return;
      case unary_kind::logarithm: return logarithm(v, d, a);
      case unary_kind::square_root:
        v.refuse_negative(v.temporary(2), a);
        power_->apply(k, x, a, length);
        v.multiply(x, x, a);
        return v.add(d, x, v.temporary(2));
      case unary_kind::reciprocal:
        v.magnitude(x, a);
        v.sign(y, a, 0x1p31F, 1);
        power_->apply(k, x, x, length);
        return v.multiply(d, x, y);
      case unary_kind::power:
        v.refuse_negative(y, a);
        power_->apply(k, x, a, length);
        for (int i = 0; i < products_; ++i) v.multiply(x, x, a);
        return v.add(d, x, y);
      case unary_kind::error_function: {
        constexpr double half = 8;  // of x² on [0, 16]: tanh is 1 beyond
        v.within(x, a, -4, 4);
        v.multiply(y, x, x);
        v.multiply(y, y, v.number(1 / half));
        v.subtract(y, y, v.number(1));
        const auto p = v.temporary(2);
        v.polynomial(p, y, chebyshev_polynomial(error_function_argument, half, half, 12));
        v.multiply(p, p, x);
        return static_cast<void>(k.vector(code::vtanh, d, p, length));
      }
      case unary_kind::softplus: {
        v.magnitude(x, a);
        k.vector(code::vsigm, x, x, length);
        v.subtract(x, x, v.number(0.75));
        v.multiply(x, x, v.number(4));
        v.polynomial(y, x, chebyshev_polynomial([](double u) { return -std::log(u); }, 0.75, 0.25, 10));
        k.vector(code::vrelu, x, a, length);
        return v.add(d, x, y);
      }
      case unary_kind::sign: return v.sign(d, a, 0x1p126F, 2);
      case unary_kind::round: return rounded(v, d, a);
      case unary_kind::floor: {
        const auto r = v.temporary(3);
        rounded(v, r, a);
        v.subtract(x, r, a);  // exact, positive where rounding went up
        v.at_least(x, x, 0);
        v.sign(x, x, 0x1p126F, 2);
        return v.subtract(d, r, x);
      }
      default: ensure(false, "an elementary function without a kernel");
    }
  }

  /// y = e^(x / 128), or that minus 1.
  void exponential_step(const vectors& v, const operand& x, const operand& y, const operand& a, bool whole) const {
    v.within(x, a, -87, 88);
    v.multiply(x, x, v.number(1.0 / 128));
    std::vector<double> coefficients{1};
    for (int i = 1; i <= 9; ++i) coefficients.push_back(coefficients.back() / i);
    if (whole) return v.polynomial(y, x, coefficients);
    coefficients.erase(coefficients.begin());
    v.polynomial(y, x, coefficients);
    v.multiply(y, y, x);
  }
  /// The exponent as power_function finds it, as a number; the polynomial of the mantissa in [1, 2).
  void logarithm(const vectors& v, const operand& d, const operand& a) const {
    const auto u = v.temporary(0), t = v.temporary(1), exponent = v.temporary(2), factor = v.temporary(3);
    v.at_least(u, a, 0x1p-31F);
    v.at_most(u, u, std::nextafter(0x1p32F, 0.0F));
    v.multiply(u, u, v.number(0x1p31));
    for (int s = 32; s >= 1; s /= 2) {
      v.multiply(t, u, v.number(std::ldexp(1.0, 24 - s)));
      v.subtract(t, t, v.number(16777215));
      v.within(t, t, 0, 1);
      v.multiply(factor, t, v.number(s));
      if (s == 32) v.subtract(exponent, factor, v.number(31));
      else v.add(exponent, exponent, factor);
      v.multiply(factor, t, v.number(std::ldexp(1.0, -s)));
      v.subtract(t, v.number(1), t);
      v.add(factor, factor, t);
      v.multiply(u, u, factor);
    }
    v.subtract(u, u, v.number(1.5));
    v.multiply(u, u, v.number(2));
    v.polynomial(t, u, chebyshev_polynomial([](double m) { return std::log(m); }, 1.5, 0.5, 11));
    v.multiply(exponent, exponent, v.number(std::numbers::ln2));
    v.add(exponent, exponent, t);
    v.refuse_negative(t, a);
    v.add(d, exponent, t);
  }
  /// Up to 2^23 in two parts that are rounded apart: halves go to even in both, as ±2^22 is even. From there on the argument itself.
  void rounded(const vectors& v, const operand& d, const operand& a) const {
    const auto part = v.temporary(0), rest = v.temporary(1), large = v.temporary(2);
    v.magnitude(large, a);
    v.subtract(large, large, v.number(8388607.5));
    v.multiply(large, large, v.number(2));
    v.within(large, large, 0, 1);
    v.within(part, a, -4194304, 4194304);
    v.within(rest, a, -8388608, 8388608);
    v.subtract(rest, rest, part);
    v.round(part);
    v.round(rest);
    v.add(part, part, rest);
    v.multiply(rest, large, a);
    v.subtract(large, v.number(1), large);
    v.multiply(part, part, large);
    v.add(d, part, rest);
  }
  /// artanh(erf(√s)) / √s.
  static double error_function_argument(double s) {
    if (s < 1e-12) return 2 / std::sqrt(std::numbers::pi);
    const double x = std::sqrt(s);
    return 0.5 * std::log((1 + std::erf(x)) / std::erfc(x)) / x;
  }

  model::unary op_;
  std::int64_t longest_, chunk_;
  int products_ = 0;
  std::uint32_t buffer_ = 0;
  std::optional<power_function> power_;
  std::map<std::uint32_t, std::uint32_t> constants_;
  std::vector<std::uint32_t> temporaries_;
};

}  // namespace raptor::lowering
