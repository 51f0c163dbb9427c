// raptor-sim: functional execution of what raptor-compile wrote.
#include "support.hpp"

#include <nlohmann/json.hpp>

using namespace tools_test;
using strings = std::vector<std::string>;

namespace {

/// lenet5 compiled for the small chip, with an input.
struct compiled {
  temporary_folder folder;
  std::string artifact = folder / "out", inputs = folder / "in";
  compiled() {
    fs::create_directory(inputs);
    const auto model = zoo(folder, "lenet5", {"--write-input", inputs + "/input_0.bin"});
    REQUIRE(run("raptor-compile", strings{model, "-o", artifact, "--pim-emit-json"} + small_chip).status == 0);
  }
};

outcome check_failure(const strings& arguments, const std::string& part) {
  const auto result = run("raptor-sim", arguments);
  CAPTURE(result.err);
  CHECK(result.status == 1);
  CHECK(result.err.rfind("raptor-sim: error: ", 0) == 0);
  CHECK(contains(result.err, part));
  return result;
}

}  // namespace

TEST_CASE("outputs, ranges of memory, a report and a trace") {
  const compiled c;
  const auto out = c.folder / "y.bin";
  const auto result = run("raptor-sim", {c.artifact, "-o", out, "--input-dir", c.inputs, "--mode=latency", "--batch-size=1"});
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  CHECK(contains(result.out, "output output: 40 bytes"));
  REQUIRE(contents(out).size() == 40);

  const auto report = run("raptor-sim", {c.artifact, "--input-dir", c.inputs, "--json", "--trace-instructions", c.folder / "trace.txt"});
  REQUIRE(report.status == 0);
  const auto json = nlohmann::json::parse(report.out);
  CHECK(json["status"] == "ok");
  CHECK(json["error"].is_null());
  CHECK(json["mode"] == 1);
  CHECK(json["cores"].size() == 6);
  CHECK(lines(contents(c.folder / "trace.txt")).size() == json["instructions"].get<std::size_t>());
  CHECK(contains(contents(c.folder / "trace.txt"), "core 0 index 0 | setbw"));

  // The same bytes by --dump at the address that config.json names.
  const auto config = nlohmann::json::parse(contents(c.artifact + "/config.json"));
  const auto address = std::to_string(config["outputs_addresses"][0].get<std::int64_t>());
  REQUIRE(run("raptor-sim", {c.artifact, "--input-dir", c.inputs, "-o", c.folder / "part", "--dump=" + address + ",8," + address + ",40"}).status == 0);
  CHECK(contents(c.folder / "part") == contents(out).substr(0, 8) + contents(out));
}

TEST_CASE("JSON streams, moved parts, and the strict check of global memory give the same outputs") {
  const compiled c;
  REQUIRE(run("raptor-sim", {c.artifact, "-o", c.folder / "y.bin", "--input-dir", c.inputs, "--check-global-memory"}).status == 0);
  const auto expected = contents(c.folder / "y.bin");
  fs::copy(c.artifact, c.folder / "json", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  for (int core = 0; core < 6; ++core) fs::remove(c.folder / ("json/core_" + std::to_string(core) + ".pim"));
  REQUIRE(run("raptor-sim", {c.folder / "json", "-o", c.folder / "j.bin", "--input-dir", c.inputs}).status == 0);
  CHECK(contents(c.folder / "j.bin") == expected);

  fs::rename(c.folder / "json/config.json", c.folder / "moved.json");
  fs::rename(c.folder / "json/memory.bin", c.folder / "moved.bin");
  check_failure({c.folder / "json", "--input-dir", c.inputs}, "config.json");
  REQUIRE(run("raptor-sim", {c.folder / "json", "-o", c.folder / "m.bin", "--input-dir", c.inputs, "--config", c.folder / "moved.json", "--memory",
                             c.folder / "moved.bin", "--cores", c.artifact})
              .status == 0);
  CHECK(contents(c.folder / "m.bin") == expected);
}

TEST_CASE("inputs of another size, and none") {
  const compiled c;
  const auto input = contents(c.inputs + "/input_0.bin");
  for (const auto& bytes : {input.substr(4), input + "more", std::string()}) {
    write(c.inputs + "/input_0.bin", bytes);
    check_failure({c.artifact, "-o", c.folder / "y.bin", "--input-dir", c.inputs}, std::to_string(bytes.size()) + " bytes, the program expects 3136");
    const auto report = run("raptor-sim", {c.artifact, "--json", "--input-dir", c.inputs});
    CHECK(report.status == 1);
    const auto json = nlohmann::json::parse(report.out);
    CHECK(json["status"] == "error");
    CHECK(contains(json["error"].get<std::string>(), "3136"));
  }
  CHECK(run("raptor-sim", {c.artifact}).status == 2);
  check_failure({c.artifact, "--input-dir", c.folder / "none"}, "input_0.bin");
  CHECK_FALSE(fs::exists(c.folder / "y.bin"));
}

TEST_CASE("damaged artifacts say which file and what") {
  const compiled c;
  const auto pim = c.artifact + "/core_1.pim", config = c.artifact + "/config.json";
  const auto stream = contents(pim), configuration = contents(config);
  const auto with = [&](const std::string& file, const std::string& good, const std::string& bad, const std::string& part) {
    CAPTURE(part);
    write(file, bad);
    const auto result = check_failure({c.artifact, "--input-dir", c.inputs}, part);
    CHECK(contains(result.err, "  at: "));
    write(file, good);
  };
  with(pim, stream, "", "bytes");
  with(pim, stream, stream.substr(0, stream.size() - 1), "core_1.pim");
  with(pim, stream, "PIMX" + stream.substr(4), "magic");
  with(pim, stream, stream.substr(0, 4) + '\2' + stream.substr(5), "version");
  with(pim, stream, stream.substr(0, 32) + '\x50' + stream.substr(33), "out of range: 80");
  with(config, configuration, "{", "config.json");
  with(config, configuration, "{}", "core_cnt");
  auto fewer = nlohmann::json::parse(configuration);
  fewer["core_cnt"] = 5;
  with(config, configuration, fewer.dump(), "core");
  CHECK(run("raptor-sim", {c.artifact, "--input-dir", c.inputs}).status == 0);

  const auto link = c.artifact + "/core_1/group_0.bin";
  const auto weights = fs::canonical(link);
  const auto content = contents(weights);
  with(weights.string(), content, content.substr(4), "group_0.bin");
  fs::remove(link);
  check_failure({c.artifact, "--input-dir", c.inputs}, "group_0.bin");
  check_failure({c.folder / "none", "--input-dir", c.inputs}, "none");
}

TEST_CASE("cores that wait for one another: the cycle with cores and instruction indices") {
  const compiled c;
  // Two streams that both receive first.
  const auto text = [](int peer) {
    return "[{\"op\":\"setbw\",\"ibiw\":32,\"obiw\":32},{\"op\":\"sldi\",\"rd\":1,\"imm\":0},"
           "{\"op\":\"recv\",\"rd\":1,\"core\":" + std::to_string(peer) + ",\"size\":4,\"offset\":{\"offset_select\":0,\"offset_value\":0}},"
           "{\"op\":\"send\",\"rd\":1,\"rs1\":1,\"core\":" + std::to_string(peer) + ",\"size\":4,\"offset\":{\"offset_select\":0,\"offset_value\":0}}]";
  };
  for (int core = 0; core < 6; ++core) {
    const auto stem = c.artifact + "/core_" + std::to_string(core);
    fs::remove(stem + ".pim");
    write(stem + ".json", core < 2 ? text(1 - core) : "[]");
  }
  const auto result = check_failure({c.artifact, "--input-dir", c.inputs}, "deadlock");
  CHECK(contains(result.err, "core 0"));
  CHECK(contains(result.err, "core 1"));
  CHECK(contains(result.err, "instruction 2"));
}
