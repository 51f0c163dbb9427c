#include <utility>
#include <vector>

#include "raptor/sim/timing_hardware.hpp"
#include "raptor/sim/timing_input.hpp"
#include "raptor/sim/timing_model/chip.hpp"
#include "tools/pipeline.hpp"

namespace raptor::tools {

namespace timing = sim::timing;

image_time time_image(const memory::image& image, const std::filesystem::path& hardware_file) {
  auto hardware = timing::read_hardware(hardware_file);
  timing::read_network(hardware, hardware_file.parent_path());
  const auto built = emit::build(image);
  timing::timed_program program;
  bool active = false;
  for (std::size_t c = 0; c < built.streams.size(); ++c) {
    timing::timed_core core;
    core.id = static_cast<std::int64_t>(c);
    std::vector<timing::timed_instruction> list;
    for (const auto& i : built.streams[c]) {
      if (i.op == isa::opcode::vsoftmax) return {0, 0, {}, "pimsim-nn does not support opcode vsoftmax: use --softmax=standard"};
      list.push_back(timing::from_record(i));
    }
    active = active || !list.empty();
    core.stream = timing::timed_stream(list);
    for (const auto& g : built.groups[c]) core.groups.push_back(g.crossbars);
    timing::input_parts::check_core(core);
    program.cores.push_back(std::move(core));
  }
  if (!active) return {0, 0, {}, "no core has instructions"};
  const auto result = timing::chip(program, hardware).run();
  return {result.latency_ms, result.energy_pj, timing::resource_names[static_cast<std::size_t>(result.binding)], {}};
}

}  // namespace raptor::tools
