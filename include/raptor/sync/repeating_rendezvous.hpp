#pragma once

#include <utility>

#include "raptor/program/program.hpp"
#include "raptor/schedule/schedule.hpp"
#include "raptor/sync/execution_order.hpp"
#include "raptor/sync/input_order.hpp"
#include "raptor/sync/insertions.hpp"
#include "raptor/sync/relations.hpp"
#include "raptor/sync/rendezvous_only.hpp"
#include "raptor/verify/happens_before.hpp"

namespace raptor::sync {

/// Synchronization policy for programs that repeat for input after input and whose cores meet only by rendezvous.
///
/// The host places the next inputs when every core that loads inputs has done its last such load (INVARIANTS, Restart). Where rendezvous do
/// not order the first loads of an iteration after the last ones of the iteration before on all cores, these cores get one
/// signal and one wait each (plan_input_order). Where one core only reads inputs, or messages order them, nothing is added.
///
/// Guarantees: verify::check_happens_before. Errors: as rendezvous_only; deadlock, where the program itself blocks.
/// Cost: O(unrolled communication × talking cores) where several cores load inputs. Deterministic.
struct repeating_rendezvous {
  [[nodiscard]] program::program operator()(program::program realized, const schedule::schedule& s) const {
    ensure(!verify::has_events(realized), "the program has events before synchronization is planned");
    auto p = rendezvous_only{}(std::move(realized), s);
    relations needs;
    needs.loads.resize(p.cores.size());
    needs.last_input = last_input_items(p);
    const auto readers = needs.input_readers();
    if (readers.size() < 2 || verify::orders_input_loads(p)) return p;
    const execution_order order(p, needs, {});
    register_files registers(p.cores.size());
    insertions plan(p.cores.size());
    plan_input_order(p, needs, readers, order, registers, plan);
    return plan.apply(std::move(p));
  }
};

}  // namespace raptor::sync
