// Emitted directories keep every rule of ARTIFACTS.md and of ISA.md, "Constraints of the timing simulator"; a directory that breaks one is noticed.
#include "checker.hpp"

#include "../tools/support.hpp"

#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace artifact_test;
using tools_test::contents;
using tools_test::run;
using tools_test::temporary_folder;
using tools_test::write;
using tools_test::zoo;
namespace fs = std::filesystem;
using strings = std::vector<std::string>;
using tools_test::operator+;

namespace {

std::string joined(const strings& found) {
  std::string text;
  for (std::size_t i = 0; i < found.size() && i < 10; ++i) text += found[i] + "\n";
  return text;
}
/// Compiles, and expects that the directory keeps every rule.
void compile(const std::string& model, const std::string& out, const chip& c, const strings& more = {}) {
  const strings flags{model, "-o", out, "--core-count=" + std::to_string(c.cores), "--crossbar-count=" + std::to_string(c.crossbars),
                      "--crossbar-size=" + std::to_string(c.size)};
  const auto result = run("raptor-compile", flags + more + (c.json ? strings{"--pim-emit-json"} : strings{}));
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
}

/// Overwrites bytes of a file.
void patch(const fs::path& file, std::size_t at, const std::string& bytes) {
  auto all = contents(file);
  REQUIRE(at + bytes.size() <= all.size());
  all.replace(at, bytes.size(), bytes);
  write(file, all);
}
std::string word(std::int32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(static_cast<std::uint32_t>(value) >> shift & 0xffu);
  return bytes;
}

}  // namespace

TEST_CASE("emitted directories keep every rule") {
  const temporary_folder folder;
  struct sample {
    std::string network;
    strings zoo_options;
    chip target;
    strings options;
  };
  const std::vector<sample> samples{
      {"lenet5", {}, {6, 16, 64, 16, 32, 32, true}, {}},
      {"demo", {}, {40, 16, 32, 16, 32, 32, true}, {"--pim-disable-spatial-planning"}},
      {"mobilenetv2", {"--size=64"}, {144, 64, 128}, {}},
      {"shufflenet", {"--size=64"}, {144, 64, 128}, {}},
      {"squeezenet1.1", {"--size=64"}, {100, 16, 128}, {"--pim-conv-lowering=legacy"}}};
  for (const auto& s : samples) {
    CAPTURE(s.network);
    const auto out = folder / (s.network + ".out");
    compile(zoo(folder, s.network, s.zoo_options), out, s.target, s.options);
    const auto found = broken_rules(out, s.target);
    CHECK_MESSAGE(found.empty(), joined(found));
  }
}

TEST_CASE("cores without work have an empty stream and an empty list of array groups") {
  const temporary_folder folder;
  const chip c{64, 64, 128};
  compile(zoo(folder, "tiny"), folder / "out", c);
  CHECK(broken_rules(folder / "out", c).empty());
  const auto config = nlohmann::json::parse(contents(folder / "out/config.json"));
  std::size_t idle = 0;
  for (int core = 0; core < 64; ++core) {
    const auto bytes = contents(folder / ("out/core_" + std::to_string(core) + ".pim"));
    if (bytes.size() > 12) continue;
    ++idle;
    CHECK(bytes == "PIMB" + word(1) + word(0));
    CHECK(config["array_group_map"]["core" + std::to_string(core)].empty());
    CHECK(fs::is_empty(folder / ("out/core_" + std::to_string(core))));
  }
  CHECK(idle > 0);
}

TEST_CASE("with a hardware configuration: its ADCs and cells, and the columns of its crossbars") {
  const fs::path targets = fs::path(RAPTOR_SOURCE_DIR) / ".." / "shared" / "targets";
  if (!fs::exists(targets / "p144.json")) {
    std::cout << "SKIPPED: shared folder absent\n";
    return;
  }
  const temporary_folder folder;
  const auto model = zoo(folder, "lenet5");
  for (const auto& [name, c] : {std::pair<std::string, chip>{"p144", {144, 64, 128, 16, 2}}, {"p64", {64, 64, 128, 2, 8}}}) {
    CAPTURE(name);
    REQUIRE(run("raptor-compile", {model, "-o", folder / name, "--pim-target-config=" + (targets / (name + ".json")).string()}).status == 0);
    const auto found = broken_rules(folder / name, c);
    CHECK_MESSAGE(found.empty(), joined(found));
  }
}

TEST_CASE("a directory that breaks a rule is noticed") {
  const temporary_folder folder;
  const chip c{6, 16, 64, 16, 32, 32, true};
  compile(zoo(folder, "lenet5"), folder / "good", c);
  REQUIRE(broken_rules(folder / "good", c).empty());
  const auto good_config = nlohmann::json::parse(contents(folder / "good/config.json"));

  // The first record of an opcode in core 0 … 5: file and offset of the record.
  const auto find = [&](unsigned char op, const fs::path& in) -> std::pair<fs::path, std::size_t> {
    for (int core = 0; core < 6; ++core) {
      const auto file = in / ("core_" + std::to_string(core) + ".pim");
      const auto bytes = contents(file);
      for (std::size_t at = 12; at < bytes.size(); at += 20)
        if (static_cast<unsigned char>(bytes[at]) == op) return {file, at};
    }
    FAIL("no record of opcode " << static_cast<int>(op));
    return {};
  };
  const auto in_record = [&](unsigned char op, std::size_t offset, const std::string& bytes) {
    return [=](const fs::path& d) {
      const auto [file, at] = find(op, d);
      patch(file, at + offset, bytes);
    };
  };
  const auto in_config = [&](const std::function<void(nlohmann::json&)>& change) {
    return [=](const fs::path& d) {
      auto config = good_config;
      change(config);
      write(d / "config.json", config.dump());
    };
  };
  using damage = std::function<void(const fs::path&)>;
  constexpr unsigned char sldi = 1, setbw = 8, mvmul = 9, ld = 25, lmv = 28, send = 29, recv = 30;
  const std::vector<std::pair<std::string, damage>> damages{
      {"names", [](const fs::path& d) { fs::remove(d / "core_5.pim"); }},
      {"names", [](const fs::path& d) { write(d / "core_6.pim", "PIMB"); }},
      {"names", [](const fs::path& d) { fs::remove_all(d / "reports"); }},
      {"core_cnt", in_config([](auto& j) { j["core_cnt"] = 7; })},
      {"xbar_size", in_config([](auto& j) { j["xbar_size"] = {64}; })},
      {"adc_count", in_config([](auto& j) { j.erase("adc_count"); })},
      {"cell_precision", in_config([](auto& j) { j["cell_precision"] = 2; })},
      {"array_group_map", in_config([](auto& j) { j["array_group_map"].erase("core3"); })},
      {"array_group_map", in_config([](auto& j) { j["array_group_map"]["core1"][0] = 0; })},
      {"array_group_map", in_config([](auto& j) { j["array_group_map"]["core1"][0] = 17; })},
      {"ports", in_config([](auto& j) { j["outputs_addresses"][0] = j["inputs_addresses"][0]; })},
      {"ports", in_config([](auto& j) { j["inputs_sizes"][0] = 4; })},
      {"ports", in_config([](auto& j) { j["inputs_addresses"].push_back(0); })},
      {"ports", in_config([](auto& j) { j["outputs_addresses"][0] = 1 << 30; })},
      {"weights", in_config([](auto& config) {  // one crossbar more, on a core that has one to spare
         for (auto& [core, counts] : config["array_group_map"].items()) {
           int sum = 0;
           for (const auto& count : counts) sum += count.template get<int>();
           if (counts.empty() || sum >= 16) continue;
           counts[0] = counts[0].template get<int>() + 1;
           return;
         }
         FAIL("every core is full");
       })},
      {"weights", [](const fs::path& d) { fs::copy(d / "weights/w00000.bin", d / "weights/w00099.bin"); }},
      {"weights", [](const fs::path& d) { write(d / "weights/w00099.bin", "none's"); }},
      {"links", [](const fs::path& d) { fs::remove(d / "core_1/group_1.bin"); }},
      {"links", [](const fs::path& d) { fs::remove(d / "core_1/group_1.bin"), fs::copy(d / "core_1/group_0.bin", d / "core_1/group_1.bin"); }},
      {"links", [](const fs::path& d) { fs::remove(d / "core_1/group_1.bin"), fs::create_symlink(fs::absolute(d / "weights/w00000.bin"), d / "core_1/group_1.bin"); }},
      {"header", [](const fs::path& d) { patch(d / "core_0.pim", 0, "PIMA"); }},
      {"header", [](const fs::path& d) { patch(d / "core_0.pim", 4, word(2)); }},
      {"header", [](const fs::path& d) { patch(d / "core_0.pim", 8, word(1)); }},
      {"opcode", [](const fs::path& d) { patch(d / "core_0.pim", 12, "\x21"); }},
      {"flags", in_record(sldi, 3, "\x01")},
      {"unused fields", in_record(sldi, 16, word(1))},
      {"unused fields", in_record(setbw, 1, "\x01")},
      {"setbw first", in_record(setbw, 8, word(16))},
      {"last instruction", [](const fs::path& d) { patch(d / "core_0.pim", contents(d / "core_0.pim").size() - 20, std::string("\x01\x00\x00\x00", 4)); }},
      {"registers", in_record(sldi, 1, "\x20")},
      {"offset 0", in_record(ld, 12, word(4))},
      {"offset 0", in_record(lmv, 8, word(1))},
      {"length", in_record(lmv, 16, word(0))},
      {"peer core", in_record(send, 4, word(6))},
      {"send's register in rd and r1", in_record(send, 1, "\x1e")},
      {"send and recv", in_record(send, 16, word(8))},
      {"send and recv", in_record(recv, 4, word(5))},
      {"broken in the timing simulator", in_record(sldi, 0, std::string(1, '\0'))},
      {"mbiw", in_record(mvmul, 4, word(8))},
      {"relu", in_record(mvmul, 8, word(2))},
      {"array group", in_record(mvmul, 12, word(16))},
      {"r31 in ld and st", in_record(ld, 1, "\x1f")},
      {"even register for a global address", in_record(ld, 2, "\x1d")},
      {"global address", in_record(ld, 16, word(1 << 20))},
      {"overlap in lmv", in_record(lmv, 16, word(1 << 30))},
      {"JSON form", [](const fs::path& d) { write(d / "core_0.json", "[]"); }},
      {"JSON form", [](const fs::path& d) {
         auto list = nlohmann::json::parse(contents(d / "core_0.json"));
         list[1]["imm"] = 12345;
         write(d / "core_0.json", list.dump());
       }}};
  for (const auto& [rule, make] : damages) {
    CAPTURE(rule);
    const fs::path bad = folder / "bad";
    fs::remove_all(bad);
    fs::copy(folder / "good", bad, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    make(bad);
    const auto found = broken_rules(bad, c);
    bool noticed = false;
    for (const auto& line : found) noticed = noticed || line.rfind("[" + rule + "]", 0) == 0;
    CHECK_MESSAGE(noticed, joined(found));
  }
}
