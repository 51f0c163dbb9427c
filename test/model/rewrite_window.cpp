#include "raptor/model/rewrite_window.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "raptor/model/rewrite.hpp"
#include "rewrite_support.hpp"

using namespace raptor;
using namespace raptor::model;
using namespace raptor::model::testing;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

graph run(bool (*rewrite)(graph_edit&), const graph& g, bool expect_change) {
  check_graph(g);
  graph_edit e(g);
  CHECK(rewrite(e) == expect_change);
  auto result = e.build();
  check_graph(result);
  CHECK(difference(g, result) == 0);
  return result;
}
pad around(float value, axis_values begin = {0, 0, 1, 2}, axis_values end = {0, 0, 0, 1}, pad_mode mode = pad_mode::constant) {
  return {std::move(begin), std::move(end), mode, value};
}

}  // namespace

TEST_CASE("a Pad with zeros goes into the convolution behind it") {
  net n;
  const auto x = n.input({1, 2, 5, 5});
  const auto padded = n.add(around(0), {x});
  SUBCASE("alone") {
    const auto g = run(rewrite::absorb_padding, n.done({n.conv(padded, 3, true)}), true);
    REQUIRE(g.node_count() == 1);
    CHECK(first<convolution>(g).pads_begin == axis_values{2, 3});
    CHECK(first<convolution>(g).pads_end == axis_values{1, 2});
  }
  SUBCASE("read by others too: the Pad stays for them") {
    const auto g = run(rewrite::absorb_padding, n.done({n.conv(padded, 3, false), n.add(unary{unary_kind::relu, 0, 0}, {padded})}), true);
    CHECK(count(g, "pad") == 1);
  }
}

TEST_CASE("other Pads stay before a convolution") {
  for (const auto& p : {around(1), around(0, {0, 1, 0, 0}), around(0, {0, 0, -1, 0}), around(0, {0, 0, 1, 1}, {0, 0, 1, 1}, pad_mode::edge)}) {
    net n;
    const auto x = n.input({1, 2, 6, 6});
    run(rewrite::absorb_padding, n.done({n.conv(n.add(p, {x}), 3, false)}), false);
  }
}

TEST_CASE("a Pad before a pool") {
  const auto pooled = [](pool_kind kind, float value, std::int64_t own, bool counts, shape result = {}) {
    net n;
    const auto x = n.input({1, 2, 5, 5});
    const pool op{kind, {3, 3}, {2, 2}, {1, 1}, {own, own}, {own, own}, counts};
    const auto padded = n.add(around(value), {x});
    return n.done({result.empty() ? n.add(op, {padded}) : n.add(op, {padded}, std::move(result))});
  };
  CHECK(first<pool>(run(rewrite::absorb_padding, pooled(pool_kind::average, 0, 1, true), true)).count_include_pad);
  CHECK(first<pool>(run(rewrite::absorb_padding, pooled(pool_kind::average, 0, 0, false), true)).count_include_pad);
  run(rewrite::absorb_padding, pooled(pool_kind::average, 0, 1, false), false);  // own padding is not counted, that of the Pad is
  run(rewrite::absorb_padding, pooled(pool_kind::average, 1, 0, true), false);
  run(rewrite::absorb_padding, pooled(pool_kind::max, 0, 0, false), false);
  run(rewrite::absorb_padding, pooled(pool_kind::max, -infinity, 1, false), true);
  // ceil_mode: 6 + 8 elements, windows of 3 by 2, the last beginning within what the Pad appended.
  run(rewrite::absorb_padding, pooled(pool_kind::average, 0, 0, true, {1, 2, 3, 4}), true);
}

TEST_CASE("a window that begins in what the Pad appended is not padding of the pool") {
  net n;
  const auto x = n.input({1, 1, 1, 4});
  const auto padded = n.add(around(0, {0, 0, 0, 0}, {0, 0, 0, 1}), {x});
  // Elements 4 and a zero; windows of 2 by 2 with ceil_mode begin at 0, 2 and 4: the last in the appended zero.
  const auto y = n.add(pool{pool_kind::average, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}, true}, {padded}, {1, 1, 1, 3});
  run(rewrite::absorb_padding, n.done({y}), false);
}

TEST_CASE("one-dimensional convolutions and pools become two-dimensional") {
  net n;
  const auto x = n.input({2, 3, 9});
  const auto w = n.input({4, 3, 3});
  const auto c = n.add(convolution{{3}, {2}, {1}, {1}, {0}, 1}, {x, n.weights({4, 3, 3}), n.weights({4})});
  const auto d = n.add(convolution{{3}, {1}, {1}, {0}, {0}, 1}, {x, w});
  const auto p = n.add(pool{pool_kind::max, {2}, {2}, {1}, {0}, {0}, false}, {x});
  const auto l = n.add(lrn{3, 0.1F, 0.5F, 1}, {x});
  const auto g = run(rewrite::raise_to_images, n.done({c, d, p, l}), true);
  for (vertex v = 0; v < g.node_count(); ++v) {
    if (std::holds_alternative<reshape>(g.at(v).op)) continue;
    CHECK(g.at(g.at(v).inputs[0]).sizes.size() == 4);
  }
  CHECK(count(g, "convolution") == 2);
  run(rewrite::raise_to_images, g, false);
}

TEST_CASE("chains of bounds become one clip, or relu") {
  net n;
  const auto x = n.input({40});
  const auto clip = [&](tensor_id t, float low, float high) { return n.add(unary{unary_kind::clip, low, high}, {t}); };
  const auto number = [&](float v) { return n.constant_of({1}, {v}); };
  const auto relu6 = n.add(binary{binary_kind::minimum}, {n.add(binary{binary_kind::maximum}, {x, number(0)}), number(0.25F)});
  const auto narrow = clip(clip(x, -0.5F, 0.5F), 0.25F, 2);
  const auto apart = clip(clip(x, -0.5F, -0.25F), 0.25F, 0.5F);
  const auto relu = clip(n.add(unary{unary_kind::relu, 0, 0}, {x}), -1, infinity);
  const auto nothing = n.add(unary{unary_kind::tanh, 0, 0}, {clip(x, -infinity, infinity)});
  const auto g = run(rewrite::normalize_activations, n.done({relu6, narrow, apart, relu, nothing}), true);
  CHECK(count(g, "clip") == 3);
  CHECK(count(g, "relu") == 1);
  CHECK(count(g, "identity") == 1);
  CHECK(count(g, "maximum") == 0);
  run(rewrite::normalize_activations, g, false);
}

TEST_CASE("x times its sigmoid is one operator, unless the sigmoid is read elsewhere") {
  for (const int kind : {0, 1, 2, 3}) {
    CAPTURE(kind);
    net n;
    const auto x = n.input({2, 30}), other = n.input({2, 30});
    const auto gate = n.add(unary{unary_kind::sigmoid, 0, 0}, {x});
    const auto y = n.add(binary{binary_kind::multiply}, kind == 1 ? std::vector{gate, x} : std::vector{kind == 2 ? other : x, gate});
    const auto g = n.done(kind == 3 ? std::vector{y, gate} : std::vector{y});
    graph_edit e(g);
    CHECK(rewrite::fuse_silu(e) == (kind < 2));
    const auto fused = e.build();
    check_graph(fused);
    CHECK(difference(g, fused) < 1e-6);
    CHECK(count(fused, "silu") == (kind < 2 ? 1 : 0));
    if (kind < 2) CHECK(fused.node_count() == 1);
  }
}

TEST_CASE("a clip whose bounds are the wrong way round is left alone") {
  net n;
  const auto x = n.input({10});
  run(rewrite::normalize_activations, n.done({n.add(unary{unary_kind::clip, 1, -1}, {n.add(unary{unary_kind::relu, 0, 0}, {x})})}), false);
}

TEST_CASE("PRelu with one slope is leaky relu, with slope 0 relu") {
  net n;
  const auto x = n.input({1, 3, 2, 2});
  const auto one = n.add(binary{binary_kind::prelu}, {x, n.constant_of({3, 1, 1}, {0.5F, 0.5F, 0.5F})});
  const auto zero = n.add(binary{binary_kind::prelu}, {x, n.constant_of({1}, {0})});
  const auto many = n.add(binary{binary_kind::prelu}, {x, n.constant_of({3, 1, 1}, {0.5F, 0.25F, 0.5F})});
  const auto g = run(rewrite::normalize_activations, n.done({one, zero, many}), true);
  CHECK(count(g, "leaky_relu") == 1);
  CHECK(count(g, "relu") == 1);
  CHECK(count(g, "prelu") == 1);
}
