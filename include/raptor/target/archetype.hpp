#pragma once

#include "raptor/target/concept.hpp"

namespace raptor::target {

/// The least that models chip_target: one core, one crossbar, every duration 1 ps. Policies are tried on it.
struct archetype {
  [[nodiscard]] program::geometry chip() const {
    program::geometry g;
    g.core_count = 1, g.crossbars_per_core = 1, g.crossbar_rows = 1, g.crossbar_columns = 1, g.weight_columns = 1;
    return g;
  }
  [[nodiscard]] picoseconds time(isa::opcode, std::int64_t) const { return 1; }
  [[nodiscard]] picoseconds transfer_time(std::size_t, std::size_t, std::int64_t) const { return 1; }
  [[nodiscard]] picoseconds global_time(std::size_t, std::int64_t, bool) const { return 1; }
};
static_assert(chip_target<archetype>);

}  // namespace raptor::target
