// Files that are all of what takes most memory for its text: how much reading them allocates.
#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "../temporary_folder.hpp"
#include "allocation.hpp"
#include "raptor/emit/bound.hpp"
#include "raptor/isa/json.hpp"
#include "raptor/memory/plan.hpp"
#include "raptor/sim/artifact.hpp"
#include "raptor/sim/timing_hardware.hpp"
#include "raptor/sim/timing_input.hpp"
#include "raptor/target/configuration_json.hpp"
#include "raptor/verify/program.hpp"

using namespace raptor;
using raptor_test::temporary_folder;

namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20, size = 3 * megabyte;

/// A piece of text again and again.
std::string repeat(std::string_view piece, std::string_view separator, std::size_t bytes = size) {
  std::string text(piece);
  while (text.size() < bytes) text.append(separator).append(piece);
  return text;
}
void write(const std::filesystem::path& file, std::string_view text) {
  std::ofstream out(file, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  REQUIRE(out);
}
/// Most bytes that are allocated while something is read; that it is refused is as good as that it is accepted.
template <class Read>
std::size_t peak_of(const Read& read) {
  footprint::restart();
  try {
    read();
  } catch (const error& e) {
    CHECK(e.code() != error_code::internal);
  }
  return footprint::peak();
}

target::configuration hardware() {
  target::configuration c;
  c.chip_config.core_cnt = 1 << 20;
  c.chip_config.core_config.matrix_config.xbar_array_count = 1 << 30;
  return c;
}

/// Documents whose parts a reader of JSON would make into many times their text.
template <class Visit>
void hostile_values(const Visit& visit) {
  std::string names;
  for (std::size_t i = 0; names.size() < size; ++i) names.append(i == 0 ? "\"" : ",\"").append(std::to_string(i)).append("\":[0]");
  visit("numbers", "[" + repeat("1", ",") + "]");
  visit("objects", "[" + repeat("{}", ",") + "]");
  visit("lists", "[" + repeat("[]", ",") + "]");
  visit("strings", "[" + repeat("\"\"", ",") + "]");
  visit("one string", "\"" + std::string(size, 'y') + "\"");
  visit("names", "{" + names + "}");
  visit("deep", std::string(size, '['));
}

}  // namespace

TEST_CASE("config.json takes at most four times its size, whatever it contains") {
  const temporary_folder folder;
  write(folder.path() / "memory.bin", std::string(64, '\0'));
  write(folder.path() / "core_0.pim", std::string_view("PIMB\1\0\0\0\0\0\0\0", 12));
  const auto check = [&](const std::string& what, const std::string& fields, const std::string& map, const std::string& addresses) {
    const std::string config = "{\"core_cnt\":1,\"xbar_size\":[4,4],\"cell_precision\":32,\"array_group_map\":" + map + ",\"inputs_addresses\":" + addresses +
                               ",\"inputs_sizes\":" + addresses + ",\"outputs_addresses\":[],\"outputs_sizes\":[]" + fields + "}";
    CAPTURE(what);
    CAPTURE(config.size());
    write(folder.path() / "config.json", config);
    CHECK(peak_of([&] { static_cast<void>(sim::load_artifact(folder.path())); }) <= 4 * config.size() + 2 * megabyte);
    CHECK(peak_of([&] { static_cast<void>(sim::timing::load_timed(folder.path(), hardware())); }) <= 4 * config.size() + 2 * megabyte);
    const std::string single = "{\"config\":" + config + ",\"core0\":[]}";
    write(folder.path() / "single.json", single);
    CHECK(peak_of([&] { static_cast<void>(sim::timing::load_timed(folder.path() / "single.json", hardware())); }) <= 4 * single.size() + 2 * megabyte);
  };
  const std::string map = "{\"core0\":[]}", none = "[]";
  check("little", "", map, none);
  hostile_values([&](const std::string& what, const std::string& value) {
    check(what + " in another field", ",\"other\":" + value, map, none);
    check(what + " as the map", "", value, none);
    check(what + " as a core's list", "", "{\"core0\":" + value + "}", none);
    check(what + " as addresses", "", map, value);
    check(what + " as names", ",\"inputs_names\":" + value, map, none);
  });
  check("shapes", ",\"inputs_shapes\":[" + repeat("[" + repeat("1", ",", 100) + "]", ",", 60000 * 101) + "]", map, "[" + repeat("0", ",", 120000) + "]");
  std::string cores = "\"core0\":[1]";
  for (int core = 1; core < 200000; ++core) cores += ",\"core" + std::to_string(core) + "\":[1]";
  check("cores", ",\"core_cnt\":200000", "{" + cores + "}", none);
}

TEST_CASE("a hardware configuration takes at most four times its size, whatever it contains") {
  const temporary_folder folder;
  hostile_values([&](const std::string& what, const std::string& value) {
    const std::string text = "{\"chip_config\":{\"core_cnt\":4,\"other\":" + value + "}}";
    CAPTURE(what);
    write(folder.path() / "hardware.json", text);
    CHECK(peak_of([&] { static_cast<void>(sim::timing::read_hardware(folder.path() / "hardware.json")); }) <= 4 * text.size() + 2 * megabyte);
    CHECK(peak_of([&] { static_cast<void>(target::parse_configuration(text, "hardware.json")); }) <= 3 * text.size() + 2 * megabyte);
  });
}

TEST_CASE("instructions in JSON take at most four times their size") {
  const temporary_folder folder;
  for (const std::string instruction : {R"({"op":"ld"})", R"({"op":"lmv","len":1,"offset":{"offset_value":1}})", R"({"op":"ld","other":[{},{},{},{}]})"}) {
    const std::string text = "[" + repeat(instruction, ",") + "]";
    CAPTURE(instruction);
    write(folder.path() / "core_0.json", text);
    CHECK(peak_of([&] { static_cast<void>(isa::parse_json(text, "core_0.json")); }) <= 3 * text.size() + megabyte);
    CHECK(peak_of([&] { static_cast<void>(sim::timing::input_parts::read_json_core(folder.path() / "core_0.json")); }) <= 4 * text.size() + megabyte);
  }
}

TEST_CASE("a bound program takes at most four times its text and the allowance, whatever lines it has") {
  const temporary_folder folder;
  std::filesystem::create_directory(folder.path() / "weights");
  const std::string head = "raptor program 1\nname \"x\"\nchip cores 2 crossbars 4 rows 4 columns 4 weight_columns 4 cell_bits 32 weight_bits 32 element_bits 32 adc 16 "
                           "local_memory 65536\n";
  const std::string no_buffers = "global {\n}\n";
  const auto check = [&](const std::string& what, const std::string& text) {
    CAPTURE(what);
    write(folder.path() / "bound.txt", head + text);
    const auto peak = peak_of([&] {
      auto bound = emit::read_bound(folder.path());
      verify::check_program(bound);
      memory::check_plan(memory::plan(std::move(bound)));
    });
    CHECK(peak <= 4 * (head.size() + text.size()) + program::text_allowance + megabyte);
  };
  const auto lines = [](std::string_view line, std::size_t bytes = size) { return repeat(line, "\n", bytes) + "\n"; };
  for (const std::size_t bytes : {megabyte, 4 * megabyte}) {
    for (const char* line : {"st", "nop", "wait count 1", "sync peer 1", "lldi %0[0] len 1", "vrelu %1[0] <- %0[0] len 1", "loop i0 1 {\n}", "\tloop i0 2 {\n\twait count 1\n\t}",
                             "vrelu %0[i0+i1+i2+i3+i4+i5+i6+i7+i8+i9+i10+i11] <- %0[i0] len 1", "groups 0 0 0 0 0 0 0 0", "buffer %0 \"\" 1"})
      check(line, "weight rows 1 columns 1 \"\"\n" + no_buffers + "cores 2\ncore\t0 {\nbuffer %0 \"a\" 64\nbuffer %1 \"b\" 64\nlldi %0[0] len 64\n" + lines(line, bytes) + "}\n");
    std::string numbered;
    for (std::size_t b = 0; numbered.size() < bytes; ++b) numbered += "buffer %" + std::to_string(b) + " \"\" 1\n";
    check("buffers", "global {\n" + numbered + "}\ncores 2\n");
    check("data", "global {\n" + lines("buffer %0 \"\" 1 data", bytes) + "}\ncores 2\n");
    check("long data", "global {\nbuffer %0 \"\" 9 data " + repeat("0x0", " ", bytes) + "\n}\ncores 2\n");
    check("origins", lines("origin \"\"", bytes) + no_buffers + "cores 2\n");
    check("one origin", "origin \"" + std::string(bytes, 'y') + "\"\n" + no_buffers + "cores 2\n");
    check("weights", lines("weight rows 0 columns 1 \"\"", bytes) + no_buffers + "cores 2\n");
    check("inputs", no_buffers + lines("input \"\" %0 1", bytes) + "cores 2\n");
    check("dimensions", no_buffers + lines("output \"\" %0 " + repeat("1", "x", 120), bytes) + "cores 2\n");
  }
  check("cores", no_buffers + "cores 1048576\n");
  write(folder.path() / "constants.bin", std::string(megabyte, '\0'));
  check("constants", "global {\n" + lines("buffer %0 \"\" 1 constants 0 262144") + "}\ncores 2\n");
}
