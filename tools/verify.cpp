#include "raptor/schedule/stages.hpp"
#include "raptor/verify/copy_freedom.hpp"
#include "raptor/verify/deadlock.hpp"
#include "raptor/verify/graph.hpp"
#include "raptor/verify/happens_before.hpp"
#include "raptor/verify/program.hpp"
#include "tools/write.hpp"

namespace raptor::tools {

void verify_stage(stage s, const compilation& c, const model::graph& model, const program::geometry& chip) {
  switch (s) {
    case stage::planned: layout::check_plan(model, c.plan); break;
    case stage::lowered: verify::check_computes(c.lowered.graph, chip); break;
    case stage::merged: verify::check_computes(c.computes, chip); break;
    case stage::scheduled: schedule::check_schedule(c.schedule, chip.core_count); break;
    case stage::realized:
      verify_program(c.realized);
      if (!verify::has_events(c.realized)) verify::check_deadlock(c.realized);
      break;
    case stage::bound:
      verify_program(c.image.bound);
      verify::check_copy_freedom(c.realized, c.image.bound);
      break;
    case stage::image: memory::check_plan(c.image); break;
  }
}

void verify_program(const program::program& p) {
  verify::check_program(p);
  if (verify::has_events(p)) verify::check_happens_before(p);  // it is made to repeat
}

std::string detect_deadlock(const program::program& p) {
  static_cast<void>(verify::check_deadlock(p));
  return "no communication deadlock";
}

std::string prove_copy_freedom(const program::program& realized, const program::program& bound) {
  const auto report = verify::check_copy_freedom(realized, bound);
  return "bufferization is copy free: " + std::to_string(report.copies_kept) + " explicit copies kept, " + std::to_string(report.copies_removed) +
         " became views, " + std::to_string(report.in_place) + " results in place, none inserted";
}

}  // namespace raptor::tools
