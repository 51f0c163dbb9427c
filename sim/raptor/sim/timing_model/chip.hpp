#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "raptor/sim/timing_model/core.hpp"
#include "raptor/sim/timing_model/network.hpp"
#include "raptor/sim/timing_model/observer.hpp"
#include "raptor/sim/timing_model/processes.hpp"
#include "raptor/sim/timing_model/report.hpp"
#include "raptor/sim/timing_model/result.hpp"
#include "raptor/sim/timing_model/units.hpp"
#include "raptor/sim/timing_model/waiting.hpp"

/// The chip: the clock, and the order of all that happens in one instant (TIMING 10 and 11).
namespace raptor::sim::timing {

/// One run of a program. Example: `chip(program, hardware).run().latency_ms`.
template <observes Observer = no_observer>
class chip {
 public:
  /// All must outlive the chip. Requires: a validated configuration and a checked program (timing_input.hpp).
  chip(const timed_program& program, const target::configuration& hardware, Observer& observer)
      : hardware_(hardware), shared_(hardware), next_(program.cores.size()), net_(nodes_, program.cores.size(), hardware, next_, observer), units_(nodes_, hardware, next_, net_, observer),
        period_(picoseconds(hardware.chip_config.core_config.period)) {
    start(program, observer);
  }
  chip(const timed_program& program, const target::configuration& hardware)
    requires(!Observer::enabled)
      : chip(program, hardware, silent) {}
  chip(const chip&) = delete;
  chip& operator=(const chip&) = delete;

  /// Once. Cost: proportional to activity; idle edges cost nothing (10.1, 10.5).
  /// Errors: deadlock or execution where cores do not finish, naming them and what they wait for; execution where messages do not match.
  [[nodiscard]] timing_result run();

 private:
  static inline no_observer silent;

  void start(const timed_program& program, Observer& observer) {
    nodes_.reserve(program.cores.size());  // processes are known by their address
    for (const auto& c : program.cores) nodes_.emplace_back(c, shared_, static_cast<std::uint32_t>(nodes_.size()), observer);
    unfinished_ = nodes_.size();
  }
  void run_process(process& p) {
    if (p.unit == switch_unit) net_.run(p);
    else units_.run(p);
  }
  /// A core's updates at the clock's edge; the units that it starts are woken.
  void edge(node<Observer>& n) {
    const bool was = n.state.finished();
    n.state.edge(next_.now, [&](std::int32_t unit) {
      next_.notify(unit == transfer_unit ? n.transfer : unit == vector_unit ? n.vector : n.groups[static_cast<std::size_t>(unit)], signal::start);
    });
    if (!was && n.state.finished()) --unfinished_;
  }
  /// Settles; then goes on with edges that concern nobody else, up to the first at which a unit starts or a unit's process may have
  /// completed something. They count at their own times; only the order in which cores are visited is another.
  void settle(node<Observer>& n) {
    auto& state = n.state;
    state.settle(next_.now);
    if (!state.idle() && state.next_edge_is_private()) {
      const instant limit = std::min(n.quiet_until(), end_);
      std::size_t ahead = 0;
      for (instant t = clock_; t < limit && ahead + 1 < later_.size(); t += period_) {
        state.private_edge(t);
        state.settle(t);
        ++ahead;
        if (state.idle() || !state.next_edge_is_private()) break;
      }
      if (ahead != 0) {
        next_.active.erase(state.index());
        if (!state.idle()) {
          later_[(now_slot_ + ahead) % later_.size()].push_back(static_cast<std::uint32_t>(state.index()));
          ++later_count_;
        }
        return;
      }
    }
    if (state.idle()) next_.active.erase(state.index());
  }
  /// The clock's next edge: cores that had gone ahead of it and are there now take part again.
  void tick() {
    clock_ += period_;
    if (later_count_ == 0) return;
    auto& due = later_[now_slot_];
    for (const auto i : due) next_.active.insert(i);
    later_count_ -= due.size();
    due.clear();
    now_slot_ = (now_slot_ + 1) % later_.size();
  }
  /// Edges until a core takes part again; 0: the next one.
  [[nodiscard]] std::int64_t edges_until_due() const noexcept {
    std::int64_t edges = 0;
    while (later_[(now_slot_ + static_cast<std::size_t>(edges)) % later_.size()].empty()) ++edges;
    return edges;
  }
  /// Rounds of processes until none is runnable; a round that contains the clock is followed by the edges.
  void rounds() {
    while (!next_.runnable.empty()) {
      round_.swap(next_.runnable);
      next_.runnable.clear();
      for (process* const p : round_) run_process(*p);
    }
  }
  /// Sequences of rounds of the processes that suspended for no time, in the reverse of that order.
  void zero_time() {
    while (!next_.zero.empty()) {
      next_.runnable.assign(next_.zero.rbegin(), next_.zero.rend());
      next_.zero.clear();
      rounds();
    }
  }
  /// Gives the pending set the clock's edges that it has not seen: nothing else was inserted or extracted meanwhile.
  void catch_up() {
    if (owed_ == 0) return;
    const std::int64_t plain = clock_ < others_ ? owed_ : owed_ - 1;  // edges whose next one is before all other entries
    next_.pending.run_idle_edges(period_, plain);
    if (plain != owed_) {
      next_.pending.extract();
      next_.pending.insert(clock_, nullptr);
    }
    owed_ = 0;
  }
  void look_ahead() noexcept { others_ = next_.pending.earliest().entry == nullptr ? next_.pending.second() : next_.pending.earliest().time; }

  /// An instant at which only the clock was pending.
  void clock_instant() {
    next_.now = clock_;
    tick();
    ++owed_;
    if (next_.active.size() == 1) {  // by far the most frequent
      auto& n = nodes_[next_.active.first()];
      n.state.freeze_completions();
      edge(n);
      if (!next_.runnable.empty()) run_started();
      if (unfinished_ != 0) settle(n);
    } else {
      edged_.clear();
      next_.active.list(edged_);
      for (const auto i : edged_) {
        nodes_[i].state.freeze_completions();
        edge(nodes_[i]);
      }
      if (!next_.runnable.empty()) run_started();
      if (unfinished_ != 0)
        for (const auto i : edged_) settle(nodes_[i]);
    }
    if (unfinished_ != 0 && !next_.zero.empty()) {
      zero_time();
      look_ahead();
    }
  }
  void run_started() {
    catch_up();
    rounds();
    look_ahead();
  }
  /// An instant at which processes were pending, perhaps the clock among them.
  void process_instant() {
    catch_up();
    next_.now = others_;
    auto& pending = next_.pending;
    round_.clear();
    while (!pending.empty() && pending.earliest().time == others_) round_.push_back(pending.extract().entry);
    edged_.clear();
    for (process* const p : round_) {
      if (p != nullptr) {
        run_process(*p);
        continue;
      }
      tick();
      pending.insert(clock_, nullptr);
      next_.active.list(edged_);
      for (const auto i : edged_) nodes_[i].state.freeze_completions();
    }
    for (const auto i : edged_) edge(nodes_[i]);  // started units come behind the processes that round 1 woke
    rounds();
    if (unfinished_ != 0) {
      for (const auto i : edged_) settle(nodes_[i]);
      zero_time();
    }
    look_ahead();
  }
  [[noreturn]] void throw_unfinished(bool deadlock);

  const target::configuration& hardware_;
  core_constants shared_;
  std::vector<node<Observer>> nodes_;
  scheduler next_;
  network<Observer> net_;
  units<Observer> units_;
  instant period_, clock_ = 0, others_ = never;  ///< the clock's next edge; the earliest other entry
  std::int64_t owed_ = 0;                        ///< edges that the pending set has not seen
  instant end_ = 0;
  std::array<std::vector<std::uint32_t>, 8> later_;  ///< cores that are ahead of the clock, by the edge at which they take part again
  std::size_t now_slot_ = 0, later_count_ = 0;       ///< slot of the clock's next edge
  std::vector<process*> round_;
  std::vector<std::uint32_t> edged_;  ///< cores that take part in the edge of this instant
  std::size_t unfinished_ = 0;
};

template <observes Observer>
timing_result chip<Observer>::run() {
  const auto& sim = hardware_.sim_config;
  const bool latency = sim.sim_mode == 1;
  constexpr double horizon = 4e18;  // ps, 46 days; a time-out beyond it never comes
  const auto milliseconds = [&](double ms) { return static_cast<instant>(std::min(ms * 1e9 + 0.5, horizon)); };
  if (!latency && !(sim.sim_time * 1e9 < horizon)) throw error(error_code::execution, "sim_time of " + in_words(sim.sim_time) + " ms is outside the simulator's range");
  end_ = latency ? milliseconds(sim.latency_timeout_ms) : 10 * milliseconds(sim.sim_time / 10);
  for (auto& n : nodes_) {
    n.state.begin(0);
    if (n.state.finished()) --unfinished_;
    if (!n.state.idle()) next_.active.insert(n.state.index());
  }
  clock_ = period_;
  next_.pending.insert(clock_, nullptr);
  bool deadlock = false;
  while (unfinished_ != 0) {
    if (others_ <= clock_) {
      if (others_ >= end_) break;
      process_instant();
      continue;
    }
    if (next_.active.size() == 0 && (later_count_ == 0 || edges_until_due() > 0)) {
      if (others_ == never && later_count_ == 0) {  // nothing will ever happen again
        deadlock = true;
        break;
      }
      std::int64_t skipped = (std::min(end_, others_) - clock_ + period_ - 1) / period_;
      if (later_count_ != 0) {
        skipped = std::min(skipped, edges_until_due());
        now_slot_ = (now_slot_ + static_cast<std::size_t>(skipped)) % later_.size();
      }
      if (skipped > 0) {
        clock_ += skipped * period_, owed_ += skipped;
        continue;
      }
    }
    if (clock_ >= end_) break;
    clock_instant();
  }
  if (unfinished_ != 0) next_.now = end_;
  if (unfinished_ != 0 && latency) throw_unfinished(deadlock);
  auto result = make_report(nodes_, net_, hardware_, next_.now);
  if (deadlock) result.blocked = waiting_cores(nodes_, net_).explain().lines;
  return result;
}

template <observes Observer>
void chip<Observer>::throw_unfinished(bool deadlock) {
  std::string unfinished;
  for (const auto& n : nodes_)
    if (!n.state.finished())
      unfinished += (unfinished.empty() ? "core " : ", core ") + std::to_string(n.id()) + " (pc=" + std::to_string(n.state.pc()) + ", max_pc=" +
                    std::to_string(n.state.length() - 1) + ", fetch_complete=" + (n.state.pc() == n.state.length() ? "true" : "false") + ")";
  std::string text = "Latency simulation did not complete within " + fixed(hardware_.sim_config.latency_timeout_ms) + " ms; unfinished cores: " + unfinished;
  auto stuck = waiting_cores(nodes_, net_).explain();
  if (!deadlock) throw error(error_code::execution, text, {}, "latency_timeout_ms of the hardware file is the limit").with_details(std::move(stuck.lines));
  for (const auto& cycle : stuck.cycles) text += "; deadlock: " + cycle;
  if (stuck.cycles.empty()) text += "; deadlock: nothing can happen any more";
  throw error(error_code::deadlock, text).with_details(std::move(stuck.lines));
}

}  // namespace raptor::sim::timing
