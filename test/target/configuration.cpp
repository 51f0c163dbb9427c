#include "raptor/target/configuration_json.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "raptor/target/pim.hpp"

using namespace raptor;
using nlohmann::json;

namespace {
error failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    return e;
  }
  return error(error_code::internal, "no error");
}

const json hardware = json::parse(R"({
  "chip_config": {
    "core_cnt": 2, "global_memory_switch_id": -10,
    "core_config": {
      "period": 1, "global_memory_switch_id": -10, "vector_width": 32, "unknown_key": [1, 2],
      "matrix_config": {"xbar_array_count": 64, "xbar_size": [128, 256], "cell_precision": 2, "adc_count": 16},
      "local_memory_config": {"data_width": 64}
    },
    "global_memory_config": {"read_latency_cycle": 40},
    "network_config": {"bus_width": 32, "layout": [1, 2], "net_config_file_path": "net.json"}
  },
  "sim_config": {"sim_mode": 1, "sim_time": 0.5}
})");
const json network = json::parse(R"({"latency": {"0": {"1": 4, "-10": 15}, "1": {"0": 4.5, "-10": 15}, "-10": {"0": 15}},
                                    "energy": {"0": {"1": 46}}})");

target::configuration read(const json& hw, const json& net = network) {
  const std::map<std::string, std::string> disk = {{"some/chip.json", hw.dump()}, {"some/net.json", net.dump()}};
  return target::read_configuration("some/chip.json", [&](const std::string& path) {
    const auto found = disk.find(path);
    if (found == disk.end()) throw error(error_code::io, "cannot read " + path, path);
    return found->second;
  });
}
error refused(const std::function<void(json&)>& change) {
  json hw = hardware;
  change(hw);
  return failure([&] { (void)read(hw); });
}
}  // namespace

TEST_CASE("configuration: given fields are read, missing ones keep their defaults") {
  const auto c = read(hardware);
  CHECK(c.chip_config.core_cnt == 2);
  CHECK(c.chip_config.core_config.vector_width == 32);
  CHECK(c.chip_config.core_config.vector_latency_cycle == 8);
  CHECK(c.chip_config.core_config.rob_size == 1);
  CHECK(c.chip_config.core_config.matrix_config.period == 1 / 1.28);
  CHECK(c.chip_config.core_config.matrix_config.xbar_size[1] == 256);
  CHECK(c.chip_config.core_config.local_memory_config.data_width == 64);
  CHECK(c.chip_config.core_config.local_memory_config.static_power == 1);
  CHECK(c.chip_config.global_memory_config.read_latency_cycle == 40);
  CHECK(c.chip_config.global_memory_config.write_latency_cycle == 10);
  CHECK(c.sim_config.sim_mode == 1);
  CHECK(c.sim_config.sim_time == 0.5);
  CHECK(c.chip_config.network_config.table.latency.at(1).at(0) == 4.5);
  CHECK(c.chip_config.network_config.table.energy.at(0).at(1) == 46);
  const target::pim chip(c);
  CHECK(chip.flit_time(1, 0) == 4.5);
  CHECK(chip.chip().weight_columns == 16);
  CHECK(target::parse_configuration("{}", "x", target::objects::optional).chip_config.core_cnt == 1);
}

TEST_CASE("configuration: a missing object is named") {
  const std::pair<const char*, json::json_pointer> objects[] = {
      {"chip_config", json::json_pointer("/chip_config")},
      {"sim_config", json::json_pointer("/sim_config")},
      {"chip_config.core_config", json::json_pointer("/chip_config/core_config")},
      {"chip_config.core_config.matrix_config", json::json_pointer("/chip_config/core_config/matrix_config")},
      {"chip_config.core_config.local_memory_config", json::json_pointer("/chip_config/core_config/local_memory_config")},
      {"chip_config.global_memory_config", json::json_pointer("/chip_config/global_memory_config")},
      {"chip_config.network_config", json::json_pointer("/chip_config/network_config")}};
  for (const auto& [name, where] : objects) {
    const auto e = refused([&](json& hw) { hw.at(where.parent_pointer()).erase(where.back()); });
    CHECK(e.code() == error_code::malformed);
    CHECK(e.what() == "missing object " + std::string(name));
    CHECK(e.place() == name);
    const auto typed = refused([&](json& hw) { hw.at(where) = 7; });
    CHECK(typed.what() == std::string(name) + " is not an object");
  }
}

TEST_CASE("configuration: a field of the wrong type or range is named") {
  const auto message = [](const char* pointer, const json& value) {
    const auto e = refused([&](json& hw) { hw[json::json_pointer(pointer)] = value; });
    CHECK(e.code() == error_code::malformed);
    return std::string(e.what());
  };
  CHECK(message("/chip_config/core_config/period", -1) == "chip_config.core_config.period is -1, but must be 0 or more");
  CHECK(message("/chip_config/core_config/period", 0) == "chip_config.core_config.period is 0, but must be greater than 0");
  CHECK(message("/chip_config/core_config/period", "1") == "chip_config.core_config.period is not a number");
  CHECK(message("/chip_config/core_config/period", 1e300).starts_with("chip_config.core_config.period is 1"));
  CHECK(message("/chip_config/core_config/vector_width", 2.5) == "chip_config.core_config.vector_width is 2.5, not a whole number");
  CHECK(message("/chip_config/core_config/vector_width", 18446744073709551615u) ==
        "chip_config.core_config.vector_width is 18446744073709551615, which is too large");
  CHECK(message("/chip_config/core_config/reg_file_static_power", -0.5).starts_with("chip_config.core_config.reg_file_static_power is -0.5"));
  CHECK(message("/chip_config/core_config/matrix_config/adc_count", 0) ==
        "chip_config.core_config.matrix_config.adc_count is 0, but must be greater than 0");
  CHECK(message("/chip_config/core_config/matrix_config/xbar_size", json::array({128})) ==
        "chip_config.core_config.matrix_config.xbar_size is not a list of two numbers");
  CHECK(message("/chip_config/core_config/matrix_config/xbar_size/0", "a") == "chip_config.core_config.matrix_config.xbar_size[0] is not a number");
  CHECK(message("/chip_config/core_config/matrix_config/pipeline_mode", 1) ==
        "chip_config.core_config.matrix_config.pipeline_mode is not true or false");
  CHECK(message("/chip_config/core_config/local_memory_config/data_width", -64) ==
        "chip_config.core_config.local_memory_config.data_width is -64, but must be 0 or more");
  CHECK(message("/chip_config/network_config/net_config_file_path", 3) ==
        "chip_config.network_config.net_config_file_path is not a string");
  CHECK(message("/chip_config/network_config/layout", json::array({0, 0})) ==
        "chip_config.network_config.layout[0] is 0, but must be greater than 0");
  CHECK(message("/sim_config/sim_mode", 2) == "sim_config.sim_mode is 2, but must be 0 (throughput) or 1 (latency)");
  CHECK(refused([](json& hw) { hw["chip_config"]["global_memory_switch_id"] = -11; }).code() == error_code::mismatch);
}

TEST_CASE("configuration: numbers that are not finite are named") {
  std::string text = hardware.dump();
  const std::string field = "\"vector_width\":32";
  for (const char* value : {"1e999", "-1e999"}) {
    auto broken = text;
    broken.replace(broken.find(field), field.size(), std::string("\"vector_width\":") + value);
    const auto e = failure([&] { (void)target::parse_configuration(broken, "chip.json"); });
    CHECK(e.code() == error_code::malformed);
    CHECK(e.what() == std::string("chip.json: chip_config.core_config.vector_width is not a finite number: ") + value);
    CHECK(e.place() == "chip_config.core_config.vector_width");
  }
  auto nan = text;
  nan.replace(nan.find(field), field.size(), "\"vector_width\":NaN");
  const auto e = failure([&] { (void)target::parse_configuration(nan, "chip.json"); });
  CHECK(e.place() == "chip_config.core_config.vector_width");
  target::configuration c = read(hardware);
  c.chip_config.core_config.period = std::numeric_limits<double>::quiet_NaN();
  CHECK(failure([&] { target::pim{c}; }).place() == "chip_config.core_config.period");
}

TEST_CASE("configuration: the network file") {
  const auto refused_network = [](const std::function<void(json&)>& change) {
    json net = network;
    change(net);
    return failure([&] { (void)read(hardware, net); });
  };
  CHECK(refused_network([](json& n) { n["latency"].erase("1"); }).what() == std::string("the latency matrix has no row for core 1"));
  CHECK(refused_network([](json& n) { n["latency"].erase("1"); }).place() == "latency.1");
  CHECK(refused_network([](json& n) { n.erase("energy"); }).place() == "energy");
  CHECK(refused_network([](json& n) { n["latency"]["0"]["1"] = -4; }).what() == std::string("latency.0.1 is -4, but must be 0 or more"));
  CHECK(refused_network([](json& n) { n["latency"]["0"]["1"] = "x"; }).place() == "latency.0.1");
  CHECK(refused_network([](json& n) { n["latency"]["core"] = json::object(); }).place() == "latency");
  CHECK(refused_network([](json& n) { n["latency"]["0"] = 3; }).place() == "latency.0");
  CHECK(refused_network([](json& n) { n = json::array(); }).code() == error_code::malformed);
  const auto absent = refused([](json& hw) { hw["chip_config"]["network_config"]["net_config_file_path"] = "other.json"; });
  CHECK(absent.code() == error_code::io);
  CHECK(absent.what() == std::string("cannot read some/other.json, which chip_config.network_config.net_config_file_path names"));
  CHECK(refused([](json& hw) { hw["chip_config"]["network_config"].erase("net_config_file_path"); }).place() ==
        "chip_config.network_config.net_config_file_path");
  // A chip as large as the number says is not allocated before its rows are known to exist.
  CHECK(refused([](json& hw) { hw["chip_config"]["core_cnt"] = 1000000000; }).place() == "latency.2");
}

TEST_CASE("configuration: whatever stands in a field, the simulator's reading gives a value or an error that names the field") {
  const std::string path = std::string(RAPTOR_SOURCE_DIR) + "/test/fuzz/corpus/configuration/compact";
  std::ifstream in(path);
  std::string text(std::istreambuf_iterator<char>(in), {});
  const auto whole = json::parse(text.substr(0, text.find('\x1e')));
  std::vector<json::json_pointer> places;
  const std::function<void(const json&, const json::json_pointer&)> walk = [&](const json& at, const json::json_pointer& here) {
    if (!here.empty()) places.push_back(here);
    if (at.is_object())
      for (const auto& [key, value] : at.items()) walk(value, here / key);
  };
  walk(whole, json::json_pointer());
  CHECK(places.size() > 50);
  int refusals = 0;
  for (const auto& place : places)
    for (const char* value : {"{}", "[]", "[1]", "[{},{}]", "\"x\"", "null", "true", "-1", "2.5", "1e300", "-1e300", "18446744073709551615"}) {
      auto changed = whole;
      changed[place] = json::parse(value);
      for (const auto presence : {target::objects::optional, target::objects::required}) try {
          static_cast<void>(target::parse_configuration(changed.dump(), "hw.json", presence));
        } catch (const error& e) {
          ++refusals;
          auto name = place.to_string().substr(1);
          std::replace(name.begin(), name.end(), '/', '.');
          CHECK_MESSAGE(e.place().find(name) != std::string::npos, value, " in ", name, ": ", e.place());
        }
    }
  CHECK(refusals > 500);
}

TEST_CASE("configuration: numbers that do not fit are cut as the simulator does") {
  const auto c = target::parse_configuration(R"({"chip_config":{"core_cnt":1e300,"core_config":{"rob_size":-1e300,"vector_width":2.9,
    "local_memory_config":{"memory_size":1e300}}}})", "hw.json", target::objects::optional).chip_config;
  CHECK(c.core_cnt == std::numeric_limits<std::int32_t>::min());
  CHECK(c.core_config.rob_size == std::numeric_limits<std::int32_t>::min());
  CHECK(c.core_config.vector_width == 2);
  CHECK(c.core_config.local_memory_config.memory_size == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("configuration: a document of too many values is refused before it is kept") {
  std::string list = "{\"chip_config\":[1";
  for (int i = 0; i < 100000; ++i) list += ",1";
  const auto e = failure([&] { (void)target::parse_configuration(list + "]}", "hw.json"); });
  CHECK(e.code() == error_code::capacity);
  CHECK(e.place() == "hw.json");
}

TEST_CASE("configuration: of equal keys in the network file the last counts, and rows come in any order") {
  const auto table = target::parse_network(R"({"energy":{"3":{}},"latency":{"2":{"1":1,"0":2,"1":3},"-10":{"0":9},"2":{"5":4,"1":7,"5":6}},"other":[{"latency":1}]})", "net.json");
  CHECK(table.energy.size() == 1);
  CHECK(table.energy.at(3).empty());
  CHECK(table.latency.size() == 2);
  CHECK(table.latency.at(-10).at(0) == 9);
  CHECK(table.latency.at(2) == target::network_table::rows::mapped_type{{1, 7}, {5, 6}});
  const auto refused = [](const char* text) { return failure([&] { (void)target::parse_network(text, "net.json"); }); };
  CHECK(refused(R"({"latency":[],"energy":{}})").what() == std::string("net.json: latency is not an object"));
  CHECK(refused(R"({"latency":{"0":{"1":{}}},"energy":{}})").what() == std::string("latency.0.1 is not a number"));
  CHECK(refused(R"({"latency":{"0":{"1":true}},"energy":{}})").place() == "latency.0.1");
  CHECK(refused(R"({"latency":{"0":{"1.5":1}},"energy":{}})").place() == "latency.0");
  CHECK(std::string(refused(R"({"latency":{"0":{"1":"x"}},"energy":{})").what()).find("net.json: not valid JSON at byte ") == 0);
}

TEST_CASE("configuration: a network file of more nodes than 65,536 cores have is refused, whether in rows or in one row") {
  const auto table = [](int count, std::string_view entry) {
    std::string list;
    for (int i = 0; i < count; ++i) list.append(i > 0 ? "," : "").append(1, '"').append(std::to_string(i % 100)).append("\":").append(entry);
    return list;
  };
  const auto read = [](const std::string& rows) { return target::parse_network(R"({"energy":{},"latency":{)" + rows + "}}", "net.json"); };
  CHECK(read(table(65537, "{}")).latency.size() == 100);
  CHECK(read("\"3\":{" + table(65537, "1") + "}").latency.at(3).size() == 100);
  const auto rows = failure([&] { (void)read(table(65538, "{}")); }), entries = failure([&] { (void)read("\"3\":{" + table(65538, "1") + "}"); });
  CHECK(rows.code() == error_code::capacity);
  CHECK(rows.place() == "latency");
  CHECK(entries.code() == error_code::capacity);
  CHECK(entries.place() == "latency.3");
  CHECK(std::string(entries.what()) == "net.json: latency.3 has more than 65537 entries, one for each node");
}

TEST_CASE("configuration: damaged text never does worse than an error") {
  const std::string text = hardware.dump();
  CHECK(failure([] { (void)target::parse_configuration("", "f"); }).code() == error_code::malformed);
  CHECK(failure([] { (void)target::parse_configuration("[]", "f"); }).code() == error_code::malformed);
  CHECK(failure([] { (void)target::parse_configuration(std::string(1 << 20, '['), "f"); }).code() == error_code::malformed);
  std::mt19937 random(3);
  int errors = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string broken = text;
    for (std::size_t i = 0; i <= random() % 3; ++i) {
      const std::size_t at = random() % broken.size();
      if (random() % 2 == 0) broken[at] = static_cast<char>(random() % 128);
      else broken.erase(at, 1 + random() % 8);
    }
    try {
      const auto c = target::parse_configuration(broken, "f");
      target::validate(c);
    } catch (const error&) {
      ++errors;
    }
  }
  CHECK(errors > 1000);
}
