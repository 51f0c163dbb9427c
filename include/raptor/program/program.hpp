#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "raptor/isa/opcode.hpp"
#include "raptor/lowering/kernel.hpp"
#include "raptor/support/affine.hpp"

/// Realized and bound programs: for each core a sequence of operations and loops over named buffers. All sizes and
/// offsets are in elements of the program's one element width; addresses do not exist yet.
namespace raptor::program {

inline constexpr std::uint32_t none = 0xffffffffu;
inline constexpr std::int32_t global_memory = -1;  ///< `core` of a buffer in global memory

/// Named storage of `elements` elements in the local memory of a core, or in global memory.
struct buffer {
  std::string name;
  std::int32_t core = global_memory;
  std::int64_t elements = 0;
  /// Bound programs: this buffer occupies elements [view_offset, view_offset + elements) of another buffer of the same
  /// core that is no view itself. `none`: storage of its own.
  std::uint32_t view_of = none;
  std::int64_t view_offset = 0;
  model::constant_ptr data;  ///< global memory: initial contents (f32), null where there are none
};

/// The element of a buffer at an offset that is affine in the induction variables of the enclosing loops.
struct place {
  std::uint32_t buffer = none;
  affine offset;
  friend bool operator==(const place&, const place&) = default;
};

/// One operation, an ISA operation over whole elements (the readings of lowering::statement):
/// - ld: d local, a global; st: d global, a local; lmv: both local; lldi: fill d with the element `bits`
/// - send: a local, `peer`; recv: d local, `peer`; sync: `peer`, `event`; wait: `event`, `count`
/// - mvmul: a, d, `group` indexes core_program::groups, relu where `bits` is 1; length is the number of used columns,
///   but the instruction reads all crossbar rows and writes all columns of the group: both must lie in their buffers
/// - vmv, vavg: `stride` in elements; vrsu, vrsl: `bits` is the bound.
struct operation {
  isa::opcode op = isa::opcode::nop;
  std::uint32_t bits = 0;
  place d, a, b;
  std::int64_t length = 0;  ///< elements
  std::int64_t stride = 1;
  std::uint32_t group = 0;
  std::int32_t peer = -1;
  std::int32_t event = 0;
  std::int32_t count = 0;
  friend bool operator==(const operation&, const operation&) = default;
};

struct item;
struct loop {
  std::uint32_t variable = 0;  ///< symbol{loop, variable}; unique among the enclosing loops
  std::int64_t count = 0;
  std::vector<item> body;
};
struct item {
  std::variant<operation, loop> what;
  std::uint32_t origin = none;  ///< top level: index into program::origins of the compute or transfer it belongs to
};

struct core_program {
  std::uint32_t stage = 0;            ///< of a pipeline
  std::vector<std::uint32_t> groups;  ///< array group number → index into program::weights
  std::vector<item> body;
};

/// A graph input or output: a buffer in global memory, dense row major.
struct port {
  std::string name;
  shape sizes;
  std::uint32_t buffer = none;
};

/// Rows, columns and crossbars per array group come from the target.
struct geometry {
  std::int64_t core_count = 0;
  std::int64_t crossbars_per_core = 0;
  std::int64_t crossbar_rows = 0;
  std::int64_t crossbar_columns = 0;  ///< physical columns
  std::int64_t weight_columns = 0;    ///< weights in a row of one crossbar: columns × cell bits / weight bits
  std::int64_t cell_bits = 32;
  std::int64_t weight_bits = 32;      ///< mbiw
  std::int64_t element_bits = 32;
  std::int64_t adc_count = 16;
  std::int64_t local_memory_bytes = std::numeric_limits<std::int64_t>::max();
};

struct program {
  std::string name;
  geometry chip;
  std::vector<buffer> buffers;
  std::vector<lowering::weight_matrix> weights;  ///< distinct array-group contents
  std::vector<core_program> cores;               ///< one for every core of the chip, empty ones included
  std::vector<port> inputs, outputs;
  std::vector<std::string> origins;              ///< names of computes and transfers, for reports and traces
};

/// Crossbars of an array group that holds a weight matrix.
[[nodiscard]] inline std::int64_t crossbars(const lowering::weight_matrix& matrix, const geometry& chip) {
  return checked::divide_up(matrix.columns, chip.weight_columns);
}

}  // namespace raptor::program
