#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "raptor/lowering/pieces.hpp"

/// Nearest-neighbour enlargement by integer factors.
namespace raptor::lowering {

/// Lanes: rows of the input, each of which writes the rows that repeat it. Dense: one gather an element, which repeats it; image rows: one
/// copy a pixel and repetition. The further rows are copies of the first.
/// Errors: mismatch, where the factors do not fit the shapes.
inline void lower(const model::upsample& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape in = input_sizes(c, v), out = output_sizes(c, v);
  const auto rank = in.size();
  bool fits = op.factors.size() == rank && out.size() == rank;
  for (std::size_t d = 0; fits && d < rank; ++d) fits = op.factors[d] > 0 && out[d] == checked::multiply(in[d], op.factors[d]);
  if (!fits) throw error(error_code::mismatch, "the factors do not fit the shapes", place_of(c, v));
  if (is_empty_shape(out)) return add_empty(c, v, result);

  if (in_rows(c, v)) {
    ensure(op.factors[0] == 1 && op.factors[1] == 1, "rows are enlarged within images", place_of(c, v));
    kernel_builder k(compute_name(c, v), {in[0], in[2]});
    one_row_a_tile(k);
    const auto rows = op.factors[2], columns = op.factors[3], channels = in[1];
    const auto [low, high] = row_box(in);
    const auto x = k.reads(row_operand(c, n.inputs[0]), low, high);
    const auto y = k.writes(result, {tile_begin(0), 0, tile_begin(1) * rows, 0}, {tile_end(0), channels, tile_end(1) * rows, out[3]});
    const auto image = tile_begin(0), h = tile_begin(1);
    k.loop(rows, [&](const affine& copy) {
      k.loop(columns == 1 ? 1 : in[3], [&](const affine& w) {
        k.loop(columns, [&](const affine& j) {
          k.copy(k.at(y, {image, 0, h * rows + copy, w * columns + j}), k.at(x, {image, 0, h, w}), columns == 1 ? channels * in[3] : channels);
        });
      });
    });
    c.add(v, k);
    return;
  }

  const auto lanes = rank == 0 ? 0 : rank - 1;
  kernel_builder k(compute_name(c, v), leading(in, lanes));
  affine_box from = leading_box(in, lanes), to;
  for (std::size_t d = 0; d < rank; ++d)
    d < lanes ? to.push(tile_begin(d) * op.factors[d], tile_end(d) * op.factors[d]) : to.push(0, out[d]);
  const auto x = k.reads(c.operand(n.inputs[0], layout::physical::dense), from.low, from.high);
  const auto y = k.writes(result, to.low, to.high);
  const auto width = rank == 0 ? 1 : in[rank - 1], factor = rank == 0 ? 1 : op.factors[rank - 1];
  auto counts = lane_counts(in, lanes);
  for (std::size_t d = 0; d < lanes; ++d) counts.emplace_back(op.factors[d]);
  nest(k, counts, [&](const std::vector<affine>& i) {
    auto source = from.low, target = to.low;
    for (std::size_t d = 0; d < lanes; ++d) source[d] += i[d], target[d] += i[d] * op.factors[d] + i[lanes + d];
    if (factor == 1) {
      k.copy(k.at(y, target), k.at(x, source), width);
      return;
    }
    k.loop(width, [&](const affine& w) {
      auto element = source, repeated = target;
      element[rank - 1] += w, repeated[rank - 1] += w * factor;
      k.gather(k.at(y, repeated), k.at(x, element), factor, 0);
    });
  });
  c.add(v, k);
}

}  // namespace raptor::lowering
