#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "raptor/schedule/schedule.hpp"

/// What cores have to do, and when: the run is cut into equal periods, and load that falls into other periods counts less the further away it is.
namespace raptor::schedule {

/// The period of a time between 0 and `end` > 0.
[[nodiscard]] inline std::size_t period_of(double time, double end, std::size_t periods) {
  return std::min(periods - 1, static_cast<std::size_t>(time / end * static_cast<double>(periods)));
}

/// The period of each tile where nothing but its inputs and the copies of its own compute's weights hold it up: tile k of a compute is done by copy
/// k modulo their number; tiles without weights never wait for one another. The periods are equal parts of the time that all takes this way.
///
/// `time(tile)`: picoseconds. Requires: tiles in a topological order, at least one period. Cost: O(tiles + dependencies).
template <class Time>
[[nodiscard]] std::vector<std::size_t> expected_periods(const tile_graph& graph, const std::vector<std::int64_t>& copies, const std::vector<std::int64_t>& crossbars,
                                                        std::size_t periods, const Time& time) {
  std::vector<double> middle(graph.tiles.size(), 0), finish(graph.tiles.size(), 0);
  double end = 0;
  for (std::size_t v = 0; v < graph.of_compute.size(); ++v) {
    std::vector<double> free(static_cast<std::size_t>(std::max<std::int64_t>(1, copies[v])), 0);
    std::size_t turn = 0;
    for (const auto i : graph.of_compute[v]) {
      double start = crossbars[v] > 0 ? free[turn] : 0;
      for (const auto p : graph.producers[i]) start = std::max(start, finish[p]);
      const double taken = time(i);
      middle[i] = start + taken / 2, finish[i] = start + taken;
      free[turn] = finish[i], turn = (turn + 1) % free.size();
      end = std::max(end, finish[i]);
    }
  }
  std::vector<std::size_t> result(graph.tiles.size(), 0);
  for (std::size_t i = 0; end > 0 && i < result.size(); ++i)
    result[i] = period_of(middle[i], end, periods);
  return result;
}

/// The period of each tile in a schedule.
[[nodiscard]] inline std::vector<std::size_t> scheduled_periods(const std::vector<placed>& place, picoseconds end, std::size_t periods) {
  std::vector<std::size_t> result;
  for (const auto& p : place)
    result.push_back(period_of(static_cast<double>(p.start + p.finish) / 2, static_cast<double>(end), periods));
  return result;
}

/// How much a load counts in each period: 1 in its own one, and at least `remote` in all others.
class load_profile {
 public:
  load_profile(std::size_t periods, double remote, double fading) : seen_(periods, 0), remote_(remote), fading_(fading) {}
  /// A part of the load falls into a period. The parts' sum should be 1.
  void add(std::size_t period, double part) {
    for (std::size_t other = 0; other < seen_.size(); ++other) {
      const auto distance = static_cast<double>(other > period ? other - period : period - other);
      seen_[other] += part * (remote_ + (1 - remote_) / (1 + fading_ * distance));
    }
  }
  [[nodiscard]] const std::vector<double>& seen() const noexcept { return seen_; }

 private:
  std::vector<double> seen_;
  double remote_, fading_;
};

/// The load of each core as it counts in each period.
class load_over_time {
 public:
  load_over_time(std::size_t cores, std::size_t periods) : load_(cores, std::vector<double>(periods, 0)) {}
  void add(std::size_t core, const load_profile& when, double load) {
    for (std::size_t period = 0; period < load_[core].size(); ++period) load_[core][period] += load * when.seen()[period];
  }
  [[nodiscard]] double at(std::size_t core, std::size_t period) const { return load_[core][period]; }
  void clear() {
    for (auto& core : load_) std::fill(core.begin(), core.end(), 0.0);
  }

 private:
  std::vector<std::vector<double>> load_;
};

}  // namespace raptor::schedule
