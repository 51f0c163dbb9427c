#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "raptor/sim/timing_model/network.hpp"
#include "raptor/sim/timing_model/processes.hpp"

/// Why cores did not finish: what each waits for, and the cycle that they form.
namespace raptor::sim::timing {

struct stuck_cores {
  std::vector<std::string> lines;   ///< one a core that has not finished: core, instruction, what it waits for
  std::vector<std::string> cycles;  ///< "core 0 (instruction 3: send to core 1) -> core 1 (…) -> core 0"
};

/// Cores are visited in the order of their ids; a wait that several cores could end is followed to the lowest.
/// Cost: O(cores + instructions of cores whose signals are waited for).
template <observes Observer>
class waiting_cores {
 public:
  waiting_cores(std::vector<node<Observer>>& nodes, const network<Observer>& net) : nodes_(nodes), net_(net), waits_for_(nodes.size(), none) {}

  [[nodiscard]] stuck_cores explain() {
    stuck_cores result;
    for (std::size_t c = 0; c < nodes_.size(); ++c)
      if (unfinished(c)) result.lines.push_back(line(c));
    std::vector<std::size_t> visited(nodes_.size(), none);
    for (std::size_t start = 0; start < nodes_.size(); ++start) {
      std::size_t c = start;
      while (c != none && visited[c] == none) visited[c] = start, c = waits_for_[c];
      if (c == none || visited[c] != start) continue;
      std::vector<std::size_t> cycle{c};
      for (std::size_t k = waits_for_[c]; k != c; k = waits_for_[k]) cycle.push_back(k);
      std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
      std::string text;
      for (const auto k : cycle) text += name(k) + " (" + action(k, nodes_[k].state.job(transfer_unit)) + ") -> ";
      result.cycles.push_back(text + name(cycle.front()));
    }
    return result;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  [[nodiscard]] std::string name(std::size_t c) const { return "core " + std::to_string(nodes_[c].id()); }
  [[nodiscard]] bool unfinished(std::size_t c) const { return !nodes_[c].state.finished() && nodes_[c].state.length() > 0; }
  [[nodiscard]] std::string action(std::size_t c, flight_number n) const {
    const flight& f = nodes_[c].state.at(n);
    const auto& i = nodes_[c].state.instruction(f);
    std::string text = "instruction " + std::to_string(f.pc) + ": " + std::string(isa::mnemonic(i.op));
    if (i.op == isa::opcode::send) text += " to core " + std::to_string(i.immediate);
    if (i.op == isa::opcode::recv) text += " from core " + std::to_string(i.immediate);
    if (i.op == isa::opcode::wait) text += " for event " + std::to_string(i.select) + " to reach " + std::to_string(i.value);
    return text;
  }
  /// What another core is doing.
  [[nodiscard]] std::string state_of(std::size_t c) const {
    const auto& s = nodes_[c].state;
    if (s.finished() || s.length() == 0) return "has finished";
    const flight_number f = s.job(transfer_unit);
    return f == no_flight ? "is at instruction " + std::to_string(std::min(s.pc(), s.length() - 1)) : "is at " + action(c, f);
  }
  [[nodiscard]] std::string line(std::size_t c) {
    auto& n = nodes_[c];
    const flight_number f = n.state.job(transfer_unit);
    if (f == no_flight) {
      if (n.state.oldest() != no_flight) return name(c) + " is still at " + action(c, n.state.oldest());
      if (n.state.pc() == n.state.length())
        return name(c) + " has executed everything but never counts as finished: its last instruction is scalar or setbw";
      return name(c) + " stands at instruction " + std::to_string(n.state.pc()) + ", nothing is dispatched: rob_size is 0";
    }
    std::string text = name(c) + ", " + action(c, f);
    const auto& i = n.state.instruction(n.state.at(f));
    if (i.op == isa::opcode::send || i.op == isa::opcode::recv) {
      const std::size_t peer = net_.find(i.immediate);
      if (peer == nodes_.size()) return text + ", which does not exist in the program";
      if (unfinished(peer)) waits_for_[c] = peer;
      return text + ", which " + state_of(peer);
    }
    if (i.op != isa::opcode::wait) return text;
    text += ", which is at " + std::to_string(n.events[static_cast<std::size_t>(i.select)]);
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      if (!unfinished(other) || !will_signal(other, n.id(), i.select)) continue;
      waits_for_[c] = other;
      return text + "; core " + std::to_string(nodes_[other].id()) + ", which " + state_of(other) + ", would signal";
    }
    return text + "; no core will signal it";
  }
  [[nodiscard]] bool will_signal(std::size_t other, std::int64_t core, std::int32_t event) const {
    const auto& s = nodes_[other].state;
    const flight_number f = s.job(transfer_unit);
    const auto& stream = s.program().stream;
    return std::any_of(stream.begin() + (f == no_flight ? std::min(s.pc(), s.length()) : s.at(f).pc), stream.end(),
                       [&](const timed_instruction& i) { return i.op == isa::opcode::sync && i.immediate == core && i.select == event; });
  }

  std::vector<node<Observer>>& nodes_;
  const network<Observer>& net_;
  std::vector<std::size_t> waits_for_;
};

}  // namespace raptor::sim::timing
