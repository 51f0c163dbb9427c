#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "raptor/sim/program.hpp"
#include "raptor/sim/stream_check.hpp"
#include "raptor/support/error.hpp"

/// Explains why no core of a program can go on. Source: ISA.md (rendezvous, exact-count events), INVARIANTS.md.
namespace raptor::sim {

/// Where a core stands: the index of the instruction that it has not completed, how many times it has run its whole stream, and its event
/// registers.
struct core_position {
  std::size_t next = 0;
  std::size_t iteration = 0;
  bool at_barrier = false;  ///< before this iteration, for the global barrier of a diagnostic schedule
  std::array<std::int64_t, isa::event_count> events{};
};

namespace detail {

/// Why one core cannot go on.
struct blocked_core {
  std::string reason;                    ///< "waits for core 1, which …"
  std::size_t waits_for = npos;          ///< the core that would have to act; npos: nothing can ever help
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
};

/// A program in which nobody can go on, and how often each core runs its stream.
struct standstill {
  const loaded_program& program;
  std::span<const core_position> positions;
  std::size_t iterations = 1;

  [[nodiscard]] bool has_finished(std::size_t core) const { return program.cores[core].stream.empty() || positions[core].iteration >= iterations; }
  /// "instruction 3", with the iteration where there are several.
  [[nodiscard]] std::string whereabouts(std::size_t core) const {
    const std::string index = "instruction " + std::to_string(positions[core].next);
    return iterations > 1 ? index + " of iteration " + std::to_string(positions[core].iteration) : index;
  }
  [[nodiscard]] std::string place(std::size_t core) const {
    const core_position& at = positions[core];
    return place_of(core, at.next, program.cores[core].stream[at.next], iterations > 1 ? std::optional(at.iteration) : std::nullopt);
  }
};

/// The signals that are still to come, by (target core, event register): how many from which core.
using future_signals = std::map<std::pair<std::size_t, std::int32_t>, std::map<std::size_t, std::int64_t>>;

[[nodiscard]] inline future_signals signals_to_come(const standstill& s) {
  future_signals signals;
  for (std::size_t c = 0; c < s.positions.size(); ++c) {
    if (s.has_finished(c)) continue;
    const auto& stream = s.program.cores[c].stream;
    const auto later = static_cast<std::int64_t>(s.iterations - 1 - s.positions[c].iteration);
    for (std::size_t k = later == 0 ? s.positions[c].next : 0; k < stream.size(); ++k)
      if (stream[k].op == isa::opcode::sync)
        signals[{static_cast<std::size_t>(stream[k].word0), stream[k].word1}][c] += later + (k < s.positions[c].next ? 0 : 1);
  }
  return signals;
}

[[nodiscard]] inline blocked_core explain(const standstill& s, std::size_t core, const future_signals& signals) {
  const core_position& own = s.positions[core];
  if (own.at_barrier) {
    std::size_t late = 0;
    while (s.has_finished(late) || s.positions[late].at_barrier) ++late;  // somebody has not arrived, else nobody would wait
    return {"waits at the global barrier for core " + std::to_string(late) + ", which is at " + s.whereabouts(late), late};
  }
  const isa::instruction& i = s.program.cores[core].stream[own.next];
  if (i.op == isa::opcode::send || i.op == isa::opcode::recv) {
    const auto peer = static_cast<std::size_t>(i.word0);
    const std::string what = std::string(i.op == isa::opcode::send ? "recv" : "send") + " of core " + std::to_string(peer);
    if (s.has_finished(peer)) return {"waits for a " + what + ", which has finished", blocked_core::npos};
    return {"waits for a " + what + ", which is at " + s.whereabouts(peer), peer};
  }
  const auto event = static_cast<std::size_t>(i.word1);
  const std::int64_t missing = i.word2 - own.events[event];
  const auto found = signals.find({core, i.word1});
  std::int64_t coming = 0;
  if (found != signals.end())
    for (const auto& [from, count] : found->second) coming += count;
  const std::string text = "waits for event " + std::to_string(event) + " to reach " + std::to_string(i.word2) + ", it is at " + std::to_string(own.events[event]);
  if (coming < missing)
    return {text + " and only " + std::to_string(coming) + " more signals exist in the program", blocked_core::npos};
  const std::size_t from = found->second.begin()->first;
  return {text + "; core " + std::to_string(from) + ", which is at " + s.whereabouts(from) + ", would signal", from};
}

}  // namespace detail

/// Throws error_code::deadlock. Requires: at least one core has not finished and none can go on. `iterations`: how often every core runs its
/// stream.
///
/// The message names each wait-for cycle and each wait that nothing can end, with cores, instruction indices and iterations; the
/// details list the cores of the cycles first, then all others that are blocked behind them. Deterministic: cores are
/// visited in the order of their ids, and a wait that several cores could end is followed to the lowest.
/// Cost: O(instructions).
[[noreturn]] inline void throw_deadlock(const loaded_program& program, std::span<const core_position> positions, std::size_t iterations = 1) {
  const detail::standstill still{program, positions, iterations};
  const auto signals = detail::signals_to_come(still);
  const std::size_t cores = positions.size();
  std::vector<detail::blocked_core> blocked(cores);
  std::vector<bool> is_blocked(cores, false);
  for (std::size_t c = 0; c < cores; ++c) {
    if (still.has_finished(c)) continue;
    is_blocked[c] = true;
    blocked[c] = detail::explain(still, c, signals);
  }

  std::vector<std::vector<std::size_t>> roots;  // a cycle, or one core that waits for ever
  std::vector<std::size_t> visited_by(cores, detail::blocked_core::npos);
  for (std::size_t start = 0; start < cores; ++start) {
    if (!is_blocked[start]) continue;
    std::size_t c = start;
    while (c != detail::blocked_core::npos && visited_by[c] == detail::blocked_core::npos) {
      visited_by[c] = start;
      if (blocked[c].waits_for == detail::blocked_core::npos) roots.push_back({c});
      c = blocked[c].waits_for;
    }
    if (c == detail::blocked_core::npos || visited_by[c] != start) continue;
    std::vector<std::size_t> cycle{c};
    for (std::size_t k = blocked[c].waits_for; k != c; k = blocked[k].waits_for) cycle.push_back(k);
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
    roots.push_back(std::move(cycle));
  }

  const auto line = [&](std::size_t c) { return still.place(c) + ": " + blocked[c].reason; };
  std::string message;
  std::vector<std::string> details;
  std::vector<bool> listed(cores, false);
  for (const auto& root : roots) {
    message += message.empty() ? "deadlock: " : "; ";
    if (blocked[root.front()].waits_for == detail::blocked_core::npos) {
      message += "core " + std::to_string(root.front()) + " waits for ever";
    } else {
      message += "cycle ";
      for (const std::size_t c : root) {
        message += "core " + std::to_string(c) + " @" + std::to_string(positions[c].next);
        if (iterations > 1) message += " (iteration " + std::to_string(positions[c].iteration) + ")";
        message += " -> ";
      }
      message += "core " + std::to_string(root.front());
    }
    for (const std::size_t c : root) {
      details.push_back(line(c));
      listed[c] = true;
    }
  }
  for (std::size_t c = 0; c < cores; ++c)
    if (is_blocked[c] && !listed[c]) details.push_back(line(c));
  throw error(error_code::deadlock, message, still.place(roots.front().front()),
              "the n-th send from a to b meets the n-th recv at b from a; a wait needs exactly its count of signals")
      .with_details(std::move(details));
}

}  // namespace raptor::sim
