#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "raptor/onnx/zoo_compact.hpp"
#include "raptor/onnx/zoo_inception.hpp"
#include "raptor/onnx/zoo_layers.hpp"
#include "raptor/onnx/zoo_plain.hpp"
#include "raptor/onnx/zoo_residual.hpp"

/// The bundled networks: published topologies with seeded weights, as ONNX models (opset 13, IR 7).
///
///     const ::onnx::ModelProto model = raptor::onnx_io::build_network("resnet18", {.size = 64});
namespace raptor::onnx_io {

struct zoo_options {
  std::int64_t size = 0;   ///< height and width of the input in pixels; 0: the network's own
  std::uint64_t seed = 0;  ///< of the weights
};

struct network_info {
  std::string_view name;
  std::int64_t channels;      ///< of the input
  std::int64_t default_size;  ///< height and width of the input
  std::int64_t minimum_size;  ///< below it some window does not fit its map
  ::onnx::ModelProto (*build)(zoo::layers&&);
};

/// All networks, in the order in which they are listed.
inline constexpr std::array networks{
    network_info{"tiny", 3, 16, 2, zoo::tiny},
    network_info{"demo", 3, 32, 3, zoo::demo},
    network_info{"lenet5", 1, 28, 12, zoo::lenet5},
    network_info{"vgg11", 3, 224, 32, zoo::vgg11},
    network_info{"squeezenet1.1", 3, 224, 31, zoo::squeezenet},
    network_info{"resnet18", 3, 224, 1, zoo::resnet18},
    network_info{"resnet34", 3, 224, 1, zoo::resnet34},
    network_info{"resnet50", 3, 224, 1, zoo::resnet50},
    network_info{"googlenet", 3, 224, 1, zoo::googlenet},
    network_info{"mobilenetv2", 3, 224, 1, zoo::mobilenetv2},
    network_info{"inception_v3", 3, 224, 75, zoo::inception_v3},
    network_info{"shufflenet", 3, 224, 1, zoo::shufflenet},
};

/// The largest input that is built: 16384 × 16384 pixels.
inline constexpr std::int64_t maximum_size = 16384;

[[nodiscard]] inline std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const auto& network : networks) names.emplace_back(network.name);
  return names;
}

/// Errors: error_code::usage for an unknown name; the message lists the known ones.
[[nodiscard]] inline const network_info& find_network(std::string_view name) {
  std::string known;
  for (const auto& network : networks) {
    if (network.name == name) return network;
    if (!known.empty()) known += ", ";
    known += network.name;
  }
  throw error(error_code::usage, "unknown network \"" + std::string(name) + "\"; the networks are " + known);
}

/// Builds a network. Its one input is "input" (1 × channels × size × size, f32), its one output "output".
///
/// Errors: error_code::usage for an unknown name or a size out of range; error_code::capacity when the weights pass 2 GiB
/// (vgg11 with a very large input). Cost: linear in the weights. Determinism: the same bytes on every machine.
[[nodiscard]] inline ::onnx::ModelProto build_network(std::string_view name, zoo_options options = {}) {
  const auto& network = find_network(name);
  const auto size = options.size == 0 ? network.default_size : options.size;
  if (size < network.minimum_size || size > maximum_size)
    throw error(error_code::usage,
                "an input of " + std::to_string(size) + "x" + std::to_string(size) + " is too " +
                    (size < network.minimum_size ? "small" : "large") + " for " + std::string(name) + ": choose a size from " +
                    std::to_string(network.minimum_size) + " to " + std::to_string(maximum_size));
  return network.build(zoo::layers(std::string(name), options.seed, network.channels, size));
}

}  // namespace raptor::onnx_io
