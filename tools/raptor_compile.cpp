#include <algorithm>
#include <boost/any.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/memory/widen.hpp"
#include "tools/choices.hpp"
#include "tools/common.hpp"
#include "tools/pipeline.hpp"
#include "tools/report.hpp"
#include "tools/write.hpp"

namespace {

using namespace raptor;
using tools::po::value;

void declare(tools::command_line& line) {
  tools::po::options_description output("Output");
  output.add_options()("output,o", value<std::string>(), "directory to write; it appears complete or not at all");
  output.add_options()("list-ops", "print the ONNX operators that can be imported, with their opsets, and exit");
  line.add(output);
  tools::po::options_description target("Target");
  target.add_options()("core-count", value<std::int64_t>(), "cores on the chip")("crossbar-size", value<std::int64_t>(), "rows and columns of one crossbar")(
      "crossbar-count", value<std::int64_t>(), "crossbars in each core")("pim-target-config", value<std::string>(),
                                                                         "hardware configuration in pimsim-nn's JSON format; the three flags may then be left out")(
      "element-bits", value<std::int64_t>()->default_value(32), "width of elements and weights: 32, 16 or 8; below 32 the program is for time and energy")(
      "execute-as", value<std::string>(), "f32: write the 32-bit twin of the narrow program, which can be executed: only widths, sizes and addresses differ");
  line.add(target);
  tools::po::options_description stop("Stop early");
  stop.add_options()("EmitSpatial", "write spatial.txt: the scheduled compute graph")("EmitPim", "write program.txt: the realized program")(
      "EmitPimBufferized", "write bound.txt and weights/: the bound program")("EmitPimCodegen", "write the artifact directory (default)")(
      "pim-only-codegen", "the input is what --EmitPimBufferized wrote: memory planning, verification and emission only");
  line.add(stop);
  tools::po::options_description planning("Planning");
  planning.add_options()("shape", value<std::vector<std::string>>()->composing(), "NAME=1x3x224x224: shape of a graph input")(
      "pim-disable-spatial-planning", "take the first, dense layout for every operation")(
      "pim-conv-lowering", value<std::string>()->default_value("auto"),
      "auto, legacy, depthwise, depthwise-vector, packed-im2col, streamed-patch, streamed-packed, output-channel-tiled, input-k-tiled, tiled-2d, toeplitz or kernel-in-columns")(
      "pim-conv-im2col-max-elements", value<std::int64_t>()->default_value(1048576), "most im2col elements materialized for one convolution")(
      "pim-conv-stream-chunk-positions", value<std::int64_t>()->default_value(1024), "most output positions in one streamed chunk")(
      "pipeline", value<std::int64_t>()->default_value(1), "stages that work on different inputs at the same time; 1: latency scheduling. Not given: 1, but --objective=throughput tries several")(
      "pipeline-channels", value<std::string>()->default_value("auto"), "auto, rendezvous or memory: how data goes from stage to stage")(
      "pipeline-restart", value<std::string>()->default_value("all-cores"),
      "all-cores or input-readers: who waits for whom before a pipeline with channels through global memory takes the next input")(
      "pim-disable-synchronization", "leave out wait and sync, for ablation: the program is wrong where it needs them")(
      "objective", value<std::string>()->default_value("latency"), "latency, throughput (number of stages, copies and lowering for the highest rate) or energy")(
      "effort", value<std::int64_t>()->default_value(1), "0 to 3: how many copies and lowerings are tried; the best predicted time wins")(
      "softmax", value<std::string>()->default_value("vsoftmax"), "vsoftmax (extension instruction) or standard (instructions that pimsim-nn can time)");
  line.add(planning);
  tools::po::options_description checks("Checks and reports");
  checks.add_options()("pim-detect-communication-deadlock", "simulate the expanded communication and reject a blocking deadlock")(
      "pim-verify-bufferization-copy-freedom", "prove that bufferization needed no copy inside any core")("verify-each", "run every verifier after each stage")(
      "dump-stages", value<std::string>(), "directory for the text form after each stage")("pim-memory-report", value<std::string>()->default_value("summary"),
                                                                                            "summary or none")(
      "pim-report-conv-lowering", value<std::string>()->default_value("true"), "true or false")(
      "pim-export-spatial-dataflow", value<std::string>()->default_value("none"),
      "none, spatial1 (lowered), spatial2 (merged), spatial3 (scheduled), spatial4 (realized) or all: node and edge CSV files")(
      "explain", value<std::string>(), "NODE, or all: print what the operator got (layout, strategy, copies, cores, stage, predicted time) and what the alternatives would have cost")(
      "graphviz", value<std::string>(), "spatial1 ... spatial4: drawing of the compute graph for Graphviz")("pim-emit-json", "core_N.json beside each core_N.pim");
  line.add(checks);
}

void require_positive(const tools::command_line& line, const char* name) {
  if (line.has(name) && line.get<std::int64_t>(name) <= 0)
    throw tools::usage_error(std::string("--") + name + " must be positive, not " + std::to_string(line.get<std::int64_t>(name)));
}
void check_execute_as(const tools::command_line& line) {
  if (line.has("execute-as")) static_cast<void>(tools::one_of(line, "execute-as", {"f32"}));
}

tools::compile_options read_options(const tools::command_line& line) {
  tools::compile_options options;
  for (const char* name : {"core-count", "crossbar-size", "crossbar-count", "pipeline", "pim-conv-im2col-max-elements", "pim-conv-stream-chunk-positions"})
    require_positive(line, name);
  const auto flag = [&](const char* name) { return line.has(name) ? std::optional(line.get<std::int64_t>(name)) : std::nullopt; };
  options.flags = {flag("core-count"), flag("crossbar-count"), flag("crossbar-size")};
  if (line.has("pim-target-config")) options.target_configuration = line.get<std::string>("pim-target-config");
  options.element_bits = line.get<std::int64_t>("element-bits");
  check_execute_as(line);
  options.lowering.convolution = tools::conv_lowering(line);
  options.lowering.im2col_max_elements = line.get<std::int64_t>("pim-conv-im2col-max-elements");
  options.lowering.stream_chunk_positions = line.get<std::int64_t>("pim-conv-stream-chunk-positions");
  options.lowering.softmax = tools::parse_softmax(line.get<std::string>("softmax"));
  if (line.given("pipeline")) options.pipeline = line.get<std::int64_t>("pipeline");
  options.channels = tools::parse_channels(line.get<std::string>("pipeline-channels"));
  options.restart = tools::parse_restart(line.get<std::string>("pipeline-restart"));
  options.synchronization = !line.has("pim-disable-synchronization");
  options.goal = tools::parse_objective(line.get<std::string>("objective"));
  if (options.goal == tools::objective::energy && options.target_configuration.empty())
    throw tools::usage_error("--objective=energy needs --pim-target-config: what instructions cost is said there");
  options.effort = tools::checked_effort(line.get<std::int64_t>("effort"));
  options.spatial_planning = !line.has("pim-disable-spatial-planning");
  const int stops = static_cast<int>(line.has("EmitSpatial")) + static_cast<int>(line.has("EmitPim")) + static_cast<int>(line.has("EmitPimBufferized")) +
                    static_cast<int>(line.has("EmitPimCodegen"));
  if (stops > 1) throw tools::usage_error("give one of --EmitSpatial, --EmitPim, --EmitPimBufferized and --EmitPimCodegen");
  if (line.has("EmitSpatial")) options.last = stage::scheduled;
  else if (line.has("EmitPim")) options.last = stage::realized;
  else if (line.has("EmitPimBufferized")) options.last = stage::bound;
  return options;
}

tools::report_options read_report_options(const tools::command_line& line) {
  tools::report_options options;
  options.convolutions = tools::one_of(line, "pim-report-conv-lowering", {"true", "false"}) == "true";
  options.dataflow = tools::one_of(line, "pim-export-spatial-dataflow", {"none", "spatial1", "spatial2", "spatial3", "spatial4", "all"});
  if (line.has("graphviz")) options.graphviz = tools::one_of(line, "graphviz", {"spatial1", "spatial2", "spatial3", "spatial4"});
  options.model = line.get<std::string>("model");
  if (line.has("pim-target-config")) options.configuration = line.get<std::string>("pim-target-config");
  options.given = {{"pim-conv-lowering", line.get<std::string>("pim-conv-lowering")},
                   {"softmax", line.get<std::string>("softmax")},
                   {"element-bits", std::to_string(line.get<std::int64_t>("element-bits"))},
                   {"pipeline", std::to_string(line.get<std::int64_t>("pipeline"))},
                   {"pipeline-channels", line.get<std::string>("pipeline-channels")},
                   {"pipeline-restart", line.get<std::string>("pipeline-restart")},
                   {"pim-disable-synchronization", line.has("pim-disable-synchronization") ? "true" : "false"},
                   {"objective", line.get<std::string>("objective")},
                   {"effort", std::to_string(line.get<std::int64_t>("effort"))},
                   {"pim-conv-im2col-max-elements", std::to_string(line.get<std::int64_t>("pim-conv-im2col-max-elements"))},
                   {"pim-conv-stream-chunk-positions", std::to_string(line.get<std::int64_t>("pim-conv-stream-chunk-positions"))},
                   {"pim-disable-spatial-planning", line.has("pim-disable-spatial-planning") ? "true" : "false"}};
  return options;
}

/// An option that needs a later stage than the one where the compilation stops would do nothing: that is a mistake, not a wish.
void require_reached(const tools::command_line& line, stage last) {
  struct need {
    const char* option;
    stage from;
  };
  for (const auto& [option, from] : {need{"pim-detect-communication-deadlock", stage::realized}, need{"pim-verify-bufferization-copy-freedom", stage::bound},
                                     need{"pim-export-spatial-dataflow", stage::bound}, need{"pim-report-conv-lowering", stage::bound}, need{"graphviz", stage::bound},
                                     need{"pim-memory-report", stage::image}, need{"pim-emit-json", stage::image},
                                     need{"execute-as", stage::image}}) {
    if (last >= from || !line.given(option)) continue;
    if (const auto* text = boost::any_cast<std::string>(&line.values()[option].value()); text != nullptr && (*text == "none" || *text == "false")) continue;
    const char* stop = last == stage::scheduled ? "EmitSpatial" : last == stage::realized ? "EmitPim" : "EmitPimBufferized";
    throw tools::usage_error(std::string("--") + option + " has no meaning with --" + stop + ": the compilation stops before what it works on");
  }
}

/// Progress on standard error: -v one line a stage, -vv also its time and what it made.
class progress {
 public:
  explicit progress(const tools::command_line& line) : shown_(tools::shows_progress(line)), detailed_(line.verbosity() > 1), last_(clock::now()) {}
  void operator()(const std::string& text) const {
    if (shown_) std::cerr << "raptor-compile: " << text << "\n";
  }
  /// `describe` is called only where its text is shown.
  template <class Describe>
  void operator()(const std::string& text, Describe describe) {
    if (!shown_) return;
    if (!detailed_) return (*this)(text);
    const auto now = clock::now();
    (*this)(fmt::format("{:<10} {:>8.3f} s  {}", text, std::chrono::duration<double>(now - last_).count(), describe()));
    last_ = clock::now();
  }

 private:
  using clock = std::chrono::steady_clock;
  bool shown_, detailed_;
  clock::time_point last_;
};

/// What a stage made, in one line.
std::string describe_stage(stage s, const compilation& c) {
  const auto of_program = [](const program::program& p) {
    std::size_t active = 0, groups = 0;
    for (const auto& core : p.cores) {
      if (!core.body.empty()) ++active;
      groups += core.groups.size();
    }
    return fmt::format("{} active cores, {} buffers, {} array groups, {} weight matrices", active, p.buffers.size(), groups, p.weights.size());
  };
  switch (s) {
    case stage::planned: return fmt::format("{} layouts", c.plan.chosen.size());
    case stage::lowered: return fmt::format("{} computes, {} values", c.lowered.graph.size(), c.lowered.graph.values().size());
    case stage::merged: return fmt::format("{} computes", c.computes.size());
    case stage::scheduled: {
      const auto copies = std::count_if(c.copies.begin(), c.copies.end(), [](std::int64_t n) { return n > 1; });
      std::string stages;
      if (c.stages.stages() > 1) {
        for (const auto n : c.stages.cores) stages += (stages.empty() ? "" : "+") + std::to_string(n);
        stages = fmt::format(", {} stages of {} cores, {} ns from output to output", c.stages.stages(), stages, c.worth / 1000);
      }
      return fmt::format("{} tiles, {} computes replicated, {} ns predicted{}", c.schedule.order.size(), copies, c.schedule.predicted / 1000, stages);
    }
    case stage::realized: return of_program(c.realized);
    case stage::bound: return of_program(c.image.bound);
    case stage::image: return fmt::format("{} bytes of global memory, {} of them constants", c.image.global_bytes, c.image.constant_bytes);
  }
  return {};
}

/// Checks, plans addresses and writes the artifact: the part that --pim-only-codegen runs alone.
void emit_artifact(const tools::command_line& line, memory::image image, std::vector<emit::extra_file> extra, const progress& report) {
  if (line.has("execute-as")) image = memory::widen(std::move(image));
  tools::complete_reports(extra, image, tools::one_of(line, "pim-memory-report", {"summary", "none"}) == "summary");
  emit::artifact_options options;
  options.json = line.has("pim-emit-json");
  options.extra = std::move(extra);
  const auto summary = tools::write_artifact(image, line.get<std::string>("output"), options);
  std::int64_t instructions = 0;
  for (const auto n : summary.instructions) instructions += n;
  report("wrote " + std::to_string(instructions) + " instructions and " + std::to_string(summary.contents) + " weight files to " + line.get<std::string>("output"));
}

int only_codegen(const tools::command_line& line, const progress& report) {
  for (const char* name : {"EmitSpatial", "EmitPim", "EmitPimBufferized", "core-count", "crossbar-count", "crossbar-size", "pim-target-config", "element-bits", "shape"})
    if (line.given(name)) throw tools::usage_error(std::string("--") + name + " has no meaning with --pim-only-codegen: the bound program holds its target");
  for (const char* name : {"pim-disable-spatial-planning", "pim-conv-lowering", "pim-conv-im2col-max-elements", "pim-conv-stream-chunk-positions", "dump-stages",
                           "pim-verify-bufferization-copy-freedom", "pim-report-conv-lowering", "pim-export-spatial-dataflow", "graphviz", "softmax", "effort", "pipeline", "pipeline-channels", "pipeline-restart", "pim-disable-synchronization", "objective", "explain"})
    if (line.given(name)) throw tools::usage_error(std::string("--") + name + " has no meaning with --pim-only-codegen: the bound program has passed that stage");
  check_execute_as(line);
  auto input = tools::read_bound(line.get<std::string>("model"));
  report("read " + std::to_string(input.bound.buffers.size()) + " buffers");
  tools::verify_program(input.bound);
  if (line.has("pim-detect-communication-deadlock")) std::cout << tools::detect_deadlock(input.bound) << "\n";
  auto image = memory::plan(std::move(input.bound));
  if (line.has("verify-each")) memory::check_plan(image);
  emit_artifact(line, std::move(image), std::move(input.extra), report);
  return tools::exit_success;
}

int compile(const tools::command_line& line, progress& report) {
  const auto options = read_options(line);
  require_reached(line, options.last);
  const auto reports = read_report_options(line);
  static_cast<void>(tools::one_of(line, "pim-memory-report", {"summary", "none"}));
  const auto chip = tools::make_target(options);
  const auto shapes = tools::shapes_of(line);
  const auto model = tools::load_model(line.get<std::string>("model"), shapes);
  for (const auto& note : model.imported.notes) std::cerr << "raptor-compile: note: " << printable(note) << "\n";
  report("read", [&] { return fmt::format("{} nodes, {} after the rewrites", model.imported.node_count(), model.canonical.node_count()); });

  const auto explained = line.has("explain") ? tools::nodes_to_explain(model, line.get<std::string>("explain")) : std::vector<model::vertex>{};
  auto result = tools::compile_model(model.canonical, chip, options, [&](stage s, const compilation& c) {
    report(tools::name_of(s), [&] { return describe_stage(s, c); });
    if (line.has("verify-each")) tools::verify_stage(s, c, model.canonical, chip.chip());
    if (line.has("dump-stages")) {
      const std::filesystem::path directory = line.get<std::string>("dump-stages");
      std::error_code code;
      std::filesystem::create_directories(directory, code);
      if (code) throw error(error_code::io, "the directory cannot be made: " + code.message(), directory.string());
      tools::write_file_atomically(directory / (std::to_string(static_cast<int>(s)) + "_" + tools::name_of(s) + ".txt"), tools::text_of(s, c, model.canonical));
    }
    if (s == stage::realized && line.has("pim-detect-communication-deadlock")) std::cout << tools::detect_deadlock(c.realized) << "\n";
    if (s == stage::bound && line.has("pim-verify-bufferization-copy-freedom")) std::cout << tools::prove_copy_freedom(c.realized, c.image.bound) << "\n";
  });

  std::vector<emit::extra_file> extra;
  if (options.last >= stage::bound) {
    const auto bounds = tools::bounds_of(result, model.canonical, chip);
    report(report::bounds_line(bounds));
    extra = tools::make_reports(result, model.canonical, chip, options, reports, bounds);
  }
  if (line.has("explain")) std::cout << tools::explain_nodes(result, model.canonical, chip, options, explained);
  const std::string out = line.get<std::string>("output");
  switch (options.last) {
    case stage::scheduled: tools::write_spatial(result, out); break;
    case stage::realized: tools::write_program(result, out); break;
    case stage::bound: tools::write_bound(result, out, extra); break;
    default: emit_artifact(line, std::move(result.image), std::move(extra), report);
  }
  return tools::exit_success;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_tool("raptor-compile", [&] {
    tools::command_line line("raptor-compile", "MODEL.onnx -o OUTDIR --core-count=N --crossbar-count=N --crossbar-size=N [options]",
                             "Compiles an ONNX network for a chip of crossbar cores.");
    line.add_positional("model", value<std::string>());
    declare(line);
    if (!line.parse(argc, argv)) return tools::exit_success;
    if (line.has("list-ops")) {
      std::cout << tools::operator_list();
      return tools::exit_success;
    }
    if (!line.has("model")) throw tools::usage_error("no model given");
    if (!line.has("output")) throw tools::usage_error("no output directory given: use -o OUTDIR");
    progress report(line);
    return line.has("pim-only-codegen") ? only_codegen(line, report) : compile(line, report);
  });
}
