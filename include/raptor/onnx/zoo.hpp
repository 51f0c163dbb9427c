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
#include "raptor/onnx/zoo_sequence.hpp"
#include "raptor/onnx/zoo_unet.hpp"
#include "raptor/onnx/zoo_yolo.hpp"

/// The bundled networks: published topologies with seeded weights, as ONNX models (opset 13 and IR 7 where that suffices).
///
///     const ::onnx::ModelProto model = raptor::onnx_io::build_network("resnet18", {.size = 64});
namespace raptor::onnx_io {

struct zoo_options {
  std::int64_t size = 0;   ///< height and width of the input in pixels, or the length of the sequence; 0: the network's own
  std::uint64_t seed = 0;  ///< of the weights
  std::int64_t depth = 0;  ///< layers of the published table that are built, from the input; 0: all
  bool softmax = true;     ///< false: every Softmax is left out
};

/// What the sizes of an input mean.
enum class input_kind : std::uint8_t {
  image,   ///< 1 × channels × size × size
  tokens,  ///< 1 × size × channels
  steps,   ///< size × 1 × channels
};

struct network_info {
  std::string_view name;
  std::int64_t channels;      ///< of the input
  std::int64_t default_size;  ///< height and width of the input, or the length of the sequence
  std::int64_t minimum_size;  ///< below it some window does not fit its map
  ::onnx::ModelProto (*build)(zoo::layers&&);
  std::int64_t multiple = 1;  ///< sizes must be divisible by it, so that maps that are joined have one size
  std::int64_t depth = 0;     ///< layers of the published table; 0: the network has no prefixes
  std::int64_t opset = 13;
  input_kind input = input_kind::image;

  [[nodiscard]] shape input_shape(std::int64_t size) const {
    switch (input) {
      case input_kind::image: return {1, channels, size, size};
      case input_kind::tokens: return {1, size, channels};
      case input_kind::steps: return {size, 1, channels};
    }
    return {};
  }
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
    network_info{"mobilenetv3_small", 3, 224, 1, zoo::mobilenetv3_small, 1, 0, 14},
    network_info{"mobilenetv3_large", 3, 224, 1, zoo::mobilenetv3_large, 1, 0, 14},
    network_info{"inception_v3", 3, 224, 75, zoo::inception_v3},
    network_info{"shufflenet", 3, 224, 1, zoo::shufflenet},
    network_info{"unet", 1, 64, 8, zoo::unet, 8},
    network_info{"yolo11n", 3, 640, 32, zoo::yolo11n, 32, zoo::detail::yolo::layer_count},
    network_info{"transformer", 64, 16, 1, zoo::transformer, 1, 0, 17, input_kind::tokens},
    network_info{"lstm", 32, 8, 1, zoo::lstm, 1, 0, 13, input_kind::steps},
};

/// The largest input that is built: 16384 × 16384 pixels, or a sequence of 16384.
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

/// Builds a network. Its one input is "input" (f32, of the network's input_shape), its one output "output".
///
/// Errors: error_code::usage for an unknown name, a size or a depth out of range; error_code::capacity when the weights pass
/// 2 GiB (vgg11 with a very large input). Cost: linear in the weights. Determinism: the same bytes on every machine.
[[nodiscard]] inline ::onnx::ModelProto build_network(std::string_view name, zoo_options options = {}) {
  const auto& network = find_network(name);
  const auto size = options.size == 0 ? network.default_size : options.size;
  const std::string given = network.input == input_kind::image
                                ? "an input of " + std::to_string(size) + "x" + std::to_string(size) + " is "
                                : "a sequence of " + std::to_string(size) + " is ";
  const auto range = ": choose a " + (network.multiple == 1 ? "size" : "multiple of " + std::to_string(network.multiple)) + " from " +
                     std::to_string(network.minimum_size) + " to " + std::to_string(maximum_size);
  if (size < network.minimum_size || size > maximum_size)
    throw error(error_code::usage, given + "too " + (size < network.minimum_size ? "small" : "large") + " for " + std::string(name) + range);
  if (size % network.multiple != 0) throw error(error_code::usage, given + "not one that " + std::string(name) + " can halve and double again" + range);
  if (options.depth != 0 && network.depth == 0) throw error(error_code::usage, std::string(name) + " is built as a whole: it has no prefix of a given depth");
  if (options.depth < 0 || options.depth > network.depth)
    throw error(error_code::usage, std::string(name) + " has " + std::to_string(network.depth) + " layers, a prefix of " +
                                       std::to_string(options.depth) + " cannot be built");
  return network.build(
      zoo::layers(std::string(name), options.seed, network.input_shape(size), size, network.opset, {options.depth, options.softmax}));
}

}  // namespace raptor::onnx_io
