#include "tools/report.hpp"

#include <fstream>
#include <iterator>

#include "raptor/report/bounds.hpp"
#include "raptor/report/convolutions.hpp"
#include "raptor/report/dataflow.hpp"
#include "raptor/report/graphviz.hpp"
#include "raptor/report/memory.hpp"
#include "raptor/report/pipeline.hpp"
#include "raptor/report/summary.hpp"

namespace raptor::tools {

namespace {

std::string hash_of(const std::filesystem::path& file) {
  if (file.empty()) return {};
  std::ifstream in(file, std::ios::binary);
  return report::content_hash(std::string(std::istreambuf_iterator<char>(in), {}));
}

/// Is a snapshot wanted, by name or by "all"?
bool wants(const std::string& option, const char* snapshot) { return option == snapshot || option == "all"; }

}  // namespace

std::vector<emit::extra_file> make_reports(const compilation& c, const model::graph& model, const target::pim& chip,
                                           const compile_options& options, const report_options& wanted) {
  std::vector<emit::extra_file> files;
  if (wanted.convolutions)
    files.push_back({"reports/conv_lowering.txt", report::convolution_report(model, c.lowered.convolutions, chip.chip(), options.lowering)});
  const auto bounds = report::lower_bounds(chip, c.computes, c.schedule);
  files.push_back({"reports/bounds.txt", report::bounds_report(bounds)});
  const auto stages = report::balance_of(chip, c.computes, c.schedule, c.stages);
  if (c.stages.stages() > 1) files.push_back({"reports/pipeline.txt", report::pipeline_report(stages, bounds)});

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
  if (c.stages.stages() > 1) summary = report::with_pipeline(summary, stages);
  files.push_back({"summary.json", std::move(summary)});
  return files;
}

void complete_reports(std::vector<emit::extra_file>& files, const memory::image& image, bool memory) {
  for (auto& file : files)
    if (file.path == "summary.json") file.contents = report::with_memory(file.contents, image);
  if (memory) files.push_back({"reports/memory_report.txt", report::memory_report(image)});
}

}  // namespace raptor::tools
