#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"

namespace raptor::sim {

/// True where every value is finite. Branch-free, so that the compiler vectorizes it: the check runs on every mvmul.
[[nodiscard]] inline bool all_finite(const float* values, std::size_t count) noexcept {
  std::uint32_t infinite = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, values + i, sizeof bits);
    infinite |= static_cast<std::uint32_t>((bits & 0x7f800000u) == 0x7f800000u);
  }
  return infinite == 0;
}

/// The weights of one array group, rows × columns, prepared for out[j] = Σ_i in[i] · M[i][j].
///
/// Guarantees: every output is accumulated in f32 in the order of the rows, starting from +0, whatever is trimmed.
/// Columns are stored in panels of 32, 16, 8 or 4 and a panel keeps only the rows from its first to its last non-zero
/// one: a group that is mostly padding, or block diagonal as depthwise packing makes it, costs what its weights cost.
/// For finite inputs, leaving a zero row out cannot change a bit, because a sum that started at +0 never becomes -0.
///
/// Immutable after construction, so that replicas on many cores share one.
class crossbar_matrix {
 public:
  /// `values`: row major, rows × columns. Errors: mismatch where the sizes disagree. Cost: O(rows × columns).
  crossbar_matrix(std::size_t rows, std::size_t columns, std::span<const float> values) : rows_(rows), columns_(columns) {
    if (checked::multiply(rows, columns) != values.size())
      throw error(error_code::mismatch, "a crossbar matrix of " + std::to_string(rows) + " x " + std::to_string(columns) +
                                            " was given " + std::to_string(values.size()) + " weights");
    std::vector<std::size_t> first(columns, rows);
    std::vector<std::size_t> last(columns, 0);
    for (std::size_t i = 0; i < rows; ++i) {
      const float* row = values.data() + i * columns;
      bool is_weighted = false;
      for (std::size_t j = 0; j < columns; ++j) {
        if (row[j] == 0.0f) continue;  // NaN and infinity are weights too
        first[j] = std::min(first[j], i);
        last[j] = i + 1;
        is_weighted = true;
      }
      if (!is_weighted) continue;
      if (weighted_rows_.empty() || weighted_rows_.back().second != i) weighted_rows_.emplace_back(i, i);
      weighted_rows_.back().second = i + 1;
    }
    for (std::size_t j = 0; j < columns; ++j)
      if (last[j] != 0) used_columns_ = j + 1;
    for (std::size_t j = 0; j < used_columns_;) {
      const std::size_t left = used_columns_ - j;
      const std::size_t width = left > 16 ? 32 : left > 8 ? 16 : left > 4 ? 8 : 4;
      panel p{j, width, rows, 0, work_};
      for (std::size_t c = j; c < std::min(j + width, used_columns_); ++c) {
        p.first_row = std::min(p.first_row, first[c]);
        p.last_row = std::max(p.last_row, last[c]);
      }
      if (p.first_row < p.last_row) work_ += (p.last_row - p.first_row) * width;
      used_rows_ = std::max(used_rows_, p.last_row);
      panels_.push_back(p);
      j += width;
    }
    data_.resize(work_);
    for (const panel& p : panels_) {
      const std::size_t valid = std::min(p.width, columns - p.first_column);
      for (std::size_t i = p.first_row; i < p.last_row; ++i)
        std::copy_n(values.data() + i * columns + p.first_column, valid, data_.data() + p.offset + (i - p.first_row) * p.width);
    }
  }

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  /// Rows up to the last one that holds a weight other than zero; inputs of the rows behind must be finite (ISA).
  [[nodiscard]] std::size_t used_rows() const noexcept { return used_rows_; }
  [[nodiscard]] std::size_t used_columns() const noexcept { return used_columns_; }
  /// The rows that hold any weight other than zero, as ranges [first, second), ascending.
  [[nodiscard]] const std::vector<std::pair<std::size_t, std::size_t>>& weighted_rows() const noexcept { return weighted_rows_; }
  /// Multiply-accumulates that one product really performs.
  [[nodiscard]] std::size_t work() const noexcept { return work_; }

  /// out[0 … columns) = in[0 … rows) · M. `in` and `out` must not overlap. All inputs finite: O(work()).
  /// With a non-finite input the result is what the full product gives, where 0 · ∞ is NaN.
  void multiply(const float* in, float* out, bool inputs_are_finite) const noexcept {
    for (const panel& p : panels_) {
      float* target = out + p.first_column;
      const std::size_t valid = std::min(p.width, columns_ - p.first_column);
      if (valid == p.width) {
        product(p, in, target);
      } else {
        float padded[32];
        product(p, in, padded);
        std::memcpy(target, padded, valid * sizeof(float));
      }
    }
    std::fill(out + std::min(covered_columns(), columns_), out + columns_, 0.0f);
    if (!inputs_are_finite) spread_not_a_number(in, out);
  }

 private:
  struct panel {
    std::size_t first_column, width, first_row, last_row, offset;
  };

  [[nodiscard]] std::size_t covered_columns() const noexcept {
    return panels_.empty() ? 0 : panels_.back().first_column + panels_.back().width;
  }

  void product(const panel& p, const float* in, float* out) const noexcept {
    switch (p.width) {
      case 32: return product_of<8>(p, in, out);
      case 16: return product_of<4>(p, in, out);
      case 8: return product_of<2>(p, in, out);
      default: return product_of<1>(p, in, out);
    }
  }

  /// One panel of 4 × Packets columns; the accumulators stay in vector registers.
  template <std::size_t Packets>
  void product_of(const panel& p, const float* in, float* out) const noexcept {
    using packet = Eigen::Array<float, 4, 1>;
    packet sums[Packets];
    for (auto& sum : sums) sum.setZero();
    const float* weights = data_.data() + p.offset;
    for (std::size_t i = p.first_row; i < p.last_row; ++i, weights += 4 * Packets) {
      const float x = in[i];
      for (std::size_t k = 0; k < Packets; ++k) sums[k] += x * Eigen::Map<const packet, Eigen::Aligned16>(weights + 4 * k);
    }
    for (std::size_t k = 0; k < Packets; ++k) Eigen::Map<packet>(out + 4 * k) = sums[k];
  }

  /// A non-finite input meets a zero weight in every row that a panel left out: NaN.
  void spread_not_a_number(const float* in, float* out) const noexcept {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    std::fill(out + std::min(covered_columns(), columns_), out + columns_, nan);
    for (const panel& p : panels_)
      if (!all_finite(in, std::min(p.first_row, rows_)) ||
          !all_finite(in + std::max(p.first_row, p.last_row), rows_ - std::max(p.first_row, p.last_row)))
        std::fill(out + p.first_column, out + std::min(p.first_column + p.width, columns_), nan);
  }

  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::size_t used_rows_ = 0;
  std::size_t used_columns_ = 0;
  std::size_t work_ = 0;
  std::vector<std::pair<std::size_t, std::size_t>> weighted_rows_;
  std::vector<panel> panels_;
  std::vector<float, Eigen::aligned_allocator<float>> data_;
};

}  // namespace raptor::sim
