#include "raptor/support/json_extent.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace raptor;

namespace {

/// "accepted", or the name of the error's code.
std::string verdict(const std::string& text, json_limits limits) {
  try {
    check_json_extent(text, "file.json", limits);
  } catch (const error& e) {
    CHECK(e.place() == "file.json");
    return name(e.code());
  }
  return "accepted";
}

}  // namespace

TEST_CASE("values, names and nesting of a JSON document are counted") {
  CHECK(verdict("[1,2,3]", {8, 1}) == "accepted");
  CHECK(verdict("[1,2,3]", {7, 1}) == "accepted");
  CHECK(verdict("[1,2,3]", {6, 1}) == "capacity");
  CHECK(verdict(R"({"a":1})", {11, 1}) == "accepted");
  CHECK(verdict(R"({"a":1})", {10, 1}) == "capacity");
  CHECK(verdict("[[]]", {100, 2}) == "accepted");
  CHECK(verdict("[[[]]]", {100, 2}) == "malformed");
  CHECK(verdict("[[],[],[]]", {100, 2}) == "accepted");
  CHECK(verdict(std::string(1 << 20, '['), {}) == "malformed");
  // What is no JSON is for the parser to refuse.
  CHECK(verdict("", {}) == "accepted");
  CHECK(verdict("[1,", {}) == "accepted");
}

TEST_CASE("names and values of a JSON document may have a million characters") {
  const std::string most(most_json_token - 1, 'y');
  CHECK(verdict("[\"" + most + "\",\"" + most + "\"]", {}) == "accepted");
  CHECK(verdict("[\"" + most + "yy\"]", {}) == "capacity");
  CHECK(verdict("{\"" + most + "yy\":1}", {}) == "capacity");
  CHECK(verdict("[" + std::string(most_json_token + 1, '1') + "]", {}) == "capacity");
  CHECK(verdict("[" + std::string(2 * most_json_token, ' ') + "]", {}) == "accepted");
  std::string quotes;
  while (quotes.size() <= most_json_token) quotes += "\\\", [{:";
  CHECK(verdict("[\"" + quotes + "\"]", {}) == "capacity");
}
