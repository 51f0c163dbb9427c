#pragma once

#include <algorithm>
#include <cstdint>
#include <numbers>
#include <span>

#include "raptor/onnx/zoo_layers.hpp"

/// Networks made for few operations: SqueezeNet 1.1, MobileNetV2, MobileNetV3, ShuffleNet.
namespace raptor::onnx_io::zoo {

namespace detail {

/// Fire module: 1 × 1 down to `squeeze` channels, then 1 × 1 and 3 × 3 side by side.
[[nodiscard]] inline value fire(layers& net, const value& x, std::int64_t squeeze, std::int64_t expand) {
  const auto s = net.conv(x, {.channels = squeeze, .over = {}, .relu = true});
  const auto narrow = net.conv(s, {.channels = expand, .over = {}, .relu = true});
  const auto wide = net.conv(s, {.channels = expand, .over = {{3, 3}, {1, 1}, same_padding(1)}, .relu = true});
  return net.concat({narrow, wide});
}

/// Inverted residual: 1 × 1 up by `expansion` (left out where that is 1), depthwise 3 × 3, linear 1 × 1.
[[nodiscard]] inline value inverted_residual(layers& net, const value& x, std::int64_t expansion, std::int64_t channels,
                                             std::int64_t stride) {
  auto y = x;
  if (expansion != 1) y = net.clip(net.conv(x, {.channels = x.sizes[1] * expansion, .over = {}}), 0.0F, 6.0F);
  y = net.clip(net.conv(y, {.channels = y.sizes[1], .over = {{3, 3}, {stride, stride}, same_padding(1)}, .group = y.sizes[1]}), 0.0F, 6.0F);
  const bool residual = stride == 1 && x.sizes[1] == channels;
  y = net.conv(y, {.channels = channels, .over = {}, .gain = residual ? 0.5 : 1.0});
  return residual ? net.add(x, y) : y;
}

/// ShuffleNet unit with grouped 1 × 1 layers. Stride 1: a residual sum. Stride 2: the branch is concatenated with the
/// averaged input and makes up the channels that are missing to `channels`.
[[nodiscard]] inline value shuffle_unit(layers& net, const value& x, std::int64_t channels, std::int64_t stride) {
  constexpr std::int64_t groups = 4;
  const auto width = stride == 1 ? channels : channels - x.sizes[1];
  const convolution grouped{.channels = width, .over = {}, .group = groups, .bias = false, .batchnorm = true};
  auto first = grouped, last = grouped;
  first.relu = true;
  last.gain = stride == 1 ? 0.5 : 1.0;
  auto y = net.shuffle(net.conv(x, first), groups);
  y = net.conv(y, {.channels = width, .over = {{3, 3}, {stride, stride}, same_padding(1)}, .group = width, .bias = false, .batchnorm = true, .gain = 1.0});
  y = net.conv(y, last);
  if (stride == 1) return net.relu(net.add(y, x));
  const auto pooled = net.average_pool(x, {{3, 3}, {stride, stride}, same_padding(1)});
  return net.relu(net.concat({y, pooled}));
}

/// One row of the tables of MobileNetV3.
struct inverted_bottleneck {
  std::int64_t kernel, expanded, channels;
  bool squeeze;  ///< squeeze and excite after the depthwise layer
  bool hard;     ///< HardSwish; else Relu
  std::int64_t stride;
};

/// The next multiple of 8 of a quarter of the channels, rounded to the nearest and not more than a tenth below it.
[[nodiscard]] constexpr std::int64_t squeezed(std::int64_t channels) {
  const auto quarter = channels / 4;
  const auto rounded = std::max<std::int64_t>(8, (quarter + 4) / 8 * 8);
  return 10 * rounded < 9 * quarter ? rounded + 8 : rounded;
}
[[nodiscard]] inline value bottleneck_v3(layers& net, const value& x, const inverted_bottleneck& b) {
  const auto active = [&](const value& y) { return b.hard ? net.hard_swish(y) : net.relu(y); };
  auto y = x;
  if (b.expanded != x.sizes[1]) y = active(net.conv(x, {.channels = b.expanded, .over = {}}));
  y = active(net.conv(y, {.channels = b.expanded, .over = {{b.kernel, b.kernel}, {b.stride, b.stride}, same_padding(b.kernel / 2)}, .group = b.expanded}));
  if (b.squeeze) {
    const auto narrow = net.conv(net.global_average_pool(y), {.channels = squeezed(b.expanded), .over = {}, .relu = true});
    y = net.multiply(y, net.hard_sigmoid(net.conv(narrow, {.channels = b.expanded, .over = {}})));
  }
  const bool residual = b.stride == 1 && x.sizes[1] == b.channels;
  y = net.conv(y, {.channels = b.channels, .over = {}, .gain = residual ? 0.5 : std::numbers::sqrt2});
  return residual ? net.add(x, y) : y;
}
[[nodiscard]] inline ::onnx::ModelProto mobilenetv3(layers&& net, std::span<const inverted_bottleneck> rows, std::int64_t width) {
  auto x = net.hard_swish(net.conv(net.input(), {.channels = 16, .over = {{3, 3}, {2, 2}, same_padding(1)}}));
  for (const auto& row : rows) x = bottleneck_v3(net, x, row);
  x = net.hard_swish(net.conv(x, {.channels = 6 * x.sizes[1], .over = {}}));
  x = net.flatten(net.global_average_pool(x));
  x = net.hard_swish(net.fully_connected(x, width, 2.0));
  return std::move(net).finish(net.fully_connected(x, 1000));
}

}  // namespace detail

/// SqueezeNet 1.1 (Iandola et al. 2016; the variant with the pools moved to the front).
[[nodiscard]] inline ::onnx::ModelProto squeezenet(layers&& net) {
  const window pool{{3, 3}, {2, 2}, {}};
  auto x = net.conv(net.input(), {.channels = 64, .over = {{3, 3}, {2, 2}, {}}, .relu = true});
  x = net.max_pool(x, pool);
  for (int i = 0; i < 2; ++i) x = detail::fire(net, x, 16, 64);
  x = net.max_pool(x, pool);
  for (int i = 0; i < 2; ++i) x = detail::fire(net, x, 32, 128);
  x = net.max_pool(x, pool);
  for (const int squeeze : {48, 48, 64, 64}) x = detail::fire(net, x, squeeze, 4 * squeeze);
  x = net.dropout(x, 0.5F);
  x = net.conv(x, {.channels = 1000, .over = {}, .relu = true});
  return std::move(net).finish(net.softmax(net.global_average_pool(x)));
}

/// MobileNetV2 (Sandler et al. 2018, table 2), BatchNormalization already folded into the convolutions.
[[nodiscard]] inline ::onnx::ModelProto mobilenetv2(layers&& net) {
  struct stage {
    std::int64_t expansion, channels;
    int blocks;
    std::int64_t stride;
  };
  auto x = net.clip(net.conv(net.input(), {.channels = 32, .over = {{3, 3}, {2, 2}, same_padding(1)}}), 0.0F, 6.0F);
  for (const auto& s : {stage{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}})
    for (int i = 0; i < s.blocks; ++i) x = detail::inverted_residual(net, x, s.expansion, s.channels, i == 0 ? s.stride : 1);
  x = net.clip(net.conv(x, {.channels = 1280, .over = {}}), 0.0F, 6.0F);
  x = net.global_average_pool(x);
  return std::move(net).finish(net.fully_connected(net.reshape(x, {1, x.sizes[1]}), 1000));
}

/// MobileNetV3-Large (Howard et al. 2019, table 1), BatchNormalization already folded into the convolutions.
[[nodiscard]] inline ::onnx::ModelProto mobilenetv3_large(layers&& net) {
  static constexpr detail::inverted_bottleneck rows[] = {
      {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},  {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1},
      {5, 120, 40, true, false, 1}, {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1},  {3, 184, 80, false, true, 1}, {3, 184, 80, false, true, 1},
      {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1}, {5, 672, 160, true, true, 2},  {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1}};
  return detail::mobilenetv3(std::move(net), rows, 1280);
}
/// MobileNetV3-Small (the same, table 2).
[[nodiscard]] inline ::onnx::ModelProto mobilenetv3_small(layers&& net) {
  static constexpr detail::inverted_bottleneck rows[] = {
      {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1}, {5, 96, 40, true, true, 2},
      {5, 240, 40, true, true, 1}, {5, 240, 40, true, true, 1},  {5, 120, 48, true, true, 1},  {5, 144, 48, true, true, 1},
      {5, 288, 96, true, true, 2}, {5, 576, 96, true, true, 1},  {5, 576, 96, true, true, 1}};
  return detail::mobilenetv3(std::move(net), rows, 1024);
}

/// ShuffleNet v1 (Zhang et al. 2018) with four groups and stages of 136, 272 and 544 channels.
[[nodiscard]] inline ::onnx::ModelProto shufflenet(layers&& net) {
  auto x = net.conv(net.input(), {.channels = 24, .over = {{3, 3}, {2, 2}, same_padding(1)}, .batchnorm = true, .relu = true});
  x = net.max_pool(x, {{3, 3}, {2, 2}, same_padding(1)});
  std::int64_t channels = 136;
  for (const int units : {4, 8, 4}) {
    for (int i = 0; i < units; ++i) x = detail::shuffle_unit(net, x, channels, i == 0 ? 2 : 1);
    channels *= 2;
  }
  x = net.average_pool(x);
  x = net.fully_connected(net.reshape(x, {1, x.sizes[1]}), 1000);
  return std::move(net).finish(net.softmax(x));
}

}  // namespace raptor::onnx_io::zoo
