// Compiled networks on the timing model: exact figures, which change only when the compiler or the model does.
#include "support.hpp"

#include <iostream>
#include <limits>
#include <optional>

#include "../timing/cross_core.hpp"
#include "raptor/emit/artifact.hpp"
#include "raptor/sim/timing_from_emitted.hpp"
#include "raptor/sim/timing_hardware.hpp"
#include "raptor/sim/timing_input.hpp"
#include "raptor/sim/timing_model/chip.hpp"

using namespace raptor;
using namespace system_test;
namespace timing = sim::timing;

namespace {

/// A chip of shared/targets, with its network; none, and a line that says so, where the folder is absent.
std::optional<target::configuration> chip_of(tools::compile_options& options, const char* name) {
  const auto file = std::filesystem::path(RAPTOR_SOURCE_DIR) / ".." / "shared" / "targets" / name;
  if (!std::filesystem::exists(file)) {
    std::cout << "SKIPPED: the folder shared/targets is absent\n";
    return std::nullopt;
  }
  options.target_configuration = file;
  auto hardware = timing::read_hardware(file);
  timing::read_network(hardware, file.parent_path());
  return hardware;
}
/// The one of 144 cores.
std::optional<target::configuration> p144(tools::compile_options& options) { return chip_of(options, "p144.json"); }

}  // namespace

TEST_CASE("whole networks stay within their limits of time and energy") {
  struct limit {
    const char *chip, *network;
    double latency_ms, energy_pj;
  };
  constexpr double any = std::numeric_limits<double>::max();
  for (const auto& most : {limit{"p144.json", "squeezenet1.1", 1.5, 4.2e9}, limit{"p144.json", "resnet18", 3.0, 13.5e9}, limit{"p144.json", "mobilenetv2", 5.0, 10.5e9},
                           limit{"p144.json", "shufflenet", 3.2, 7.0e9}, limit{"p144.json", "googlenet", 3.0, 12.5e9}, limit{"p64.json", "squeezenet1.1", 4.5, any}, limit{"p64.json", "mobilenetv2", 20, any}}) {
    const std::string chip = most.chip, network = most.network;
    CAPTURE(chip);
    CAPTURE(network);
    tools::compile_options options;
    const auto hardware = chip_of(options, most.chip);
    if (!hardware) return;
    options.element_bits = 8;
    options.lowering.softmax = lowering::softmax_lowering::standard;
    const auto image = compile(load_network(most.network, 224), options).image;
    const auto program = timing::timed_from_emitted(image, timing::emitted_streams(image));
    const auto result = timing::chip(program, *hardware).run();
    CHECK(result.latency_ms <= most.latency_ms);
    CHECK(result.energy_pj <= most.energy_pj);
    CHECK(result.latency_ms > 0);
  }
}

TEST_CASE("time and energy of compiled networks on the 144-core chip") {
  tools::compile_options options;
  const auto hardware = p144(options);
  if (!hardware) return;
  struct expectation {
    const char* network;
    std::int64_t size, bits;
    double latency_ms, energy_pj;
    timing::resource binding;
  };
  using enum timing::resource;
  // Each as pimsim-nn says.
  for (const auto& e : {expectation{"tiny", 0, 32, 0.048805, 32994952.439999994, local_memory},
                        expectation{"resnet18", 64, 8, 0.32302100000000006, 1064232734.6000005, global_memory},
                        expectation{"resnet34", 64, 8, 0.7341070000000001, 2066341262.6000001, global_memory},
                        expectation{"mobilenetv2", 64, 16, 1.3724290000000001, 1891265580.2800002, local_memory}}) {
    const std::string network = e.network;
    CAPTURE(network);
    options.element_bits = e.bits;
    const auto image = compile(load_network(e.network, e.size), options).image;
    const auto program = timing::timed_from_emitted(image, timing::emitted_streams(image));
    const auto result = timing::chip(program, *hardware).run();
    CHECK(result.latency_ms == doctest::Approx(e.latency_ms).epsilon(1e-12));
    CHECK(result.energy_pj == doctest::Approx(e.energy_pj).epsilon(1e-12));
    CHECK(result.binding == e.binding);
    CHECK(result.use[static_cast<std::size_t>(e.binding)].busiest < 1);
  }
}

TEST_CASE("a program with an instruction that pimsim-nn does not support is not timed") {
  const temporary_folder folder;
  const auto image = compile(load_network("lenet5", 0), chip(16, 64, 128)).image;
  emit::write_artifact(image, folder / "out");
  target::configuration hardware;
  hardware.chip_config.core_cnt = 16;
  hardware.chip_config.core_config.matrix_config.xbar_array_count = 64;
  try {
    static_cast<void>(timing::load_timed(folder / "out", hardware));
    FAIL("it was timed");
  } catch (const error& e) {
    CHECK(e.code() == error_code::unsupported);
    CHECK(std::string(e.what()).find("pimsim-nn does not support opcode vsoftmax") != std::string::npos);
  }
}

TEST_CASE("functional and timing simulation of compiled networks agree on the order of all cross-core events") {
  tools::compile_options options;
  const auto hardware = p144(options);
  if (!hardware) return;
  for (const char* name : {"tiny", "demo", "lenet5"}) {
    const std::string network = name;
    CAPTURE(network);
    const auto program = tools::load_image(compile(load_network(name, 0), options).image);
    const std::vector<std::byte> input(static_cast<std::size_t>(sim::total_size(program.inputs)));
    const auto functional = cross_core::functional_events(program, input);
    CHECK(functional.pairs.size() > 10);
    CHECK(functional == cross_core::timed_events(program, *hardware));
  }
}
