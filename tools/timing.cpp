#include "tools/timing.hpp"

#include <iostream>

#include <fmt/format.h>

#include "raptor/sim/timing_hardware.hpp"
#include "raptor/sim/timing_input.hpp"
#include "raptor/sim/timing_model/chip.hpp"

namespace raptor::tools {

namespace {

using json = nlohmann::ordered_json;

json object(const char* status, int mode) {
  return json{{"status", status}, {"error", nullptr}, {"mode", mode}, {"latency_ms", nullptr}, {"energy_pj", nullptr}, {"power_mw", nullptr},
              {"samples", nullptr}, {"cores", json::array()}};
}

json success(const sim::timing::timing_result& r) {
  auto o = object("ok", r.latency_mode ? 1 : 0);
  o["latency_ms"] = r.latency_ms, o["energy_pj"] = r.energy_pj, o["power_mw"] = r.power_mw;
  if (!r.latency_mode) o["samples"] = r.samples;
  for (const auto& c : r.cores) {
    json core{{"core", c.core}};
    if (r.latency_mode) core["finish_ms"] = c.finish_ms;
    else core["rounds"] = c.rounds;
    o["cores"].push_back(std::move(core));
  }
  return o;
}

void print(const sim::timing::timing_result& r) {
  if (r.latency_mode) {
    std::cout << fmt::format("latency        {} ms\n", r.latency_ms);
    std::cout << fmt::format("energy         {} pJ\n", r.energy_pj);
  } else {
    std::cout << fmt::format("samples        {}\nthroughput     {} samples/s\naverage latency {} ms\nenergy         {} pJ per sample\n", r.samples, r.samples_per_second,
                             r.latency_ms, r.energy_pj);
  }
  std::cout << fmt::format("average power  {} mW\n", r.power_mw);
}

}  // namespace

int run_timing(const timing_options& options) {
  int mode = options.mode ? (*options.mode == "latency" ? 1 : 0) : 1;
  try {
    auto hardware = sim::timing::read_hardware(options.hardware);
    if (options.mode) hardware.sim_config.sim_mode = mode;
    if (options.sim_time_ms) hardware.sim_config.sim_time = *options.sim_time_ms;
    mode = static_cast<int>(hardware.sim_config.sim_mode);
    const auto program = sim::timing::load_timed(options.program, hardware);
    bool any = false;
    for (const auto& c : program.cores) any = any || !c.stream.empty();
    if (!any) {
      if (options.json) std::cout << object("skip", mode).dump() << "\n";
      else std::cout << "SKIP: no core is active, there is nothing to time\n";
      return 0;
    }
    sim::timing::read_network(hardware, options.hardware.parent_path());
    const auto result = sim::timing::chip(program, hardware).run();
    if (options.json) std::cout << success(result).dump() << "\n";
    else print(result);
    return 0;
  } catch (const error& e) {
    if (!options.json) throw;
    auto o = object(e.code() == error_code::unsupported ? "unsupported" : "error", mode);
    o["error"] = e.what();
    std::cout << o.dump() << "\n";
    return 1;
  }
}

}  // namespace raptor::tools
