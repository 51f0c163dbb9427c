#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "raptor/schedule/schedule.hpp"

namespace raptor::schedule {

/// Predicted time between two outputs where inputs follow one another without end: every core repeats its own steps, transfers hold both of
/// their cores, and a channel in global memory is stored to again when its readers have begun the next input. The steps are executed for some rounds; what a round takes in the long run is the answer.
///
/// `durations`: predicted time of each step. `only`: stage whose cores count, all others are taken as ready whenever they are needed; none: all.
/// Requires: steps. Cost: O(rounds × steps).
[[nodiscard]] inline picoseconds steady_interval(const schedule& s, const std::vector<picoseconds>& durations, std::int64_t cores, std::int64_t only = -1,
                                                 int rounds = 8) {
  ensure(durations.size() == s.steps.size(), "interval: one duration a step");
  std::vector<picoseconds> clock(static_cast<std::size_t>(cores), 0), half = clock, body_end = clock;
  std::vector<picoseconds> stored(s.channels.size(), 0);
  std::vector<std::vector<std::uint32_t>> readers(s.channels.size());
  for (const auto& f : s.flows)
    if (f.channel != no_channel) readers[f.channel].push_back(f.core);
  std::vector<std::uint32_t> stage_of(clock.size(), 0);
  for (std::size_t i = 0; i < s.place.size(); ++i) stage_of[s.place[i].core] = s.place[i].stage;
  const auto counts = [&](std::uint32_t core) { return only < 0 || stage_of[core] == only; };
  const int first = rounds / 2;
  for (int r = 0; r < rounds; ++r) {
    if (r == first) half = clock;
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
      const auto& x = s.steps[i];
      switch (x.what) {
        case step::kind::prepare:
        case step::kind::compute: clock[s.place[x.index].core] += durations[i]; break;
        case step::kind::transfer: {
          const auto from = s.place[s.flows[x.index].producer].core, to = s.flows[x.index].core;
          if (counts(from) && counts(to)) clock[from] = clock[to] = std::max(clock[from], clock[to]);
          clock[from] += durations[i], clock[to] += durations[i];
          break;
        }
        case step::kind::store: {  // what was stored for the input before has been read when its readers begin the next one
          auto& own = clock[s.place[s.channels[x.index].producer].core];
          for (const auto c : readers[x.index])
            if (counts(c)) own = std::max(own, body_end[c]);
          stored[x.index] = own += durations[i];
          break;
        }
        case step::kind::load: {
          const auto& f = s.flows[x.index];
          if (counts(s.place[f.producer].core)) clock[f.core] = std::max(clock[f.core], stored[f.channel]);
          clock[f.core] += durations[i];
          break;
        }
      }
    }
    body_end = clock;
  }
  picoseconds longest = 0;  // the port of the global memory serves one at a time
  if (only < 0)
    for (std::size_t i = 0; i < s.steps.size(); ++i)
      if (s.steps[i].what == step::kind::store || s.steps[i].what == step::kind::load) longest += durations[i];
  for (std::size_t c = 0; c < clock.size(); ++c)
    if (counts(static_cast<std::uint32_t>(c))) longest = std::max(longest, (clock[c] - half[c]) / (rounds - first));
  return longest;
}

}  // namespace raptor::schedule
