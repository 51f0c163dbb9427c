#include "raptor/sim/executor.hpp"
#include "raptor/sim/from_emitted.hpp"
#include "tools/pipeline.hpp"

namespace raptor::tools {

sim::loaded_program load_image(const memory::image& image) { return sim::from_emitted(emit::build(image)); }

sim::execution_result execute_program(const sim::loaded_program& program, std::span<const std::byte> input, const sim::execution_options& options) {
  return sim::execute(program, input, options);
}

sim::execution_result execute_image(const memory::image& image, std::span<const std::byte> input, const sim::execution_options& options) {
  return sim::execute(load_image(image), input, options);
}

sim::batch_result execute_batch(const sim::loaded_program& program, std::span<const std::vector<std::byte>> inputs, const sim::execution_options& options) {
  return sim::execute_batch(program, inputs, options);
}

}  // namespace raptor::tools
