#include "raptor/lowering/elementwise.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "one_node.hpp"

using namespace raptor;
using namespace raptor::test;
using model::binary;
using model::binary_kind;
using model::unary;
using model::unary_kind;

namespace {
constexpr float infinity = std::numeric_limits<float>::infinity();
const unary unaries[] = {{unary_kind::relu},
                         {unary_kind::sigmoid},
                         {unary_kind::tanh},
                         {unary_kind::identity},
                         {unary_kind::leaky_relu, 0.1F},
                         {unary_kind::leaky_relu, 0},
                         {unary_kind::leaky_relu, 1},
                         {unary_kind::leaky_relu, 2.5F},
                         {unary_kind::leaky_relu, -0.5F},
                         {unary_kind::clip, 0, 6},
                         {unary_kind::clip, -1, 1},
                         {unary_kind::clip, -infinity, 1},
                         {unary_kind::clip, 0, infinity},
                         {unary_kind::clip, -0.5F, std::numeric_limits<float>::max()},
                         {unary_kind::clip, 1, -1},
                         {unary_kind::clip, -infinity, infinity}};
}  // namespace

TEST_CASE("unary operators equal the reference in every tiling and layout") {
  for (const auto& op : unaries) {
    CAPTURE(std::string(model::name(op.kind)));
    CAPTURE(op.a);
    for (const shape& sizes : {shape{}, shape{1}, shape{7}, shape{2, 3, 4, 5}, shape{3, 1000}, shape{2, 5, 20, 30}, shape{1, 1, 1, 1, 2, 3}, shape{2, 0, 3}})
      CHECK(error_of(op, {given(sizes)}, sizes, dense) <= 2e-7);
    for (const shape& sizes : {shape{1, 3, 4, 5}, shape{2, 8, 3, 2}, shape{1, 1, 1, 1}, shape{1, 100, 2, 60}, shape{1, 0, 2, 2}})
      CHECK(error_of(op, {given(sizes)}, sizes, rows) <= 2e-7);
  }
}

TEST_CASE("a row strip takes one instruction a row") {
  CHECK(one_node(unary{unary_kind::relu}, {given({1, 8, 5, 6})}, {1, 8, 5, 6}, rows).computes.at(1).body.size() == 1);
  CHECK(one_node(unary{unary_kind::relu}, {given({1, 8, 4, 4})}, {1, 8, 4, 4}, dense).statements() == 1);
}

TEST_CASE("binary operators broadcast as NumPy does, computed and constant") {
  struct sizes_case {
    shape a, b, out;
  };
  const sizes_case cases[] = {{{2, 3}, {2, 3}, {2, 3}},
                              {{2, 3, 4, 5}, {3, 1, 1}, {2, 3, 4, 5}},
                              {{2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}},
                              {{2, 3, 40, 15}, {2, 3, 40, 15}, {2, 3, 40, 15}},
                              {{2, 3, 4, 5}, {}, {2, 3, 4, 5}},
                              {{3, 4, 600}, {4, 1}, {3, 4, 600}},
                              {{4, 1}, {3, 1, 6}, {3, 4, 6}},
                              {{5}, {4, 1}, {4, 5}},
                              {{2, 1, 4, 1}, {1, 3, 1, 5}, {2, 3, 4, 5}},
                              {{1}, {1, 1, 1}, {1, 1, 1}},
                              {{2, 0, 3}, {1, 3}, {2, 0, 3}},
                              {{1, 700}, {3, 2, 1, 700}, {3, 2, 1, 700}},
                              {{}, {}, {}}};
  for (const auto kind : {binary_kind::add, binary_kind::subtract, binary_kind::multiply, binary_kind::maximum, binary_kind::minimum, binary_kind::divide, binary_kind::prelu})
    for (const auto& s : cases) {
      CAPTURE(std::string(model::name(kind)));
      CAPTURE(to_string(s.a));
      CAPTURE(to_string(s.b));
      const binary op{kind};
      if (kind != binary_kind::prelu || s.a == s.out) {
        CHECK(error_of(op, {given(s.a), fixed(s.b)}, s.out, dense) <= 2e-7);
        if (kind != binary_kind::divide) CHECK(error_of(op, {given(s.a), given(s.b)}, s.out, dense) <= 2e-7);
      }
      if (kind != binary_kind::prelu || s.b == s.out) CHECK(error_of(op, {given(s.b), fixed(s.a)}, s.out, dense) <= 2e-7);
      if (kind != binary_kind::divide && (kind != binary_kind::prelu || s.a == s.out)) CHECK(error_of(op, {fixed(s.a), given(s.b)}, s.out, dense) <= 2e-7);
      if (kind != binary_kind::prelu || s.a == s.out) CHECK(error_of(op, {fixed(s.a), fixed(s.b)}, s.out, dense) <= 2e-7);
    }
}

TEST_CASE("binary operators on row strips: images, channels, scalars, constants of any broadcastable shape") {
  for (const auto kind : {binary_kind::add, binary_kind::subtract, binary_kind::multiply, binary_kind::maximum, binary_kind::minimum, binary_kind::divide, binary_kind::prelu})
    for (const shape& image : {shape{1, 3, 4, 5}, shape{2, 8, 3, 2}, shape{2, 1, 3, 4}, shape{1, 700, 1, 13}}) {
      CAPTURE(std::string(model::name(kind)));
      CAPTURE(to_string(image));
      const auto n = image[0], c = image[1], h = image[2], w = image[3];
      const binary op{kind};
      if (kind != binary_kind::divide) {
        CHECK(error_of(op, {given(image), given(image)}, image, rows) <= 2e-7);
        CHECK(error_of(op, {given(image), given({n, c, 1, 1})}, image, rows) <= 2e-7);
      }
      if (kind != binary_kind::divide && kind != binary_kind::prelu) {
        CHECK(error_of(op, {fixed({}), given(image)}, image, rows) <= 2e-7);
        CHECK(error_of(op, {fixed({1, c, 1, 1}), given(image)}, image, rows) <= 2e-7);
      }
      for (const shape& constant : {shape{}, shape{1}, shape{1, 1, 1, 1}, shape{c, 1, 1}, shape{1, c, 1, 1}, shape{n, c, 1, 1}, shape{h, w}, shape{c, h, w}, image, shape{1, w}, shape{1, h, 1}})
        CHECK(error_of(op, {given(image), fixed(constant)}, image, rows) <= 2e-7);
    }
}

TEST_CASE("computes that consume rows have the same lanes and boxes as their producers") {
  const one_node a(unary{unary_kind::relu}, {given({1, 8, 5, 6})}, {1, 8, 5, 6}, rows);
  const one_node b(binary{binary_kind::add}, {given({1, 8, 5, 6}), given({1, 8, 5, 6})}, {1, 8, 5, 6}, rows);
  const auto& x = a.computes.at(a.computes.size() - 1);
  const auto& y = b.computes.at(b.computes.size() - 1);
  CHECK(x.lanes == y.lanes);
  CHECK(x.most == y.most);
  CHECK(x.accesses.front().low == y.accesses.front().low);
  CHECK(x.accesses.front().high == x.accesses.back().high);
}

TEST_CASE("what has no instruction is refused with the node's name") {
  for (const auto kind : {binary_kind::divide, binary_kind::power}) {
    try {
      static_cast<void>(one_node(binary{kind}, {given({2, 3}), given({2, 3})}, {2, 3}, dense));
      FAIL("accepted");
    } catch (const error& e) {
      CHECK(e.code() == error_code::unsupported);
      CHECK(e.place().find("\"node\"") != std::string::npos);
    }
  }
}

TEST_CASE("how computes divide the rows of a value") {
  // Computes that write boxes of an image of 4 channels, 3 rows and 6 columns.
  struct written {
    interval channels, columns;
    lowering::access_mode mode = lowering::access_mode::assign;
  };
  const auto divided = [](const std::vector<written>& boxes, bool by_tile = false) {
    const model::graph graph;
    const layout::plan plan;
    const program::geometry chip;
    const lowering::lowering_options options;
    lowering::compute_graph computes;
    lowering::context c(graph, plan, chip, options, [](isa::opcode, std::int64_t n) { return n; }, computes);
    const auto y = computes.add_value({"y", {1, 4, 3, 6}, rows, lowering::origin::computed, {}});
    for (const auto& b : boxes) {
      lowering::kernel_builder k("part", {1, 3});
      const auto h = lowering::tile_begin(1);
      k.reads(y, {0, 0, h, 0}, {1, 1, h, 1});  // what is read does not divide
      k.writes(y, {0, b.channels.begin, h, by_tile ? h : affine(b.columns.begin)}, {1, b.channels.end, h + 1, b.columns.end}, b.mode);
      computes.add_compute(k.take());
    }
    std::vector<std::vector<std::int64_t>> list;
    for (const auto& p : lowering::detail::row_parts(c, y)) list.push_back({p.channels.begin, p.channels.end, p.columns.begin, p.columns.end});
    return list;
  };
  using parts = std::vector<std::vector<std::int64_t>>;
  constexpr auto sum = lowering::access_mode::accumulate;
  CHECK(divided({}) == parts{});
  CHECK(divided({{{0, 4}, {0, 6}}}) == parts{});
  CHECK(divided({{{2, 4}, {0, 6}}, {{0, 2}, {0, 6}}}) == parts{{0, 2, 0, 6}, {2, 4, 0, 6}});
  CHECK(divided({{{0, 4}, {4, 6}}, {{0, 4}, {0, 1}}, {{0, 4}, {1, 4}}}) == parts{{0, 4, 0, 1}, {0, 4, 1, 4}, {0, 4, 4, 6}});
  CHECK(divided({{{0, 2}, {3, 6}}, {{2, 4}, {0, 6}}, {{0, 2}, {0, 3}}}) == parts{{0, 2, 0, 3}, {0, 2, 3, 6}, {2, 4, 0, 6}});
  // What several add up is one part.
  CHECK(divided({{{0, 2}, {0, 6}, sum}, {{2, 4}, {0, 6}, sum}, {{0, 2}, {0, 6}, sum}, {{2, 4}, {0, 6}, sum}}) == parts{{0, 2, 0, 6}, {2, 4, 0, 6}});
  // Not the whole row, sums of whole rows, and boxes that depend on the tile are no division.
  CHECK(divided({{{0, 2}, {0, 6}}, {{2, 3}, {0, 6}}}) == parts{});
  CHECK(divided({{{0, 4}, {0, 6}, sum}, {{0, 4}, {0, 6}, sum}}) == parts{});
  CHECK(divided({{{0, 2}, {0, 6}, sum}, {{0, 2}, {0, 6}, sum}}) == parts{});
  CHECK(divided({{{0, 4}, {0, 3}}, {{0, 4}, {3, 6}}}, true) == parts{});
}
