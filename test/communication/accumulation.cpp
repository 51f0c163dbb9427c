#include "raptor/communication/accumulation.hpp"

#include <doctest/doctest.h>

#include "raptor/lowering/merging.hpp"

using namespace raptor;
using namespace raptor::lowering;

namespace {

/// `parts` computes that each accumulate x (read whole) into y, then a relu that reads y.
compute_graph partial_sums(std::size_t parts) {
  compute_graph g;
  value input{"x", {4, 8}, layout::physical::dense, origin::input, {}};
  input.input = 0;
  const auto x = g.add_value(input);
  const auto y = g.add_value({"y", {4, 8}, layout::physical::dense, origin::computed, {}});
  const auto z = g.add_value({"z", {4, 8}, layout::physical::dense, origin::computed, {}});
  g.value_at(z).result = 0;
  g.inputs = {{"x", {4, 8}}}, g.outputs = {{"z", {4, 8}}};
  const std::vector<affine> low{tile_begin(0), 0}, high{tile_end(0), 8};
  for (std::size_t p = 0; p < parts; ++p) {
    kernel_builder k("part" + std::to_string(p), {4});
    const auto in = k.reads(x, low, high), out = k.writes(y, low, high, access_mode::accumulate);
    k.group({1, 1, {}, {}});  // resident weights: the part stays a compute of its own
    k.loop(tile_extent(0), [&](const affine& i) { k.copy(k.at(out, {tile_begin(0) + i, 0}), k.at(in, {tile_begin(0) + i, 0}), 8); });
    g.add_compute(k.take());
  }
  kernel_builder k("relu", {4});
  const auto in = k.reads(y, low, high), out = k.writes(z, low, high);
  k.loop(tile_extent(0), [&](const affine& i) { k.vector(isa::opcode::vrelu, k.at(out, {tile_begin(0) + i, 0}), k.at(in, {tile_begin(0) + i, 0}), 8); });
  g.add_compute(k.take());
  return g;
}

std::size_t accesses(const compute_graph& g, access_mode mode) {
  std::size_t count = 0;
  for (vertex v = 0; v < g.size(); ++v)
    for (const auto& a : g.at(v).accesses) count += a.mode == mode ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a chain passes a running sum along and leaves no accumulation") {
  for (const std::size_t parts : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{5}}) {
    CAPTURE(parts);
    const auto g = communication::chain_accumulation{}(partial_sums(parts));
    CHECK(accesses(g, access_mode::accumulate) == 0);
    CHECK(g.size() == parts + 1);
    // Every part but the last has exactly one successor, the next one: a chain.
    for (vertex v = 0; v + 1 < g.size(); ++v) {
      CHECK(boost::out_degree(v, g.structure()) == 1);
      CHECK(boost::edge(v, v + 1, g.structure()).second);
    }
    CHECK(g.writers(1).size() == 1);
  }
}

TEST_CASE("an element-wise consumer joins the last part of a chain") {
  const auto g = merge_trivial(communication::chain_accumulation{}(partial_sums(3)));
  CHECK(g.size() == 3);
  CHECK(g.at(2).name == "part2+relu");
}

TEST_CASE("a value that is a result, or has two readers, is not merged away") {
  auto g = partial_sums(1);
  g.value_at(1).result = 1;
  g.outputs.push_back({"y", {4, 8}});
  CHECK(merge_trivial(communication::chain_accumulation{}(g)).size() == 2);
}
