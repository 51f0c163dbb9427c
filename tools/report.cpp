#include "tools/report.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "raptor/report/convolutions.hpp"
#include "raptor/report/dataflow.hpp"
#include "raptor/report/explain.hpp"
#include "raptor/report/graphviz.hpp"
#include "raptor/report/memory.hpp"
#include "raptor/report/pipeline.hpp"
#include "raptor/report/strategies.hpp"
#include "raptor/report/summary.hpp"
#include "raptor/support/file_text.hpp"

namespace raptor::tools {

namespace {

std::string hash_of(const std::filesystem::path& file) {
  if (file.empty()) return {};
  std::ifstream in(file, std::ios::binary);
  return report::content_hash(file_text(in, file));
}

/// Is a snapshot wanted, by name or by "all"?
bool wants(const std::string& option, const char* snapshot) { return option == snapshot || option == "all"; }

const lowering::default_convolution_strategies strategies;

}  // namespace

report::bounds bounds_of(const compilation& c, const model::graph& model, const target::pim& chip) {
  report::strategy_table table(chip, model, c.plan, c.lowered, strategies);
  return report::lower_bounds(chip, c.computes, c.schedule, report::strategy_bounds(chip, table, model, c.lowered, c.computes, c.schedule.graph));
}

std::vector<model::vertex> nodes_to_explain(const loaded_model& model, const std::string& name) { return report::named_nodes(model.canonical, model.imported, name); }

std::string explain_nodes(const compilation& c, const model::graph& model, const target::pim& chip, const compile_options& options,
                          const std::vector<model::vertex>& nodes) {
  report::strategy_table table(chip, model, c.plan, c.lowered, strategies);
  const report::explained<target::pim, lowering::default_convolution_strategies> all{chip, model, c.plan, c.lowered, c.computes, c.schedule, table};
  std::string text;
  constexpr std::size_t most_predictions = 4;
  for (const auto v : nodes) {
    std::map<std::string, std::string> instead;
    const auto choice = std::find_if(c.lowered.convolutions.begin(), c.lowered.convolutions.end(), [&](const auto& x) { return x.node == v; });
    if (nodes.size() <= most_predictions && choice != c.lowered.convolutions.end())
      for (const auto& [strategy, cost] : choice->candidates) {
        if (strategy == choice->strategy && choice->together.empty()) continue;
        auto other = options;
        other.last = stage::scheduled;
        other.lowering.convolution_of[model.at(v).from.node] = strategy;
        try {
          instead[strategy] = report::microseconds(compile_model(model, chip, other).schedule.predicted);
        } catch (const error& e) {
          if (e.code() != error_code::capacity) throw;
          instead[strategy] = "it does not fit the chip";
        }
      }
    text += (text.empty() ? "" : "\n") + report::explain(all, v, instead);
  }
  return text;
}

std::vector<emit::extra_file> make_reports(const compilation& c, const model::graph& model, const target::pim& chip,
                                           const compile_options& options, const report_options& wanted, const report::bounds& bounds) {
  std::vector<emit::extra_file> files;
  if (wanted.convolutions)
    files.push_back({"reports/conv_lowering.txt", report::convolution_report(model, c.lowered.convolutions, chip.chip(), options.lowering)});
  files.push_back({"reports/bounds.txt", report::bounds_report(bounds)});
  const auto stages = report::balance_of(chip, c.computes, c.schedule, c.stages);
  const bool is_pipeline = streams(options) && c.stages.stages() > 0;
  if (is_pipeline) files.push_back({"reports/pipeline.txt", report::pipeline_report(stages, bounds)});

  const auto csv = [&](const char* name, const report::csv_files& snapshot) {
    files.push_back({std::string("reports/") + name + "_nodes.csv", snapshot.nodes});
    files.push_back({std::string("reports/") + name + "_edges.csv", snapshot.edges});
  };
  if (wants(wanted.dataflow, "spatial1")) csv("spatial1", report::dataflow(c.lowered.graph, chip.chip()));
  if (wants(wanted.dataflow, "spatial2")) csv("spatial2", report::dataflow(c.merged, chip.chip()));
  if (wants(wanted.dataflow, "spatial3")) csv("spatial3", report::dataflow(c.computes, c.schedule, chip.chip()));
  if (wants(wanted.dataflow, "spatial4")) {
    const auto transfers = communication::collect_transfers(c.computes, c.schedule);
    csv("spatial4", report::dataflow(c.computes, c.schedule, chip.chip(), &transfers));
  }
  if (!wanted.graphviz.empty()) {
    const bool lowered = wanted.graphviz == "spatial1";
    const bool scheduled = wanted.graphviz == "spatial3" || wanted.graphviz == "spatial4";
    files.push_back({"reports/" + wanted.graphviz + ".dot", report::graphviz(lowered ? c.lowered.graph : scheduled ? c.computes : c.merged, scheduled ? &c.schedule : nullptr)});
  }

  report::summary_header header{"raptor-compile", RAPTOR_VERSION, wanted.model.filename().string(), hash_of(wanted.model), hash_of(wanted.configuration), wanted.given};
  auto summary = report::summary(header, c.computes, c.schedule, chip.chip(), bounds);
  if (is_pipeline) summary = report::with_pipeline(summary, stages);
  files.push_back({"summary.json", std::move(summary)});
  return files;
}

void complete_reports(std::vector<emit::extra_file>& files, const memory::image& image, bool memory) {
  for (auto& file : files)
    if (file.path == "summary.json") file.contents = report::with_memory(file.contents, image);
  if (memory) files.push_back({"reports/memory_report.txt", report::memory_report(image)});
}

}  // namespace raptor::tools
