#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/common.hpp"
#include "tools/pipeline.hpp"

/// Options that several tools have.
namespace raptor::tools {

/// The value of an option that is one of `choices`. Errors: usage, with the list.
[[nodiscard]] inline std::string one_of(const command_line& line, const char* name, const std::vector<std::string>& choices) {
  const auto& given = line.get<std::string>(name);
  std::string list;
  for (const auto& c : choices) {
    if (c == given) return given;
    list += (list.empty() ? "" : ", ") + c;
  }
  throw usage_error(std::string("--") + name + "=" + given + ": choose one of " + list);
}
/// --pim-conv-lowering. Errors: usage.
[[nodiscard]] inline std::string conv_lowering(const command_line& line) {
  return one_of(line, "pim-conv-lowering", {"auto", "legacy", "depthwise", "depthwise-vector", "packed-im2col", "streamed-patch", "streamed-packed", "output-channel-tiled", "input-k-tiled",
                                            "tiled-2d", "toeplitz", "kernel-in-columns"});
}
/// Every --shape by the input's name. Errors: usage, also for an input that is given twice.
[[nodiscard]] inline std::map<std::string, shape> shapes_of(const command_line& line) {
  std::map<std::string, shape> shapes;
  if (line.has("shape"))
    for (const auto& text : line.get<std::vector<std::string>>("shape")) {
      auto [name, sizes] = parse_shape(text);
      if (!shapes.emplace(name, std::move(sizes)).second) throw usage_error("--shape gives \"" + name + "\" twice");
    }
  return shapes;
}

}  // namespace raptor::tools
