#include "raptor/lowering/box_copy.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "interpreter.hpp"

using namespace raptor;
using lowering::kernel_builder;

namespace {
/// Runs a kernel that reads x [4, 4] and writes y [4, 4] with lanes {4}, all tiles on one core, and gives y.
std::vector<float> run(const std::function<void(kernel_builder&, std::uint32_t x, std::uint32_t y)>& body, const test::tiling& how = {}) {
  lowering::compute_graph g;
  lowering::value x{"x", {4, 4}, layout::physical::dense, lowering::origin::input, {}};
  x.input = 0;
  const auto from = g.add_value(x), to = g.add_value({"y", {4, 4}, layout::physical::dense, lowering::origin::computed, {}});
  kernel_builder k("kernel", {4});
  const auto b = lowering::leading_box({4, 4}, 1);
  const auto r = k.reads(from, b.low, b.high), w = k.writes(to, b.low, b.high);
  body(k, r, w);
  g.add_compute(k.take());
  std::vector<float> data(16);
  for (std::size_t i = 0; i < 16; ++i) data[i] = static_cast<float>(i);
  test::interpreter machine(g, {model::make_value(shape{4, 4}, data)});
  machine.run(how);
  return machine.value(to);
}
}  // namespace

TEST_CASE("runs start where everything behind them is complete") {
  const auto yes = [](std::size_t) { return true; };
  const auto no = [](std::size_t) { return false; };
  CHECK(lowering::detail::run_start(4, 0, yes, yes) == 0);
  CHECK(lowering::detail::run_start(4, 2, yes, yes) == 2);
  CHECK(lowering::detail::run_start(4, 0, no, yes) == 3);   // the last dimension alone
  CHECK(lowering::detail::run_start(4, 0, yes, no) == 4);   // no run at all
  CHECK(lowering::detail::run_start(4, 0, [](std::size_t d) { return d > 2; }, yes) == 2);
}

TEST_CASE("lanes leave runs of a useful length") {
  CHECK(lowering::dense_lanes({}) == 0);
  CHECK(lowering::dense_lanes({1000}) == 0);
  CHECK(lowering::dense_lanes({100000}) == 0);       // the last dimension is never cut
  CHECK(lowering::dense_lanes({1, 64, 56, 56}) == 2);
  CHECK(lowering::dense_lanes({1, 512, 7, 7}) == 2);
  CHECK(lowering::dense_lanes({8, 3, 10, 10}) == 0);
  CHECK(lowering::dense_lanes({20000, 1}) == 0);     // trailing ones are no reason for lanes of one element
}

TEST_CASE("the interpreter catches kernels that are wrong") {
  const auto h = lowering::tile_begin(0);
  const auto good = [&](kernel_builder& k, std::uint32_t x, std::uint32_t y) { k.loop(lowering::tile_extent(0), [&](const affine& i) { k.copy(k.at(y, {h + i, 0}), k.at(x, {h + i, 0}), 4); }); };
  for (const auto& how : {test::tiling{1, true, 0}, test::tiling{2, false, 1}, test::tiling{4, true, 2}}) CHECK(run(good, how)[7] == 7);
  // Not everything written.
  CHECK_THROWS_AS(run([&](auto& k, auto x, auto y) { k.copy(k.at(y, {h, 0}), k.at(x, {h, 0}), 3); }), error);
  // Outside the tile's box; the buffer holds the neighbouring tile.
  CHECK_THROWS_AS(run([&](auto& k, auto x, auto y) { k.copy(k.at(y, {h, 1}), k.at(x, {h, 0}), 4); }), error);
  // Beyond the buffer.
  CHECK_THROWS_AS(run([&](auto& k, auto x, auto y) { k.copy(k.at(y, {h, 0}), k.at(x, {h, 2}), 16); }), error);
  // A temporary that nothing has written, and one that does not survive the tile.
  CHECK_THROWS_AS(run([&](auto& k, auto, auto y) { k.copy(k.at(y, {h, 0}), k.in(k.scratch("t", 4)), 4); }), error);
  // Overlapping copy, and a destination that lies across a source.
  CHECK_THROWS_AS(run([&](auto& k, auto x, auto y) {
    const auto t = k.scratch("t", 6);
    k.fill(k.in(t), 0, 6);
    k.copy(k.in(t, 1), k.in(t), 4);
    k.copy(k.at(y, {h, 0}), k.at(x, {h, 0}), 4);
  }), error);
  CHECK_THROWS_AS(run([&](auto& k, auto x, auto y) {
    const auto t = k.scratch("t", 6);
    k.fill(k.in(t), 0, 6);
    k.vector(isa::opcode::vvadd, k.in(t), k.in(t, 1), k.at(x, {h, 0}), 4);
    k.copy(k.at(y, {h, 0}), k.at(x, {h, 0}), 4);
  }), error);
  // A run may cross rows that are complete in the box.
  const auto across = [&](auto& k, auto x, auto y) {
    k.copy(k.at(y, {h, 0}), k.at(x, {h, 0}), lowering::tile_extent(0) * 4);
  };
  CHECK(run(across, {2, true, 0})[9] == 9);
}
