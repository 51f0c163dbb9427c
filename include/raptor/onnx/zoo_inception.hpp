#pragma once

#include "raptor/onnx/zoo_layers.hpp"

/// Networks of parallel branches: GoogLeNet and Inception v3.
namespace raptor::onnx_io::zoo {

namespace detail {

/// A convolution with Relu whose map keeps its size.
[[nodiscard]] inline value same_conv(layers& net, const value& x, std::int64_t channels, extent kernel = {1, 1}) {
  const auto rows = kernel.height / 2, columns = kernel.width / 2;
  return net.conv(x, {.channels = channels, .over = {kernel, {1, 1}, {rows, columns, rows, columns}}, .relu = true});
}
/// 3 × 3 with stride 2 and Relu, no padding.
[[nodiscard]] inline value halving_conv(layers& net, const value& x, std::int64_t channels) {
  return net.conv(x, {.channels = channels, .over = {{3, 3}, {2, 2}, {}}, .relu = true});
}
/// The pool of an Inception v3 branch: the padding counts as zeros.
[[nodiscard]] inline value same_average(layers& net, const value& x) {
  return net.average_pool(x, {{3, 3}, {1, 1}, same_padding(1)}, true);
}

/// Inception module of GoogLeNet: 1 × 1, 3 × 3, 5 × 5 and a pool, each behind or before a 1 × 1.
struct inception_widths {
  std::int64_t single, reduce3, wide3, reduce5, wide5, pool;
};
[[nodiscard]] inline value inception(layers& net, const value& x, const inception_widths& w) {
  const auto a = same_conv(net, x, w.single);
  const auto b = same_conv(net, same_conv(net, x, w.reduce3), w.wide3, {3, 3});
  const auto c = same_conv(net, same_conv(net, x, w.reduce5), w.wide5, {5, 5});
  const auto d = same_conv(net, net.max_pool(x, {{3, 3}, {1, 1}, same_padding(1)}), w.pool);
  return net.concat({a, b, c, d});
}

/// Inception v3, 35 × 35 maps (figure 5 of the paper, with one 5 × 5).
[[nodiscard]] inline value inception_a(layers& net, const value& x, std::int64_t pool) {
  const auto a = same_conv(net, x, 64);
  const auto b = same_conv(net, same_conv(net, x, 48), 64, {5, 5});
  auto c = same_conv(net, x, 64);
  c = same_conv(net, same_conv(net, c, 96, {3, 3}), 96, {3, 3});
  const auto d = same_conv(net, same_average(net, x), pool);
  return net.concat({a, b, c, d});
}
/// To 17 × 17 maps.
[[nodiscard]] inline value reduction_a(layers& net, const value& x) {
  const auto a = halving_conv(net, x, 384);
  const auto b = halving_conv(net, same_conv(net, same_conv(net, x, 64), 96, {3, 3}), 96);
  return net.concat({a, b, net.max_pool(x, {{3, 3}, {2, 2}, {}})});
}
/// 17 × 17 maps: 7 × 7 windows as 1 × 7 and 7 × 1 (figure 6).
[[nodiscard]] inline value inception_b(layers& net, const value& x, std::int64_t width) {
  constexpr extent row{1, 7}, column{7, 1};
  const auto a = same_conv(net, x, 192);
  auto b = same_conv(net, x, width);
  b = same_conv(net, same_conv(net, b, width, row), 192, column);
  auto c = same_conv(net, x, width);
  c = same_conv(net, same_conv(net, c, width, column), width, row);
  c = same_conv(net, same_conv(net, c, width, column), 192, row);
  const auto d = same_conv(net, same_average(net, x), 192);
  return net.concat({a, b, c, d});
}
/// To 8 × 8 maps.
[[nodiscard]] inline value reduction_b(layers& net, const value& x) {
  const auto a = halving_conv(net, same_conv(net, x, 192), 320);
  auto b = same_conv(net, x, 192);
  b = same_conv(net, same_conv(net, b, 192, {1, 7}), 192, {7, 1});
  b = halving_conv(net, b, 192);
  return net.concat({a, b, net.max_pool(x, {{3, 3}, {2, 2}, {}})});
}
/// 8 × 8 maps: 1 × 3 and 3 × 1 side by side (figure 7).
[[nodiscard]] inline value inception_c(layers& net, const value& x) {
  constexpr extent row{1, 3}, column{3, 1};
  const auto a = same_conv(net, x, 320);
  const auto b = same_conv(net, x, 384);
  const auto b_row = same_conv(net, b, 384, row);
  const auto b_column = same_conv(net, b, 384, column);
  const auto c = same_conv(net, same_conv(net, x, 448), 384, {3, 3});
  const auto c_row = same_conv(net, c, 384, row);
  const auto c_column = same_conv(net, c, 384, column);
  const auto d = same_conv(net, same_average(net, x), 192);
  return net.concat({a, b_row, b_column, c_row, c_column, d});
}

}  // namespace detail

/// GoogLeNet (Szegedy et al. 2015, table 1) without the auxiliary classifiers.
[[nodiscard]] inline ::onnx::ModelProto googlenet(layers&& net) {
  // Caffe rounds the size of a pooled map up; these pads do the same with sizes rounded down.
  const window pool{{3, 3}, {2, 2}, {0, 0, 2, 2}};
  auto x = net.conv(net.input(), {.channels = 64, .over = {{7, 7}, {2, 2}, same_padding(3)}, .relu = true});
  x = net.lrn(net.max_pool(x, pool));
  x = detail::same_conv(net, detail::same_conv(net, x, 64), 192, {3, 3});
  x = net.max_pool(net.lrn(x), pool);
  x = detail::inception(net, x, {64, 96, 128, 16, 32, 32});
  x = detail::inception(net, x, {128, 128, 192, 32, 96, 64});
  x = net.max_pool(x, pool);
  x = detail::inception(net, x, {192, 96, 208, 16, 48, 64});
  x = detail::inception(net, x, {160, 112, 224, 24, 64, 64});
  x = detail::inception(net, x, {128, 128, 256, 24, 64, 64});
  x = detail::inception(net, x, {112, 144, 288, 32, 64, 64});
  x = detail::inception(net, x, {256, 160, 320, 32, 128, 128});
  x = net.max_pool(x, pool);
  x = detail::inception(net, x, {256, 160, 320, 32, 128, 128});
  x = detail::inception(net, x, {384, 192, 384, 48, 128, 128});
  x = net.dropout(net.average_pool(x), 0.4F);
  x = net.fully_connected(net.reshape(x, {1, x.sizes[1]}), 1000);
  return std::move(net).finish(net.softmax(x));
}

/// Inception v3 (Szegedy et al. 2016), BatchNormalization already folded into the convolutions.
[[nodiscard]] inline ::onnx::ModelProto inception_v3(layers&& net) {
  const window pool{{3, 3}, {2, 2}, {}}, valid{{3, 3}, {1, 1}, {}};
  auto x = detail::halving_conv(net, net.input(), 32);
  x = net.conv(x, {.channels = 32, .over = valid, .relu = true});
  x = net.max_pool(detail::same_conv(net, x, 64, {3, 3}), pool);
  x = detail::same_conv(net, x, 80);
  x = net.max_pool(net.conv(x, {.channels = 192, .over = valid, .relu = true}), pool);
  for (const int projected : {32, 64, 64}) x = detail::inception_a(net, x, projected);
  x = detail::reduction_a(net, x);
  for (const int width : {128, 160, 160, 192}) x = detail::inception_b(net, x, width);
  x = detail::reduction_b(net, x);
  for (int i = 0; i < 2; ++i) x = detail::inception_c(net, x);
  return std::move(net).finish(net.fully_connected(net.flatten(net.global_average_pool(x)), 1000));
}

}  // namespace raptor::onnx_io::zoo
