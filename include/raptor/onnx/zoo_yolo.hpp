#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "raptor/onnx/zoo_layers.hpp"

/// YOLO11n, the detector, with BatchNormalization already folded into the convolutions.
namespace raptor::onnx_io::zoo {

namespace detail::yolo {

/// Layers of the published table: 11 of the backbone, 12 of the neck, the detection head.
inline constexpr std::int64_t layer_count = 24;
inline constexpr std::int64_t classes = 80;
/// Bins of the distribution over one distance from an anchor to a side of its box.
inline constexpr std::int64_t bins = 16;
/// Of a convolution whose input went through SiLU: the mean square of SiLU over a standard normal variable is 0.3557.
inline constexpr double silu_gain = 1.6767;
/// Of the last layer of a branch that is added to its input. It is less than silu_gain: SiLU turns a sum that is larger than
/// its input into one that is larger still, and the maps would grow from block to block.
inline constexpr double branch_gain = 1.2;

struct layer_options {
  std::int64_t kernel = 1, stride = 1, group = 1;
  bool active = true;
  double gain = silu_gain;
};
/// Convolution that keeps the map (or divides it by the stride), then SiLU.
[[nodiscard]] inline value conv(layers& net, const value& x, std::int64_t channels, const layer_options& o = {}) {
  const auto y = net.conv(x, {.channels = channels,
                              .over = {{o.kernel, o.kernel}, {o.stride, o.stride}, same_padding(o.kernel / 2)},
                              .group = o.group,
                              .gain = o.gain});
  return o.active ? net.silu(y) : y;
}

/// Two 3 × 3 layers over `hidden` channels, added to their input.
[[nodiscard]] inline value bottleneck(layers& net, const value& x, std::int64_t hidden) {
  const auto y = conv(net, conv(net, x, hidden, {.kernel = 3}), x.sizes[1], {.kernel = 3, .gain = branch_gain});
  return net.add(x, y);
}
/// C3k: two bottlenecks of full width on half the channels, beside a 1 × 1.
[[nodiscard]] inline value c3k(layers& net, const value& x) {
  const auto half = x.sizes[1] / 2;
  auto y = conv(net, x, half);
  for (int i = 0; i < 2; ++i) y = bottleneck(net, y, half);
  const auto beside = conv(net, x, half);
  return conv(net, net.concat({y, beside}), x.sizes[1]);
}
/// C3k2: of two halves of `width` channels one goes through a bottleneck or a C3k; all three are joined. `deep`: C3k.
[[nodiscard]] inline value c3k2(layers& net, const value& x, std::int64_t channels, std::int64_t width, bool deep) {
  auto parts = net.split(conv(net, x, 2 * width), 1, {width, width});
  parts.push_back(deep ? c3k(net, parts[1]) : bottleneck(net, parts[1], width / 2));
  return conv(net, net.concat(parts), channels);
}

/// SPPF: three 5 × 5 pools in a row, all four maps joined.
[[nodiscard]] inline value sppf(layers& net, const value& x) {
  std::vector<value> maps{conv(net, x, x.sizes[1] / 2)};
  for (int i = 0; i < 3; ++i) maps.push_back(net.max_pool(maps.back(), {{5, 5}, {1, 1}, same_padding(2)}));
  return conv(net, net.concat(maps), x.sizes[1], {.gain = 0.9});  // the largest of many values is about twice as large
}

/// Attention between all pixels; heads of 64 channels with keys of 32, and a depthwise 3 × 3 of the values as position.
[[nodiscard]] inline value attention(layers& net, const value& x) {
  const auto channels = x.sizes[1], heads = channels / 64, width = channels / heads, key = width / 2, pixels = x.sizes[2] * x.sizes[3];
  const auto joint = conv(net, x, channels + 2 * key * heads, {.active = false, .gain = 1.0});
  const auto parts = net.split(net.reshape(joint, {1, heads, 2 * key + width, pixels}), 2, {key, key, width});
  auto weights = net.matmul(net.transpose(parts[0], {0, 1, 3, 2}), parts[1]);
  weights = net.softmax(net.scale(weights, 1.0F / std::sqrt(static_cast<float>(key))), -1);
  const auto mixed = net.matmul(parts[2], net.transpose(weights, {0, 1, 3, 2}));
  const auto values = net.reshape(parts[2], x.sizes);
  const auto position = conv(net, values, channels, {.kernel = 3, .group = channels, .active = false, .gain = 1.0});
  return conv(net, net.add(net.reshape(mixed, x.sizes), position), channels, {.active = false, .gain = branch_gain});
}
/// C2PSA: half the channels go through attention and a pair of 1 × 1 layers, each added to its input.
[[nodiscard]] inline value c2psa(layers& net, const value& x) {
  const auto half = x.sizes[1] / 2;
  const auto parts = net.split(conv(net, x, 2 * half), 1, {half, half});
  auto y = net.add(parts[1], attention(net, parts[1]));
  const auto wide = conv(net, y, 2 * half);
  y = net.add(y, conv(net, wide, half, {.active = false, .gain = branch_gain}));
  return conv(net, net.concat({parts[0], y}), x.sizes[1]);
}

/// The detection head. Result: [1, 4 + classes, anchors]: centre and size of each box in pixels, then the probability of
/// each class. The distance from an anchor to a side is the mean of a distribution over `bins` cells.
[[nodiscard]] inline value detect(layers& net, const std::array<value, 3>& maps) {
  const auto box_width = std::max<std::int64_t>({16, maps[0].sizes[1] / 4, 4 * bins}), class_width = std::max(maps[0].sizes[1], classes);
  std::vector<value> rows;
  std::vector<float> anchor_x, anchor_y, strides;
  for (const auto& map : maps) {
    auto box = conv(net, conv(net, map, box_width, {.kernel = 3}), box_width, {.kernel = 3});
    box = net.conv(box, {.channels = 4 * bins, .over = {}, .gain = silu_gain});
    auto score = conv(net, map, map.sizes[1], {.kernel = 3, .group = map.sizes[1]});
    score = conv(net, score, class_width);
    score = conv(net, score, class_width, {.kernel = 3, .group = class_width});
    score = net.conv(conv(net, score, class_width), {.channels = classes, .over = {}, .gain = silu_gain});
    const auto height = map.sizes[2], width = map.sizes[3];
    rows.push_back(net.reshape(net.concat({box, score}), {1, 4 * bins + classes, height * width}));
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) {
        anchor_x.push_back(static_cast<float>(x) + 0.5F);
        anchor_y.push_back(static_cast<float>(y) + 0.5F);
        strides.push_back(static_cast<float>(net.input().sizes[2] / height));
      }
  }
  const auto anchors = static_cast<std::int64_t>(strides.size());
  anchor_x.insert(anchor_x.end(), anchor_y.begin(), anchor_y.end());
  const auto parts = net.split(net.concat(rows, 2), 1, {4 * bins, classes});

  auto distance = net.transpose(net.reshape(parts[0], {1, 4, bins, anchors}), {0, 2, 1, 3});
  std::array<float, bins> cells{};
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<float>(i);
  distance = net.reshape(net.conv(net.softmax(distance), net.constant({1, bins, 1, 1}, cells)), {1, 4, anchors});

  const auto sides = net.split(distance, 1, {2, 2});
  const auto centre = net.constant({1, 2, anchors}, anchor_x);
  const auto low = net.subtract(centre, sides[0]), high = net.add(centre, sides[1]);
  const auto middle = net.scale(net.add(low, high), 0.5F);
  const auto box = net.multiply(net.concat({middle, net.subtract(high, low)}), net.constant({1, 1, anchors}, strides));
  return net.concat({box, net.sigmoid(parts[1])});
}

}  // namespace detail::yolo

/// YOLO11n (Ultralytics 2024, scale n, 80 classes). A prefix ends with the map of its last layer.
[[nodiscard]] inline ::onnx::ModelProto yolo11n(layers&& net) {
  namespace y = detail::yolo;
  std::vector<value> made;  // by layer of the table
  const auto at = [&](std::size_t layer) -> const value& { return made[layer]; };
  const auto last = [&]() -> const value& { return made.empty() ? net.input() : made.back(); };
  const auto halve = [&](std::int64_t channels) { return [&, channels] { return y::conv(net, last(), channels, {.kernel = 3, .stride = 2}); }; };
  const auto block = [&](std::int64_t channels, std::int64_t width, bool deep) {
    return [&, channels, width, deep] { return y::c3k2(net, last(), channels, width, deep); };
  };
  const auto enlarge = [&] { return net.upsample(last(), 2); };
  const auto join = [&](std::size_t layer) { return [&, layer] { return net.concat({last(), at(layer)}); }; };
  const std::array<std::function<value()>, y::layer_count> table{
      halve(16),
      halve(32),
      block(64, 16, false),
      halve(64),
      block(128, 32, false),
      halve(128),
      block(128, 64, true),
      halve(256),
      block(256, 128, true),
      [&] { return y::sppf(net, last()); },
      [&] { return y::c2psa(net, last()); },
      enlarge,
      join(6),
      block(128, 64, false),
      enlarge,
      join(4),
      block(64, 32, false),
      halve(64),
      join(13),
      block(128, 64, false),
      halve(128),
      join(10),
      block(256, 128, true),
      [&] { return y::detect(net, {at(16), at(19), at(22)}); },
  };
  const auto depth = net.made().depth == 0 ? y::layer_count : net.made().depth;
  for (std::int64_t i = 0; i < depth; ++i) made.push_back(table[static_cast<std::size_t>(i)]());
  return std::move(net).finish(made.back());
}

}  // namespace raptor::onnx_io::zoo
