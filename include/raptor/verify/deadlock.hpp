#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "raptor/isa/opcode.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/program/program.hpp"
#include "raptor/program/unrolled.hpp"
#include "raptor/support/error.hpp"

/// The static detector behind --pim-detect-communication-deadlock. Source: INVARIANTS.md (Events, Communication).
namespace raptor::verify {

struct deadlock_options {
  int rounds = 1;  ///< how often the whole program repeats; event registers keep their values in between
  std::int64_t most_operations = 200'000'000;  ///< communication operations of all cores; beyond it the program is refused
};
struct deadlock_report {
  std::int64_t messages = 0;  ///< matched sends and receives
  std::int64_t signals = 0;
  std::int64_t waits = 0;
};

namespace deadlock_parts {

using program::operation;

/// Watches nothing. An observer says at which operations beside the communication it is called, and whether clocks are needed anyway and
/// every message and signal must stay within one round: then what orders rounds 0 and 1 orders any two consecutive ones.
struct no_observer {
  static constexpr bool within_rounds = false;
  [[nodiscard]] bool stops(const operation&) const noexcept { return false; }
  template <class Simulation>
  void access(const Simulation&, std::size_t, const program::step&) const noexcept {}
};

/// The fully expanded order of send, receive, sync and wait, executed as far as it goes.
///
/// Where the program has signals, vector clocks keep the happens-before relation: a signal that is not ordered after the last wait on its
/// register could arrive before that wait in another schedule and would make it overshoot. So what passes here passes
/// in every schedule.
template <class Observer = no_observer>
class simulation {
 public:
  simulation(const program::program& p, const deadlock_options& options, Observer observer = {})
      : options_(options), observer_(std::move(observer)), cores_(p.cores.size()) {
    bool signals = false;
    std::vector<std::uint32_t> talking;
    for (std::size_t c = 0; c < cores_.size(); ++c) {
      cores_[c].body = std::make_unique<program::unrolled>(p.cores[c].body, "core " + std::to_string(c));
      cores_[c].at = std::make_unique<program::unrolled::cursor>(
          *cores_[c].body, [&](const operation& o) { return program::is_communication(o.op) || observer_.stops(o); });
      cores_[c].rounds_left = options.rounds - 1;
      cores_[c].at->rest([&](const operation& o) { signals |= program::pattern_of(o.op) == program::pattern::event; });
      if (!cores_[c].at->done()) talking.push_back(static_cast<std::uint32_t>(c));
    }
    if (!signals && !Observer::within_rounds) return;
    if (talking.size() > 4096) throw error(error_code::capacity, "events on " + std::to_string(talking.size()) + " communicating cores");
    for (auto& core : cores_) core.events = std::make_unique<std::array<event_register, isa::event_count>>();
    for (std::size_t k = 0; k < talking.size(); ++k) {
      cores_[talking[k]].rank = k;
      cores_[talking[k]].clock.assign(talking.size(), 0);
      cores_[talking[k]].clock[k] = 1;  // what a core does before it first communicates is not known to those that never met it
    }
  }

  deadlock_report run() {
    for (std::size_t c = 0; c < cores_.size(); ++c) enqueue(c);
    while (!ready_.empty()) {
      const std::size_t c = ready_.front();
      ready_.pop_front();
      cores_[c].queued = false;
      while (step(c)) {
      }
    }
    judge();
    return report_;
  }

  [[nodiscard]] Observer& observer() noexcept { return observer_; }
  /// Round that a core is in, from 0.
  [[nodiscard]] int round(std::size_t c) const { return options_.rounds - 1 - cores_[c].rounds_left; }
  /// A core's own time. Needs clocks.
  [[nodiscard]] std::uint32_t now(std::size_t c) const { return cores_[c].clock[cores_[c].rank]; }
  /// Whether what core `other` did at its time `then` is ordered before what core c does now. Needs clocks.
  [[nodiscard]] bool ordered(std::size_t other, std::uint32_t then, std::size_t c) const { return c == other || cores_[c].clock[cores_[other].rank] >= then; }

 private:
  using vector_clock = std::vector<std::uint32_t>;
  struct event_register {
    std::int64_t value = 0;
    vector_clock arrived;                ///< join of the clocks of the signals since the last wait
    std::uint32_t last_wait = 0;  ///< the owner's time of the last wait
    int round = 0;                ///< of the signals since the last wait
  };
  struct core_state {
    std::unique_ptr<program::unrolled> body;
    std::unique_ptr<program::unrolled::cursor> at;
    std::unique_ptr<std::array<event_register, isa::event_count>> events;
    vector_clock clock;     ///< empty: no signals in the program
    std::size_t rank = 0;   ///< position in clocks
    std::int64_t passed = 0;  ///< communication operations in this round
    int rounds_left = 0;
    bool queued = false;
  };
  deadlock_options options_;
  Observer observer_;
  std::vector<core_state> cores_;
  std::deque<std::size_t> ready_;
  deadlock_report report_;
  std::int64_t operations_ = 0;

  void enqueue(std::size_t c) {
    if (cores_[c].queued) return;
    cores_[c].queued = true;
    ready_.push_back(c);
  }
  [[nodiscard]] std::string place(std::size_t c) const {
    return "core " + std::to_string(c) + ", item " + std::to_string(cores_[c].at->item());
  }
  [[nodiscard]] std::string describe(std::size_t c) const {
    const auto& core = cores_[c];
    const operation& o = core.at->current();
    std::string text = place(c) + ", communication " + std::to_string(core.passed) + ": ";
    const std::string peer = "core " + std::to_string(o.peer), size = std::to_string(o.length) + " elements ";
    if (o.op == isa::opcode::send) return text + "send " + size + "to " + peer;
    if (o.op == isa::opcode::recv) return text + "recv " + size + "from " + peer;
    if (o.op == isa::opcode::sync) return text + "sync event " + std::to_string(o.event) + " of " + peer;
    return text + "wait event " + std::to_string(o.event) + " for " + std::to_string(o.count) + " signals, has " +
           std::to_string((*core.events)[static_cast<std::size_t>(o.event)].value);
  }
  static void join(vector_clock& to, const vector_clock& from) {
    to.resize(std::max(to.size(), from.size()), 0);
    for (std::size_t k = 0; k < from.size(); ++k) to[k] = std::max(to[k], from[k]);
  }
  /// The core's own time moves with every operation that it passes.
  void advance(std::size_t c) {
    auto& core = cores_[c];
    if (!core.clock.empty()) ++core.clock[core.rank];
    ++core.passed;
    core.at->advance();
    if (++operations_ > options_.most_operations)
      throw error(error_code::capacity, "more than " + std::to_string(options_.most_operations) + " communication operations", place_or_end(c));
    repeat(core);
  }
  static void repeat(core_state& core) {
    if (!core.at->done() || core.rounds_left == 0) return;
    --core.rounds_left;
    core.passed = 0;
    core.at->restart();
  }
  [[nodiscard]] std::string place_or_end(std::size_t c) const {
    return cores_[c].at->done() ? "core " + std::to_string(c) + ", end" : place(c);
  }

  /// Executes the next operation of a core; false where it is blocked or has ended.
  bool step(std::size_t c) {
    auto& core = cores_[c];
    if (core.at->done()) return false;
    const operation& o = core.at->current();
    if (!program::is_communication(o.op)) {
      observer_.access(*this, c, core.at->here());
      core.at->advance();
      repeat(core);
      return true;
    }
    if (o.op == isa::opcode::wait) return wait(c, o);
    const auto other = static_cast<std::size_t>(o.peer);
    if (o.op == isa::opcode::sync) {
      signal(c, other, o);
      return true;
    }
    auto& peer = cores_[other];
    if (other == c || peer.at->done()) return false;
    const operation& met = peer.at->current();
    const auto counterpart = o.op == isa::opcode::send ? isa::opcode::recv : isa::opcode::send;
    if (met.op != counterpart || static_cast<std::size_t>(met.peer) != c) return false;
    if (met.length != o.length)
      throw error(error_code::deadlock, "sizes of a message differ: " + describe(c) + "; " + describe(other), place(c));
    if (Observer::within_rounds && round(c) != round(other))
      throw error(error_code::deadlock, "a message of two iterations: " + describe(c) + ", in iteration " + std::to_string(round(c)) + "; " + describe(other) +
                                            ", in iteration " + std::to_string(round(other)), place(c));
    if (!core.clock.empty()) {
      join(core.clock, peer.clock);
      peer.clock = core.clock;
    }
    ++report_.messages;
    advance(c);
    advance(other);
    enqueue(other);
    return true;
  }

  void signal(std::size_t c, std::size_t target, const operation& o) {
    auto& own = cores_[c];
    auto& reached = cores_[target];
    auto& event = (*reached.events)[static_cast<std::size_t>(o.event)];
    const std::uint32_t seen = reached.clock.empty() ? 0 : own.clock[reached.rank];
    if (seen < event.last_wait)
      throw error(error_code::deadlock,
                  "overshoot: " + describe(c) + " is not ordered after the last wait on that register, before which it may arrive",
                  place(c), "give independent waits registers of their own");
    if (Observer::within_rounds && event.value > 0 && event.round != round(c))
      throw error(error_code::deadlock, "overshoot: " + describe(c) + ", in iteration " + std::to_string(round(c)) +
                                            ", meets signals of iteration " + std::to_string(event.round), place(c));
    event.round = round(c);
    ++event.value;
    join(event.arrived, own.clock);
    ++report_.signals;
    advance(c);
    enqueue(target);
  }

  bool wait(std::size_t c, const operation& o) {
    auto& core = cores_[c];
    auto& event = (*core.events)[static_cast<std::size_t>(o.event)];
    if (event.value > o.count) throw error(error_code::deadlock, "overshoot: " + describe(c), place(c));
    if (event.value < o.count) return false;
    if (Observer::within_rounds && event.round != round(c))
      throw error(error_code::deadlock, describe(c) + ", in iteration " + std::to_string(round(c)) + ", gets signals of iteration " + std::to_string(event.round), place(c));
    event.value = 0;
    join(core.clock, event.arrived);
    event.arrived.clear();
    ++report_.waits;
    advance(c);
    event.last_wait = core.clock[core.rank];
    return true;
  }

  /// Cores that a blocked core waits for: its peer, or whoever has signals left for the register it waits on. Signals that arrived since the
  /// last successful wait are in the register and make no edge.
  [[nodiscard]] std::vector<std::size_t> waits_for(std::size_t c) const {
    const operation& o = cores_[c].at->current();
    if (o.op != isa::opcode::wait) return {static_cast<std::size_t>(o.peer)};
    std::vector<std::size_t> suppliers;
    for (std::size_t s = 0; s < cores_.size(); ++s) {
      bool supplies = false;
      const auto look = [&](const operation& other) {
        supplies |= other.op == isa::opcode::sync && static_cast<std::size_t>(other.peer) == c && other.event == o.event;
      };
      cores_[s].at->rest(look);
      if (cores_[s].rounds_left > 0 && !supplies) program::unrolled::cursor(*cores_[s].body).rest(look);
      if (supplies) suppliers.push_back(s);
    }
    return suppliers;
  }

  void judge() const {
    std::vector<std::size_t> blocked;
    for (std::size_t c = 0; c < cores_.size(); ++c)
      if (!cores_[c].at->done()) blocked.push_back(c);
    if (blocked.empty()) {
      for (std::size_t c = 0; c < cores_.size(); ++c)
        for (std::size_t e = 0; cores_[c].events && e < isa::event_count; ++e)
          if (const auto left = (*cores_[c].events)[e].value; left != 0)
            throw error(error_code::deadlock, std::to_string(left) + " signals on event " + std::to_string(e) + " of core " + std::to_string(c) +
                                                  " are never waited for", "core " + std::to_string(c),
                        "registers keep their values when the program repeats");
      return;
    }
    // Depth first along the edges: the first way back into the path is a cycle.
    std::vector<std::string> causes;
    std::vector<int> state(cores_.size(), 0);  // 1: on the path, 2: done
    std::vector<std::pair<std::size_t, std::vector<std::size_t>>> path;
    for (const std::size_t start : blocked) {
      if (state[start] != 0) continue;
      const auto enter = [&](std::size_t c) {
        state[c] = 1;
        auto next = waits_for(c);
        if (next.empty()) causes.push_back(describe(c) + ": no core has a signal left for it");
        std::reverse(next.begin(), next.end());
        path.emplace_back(c, std::move(next));
      };
      enter(start);
      while (!path.empty()) {
        auto& [c, next] = path.back();
        if (next.empty()) {
          state[c] = 2;
          path.pop_back();
          continue;
        }
        const std::size_t to = next.back();
        next.pop_back();
        if (cores_[to].at->done()) {
          causes.push_back(describe(c) + ": core " + std::to_string(to) + " has ended");
        } else if (state[to] == 1) {
          std::vector<std::string> cycle;
          const auto first = std::find_if(path.begin(), path.end(), [&, to = to](const auto& entry) { return entry.first == to; });
          for (auto k = first; k != path.end(); ++k) cycle.push_back(describe(k->first));
          std::string ring;
          for (auto k = first; k != path.end(); ++k) ring += std::to_string(k->first) + " -> ";
          throw error(error_code::deadlock, "communication deadlock, cores " + ring + std::to_string(to), place(to)).with_details(std::move(cycle));
        } else if (state[to] == 0) {
          enter(to);
        }
      }
    }
    throw error(error_code::deadlock, "communication never completes: " + std::to_string(blocked.size()) + " cores stay blocked", place(blocked.front()))
        .with_details(std::move(causes));
  }
};

}  // namespace deadlock_parts

/// Executes the fully expanded SEND/RECV and exact-count SYNC/WAIT order of all cores.
///
/// Requires check_bounds. Guarantees, where it returns: no schedule of the program blocks, every wait gets exactly its count of signals
/// in every schedule, and no signal is left over. Errors: deadlock, with the cycle of cores and their items as details; or
/// the missing signal or partner; or the overshoot; capacity. Cost: linear in the unrolled communication, times the number of
/// communicating cores where there are signals. Deterministic.
inline deadlock_report check_deadlock(const program::program& p, const deadlock_options& options = {}) {
  return deadlock_parts::simulation<>(p, options).run();
}

}  // namespace raptor::verify
