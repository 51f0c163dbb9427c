#include "raptor/lowering/dynamic_matmul.hpp"

#include <doctest/doctest.h>

#include "one_node.hpp"
#include "raptor/lowering/contraction.hpp"

using namespace raptor;
using namespace raptor::test;

TEST_CASE("gemm of computed operands: transposes, scales, every shape of C") {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{3, 4, 5}, {1, 6, 2}, {5, 1, 3}, {2, 3, 1}, {1, 1, 1}, {2, 2, 0}, {0, 2, 3}}) {
        const shape a = ta ? shape{k, m} : shape{m, k}, b = tb ? shape{n, k} : shape{k, n};
        CAPTURE(to_string(a));
        CAPTURE(to_string(b));
        CHECK(error_of(model::gemm{1, 1, ta, tb}, {given(a), given(b)}, {m, n}, dense) <= 1e-6);
        CHECK(error_of(model::gemm{-0.5F, 2, ta, tb}, {given(a), fixed(b)}, {m, n}, dense) <= 1e-6);
        for (const shape& addend : {shape{}, shape{1}, shape{n}, shape{m, 1}, shape{1, n}, shape{m, n}}) {
          CHECK(error_of(model::gemm{0.5F, 1, ta, tb}, {given(a), given(b), given(addend)}, {m, n}, dense) <= 1e-6);
          CHECK(error_of(model::gemm{1, -2, ta, tb}, {given(a), given(b), given(addend)}, {m, n}, dense) <= 1e-6);
          CHECK(error_of(model::gemm{1, 3, ta, tb}, {given(a), given(b), fixed(addend)}, {m, n}, dense) <= 1e-6);
        }
        CHECK(error_of(model::gemm{1, 0, ta, tb}, {given(a), given(b), given({m, n})}, {m, n}, dense) <= 1e-6);
      }
  CHECK_THROWS_AS(static_cast<void>(one_node(model::gemm{}, {given({2, 3}), given({4, 2})}, {2, 2}, dense)), error);
}

TEST_CASE("a product over nothing has no weights to keep resident") {
  const one_node nothing(model::gemm{}, {given({3, 0}), fixed({0, 4})}, {3, 4}, dense);
  CHECK_FALSE(lowering::has_resident_weights(nothing.graph, 0));
  CHECK(nothing.worst() == 0);
  CHECK(lowering::has_resident_weights(one_node(model::gemm{}, {given({3, 1}), fixed({1, 4})}, {3, 4}, dense).graph, 0));
}

TEST_CASE("matmul of computed operands: vectors, matrices, broadcast batches") {
  struct product {
    shape a, b, y;
  };
  const product cases[] = {{{3, 4}, {4, 5}, {3, 5}},          {{4}, {4}, {}},
                           {{4}, {4, 5}, {5}},                {{3, 4}, {4}, {3}},
                           {{2, 3, 4}, {2, 4, 5}, {2, 3, 5}}, {{2, 3, 4}, {4, 5}, {2, 3, 5}},
                           {{3, 4}, {2, 4, 5}, {2, 3, 5}},    {{2, 1, 3, 4}, {3, 4, 5}, {2, 3, 3, 5}},
                           {{4}, {2, 4, 5}, {2, 5}},          {{2, 3, 4}, {4}, {2, 3}},
                           {{2, 3, 0}, {0, 4}, {2, 3, 4}},    {{0, 4}, {4, 2}, {0, 2}},
                           {{1, 4}, {4, 1}, {1, 1}},          {{1, 2, 4}, {3, 1, 4, 2}, {3, 1, 2, 2}}};
  for (const auto& p : cases) {
    CAPTURE(to_string(p.a));
    CAPTURE(to_string(p.b));
    CHECK(error_of(model::matmul{}, {given(p.a), given(p.b)}, p.y, dense) <= 1e-6);
  }
  CHECK_THROWS_AS(static_cast<void>(one_node(model::matmul{}, {given({2, 3}), given({4, 2})}, {2, 2}, dense)), error);
  CHECK_THROWS_AS(static_cast<void>(one_node(model::matmul{}, {given({}), given({4, 2})}, {2}, dense)), error);
}
