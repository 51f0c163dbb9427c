#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/report/bounds.hpp"
#include "raptor/report/format.hpp"
#include "raptor/schedule/copies.hpp"
#include "raptor/schedule/interval.hpp"
#include "raptor/schedule/stages.hpp"

/// How even the stages of a pipeline are, and what binds them.
namespace raptor::report {

/// One stage, times in picoseconds for one input.
struct stage_balance {
  std::int64_t cores = 0, computes = 0;
  std::int64_t crossbars = 0;             ///< in use, copies included
  schedule::picoseconds interval = 0;     ///< from output to output, were all other stages infinitely fast
  schedule::picoseconds busiest = 0;      ///< most that one of its cores computes and transfers
  schedule::picoseconds mean = 0;         ///< the same, mean of its cores
};
struct pipeline_balance {
  std::vector<stage_balance> stages;
  schedule::picoseconds interval = 0;       ///< of the whole
  schedule::picoseconds global_memory = 0;  ///< that its port is busy with channels
  std::int64_t channels = 0, rendezvous = 0, copies = 0;  ///< between stages: channels, messages; computes that pass values on
};

/// Cost: that of steady_interval for each stage. Requires: a schedule with steps.
template <target::chip_target Target>
[[nodiscard]] pipeline_balance balance_of(const Target& t, const lowering::compute_graph& g, const schedule::schedule& s, const schedule::stage_plan& plan) {
  const program::geometry chip = t.chip();
  pipeline_balance result;
  if (s.durations.size() != s.steps.size() || s.steps.empty()) return result;
  std::vector<schedule::picoseconds> busy(static_cast<std::size_t>(chip.core_count), 0);
  std::vector<std::uint32_t> stage_of(busy.size(), 0);
  for (const auto& p : s.place) stage_of[p.core] = p.stage;
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    const auto& x = s.steps[i];
    using kind = schedule::step::kind;
    if (x.what == kind::compute || x.what == kind::prepare) busy[s.place[x.index].core] += s.durations[i];
    if (x.what == kind::store) busy[s.place[s.channels[x.index].producer].core] += s.durations[i], ++result.channels;
    if (x.what == kind::load || x.what == kind::transfer) busy[s.flows[x.index].core] += s.durations[i];
    if (x.what == kind::transfer) {
      const auto from = s.place[s.flows[x.index].producer].core;
      busy[from] += s.durations[i];
      if (stage_of[from] != stage_of[s.flows[x.index].core]) ++result.rendezvous;
    }
    if (x.what == kind::store || x.what == kind::load) result.global_memory += s.durations[i];
  }
  result.interval = schedule::steady_interval(s, s.durations, chip.core_count);
  const auto head = schedule::family_heads(g);
  std::vector<std::set<std::pair<std::uint32_t, std::uint32_t>>> held(plan.stages());  // family, core
  for (std::size_t i = 0; i < s.place.size(); ++i) held[s.place[i].stage].emplace(head[s.graph.tiles[i].compute], s.place[i].core);
  for (std::size_t k = 0; k < plan.stages(); ++k) {
    auto& stage = result.stages.emplace_back();
    stage.cores = plan.cores[k];
    for (lowering::vertex v = 0; v < g.size(); ++v) {
      if (plan.stage[v] != k) continue;
      ++stage.computes;
      if (g.at(v).op == "forward") ++result.copies;
    }
    for (const auto& [family, core] : held[k]) stage.crossbars += schedule::crossbars_of(g.at(family), chip);
    for (std::size_t c = 0; c < busy.size(); ++c)
      if (stage_of[c] == k) stage.busiest = std::max(stage.busiest, busy[c]), stage.mean += busy[c];
    stage.mean /= std::max<std::int64_t>(1, stage.cores);
    stage.interval = schedule::steady_interval(s, s.durations, chip.core_count, static_cast<std::int64_t>(k));
  }
  return result;
}

/// reports/pipeline.txt: a row a stage, what binds, and how far the interval is from the bound of the whole chip.
[[nodiscard]] inline std::string pipeline_report(const pipeline_balance& p, const bounds& b) {
  std::string text = "Pipeline of " + std::to_string(p.stages.size()) + (p.stages.size() == 1 ? " stage" : " stages") + "; times of one input in ns, as predicted\n\n";
  std::vector<std::vector<std::string>> rows{{"stage", "cores", "computes", "crossbars", "interval", "busiest core", "mean core"}};
  const auto ns = [](schedule::picoseconds x) { return std::to_string(x / 1000); };
  std::size_t slowest = 0;
  for (std::size_t k = 0; k < p.stages.size(); ++k) {
    const auto& s = p.stages[k];
    if (s.interval > p.stages[slowest].interval) slowest = k;
    rows.push_back({std::to_string(k), std::to_string(s.cores), std::to_string(s.computes), std::to_string(s.crossbars), ns(s.interval), ns(s.busiest), ns(s.mean)});
  }
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) text += std::string(i == 0 ? 0 : 2, ' ') + std::string(row[i].size() < 12 ? 12 - row[i].size() : 0, ' ') + row[i];
    text += "\n";
  }
  text += "\ninterval: a stage alone, were the others infinitely fast\n";
  text += "from output to output: " + ns(p.interval) + " ns";
  if (!b.all.empty()) text += ", " + ratio(p.interval, b.of_interval().least) + " times the bound of the chip (" + b.of_interval().resource + ")";
  text += "\n";
  if (!p.stages.empty()) {
    const bool memory = p.global_memory >= p.stages[slowest].interval;
    text += memory ? "what binds: the port of the global memory, busy " + ns(p.global_memory) + " ns for each input\n" : "what binds: stage " + std::to_string(slowest) + "\n";
  }
  text += std::to_string(p.channels) + " channels through global memory, " + std::to_string(p.rendezvous) + " messages from stage to stage, " + std::to_string(p.copies) +
          " computes that only pass values on\n";
  return text;
}

/// A summary with `pipeline`. Errors: malformed, where the text is no JSON object.
[[nodiscard]] inline std::string with_pipeline(const std::string& summary, const pipeline_balance& p) {
  using json = nlohmann::ordered_json;
  json root = json::parse(summary, nullptr, false);
  if (!root.is_object()) throw error(error_code::malformed, "the summary is no JSON object", "summary.json");
  json stages = json::array();
  for (const auto& s : p.stages)
    stages.push_back({{"cores", s.cores}, {"computes", s.computes}, {"crossbars", s.crossbars}, {"interval_ps", s.interval}, {"busiest_core_ps", s.busiest}, {"mean_core_ps", s.mean}});
  root["pipeline"] = {{"interval_ps", p.interval}, {"global_memory_ps", p.global_memory}, {"channels", p.channels}, {"messages", p.rendezvous}, {"stages", std::move(stages)}};
  return root.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace raptor::report
