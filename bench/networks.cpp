// Whole networks: compilation and functional execution, with the reference evaluator as the baseline of the same run.
//
//     build/bench/bin/bench_networks --benchmark_filter=resnet18
//
// Counters: instructions, instructions a second (execute), and `reference_ratio`: the reference evaluator's time over the
// executor's, so that the figure does not depend on the machine.
#include <benchmark/benchmark.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "raptor/model/reference.hpp"
#include "raptor/onnx/zoo.hpp"
#include "tools/pipeline.hpp"

namespace {

using namespace raptor;

struct network {
  tools::loaded_model model;
  target::pim chip{144, 64, 128};
};

network load(const char* name, std::int64_t size) {
  const auto file = std::filesystem::temp_directory_path() / (std::string("raptor_bench_") + name + ".onnx");
  onnx_io::zoo_options options;
  options.size = size;
  std::ofstream(file, std::ios::binary) << onnx_io::build_network(name, options).SerializeAsString();
  network result{tools::load_model(file), target::pim{144, 64, 128}};
  std::filesystem::remove(file);
  return result;
}

void compile(benchmark::State& state, const char* name, std::int64_t size) {
  const auto n = load(name, size);
  for (auto _ : state) benchmark::DoNotOptimize(tools::compile_model(n.model.canonical, n.chip, {}));
}

void execute(benchmark::State& state, const char* name, std::int64_t size) {
  const auto n = load(name, size);
  const auto program = tools::load_image(tools::compile_model(n.model.canonical, n.chip, {}).image);
  const auto& input = n.model.imported.at(n.model.imported.inputs[0]);
  const std::vector<float> elements(static_cast<std::size_t>(element_count(input.sizes)), 0.5F);

  const auto begin = std::chrono::steady_clock::now();
  benchmark::DoNotOptimize(model::evaluate(n.model.imported, std::vector{model::make_value(input.sizes, elements)}));
  const double reference = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  std::uint64_t instructions = 0;
  double seconds = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    instructions = tools::execute_program(program, std::as_bytes(std::span(elements))).instructions();
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  state.counters["instructions"] = static_cast<double>(instructions);
  state.counters["instructions/s"] = benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["reference_ratio"] = reference * static_cast<double>(state.iterations()) / seconds;
}

BENCHMARK_CAPTURE(compile, resnet18_224, "resnet18", 224)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile, resnet50_224, "resnet50", 224)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile, mobilenetv2_224, "mobilenetv2", 224)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(execute, resnet18_224, "resnet18", 224)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(execute, squeezenet_224, "squeezenet1.1", 224)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(execute, mobilenetv2_224, "mobilenetv2", 224)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
