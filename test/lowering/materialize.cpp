#include "raptor/lowering/materialize.hpp"

#include <doctest/doctest.h>

#include "interpreter.hpp"

using namespace raptor;
using layout::physical;

namespace {
struct copied {
  lowering::compute_graph graph;
  std::uint32_t from = 0, to = 0;
  lowering::compute made;
};
copied copy(const shape& sizes, physical source, physical target) {
  copied c;
  lowering::value x{"x", sizes, source, lowering::origin::input, {}};
  x.input = 0;
  c.from = c.graph.add_value(x);
  c.to = c.graph.add_value({"y", sizes, target, lowering::origin::computed, {}});
  c.made = source == target ? lowering::copy_dense(c.graph, c.from, c.to) : lowering::materialize(c.graph, c.from, c.to);
  return c;
}
}  // namespace

TEST_CASE("references to values stay valid while others are added") {
  lowering::compute_graph g;
  const auto first = g.add_value({"x", {1}, physical::dense, lowering::origin::computed, {}});
  const auto& x = g.value_at(first);
  for (int i = 0; i < 1000; ++i) static_cast<void>(g.add_value({"y", {2}, physical::dense, lowering::origin::computed, {}}));
  CHECK(&x == &g.values()[first]);
  CHECK(x.name == "x");
}

TEST_CASE("an image is the same in every layout") {
  for (const shape& sizes : {shape{2, 3, 4, 5}, shape{1, 1, 3, 2}, shape{2, 7, 1, 1}}) {
    auto c = copy(sizes, physical::dense, physical::nhwc_row_strip);
    c.graph.add_compute(c.made);
    std::vector<float> data;
    for (std::int64_t i = 0; i < element_count(sizes); ++i) data.push_back(static_cast<float>(i));
    test::interpreter machine(c.graph, {model::make_value(sizes, data)});
    machine.run({1, false, 0});
    CHECK(machine.value(c.to) == data);
  }
}

TEST_CASE("an image without elements takes no statement, but has a writer") {
  for (const shape& sizes : {shape{0, 3, 4, 5}, shape{1, 0, 4, 5}, shape{1, 3, 0, 5}, shape{1, 3, 4, 0}}) {
    const std::pair<physical, physical> layouts[] = {{physical::dense, physical::nhwc_row_strip}, {physical::nhwc_row_strip, physical::dense}, {physical::dense, physical::dense}};
    for (const auto& [source, target] : layouts) {
      const auto c = copy(sizes, source, target);
      CHECK(c.made.body.empty());
      CHECK(c.made.lanes == shape{0});
      REQUIRE(c.made.accesses.size() == 1);
      CHECK(c.made.accesses[0].value == c.to);
    }
  }
}
