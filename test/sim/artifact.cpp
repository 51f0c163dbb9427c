#include "raptor/sim/artifact.hpp"

#include <doctest/doctest.h>

#include "directory.hpp"
#include "raptor/isa/json_write.hpp"

using namespace raptor::sim::test;
using raptor::sim::execute;
using raptor::sim::load_artifact;
using floats = std::vector<float>;
using nlohmann::json;

namespace {

/// The error of loading, after `change` has damaged a good artifact.
template <class Change>
std::string load_failure(Change change) {
  const temporary_directory directory;
  write_example(directory);
  change(directory);
  try {
    static_cast<void>(load_artifact(directory.path()));
  } catch (const raptor::error& e) {
    return std::string(raptor::name(e.code())) + " " + describe(e);
  }
  return {};
}
template <class Change>
std::string config_failure(Change change) {
  return load_failure([&](const temporary_directory& d) {
    json config = example_config();
    change(config);
    d.write("config.json", config.dump());
  });
}

}  // namespace

TEST_CASE("an artifact is loaded and executed") {
  const temporary_directory directory;
  write_example(directory);
  const auto program = load_artifact(directory.path());
  REQUIRE(program.cores.size() == 2);
  CHECK(program.cores[0].stream.size() == 7);
  CHECK(program.cores[1].stream.empty());
  CHECK(program.cores[0].groups.size() == 2);
  CHECK(program.cores[0].groups[1].crossbars == 2);
  CHECK(program.cores[0].groups[1].weights->columns() == 6);
  CHECK(program.inputs[0].name == "image");
  CHECK(program.inputs[0].sizes == raptor::shape{1, 2});
  CHECK(program.outputs[0].element_type == "float32");
  CHECK(program.constant_bytes == -1);
  CHECK(execute(program, to_bytes({1, 2})).output("scores").values() == floats{21, 42, 63, 84, 105, 126});
}

TEST_CASE("replicas share one matrix") {
  const temporary_directory directory;
  write_example(directory);
  const auto program = load_artifact(directory.path());
  // Core 1 has no stream, so its group's width follows from the file; core 0's group 0 is not used either.
  CHECK(program.cores[0].groups[0].weights == program.cores[1].groups[0].weights);
  CHECK(program.cores[0].groups[0].weights != program.cores[0].groups[1].weights);
}

TEST_CASE("JSON streams, and .pim before .json") {
  const temporary_directory directory;
  write_example(directory);
  const auto stream = raptor::isa::decode(raptor::sim::read_file(directory.path() / "core_0.pim"), "core_0.pim");
  directory.write("core_0.json", "[]");
  CHECK(load_artifact(directory.path()).cores[0].stream == stream);
  directory.write("core_0.json", raptor::isa::to_json(std::span<const raptor::isa::instruction>(stream)));
  std::filesystem::remove(directory.path() / "core_0.pim");
  const auto program = load_artifact(directory.path());
  CHECK(program.cores[0].stream == stream);
  CHECK(execute(program, to_bytes({1, 2})).output("scores").values()[0] == 21);
}

TEST_CASE("parts may lie apart") {
  const temporary_directory directory, other;
  write_example(directory);
  std::filesystem::rename(directory.path() / "config.json", other.path() / "c.json");
  std::filesystem::rename(directory.path() / "memory.bin", other.path() / "m.bin");
  raptor::sim::artifact_paths paths{directory.path(), other.path() / "c.json", other.path() / "m.bin", {}};
  CHECK(load_artifact(paths).cores.size() == 2);
  paths.directory = other.path();
  paths.cores = directory.path();
  CHECK(load_artifact(paths).cores.size() == 2);
}

TEST_CASE("names are optional") {
  const temporary_directory directory;
  write_example(directory);
  json config = example_config();
  for (const char* key : {"inputs_names", "inputs_shapes", "inputs_types", "outputs_names", "outputs_shapes", "outputs_types", "adc_count"}) config.erase(key);
  directory.write("config.json", config.dump());
  const auto program = load_artifact(directory.path());
  CHECK(program.inputs[0].name == "input_0");
  CHECK(program.outputs[0].name == "output_0");
  CHECK(program.outputs[0].sizes.empty());
}

TEST_CASE("cells narrower than a weight") {
  const temporary_directory directory;
  write_example(directory);
  json config = example_config();
  config["xbar_size"] = {2, 12};
  config["cell_precision"] = 8;  // 12 cells of 8 bits are 3 weights of 32 bits
  directory.write("config.json", config.dump());
  CHECK(execute(load_artifact(directory.path()), to_bytes({1, 2})).output("scores").values()[5] == 126);
  config["xbar_size"] = {2, 3};
  directory.write("config.json", config.dump());
  CHECK_THROWS_WITH_AS(static_cast<void>(load_artifact(directory.path())),
                       "an array group of 2 crossbars of 3 columns of 8 bits does not hold whole weights of 32 bits", raptor::error);
}

TEST_CASE("missing files") {
  CHECK(load_failure([](const temporary_directory&) {}).empty());
  const auto missing = [](const char* file) {
    return load_failure([&](const temporary_directory& d) { std::filesystem::remove(d.path() / file); });
  };
  CHECK(has(missing("config.json"), "io error: the file does not exist"));
  CHECK(has(missing("memory.bin"), "memory.bin"));
  CHECK(has(missing("core_1.pim"), "core 1 has no instruction stream"));
  CHECK(has(missing("core_0/group_1.bin"), "the weights of an array group are missing"));
  CHECK(has(missing("weights/b.bin"), "group_1.bin"));
  CHECK_THROWS_WITH_AS(static_cast<void>(load_artifact("does-not-exist")), "the artifact directory does not exist", raptor::error);
}

TEST_CASE("files that are something else") {
  CHECK(has(load_failure([](const temporary_directory& d) {
    std::filesystem::remove(d.path() / "memory.bin");
    std::filesystem::create_directory(d.path() / "memory.bin");
  }), "not a regular file"));
  CHECK(has(load_failure([](const temporary_directory& d) {
    std::filesystem::remove(d.path() / "core_0/group_1.bin");
    std::filesystem::create_symlink("/dev/zero", d.path() / "core_0/group_1.bin");
  }), "the weights have 0 bytes"));
  CHECK(has(load_failure([](const temporary_directory& d) {
    std::filesystem::remove(d.path() / "core_0/group_1.bin");
    std::filesystem::create_symlink("group_1.bin", d.path() / "core_0/group_1.bin");
  }), "weights of an array group are missing"));
}

TEST_CASE("weights of a wrong size") {
  const auto resized = [](const char* file, std::size_t bytes) {
    return load_failure([&](const temporary_directory& d) { d.write(file, std::vector<std::byte>(bytes)); });
  };
  CHECK(has(resized("weights/b.bin", 44), "malformed error: the weights have 44 bytes, but 2 rows x 6 columns x 4 make 48"));
  CHECK(has(resized("weights/b.bin", 52), "have 52 bytes"));
  CHECK(has(resized("weights/b.bin", 0), "have 0 bytes"));
  // No instruction uses group 0 of core 0, so only rows are known of it, unless the configuration records the width of weights.
  CHECK(has(resized("weights/a.bin", 12), "not a multiple of 2 rows of 4 bytes"));
  CHECK(has(resized("weights/a.bin", 0), "not a multiple"));
  CHECK(resized("weights/a.bin", 16).empty());
  CHECK(has(load_failure([](const temporary_directory& d) {
    json config = example_config();
    config["weight_bits"] = 32;
    d.write("config.json", config.dump());
    d.write("weights/a.bin", std::vector<std::byte>(16));
  }), "the weights have 16 bytes, but 2 rows x 3 columns x 4 make 24"));
}

TEST_CASE("malformed streams") {
  const auto with = [](const char* file, std::string_view text) {
    return load_failure([&](const temporary_directory& d) {
      if (std::string_view(file).ends_with("json")) std::filesystem::remove(d.path() / "core_0.pim");
      d.write(file, text);
    });
  };
  CHECK(has(with("core_0.pim", ""), "core_0.pim"));
  CHECK(has(with("core_0.pim", "PIMX\1\0\0\0\0\0\0\0"), "wrong"));
  CHECK(has(with("core_0.pim", std::string_view("PIMB\2\0\0\0\0\0\0\0", 12)), "version"));
  CHECK(has(with("core_0.pim", std::string_view("PIMB\1\0\0\0\377\377\377\377", 12)), "wrong size"));
  CHECK(has(with("core_0.json", "{"), "core_0.json"));
  CHECK(has(with("core_0.json", R"([{"op": "jump"}])"), "unknown operation 'jump'"));
}

TEST_CASE("array groups that the stream and the map disagree about") {
  const auto with = [](const stream& s) {
    return load_failure([&](const temporary_directory& d) { d.write("core_0.pim", raptor::isa::encode(s)); });
  };
  CHECK(has(with({b::setbw(32, 32), b::mvmul(0, 0, 2)}), "mvmul names array group 2, the core has 2"));
  CHECK(has(with({b::setbw(32, 32), b::mvmul(0, 0, -1)}), "mvmul names array group -1"));
  CHECK(has(with({b::setbw(32, 32), b::mvmul(0, 0, 1, 0)}), "mbiw 0, it must be positive"));
  CHECK(has(with({b::mvmul(0, 0, 1, 32), b::mvmul(0, 0, 1, 16)}), "is used with mbiw 32 and 16"));
  CHECK(has(with({b::mvmul(0, 0, 1, 16)}), "2 rows x 12 columns"));
  CHECK(has(with({b::mvmul(0, 0, 1, 33)}), "does not hold whole weights of 33 bits"));
}

TEST_CASE("config.json: fields that are missing or of another type") {
  for (const char* key : {"core_cnt", "xbar_size", "cell_precision", "array_group_map", "inputs_addresses", "inputs_sizes", "outputs_addresses", "outputs_sizes"}) {
    const auto missing = config_failure([&](json& c) { c.erase(key); });
    CHECK_MESSAGE(has(missing, "field '" + std::string(key) + "' is missing"), missing);
    for (const json& wrong : {json("text"), json(nullptr), json(true), json(1.5)}) {
      const auto text = config_failure([&](json& c) { c[key] = wrong; });
      CHECK_MESSAGE(has(text, key), text);
      CHECK_MESSAGE(has(text, "malformed error"), text);
    }
  }
  CHECK(has(load_failure([](const temporary_directory& d) { d.write("config.json", "{\"core_cnt\": "); }), "not valid JSON"));
  CHECK(has(load_failure([](const temporary_directory& d) { d.write("config.json", "[]"); }), "not a JSON object"));
  CHECK(has(load_failure([](const temporary_directory& d) { d.write("config.json", std::string(200000, '[')); }), "nested too deeply"));
}

TEST_CASE("config.json: numbers out of range, and hostile ones") {
  const auto with = [](const char* key, const json& value) { return config_failure([&](json& c) { c[key] = value; }); };
  CHECK(has(with("core_cnt", 0), "field 'core_cnt' is 0, it must be positive"));
  CHECK(has(with("core_cnt", -1), "must be positive"));
  CHECK(has(with("core_cnt", 2000000000), "'array_group_map.core2' is missing"));
  CHECK(has(with("core_cnt", 18446744073709551615u), "below 2^31"));
  CHECK(has(with("core_cnt", 1), "'array_group_map.core1' names no core: there are 1"));
  CHECK(has(with("xbar_size", json{2}), "[rows, columns]"));
  CHECK(has(with("xbar_size", json{0, 3}), "'xbar_size[0]' is 0"));
  CHECK(has(with("xbar_size", json{2, -3}), "'xbar_size[1]' is -3"));
  CHECK(has(with("xbar_size", json{2147483647, 2147483647}), "the weights have"));
  CHECK(has(with("cell_precision", 2147483616), "the weights have 48 bytes"));
  CHECK(has(with("cell_precision", 2147483647), "does not hold whole weights"));
  CHECK(has(with("cell_precision", 0), "must be positive"));
  CHECK(has(with("constant_bytes", -1), "'constant_bytes' is -1"));
  CHECK(has(with("inputs_addresses", json{-4}), "'inputs_addresses[0]' is -4, it must be at least 0"));
  CHECK(has(with("inputs_sizes", json{-8}), "'inputs_sizes[0]' is -8"));
  CHECK(has(with("inputs_sizes", json{33}), "input 'image' at 0 of 33 bytes is not inside the 32 bytes of memory.bin"));
  CHECK(has(with("outputs_addresses", json{2147483647}), "output 'scores' at 2147483647"));
  CHECK(has(with("outputs_sizes", json{24, 1}), "'outputs_addresses' has 1 entries, 'outputs_sizes' has 2"));
  CHECK(has(with("outputs_names", json{"a", "b"}), "'outputs_names' has 2 entries"));
  CHECK(has(with("outputs_names", json{1}), "'outputs_names[0]' is not a string"));
  CHECK(has(with("outputs_types", json{1}), "'outputs_types[0]' is not a string"));
  CHECK(has(with("outputs_shapes", json{1}), "'outputs_shapes[0]' is not an array"));
  CHECK(has(with("outputs_shapes", json::array({json{-1}})), "a dimension of 'outputs_shapes[0]' is -1"));
}

TEST_CASE("array_group_map") {
  const auto with = [](const char* core, const json& value) { return config_failure([&](json& c) { c["array_group_map"][core] = value; }); };
  CHECK(has(with("core0", 1), "'array_group_map.core0' is not an array"));
  CHECK(has(with("core0", json{1, 0}), "'array_group_map.core0[1]' is 0, it must be positive"));
  CHECK(has(with("core0", json{-1, 2}), "'array_group_map.core0[0]' is -1"));
  CHECK(has(with("core0", json{1, 2.5}), "is not an integer"));
  CHECK(has(with("core0", json{1, 3}), "2 rows x 9 columns"));
  CHECK(has(with("core0", json{1, 2, 1}), "group_2.bin"));
  CHECK(has(with("core0", json{1}), "mvmul names array group 1, the core has 1"));
  CHECK(has(with("core2", json::array()), "'array_group_map.core2' names no core"));
  CHECK(has(with("core01", json::array()), "'array_group_map.core01' names no core"));
  CHECK(has(with("other", json::array()), "'array_group_map.other' names no core"));
  CHECK(has(config_failure([](json& c) { c["array_group_map"].erase("core1"); }), "'array_group_map.core1' is missing"));
}

TEST_CASE("config.json: more tensors than a program has are refused before they are kept") {
  const auto tensors = config_failure([](json& c) { c["inputs_addresses"] = c["inputs_sizes"] = std::vector<int>(70'000, 0); });
  CHECK(tensors.find("capacity error: 'inputs_addresses' has 70000 entries; 65536 are the most") == 0);
  const auto little = config_failure([](json& c) {
    c["inputs_addresses"] = c["inputs_sizes"] = std::vector<int>(60'000, 0);
    for (const char* key : {"inputs_names", "inputs_shapes", "inputs_types"}) c.erase(key);
  });
  CHECK(has(little, "capacity error: the file has "));
  CHECK(has(little, "but what it describes takes more than "));
}

TEST_CASE("config.json: other fields may contain what they like; of equal names the last counts") {
  const auto loads = [](const std::string& start) {
    const auto failure = load_failure([&](const temporary_directory& d) { d.write("config.json", "{" + start + "," + example_config().dump().substr(1)); });
    return failure;
  };
  std::string numbers = "1", objects = "{}";
  for (int i = 0; i < 1'000'000; ++i) numbers += ",1", objects += ",{}";
  CHECK(loads("\"other\":[" + numbers + "]").empty());
  CHECK(loads("\"other\":{\"core_cnt\":[" + objects + "]}").empty());
  CHECK(loads("\"core_cnt\":\"two\",\"array_group_map\":[1,{\"]\":\"\\\"}\"}],\"xbar_size\":0").empty());
  CHECK(loads("\"\\u0063ore_cnt\":7").empty());
  const auto last = load_failure([&](const temporary_directory& d) {
    const auto text = example_config().dump();
    d.write("config.json", "\xef\xbb\xbf " + text.substr(0, text.size() - 1) + ", \"\\u0063ore_cnt\" : 7 } \n");
  });
  CHECK(has(last, "'array_group_map.core2' is missing"));
}
