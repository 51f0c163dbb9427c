#include "raptor/isa/text.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "raptor/isa/reference.hpp"
#include "raptor/support/error.hpp"

namespace {

using namespace raptor;
using namespace raptor::isa;

static_assert([] {
  for (const auto& entry : infos)
    for (std::int32_t seed = 0; seed < 3; ++seed)
      if (parse_text(to_text(sample(entry.op, seed))) != sample(entry.op, seed)) return false;
  return true;
}());
static_assert(to_text({opcode::mvmul, 3, 4, 32, 0, 2, 0}) == "mvmul r3, r4, mbiw=32, relu=0, group=2");
static_assert(to_text({opcode::send, 5, 5, 7, 0, 0, 256}) == "send r5, core=7, size=256");
static_assert(parse_text("send r5, core=7, size=256").rd == 5);
static_assert(parse_text("mvmul r3,r4, group=2 , relu=1,mbiw=0x20") == instruction{opcode::mvmul, 3, 4, 32, 1, 2, 0});
static_assert(assemble("# zero\nsldi r1, imm=-1 # one\n\n  7: nop\n").size() == 2);

static_assert(parse_number("0xffffffff") == -1 && parse_number("-2147483648") == -2147483647 - 1);
static_assert(!parse_number("") && !parse_number("-") && !parse_number("0x") && !parse_number("2147483648") && !parse_number("1x") &&
              !parse_number("0x100000000") && !parse_number("99999999999999999999") && !parse_number("--1") && !parse_number("+1"));

std::string failure(std::string_view text) {
  try {
    static_cast<void>(assemble(text, "a.txt"));
  } catch (const error& e) {
    CHECK(e.code() == error_code::malformed);
    return std::string(e.what()) + " | " + e.place();
  }
  return "no error";
}

TEST_CASE("the text form of each instruction") {
  const instruction full{opcode::nop, 1, 2, 3, 4, 5, 6};
  const auto line = [&](opcode op) {
    instruction i = full;
    i.op = op;
    return to_text(i);
  };
  CHECK(line(opcode::saddi) == "saddi r1, r2, imm=3, word1=4, word2=5, word3=6");
  CHECK(line(opcode::vvadd) == "vvadd r1, r2, r3, offset_select=4, offset_value=5, len=6");
  CHECK(line(opcode::recv) == "recv r1, r1=2, core=3, offset_select=4, offset_value=5, size=6");
  CHECK(line(opcode::send) == "send r2, rd=1, core=3, offset_select=4, offset_value=5, size=6");
  CHECK(to_text({opcode::sync, 0, 0, 9, 31, 0, 0}) == "sync core=9, event=31");
  CHECK(to_text({opcode::wait, 0, 0, 0, 31, 4, 0}) == "wait event=31, value=4");
  CHECK(to_text({opcode::setbw, 0, 0, 0, 32, 16, 0}) == "setbw ibiw=32, obiw=16");
  CHECK(to_text({opcode::nop, 0, 0, 0, 0, 0, 0}) == "nop");
  CHECK(to_text({opcode::sldi, 31, 0, -2147483647 - 1, 0, 0, 0}) == "sldi r31, imm=-2147483648");
  CHECK_THROWS_AS(static_cast<void>(to_text({static_cast<opcode>(77), 0, 0, 0, 0, 0, 0})), error);
}

TEST_CASE("every record with a valid opcode reads back, whatever its fields") {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    instruction i;
    i.op = static_cast<opcode>(random() % 33);
    for (const slot s : all_slots)
      if (random() % 3 != 0)
        set(i, s, s == slot::rd || s == slot::r1 ? static_cast<std::int32_t>(random() % 256) : static_cast<std::int32_t>(random()));
    CAPTURE(to_text(i));
    CHECK(parse_text(to_text(i)) == i);
  }
}

TEST_CASE("a stream is disassembled with or without indices and assembled again") {
  std::vector<instruction> program;
  for (const auto& entry : infos) program.push_back(sample(entry.op, 2));
  CHECK(assemble(disassemble(program)) == program);
  const auto indexed = disassemble(program, true);
  CHECK(indexed.starts_with("0: nop\n1: sldi r5, imm="));
  CHECK(assemble(indexed) == program);
  CHECK(disassemble({}).empty());
  CHECK(assemble("").empty());
  CHECK(assemble("nop\r\nnop\r\n").size() == 2);
}

TEST_CASE("a wrong line is an error with its number and reason") {
  CHECK(failure("nop\n\nvdiv r1") == "unknown operation 'vdiv' | a.txt, line 3");
  CHECK(failure("sldi") == "sldi lacks a register (result register) in 'sldi' | a.txt, line 1");
  CHECK(failure("sldi r1") == "sldi lacks imm= in 'sldi r1' | a.txt, line 1");
  CHECK(failure("sldi r1, imm=1,") == "an operand is missing after the last comma in 'sldi r1, imm=1,' | a.txt, line 1");
  CHECK(failure("sldi r1,, imm=1") == "'' is neither a register rN nor name=number in 'sldi r1,, imm=1' | a.txt, line 1");
  CHECK(failure("sldi r1, r2, imm=1") == "sldi takes fewer registers in 'sldi r1, r2, imm=1' | a.txt, line 1");
  CHECK(failure("sldi r1, imm=1, imm=2") == "an operand is given twice in 'sldi r1, imm=1, imm=2' | a.txt, line 1");
  CHECK(failure("sldi r1, imm=99999999999") == "'99999999999' is not a 32-bit number in 'sldi r1, imm=99999999999' | a.txt, line 1");
  CHECK(failure("sldi r300, imm=1") == "a register field holds 0 to 255 in 'sldi r300, imm=1' | a.txt, line 1");
  CHECK(failure("sldi x, imm=1") == "'x' is neither a register rN nor name=number in 'sldi x, imm=1' | a.txt, line 1");
  CHECK(failure("wait event=1, value=1, core=2") == "wait has no operand 'core' in 'wait event=1, value=1, core=2' | a.txt, line 1");
  CHECK(failure("mvmul r1, r2, mbiw=32, relu=0") == "mvmul lacks group= in 'mvmul r1, r2, mbiw=32, relu=0' | a.txt, line 1");
  CHECK(failure("5:") == "no instruction in '5:' | a.txt, line 1");
}

TEST_CASE("arbitrary text never does worse than an error") {
  std::mt19937 random(5);
  const std::string alphabet = "rvad0123456789=,: #xlengthsize\n-";
  const std::string base = disassemble(std::vector<instruction>{sample(opcode::vvadd, 1), sample(opcode::send, 1), sample(opcode::ld, 1)});
  int errors = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = base;
    for (int change = 0; change < 3; ++change) text[random() % text.size()] = alphabet[random() % alphabet.size()];
    try {
      const auto program = assemble(text);
      CHECK(assemble(disassemble(program)) == program);
    } catch (const error&) {
      ++errors;
    }
  }
  CHECK(errors > 100);
}

}  // namespace
