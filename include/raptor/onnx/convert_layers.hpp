#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "raptor/onnx/node_context.hpp"

/// Conversion of the layers of a network: convolutions, contractions, pools, normalizations, activations, arithmetic.
/// Each function turns one ONNX node of any opset into operators of the model graph. Source: ONNX Operators.md, Changelog.md.
namespace raptor::onnx_io::convert {

using namespace model;  // NOLINT: the operators are the vocabulary of this file

/// Attributes that convolutions and pools share. `rank`: of the data. `kernel`: where kernel_shape is absent; empty: it must be there.
/// auto_pad is resolved for the sizes of `x`; `window` gets one value a spatial axis.
template <class Window>
void read_window(node_context& c, Window& window, const shape& x, shape kernel = {}) {
  const std::size_t spatial = x.size() - 2;
  const auto values = [&](std::string_view name, std::size_t count, std::int64_t otherwise) {
    auto read = c.integers(name).value_or(axis_values(count, otherwise));
    c.require(read.size() == count, std::string(name) + " has " + std::to_string(read.size()) + " values, needs " + std::to_string(count));
    return read;
  };
  if (auto given = c.integers("kernel_shape")) kernel = std::move(*given);
  c.require(kernel.size() == spatial, "kernel_shape has " + std::to_string(kernel.size()) + " values, the data has " + std::to_string(spatial) + " spatial axes");
  window.kernel = kernel;
  window.strides = values("strides", spatial, 1);
  window.dilations = values("dilations", spatial, 1);
  const auto pads = values("pads", 2 * spatial, 0);
  window.pads_begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(spatial));
  window.pads_end.assign(pads.begin() + static_cast<std::ptrdiff_t>(spatial), pads.end());
  const std::string mode = c.text("auto_pad", "NOTSET");
  auto_pad padding = auto_pad::none;
  if (mode == "SAME_UPPER") padding = auto_pad::same_upper;
  else if (mode == "SAME_LOWER") padding = auto_pad::same_lower;
  else if (mode == "VALID") padding = auto_pad::valid;
  else if (mode != "NOTSET" && !mode.empty()) c.malformed("auto_pad \"" + mode + "\" is unknown");
  for (std::size_t i = 0; i < spatial; ++i) {
    const auto axis = resolve_padding(axis_of(window, i), x[i + 2], padding);
    window.pads_begin[i] = axis.pad_begin;
    window.pads_end[i] = axis.pad_end;
  }
}
/// Data of rank 3 (one spatial axis) or 4; anything else is unsupported. `what`: "convolution", "pooling".
inline void require_image(node_context& c, const shape& x, const char* what) {
  if (x.size() != 3 && x.size() != 4)
    c.unsupported(std::string(what) + " over data of rank " + std::to_string(x.size()) + " (" + to_string(x) + "); ranks 3 and 4 are supported");
}

/// Pools take any number of spatial axes up to three.
inline void require_pooled(node_context& c, const shape& x) {
  if (x.size() < 3 || x.size() > 5)
    c.unsupported("pooling over data of rank " + std::to_string(x.size()) + " (" + to_string(x) + "); ranks 3 to 5 are supported");
}

inline void conv(node_context& c) {
  const shape x = c.sizes(0), w = c.sizes(1);
  require_image(c, w, "convolution");
  require_image(c, x, "convolution");
  c.require(x.size() == w.size(), "data of rank " + std::to_string(x.size()) + " and weights of rank " + std::to_string(w.size()));
  convolution op;
  op.groups = c.integer("group", 1);
  read_window(c, op, x, shape(w.begin() + 2, w.end()));
  std::vector<tensor_id> inputs{c.input(0), c.input(1)};
  if (c.has(2)) inputs.push_back(c.input(2));
  c.result(c.add(std::move(op), std::move(inputs)));
}

inline void max_or_average_pool(node_context& c) {
  const bool average = c.op() == "AveragePool";
  const shape x = c.sizes(0);
  require_pooled(c, x);
  pool op;
  op.kind = average ? pool_kind::average : pool_kind::max;
  c.require(c.has_attribute("kernel_shape"), "kernel_shape is missing");
  read_window(c, op, x);
  op.count_include_pad = average && c.integer("count_include_pad", 0) != 0;
  c.ignore({"storage_order"});  // only orders the second output, which is not computed
  const bool ceil_mode = c.integer("ceil_mode", 0) != 0 && c.text("auto_pad", "NOTSET") == "NOTSET";
  shape result = pool_shape(op, x, ceil_mode);
  c.result(c.add(std::move(op), {c.input(0)}, std::move(result)));
}
/// A pool whose window is the whole image.
inline tensor_id whole_image_pool(node_context& c, tensor_id t, pool_kind kind) {
  const shape x = c.at(t).sizes;
  require_pooled(c, x);
  const std::size_t spatial = x.size() - 2;
  pool op;
  op.kind = kind;
  op.kernel.assign(x.begin() + 2, x.end());
  op.strides = op.dilations = axis_values(spatial, 1);
  op.pads_begin = op.pads_end = axis_values(spatial, 0);
  return c.add(std::move(op), {t});
}
inline void global_pool(node_context& c) {
  c.result(whole_image_pool(c, c.input(0), c.op() == "GlobalAveragePool" ? pool_kind::average : pool_kind::max));
}

/// Second operand of an element-wise operator before opset 7: `broadcast` allows a smaller one, aligned at `axis`.
inline tensor_id legacy_operand(node_context& c, tensor_id a, tensor_id b) {
  if (c.opset() >= 7) return b;
  c.ignore({"consumed_inputs"});
  const bool broadcast = c.integer("broadcast", 0) != 0;
  const auto axis = c.integer("axis", -1);
  const bool has_axis = c.has_attribute("axis");
  const shape x = c.at(a).sizes, y = c.at(b).sizes;
  if (!broadcast || !has_axis || x == y || y.size() > x.size()) return b;
  shape aligned = y;
  const auto first = static_cast<std::size_t>(resolve_axis(axis, x.size(), true));
  c.require(first + y.size() <= x.size(), "the second operand does not fit at the given axis");
  aligned.resize(x.size() - first, 1);
  return c.reshaped(b, aligned);
}
template <binary_kind Kind>
void arithmetic(node_context& c) {
  const auto a = c.input(0);
  c.result(c.add(binary{Kind}, {a, legacy_operand(c, a, c.input(1))}));
}
/// Sum, Max, Min of one or more operands.
template <binary_kind Kind>
void variadic(node_context& c) {
  c.ignore({"consumed_inputs"});
  auto value = c.input(0);
  for (std::size_t i = 1; i < c.input_count(); ++i) value = c.add(binary{Kind}, {value, c.input(i)});
  if (c.input_count() == 1) value = c.add(unary{unary_kind::identity, 0, 0}, {value});
  c.result(value);
}
template <unary_kind Kind>
void activation(node_context& c) {
  c.ignore({"consumed_inputs"});
  c.result(c.add(unary{Kind, 0, 0}, {c.input(0)}));
}
inline void leaky_relu(node_context& c) {
  c.ignore({"consumed_inputs"});
  c.result(c.add(unary{unary_kind::leaky_relu, c.real("alpha", 0.01F), 0}, {c.input(0)}));
}
/// Slope broadcast to the data; before opset 7 one value, or one value a channel.
inline void prelu(node_context& c) {
  c.ignore({"consumed_inputs"});
  auto slope = c.input(1);
  const shape x = c.sizes(0), s = c.at(slope).sizes;
  if (c.opset() < 7 && s.size() == 1 && s[0] != 1 && x.size() > 2 && s[0] == x[1]) {
    shape aligned(x.size() - 1, 1);
    aligned[0] = s[0];
    slope = c.reshaped(slope, aligned);
  }
  c.result(c.add(binary{binary_kind::prelu}, {c.input(0), slope}));
}
/// Bounds as attributes (before opset 11) or inputs; bounds that are computed become a maximum and a minimum.
inline void clip(node_context& c) {
  c.ignore({"consumed_inputs"});
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float low = -infinity, high = infinity;
  auto x = c.input(0);
  if (c.opset() < 11) {
    low = c.real("min", low);
    high = c.real("max", high);
  } else {
    const auto simple = [&](std::size_t i) {
      return !c.has(i) || (c.operand(i).is_constant() && c.operand(i).type == element_type::f32);
    };
    if (c.operand(0).type != element_type::f32 || !simple(1) || !simple(2)) {
      if (c.has(1)) x = c.add(binary{binary_kind::maximum}, {x, c.input(1)});
      if (c.has(2)) x = c.add(binary{binary_kind::minimum}, {x, c.input(2)});
      if (!c.has(1) && !c.has(2)) x = c.add(unary{unary_kind::identity, 0, 0}, {x});
      return c.result(x);
    }
    if (c.has(1)) low = c.constant_real(1, "min");
    if (c.has(2)) high = c.constant_real(2, "max");
  }
  c.result(c.add(unary{unary_kind::clip, low, high}, {x}));
}
/// max(0, min(1, alpha · x + beta)).
inline tensor_id hard_sigmoid_of(node_context& c, tensor_id x, float alpha, float beta) {
  const auto scaled = c.add(binary{binary_kind::multiply}, {x, c.scalar(alpha)});
  const auto shifted = c.add(binary{binary_kind::add}, {scaled, c.scalar(beta)});
  return c.add(unary{unary_kind::clip, 0, 1}, {shifted});
}
inline void hard_sigmoid(node_context& c) {
  c.ignore({"consumed_inputs"});
  const float alpha = c.real("alpha", 0.2F);
  c.result(hard_sigmoid_of(c, c.input(0), alpha, c.real("beta", 0.5F)));
}
inline void hard_swish(node_context& c) {
  const auto x = c.input(0);
  c.result(c.add(binary{binary_kind::multiply}, {x, hard_sigmoid_of(c, x, 1.0F / 6.0F, 0.5F)}));
}

inline void softmax_node(node_context& c) {
  const std::size_t rank = c.sizes(0).size();
  const bool joint = c.opset() < 13;
  softmax op;
  op.first = rank == 0 ? 0 : resolve_axis(c.integer("axis", joint ? 1 : -1), rank, joint);
  op.last = joint ? static_cast<std::int64_t>(rank) : op.first + 1;
  if (rank == 0) op.last = 0;
  c.result(c.add(op, {c.input(0)}));
}

inline void batch_norm(node_context& c) {
  c.ignore({"momentum", "consumed_inputs", "is_test"});
  if (c.integer("training_mode", 0) != 0) c.unsupported("training mode");
  if (c.integer("spatial", 1) == 0) c.unsupported("statistics for each element (spatial = 0)");
  c.result(c.add(batch_normalization{c.real("epsilon", 1e-5F)}, {c.input(0), c.input(1), c.input(2), c.input(3), c.input(4)}));
}
inline void lrn_node(node_context& c) {
  lrn op;
  c.require(c.has_attribute("size"), "size is missing");
  op.size = c.integer("size", 1);
  op.alpha = c.real("alpha", 1e-4F);
  op.beta = c.real("beta", 0.75F);
  op.bias = c.real("bias", 1.0F);
  c.result(c.add(op, {c.input(0)}));
}

inline void gemm_node(node_context& c) {
  c.ignore({"broadcast"});
  gemm op;
  op.alpha = c.real("alpha", 1.0F);
  op.beta = c.real("beta", 1.0F);
  op.transpose_a = c.integer("transA", 0) != 0;
  op.transpose_b = c.integer("transB", 0) != 0;
  std::vector<tensor_id> inputs{c.input(0), c.input(1)};
  if (c.has(2)) inputs.push_back(c.input(2));
  c.result(c.add(op, std::move(inputs)));
}
inline void matmul_node(node_context& c) { c.result(c.add(matmul{}, {c.input(0), c.input(1)})); }

/// Inference: the input itself. Errors: unsupported, where training mode is asked for.
inline void dropout(node_context& c) {
  c.ignore({"ratio", "seed", "is_test", "consumed_inputs"});
  if (c.has(2)) {
    const auto training = c.constant_integers(2, "training_mode");
    c.require(training.size() == 1, "training_mode must have one element");
    if (training[0] != 0) c.unsupported("training mode");
  }
  c.result(c.add(unary{unary_kind::identity, 0, 0}, {c.input(0)}));
}

}  // namespace raptor::onnx_io::convert
