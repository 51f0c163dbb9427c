// Lower bounds beside what the exact timing model reaches: on several networks, strategies and chips none is above it.
#include "support.hpp"

#include <tuple>

#include "raptor/report/bounds.hpp"
#include "raptor/sim/timing_from_emitted.hpp"
#include "raptor/sim/timing_model/chip.hpp"
#include "tools/report.hpp"

using namespace raptor;
using namespace system_test;
namespace timing = sim::timing;

namespace {

/// A chip of cores on a row, which describes its memories.
target::configuration hardware_of(std::int64_t cores, std::int64_t crossbars, std::int64_t size, std::int64_t in_flight) {
  target::configuration c = target::pim(cores, crossbars, size).parameters();
  c.chip_config.core_config.rob_size = in_flight;
  c.chip_config.core_config.matrix_config.cell_precision = 8;
  auto& network = c.chip_config.network_config;
  network.layout = {1, cores};
  for (std::int64_t i = 0; i < cores; ++i) {
    for (std::int64_t j = 0; j < cores; ++j) network.table.latency[i][j] = static_cast<double>(i == j ? 0 : 2 + 2 * std::abs(i - j));
    network.table.latency[i][c.chip_config.global_memory_switch_id] = 15;
  }
  network.table.energy = network.table.latency;
  return c;
}

const report::bound& find(const report::bounds& b, const std::string& resource) {
  for (const auto& x : b.all)
    if (x.resource == resource) return x;
  FAIL("no bound " << resource);
  return b.all.front();
}

/// Compiles, times and compares; false where the options do not apply to the model.
bool check_bounds(const tools::loaded_model& m, const target::configuration& hardware, tools::compile_options options, std::int64_t bits) {
  const target::pim chip(hardware, bits);
  options.element_bits = bits;
  options.lowering.softmax = lowering::softmax_lowering::standard;
  compilation c;
  try {
    c = tools::compile_model(m.canonical, chip, options);
  } catch (const error& e) {
    if (e.code() != error_code::unsupported) throw;
    return false;
  }
  const auto b = tools::bounds_of(c, m.canonical, chip);
  const auto program = timing::timed_from_emitted(c.image, timing::emitted_streams(c.image));
  auto settings = hardware;
  settings.sim_config.sim_mode = 1;
  const auto reached = timing::chip(program, settings).run().latency_ms * 1e9;
  REQUIRE(reached > 0);
  for (const auto& x : b.all) {
    CAPTURE(x.resource);
    CHECK(x.least >= 0);
    CHECK(static_cast<double>(x.least) <= reached);
  }
  // The narrower the choice, the higher the bound.
  CHECK(find(b, "dense_matrix").least <= find(b, "matrix").least);
  CHECK(find(b, "best_matrix").least <= find(b, "matrix").least);
  if (hardware.chip_config.core_config.rob_size == 1) {
    CHECK(find(b, "best_matrix").least <= find(b, "best_work").least);
    CHECK(find(b, "best_work").least <= find(b, "work").least);
    CHECK(find(b, "work").least <= find(b, "busiest_core").least);
    CHECK(find(b, "work").least > 0);
  }
  CHECK(b.largest().least <= b.in_placement().least);
  CHECK(b.of_interval().least <= b.largest().least);

  // Inputs one after another: what one input asks of a resource lies between any two of them.
  settings.sim_config.sim_mode = 0;
  settings.sim_config.sim_time = 10 * reached * 1e-9;
  const auto steady = timing::chip(program, settings).run();
  if (steady.samples > 0 && steady.blocked.empty())
    CHECK(static_cast<double>(b.of_interval().least) * static_cast<double>(steady.samples) <= settings.sim_config.sim_time * 1e9);
  return true;
}

/// x → convolution → relu → convolution → y.
tools::loaded_model two_convolutions(std::int64_t channels, std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t groups) {
  model::graph g;
  g.name = "two convolutions";
  using model::element_type;
  const auto constant_of = [](std::int64_t count) { return std::make_shared<const model::constant>(model::constant{numbers(count, 7)}); };
  const std::int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1, last = (out + 2 * pad - kernel) / stride + 1;
  const auto x = g.add_tensor({"x", element_type::f32, {1, channels, size, size}, nullptr});
  const auto convolution = [&](model::tensor_id from, const std::string& name, std::int64_t to_size) {
    const auto w = g.add_tensor({name + ".w", element_type::f32, {channels, channels / groups, kernel, kernel}, constant_of(channels * channels / groups * kernel * kernel)});
    const auto y = g.add_tensor({name + ".y", element_type::f32, {1, channels, to_size, to_size}, nullptr});
    g.add_node({model::convolution{{kernel, kernel}, {stride, stride}, {1, 1}, {pad, pad}, {pad, pad}, groups}, {from, w}, {y}, {name, "Conv", "", 13}});
    return y;
  };
  const auto a = convolution(x, "first", out);
  const auto r = g.add_tensor({"r", element_type::f32, {1, channels, out, out}, nullptr});
  g.add_node({model::unary{model::unary_kind::relu, 0, 0}, {a}, {r}, {"relu", "Relu", "", 13}});
  g.inputs = {x}, g.outputs = {convolution(r, "second", last)};
  return {g, g};
}

}  // namespace

TEST_CASE("no bound is above what networks reach") {
  struct one {
    const char* network;
    std::int64_t size, cores, crossbars, crossbar_size, in_flight, bits;
  };
  for (const auto& n : {one{"tiny", 0, 2, 32, 64, 1, 32}, one{"demo", 0, 6, 64, 64, 1, 8}, one{"lenet5", 0, 16, 64, 128, 1, 8}, one{"lenet5", 0, 4, 256, 64, 4, 16},
                        one{"mobilenetv2", 32, 64, 128, 128, 1, 8}, one{"squeezenet1.1", 32, 24, 128, 128, 1, 16}, one{"squeezenet1.1", 32, 24, 128, 128, 8, 8}}) {
    const std::string network = n.network;
    CAPTURE(network);
    CAPTURE(n.cores);
    CAPTURE(n.in_flight);
    tools::compile_options options;
    options.effort = 0;
    CHECK(check_bounds(load_network(network, n.size), hardware_of(n.cores, n.crossbars, n.crossbar_size, n.in_flight), options, n.bits));
  }
}

TEST_CASE("no bound is above what any strategy reaches") {
  std::map<std::string, int> compiled;
  for (const std::string strategy : {"auto", "legacy", "depthwise", "depthwise-vector", "packed-im2col", "streamed-patch", "streamed-packed", "output-channel-tiled", "input-k-tiled", "tiled-2d",
                                     "toeplitz", "kernel-in-columns"}) {
    CAPTURE(strategy);
    tools::compile_options options;
    options.effort = 0;
    options.lowering.convolution = strategy;
    for (const auto& m : {two_convolutions(4, 12, 3, 1, 1), two_convolutions(8, 15, 3, 2, 8), two_convolutions(40, 7, 3, 1, 1), two_convolutions(40, 9, 1, 1, 1), two_convolutions(4, 9, 1, 1, 1)})
      for (const auto& [cores, in_flight, size, bits] : {std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>{1, 1, 32, 8}, {5, 1, 64, 32}, {5, 3, 64, 32}})
        compiled[strategy] += check_bounds(m, hardware_of(cores, 256 / cores, size, in_flight), options, bits) ? 1 : 0;
    CHECK(compiled[strategy] > 0);
  }
}
