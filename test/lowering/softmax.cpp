#include "raptor/lowering/softmax.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "one_node.hpp"

using namespace raptor;
using namespace raptor::test;

TEST_CASE("softmax over every range of axes") {
  for (const shape& sizes : {shape{}, shape{7}, shape{3, 5}, shape{2, 3, 4}, shape{2, 3, 4, 5}, shape{1, 10, 1, 1}, shape{1, 30, 20, 4}, shape{3, 1, 2}, shape{2, 0, 3}})
    for (std::int64_t first = 0; first <= static_cast<std::int64_t>(sizes.size()); ++first)
      for (std::int64_t last = first; last <= static_cast<std::int64_t>(sizes.size()); ++last) {
        CAPTURE(to_string(sizes));
        CAPTURE(first);
        CAPTURE(last);
        CHECK(error_of(model::softmax{first, last}, {given(sizes)}, sizes, dense, 20) <= 2e-6);
      }
  CHECK(one_node(model::softmax{1, 2}, {given({1, 1000})}, {1, 1000}, dense).statements() == 1);
  CHECK_THROWS_AS(static_cast<void>(one_node(model::softmax{1, 3}, {given({2, 2})}, {2, 2}, dense)), error);
}

namespace {
lowering::lowering_options standard() {
  lowering::lowering_options options;
  options.softmax = lowering::softmax_lowering::standard;
  return options;
}
/// Whether a body, or a loop in it, has a statement of an opcode.
bool has(const std::vector<lowering::item>& body, isa::opcode op) {
  for (const auto& i : body) {
    if (const auto* s = std::get_if<lowering::statement>(&i.what); s != nullptr && s->op == op) return true;
    if (const auto* l = std::get_if<lowering::loop>(&i.what); l != nullptr && has(l->body, op)) return true;
  }
  return false;
}
/// Softmax of one run by standard instructions.
std::vector<float> softmax_of(const std::vector<float>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  one_node node(model::softmax{0, 1}, {given({n})}, {n}, dense, 4, standard());
  interpreter machine(node.computes, {model::make_value({n}, x)});
  machine.run({1 << 20, false, 0});
  return machine.value(node.result);
}
}  // namespace

TEST_CASE("softmax by standard instructions, over every range of axes") {
  for (const shape& sizes : {shape{}, shape{1}, shape{7}, shape{3, 5}, shape{2, 3, 4}, shape{1, 10, 1, 1}, shape{1, 30, 20, 4}, shape{2, 1100}, shape{2, 0, 3}})
    for (std::int64_t first = 0; first <= static_cast<std::int64_t>(sizes.size()); ++first)
      for (std::int64_t last = first; last <= static_cast<std::int64_t>(sizes.size()); ++last) {
        CAPTURE(to_string(sizes));
        CAPTURE(first);
        CAPTURE(last);
        CHECK(error_of(model::softmax{first, last}, {given(sizes)}, sizes, dense, 20, standard()) <= 5e-6);
      }
  for (const shape& sizes : {shape{3, 9, 2}, shape{3, 9}, shape{3, 1}}) {
    CHECK_FALSE(has(one_node(model::softmax{1, 2}, {given(sizes)}, sizes, dense, 4, standard()).computes.at(0).body, isa::opcode::vsoftmax));
    CHECK(has(one_node(model::softmax{1, 2}, {given(sizes)}, sizes, dense).computes.at(0).body, isa::opcode::vsoftmax));
  }
}

TEST_CASE("softmax by standard instructions keeps its relative error for every element") {
  for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{8}, std::size_t{1000}, std::size_t{1024}, std::size_t{5000}})
    for (const float range : {0.0F, 1e-3F, 3.0F, 30.0F, 1e4F, 1e30F}) {
      CAPTURE(n);
      CAPTURE(range);
      const auto x = noise(static_cast<std::int64_t>(n), 9, range);
      const auto y = softmax_of(x);
      const double largest = double{*std::max_element(x.begin(), x.end())};
      double sum = 0;
      for (const auto v : x) sum += std::exp(double{v} - largest);
      double worst = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double expected = std::exp(double{x[i]} - largest) / sum;
        if (expected > 1e-30) worst = std::max(worst, std::abs(double{y[i]} / expected - 1));
        else CHECK(y[i] <= 2e-30F);
      }
      CHECK(worst < 5e-6);
    }
  // Masked elements.
  const float infinity = std::numeric_limits<float>::infinity();
  const auto masked = softmax_of({1, -infinity, 1, -infinity});
  CHECK(masked[0] == doctest::Approx(0.5));
  CHECK(masked[1] <= 1e-37F);
  CHECK(std::isnan(softmax_of({1, std::numeric_limits<float>::quiet_NaN(), 1})[0]));
}
