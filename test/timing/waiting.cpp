// A program that cannot finish says which cores wait for which.
#include "raptor/sim/timing_model/waiting.hpp"

#include "support.hpp"

using namespace raptor;
using namespace timing_test;
namespace build = isa::build;

namespace {

error failure(const std::vector<stream>& streams, const target::configuration& chip) {
  const auto p = program(streams);
  try {
    static_cast<void>(timing::chip(p, chip).run());
  } catch (const error& e) {
    return e;
  }
  FAIL("it finished");
  return error(error_code::internal, "");
}

}  // namespace

TEST_CASE("a deadlock names the cycle of waiting cores, their instructions and what each waits for") {
  const auto e = failure({{build::setbw(8, 8), build::send(0, 1, 16), build::recv(0, 2, 16)}, {build::send(0, 2, 16)}, {build::sldi(1, 4), build::send(0, 0, 16)}, {build::recv(0, 0, 4)}},
                         hardware(4));
  CHECK(e.code() == error_code::deadlock);
  CHECK(std::string(e.what()) ==
        "Latency simulation did not complete within 1.000000 ms; unfinished cores: core 0 (pc=3, max_pc=2, fetch_complete=true), core 1 (pc=1, max_pc=0, "
        "fetch_complete=true), core 2 (pc=2, max_pc=1, fetch_complete=true), core 3 (pc=1, max_pc=0, fetch_complete=true); deadlock: core 0 (instruction 1: send to "
        "core 1) -> core 1 (instruction 0: send to core 2) -> core 2 (instruction 1: send to core 0) -> core 0");
  REQUIRE(e.details().size() == 4);
  CHECK(e.details()[3] == "core 3, instruction 0: recv from core 0, which is at instruction 1: send to core 1");
}

TEST_CASE("waits that nobody ends, and cores that end without a unit's instruction") {
  const auto lonely = failure({{build::wait(5, 2), build::lldi(0, 0, 1)}, {build::sync(5, 0)}}, hardware(2));
  REQUIRE(lonely.details().size() == 1);
  CHECK(lonely.details()[0] == "core 0, instruction 0: wait for event 5 to reach 2, which is at 1; no core will signal it");
  const auto circle = failure({{build::wait(0, 1), build::sync(0, 1)}, {build::wait(0, 1), build::sync(0, 0)}}, hardware(2));
  CHECK(std::string(circle.what()).find("deadlock: core 0 (instruction 0: wait for event 0 to reach 1) -> core 1 (instruction 0: wait for event 0 to reach 1) -> core 0") !=
        std::string::npos);
  const auto scalar = failure({{build::lldi(0, 0, 1), build::sldi(1, 1)}}, hardware(1));
  CHECK(scalar.details().at(0) == "core 0 has executed everything but never counts as finished: its last instruction is scalar or setbw");
  auto chip = hardware(1);
  chip.chip_config.core_config.rob_size = 0;
  CHECK(failure({{build::lldi(0, 0, 1)}}, chip).details().at(0).find("nothing is dispatched: rob_size is 0") != std::string::npos);
}

TEST_CASE("throughput mode counts what was done and tells of cores that wait in vain") {
  auto chip = hardware(2);
  chip.sim_config = {0, 0.01, 1, 0};
  const auto p = program({{build::lldi(0, 0, 4), build::recv(0, 1, 4)}, {build::lldi(0, 0, 4), build::recv(0, 0, 4)}});
  const auto r = timing::chip(p, chip).run();
  CHECK(r.samples == 2);  // counted when fetch reaches the last instruction, which runs ahead
  REQUIRE(r.blocked.size() == 2);
  CHECK(r.blocked[0] == "core 0, instruction 1: recv from core 1, which is at instruction 1: recv from core 0");
}

TEST_CASE("messages to cores that do not exist, and a switch of the global memory that nobody has") {
  CHECK(std::string(failure({{build::send(0, 7, 4)}}, hardware(1)).what()).find("core 7") != std::string::npos);
  auto chip = hardware(1);
  chip.chip_config.global_memory_switch_id = -11;
  CHECK(std::string(failure({{build::ld(0, 2, 4)}}, chip).what()).find("global_memory_switch_id") != std::string::npos);
}

TEST_CASE("durations beyond the model's range are refused") {
  auto chip = hardware(1);
  chip.chip_config.core_config.local_memory_config.write_latency_cycle = 2'000'000'000;
  chip.chip_config.core_config.local_memory_config.period = 1e10;
  CHECK(std::string(failure({{build::lldi(0, 0, 100)}}, chip).what()).find("outside the simulator's range") != std::string::npos);
}
