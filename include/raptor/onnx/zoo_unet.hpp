#pragma once

#include <vector>

#include "raptor/onnx/zoo_layers.hpp"

/// U-Net: a network of maps whose result has the size of its input.
namespace raptor::onnx_io::zoo {

namespace detail {

/// Two 3 × 3 layers with BatchNormalization and Relu that keep the size of the map.
[[nodiscard]] inline value double_conv(layers& net, const value& x, std::int64_t channels) {
  const convolution c{.channels = channels, .over = {{3, 3}, {1, 1}, same_padding(1)}, .bias = false, .batchnorm = true, .relu = true};
  return net.conv(net.conv(x, c), c);
}

}  // namespace detail

/// U-Net (Ronneberger et al. 2015, figure 1) with padded windows, a quarter of the channels and three halvings: two classes
/// for every pixel. The way up is ConvTranspose; each map of the way down is joined to the one of its size.
[[nodiscard]] inline ::onnx::ModelProto unet(layers&& net) {
  constexpr std::int64_t width = 16;
  constexpr int halvings = 3;
  std::vector<value> down;
  auto x = detail::double_conv(net, net.input(), width);
  for (int i = 0; i < halvings; ++i) {
    down.push_back(x);
    x = detail::double_conv(net, net.max_pool(x, {{2, 2}, {2, 2}, {}}), 2 * x.sizes[1]);
  }
  for (; !down.empty(); down.pop_back()) {
    x = net.conv_transpose(x, x.sizes[1] / 2, 2);
    x = detail::double_conv(net, net.concat({down.back(), x}), x.sizes[1]);
  }
  return std::move(net).finish(net.conv(x, {.channels = 2, .over = {}, .gain = 1.0}));
}

}  // namespace raptor::onnx_io::zoo
