#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <thread>
#include <utility>
#include <vector>

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

schedule_trials try_schedules(const sim::loaded_program& program, std::span<const std::vector<std::byte>> inputs,
                              const std::vector<std::vector<sim::output_value>>& expected, std::size_t random, std::size_t most) {
  sim::trial_options options;
  options.random_schedules = random, options.most_of_a_kind = most;
  std::vector<std::vector<std::byte>> wanted;
  for (const auto& outputs : expected) wanted.push_back(sim::bytes_of(outputs));
  sim::trial_result result;
  const auto trials = sim::planned_trials(program, options, result.possible);
  std::vector<sim::trial_outcome> outcomes(trials.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t k = next++; k < trials.size(); k = next++) {
      outcomes[k] = sim::try_schedule(program, inputs, trials[k], wanted, options.execution);
      outcomes[k].outputs.clear();
    }
  };
  std::vector<std::future<void>> others;
  for (std::size_t t = 1; t < std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8); ++t) others.push_back(std::async(std::launch::async, work));
  work();
  for (auto& other : others) other.get();
  for (auto& outcome : outcomes) result.add(std::move(outcome));
  return {result.trials, result.possible, result.held_reads, std::move(result.failures)};
}

}  // namespace raptor::tools
