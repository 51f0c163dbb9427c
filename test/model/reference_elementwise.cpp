#include "raptor/model/reference.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace raptor;
using namespace raptor::model;

namespace {

using floats = std::vector<float>;
using integers = std::vector<std::int64_t>;
constexpr float infinity = std::numeric_limits<float>::infinity();

tensor_value run(const operation& op, const std::vector<tensor_value>& inputs, const shape& out) {
  return evaluate_node(op, inputs, std::vector<shape>{out}).at(0);
}
floats values(const operation& op, const std::vector<tensor_value>& inputs) { return run(op, inputs, inputs[0].sizes).floats(); }
tensor_value line(floats elements) {
  const auto length = static_cast<std::int64_t>(elements.size());
  return make_value(shape{length}, std::move(elements));
}
tensor_value whole(integers elements) {
  const auto length = static_cast<std::int64_t>(elements.size());
  return make_value(shape{length}, std::move(elements));
}
error_code code_of(const operation& op, const std::vector<tensor_value>& inputs, const shape& out) {
  try {
    static_cast<void>(run(op, inputs, out));
  } catch (const error& e) {
    return e.code();
  }
  FAIL("nothing was thrown");
  return error_code::internal;
}

}  // namespace

TEST_CASE("binary: every kind on floats") {
  const auto a = line({6, -2, 3});
  const auto b = line({2, 4, -3});
  CHECK(values(binary{binary_kind::add}, {a, b}) == floats{8, 2, 0});
  CHECK(values(binary{binary_kind::subtract}, {a, b}) == floats{4, -6, 6});
  CHECK(values(binary{binary_kind::multiply}, {a, b}) == floats{12, -8, -9});
  CHECK(values(binary{binary_kind::divide}, {a, b}) == floats{3, -0.5F, -1});
  CHECK(values(binary{binary_kind::maximum}, {a, b}) == floats{6, 4, 3});
  CHECK(values(binary{binary_kind::minimum}, {a, b}) == floats{2, -2, -3});
  CHECK(values(binary{binary_kind::power}, {a, line({2, 3, 0})}) == floats{36, -8, 1});
  CHECK(values(binary{binary_kind::prelu}, {a, b}) == floats{6, -8, 3});
  CHECK(values(binary{binary_kind::power}, {a, whole({2, 3, -1})})[2] == doctest::Approx(1.0 / 3));
  CHECK(values(binary{binary_kind::divide}, {line({1, -1}), line({0, 0})}) == floats{infinity, -infinity});
  // Sums are exact before the one rounding: 1 + 2^-25 is 1, three tenths is the nearest float to it.
  CHECK(values(binary{binary_kind::add}, {line({0.1F}), line({0.2F})}) == floats{0.1F + 0.2F});
}

TEST_CASE("binary: broadcasting of both operands") {
  const auto column = make_value(shape{2, 1}, floats{10, 20});
  const auto row = line({1, 2, 3});
  CHECK(run(binary{binary_kind::add}, {column, row}, {2, 3}).floats() == floats{11, 12, 13, 21, 22, 23});
  CHECK(run(binary{binary_kind::subtract}, {row, column}, {2, 3}).floats() == floats{-9, -8, -7, -19, -18, -17});
  const auto scalar = make_value(shape{}, floats{2});
  CHECK(run(binary{binary_kind::multiply}, {scalar, scalar}, {}).floats() == floats{4});
  CHECK(run(binary{binary_kind::multiply}, {scalar, row}, {3}).floats() == floats{2, 4, 6});
  CHECK(run(binary{binary_kind::add}, {make_value(shape{1, 2, 1, 1}, floats{1, 2}), make_value(shape{2, 1, 1, 2}, floats{10, 20, 30, 40})}, {2, 2, 1, 2}).floats() ==
        floats{11, 21, 12, 22, 31, 41, 32, 42});
  CHECK(run(binary{binary_kind::add}, {make_value(shape{0, 1}, floats{}), row}, {0, 3}).floats().empty());
  CHECK(code_of(binary{}, {row, line({1, 2})}, {3}) == error_code::mismatch);
  CHECK(code_of(binary{}, {row, row}, {1, 3}) == error_code::mismatch);
  CHECK(code_of(binary{binary_kind::prelu}, {line({1}), row}, {3}) == error_code::mismatch);
}

TEST_CASE("binary: integers wrap, and divide towards zero") {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  const auto apply = [](binary_kind kind, std::int64_t a, std::int64_t b) { return run(binary{kind}, {whole({a}), whole({b})}, {1}).integers()[0]; };
  CHECK(apply(binary_kind::add, most, 1) == least);
  CHECK(apply(binary_kind::subtract, least, 1) == most);
  CHECK(apply(binary_kind::multiply, -7, 6) == -42);
  CHECK(apply(binary_kind::divide, -7, 2) == -3);
  CHECK(apply(binary_kind::divide, least, -1) == least);
  CHECK(apply(binary_kind::maximum, -7, 2) == 2);
  CHECK(apply(binary_kind::minimum, -7, 2) == -7);
  CHECK(apply(binary_kind::power, -3, 3) == -27);
  CHECK(apply(binary_kind::power, 5, 0) == 1);
  CHECK(apply(binary_kind::prelu, -3, 2) == -6);
  CHECK(run(binary{binary_kind::power}, {whole({4, 3, -2}), line({0.5F, 1.5F, 2})}, {3}).integers() == integers{2, 5, 4});
  CHECK(code_of(binary{binary_kind::power}, {whole({0, most}), line({1, 2})}, {2}) == error_code::mismatch);
  CHECK(code_of(binary{binary_kind::power}, {whole({-1}), line({0.5F})}, {1}) == error_code::mismatch);  // NaN
  CHECK_THROWS_AS(apply(binary_kind::divide, 1, 0), error);
  CHECK_THROWS_AS(apply(binary_kind::power, 2, -1), error);
  CHECK(code_of(binary{}, {whole({1}), line({1})}, {1}) == error_code::mismatch);
  CHECK(code_of(binary{}, {line({1}), whole({1})}, {1}) == error_code::mismatch);
}

TEST_CASE("unary") {
  const auto x = line({-2, 0, 3});
  CHECK(values(unary{unary_kind::relu}, {x}) == floats{0, 0, 3});
  CHECK(values(unary{unary_kind::leaky_relu, 0.5F}, {x}) == floats{-1, 0, 3});
  CHECK(values(unary{unary_kind::clip, -1, 2}, {x}) == floats{-1, 0, 2});
  CHECK(values(unary{unary_kind::clip, -infinity, infinity}, {x}) == x.floats());
  CHECK(values(unary{unary_kind::clip, 5, 2}, {x}) == floats{2, 2, 2});
  CHECK(values(unary{unary_kind::identity}, {x}) == x.floats());
  CHECK(values(unary{unary_kind::sigmoid}, {x})[0] == doctest::Approx(0.11920292));
  CHECK(values(unary{unary_kind::sigmoid}, {line({-1000, 0, 1000})}) == floats{0, 0.5F, 1});
  CHECK(values(unary{unary_kind::tanh}, {x})[2] == doctest::Approx(0.99505475));
  CHECK(run(unary{unary_kind::relu}, {whole({-1, 2})}, {2}).integers() == integers{0, 2});
  CHECK(code_of(unary{unary_kind::tanh}, {whole({-1})}, {1}) == error_code::unsupported);
  CHECK(code_of(unary{unary_kind::relu}, {x}, {2}) == error_code::mismatch);
}

TEST_CASE("softmax: one axis, or several together") {
  const auto zeros = make_value(shape{2, 3, 4}, floats(24));
  CHECK(values(softmax{1, 3}, {zeros}) == floats(24, 1.0F / 12));
  CHECK(values(softmax{2, 3}, {zeros}) == floats(24, 0.25F));
  CHECK(values(softmax{0, 1}, {zeros}) == floats(24, 0.5F));
  const auto x = make_value(shape{2, 2}, floats{0, 1000, 1000, 1000});
  CHECK(values(softmax{1, 2}, {x}) == floats{0, 1, 0.5F, 0.5F});
  CHECK(values(softmax{0, 1}, {x}) == floats{0, 0.5F, 1, 0.5F});
  const auto y = values(softmax{0, 1}, {line({0, 1, 2})});
  CHECK(y[0] == doctest::Approx(0.09003057));
  CHECK(y[2] == doctest::Approx(0.66524096));
  CHECK(code_of(softmax{1, 3}, {x}, {2, 2}) == error_code::mismatch);
  CHECK(run(softmax{1, 2}, {make_value(shape{2, 0}, floats{})}, {2, 0}).floats().empty());
}

TEST_CASE("batch normalization") {
  const auto x = make_value(shape{1, 2, 1, 2}, floats{1, 3, 10, 20});
  const auto y = values(batch_normalization{0}, {x, line({2, 1}), line({0, 5}), line({1, 10}), line({4, 25})});
  CHECK(y == floats{0, 2, 5, 7});
  CHECK(values(batch_normalization{1}, {make_value(shape{1, 1}, floats{2}), line({1}), line({0}), line({0}), line({3})}) == floats{1});
  CHECK(code_of(batch_normalization{}, {x, line({2}), line({0, 5}), line({1, 10}), line({4, 25})}, x.sizes) == error_code::mismatch);
  CHECK(code_of(batch_normalization{}, {x, line({2, 1})}, x.sizes) == error_code::mismatch);
}

TEST_CASE("lrn: the window of channels is cut at both ends") {
  const auto x = make_value(shape{1, 4, 1, 1}, floats{1, 2, 3, 4});
  // alpha / size = 1, beta = 1: x / (1 + sum of squares)
  CHECK(values(lrn{3, 3, 1, 1}, {x}) == floats{1.0F / 6, 2.0F / 15, 3.0F / 30, 4.0F / 26});
  // An even size looks one further ahead than back.
  CHECK(values(lrn{2, 2, 1, 1}, {x}) == floats{1.0F / 6, 2.0F / 14, 3.0F / 26, 4.0F / 17});
  CHECK(values(lrn{std::numeric_limits<std::int64_t>::max(), 0, 1, 2}, {x}) == floats{0.5F, 1, 1.5F, 2});
  CHECK(code_of(lrn{0, 1, 1, 1}, {x}, x.sizes) == error_code::mismatch);
  CHECK(code_of(lrn{}, {line({1})}, {1}) == error_code::mismatch);
}
