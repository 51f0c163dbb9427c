#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/sim/executor.hpp"
#include "raptor/sim/timing_model/chip.hpp"

/// What cores tell one another in a run, from the functional simulator's trace and from the timing model's events.
namespace cross_core {

using raptor::isa::opcode;
using place = std::pair<std::size_t, std::int64_t>;  ///< core, instruction

struct events {
  std::map<std::size_t, std::vector<std::int64_t>> order;  ///< by core: its messages and signals, as they were completed
  std::map<place, place> pairs;                            ///< send → recv
  std::map<place, std::vector<place>> waits;               ///< wait → the syncs that it took, sorted
  bool operator==(const events&) const = default;
};

/// Matches signals and waits: the waits on an event register take its signals in the order in which they came. (The trace may name a wait
/// just before the sync that ended it, so this is done at the end.)
class signals {
 public:
  void raise(place sync, std::size_t to, std::int32_t event) { all_[{to, event}].raised.push_back(sync); }
  void take(place wait, std::int32_t event, std::int64_t count) { all_[{wait.first, event}].waits.emplace_back(wait, count); }
  [[nodiscard]] std::map<place, std::vector<place>> matched() const {
    std::map<place, std::vector<place>> result;
    for (const auto& [where, here] : all_) {
      std::size_t next = 0;
      for (const auto& [wait, count] : here.waits) {
        auto& taken = result[wait];
        for (std::int64_t k = 0; k < count && next < here.raised.size(); ++k) taken.push_back(here.raised[next++]);
        std::sort(taken.begin(), taken.end());
      }
    }
    return result;
  }

 private:
  struct of_register {
    std::vector<place> raised;
    std::vector<std::pair<place, std::int64_t>> waits;
  };
  std::map<std::pair<std::size_t, std::int32_t>, of_register> all_;
};

/// The n-th send from a to b meets the n-th recv at b from a. Requires: a program that runs without inputs, or its `input`.
inline events functional_events(const raptor::sim::loaded_program& p, const std::vector<std::byte>& input = {}) {
  events e;
  signals raised;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<std::vector<place>, std::vector<place>>> channels;
  raptor::sim::execution_options options;
  options.trace = [&](std::string_view line) {  // core 2 index 17 | …
    std::size_t core = 0;
    std::int64_t index = 0;
    std::size_t at = 5;
    for (; line[at] != ' '; ++at) core = core * 10 + static_cast<std::size_t>(line[at] - '0');
    for (at += 7; line[at] != ' '; ++at) index = index * 10 + (line[at] - '0');
    const auto& i = p.cores[core].stream[static_cast<std::size_t>(index)];
    const place here{core, index};
    const auto peer = static_cast<std::size_t>(i.word0);
    if (i.op == opcode::send) channels[{core, peer}].first.push_back(here);
    else if (i.op == opcode::recv) channels[{peer, core}].second.push_back(here);
    else if (i.op == opcode::sync) raised.raise(here, peer, i.word1);
    else if (i.op == opcode::wait) raised.take(here, i.word1, i.word2);
    else return;
    e.order[core].push_back(index);
  };
  static_cast<void>(raptor::sim::execute(p, input, options));
  for (const auto& [ends, lists] : channels)
    for (std::size_t n = 0; n < std::min(lists.first.size(), lists.second.size()); ++n) e.pairs[lists.first[n]] = lists.second[n];
  e.waits = raised.matched();
  return e;
}

/// Takes the timing model's events.
struct observer : raptor::sim::timing::no_observer {
  static constexpr bool enabled = true;
  events seen;
  signals raised;
  void executed(std::size_t core, std::int32_t, std::int64_t pc, const raptor::sim::timing::timed_instruction& what, raptor::sim::timing::instant,
                raptor::sim::timing::instant) {
    if (what.op == opcode::send || what.op == opcode::recv || what.op == opcode::sync || what.op == opcode::wait) seen.order[core].push_back(pc);
  }
  void delivered(std::size_t from, std::int64_t send, raptor::sim::timing::instant, std::size_t to, std::int64_t recv, raptor::sim::timing::instant) {
    seen.pairs[{from, send}] = {to, recv};
  }
  void signalled(std::size_t from, std::int64_t sync, std::size_t to, std::int32_t event, raptor::sim::timing::instant) { raised.raise({from, sync}, to, event); }
  void waited(std::size_t core, std::int64_t pc, std::int32_t event, std::int64_t value, raptor::sim::timing::instant) {
    raised.take({core, pc}, event, value);
  }
};

inline raptor::sim::timing::timed_program timed(const raptor::sim::loaded_program& p) {
  raptor::sim::timing::timed_program result;
  for (std::size_t c = 0; c < p.cores.size(); ++c) {
    raptor::sim::timing::timed_core core{static_cast<std::int64_t>(c), raptor::sim::timing::from_records(p.cores[c].stream), {}};
    for (const auto& g : p.cores[c].groups) core.groups.push_back(static_cast<std::int32_t>(g.crossbars));
    result.cores.push_back(std::move(core));
  }
  return result;
}
inline events timed_events(const raptor::sim::loaded_program& p, const raptor::target::configuration& hardware) {
  const auto program = timed(p);
  observer o;
  static_cast<void>(raptor::sim::timing::chip(program, hardware, o).run());
  o.seen.waits = o.raised.matched();
  return o.seen;
}

}  // namespace cross_core
