// A hardware configuration and the network file it names, as the compiler and as the simulator read them.
#include "support.hpp"

#include "raptor/sim/timing_hardware.hpp"
#include "raptor/target/configuration_json.hpp"
#include "raptor/target/pim.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace raptor;
  auto rest = fuzz::text_of(data, size);
  const auto hardware = fuzz::next_part(rest);
  const std::string network(rest);
  fuzz::run(size, [&](std::int64_t&) {
    const auto load = [&](const std::string& path) { return path == "hardware.json" ? std::string(hardware) : network; };
    const auto c = target::read_configuration("hardware.json", load);
    const auto chip = target::make_pim_target({}, c);
    fuzz::require(chip.chip().core_count > 0, "a target without cores");
  });
  fuzz::run(size, [&](std::int64_t&) {
    auto c = target::parse_configuration(hardware, "hardware.json", target::objects::optional);
    sim::timing::validate_as_simulator(c);
    c.chip_config.network_config.table = target::parse_network(network, "network.json");
  });
  return 0;
}
