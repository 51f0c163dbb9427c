// Hardware and network files as the simulator reads and refuses them.
#include "raptor/sim/timing_hardware.hpp"

#include "support.hpp"

using namespace raptor;
using namespace timing_test;

namespace {

std::string refusal(const std::string& text, const std::string& network = "") {
  const temporary_folder folder;
  try {
    auto c = timing::read_hardware(folder.write("hw.json", text));
    if (!network.empty()) {
      c.chip_config.network_config.net_config_file_path = "net.json";
      timing::read_network(c, folder.write("net.json", network).parent_path());
    }
  } catch (const error& e) {
    return e.what();
  }
  return "accepted";
}
/// A hardware file that is right but for one part.
std::string with(const std::string& core, const std::string& chip = "", const std::string& sim = "") {
  return R"({"chip_config":{"network_config":{"layout":[1,1]},"core_config":{)" + core + "}" + chip + R"(},"sim_config":{)" + sim + "}}";
}

}  // namespace

TEST_CASE("wrong types have the JSON library's words; numbers of other kinds are converted") {
  CHECK(refusal(with("")) == "accepted");
  CHECK(refusal(with(R"("rob_size":"4")")) == "[json.exception.type_error.302] type must be number, but is string");
  CHECK(refusal(with(R"("matrix_config":3)")) == "[json.exception.type_error.306] cannot use value() with number");
  CHECK(refusal(with(R"("matrix_config":{"pipeline_mode":1})")) == "[json.exception.type_error.302] type must be boolean, but is number");
  CHECK(refusal(with(R"("matrix_config":{"xbar_size":[128]})")).starts_with("[json.exception.out_of_range.401]"));
  CHECK(refusal("[]") == "[json.exception.type_error.306] cannot use value() with array");
  CHECK(refusal(with(R"("period":true)")) == "[json.exception.type_error.302] type must be number, but is boolean");
  CHECK(refusal(with(R"("rob_size":4.9,"vector_width":true)")) == "accepted");
  CHECK(refusal(with(R"("rob_size":{})")) == "[json.exception.type_error.302] type must be number, but is object");
  CHECK(refusal("{").find("Failed to parse simulator config '") == 0);
}

TEST_CASE("negative fields without effect are refused too, in the simulator's order") {
  CHECK(refusal(with(R"("local_memory_config":{"memory_size":-1},"matrix_config":{"adc_static_power":-1})")) == "MemoryConfig not valid");
  for (const char* field : {"dac_static_power", "sample_hold_static_power", "adc_resolution", "adc_static_power", "shift_adder_static_power", "input_buffer_static_power",
                            "input_buffer_dynamic_power", "output_buffer_static_power"})
    CHECK_MESSAGE(refusal(with("\"matrix_config\":{\"" + std::string(field) + "\":-1},\"transfer_dynamic_power\":-1")) == "MatrixConfig not valid", field);
  for (const char* field : {"controller_static_power", "controller_dynamic_power", "transfer_dynamic_power", "vector_latency_cycle"})
    CHECK_MESSAGE(refusal(with("\"" + std::string(field) + "\":-1", R"(,"global_memory_config":{"memory_size":-1})")) == "CoreConfig not valid", field);
  CHECK(refusal(with("", R"(,"global_memory_config":{"memory_size":-1},"core_cnt":0)")) == "MemoryConfig not valid");
  CHECK(refusal(with("", R"(,"core_cnt":0)", R"("sim_mode":2)")) == "ChipConfig not valid");
  CHECK(refusal(with("", "", R"("sim_mode":2)")) == "SimConfig not valid");
  CHECK(refusal(R"({"chip_config":{"core_cnt":0}})") == "BusConfig not valid");
}

TEST_CASE("periods and widths that would hang the simulator") {
  for (const char* core : {R"("period":0)", R"("period":0.0001)", R"("vector_width":0)", R"("local_memory_config":{"data_width":0})", R"("matrix_config":{"period":0})"})
    CHECK_MESSAGE(refusal(with(core)).starts_with("chip_config.core_config."), core);
}

TEST_CASE("the network file") {
  CHECK(refusal(with(""), R"({"latency":{"0":{"-10":1}},"energy":{"0":{" 1":2}}})") == "accepted");
  CHECK(refusal(with(""), R"({"latency":{"zero":{}},"energy":{}})") == "stoi");
  CHECK(refusal(with(""), R"({"latency":{"0":{"":1}},"energy":{}})") == "stoi");
  CHECK(refusal(with(""), R"({"latency":{"0":{"99999999999":1}},"energy":{}})") == "stoi");
  CHECK(refusal(with(""), R"({"latency":{"0":{"1":"x"}},"energy":{}})") == "[json.exception.type_error.302] type must be number, but is string");
  CHECK(refusal(with(""), R"({"latency":{"0":{"1":{"2":3}}},"energy":{}})") == "[json.exception.type_error.302] type must be number, but is object");
  CHECK(refusal(with(""), R"({"latency":{"0":{"1":true}},"energy":{}})") == "[json.exception.type_error.302] type must be number, but is boolean");
  // Lists stand for their indices, null for nothing.
  CHECK(refusal(with(""), R"({"latency":{"0":[1,2],"1":null},"energy":[[1]]})") == "accepted");
  CHECK(refusal(with(""), R"({"latency":{"0":[1,-2]},"energy":{}})") == "the latency from node 0 to 1 is negative");
  CHECK(refusal(with(""), R"({"latency":{"0":5},"energy":{}})") == "stoi");
  CHECK(refusal(with(""), R"({"latency":5,"energy":{}})") == "stoi");
  CHECK(refusal(with(""), R"([{"latency":{},"energy":{}}])").find("missing object latency") != std::string::npos);
  CHECK(refusal(with(""), R"({"latency":{"0":{"1":"x"}},"energy":{})").find("[json.exception.parse_error.101]") == 0);
  CHECK(refusal(with(""), R"({"latency":{}})").find("missing object energy") != std::string::npos);
  CHECK(refusal(with(""), R"({"latency":{"0":{"1":-1}},"energy":{}})").find("negative") != std::string::npos);
}
