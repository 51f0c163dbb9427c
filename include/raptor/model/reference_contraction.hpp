#pragma once

#include <numeric>

#include "raptor/model/operators.hpp"
#include "raptor/model/reference_value.hpp"

/// Reference evaluation of matrix products.
namespace raptor::model::reference {

/// Adds op(A) · op(B) to `sum` [m, n]; A is [m, k], B is [k, n], either stored transposed. Row major.
inline void accumulate_product(std::vector<double>& sum, const float* a, const float* b, std::int64_t m, std::int64_t n, std::int64_t k,
                               bool transpose_a, bool transpose_b) {
  for (std::int64_t i = 0; i < m; ++i) {
    double* row = sum.data() + i * n;
    const auto element_a = [&](std::int64_t d) { return double{a[transpose_a ? d * m + i : i * k + d]}; };
    if (transpose_b) {
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t d = 0; d < k; ++d) row[j] += element_a(d) * double{b[j * k + d]};
    } else {
      for (std::int64_t d = 0; d < k; ++d) {
        const double factor = element_a(d);
        for (std::int64_t j = 0; j < n; ++j) row[j] += factor * double{b[d * n + j]};
      }
    }
  }
}

[[nodiscard]] inline tensor_value evaluate(const gemm& op, const call& c) {
  const auto& sizes_a = c.input(0).sizes;
  const auto& sizes_b = c.input(1).sizes;
  c.require(sizes_a.size() == 2 && sizes_b.size() == 2, "the operands are not matrices");
  const auto m = sizes_a[op.transpose_a ? 1 : 0];
  const auto k = sizes_a[op.transpose_a ? 0 : 1];
  const auto n = sizes_b[op.transpose_b ? 0 : 1];
  c.require(k == sizes_b[op.transpose_b ? 1 : 0], "operands of shapes " + to_string(sizes_a) + " and " + to_string(sizes_b) + " do not fit");
  c.expect_output({m, n});
  std::vector<double> sum(c.count(c.output()));
  if (!sum.empty()) accumulate_product(sum, c.floats(0).data(), c.floats(1).data(), m, n, k, op.transpose_a, op.transpose_b);
  std::vector<float> out(sum.size());
  for (std::size_t i = 0; i < out.size(); ++i) sum[i] *= double{op.alpha};
  if (c.has(2)) {
    static_cast<void>(c.floats(2));
    const auto addend = broadcast_to(c, c.input(2), c.output());
    for (std::size_t i = 0; i < out.size(); ++i) sum[i] += double{op.beta} * double{addend.floats()[i]};
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(sum[i]);
  return make_value(c.output(), std::move(out));
}

/// NumPy matmul: rank 1 is a row on the left, a column on the right, and its axis is dropped from the result; leading axes
/// broadcast.
[[nodiscard]] inline tensor_value evaluate(const matmul&, const call& c) {
  shape a = c.input(0).sizes;
  shape b = c.input(1).sizes;
  c.require(!a.empty() && !b.empty(), "a scalar operand");
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  const auto m = a[a.size() - 2];
  const auto k = a.back();
  const auto n = b.back();
  c.require(k == b[b.size() - 2], "operands of shapes " + to_string(c.input(0).sizes) + " and " + to_string(c.input(1).sizes) + " do not fit");
  const shape batch_a(a.begin(), a.end() - 2);
  const shape batch_b(b.begin(), b.end() - 2);
  const shape batch = broadcast_shape(c, batch_a, batch_b);
  shape sizes = batch;
  if (!row) sizes.push_back(m);
  if (!column) sizes.push_back(n);
  c.expect_output(sizes);
  const auto& floats_a = c.floats(0);
  const auto& floats_b = c.floats(1);

  std::vector<float> out(c.count(sizes));
  if (!out.empty() && k != 0) {
    // Which matrix of an operand stands at each place of the result: broadcasting of the matrices' numbers.
    const auto numbers = [&](const shape& own) {
      std::vector<std::int64_t> all(c.count(own));
      std::iota(all.begin(), all.end(), std::int64_t{0});
      return broadcast_to(c, make_value(own, std::move(all)), batch);
    };
    const auto which_a = numbers(batch_a);
    const auto which_b = numbers(batch_b);
    std::vector<double> sum(at(m * n));
    for (std::size_t p = 0; p < which_a.integers().size(); ++p) {
      std::fill(sum.begin(), sum.end(), 0.0);
      accumulate_product(sum, floats_a.data() + which_a.integers()[p] * m * k, floats_b.data() + which_b.integers()[p] * k * n, m, n, k, false, false);
      for (std::size_t i = 0; i < sum.size(); ++i) out[p * sum.size() + i] = static_cast<float>(sum[i]);
    }
  }
  return make_value(sizes, std::move(out));
}

}  // namespace raptor::model::reference
