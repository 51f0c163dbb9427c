#include "raptor/sim/executor.hpp"
#include "raptor/sim/from_emitted.hpp"
#include "raptor/sim/schedule_trials.hpp"
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

schedule_trials try_schedules(const sim::loaded_program& program, std::span<const std::vector<std::byte>> inputs, std::size_t random, std::size_t most) {
  sim::trial_options options;
  options.random_schedules = random, options.most_of_a_kind = most;
  auto result = sim::try_schedules(program, inputs, {}, options);
  return {result.trials, result.held_reads, std::move(result.failures)};
}

}  // namespace raptor::tools
