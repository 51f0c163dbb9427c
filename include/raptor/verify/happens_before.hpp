#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/program/shared_memory.hpp"
#include "raptor/support/checked.hpp"
#include "raptor/verify/deadlock.hpp"

/// Proof that a program which repeats never mixes two inputs, whatever the schedule. Source: INVARIANTS.md (Events, Data that crosses global
/// memory, Restart).
namespace raptor::verify {

[[nodiscard]] inline bool has_events(const program::program& p) {
  bool found = false;
  for (const auto& core : p.cores)
    program::for_each_operation(core.body, [&](const program::operation& o) { found |= program::pattern_of(o.op) == program::pattern::event; });
  return found;
}

/// Every event register gets as many signals in a body as its waits count, and none is waited for without a signal.
/// Requires check_bounds. Errors: deadlock with core, event and both numbers. Cost: linear in the text.
inline void check_event_counts(const program::program& p) {
  std::map<std::pair<std::int64_t, std::int32_t>, std::pair<std::int64_t, std::int64_t>> registers;  // core, event → signals, waited for
  const auto count = [&](const auto& self, const std::vector<program::item>& body, std::int64_t core, std::int64_t times) -> void {
    for (const auto& i : body) {
      if (const auto* l = std::get_if<program::loop>(&i.what)) {
        self(self, l->body, core, checked::multiply(times, l->count));
        continue;
      }
      const auto& o = std::get<program::operation>(i.what);
      if (o.op == isa::opcode::sync) {
        auto& signals = registers[{o.peer, o.event}].first;
        signals = checked::add(signals, times);
      } else if (o.op == isa::opcode::wait) {
        auto& waited = registers[{core, o.event}].second;
        waited = checked::add(waited, checked::multiply(times, std::int64_t{o.count}));
      }
    }
  };
  for (std::size_t c = 0; c < p.cores.size(); ++c) count(count, p.cores[c].body, static_cast<std::int64_t>(c), 1);
  for (const auto& [where, both] : registers)
    if (both.first != both.second)
      throw error(error_code::deadlock, "event " + std::to_string(where.second) + " of core " + std::to_string(where.first) + " gets " +
                                            std::to_string(both.first) + " signals in a body, its waits count " + std::to_string(both.second),
                  "core " + std::to_string(where.first), "registers keep their values when the program repeats: both numbers must be equal");
}

struct happens_before_report {
  deadlock_report communication;
  std::int64_t loads = 0, stores = 0;  ///< of channels, in all iterations
  std::int64_t input_loads = 0;
};

namespace happens_before_parts {

/// Loads and stores of global memory against the clocks of the cores.
class observer {
 public:
  static constexpr bool within_rounds = true;
  observer(const program::program& p, bool inputs_only)
      : program_(&p), memory_(p), inputs_only_(inputs_only), pieces_(inputs_only ? 0 : memory_.size()), inputs_(p.cores.size()) {
    for (std::size_t c = 0; c < p.cores.size(); ++c) {
      const program::unrolled body(p.cores[c].body, "core " + std::to_string(c));
      program::unrolled::cursor at(body, [&](const program::operation& o) { return memory_.of(o) == program::shared_memory::role::input; });
      for (; !at.done(); at.advance()) ++inputs_[c].in_a_body;
      if (inputs_[c].in_a_body > 0) readers_.push_back(c);
    }
  }

  [[nodiscard]] bool stops(const program::operation& o) const {
    const auto role = memory_.of(o);
    return role == program::shared_memory::role::input || (role == program::shared_memory::role::channel && !inputs_only_);
  }
  template <class Simulation>
  void access(const Simulation& s, std::size_t c, const program::step& at) {
    if (memory_.of(*at.op) == program::shared_memory::role::input) return input(s, c, at);
    const auto a = program::access_of(*program_, at);
    const auto [first, last] = memory_.pieces(a);
    const touch now{static_cast<std::uint32_t>(c), s.now(c), s.round(c), static_cast<std::uint32_t>(at.item)};
    for (auto k = first; k < last; ++k) a.store ? store(s, k, now) : load(s, k, now);
    ++(a.store ? report_.stores : report_.loads);
  }
  [[nodiscard]] const happens_before_report& report() const noexcept { return report_; }
  /// The first load of an input that no order protects, where only those are asked for.
  [[nodiscard]] bool unordered_input() const noexcept { return unordered_; }

 private:
  struct touch {
    std::uint32_t core = 0, time = 0;
    int round = 0;
    std::uint32_t item = 0;
  };
  struct piece {
    std::optional<touch> stored;
    std::vector<touch> loaded;  ///< since then, the last of each core
  };
  struct input_state {
    std::int64_t in_a_body = 0, done = 0;  ///< loads; `done` in the current round
    int judged = 0;                        ///< last round whose first load was judged; nothing precedes round 0
    std::vector<std::uint32_t> finished;   ///< by round: time of its last load
  };
  const program::program* program_;
  program::shared_memory memory_;
  bool inputs_only_ = false, unordered_ = false;
  std::vector<piece> pieces_;
  std::vector<input_state> inputs_;  ///< by core
  std::vector<std::size_t> readers_;
  happens_before_report report_;

  static std::string name(const touch& t) {
    return "core " + std::to_string(t.core) + ", item " + std::to_string(t.item) + " of iteration " + std::to_string(t.round);
  }
  [[noreturn]] static void fail(std::string message, const touch& now, std::string hint) {
    throw error(error_code::deadlock, std::move(message), "core " + std::to_string(now.core) + ", item " + std::to_string(now.item), std::move(hint));
  }

  template <class Simulation>
  void load(const Simulation& s, std::size_t k, const touch& now) {
    auto& p = pieces_[k];
    const auto what = [&] { return name(now) + " loads " + memory_.describe(k); };
    if (!p.stored) fail(what() + ", which no core has stored before", now, "a load waits until a signal says that the store is done");
    const bool ordered = s.ordered(p.stored->core, p.stored->time, now.core);
    if (!ordered && p.stored->round > now.round)
      fail(what() + ", and nothing keeps " + name(*p.stored) + " from overwriting it before", now, "a store waits until the readers say that they have loaded what it overwrites");
    if (!ordered)
      fail(what() + ", and nothing orders the store of " + name(*p.stored) + " before it", now, "a load waits until a signal says that the store is done");
    if (p.stored->round != now.round)
      fail(what() + ", and gets what " + name(*p.stored) + " stored", now, "a load waits until a signal says that the store of its own iteration is done");
    const auto known = std::find_if(p.loaded.begin(), p.loaded.end(), [&](const touch& t) { return t.core == now.core; });
    if (known != p.loaded.end()) *known = now;
    else p.loaded.push_back(now);
  }
  template <class Simulation>
  void store(const Simulation& s, std::size_t k, const touch& now) {
    auto& p = pieces_[k];
    const auto what = [&] { return name(now) + " stores " + memory_.describe(k); };
    for (const auto& l : p.loaded)
      if (!s.ordered(l.core, l.time, now.core))
        fail(what() + ", and nothing orders the load of " + name(l) + " before it", now, "a store waits until the readers say that they have loaded what it overwrites");
    if (p.stored && !s.ordered(p.stored->core, p.stored->time, now.core))
      fail(what() + ", and nothing orders the store of " + name(*p.stored) + " before it", now, "one core stores an element, or signals order the cores that do");
    p.loaded.clear();
    p.stored = now;
  }
  /// The host places the inputs of round n + 1 when every core that reads inputs has done its last load of round n.
  template <class Simulation>
  void input(const Simulation& s, std::size_t c, const program::step& at) {
    auto& own = inputs_[c];
    ++report_.input_loads;
    const int round = s.round(c);
    if (own.judged < round) {
      own.judged = round;
      const auto before = static_cast<std::size_t>(round - 1);
      for (const auto r : readers_) {
        if (inputs_[r].finished.size() > before && s.ordered(r, inputs_[r].finished[before], c)) continue;
        unordered_ = true;
        if (inputs_only_) break;
        const touch now{static_cast<std::uint32_t>(c), s.now(c), round, static_cast<std::uint32_t>(at.item)};
        fail(name(now) + " loads a graph input before core " + std::to_string(r) + " is known to have done its last load of an input in iteration " +
                 std::to_string(round - 1) + ", which the host waits for",
             now, "order the cores that read graph inputs from iteration to iteration, see sync/repeating_rendezvous.hpp");
      }
    }
    if (++own.done == own.in_a_body) {
      own.done = 0;
      own.finished.push_back(s.now(c));
    }
  }
};

}  // namespace happens_before_parts

/// Unrolls two iterations with only same-core restart edges, matched messages and matched signals, and proves for every element of global
/// memory that, in every schedule: a load comes after the store of its own iteration; a store comes after all loads and stores of what
/// it overwrites; a core loads a graph input only when every core that reads inputs has done its last load of the iteration
/// before (the host places the next input then). Messages and signals stay within one iteration, so that what orders these two
/// iterations orders any two consecutive ones. Also proves what check_event_counts and check_deadlock prove.
///
/// Requires check_bounds. Errors: deadlock with cores, items, buffer, elements and iterations. Deterministic. Cost: O(communication × talking
/// cores + a · log a) for a unrolled accesses to channels.
inline happens_before_report check_happens_before(const program::program& p) {
  check_event_counts(p);
  deadlock_options options;
  options.rounds = 2;
  deadlock_parts::simulation<happens_before_parts::observer> simulation(p, options, {p, false});
  const auto communication = simulation.run();
  auto report = simulation.observer().report();
  report.communication = communication;
  return report;
}

/// True where the program, as it repeats, already orders the loads of graph inputs as the host needs it (see check_happens_before).
/// Errors: as check_deadlock. Cost: O(communication × talking cores).
[[nodiscard]] inline bool orders_input_loads(const program::program& p) {
  deadlock_options options;
  options.rounds = 2;
  deadlock_parts::simulation<happens_before_parts::observer> simulation(p, options, {p, true});
  static_cast<void>(simulation.run());
  return !simulation.observer().unordered_input();
}

}  // namespace raptor::verify
