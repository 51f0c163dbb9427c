#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "raptor/model/edit.hpp"
#include "raptor/model/rewrite_movement.hpp"

/// Rewrites of contractions and of the scales and shifts around them: normal form of Gemm and MatMul, BatchNorm and constant
/// factors folded into weights. Weights are combined in double and rounded once; results differ from those of the original graph
/// by rounding alone. Cost: linear in the weights that change.
namespace raptor::model::rewrite {

/// Contents of a constant that varies along `axis` of `result` only, one value an index, or nothing (also where the axis is longer
/// than folding allows).
[[nodiscard]] inline std::optional<std::vector<double>> along_axis(const tensor& t, const shape& result, std::size_t axis) {
  if (!t.is_constant() || t.type != element_type::f32 || t.sizes.size() > result.size() || axis >= result.size()) return std::nullopt;
  if (result[axis] > fold_element_limit) return std::nullopt;
  const std::size_t lead = result.size() - t.sizes.size();
  std::int64_t varying = 1;
  for (std::size_t i = 0; i < t.sizes.size(); ++i) {
    if (t.sizes[i] == 1) continue;
    if (i + lead != axis || t.sizes[i] != result[axis]) return std::nullopt;
    varying = t.sizes[i];
  }
  std::vector<double> values;
  for (std::int64_t i = 0; i < result[axis]; ++i) values.push_back(double{t.data->floats()[static_cast<std::size_t>(varying == 1 ? 0 : i)]});
  return values;
}
[[nodiscard]] inline std::vector<float> rounded(const std::vector<double>& values) {
  std::vector<float> result;
  result.reserve(values.size());
  for (const auto v : values) result.push_back(static_cast<float>(v));
  return result;
}

/// Whether `t` comes from a convolution or a Gemm in normal form whose weights and bias are constant and whose result nobody
/// else reads: then a scale and a shift by channel can be folded into it.
[[nodiscard]] inline bool takes_affine(const graph_edit& e, tensor_id t) {
  const auto n = e.producer(t);
  if (n == graph_edit::no_node || !e.has_one_use(t)) return false;
  const node& producer = e.nodes[n];
  if (const auto* g = std::get_if<gemm>(&producer.op)) {
    if (g->alpha != 1 || g->beta != 1 || g->transpose_a || g->transpose_b) return false;
  } else if (!std::holds_alternative<convolution>(producer.op)) {
    return false;
  }
  if (!e.is_constant(producer.inputs[1])) return false;
  if (producer.inputs.size() < 3) return true;
  return along_axis(e.at(producer.inputs[2]), {e.at(t).sizes[1]}, 0).has_value();
}
/// The producer of `t` (see takes_affine) computes scale · t + shift instead; one value a channel (axis 1).
inline void fold_affine(graph_edit& e, tensor_id t, const std::vector<double>& scale, const std::vector<double>& shift) {
  const auto n = e.producer(t);
  const node& producer = e.nodes[n];
  const tensor& weights = e.at(producer.inputs[1]);
  const std::size_t channels = scale.size();
  auto inputs = producer.inputs;
  if (std::any_of(scale.begin(), scale.end(), [](double s) { return s != 1; })) {
    std::vector<float> values = weights.data->floats();
    const bool columns = std::holds_alternative<gemm>(producer.op);  // weights [K, N]; a convolution has [M, …]
    const std::size_t run = channels == 0 ? 1 : values.size() / channels;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(double{values[i]} * scale[columns ? i % channels : i / run]);
    inputs[1] = e.add_constant(weights.name + "~scaled", weights.sizes, std::move(values));
  }
  std::vector<double> bias(channels, 0.0);
  if (inputs.size() > 2) bias = *along_axis(e.at(inputs[2]), {static_cast<std::int64_t>(channels)}, 0);
  for (std::size_t i = 0; i < channels; ++i) bias[i] = bias[i] * scale[i] + shift[i];
  const bool needed = inputs.size() > 2 || std::any_of(bias.begin(), bias.end(), [](double b) { return b != 0; });
  if (needed) {
    const auto id = e.add_constant(e.at(t).name + "~bias", {static_cast<std::int64_t>(channels)}, rounded(bias));
    if (inputs.size() > 2) inputs[2] = id;
    else inputs.push_back(id);
  }
  const operation op = e.nodes[n].op;
  e.replace(n, op, std::move(inputs));
}
/// Tensor `from`, the result of a node that has been folded into the producer of `to`, becomes `to` under its own name.
inline void take_place(graph_edit& e, tensor_id from, tensor_id to) {
  const auto reader = e.producer(from);
  e.tensors[to.index()].name = e.at(from).name;
  e.erase(reader);
  e.redirect(from, to);
}

/// BatchNormalization with constant parameters: folded into the convolution or Gemm before it, where nothing else reads its
/// result; else a multiplication and an addition by channel. Scale and shift are computed in double.
[[nodiscard]] inline bool fold_batch_norm(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    if (graph_edit::erased(e.nodes[n])) continue;
    const auto* bn = std::get_if<batch_normalization>(&e.nodes[n].op);
    if (bn == nullptr) continue;
    const auto in = e.nodes[n].inputs;
    if (!e.is_constant(in[1]) || !e.is_constant(in[2]) || !e.is_constant(in[3]) || !e.is_constant(in[4])) continue;
    const auto& gamma = e.at(in[1]).data->floats();
    const auto& beta = e.at(in[2]).data->floats();
    const auto& mean = e.at(in[3]).data->floats();
    const auto& variance = e.at(in[4]).data->floats();
    std::vector<double> scale(gamma.size()), shift(gamma.size());
    for (std::size_t c = 0; c < gamma.size(); ++c) {
      scale[c] = double{gamma[c]} / std::sqrt(double{variance[c]} + double{bn->epsilon});
      shift[c] = double{beta[c]} - double{mean[c]} * scale[c];
    }
    const auto out = e.nodes[n].outputs[0];
    changed = true;
    if (takes_affine(e, in[0])) {
      fold_affine(e, in[0], scale, shift);
      take_place(e, out, in[0]);
      continue;
    }
    const shape sizes = e.at(out).sizes;
    shape channel_shape(sizes.size() - 1, 1);
    channel_shape[0] = sizes[1];
    const std::string base = e.at(out).name;
    const auto factor = e.add_constant(base + "~scale", channel_shape, rounded(scale));
    const auto offset = e.add_constant(base + "~shift", channel_shape, rounded(shift));
    const origin from = e.nodes[n].from;
    const auto scaled = e.add_node(binary{binary_kind::multiply}, {in[0], factor}, from, base + "~scaled", sizes);
    e.replace(n, binary{binary_kind::add}, {scaled, offset});
  }
  return changed;
}

/// Constants to the right of commutative operators; x − c becomes x + (−c) and x / c becomes x · (1/c), where 1/c is no less exact
/// than an f32 can be (neither overflow nor underflow).
[[nodiscard]] inline bool normalize_arithmetic(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    if (graph_edit::erased(e.nodes[n])) continue;
    const auto* b = std::get_if<binary>(&e.nodes[n].op);
    if (b == nullptr) continue;
    const auto kind = b->kind;
    const auto left = e.nodes[n].inputs[0], right = e.nodes[n].inputs[1];
    const bool commutes = kind == binary_kind::add || kind == binary_kind::multiply || kind == binary_kind::maximum || kind == binary_kind::minimum;
    if (commutes && e.is_constant(left) && !e.is_constant(right)) {
      e.replace(n, binary{kind}, {right, left});
      changed = true;
      continue;
    }
    if (e.is_constant(left) || !e.is_constant(right) || (kind != binary_kind::subtract && kind != binary_kind::divide)) continue;
    auto values = e.at(right).data->floats();
    bool exact = true;
    for (auto& v : values) {
      if (kind == binary_kind::subtract) {
        v = -v;
        continue;
      }
      const float reciprocal = static_cast<float>(1 / double{v});
      exact = exact && (std::isnormal(reciprocal) || v == 0 || !std::isfinite(v));
      v = reciprocal;
    }
    if (!exact) continue;
    const shape sizes = e.at(right).sizes;
    const auto made = e.add_constant(e.at(right).name + (kind == binary_kind::subtract ? "~negated" : "~reciprocal"), sizes, std::move(values));
    e.replace(n, binary{kind == binary_kind::subtract ? binary_kind::add : binary_kind::multiply}, {left, made});
    changed = true;
  }
  return changed;
}

/// A product or sum with a constant by channel after a convolution or Gemm that nobody else reads goes into its weights and bias.
/// Chains of products, and chains of sums, with constants become one.
[[nodiscard]] inline bool fold_scale_and_shift(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    if (graph_edit::erased(e.nodes[n])) continue;
    const auto* b = std::get_if<binary>(&e.nodes[n].op);
    if (b == nullptr || (b->kind != binary_kind::add && b->kind != binary_kind::multiply)) continue;
    const auto kind = b->kind;
    const auto x = e.nodes[n].inputs[0], constant_id = e.nodes[n].inputs[1], out = e.nodes[n].outputs[0];
    if (!e.is_constant(constant_id) || e.is_constant(x) || e.at(x).sizes != e.at(out).sizes) continue;
    const auto by_channel = takes_affine(e, x) ? along_axis(e.at(constant_id), e.at(out).sizes, 1) : std::nullopt;
    if (by_channel) {
      const std::vector<double> neutral(by_channel->size(), kind == binary_kind::add ? 1.0 : 0.0);
      if (kind == binary_kind::add) fold_affine(e, x, neutral, *by_channel);
      else fold_affine(e, x, *by_channel, neutral);
      take_place(e, out, x);
      changed = true;
      continue;
    }
    const auto* before = e.produced_by<binary>(x);
    if (before == nullptr || before->kind != kind || !e.has_one_use(x)) continue;
    const auto inner = e.nodes[e.producer(x)].inputs;
    if (!e.is_constant(inner[1]) || e.is_constant(inner[0]) || e.at(inner[0]).sizes != e.at(out).sizes) continue;
    const shape both = broadcast_shape(e.at(inner[1]).sizes, e.at(constant_id).sizes);
    // Not where the product of the constants is larger than the larger of them: two small tables beat one large.
    if (element_count(both) > std::max(element_count(e.at(inner[1]).sizes), element_count(e.at(constant_id).sizes))) continue;
    const tensor_value operands[] = {{e.at(inner[1]).sizes, e.at(inner[1]).data}, {e.at(constant_id).sizes, e.at(constant_id).data}};
    auto value = fold(binary{kind}, operands, both, e.nodes[n].from.describe());
    if (!value) continue;
    const auto merged = e.add_tensor({e.at(constant_id).name + "~merged", element_type::f32, both, std::move(value->data)});
    e.replace(n, binary{kind}, {inner[0], merged});
    changed = true;
  }
  return changed;
}

/// A constant, or a node's result, times a number.
[[nodiscard]] inline tensor_id scaled(graph_edit& e, tensor_id t, float factor, const origin& from) {
  if (factor == 1) return t;
  const shape sizes = e.at(t).sizes;
  const std::string name = e.at(t).name + "~scaled";
  if (e.is_constant(t)) {
    auto values = e.at(t).data->floats();
    for (auto& v : values) v = static_cast<float>(double{v} * double{factor});
    return e.add_constant(name, sizes, std::move(values));
  }
  const auto scalar = e.add_constant(name + "~factor", {}, {factor});
  return e.add_node(binary{binary_kind::multiply}, {t, scalar}, from, name, sizes);
}
/// The transpose of a matrix; of a constant at once.
[[nodiscard]] inline tensor_id transposed(graph_edit& e, tensor_id t, const origin& from) {
  const shape x = e.at(t).sizes, sizes{x[1], x[0]};
  const std::string name = e.at(t).name + "~transposed";
  if (!e.is_constant(t)) return e.add_node(transpose{{1, 0}}, {t}, from, name, sizes);
  const auto& values = e.at(t).data->floats();
  std::vector<float> turned(values.size());
  const auto rows = static_cast<std::size_t>(x[0]), columns = static_cast<std::size_t>(x[1]);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) turned[c * rows + r] = values[r * columns + c];
  return e.add_constant(name, sizes, std::move(turned));
}

/// Normal form of Gemm: alpha = beta = 1, nothing transposed, and C either absent or a constant [N]. Transposes and factors
/// go into constants, or become nodes; any other C becomes an addition of its own. A constant A and a computed B change sides:
/// A · B = (Bᵀ · Aᵀ)ᵀ, so that what is constant is always the weights.
[[nodiscard]] inline bool normalize_gemm(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    if (graph_edit::erased(e.nodes[n])) continue;
    const auto* found = std::get_if<gemm>(&e.nodes[n].op);
    if (found == nullptr) continue;
    const gemm op = *found;
    const origin from = e.nodes[n].from;
    const auto in = e.nodes[n].inputs;
    const auto out = e.nodes[n].outputs[0];
    const shape result = e.at(out).sizes;
    const std::string base = e.at(out).name;
    const bool has_c = in.size() > 2;
    const bool vector_c = has_c && e.is_constant(in[2]) && e.at(in[2]).sizes == shape{result[1]};
    const bool sides = e.is_constant(in[0]) && !e.is_constant(in[1]);
    if (op.alpha == 1 && op.beta == 1 && !op.transpose_a && !op.transpose_b && (!has_c || vector_c) && !sides) continue;
    changed = true;
    auto a = in[0], b = in[1];
    if (op.transpose_a) a = transposed(e, a, from);
    if (op.transpose_b) b = transposed(e, b, from);
    if (e.is_constant(b)) b = scaled(e, b, op.alpha, from);
    else if (e.is_constant(a)) a = scaled(e, a, op.alpha, from);
    const bool late_factor = op.alpha != 1 && !e.is_constant(a) && !e.is_constant(b);
    // C as one value a column of the result, where it is that.
    std::optional<std::vector<double>> columns;
    if (has_c) columns = along_axis(e.at(in[2]), result, 1);
    const bool fuse_c = columns && !late_factor && !sides;
    const bool add_c = has_c && !fuse_c;
    std::vector<tensor_id> operands{a, b};
    if (sides) operands = {transposed(e, b, from), transposed(e, a, from)};
    if (fuse_c) {
      for (auto& v : *columns) v *= double{op.beta};
      operands.push_back(e.add_constant(base + "~bias", {result[1]}, rounded(*columns)));
    }
    // The steps after the product, the last of which is this node.
    const std::size_t steps = (sides ? 1U : 0U) + (late_factor ? 1U : 0U) + (add_c ? 1U : 0U);
    if (steps == 0) {
      e.replace(n, gemm{}, std::move(operands));
      continue;
    }
    tensor_id value = e.add_node(gemm{}, std::move(operands), from, base + "~product", sides ? shape{result[1], result[0]} : result);
    std::vector<std::pair<operation, std::vector<tensor_id>>> tail;
    if (sides) tail.push_back({transpose{{1, 0}}, {}});
    if (late_factor) tail.push_back({binary{binary_kind::multiply}, {e.add_constant(base + "~alpha", {}, {op.alpha})}});
    if (add_c) tail.push_back({binary{binary_kind::add}, {scaled(e, in[2], op.beta, from)}});
    for (std::size_t i = 0; i < tail.size(); ++i) {
      std::vector<tensor_id> operand{value};
      operand.insert(operand.end(), tail[i].second.begin(), tail[i].second.end());
      if (i + 1 == tail.size()) e.replace(n, tail[i].first, std::move(operand));
      else value = e.add_node(tail[i].first, std::move(operand), from, base + "~step" + std::to_string(i), result);
    }
  }
  return changed;
}

/// MatMul whose right operand is a matrix or a vector becomes a Gemm over the flattened rows of the left one. Batches on both
/// sides stay a MatMul.
[[nodiscard]] inline bool matmul_to_gemm(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    if (graph_edit::erased(e.nodes[n]) || !std::holds_alternative<matmul>(e.nodes[n].op)) continue;
    const auto a = e.nodes[n].inputs[0], b = e.nodes[n].inputs[1], out = e.nodes[n].outputs[0];
    const shape left = e.at(a).sizes, right = e.at(b).sizes, result = e.at(out).sizes;
    if (right.size() > 2) continue;
    const origin from = e.nodes[n].from;
    const std::int64_t k = left.back(), columns = right.size() == 1 ? 1 : right[1];
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < left.size(); ++i) rows *= left[i];
    const auto matrix_a = in_shape(e, a, {rows, k}, from, "~rows"), matrix_b = in_shape(e, b, {k, columns}, from, "~matrix");
    if (result == shape{rows, columns}) {
      e.replace(n, gemm{}, {matrix_a, matrix_b});
    } else {
      const auto product = e.add_node(gemm{}, {matrix_a, matrix_b}, from, e.at(out).name + "~product", {rows, columns});
      e.replace(n, reshape{}, {product});
    }
    changed = true;
  }
  return changed;
}

}  // namespace raptor::model::rewrite
