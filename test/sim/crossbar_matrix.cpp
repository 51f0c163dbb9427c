#include "raptor/sim/crossbar_matrix.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

using raptor::sim::all_finite;
using raptor::sim::crossbar_matrix;

namespace {

/// The definition, in the order of the rows, without any trimming.
std::vector<float> plain_product(std::size_t rows, std::size_t columns, const std::vector<float>& m, const std::vector<float>& in) {
  std::vector<float> out(columns, 0.0f);
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t i = 0; i < rows; ++i) out[j] += in[i] * m[i * columns + j];
  return out;
}

std::vector<float> product(const crossbar_matrix& m, const std::vector<float>& in) {
  std::vector<float> out(m.columns(), 123.0f);
  m.multiply(in.data(), out.data(), all_finite(in.data(), in.size()));
  return out;
}

}  // namespace

TEST_CASE("products equal the definition bit for bit, whatever is trimmed") {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> value(-1.0f, 1.0f);
  for (const std::size_t rows : {1u, 3u, 32u, 129u, 300u})
    for (const std::size_t columns : {1u, 4u, 5u, 31u, 33u, 64u, 100u})
      for (const std::size_t used_rows : {std::size_t{0}, rows / 2, rows})
        for (const std::size_t used_columns : {columns / 3, columns}) {
          std::vector<float> m(rows * columns), in(rows);
          for (std::size_t i = 0; i < used_rows; ++i)
            for (std::size_t j = 0; j < used_columns; ++j)
              if ((i + j) % 7 != 0) m[i * columns + j] = value(random);
          for (auto& x : in) x = value(random);
          const crossbar_matrix matrix(rows, columns, m);
          CHECK(product(matrix, in) == plain_product(rows, columns, m, in));
          CHECK(matrix.used_rows() <= used_rows);
          CHECK(matrix.used_columns() <= used_columns);
        }
}

TEST_CASE("a block-diagonal matrix costs its blocks") {
  constexpr std::size_t blocks = 4, rows = 9, columns = 32;
  std::vector<float> m(blocks * rows * blocks * columns);
  for (std::size_t b = 0; b < blocks; ++b)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) m[(b * rows + i) * blocks * columns + b * columns + j] = 1.0f;
  const crossbar_matrix matrix(blocks * rows, blocks * columns, m);
  CHECK(matrix.work() == blocks * rows * columns);
}

TEST_CASE("inputs that are not finite give what the full product gives") {
  constexpr std::size_t rows = 6, columns = 40;
  std::vector<float> m(rows * columns);
  for (std::size_t i = 1; i < 4; ++i)
    for (std::size_t j = 0; j < 33; ++j) m[i * columns + j] = static_cast<float>(i) + static_cast<float>(j);
  const crossbar_matrix matrix(rows, columns, m);
  for (std::size_t bad = 0; bad < rows; ++bad)
    for (const float poison : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> in(rows, 1.0f);
      in[bad] = poison;
      const auto expected = plain_product(rows, columns, m, in);
      const auto got = product(matrix, in);
      for (std::size_t j = 0; j < columns; ++j) {
        CHECK(std::isnan(expected[j]) == std::isnan(got[j]));
        if (!std::isnan(expected[j])) CHECK(expected[j] == got[j]);
      }
    }
}

TEST_CASE("sizes that disagree are refused") {
  CHECK_THROWS_AS(crossbar_matrix(2, 3, std::vector<float>(5)), raptor::error);
}

TEST_CASE("all_finite") {
  std::vector<float> values(37, 1.0f);
  CHECK(all_finite(values.data(), values.size()));
  values[36] = std::numeric_limits<float>::infinity();
  CHECK_FALSE(all_finite(values.data(), values.size()));
  CHECK(all_finite(values.data(), 36));
  values[0] = -std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(all_finite(values.data(), 1));
  CHECK(all_finite(values.data(), 0));
}
