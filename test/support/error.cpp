#include "raptor/support/error.hpp"

#include <doctest/doctest.h>

using namespace raptor;

TEST_CASE("what a user's file says is printed without control characters") {
  CHECK(printable("conv \xc3\xa9\t1\r\n2") == "conv \xc3\xa9 1  2");
  CHECK(printable(std::string_view("\x1b[31m\0\x7f", 7)) == "\\x1b[31m\\x00\\x7f");
  const auto e = error(error_code::unsupported, "no \x1b]0;title\a", "node \"a\nb\"", "do\nthis").with_details({"one\n", "\x1b"});
  CHECK(describe(e) == "error: no \\x1b]0;title\\x07\n  at: node \"a b\"\n  - one \n  - \\x1b\n  hint: do this");
}
