#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/kernel.hpp"
#include "raptor/memory/plan.hpp"
#include "raptor/program/program.hpp"
#include "raptor/support/error.hpp"

/// Contents of array groups: weight matrices made real, and which of them are the same.
namespace raptor::emit {

/// A weight matrix as rows × columns f32, row major, zero where no block lies. Blocks must not overlap.
/// Errors: malformed for a block outside the matrix or its source, or a size beyond 2^31 bytes. Cost: O(rows × columns).
[[nodiscard]] inline std::vector<float> materialize(const lowering::weight_matrix& matrix, std::int64_t rows, std::int64_t columns) {
  if (matrix.rows < 0 || matrix.columns < 0 || matrix.rows > rows || matrix.columns > columns)
    throw error(error_code::malformed, "weights of " + std::to_string(matrix.rows) + " x " + std::to_string(matrix.columns) +
                                           " in an array group of " + std::to_string(rows) + " x " + std::to_string(columns));
  const std::int64_t size = checked::multiply(rows, columns);
  if (size > memory::address_space / 4) throw error(error_code::capacity, "an array group of " + std::to_string(size) + " weights");
  std::vector<float> values(static_cast<std::size_t>(size), 0.0f);
  for (const auto& b : matrix.blocks) {
    if (b.rows == 0 || b.columns == 0) continue;
    if (b.source >= matrix.sources.size() || !matrix.sources[b.source] || b.rows < 0 || b.columns < 0 || b.row < 0 || b.column < 0 ||
        checked::add(b.row, b.rows) > matrix.rows || checked::add(b.column, b.columns) > matrix.columns)
      throw error(error_code::malformed, "a weight block outside its matrix");
    const auto& source = matrix.sources[b.source]->floats();
    const std::int64_t down = checked::multiply(b.rows - 1, b.row_stride), across = checked::multiply(b.columns - 1, b.column_stride);
    const std::int64_t low = checked::add(b.offset, checked::add(std::min(down, std::int64_t{0}), std::min(across, std::int64_t{0})));
    const std::int64_t high = checked::add(b.offset, checked::add(std::max(down, std::int64_t{0}), std::max(across, std::int64_t{0})));
    if (low < 0 || high >= static_cast<std::int64_t>(source.size())) throw error(error_code::malformed, "a weight block outside its constant");
    for (std::int64_t i = 0; i < b.rows; ++i) {
      float* to = values.data() + (b.row + i) * columns + b.column;
      const float* from = source.data() + b.offset + i * b.row_stride;
      if (b.column_stride == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(b.columns) * sizeof(float));
      } else {
        for (std::int64_t j = 0; j < b.columns; ++j) to[j] = from[j * b.column_stride];
      }
    }
  }
  return values;
}

/// Size of the array group that holds a weight matrix.
struct group_size {
  std::int64_t rows = 0, columns = 0;
  friend auto operator<=>(const group_size&, const group_size&) = default;
};
[[nodiscard]] inline group_size padded_size(const lowering::weight_matrix& matrix, const program::geometry& chip) {
  return {chip.crossbar_rows, checked::multiply(program::crossbars(matrix, chip), chip.weight_columns)};
}

namespace weights_parts {

/// A 64-bit digest of bytes (multiply and mix, eight at a time). Equality is always decided by the bytes themselves.
[[nodiscard]] inline std::uint64_t digest(std::span<const float> values) {
  std::uint64_t h = 0x9e3779b97f4a7c15u ^ values.size();
  std::size_t k = 0;
  for (; k + 2 <= values.size(); k += 2) {
    std::uint64_t word = 0;
    std::memcpy(&word, values.data() + k, 8);
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  if (k < values.size()) {
    std::uint32_t word = 0;
    std::memcpy(&word, values.data() + k, 4);
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  return h;
}
[[nodiscard]] inline bool same_bytes(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace weights_parts

/// Calls `visit(content, weight, size, values)` once for each distinct content among the weights that some core holds, `content`
/// counting from 0 in the order of program::weights; returns for each weight its content (program::none: no core holds it).
///
/// `size_of(matrix)`: to what size it is padded. Two contents are the same where size and all bytes are. Memory: two contents at a time.
template <class Size, class Visit>
std::vector<std::uint32_t> for_each_content(const program::program& p, const Size& size_of, const Visit& visit) {
  std::vector<bool> held(p.weights.size(), false);
  for (const auto& core : p.cores)
    for (const auto group : core.groups) {
      if (group >= p.weights.size()) throw error(error_code::malformed, "an array group without weights");
      held[group] = true;
    }
  std::vector<std::uint32_t> result(p.weights.size(), program::none);
  std::map<std::pair<group_size, std::uint64_t>, std::vector<std::size_t>> seen;  // digest → representatives
  std::uint32_t contents = 0;
  for (std::size_t w = 0; w < p.weights.size(); ++w) {
    if (!held[w]) continue;
    const group_size size = size_of(p.weights[w]);
    const auto values = materialize(p.weights[w], size.rows, size.columns);
    auto& candidates = seen[{size, weights_parts::digest(values)}];
    for (const std::size_t other : candidates)
      if (weights_parts::same_bytes(values, materialize(p.weights[other], size.rows, size.columns))) {
        result[w] = result[other];
        break;
      }
    if (result[w] != program::none) continue;
    candidates.push_back(w);
    result[w] = contents;
    visit(contents++, w, size, values);
  }
  return result;
}

}  // namespace raptor::emit
