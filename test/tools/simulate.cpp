// raptor-sim: functional execution of what raptor-compile wrote.
#include "support.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

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

namespace {

/// A hardware file of the small chip and its network file; the time of a message grows with the distance.
std::string write_hardware(const temporary_folder& folder) {
  using nlohmann::json;
  const json memory{{"data_width", 64}, {"period", 1}, {"static_power", 0.5}, {"write_latency_cycle", 2}, {"write_dynamic_energy", 0.5}, {"read_latency_cycle", 1}, {"read_dynamic_energy", 0.25}};
  json table;
  for (int a = 0; a < 6; ++a) {
    for (int b = 0; b < 6; ++b) table[std::to_string(a)][std::to_string(b)] = std::abs(a - b);
    table[std::to_string(a)]["-10"] = 10;
  }
  write(folder / "network.json", json{{"latency", table}, {"energy", table}}.dump());
  const json core{{"period", 1}, {"matrix_config", {{"xbar_array_count", 16}, {"xbar_size", {64, 64}}, {"adc_count", 8}, {"dac_dynamic_power", 0.125}}}, {"local_memory_config", memory}};
  const json network{{"bus_width", 32}, {"layout", {2, 3}}, {"net_config_file_path", "network.json"}};
  const json chip{{"core_cnt", 6}, {"core_config", core}, {"global_memory_config", memory}, {"network_config", network}};
  write(folder / "hardware.json", json{{"chip_config", chip}, {"sim_config", {{"sim_mode", 1}, {"sim_time", 1}}}}.dump());
  return folder / "hardware.json";
}

}  // namespace

TEST_CASE("--timing: the trace, the profile and the breakdown tell of one run") {
  const temporary_folder folder;
  const auto artifact = folder / "out";
  REQUIRE(run("raptor-compile", strings{zoo(folder, "tiny"), "-o", artifact, "--pim-emit-json"} + small_chip).status == 0);
  const strings timing{artifact, "--timing", "--hardware", write_hardware(folder)};
  const auto result = run("raptor-sim", timing + strings{"--json", "--energy-breakdown", "--trace", folder / "trace.json", "--profile", folder / "profile.csv"});
  CHECK(result.err.empty());
  REQUIRE(result.status == 0);
  const auto report = nlohmann::json::parse(result.out);
  CHECK(report["status"] == "ok");
  const auto energy = report["energy_pj"].get<double>();
  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); };
  // What runs on which unit: all but the instructions that the issue alone does.
  std::map<std::string, std::int64_t> counts;
  std::int64_t all = 0, on_units = 0;
  for (int c = 0; c < 6; ++c)
    for (const auto& i : nlohmann::json::parse(contents(artifact + "/core_" + std::to_string(c) + ".json"))) {
      ++counts[i["op"]];
      ++all;
      if (i["op"] != "sldi" && i["op"] != "setbw") ++on_units;
    }
  CHECK(report["instructions"] == all);

  const auto trace = nlohmann::json::parse(contents(folder / "trace.json"));
  std::map<std::string, std::int64_t> phases;
  std::int64_t slices_of_recv = 0;
  double last = 0;
  for (const auto& e : trace["traceEvents"]) {
    ++phases[e["ph"]];
    if (e["ph"] != "X") continue;
    last = std::max(last, e["ts"].get<double>() + e["dur"].get<double>());
    if (e["args"]["operation"] == "recv") ++slices_of_recv;
  }
  CHECK(counts["recv"] > 0);
  CHECK(phases["s"] == counts["recv"]);
  CHECK(phases["f"] == counts["recv"]);
  CHECK(slices_of_recv >= counts["recv"]);
  CHECK(phases["X"] >= on_units);
  CHECK(last > 0);
  CHECK(last <= report["latency_ms"].get<double>() * 1e3 + 1e-6);

  std::int64_t instructions = 0;
  double sum = 0, share = 0;
  const auto rows = lines(contents(folder / "profile.csv"));
  REQUIRE(rows.size() > 2);
  CHECK(rows[0] == "operator,instructions,cycles,share,first_cycle,last_cycle,energy_pj,energy_share,local_bytes,network_bytes,global_bytes");
  for (std::size_t r = 1; r < rows.size(); ++r) {
    std::vector<std::string> cells;
    std::istringstream row(rows[r]);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    REQUIRE(cells.size() == 11);
    instructions += std::stoll(cells[1]);
    sum += std::stod(cells[6]);
    share += std::stod(cells[7]);
  }
  CHECK(instructions == on_units);
  CHECK(close(sum, energy));
  CHECK(close(share, 1));

  double parts = report["energy"]["static_pj"];
  for (const auto& part : report["energy"]["components_pj"]) parts += part.get<double>();
  CHECK(close(parts, energy));
  double classes = 0;
  for (const auto& c : report["energy"]["classes_pj"])
    for (const auto& part : c) classes += part.get<double>();
  CHECK(close(classes + report["energy"]["static_pj"].get<double>(), energy));

  // Looking on changes nothing, and the text has the same numbers.
  const auto alone = run("raptor-sim", timing + strings{"--json"});
  CHECK(nlohmann::json::parse(alone.out)["latency_ms"] == report["latency_ms"]);
  CHECK(nlohmann::json::parse(alone.out)["energy_pj"] == report["energy_pj"]);
  const auto text = run("raptor-sim", timing + strings{"--energy-breakdown"});
  CHECK(text.status == 0);
  CHECK(contains(text.out, "energy by component, pJ of the whole run"));
  CHECK(contains(text.out, "dynamic energy by core, pJ\n  core 0:"));

  for (const std::string option : {"--trace", "--profile"}) {
    const auto failed = check_failure(timing + strings{option, folder / "none/file"}, "cannot be written");
    CHECK(contains(failed.err, "none/file"));
  }
}

TEST_CASE("options of --timing without it, and options that it has no use for") {
  for (const std::string option : {"--trace=t", "--profile=p", "--hardware=h", "--sim-time=1", "--energy-breakdown"}) {
    const auto result = run("raptor-sim", {"d", option});
    CHECK(result.status == 2);
    CHECK(contains(result.err, option.substr(0, option.find('=')) + " needs --timing"));
  }
  for (const std::string option : {"--output=o", "--input-dir=i", "--dump=0,4", "--trace-instructions=t"}) {
    const auto result = run("raptor-sim", {"d", "--timing", "--hardware=h", option});
    CHECK(result.status == 2);
    CHECK(contains(result.err, option.substr(0, option.find('=')) + " has no meaning with --timing"));
  }
  for (const std::string time : {"0", "-1", "nan"}) CHECK(run("raptor-sim", {"d", "--timing", "--hardware=h", "--sim-time=" + time}).status == 2);
}

TEST_CASE("--sim-time beyond what can be simulated is refused in few words") {
  const temporary_folder folder;
  const auto artifact = folder / "out";
  REQUIRE(run("raptor-compile", strings{zoo(folder, "tiny"), "-o", artifact} + small_chip).status == 0);
  const auto hardware = write_hardware(folder);
  for (const std::string time : {"1e+300", "inf"})
    check_failure({artifact, "--timing", "--hardware", hardware, "--mode=throughput", "--sim-time=" + time}, "sim_time of " + time + " ms is outside the simulator's range");
}
