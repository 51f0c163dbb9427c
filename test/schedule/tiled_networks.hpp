#pragma once

#include <cstdint>
#include <utility>
#include <random>
#include <string>
#include <vector>

#include "../report/scheduled.hpp"
#include "raptor/schedule/copies.hpp"

/// Random networks of image rows for the tests of placement and order.
namespace raptor::test {

/// A target of small crossbars whose times differ with the operation, the distance and the size.
struct uneven_target {
  std::int64_t cores = 4;
  std::int64_t crossbars = 4;
  [[nodiscard]] program::geometry chip() const {
    auto g = small_chip(cores);
    g.crossbars_per_core = crossbars;
    return g;
  }
  [[nodiscard]] schedule::picoseconds time(isa::opcode op, std::int64_t n) const { return op == isa::opcode::mvmul ? 900 + 7 * n : 11 + n; }
  [[nodiscard]] schedule::picoseconds transfer_time(std::size_t from, std::size_t to, std::int64_t n) const {
    return 50 + 13 * static_cast<std::int64_t>(from < to ? to - from : from - to) + 2 * n;
  }
  [[nodiscard]] schedule::picoseconds global_time(std::size_t, std::int64_t n, bool) const { return 30 + n; }
};

/// Layers of computes over the rows of images of four channels: a layer writes whole rows, halves of their channels or columns, or adds up
/// to them; it reads windows of one or two earlier images, all channels or some. Bodies are of statements and loops, empty loops among them.
/// Computes have 0 to 3 crossbars of weights; those of a layer may be a family.
[[nodiscard]] inline lowering::compute_graph layered_network(std::uint32_t seed, std::size_t layers = 6) {
  using namespace lowering;
  std::mt19937 dice(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(dice() % n); };
  compute_graph g;
  const std::int64_t height = 1 + below(9), channels = 4, width = 6;
  std::vector<std::uint32_t> images;
  std::int64_t families = 0;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const auto to = g.add_value({"v" + std::to_string(layer), {1, channels, height, width}, layout::physical::nhwc_row_strip, origin::computed, {}});
    const auto division = below(4);  // one compute; channels; columns; a sum
    const auto family = below(2) == 0 ? families++ : std::int64_t{-1};
    const auto columns = below(4) * 16 - below(16);  // of weights: up to 3 crossbars
    for (std::int64_t part = 0; part < (division == 0 ? 1 : 2); ++part) {
      kernel_builder k("c" + std::to_string(layer) + "." + std::to_string(part), {1, height});
      k.current().most = {1, 1 + below(3)};
      k.current().family = columns > 0 ? family : -1;
      const auto h = tile_begin(1);
      std::vector<std::pair<std::uint32_t, std::int64_t>> used;  // reads, and their first channel
      for (auto reads = images.empty() ? 0 : 1 + below(2); reads > 0; --reads) {
        const auto from = images[static_cast<std::size_t>(below(static_cast<std::uint32_t>(images.size())))];
        const std::int64_t above = below(3), beyond = below(3), c0 = below(3), c1 = c0 + 1 + below(static_cast<std::uint32_t>(channels - c0));
        used.emplace_back(k.reads(from, {0, c0, h - above, -1}, {1, c1, tile_end(1) + beyond, width + 1}), c0);
      }
      const interval own_channels = division == 1 ? interval{2 * part, 2 * part + 2} : interval{0, channels};
      const interval own_columns = division == 2 ? interval{3 * part, 3 * part + 3} : interval{0, width};
      k.writes(to, {0, own_channels.begin, h, own_columns.begin}, {1, own_channels.end, tile_end(1), own_columns.end}, division == 3 ? access_mode::accumulate : access_mode::assign);
      const auto t = k.scratch("t", 512);
      if (columns > 0) k.group({1 + below(16), columns, {numbers(1)}, {}});
      const auto statement = [&] {
        if (!used.empty() && below(4) == 0) {  // what is read first here may come late
          const auto& [read, channel] = used[static_cast<std::size_t>(below(static_cast<std::uint32_t>(used.size())))];
          k.copy(k.in(t), k.at(read, {0, channel, h, 0}), 1).when_outside = outside::skip;
          return;
        }
        if (columns > 0 && below(2) == 0) k.matrix(k.in(t), k.in(t), 0);
        else k.fill(k.in(t), 0, tile_extent(1) * (1 + below(200)));
      };
      for (auto items = 1 + below(5); items > 0; --items) {
        if (below(2) == 0) statement();
        else
          k.loop(below(2) == 0 ? tile_extent(1) * below(9) : affine(below(40)), [&](const affine&) {
            statement();
            if (below(3) == 0) k.loop(3, [&](const affine&) { statement(); });
          });
      }
      g.add_compute(k.take());
    }
    images.push_back(to);
  }
  return g;
}

/// Tiles of a network, each on a random core.
template <class Target>
[[nodiscard]] schedule::schedule scattered(const Target& t, const lowering::compute_graph& g, std::uint32_t seed) {
  std::mt19937 dice(seed);
  schedule::schedule s;
  s.graph = schedule::make_tiles(t, g, {20'000, 16});
  s.place.resize(s.graph.tiles.size());
  for (auto& p : s.place) p.core = static_cast<std::uint32_t>(dice() % static_cast<std::uint64_t>(t.chip().core_count));
  return s;
}

}  // namespace raptor::test
