#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "raptor/support/checked.hpp"

namespace raptor {

/// A variable of an affine expression. `begin` and `extent`: the tile's interval in lane dimension `index`;
/// `loop`: the induction variable of loop number `index`, 0, 1, … count − 1.
struct symbol {
  enum class kind : std::uint8_t { begin, extent, loop };
  kind what = kind::loop;
  std::uint32_t index = 0;
  friend constexpr auto operator<=>(const symbol&, const symbol&) = default;
};

/// constant + Σ coefficient · symbol, terms sorted by symbol and without zero coefficients.
class affine {
 public:
  struct term {
    symbol variable;
    std::int64_t coefficient = 0;
    friend bool operator==(const term&, const term&) = default;
  };

  affine() = default;
  affine(std::int64_t constant) : constant_(constant) {}  // NOLINT: a number is an affine expression
  affine(symbol variable) : terms_(1) { *terms_.begin() = {variable, 1}; }  // NOLINT: so is a symbol

  [[nodiscard]] std::int64_t constant() const noexcept { return constant_; }
  [[nodiscard]] std::span<const term> terms() const noexcept { return {terms_.begin(), terms_.size()}; }
  [[nodiscard]] bool is_constant() const noexcept { return terms_.empty(); }
  [[nodiscard]] std::int64_t coefficient(symbol variable) const {
    for (const auto& t : terms_)
      if (t.variable == variable) return t.coefficient;
    return 0;
  }

  affine& operator+=(const affine& other) {
    constant_ = checked::add(constant_, other.constant_);
    for (const auto& t : other.terms_) add_term(t);
    return *this;
  }
  affine& operator*=(std::int64_t factor) {
    if (factor == 0) return *this = affine{};
    constant_ = checked::multiply(constant_, factor);
    for (auto& t : terms_) t.coefficient = checked::multiply(t.coefficient, factor);
    return *this;
  }
  friend affine operator+(affine a, const affine& b) { return a += b; }
  friend affine operator-(affine a, const affine& b) { return a += b * -1; }
  friend affine operator*(affine a, std::int64_t factor) { return a *= factor; }
  friend affine operator*(std::int64_t factor, affine a) { return a *= factor; }
  friend bool operator==(const affine&, const affine&) = default;

  /// Replaces every symbol for which `value(symbol)` gives an expression; the others stay.
  /// `Value`: symbol → std::pair<bool, affine> (true: replace).
  template <class Value>
  [[nodiscard]] affine substitute(const Value& value) const {
    affine result(constant_);
    for (const auto& t : terms_) {
      const std::pair<bool, affine> replaced = value(t.variable);
      result += replaced.first ? replaced.second * t.coefficient : affine(t.variable) * t.coefficient;
    }
    return result;
  }
  /// Value under an assignment `Value`: symbol → integer.
  template <class Value>
  [[nodiscard]] std::int64_t evaluate(const Value& value) const {
    std::int64_t result = constant_;
    for (const auto& t : terms_)
      result = checked::add(result, checked::multiply(t.coefficient, static_cast<std::int64_t>(value(t.variable))));
    return result;
  }

 private:
  /// The terms as one pointer, null where there are none: programs hold millions of constant offsets.
  class term_list {
   public:
    term_list() = default;
    explicit term_list(std::size_t size) : block_(size == 0 ? nullptr : std::make_unique<term[]>(size + 1)) {
      if (block_) block_[0].coefficient = static_cast<std::int64_t>(size);  // the first place holds the number of the others
    }
    term_list(const term_list& other) : term_list(other.size()) { std::copy(other.begin(), other.end(), begin()); }
    term_list(term_list&&) noexcept = default;
    term_list& operator=(const term_list& other) { return *this = term_list(other); }
    term_list& operator=(term_list&&) noexcept = default;
    ~term_list() = default;
    [[nodiscard]] bool empty() const noexcept { return block_ == nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return block_ ? static_cast<std::size_t>(block_[0].coefficient) : 0; }
    [[nodiscard]] term* begin() noexcept { return block_ ? block_.get() + 1 : nullptr; }
    [[nodiscard]] term* end() noexcept { return begin() + size(); }
    [[nodiscard]] const term* begin() const noexcept { return block_ ? block_.get() + 1 : nullptr; }
    [[nodiscard]] const term* end() const noexcept { return begin() + size(); }
    friend bool operator==(const term_list& a, const term_list& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

   private:
    std::unique_ptr<term[]> block_;
  };

  void add_term(const term& t) {
    auto* const at = std::lower_bound(terms_.begin(), terms_.end(), t.variable, [](const term& a, const symbol& s) { return a.variable < s; });
    if (at == terms_.end() || at->variable != t.variable) {
      term_list more(terms_.size() + 1);
      auto* const added = std::copy(terms_.begin(), at, more.begin());
      *added = t;
      std::copy(at, terms_.end(), added + 1);
      terms_ = std::move(more);
    } else if ((at->coefficient = checked::add(at->coefficient, t.coefficient)) == 0) {
      term_list fewer(terms_.size() - 1);
      std::copy(at + 1, terms_.end(), std::copy(terms_.begin(), at, fewer.begin()));
      terms_ = std::move(fewer);
    }
  }

  std::int64_t constant_ = 0;
  term_list terms_;
};

/// "b1", "e2", "i0".
[[nodiscard]] inline std::string to_string(symbol s) {
  constexpr char letter[] = {'b', 'e', 'i'};
  return letter[static_cast<std::size_t>(s.what)] + std::to_string(s.index);
}
/// "3+2*b1-4*i0"; "0" where empty. No spaces, so that it is one word of a text form.
[[nodiscard]] inline std::string to_string(const affine& a) {
  std::string text;
  if (a.constant() != 0 || a.terms().empty()) text = std::to_string(a.constant());
  for (const auto& t : a.terms()) {
    if (t.coefficient < 0) text += '-';
    else if (!text.empty()) text += '+';
    const auto bits = static_cast<std::uint64_t>(t.coefficient);
    const std::uint64_t magnitude = t.coefficient < 0 ? 0 - bits : bits;  // the least number has no negative
    if (magnitude != 1) text += std::to_string(magnitude) + "*";
    text += to_string(t.variable);
  }
  return text;
}
/// Reads what to_string writes. Errors: malformed.
[[nodiscard]] affine parse_affine(std::string_view text);

inline affine parse_affine(std::string_view text) {
  const std::string all(text);
  const auto fail = [&]() -> void { throw error(error_code::malformed, "not an affine expression: '" + all + "'"); };
  affine result;
  std::size_t at = 0;
  const auto number = [&]() {
    const std::size_t start = at;
    std::int64_t value = 0;
    while (at < all.size() && all[at] >= '0' && all[at] <= '9')
      value = checked::add(checked::multiply(value, std::int64_t{10}), static_cast<std::int64_t>(all[at++] - '0'));
    if (at == start) fail();
    return value;
  };
  if (all.empty()) fail();
  while (at < all.size()) {
    std::int64_t sign = 1;
    if (all[at] == '+' || all[at] == '-') {
      if (all[at] == '+' && at == 0) fail();
      sign = all[at++] == '-' ? -1 : 1;
    } else if (at != 0) {
      fail();
    }
    std::int64_t factor = 1;
    bool has_symbol = true;
    if (at < all.size() && all[at] >= '0' && all[at] <= '9') {
      factor = number();
      has_symbol = at < all.size() && all[at] == '*';
      if (has_symbol) ++at;
    }
    if (!has_symbol) {
      result += affine(checked::multiply(sign, factor));
      continue;
    }
    if (at >= all.size()) fail();
    symbol s;
    switch (all[at++]) {
      case 'b': s.what = symbol::kind::begin; break;
      case 'e': s.what = symbol::kind::extent; break;
      case 'i': s.what = symbol::kind::loop; break;
      default: fail();
    }
    s.index = checked::narrow<std::uint32_t>(number());
    result += affine(s) * checked::multiply(sign, factor);
  }
  return result;
}

}  // namespace raptor
