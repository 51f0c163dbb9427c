#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "raptor/emit/atomic_directory.hpp"
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
/// What is known before addresses are: conv_lowering.txt, bounds.txt, dataflow, and summary.json without its memory part.
[[nodiscard]] std::vector<emit::extra_file> make_reports(const compilation& c, const model::graph& model, const target::pim& chip,
                                                         const compile_options& options, const report_options& wanted);
/// Adds what the image tells: memory_report.txt where `memory`, and the memory part of summary.json.
void complete_reports(std::vector<emit::extra_file>& files, const memory::image& image, bool memory);

}  // namespace raptor::tools
