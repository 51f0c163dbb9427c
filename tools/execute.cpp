#include <memory>
#include <utility>

#include "raptor/sim/executor.hpp"
#include "tools/pipeline.hpp"

namespace raptor::tools {

sim::loaded_program load_image(const memory::image& image) {
  auto built = emit::build(image);
  sim::loaded_program program;
  std::vector<std::shared_ptr<const sim::crossbar_matrix>> contents;
  for (auto& content : built.contents) {
    contents.push_back(std::make_shared<const sim::crossbar_matrix>(static_cast<std::size_t>(content.rows), static_cast<std::size_t>(content.columns), content.values));
    content.values = {};
  }
  for (std::size_t c = 0; c < built.streams.size(); ++c) {
    sim::core_program core{std::move(built.streams[c]), {}};
    for (const auto& group : built.groups[c]) core.groups.push_back({group.crossbars, contents.at(group.content)});
    program.cores.push_back(std::move(core));
  }
  program.global_memory = std::move(built.global_memory);
  const auto regions = [](const std::vector<emit::region>& from) {
    std::vector<sim::tensor_region> result;
    for (const auto& r : from) result.push_back({r.name, r.address, r.bytes, r.sizes, "float32"});
    return result;
  };
  program.inputs = regions(built.inputs);
  program.outputs = regions(built.outputs);
  return program;
}

sim::execution_result execute_image(const memory::image& image, std::span<const std::byte> input, const sim::execution_options& options) {
  return sim::execute(load_image(image), input, options);
}

}  // namespace raptor::tools
