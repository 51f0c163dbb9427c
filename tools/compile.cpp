#include "tools/pipeline.hpp"

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "raptor/target/configuration_json.hpp"

namespace raptor::tools {

namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw error(error_code::io, "cannot read '" + path + "'", path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

lowering::softmax_lowering parse_softmax(const std::string& text) {
  if (text == "vsoftmax") return lowering::softmax_lowering::vsoftmax;
  if (text == "standard") return lowering::softmax_lowering::standard;
  throw error(error_code::usage, "--softmax=" + text + ": choose one of vsoftmax, standard");
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
  if (options.spatial_planning) return basic_compiler(chip, default_policies(), options.lowering).compile(canonical, options.last, watched);
  return basic_compiler(chip, default_policies() | with<layout_slot>(layout::dense_layout{}), options.lowering).compile(canonical, options.last, watched);
}

}  // namespace raptor::tools
