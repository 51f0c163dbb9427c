#pragma once

#include <cstddef>

#include "raptor/memory/plan.hpp"
#include "raptor/program/program.hpp"
#include "raptor/verify/bounds.hpp"
#include "raptor/verify/initialized.hpp"
#include "raptor/verify/matching.hpp"

namespace raptor::verify {

/// Everything about a realized or bound program that does not need a schedule: buffers and ports are consistent, every operation stays
/// inside its buffers, no copy overlaps itself, every read was written before, sends and receives match in order and size.
/// Errors: see check_bounds, check_initialized, check_matching. Cost: some nanoseconds an unrolled operation.
/// See also: check_deadlock, check_copy_freedom, memory::check_plan.
inline void check_program(const program::program& p) {
  memory::plan_parts::check_buffers(p);
  for (std::size_t c = 0; c < p.cores.size(); ++c) check_bounds(p, c);
  check_initialized(p);
  check_matching(p);
}

}  // namespace raptor::verify
