#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "raptor/lowering/context.hpp"
#include "raptor/lowering/matrix_product.hpp"

namespace raptor::lowering {

/// rows(X) · W + bias, X dense [..., k] with the lanes' dimensions first, W described by `matrix` (k rows, or k + 1 with the
/// bias as the last), result dense [..., n]. Lanes: all dimensions of X but the last. One mvmul a lane and slice; parts that
/// cut the matrix by rows accumulate. `bias`: n values, null for none. `key`: what the matrix is made of, bias included.
/// Source: LOWERING, "Contractions", static tiled.
inline void lower_rows(context& c, model::vertex v, const std::string& name, std::uint32_t x, std::uint32_t y, logical_matrix matrix,
                       const model::constant_ptr& bias, const std::string& strategy, const context::matrix_key& key) {
  const shape x_sizes = c.out.values()[x].sizes;
  const std::size_t lanes = x_sizes.size() - 1;
  const std::int64_t inputs = matrix.rows, columns = matrix.columns;
  const bool inside = bias != nullptr && inputs % c.chip.crossbar_rows != 0;
  if (inside) append_bias_row(matrix, bias, 0, columns, 1);
  const auto parts = split_for_capacity({matrix}, c.chip, c.chip.crossbars_per_core);
  const std::int64_t slices = checked::divide_up(matrix.rows, c.chip.crossbar_rows);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto& piece = parts[p].front();
    kernel_builder k(name + (parts.size() > 1 ? "." + std::to_string(p) : ""), shape(x_sizes.begin(), x_sizes.end() - 1));
    k.current().family = c.family_of(key, p);
    product_emitter product(k, c.chip, matrix, inputs, piece);
    std::vector<affine> low, high;
    for (std::size_t d = 0; d < lanes; ++d) low.push_back(tile_begin(d)), high.push_back(tile_end(d));
    auto in_low = low, in_high = high, out_low = low, out_high = high;
    in_low.emplace_back(product.inputs().begin), in_high.emplace_back(product.inputs().end);
    out_low.emplace_back(piece.columns.begin), out_high.emplace_back(piece.columns.end);
    const auto in = k.reads(x, in_low, in_high);
    const auto out = k.writes(y, out_low, out_high, piece.slices.size() < slices ? access_mode::accumulate : access_mode::assign);
    std::optional<operand> added;
    if (bias != nullptr && !inside && piece.slices.begin == 0) {
      const auto value = c.constant(name + ".bias", {columns}, bias->floats());
      added = k.at(k.reads(value, {piece.columns.begin}, {piece.columns.end}), {piece.columns.begin});
    }
    std::vector<affine> at;
    const auto lane = [&](const auto& self, std::size_t d) -> void {
      if (d < lanes) {
        k.loop(tile_extent(d), [&](const affine& i) {
          at.push_back(tile_begin(d) + i);
          self(self, d + 1);
          at.pop_back();
        });
        return;
      }
      auto from = at, to = at;
      from.emplace_back(product.inputs().begin), to.emplace_back(piece.columns.begin);
      product.emit({{product.inputs().begin, product.inputs().size(), k.at(in, from), lanes, outside::never}}, k.at(out, to), added);
    };
    lane(lane, 0);
    c.add(v, k, strategy);
  }
}

/// Matrix of a rank 2 constant [k, n] (or [n, k] where `transposed`), scaled at compile time where `scale` is not 1.
[[nodiscard]] inline logical_matrix constant_matrix(const model::tensor& w, bool transposed, float scale = 1) {
  const std::int64_t rows = w.sizes[transposed ? 1 : 0], columns = w.sizes[transposed ? 0 : 1];
  model::constant_ptr data = w.data;
  if (scale != 1) {
    std::vector<float> scaled = w.data->floats();
    for (auto& x : scaled) x *= scale;
    data = std::make_shared<const model::constant>(model::constant{std::move(scaled)});
  }
  return {rows, columns, {data}, {{0, 0, 0, rows, columns, 0, transposed ? 1 : columns, transposed ? rows : 1}}};
}

/// True where a node is a contraction of a computed left operand with a constant right one that lower_contraction takes.
[[nodiscard]] inline bool has_resident_weights(const model::graph& g, model::vertex v) {
  const auto& n = g.at(v);
  if (!std::holds_alternative<model::gemm>(n.op) && !std::holds_alternative<model::matmul>(n.op)) return false;
  const auto &a = g.at(n.inputs[0]), &b = g.at(n.inputs[1]);
  if (a.is_constant() || !b.is_constant() || b.sizes.size() != 2 || a.sizes.empty() || element_count(b.sizes) == 0) return false;
  if (const auto* op = std::get_if<model::gemm>(&n.op)) {
    const bool has_c = n.inputs.size() > 2 && n.inputs[2].valid();
    if (op->transpose_a) return false;
    return !has_c || (g.at(n.inputs[2]).is_constant() && g.at(n.inputs[2]).sizes.size() < 2) ||
           (g.at(n.inputs[2]).is_constant() && g.at(n.inputs[2]).sizes[0] == 1);
  }
  return true;
}

/// Gemm and MatMul with resident weights. Requires: has_resident_weights(model, v).
inline void lower_contraction(context& c, model::vertex v) {
  const auto& n = c.model.at(v);
  const auto& w = c.model.at(n.inputs[1]);
  bool transposed = false;
  float alpha = 1;
  model::constant_ptr bias;
  context::matrix_key key{w.data.get()};
  if (const auto* op = std::get_if<model::gemm>(&n.op)) {
    transposed = op->transpose_b, alpha = op->alpha;
    if (n.inputs.size() > 2 && n.inputs[2].valid() && op->beta != 0) {
      const auto& given = c.model.at(n.inputs[2]).data->floats();
      std::vector<float> full(static_cast<std::size_t>(w.sizes[transposed ? 0 : 1]));
      for (std::size_t i = 0; i < full.size(); ++i) full[i] = op->beta * given[given.size() == 1 ? 0 : i];
      bias = std::make_shared<const model::constant>(model::constant{std::move(full)});
      key.bias = c.model.at(n.inputs[2]).data.get(), key.beta = op->beta;
    }
    key.alpha = alpha, key.transposed = transposed;
  }
  const auto x = c.operand(n.inputs[0], layout::physical::dense);
  const auto y = c.result(n.outputs[0]);
  if (element_count(c.model.at(n.outputs[0]).sizes) == 0) return;
  lower_rows(c, v, n.from.node, x, y, constant_matrix(w, transposed, alpha), bias, "static-tiled", key);
}

}  // namespace raptor::lowering
