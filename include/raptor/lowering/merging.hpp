#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"

namespace raptor::lowering {

namespace detail {

inline void renumber(operand& o, std::uint32_t accesses, std::uint32_t temporaries) {
  if (o.what == operand::kind::value) o.index += accesses;
  if (o.what == operand::kind::temporary) o.index += temporaries;
}
/// Moves a kernel's statements behind another's: access, temporary and group numbers shift.
inline void renumber(std::vector<item>& items, std::uint32_t accesses, std::uint32_t temporaries, std::uint32_t groups) {
  for (auto& i : items) {
    if (auto* l = std::get_if<loop>(&i.what)) {
      renumber(l->body, accesses, temporaries, groups);
    } else {
      auto& s = std::get<statement>(i.what);
      renumber(s.d, accesses, temporaries), renumber(s.a, accesses, temporaries), renumber(s.b, accesses, temporaries);
      s.group += groups;
    }
  }
}
inline void append(compute& first, compute second) {
  const auto accesses = static_cast<std::uint32_t>(first.accesses.size());
  const auto temporaries = static_cast<std::uint32_t>(first.temporaries.size());
  const auto groups = static_cast<std::uint32_t>(first.groups.size());
  renumber(second.prologue, accesses, temporaries, groups);
  renumber(second.body, accesses, temporaries, groups);
  const auto move_all = [](auto& to, auto& from) {
    for (auto& x : from) to.push_back(std::move(x));
  };
  move_all(first.accesses, second.accesses);
  move_all(first.temporaries, second.temporaries);
  move_all(first.groups, second.groups);
  move_all(first.prologue, second.prologue);
  move_all(first.body, second.body);
  first.name += "+" + second.name;
  first.op += "+" + second.op;
  for (std::size_t d = 0; d < first.most.size(); ++d) {
    if (first.most[d] == 0 || (second.most[d] != 0 && second.most[d] < first.most[d])) first.most[d] = second.most[d];
    first.granule[d] = std::lcm(first.granule[d], second.granule[d]);
  }
}

}  // namespace detail

namespace detail {
/// The only compute of a list that touches a box of a value in a mode, and how often; more than one compute: none.
struct toucher {
  std::size_t vertex = 0, computes = 0, accesses = 0;
};
[[nodiscard]] inline toucher who_touches(const std::vector<compute>& computes, const std::vector<std::size_t>& list, const access& box, bool reads) {
  toucher result;
  for (const auto v : list) {
    bool counted = false;
    for (const auto& a : computes[v].accesses) {
      if (a.value != box.value || (a.mode == access_mode::read) != reads || never_meet(a, box)) continue;
      ++result.accesses;
      if (!counted) ++result.computes, result.vertex = v;
      counted = true;
    }
  }
  return result;
}
}  // namespace detail

/// Trivial merging: a compute without weights joins the compute that produces what it reads, where both have the same lanes
/// and every tile reads exactly the box that the producer's tile writes, which nobody else reads. Chains merge one by one.
/// Other computes may read and write other channels of the same tensor.
///
/// The merged compute stands where the consumer stood, so that its other operands exist; it is legal because nobody else
/// waits for the producer's result. Guarantees: same values computed; vertex order stays topological.
/// Cost: O(computes × accesses). Deterministic.
[[nodiscard]] inline compute_graph merge_trivial(const compute_graph& g) {
  const std::size_t count = g.size();
  std::vector<compute> computes;
  std::vector<std::vector<std::size_t>> writers(g.values().size()), readers(g.values().size());
  for (vertex v = 0; v < count; ++v) {
    computes.push_back(g.at(v));
    for (const auto& a : g.at(v).accesses) {
      auto& list = (a.mode == access_mode::read ? readers : writers)[a.value];
      if (list.empty() || list.back() != v) list.push_back(v);
    }
  }
  std::vector<bool> gone(count, false);
  for (vertex v = 0; v < count; ++v) {
    auto& consumer = computes[v];
    if (!consumer.groups.empty()) continue;
    for (std::size_t i = 0; i < consumer.accesses.size(); ++i) {
      const auto read = consumer.accesses[i];
      const auto value = read.value;
      if (read.mode != access_mode::read || g.values()[value].result >= 0) continue;
      const auto writer = detail::who_touches(computes, writers[value], read, false), reader = detail::who_touches(computes, readers[value], read, true);
      if (writer.computes != 1 || reader.computes != 1 || reader.accesses != 1) continue;
      const auto p = writer.vertex;
      if (p == v || computes[p].lanes != consumer.lanes) continue;
      // The producer's results other than this one must be its own business too, since it moves behind others.
      bool exact = false, alone = true;
      for (const auto& a : computes[p].accesses) {
        if (a.mode == access_mode::read) continue;
        if (a.value == value && a.low == read.low && a.high == read.high) {
          exact = writer.accesses == 1 && a.mode == access_mode::assign;
        } else {
          const auto own = detail::who_touches(computes, readers[a.value], a, true);
          alone = alone && g.values()[a.value].result < 0 && (own.computes == 0 || (own.computes == 1 && own.vertex == p));
        }
      }
      if (!exact || !alone) continue;
      compute merged = std::move(computes[p]);
      detail::append(merged, std::move(consumer));
      computes[v] = std::move(merged);
      gone[p] = true;
      for (const auto& a : computes[v].accesses)
        for (auto* list : {&readers[a.value], &writers[a.value]})
          for (auto& x : *list)
            if (x == p) x = v;
      break;
    }
  }
  compute_graph result;
  result.name = g.name, result.inputs = g.inputs, result.outputs = g.outputs;
  for (const auto& v : g.values()) result.add_value(v);
  for (vertex v = 0; v < count; ++v)
    if (!gone[v]) result.add_compute(std::move(computes[v]));
  return result;
}

}  // namespace raptor::lowering
