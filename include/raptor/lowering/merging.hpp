#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
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

/// Who reads and who writes a value while computes merge. The accesses are those of the graph before any merge.
class touching {
 public:
  explicit touching(const compute_graph& g) : readers_(g.values().size()), writers_(g.values().size()), merged_into_(g.size()) {
    std::iota(merged_into_.begin(), merged_into_.end(), std::size_t{0});
    for (vertex v = 0; v < g.size(); ++v)
      for (const auto& a : g.at(v).accesses) (a.mode == access_mode::read ? readers_ : writers_)[a.value].push_back({v, &a});
  }

  /// The only compute that reads or writes something of a box, and with how many accesses.
  struct toucher {
    std::size_t vertex = 0, computes = 0, accesses = 0;  ///< two computes stand for any number
  };
  [[nodiscard]] toucher readers_of(const access& box) { return who(readers_[box.value], box); }
  [[nodiscard]] toucher writers_of(const access& box) { return who(writers_[box.value], box); }

  /// Is all that is written of a box written by computes that stand in front of `place`?
  [[nodiscard]] bool written_before(const access& box, std::size_t place) {
    return std::all_of(writers_[box.value].begin(), writers_[box.value].end(), [&](const touch& t) { return never_meet(*t.box, box) || now(t.vertex) < place; });
  }

  /// All accesses of `from` are those of `to` from now on.
  void merge(std::size_t from, std::size_t to) { merged_into_[now(from)] = now(to); }

 private:
  struct touch {
    std::size_t vertex = 0;
    const access* box = nullptr;
  };
  /// The compute that a compute of the graph has become. Paths are halved.
  [[nodiscard]] std::size_t now(std::size_t v) {
    while (merged_into_[v] != v) v = merged_into_[v] = merged_into_[merged_into_[v]];
    return v;
  }
  [[nodiscard]] toucher who(const std::vector<touch>& list, const access& box) {
    toucher result;
    for (const auto& t : list) {
      if (never_meet(*t.box, box)) continue;
      const auto v = now(t.vertex);
      ++result.accesses;
      if (result.computes != 0 && result.vertex == v) continue;
      result.vertex = v;
      if (++result.computes == 2) break;
    }
    return result;
  }

  std::vector<std::vector<touch>> readers_, writers_;
  std::vector<std::size_t> merged_into_;
};

}  // namespace detail

/// Trivial merging: a compute without weights joins the compute that produces what it reads, where both have the same lanes
/// and every tile reads exactly the box that the producer's tile writes, which nobody else reads. Chains merge one by one.
/// Other computes may read and write other channels of the same tensor.
///
/// The merged compute stands where the consumer stood, so that its other operands exist, where nobody else waits for a result of the producer; else
/// where the producer stood, if the consumer's other operands exist there. Guarantees: same values computed; vertex order stays topological.
/// `most_reads`: what reads more values that are computed than this does not join a compute with weights: it has much to wait for, and the core that
/// holds the weights does not do it.
/// Cost: O(accesses), times the accesses of other boxes of the same value. Deterministic.
[[nodiscard]] inline compute_graph merge_trivial(const compute_graph& g, std::int64_t most_reads = std::numeric_limits<std::int64_t>::max()) {
  const std::size_t count = g.size();
  std::vector<compute> computes;
  // What each compute writes that may still be somebody else's business. What only the compute itself reads stays its own.
  std::vector<std::vector<const access*>> open(count);
  for (vertex v = 0; v < count; ++v) {
    computes.push_back(g.at(v));
    for (const auto& a : g.at(v).accesses)
      if (a.mode != access_mode::read) open[v].push_back(&a);
  }
  detail::touching touching(g);
  const auto own = [&](std::size_t p, const access& a) {
    const auto reader = touching.readers_of(a);
    return g.values()[a.value].result < 0 && (reader.computes == 0 || (reader.computes == 1 && reader.vertex == p));
  };
  std::vector<bool> gone(count, false);
  for (vertex v = 0; v < count; ++v) {
    if (!g.at(v).groups.empty()) continue;
    const auto reads = std::count_if(g.at(v).accesses.begin(), g.at(v).accesses.end(), [&](const access& a) { return a.mode == access_mode::read && g.values()[a.value].from == origin::computed; });
    for (const auto& read : g.at(v).accesses) {
      if (read.mode != access_mode::read || g.values()[read.value].result >= 0) continue;
      const auto writer = touching.writers_of(read), reader = touching.readers_of(read);
      if (writer.computes != 1 || reader.computes != 1 || reader.accesses != 1) continue;
      const auto p = writer.vertex;
      if (p == v || computes[p].lanes != g.at(v).lanes || (reads > most_reads && !computes[p].groups.empty())) continue;
      // Where the producer's results other than this one are its own business too, it can move behind others.
      bool exact = false, alone = true;
      for (auto at = open[p].begin(); at != open[p].end();) {
        const access& a = **at;
        if (a.value == read.value && a.low == read.low && a.high == read.high) {
          exact = writer.accesses == 1 && a.mode == access_mode::assign;
        } else if (alone && own(p, a)) {
          *at = open[p].back();
          open[p].pop_back();
          continue;
        } else {
          alone = false;
        }
        ++at;
      }
      const auto known_before = [&](const access& a) { return a.mode != access_mode::read || &a == &read || touching.written_before(a, p); };
      if (!exact || (!alone && !std::all_of(g.at(v).accesses.begin(), g.at(v).accesses.end(), known_before))) continue;
      const auto place = alone ? v : p, left = alone ? p : v;
      compute merged = std::move(computes[p]);
      detail::append(merged, std::move(computes[v]));
      computes[place] = std::move(merged);
      gone[left] = true;
      touching.merge(left, place);
      if (!alone) {
        std::erase_if(open[p], [&](const access* a) { return a->value == read.value && a->low == read.low && a->high == read.high; });
        open[p].insert(open[p].end(), open[v].begin(), open[v].end());
      }
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
