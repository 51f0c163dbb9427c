#include "raptor/support/json_view.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace raptor;

namespace {

json_view view(std::string_view text) {
  return check_json(text, "file.json", [](const std::string& words) { throw error(error_code::malformed, words); });
}
/// The same document, put together from what the view says.
nlohmann::json rebuilt(json_view v) {
  if (v.is_string()) return v.string();
  if (!v.is_array() && !v.is_object()) return v.value();
  nlohmann::json result = v.is_array() ? nlohmann::json::array() : nlohmann::json::object();
  if (v.is_array()) v.each_entry([&](json_view entry) { result.push_back(rebuilt(entry)); });
  else v.each_member([&](const std::string& name, json_view value) { result[name] = rebuilt(value); });
  return result;
}

}  // namespace

TEST_CASE("a view of a JSON text says what the document says") {
  for (const char* text : {"0", "-12", "4294967295", "4294967296", "18446744073709551616", "1.5e3", "1E2", "true", "null", "\"\"", "[]", "{}", " [ ] ", "{ }",
                           "[1,2 , 3]", "[[],[[]],{}]", "\t{\"a\" : [1, {\"b\":\"}\"}] ,\n\"c\\\"]\":\"\\\\\", \"a\":2}\r\n", "[\"\\\\\\\"\",\"\\u00e9,\",\"[\"]",
                           "{\"\":{\"\":[{}]}}", "[1e400e]", "[true,false,null,-0,0.5]", "\xef\xbb\xbf[1]"}) {
    CAPTURE(text);
    const auto document = nlohmann::json::parse(text, nullptr, false);
    if (document.is_discarded()) {
      CHECK_THROWS_AS(static_cast<void>(view(text)), error);
      continue;
    }
    CHECK(rebuilt(view(text)) == document);
    CHECK(rebuilt(view(text)).dump() == document.dump());
  }
  CHECK(view("[1,[2,3],{}]").size() == 3);
  CHECK(view("{\"a\":1,\"a\":[1,2]}").size() == 2);
  CHECK(view(" {\"a\": [1, 2 ] }").text() == "{\"a\": [1, 2 ] }");
  CHECK(view("1").size() == 0);
  CHECK(json_view().text().empty());
}

TEST_CASE("a text that is no JSON, or nested too deeply, has no view") {
  for (const char* text : {"", "[", "[1,", "{\"a\"}", "\"", "[1}", "nul", "1 2", "[01]", "\"\\x\""}) {
    CAPTURE(text);
    CHECK_THROWS_AS(static_cast<void>(view(text)), error);
  }
  CHECK(view(std::string(64, '[') + std::string(64, ']')).size() == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(view(std::string(100000, '['))), "file.json: nested too deeply", error);
}
