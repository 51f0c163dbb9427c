#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

/// Numbers as text, at compile time too, without locale and without allocation beyond the string that grows.
namespace raptor::isa {

/// Appends a decimal number.
constexpr void append_number(std::string& out, std::int64_t value) {
  char digits[20]{};
  int n = 0;
  // Digits of the negated value, so that the smallest number needs no special case.
  std::int64_t rest = value < 0 ? value : -value;
  do {
    digits[n++] = static_cast<char>('0' - rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (value < 0) out.push_back('-');
  while (n > 0) out.push_back(digits[--n]);
}

/// Reads a whole word as a 32-bit number: decimal with an optional sign, or 0x with up to 8 hexadecimal digits, which give the bit
/// pattern (0xffffffff is -1). None where the word is anything else or out of range.
[[nodiscard]] constexpr std::optional<std::int32_t> parse_number(std::string_view word) noexcept {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
  };
  if (word.starts_with("0x")) {
    word.remove_prefix(2);
    if (word.empty() || word.size() > 8) return std::nullopt;
    std::uint32_t bits = 0;
    for (const char c : word) {
      if (digit(c) > 15) return std::nullopt;
      bits = bits * 16 + static_cast<std::uint32_t>(digit(c));
    }
    return static_cast<std::int32_t>(bits);
  }
  const bool negative = word.starts_with('-');
  if (negative) word.remove_prefix(1);
  if (word.empty() || word.size() > 18) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : word) {
    if (digit(c) > 9) return std::nullopt;
    value = value * 10 + digit(c);
  }
  if (negative) value = -value;
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::int32_t>(value);
}

}  // namespace raptor::isa
