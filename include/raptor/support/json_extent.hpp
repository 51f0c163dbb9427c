#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "raptor/support/error.hpp"

/// How large a JSON document may be that is kept as a whole: a value takes many times the bytes of its text.
namespace raptor {

/// Most values and keys of a document, and how deep they may be nested.
struct json_limits {
  std::size_t values = std::size_t{1} << 20;
  std::size_t depth = 64;
};

/// Follows a parse without building anything. Errors: capacity beyond the limits. What is no JSON ends the walk: the parse that follows
/// says so.
class json_extent : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit json_extent(std::string file, json_limits limits = {}) : file_(std::move(file)), limits_(limits) {}
  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t&) override { return count(); }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return count(); }
  // An object holds a key at least, an array a list: they count more than a number.
  bool start_object(std::size_t) override { return enter(); }
  bool key(string_t&) override { return count(6); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 protected:
  bool count(std::size_t weight = 1) {
    values_ += weight;
    if (values_ > limits_.values)
      throw error(error_code::capacity, file_ + ": too many values; " + std::to_string(limits_.values) + " are allowed, where a name counts 6", file_);
    return true;
  }
  virtual bool enter() {
    if (depth_ == limits_.depth) throw error(error_code::malformed, file_ + ": nested too deeply", file_);
    ++depth_;
    return count(4);
  }
  virtual bool leave() {
    --depth_;
    return true;
  }

  std::string file_;

 private:
  json_limits limits_;
  std::size_t values_ = 0, depth_ = 0;
};

/// Most characters of a name, string, number or word: the parser holds what it reads several times over.
inline constexpr std::size_t most_json_token = std::size_t{1} << 20;

/// Errors: capacity, where a text has a longer token. O(text).
inline void check_json_tokens(std::string_view text, const std::string& file) {
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') ++at;
    else if (c == '"') quoted = !quoted, begin = at;
    else if (!quoted && (c <= ' ' || c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}')) begin = at;
    if (at - begin > most_json_token)
      throw error(error_code::capacity, file + ": a name or a value of more than " + std::to_string(most_json_token) + " characters", file);
  }
}

/// Checks a document before it is parsed. Errors: as json_extent. O(text), no memory.
inline void check_json_extent(std::string_view text, const std::string& file, json_limits limits = {}) {
  check_json_tokens(text, file);
  json_extent extent(file, limits);
  static_cast<void>(nlohmann::json::sax_parse(text.begin(), text.end(), &extent));
}

}  // namespace raptor
