#include "tools/timing.hpp"

#include <iostream>

#include <fmt/format.h>

#include "common.hpp"
#include "raptor/sim/timing_hardware.hpp"
#include "raptor/sim/timing_input.hpp"
#include "raptor/sim/timing_model/chip.hpp"
#include "raptor/sim/timing_profile.hpp"

namespace raptor::tools {

namespace {

using json = nlohmann::ordered_json;
namespace timing = sim::timing;
using class_energy = std::array<std::array<double, timing::component_count>, timing::recorder::class_count>;

/// "local memory" → "local_memory".
std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

json object(const char* status, int mode) {
  return json{{"status", status}, {"error", nullptr}, {"mode", mode}, {"latency_ms", nullptr}, {"energy_pj", nullptr}, {"power_mw", nullptr},
              {"samples", nullptr}, {"cores", json::array()}};
}
json components(const std::array<double, timing::component_count>& energy, std::size_t count = timing::component_count) {
  json o = json::object();
  for (std::size_t k = 0; k < count; ++k) o[key_of(timing::component_names[k])] = energy[k];
  return o;
}
json breakdown(const timing::timing_result& r, const class_energy& classes) {
  json o{{"static_pj", r.static_power_mw * r.elapsed_ns}, {"components_pj", components(r.dynamic_energy_pj)}};
  for (std::size_t k = 1; k < classes.size(); ++k) o["classes_pj"][timing::recorder::class_names[k]] = components(classes[k]);
  o["cores"] = json::array();
  for (const auto& c : r.cores)
    o["cores"].push_back({{"core", c.core}, {"static_pj", c.static_power_mw * r.elapsed_ns}, {"components_pj", components(c.energy_pj, timing::component_count - 2)}});
  return o;
}
json success(const timing::timing_result& r, bool active) {
  auto o = object(active ? "ok" : "skip", r.latency_mode ? 1 : 0);
  o["latency_ms"] = r.latency_ms, o["energy_pj"] = r.energy_pj, o["power_mw"] = r.power_mw;
  if (!r.latency_mode) o["samples"] = r.samples;
  for (const auto& c : r.cores) {
    json core{{"core", c.core}};
    if (r.latency_mode) core["finish_ms"] = c.finish_ms;
    else core["rounds"] = c.rounds;
    o["cores"].push_back(std::move(core));
  }
  if (!active) return o;
  o["instructions"] = r.instructions;
  o["binding"] = timing::resource_names[static_cast<std::size_t>(r.binding)];
  for (std::size_t k = 0; k < timing::resource_count; ++k) {
    json use{{"busiest", r.use[k].busiest}, {"mean", r.use[k].mean}};
    if (r.use[k].core >= 0) use["core"] = r.use[k].core;
    o["utilisation"][key_of(timing::resource_names[k])] = use;
  }
  if (!r.blocked.empty()) o["blocked"] = r.blocked;
  return o;
}

void print_breakdown(const timing::timing_result& r, const class_energy& classes) {
  std::cout << fmt::format("\nenergy by component, pJ of the whole run\n  {:<16}{:>24}\n", "static", r.static_power_mw * r.elapsed_ns);
  for (std::size_t k = 0; k < timing::component_count; ++k) std::cout << fmt::format("  {:<16}{:>24}\n", timing::component_names[k], r.dynamic_energy_pj[k]);
  std::cout << "\ndynamic energy by class of instruction, pJ\n";
  for (std::size_t k = 1; k < classes.size(); ++k) {
    double sum = 0;
    for (const double part : classes[k]) sum += part;
    std::cout << fmt::format("  {:<16}{:>24}\n", timing::recorder::class_names[k], sum);
  }
  std::cout << "\ndynamic energy by core, pJ\n";
  for (const auto& c : r.cores) {
    if (!c.active) continue;
    std::cout << fmt::format("  core {}:", c.core);
    for (std::size_t k = 0; k + 2 < timing::component_count; ++k) std::cout << fmt::format(" {} {}{}", timing::component_names[k], c.energy_pj[k], k + 3 < timing::component_count ? "," : "\n");
  }
}
void print(const timing::timing_result& r) {
  if (r.latency_mode) {
    std::cout << fmt::format("latency        {} ms\n", r.latency_ms);
    std::cout << fmt::format("energy         {} pJ\n", r.energy_pj);
  } else {
    std::cout << fmt::format("samples        {}\nthroughput     {} samples/s\naverage latency {} ms\nenergy         {} pJ per sample\n", r.samples, r.samples_per_second,
                             r.latency_ms, r.energy_pj);
  }
  std::cout << fmt::format("average power  {} mW\n", r.power_mw);
}
void print_use(const timing::timing_result& r) {
  const auto& most = r.use[static_cast<std::size_t>(r.binding)];
  std::cout << fmt::format("bound by       {}, {:.1f} % of the time in use{}\n", timing::resource_names[static_cast<std::size_t>(r.binding)], 100 * most.busiest,
                           most.core >= 0 ? fmt::format(" in core {}", most.core) : "");
  std::cout << fmt::format("  {:<16}{:>10}{:>10}\n", "in use, %", "busiest", "mean");
  for (std::size_t k = 0; k < timing::resource_count; ++k) {
    const auto& use = r.use[k];
    std::cout << fmt::format("  {:<16}{:>10.2f}{:>10.2f}{}\n", timing::resource_names[k], 100 * use.busiest, 100 * use.mean,
                             use.core >= 0 && use.busiest > 0 ? fmt::format("   core {}", use.core) : "");
  }
  if (!r.blocked.empty()) std::cout << "note: nothing can happen any more\n";
  for (std::size_t k = 0; k < r.blocked.size() && k < 20; ++k) std::cout << "  " << r.blocked[k] << "\n";
  if (r.blocked.size() > 20) std::cout << "  ... and " << r.blocked.size() - 20 << " more\n";
}

timing::input_mode input_mode_of(const std::string& text) {
  if (text == "auto") return timing::input_mode::automatic;
  if (text == "single") return timing::input_mode::single;
  if (text == "directory") return timing::input_mode::directory;
  throw usage_error("Unknown instruction mode '" + text + "'; expected auto, single, or directory");
}

/// Runs with a recorder where something asks for one.
timing::timing_result simulate(const timing::timed_program& program, const target::configuration& hardware, const timing_options& options, class_energy& classes) {
  if (options.trace.empty() && options.profile.empty() && !options.energy_breakdown) return timing::chip(program, hardware).run();
  const auto origins = timing::instruction_origins::of(program, options.program);
  std::optional<timing::trace_writer> trace;
  if (!options.trace.empty()) trace.emplace(options.trace, program, origins);
  timing::recorder recorder(program, origins, trace ? &*trace : nullptr);
  timing::timing_result result;
  try {
    result = timing::chip(program, hardware, recorder).run();
  } catch (const error&) {
    if (trace) trace->finish();  // what led there is what one wants to see
    throw;
  }
  if (trace) trace->finish();
  classes = recorder.classes();
  if (!options.profile.empty())
    write_file_atomically(options.profile, recorder.csv(result, timing::picoseconds(hardware.chip_config.core_config.period)));
  return result;
}

}  // namespace

int run_timing(const timing_options& options) {
  int mode = options.mode ? (*options.mode == "latency" ? 1 : 0) : 1;
  try {
    const auto form = input_mode_of(options.instruction_mode);
    auto hardware = timing::read_hardware(options.hardware);
    if (options.mode) hardware.sim_config.sim_mode = mode;
    if (options.sim_time_ms) hardware.sim_config.sim_time = *options.sim_time_ms;
    mode = static_cast<int>(hardware.sim_config.sim_mode);
    const auto program = timing::load_timed(options.program, hardware, form);
    timing::read_network(hardware, options.hardware.parent_path());
    const bool active = std::any_of(program.cores.begin(), program.cores.end(), [](const auto& c) { return !c.stream.empty(); });
    class_energy classes{};
    const auto result = simulate(program, hardware, options, classes);
    if (options.json) {
      auto o = success(result, active);
      if (options.energy_breakdown) o["energy"] = breakdown(result, classes);
      std::cout << o.dump() << "\n";
      return 0;
    }
    if (!active) std::cout << "SKIP: no core is active, there is nothing to time\n";
    print(result);
    if (active) print_use(result);
    if (options.energy_breakdown) print_breakdown(result, classes);
    return 0;
  } catch (const error& e) {
    if (!options.json) throw;
    auto o = object(e.code() == error_code::unsupported ? "unsupported" : "error", mode);
    o["error"] = e.what();
    if (!e.details().empty()) o["details"] = e.details();
    std::cout << o.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
    if (e.code() == error_code::usage) throw;
    return 1;
  }
}

}  // namespace raptor::tools
