#include "raptor/isa/binary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "raptor/isa/reference.hpp"
#include "raptor/support/error.hpp"

namespace {

using namespace raptor;
using namespace raptor::isa;

constexpr std::vector<instruction> all_samples(std::int32_t seeds) {
  std::vector<instruction> all;
  for (const auto& entry : infos)
    for (std::int32_t seed = 0; seed < seeds; ++seed) all.push_back(sample(entry.op, seed));
  return all;
}

static_assert([] {
  const auto program = all_samples(3);
  return decode(encode(program), "constant") == program;
}());

// Each field has bytes of its own: one that is all ones shows exactly there.
static_assert([] {
  for (const slot s : all_slots) {
    instruction i;
    set(i, s, s == slot::rd || s == slot::r1 ? 255 : -1);
    std::array<std::byte, record_size> bytes{};
    encode_record(bytes, i);
    const auto range = slot_bytes[static_cast<std::size_t>(s)];
    for (std::size_t b = 0; b < record_size; ++b) {
      const bool inside = b >= range.offset && b < range.offset + range.size;
      if (bytes[b] != (inside ? std::byte{0xff} : std::byte{0})) return false;
    }
    if (decode_record(bytes) != i) return false;
  }
  return true;
}());

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int v : values) bytes.push_back(static_cast<std::byte>(v));
  return bytes;
}

std::string message(const std::vector<std::byte>& bytes) {
  try {
    static_cast<void>(decode(bytes, "core_3.pim"));
  } catch (const error& e) {
    CHECK(e.code() == error_code::malformed);
    CHECK(e.place().starts_with("core_3.pim"));
    return std::string(e.what()) + " | " + e.place();
  }
  return "no error";
}

TEST_CASE("the bytes are those of ARTIFACTS") {
  const instruction i{opcode::send, 5, 6, 7, 1, -2, 0x01020304};
  const auto expected = bytes_of({'P', 'I', 'M', 'B', 1, 0, 0, 0, 1, 0, 0, 0,                               // header
                                  29, 5, 6, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 4, 3, 2, 1});  // record
  CHECK(encode({&i, 1}) == expected);
  std::array<std::byte, record_size> record{};
  encode_record(record, i);
  CHECK(std::equal(record.begin(), record.end(), expected.begin() + 12));
  CHECK(decode(expected, "x") == std::vector<instruction>{i});
}

TEST_CASE("an empty stream is a header") {
  CHECK(encode({}) == bytes_of({'P', 'I', 'M', 'B', 1, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(decode(encode({}), "x").empty());
}

TEST_CASE("every instruction round-trips at run time, as a whole, in parts, and one by one") {
  const auto program = all_samples(40);
  const auto bytes = encode(program);
  CHECK(decode(bytes, "x") == program);

  binary_writer writer;
  for (std::size_t n = 0; n < 10; ++n) writer.push(program[n]);
  writer.push(std::span<const instruction>(program).subspan(10));
  CHECK(writer.size() == program.size());
  CHECK(writer.finish() == bytes);
  CHECK(writer.finish() == encode({}));  // starts anew

  std::vector<std::byte> appended;
  for (const auto& i : program) append_record(appended, i);
  CHECK(std::equal(appended.begin(), appended.end(), bytes.begin() + header_size, bytes.end()));
}

TEST_CASE("random records round-trip, and both ways of converting agree") {
  std::mt19937 random(7);
  std::vector<instruction> program(2000);
  for (auto& i : program) {
    i.op = static_cast<opcode>(random() % 33);
    for (const slot s : all_slots)
      set(i, s, s == slot::rd || s == slot::r1 ? static_cast<std::int32_t>(random() % 256) : static_cast<std::int32_t>(random()));
  }
  const auto bytes = encode(program);
  CHECK(decode(bytes, "x") == program);
  for (std::size_t n = 0; n < program.size(); ++n)
    CHECK(decode_record(std::span<const std::byte, record_size>(bytes.data() + header_size + n * record_size, record_size)) == program[n]);
}

TEST_CASE("the flags byte is ignored") {
  auto bytes = encode(all_samples(1));
  bytes[header_size + flags_bytes.offset] = std::byte{9};
  CHECK(decode(bytes, "x") == all_samples(1));
}

TEST_CASE("a malformed file is an error that says what") {
  const auto good = encode(all_samples(1));
  CHECK(message({}) == "wrong size: 0 bytes, the header alone has 12 | core_3.pim");

  auto bad = good;
  bad[1] = std::byte{'X'};
  CHECK(message(bad) == "wrong magic: the file does not start with \"PIMB\" | core_3.pim");

  bad = good;
  bad[4] = std::byte{2};
  CHECK(message(bad) == "wrong version: 2, only version 1 is known | core_3.pim");

  bad = good;
  bad.pop_back();
  CHECK(message(bad) == "wrong size: 671 bytes, but the header announces 33 instructions, which make 672 | core_3.pim");
  bad = good;
  bad.push_back(std::byte{0});
  CHECK(message(bad) == "wrong size: 673 bytes, but the header announces 33 instructions, which make 672 | core_3.pim");

  bad = good;  // a count that would need 80 GB is refused before anything is allocated
  for (std::size_t b = 8; b < 12; ++b) bad[b] = std::byte{0xff};
  CHECK(message(bad) == "wrong size: 672 bytes, but the header announces 4294967295 instructions, which make 85899345912 | core_3.pim");

  bad = good;
  bad[header_size + 5 * record_size] = std::byte{33};
  CHECK(message(bad) == "opcode out of range: 33, the largest is 32 | core_3.pim, instruction 5");
}

TEST_CASE("an opcode out of range is found in every block of a long stream") {
  const std::vector<instruction> program(3000, sample(opcode::vvadd));
  for (const std::size_t at : {std::size_t{0}, std::size_t{511}, std::size_t{512}, std::size_t{2999}}) {
    auto bytes = encode(program);
    bytes[header_size + at * record_size] = std::byte{255};
    CHECK(message(bytes) == "opcode out of range: 255, the largest is 32 | core_3.pim, instruction " + std::to_string(at));
  }
}

TEST_CASE("arbitrary bytes never do worse than an error") {
  std::mt19937 random(11);
  const auto good = encode(all_samples(2));
  int errors = 0;
  for (int round = 0; round < 2000; ++round) {
    auto bytes = good;
    for (int change = 0; change < 3; ++change) bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 256);
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    try {
      const auto program = decode(bytes, "x");
      for (const auto& i : program) CHECK(is_valid(i.op));
    } catch (const error& e) {
      CHECK(e.code() == error_code::malformed);
      ++errors;
    }
  }
  CHECK(errors > 0);
}

}  // namespace
