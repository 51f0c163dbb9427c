#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "raptor/support/json_extent.hpp"

/// Reading a JSON document where it stands in its text, so that what a reader does not ask for takes no memory, however much it is.
namespace raptor {

/// One value of a document: the piece of text that it is. A copy costs nothing; the text must outlive it.
///
/// Requires valid JSON (check_json). Cost: each walk over entries or members is linear in their text.
class json_view {
 public:
  json_view() = default;
  /// `text`: one value, with white space around it or not.
  explicit json_view(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    std::size_t at = skip_spaces(text, 0);
    text_ = take_value(text, at).text_;
  }

  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  [[nodiscard]] bool is_object() const noexcept { return text_.starts_with('{'); }
  [[nodiscard]] bool is_array() const noexcept { return text_.starts_with('['); }
  [[nodiscard]] bool is_string() const noexcept { return text_.starts_with('"'); }

  /// Calls `f(json_view)` for each entry of an array. Requires is_array().
  template <class F>
  void each_entry(F&& f) const {
    for (std::size_t at = skip_spaces(text_, 1); text_[at] != ']'; next(at)) f(take_value(text_, at));
  }
  /// Calls `f(const std::string& name, json_view)` for each member of an object in order; a name may occur again. Requires is_object().
  template <class F>
  void each_member(F&& f) const {
    std::string name;
    for (std::size_t at = skip_spaces(text_, 1); text_[at] != '}'; next(at)) {
      take_value(text_, at).string_into(name);
      at = skip_spaces(text_, skip_spaces(text_, at) + 1);  // the colon
      f(std::as_const(name), take_value(text_, at));
    }
  }
  /// Entries of an array, or members of an object.
  [[nodiscard]] std::size_t size() const {
    std::size_t count = 0;
    if (is_array()) each_entry([&](json_view) { ++count; });
    if (is_object()) each_member([&](const std::string&, json_view) { ++count; });
    return count;
  }
  /// Requires is_string().
  [[nodiscard]] std::string string() const {
    std::string value;
    string_into(value);
    return value;
  }
  /// The value itself: for numbers, and what is known to be small.
  [[nodiscard]] nlohmann::json value() const {
    std::uint32_t small = 0;
    const auto [end, code] = std::from_chars(text_.data(), text_.data() + text_.size(), small);
    if (code == std::errc{} && end == text_.data() + text_.size()) return small;
    return nlohmann::json::parse(text_.begin(), text_.end());
  }

 private:
  std::string_view text_;

  [[nodiscard]] static std::size_t skip_spaces(std::string_view text, std::size_t at) noexcept { return std::min(text.find_first_not_of(" \t\r\n", at), text.size()); }
  /// From behind an entry to the next, or to the bracket.
  void next(std::size_t& at) const noexcept {
    at = skip_spaces(text_, at);
    if (text_[at] == ',') at = skip_spaces(text_, at + 1);
  }
  [[nodiscard]] static std::size_t end_of_string(std::string_view text, std::size_t at) noexcept {
    for (++at; text[at] != '"'; ++at)
      if (text[at] == '\\') ++at;
    return at + 1;
  }
  /// The value at a position, which goes behind it.
  [[nodiscard]] static json_view take_value(std::string_view text, std::size_t& at) noexcept {
    const std::size_t begin = at;
    std::size_t depth = 0;
    do {
      if (at == text.size()) break;
      const char c = text[at];
      if (c == '"') {
        at = end_of_string(text, at);
      } else if (c == '{' || c == '[') {
        ++depth, ++at;
      } else if (c == '}' || c == ']') {
        --depth, ++at;
      } else if (depth > 0) {
        ++at;
      } else {
        at = std::min(text.find_first_of(std::string_view(" \t\r\n,]}\0", 8), at), text.size());
      }
    } while (depth > 0);
    json_view result;
    result.text_ = text.substr(begin, at - begin);
    return result;
  }
  void string_into(std::string& value) const {
    if (text_.find('\\') == std::string_view::npos) value = text_.substr(1, text_.size() - 2);
    else value = nlohmann::json::parse(text_.begin(), text_.end()).get<std::string>();
  }
};

/// Proves that a text is JSON and nested no deeper than json_limits allows, and gives its value. `refuse(const std::string& words)` throws
/// what the caller says of a text that is no JSON; `words`: the JSON library's. Errors: malformed, nested too deeply;
/// capacity, a token that is too long. O(text); memory: of the longest token.
template <class Refuse>
[[nodiscard]] json_view check_json(std::string_view text, const std::string& file, const Refuse& refuse) {
  class checker : public json_extent {
   public:
    checker(const std::string& file, const Refuse& refuse) : json_extent(file, {std::numeric_limits<std::size_t>::max(), json_limits{}.depth}), refuse_(refuse) {}
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& why) override {
      refuse_(std::string(why.what()));
      return false;
    }

   private:
    const Refuse& refuse_;
  };
  check_json_tokens(text, file);
  checker events(file, refuse);
  static_cast<void>(nlohmann::json::sax_parse(text.begin(), text.end(), &events));
  return json_view(text);
}

}  // namespace raptor
