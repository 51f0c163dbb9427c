#include "raptor/isa/check.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "raptor/isa/build.hpp"
#include "raptor/isa/reference.hpp"
#include "raptor/support/error.hpp"

namespace {

using namespace raptor;
using namespace raptor::isa;

static_assert([] {
  for (const auto& entry : infos)
    for (std::int32_t seed = 0; seed < 20; ++seed)
      if (find_fault(sample(entry.op, seed)) || !is_canonical(sample(entry.op, seed))) return false;
  return true;
}());
static_assert(find_fault(build::sldi(32, 0)).slot == slot::rd);
static_assert(!is_canonical({opcode::sldi, 0, 0, 0, 0, 0, 1}));

std::string reason(const instruction& i, limits chip = {}) {
  try {
    check(i, "core 1, instruction 2", chip);
  } catch (const error& e) {
    CHECK(e.code() == error_code::malformed);
    CHECK(e.place() == "core 1, instruction 2");
    return e.what();
  }
  return "none";
}

TEST_CASE("each kind of field is judged") {
  CHECK(reason(build::sldi(31, -5)) == "none");
  CHECK(reason(build::sldi(32, 0)) == "sldi: result register 32 (field rd) is not a register, there are 0 to 31");
  CHECK(reason(build::saddi(0, 200, 0)) == "saddi: source register 200 (field r1) is not a register, there are 0 to 31");
  CHECK(reason({opcode::vvadd, 0, 0, -1, 0, 0, 4}) ==
        "vvadd: local address register, read -1 (field word0) is not a register, there are 0 to 31");
  CHECK(reason(build::vrelu(0, 0, -1)) == "vrelu: length, elements -1 (field word3) is negative");
  CHECK(reason(build::ld(0, 0, -4)) == "ld: size, bytes -4 (field word3) is negative");
  CHECK(reason(build::lldi(0, 0, -4)) == "lldi: length, bytes -4 (field word3) is negative");
  CHECK(reason(build::ld(0, 0, 4, {8, 0})) == "ld: offset select 8 (field word1) has bits beyond the three that select");
  CHECK(reason(build::wait(32, 1)) == "wait: event register 32 (field word1) is not an event register, there are 0 to 31");
  CHECK(reason(build::wait(31, -1)) == "wait: expected count -1 (field word2) is negative, a count never reaches it");
  CHECK(reason(build::sync(-1, 0)) == "sync: event register -1 (field word1) is not an event register, there are 0 to 31");
  CHECK(reason(build::mvmul(0, 0, -1)) == "mvmul: array group -1 (field word2) is not an array group of the core");
  CHECK(reason(build::mvmul(0, 0, 0, 0)) == "mvmul: bits of a weight 0 (field word0) is not between 1 and 32");
  CHECK(reason(build::mvmul(0, 0, 0, 32, 2)) == "mvmul: clamp at zero 2 (field word1) is neither 0 nor 1");
  CHECK(reason(build::setbw(32, 7)) == "setbw: bits of an output 7 (field word2) is not 8, 16 or 32");
  CHECK(reason({opcode::send, 1, 2, 0, 0, 0, 4}) == "send: the same register as r1 1 (field rd) differs from the register in r1");
  CHECK(reason({static_cast<opcode>(99), 0, 0, 0, 0, 0, 0}) == "unknown opcode 99");
}

TEST_CASE("the chip bounds cores and groups") {
  const limits chip{.core_count = 4, .group_count = 2};
  CHECK(reason(build::send(1, 3, 4), chip) == "none");
  CHECK(reason(build::send(1, 4, 4), chip) == "send: peer core 4 (field word0) is not a core of the chip");
  CHECK(reason(build::sync(0, -1), chip) == "sync: peer core -1 (field word0) is not a core of the chip");
  CHECK(reason(build::mvmul(0, 0, 1), chip) == "none");
  CHECK(reason(build::mvmul(0, 0, 2), chip) == "mvmul: array group 2 (field word2) is not an array group of the core");
}

TEST_CASE("a stream's first fault is named with its index") {
  const std::vector<instruction> program{build::nop(), build::sldi(1, 2), build::sldi(40, 2), build::sldi(41, 2)};
  CHECK_NOTHROW(check(std::span(program).first(2), "core_0.pim"));
  try {
    check(program, "core_0.pim");
    FAIL("no error");
  } catch (const error& e) {
    CHECK(e.place() == "core_0.pim, instruction 2");
  }
}

TEST_CASE("fields that the table leaves unused are not judged") {
  CHECK(reason({opcode::sldi, 0, 255, 0, -1, -1, -1}) == "none");
}

}  // namespace
