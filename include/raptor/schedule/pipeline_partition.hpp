#pragma once

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "raptor/schedule/copies.hpp"
#include "raptor/schedule/interval.hpp"
#include "raptor/schedule/packing.hpp"
#include "raptor/schedule/rendezvous_order.hpp"
#include "raptor/schedule/spread_placement.hpp"
#include "raptor/schedule/stages.hpp"

namespace raptor::schedule {

namespace detail {

/// Computes that must share a stage, as one vertex: those of one operation, those that share weights, and whatever lies on a cycle with them.
struct stage_units {
  std::vector<std::uint32_t> unit;                  ///< by compute
  std::vector<std::vector<std::uint32_t>> members;  ///< by unit
  std::vector<std::set<std::uint32_t>> next;        ///< by unit: units that read from it
};
[[nodiscard]] inline stage_units units_of(const lowering::compute_graph& g) {
  std::map<std::int64_t, std::uint32_t> node, family;
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> joined(g.size());
  const auto join = [&](std::map<std::int64_t, std::uint32_t>& known, std::int64_t key, std::uint32_t v) {
    const auto [first, fresh] = known.try_emplace(key, v);
    if (fresh) return;
    boost::add_edge(first->second, v, joined), boost::add_edge(v, first->second, joined);
  };
  for (std::uint32_t v = 0; v < g.size(); ++v) {
    if (g.at(v).node != 0xffffffffu) join(node, g.at(v).node, v);
    if (g.at(v).family >= 0) join(family, g.at(v).family, v);
    for (const auto [e, end] = boost::out_edges(v, g.structure()); const auto edge : boost::make_iterator_range(e, end)) boost::add_edge(v, boost::target(edge, g.structure()), joined);
  }
  std::vector<std::uint32_t> component(g.size());
  stage_units result;
  if (g.size() == 0) return result;
  boost::strong_components(joined, component.data());
  std::map<std::uint32_t, std::uint32_t> number;  // components by their first member, so that units are in vertex order
  for (std::uint32_t v = 0; v < g.size(); ++v) {
    const auto u = number.try_emplace(component[v], static_cast<std::uint32_t>(number.size())).first->second;
    result.unit.push_back(u);
    if (u == result.members.size()) result.members.emplace_back();
    result.members[u].push_back(v);
  }
  result.next.resize(result.members.size());
  for (std::uint32_t v = 0; v < g.size(); ++v)
    for (const auto [e, end] = boost::out_edges(v, g.structure()); const auto edge : boost::make_iterator_range(e, end)) {
      const auto to = result.unit[boost::target(edge, g.structure())];
      if (to != result.unit[v]) result.next[result.unit[v]].insert(to);
    }
  return result;
}

/// By unit: the stage, where `order` is cut into runs for the least time of the longest stage. `work`, `spread`: picoseconds by unit, of all its tiles and that pass in a
/// schedule of one input; `held`: crossbars. A stage takes its work divided by its cores, and half of what passes in it; it has cores enough for its weights.
/// Empty where they do not fit. Requires: at least as many units as stages. Cost: O(units² · stages).
[[nodiscard]] inline std::vector<std::uint32_t> cut_for_least_time(const std::vector<std::uint32_t>& order, const std::vector<double>& work, const std::vector<double>& held,
                                                                    const std::vector<double>& spread, const program::geometry& chip,
                                                                    std::uint32_t stages) {
  constexpr double share = 0.5, never = std::numeric_limits<double>::infinity();
  const auto n = order.size();
  std::vector<double> works(n + 1, 0), weights(n + 1, 0), times(n + 1, 0);  // of the first i units
  for (std::size_t i = 0; i < n; ++i) {
    works[i + 1] = works[i] + work[order[i]];
    weights[i + 1] = weights[i] + held[order[i]];
    times[i + 1] = times[i] + share * spread[order[i]];
  }
  const auto cores = static_cast<double>(chip.core_count), per_core = static_cast<double>(chip.crossbars_per_core);
  std::vector<std::vector<std::uint32_t>> from;
  // The fewest cores for a time; `from`: of k + 1 stages of the first i units, where the last one begins.
  const auto cores_for = [&](double time) {
    std::vector<double> fewest(n + 1, never), next(n + 1);
    fewest[0] = 0;
    from.assign(stages, std::vector<std::uint32_t>(n + 1, 0));
    for (std::uint32_t k = 0; k < stages; ++k) {
      std::fill(next.begin(), next.end(), never);
      for (std::size_t j = k; j < n; ++j)
        for (std::size_t i = j + 1; i <= n && fewest[j] < never; ++i) {
          const double left = time - (times[i] - times[j]);
          if (left <= 0) break;
          const double all = fewest[j] + std::max({1.0, std::ceil((works[i] - works[j]) / left), std::ceil((weights[i] - weights[j]) / per_core)});
          if (all > cores) break;
          if (all < next[i]) next[i] = all, from[k][i] = static_cast<std::uint32_t>(j);
        }
      fewest.swap(next);
    }
    return fewest[n];
  };
  double low = works[n] / cores, high = 2 * (works[n] + times[n]);
  constexpr int halvings = 16;
  for (int step = 0; step < halvings; ++step) {
    const double middle = 0.5 * (low + high);
    (cores_for(middle) <= cores ? high : low) = middle;
  }
  if (cores_for(high) > cores) return {};
  std::vector<std::uint32_t> result(n, 0);
  std::size_t end = n;
  for (auto k = stages; k-- > 0;) {
    const std::size_t begin = from[k][end];
    for (auto i = begin; i < end; ++i) result[order[i]] = k;
    end = begin;
  }
  return result;
}

}  // namespace detail

/// Partition policy for pipelines: cuts the compute graph into stages and divides the cores among them.
///
/// The operations are brought into one topological order, by when a schedule without stages would do them, and cut into `stages` runs: once
/// into runs of equal work, once into runs of equal time in that schedule, once half by each, once for the least time of the longest stage, and where no such cut
/// fits, of equal weights. A stage gets cores in proportion to its work, at least as many
/// as its weights need. Every cut is a candidate; `rebalance` moves cores from stages that wait to the one that takes longest, as predicted for
/// a finished schedule. A graph with fewer operations than stages gets as many stages as it has operations.
///
/// Errors: capacity, where the weights do not fit the stages' cores. Cost: that of one schedule, and O(operations² · stages). Deterministic.
struct pipeline_partition {
  std::vector<std::int64_t> counts{1};  ///< numbers of stages to try

  template <target::chip_target Target>
  [[nodiscard]] std::vector<stage_plan> operator()(const Target& t, const lowering::compute_graph& g) const {
    std::vector<stage_plan> plans;
    const bool staged = std::any_of(counts.begin(), counts.end(), [](std::int64_t n) { return n > 1; });
    if (!staged || g.size() == 0) return {single_stage{}(t, g)};
    const auto units = detail::units_of(g);
    const auto n = units.members.size();
    const auto tiles = make_tiles(t, g);
    // When a schedule without stages does what: the middle of each unit.
    std::vector<double> work(n, 0), middle(n, 0), held(n, 0);  // held: crossbars
    const auto head = family_heads(g);
    for (std::size_t u = 0; u < n; ++u)
      for (const auto v : units.members[u])
        if (head[v] == v) held[u] += static_cast<double>(crossbars_of(g.at(v), t.chip()));
    for (std::size_t u = 0; u < n; ++u)
      for (const auto v : units.members[u]) work[u] += static_cast<double>(std::max<picoseconds>(1, work_of(t, g.at(v), tiles, v)));
    const auto times = times_of(t, g, tiles);
    for (std::size_t u = 0; u < n; ++u) {
      double weight = 0;
      for (const auto v : units.members[u]) {
        const double own = static_cast<double>(std::max<picoseconds>(1, work_of(t, g.at(v), tiles, v)));
        middle[u] += times[v] * own, weight += own;
      }
      middle[u] /= weight;
    }
    const auto order = order_of(units, middle);
    std::optional<error> reason;
    for (const auto count : counts) {
      const auto stages = std::min<std::int64_t>({count, static_cast<std::int64_t>(n), t.chip().core_count});
      if (stages <= 1) {
        plans.push_back(single_stage{}(t, g));
        continue;
      }
      std::vector<double> spread(n, 0);  // time that passes from one unit to the next
      double latest = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const double now = std::max(latest, middle[order[k]]);
        spread[order[k]] = now - latest;
        latest = now;
      }
      const auto sum = [](const std::vector<double>& x) { return std::max(1.0, std::accumulate(x.begin(), x.end(), 0.0)); };
      const auto before = plans.size();
      enum class cut_by { equal_work, equal_time, equal_both, least_time, equal_weights };
      for (const auto by : {cut_by::equal_work, cut_by::equal_time, cut_by::equal_both, cut_by::least_time, cut_by::equal_weights}) {
        if (by == cut_by::equal_weights && plans.size() > before) break;  // where no other cut fits
        const double by_time = by == cut_by::equal_time ? 1.0 : by == cut_by::equal_both ? 0.5 : 0.0;
        std::vector<double> measure(n);
        for (std::size_t u = 0; u < n; ++u) measure[u] = by == cut_by::equal_weights ? held[u] : (1 - by_time) * work[u] / sum(work) + by_time * spread[u] / sum(spread);
        const auto of_unit = by == cut_by::least_time ? detail::cut_for_least_time(order, work, held, spread, t.chip(), static_cast<std::uint32_t>(stages))
                                                      : cut(order, measure, static_cast<std::uint32_t>(stages));
        if (of_unit.empty()) continue;
        stage_plan plan;
        std::vector<double> load(static_cast<std::size_t>(stages), 0);
        for (std::size_t v = 0; v < g.size(); ++v) plan.stage.push_back(of_unit[units.unit[v]]);
        for (std::size_t u = 0; u < n; ++u) load[of_unit[u]] += work[u];
        try {
          plan.cores = divide(t, g, plan.stage, load);
        } catch (const error& e) {
          if (e.code() != error_code::capacity) throw;
          reason = e;
          continue;
        }
        if (std::find(plans.begin(), plans.end(), plan) == plans.end()) plans.push_back(std::move(plan));
      }
    }
    if (plans.empty()) throw *reason;
    return plans;
  }

  /// The same stages with cores moved towards those that take longest in a schedule of them; none where that changes nothing. `stage`, `cores`: of the
  /// graph that was scheduled.
  template <target::chip_target Target>
  [[nodiscard]] std::optional<std::vector<std::int64_t>> rebalance(const Target& t, const lowering::compute_graph& g, const stage_plan& plan, const schedule& s) const {
    if (plan.stages() == 1 || s.durations.size() != s.steps.size()) return std::nullopt;
    std::vector<double> load;
    for (std::size_t k = 0; k < plan.stages(); ++k)
      load.push_back(static_cast<double>(std::max<picoseconds>(1, steady_interval(s, s.durations, t.chip().core_count, static_cast<std::int64_t>(k)))) *
                     static_cast<double>(plan.cores[k]));
    auto cores = divide(t, g, plan.stage, load);
    if (cores == plan.cores) return std::nullopt;
    return cores;
  }

 private:
  /// Middle of each compute's time in a schedule without stages.
  template <target::chip_target Target>
  static std::vector<double> times_of(const Target& t, const lowering::compute_graph& g, const tile_graph& tiles) {
    schedule s{};
    s.graph = tiles;
    spread_placement{}(t, g, bottleneck_replication{}(t, g, tiles), s);
    rendezvous_order{}(t, g, s);
    std::vector<double> result(g.size(), 0);
    for (lowering::vertex v = 0; v < g.size(); ++v) {
      picoseconds first = s.predicted, last = 0;
      for (const auto i : tiles.of_compute[v]) first = std::min(first, s.place[i].start), last = std::max(last, s.place[i].finish);
      if (last >= first) result[v] = 0.5 * static_cast<double>(first + last);
    }
    return result;
  }
  /// Topological, and among units that may come next the earliest.
  static std::vector<std::uint32_t> order_of(const detail::stage_units& units, const std::vector<double>& middle) {
    std::vector<std::uint32_t> waiting(units.members.size(), 0), order;
    for (const auto& next : units.next)
      for (const auto u : next) ++waiting[u];
    std::set<std::pair<double, std::uint32_t>> ready;
    for (std::uint32_t u = 0; u < waiting.size(); ++u)
      if (waiting[u] == 0) ready.emplace(middle[u], u);
    while (!ready.empty()) {
      const auto u = ready.begin()->second;
      ready.erase(ready.begin());
      order.push_back(u);
      for (const auto v : units.next[u])
        if (--waiting[v] == 0) ready.emplace(middle[v], v);
    }
    ensure(order.size() == waiting.size(), "stages: units in a cycle");
    return order;
  }
  /// Runs of about equal measure, none of them empty.
  static std::vector<std::uint32_t> cut(const std::vector<std::uint32_t>& order, const std::vector<double>& measure, std::uint32_t stages) {
    std::vector<std::uint32_t> result(order.size(), 0);
    const double total = std::accumulate(measure.begin(), measure.end(), 0.0);
    double before = 0;
    std::uint32_t stage = 0;
    bool fresh = true;  // the stage has nothing yet
    for (std::size_t k = 0; k < order.size(); ++k) {
      const double middle = before + measure[order[k]] / 2;
      const auto wanted = static_cast<std::uint32_t>(std::min<double>(stages - 1, stages * middle / std::max(total, 1e-30)));
      const bool last_chance = order.size() - k <= stages - 1 - stage;  // every stage behind needs one
      if (!fresh && stage + 1 < stages && (wanted > stage || last_chance)) ++stage, fresh = true;
      result[order[k]] = stage;
      fresh = false;
      before += measure[order[k]];
    }
    return result;
  }
  /// Cores in proportion to the load, at least what the weights need.
  template <target::chip_target Target>
  static std::vector<std::int64_t> divide(const Target& t, const lowering::compute_graph& g, const std::vector<std::uint32_t>& stage, const std::vector<double>& load) {
    const program::geometry chip = t.chip();
    const auto head = family_heads(g);
    std::vector<std::vector<std::int64_t>> sizes(load.size());
    for (lowering::vertex v = 0; v < g.size(); ++v)
      if (head[v] == v && element_count(g.at(v).lanes) > 0)
        if (const auto size = crossbars_of(g.at(v), chip); size > 0) sizes[stage[v]].push_back(size);
    std::vector<std::int64_t> cores;
    std::int64_t left = chip.core_count;
    for (const auto& s : sizes) {
      auto needed = std::max<std::int64_t>(1, checked::divide_up(detail::total(s), chip.crossbars_per_core));
      while (needed <= chip.core_count && !try_pack(s, std::vector<std::int64_t>(static_cast<std::size_t>(needed), chip.crossbars_per_core))) ++needed;
      cores.push_back(needed);
      left -= needed;
    }
    if (left < 0) {
      const auto needed = chip.core_count - left;
      throw error(error_code::capacity, "the stages need " + std::to_string(needed) + " cores for their weights, the chip has " + std::to_string(chip.core_count), {},
                  "use fewer stages, or a larger chip");
    }
    std::priority_queue<std::pair<double, std::size_t>> longest;
    const auto share = [&](std::size_t k) { return load[k] / static_cast<double>(cores[k]); };
    for (std::size_t k = 0; k < cores.size(); ++k) longest.emplace(share(k), cores.size() - k);
    for (; left > 0; --left) {
      const auto k = cores.size() - longest.top().second;
      longest.pop();
      ++cores[k];
      longest.emplace(share(k), cores.size() - k);
    }
    return cores;
  }
};

/// Evaluator policy: the time from output to output that the cost model predicts for inputs without end.
struct predicted_interval {
  std::int64_t cores = 0;  ///< of the chip
  [[nodiscard]] picoseconds operator()(const schedule& s) const { return s.steps.empty() ? s.predicted : steady_interval(s, s.durations, cores); }
};

}  // namespace raptor::schedule
