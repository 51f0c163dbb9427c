// Programs in JSON, read event by event.
#include "raptor/sim/timing_input.hpp"

#include "support.hpp"

#include <zlib.h>

using namespace raptor;
using namespace timing_test;

namespace {

timing::timed_stream core_of(const std::string& text) {
  const temporary_folder folder;
  return timing::input_parts::read_json_core(folder.write("core_0.json", text));
}
std::string refusal(const std::string& text) {
  try {
    static_cast<void>(core_of(text));
  } catch (const error& e) {
    return e.what();
  }
  return "accepted";
}
std::string single(const std::string& text, std::size_t* cores = nullptr) {
  const temporary_folder folder;
  auto chip = hardware(4);
  chip.chip_config.core_config.matrix_config.xbar_array_count = 8;
  try {
    const auto p = timing::load_timed(folder.write("p.json", text), chip);
    if (cores != nullptr) *cores = p.cores.size();
  } catch (const error& e) {
    std::string what = e.what();
    if (const auto at = what.find("/p.json': "); at != std::string::npos) what = what.substr(at + 10);
    return what;
  }
  return "accepted";
}

std::string compressed(const std::string& text) {
  auto size = ::compressBound(static_cast<uLong>(text.size()));
  std::string bytes(size, '\0');
  REQUIRE(::compress(reinterpret_cast<Bytef*>(bytes.data()), &size, reinterpret_cast<const Bytef*>(text.data()), static_cast<uLong>(text.size())) == Z_OK);
  return bytes.substr(0, size);
}

}  // namespace

TEST_CASE("a small compressed file does not make the reader hold a large one") {
  const std::string rest = R"("config":{"core_cnt":1,"array_group_map":{"core0":[]}},"core0":[{"op":"setbw","ibiw":8,"obiw":8}]})", start = "{";
  CHECK(single(compressed(start + rest)) == "accepted");
  const std::size_t most = timing::text_source::most_token;
  const std::string refused = "the compressed program has a name or a value of more than 1048576 characters";
  // White space and short values may be as long as they like; strings with quotes inside, names and numbers may not.
  CHECK(single(compressed(start + std::string(2 * most, ' ') + rest)) == "accepted");
  std::string list = "\"x\":[\"\"";
  for (std::size_t i = 0; i < most / 2; ++i) list += ",1,\",\"";
  CHECK(single(compressed(start + list + "]," + rest)) == "accepted");
  CHECK(single(compressed(start + "\"x\":\"" + std::string(most - 100, 'y') + "\"," + rest)) == "accepted");
  std::string quotes;
  while (quotes.size() <= most) quotes += "\\\", [{:";
  for (const auto& part : {"\"x\":\"" + std::string(most + 1, 'y') + "\",", "\"x\":\"" + quotes + "\",", "\"" + std::string(most + 1, 'y') + "\":0,", "\"x\":" + std::string(most + 1, '1') + ","})
    CHECK(single(compressed(start + part + rest)).ends_with(refused));
  // Of the configuration two fields are kept, and not more of them than any program has.
  std::string names, groups = "1";
  for (int i = 0; i < 40; ++i) names += "\"" + std::string(most / 2, static_cast<char>('a' + i % 26)) + std::to_string(i) + "\":[0,{}],";
  CHECK(single(compressed("{\"config\":{" + names + rest.substr(10))) == "accepted");
  for (std::size_t i = 0; i < 3 * most; ++i) groups += ",1";
  CHECK(single(compressed(R"({"config":{"core_cnt":1,"array_group_map":{"core0":[)" + groups + R"(]}},"core0":[]})")).ends_with("config has too many values"));
}

TEST_CASE("the configuration of a single file") {
  const auto with = [](const std::string& config) { return single("{\"config\":" + config + ",\"core0\":[{\"op\":\"setbw\"}]}"); };
  CHECK(with(R"({"x":[[{}],"y"],"core_cnt":1,"z":{"core_cnt":9},"array_group_map":{"core0":[3, 5],"other":"x"},"core":null})") == "accepted");
  CHECK(with(R"({"core_cnt":"7","array_group_map":[],"core_cnt":1,"array_group_map":{"core0":[9],"core\u0030":[1]}})") == "accepted");
  CHECK(with(R"({"core_cnt":1,"array_group_map":{"core0":[4,5]}})") == "Instruction config field 'array_group_map.core0' assigns 9 crossbars, but hardware provides 8");
  for (const char* list : {"[0]", "[1,-1]", "[1.5]", "[[1]]", "[{}]", "[\"1\"]", "[null]", "[true]", "[4294967295]"})
    CHECK(with("{\"core_cnt\":1,\"array_group_map\":{\"core0\":" + std::string(list) + "}}") == "Instruction config field 'array_group_map.core0' must contain positive crossbar counts");
  for (const char* list : {"{}", "1", "\"[]\"", "null"})
    CHECK(with("{\"core_cnt\":1,\"array_group_map\":{\"core0\":" + std::string(list) + "}}") == "Instruction config field 'array_group_map.core0' must be an array");
  CHECK(with(R"({"core_cnt":1,"array_group_map":{"core00":[]}})") == "Instruction config is missing 'array_group_map.core0'");
  CHECK(with(R"({"core_cnt":1,"array_group_map":[]})") == "Instruction config field 'array_group_map' must be an object");
  CHECK(with(R"({"core_cnt":1})") == "Instruction config field 'array_group_map' must be an object");
  for (const char* count : {"1.0", "\"1\"", "[1]", "{}", "null"})
    CHECK(with("{\"array_group_map\":{\"core0\":[]},\"core_cnt\":" + std::string(count) + "}") == "Instruction config field 'core_cnt' must be a positive integer");
  CHECK(with(R"({"core_cnt":5})") == "Instruction config field 'core_cnt' is 5, but the simulator config supports 1..4");
  for (const char* config : {"[]", "1", "null", "\"{}\""}) CHECK(with(config) == "Single-file instruction input requires an object field 'config'");
  CHECK(with(std::string(64, '[') + std::string(64, ']')) == "Single-file instruction input requires an object field 'config'");
  CHECK(with("{\"x\":" + std::string(64, '[') + std::string(64, ']') + "}").ends_with("config is nested too deeply"));
}

TEST_CASE("a core has at most 65536 array groups") {
  const temporary_folder folder;
  auto chip = hardware(1);
  chip.chip_config.core_config.matrix_config.xbar_array_count = 1 << 20;
  std::string groups = "1";
  for (int i = 1; i < 65536; ++i) groups += ",1";
  const auto load = [&](const std::string& list) {
    return timing::load_timed(folder.write("p.json", R"({"config":{"core_cnt":1,"array_group_map":{"core0":[)" + list + R"(]}},"core0":[{"op":"mvmul","mbiw":8}]})"), chip);
  };
  CHECK(load(groups).cores.at(0).groups.size() == 65536);
  CHECK_THROWS_WITH_AS(static_cast<void>(load(groups + ",1")), "Instruction config field 'array_group_map.core0' has 65537 array groups; 65536 are the most", error);
}

TEST_CASE("fields of instructions") {
  const auto s = core_of(R"([{"op":"sadd","rd":1,"rs1":2,"rs2":3,"len":"unused here"},
    {"op":"lmv","rd":1,"rs1":2,"len":40,"size":7,"offset":{"offset_select":1,"offset_value":12,"other":[{"offset_value":1}]}},
    {"op":"vvadd","len":3.9,"offset":{"offset_value":true},"offset_value":99},
    {"extra":{"op":"nop","deep":[[{}],"x"]},"op":"saddi","imm":-5,"offset_value":4},
    {"op":"lldi","op":"send","core":3,"core":2,"size":4294967295},
    {"op":"wait","event_register":4,"wait_value":2},{"op":"setbw","ibiw":8,"obiw":16},{"op":"mvmul","mbiw":8,"group":2}])");
  REQUIRE(s.size() == 8);
  const auto* const i = s.data();
  CHECK(i[0].rs2 == 3);
  CHECK(i[1].length == 40);
  CHECK(i[1].immediate == 7);
  CHECK(i[1].value == 12);
  CHECK(i[2].length == 3);
  CHECK(i[2].value == 1);
  CHECK(i[3].immediate == -5);
  CHECK(i[4].op == isa::opcode::send);
  CHECK(i[4].immediate == 2);
  CHECK(i[4].length == -1);
  CHECK(i[5].select == 4);
  CHECK(i[5].value == 2);
  CHECK(i[6].value == 16);
  CHECK(i[7].select == 2);
  CHECK(core_of("[]").empty());
}

TEST_CASE("faults of instructions") {
  CHECK(refusal("{}") == "JSON instruction file must contain an array");
  CHECK(refusal("7") == "JSON instruction file must contain an array");
  CHECK(refusal(R"([{"rd":1}])") == "[json.exception.out_of_range.403] key 'op' not found");
  CHECK(refusal(R"([{"op":3}])") == "[json.exception.type_error.302] type must be string, but is number");
  CHECK(refusal(R"([{"op":"ld","size":[1]}])") == "[json.exception.type_error.302] type must be number, but is array");
  CHECK(refusal(R"([{"op":"ld","offset":null}])") == "[json.exception.type_error.306] cannot use value() with null");
  CHECK(refusal(R"([{"op":"ld","offset":{"offset_select":{}}}])") == "[json.exception.type_error.302] type must be number, but is object");
  CHECK(refusal(R"([[]])") == "[json.exception.type_error.304] cannot use at() with array");
  CHECK(refusal(R"([{"op":"lldi"},4])") == "[json.exception.type_error.304] cannot use at() with number");
  CHECK(refusal(R"([{"op":"jump"}])") == "Opcode::_from_string: invalid argument");
  CHECK(refusal(R"([{"op":"vsoftmax"}])") == "pimsim-nn does not support opcode vsoftmax");
  CHECK(refusal(R"([{"op":"sldi","rd":32}])") == "register number 32 is outside 0..31");
  // A text that is no JSON comes first, whatever its instructions.
  CHECK(refusal(R"([{"rd":1},)").find("parse error at line 1, column 11") != std::string::npos);
}

TEST_CASE("the single file") {
  const std::string config = R"("config":{"core_cnt":3,"array_group_map":{"core0":[1],"core1":[2,2],"core2":[]}})";
  std::size_t cores = 0;
  CHECK(single("{\"core1\":[{\"op\":\"lldi\"}]," + config + ",\"core2\":[],\"core7\":3,\"core01\":\"x\",\"other\":[{\"op\":1}]}", &cores) == "accepted");
  CHECK(cores == 2);
  CHECK(single("{" + config + ",\"core0\":4}") == "Single-file instruction field 'core0' must be an array");
  CHECK(single("{" + config + ",\"core0\":{\"a\":[]}}") == "Single-file instruction field 'core0' must be an array");
  CHECK(single("{" + config + ",\"core0\":4,\"core0\":[]}") == "accepted");
  CHECK(single("{" + config + "}") == "Single-file instruction input contains no configured core instructions");
  CHECK(single("[" + std::string("{") + config + "}]") == "Single-file instruction input requires an object field 'config'");
  CHECK(single("{\"config\":[1],\"core0\":[]}") == "Single-file instruction input requires an object field 'config'");
  CHECK(single("{\"config\":{\"core_cnt\":9},\"core0\":[]}") == "Instruction config field 'core_cnt' is 9, but the simulator config supports 1..4");
  CHECK(single("{" + config + ",\"core1\":[{\"op\":\"jump\"}],\"core0\":[{}]}") == "[json.exception.out_of_range.403] key 'op' not found");
  CHECK(single("{" + config + ",\"core0\":[{\"op\":\"mvmul\",\"mbiw\":8,\"group\":1}],\"core1\":[{}]}") ==
        "Instruction for core0 references array group 1 outside 'array_group_map.core0'");
}

TEST_CASE("a large number of cores costs nothing before there are instructions") {
  const temporary_folder folder;
  auto chip = hardware(1);
  chip.chip_config.core_cnt = 2'000'000'000;
  std::filesystem::create_directory(folder / "d");
  std::ofstream(folder / "d/config.json") << R"({"core_cnt":2000000000,"array_group_map":{}})";
  std::ofstream(folder / "d/core_0.json") << "[]";
  CHECK_THROWS_WITH_AS(static_cast<void>(timing::load_timed(folder / "d", chip)), doctest::Contains("is missing core_1.json or core_1.pim"), error);
  std::ofstream(folder / "d/core_77777777777777777777.pim") << "";
  CHECK_THROWS_AS(static_cast<void>(timing::load_timed(folder / "d", chip)), error);
}
