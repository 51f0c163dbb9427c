#include "raptor/lowering/matrix_product.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace raptor;
using namespace raptor::lowering;

TEST_CASE("matrices are cut into parts that do not exceed a capacity, every element in one of them") {
  program::geometry chip;
  chip.crossbars_per_core = 16, chip.crossbar_rows = 8, chip.weight_columns = 4;
  const std::vector<logical_matrix> matrices{{20, 7, {}, {}}, {8, 4, {}, {}}, {64, 40, {}, {}}, {8, 100, {}, {}}, {3, 3, {}, {}}};
  for (const std::int64_t capacity : {16, 12, 6, 3, 1}) {
    CAPTURE(capacity);
    std::set<std::tuple<std::size_t, std::int64_t, std::int64_t>> crossbars;  // matrix, slice, first column
    std::size_t cut = 0;
    for (const auto& part : split_for_capacity(matrices, chip, capacity)) {
      std::int64_t used = 0;
      for (const auto& piece : part) {
        for (std::int64_t s = piece.slices.begin; s < piece.slices.end; ++s)
          for (std::int64_t column = piece.columns.begin; column < piece.columns.end; column += chip.weight_columns) {
            ++used;
            CHECK(crossbars.emplace(piece.matrix, s, column).second);
          }
        cut += part.size() == 1 && piece.matrix == 2;
      }
      CHECK(used <= capacity);
    }
    std::size_t all = 0;
    for (const auto& m : matrices) all += static_cast<std::size_t>(checked::divide_up(m.rows, chip.crossbar_rows) * checked::divide_up(m.columns, chip.weight_columns));
    CHECK(crossbars.size() == all);
    CHECK(cut >= static_cast<std::size_t>(80 / capacity));
  }
}
