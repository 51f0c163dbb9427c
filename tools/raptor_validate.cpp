#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "raptor/memory/widen.hpp"
#include "raptor/model/reference.hpp"
#include "raptor/model/reference_compare.hpp"
#include "tools/choices.hpp"
#include "tools/common.hpp"
#include "tools/onnxruntime.hpp"
#include "tools/pipeline.hpp"
#include "tools/report.hpp"

namespace {

using namespace raptor;
using tools::po::value;

struct row {
  std::string model, verdict, reason, layers, trials;
  double absolute = 0, relative = 0, seconds = 0;
  std::optional<tools::image_time> time = {};
  report::bounds bounds = {};

  /// Times the largest lower bound that the latency is.
  [[nodiscard]] std::string gap() const { return report::ratio(std::llround(time->latency_ms * 1e9), bounds.largest().least); }
};

/// Uniform in [−1, 1): the generator's raw bits, so that every machine draws the same.
class uniform {
 public:
  explicit uniform(std::uint64_t seed) : state_(seed) {}
  float operator()() {
    state_ += 0x9e3779b97f4a7c15ULL;  // splitmix64
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    return static_cast<float>(static_cast<double>(z >> 40) * 0x1p-23 - 1.0);
  }

 private:
  std::uint64_t state_;
};

struct model_input {
  std::vector<model::tensor_value> values;
  std::vector<std::byte> bytes;
};

/// Input number `index` of a batch.
model_input make_input(const model::graph& g, std::uint64_t seed, const std::string& directory, std::int64_t index = 0) {
  model_input result;
  std::vector<char> file;
  const auto name = fmt::format("input_{}.bin", index);
  if (!directory.empty()) {
    const auto path = std::filesystem::path(directory) / name;
    std::ifstream in(path, std::ios::binary);
    if (!in) throw error(error_code::io, "the file cannot be read", path.string());
    file.assign(std::istreambuf_iterator<char>(in), {});
  }
  uniform draw(seed + static_cast<std::uint64_t>(index) * 0x5851f42d4c957f2dULL);
  for (const auto t : g.inputs) {
    const auto& tensor = g.at(t);
    if (tensor.type != model::element_type::f32) throw error(error_code::unsupported, "input '" + tensor.name + "' is not a float tensor");
    std::vector<float> elements(static_cast<std::size_t>(element_count(tensor.sizes)));
    const std::size_t at = result.bytes.size(), size = elements.size() * sizeof(float);
    if (directory.empty()) {
      for (auto& x : elements) x = draw();
    } else {
      if (file.size() < at + size)
        throw error(error_code::mismatch, name + " has " + std::to_string(file.size()) + " bytes, at least " + std::to_string(at + size) + " are needed", directory);
      if (size > 0) std::memcpy(elements.data(), file.data() + at, size);  // an empty vector may have no address
    }
    result.bytes.resize(at + size);
    if (size > 0) std::memcpy(result.bytes.data() + at, elements.data(), size);
    result.values.push_back(model::make_value(tensor.sizes, std::move(elements)));
  }
  if (!directory.empty() && file.size() != result.bytes.size())
    throw error(error_code::mismatch, name + " has " + std::to_string(file.size()) + " bytes, the model takes " + std::to_string(result.bytes.size()), directory);
  return result;
}

/// Error of one tensor, and of all tensors so far.
struct comparison {
  double absolute = 0, largest = 0;
  bool finite = true;  ///< no element that is not finite differs

  void add(const model::difference& d) {
    if (!std::isfinite(d.absolute)) finite = false;
    else absolute = std::max(absolute, d.absolute);
    largest = std::max(largest, d.largest);
  }
  [[nodiscard]] double relative() const { return absolute == 0 ? 0 : absolute / std::max(largest, std::numeric_limits<double>::min()); }
  [[nodiscard]] bool passes(double tolerance) const { return finite && relative() <= tolerance; }
};

model::tensor_value executed_value(const sim::output_value& output, const shape& sizes) { return model::make_value(sizes, output.values()); }

/// Compares every tensor that survives to the program with the reference, in the order of the operators. The text is for the row's
/// report; the first operator that is wrong is named. `details`: one line a tensor on standard error.
std::string compare_layers(const tools::loaded_model& model, const target::pim& chip, tools::compile_options options, const model_input& input, double tolerance,
                           bool details) {
  options.lowering.deliver_intermediates = true;
  const auto compiled = tools::compile_model(model.canonical, chip, options);
  const auto executed = tools::execute_image(memory::widen(compiled.image), input.bytes);
  // A tensor that keeps its name through the rewrites keeps its meaning: the reference is the imported graph. What only the rewrites
  // made is compared with the evaluation of the rewritten graph.
  const auto expected = model::evaluate_tensors(model.imported, input.values);
  std::map<std::string, std::size_t> known;
  for (std::size_t t = 0; t < expected.size(); ++t)
    if (expected[t].present() && expected[t].type() == model::element_type::f32) known.emplace(model.imported.tensors()[t].name, t);
  std::vector<model::tensor_value> rewritten;

  std::map<std::string, std::size_t> outputs;
  for (std::size_t i = 0; i < executed.outputs.size(); ++i) outputs.emplace(executed.outputs[i].region.name, i);
  std::string first, worst_place;
  double worst = 0;
  std::size_t compared = 0, absent = 0;
  for (model::vertex v = 0; v < model.canonical.node_count(); ++v) {
    const auto& node = model.canonical.at(v);
    for (const auto t : node.outputs) {
      const auto& tensor = model.canonical.at(t);
      const auto output = outputs.find(tensor.name);
      if (output == outputs.end()) {
        ++absent;
        continue;
      }
      const auto namesake = known.find(tensor.name);
      if (namesake == known.end() && rewritten.empty()) rewritten = model::evaluate_tensors(model.canonical, input.values);
      const auto& want = namesake != known.end() ? expected[namesake->second] : rewritten.at(t.index());
      comparison c;
      c.add(model::compare(executed_value(executed.outputs[output->second], tensor.sizes), want));
      ++compared;
      const auto place = node.from.describe() + ", tensor \"" + tensor.name + "\"";
      if (details)
        std::cerr << fmt::format("  {:>12.3g}  {:>12.3g}  {}\n", c.finite ? c.absolute : std::numeric_limits<double>::infinity(),
                                 c.finite ? c.relative() : std::numeric_limits<double>::infinity(), place);
      if (!c.passes(tolerance) && first.empty())
        first = c.finite ? fmt::format("{}: error {:.3g} of the largest element", place, c.relative()) : place + ": not finite where the reference is";
      if (c.finite && c.relative() >= worst) {
        worst = c.relative();
        worst_place = place;
      }
    }
  }
  auto text = fmt::format("layers: {} tensors compared, {} do not survive to the program", compared, absent);
  if (!first.empty()) return text + "; the first whose error exceeds the tolerance is of " + first;
  if (compared > 0) text += fmt::format("; the largest error is {:.3g}, of {}", worst, worst_place);
  return text;
}

/// The reference that --reference names. Null: the built-in evaluator.
using second_opinion = std::shared_ptr<const tools::onnx_runtime>;

/// Inputs that are executed, one after another without a pause: 4 of a stream, else 1, unless the option says otherwise.
std::int64_t batch_size(const tools::command_line& line, const tools::compile_options& options) {
  if (line.has("batch-size")) return line.get<std::int64_t>("batch-size");
  return tools::streams(options) ? 4 : 1;
}

/// --schedules=N or N,M or N,all: N random ones, M of each kind of adversarial ones (20 unless given).
struct schedule_count {
  std::size_t random = 0, most = 20;
};
schedule_count schedules_of(const tools::command_line& line) {
  if (!line.has("schedules")) return {};
  const auto& text = line.get<std::string>("schedules");
  schedule_count result;
  const auto number = [&](std::string_view part) {
    std::size_t value = 0;
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (failure != std::errc{} || end != part.data() + part.size() || value == 0) throw tools::usage_error("--schedules=" + text + ": expected N, N,M or N,all");
    return value;
  };
  const auto comma = text.find(',');
  result.random = number(std::string_view(text).substr(0, comma));
  if (comma != std::string::npos) result.most = text.substr(comma + 1) == "all" ? std::numeric_limits<std::size_t>::max() : number(std::string_view(text).substr(comma + 1));
  return result;
}

row validate(const tools::command_line& line, const tools::compile_options& options, const std::map<std::string, shape>& shapes, const std::string& file,
             const second_opinion& opinion) {
  row r;
  r.model = std::filesystem::path(file).stem().string(), r.verdict = "FAIL";
  const auto begin = std::chrono::steady_clock::now();
  const auto tolerance = line.get<double>("tolerance");
  try {
    const auto model = tools::load_model(file, shapes);
    const auto chip = tools::make_target(options);
    auto compiled = tools::compile_model(model.canonical, chip, options);
    const auto batch = batch_size(line, options);
    if (!options.target_configuration.empty()) {
      r.time = tools::time_image(compiled.image, options.target_configuration, tools::streams(options) ? line.get<double>("sim-time") : 0);
      r.bounds = tools::bounds_of(compiled, model.canonical, chip);
    }
    compiled.image = memory::widen(std::move(compiled.image));  // narrow programs are proven by their 32-bit twins
    std::vector<model_input> inputs;
    std::vector<std::vector<std::byte>> bytes;
    for (std::int64_t i = 0; i < batch; ++i) {
      inputs.push_back(make_input(model.imported, static_cast<std::uint64_t>(line.get<std::int64_t>("seed")), line.has("input-dir") ? line.get<std::string>("input-dir") : "", i));
      bytes.push_back(inputs.back().bytes);
    }
    const auto program = tools::load_image(compiled.image);
    sim::execution_options execution;
    execution.provenance = batch > 1;  // that no two inputs mix, even where no output shows it
    const auto executed = tools::execute_batch(program, bytes, execution);
    comparison all;
    for (std::size_t n = 0; n < inputs.size(); ++n) {
      const auto expected = opinion ? opinion->evaluate(file, model.imported, inputs[n].values) : model::evaluate(model.imported, inputs[n].values);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto& sizes = model.imported.at(model.imported.outputs[i]).sizes;
        all.add(model::compare(executed_value(executed.outputs.at(n).at(i), sizes), expected[i]));
      }
    }
    r.absolute = all.absolute;
    r.relative = all.relative();
    if (const auto fault = executed.diagnosis.fault(); !fault.empty()) r.reason = fault;
    else if (all.passes(tolerance)) r.verdict = "PASS";
    else r.reason = all.finite ? fmt::format("the error exceeds {:g} of the largest output", tolerance) : "an output is not finite where the reference is";
    if (const auto schedules = schedules_of(line); schedules.random > 0) {
      const auto tried = tools::try_schedules(program, bytes, executed.outputs, schedules.random, schedules.most);
      r.trials = fmt::format("schedules: {} of {} tried, {} loads held back, {} went wrong", tried.trials, tried.possible, tried.held_reads, tried.failures.size());
      if (!tried.failures.empty()) {
        r.verdict = "FAIL";
        if (r.reason.empty()) r.reason = "outputs depend on the schedule";
        for (std::size_t i = 0; i < std::min<std::size_t>(tried.failures.size(), 20); ++i) r.reason += "\n      " + tried.failures[i];
      }
    }
    if (line.has("layers")) r.layers = compare_layers(model, chip, options, inputs.front(), tolerance, line.verbosity() > 0);
  } catch (const error& e) {
    if (e.code() == error_code::unsupported) r.verdict = "UNSUPPORTED";
    if (e.code() == error_code::usage) throw;
    r.reason = printable(e.what());
    for (const auto& detail : e.details()) r.reason += "\n      " + printable(detail);
    if (e.details().empty() && !e.place().empty()) r.reason += " (" + printable(e.place()) + ")";
  }
  r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return r;
}

int run(const tools::command_line& line) {
  tools::compile_options options;
  for (const char* name : {"core-count", "crossbar-size", "crossbar-count", "pipeline", "batch-size"})
    if (line.has(name) && line.get<std::int64_t>(name) <= 0) throw tools::usage_error(std::string("--") + name + " must be positive");
  const auto flag = [&](const char* name) { return line.has(name) ? std::optional(line.get<std::int64_t>(name)) : std::nullopt; };
  options.flags = {flag("core-count"), flag("crossbar-count"), flag("crossbar-size")};
  if (line.has("pim-target-config")) options.target_configuration = line.get<std::string>("pim-target-config");
  options.element_bits = line.get<std::int64_t>("element-bits");
  options.effort = tools::checked_effort(line.get<std::int64_t>("effort"));
  if (line.given("pipeline")) options.pipeline = line.get<std::int64_t>("pipeline");
  options.channels = tools::parse_channels(line.get<std::string>("pipeline-channels"));
  options.restart = tools::parse_restart(line.get<std::string>("pipeline-restart"));
  options.goal = tools::parse_objective(line.get<std::string>("objective"));
  if (options.goal == tools::objective::energy && options.target_configuration.empty())
    throw tools::usage_error("--objective=energy needs --pim-target-config: what instructions cost is said there");
  if (!(line.get<double>("sim-time") > 0)) throw tools::usage_error("--sim-time must be positive");
  options.spatial_planning = !line.has("pim-disable-spatial-planning");
  options.lowering.convolution = tools::conv_lowering(line);
  options.lowering.softmax = tools::parse_softmax(line.get<std::string>("softmax"));
  const auto tolerance = line.get<double>("tolerance");
  if (!std::isfinite(tolerance) || tolerance < 0) throw tools::usage_error("--tolerance must be a finite number that is not negative");
  const auto& reference = line.get<std::string>("reference");
  if (reference != "evaluator" && reference != "onnxruntime") throw tools::usage_error("--reference=" + reference + ": choose one of evaluator, onnxruntime");
  if (line.has("onnxruntime") && reference != "onnxruntime") throw tools::usage_error("--onnxruntime has no meaning without --reference=onnxruntime");
  static_cast<void>(schedules_of(line));
  static_cast<void>(tools::make_target(options));  // usage errors before any work
  const auto shapes = tools::shapes_of(line);
  second_opinion opinion;
  if (reference == "onnxruntime") {
    try {
      opinion = std::make_shared<const tools::onnx_runtime>(line.has("onnxruntime") ? line.get<std::string>("onnxruntime") : "");
    } catch (const error& e) {
      std::cout << "SKIPPED: " << e.what() << " (" << e.place() << "); " << e.hint() << "\n";
      return tools::exit_success;
    }
    if (tools::shows_progress(line)) std::cerr << "raptor-validate: ONNX Runtime " << opinion->version() << "\n";
  }

  const auto& files = line.get<std::vector<std::string>>("models");
  std::size_t width = 5;
  for (const auto& f : files) width = std::max(width, std::filesystem::path(f).stem().string().size());
  std::cout << fmt::format("{:<{}}  {:<11}  {:>12}  {:>12}  {:>8}\n", "model", width, "verdict", "max abs err", "max rel err", "seconds");
  const bool timed = !options.target_configuration.empty();
  if (timed) std::cout << fmt::format("{:{}}  {:>11}  {:>12}  {:>12}  {:>9}  {:>6}  {:<14}  most used\n", "", width, "", "latency ms", "energy mJ", "bound ms", "gap", "binds");
  std::size_t passed = 0, failed = 0, unsupported = 0;
  for (const auto& file : files) {
    if (tools::shows_progress(line)) std::cerr << "raptor-validate: " << file << "\n";
    const auto r = validate(line, options, shapes, file, opinion);
    std::cout << fmt::format("{:<{}}  {:<11}  {:>12.3g}  {:>12.3g}  {:>8.2f}\n", r.model, width, r.verdict, r.absolute, r.relative, r.seconds);
    if (r.time && r.time->skipped.empty())
      std::cout << fmt::format("{:{}}  {:>11}  {:>12.6g}  {:>12.6g}  {:>9.4g}  {:>6}  {:<14}  {}\n", "", width, fmt::format("{} bits", options.element_bits), r.time->latency_ms,
                               r.time->energy_pj * 1e-9, 1e-9 * static_cast<double>(r.bounds.largest().least), r.gap(), r.bounds.largest().resource, r.time->binding);
    if (r.time && r.time->samples_per_second > 0) std::cout << fmt::format("{:{}}  {:>11}  {:>12.6g}  samples/s\n", "", width, "stream", r.time->samples_per_second);
    if (r.time && !r.time->skipped.empty()) std::cout << "      not timed: " << r.time->skipped << "\n";
    if (!r.reason.empty()) std::cout << "      " << r.reason << "\n";
    if (!r.trials.empty()) std::cout << "      " << r.trials << "\n";
    if (!r.layers.empty()) std::cout << "      " << printable(r.layers) << "\n";
    std::cout.flush();
    (r.verdict == "PASS" ? passed : r.verdict == "FAIL" ? failed : unsupported) += 1;
  }
  std::cout << passed << " PASS, " << failed << " FAIL, " << unsupported << " UNSUPPORTED, 0 SKIP\n";
  return failed == 0 ? tools::exit_success : tools::exit_failure;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_tool("raptor-validate", [&] {
    tools::command_line line("raptor-validate", "MODEL.onnx... --core-count=N --crossbar-count=N --crossbar-size=N [options]",
                             "Compiles, executes and compares with the reference evaluator; one row a model.");
    line.add_positional("models", value<std::vector<std::string>>(), -1);
    tools::po::options_description target("Target");
    target.add_options()("core-count", value<std::int64_t>(), "cores on the chip")("crossbar-size", value<std::int64_t>(), "rows and columns of one crossbar")(
        "crossbar-count", value<std::int64_t>(), "crossbars in each core")("pim-target-config", value<std::string>(), "hardware configuration in pimsim-nn's JSON format; programs are timed too")(
        "element-bits", value<std::int64_t>()->default_value(32), "32, 16 or 8: narrow programs are timed, and proven by executing their 32-bit twins");
    line.add(target);
    tools::po::options_description planning("Planning");
    planning.add_options()("shape", value<std::vector<std::string>>()->composing(), "NAME=1x3x224x224: shape of a graph input")(
        "pim-disable-spatial-planning", "take the first, dense layout for every operation")("pim-conv-lowering", value<std::string>()->default_value("auto"),
                                                                                            "convolution strategy")(
        "softmax", value<std::string>()->default_value("vsoftmax"), "vsoftmax (extension instruction) or standard (instructions that pimsim-nn can time)")(
        "effort", value<std::int64_t>()->default_value(1), "0 to 3: how many copies and lowerings are tried")(
        "pipeline", value<std::int64_t>()->default_value(1), "stages that work on different inputs at the same time. Not given: 1, but --objective=throughput tries several")(
        "pipeline-channels", value<std::string>()->default_value("auto"), "auto, rendezvous or memory: how data goes from stage to stage")(
        "pipeline-restart", value<std::string>()->default_value("all-cores"), "all-cores or input-readers")(
        "objective", value<std::string>()->default_value("latency"), "latency, throughput or energy");
    line.add(planning);
    tools::po::options_description comparison("Comparison");
    comparison.add_options()("input-dir", value<std::string>(), "directory with input_0.bin ...: the raw bytes of all inputs (default: seeded random)")(
        "batch-size", value<std::int64_t>(), "inputs that the program executes without a pause between them; every output is compared, and no result may depend on two of them (default: 4 for a stream, else 1)")(
        "schedules", value<std::string>(),
        "N, N,M or N,all: also execute the batch under N random schedules of the cores, and with up to M (20) of its cores, waits, stores and loads late, each by itself")(
        "sim-time", value<double>()->default_value(100), "ms that a stream is timed for")(
        "tolerance", value<double>()->default_value(1e-4), "largest error that passes, as a part of the largest output")(
        "layers", "also compare every tensor that survives to the program, and name the first operator that is wrong; -v: one line a tensor")(
        "reference", value<std::string>()->default_value("evaluator"), "evaluator (built in) or onnxruntime: what the outputs are compared with")(
        "onnxruntime", value<std::string>(), "library of ONNX Runtime (default: RAPTOR_ONNXRUNTIME, else libonnxruntime.so.1)");
    line.add(comparison);
    if (!line.parse(argc, argv)) return tools::exit_success;
    if (!line.has("models")) throw tools::usage_error("no model given");
    return run(line);
  });
}
