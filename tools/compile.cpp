#include "tools/pipeline.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "raptor/schedule/local_search.hpp"
#include "raptor/schedule/pipeline_partition.hpp"
#include "raptor/sync/check_plan.hpp"
#include "raptor/support/file_text.hpp"
#include "raptor/target/configuration_json.hpp"
#include "raptor/verify/happens_before.hpp"
#include "tools/variants.hpp"

namespace raptor::tools {

namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw error(error_code::io, "cannot read '" + path + "'", path);
  return file_text(in, path);
}

/// Evaluator policy of the tools: what the objective makes of a schedule.
struct by_objective {
  bool stream = false;  ///< the time between outputs of a stream instead of the time of one input
  std::int64_t cores = 0;
  [[nodiscard]] schedule::picoseconds operator()(const schedule::schedule& s) const { return stream ? schedule::predicted_interval{cores}(s) : s.predicted; }
};

/// Are the best candidates timed by the exact model instead of the prediction? It needs a hardware file.
bool judged_exactly(const compile_options& options) { return !options.target_configuration.empty() && (options.effort > 1 || options.goal == objective::energy); }
/// How many of them.
std::size_t exact_candidates(const compile_options& options) { return options.goal == objective::energy ? 8 : options.effort > 2 ? 6 : 3; }
/// The exact time and energy of a candidate.
struct exact_figures {
  double time = 0;  ///< of one input in ms, or of a stream from output to output
  double energy = 0;
};
/// Requires: an image. Programs that the timing model refuses have no figures and keep their order.
exact_figures exact_of(const compilation& c, const compile_options& options) {
  constexpr int intervals = 40;  // that a stream is timed for
  const auto time = time_image(c.image, options.target_configuration, streams(options) ? intervals * static_cast<double>(c.worth) * 1e-9 : 0);
  if (!time.skipped.empty()) return {};
  if (!streams(options)) return {time.latency_ms, time.energy_pj};
  return {time.samples_per_second > 0 ? 1e3 / time.samples_per_second : std::numeric_limits<double>::infinity(), time.energy_pj};
}
/// Candidates in the order of the objective, by index: the least energy; or the least time, where of those within 2 % of it the one of least energy goes first.
std::vector<std::size_t> ranked(const std::vector<exact_figures>& figures, objective goal) {
  std::vector<std::size_t> order(figures.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto by = [&](auto key) { std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); }); };
  if (goal == objective::energy) {
    by([&](std::size_t i) { return figures[i].energy; });
    return order;
  }
  by([&](std::size_t i) { return figures[i].time; });
  if (order.empty()) return order;
  const double limit = 1.02 * figures[order.front()].time;
  const auto end = std::find_if(order.begin(), order.end(), [&](std::size_t i) { return figures[i].time > limit; });
  const auto least = std::min_element(order.begin(), end, [&](std::size_t a, std::size_t b) { return figures[a].energy < figures[b].energy; });
  std::rotate(order.begin(), least, std::next(least));
  return order;
}

/// How far an effort looks beyond the variants that it begins with.
schedule::local_search search_of(const compile_options& options) {
  if (options.effort < 2) return {};
  const std::size_t rounds = options.effort > 2 ? 24 : 6;
  return {.rounds = streams(options) ? rounds / 3 : rounds};
}

/// Synchronization policy of the tools: none for one input at a time; for streams what their channels and inputs need, and the proof that it is
/// enough.
struct by_use {
  bool stream = false, planned = true;
  sync::restart_scope restart = sync::restart_scope::all_cores;
  [[nodiscard]] program::program operator()(program::program realized, const schedule::schedule& s) const {
    if (!planned) return sync::no_synchronization{}(std::move(realized), s);
    if (!stream) return sync::rendezvous_only{}(std::move(realized), s);
    auto p = s.channels.empty() ? sync::repeating_rendezvous{}(std::move(realized), s) : sync::exact_count{restart}(std::move(realized), s);
    verify::check_happens_before(p);
    sync::check_free_signals(p);
    return p;
  }
};

/// The numbers of stages to try: the one that was asked for, else several for a stream.
std::vector<std::int64_t> stage_counts(const compile_options& options, std::int64_t cores) {
  if (options.goal != objective::throughput || options.pipeline > 0) return {std::max<std::int64_t>(options.pipeline, 1)};
  std::vector<std::int64_t> counts;
  for (const auto& [n, effort] : {std::pair{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {3, 2}, {6, 2}, {12, 2}, {24, 2}})
    if (options.effort >= effort && n <= cores) counts.push_back(n);
  return counts;
}

}  // namespace

objective parse_objective(const std::string& text) {
  if (text == "latency") return objective::latency;
  if (text == "throughput") return objective::throughput;
  if (text == "energy") return objective::energy;
  throw error(error_code::usage, "--objective=" + text + ": choose one of latency, throughput, energy");
}

channel_choice parse_channels(const std::string& text) {
  if (text == "auto") return channel_choice::automatic;
  if (text == "rendezvous") return channel_choice::rendezvous;
  if (text == "memory") return channel_choice::memory;
  throw error(error_code::usage, "--pipeline-channels=" + text + ": choose one of auto, rendezvous, memory");
}

sync::restart_scope parse_restart(const std::string& text) {
  if (text == "all-cores") return sync::restart_scope::all_cores;
  if (text == "input-readers") return sync::restart_scope::input_readers;
  throw error(error_code::usage, "--pipeline-restart=" + text + ": choose one of all-cores, input-readers");
}

lowering::softmax_lowering parse_softmax(const std::string& text) {
  if (text == "vsoftmax") return lowering::softmax_lowering::vsoftmax;
  if (text == "standard") return lowering::softmax_lowering::standard;
  throw error(error_code::usage, "--softmax=" + text + ": choose one of vsoftmax, standard");
}

int checked_effort(std::int64_t effort) {
  if (effort < 0 || effort > 3) throw error(error_code::usage, "--effort must be from 0 to 3, not " + std::to_string(effort));
  return static_cast<int>(effort);
}

target::pim make_target(const compile_options& options) {
  std::optional<target::configuration> configuration;
  if (!options.target_configuration.empty()) configuration = target::read_configuration(options.target_configuration.string(), read_text);
  auto chip = target::make_pim_target(options.flags, configuration, options.element_bits);
  if (options.pipeline > chip.chip().core_count)
    throw error(error_code::usage, "--pipeline=" + std::to_string(options.pipeline) + ": the chip has " + std::to_string(chip.chip().core_count) + " cores, and a stage needs one");
  return chip;
}

compilation compile_model(const model::graph& canonical, const target::pim& chip, const compile_options& options, const observer& observe) {
  const auto watched = [&](stage s, const compilation& c) {
    if (observe) observe(s, c);
  };
  // Calls `use` with the compiler of these options.
  const auto with_compiler = [&](const variant& v, const auto& use) {
    const bool stream = streams(options) && !v.one_input;
    schedule::replication_portfolio copies;
    if (options.effort == 0) copies.candidates.resize(1);
    else if (stream && options.effort < 2) copies.candidates = {{}, {.occupancy = 0.85}, {.occupancy = 0.7}};
    else if (options.effort < 2) copies.candidates.resize(4);
    schedule::rendezvous_order order;
    order.stages_by_memory = v.by_memory;
    if (stream) order.rounds = 3;
    std::vector<double> paces{0.1};
    if (stream) paces = {0.0};
    else if (options.effort > 0) paces.push_back(0.05);
    if (!stream && options.effort > 1) paces.insert(paces.end(), {0.0, 0.2});
    schedule::spread_placement placement{.same = v.crowding};
    if (stream) placement.remote = 1, placement.crowd = 0.03;
    else placement.refinements = options.effort;
    const auto policies = default_policies() | with<replication_slot>(copies) | with<placement_slot>(placement) |
                          with<order_slot>(schedule::paced_order{order, paces}) |
                          with<partition_slot>(schedule::pipeline_partition{v.one_input ? std::vector<std::int64_t>{1} : stage_counts(options, chip.chip().core_count)}) |
                          with<sync_slot>(by_use{streams(options), options.synchronization, options.restart}) |
                          with<evaluator_slot>(by_objective{streams(options), chip.chip().core_count});
    if (options.spatial_planning) return use(basic_compiler(chip, policies, v.lowering(options.lowering)));
    return use(basic_compiler(chip, policies | with<layout_slot>(layout::dense_layout{}), v.lowering(options.lowering)));
  };
  const std::function<void(stage, const compilation&)> watch = watched, nothing = [](stage, const compilation&) {};
  const auto compile = [&](const variant& v) {
    return with_compiler(v, [&](const auto& compiler) { return compiler.compile(canonical, options.last, watch); });
  };
  // The best predicted first; where it turns out not to fit (local memory is known last), the next best.
  auto variants = variants_of(options);
  const auto search = search_of(options);
  if (variants.size() == 1 && search.rounds == 0) return compile(variants[0]);
  struct candidate {
    compilation made;
    std::size_t variant = 0;
  };
  std::vector<candidate> kept;  // the best ones, ascending
  const auto most = judged_exactly(options) ? exact_candidates(options) : std::size_t{1};
  const auto until = std::min(options.last, stage::scheduled);
  // Several at a time, where the machine can; equal ones are ranked by their number, so that the result does not depend on who is done first.
  const std::size_t workers = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 4);
  const auto evaluate = [&](const std::vector<variant>& choices, std::size_t begin) {
    std::vector<std::optional<schedule::picoseconds>> worth(choices.size() - begin);
    std::vector<std::exception_ptr> failed(worth.size());
    std::atomic<std::size_t> next{begin};
    std::mutex judging;
    const auto rank = [](const candidate& c) { return std::pair(c.made.worth, c.variant); };
    const auto work = [&] {
      for (std::size_t i = next++; i < choices.size(); i = next++) {
        try {
          candidate c{with_compiler(choices[i], [&](const auto& compiler) { return compiler.decide(canonical, stage::scheduled, nothing); }), i};
          const std::scoped_lock lock(judging);
          worth[i - begin] = c.made.worth;
          kept.insert(std::find_if(kept.begin(), kept.end(), [&](const candidate& other) { return rank(c) < rank(other); }), std::move(c));
          if (kept.size() > most) kept.pop_back();
        } catch (const error& e) {
          if (e.code() != error_code::capacity) failed[i - begin] = std::current_exception();  // another variant may fit; where none does, the compilation below says why
        } catch (...) {
          failed[i - begin] = std::current_exception();
        }
      }
    };
    std::vector<std::future<void>> running;
    for (std::size_t k = 0; k < std::min(workers, worth.size()); ++k) running.push_back(std::async(std::launch::async, work));
    for (auto& r : running) r.get();
    for (const auto& f : failed)
      if (f) std::rethrow_exception(f);
    return worth;
  };
  auto ranking = search(variants, neighbour, evaluate);
  if (ranking.empty()) return compile(variants.back());
  if (most > 1) {  // the timing model has the last word
    std::vector<exact_figures> figures;
    std::vector<std::size_t> judged;
    for (std::size_t k = 0; k < kept.size(); ++k) {
      try {
        auto complete = with_compiler(variants[kept[k].variant], [&](const auto& compiler) { return compiler.complete(kept[k].made, stage::image, nothing); });
        figures.push_back(exact_of(complete, options));
        judged.push_back(k);
      } catch (const error& e) {
        if (e.code() != error_code::capacity) throw;
      }
    }
    std::vector<std::pair<schedule::picoseconds, std::size_t>> first;
    for (const auto i : ranked(figures, options.goal)) first.emplace_back(ranking.front().first, kept[judged[i]].variant);
    for (const auto& r : ranking)
      if (std::none_of(first.begin(), first.end(), [&](const auto& f) { return f.second == r.second; })) first.push_back(r);
    ranking = std::move(first);
  }
  for (std::size_t k = 0; k < ranking.size(); ++k) {
    const auto known = std::find_if(kept.begin(), kept.end(), [&](const candidate& c) { return c.variant == ranking[k].second; });
    const auto& v = variants[ranking[k].second];
    try {
      if (known == kept.end()) return compile(v);
      for (auto s = stage::planned; s <= until; s = static_cast<stage>(static_cast<int>(s) + 1)) watch(s, known->made);
      return with_compiler(v, [&](const auto& compiler) { return compiler.complete(std::move(known->made), options.last, watch); });
    } catch (const error& e) {
      if (e.code() != error_code::capacity || k + 1 == ranking.size()) throw;
    }
  }
  throw error(error_code::internal, "compile: the ranking is empty");
}

}  // namespace raptor::tools
