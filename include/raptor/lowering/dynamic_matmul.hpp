#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/elementwise.hpp"

/// Contractions whose sides are both computed at run time (LOWERING, "Contractions", dynamic): dot products on the vector unit.
/// Constant sides work too.
namespace raptor::lowering {

/// result [batch…, m, n] = alpha · a · b. Dense. `a`: [batch…, m, k], or [k, m] where transposed, or [k] where `row` (the result has no
/// m); `b`: [batch…, k, n], or [n, k] where transposed, or [k] where `column` (no n). Batches broadcast.
struct dynamic_product {
  std::uint32_t a = 0, b = 0, result = 0;
  bool transpose_a = false, transpose_b = false, row = false, column = false;
  float alpha = 1;
};

namespace detail {

/// Lanes: the batch axes and m. Columns of b are gathered once a tile and batch, then every element of the result is one vvdmul.
inline void multiply_dynamic(context& c, model::vertex v, const dynamic_product& p, const std::string& part) {
  const shape a = c.out.values()[p.a].sizes, b = c.out.values()[p.b].sizes, y_sizes = c.out.values()[p.result].sizes;
  const auto batch = y_sizes.size() - (p.row ? 0 : 1) - (p.column ? 0 : 1);
  const auto k_size = p.row ? a[0] : a[a.size() - (p.transpose_a ? 2 : 1)];
  const auto n_size = p.column ? std::int64_t{1} : y_sizes.back();
  const bool rows = !p.row;  // the result has an axis m, which is lane dimension `batch`

  kernel_builder k(compute_name(c, v, part), leading(y_sizes, batch + (rows ? 1 : 0)));
  const auto y_box = leading_box(y_sizes, batch + (rows ? 1 : 0));
  // Box and first coordinates of an operand: batch axes aligned, the given ones for its matrix.
  const auto box_of = [&](const shape& own, std::size_t matrix_axes) {
    affine_box result;
    const auto own_batch = own.size() - matrix_axes;
    for (std::size_t d = 0; d < own_batch; ++d) {
      const auto lane = batch - own_batch + d;
      own[d] == 1 ? result.push(0, 1) : result.push(tile_begin(lane), tile_end(lane));
    }
    for (std::size_t d = own_batch; d < own.size(); ++d) result.push(0, own[d]);
    return result;
  };
  auto a_box = box_of(a, p.row ? 1 : 2);
  const auto b_box = box_of(b, p.column ? 1 : 2);
  const auto m_axis = a.size() - (p.transpose_a ? 1 : 2);
  if (rows) a_box.low[m_axis] = tile_begin(batch), a_box.high[m_axis] = tile_end(batch);
  const auto x = k.reads(p.a, a_box.low, a_box.high), w = k.reads(p.b, b_box.low, b_box.high);
  const auto y = k.writes(p.result, y_box.low, y_box.high);
  const auto alpha = p.alpha == 1 ? 0 : filled(k, "alpha", p.alpha, n_size);

  const bool gather_columns = !p.column && !p.transpose_b && n_size > 1 && k_size > 1;
  const auto columns = gather_columns ? k.scratch("columns", checked::multiply(n_size, k_size)) : 0;
  const auto row = p.transpose_a ? k.scratch("row", k_size) : 0;
  const auto moved = [&](const affine_box& from, const shape& own, std::size_t matrix_axes, const std::vector<affine>& i) {
    auto at = from.low;
    const auto own_batch = own.size() - matrix_axes;
    for (std::size_t d = 0; d < own_batch; ++d)
      if (own[d] != 1) at[d] += i[batch - own_batch + d];
    return at;
  };
  nest(k, lane_counts(y_sizes, batch), [&](const std::vector<affine>& i) {
    const auto b_at = moved(b_box, b, p.column ? 1 : 2, i);
    if (gather_columns)
      k.loop(n_size, [&](const affine& j) {
        auto from = b_at;
        from.back() += j;
        k.gather(k.in(columns, j * k_size), k.at(w, from), k_size, 1, static_cast<std::int32_t>(b.size() - 2));
      });
    k.loop(!rows || y_sizes[batch] == 1 ? affine(1) : tile_extent(batch), [&](const affine& m) {
      auto a_at = moved(a_box, a, p.row ? 1 : 2, i);
      if (rows) a_at[m_axis] += m;
      auto y_at = y_box.low;
      for (std::size_t d = 0; d < batch; ++d) y_at[d] += i[d];
      if (rows) y_at[batch] += m;
      if (k_size == 0) {
        k.fill(k.at(y, y_at), 0, n_size);
        return;
      }
      if (p.transpose_a) k.gather(k.in(row), k.at(x, a_at), k_size, 1, static_cast<std::int32_t>(a.size() - 2));
      k.loop(n_size, [&](const affine& j) {
        auto to = y_at, column = b_at;
        if (!p.column) to.back() += j, column[b.size() - (p.transpose_b ? 2 : 1)] += j;
        k.vector(isa::opcode::vvdmul, k.at(y, to), p.transpose_a ? k.in(row) : k.at(x, a_at),
                 gather_columns ? k.in(columns, j * k_size) : k.at(w, column), k_size);
      });
      if (p.alpha != 1) k.vector(isa::opcode::vvmul, k.at(y, y_at), k.at(y, y_at), k.in(alpha), n_size);
    });
  });
  c.add(v, k, "dynamic");
}

}  // namespace detail

/// Gemm by dot products: alpha · op(A) · op(B), and an element-wise compute that adds beta · C where there is one.
/// Errors: mismatch, where the operands are no matrices that fit.
inline void lower(const model::gemm& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape a = input_sizes(c, v, 0), b = input_sizes(c, v, 1), y = output_sizes(c, v);
  const bool matrices = a.size() == 2 && b.size() == 2 && y.size() == 2;
  if (!matrices || a[op.transpose_a ? 0 : 1] != b[op.transpose_b ? 1 : 0] || a[op.transpose_a ? 1 : 0] != y[0] || b[op.transpose_b ? 0 : 1] != y[1])
    throw error(error_code::mismatch, "the operands of the matrix product do not fit", place_of(c, v));
  if (is_empty_shape(y)) return add_empty(c, v, result);
  const bool adds = n.inputs.size() > 2 && n.inputs[2].valid() && op.beta != 0;
  const auto product = adds ? c.intermediate(compute_name(c, v, "product"), y) : result;
  detail::multiply_dynamic(c, v, {c.operand(n.inputs[0], layout::physical::dense), c.operand(n.inputs[1], layout::physical::dense), product,
                                  op.transpose_a, op.transpose_b, false, false, op.alpha}, adds ? "product" : "");
  if (!adds) return;

  const auto& addend = c.model.at(n.inputs[2]);
  element_wise_request request;
  request.sources = {product, 0};
  if (addend.is_constant() && op.beta != 1) {
    auto scaled = addend.data->floats();
    for (auto& s : scaled) s *= op.beta;
    request.sources[1] = c.constant(addend.name + ".scaled", addend.sizes, std::move(scaled));
  } else {
    request.sources[1] = c.operand(n.inputs[2], layout::physical::dense);
    if (op.beta != 1) request.fills = {op.beta}, request.scratch = 1;
  }
  element_wise(c, v, result, request, [](const element_run& r) {
    auto term = r.in[1];
    if (!r.fill.empty()) {
      r.k.vector(isa::opcode::vvmul, r.scratch[0], r.in[1], r.fill[0], r.length);
      term = r.scratch[0];
    }
    r.k.vector(isa::opcode::vvadd, r.d, r.in[0], term, r.length);
  });
}

/// NumPy matmul by dot products: vectors, matrices and broadcast batches of them.
/// Errors: mismatch, where the operands do not fit.
inline void lower(const model::matmul&, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape a = input_sizes(c, v, 0), b = input_sizes(c, v, 1), y = output_sizes(c, v);
  const bool row = a.size() == 1, column = b.size() == 1;
  bool fits = !a.empty() && !b.empty() && a.back() == b[b.size() - (column ? 1 : 2)];
  const auto matrix_axes = std::size_t{row ? 0U : 1U} + (column ? 0U : 1U);
  fits = fits && y.size() == std::max(row ? 0 : a.size() - 2, column ? 0 : b.size() - 2) + matrix_axes;
  if (fits) {
    const auto batch = y.size() - matrix_axes;
    for (const auto* own : {&a, &b}) {
      const auto axes = own->size() < 2 ? 0 : own->size() - 2;
      for (std::size_t d = 0; d < axes; ++d) fits = fits && ((*own)[d] == 1 || (*own)[d] == y[batch - axes + d]);
    }
    if (!row) fits = fits && a[a.size() - 2] == y[batch];
    if (!column) fits = fits && b.back() == y.back();
  }
  if (!fits) throw error(error_code::mismatch, "the operands of the matrix product do not fit", place_of(c, v));
  if (is_empty_shape(y)) return add_empty(c, v, result);
  detail::multiply_dynamic(c, v, {c.operand(n.inputs[0], layout::physical::dense), c.operand(n.inputs[1], layout::physical::dense), result,
                                  false, false, row, column, 1}, "");
}

}  // namespace raptor::lowering
