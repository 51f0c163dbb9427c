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
  // Calls `use` with the compiler of these options.
  const auto with_compiler = [&](const lowering::lowering_options& lowering, const auto& use) {
    schedule::replication_portfolio copies;
    if (options.effort == 0) copies.candidates.resize(1);
    const auto policies = default_policies() | with<replication_slot>(copies);
    if (options.spatial_planning) return use(basic_compiler(chip, policies, lowering));
    return use(basic_compiler(chip, policies | with<layout_slot>(layout::dense_layout{}), lowering));
  };
  const std::function<void(stage, const compilation&)> watch = watched, nothing = [](stage, const compilation&) {};
  const auto compile = [&](const lowering::lowering_options& lowering) {
    return with_compiler(lowering, [&](const auto& compiler) { return compiler.compile(canonical, options.last, watch); });
  };
  // The best predicted first; where it turns out not to fit (local memory is known last), the next best.
  const auto variants = lowering_variants(options);
  if (variants.size() == 1) return compile(variants[0]);
  std::vector<std::pair<schedule::picoseconds, std::size_t>> ranking;
  compilation best;
  const auto until = std::min(options.last, stage::scheduled);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    try {
      auto c = with_compiler(variants[i], [&](const auto& compiler) { return compiler.decide(canonical, stage::scheduled, nothing); });
      const bool better = std::all_of(ranking.begin(), ranking.end(), [&](const auto& r) { return c.schedule.predicted < r.first; });
      ranking.emplace_back(c.schedule.predicted, i);
      if (better) best = std::move(c);
    } catch (const error& e) {
      if (e.code() != error_code::capacity) throw;  // another variant may fit; where none does, the compilation below says why
    }
  }
  if (ranking.empty()) return compile(variants.back());
  std::sort(ranking.begin(), ranking.end());
  for (std::size_t k = 0; k < ranking.size(); ++k) {
    const auto& lowering = variants[ranking[k].second];
    try {
      if (k > 0) return compile(lowering);
      for (auto s = stage::planned; s <= until; s = static_cast<stage>(static_cast<int>(s) + 1)) watch(s, best);
      return with_compiler(lowering, [&](const auto& compiler) { return compiler.complete(std::move(best), options.last, watch); });
    } catch (const error& e) {
      if (e.code() != error_code::capacity || k + 1 == ranking.size()) throw;
    }
  }
  throw error(error_code::internal, "compile: the ranking is empty");
}

}  // namespace raptor::tools
