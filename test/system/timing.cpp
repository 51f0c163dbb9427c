// Compiled networks on the timing model: exact figures, which change only when the compiler or the model does.
#include "support.hpp"

#include <iostream>

#include "../timing/cross_core.hpp"
#include "raptor/sim/timing_hardware.hpp"
#include "raptor/sim/timing_input.hpp"
#include "raptor/sim/timing_model/chip.hpp"

using namespace raptor;
using namespace system_test;

namespace {

sim::timing::timed_program timed(const memory::image& image) {
  const auto built = emit::build(image);
  sim::timing::timed_program program;
  for (std::size_t c = 0; c < built.streams.size(); ++c) {
    sim::timing::timed_core core;
    core.id = static_cast<std::int64_t>(c);
    std::vector<sim::timing::timed_instruction> list;
    for (const auto& i : built.streams[c]) list.push_back(sim::timing::from_record(i));
    core.stream = sim::timing::timed_stream(list);
    for (const auto& g : built.groups[c]) core.groups.push_back(g.crossbars);
    sim::timing::input_parts::check_core(core);
    program.cores.push_back(std::move(core));
  }
  return program;
}

}  // namespace

TEST_CASE("time and energy of compiled networks on the 144-core chip") {
  const auto file = std::filesystem::path(RAPTOR_SOURCE_DIR) / ".." / "shared" / "targets" / "p144.json";
  if (!std::filesystem::exists(file)) {
    std::cout << "SKIPPED: the folder shared/targets is absent\n";
    return;
  }
  auto hardware = sim::timing::read_hardware(file);
  sim::timing::read_network(hardware, file.parent_path());
  struct expectation {
    const char* network;
    std::int64_t size;
    double latency_ms, energy_pj;
  };
  for (const auto& e : {expectation{"tiny", 0, 0.159688, 49042535.439999998}, expectation{"lenet5", 0, 1.4447610000000002, 332692867.72000003}, expectation{"mobilenetv2", 64, 68.799848000000011, 17722747712.959999}}) {
    const std::string network = e.network;
    CAPTURE(network);
    tools::compile_options options;
    options.target_configuration = file;
    const auto result = sim::timing::chip(timed(compile(load_network(e.network, e.size), options).image), hardware).run();
    CHECK(result.latency_ms == doctest::Approx(e.latency_ms).epsilon(1e-12));
    CHECK(result.energy_pj == doctest::Approx(e.energy_pj).epsilon(1e-12));
  }
}

TEST_CASE("functional and timing simulation of compiled networks agree on the order of all cross-core events") {
  const auto file = std::filesystem::path(RAPTOR_SOURCE_DIR) / ".." / "shared" / "targets" / "p144.json";
  if (!std::filesystem::exists(file)) {
    std::cout << "SKIPPED: the folder shared/targets is absent\n";
    return;
  }
  auto hardware = sim::timing::read_hardware(file);
  sim::timing::read_network(hardware, file.parent_path());
  for (const char* name : {"tiny", "demo", "lenet5"}) {
    const std::string network = name;
    CAPTURE(network);
    tools::compile_options options;
    options.target_configuration = file;
    const auto program = tools::load_image(compile(load_network(name, 0), options).image);
    const std::vector<std::byte> input(static_cast<std::size_t>(sim::total_size(program.inputs)));
    const auto functional = cross_core::functional_events(program, input);
    CHECK(functional.pairs.size() > 10);
    CHECK(functional == cross_core::timed_events(program, hardware));
  }
}
