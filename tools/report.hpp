#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "raptor/emit/atomic_directory.hpp"
#include "raptor/report/bounds.hpp"
#include "tools/pipeline.hpp"

/// Reports of raptor-compile as files of the artifact directory (report.cpp).
namespace raptor::tools {

struct report_options {
  bool convolutions = true;
  std::string dataflow = "none";      ///< none, spatial1 … spatial4, all
  std::string graphviz;               ///< spatial1 … spatial4; empty: none
  std::filesystem::path model, configuration;
  std::vector<std::pair<std::string, std::string>> given;  ///< planning options, for the summary
};
/// Lower bounds of a compilation up to its schedule, those over all convolution strategies included.
[[nodiscard]] report::bounds bounds_of(const compilation& c, const model::graph& model, const target::pim& chip);
/// The nodes that --explain=`name` means. Errors: usage, with the nearest names.
[[nodiscard]] std::vector<model::vertex> nodes_to_explain(const loaded_model& model, const std::string& name);
/// What the nodes got and what the alternatives would have cost, a paragraph a node; of up to four nodes also what is predicted of the whole
/// model with other strategies there. Requires: a compilation up to its schedule.
[[nodiscard]] std::string explain_nodes(const compilation& c, const model::graph& model, const target::pim& chip, const compile_options& options,
                                        const std::vector<model::vertex>& nodes);
/// What is known before addresses are: conv_lowering.txt, bounds.txt, dataflow, and summary.json without its memory part.
[[nodiscard]] std::vector<emit::extra_file> make_reports(const compilation& c, const model::graph& model, const target::pim& chip,
                                                         const compile_options& options, const report_options& wanted, const report::bounds& bounds);
/// Adds what the image tells: memory_report.txt where `memory`, and the memory part of summary.json.
void complete_reports(std::vector<emit::extra_file>& files, const memory::image& image, bool memory);

}  // namespace raptor::tools
