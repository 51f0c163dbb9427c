#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/communication/transfers.hpp"
#include "raptor/lowering/compute_graph.hpp"
#include "raptor/program/effects.hpp"
#include "raptor/report/format.hpp"
#include "raptor/schedule/schedule.hpp"
#include "raptor/target/concept.hpp"

/// Lower bounds of a compiled model (BOUNDS.md), the resource that binds, and what the schedule predicts.
namespace raptor::report {

using target::picoseconds;

/// What one resource needs at least for one input.
struct bound {
  std::string resource;
  picoseconds least = 0;
  std::string of;  ///< what it counts, for people
};
struct bounds {
  std::vector<bound> all;      ///< in a fixed order; not ordered by size
  std::size_t binding = 0;     ///< index of the largest (the first among equals)
  picoseconds predicted = 0;   ///< finish of the schedule

  [[nodiscard]] const bound& largest() const { return all.at(binding); }
};

namespace bounds_parts {

/// Does the target say what its memories cost, as target::pim does?
template <class Target>
concept knows_memories = requires(const Target& t) {
  t.parameters().chip_config.core_config.local_memory_config.data_width;
  t.parameters().chip_config.global_memory_config.data_width;
  t.parameters().chip_config.core_config.rob_size;
};

/// Port time of one access (TIMING 8).
template <class Memory>
[[nodiscard]] picoseconds port_time(const Memory& m, bool read, double bytes) {
  const auto cycles = static_cast<double>(read ? m.read_latency_cycle : m.write_latency_cycle);
  return static_cast<picoseconds>(std::min(std::trunc(std::ceil(bytes / static_cast<double>(m.data_width)) * cycles * m.period * 1000 + 0.5), 1e17));
}

/// What a tile (or a whole graph) asks of each unit.
struct demand {
  picoseconds matrix = 0, vector = 0, copies = 0;  ///< instruction by instruction, issue included
  picoseconds local = 0;                           ///< port of the local memory
  std::int64_t products = 0;
  double multiply_accumulates = 0;
  picoseconds longest = 0;                         ///< one instruction

  demand& operator+=(const demand& o) {
    matrix = checked::add(matrix, o.matrix), vector = checked::add(vector, o.vector), copies = checked::add(copies, o.copies);
    local = checked::add(local, o.local), products = checked::add(products, o.products);
    multiply_accumulates += o.multiply_accumulates, longest = std::max(longest, o.longest);
    return *this;
  }
  [[nodiscard]] demand times(std::int64_t n) const {
    return {checked::multiply(matrix, n), checked::multiply(vector, n), checked::multiply(copies, n), checked::multiply(local, n),
            checked::multiply(products, n), multiply_accumulates * static_cast<double>(n), n > 0 ? longest : 0};
  }
  [[nodiscard]] picoseconds serial() const { return checked::add(checked::add(matrix, vector), copies); }
};

/// Port time of the local memory for one statement (TIMING 7).
template <class Target>
[[nodiscard]] picoseconds local_time(const Target& t, const lowering::statement& s, std::int64_t n, std::int64_t group_columns) {
  if constexpr (knows_memories<Target>) {
    using program::pattern;
    const program::geometry chip = t.chip();
    const auto& m = t.parameters().chip_config.core_config.local_memory_config;
    const double width = static_cast<double>(chip.element_bits) / 8, bytes = static_cast<double>(n) * width;
    switch (program::pattern_of(s.op)) {
      case pattern::matrix:
        return port_time(m, true, static_cast<double>(chip.crossbar_rows) * width * 8) + port_time(m, false, static_cast<double>(group_columns) * width);
      case pattern::elementwise2:
      case pattern::dot: return 2 * port_time(m, true, bytes) + port_time(m, false, bytes);
      case pattern::fill: return port_time(m, false, bytes);
      default: return port_time(m, true, bytes) + port_time(m, false, bytes);
    }
  } else {
    static_cast<void>(t), static_cast<void>(s), static_cast<void>(n), static_cast<void>(group_columns);
    return 0;
  }
}

/// Adds up a kernel for one tile without unrolling it. Loop variables count as 0 in lengths and counts, as in schedule::tile_time.
/// A statement that some iteration leaves out (rows outside the image) is not counted, so that the sum stays a lower bound.
template <target::chip_target Target>
class demand_counter {
 public:
  demand_counter(const Target& t, const lowering::compute_graph& g, const lowering::compute& c, const box& lanes)
      : target_(t), chip_(t.chip()), graph_(g), compute_(c), lanes_(lanes) {}

  [[nodiscard]] demand run() { return count(compute_.body); }

 private:
  [[nodiscard]] std::int64_t value(const affine& a) const {
    return a.evaluate([&](symbol s) -> std::int64_t {
      if (s.what == symbol::kind::loop) return 0;
      return s.what == symbol::kind::begin ? lanes_[s.index].begin : lanes_[s.index].size();
    });
  }
  [[nodiscard]] demand count(const std::vector<lowering::item>& items) {
    demand sum;
    for (const auto& i : items) {
      if (const auto* l = std::get_if<lowering::loop>(&i.what)) {
        const auto n = value(l->count);
        if (n <= 0) continue;
        loops_.emplace_back(l->variable, n);
        sum += count(l->body).times(n);
        loops_.pop_back();
      } else {
        sum += count(std::get<lowering::statement>(i.what));
      }
    }
    return sum;
  }
  [[nodiscard]] demand count(const lowering::statement& s) const {
    demand d;
    const auto length = value(s.length);
    if (length <= 0 || may_be_outside(s)) return d;
    const picoseconds time = target_.time(s.op, length);
    d.longest = time;
    std::int64_t columns = 0;
    if (s.op == isa::opcode::mvmul) {
      const auto& group = compute_.groups.at(s.group);
      columns = program::crossbars(group, chip_) * chip_.weight_columns;
      d.matrix = time, d.products = 1;
      for (const auto& b : group.blocks) d.multiply_accumulates += static_cast<double>(b.rows) * static_cast<double>(b.columns);
    } else if (s.op == isa::opcode::lmv || s.op == isa::opcode::lldi) {
      d.copies = time;
    } else {
      d.vector = time;
    }
    d.local = local_time(target_, s, length, columns);
    return d;
  }
  [[nodiscard]] bool may_be_outside(const lowering::statement& s) const {
    if (s.when_outside == lowering::outside::never || s.a.what != lowering::operand::kind::value || s.a.at.size() != 4) return false;
    const auto& row = s.a.at[2];
    std::int64_t least = value(row), most = least;
    for (const auto& [variable, n] : loops_) {
      const auto reach = checked::multiply(row.coefficient({symbol::kind::loop, variable}), n - 1);
      (reach < 0 ? least : most) = checked::add(reach < 0 ? least : most, reach);
    }
    return least < 0 || most >= graph_.values()[compute_.accesses[s.a.index].value].sizes[2];
  }

  const Target& target_;
  const program::geometry chip_;
  const lowering::compute_graph& graph_;
  const lowering::compute& compute_;
  const box& lanes_;
  std::vector<std::pair<std::uint32_t, std::int64_t>> loops_;  // variable, count
};

/// Elements of inputs or constants that the tiles read: the union of their boxes (of the first 256, which is fewer, never more).
[[nodiscard]] inline std::int64_t elements_read(const lowering::compute_graph& g, const schedule::tile_graph& tiles, std::uint32_t value) {
  const auto size = element_count(g.values()[value].sizes);
  std::vector<box> covered;
  std::int64_t elements = 0;
  std::size_t looked_at = 0;
  for (const auto& t : tiles.tiles)
    for (const auto& a : g.at(t.compute).accesses) {
      if (a.value != value || a.mode != lowering::access_mode::read) continue;
      if (elements == size || ++looked_at > 256) return elements;
      std::vector<box> fresh{intersect(schedule::box_of(a, t.lanes), whole(g.values()[value].sizes))};
      if (is_empty(fresh[0])) continue;
      for (const auto& known : covered) {
        std::vector<box> rest;
        for (const auto& f : fresh)
          for (auto& part : subtract(f, known)) rest.push_back(std::move(part));
        fresh = std::move(rest);
      }
      for (auto& f : fresh) elements = checked::add(elements, element_count(f)), covered.push_back(std::move(f));
    }
  return elements;
}

}  // namespace bounds_parts

/// Lower bounds for one input of the decomposition that a compute graph is, from the target's own cost model:
///
/// - dense_matrix: all multiply-accumulates, with every cell of a core at work in every product: no strategy beats it
/// - matrix: all products, one at a time in each core (with more than one instruction in flight: one in each array group)
/// - vector, copies: all instructions of that unit, spread over all cores; local_memory: its port, where the target describes it
/// - work: all instructions, one at a time in each core (only with one instruction in flight)
/// - global_memory: what inputs and constants are read of once, and results written once, through the one port (a target
///   that does not describe its port: as single accesses of one core)
/// - network: the busiest core's share of the transfers of this placement, beyond what a transfer of one element takes; 0 on one core
/// - critical_path: the longest chain of tiles (of the size that the schedule has), as if every tile had a core of its own and
///   nothing took time to cross the chip.
///
/// `s`: with tiles; the network needs places too. Requires: what check_schedule asks for. Cost: O(tiles × statements + transfers).
/// Source: BOUNDS.md.
template <target::chip_target Target>
[[nodiscard]] bounds lower_bounds(const Target& t, const lowering::compute_graph& g, const schedule::schedule& s) {
  using namespace bounds_parts;
  const program::geometry chip = t.chip();
  const auto& tiles = s.graph.tiles;
  bool one_in_flight = true;
  if constexpr (knows_memories<Target>) one_in_flight = t.parameters().chip_config.core_config.rob_size <= 1;

  // Demand of each unit, and the longest chain. Producers have lower numbers, since vertex order is topological.
  demand all;
  std::vector<picoseconds> finish(tiles.size(), 0);
  picoseconds path = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const demand d = demand_counter<Target>(t, g, g.at(tiles[i].compute), tiles[i].lanes).run();
    all += d;
    picoseconds start = 0;
    for (const auto p : s.graph.producers[i]) {
      ensure(p < i, "bounds: a tile reads from a later one");
      start = std::max(start, finish[p]);
    }
    finish[i] = checked::add(start, one_in_flight ? d.serial() : std::max({d.vector, d.copies, d.longest}));
    path = std::max(path, finish[i]);
  }

  bounds result;
  const auto add = [&](const char* resource, picoseconds least, std::string of) { result.all.push_back({resource, least, std::move(of)}); };
  const auto cores = std::max<std::int64_t>(1, chip.core_count);
  const auto spread = [&](picoseconds sum) { return sum / cores; };
  const std::string over = " over " + std::to_string(cores) + (cores == 1 ? " core" : " cores");
  const double cells = static_cast<double>(chip.crossbar_rows) * static_cast<double>(chip.crossbars_per_core) * static_cast<double>(chip.weight_columns);
  const double dense = cells > 0 ? all.multiply_accumulates / cells * static_cast<double>(t.time(isa::opcode::mvmul, 1)) / static_cast<double>(cores) : 0;
  add("dense_matrix", static_cast<picoseconds>(std::min(std::floor(dense), 9e18)),
      std::to_string(static_cast<std::int64_t>(std::min(all.multiply_accumulates, 9e18))) + " multiply-accumulates, every cell of a core at once");
  add("matrix", spread(one_in_flight ? all.matrix : all.matrix / std::max<std::int64_t>(1, chip.crossbars_per_core)),
      std::to_string(all.products) + " products" + over + (one_in_flight ? "" : ", every array group at once"));
  add("vector", spread(all.vector), "vector instructions" + over);
  add("copies", spread(all.copies), "copies inside cores" + over);
  if constexpr (knows_memories<Target>) add("local_memory", spread(all.local), "every byte read and written by kernels" + over);
  if (one_in_flight) add("work", spread(all.serial()), "all instructions of kernels" + over);

  picoseconds global = 0;
  std::int64_t moved = 0;
  const auto access = [&](std::int64_t elements, bool store) {
    if (elements == 0) return;
    moved = checked::add(moved, elements);
    if constexpr (knows_memories<Target>)
      global = checked::add(global, port_time(t.parameters().chip_config.global_memory_config, !store, static_cast<double>(elements) * static_cast<double>(chip.element_bits) / 8));
    else
      global = checked::add(global, t.global_time(0, elements, store));
  };
  for (std::uint32_t v = 0; v < g.values().size(); ++v) {
    const auto& value = g.values()[v];
    if (value.from != lowering::origin::computed) access(elements_read(g, s.graph, v), false);
    else if (value.result >= 0) access(element_count(value.sizes), true);
  }
  add("global_memory", global, std::to_string(moved) + " elements through one port");

  picoseconds network = 0;
  std::int64_t sent = 0;
  if (s.place.size() == tiles.size() && s.order.size() == tiles.size()) {
    std::vector<picoseconds> in(static_cast<std::size_t>(cores), 0), out(in);
    const auto transfers = communication::collect_transfers(g, s);
    for (std::size_t i = 0; i < tiles.size(); ++i)
      for (const auto& x : transfers[i]) {
        const auto from = s.place[i].core, to = x.core;
        const auto elements = element_count(x.what);
        const auto time = std::max<picoseconds>(0, t.transfer_time(from, to, elements) - t.transfer_time(from, to, 1));
        out.at(from) = checked::add(out.at(from), time), in.at(to) = checked::add(in.at(to), time);
        network = std::max({network, out[from], in[to]});
        sent = checked::add(sent, elements);
      }
  }
  add("network", network, std::to_string(sent) + " elements between cores, in this placement");
  add("critical_path", path, "the longest chain of " + std::to_string(tiles.size()) + " tiles");

  for (std::size_t i = 1; i < result.all.size(); ++i)
    if (result.all[i].least > result.all[result.binding].least) result.binding = i;
  result.predicted = s.predicted;
  return result;
}

/// The bounds as a table in text, with the one that binds, the prediction and the gap.
[[nodiscard]] inline std::string bounds_report(const bounds& b) {
  std::string text = "lower bounds for one input, microseconds\n\n";
  for (std::size_t i = 0; i < b.all.size(); ++i)
    text += left(b.all[i].resource, 15) + right(microseconds(b.all[i].least), 14) + (i == b.binding ? " *" : "  ") + " " + b.all[i].of + "\n";
  text += "\nbinds: " + b.largest().resource + "\npredicted: " + microseconds(b.predicted) + ", " + ratio(b.predicted, b.largest().least) + " times the largest bound\n";
  return text;
}

}  // namespace raptor::report
