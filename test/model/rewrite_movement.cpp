#include "raptor/model/rewrite_movement.hpp"

#include <doctest/doctest.h>

#include "raptor/model/rewrite.hpp"
#include "rewrite_support.hpp"

using namespace raptor;
using namespace raptor::model;
using namespace raptor::model::testing;

namespace {

/// Runs one rewrite, checks that it reports what it does and keeps the function of the graph, and returns the result.
graph run(bool (*rewrite)(graph_edit&), const graph& g, bool expect_change) {
  check_graph(g);
  graph_edit e(g);
  CHECK(rewrite(e) == expect_change);
  auto result = e.build();
  check_graph(result);
  CHECK(difference(g, result) == 0);
  return result;
}

}  // namespace

TEST_CASE("constants fold, a chain of them in one pass") {
  net n;
  const auto x = n.input({2, 3});
  const auto c = n.weights({3, 2});
  const auto turned = n.add(transpose{{1, 0}}, {c});
  const auto y = n.add(binary{binary_kind::multiply}, {x, n.add(unary{unary_kind::tanh, 0, 0}, {turned})});
  const auto g = run(rewrite::fold_constants, n.done({y}), true);
  CHECK(g.node_count() == 1);
  run(rewrite::fold_constants, g, false);
}

TEST_CASE("what is too large or too expensive does not fold") {
  const shape wide{1, 1 << 13}, tall{1 << 13, 1};
  net n;
  const auto row = n.constant_of(wide, std::vector<float>(1 << 13, 1.0F)), column = n.constant_of(tall, std::vector<float>(1 << 13, 1.0F));
  const auto y = n.add(binary{binary_kind::add}, {row, column});
  graph_edit e(n.done({y}));
  CHECK_FALSE(rewrite::fold_constants(e));
}

TEST_CASE("identities and what moves nothing vanish") {
  net n;
  const auto x = n.input({1, 4, 2, 2});
  auto t = n.add(unary{unary_kind::relu, 0, 0}, {x});
  t = n.add(unary{unary_kind::identity, 0, 0}, {t});
  t = n.add(reshape{}, {t}, {1, 4, 2, 2});
  t = n.add(transpose{{0, 1, 2, 3}}, {t});
  t = n.add(slice{{0, 0, 0, 0}, {1, 1, 1, 1}}, {t}, {1, 4, 2, 2});
  t = n.add(pad{{0, 0, 0, 0}, {0, 0, 0, 0}, pad_mode::edge, 0}, {t});
  t = n.add(concat{1}, {t});
  t = n.add(channel_shuffle{4}, {t});
  t = n.add(channel_shuffle{1}, {t});
  t = n.add(unary{unary_kind::tanh, 0, 0}, {t});
  const auto g = run(rewrite::remove_no_ops, n.done({t}), true);
  CHECK(g.node_count() == 2);
  run(rewrite::remove_no_ops, g, false);
}

TEST_CASE("what does move something stays") {
  net n;
  const auto x = n.input({1, 4, 2, 2});
  const auto a = n.add(slice{{0, 0, 1, 0}, {1, 1, -1, 1}}, {x}, {1, 4, 2, 2});
  const auto b = n.add(transpose{{0, 1, 3, 2}}, {x});
  const auto c = n.add(channel_shuffle{2}, {x});
  const auto d = n.add(pad{{0, 0, 1, 0}, {0, 0, -1, 0}, pad_mode::constant, 0}, {x});
  const auto g = n.done({a, b, c, d});
  CHECK(run(rewrite::remove_no_ops, g, false).node_count() == 4);
}

TEST_CASE("outputs keep their names and order") {
  net n;
  const auto x = n.input({4});
  const auto y = n.add(unary{unary_kind::relu, 0, 0}, {x});
  const auto same = n.add(unary{unary_kind::identity, 0, 0}, {y});
  const auto copy = n.add(unary{unary_kind::identity, 0, 0}, {x});
  const auto both = n.done({same, y, copy});
  const auto g = run(rewrite::remove_no_ops, both, false);  // y is an output itself, x a graph input: all three stay
  for (std::size_t i = 0; i < 3; ++i) CHECK(g.at(g.outputs[i]).name == both.at(both.outputs[i]).name);
  const auto only = run(rewrite::remove_no_ops, n.done({same}), true);
  CHECK(only.node_count() == 1);
  CHECK(only.at(only.outputs[0]).name == both.at(both.outputs[0]).name);
}

TEST_CASE("channel shuffle is recognized") {
  const auto shuffle = [](const shape& parts, axis_values permutation, const shape& back) {
    net n;
    const auto x = n.input({2, 6, 4, 5});
    auto t = n.add(reshape{}, {x}, parts);
    t = n.add(transpose{std::move(permutation)}, {t});
    return n.done({n.add(reshape{}, {t}, back)});
  };
  const shape image{2, 6, 4, 5};
  for (const auto& g : {shuffle({2, 3, 2, 4, 5}, {0, 2, 1, 3, 4}, image), shuffle({2, 2, 3, 20}, {0, 2, 1, 3}, image)}) {
    const auto result = run(rewrite::recognize_channel_shuffle, g, true);
    REQUIRE(result.node_count() == 1);
    CHECK(first<channel_shuffle>(result).groups == (g.at(0).outputs.empty() ? 0 : g.at(g.at(0).outputs[0]).sizes[1]));
  }
  run(rewrite::recognize_channel_shuffle, shuffle({2, 3, 2, 4, 5}, {0, 2, 1, 4, 3}, image), false);    // rows and columns swap too
  run(rewrite::recognize_channel_shuffle, shuffle({2, 3, 2, 4, 5}, {0, 2, 1, 3, 4}, {2, 120}), false);  // another shape afterwards
  run(rewrite::recognize_channel_shuffle, shuffle({2, 2, 6, 10}, {0, 2, 1, 3}, image), false);          // the parts are not channels
}

TEST_CASE("chains of reshapes and of transposes collapse") {
  net n;
  const auto x = n.input({2, 3, 4});
  const auto r = n.add(reshape{}, {n.add(reshape{}, {x}, {6, 4})}, {3, 8});
  const auto t = n.add(transpose{{1, 2, 0}}, {n.add(transpose{{1, 2, 0}}, {x})});
  const auto g = run(rewrite::collapse_chains, n.done({r, t}), true);
  CHECK(g.node_count() == 2);
  CHECK(first<transpose>(g).permutation == axis_values{2, 0, 1});
}

TEST_CASE("a transpose of axes of size 1 is a reshape") {
  net n;
  const auto x = n.input({1, 3, 1, 4});
  const auto moves = n.add(transpose{{0, 3, 2, 1}}, {x});
  const auto g = run(rewrite::collapse_chains, n.done({n.add(transpose{{2, 1, 0, 3}}, {x}), n.add(transpose{{1, 0, 3, 2}}, {x}), moves}), true);
  CHECK(count(g, "reshape") == 2);
  CHECK(count(g, "transpose") == 1);
}

TEST_CASE("every output is computed by a node of its own") {
  net n;
  const auto x = n.input({4});
  const auto c = n.weights({2});
  const auto y = n.add(unary{unary_kind::relu, 0, 0}, {x});
  const auto g = run(rewrite::compute_outputs, n.done({y, x, c, y}), true);
  CHECK(g.node_count() == 4);
  for (const auto t : g.outputs) CHECK(g.producer(t) != graph::no_vertex);
  CHECK(g.outputs[0] != g.outputs[3]);
  run(rewrite::compute_outputs, g, false);
}
