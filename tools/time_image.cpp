#include <algorithm>
#include <string>

#include "raptor/sim/timing_from_emitted.hpp"
#include "raptor/sim/timing_hardware.hpp"
#include "raptor/sim/timing_model/chip.hpp"
#include "tools/pipeline.hpp"

namespace raptor::tools {

namespace timing = sim::timing;

image_time time_image(const memory::image& image, const std::filesystem::path& hardware_file, double stream_ms) {
  auto hardware = timing::read_hardware(hardware_file);
  timing::read_network(hardware, hardware_file.parent_path());
  const auto streams = timing::emitted_streams(image);
  timing::timed_program program;
  try {
    program = timing::timed_from_emitted(image, streams);
  } catch (const error& e) {
    if (e.code() != error_code::unsupported) throw;
    return {0, 0, {}, std::string(e.what()) + ": " + e.hint(), 0};
  }
  if (std::all_of(program.cores.begin(), program.cores.end(), [](const auto& core) { return core.stream.size() == 0; }))
    return {0, 0, {}, "no core has instructions", 0};
  hardware.sim_config.sim_mode = 1;
  const auto result = timing::chip(program, hardware).run();
  image_time time{result.latency_ms, result.energy_pj, timing::resource_names[static_cast<std::size_t>(result.binding)], {}, 0};
  if (stream_ms > 0) {
    hardware.sim_config.sim_mode = 0, hardware.sim_config.sim_time = stream_ms;
    time.samples_per_second = timing::chip(program, hardware).run().samples_per_second;
  }
  return time;
}

}  // namespace raptor::tools
