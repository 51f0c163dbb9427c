#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "raptor/sim/timing_model/processes.hpp"
#include "raptor/support/error.hpp"

/// Switches, the table of latencies, the global memory, and what messages do where they arrive (TIMING 7 and 9).
namespace raptor::sim::timing {

template <observes Observer>
class network {
 public:
  /// `cores`: how many nodes there will be.
  network(std::vector<node<Observer>>& nodes, std::size_t cores, const target::configuration& hardware, scheduler& next, Observer& observer)
      : nodes_(nodes), hardware_(hardware), next_(next), observer_(observer), global_(hardware.chip_config.global_memory_config), links_(cores) {}

  void queue(node<Observer>& n, message m) {
    n.outgoing.push_back(m);
    next_.notify(n.network, signal::message_queued);
  }
  /// A switch serves one message at a time.
  void run(process& p) {
    auto& n = nodes_[p.owner];
    for (;;) {
      switch (p.step) {
        case 0:
          if (n.outgoing.empty()) {
            p.waits_for = signal::message_queued;
            return;
          }
          n.current = n.outgoing.take_front();
          p.step = 1, p.started = next_.now;
          return next_.wait(p, transmission(n));
        case 1:
          p.step = 2;
          return next_.wait(p, is_request(n.current) ? request(n) : deliver(n, n.current));
        default:
          p.step = 0;
          if constexpr (Observer::enabled) observer_.transmitted(p.owner, n.current.pc, name(n.current), p.started, next_.now);
          if (is_request(n.current)) next_.notify(n.transfer, signal::request_done);
      }
    }
  }
  [[nodiscard]] double dynamic_energy() const noexcept { return energy_; }
  [[nodiscard]] const memory_port& global_memory() const noexcept { return global_; }
  [[nodiscard]] bool exists(std::int64_t core) const noexcept { return find(core) < nodes_.size(); }
  /// Index of a core; nodes' number: there is none.
  [[nodiscard]] std::size_t find(std::int64_t core) const noexcept {
    const auto direct = static_cast<std::size_t>(core);
    if (direct < nodes_.size() && nodes_[direct].id() == core) return direct;
    const auto at = std::lower_bound(nodes_.begin(), nodes_.end(), core, [](const auto& n, std::int64_t id) { return n.id() < id; });
    return at != nodes_.end() && at->id() == core ? static_cast<std::size_t>(at - nodes_.begin()) : nodes_.size();
  }

 private:
  struct link {
    std::int64_t to = -1;
    double latency = 0, energy = 0;
    bool known = false;
  };
  static constexpr std::int64_t to_global_memory = -1;

  [[nodiscard]] static const char* name(const message& m) noexcept {
    constexpr const char* names[] = {"ready", "go", "data", "sync", "read", "write"};
    return names[static_cast<std::size_t>(m.what)];
  }
  [[nodiscard]] static bool is_request(const message& m) noexcept { return m.what == message::type::read || m.what == message::type::write; }
  [[nodiscard]] std::size_t destination(const message& m) const {
    const auto at = find(m.to);
    if (at == nodes_.size()) throw error(error_code::execution, "a message to core " + std::to_string(m.to) + ", which does not exist in the program");
    return at;
  }
  /// The table's entries for a pair of nodes; those used last are kept by the sender.
  [[nodiscard]] const link& link_of(const node<Observer>& from, std::int64_t to) {
    link& l = links_[from.state.index()][static_cast<std::size_t>(to) % kept];
    if (!l.known || l.to != to) {
      const auto& table = hardware_.chip_config.network_config.table;
      const std::int64_t name = to == to_global_memory ? hardware_.chip_config.core_config.global_memory_switch_id : to;
      const auto entry = [&](const target::network_table::rows& rows) {
        const auto row = rows.find(from.id());
        if (row == rows.end()) return 0.0;
        const auto value = row->second.find(name);
        return value == row->second.end() ? 0.0 : value->second;
      };
      l = {to, entry(table.latency), entry(table.energy), true};
    }
    return l;
  }
  /// Time of the current message on the network, in whole ns (quirk 20); charges its energy.
  [[nodiscard]] instant transmission(node<Observer>& n) {
    const message& m = n.current;
    if (!is_request(m)) static_cast<void>(destination(m));
    else if (hardware_.chip_config.core_config.global_memory_switch_id != hardware_.chip_config.global_memory_switch_id)
      throw error(error_code::execution, "ld and st reach no global memory: core_config.global_memory_switch_id differs from chip_config.global_memory_switch_id");
    const link& l = link_of(n, is_request(m) ? to_global_memory : m.to);
    const auto flits = static_cast<double>(ceiling(m.bytes, hardware_.chip_config.network_config.bus_width));
    const double energy = flits * l.energy;
    energy_ += energy;
    if constexpr (Observer::enabled) observer_.spend(n.state.index(), m.pc, component::network, energy, m.bytes);
    const double ns = flits * l.latency;
    const instant time = picoseconds(std::trunc(ns));
    n.network_busy += time;
    return time;
  }
  /// One access of the global memory.
  [[nodiscard]] instant request(const node<Observer>& n) {
    const message& m = n.current;
    const instant delay = global_.access(next_.now, m.what == message::type::read, m.information);
    if constexpr (Observer::enabled) observer_.spend(n.state.index(), m.pc, component::global_memory, global_.last_energy(), m.information);
    return delay;
  }
  /// Runs the receiving core's handler; how long it holds the sender's switch.
  [[nodiscard]] instant deliver(const node<Observer>& from, const message& m) {
    auto& n = nodes_[destination(m)];
    constexpr instant held = 1000;  // one ns, whatever the period (quirk 18)
    switch (m.what) {
      case message::type::ready:
        if (from.id() == n.receive_from) queue(n, {message::type::go, from.id(), 1, m.information, n.state.at(n.transfer.job).pc, next_.now});
        else n.waiting[from.id()] = m;
        return held;
      case message::type::data:
        if (from.id() == n.receive_from) {
          if constexpr (Observer::enabled) observer_.delivered(from.state.index(), m.pc, m.queued, n.state.index(), n.state.at(n.transfer.job).pc, next_.now);
          next_.notify(n.transfer, signal::data);
          return 0;
        }
        n.waiting[from.id()] = m;
        return held;
      case message::type::go:
        if (from.id() != n.send_to) throw mismatch(n, from, "TransferUnit: send-recv not match");
        if (m.information != n.send_tag) throw mismatch(n, from, "TransferUnit: send tag not match");
        next_.notify(n.transfer, signal::go);
        return 0;
      default: {
        auto& counter = n.events[static_cast<std::size_t>(m.information)];
        ++counter;
        if constexpr (Observer::enabled) observer_.signalled(from.state.index(), m.pc, n.state.index(), static_cast<std::int32_t>(m.information), next_.now);
        if (m.information == n.wanted_event && counter >= n.wanted_value) next_.notify(n.transfer, signal::sync);
        return 0;
      }
    }
  }
  [[nodiscard]] static error mismatch(const node<Observer>& n, const node<Observer>& from, const char* text) {
    return error(error_code::execution, uncaught(text),
                 "core " + std::to_string(n.id()) + (n.send_to < 0 ? " is in no send" : ", instruction " + std::to_string(n.send_tag) + ": send to core " + std::to_string(n.send_to)) +
                     "; core " + std::to_string(from.id()) + " answered");
  }

  static constexpr std::size_t kept = 8;
  std::vector<node<Observer>>& nodes_;
  const target::configuration& hardware_;
  scheduler& next_;
  Observer& observer_;
  memory_port global_;
  std::vector<std::array<link, kept>> links_;
  double energy_ = 0;
};

}  // namespace raptor::sim::timing
