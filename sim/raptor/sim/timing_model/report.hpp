#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "raptor/sim/timing_model/network.hpp"
#include "raptor/sim/timing_model/processes.hpp"
#include "raptor/sim/timing_model/result.hpp"

/// What a finished run comes to: time, energy, power, and how much the resources were used (TIMING 11 and 12).
namespace raptor::sim::timing {

namespace report_parts {

/// Use of one resource over several instances of it.
class use_of {
 public:
  void add(std::int64_t core, double busy) {
    if (busy > most_) most_ = busy, core_ = core;
    sum_ += busy;
    ++count_;
  }
  [[nodiscard]] resource_use over(double elapsed) const {
    if (elapsed <= 0 || count_ == 0) return {};
    return {most_ / elapsed, sum_ / static_cast<double>(count_) / elapsed, core_};
  }

 private:
  double most_ = 0, sum_ = 0;
  std::int64_t core_ = -1;
  std::size_t count_ = 0;
};

template <observes Observer>
void add_use(timing_result& r, const std::vector<node<Observer>>& nodes, const network<Observer>& net, const target::configuration& hardware, double elapsed) {
  std::array<use_of, resource_count> use;
  const auto of = [&](resource what) -> use_of& { return use[static_cast<std::size_t>(what)]; };
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const double period = number(picoseconds(hardware.chip_config.core_config.period));
  for (const auto& n : nodes) {
    if (n.state.length() == 0) continue;
    for (const auto busy : n.group_busy) of(resource::matrix).add(n.id(), number(busy));
    of(resource::vector).add(n.id(), number(n.vector_busy));
    of(resource::issue).add(n.id(), number(n.state.fetches()) * period);
    of(resource::local_memory).add(n.id(), number(n.state.local().busy()));
    of(resource::network).add(n.id(), number(n.network_busy));
    r.instructions += n.state.fetches();
  }
  of(resource::global_memory).add(-1, number(net.global_memory().busy()));
  for (std::size_t k = 0; k < resource_count; ++k) r.use[k] = use[k].over(elapsed);
  const auto most = std::max_element(r.use.begin(), r.use.end(), [](const auto& a, const auto& b) { return a.busiest < b.busiest; });
  r.binding = static_cast<resource>(most - r.use.begin());
}

}  // namespace report_parts

/// `now`: the end of the run. Sums follow the order of TIMING 12, so that they are exact to the last bit.
template <observes Observer>
[[nodiscard]] timing_result make_report(const std::vector<node<Observer>>& nodes, const network<Observer>& net, const target::configuration& hardware, instant now) {
  timing_result r;
  r.latency_mode = hardware.sim_config.sim_mode == 1;
  const auto& c = hardware.chip_config.core_config;
  double dynamic = 0, idle_power = 0;
  instant elapsed = r.latency_mode ? 0 : now;
  for (const auto& n : nodes) {
    double s = 0;
    for (const double part : {c.inst_fetch_static_power, c.inst_decode_static_power + c.inst_decode_offset_static_power, c.reg_file_static_power,
                              c.scalar_static_power, 0.0, c.vector_reg_static_power + c.vector_alu_static_power, c.transfer_static_power,
                              n.state.local().static_power()})
      s += part;
    dynamic += n.state.dynamic_energy();
    idle_power += s;
    if (r.latency_mode) elapsed = std::max(elapsed, n.state.finish_time());
    core_timing t{n.id(), static_cast<double>(n.state.finish_time()) * 1000.0 * 1e-15 * 1000, n.state.rounds(), n.state.length() > 0, {}, s};
    for (std::size_t part = 0; part < component_count; ++part) {
      t.energy_pj[part] = n.state.energy(static_cast<component>(part));
      r.dynamic_energy_pj[part] += t.energy_pj[part];
    }
    r.cores.push_back(t);
  }
  dynamic += net.dynamic_energy();
  dynamic += net.global_memory().dynamic_energy();
  idle_power += net.global_memory().static_power();
  r.dynamic_energy_pj[static_cast<std::size_t>(component::network)] = net.dynamic_energy();
  r.dynamic_energy_pj[static_cast<std::size_t>(component::global_memory)] = net.global_memory().dynamic_energy();
  const double seconds = static_cast<double>(elapsed) * 1000.0 * 1e-15;
  const double ns = seconds * 1e9;
  const double total = idle_power * ns + dynamic;
  r.elapsed_ns = ns;
  r.static_power_mw = idle_power;
  r.latency_ms = seconds * 1000;
  r.energy_pj = total;
  r.power_mw = ns == 0 ? idle_power : total / ns;
  report_parts::add_use(r, nodes, net, hardware, static_cast<double>(elapsed));
  if (r.latency_mode) return r;
  bool any = false;
  for (const auto& core : r.cores)
    if (core.active) r.samples = any ? std::min(r.samples, core.rounds) : core.rounds, any = true;
  const auto samples = static_cast<double>(r.samples);
  r.latency_ms = r.samples == 0 ? 0 : hardware.sim_config.sim_time / samples;
  r.energy_pj = r.samples == 0 ? 0 : total / samples;
  r.samples_per_second = samples / (hardware.sim_config.sim_time / 1e3);
  return r;
}

}  // namespace raptor::sim::timing
