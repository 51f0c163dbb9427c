#include "raptor/isa/json.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "raptor/isa/binary.hpp"
#include "raptor/isa/reference.hpp"
#include "raptor/support/error.hpp"

namespace {

using namespace raptor;
using namespace raptor::isa;

// The text is parsed at run time only; the mapping between record and JSON numbers holds at compile time too.
static_assert([] {
  for (const auto& entry : infos)
    for (std::int32_t seed = 0; seed < 3; ++seed)
      if (from_fields(to_fields(sample(entry.op, seed))) != sample(entry.op, seed)) return false;
  return true;
}());
static_assert(to_json(instruction{opcode::sldi, 1, 0, 1000, 0, 0, 0}) == R"({"op":"sldi","rd":1,"imm":1000})");

std::string failure(std::string_view text) {
  try {
    static_cast<void>(parse_json(text, "core_2.json"));
  } catch (const error& e) {
    CHECK(e.code() == error_code::malformed);
    return std::string(e.what()) + " | " + e.place();
  }
  return "no error";
}

TEST_CASE("the field names are pimsim-nn's") {
  CHECK(to_json({opcode::vvadd, 1, 2, 3, 1, 4, 64}) ==
        R"({"op":"vvadd","rd":1,"rs1":2,"rs2":3,"len":64,"offset":{"offset_select":1,"offset_value":4}})");
  CHECK(to_json({opcode::mvmul, 1, 2, 8, 1, 4, 0}) == R"({"op":"mvmul","rd":1,"rs1":2,"mbiw":8,"relu":1,"group":4})");
  CHECK(to_json({opcode::setbw, 0, 0, 0, 32, 16, 0}) == R"({"op":"setbw","ibiw":32,"obiw":16})");
  CHECK(to_json({opcode::send, 5, 5, 7, 0, 0, 256}) ==
        R"({"op":"send","rd":5,"rs1":5,"core":7,"size":256,"offset":{"offset_select":0,"offset_value":0}})");
  CHECK(to_json({opcode::lldi, 5, 0, 9, 0, 0, 12}) ==
        R"({"op":"lldi","rd":5,"imm":9,"len":12,"offset":{"offset_select":0,"offset_value":0}})");
  CHECK(to_json({opcode::wait, 0, 0, 0, 3, 2, 0}) == R"({"op":"wait","event_register":3,"wait_value":2})");
  CHECK(to_json({opcode::sync, 0, 0, 8, 3, 0, 0}) == R"({"op":"sync","core":8,"event_register":3})");
  CHECK(to_json({opcode::sld, 1, 2, 0, 0, 4, 0}) == R"({"op":"sld","rd":1,"rs1":2,"offset_value":4})");
  CHECK(to_json({opcode::sadd, 1, 2, 3, 0, 0, 0}) == R"({"op":"sadd","rd":1,"rs1":2,"rs2":3})");
}

TEST_CASE("every instruction round-trips, as a whole file and in parts") {
  std::vector<instruction> program;
  for (const auto& entry : infos)
    for (std::int32_t seed = 0; seed < 40; ++seed) program.push_back(sample(entry.op, seed));
  const std::string text = to_json(program);
  CHECK(parse_json(text, "x") == program);
  CHECK(nlohmann::json::parse(text).size() == program.size());

  json_writer writer;
  std::string parts;
  for (const auto& i : program) {
    writer.push(i);
    if (writer.pending() > 500) parts += writer.take();
  }
  parts += writer.finish();
  CHECK(parts == text);
  CHECK(writer.finish() == "[]\n");  // starts anew
  CHECK(parse_json("[]", "x").empty());
}

TEST_CASE("random registers and numbers of named fields round-trip") {
  std::mt19937 random(9);
  std::vector<instruction> program;
  for (int n = 0; n < 3000; ++n) {
    instruction i = sample(static_cast<opcode>(random() % 33));
    for (const slot s : all_slots) {
      if (info(i)[s] == role::unused) continue;
      set(i, s, s == slot::rd || s == slot::r1 ? static_cast<std::int32_t>(random() % 256) : static_cast<std::int32_t>(random()));
    }
    program.push_back(i);
  }
  CHECK(parse_json(to_json(program), "x") == program);
}

TEST_CASE("all fields are optional but op, others are ignored, and numbers of other kinds become integers") {
  CHECK(parse_json(R"([{"op":"vrelu"}])", "x") == std::vector<instruction>{{opcode::vrelu, 0, 0, 0, 0, 0, 0}});
  CHECK(parse_json(R"([{"comment":"x","op":"ld","size":4.9,"rd":true,"more":[1,{"rd":9,"size":"y"}],"any":{"rd":7},"none":null}])", "x") ==
        std::vector<instruction>{{opcode::ld, 1, 0, 0, 0, 0, 4}});
  CHECK(parse_json(R"([{"op":"sldi","rd":1,"imm":4294967295}])", "x")[0].word0 == -1);
  CHECK(parse_json(R"([{"op":"sldi","rd":1,"imm":5,"imm":6}])", "x")[0].word0 == 6);
  CHECK(parse_json(R"([{"op":"st","offset":{"more":{},"offset_value":3,"offset_select":2}}])", "x")[0].word2 == 3);
  CHECK(parse_json(R"([{"rd":4,"op":"vvadd","rs2":6}])", "x")[0].word0 == 6);
}

TEST_CASE("the address register of send may be given once") {
  CHECK(parse_json(R"([{"op":"send","rd":3,"core":1,"size":4}])", "x")[0] == instruction{opcode::send, 3, 3, 1, 0, 0, 4});
  CHECK(parse_json(R"([{"op":"send","rs1":3,"core":1,"size":4}])", "x")[0] == instruction{opcode::send, 3, 3, 1, 0, 0, 4});
  CHECK(parse_json(R"([{"op":"send","rs1":3,"rd":4,"core":1,"size":4}])", "x")[0] == instruction{opcode::send, 4, 3, 1, 0, 0, 4});
}

TEST_CASE("the wide record keeps what a binary record cannot") {
  std::vector<json_fields> seen;
  for_each_json(R"([{"op":"lmv","rd":1,"rs1":2,"len":8,"size":9},{"op":"sldi","rd":1,"rs2":40,"imm":7},{"op":"send","rd":2}])", "x",
                [&](const json_fields& fields, std::size_t index) {
                  CHECK(index == seen.size());
                  seen.push_back(fields);
                });
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].len == 8);
  CHECK(seen[0].size == 9);
  CHECK(seen[1].rs2 == 40);
  CHECK(seen[1].imm == 7);
  CHECK(seen[2].has_rd);
  CHECK_FALSE(seen[2].has_rs1);
}

TEST_CASE("a malformed file is an error with the instruction's index") {
  CHECK(failure("").starts_with("not valid JSON: "));
  CHECK(failure("[{\"op\":\"nop\"},").ends_with(" | core_2.json, instruction 1"));
  CHECK(failure("[] x").starts_with("not valid JSON: "));
  CHECK(failure("{}") == "an array of instructions is expected, not an object | core_2.json, instruction 0");
  CHECK(failure("3") == "an array of instructions is expected, not a number | core_2.json, instruction 0");
  CHECK(failure("[1]") == "an instruction is an object, not a number | core_2.json, instruction 0");
  CHECK(failure("[[]]") == "an instruction is an object, not an array | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":\"nop\"},{}]") == "an instruction without 'op' | core_2.json, instruction 1");
  CHECK(failure("[{\"op\":3}]") == "field 'op' is a number, not a string | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":{}}]") == "field 'op' is an object, not a string | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":\"vdiv\"}]") == "unknown operation 'vdiv' | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":\"ld\",\"size\":null}]") == "field 'size' is null, not a number | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":\"ld\",\"size\":[1]}]") == "field 'size' is an array, not a number | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":\"ld\",\"offset\":3}]") == "field 'offset' is a number, not an object | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":\"ld\",\"offset\":[]}]") == "field 'offset' is an array, not an object | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":\"ld\",\"offset\":{\"offset_value\":{}}}]") ==
        "field 'offset_value' is an object, not a number | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":\"ld\",\"rd\":300}]") == "ld: rd 300 is not a register, there are 0 to 31 | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":\"ld\",\"size\":4294967295}]") == "field 'size' does not fit 32 bits | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":\"ld\",\"size\":1e300}]") == "field 'size' does not fit 32 bits | core_2.json, instruction 0");
  CHECK(failure("[{\"op\":\"sldi\",\"imm\":-2147483649}]") == "field 'imm' does not fit 32 bits | core_2.json, instruction 0");
}

TEST_CASE("deep nesting and arbitrary bytes never do worse than an error") {
  CHECK(failure("[{\"op\":\"nop\",\"x\":" + std::string(1'000'000, '[')).starts_with("not valid JSON"));
  CHECK(failure("[{\"op\":\"" + std::string(1'000'000, 'x') + "\"}]").size() < 1000);
  CHECK(failure("[\"" + std::string(1'000'000, 'x')).size() < 1000);
  std::mt19937 random(13);
  std::vector<instruction> program{sample(opcode::vvadd, 1), sample(opcode::send, 1), sample(opcode::wait, 1)};
  const std::string base = to_json(program);
  const std::string alphabet = "{}[]\":,0123456789.-eoprdlensizefftrue\\ ";
  int errors = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = base;
    for (int change = 0; change < 3; ++change) text[random() % text.size()] = alphabet[random() % alphabet.size()];
    try {
      const auto read = parse_json(text, "x");
      CHECK(read.size() <= 20);
    } catch (const error& e) {
      CHECK(e.code() == error_code::malformed);
      ++errors;
    }
  }
  CHECK(errors > 1000);
}

// Streams that pimsim-nn itself has read, in both forms.
TEST_CASE("the oracle's streams are read, and read back") {
  const std::filesystem::path cases = RAPTOR_SOURCE_DIR "/../shared/oracle/cases";
  if (!std::filesystem::exists(cases)) {
    MESSAGE("SKIPPED: shared folder absent");
    return;
  }
  const auto content = [](const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  int streams = 0;
  int rejected = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cases)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with("core_")) continue;
    const std::string text = content(entry.path());
    std::vector<instruction> program;
    try {
      if (entry.path().extension() == ".json") program = parse_json(text, name);
      else if (entry.path().extension() == ".pim") program = decode(std::as_bytes(std::span(text)), name);
      else continue;
    } catch (const error& e) {
      CHECK(e.code() == error_code::malformed);  // cases about malformed inputs
      ++rejected;
      continue;
    }
    ++streams;
    CHECK(decode(encode(program), name) == program);
    for (auto& i : program) {  // words that the table leaves unused are not part of the JSON form
      for (const slot s : {slot::word0, slot::word1, slot::word2, slot::word3})
        if (json_parts::key_of(info(i), s).empty()) set(i, s, 0);
    }
    CHECK(parse_json(to_json(program), name) == program);
  }
  CHECK(streams > 100);
  CHECK(rejected < streams / 5);
}

}  // namespace
