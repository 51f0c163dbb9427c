#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "raptor/compiler.hpp"
#include "raptor/emit/artifact.hpp"
#include "raptor/emit/in_memory.hpp"
#include "raptor/model/graph.hpp"
#include "raptor/model/reference_value.hpp"
#include "raptor/sim/execution.hpp"
#include "raptor/sync/exact_count.hpp"
#include "raptor/target/pim.hpp"

/// The default pipeline behind the tools: each step in a translation unit of its own.
namespace raptor::tools {

/// Import (import.cpp). `shapes`: NAME → sizes, for symbolic dimensions.
struct loaded_model {
  model::graph imported;   ///< as the file says, for the reference evaluator
  model::graph canonical;  ///< after the rewrites, for the compiler
};
[[nodiscard]] loaded_model load_model(const std::filesystem::path& file, const std::map<std::string, shape>& shapes = {});
/// "NAME=1x3x224x224". Errors: usage.
[[nodiscard]] std::pair<std::string, shape> parse_shape(const std::string& text);

/// The operators that the importer knows, as a Markdown table (import.cpp).
[[nodiscard]] std::string operator_list();

/// What a program is made for: the time of one input, the rate of a stream of inputs, or the energy of one input.
enum class objective : std::uint8_t { latency, throughput, energy };

/// How data goes from stage to stage: by send and receive, through global memory, or whatever is predicted to be faster.
enum class channel_choice : std::uint8_t { automatic, rendezvous, memory };

/// Compilation (compile.cpp).
struct compile_options {
  target::pim_flags flags;
  std::filesystem::path target_configuration;  ///< empty: none
  std::int64_t element_bits = 32;              ///< of elements and weights; below 32 the program is for time and energy
  lowering::lowering_options lowering;
  bool spatial_planning = true;
  std::int64_t pipeline = 0;        ///< stages; 0: not said, which is one, or with objective::throughput the number that is best
  objective goal = objective::latency;
  channel_choice channels = channel_choice::automatic;
  sync::restart_scope restart = sync::restart_scope::all_cores;  ///< of pipelines with channels through global memory
  bool synchronization = true;      ///< false: no events, for ablation; what needs them is wrong then
  int effort = 1;  ///< 0: one candidate; 1 to 3: more and more lowerings, each with several numbers of copies; the best predicted time wins
  stage last = stage::image;
};
/// Is the program for a stream of inputs?
[[nodiscard]] inline bool streams(const compile_options& options) { return options.pipeline > 1 || options.goal == objective::throughput; }
using observer = std::function<void(stage, const compilation&)>;

/// "vsoftmax" or "standard". Errors: usage.
[[nodiscard]] lowering::softmax_lowering parse_softmax(const std::string& text);
/// "latency", "throughput" or "energy". Errors: usage.
[[nodiscard]] objective parse_objective(const std::string& text);
/// "auto", "rendezvous" or "memory". Errors: usage.
[[nodiscard]] channel_choice parse_channels(const std::string& text);
/// "all-cores" or "input-readers". Errors: usage.
[[nodiscard]] sync::restart_scope parse_restart(const std::string& text);
/// 0 to 3. Errors: usage.
[[nodiscard]] int checked_effort(std::int64_t effort);
/// Errors: usage, where flags and configuration contradict each other or there are more stages than cores; those of the configuration.
[[nodiscard]] target::pim make_target(const compile_options& options);
/// Compiles a canonical model. Errors: those of basic_compiler.
[[nodiscard]] compilation compile_model(const model::graph& canonical, const target::pim& chip, const compile_options& options,
                                        const observer& observe = {});

/// Execution without the file system (execute.cpp): the image's streams and weights in the functional simulator.
[[nodiscard]] sim::loaded_program load_image(const memory::image& image);
[[nodiscard]] sim::execution_result execute_program(const sim::loaded_program& program, std::span<const std::byte> input,
                                                    const sim::execution_options& options = {});
[[nodiscard]] sim::execution_result execute_image(const memory::image& image, std::span<const std::byte> input,
                                                  const sim::execution_options& options = {});
/// The same for a batch: streams that restart by themselves, outputs of every input.
[[nodiscard]] sim::batch_result execute_batch(const sim::loaded_program& program, std::span<const std::vector<std::byte>> inputs,
                                              const sim::execution_options& options = {});

/// Runs a batch under many schedules of its cores (sim::planned_trials), several at a time: `random` seeds, and at most `most` of each kind of adversarial
/// schedule. `expected`: the outputs of every input.
struct schedule_trials {
  std::size_t trials = 0, possible = 0;
  std::uint64_t held_reads = 0;
  std::vector<std::string> failures;
};
[[nodiscard]] schedule_trials try_schedules(const sim::loaded_program& program, std::span<const std::vector<std::byte>> inputs,
                                            const std::vector<std::vector<sim::output_value>>& expected, std::size_t random, std::size_t most);

/// Time and energy of one input without the file system (time_image.cpp), by the exact model and a hardware file.
struct image_time {
  double latency_ms = 0, energy_pj = 0;
  std::string binding;  ///< the resource that was used most
  std::string skipped;  ///< why there is no time; empty: there is
  double samples_per_second = 0;  ///< of a stream of inputs, where it was asked for
};
/// `stream_ms`: also the rate of a stream of inputs that lasts so long (throughput mode); 0: not.
[[nodiscard]] image_time time_image(const memory::image& image, const std::filesystem::path& hardware_file, double stream_ms = 0);

}  // namespace raptor::tools
