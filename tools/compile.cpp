#include "tools/pipeline.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/target/configuration_json.hpp"

namespace raptor::tools {

namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw error(error_code::io, "cannot read '" + path + "'", path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The lowerings that an effort tries: how much crossbars count, and how long tiles are.
std::vector<lowering::lowering_options> lowering_variants(const compile_options& options) {
  if (options.effort == 0) return {options.lowering};
  struct variant {
    double crossbar_weight;
    std::int64_t microseconds;
  };
  std::vector<variant> variants{{0.3, 20}, {0.0, 20}, {0.3, 12}};
  if (options.effort >= 2) variants.insert(variants.end(), {{0.0, 12}, {1.0, 20}, {1.0, 12}, {0.0, 9}, {0.3, 9}});
  if (options.effort >= 3)
    for (const double weight : {0.0, 0.1, 0.3, 1.0, 2.0})
      for (const std::int64_t microseconds : {7, 15, 30}) variants.push_back({weight, microseconds});
  std::vector<lowering::lowering_options> result;
  for (const auto& v : variants) {
    result.push_back(options.lowering);
    result.back().crossbar_weight = v.crossbar_weight;
    result.back().tile_time = v.microseconds * 1'000'000;
  }
  return result;
}

}  // namespace

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
  return target::make_pim_target(options.flags, configuration, options.element_bits);
}

compilation compile_model(const model::graph& canonical, const target::pim& chip, const compile_options& options, const observer& observe) {
  const auto watched = [&](stage s, const compilation& c) {
    if (observe) observe(s, c);
  };
  const auto compile = [&](const lowering::lowering_options& lowering, stage last, const auto& watch) {
    schedule::replication_portfolio copies;
    if (options.effort == 0) copies.candidates.resize(1);
    const auto policies = default_policies() | with<replication_slot>(copies);
    if (options.spatial_planning) return basic_compiler(chip, policies, lowering).compile(canonical, last, watch);
    return basic_compiler(chip, policies | with<layout_slot>(layout::dense_layout{}), lowering).compile(canonical, last, watch);
  };
  // The best predicted first; where it turns out not to fit (local memory is known last), the next best.
  auto variants = lowering_variants(options);
  if (variants.size() > 1) {
    using predicted = std::pair<schedule::picoseconds, std::size_t>;
    std::vector<predicted> ranking;
    const std::function<void(stage, const compilation&)> nothing = [](stage, const compilation&) {};
    for (std::size_t i = 0; i < variants.size(); ++i) {
      try {
        ranking.emplace_back(compile(variants[i], stage::scheduled, nothing).schedule.predicted, i);
      } catch (const error& e) {
        if (e.code() != error_code::capacity) throw;  // another variant may fit; where none does, the compilation below says why
      }
    }
    std::sort(ranking.begin(), ranking.end());
    std::vector<lowering::lowering_options> sorted;
    for (const auto& [time, i] : ranking) sorted.push_back(variants[i]);
    if (!sorted.empty()) variants = std::move(sorted);
  }
  for (std::size_t i = 0; i + 1 < variants.size(); ++i) {
    try {
      return compile(variants[i], options.last, std::function<void(stage, const compilation&)>(watched));
    } catch (const error& e) {
      if (e.code() != error_code::capacity) throw;
    }
  }
  return compile(variants.back(), options.last, std::function<void(stage, const compilation&)>(watched));
}

}  // namespace raptor::tools
