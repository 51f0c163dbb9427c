// Speed of the functional executor on a synthetic program that has the instruction mix of a compiled ResNet-18 at 224 x 224: a chain of
// cores, each of which receives a patch for every position, gathers it, multiplies it by several array groups, adds the
// partial sums, activates and sends the result on.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "raptor/isa/build.hpp"
#include "raptor/sim/executor.hpp"

namespace {

namespace sim = raptor::sim;
namespace build = raptor::isa::build;
using raptor::isa::instruction;

constexpr std::int32_t rows = 128;
constexpr std::int32_t columns = 128;

/// `cores` in a chain, `positions` patches, `tiles` array groups of one crossbar each a core.
sim::loaded_program make_chain(std::int32_t cores, std::int32_t positions, std::int32_t tiles) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> values(-0.05f, 0.05f);
  sim::loaded_program program;
  const std::int32_t row_bytes = 4 * rows;
  program.global_memory.resize(static_cast<std::size_t>(2 * row_bytes));
  program.inputs = {{"x", 0, row_bytes, {rows}}};
  program.outputs = {{"y", row_bytes, row_bytes, {columns}}};
  for (std::int32_t c = 0; c < cores; ++c) {
    sim::core_program core;
    for (std::int32_t g = 0; g < tiles; ++g) {
      std::vector<float> weights(static_cast<std::size_t>(rows * columns));
      for (auto& w : weights) w = values(random);
      core.groups.push_back(sim::make_group(rows, columns, weights));
    }
    auto& s = core.stream;
    const std::int32_t patch = row_bytes, partial = patch + tiles * row_bytes, sum = partial + row_bytes;
    s.push_back(build::setbw(32, 32));
    s.push_back(build::sldi(0, 0));
    s.push_back(build::sldi(7, 0));
    s.push_back(build::lldi(0, 0, sum + row_bytes));
    for (std::int32_t p = 0; p < positions; ++p) {
      s.push_back(build::sldi(1, 0));
      s.push_back(c == 0 ? build::ld(1, 7, row_bytes) : build::recv(1, c - 1, row_bytes));
      s.push_back(build::sldi(5, sum));
      for (std::int32_t g = 0; g < tiles; ++g) {
        for (std::int32_t piece = 0; piece < 4; ++piece) {
          s.push_back(build::sldi(2, patch + g * row_bytes + piece * row_bytes / 4));
          s.push_back(build::lmv(2, 1, row_bytes / 4));
        }
        s.push_back(build::sldi(3, patch + g * row_bytes));
        s.push_back(build::sldi(4, g == 0 ? sum : partial));
        s.push_back(build::mvmul(4, 3, g));
        if (g != 0) s.push_back(build::vvadd(5, 5, 4, columns));
      }
      s.push_back(build::vrelu(5, 5, columns));
      s.push_back(build::sldi(8, row_bytes));
      s.push_back(c + 1 == cores ? build::st(8, 5, row_bytes) : build::send(5, c + 1, row_bytes));
    }
    program.cores.push_back(std::move(core));
  }
  return program;
}

/// What the executor does beside: `plain` is the baseline of the others.
enum class observation { plain, randomized, provenance, provenance_trace };

void execute_chain(benchmark::State& state, observation observed) {
  sim::execution_options options;
  std::uint64_t characters = 0;
  if (observed == observation::randomized) options.schedule.policy = sim::schedule_policy::randomized;
  options.provenance = observed == observation::provenance;
  if (observed == observation::provenance_trace) options.provenance_trace = [&](std::string_view line) { characters += line.size(); };
  const auto program = make_chain(static_cast<std::int32_t>(state.range(0)), static_cast<std::int32_t>(state.range(1)), 5);
  const std::vector<std::byte> input(static_cast<std::size_t>(4 * rows));
  std::uint64_t instructions = 0, products = 0;
  for (auto step : state) {
    static_cast<void>(step);
    const auto result = sim::execute(program, input, options);
    instructions = result.instructions();
    products = 0;
    for (const auto& core : result.cores) products += core.multiply_accumulates;
    benchmark::DoNotOptimize(result.global_memory.data());
  }
  state.counters["instructions"] = static_cast<double>(instructions);
  state.counters["macs"] = static_cast<double>(products);
  state.counters["instructions/s"] = benchmark::Counter(static_cast<double>(instructions) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(execute_chain, plain, observation::plain)->Args({64, 1400})->Args({4, 1400})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(execute_chain, randomized, observation::randomized)->Args({4, 1400})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(execute_chain, provenance, observation::provenance)->Args({4, 1400})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(execute_chain, provenance_trace, observation::provenance_trace)->Args({4, 1400})->Unit(benchmark::kMillisecond);

/// The same as one batch: streams that restart, outputs that are recorded.
void execute_chain_batch(benchmark::State& state) {
  const auto program = make_chain(static_cast<std::int32_t>(state.range(0)), static_cast<std::int32_t>(state.range(1)), 5);
  const std::vector<std::vector<std::byte>> inputs(static_cast<std::size_t>(state.range(2)), std::vector<std::byte>(static_cast<std::size_t>(4 * rows)));
  for (auto step : state) {
    static_cast<void>(step);
    const auto result = sim::execute_batch(program, inputs);
    benchmark::DoNotOptimize(result.outputs.data());
  }
}
BENCHMARK(execute_chain_batch)->Args({4, 350, 4})->Unit(benchmark::kMillisecond);

void multiply_crossbar(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> values(-1.0f, 1.0f);
  std::vector<float> weights(size * size), in(size), out(size);
  for (auto& w : weights) w = values(random);
  for (auto& x : in) x = values(random);
  const sim::crossbar_matrix matrix(size, size, weights);
  for (auto step : state) {
    static_cast<void>(step);
    matrix.multiply(in.data(), out.data(), sim::all_finite(in.data(), size));
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(size * size));
}
BENCHMARK(multiply_crossbar)->Arg(32)->Arg(128)->Arg(512);

}  // namespace

BENCHMARK_MAIN();
