#include "raptor/isa/table.hpp"

#include <doctest/doctest.h>

#include <boost/hana/length.hpp>
#include <set>
#include <string>

#include "raptor/support/error.hpp"

namespace {

using namespace raptor;
using namespace raptor::isa;

// The proofs about the encodings are static_asserts beside the table; here is what a reader of ARTIFACTS would look up.
static_assert(decltype(boost::hana::length(table))::value == static_cast<std::size_t>(opcode_count));
static_assert(info(opcode::mvmul)[slot::word2] == role::group);
static_assert(info(opcode::vavg)[slot::word0] == role::stride);
static_assert(info(opcode::vrsl)[slot::word0] == role::bound);
static_assert(info(opcode::send)[slot::rd] == role::repeated && info(opcode::send)[slot::r1] == role::local_source);
static_assert(info(opcode::wait)[slot::word1] == role::event && info(opcode::wait)[slot::word2] == role::expected);
static_assert(info(opcode::sync)[slot::word0] == role::peer_core && info(opcode::sync)[slot::word1] == role::event);
static_assert(info(opcode::lldi)[slot::word0] == role::fill_byte && info(opcode::lldi)[slot::word3] == role::length_bytes);
static_assert(info(opcode::sld)[slot::word2] == role::global_offset);
static_assert(lookup("vsoftmax").emitted == emission::extension);
static_assert(find("vdiv") == nullptr);

// A field that overlaps another, and one twice, would not compile as a row.
static_assert(!table_parts::fields_are_disjoint<field_t<slot::rd, role::result>, field_t<slot::rd, role::number>>());
static_assert(table_parts::fields_are_disjoint<field_t<slot::rd, role::result>, field_t<slot::r1, role::number>>());

static_assert(dispatch(opcode::recv, [](auto op) { return op.value; }) == opcode::recv);

TEST_CASE("units and codes are those of ARTIFACTS") {
  const auto check_unit = [](int first, int last, unit expected) {
    for (int code = first; code <= last; ++code) {
      CHECK(info(static_cast<opcode>(code)).unit == expected);
      CHECK(static_cast<int>(info(static_cast<opcode>(code)).op) == code);
    }
  };
  check_unit(0, 0, unit::none);
  check_unit(1, 7, unit::scalar);
  check_unit(8, 9, unit::matrix);
  check_unit(10, 24, unit::vector);
  check_unit(25, 32, unit::transfer);
  const char* names[] = {"nop",   "sldi",  "sld",   "sadd",  "ssub",  "smul",     "saddi", "smuli", "setbw", "mvmul", "vvadd",
                         "vvsub", "vvmul", "vvdmul", "vvmax", "vvsll", "vvsra",   "vavg",  "vrelu", "vtanh", "vsigm", "vsoftmax",
                         "vmv",   "vrsu",  "vrsl",  "ld",    "st",    "lldi",     "lmv",   "send",  "recv",  "wait",  "sync"};
  for (std::size_t code = 0; code < 33; ++code) {
    CHECK(infos[code].mnemonic == names[code]);
    CHECK(lookup(names[code]).op == static_cast<opcode>(code));
  }
}

TEST_CASE("memories follow from the address registers") {
  for (const auto& entry : infos) {
    CAPTURE(entry.mnemonic);
    auto expected = memory::none;
    for (const slot s : all_slots) {
      if (entry[s] == role::local_source) expected = expected | memory::reads_local;
      if (entry[s] == role::local_target) expected = expected | memory::writes_local;
      if (entry[s] == role::global_source) expected = expected | memory::reads_global;
      if (entry[s] == role::global_target) expected = expected | memory::writes_global;
    }
    CHECK(entry.touches == expected);
    CHECK(!entry.effect.empty());
  }
}

TEST_CASE("vector and most transfer instructions share offset and length fields") {
  for (const auto& entry : infos) {
    const bool shared = entry.unit == unit::vector || (entry.op >= opcode::ld && entry.op <= opcode::recv);
    CAPTURE(entry.mnemonic);
    CHECK((entry[slot::word1] == role::offset_select) == shared);
    CHECK((entry[slot::word2] == role::offset_value) == shared);
    CHECK((entry[slot::word3] != role::unused) == shared);
  }
}

TEST_CASE("only what pimsim-nn executes may be emitted") {
  std::set<std::string> never;
  for (const auto& entry : infos)
    if (entry.emitted == emission::never) never.emplace(entry.mnemonic);
  CHECK(never == std::set<std::string>{"nop", "sld", "sadd", "ssub", "smul"});
}

TEST_CASE("unknown opcodes and mnemonics are errors that say which") {
  CHECK_THROWS_WITH_AS(static_cast<void>(info(static_cast<opcode>(33))), "unknown opcode 33", error);
  CHECK_THROWS_WITH_AS(static_cast<void>(lookup("vdiv", "a.txt, line 3")), "unknown operation 'vdiv'", error);
  CHECK(mnemonic(static_cast<opcode>(200)) == "?");
  CHECK_FALSE(is_valid(static_cast<opcode>(33)));
}

TEST_CASE("dispatch hands the opcode over as a constant") {
  for (const auto& entry : infos) {
    int calls = 0;
    dispatch(entry.op, [&](auto op) {
      ++calls;
      CHECK(op.value == entry.op);
    });
    CHECK(calls == 1);
  }
}

TEST_CASE("fields: get and set agree, and a register field refuses what it cannot hold") {
  instruction i;
  for (const slot s : all_slots) {
    CHECK(set(i, s, 200));
    CHECK(get(i, s) == 200);
  }
  CHECK_FALSE(set(i, slot::rd, 256));
  CHECK_FALSE(set(i, slot::r1, -1));
  CHECK(i.rd == 200);
  CHECK(set(i, slot::word3, -5));
  CHECK(i.word3 == -5);
}

}  // namespace
