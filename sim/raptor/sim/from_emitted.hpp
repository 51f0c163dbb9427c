#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "raptor/emit/in_memory.hpp"
#include "raptor/sim/program.hpp"
#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"

/// Executes what the compiler emitted without the disk between.
namespace raptor::sim {

/// The same program that load_artifact would read after emit::write_artifact. Takes the streams and the memory, so pass a temporary
/// where they are not needed any more. Errors: malformed for an array group without contents. Cost: O(contents), replicas share one.
[[nodiscard]] inline loaded_program from_emitted(emit::in_memory emitted) {
  std::vector<std::shared_ptr<const crossbar_matrix>> contents;
  for (auto& content : emitted.contents) {
    contents.push_back(std::make_shared<const crossbar_matrix>(checked::narrow<std::size_t>(content.rows), checked::narrow<std::size_t>(content.columns),
                                                               content.values));
    content.values = {};
  }
  loaded_program program;
  if (emitted.groups.size() != emitted.streams.size())
    throw error(error_code::malformed, std::to_string(emitted.streams.size()) + " streams, but array groups of " + std::to_string(emitted.groups.size()) + " cores");
  for (std::size_t c = 0; c < emitted.streams.size(); ++c) {
    core_program& own = program.cores.emplace_back();
    own.stream = std::move(emitted.streams[c]);
    for (const auto& group : emitted.groups[c]) {
      if (group.content >= contents.size())
        throw error(error_code::malformed, "an array group without contents", "core " + std::to_string(c) + ", array group " + std::to_string(own.groups.size()));
      own.groups.push_back({group.crossbars, contents[group.content]});
    }
  }
  program.global_memory = std::move(emitted.global_memory);
  const auto convert = [](const std::vector<emit::region>& regions) {
    std::vector<tensor_region> result;
    for (const auto& r : regions) result.push_back({r.name, r.address, r.bytes, r.sizes});
    return result;
  };
  program.inputs = convert(emitted.inputs);
  program.outputs = convert(emitted.outputs);
  return program;
}

}  // namespace raptor::sim
