#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/context.hpp"
#include "raptor/lowering/kernel_builder.hpp"
#include "raptor/lowering/materialize.hpp"

/// What the lowerings of the vector operators share: boxes, loop nests, empty results, operands as row strips.
namespace raptor::lowering {

/// Where a node came from, for errors.
[[nodiscard]] inline std::string place_of(const context& c, model::vertex v) { return c.model.at(v).from.describe(); }

/// Throws `unsupported` unless every tensor of the node holds floats: the vector unit has no other arithmetic.
inline void require_floats(const context& c, model::vertex v) {
  const auto& n = c.model.at(v);
  for (const auto* list : {&n.inputs, &n.outputs})
    for (const auto t : *list)
      if (t.valid() && c.model.at(t).type != model::element_type::f32)
        throw error(error_code::unsupported, "'" + c.model.at(t).name + "' holds " + model::name(c.model.at(t).type) + ", not floats",
                    place_of(c, v), "integer tensors must be constant, so that the importer folds them");
}

/// The sizes of a node's input and of its (only) output.
[[nodiscard]] inline const shape& input_sizes(const context& c, model::vertex v, std::size_t i = 0) {
  return c.model.at(c.model.at(v).inputs.at(i)).sizes;
}
[[nodiscard]] inline const shape& output_sizes(const context& c, model::vertex v) {
  return c.model.at(c.model.at(v).outputs.at(0)).sizes;
}
[[nodiscard]] inline bool is_empty_shape(const shape& sizes) {
  return std::find(sizes.begin(), sizes.end(), std::int64_t{0}) != sizes.end();
}
/// Whether the node was planned as image rows, W × C.
[[nodiscard]] inline bool in_rows(const context& c, model::vertex v) {
  return c.chosen(v).result == layout::physical::nhwc_row_strip;
}
/// The name for a compute of the node; `part` tells several apart.
[[nodiscard]] inline std::string compute_name(const context& c, model::vertex v, const std::string& part = {}) {
  const auto& node = c.model.at(v).from.node;
  return part.empty() ? node : node + "." + part;
}

/// A box, low and high, one affine a dimension.
struct affine_box {
  std::vector<affine> low, high;
  void push(affine l, affine h) {
    low.push_back(std::move(l));
    high.push_back(std::move(h));
  }
};
/// Tile interval in the first `lanes` dimensions, everything in the others.
[[nodiscard]] inline affine_box leading_box(const shape& sizes, std::size_t lanes) {
  affine_box b;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    d < lanes ? b.push(tile_begin(d), tile_end(d)) : b.push(0, sizes[d]);
  return b;
}
[[nodiscard]] inline shape leading(const shape& sizes, std::size_t count) {
  return {sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(count)};
}
[[nodiscard]] inline std::int64_t elements_from(const shape& sizes, std::size_t first) {
  return element_count(std::span(sizes).subspan(first));
}

/// A compute of the node for a value without elements; see write_empty.
inline void add_empty(context& c, model::vertex v, std::uint32_t result) {
  auto nothing = write_empty(c.out, result, compute_name(c, v));
  nothing.node = static_cast<std::uint32_t>(v);
  nothing.op = name(c.model.at(v).op);
  c.out.add_compute(std::move(nothing));
}

/// Nested loops with the given counts; `body` gets the induction variables, outermost first. Counts of 1 make no loop.
template <class Body>
void nest(kernel_builder& k, const std::vector<affine>& counts, const Body& body) {
  struct {
    kernel_builder& k;
    const std::vector<affine>& counts;
    const Body& body;
    std::vector<affine> indices;
    void down() {
      if (indices.size() == counts.size()) return body(std::as_const(indices));
      k.loop(counts[indices.size()], [&](const affine& i) {
        indices.push_back(i);
        down();
        indices.pop_back();
      });
    }
  } walk{k, counts, body, {}};
  walk.down();
}
/// Loop counts that visit a tile's lanes; lane dimensions of size 1 need no loop.
[[nodiscard]] inline std::vector<affine> lane_counts(const shape& lanes, std::size_t count) {
  std::vector<affine> counts;
  for (std::size_t d = 0; d < count; ++d) counts.push_back(lanes[d] == 1 ? affine(1) : tile_extent(d));
  return counts;
}

/// How many leading dimensions of a dense tensor to make lanes, so that the rest is a run of about 512 to 16384 elements
/// (more only where the last dimension alone is longer). Cost: linear in the rank.
[[nodiscard]] inline std::size_t dense_lanes(const shape& sizes) {
  constexpr std::int64_t enough = 512, most = 16384;
  std::size_t lanes = sizes.size();
  std::int64_t run = 1;
  while (lanes > 0 && run < enough) {
    const auto longer = checked::multiply(run, sizes[lanes - 1]);
    if (longer > most && run > 1) break;
    run = longer;
    --lanes;
  }
  return lanes;
}

/// An operand as image rows, W × C. Constants get an explicit materialization, as they lie densely in global memory.
[[nodiscard]] inline std::uint32_t row_operand(context& c, model::tensor_id t) {
  const auto value = c.operand(t, layout::physical::nhwc_row_strip);
  if (c.out.values()[value].layout == layout::physical::nhwc_row_strip) return value;
  const auto sizes = c.out.values()[value].sizes;
  const auto rows = c.intermediate(c.model.at(t).name + ".rows", sizes, layout::physical::nhwc_row_strip);
  c.out.add_compute(materialize(c.out, value, rows));
  return rows;
}
/// Makes a tile one image row; for kernels over lanes (n, h).
inline void one_row_a_tile(kernel_builder& k) { k.current().most = {1, 1}; }

/// Repeats the first `length` elements of a temporary until there are `count` copies, doubling: log2(count) copies.
inline void replicate(kernel_builder& k, std::uint32_t temporary, std::int64_t length, std::int64_t count) {
  for (std::int64_t have = 1; have < count;) {
    const auto more = std::min(have, count - have);
    k.copy(k.in(temporary, have * length), k.in(temporary), more * length);
    have += more;
  }
}
/// A temporary of `length` times the same element, filled once a core.
[[nodiscard]] inline std::uint32_t filled(kernel_builder& k, const std::string& name, float element, std::int64_t length) {
  const auto t = k.scratch(name, length, true);
  k.prologue([&] { k.fill(k.in(t), element, length); });
  return t;
}

}  // namespace raptor::lowering
