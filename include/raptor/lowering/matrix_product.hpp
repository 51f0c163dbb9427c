#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/context.hpp"
#include "raptor/lowering/kernel_builder.hpp"
#include "raptor/program/program.hpp"

/// Vector × resident matrix on the crossbars, the part that convolutions and contractions share: a weight matrix is cut
/// into slices of crossbar rows; each slice is one array group; one mvmul a slice, partial results added.
namespace raptor::lowering {

/// Consecutive matrix inputs [first, first + length) that come from consecutive elements at `from`.
struct input_run {
  std::int64_t first = 0, length = 0;
  operand from;
  std::size_t dimension = 0;  ///< of the tensor, along which the run advances; not consulted for temporaries
  outside when_outside = outside::never;
};

/// A weight matrix of `rows` × `columns`, described by blocks of constants, without limits on its size.
struct logical_matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<model::constant_ptr> sources;
  std::vector<weight_block> blocks;
};

/// The rectangle [row, row + rows) × [column, column + columns) of a matrix, moved to the origin.
[[nodiscard]] inline weight_matrix cut(const logical_matrix& m, interval rows, interval columns) {
  weight_matrix result{rows.size(), columns.size(), m.sources, {}};
  for (const auto& b : m.blocks) {
    const auto r = intersect(rows, {b.row, b.row + b.rows}), c = intersect(columns, {b.column, b.column + b.columns});
    if (r.empty() || c.empty()) continue;
    result.blocks.push_back({b.source, r.begin - rows.begin, c.begin - columns.begin, r.size(), c.size(),
                             b.offset + (r.begin - b.row) * b.row_stride + (c.begin - b.column) * b.column_stride, b.row_stride,
                             b.column_stride});
  }
  return result;
}

/// Block-diagonal repetition: `copies` of a matrix, each with inputs and outputs of its own.
[[nodiscard]] inline logical_matrix block_diagonal(const logical_matrix& m, std::int64_t copies) {
  logical_matrix result{m.rows * copies, m.columns * copies, m.sources, {}};
  for (std::int64_t i = 0; i < copies; ++i)
    for (auto b : m.blocks) {
      b.row += i * m.rows, b.column += i * m.columns;
      result.blocks.push_back(b);
    }
  return result;
}

/// Puts a matrix of as many rows to the right of another one.
inline void append_columns(logical_matrix& m, const logical_matrix& right) {
  const auto sources = static_cast<std::uint32_t>(m.sources.size());
  m.sources.insert(m.sources.end(), right.sources.begin(), right.sources.end());
  for (auto b : right.blocks) {
    b.source += sources, b.column += m.columns;
    m.blocks.push_back(b);
  }
  m.columns += right.columns;
}

/// Appends a row that holds a bias (one value a column, repeated `copies` times): its input is the constant one.
inline void append_bias_row(logical_matrix& m, const model::constant_ptr& bias, std::int64_t offset, std::int64_t columns, std::int64_t copies) {
  m.sources.push_back(bias);
  for (std::int64_t i = 0; i < copies; ++i)
    m.blocks.push_back({static_cast<std::uint32_t>(m.sources.size() - 1), m.rows, i * columns, 1, columns, offset, 0, 1});
  m.rows += 1;
}

/// Rows [slices) (in crossbars' rows) and columns of one matrix that one core multiplies.
struct product_part {
  std::size_t matrix = 0;  ///< index of the matrix in the operator's list
  interval slices;         ///< in units of crossbar rows
  interval columns;        ///< matrix columns
};

/// Distributes matrices over parts of at most `capacity` crossbars: whole matrices share a part while they fit; one that
/// is larger is cut, first by columns where a single slice is too wide, then evenly by slices.
/// Guarantees: every element in exactly one part; parts that share columns of a matrix must be accumulated.
/// Errors: capacity, where one crossbar column set cannot fit (never, for at least one crossbar a core).
[[nodiscard]] inline std::vector<std::vector<product_part>> split_for_capacity(const std::vector<logical_matrix>& matrices,
                                                                               const program::geometry& chip, std::int64_t capacity) {
  std::vector<std::vector<product_part>> parts;
  std::int64_t used = capacity;  // of the open part; full: opens a new one
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    const std::int64_t slices = checked::divide_up(matrices[m].rows, chip.crossbar_rows);
    const std::int64_t wide = checked::divide_up(matrices[m].columns, chip.weight_columns);
    if (slices * wide <= capacity) {
      if (used + slices * wide > capacity) {
        parts.emplace_back();
        used = 0;
      }
      parts.back().push_back({m, {0, slices}, {0, matrices[m].columns}});
      used += slices * wide;
      continue;
    }
    const std::int64_t column_parts = checked::divide_up(wide, capacity);
    const std::int64_t width = checked::divide_up(wide, column_parts);
    for (std::int64_t first = 0; first < wide; first += width) {
      const interval columns{first * chip.weight_columns, std::min(matrices[m].columns, (first + width) * chip.weight_columns)};
      const std::int64_t crossbars = checked::divide_up(columns.size(), chip.weight_columns);
      const std::int64_t row_parts = checked::divide_up(slices, capacity / crossbars);
      for (std::int64_t r = 0; r < row_parts; ++r)
        parts.push_back({{m, {slices * r / row_parts, slices * (r + 1) / row_parts}, columns}});
    }
    used = capacity;
  }
  return parts;
}

/// Elements [first, first + length) of a product's result and where they go.
struct product_piece {
  operand to;
  std::int64_t first = 0, length = 0;
};

/// Emits one part of a product into a kernel: declares array groups and scratch once, then one product a call.
class product_emitter {
 public:
  /// `inputs`: how many of the matrix's rows come from runs; a further row, if any, is fed with the constant one.
  product_emitter(kernel_builder& kernel, const program::geometry& chip, const logical_matrix& matrix, std::int64_t inputs,
                  const product_part& part)
      : kernel_(kernel), rows_(chip.crossbar_rows), columns_(part.columns.size()),
        physical_columns_(checked::divide_up(columns_, chip.weight_columns) * chip.weight_columns),
        first_(part.slices.begin * rows_), slices_(part.slices.size()) {
    const std::int64_t last = std::min(matrix.rows, part.slices.end * rows_);
    inputs_ = std::min(inputs, last);
    one_ = last > inputs ? inputs : -1;
    for (std::int64_t s = part.slices.begin; s < part.slices.end; ++s)
      groups_.push_back(kernel_.group(cut(matrix, {s * rows_, std::min(matrix.rows, (s + 1) * rows_)}, part.columns)));
  }

  /// The matrix's inputs that this part needs: runs outside need not be given.
  [[nodiscard]] interval inputs() const { return {first_, inputs_}; }

  /// Appends one product whose first `wanted` elements (all where it is 0) go to `out`.
  void emit(const std::vector<input_run>& runs, const operand& out, const std::optional<operand>& bias, std::int64_t wanted = 0) {
    emit(runs, {{out, 0, wanted == 0 ? columns_ : wanted}}, bias);
  }
  /// Appends one product whose result goes out in consecutive pieces, from its first element on. `runs` are in order; matrix rows that none of them
  /// gives have weights only in columns beyond the pieces, and are fed with zeros or what an earlier product of the kernel left. Where `bias` is
  /// given (as many elements as the pieces) it is added. Instructions: those of the product, then one a piece.
  void emit(const std::vector<input_run>& runs, const std::vector<product_piece>& pieces, const std::optional<operand>& bias) {
    const std::int64_t wanted = pieces.back().first + pieces.back().length;
    std::vector<operand> sources(static_cast<std::size_t>(slices_));
    std::vector<outside> rules(sources.size(), outside::never);
    for (std::size_t s = 0; s < sources.size(); ++s) {
      const interval slice{first_ + static_cast<std::int64_t>(s) * rows_, first_ + static_cast<std::int64_t>(s + 1) * rows_};
      if (const auto* run = in_place(runs, slice)) {
        sources[s] = advance(*run, slice.begin - run->first);
        rules[s] = run->when_outside;
      } else {
        gather(runs, slice);
        sources[s] = kernel_.in(patch(), slice.begin - first_);
      }
    }
    for (std::size_t s = 0; s < sources.size(); ++s) {
      const bool last = s + 1 == sources.size();
      const bool direct = last && s == 0 && !bias && pieces.size() == 1 && physical_columns_ == wanted;
      kernel_.matrix(direct ? pieces[0].to : kernel_.in(s == 0 ? sum() : partial()), sources[s], groups_[s]).when_outside = rules[s];
      if (direct) return;
      if (s > 0 && (!last || bias)) kernel_.vector(isa::opcode::vvadd, kernel_.in(sum()), kernel_.in(sum()), kernel_.in(partial()), wanted);
      if (!last) continue;
      // The last addition, or a copy, brings the pieces to their places.
      std::optional<operand> added = bias;
      if (!added && s > 0) added = kernel_.in(partial());
      for (const auto& piece : pieces) {
        const auto from = kernel_.in(sum(), piece.first);
        if (added) kernel_.vector(isa::opcode::vvadd, piece.to, from, further(*added, 0, piece.first), piece.length);
        else kernel_.copy(piece.to, from, piece.length);
      }
    }
  }

  [[nodiscard]] std::int64_t columns() const noexcept { return columns_; }

 private:
  /// The run that holds a whole slice of crossbar rows, so that mvmul can read it where it lies.
  const input_run* in_place(const std::vector<input_run>& runs, interval slice) const {
    for (const auto& r : runs)
      if (interval{r.first, r.first + r.length}.contains(slice) && slice.end <= inputs_) return &r;
    return nullptr;
  }
  void gather(const std::vector<input_run>& runs, interval slice) {
    const auto needed = intersect(slice, {first_, inputs_});
    for (const auto& r : runs) {
      const auto part = intersect({r.first, r.first + r.length}, needed);
      if (part.empty()) continue;
      kernel_.copy(kernel_.in(patch(), part.begin - first_), advance(r, part.begin - r.first), part.size()).when_outside = r.when_outside;
    }
  }
  /// The operand `elements` further along a run.
  static operand advance(const input_run& run, std::int64_t elements) {
    return further(run.from, run.from.what == operand::kind::temporary ? 0 : run.dimension, elements);
  }
  static operand further(operand o, std::size_t dimension, std::int64_t elements) {
    o.at[dimension] += affine(elements);
    return o;
  }

  /// Scratch is declared when it is first needed. The patch begins as zeros, which stay behind the inputs, and a one for the bias row.
  std::uint32_t patch() {
    if (!patch_) {
      patch_ = kernel_.scratch("patch", slices_ * rows_, true);
      // Everything: a product may gather fewer inputs than another one that reads them where they lie.
      kernel_.prologue([&] {
        kernel_.fill(kernel_.in(*patch_), 0, slices_ * rows_);
        if (one_ >= 0) kernel_.fill(kernel_.in(*patch_, one_ - first_), 1, 1);
      });
    }
    return *patch_;
  }
  std::uint32_t sum() { return declare(sum_, "sum"); }
  std::uint32_t partial() { return declare(partial_, "partial"); }
  std::uint32_t declare(std::optional<std::uint32_t>& slot, const char* name) {
    if (!slot) slot = kernel_.scratch(name, physical_columns_);
    return *slot;
  }

  kernel_builder& kernel_;
  std::int64_t rows_, columns_, physical_columns_, first_, slices_;
  std::int64_t inputs_ = 0, one_ = -1;
  std::vector<std::uint32_t> groups_;
  std::optional<std::uint32_t> patch_, sum_, partial_;
};

}  // namespace raptor::lowering
