#pragma once

#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "raptor/onnx/builder.hpp"

/// Layers and networks of the zoo, in a namespace of their own: the importer has a convolution and a window too.
namespace raptor::onnx_io::zoo {

/// Height and width.
struct extent {
  std::int64_t height = 1;
  std::int64_t width = 1;
};

/// Rows and columns added on each side; the order is that of the ONNX attribute.
struct padding {
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;
};
[[nodiscard]] constexpr padding same_padding(std::int64_t n) { return {n, n, n, n}; }

/// A value of the network under construction.
struct value {
  std::string name;
  shape sizes;
};

struct window {
  extent kernel;
  extent stride;
  padding pads;
};

struct convolution {
  std::int64_t channels = 1;  ///< output channels
  window over;
  std::int64_t group = 1;
  bool bias = true;
  bool batchnorm = false;
  bool relu = false;
  /// Standard deviation of the result over the root mean square of the input. √2 where an activation follows that
  /// discards the negative half, 1 where none does, less where a residual sum follows (it would grow without end).
  double gain = std::numbers::sqrt2;
};

/// Layers of a convolutional network over a model builder; every function appends one layer and returns its value.
///
/// A layer has a number, counted from the input (0), and its nodes are named after kind and number: "conv_3",
/// "conv_3_batchnorm", "conv_3_relu". Shapes are N, C, H, W with N = 1.
/// Errors: error_code::usage when a window does not fit the padded map: the network's input is too small.
class layers {
 public:
  layers(std::string network, std::uint64_t seed, std::int64_t channels, std::int64_t size)
      : network_(network), size_(size), builder_({.graph_name = network, .seed = seed}) {
    builder_.metadata("network", network);
    builder_.metadata("input_size", std::to_string(size));
    builder_.metadata("seed", std::to_string(seed));
    input_ = {builder_.input("input", {1, channels, size, size}), {1, channels, size, size}};
  }

  [[nodiscard]] const value& input() const noexcept { return input_; }

  value conv(const value& x, const convolution& c) {
    const auto name = next("conv");
    const auto sizes = slide(name, x, c.channels, c.over);
    const shape weight_sizes{c.channels, x.sizes[1] / c.group, c.over.kernel.height, c.over.kernel.width};
    std::vector<std::string> inputs{x.name, builder_.he_uniform(name + "_weight", weight_sizes, c.gain)};
    if (c.bias) inputs.push_back(builder_.uniform(name + "_bias", {c.channels}, 0.0F, 0.1F));
    auto node = builder_.node("Conv", inputs, name);
    windowed(node, c.over).attribute("dilations", {1, 1}).attribute("group", c.group);
    value y{node.output(), sizes};
    if (c.batchnorm) {
      const auto bn = name + "_batchnorm";
      const auto scale = builder_.uniform(bn + "_scale", {c.channels}, 1.0F, 0.1F);
      const auto shift = builder_.uniform(bn + "_shift", {c.channels}, 0.0F, 0.1F);
      const auto mean = builder_.uniform(bn + "_mean", {c.channels}, 0.0F, 0.1F);
      const auto variance = builder_.uniform(bn + "_variance", {c.channels}, 1.0F, 0.2F);
      y.name = builder_.node("BatchNormalization", {y.name, scale, shift, mean, variance}, bn).attribute("epsilon", 1e-5F).output();
    }
    if (c.relu) y.name = builder_.node("Relu", {y.name}, name + "_relu").output();
    return y;
  }

  value max_pool(const value& x, const window& w) {
    const auto name = next("pool");
    auto node = builder_.node("MaxPool", {x.name}, name);
    windowed(node, w);
    return {name, slide(name, x, x.sizes[1], w)};
  }
  value average_pool(const value& x, const window& w, bool count_padding = false) {
    const auto name = next("pool");
    auto node = builder_.node("AveragePool", {x.name}, name);
    windowed(node, w).attribute("count_include_pad", count_padding ? 1 : 0);
    return {name, slide(name, x, x.sizes[1], w)};
  }
  /// An AveragePool whose window is the whole map.
  value average_pool(const value& x) { return average_pool(x, {{x.sizes[2], x.sizes[3]}, {}, {}}); }
  value global_average_pool(const value& x) {
    const auto name = next("pool");
    return {builder_.node("GlobalAveragePool", {x.name}, name).output(), {1, x.sizes[1], 1, 1}};
  }

  value relu(const value& x) { return elementwise("Relu", "relu", x); }
  value tanh(const value& x) { return elementwise("Tanh", "tanh", x); }
  /// Limits to [low, high].
  value clip(const value& x, float low, float high) {
    const auto name = next("clip");
    const auto least = builder_.scalar(name + "_min", low);
    const auto most = builder_.scalar(name + "_max", high);
    return {builder_.node("Clip", {x.name, least, most}, name).output(), x.sizes};
  }
  value add(const value& a, const value& b) {
    return {builder_.node("Add", {a.name, b.name}, next("add")).output(), a.sizes};
  }
  /// Along the channels.
  value concat(const std::vector<value>& parts) {
    std::vector<std::string> names;
    shape sizes = parts.at(0).sizes;
    sizes[1] = 0;
    for (const auto& part : parts) {
      names.push_back(part.name);
      sizes[1] += part.sizes[1];
    }
    return {builder_.node("Concat", names, next("concat")).attribute("axis", 1).output(), sizes};
  }
  /// Interleaves the channels of the groups: Reshape, Transpose, Reshape.
  value shuffle(const value& x, std::int64_t groups) {
    const auto name = next("shuffle");
    const auto& s = x.sizes;
    const auto split = builder_.integers(name + "_split_shape", {s[0], groups, s[1] / groups, s[2], s[3]});
    const auto joined = builder_.integers(name + "_join_shape", s);
    const auto grouped = builder_.node("Reshape", {x.name, split}, name + "_split").output();
    const auto turned = builder_.node("Transpose", {grouped}, name + "_transpose").attribute("perm", {0, 2, 1, 3, 4}).output();
    return {builder_.node("Reshape", {turned, joined}, name + "_join").output(), s};
  }
  /// Across five channels, with the constants of AlexNet and GoogLeNet.
  value lrn(const value& x) {
    auto node = builder_.node("LRN", {x.name}, next("lrn"));
    node.attribute("size", 5).attribute("alpha", 1e-4F).attribute("beta", 0.75F).attribute("bias", 1.0F);
    return {node.output(), x.sizes};
  }
  value dropout(const value& x, float ratio) {
    const auto name = next("dropout");
    const auto r = builder_.scalar(name + "_ratio", ratio);
    return {builder_.node("Dropout", {x.name, r}, name).output(), x.sizes};
  }
  value flatten(const value& x) {
    return {builder_.node("Flatten", {x.name}, next("flatten")).attribute("axis", 1).output(), {1, element_count(x.sizes)}};
  }
  value reshape(const value& x, const shape& sizes) {
    const auto name = next("reshape");
    const auto target = builder_.integers(name + "_shape", sizes);
    return {builder_.node("Reshape", {x.name, target}, name).output(), sizes};
  }
  /// x: [1, features]. Gemm with the weights as [outputs, features].
  value fully_connected(const value& x, std::int64_t outputs, double gain = 1.0) {
    const auto name = next("fc");
    const auto w = builder_.he_uniform(name + "_weight", {outputs, x.sizes[1]}, gain);
    const auto b = builder_.uniform(name + "_bias", {outputs}, 0.0F, 0.1F);
    return {builder_.node("Gemm", {x.name, w, b}, name).attribute("transB", 1).output(), {1, outputs}};
  }
  value softmax(const value& x) {
    return {builder_.node("Softmax", {x.name}, next("softmax")).attribute("axis", 1).output(), x.sizes};
  }

  /// Makes `y` the output of the network, by the name "output", and gives the model away.
  [[nodiscard]] ::onnx::ModelProto finish(const value& y) && {
    builder_.rename_value(y.name, "output");
    builder_.output("output", y.sizes);
    return std::move(builder_).take();
  }

 private:
  std::string next(const std::string& kind) { return kind + "_" + std::to_string(++count_); }

  value elementwise(const std::string& op, const std::string& kind, const value& x) {
    return {builder_.node(op, {x.name}, next(kind)).output(), x.sizes};
  }
  static node_handle& windowed(node_handle& node, const window& w) {
    return node.attribute("kernel_shape", {w.kernel.height, w.kernel.width})
        .attribute("strides", {w.stride.height, w.stride.width})
        .attribute("pads", {w.pads.top, w.pads.left, w.pads.bottom, w.pads.right});
  }
  shape slide(const std::string& name, const value& x, std::int64_t channels, const window& w) const {
    const auto along = [&](std::int64_t n, std::int64_t kernel, std::int64_t stride, std::int64_t before, std::int64_t after) {
      const auto room = n + before + after - kernel;
      if (room < 0)
        throw error(error_code::usage,
                    "an input of " + std::to_string(size_) + "x" + std::to_string(size_) + " is too small for " + network_ +
                        ": a window of " + std::to_string(w.kernel.height) + "x" + std::to_string(w.kernel.width) +
                        " does not fit a map of " + std::to_string(x.sizes[2]) + "x" + std::to_string(x.sizes[3]),
                    name, "choose a larger size");
      return room / stride + 1;
    };
    return {x.sizes[0], channels, along(x.sizes[2], w.kernel.height, w.stride.height, w.pads.top, w.pads.bottom),
            along(x.sizes[3], w.kernel.width, w.stride.width, w.pads.left, w.pads.right)};
  }

  std::string network_;
  std::int64_t size_;
  model_builder builder_;
  value input_;
  std::int64_t count_ = 0;
};

}  // namespace raptor::onnx_io::zoo
