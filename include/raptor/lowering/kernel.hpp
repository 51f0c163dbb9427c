#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/isa/opcode.hpp"
#include "raptor/model/tensor.hpp"
#include "raptor/support/affine.hpp"
#include "raptor/support/box.hpp"

/// Kernels: what one tile of a compute does, as data. A tile is a box of the compute's lane space; a kernel is written
/// once for every tile, with the tile's box as symbols (begin d, extent d), so that thousands of lanes stay one vertex.
namespace raptor::lowering {

/// Where a statement reads or writes.
struct operand {
  enum class kind : std::uint8_t { none, value, temporary };
  kind what = kind::none;
  std::uint32_t index = 0;   ///< value: index into compute::accesses; temporary: index into compute::temporaries
  std::vector<affine> at;    ///< value: coordinates of the first element, one a dimension of the tensor (may lie in padding);
                             ///< temporary: one offset in elements
  friend bool operator==(const operand&, const operand&) = default;
};

/// What happens where operand `a` lies in an image row (dimension 2 of its tensor) above or below the image.
enum class outside : std::uint8_t {
  never,  ///< it cannot happen; an internal error where it does
  skip,   ///< the statement is left out (maximum or sum over the rows that exist)
  zero    ///< the destination becomes zero (copies and matrix products)
};

/// One operation of a kernel, over whole elements. `op` is an ISA operation with these readings:
/// - lmv: copy `length` elements from a to d; vmv: gather `length` elements with stride `stride` (× the distance in memory of
///   dimension `stride_dimension` of a's tensor where that is ≥ 0) into consecutive ones
/// - lldi: fill `length` elements with the element whose bits are `bits`
/// - mvmul: crossbar rows from a, result at d; `group` indexes compute::groups; relu where `bits` is 1
/// - vrsu, vrsl: clamp at the element whose bits are `bits`, above (min) or below (max)
/// - vavg: mean of `length` elements with stride `stride`; vvdmul: dot product; others as in the ISA.
/// The elements from a (and b, d) on are contiguous in memory; realization checks it.
struct statement {
  isa::opcode op = isa::opcode::nop;
  operand d, a, b;
  affine length = 1;                 ///< elements
  std::uint32_t bits = 0;
  std::int64_t stride = 1;
  std::int32_t stride_dimension = -1;
  std::uint32_t group = 0;
  outside when_outside = outside::never;
  friend bool operator==(const statement&, const statement&) = default;
};

struct item;
/// `count` repetitions; the induction variable is symbol{loop, variable}, unique among the enclosing loops.
struct loop {
  std::uint32_t variable = 0;
  affine count;
  std::vector<item> body;
};
struct item {
  std::variant<statement, loop> what;
};

/// Core-local scratch. Contents survive from tile to tile of the same compute on one core only where `persistent`
/// (set up in the prologue, for example a zeroed tail or a constant one); otherwise they are undefined at a tile's start.
struct temporary {
  std::string name;
  affine elements;  ///< size; may depend on the tile's extents
  bool persistent = false;
};

enum class access_mode : std::uint8_t { read, assign, accumulate };
/// The box of a tensor that a tile touches: [low, high) a dimension, affine in the tile's begin and extent. A read may
/// reach outside the tensor: those elements are zero. Writes of different tiles are disjoint; `accumulate`: the tile's
/// result is added to those of other computes that accumulate into the same box.
struct access {
  std::uint32_t value = 0;  ///< index into compute_graph::values
  access_mode mode = access_mode::read;
  std::vector<affine> low, high;
};

/// True where two boxes never meet, whatever tiles they belong to: some dimension has constant bounds that do not overlap.
[[nodiscard]] inline bool never_meet(const access& a, const access& b) {
  for (std::size_t d = 0; d < a.low.size(); ++d) {
    const bool constant = a.low[d].is_constant() && a.high[d].is_constant() && b.low[d].is_constant() && b.high[d].is_constant();
    if (constant && (a.high[d].constant() <= b.low[d].constant() || b.high[d].constant() <= a.low[d].constant())) return true;
  }
  return false;
}
/// A rectangle of a weight matrix taken from a constant: element (i, j) of the rectangle, at matrix position
/// (row + i, column + j), is data[offset + i · row_stride + j · column_stride].
struct weight_block {
  std::uint32_t source = 0;  ///< index into weight_matrix::sources
  std::int64_t row = 0, column = 0, rows = 0, columns = 0;
  std::int64_t offset = 0, row_stride = 0, column_stride = 0;
  friend bool operator==(const weight_block&, const weight_block&) = default;
};
/// The content of one array group, described by where its elements come from; everything else is zero.
struct weight_matrix {
  std::int64_t rows = 0;     ///< used rows, at most the crossbar's
  std::int64_t columns = 0;  ///< used columns, at most those of the group's crossbars
  std::vector<model::constant_ptr> sources;  ///< f32
  std::vector<weight_block> blocks;
};

/// A vertex of the compute graph: L lanes that share one kernel and its resident weights.
struct compute {
  std::string name;      ///< of the operator, with the part where it was split
  std::string op;        ///< operator, for reports
  std::string strategy;  ///< lowering strategy
  std::uint32_t node = 0xffffffffu;  ///< vertex of the model graph
  shape lanes;           ///< the lane space; rank 0: one lane
  shape granule;         ///< a tile begins at a multiple of it in each lane dimension (and ends at one or at the end)
  shape most;            ///< largest extent of a tile in each dimension; 0: no limit
  std::vector<access> accesses;
  std::vector<temporary> temporaries;
  std::vector<weight_matrix> groups;  ///< one array group each
  std::int64_t family = -1;           ///< computes of one family have the same groups, which a core holds once; −1: a family of its own
  std::vector<item> prologue;  ///< once a core, before its first tile: only temporaries and constants
  std::vector<item> body;      ///< for each tile
};

}  // namespace raptor::lowering
