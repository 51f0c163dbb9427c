#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <string>
#include <utility>
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

/// What a network may leave out.
struct variant {
  std::int64_t depth = 0;  ///< layers of the published table that are built, counted from the input; 0: all
  bool softmax = true;     ///< false: every Softmax is left out, its operand takes the place of its result
};

/// Layers of a network over a model builder; every function appends one layer and returns its value.
///
/// A layer has a number, counted from the input (0), and its nodes are named after kind and number: "conv_3",
/// "conv_3_batchnorm", "conv_3_relu". Shapes of maps are N, C, H, W with N = 1;
/// no operator depends on it, so that a reader may give the input another N.
/// Errors: error_code::usage when a window does not fit the padded map: the network's input is too small.
class layers {
 public:
  /// `size`: what the user chose, for messages. `opset`: of the operators that the network needs.
  layers(std::string network, std::uint64_t seed, const shape& input, std::int64_t size, std::int64_t opset = 13, variant made = {})
      : network_(network), size_(size), variant_(made),
        builder_({.graph_name = network, .opset = opset, .ir_version = opset < 15 ? 7 : 8, .seed = seed}) {
    builder_.metadata("network", network);
    builder_.metadata("input_size", std::to_string(size));
    builder_.metadata("seed", std::to_string(seed));
    if (made.depth != 0) builder_.metadata("depth", std::to_string(made.depth));
    if (!made.softmax) builder_.metadata("softmax", "none");
    input_ = {builder_.input("input", input), input};
  }

  [[nodiscard]] const value& input() const noexcept { return input_; }
  [[nodiscard]] const variant& made() const noexcept { return variant_; }

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

  /// A 1 × 1 convolution with given weights [outputs, channels, 1, 1], without bias.
  value conv(const value& x, const value& weights) {
    auto node = builder_.node("Conv", {x.name, weights.name}, next("conv"));
    windowed(node, {}).attribute("dilations", {1, 1}).attribute("group", 1);
    return {node.output(), {x.sizes[0], weights.sizes[0], x.sizes[2], x.sizes[3]}};
  }
  /// The transposed convolution whose window is as large as its stride: every pixel becomes `factor` × `factor` pixels.
  value conv_transpose(const value& x, std::int64_t channels, std::int64_t factor) {
    const auto name = next("conv_transpose");
    // Each result reads one pixel of every input channel, so that the fan-in is the channels alone.
    const auto bound = static_cast<float>(std::sqrt(3.0 / static_cast<double>(x.sizes[1])));
    const auto w = builder_.uniform(name + "_weight", {x.sizes[1], channels, factor, factor}, 0.0F, bound);
    const auto b = builder_.uniform(name + "_bias", {channels}, 0.0F, 0.1F);
    auto node = builder_.node("ConvTranspose", {x.name, w, b}, name);
    windowed(node, {{factor, factor}, {factor, factor}, {}}).attribute("dilations", {1, 1}).attribute("group", 1);
    return {node.output(), {x.sizes[0], channels, x.sizes[2] * factor, x.sizes[3] * factor}};
  }
  /// Every pixel becomes `factor` × `factor` equal pixels.
  value upsample(const value& x, std::int64_t factor) {
    const auto name = next("upsample");
    const auto f = static_cast<float>(factor);
    const float scales[] = {1.0F, 1.0F, f, f};
    auto node = builder_.node("Resize", {x.name, "", builder_.initializer(name + "_scales", {4}, std::span<const float>(scales))}, name);
    node.attribute("mode", "nearest").attribute("coordinate_transformation_mode", "asymmetric").attribute("nearest_mode", "floor");
    return {node.output(), {x.sizes[0], x.sizes[1], x.sizes[2] * factor, x.sizes[3] * factor}};
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
  value sigmoid(const value& x) { return elementwise("Sigmoid", "sigmoid", x); }
  value hard_swish(const value& x) { return elementwise("HardSwish", "hard_swish", x); }
  /// max(0, min(1, x / 6 + 1 / 2)).
  value hard_sigmoid(const value& x) {
    auto node = builder_.node("HardSigmoid", {x.name}, next("hard_sigmoid"));
    node.attribute("alpha", 1.0F / 6.0F).attribute("beta", 0.5F);
    return {node.output(), x.sizes};
  }
  /// x · sigmoid(x), as two nodes.
  value silu(const value& x) {
    const auto name = next("silu");
    const auto gate = builder_.node("Sigmoid", {x.name}, name + "_sigmoid").output();
    return {builder_.node("Mul", {x.name, gate}, name).output(), x.sizes};
  }
  /// x / 2 · (1 + erf(x / √2)), as the nodes of that formula.
  value gelu(const value& x) {
    const auto name = next("gelu");
    const auto root = builder_.scalar(name + "_root", std::numbers::sqrt2_v<float>);
    const auto one = builder_.scalar(name + "_one", 1.0F), half = builder_.scalar(name + "_half", 0.5F);
    const auto e = builder_.node("Erf", {builder_.node("Div", {x.name, root}, name + "_div").output()}, name + "_erf").output();
    const auto sum = builder_.node("Add", {e, one}, name + "_add").output();
    const auto product = builder_.node("Mul", {x.name, sum}, name + "_mul").output();
    return {builder_.node("Mul", {product, half}, name).output(), x.sizes};
  }
  /// Limits to [low, high].
  value clip(const value& x, float low, float high) {
    const auto name = next("clip");
    const auto least = builder_.scalar(name + "_min", low);
    const auto most = builder_.scalar(name + "_max", high);
    return {builder_.node("Clip", {x.name, least, most}, name).output(), x.sizes};
  }
  // Of two operands; the shape is that of the first, to which the second is broadcast.
  value add(const value& a, const value& b) { return elementwise("Add", "add", a, b); }
  value subtract(const value& a, const value& b) { return elementwise("Sub", "sub", a, b); }
  value multiply(const value& a, const value& b) { return elementwise("Mul", "mul", a, b); }
  value scale(const value& x, float factor) {
    const auto name = next("scale");
    return {builder_.node("Mul", {x.name, builder_.scalar(name + "_factor", factor)}, name).output(), x.sizes};
  }
  /// Along `axis`: the channels of maps.
  value concat(const std::vector<value>& parts, std::size_t axis = 1) {
    std::vector<std::string> names;
    shape sizes = parts.at(0).sizes;
    sizes[axis] = 0;
    for (const auto& part : parts) {
      names.push_back(part.name);
      sizes[axis] += part.sizes[axis];
    }
    return {builder_.node("Concat", names, next("concat")).attribute("axis", static_cast<std::int64_t>(axis)).output(), sizes};
  }
  /// Cuts along `axis` into parts of the given lengths.
  std::vector<value> split(const value& x, std::size_t axis, const shape& lengths) {
    const auto name = next("split");
    const auto cuts = builder_.integers(name + "_lengths", lengths);
    auto node = builder_.node("Split", {x.name, cuts}, name, static_cast<int>(lengths.size()));
    node.attribute("axis", static_cast<std::int64_t>(axis));
    std::vector<value> parts;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      parts.push_back({node.output(static_cast<int>(i)), x.sizes});
      parts.back().sizes[axis] = lengths[i];
    }
    return parts;
  }
  value transpose(const value& x, const shape& permutation) {
    shape sizes;
    for (const auto axis : permutation) sizes.push_back(x.sizes[static_cast<std::size_t>(axis)]);
    return {builder_.node("Transpose", {x.name}, next("transpose")).attribute("perm", std::span<const std::int64_t>(permutation)).output(), sizes};
  }
  /// Interleaves the channels of the groups: Reshape, Transpose, Reshape.
  value shuffle(const value& x, std::int64_t groups) {
    const auto name = next("shuffle");
    const auto& s = x.sizes;
    const auto split = builder_.integers(name + "_split_shape", {-1, groups, s[1] / groups, s[2], s[3]});
    const auto joined = builder_.integers(name + "_join_shape", {-1, s[1], s[2], s[3]});
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
  /// To `sizes`, of which the first is left to ONNX (-1): it is the batch, and the model fits any.
  value reshape(const value& x, const shape& sizes) {
    const auto name = next("reshape");
    shape open = sizes;
    open.at(0) = -1;
    const auto target = builder_.integers(name + "_shape", open);
    return {builder_.node("Reshape", {x.name, target}, name).output(), sizes};
  }
  /// x: [1, features]. Gemm with the weights as [outputs, features].
  value fully_connected(const value& x, std::int64_t outputs, double gain = 1.0) {
    const auto name = next("fc");
    const auto w = builder_.he_uniform(name + "_weight", {outputs, x.sizes[1]}, gain);
    const auto b = builder_.uniform(name + "_bias", {outputs}, 0.0F, 0.1F);
    return {builder_.node("Gemm", {x.name, w, b}, name).attribute("transB", 1).output(), {1, outputs}};
  }
  /// a: […, m, k], b: […, k, n].
  value matmul(const value& a, const value& b) {
    shape sizes = a.sizes;
    sizes.back() = b.sizes.back();
    return {builder_.node("MatMul", {a.name, b.name}, next("matmul")).output(), sizes};
  }
  /// The same affine map of every row: x […, features] · weights [features, outputs] + bias.
  value linear(const value& x, std::int64_t outputs, double gain = 1.0) {
    const auto name = next("linear");
    const auto inputs = x.sizes.back();
    const auto bound = static_cast<float>(gain * std::sqrt(3.0 / static_cast<double>(inputs)));
    const auto w = builder_.uniform(name + "_weight", {inputs, outputs}, 0.0F, bound);
    const auto b = builder_.uniform(name + "_bias", {outputs}, 0.0F, 0.1F);
    const auto product = builder_.node("MatMul", {x.name, w}, name + "_matmul").output();
    shape sizes = x.sizes;
    sizes.back() = outputs;
    return {builder_.node("Add", {product, b}, name).output(), sizes};
  }
  /// Over the last axis; opset 17.
  value layer_normalization(const value& x) {
    const auto name = next("layernorm");
    const auto scale = builder_.uniform(name + "_scale", {x.sizes.back()}, 1.0F, 0.1F);
    const auto shift = builder_.uniform(name + "_shift", {x.sizes.back()}, 0.0F, 0.1F);
    auto node = builder_.node("LayerNormalization", {x.name, scale, shift}, name);
    node.attribute("axis", -1).attribute("epsilon", 1e-5F);
    return {node.output(), x.sizes};
  }
  /// The mean over `axis`, which is dropped.
  value mean(const value& x, std::size_t axis) {
    auto node = builder_.node("ReduceMean", {x.name}, next("mean"));
    node.attribute("axes", {static_cast<std::int64_t>(axis)}).attribute("keepdims", 0);
    shape sizes = x.sizes;
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis));
    return {node.output(), sizes};
  }
  value softmax(const value& x, std::int64_t axis = 1) {
    if (!variant_.softmax) return x;
    return {builder_.node("Softmax", {x.name}, next("softmax")).attribute("axis", axis).output(), x.sizes};
  }

  // Constants.
  value constant(const shape& sizes, std::span<const float> values) {
    return {builder_.initializer(next("constant"), sizes, values), sizes};
  }
  value constant(const shape& sizes, float center, float spread) { return {builder_.uniform(next("constant"), sizes, center, spread), sizes}; }
  /// A Gemm with weights that several layers share: x [1, features] · weightsᵀ + bias, weights [outputs, features].
  value gemm(const value& x, const value& weights, const value& bias) {
    auto node = builder_.node("Gemm", {x.name, weights.name, bias.name}, next("gemm"));
    return {node.attribute("transB", 1).output(), {1, weights.sizes[0]}};
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
  value elementwise(const std::string& op, const std::string& kind, const value& a, const value& b) {
    return {builder_.node(op, {a.name, b.name}, next(kind)).output(), a.sizes};
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
  variant variant_;
  model_builder builder_;
  value input_;
  std::int64_t count_ = 0;
};

}  // namespace raptor::onnx_io::zoo
