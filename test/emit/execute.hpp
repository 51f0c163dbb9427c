#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "raptor/emit/in_memory.hpp"
#include "raptor/sim/executor.hpp"

/// Executes what emission built, without the disk.
namespace raptor::test {

inline sim::loaded_program load(emit::in_memory built) {
  sim::loaded_program result;
  std::vector<std::shared_ptr<const sim::crossbar_matrix>> contents;
  for (const auto& c : built.contents)
    contents.push_back(std::make_shared<const sim::crossbar_matrix>(static_cast<std::size_t>(c.rows), static_cast<std::size_t>(c.columns), c.values));
  for (std::size_t c = 0; c < built.streams.size(); ++c) {
    auto& core = result.cores.emplace_back();
    core.stream = std::move(built.streams[c]);
    for (const auto& g : built.groups[c]) core.groups.push_back({g.crossbars, contents[g.content]});
  }
  result.global_memory = std::move(built.global_memory);
  for (const auto& r : built.inputs) result.inputs.push_back({r.name, r.address, r.bytes, r.sizes, "float32"});
  for (const auto& r : built.outputs) result.outputs.push_back({r.name, r.address, r.bytes, r.sizes, "float32"});
  return result;
}

inline std::vector<std::vector<float>> execute(const sim::loaded_program& loaded, const std::vector<std::vector<float>>& inputs) {
  std::vector<std::byte> bytes;
  for (const auto& input : inputs) {
    const auto at = bytes.size();
    bytes.resize(at + input.size() * sizeof(float));
    std::memcpy(bytes.data() + at, input.data(), input.size() * sizeof(float));
  }
  std::vector<std::vector<float>> outputs;
  for (const auto& output : sim::execute(loaded, bytes).outputs) outputs.push_back(output.values());
  return outputs;
}

}  // namespace raptor::test
