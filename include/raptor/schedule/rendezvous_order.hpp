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
#include "raptor/schedule/setup.hpp"

namespace raptor::schedule {

/// Order policy: simulates the cores in time, one activity a core: a part of a tile, or a transfer, which holds sender and receiver.
///
/// A tile may pause between its parts (`atom`) for transfers and for tiles of other computes. What is produced is sent as soon as the receiver
/// ends its part; the sender waits meanwhile, or does a part that fits. Among tiles and transfers the one with the longest path to the
/// end goes first; a path counts the tiles of the same compute that the same core still has to do. `pace` favours the first rows of all computes.
///
/// A tile begins before everything that it reads is there, where what comes first in its body needs only what is there and the tiles that
/// make the rest have begun: partial sums and residuals meet products that are done. Such waits end, because tiles wait for begun ones only.
///
/// What a compute needs once on a core (schedule/setup.hpp) is done there when nothing more urgent can be, at the latest before its first tile.
///
/// What goes from stage to stage can go through global memory instead: then the sender stores it once, and each receiver loads its part when it
/// has time; the one port of the global memory is a resource of its own, for inputs and constants too.
///
/// For streams of inputs the simulation goes on for some rounds: a core begins the next input when it has done everything of the one before.
///
/// Guarantees: steps are in an order in which every core can execute its own as a subsequence with blocking transfers: no deadlock.
/// Cost: O((tiles + flows) · log + parts). Deterministic.
struct rendezvous_order {
  picoseconds atom = 2'000'000;  ///< of a part, about
  bool stages_by_memory = false;  ///< from stage to stage through global memory, not by rendezvous
  int rounds = 1;  ///< inputs that follow one another in the simulation; the order is that of the last one, when all stages are busy
  double pace = 0;  ///< by which share of the longest path a compute's last tile is less urgent than its first, beside its path

  template <target::chip_target Target>
  void operator()(const Target& t, const lowering::compute_graph& g, schedule& s) const {
    const auto& tiles = s.graph.tiles;
    const auto count = tiles.size();
    const auto core_of = [&](std::uint32_t tile) { return s.place[tile].core; };
    auto flows = collect_flows(g, s.graph, core_of);

    s.channels.clear();
    std::vector<std::vector<std::uint32_t>> flows_of_channel;
    if (stages_by_memory) flows_of_channel = open_channels(s, flows.flows);

    const auto held = held_channels(g, s);
    std::vector<picoseconds> flow_time, store_time;
    for (const auto& c : s.channels) store_time.push_back(memory_duration(t, g, core_of(c.producer), c.value, c.what, true));
    for (const auto& f : flows.flows)
      flow_time.push_back(f.channel == no_channel ? transfer_duration(t, g, core_of(f.producer), f, held) : memory_duration(t, g, f.core, f.value, f.what, false));
    std::vector<std::vector<schedule_atom>> parts(count);
    std::vector<picoseconds> work(count, 0);
    std::vector<std::vector<std::uint32_t>> stops;
    for (lowering::vertex v = 0; v < g.size(); ++v) stops.push_back(late_items(g.at(v), g.values()));
    for (std::uint32_t i = 0; i < count; ++i) {
      parts[i] = atoms_of(t, g.at(tiles[i].compute), tiles[i].lanes, atom, stops[tiles[i].compute]);
      for (const auto& a : parts[i]) work[i] += a.time;
    }
    auto delay = flow_time;
    for (std::uint32_t f = 0; f < delay.size(); ++f)
      if (const auto c = flows.flows[f].channel; c != no_channel) delay[f] += store_time[c];
    const auto rank = ranks(s, flows, delay, parts, work);
    constexpr auto never = std::numeric_limits<picoseconds>::lowest() / 2;
    std::vector<picoseconds> urgency(flows.flows.size(), never);
    for (std::uint32_t i = 0; i < count; ++i)
      for (const auto f : flows.of_tile[i]) urgency[f] = std::max(urgency[f], rank[i]);

    // Who waits for what: inputs that each part of a tile misses, and the makers of late inputs, by how many each tile waits for.
    std::vector<std::vector<std::uint32_t>> missing(count), flows_of(count), wakes(count);
    std::vector<std::uint32_t> asleep(count, 0);
    for (std::uint32_t i = 0; i < count; ++i) missing[i].assign(parts[i].size(), 0);
    const auto waits_for = [&](std::uint32_t maker, const reader& r) {
      const auto part = part_of(parts[r.tile], r.item);
      ++missing[r.tile][part];
      if (part > 0) wakes[maker].push_back(r.tile), ++asleep[r.tile];
    };
    for (std::uint32_t i = 0; i < count; ++i)
      for (const auto& r : flows.local_readers[i]) waits_for(i, r);
    for (std::uint32_t f = 0; f < flows.flows.size(); ++f)
      for (const auto& r : flows.readers[f]) waits_for(flows.flows[f].producer, r);
    // Activities between cores: flows, and behind them the stores of channels. A tile starts its rendezvous and stores; a store starts its loads.
    const auto flow_count = static_cast<std::uint32_t>(flows.flows.size());
    for (std::uint32_t f = 0; f < flow_count; ++f)
      if (flows.flows[f].channel == no_channel) flows_of[flows.flows[f].producer].push_back(f);
    for (std::uint32_t c = 0; c < s.channels.size(); ++c) {
      flows_of[s.channels[c].producer].push_back(flow_count + c);
      picoseconds most = never;
      for (const auto f : flows_of_channel[c]) most = std::max(most, urgency[f]);
      urgency.push_back(most);
    }
    const auto is_store = [&](std::uint32_t a) { return a >= flow_count; };
    const auto is_load = [&](std::uint32_t a) { return !is_store(a) && flows.flows[a].channel != no_channel; };
    /// The cores that an activity holds: the same one twice where it needs only one.
    const auto ends_of = [&](std::uint32_t a) {
      if (is_store(a)) return std::pair{core_of(s.channels[a - flow_count].producer), core_of(s.channels[a - flow_count].producer)};
      const auto& f = flows.flows[a];
      return std::pair{is_load(a) ? f.core : core_of(f.producer), f.core};
    };

    // Of every round, tiles and activities have numbers of their own: those of the round before and their count.
    const auto all_tiles = static_cast<std::uint32_t>(count), all_activities = static_cast<std::uint32_t>(urgency.size());
    const auto last_round = static_cast<std::uint32_t>(rounds - 1);
    const auto tile_of = [&](std::uint32_t n) { return n % all_tiles; };
    const auto activity_of = [&](std::uint32_t n) { return n % all_activities; };
    const auto round_of = [](std::uint32_t n, std::uint32_t all) { return n / all; };
    std::vector<std::uint32_t> tasks(static_cast<std::size_t>(t.chip().core_count), 0);  // of one round, by core
    for (std::uint32_t i = 0; i < count; ++i) ++tasks[core_of(i)];
    for (std::uint32_t a = 0; a < all_activities; ++a) {
      const auto [from, to] = ends_of(a);
      ++tasks[from];
      if (to != from) ++tasks[to];
    }

    // What each core sets up, the most urgent first, and what tiles read from global memory.
    std::vector<std::vector<setup>> setups(static_cast<std::size_t>(t.chip().core_count));
    std::vector<std::vector<picoseconds>> setup_rank(setups.size());
    std::vector<std::uint32_t> setup_of_tile(count, 0);  // position on its core
    {
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> of;  // tiles by core and compute
      for (std::uint32_t i = 0; i < count; ++i) of[{core_of(i), tiles[i].compute}].push_back(i);
      std::vector<std::vector<std::pair<picoseconds, std::uint32_t>>> first(setups.size());  // −rank, tile
      for (const auto& [key, own] : of)
        first[key.first].emplace_back(-rank[*std::max_element(own.begin(), own.end(), [&](auto a, auto b) { return rank[a] < rank[b]; })], own.front());
      for (std::uint32_t c = 0; c < setups.size(); ++c) {
        std::sort(first[c].begin(), first[c].end());
        for (const auto& [key, tile] : first[c]) {
          for (const auto i : of[{c, tiles[tile].compute}]) setup_of_tile[i] = static_cast<std::uint32_t>(setups[c].size());
          setups[c].push_back(setup_of(t, g, s.graph, tile, c)), setup_rank[c].push_back(-key);
        }
      }
    }
    std::vector<std::vector<global_read>> reads(count);
    for (std::uint32_t i = 0; i < count; ++i) reads[i] = reads_of(t, g, core_of(i), tiles[i], lowering::origin::input);
    const auto total = [](const std::vector<global_read>& list) {
      picoseconds sum = 0;
      for (const auto& r : list) sum += r.port + r.rest;
      return sum;
    };

    using entry = std::pair<picoseconds, std::uint32_t>;  // −rank, number
    struct core_state {
      std::vector<bool> prepared;             // setups of this round that are done
      std::size_t next_setup = 0;             // those before it are
      std::set<std::uint32_t> held;           // constants that are there in this round
      std::vector<global_read> reading;       // loads to do before what the core does takes `then`; the next one last
      picoseconds then = 0;
      std::set<entry> ready;                  // tiles that may start or go on
      std::vector<std::uint32_t> open;        // tiles that have begun
      std::set<entry> pending;                // activities with other cores that could begin
      std::uint32_t outgoing = 0;
      picoseconds free = 0;                   // busy until
      bool busy = false;
      std::int64_t running = -1;              // tile
      std::int64_t moving = -1;               // activity, at the core that begins it
      std::uint32_t round = 0, left = 0;      // tiles and activities of the round that are not done
    };
    std::vector<core_state> cores(static_cast<std::size_t>(t.chip().core_count));
    for (std::uint32_t c = 0; c < cores.size(); ++c) cores[c].left = tasks[c], cores[c].prepared.assign(setups[c].size(), false);
    std::vector<std::uint32_t> next_part(count * static_cast<std::size_t>(rounds), 0);
    for (std::uint32_t n = all_tiles; n < next_part.size(); ++n) missing.push_back(missing[tile_of(n)]), asleep.push_back(asleep[tile_of(n)]);
    const auto able = [&](std::uint32_t n) { return missing[n][next_part[n]] == 0 && (next_part[n] > 0 || asleep[n] == 0); };
    using event = std::pair<picoseconds, std::uint32_t>;
    std::priority_queue<event, std::vector<event>, std::greater<>> events;
    s.order.clear(), s.steps.clear(), s.durations.clear();
    s.predicted = 0;

    std::vector<std::uint32_t> woken;
    const auto make_ready = [&](std::uint32_t n) { cores[core_of(tile_of(n))].ready.insert({-rank[tile_of(n)], n}), woken.push_back(core_of(tile_of(n))); };
    for (std::uint32_t n = 0; n < next_part.size(); ++n)
      if (able(n)) make_ready(n);
    const auto supply = [&](const reader& r, std::uint32_t round) {
      const auto n = r.tile + round * all_tiles;
      if (--missing[n][part_of(parts[r.tile], r.item)] == 0 && able(n)) make_ready(n);
    };
    for (std::uint32_t c = 0; c < cores.size(); ++c) woken.push_back(c);
    // Is it the turn of an activity's round on its cores? What is stored again has been read: its readers have begun that round.
    const auto in_turn = [&](std::uint32_t n) {
      const auto a = activity_of(n), r = round_of(n, all_activities);
      const auto [from, to] = ends_of(a);
      if (cores[from].round != r || cores[to].round != r) return false;
      if (is_store(a) && r > 0)
        for (const auto f : flows_of_channel[a - flow_count])
          if (cores[flows.flows[f].core].round < r) return false;
      return true;
    };
    const auto done_on = [&](std::uint32_t c) {
      if (--cores[c].left > 0 || cores[c].round == last_round) return;
      ++cores[c].round, cores[c].left = tasks[c], cores[c].held.clear();
      cores[c].prepared.assign(setups[c].size(), false), cores[c].next_setup = 0;
      for (std::uint32_t k = 0; k < cores.size(); ++k) woken.push_back(k);  // some may have waited for that
    };

    picoseconds port_free = 0;  // of the global memory
    const auto start_flow = [&](std::uint32_t n, picoseconds now) {
      const auto a = activity_of(n);
      const auto [from, to] = ends_of(a);
      const entry e{-urgency[a], n};
      cores[from].pending.erase(e), cores[to].pending.erase(e);
      if (!is_load(a)) --cores[from].outgoing;
      auto duration = is_store(a) ? store_time[a - flow_count] : flow_time[a];
      if (is_store(a) || is_load(a)) {
        port_free = std::max(port_free, now) + duration;
        duration = port_free - now;
      }
      for (const auto c : {from, to}) cores[c].busy = true, cores[c].free = now + duration;
      cores[from].moving = n;
      events.emplace(now + duration, from);
      if (to != from) events.emplace(now + duration, to);
      if (round_of(n, all_activities) != last_round) return;
      step x;
      x.what = is_store(a) ? step::kind::store : is_load(a) ? step::kind::load : step::kind::transfer;
      x.index = is_store(a) ? a - flow_count : a;
      s.steps.push_back(x);
      s.durations.push_back(is_store(a) ? store_time[a - flow_count] : flow_time[a]);
    };
    // The next load of a core, which waits for the port, or, where there is none left, what follows them.
    const auto go_on = [&](std::uint32_t c, picoseconds now) {
      auto& core = cores[c];
      if (core.reading.empty()) {
        core.free = now + std::exchange(core.then, 0);
      } else {
        port_free = std::max(port_free, now) + core.reading.back().port;
        core.free = port_free + core.reading.back().rest;
        core.reading.pop_back();
      }
      events.emplace(core.free, c);
    };
    // Adds a setup to what the core begins.
    const auto add_setup = [&](std::uint32_t c, std::size_t k, bool last) {
      auto& core = cores[c];
      core.prepared[k] = true;
      const auto& own = setups[c][k];
      if (own.empty()) return;
      std::vector<global_read> loads;
      for (const auto& r : own.reads)
        if (!core.held.contains(r.value)) loads.push_back(r);
      for (const auto& r : loads) core.held.insert(r.value);
      core.reading.insert(core.reading.end(), loads.begin(), loads.end());
      core.then += own.time;
      if (!last) return;
      step x;
      x.what = step::kind::prepare, x.index = own.tile;
      s.steps.push_back(x);
      s.durations.push_back(total(loads) + own.time);
    };
    const auto start_setup = [&](std::uint32_t c, std::size_t k, picoseconds now) {
      add_setup(c, k, cores[c].round == last_round);
      cores[c].busy = true;
      go_on(c, now);
    };
    const auto start_part = [&](std::uint32_t c, std::uint32_t n, picoseconds now) {
      auto& core = cores[c];
      const auto tile = tile_of(n);
      const auto k = next_part[n]++;
      const bool last = round_of(n, all_tiles) == last_round;
      if (k == 0) {
        if (!core.prepared[setup_of_tile[tile]]) add_setup(c, setup_of_tile[tile], last);
        core.reading.insert(core.reading.begin(), reads[tile].begin(), reads[tile].end());
      }
      if (k == 0) {
        core.open.push_back(n);
        for (const auto i : wakes[tile])
          if (const auto m = i + n / all_tiles * all_tiles; --asleep[m] == 0 && able(m)) make_ready(m);
      }
      if (k == 0 && last) {
        s.order.push_back(tile);
        s.place[tile].start = now;
      }
      core.busy = true, core.running = n, core.then += parts[tile][k].time;
      go_on(c, now);
      if (!last) return;
      step x;
      x.index = tile, x.end = parts[tile][k].end;
      if (k > 0) x.begin = parts[tile][k - 1].end;
      s.steps.push_back(x);
      s.durations.push_back(parts[tile][k].time + (k == 0 ? total(reads[tile]) : 0));
    };
    std::size_t done = 0;
    const auto finish = [&](std::uint32_t c, picoseconds now) {
      auto& core = cores[c];
      if (!core.reading.empty() || core.then > 0) {
        go_on(c, now);
        return;
      }
      core.busy = false;
      if (core.moving >= 0) {
        const auto n = static_cast<std::uint32_t>(std::exchange(core.moving, -1));
        const auto a = activity_of(n), r = round_of(n, all_activities);
        if (is_store(a)) {
          for (const auto f : flows_of_channel[a - flow_count])
            cores[flows.flows[f].core].pending.insert({-urgency[f], f + r * all_activities}), woken.push_back(flows.flows[f].core);
        } else {
          for (const auto& x : flows.readers[a]) supply(x, r);
        }
        const auto [from, to] = ends_of(a);
        done_on(from);
        if (to != from) done_on(to);
      }
      if (core.running >= 0) {
        const auto n = static_cast<std::uint32_t>(std::exchange(core.running, -1));
        const auto tile = tile_of(n), r = round_of(n, all_tiles);
        if (next_part[n] < parts[tile].size()) {
          if (!able(n)) core.ready.erase({-rank[tile], n});
          return;
        }
        ++done;
        core.ready.erase({-rank[tile], n});
        std::erase(core.open, n);
        if (r == last_round) {
          s.place[tile].finish = now;
          s.predicted = std::max(s.predicted, now);
        }
        for (const auto& x : flows.local_readers[tile]) supply(x, r);
        for (const auto f : flows_of[tile]) {
          const entry e{-urgency[f], f + r * all_activities};
          core.pending.insert(e), cores[ends_of(f).second].pending.insert(e);
          ++core.outgoing;
        }
        done_on(c);
      }
    };
    const auto partner = [&](std::uint32_t c, std::uint32_t n) {
      const auto [from, to] = ends_of(activity_of(n));
      return from == c ? to : from;
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
            if (!cores[partner(c, e.second)].busy && in_turn(e.second)) best = e;
          }
        }
        if (best.first == std::numeric_limits<picoseconds>::max()) break;
        start_flow(best.second, now);
      }
      const auto idle = std::exchange(woken, {});  // a tile that begins may wake others
      for (const auto c : idle) {
        auto& core = cores[c];
        while (core.next_setup < core.prepared.size() && (core.prepared[core.next_setup] || setups[c][core.next_setup].empty())) ++core.next_setup;
        const bool sets_up = core.next_setup < core.prepared.size();
        if (core.busy || (core.ready.empty() && !sets_up)) continue;
        // A sender waits for its receiver, unless a part fits into the wait.
        picoseconds wait = std::numeric_limits<picoseconds>::max();
        if (core.outgoing > 0)
          for (const auto& e : core.pending)
            if (const auto a = activity_of(e.second); !is_load(a) && ends_of(a).first == c && in_turn(e.second)) wait = std::min(wait, cores[ends_of(a).second].free - now);
        // Setups fill the time in which nothing more urgent can be done and nobody is waited for.
        const bool quiet = sets_up && core.pending.empty();
        for (const auto& e : core.ready) {
          const auto n = e.second, tile = tile_of(n);
          if (round_of(n, all_tiles) != core.round) continue;
          if (quiet && setup_rank[c][core.next_setup] > -e.first) break;
          const bool begun = next_part[n] > 0;
          // Tiles of one compute share scratch: one of them at a time.
          if (!begun && std::any_of(core.open.begin(), core.open.end(), [&](std::uint32_t o) { return tiles[tile_of(o)].compute == tiles[tile].compute; })) continue;
          if (parts[tile][next_part[n]].time > wait) continue;
          start_part(c, n, now);
          break;
        }
        if (!core.busy && quiet) start_setup(c, core.next_setup, now);
      }
      if (!woken.empty()) continue;
      if (events.empty()) break;
      now = events.top().first;
      while (!events.empty() && events.top().first == now) {
        const auto c = events.top().second;
        events.pop();
        finish(c, now);
        woken.push_back(c);
      }
    }
    ensure(done == count * static_cast<std::size_t>(rounds), "order: the tiles have a cyclic dependency");
    if (rounds > 1 && !s.order.empty()) {  // times count from the last round's beginning
      const auto begin = s.place[s.order.front()].start;
      for (auto& p : s.place) p.start -= begin, p.finish -= begin;
      s.predicted -= begin;
    }
    s.flows = std::move(flows.flows);
  }

 private:
  using schedule_atom = raptor::schedule::atom;

  /// By core and value: the channels that the core's buffers of image rows hold.
  using channel_ranges = std::map<std::pair<std::uint32_t, std::uint32_t>, interval>;
  static channel_ranges held_channels(const lowering::compute_graph& g, const schedule& s) {
    channel_ranges held;
    for (std::uint32_t i = 0; i < s.graph.tiles.size(); ++i)
      for (const auto& a : g.at(s.graph.tiles[i].compute).accesses) {
        const auto& v = g.values()[a.value];
        if (v.layout != layout::physical::nhwc_row_strip || v.from != lowering::origin::computed) continue;
        const auto value = [&](const affine& x) { return x.evaluate([&](symbol y) { return detail::lane_value(y, s.graph.tiles[i].lanes); }); };
        auto& own = held[{s.place[i].core, a.value}];
        own = hull(own, intersect({value(a.low[1]), value(a.high[1])}, {0, v.sizes[1]}));
      }
    return held;
  }

  /// Messages of a flow, one a fragment, and what packing and unpacking takes a side that holds other channels of the rows as well.
  template <target::chip_target Target>
  static picoseconds transfer_duration(const Target& t, const lowering::compute_graph& g, std::uint32_t from, const flow& f, const channel_ranges& held) {
    const auto& v = g.values()[f.value];
    const auto parts = layout::fragments(f.what, v.sizes, v.layout);
    picoseconds sum = 0;
    for (const auto& [number, part] : parts) sum += t.transfer_time(from, f.core, element_count(part));
    if (v.layout == layout::physical::nhwc_row_strip && f.what[3].size() > 1)
      for (const auto core : {from, f.core})
        if (held.at({core, f.value}) != f.what[1]) sum += static_cast<picoseconds>(parts.size()) * f.what[3].size() * t.time(isa::opcode::lmv, f.what[1].size());
    return std::max<picoseconds>(1, sum);
  }

  /// One side of a flow through global memory.
  template <target::chip_target Target>
  static picoseconds memory_duration(const Target& t, const lowering::compute_graph& g, std::uint32_t core, std::uint32_t value, const box& what, bool store) {
    const auto& v = g.values()[value];
    picoseconds sum = 0;
    for (const auto& [number, part] : layout::fragments(what, v.sizes, v.layout)) sum += t.global_time(core, element_count(part), store);
    return std::max<picoseconds>(1, sum);
  }
  /// Gives every flow that crosses stages a channel, one for each producing tile and value; returns the flows of each.
  static std::vector<std::vector<std::uint32_t>> open_channels(schedule& s, std::vector<flow>& flows) {
    std::map<std::uint32_t, std::uint32_t> stage_of;
    for (const auto& p : s.place) stage_of[p.core] = p.stage;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
    std::vector<std::vector<std::uint32_t>> result;
    for (std::uint32_t f = 0; f < flows.size(); ++f) {
      auto& x = flows[f];
      if (s.place[x.producer].stage == stage_of.at(x.core)) continue;
      const auto [c, fresh] = known.try_emplace({x.producer, x.value}, static_cast<std::uint32_t>(s.channels.size()));
      if (fresh) s.channels.push_back({x.producer, x.value, x.what}), result.emplace_back();
      x.channel = c->second;
      s.channels[x.channel].what = hull(s.channels[x.channel].what, x.what);
      result[x.channel].push_back(f);
    }
    return result;
  }

  std::vector<picoseconds> ranks(const schedule& s, const flow_list& flows, const std::vector<picoseconds>& flow_time, const std::vector<std::vector<schedule_atom>>& parts,
                                 const std::vector<picoseconds>& work) const {
    const auto count = s.graph.tiles.size();
    // Reverse topological order: tiles lie in vertex order of their computes, and vertex order is topological; the chain of a compute's tiles on
    // one core goes by tile number.
    std::vector<picoseconds> rank(count, 0);
    std::vector<std::uint32_t> next(count, static_cast<std::uint32_t>(count));
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> last;
    for (auto i = static_cast<std::uint32_t>(count); i-- > 0;) {
      const auto key = std::pair{s.graph.tiles[i].compute, s.place[i].core};
      const auto known = last.find(key);
      if (known != last.end()) next[i] = known->second;
      last[key] = i;
    }
    // The path from the part of a reader that needs something.
    const auto path = [&](const reader& r) {
      picoseconds before = 0;
      for (std::uint32_t k = 0, end = part_of(parts[r.tile], r.item); k < end; ++k) before += parts[r.tile][k].time;
      return rank[r.tile] - before;
    };
    picoseconds longest = 0;
    std::size_t f = flows.flows.size();
    for (auto i = static_cast<std::uint32_t>(count); i-- > 0;) {
      if (next[i] < count) rank[i] = rank[next[i]];
      for (const auto& r : flows.local_readers[i]) rank[i] = std::max(rank[i], path(r));
      for (; f > 0 && flows.flows[f - 1].producer == i; --f)
        for (const auto& r : flows.readers[f - 1]) rank[i] = std::max(rank[i], path(r) + flow_time[f - 1]);
      rank[i] += work[i];
      longest = std::max(longest, rank[i]);
    }
    for (const auto& list : s.graph.of_compute)
      for (std::size_t k = 0; k < list.size(); ++k)
        rank[list[k]] -= static_cast<picoseconds>(pace * static_cast<double>(longest) * static_cast<double>(k) / static_cast<double>(list.size()));
    return rank;
  }
};

/// Order policy: the first of several paces while placements compete, and for the one that won the pace of least predicted time (the first among
/// equals). Requires: at least one pace. Cost: that of one order, and of improve as many more as there are paces. Deterministic.
struct paced_order {
  rendezvous_order order;
  std::vector<double> paces{0.0};

  template <target::chip_target Target>
  void operator()(const Target& t, const lowering::compute_graph& g, schedule& s) const {
    with_pace(0, t, g, s);
  }
  /// Tries the other paces on a schedule that operator() has ordered; `worth(schedule)`: less is better.
  template <target::chip_target Target, class Worth>
  void improve(const Target& t, const lowering::compute_graph& g, schedule& s, const Worth& worth) const {
    auto least = worth(s);
    for (std::size_t k = 1; k < paces.size(); ++k) {
      schedule other = s;
      with_pace(k, t, g, other);
      if (const auto w = worth(other); w < least) least = w, s = std::move(other);
    }
  }

 private:
  template <target::chip_target Target>
  void with_pace(std::size_t k, const Target& t, const lowering::compute_graph& g, schedule& s) const {
    auto paced = order;
    paced.pace = paces[k];
    paced(t, g, s);
  }
};

}  // namespace raptor::schedule
