#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "raptor/layout/fragments.hpp"
#include "raptor/schedule/schedule.hpp"

namespace raptor::schedule {

/// Order policy: simulates the cores in time, one activity a core: a part of a tile, or a transfer, which holds sender and receiver.
///
/// A tile may pause between its parts (`atom`) for transfers and for tiles of other computes. What is produced is sent as soon as the receiver
/// ends its part; the sender waits meanwhile, or does a part that fits. Among tiles and transfers the one with the longest path to the
/// end goes first; a path counts the tiles of the same compute that the same core still has to do.
///
/// Guarantees: steps are in an order in which every core can execute its own as a subsequence with blocking transfers: no deadlock.
/// Cost: O((tiles + flows) · log + parts). Deterministic.
struct rendezvous_order {
  picoseconds atom = 5'000'000;  ///< of a part, about

  template <target::chip_target Target>
  void operator()(const Target& t, const lowering::compute_graph& g, schedule& s) const {
    const auto& tiles = s.graph.tiles;
    const auto count = tiles.size();
    const auto core_of = [&](std::uint32_t tile) { return s.place[tile].core; };
    auto flows = collect_flows(g, s.graph, core_of);

    std::vector<picoseconds> flow_time;
    for (const auto& f : flows.flows) flow_time.push_back(transfer_duration(t, g, core_of(f.producer), f));
    std::vector<std::vector<schedule_atom>> parts(count);
    std::vector<picoseconds> work(count, 0);
    for (std::uint32_t i = 0; i < count; ++i) {
      parts[i] = atoms_of(t, g.at(tiles[i].compute), tiles[i].lanes, atom);
      for (const auto& a : parts[i]) work[i] += a.time;
    }
    const auto rank = ranks(s, flows, flow_time, work);
    std::vector<picoseconds> urgency(flows.flows.size(), 0);
    for (std::uint32_t i = 0; i < count; ++i)
      for (const auto f : flows.of_tile[i]) urgency[f] = std::max(urgency[f], rank[i]);

    // Who waits for what.
    std::vector<std::uint32_t> waiting(count, 0);
    std::vector<std::vector<std::uint32_t>> local_consumers(count), flows_of(count), consumers_of(flows.flows.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      for (const auto p : s.graph.producers[i])
        if (core_of(p) == core_of(i)) local_consumers[p].push_back(i), ++waiting[i];
      for (const auto f : flows.of_tile[i]) consumers_of[f].push_back(i), ++waiting[i];
    }
    for (std::uint32_t f = 0; f < flows.flows.size(); ++f) flows_of[flows.flows[f].producer].push_back(f);

    using entry = std::pair<picoseconds, std::uint32_t>;  // −rank, number
    struct core_state {
      std::set<entry> ready;                  // tiles that may start or go on
      std::vector<std::uint32_t> open;        // tiles that have begun
      std::set<entry> pending;                // flows out of it and into it that are produced
      std::uint32_t outgoing = 0;
      picoseconds free = 0;                   // busy until
      bool busy = false;
      std::int64_t running = -1;              // tile
      std::int64_t moving = -1;               // flow, at the sender
    };
    std::vector<core_state> cores(static_cast<std::size_t>(t.chip().core_count));
    std::vector<std::uint32_t> next_part(count, 0);
    using event = std::pair<picoseconds, std::uint32_t>;
    std::priority_queue<event, std::vector<event>, std::greater<>> events;
    s.order.clear(), s.steps.clear(), s.durations.clear();
    s.predicted = 0;

    std::vector<std::uint32_t> woken;
    for (std::uint32_t i = 0; i < count; ++i)
      if (waiting[i] == 0) cores[core_of(i)].ready.insert({-rank[i], i});
    for (std::uint32_t c = 0; c < cores.size(); ++c) woken.push_back(c);

    const auto start_flow = [&](std::uint32_t f, picoseconds now) {
      const auto from = core_of(flows.flows[f].producer), to = flows.flows[f].core;
      const entry e{-urgency[f], f};
      cores[from].pending.erase(e), cores[to].pending.erase(e);
      --cores[from].outgoing;
      for (const auto c : {from, to}) cores[c].busy = true, cores[c].free = now + flow_time[f];
      cores[from].moving = f;
      events.emplace(now + flow_time[f], from);
      events.emplace(now + flow_time[f], to);
      step x;
      x.what = step::kind::transfer, x.index = f;
      s.steps.push_back(x);
      s.durations.push_back(flow_time[f]);
    };
    const auto start_part = [&](std::uint32_t c, std::uint32_t tile, picoseconds now) {
      auto& core = cores[c];
      const auto k = next_part[tile]++;
      step x;
      x.index = tile, x.end = parts[tile][k].end;
      if (k == 0) {
        core.open.push_back(tile);
        s.order.push_back(tile);
        s.place[tile].start = now;
      } else {
        x.begin = parts[tile][k - 1].end;
      }
      s.steps.push_back(x);
      s.durations.push_back(parts[tile][k].time);
      core.busy = true, core.running = tile, core.free = now + parts[tile][k].time;
      events.emplace(core.free, c);
    };
    std::size_t done = 0;
    const auto finish = [&](std::uint32_t c, picoseconds now) {
      auto& core = cores[c];
      core.busy = false;
      if (core.moving >= 0) {
        const auto f = static_cast<std::uint32_t>(std::exchange(core.moving, -1));
        for (const auto i : consumers_of[f])
          if (--waiting[i] == 0) cores[core_of(i)].ready.insert({-rank[i], i}), woken.push_back(core_of(i));
      }
      if (core.running >= 0) {
        const auto tile = static_cast<std::uint32_t>(std::exchange(core.running, -1));
        if (next_part[tile] < parts[tile].size()) return;
        ++done;
        core.ready.erase({-rank[tile], tile});
        std::erase(core.open, tile);
        s.place[tile].finish = now;
        s.predicted = std::max(s.predicted, now);
        for (const auto i : local_consumers[tile])
          if (--waiting[i] == 0) core.ready.insert({-rank[i], i});
        for (const auto f : flows_of[tile]) {
          const entry e{-urgency[f], f};
          core.pending.insert(e), cores[flows.flows[f].core].pending.insert(e);
          ++core.outgoing;
        }
      }
    };
    const auto partner = [&](std::uint32_t c, std::uint32_t f) {
      const auto from = core_of(flows.flows[f].producer);
      return from == c ? flows.flows[f].core : from;
    };

    picoseconds now = 0;
    while (true) {
      std::sort(woken.begin(), woken.end());
      woken.erase(std::unique(woken.begin(), woken.end()), woken.end());
      // Transfers first, the most urgent one whose ends are both idle.
      while (true) {
        entry best{std::numeric_limits<picoseconds>::max(), 0};
        for (const auto c : woken) {
          if (cores[c].busy) continue;
          for (const auto& e : cores[c].pending) {
            if (!(e < best)) break;
            if (!cores[partner(c, e.second)].busy) best = e;
          }
        }
        if (best.first == std::numeric_limits<picoseconds>::max()) break;
        start_flow(best.second, now);
      }
      for (const auto c : woken) {
        auto& core = cores[c];
        if (core.busy || core.ready.empty()) continue;
        // A sender waits for its receiver, unless a part fits into the wait.
        picoseconds wait = std::numeric_limits<picoseconds>::max();
        if (core.outgoing > 0)
          for (const auto& e : core.pending)
            if (core_of(flows.flows[e.second].producer) == c) wait = std::min(wait, cores[flows.flows[e.second].core].free - now);
        for (const auto& e : core.ready) {
          const auto tile = e.second;
          const bool begun = next_part[tile] > 0;
          // Tiles of one compute share scratch: one of them at a time.
          if (!begun && std::any_of(core.open.begin(), core.open.end(), [&](std::uint32_t o) { return tiles[o].compute == tiles[tile].compute; })) continue;
          if (parts[tile][next_part[tile]].time > wait) continue;
          start_part(c, tile, now);
          break;
        }
      }
      woken.clear();
      if (events.empty()) break;
      now = events.top().first;
      while (!events.empty() && events.top().first == now) {
        const auto c = events.top().second;
        events.pop();
        finish(c, now);
        woken.push_back(c);
      }
    }
    ensure(done == count, "order: the tiles have a cyclic dependency");
    s.flows = std::move(flows.flows);
  }

 private:
  using schedule_atom = raptor::schedule::atom;

  /// Messages of a flow, one a fragment, and what packing and unpacking them takes where only some channels of a row travel.
  template <target::chip_target Target>
  static picoseconds transfer_duration(const Target& t, const lowering::compute_graph& g, std::uint32_t from, const flow& f) {
    const auto& v = g.values()[f.value];
    const auto parts = layout::fragments(f.what, v.sizes, v.layout);
    picoseconds sum = 0;
    for (const auto& [number, part] : parts) sum += t.transfer_time(from, f.core, element_count(part));
    if (v.layout == layout::physical::nhwc_row_strip && f.what[1].size() < v.sizes[1])
      sum += static_cast<picoseconds>(parts.size()) * f.what[3].size() * t.time(isa::opcode::lmv, f.what[1].size());
    return std::max<picoseconds>(1, sum);
  }

  static std::vector<picoseconds> ranks(const schedule& s, const flow_list& flows, const std::vector<picoseconds>& flow_time, const std::vector<picoseconds>& work) {
    const auto count = s.graph.tiles.size();
    // Reverse topological order: tiles lie in vertex order of their computes, and vertex order is topological; the chain of a compute's tiles on
    // one core goes by tile number.
    std::vector<picoseconds> rank(count, 0), after(count, 0);
    std::vector<std::uint32_t> next(count, static_cast<std::uint32_t>(count));
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> last;
    for (auto i = static_cast<std::uint32_t>(count); i-- > 0;) {
      const auto key = std::pair{s.graph.tiles[i].compute, s.place[i].core};
      const auto known = last.find(key);
      if (known != last.end()) next[i] = known->second;
      last[key] = i;
    }
    for (auto i = static_cast<std::uint32_t>(count); i-- > 0;) {
      picoseconds best = after[i];
      if (next[i] < count) best = std::max(best, rank[next[i]]);
      rank[i] = work[i] + best;
      for (const auto p : s.graph.producers[i])
        if (s.place[p].core == s.place[i].core) after[p] = std::max(after[p], rank[i]);
      for (const auto f : flows.of_tile[i]) {
        const auto p = flows.flows[f].producer;
        after[p] = std::max(after[p], rank[i] + flow_time[f]);
      }
    }
    return rank;
  }
};

}  // namespace raptor::schedule
