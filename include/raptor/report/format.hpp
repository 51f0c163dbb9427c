#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Numbers and names as reports print them; the same on every machine and in every locale.
namespace raptor::report {

/// Picoseconds as microseconds with three digits: "17.400".
[[nodiscard]] inline std::string microseconds(std::int64_t time) {
  const bool negative = time < 0;
  const std::uint64_t bits = static_cast<std::uint64_t>(time), magnitude = negative ? 0 - bits : bits;
  const std::uint64_t nanoseconds = magnitude / 1000 + (magnitude % 1000 >= 500 ? 1 : 0);
  std::string fraction = std::to_string(nanoseconds % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  return (negative ? "-" : "") + std::to_string(nanoseconds / 1000) + "." + fraction;
}
/// The same for a cost that need not be a whole number; "unknown" where it is none.
[[nodiscard]] inline std::string microseconds(double time) {
  if (!std::isfinite(time) || std::abs(time) > 9e18) return "unknown";
  return microseconds(static_cast<std::int64_t>(std::llround(time)));
}
/// a / b with two digits: "1.37"; "-" where b is not positive.
[[nodiscard]] inline std::string ratio(std::int64_t a, std::int64_t b) {
  if (b <= 0 || a < 0) return "-";
  const auto hundredths = static_cast<std::int64_t>(std::llround(std::min(static_cast<double>(a) / static_cast<double>(b), 1e15) * 100));
  const std::string fraction = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + (fraction.size() < 2 ? ".0" : ".") + fraction;
}
/// A cell of a table in text: at the left or the right of `width` columns, one space from its neighbour where it is too long.
[[nodiscard]] inline std::string left(const std::string& cell, std::size_t width) {
  return cell + std::string(cell.size() < width ? width - cell.size() : 1, ' ');
}
[[nodiscard]] inline std::string right(const std::string& cell, std::size_t width) {
  return std::string(cell.size() < width ? width - cell.size() : 1, ' ') + cell;
}
/// A name of at most `most` bytes, control characters as '?'. Cuts at a character of UTF-8, not inside one.
[[nodiscard]] inline std::string clipped(std::string_view name, std::size_t most = 100) {
  std::string text(name);
  if (text.size() > most) {
    std::size_t end = most - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
    text.resize(end);
    text += "...";
  }
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}
/// A field of a CSV file (RFC 4180): in quotes where it needs them.
[[nodiscard]] inline std::string csv_field(std::string_view field) {
  if (field.find_first_of(",\"\r\n") == field.npos) return std::string(field);
  std::string text = "\"";
  for (const char c : field) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + "\"";
}
/// A text in double quotes for Graphviz: quotes and backslashes escaped, line ends as "\n".
[[nodiscard]] inline std::string dot_text(std::string_view s) {
  std::string text = "\"";
  for (const char c : s) {
    if (c == '\n') text += "\\n";
    else if (c == '"' || c == '\\') (text += '\\') += c;
    else text += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return text + "\"";
}

}  // namespace raptor::report
