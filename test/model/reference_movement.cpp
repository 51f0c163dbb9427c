#include "raptor/model/reference.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <numeric>

using namespace raptor;
using namespace raptor::model;

namespace {

using floats = std::vector<float>;
using integers = std::vector<std::int64_t>;

tensor_value counting(shape sizes) {
  floats elements(static_cast<std::size_t>(element_count(sizes)));
  std::iota(elements.begin(), elements.end(), 0.0F);
  return make_value(std::move(sizes), std::move(elements));
}
tensor_value run(const operation& op, const std::vector<tensor_value>& inputs, const shape& out) {
  return evaluate_node(op, inputs, std::vector<shape>{out}).at(0);
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

TEST_CASE("reshape shares the elements") {
  const auto x = counting({2, 3});
  const auto y = run(reshape{}, {x}, {3, 2});
  CHECK(y.sizes == shape{3, 2});
  CHECK(y.data == x.data);
  CHECK(code_of(reshape{}, {x}, {4, 2}) == error_code::mismatch);
  CHECK(run(reshape{}, {counting({1})}, {}).sizes.empty());
}

TEST_CASE("transpose") {
  CHECK(run(transpose{{1, 0}}, {counting({2, 3})}, {3, 2}).floats() == floats{0, 3, 1, 4, 2, 5});
  CHECK(run(transpose{{2, 0, 1}}, {counting({1, 2, 3})}, {3, 1, 2}).floats() == floats{0, 3, 1, 4, 2, 5});
  CHECK(run(transpose{{}}, {counting({})}, {}).floats() == floats{0});
  CHECK(run(transpose{{1, 0}}, {make_value(shape{2, 2}, integers{1, 2, 3, 4})}, {2, 2}).integers() == integers{1, 3, 2, 4});
  CHECK(code_of(transpose{{0, 0}}, {counting({2, 2})}, {2, 2}) == error_code::mismatch);
  CHECK(code_of(transpose{{0, 2}}, {counting({2, 2})}, {2, 2}) == error_code::mismatch);
  CHECK(code_of(transpose{{0}}, {counting({2, 2})}, {2, 2}) == error_code::mismatch);
  CHECK(code_of(transpose{{1, 0}}, {counting({2, 3})}, {2, 3}) == error_code::mismatch);
}

TEST_CASE("channel shuffle is reshape, transpose, reshape") {
  const auto x = counting({2, 6, 1, 2});
  const auto split = run(reshape{}, {x}, {2, 2, 3, 1, 2});
  const auto swapped = run(transpose{{0, 2, 1, 3, 4}}, {split}, {2, 3, 2, 1, 2});
  CHECK(run(channel_shuffle{2}, {x}, {2, 6, 1, 2}).floats() == swapped.floats());
  CHECK(run(channel_shuffle{3}, {counting({1, 6, 1, 1})}, {1, 6, 1, 1}).floats() == floats{0, 2, 4, 1, 3, 5});
  CHECK(code_of(channel_shuffle{4}, {x}, {2, 6, 1, 2}) == error_code::mismatch);
}

TEST_CASE("slice: steps forwards and backwards") {
  const auto x = counting({3, 4});
  CHECK(run(slice{{1, 0}, {1, 2}}, {x}, {2, 2}).floats() == floats{4, 6, 8, 10});
  CHECK(run(slice{{2, 3}, {-2, -1}}, {x}, {2, 4}).floats() == floats{11, 10, 9, 8, 3, 2, 1, 0});
  CHECK(run(slice{{0, 9}, {1, 1}}, {x}, {3, 0}).floats().empty());
  CHECK(code_of(slice{{0, 0}, {1, 1}}, {x}, {4, 4}) == error_code::mismatch);
  CHECK(code_of(slice{{0, 0}, {1, -1}}, {x}, {3, 2}) == error_code::mismatch);
  CHECK(code_of(slice{{0, 0}, {1, std::numeric_limits<std::int64_t>::max()}}, {x}, {3, 4}) == error_code::capacity);
}

TEST_CASE("pad: modes, cropping, repeated reflection") {
  const auto x = counting({1, 3});
  CHECK(run(pad{{1, 2}, {0, 1}, pad_mode::constant, 7}, {x}, {2, 6}).floats() == floats{7, 7, 7, 7, 7, 7, 7, 7, 0, 1, 2, 7});
  CHECK(run(pad{{0, -1}, {0, 1}, pad_mode::constant, 7}, {x}, {1, 3}).floats() == floats{1, 2, 7});
  CHECK(run(pad{{0, 2}, {0, 2}, pad_mode::reflect, 0}, {x}, {1, 7}).floats() == floats{2, 1, 0, 1, 2, 1, 0});
  CHECK(run(pad{{0, 5}, {0, 0}, pad_mode::reflect, 0}, {x}, {1, 8}).floats() == floats{1, 0, 1, 2, 1, 0, 1, 2});
  CHECK(run(pad{{0, 2}, {1, 1}, pad_mode::edge, 0}, {x}, {2, 6}).floats() == floats{0, 0, 0, 1, 2, 2, 0, 0, 0, 1, 2, 2});
  CHECK(run(pad{{0}, {2}, pad_mode::constant, 3}, {make_value(shape{1}, integers{9})}, {3}).integers() == integers{9, 3, 3});
  CHECK(run(pad{{2}, {0}, pad_mode::constant, 1}, {counting({0})}, {2}).floats() == floats{1, 1});
  CHECK(code_of(pad{{2}, {0}, pad_mode::edge, 1}, {counting({0})}, {2}) == error_code::mismatch);
  CHECK(code_of(pad{{0, -4}, {0, 0}, pad_mode::constant, 7}, {x}, {1, 0}) == error_code::mismatch);
  CHECK(code_of(pad{{0, 1}, {0, 0}, pad_mode::constant, 7}, {x}, {1, 3}) == error_code::mismatch);
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(code_of(pad{{0, -most}, {0, most}, pad_mode::constant, 7}, {x}, {1, 3}) == error_code::mismatch);
  CHECK(code_of(pad{{0, std::int64_t{1} << 40}, {0, 0}, pad_mode::constant, 7}, {x}, {1, (std::int64_t{1} << 40) + 3}) == error_code::capacity);
}

TEST_CASE("concat: any axis, uneven parts, integers") {
  const auto a = counting({2, 1});
  const auto b = counting({2, 2});
  CHECK(run(concat{1}, {a, b}, {2, 3}).floats() == floats{0, 0, 1, 1, 2, 3});
  CHECK(run(concat{0}, {b, b}, {4, 2}).floats() == floats{0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(run(concat{1}, {b, counting({2, 0})}, {2, 2}).floats() == b.floats());
  CHECK(run(concat{0}, {make_value(shape{1}, integers{4}), make_value(shape{2}, integers{5, 6})}, {3}).integers() == integers{4, 5, 6});
  CHECK(code_of(concat{2}, {a, b}, {2, 3}) == error_code::mismatch);
  CHECK(code_of(concat{0}, {a, b}, {4, 2}) == error_code::mismatch);
  CHECK(code_of(concat{1}, {a, b}, {2, 4}) == error_code::mismatch);
  CHECK(code_of(concat{0}, {make_value(shape{1}, integers{4}), counting({1})}, {2}) == error_code::mismatch);
}

TEST_CASE("a value has as many elements as its shape says") {
  CHECK_THROWS_AS(static_cast<void>(make_value(shape{2}, floats{1})), error);
  CHECK_THROWS_AS(static_cast<void>(make_value(shape{-1}, floats{})), error);
  const tensor_value lie{{3}, make_value(shape{1}, floats{1}).data};
  CHECK(code_of(reshape{}, {lie}, {3}) == error_code::mismatch);
}
