#pragma once

#include <algorithm>
#include <variant>

#include "raptor/program/program.hpp"

/// Structural equality of programs, for tests, for the text form (print, parse, equal) and for the copy-freedom proof.
namespace raptor::program {

[[nodiscard]] inline bool operator==(const item& a, const item& b);
[[nodiscard]] inline bool operator==(const loop& a, const loop& b) {
  return a.variable == b.variable && a.count == b.count && a.body == b.body;
}
[[nodiscard]] inline bool operator==(const item& a, const item& b) { return a.origin == b.origin && a.what == b.what; }
[[nodiscard]] inline bool operator==(const core_program& a, const core_program& b) {
  return a.stage == b.stage && a.groups == b.groups && a.body == b.body;
}
[[nodiscard]] inline bool operator==(const port& a, const port& b) {
  return a.name == b.name && a.sizes == b.sizes && a.buffer == b.buffer;
}
[[nodiscard]] inline bool operator==(const geometry& a, const geometry& b) {
  return a.core_count == b.core_count && a.crossbars_per_core == b.crossbars_per_core && a.crossbar_rows == b.crossbar_rows &&
         a.crossbar_columns == b.crossbar_columns && a.weight_columns == b.weight_columns && a.cell_bits == b.cell_bits &&
         a.weight_bits == b.weight_bits && a.element_bits == b.element_bits && a.adc_count == b.adc_count &&
         a.local_memory_bytes == b.local_memory_bytes;
}
/// Equal contents, wherever they are kept. Two nulls are equal.
[[nodiscard]] inline bool same_data(const model::constant_ptr& a, const model::constant_ptr& b) {
  return a == b || (a && b && a->values == b->values);
}
[[nodiscard]] inline bool operator==(const buffer& a, const buffer& b) {
  return a.name == b.name && a.core == b.core && a.elements == b.elements && a.view_of == b.view_of &&
         a.view_offset == b.view_offset && same_data(a.data, b.data);
}

/// Everything but what the weight matrices hold: their number and sizes count, their contents do not.
[[nodiscard]] inline bool same_structure(const program& a, const program& b) {
  const auto same_size = [](const lowering::weight_matrix& x, const lowering::weight_matrix& y) {
    return x.rows == y.rows && x.columns == y.columns;
  };
  return a.name == b.name && a.chip == b.chip && a.buffers == b.buffers && a.cores == b.cores && a.inputs == b.inputs &&
         a.outputs == b.outputs && a.origins == b.origins &&
         std::equal(a.weights.begin(), a.weights.end(), b.weights.begin(), b.weights.end(), same_size);
}

}  // namespace raptor::program
