#include "stages.hpp"

#include "raptor/model/check.hpp"
#include "raptor/model/rewrite.hpp"
#include "raptor/verify/copy_freedom.hpp"
#include "raptor/verify/deadlock.hpp"
#include "raptor/verify/program.hpp"
#include "tools/pipeline.hpp"

namespace raptor::backend {

namespace {

void verify_stage(raptor::stage s, const compilation& c) {
  if (s == raptor::stage::realized) {
    verify::check_program(c.realized);
    verify::check_deadlock(c.realized);
  }
  if (s == raptor::stage::bound) {
    verify::check_program(c.image.bound);
    verify::check_copy_freedom(c.realized, c.image.bound);
  }
}

std::vector<model::tensor_value> execute(const model::graph& g, std::span<const model::tensor_value> inputs, const compile_settings& settings) {
  const auto canonical = model::canonicalize(g);
  tools::compile_options options;
  options.flags = {settings.cores, settings.crossbars, settings.crossbar_size};
  options.lowering.convolution = settings.convolution;
  options.spatial_planning = settings.spatial_planning;
  const auto compiled = tools::compile_model(canonical, tools::make_target(options), options, verify_stage);
  std::vector<std::byte> bytes;
  for (const auto& in : inputs) {
    const auto from = std::as_bytes(std::span(in.floats()));
    bytes.insert(bytes.end(), from.begin(), from.end());
  }
  const auto result = tools::execute_image(compiled.image, bytes);
  std::vector<model::tensor_value> outputs;
  for (std::size_t i = 0; i < result.outputs.size(); ++i)
    outputs.push_back(model::make_value(canonical.at(canonical.outputs.at(i)).sizes, result.outputs[i].values()));
  return outputs;
}

}  // namespace

stage rewritten_stage() {
  return {"rewritten",
          [](const model::graph& g, std::span<const model::tensor_value> inputs) {
            return model::evaluate(model::canonicalize(g, [](std::string_view, const model::graph& step) { model::check_graph(step); }), inputs);
          },
          1e-5};
}

stage executed_stage(const compile_settings& settings) {
  return {"executed", [settings](const model::graph& g, std::span<const model::tensor_value> inputs) { return execute(g, inputs, settings); }};
}

std::vector<stage> all_stages() { return {reference_stage(), rewritten_stage(), executed_stage()}; }

}  // namespace raptor::backend
