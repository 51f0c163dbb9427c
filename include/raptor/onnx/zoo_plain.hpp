#pragma once

#include <numbers>

#include "raptor/onnx/zoo_layers.hpp"

/// Networks without branches, and the two small ones that tests and the demonstration use.
namespace raptor::onnx_io::zoo {

/// The thin slice: Conv, Relu, MaxPool, Gemm.
[[nodiscard]] inline ::onnx::ModelProto tiny(layers&& net) {
  auto x = net.conv(net.input(), {.channels = 8, .over = {{3, 3}, {1, 1}, same_padding(1)}, .relu = true});
  x = net.max_pool(x, {{2, 2}, {2, 2}, {}});
  x = net.fully_connected(net.flatten(x), 10);
  return std::move(net).finish(x);
}

/// A small residual network with a depthwise-separable layer: Conv, BatchNormalization, Relu, Clip, Add, both kinds of
/// pool, Gemm, Softmax.
[[nodiscard]] inline ::onnx::ModelProto demo(layers&& net) {
  const window square{{3, 3}, {1, 1}, same_padding(1)};
  auto x = net.conv(net.input(), {.channels = 16, .over = square, .bias = false, .batchnorm = true, .relu = true});
  x = net.conv(x, {.channels = 16, .over = {{3, 3}, {2, 2}, same_padding(1)}, .group = 16});
  x = net.clip(x, 0.0F, 6.0F);
  const auto shortcut = net.conv(x, {.channels = 32, .over = {}, .relu = true});
  x = net.conv(shortcut, {.channels = 32, .over = square, .bias = false, .batchnorm = true, .relu = true});
  x = net.conv(x, {.channels = 32, .over = square, .bias = false, .batchnorm = true, .gain = 0.5});
  x = net.relu(net.add(x, shortcut));
  x = net.max_pool(x, {{2, 2}, {2, 2}, {}});
  x = net.conv(x, {.channels = 64, .over = square, .relu = true});
  x = net.average_pool(x, {{3, 3}, {2, 2}, same_padding(1)});
  x = net.flatten(net.global_average_pool(x));
  x = net.softmax(net.fully_connected(x, 10, 2.0));
  return std::move(net).finish(x);
}

/// LeNet-5 (LeCun et al. 1998, section II.B), every map of the first stage connected to every map of the second.
[[nodiscard]] inline ::onnx::ModelProto lenet5(layers&& net) {
  auto x = net.tanh(net.conv(net.input(), {.channels = 6, .over = {{5, 5}, {1, 1}, same_padding(2)}}));
  x = net.average_pool(x, {{2, 2}, {2, 2}, {}});
  x = net.tanh(net.conv(x, {.channels = 16, .over = {{5, 5}, {1, 1}, {}}}));
  x = net.average_pool(x, {{2, 2}, {2, 2}, {}});
  x = net.flatten(x);
  x = net.tanh(net.fully_connected(x, 120, std::numbers::sqrt2));
  x = net.tanh(net.fully_connected(x, 84, std::numbers::sqrt2));
  x = net.softmax(net.fully_connected(x, 10, std::numbers::sqrt2));
  return std::move(net).finish(x);
}

/// VGG-11 (Simonyan and Zisserman 2015, table 1, column A). The first fully connected layer reads whatever map is left.
[[nodiscard]] inline ::onnx::ModelProto vgg11(layers&& net) {
  constexpr int pool = 0;
  auto x = net.input();
  for (const int channels : {64, pool, 128, pool, 256, 256, pool, 512, 512, pool, 512, 512, pool})
    x = channels == pool ? net.max_pool(x, {{2, 2}, {2, 2}, {}})
                         : net.conv(x, {.channels = channels, .over = {{3, 3}, {1, 1}, same_padding(1)}, .relu = true});
  x = net.flatten(x);
  for (int i = 0; i < 2; ++i) x = net.dropout(net.relu(net.fully_connected(x, 4096, std::numbers::sqrt2)), 0.5F);
  return std::move(net).finish(net.fully_connected(x, 1000));
}

}  // namespace raptor::onnx_io::zoo
