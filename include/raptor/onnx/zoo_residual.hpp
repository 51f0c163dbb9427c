#pragma once

#include <array>

#include "raptor/onnx/zoo_layers.hpp"

/// Residual networks (He et al. 2016, table 1).
namespace raptor::onnx_io::zoo {

namespace detail {

/// Root mean square of a residual branch over that of its input: sixteen blocks multiply it by (1 + 0.25)^8, not by 2^8.
inline constexpr double residual_gain = 0.5;

[[nodiscard]] inline value residual_stem(layers& net) {
  const auto x = net.conv(net.input(), {.channels = 64, .over = {{7, 7}, {2, 2}, same_padding(3)}, .bias = false, .batchnorm = true, .relu = true});
  return net.max_pool(x, {{3, 3}, {2, 2}, same_padding(1)});
}
[[nodiscard]] inline ::onnx::ModelProto residual_head(layers&& net, const value& x) {
  return std::move(net).finish(net.fully_connected(net.flatten(net.global_average_pool(x)), 1000));
}

/// Two 3 × 3 layers; the projection, where the shape changes, comes first.
[[nodiscard]] inline value basic_block(layers& net, const value& x, std::int64_t channels, std::int64_t stride) {
  auto shortcut = x;
  if (stride != 1 || x.sizes[1] != channels)
    shortcut = net.conv(x, {.channels = channels, .over = {{1, 1}, {stride, stride}, {}}, .bias = false, .batchnorm = true, .gain = 1.0});
  auto y = net.conv(x, {.channels = channels, .over = {{3, 3}, {stride, stride}, same_padding(1)}, .bias = false, .batchnorm = true, .relu = true});
  y = net.conv(y, {.channels = channels, .over = {{3, 3}, {1, 1}, same_padding(1)}, .bias = false, .batchnorm = true, .gain = residual_gain});
  return net.relu(net.add(shortcut, y));
}

/// 1 × 1 (which has the stride), 3 × 3, 1 × 1; the projection, where the shape changes, comes last. The 1 × 1 layers of the
/// branch have a bias before their BatchNormalization.
[[nodiscard]] inline value bottleneck_block(layers& net, const value& x, std::int64_t channels, std::int64_t stride) {
  const auto outputs = 4 * channels;
  auto y = net.conv(x, {.channels = channels, .over = {{1, 1}, {stride, stride}, {}}, .batchnorm = true, .relu = true});
  y = net.conv(y, {.channels = channels, .over = {{3, 3}, {1, 1}, same_padding(1)}, .bias = false, .batchnorm = true, .relu = true});
  y = net.conv(y, {.channels = outputs, .over = {}, .batchnorm = true, .gain = residual_gain});
  auto shortcut = x;
  if (stride != 1 || x.sizes[1] != outputs)
    shortcut = net.conv(x, {.channels = outputs, .over = {{1, 1}, {stride, stride}, {}}, .bias = false, .batchnorm = true, .gain = 1.0});
  return net.relu(net.add(y, shortcut));
}

/// Four stages of `depths` blocks; all but the first begin with stride 2.
template <class Block>
[[nodiscard]] ::onnx::ModelProto residual(layers&& net, const std::array<int, 4>& depths, Block block) {
  auto x = residual_stem(net);
  std::int64_t channels = 64;
  for (std::size_t stage = 0; stage < depths.size(); ++stage, channels *= 2)
    for (int i = 0; i < depths[stage]; ++i) x = block(net, x, channels, stage > 0 && i == 0 ? 2 : 1);
  return residual_head(std::move(net), x);
}

}  // namespace detail

[[nodiscard]] inline ::onnx::ModelProto resnet18(layers&& net) {
  return detail::residual(std::move(net), {2, 2, 2, 2}, detail::basic_block);
}
[[nodiscard]] inline ::onnx::ModelProto resnet34(layers&& net) {
  return detail::residual(std::move(net), {3, 4, 6, 3}, detail::basic_block);
}
[[nodiscard]] inline ::onnx::ModelProto resnet50(layers&& net) {
  return detail::residual(std::move(net), {3, 4, 6, 3}, detail::bottleneck_block);
}

}  // namespace raptor::onnx_io::zoo
