#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

/// The closed set of operators of a model graph, as value types. They are ONNX operators in a normal form: every
/// attribute explicit, axes non-negative, auto_pad and defaults resolved, so that shape inference, the reference
/// evaluator and the lowerings need no knowledge of opsets. Shapes are in the tensors, never repeated here.
namespace raptor::model {

using axis_values = std::vector<std::int64_t>;  ///< one value an axis (or a spatial axis)

/// Y[n,m,o…] = Σ X[n,c,o·stride + k·dilation − pad…] · W[m,c,k…] (+ B[m]). Inputs: X, W [M, C/groups, k…], optional B [M].
struct convolution {
  axis_values kernel, strides, dilations, pads_begin, pads_end;  ///< one value a spatial axis
  std::int64_t groups = 1;
};
/// alpha · op(A) · op(B) (+ beta · C), C broadcast to the result. Inputs: A, B, optional C; rank 2.
struct gemm {
  float alpha = 1, beta = 1;
  bool transpose_a = false, transpose_b = false;
};
/// NumPy matmul of any ranks. Inputs: A, B.
struct matmul {};

enum class binary_kind : std::uint8_t { add, subtract, multiply, divide, maximum, minimum, power, prelu };
/// Element-wise with NumPy broadcasting. Inputs: A, B. prelu: A is the data, B the slope: a < 0 ? a · b : a.
struct binary {
  binary_kind kind = binary_kind::add;
};

enum class unary_kind : std::uint8_t {
  relu, leaky_relu, clip, sigmoid, tanh, identity, silu,
  exponential, exponential_minus_one, logarithm, square_root, reciprocal, power, error_function, softplus, sign, floor, round
};
/// Element-wise of one input. `a`, `b`: leaky_relu: a = alpha; clip: a = lower bound, b = upper bound
/// (-infinity and +infinity where the file has none); silu: x · sigmoid(x); power: x^a; round: halves to even.
struct unary {
  unary_kind kind = unary_kind::identity;
  float a = 0, b = 0;
};

/// Softmax jointly over the axes [first, last). Opset 13: last = first + 1; before: last = rank.
struct softmax {
  std::int64_t first = 0, last = 1;
};

enum class pool_kind : std::uint8_t { max, average };
/// Pooling; ceil_mode is already in the output shape, windows may reach past pads_end. GlobalAveragePool and
/// GlobalMaxPool are pools with a kernel of the whole image. average: the divisor counts padding (pads_begin and
/// pads_end, but not what ceil_mode added beyond) where count_include_pad, else only elements of the image.
struct pool {
  pool_kind kind = pool_kind::max;
  axis_values kernel, strides, dilations, pads_begin, pads_end;
  bool count_include_pad = false;
};

/// (x − mean) / sqrt(var + epsilon) · scale + bias by channel (axis 1). Inputs: X, scale, bias, mean, var.
struct batch_normalization {
  float epsilon = 1e-5F;
};
/// Local response normalization across channels: x / (bias + alpha/size · Σ x²)^beta over `size` channels.
struct lrn {
  std::int64_t size = 1;
  float alpha = 1e-4F, beta = 0.75F, bias = 1;
};

enum class reduce_kind : std::uint8_t { sum, mean, maximum, product };
/// Reduction over the axes [first, last) together; they stay, with size 1.
struct reduce {
  reduce_kind kind = reduce_kind::sum;
  std::int64_t first = 0, last = 1;
};
/// output[i…] = input[i / factor…], one integer factor an axis: nearest-neighbour enlargement.
struct upsample {
  axis_values factors;
};

/// Same elements in row-major order, shape of the output tensor. Flatten, Squeeze, Unsqueeze and Reshape.
struct reshape {};
/// output axis i is input axis permutation[i].
struct transpose {
  axis_values permutation;
};
/// Inputs: one or more tensors.
struct concat {
  std::int64_t axis = 0;
};
/// output[i…] = input[begin + i · step …], one begin and step an axis; the extent is the output's. Split is one slice an output.
struct slice {
  axis_values begin, step;
};
enum class pad_mode : std::uint8_t { constant, reflect, edge };
/// Pads each axis (negative: crops, constant mode only).
struct pad {
  axis_values begin, end;
  pad_mode mode = pad_mode::constant;
  float value = 0;
};
/// Channels of an [N, C, H, W] tensor regrouped: Reshape [N, groups, C/groups, H, W], swap of axes 1 and 2, Reshape back.
struct channel_shuffle {
  std::int64_t groups = 1;
};

using operation = std::variant<convolution, gemm, matmul, binary, unary, softmax, pool, batch_normalization, lrn,
                               reshape, transpose, concat, slice, pad, channel_shuffle, reduce, upsample>;

[[nodiscard]] constexpr const char* name(binary_kind kind) noexcept {
  constexpr const char* names[] = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "prelu"};
  return names[static_cast<std::size_t>(kind)];
}
[[nodiscard]] constexpr const char* name(unary_kind kind) noexcept {
  constexpr const char* names[] = {"relu", "leaky_relu", "clip", "sigmoid", "tanh", "identity", "silu", "exponential", "exponential_minus_one", "logarithm",
                                   "square_root", "reciprocal", "power", "error_function", "softplus", "sign", "floor", "round"};
  return names[static_cast<std::size_t>(kind)];
}
[[nodiscard]] constexpr const char* name(reduce_kind kind) noexcept {
  constexpr const char* names[] = {"reduce_sum", "reduce_mean", "reduce_maximum", "reduce_product"};
  return names[static_cast<std::size_t>(kind)];
}
/// Name of the operator, for reports: "convolution", "add", "relu", …
[[nodiscard]] inline std::string name(const operation& op) {
  struct {
    std::string operator()(const convolution&) const { return "convolution"; }
    std::string operator()(const gemm&) const { return "gemm"; }
    std::string operator()(const matmul&) const { return "matmul"; }
    std::string operator()(const binary& b) const { return model::name(b.kind); }
    std::string operator()(const unary& u) const { return model::name(u.kind); }
    std::string operator()(const softmax&) const { return "softmax"; }
    std::string operator()(const pool& p) const { return p.kind == pool_kind::max ? "max_pool" : "average_pool"; }
    std::string operator()(const batch_normalization&) const { return "batch_normalization"; }
    std::string operator()(const lrn&) const { return "lrn"; }
    std::string operator()(const reshape&) const { return "reshape"; }
    std::string operator()(const transpose&) const { return "transpose"; }
    std::string operator()(const concat&) const { return "concat"; }
    std::string operator()(const slice&) const { return "slice"; }
    std::string operator()(const pad&) const { return "pad"; }
    std::string operator()(const channel_shuffle&) const { return "channel_shuffle"; }
    std::string operator()(const reduce& r) const { return model::name(r.kind); }
    std::string operator()(const upsample&) const { return "upsample"; }
  } visitor;
  return std::visit(visitor, op);
}

}  // namespace raptor::model
