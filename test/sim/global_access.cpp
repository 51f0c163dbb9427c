#include "raptor/sim/global_access.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

using namespace raptor::sim::test;
using raptor::sim::for_each_global_access;
using raptor::sim::global_access;

namespace {

/// "2 ld [16, 24)", or "[?]" where the address is open; one an access.
std::vector<std::string> accesses(const stream& s) {
  std::vector<std::string> found;
  for_each_global_access(s, [&](const global_access& a) {
    const std::string range = a.begin ? "[" + std::to_string(*a.begin) + ", " + std::to_string(*a.begin + a.bytes) + ")" : "[?]";
    found.push_back(std::to_string(a.index) + (a.is_store ? " st " : " ld ") + range);
  });
  return found;
}
using strings = std::vector<std::string>;

}  // namespace

TEST_CASE("loads, stores and words with their ranges, in order") {
  CHECK(accesses({b::setbw(32, 32), b::sldi(1, 16), b::ld(2, 1, 8), b::st(1, 2, 4), b::sld(3, 1, 4), b::lmv(1, 2, 4), b::ld(2, 1, 0)}) ==
        strings{"2 ld [16, 24)", "3 st [16, 20)", "4 ld [20, 24)"});
  CHECK(accesses({b::sldi(1, 16), b::ld(2, 1, 8, {2, 4}), b::ld(2, 1, 8, {1, 4}), b::st(1, 2, 4, {1, 4}), b::st(1, 2, 4, {2, 4})}) ==
        strings{"1 ld [20, 28)", "2 ld [16, 24)", "3 st [20, 24)", "4 st [16, 20)"});
  CHECK(accesses({}).empty());
}

TEST_CASE("addresses that a restart changes are open from the first body on") {
  CHECK(accesses({b::ld(2, 1, 8), b::saddi(1, 1, 16), b::st(1, 2, 4)}) == strings{"0 ld [?]", "2 st [?]"});
  CHECK(accesses({b::ld(2, 1, 8), b::sldi(1, 16), b::st(1, 2, 4)}) == strings{"0 ld [?]", "2 st [16, 20)"});
  CHECK(accesses({b::ld(2, 1, 8), b::sldi(1, 0)}) == strings{"0 ld [0, 8)"});
  CHECK(accesses({b::sldi(1, 0), b::sld(1, 1), b::ld(2, 1, 8)}) == strings{"1 ld [0, 4)", "2 ld [?]"});
}

TEST_CASE("an open address may touch anything, a known one what it covers") {
  CHECK(global_access{0, false, std::nullopt, 4}.may_touch(1000, 1001));
  const global_access known{0, false, 8, 4};
  CHECK(known.may_touch(11, 20));
  CHECK_FALSE(known.may_touch(12, 20));
  CHECK(known.may_touch(0, 9));
  CHECK_FALSE(known.may_touch(0, 8));
}
