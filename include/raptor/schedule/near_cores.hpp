#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "raptor/schedule/schedule.hpp"

namespace raptor::schedule {

/// Gives the cores of a placement other places on the chip, so that what they send travels less far: pairs of cores change places as long as
/// that lowers the time of all flows, links in both directions taken alike. Cores are alike, so the placement stays what it was otherwise.
///
/// Cost: O(flows + cores³ · sweeps); at most `most_steps` core pairs times cores are looked at, so that very large chips stay as they are.
/// Deterministic: whole numbers only.
template <target::chip_target Target>
void bring_together(const Target& t, const lowering::compute_graph& g, schedule& s, std::int64_t most_steps = 50'000'000) {
  const auto cores = static_cast<std::size_t>(program::geometry(t.chip()).core_count);
  constexpr std::int64_t many = 4096;  // elements of a long message
  const auto sweep = static_cast<std::int64_t>(cores) * static_cast<std::int64_t>(cores) / 2 * static_cast<std::int64_t>(cores);
  if (cores < 3 || sweep > most_steps) return;
  // Between each two cores: messages, and elements in units of a long message's `many`; and what one of each takes.
  using matrix = std::vector<std::int64_t>;
  matrix messages(cores * cores, 0), elements = messages, first = messages, each = messages;
  for (const auto& f : collect_flows(g, s.graph, [&](std::uint32_t tile) { return s.place[tile].core; }).flows) {
    const auto from = s.place[f.producer].core;
    for (const auto at : {from * cores + f.core, f.core * cores + from}) messages[at] += many, elements[at] += element_count(f.what);
  }
  for (std::size_t a = 0; a < cores; ++a)
    for (std::size_t b = 0; b < cores; ++b) {
      if (a == b) continue;
      const auto one = t.transfer_time(a, b, 1) + t.transfer_time(b, a, 1);
      first[a * cores + b] = one;
      each[a * cores + b] = t.transfer_time(a, b, many) + t.transfer_time(b, a, many) - one;
    }
  std::vector<std::uint32_t> place(cores);
  std::iota(place.begin(), place.end(), 0U);
  const auto part = [&](const matrix& traffic, const matrix& distance, std::size_t x, std::size_t y) {
    const auto *wx = &traffic[x * cores], *wy = &traffic[y * cores], *dx = &distance[x * cores], *dy = &distance[y * cores];
    std::int64_t sum = 2 * wx[y] * dx[y];  // what the sum below takes off between the two themselves
    for (std::size_t k = 0; k < cores; ++k) sum += (wx[k] - wy[k]) * (dy[k] - dx[k]);
    return sum;
  };
  const auto swap_places = [&](matrix& distance, std::size_t x, std::size_t y) {
    std::swap_ranges(distance.begin() + static_cast<std::ptrdiff_t>(x * cores), distance.begin() + static_cast<std::ptrdiff_t>((x + 1) * cores),
                     distance.begin() + static_cast<std::ptrdiff_t>(y * cores));
    for (std::size_t k = 0; k < cores; ++k) std::swap(distance[k * cores + x], distance[k * cores + y]);
  };
  bool changed = true;
  for (std::int64_t steps = 0; changed && steps + sweep <= most_steps; steps += sweep) {
    changed = false;
    for (std::size_t x = 0; x < cores; ++x)
      for (std::size_t y = 0; y < x; ++y) {
        if (part(messages, first, x, y) + part(elements, each, x, y) >= 0) continue;
        std::swap(place[x], place[y]);
        swap_places(first, x, y), swap_places(each, x, y);
        changed = true;
      }
  }
  for (auto& p : s.place) p.core = place[p.core];
}

}  // namespace raptor::schedule
