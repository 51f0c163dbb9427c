#include "raptor/lowering/normalization.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "one_node.hpp"

using namespace raptor;
using namespace raptor::test;

TEST_CASE("LRN in both layouts, windows of every size, any exponent") {
  for (const std::int64_t size : {1, 2, 3, 5, 50})
    for (const auto& [alpha, beta, bias] : {std::array<float, 3>{1e-4F, 0.75F, 1}, {2, 0.5F, 0.25F}, {0.5F, 1, 3}, {0, 0.75F, 2}, {1, -0.5F, 1}}) {
      CAPTURE(size);
      CAPTURE(beta);
      const model::lrn op{size, alpha, beta, bias};
      for (const shape& sizes : {shape{2, 7, 3, 4}, shape{1, 1, 2, 2}, shape{1, 40, 2, 30}}) {
        CHECK(error_of(op, {given(sizes)}, sizes, dense) <= 3e-6);
        CHECK(error_of(op, {given(sizes)}, sizes, rows) <= 3e-6);
      }
      for (const shape& sizes : {shape{3, 6}, shape{2, 5, 4}, shape{1, 4, 2, 3, 2}, shape{2, 0, 3, 3}}) CHECK(error_of(op, {given(sizes)}, sizes, dense) <= 3e-6);
    }
  CHECK_THROWS_AS(static_cast<void>(one_node(model::lrn{5, 1, 0.75F, 0}, {given({1, 3, 2, 2})}, {1, 3, 2, 2}, rows)), error);
  CHECK_THROWS_AS(static_cast<void>(one_node(model::lrn{5, -1, 0.75F, 1}, {given({1, 3, 2, 2})}, {1, 3, 2, 2}, rows)), error);
}

TEST_CASE("LRN of large and small elements") {
  for (const float range : {1e-3F, 300.0F, 10000.0F}) CHECK(error_of(model::lrn{5, 1e-4F, 0.75F, 1}, {given({1, 9, 2, 3})}, {1, 9, 2, 3}, rows, range) <= 3e-6);
  for (const float range : {1e-3F, 300.0F, 1000.0F}) CHECK(error_of(model::lrn{5, 1, 0.75F, 2}, {given({1, 9, 2, 3})}, {1, 9, 2, 3}, dense, range) <= 3e-6);
}

TEST_CASE("LRN of a row of pixels: no loop holds the work on all of them") {
  const one_node n(model::lrn{5, 1e-4F, 0.75F, 1}, {given({2, 16, 3, 8})}, {2, 16, 3, 8}, rows);
  int statements = 0;
  for (const auto& item : n.computes.at(n.computes.writers(n.result).at(0)).body) statements += std::holds_alternative<lowering::statement>(item.what) ? 1 : 0;
  CHECK(statements == 3 + 27);  // the sums of five taps, the power
}

TEST_CASE("batch normalization with constant parameters") {
  std::vector<float> variance = noise(6, 9);
  for (auto& x : variance) x = std::abs(x) + 0.01F;
  for (const shape& sizes : {shape{2, 6, 3, 4}, shape{3, 6}, shape{1, 6, 5}, shape{0, 6, 2}}) {
    const std::vector<operand_case> operands{given(sizes), fixed({6}, 2), fixed({6}, 3), fixed({6}, 4), fixed({6}, variance)};
    CHECK(error_of(model::batch_normalization{1e-3F}, operands, sizes, dense) <= 1e-6);
    if (sizes.size() == 4) CHECK(error_of(model::batch_normalization{1e-3F}, operands, sizes, rows) <= 1e-6);
  }
  CHECK_THROWS_AS(static_cast<void>(one_node(model::batch_normalization{}, {given({1, 2, 2}), given({2}), fixed({2}), fixed({2}), fixed({2})}, {1, 2, 2}, dense)), error);
}

TEST_CASE("equal constants of a lowering are one value") {
  one_node n(model::lrn{5, 1e-4F, 0.75F, 1}, {given({1, 4, 2, 2})}, {1, 4, 2, 2}, rows);
  lowering::context c(n.graph, n.plan, n.chip, n.options, [](isa::opcode, std::int64_t) { return 1; }, n.computes);
  const auto a = c.constant("a", {2}, {1, 0});
  CHECK(c.constant("b", {2}, {1, 0}) == a);
  CHECK(n.computes.values()[a].name == "a");
  CHECK(c.constant("c", {2, 1}, {1, 0}) != a);  // other sizes
  CHECK(c.constant("d", {2}, {1, -0.0F}) != a);  // other bits
  const auto nan = std::bit_cast<float>(0x7fc00001U);
  CHECK(c.constant("e", {1}, {nan}) == c.constant("f", {1}, {nan}));
}
