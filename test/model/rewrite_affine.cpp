#include "raptor/model/rewrite_affine.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "raptor/model/rewrite.hpp"
#include "rewrite_support.hpp"

using namespace raptor;
using namespace raptor::model;
using namespace raptor::model::testing;

namespace {

graph run(bool (*rewrite)(graph_edit&), const graph& g, bool expect_change, double tolerance = 2e-6) {
  check_graph(g);
  graph_edit e(g);
  CHECK(rewrite(e) == expect_change);
  auto result = e.build();
  check_graph(result);
  CHECK(difference(g, result) <= tolerance);
  return result;
}

}  // namespace

TEST_CASE("BatchNorm goes into the convolution before it, which gets a bias") {
  for (const bool bias : {false, true}) {
    net n;
    const auto x = n.input({1, 4, 6, 6});
    const auto g = n.done({n.batch_norm(n.conv(x, 8, bias, 2))});
    const auto result = run(rewrite::fold_batch_norm, g, true);
    REQUIRE(result.node_count() == 1);
    CHECK(result.at(0).inputs.size() == 3);
    CHECK(result.at(result.outputs[0]).name == g.at(g.outputs[0]).name);
  }
}

TEST_CASE("BatchNorm goes into a Gemm, by columns") {
  net n;
  const auto x = n.input({3, 5});
  const auto y = n.add(gemm{}, {x, n.weights({5, 4}), n.weights({4})});
  CHECK(run(rewrite::fold_batch_norm, n.done({n.batch_norm(y)}), true).node_count() == 1);
}

TEST_CASE("BatchNorm is not folded into a convolution that someone else reads") {
  net n;
  const auto x = n.input({1, 3, 6, 6});
  const auto c = n.conv(x, 4, false);
  SUBCASE("another node") {
    const auto g = run(rewrite::fold_batch_norm, n.done({n.batch_norm(c), n.add(unary{unary_kind::relu, 0, 0}, {c})}), true);
    CHECK(count(g, "convolution") == 1);
    CHECK(count(g, "multiply") == 1);
    CHECK(count(g, "add") == 1);
    CHECK(g.at(0).inputs.size() == 2);
  }
  SUBCASE("a graph output") {
    const auto g = run(rewrite::fold_batch_norm, n.done({n.batch_norm(c), c}), true);
    CHECK(count(g, "multiply") == 1);
  }
  SUBCASE("twice by the same node") {
    const auto g = run(rewrite::fold_batch_norm, n.done({n.add(binary{binary_kind::add}, {n.batch_norm(c), n.batch_norm(c)})}), true);
    CHECK(count(g, "multiply") == 2);
  }
}

TEST_CASE("BatchNorm with computed parameters or computed weights") {
  net n;
  const auto x = n.input({1, 3, 4, 4}), w = n.input({2, 3, 1, 1}), scale = n.input({3});
  SUBCASE("a computed scale is left alone") {
    const auto y = n.add(batch_normalization{1e-5F}, {x, scale, n.weights({3}), n.weights({3}), n.constant_of({3}, {1, 2, 3})});
    run(rewrite::fold_batch_norm, n.done({y}), false);
  }
  SUBCASE("computed weights: a product and a sum remain") {
    const auto y = n.add(convolution{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, {x, w});
    CHECK(run(rewrite::fold_batch_norm, n.done({n.batch_norm(y)}), true).node_count() == 3);
  }
}

TEST_CASE("constants move right, differences become sums, quotients products") {
  net n;
  const auto x = n.input({2, 3});
  const auto c = n.constant_of({3}, {2, -4, 0.5F});
  const auto g = n.done({n.add(binary{binary_kind::add}, {c, x}), n.add(binary{binary_kind::subtract}, {x, c}), n.add(binary{binary_kind::divide}, {x, c}),
                         n.add(binary{binary_kind::subtract}, {c, x}), n.add(binary{binary_kind::divide}, {c, x})});
  const auto result = run(rewrite::normalize_arithmetic, g, true);
  CHECK(count(result, "add") == 2);
  CHECK(count(result, "multiply") == 1);
  CHECK(count(result, "subtract") == 1);  // constant − computed
  CHECK(count(result, "divide") == 1);    // constant / computed
  CHECK(result.at(result.at(0).inputs[1]).is_constant());
  run(rewrite::normalize_arithmetic, result, false);
}

TEST_CASE("a reciprocal that overflows or underflows is not taken") {
  for (const float divisor : {1e-40F, 3e38F}) {
    net n;
    const auto x = n.input({2});
    run(rewrite::normalize_arithmetic, n.done({n.add(binary{binary_kind::divide}, {x, n.constant_of({}, {divisor})})}), false);
  }
}

TEST_CASE("scales and shifts by channel go into convolutions and Gemms") {
  net n;
  const auto x = n.input({1, 3, 5, 5});
  auto t = n.conv(x, 4, false);
  t = n.add(binary{binary_kind::multiply}, {t, n.weights({4, 1, 1})});
  t = n.add(binary{binary_kind::add}, {t, n.weights({1, 4, 1, 1})});
  t = n.add(binary{binary_kind::multiply}, {t, n.constant_of({}, {0.5F})});
  const auto image = run(rewrite::fold_scale_and_shift, n.done({t}), true);
  CHECK(image.node_count() == 1);

  net m;
  const auto y = m.input({2, 6});
  auto u = m.add(gemm{}, {y, m.weights({6, 3})});
  u = m.add(binary{binary_kind::add}, {u, m.weights({3})});
  u = m.add(binary{binary_kind::multiply}, {u, m.weights({1, 3})});
  CHECK(run(rewrite::fold_scale_and_shift, m.done({u}), true).node_count() == 1);
}

TEST_CASE("what is not by channel, or enlarges the result, stays") {
  net n;
  const auto x = n.input({1, 3, 5, 5});
  const auto c = n.conv(x, 4, false);
  SUBCASE("by column") { run(rewrite::fold_scale_and_shift, n.done({n.add(binary{binary_kind::multiply}, {c, n.weights({5})})}), false); }
  SUBCASE("enlarging") { run(rewrite::fold_scale_and_shift, n.done({n.add(binary{binary_kind::add}, {c, n.weights({2, 4, 1, 1})})}), false); }
  SUBCASE("computed") { run(rewrite::fold_scale_and_shift, n.done({n.add(binary{binary_kind::multiply}, {c, n.input({4, 1, 1})})}), false); }
  SUBCASE("read by another") {
    const auto y = n.add(binary{binary_kind::multiply}, {c, n.weights({4, 1, 1})});
    run(rewrite::fold_scale_and_shift, n.done({y, n.add(unary{unary_kind::relu, 0, 0}, {c})}), false);
  }
  SUBCASE("along the rows of a Gemm") {
    const auto y = n.add(gemm{}, {n.input({3, 3}), n.weights({3, 3})});
    run(rewrite::fold_scale_and_shift, n.done({n.add(binary{binary_kind::add}, {y, n.weights({3, 1})})}), false);
  }
}

TEST_CASE("chains of products, and of sums, with constants become one") {
  net n;
  const auto x = n.input({2, 3, 4});
  auto t = n.add(binary{binary_kind::multiply}, {x, n.weights({3, 1})});
  t = n.add(binary{binary_kind::multiply}, {t, n.constant_of({}, {3})});
  auto u = n.add(binary{binary_kind::add}, {x, n.weights({4})});
  u = n.add(binary{binary_kind::add}, {u, n.weights({4})});
  auto v = n.add(binary{binary_kind::multiply}, {x, n.weights({2, 1, 1})});
  v = n.add(binary{binary_kind::multiply}, {v, n.weights({3, 4})});  // together 2x3x4: two small tables stay
  const auto g = run(rewrite::fold_scale_and_shift, n.done({t, u, v}), true);
  CHECK(count(g, "multiply") == 3);
  CHECK(count(g, "add") == 1);
}

TEST_CASE("normal form of Gemm") {
  // Every combination of constant and computed operands, transposes, factors and kinds of C computes the same.
  for (int code = 0; code < 4 * 4 * 2 * 2 * 6; ++code) {
    int rest = code;
    const auto take = [&rest](int n) { const int digit = rest % n; rest /= n; return digit; };
    const int constants = take(4), transposes = take(4), alpha = take(2), beta = take(2), c_kind = take(6);
    if (constants == 3) continue;  // both constant: folded, not normalized
    CAPTURE(code);
    net n;
    const shape a_sizes = (transposes & 1) != 0 ? shape{3, 2} : shape{2, 3}, b_sizes = (transposes & 2) != 0 ? shape{4, 3} : shape{3, 4};
    const auto a = (constants & 1) != 0 ? n.weights(a_sizes) : n.input(a_sizes);
    const auto b = (constants & 2) != 0 ? n.weights(b_sizes) : n.input(b_sizes);
    std::vector<tensor_id> inputs{a, b};
    const shape c_shapes[] = {{}, {4}, {1, 4}, {2, 1}, {2, 4}};
    if (c_kind > 0) inputs.push_back(code % 2 == 0 ? n.weights(c_shapes[c_kind - 1]) : n.input(c_shapes[c_kind - 1]));
    const auto g = n.done({n.add(gemm{alpha != 0 ? 0.5F : 1.0F, beta != 0 ? 2.0F : 1.0F, (transposes & 1) != 0, (transposes & 2) != 0}, inputs)});
    graph_edit e(g);
    static_cast<void>(rewrite::normalize_gemm(e));
    const auto result = e.build();
    check_graph(result);
    CHECK(difference(g, result) <= 1e-6);
    CHECK_FALSE(rewrite::normalize_gemm(e));
    REQUIRE(count(result, "gemm") == 1);
    const auto& op = first<gemm>(result);
    CHECK((op.alpha == 1 && op.beta == 1 && !op.transpose_a && !op.transpose_b));
    for (vertex v = 0; v < result.node_count(); ++v) {
      if (!std::holds_alternative<gemm>(result.at(v).op)) continue;
      const auto& operands = result.at(v).inputs;
      if (constants != 0) CHECK(result.at(operands[1]).is_constant());
      if (operands.size() == 3) CHECK((result.at(operands[2]).is_constant() && result.at(operands[2]).sizes == shape{result.at(result.at(v).outputs[0]).sizes[1]}));
    }
  }
}

TEST_CASE("MatMul becomes Gemm where the right side is a matrix") {
  struct row { shape a, b; const char* left; };
  const row rows[] = {{{2, 3}, {3, 4}, "gemm"}, {{5, 2, 3}, {3, 4}, "gemm"}, {{3}, {3, 4}, "gemm"}, {{2, 3}, {3}, "gemm"}, {{3}, {3}, "gemm"}, {{5, 2, 3}, {5, 3, 4}, "matmul"}};
  for (const auto& r : rows)
    for (const bool constant : {false, true}) {
      net n;
      const auto a = n.input(r.a);
      const auto b = constant ? n.weights(r.b) : n.input(r.b);
      const auto g = run(rewrite::matmul_to_gemm, n.done({n.add(matmul{}, {a, b})}), std::string(r.left) == "gemm");
      CHECK(count(g, r.left) == 1);
    }
}
