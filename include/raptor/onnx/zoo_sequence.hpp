#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include "raptor/onnx/zoo_layers.hpp"

/// Networks of sequences: a transformer encoder and an unrolled LSTM.
namespace raptor::onnx_io::zoo {

namespace detail {

/// Self-attention of x [1, tokens, width]; heads share the width.
[[nodiscard]] inline value self_attention(layers& net, const value& x, std::int64_t heads) {
  const auto tokens = x.sizes[1], width = x.sizes[2], key = width / heads;
  std::vector<value> parts = net.split(net.linear(x, 3 * width), 2, {width, width, width});
  for (auto& part : parts) part = net.reshape(part, {1, tokens, heads, key});
  const auto queries = net.transpose(parts[0], {0, 2, 1, 3}), keys = net.transpose(parts[1], {0, 2, 3, 1});
  const auto scores = net.scale(net.matmul(queries, keys), 1.0F / std::sqrt(static_cast<float>(key)));
  const auto mixed = net.matmul(net.softmax(scores, -1), net.transpose(parts[2], {0, 2, 1, 3}));
  return net.linear(net.reshape(net.transpose(mixed, {0, 2, 1, 3}), x.sizes), width);
}

}  // namespace detail

/// A small transformer encoder (Vaswani et al. 2017, section 3.1) that normalizes before each part: positions are learnt,
/// two blocks of four heads, the mean over the tokens goes to ten classes. Input: [1, tokens, 64].
[[nodiscard]] inline ::onnx::ModelProto transformer(layers&& net) {
  const auto width = net.input().sizes[2];
  auto x = net.add(net.input(), net.constant(net.input().sizes, 0.0F, 0.5F));
  for (int block = 0; block < 2; ++block) {
    x = net.add(x, detail::self_attention(net, net.layer_normalization(x), 4));
    const auto wide = net.gelu(net.linear(net.layer_normalization(x), 4 * width, std::numbers::sqrt2));
    x = net.add(x, net.linear(wide, width));
  }
  x = net.mean(net.layer_normalization(x), 1);
  return std::move(net).finish(net.softmax(net.fully_connected(x, 10, 4.0)));
}

/// A long short-term memory of 64 cells, one set of nodes for each step, that share their weights; its last state goes to
/// ten classes. Input: [steps, 1, 32]. Gates in the order input, output, forget, cell.
[[nodiscard]] inline ::onnx::ModelProto lstm(layers&& net) {
  constexpr std::int64_t cells = 64;
  const auto steps = net.input().sizes[0], features = net.input().sizes[2];
  const auto spread = [](std::int64_t inputs) { return static_cast<float>(std::sqrt(3.0 / static_cast<double>(inputs))); };
  const auto input_weights = net.constant({4 * cells, features}, 0.0F, spread(features));
  const auto state_weights = net.constant({4 * cells, cells}, 0.0F, spread(cells));
  const auto input_bias = net.constant({4 * cells}, 0.0F, 0.1F), state_bias = net.constant({4 * cells}, 0.0F, 0.1F);
  const std::vector<float> zeros(static_cast<std::size_t>(cells));
  auto state = net.constant({1, cells}, zeros), memory = net.constant({1, cells}, zeros);
  const auto parts = steps == 1 ? std::vector{net.input()} : net.split(net.input(), 0, shape(static_cast<std::size_t>(steps), 1));
  for (const auto& part : parts) {
    const auto driven = net.gemm(net.reshape(part, {1, features}), input_weights, input_bias);
    const auto gates = net.split(net.add(driven, net.gemm(state, state_weights, state_bias)), 1, {cells, cells, cells, cells});
    const auto in = net.sigmoid(gates[0]), out = net.sigmoid(gates[1]), forget = net.sigmoid(gates[2]), candidate = net.tanh(gates[3]);
    memory = net.add(net.multiply(forget, memory), net.multiply(in, candidate));
    state = net.multiply(out, net.tanh(memory));
  }
  return std::move(net).finish(net.softmax(net.fully_connected(state, 10, 4.0)));
}

}  // namespace raptor::onnx_io::zoo
