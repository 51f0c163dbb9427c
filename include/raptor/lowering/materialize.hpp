#pragma once

#include <utility>

#include "raptor/lowering/compute_graph.hpp"
#include "raptor/lowering/kernel_builder.hpp"

namespace raptor::lowering {

/// The box of one image row of an [N, C, H, W] tensor, for lanes (n, h): low and high.
[[nodiscard]] inline std::pair<std::vector<affine>, std::vector<affine>> row_box(const shape& image) {
  return {{tile_begin(0), 0, tile_begin(1), 0}, {tile_end(0), image[1], tile_end(1), image[3]}};
}

/// A compute for a value without elements: no lanes, no statements, so that its readers find a writer.
[[nodiscard]] inline compute write_empty(const compute_graph& g, std::uint32_t value, std::string name) {
  kernel_builder k(std::move(name), {0});
  const shape sizes = g.values()[value].sizes;
  static_cast<void>(k.writes(value, std::vector<affine>(sizes.size()), {sizes.begin(), sizes.end()}));
  return k.take();
}

/// A compute that copies a tensor into another layout, one image row a tile: lanes (n, h). The innermost dimension of the
/// result is gathered with a stride: one gather a pixel towards W × C, one a channel towards C × W or dense.
[[nodiscard]] inline compute materialize(const compute_graph& g, std::uint32_t from, std::uint32_t to) {
  const shape sizes = g.values()[to].sizes;
  ensure(sizes.size() == 4, "only images have other layouts than dense", g.values()[to].name);
  if (element_count(sizes) == 0) {
    auto nothing = write_empty(g, to, g.values()[to].name);
    nothing.op = "materialize";
    return nothing;
  }
  kernel_builder k(g.values()[to].name, {sizes[0], sizes[2]});
  k.current().op = "materialize";
  k.current().strategy = layout::name(g.values()[to].layout);
  k.current().most = {1, 1};
  const auto [low, high] = row_box(sizes);
  const auto x = k.reads(from, low, high), y = k.writes(to, low, high);
  const auto n = tile_begin(0), h = tile_begin(1);
  const bool towards_pixels = g.values()[to].layout == layout::physical::nhwc_row_strip;
  const bool from_pixels = g.values()[from].layout == layout::physical::nhwc_row_strip;
  if (towards_pixels == from_pixels) {  // dense and C × W rows: runs of W
    k.loop(sizes[1], [&](const affine& c) { k.copy(k.at(y, {n, c, h, 0}), k.at(x, {n, c, h, 0}), sizes[3]); });
  } else if (sizes[1] == 1 || (sizes[2] == 1 && sizes[3] == 1)) {  // one channel, or one pixel: the same order in both
    k.copy(k.at(y, {n, 0, h, 0}), k.at(x, {n, 0, h, 0}), sizes[1] * sizes[3]);
  } else if (towards_pixels) {
    k.loop(sizes[3], [&](const affine& w) { k.gather(k.at(y, {n, 0, h, w}), k.at(x, {n, 0, h, w}), sizes[1], 1, 1); });
  } else {
    k.loop(sizes[1], [&](const affine& c) { k.gather(k.at(y, {n, c, h, 0}), k.at(x, {n, c, h, 0}), sizes[3], 1, 3); });
  }
  return k.take();
}

/// A compute that copies a dense tensor: lanes are the first dimension, or one lane for a scalar.
[[nodiscard]] inline compute copy_dense(const compute_graph& g, std::uint32_t from, std::uint32_t to) {
  const shape sizes = g.values()[to].sizes;
  if (element_count(sizes) == 0) {
    auto nothing = write_empty(g, to, g.values()[to].name);
    nothing.op = "copy";
    return nothing;
  }
  kernel_builder k(g.values()[to].name, sizes.empty() ? shape{} : shape{sizes[0]});
  k.current().op = "copy";
  std::vector<affine> low(sizes.size()), high(sizes.begin(), sizes.end());
  affine length = 1;
  if (!sizes.empty()) {
    low[0] = tile_begin(0), high[0] = tile_end(0);
    length = tile_extent(0) * (element_count(sizes) / sizes[0]);
  }
  const auto x = k.reads(from, low, high), y = k.writes(to, low, high);
  k.copy(k.at(y, low), k.at(x, low), length);
  return k.take();
}

}  // namespace raptor::lowering
