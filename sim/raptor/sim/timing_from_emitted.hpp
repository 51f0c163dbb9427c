#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "raptor/emit/stream.hpp"
#include "raptor/sim/timing_input.hpp"
#include "raptor/support/checked.hpp"

/// Times what the compiler emitted without the disk between. Weights are not made: they have no part in time and energy.
namespace raptor::sim::timing {

/// All streams of an image. Errors: those of emit_core.
[[nodiscard]] inline std::vector<std::vector<isa::instruction>> emitted_streams(const memory::image& image) {
  std::vector<std::vector<isa::instruction>> streams;
  for (std::size_t c = 0; c < image.bound.cores.size(); ++c) streams.push_back(emit::stream_of(image, c));
  return streams;
}
/// The program that load_timed would read after emit::write_artifact, from the streams of the image. Errors: unsupported for an instruction
/// that pimsim-nn does not have; those of check_core. Cost: linear in the streams.
[[nodiscard]] inline timed_program timed_from_emitted(const memory::image& image, const std::vector<std::vector<isa::instruction>>& streams) {
  timed_program program;
  for (std::size_t c = 0; c < streams.size(); ++c) {
    for (const auto& i : streams[c])
      if (i.op == isa::opcode::vsoftmax) throw error(error_code::unsupported, "pimsim-nn does not support opcode vsoftmax", {}, "use --softmax=standard");
    timed_core core{static_cast<std::int64_t>(c), from_records(streams[c]), {}};
    for (const auto w : image.bound.cores[c].groups) core.groups.push_back(checked::narrow<std::int32_t>(raptor::program::crossbars(image.bound.weights[w], image.bound.chip)));
    input_parts::check_core(core);
    program.cores.push_back(std::move(core));
  }
  return program;
}

}  // namespace raptor::sim::timing
