// Where time and energy go: resources, operators, traces.
#include "raptor/sim/timing_profile.hpp"

#include "support.hpp"

#include <map>
#include <sstream>

using namespace raptor;
using namespace timing_test;
namespace build = isa::build;

namespace {

target::configuration costly(std::size_t cores) {
  auto c = hardware(cores);
  auto& core = c.chip_config.core_config;
  core.inst_fetch_dynamic_power = 0.5, core.inst_decode_dynamic_power = 0.25, core.reg_file_read_dynamic_power = 0.125, core.reg_file_write_dynamic_power = 0.0625;
  core.scalar_dynamic_power = 1, core.vector_alu_dynamic_energy = 2, core.local_memory_config.read_dynamic_energy = 3, core.local_memory_config.write_dynamic_energy = 4;
  core.matrix_config.adc_dynamic_power = 5, c.chip_config.global_memory_config.read_dynamic_energy = 6, c.chip_config.global_memory_config.write_dynamic_energy = 7;
  for (auto& [from, row] : c.chip_config.network_config.table.latency) c.chip_config.network_config.table.energy[from] = row;
  return c;
}
std::vector<stream> work() {
  return {{build::setbw(32, 32), build::sldi(1, 64), build::lldi(1, 0, 512), build::mvmul(1, 0, 0, 32, 0), build::vvadd(1, 1, 1, 100), build::send(1, 1, 200), build::ld(1, 2, 100)},
          {build::setbw(32, 32), build::recv(0, 0, 200), build::st(2, 0, 200)}};
}
double sum(const std::array<double, timing::component_count>& parts) {
  double s = 0;
  for (const double p : parts) s += p;
  return s;
}

}  // namespace

TEST_CASE("a recorder changes nothing, and what it adds up is the run's energy") {
  const auto p = program(work(), 1);
  const auto chip = costly(2);
  const auto plain = timing::chip(p, chip).run();
  const timing::instruction_origins origins(p);
  timing::recorder recorder(p, origins, nullptr);
  const auto recorded = timing::chip(p, chip, recorder).run();
  CHECK(recorded.latency_ms == plain.latency_ms);
  CHECK(recorded.energy_pj == plain.energy_pj);
  const double dynamic = plain.energy_pj - plain.static_power_mw * plain.elapsed_ns;
  CHECK(sum(plain.dynamic_energy_pj) == doctest::Approx(dynamic).epsilon(1e-12));
  double classes = 0, operators = 0;
  for (const auto& c : recorder.classes()) classes += sum(c);
  for (const auto& o : recorder.operators()) operators += o.energy;
  CHECK(classes == doctest::Approx(dynamic).epsilon(1e-12));
  CHECK(operators == doctest::Approx(dynamic).epsilon(1e-12));
  for (std::size_t part = 0; part < timing::component_count; ++part) {
    double all = 0;
    for (const auto& c : recorder.classes()) all += c[part];
    CHECK(all == doctest::Approx(plain.dynamic_energy_pj[part]).epsilon(1e-12));
    CHECK(plain.dynamic_energy_pj[part] > 0);
  }
  const auto& send = recorder.operators()[static_cast<std::size_t>(isa::opcode::send)];
  CHECK(send.instructions == 1);
  CHECK(send.local == 200);
  CHECK(send.network == 201);  // the ready message has one byte
  CHECK(recorder.operators()[static_cast<std::size_t>(isa::opcode::ld)].global == 100);
}

TEST_CASE("the resource that binds is the one that is used most") {
  const auto binding = [](const stream& s, const target::configuration& chip) {
    const auto p = program({s}, 1);
    return timing::chip(p, chip).run().binding;
  };
  auto chip = hardware(2);
  stream issue{build::setbw(8, 8)};
  for (int k = 0; k < 200; ++k) issue.push_back(build::sldi(1, k));
  issue.push_back(build::lldi(0, 0, 1));
  CHECK(binding(issue, chip) == timing::resource::issue);
  CHECK(binding({build::setbw(8, 8), build::lmv(0, 1, 10000)}, chip) == timing::resource::local_memory);
  chip.chip_config.core_config.matrix_config.adc_count = 128;
  CHECK(binding({build::setbw(8, 8), build::mvmul(0, 0, 0, 8, 0)}, chip) == timing::resource::local_memory);  // it reads eight times its input
  chip.chip_config.core_config.matrix_config.adc_latency_cycle = 1000;
  CHECK(binding({build::setbw(8, 8), build::mvmul(0, 0, 0, 8, 0)}, chip) == timing::resource::matrix);
  chip.chip_config.core_config.vector_latency_cycle = 1000;
  CHECK(binding({build::setbw(8, 8), build::vvadd(0, 0, 0, 64)}, chip) == timing::resource::vector);
  CHECK(binding({build::setbw(8, 8), build::ld(0, 2, 16), build::ld(0, 2, 10000)}, chip) != timing::resource::issue);
  chip.chip_config.global_memory_config.read_latency_cycle = 1000;
  CHECK(binding({build::setbw(8, 8), build::ld(0, 2, 1000)}, chip) == timing::resource::global_memory);
  const auto talk = program({{build::send(0, 1, 4000)}, {build::recv(0, 0, 4000)}});
  const auto r = timing::chip(talk, hardware(2, 500)).run();
  CHECK(r.binding == timing::resource::network);
  CHECK(r.use[static_cast<std::size_t>(timing::resource::network)].core == 0);
  // ready, go and 250 flits of data of 500 ns each; the go is the receiver's
  CHECK(r.use[static_cast<std::size_t>(timing::resource::network)].busiest * r.elapsed_ns == doctest::Approx(251 * 500.0));
}

TEST_CASE("a profile names operators by the map beside the program") {
  const temporary_folder folder;
  const auto p = program(work(), 1);
  const auto file = folder.write("map.json", R"({"operators": ["conv, \"first\"", "pool"], "cores": {"core0": [[0,0],[4,1]], "core1": [[0,1],[2,-1]]}})");
  const timing::instruction_origins origins(p, file);
  CHECK(origins.names()[origins.find(0, 3)] == "conv, \"first\"");
  CHECK(origins.names()[origins.find(0, 4)] == "pool");
  CHECK(origins.names()[origins.find(1, 2)] == "(no operator)");
  timing::recorder recorder(p, origins, nullptr);
  const auto chip = costly(2);
  const auto r = timing::chip(p, chip, recorder).run();
  std::istringstream csv(recorder.csv(r, 1000));
  std::string line;
  std::vector<std::string> lines;
  while (std::getline(csv, line)) lines.push_back(line);
  REQUIRE(lines.size() == 5);
  CHECK(lines[0] == "operator,instructions,cycles,share,first_cycle,last_cycle,energy_pj,energy_share,local_bytes,network_bytes,global_bytes");
  CHECK(lines[1].starts_with("\"conv, \"\"first\"\"\",2,"));
  CHECK(lines[2].starts_with("pool,4,"));
  CHECK(lines[3].starts_with("(no operator),1,"));
  CHECK(lines[4].starts_with("(static power),0,"));
  double energy = 0, share = 0;
  for (std::size_t k = 1; k < lines.size(); ++k) {
    std::vector<std::string> fields;
    std::istringstream fields_of(lines[k].substr(lines[k].find(k == 1 ? "\"," : ",")));
    for (std::string f; std::getline(fields_of, f, ',');) fields.push_back(f);
    energy += std::stod(fields[6]);
    share += std::stod(fields[3]);
  }
  CHECK(energy == doctest::Approx(r.energy_pj).epsilon(1e-12));
  CHECK(share == doctest::Approx(1));
  for (const char* wrong : {R"({"operators": []})", R"({"cores": {}})", R"([])", R"({"operators": ["a"], "cores": {"core0": [[0,1]]}})", R"({"operators": ["a"], "cores": {"core0": [[2,0],[1,0]]}})",
                            R"({"operators": ["a"], "cores": {"core0": [[0,-2]]}})", R"({"operators": ["a"], "cores": {"core0": [[0]]}})", R"({"operators": ["a"], "cores": {"core0": [[0,0,0]]}})",
                            R"({"operators": ["a"], "cores": {"core0": [[0,0.5]]}})", R"({"operators": ["a"], "cores": {"core0": [0]}})", R"({"operators": ["a"], "cores": {"core0": {"0": 0}}})",
                            R"({"operators": ["a"], "cores": [[[0,0]]]})", R"({"operators": [["a"]], "cores": {}})", R"({"operators": [1], "cores": {}})", "{"})
    CHECK_THROWS_AS(timing::instruction_origins(p, folder.write("wrong.json", wrong)), error);
}

TEST_CASE("a map keeps nothing but runs of instructions that are there") {
  const temporary_folder folder;
  const auto p = program(work(), 1);
  // The operators may come last; other keys, other cores and instructions beyond the last are skipped.
  std::string text = R"({"more": [[{"operators": 1}], null], "cores": {"core0": [[0,1]], "core7": [[0,0],[1,1]], "core0": [[1,0])";
  for (int i = 7; i < 20000; ++i) text += ",[" + std::to_string(i) + ",1]";
  text += R"(]}, "operators": ["a", "b"]})";
  const auto file = folder.write("map.json", text);
  timing::origin_events events(p);
  nlohmann::json::sax_parse(text, &events);
  events.check_complete();
  REQUIRE(events.runs.size() == 2);
  CHECK(events.runs[0] == std::vector<timing::origin_events::run>{{1, 0}});  // core0 has 7 instructions; of equal keys the last counts
  CHECK(events.runs[1].empty());
  const timing::instruction_origins origins(p, file);
  CHECK(origins.names()[origins.find(0, 0)] == "(no operator)");
  CHECK(origins.names()[origins.find(0, 6)] == "a");
  // And no more names than there can be.
  std::string names = R"({"operators": ["")";
  for (int i = 0; i < (1 << 16) + 10; ++i) names += ",\"\"";
  CHECK_THROWS_WITH_AS(timing::instruction_origins(p, folder.write("names.json", names + R"(], "cores": {}})")), doctest::Contains("more operators than instructions"), error);
}

TEST_CASE("a trace has a slice for every instruction of a unit and an arrow for every message") {
  const temporary_folder folder;
  const auto p = program(work(), 1);
  const auto chip = costly(2);
  const timing::instruction_origins origins(p);
  timing::trace_writer writer(folder / "trace.json", p, origins);
  timing::recorder recorder(p, origins, &writer);
  const auto r = timing::chip(p, chip, recorder).run();
  writer.finish();
  const auto trace = nlohmann::json::parse(std::ifstream(folder / "trace.json"));
  std::map<std::string, int> phases, operations;
  std::map<int, nlohmann::json> arrows;
  double last = 0;
  for (const auto& e : trace["traceEvents"]) {
    ++phases[e["ph"]];
    if (e["ph"] == "X") ++operations[e["args"]["operation"]], last = std::max(last, e["ts"].get<double>() + e["dur"].get<double>());
    if (e["ph"] == "s") arrows[e["id"]] = e;
    if (e["ph"] == "f") {
      CHECK(arrows.at(e["id"])["pid"] == 0);
      CHECK(e["pid"] == 1);
      CHECK(arrows.at(e["id"])["ts"].get<double>() < e["ts"].get<double>());
    }
  }
  CHECK(phases["s"] == 1);
  CHECK(phases["f"] == 1);
  for (const char* op : {"lldi", "mvmul", "vvadd", "send", "recv", "ld", "st", "ready", "go", "data", "read", "write"}) CHECK_MESSAGE(operations[op] == 1, op);
  CHECK(operations.size() == 12);
  CHECK(last <= r.latency_ms * 1000);
  CHECK(phases["M"] == 2 + 4 + 2);  // cores; transfer and vector unit, an array group and the switch; transfer unit and switch
}
