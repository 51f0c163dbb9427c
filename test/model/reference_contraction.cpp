#include "raptor/model/reference.hpp"

#include <doctest/doctest.h>

using namespace raptor;
using namespace raptor::model;

namespace {

using floats = std::vector<float>;

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

TEST_CASE("gemm: transposes, factors, and every broadcast of the addend") {
  const auto a = make_value(shape{2, 3}, floats{1, 2, 3, 4, 5, 6});
  const auto a_t = make_value(shape{3, 2}, floats{1, 4, 2, 5, 3, 6});
  const auto b = make_value(shape{3, 2}, floats{1, 0, 0, 1, 1, 1});
  const auto b_t = make_value(shape{2, 3}, floats{1, 0, 1, 0, 1, 1});
  const floats product{4, 5, 10, 11};
  CHECK(run(gemm{}, {a, b}, {2, 2}).floats() == product);
  CHECK(run(gemm{1, 1, true, false}, {a_t, b}, {2, 2}).floats() == product);
  CHECK(run(gemm{1, 1, false, true}, {a, b_t}, {2, 2}).floats() == product);
  CHECK(run(gemm{1, 1, true, true}, {a_t, b_t}, {2, 2}).floats() == product);
  CHECK(run(gemm{0.5F, 2, true, true}, {a_t, b_t, make_value(shape{2}, floats{1, 2})}, {2, 2}).floats() == floats{4, 6.5F, 7, 9.5F});
  CHECK(run(gemm{}, {a, b, make_value(shape{}, floats{100})}, {2, 2}).floats() == floats{104, 105, 110, 111});
  CHECK(run(gemm{}, {a, b, make_value(shape{2, 1}, floats{100, 200})}, {2, 2}).floats() == floats{104, 105, 210, 211});
  CHECK(run(gemm{}, {a, b, make_value(shape{2, 2}, floats{1, 2, 3, 4})}, {2, 2}).floats() == floats{5, 7, 13, 15});
  // An empty sum is zero.
  CHECK(run(gemm{}, {make_value(shape{1, 0}, floats{}), make_value(shape{0, 2}, floats{})}, {1, 2}).floats() == floats{0, 0});
}

TEST_CASE("gemm: contradictions") {
  const auto a = make_value(shape{1, 2}, floats{1, 2});
  const auto b = make_value(shape{2, 1}, floats{1, 2});
  CHECK(code_of(gemm{}, {a, a}, {1, 2}) == error_code::mismatch);
  CHECK(code_of(gemm{}, {a, b}, {1, 2}) == error_code::mismatch);
  CHECK(code_of(gemm{}, {a, b, make_value(shape{2}, floats{1, 2})}, {1, 1}) == error_code::mismatch);
  CHECK(code_of(gemm{}, {a, b, make_value(shape{1}, std::vector<std::int64_t>{1})}, {1, 1}) == error_code::unsupported);
  CHECK(code_of(gemm{}, {a, make_value(shape{2}, floats{1, 2})}, {1, 1}) == error_code::mismatch);
  CHECK(code_of(gemm{}, {a}, {1, 1}) == error_code::mismatch);
}

TEST_CASE("matmul: vectors, matrices, broadcast batches") {
  const auto v = make_value(shape{2}, floats{1, 2});
  const auto m = make_value(shape{2, 2}, floats{1, 2, 3, 4});
  CHECK(run(matmul{}, {v, v}, {}).floats() == floats{5});
  CHECK(run(matmul{}, {v, m}, {2}).floats() == floats{7, 10});
  CHECK(run(matmul{}, {m, v}, {2}).floats() == floats{5, 11});
  CHECK(run(matmul{}, {m, m}, {2, 2}).floats() == floats{7, 10, 15, 22});
  // [2,1,1,2] x [3,2,1] is [2,3,1,1].
  const auto a = make_value(shape{2, 1, 1, 2}, floats{1, 0, 0, 1});
  const auto b = make_value(shape{3, 2, 1}, floats{1, 2, 3, 4, 5, 6});
  CHECK(run(matmul{}, {a, b}, {2, 3, 1, 1}).floats() == floats{1, 3, 5, 2, 4, 6});
  CHECK(run(matmul{}, {v, b}, {3, 1}).floats() == floats{5, 11, 17});
  CHECK(run(matmul{}, {make_value(shape{2, 0}, floats{}), make_value(shape{0, 1}, floats{})}, {2, 1}).floats() == floats{0, 0});
  CHECK(run(matmul{}, {make_value(shape{0, 2, 2}, floats{}), m}, {0, 2, 2}).floats().empty());
  CHECK(code_of(matmul{}, {v, make_value(shape{3}, floats{1, 2, 3})}, {}) == error_code::mismatch);
  CHECK(code_of(matmul{}, {make_value(shape{}, floats{1}), v}, {2}) == error_code::mismatch);
  CHECK(code_of(matmul{}, {m, m}, {1, 2, 2}) == error_code::mismatch);
}

TEST_CASE("sums are taken in double") {
  // 2^24 + 1 + 1 in f32 stays at 2^24; in double it is 2^24 + 2.
  const auto a = make_value(shape{1, 3}, floats{16777216, 1, 1});
  const auto b = make_value(shape{3, 1}, floats{1, 1, 1});
  CHECK(run(matmul{}, {a, b}, {1, 1}).floats() == floats{16777218});
  CHECK(run(gemm{}, {a, b}, {1, 1}).floats() == floats{16777218});
}
