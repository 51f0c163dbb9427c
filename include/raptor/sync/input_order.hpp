#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "raptor/program/program.hpp"
#include "raptor/sync/execution_order.hpp"
#include "raptor/sync/insertions.hpp"
#include "raptor/sync/relations.hpp"

namespace raptor::sync {

/// Orders the loads of graph inputs of consecutive iterations: each of `readers` signals a leader after its last load of an input; the
/// leader, which in `order` is the last one to load, waits for them right after its own and signals all; they wait for that
/// at the end of their bodies. So no core begins its next body before every core has loaded its inputs, and no core waits
/// where it is not at its end but the leader, which comes last anyway.
///
/// Exact counts: a reader signals the leader again only after the leader's signal, which follows the leader's wait; the leader signals a
/// reader again only after that reader's signal, which follows the reader's wait.
/// Takes one register of each reader. Requires at least two readers.
inline void plan_input_order(const program::program& p, const relations& needs, const std::vector<std::size_t>& readers, const execution_order& order,
                             register_files& registers, insertions& plan) {
  constexpr auto why = "order of the inputs";
  const auto last_load = [&](std::size_t c) { return static_cast<std::size_t>(needs.last_input[c]); };
  const auto leader = *std::max_element(readers.begin(), readers.end(), [&](std::size_t a, std::size_t b) { return order.at(a, last_load(a)).end < order.at(b, last_load(b)).end; });
  const auto gathered = registers.take(leader);
  plan.wait(leader, last_load(leader) + 1, slot::passage, gathered, readers.size() - 1, why);
  for (const auto r : readers) {
    if (r == leader) continue;
    const auto released = registers.take(r);
    plan.signal(r, last_load(r) + 1, slot::signal, leader, gathered, why);
    plan.signal(leader, last_load(leader) + 1, slot::passage, r, released, why);
    plan.wait(r, p.cores[r].body.size(), slot::end, released, 1, why);
  }
}

}  // namespace raptor::sync
