// raptor-sim: executes an artifact directory. Options: CLI.md, "raptor-sim".

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common.hpp"
#include "diagnosis.hpp"
#include "timing.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/sim/artifact.hpp"
#include "raptor/sim/executor.hpp"

namespace {

namespace tools = raptor::tools;
namespace po = raptor::tools::po;
namespace sim = raptor::sim;
using raptor::error;
using raptor::error_code;
using tools::usage_error;

void add_options(tools::command_line& line) {
  line.add_positional("artifacts", po::value<std::string>());
  po::options_description functional("Functional execution");
  functional.add_options()
      ("output,o", po::value<std::string>()->value_name("OUT"), "file for the outputs, raw bytes in graph order (of the last input)")
      ("mode", po::value<std::string>()->value_name("latency|throughput")->default_value("latency"), "one input, or a stream of inputs")
      ("batch-size", po::value<std::int64_t>()->value_name("N"), "inputs in throughput mode; latency mode has 1")
      ("input-dir", po::value<std::string>()->value_name("DIR"), "folder of input_0.bin, input_1.bin ...: the raw bytes of all inputs in order")
      ("batch-output-dir", po::value<std::string>()->value_name("DIR"), "folder for the outputs of every input: output_000000.bin ...")
      ("dump", po::value<std::string>()->value_name("ADDR,SIZE[,...]"), "write these ranges of global memory instead of the outputs")
      ("config", po::value<std::string>()->value_name("FILE"), "instead of ARTIFACTS/config.json")
      ("memory", po::value<std::string>()->value_name("FILE"), "instead of ARTIFACTS/memory.bin")
      ("cores", po::value<std::string>()->value_name("DIR"), "folder of the streams and weights instead of ARTIFACTS")
      ("check-global-memory", po::bool_switch(), "report reads of global memory that nothing has written")
      ("trace-instructions", po::value<std::string>()->value_name("FILE"), "write every executed instruction with its operands")
      ("json", po::bool_switch(), "print the result as one JSON object");
  line.add(functional);
  tools::add_diagnosis_options(line);
  po::options_description timing("Timing and energy");
  timing.add_options()
      ("timing", po::bool_switch(), "time and energy instead of outputs; ARTIFACTS may be a pimsim-nn program, --mode as in the hardware file unless given")
      ("hardware", po::value<std::string>()->value_name("HW.json"), "hardware configuration")
      ("sim-time", po::value<double>()->value_name("MS"), "simulated time in throughput mode")
      ("instruction-mode", po::value<std::string>()->value_name("auto|single|directory")->default_value("auto"), "ARTIFACTS is one JSON file, or a directory with a file for each core")
      ("trace", po::value<std::string>()->value_name("FILE"), "write a trace for Perfetto: every instruction on its unit's track, arrows from send to recv")
      ("profile", po::value<std::string>()->value_name("FILE.csv"), "write cycles, energy and bytes moved of each operator")
      ("energy-breakdown", po::bool_switch(), "energy by component, core and class of instruction");
  line.add(timing);
}

/// "ADDR,SIZE,ADDR,SIZE…" as regions named by their ranges.
std::vector<sim::tensor_region> parse_dump(const std::string& text) {
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    std::int64_t value = 0;
    const auto [next, failure] = std::from_chars(at, end, value);
    if (failure != std::errc{} || value < 0 || (next != end && *next != ',')) throw usage_error("--dump expects ADDR,SIZE[,ADDR,SIZE...], not '" + text + "'");
    numbers.push_back(value);
    if (next == end) break;
    at = next + 1;
  }
  if (numbers.size() % 2 != 0) throw usage_error("--dump has an address without a size: '" + text + "'");
  std::vector<sim::tensor_region> regions;
  for (std::size_t k = 0; k < numbers.size(); k += 2)
    regions.push_back({fmt::format("[{}, +{})", numbers[k], numbers[k + 1]), numbers[k], numbers[k + 1], {}, "bytes"});
  return regions;
}

void check_usage(const tools::command_line& line) {
  if (!line.has("artifacts")) throw usage_error("an artifact directory is required");
  const auto& mode = line.get<std::string>("mode");
  if (mode != "latency" && mode != "throughput") throw usage_error("--mode is latency or throughput, not '" + mode + "'");
  if (line.has("batch-size") && line.get<std::int64_t>("batch-size") < 1) throw usage_error("--batch-size must be positive");
  if (mode == "throughput" && !line.has("batch-size")) throw usage_error("--mode=throughput requires --batch-size");
  if (mode == "latency" && line.has("batch-size") && line.get<std::int64_t>("batch-size") != 1)
    throw usage_error("--mode=latency accepts only --batch-size=1");
  if (line.has("dump")) static_cast<void>(parse_dump(line.get<std::string>("dump")));
  static_cast<void>(tools::parse_schedule(line));
}

/// A text file that grows while the program runs. It keeps what was written before a failure: that is what a trace is for.
class line_writer {
 public:
  explicit line_writer(std::string path) : path_(std::move(path)), stream_(path_, std::ios::trunc) { check(); }
  void operator()(std::string_view line) {
    buffer_.append(line).push_back('\n');
    if (buffer_.size() >= 1 << 16) flush();
  }
  void flush() {
    stream_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    stream_.flush();
    buffer_.clear();
    check();
  }

 private:
  void check() const {
    if (!stream_) throw error(error_code::io, "the trace cannot be written", path_);
  }
  std::string path_;
  std::ofstream stream_;
  std::string buffer_;
};

/// What a run gives: one input in latency mode, a batch in throughput mode.
struct run_result {
  bool is_batch = false;
  std::vector<std::vector<sim::output_value>> outputs;  ///< [input]
  std::vector<sim::output_value> shown;                 ///< the last input's outputs, or the ranges of --dump
  std::vector<sim::core_statistics> cores;
  sim::diagnosis_summary diagnosis;
  bool follows_provenance = false, is_adversarial = false;
};

nlohmann::ordered_json json_report(const run_result& result) {
  nlohmann::ordered_json report{{"status", "ok"}, {"error", nullptr}, {"mode", result.is_batch ? 0 : 1}, {"batch_size", result.outputs.size()},
                                {"instructions", sim::total_instructions(result.cores)}};
  nlohmann::ordered_json counts = nlohmann::ordered_json::object();
  const auto totals = sim::total_counts(result.cores);
  for (std::size_t op = 0; op < totals.size(); ++op)
    if (totals[op] != 0) counts[std::string(raptor::isa::infos[op].mnemonic)] = totals[op];
  report["opcodes"] = counts;
  report["outputs"] = nlohmann::ordered_json::array();
  for (const auto& output : result.shown)
    report["outputs"].push_back({{"name", output.region.name}, {"address", output.region.address}, {"size", output.region.size}, {"shape", output.region.sizes}});
  report["cores"] = nlohmann::ordered_json::array();
  for (std::size_t c = 0; c < result.cores.size(); ++c)
    report["cores"].push_back({{"core", c}, {"instructions", result.cores[c].instructions}, {"local_memory", result.cores[c].local_memory},
                               {"multiply_accumulates", result.cores[c].multiply_accumulates}});
  if (result.follows_provenance)
    report["provenance"] = {{"mixes", result.diagnosis.mixes}, {"first_mix", result.diagnosis.mixes == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(result.diagnosis.first_mix)},
                            {"foreign_output_stores", result.diagnosis.foreign_output_stores}};
  if (result.is_adversarial) report["schedule"] = {{"held_reads", result.diagnosis.held_reads}, {"overtaken_reads", result.diagnosis.overtaken_reads}};
  return report;
}

void print_output(const sim::output_value& output) {
  std::cout << fmt::format("output {}: {} bytes", output.region.name, output.bytes.size());
  if (!output.region.sizes.empty()) std::cout << ", " << raptor::to_string(output.region.sizes);
  if (output.region.element_type == "float32" && output.bytes.size() % sizeof(float) == 0 && !output.bytes.empty()) {
    const auto values = output.values();
    const auto [least, largest] = std::minmax_element(values.begin(), values.end());
    std::cout << fmt::format(", {} ... {}; first", *least, *largest);
    for (std::size_t k = 0; k < std::min<std::size_t>(values.size(), 5); ++k) std::cout << fmt::format(" {}", values[k]);
  }
  std::cout << "\n";
}

void print_report(const run_result& result, double seconds, int verbosity) {
  std::size_t active = 0;
  std::uint64_t products = 0;
  for (const auto& core : result.cores) {
    if (core.instructions != 0) ++active;
    products += core.multiply_accumulates;
  }
  std::cout << fmt::format("executed {} instructions on {} of {} cores, {:.3f} G multiply-accumulates\n", sim::total_instructions(result.cores), active,
                           result.cores.size(), static_cast<double>(products) * 1e-9);
  if (result.is_batch) std::cout << fmt::format("a batch of {} inputs; outputs of the last one:\n", result.outputs.size());
  for (const auto& output : result.shown) print_output(output);
  if (result.follows_provenance) {
    std::cout << fmt::format("provenance: {} results depend on more than one input{}{}\n", result.diagnosis.mixes, result.diagnosis.mixes == 0 ? "" : ", the first at ",
                             result.diagnosis.first_mix);
    std::cout << fmt::format("provenance: {} stores into an output depend on another input than their own\n", result.diagnosis.foreign_output_stores);
  }
  if (result.is_adversarial)
    std::cout << fmt::format("schedule: the target was held back {} times, {} times until its writer had written again\n", result.diagnosis.held_reads,
                             result.diagnosis.overtaken_reads);
  if (verbosity > 0) {
    const auto totals = sim::total_counts(result.cores);
    for (std::size_t op = 0; op < totals.size(); ++op)
      if (totals[op] != 0) std::cout << fmt::format("  {:<9}{:>12}\n", raptor::isa::infos[op].mnemonic, totals[op]);
  }
  if (verbosity > 1)
    for (std::size_t c = 0; c < result.cores.size(); ++c)
      std::cout << fmt::format("  core {:>4}: {:>10} instructions, {:>10} bytes of local memory\n", c, result.cores[c].instructions, result.cores[c].local_memory);
  if (verbosity > 0) std::cerr << fmt::format("executed in {:.2f} s\n", seconds);
}

/// input_0.bin … of the folder, one a batch entry. Errors: usage without a folder, io, mismatch of a size, both with the file.
std::vector<std::vector<std::byte>> read_inputs(const tools::command_line& line, const sim::loaded_program& program, std::size_t count) {
  if (sim::total_size(program.inputs) == 0) return std::vector<std::vector<std::byte>>(count);
  if (!line.has("input-dir")) throw usage_error("the program has inputs: --input-dir is required");
  std::vector<std::vector<std::byte>> inputs;
  for (std::size_t n = 0; n < count; ++n) {
    const auto file = std::filesystem::path(line.get<std::string>("input-dir")) / fmt::format("input_{}.bin", n);
    inputs.push_back(sim::read_file(file));
    sim::check_input_size(program, inputs.back().size(), file.string());
  }
  return inputs;
}

run_result execute(const sim::loaded_program& program, const std::vector<std::vector<std::byte>>& inputs, bool is_batch, const std::vector<sim::tensor_region>& dump,
                   const sim::execution_options& options) {
  run_result result;
  result.is_batch = is_batch;
  result.follows_provenance = options.follows_provenance();
  result.is_adversarial = options.schedule.policy == sim::schedule_policy::adversarial;
  std::vector<std::byte> memory;
  if (is_batch) {
    auto done = sim::execute_batch(program, inputs, options);
    result.outputs = std::move(done.outputs), result.cores = std::move(done.cores), memory = std::move(done.global_memory);
    result.diagnosis = std::move(done.diagnosis);
  } else {
    auto done = sim::execute(program, inputs.front(), options);
    result.outputs.push_back(std::move(done.outputs)), result.cores = std::move(done.cores), memory = std::move(done.global_memory);
    result.diagnosis = std::move(done.diagnosis);
  }
  if (dump.empty()) result.shown = result.outputs.back();
  for (const auto& range : dump) result.shown.push_back({range, {memory.begin() + range.address, memory.begin() + range.address + range.size}});
  return result;
}

run_result simulate(const tools::command_line& line) {
  sim::artifact_paths paths;
  paths.directory = line.get<std::string>("artifacts");
  if (line.has("config")) paths.config = line.get<std::string>("config");
  if (line.has("memory")) paths.memory = line.get<std::string>("memory");
  if (line.has("cores")) paths.cores = line.get<std::string>("cores");
  const sim::loaded_program program = sim::load_artifact(paths);
  std::vector<sim::tensor_region> dump;
  if (line.has("dump")) dump = parse_dump(line.get<std::string>("dump"));
  sim::check_regions(program, dump, "range");

  const bool is_batch = line.get<std::string>("mode") == "throughput";
  const auto inputs = read_inputs(line, program, is_batch ? static_cast<std::size_t>(line.get<std::int64_t>("batch-size")) : 1);
  sim::execution_options options;
  options.check_global_memory = line.get<bool>("check-global-memory");
  options.schedule = tools::parse_schedule(line);

  std::optional<line_writer> trace, provenance;
  if (line.has("trace-instructions")) trace.emplace(line.get<std::string>("trace-instructions"));
  if (line.has("provenance-trace")) provenance.emplace(line.get<std::string>("provenance-trace"));
  if (trace) options.trace = [&trace](std::string_view text) { (*trace)(text); };
  if (provenance) options.provenance_trace = [&provenance](std::string_view text) { (*provenance)(text); };
  const auto flush = [&] {
    if (trace) trace->flush();
    if (provenance) provenance->flush();
  };
  try {
    auto result = execute(program, inputs, is_batch, dump, options);
    flush();
    return result;
  } catch (...) {
    flush();
    throw;
  }
}

/// -o and --batch-output-dir. Errors: io.
void write_outputs(const tools::command_line& line, const run_result& result) {
  if (line.has("output")) tools::write_file_atomically(line.get<std::string>("output"), sim::bytes_of(result.shown));
  if (!line.has("batch-output-dir")) return;
  const std::filesystem::path folder = line.get<std::string>("batch-output-dir");
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (!std::filesystem::is_directory(folder)) throw error(error_code::io, "the folder for the outputs cannot be made", folder.string());
  for (std::size_t n = 0; n < result.outputs.size(); ++n)
    tools::write_file_atomically(folder / fmt::format("output_{:06}.bin", n), sim::bytes_of(result.outputs[n]));
}

tools::timing_options timing_options_of(const tools::command_line& line) {
  if (!line.has("artifacts")) throw usage_error("no program given");
  if (!line.has("hardware")) throw usage_error("--timing needs --hardware=HW.json");
  for (const char* name : {"output", "batch-size", "input-dir", "batch-output-dir", "dump", "config", "memory", "cores", "trace-instructions"})
    if (line.given(name)) throw usage_error(std::string("--") + name + " has no meaning with --timing");
  for (const char* name : tools::diagnosis_options)
    if (line.given(name)) throw usage_error(std::string("--") + name + " has no meaning with --timing");
  tools::timing_options options;
  options.program = line.get<std::string>("artifacts"), options.hardware = line.get<std::string>("hardware");
  if (line.given("mode")) {
    options.mode = line.get<std::string>("mode");
    if (*options.mode != "latency" && *options.mode != "throughput") throw usage_error("--mode is latency or throughput, not '" + *options.mode + "'");
  }
  if (line.has("sim-time")) {
    options.sim_time_ms = line.get<double>("sim-time");
    if (!(*options.sim_time_ms > 0)) throw usage_error("--sim-time must be positive");
  }
  options.instruction_mode = line.get<std::string>("instruction-mode");
  if (line.has("trace")) options.trace = line.get<std::string>("trace");
  if (line.has("profile")) options.profile = line.get<std::string>("profile");
  options.energy_breakdown = line.get<bool>("energy-breakdown");
  options.json = line.get<bool>("json");
  return options;
}

int run(int argc, char** argv) {
  tools::command_line line("raptor-sim", "ARTIFACTS [-o OUT] [options]", "Executes the programs that raptor-compile writes.");
  add_options(line);
  if (!line.parse(argc, argv)) return tools::exit_success;
  const bool json = line.get<bool>("json");
  if (line.get<bool>("timing")) return tools::run_timing(timing_options_of(line));
  for (const char* name : {"hardware", "sim-time", "instruction-mode", "trace", "profile"})
    if (line.given(name)) throw usage_error(std::string("--") + name + " needs --timing");
  if (line.get<bool>("energy-breakdown")) throw usage_error("--energy-breakdown needs --timing");
  try {
    check_usage(line);
    const auto start = std::chrono::steady_clock::now();
    const auto result = simulate(line);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    write_outputs(line, result);
    if (json)
      std::cout << json_report(result).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
    else
      print_report(result, seconds, line.verbosity());
    return tools::exit_success;
  } catch (const error& e) {
    if (json && e.code() != error_code::usage) {
      const nlohmann::ordered_json report{{"status", e.code() == error_code::unsupported ? "unsupported" : "error"}, {"error", raptor::describe(e)},
                                          {"mode", line.get<std::string>("mode") == "throughput" ? 0 : 1}};
      std::cout << report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
    }
    throw;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_tool("raptor-sim", [&] { return run(argc, argv); });
}
