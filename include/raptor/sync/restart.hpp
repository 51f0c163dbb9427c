#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "raptor/program/program.hpp"
#include "raptor/sync/insertions.hpp"

namespace raptor::sync {

/// Barrier of the given cores at the end of their bodies, by dissemination: in round r rank i signals rank i + 2^r (modulo n) and waits for one
/// signal. A core may leave the barrier while another still has waits of it ahead, so every core also permits those that
/// signal it to do so again, when it begins its next body; they wait for these permissions, one a round, before their first signal.
///
/// Takes ceil(log2 n) + 1 registers of each core; nothing for one core. Source: INVARIANTS (Restart).
inline void plan_barrier(const program::program& p, const std::vector<std::size_t>& cores, register_files& registers, insertions& plan) {
  constexpr auto why = "barrier";
  const std::size_t n = cores.size();
  std::size_t rounds = 0;
  while ((std::size_t{1} << rounds) < n) ++rounds;
  if (rounds == 0) return;
  std::vector<std::int32_t> permitted(n);
  std::vector<std::vector<std::int32_t>> reached(n);
  for (std::size_t i = 0; i < n; ++i) {
    permitted[i] = registers.take(cores[i]);
    for (std::size_t r = 0; r < rounds; ++r) reached[i].push_back(registers.take(cores[i]));
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto end = p.cores[cores[i]].body.size();
    plan.wait(cores[i], end, slot::end, permitted[i], rounds, why);
    for (std::size_t r = 0; r < rounds; ++r) {
      const auto to = (i + (std::size_t{1} << r)) % n;
      plan.signal(cores[to], 0, slot::restart, cores[i], permitted[i], why);
      plan.signal(cores[i], end, slot::end, cores[to], reached[to][r], why);
      plan.wait(cores[i], end, slot::end, reached[i][r], 1, why);
    }
  }
}

/// Release tree: after the barrier the leader, once the root permits it, sends the root the restart; a core of the binary tree waits for the
/// restart and for the permissions of its children, sends it on to them and ends its body. Permissions are sent at the begin of a body.
///
/// Takes one register of a leaf, two of an inner core, one of the leader. Source: INVARIANTS (Restart).
inline void plan_release_tree(const program::program& p, std::size_t leader, const std::vector<std::size_t>& downstream, register_files& registers, insertions& plan) {
  constexpr auto why = "restart";
  if (downstream.empty()) return;
  const std::size_t n = downstream.size();
  const auto leader_permitted = registers.take(leader);
  std::vector<std::int32_t> restarted(n), permitted(n, -1);
  for (std::size_t k = 0; k < n; ++k) {
    restarted[k] = registers.take(downstream[k]);
    if (2 * k + 1 < n) permitted[k] = registers.take(downstream[k]);
  }
  const auto end_of_leader = p.cores[leader].body.size();
  plan.wait(leader, end_of_leader, slot::end, leader_permitted, 1, why);
  plan.signal(leader, end_of_leader, slot::end, downstream[0], restarted[0], why);
  plan.signal(downstream[0], 0, slot::restart, leader, leader_permitted, why);
  for (std::size_t k = 0; k < n; ++k) {
    const auto end = p.cores[downstream[k]].body.size();
    const auto first = std::min(2 * k + 1, n), last = std::min(2 * k + 3, n);
    plan.wait(downstream[k], end, slot::end, restarted[k], 1, why);
    if (first < last) plan.wait(downstream[k], end, slot::end, permitted[k], last - first, why);
    for (auto child = first; child < last; ++child) {
      plan.signal(downstream[child], 0, slot::restart, downstream[k], permitted[k], why);
      plan.signal(downstream[k], end, slot::end, downstream[child], restarted[child], why);
    }
  }
}

}  // namespace raptor::sync
