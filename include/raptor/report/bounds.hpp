#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "raptor/communication/transfers.hpp"
#include "raptor/lowering/compute_graph.hpp"
#include "raptor/report/demand.hpp"
#include "raptor/report/format.hpp"
#include "raptor/schedule/schedule.hpp"
#include "raptor/target/concept.hpp"

/// Lower bounds of a compiled model (BOUNDS.md), the resource that binds, and what the schedule predicts.
namespace raptor::report {

/// What a bound holds for: every program, every choice among the strategies that are implemented, the decomposition that was compiled, or
/// that decomposition where it was placed.
enum class bound_scope : std::uint8_t { every_program, strategies, decomposition, placement };

/// What one resource needs at least for one input.
struct bound {
  std::string resource;
  picoseconds least = 0;
  std::string of;  ///< what it counts, for people
  bound_scope scope = bound_scope::decomposition;
};
struct bounds {
  std::vector<bound> all;         ///< in a fixed order; not ordered by size
  std::size_t binding = 0;        ///< index of the largest that holds for every placement (the first among equals)
  std::size_t tightest = 0;       ///< index of the largest of all
  std::size_t steady = 0;         ///< index of the largest that an interval between inputs obeys, too, whatever the placement
  picoseconds predicted = 0;      ///< finish of the schedule

  [[nodiscard]] const bound& largest() const { return all.at(binding); }
  [[nodiscard]] const bound& in_placement() const { return all.at(tightest); }
  [[nodiscard]] const bound& of_interval() const { return all.at(steady); }
};

namespace bounds_parts {

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

/// Core and network time that flows by rendezvous take at least where each tile was placed.
struct traffic {
  std::vector<picoseconds> core;      ///< by core, sending and receiving
  std::vector<picoseconds> receiver;  ///< by core: as receiver, beyond what one element takes
  std::vector<picoseconds> outgoing;  ///< by core: on its way to other cores, where the target describes it
  std::int64_t elements = 0;
};

/// A receiver is occupied from the sender's read to its own write (TIMING 7); a sender by its read; the data is then on the sender's switch.
template <target::chip_target Target>
[[nodiscard]] traffic traffic_of(const Target& t, const lowering::compute_graph& g, const schedule::schedule& s) {
  const program::geometry chip = t.chip();
  traffic sum;
  sum.core.assign(static_cast<std::size_t>(std::max<std::int64_t>(1, chip.core_count)), 0);
  sum.receiver = sum.outgoing = sum.core;
  const auto collected = s.steps.empty() ? schedule::collect_flows(g, s.graph, [&](std::uint32_t tile) { return s.place[tile].core; }).flows : std::vector<schedule::flow>{};
  for (const auto& f : s.steps.empty() ? collected : s.flows) {
    if (f.channel != schedule::no_channel) continue;  // through global memory: no core waits for another one
    const auto from = s.place[f.producer].core, to = f.core;
    const auto elements = element_count(f.what);
    sum.elements = checked::add(sum.elements, elements);
    const auto receive = std::max<picoseconds>(0, t.transfer_time(from, to, elements) - t.transfer_time(from, to, 1));
    sum.receiver.at(to) = checked::add(sum.receiver.at(to), receive);
    sum.core[to] = checked::add(sum.core[to], receive);
    if constexpr (knows_memories<Target>) {
      const auto& c = t.parameters().chip_config;
      const double bytes = static_cast<double>(elements) * static_cast<double>(chip.element_bits) / 8;
      sum.core.at(from) = checked::add(sum.core.at(from), port_time(c.core_config.local_memory_config, true, bytes));
      const double flits = std::ceil(bytes / static_cast<double>(c.network_config.bus_width));
      sum.outgoing[from] = checked::add(sum.outgoing[from], static_cast<picoseconds>(std::min(std::trunc(flits * t.flit_time(from, to)) * 1000, 1e17)));
    }
  }
  return sum;
}

/// The longest chain of tiles, each from the item of its body that reads the tile before first (what comes earlier may be done while that is
/// made), or as a whole. `all` becomes the demand of all tiles; `busy` gets every core's tiles where it has cores.
///
/// With several instructions in flight, what follows the arrival of an input in the stream may be done before it, as far as the reorder buffer holds it.
template <target::chip_target Target>
[[nodiscard]] picoseconds longest_chain(const Target& t, const lowering::compute_graph& g, const schedule::schedule& s, demand& all, std::vector<picoseconds>& busy) {
  const bool one_at_a_time = one_in_flight(t);
  std::int64_t ahead = 0;
  if constexpr (knows_memories<Target>) ahead = std::max<std::int64_t>(0, t.parameters().chip_config.core_config.rob_size - 1);
  const auto time_of = [&](const demand& d) { return one_at_a_time ? d.serial() : std::max({d.vector, d.copies, d.longest}); };

  // By compute and value: the last item that begins to read it.
  std::vector<std::map<std::uint32_t, std::uint32_t>> reads(g.size());
  std::vector<std::vector<std::uint32_t>> writes(g.size());
  for (lowering::vertex v = 0; v < g.size(); ++v) {
    const auto first = schedule::first_items(g.at(v));
    for (std::size_t k = 0; k < first.size(); ++k) {
      const auto& a = g.at(v).accesses[k];
      if (a.mode != lowering::access_mode::read) writes[v].push_back(a.value);
      else if (const auto [known, fresh] = reads[v].try_emplace(a.value, first[k]); !fresh) known->second = std::max(known->second, first[k]);
    }
  }

  // Producers have lower numbers, since vertex order is topological.
  const auto& tiles = s.graph.tiles;
  std::vector<picoseconds> finish(tiles.size(), 0);
  picoseconds path = 0;
  for (std::uint32_t i = 0; i < tiles.size(); ++i) {
    const auto v = tiles[i].compute;
    const auto rest = demand_counter<Target>(t, g, g.at(v), tiles[i].lanes).from_items();
    all += rest.front();
    if (!busy.empty()) busy.at(s.place[i].core) = checked::add(busy.at(s.place[i].core), rest.front().serial());
    finish[i] = time_of(rest.front());
    const picoseconds early = one_at_a_time ? 0 : checked::multiply(ahead, rest.front().longest);
    for (const auto p : s.graph.producers[i]) {
      ensure(p < i, "bounds: a tile reads from a later one");
      std::uint32_t item = 0;
      for (const auto value : writes[tiles[p].compute])
        if (const auto read = reads[v].find(value); read != reads[v].end()) item = std::max(item, read->second);
      finish[i] = std::max(finish[i], checked::add(finish[p], std::max<picoseconds>(0, time_of(rest[item]) - early)));
    }
    path = std::max(path, finish[i]);
  }
  return path;
}

}  // namespace bounds_parts

/// Lower bounds for one input, from the target's own cost model. For every program:
///
/// - global_memory: what inputs and constants are read of once, and results written once, through the one port (a target
///   that does not describe its port: as single accesses of one core)
///
/// `over_strategies`: bounds over all strategies, see report/strategies.hpp. Of the decomposition that the compute graph is:
///
/// - dense_matrix: the multiply-accumulates that it leaves to crossbars, with every cell of a core at work in every product: no arrangement beats it
/// - matrix: all products, one at a time in each core (with more than one instruction in flight: all crossbars at once)
/// - vector, copies: all instructions of that unit, spread over all cores; local_memory: its port, where the target describes it
/// - work: all instructions, one at a time in each core (only with one instruction in flight)
/// - critical_path: the longest chain of tiles (of the size that the schedule has), as if every tile had a core of its own and
///   nothing took time to cross the chip, each from where it reads the one before; not of the interval between inputs.
///
/// Of its placement, where `s` has places: network: what one core receives, or one core's switch carries; busiest_core: all tiles and
/// transfers of one core, one after another (only with one instruction in flight).
///
/// Requires: what check_schedule asks for. Cost: O(tiles × statements + transfers). Source: BOUNDS.md.
template <target::chip_target Target>
[[nodiscard]] bounds lower_bounds(const Target& t, const lowering::compute_graph& g, const schedule::schedule& s, std::vector<bound> over_strategies = {}) {
  using namespace bounds_parts;
  const program::geometry chip = t.chip();
  const auto& tiles = s.graph.tiles;
  const bool one_at_a_time = one_in_flight(t);
  const bool placed = s.place.size() == tiles.size() && s.order.size() == tiles.size();
  const auto cores = std::max<std::int64_t>(1, chip.core_count);
  traffic moves;
  if (placed) moves = traffic_of(t, g, s);

  demand all;
  const picoseconds path = longest_chain(t, g, s, all, moves.core);

  bounds result;
  using enum bound_scope;
  const auto add = [&](const char* resource, picoseconds least, std::string of, bound_scope scope) { result.all.push_back({resource, least, std::move(of), scope}); };
  const auto spread = [&](picoseconds sum) { return sum / cores; };
  const std::string over = " over " + std::to_string(cores) + (cores == 1 ? " core" : " cores");
  const double cells = static_cast<double>(chip.crossbar_rows) * static_cast<double>(chip.crossbars_per_core) * static_cast<double>(chip.weight_columns);
  const double dense = cells > 0 ? all.multiply_accumulates / cells * static_cast<double>(t.time(isa::opcode::mvmul, 1)) / static_cast<double>(cores) : 0;
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
  add("global_memory", global, std::to_string(moved) + " elements through one port", every_program);
  for (auto& b : over_strategies) result.all.push_back(std::move(b));

  add("dense_matrix", static_cast<picoseconds>(std::min(std::floor(dense), 9e18)),
      std::to_string(static_cast<std::int64_t>(std::min(all.multiply_accumulates, 9e18))) + " multiply-accumulates, every cell of a core at once", decomposition);
  add("matrix", spread(matrix_time(all, one_at_a_time, chip)),
      std::to_string(all.products) + " products" + over + (one_at_a_time ? "" : ", all crossbars at once"), decomposition);
  add("vector", spread(all.vector), "vector instructions" + over, decomposition);
  add("copies", spread(all.copies), "copies inside cores" + over, decomposition);
  if constexpr (knows_memories<Target>) add("local_memory", spread(all.local), "every byte read and written by kernels" + over, decomposition);
  if (one_at_a_time) add("work", spread(all.serial()), "all instructions of kernels" + over, decomposition);
  add("critical_path", path, "the longest chain of " + std::to_string(tiles.size()) + " tiles", decomposition);

  if (placed) {
    const auto most = [](const std::vector<picoseconds>& of) { return *std::max_element(of.begin(), of.end()); };
    add("network", std::max(most(moves.receiver), most(moves.outgoing)), std::to_string(moves.elements) + " elements between cores", placement);
    if (one_at_a_time) {
      const auto busiest = std::max_element(moves.core.begin(), moves.core.end());
      add("busiest_core", *busiest, "tiles and transfers of core " + std::to_string(busiest - moves.core.begin()), placement);
    }
  }

  for (std::size_t i = 1; i < result.all.size(); ++i) {
    const auto& b = result.all[i];
    if (b.least > result.all[result.tightest].least) result.tightest = i;
    if (b.scope == placement) continue;
    if (b.least > result.all[result.binding].least) result.binding = i;
    if (b.resource != "critical_path" && b.least > result.all[result.steady].least) result.steady = i;
  }
  result.predicted = s.predicted;
  return result;
}

/// One line: what was predicted or reached, how many times the largest bound that is, and what binds.
[[nodiscard]] inline std::string bounds_line(const bounds& b) {
  std::string text = "predicted " + microseconds(b.predicted) + " us, " + ratio(b.predicted, b.largest().least) + " times the bound (" + b.largest().resource + ", " +
                     microseconds(b.largest().least) + " us)";
  if (b.tightest != b.binding)
    text += "; in this placement " + ratio(b.predicted, b.in_placement().least) + " times (" + b.in_placement().resource + ", " + microseconds(b.in_placement().least) + " us)";
  return text;
}

/// The bounds as a table in text, with the one that binds, the prediction and the gap.
[[nodiscard]] inline std::string bounds_report(const bounds& b) {
  std::string text = "lower bounds for one input, microseconds\n";
  constexpr const char* headings[] = {"of every program", "of every choice of strategies", "of this decomposition", "of this placement"};
  for (std::size_t scope = 0; scope < std::size(headings); ++scope) {
    bool any = false;
    for (std::size_t i = 0; i < b.all.size(); ++i) {
      if (static_cast<std::size_t>(b.all[i].scope) != scope) continue;
      if (!std::exchange(any, true)) text += std::string("\n") + headings[scope] + "\n";
      text += "  " + left(b.all[i].resource, 15) + right(microseconds(b.all[i].least), 14) + (i == b.binding ? " *" : "  ") + " " + b.all[i].of + "\n";
    }
  }
  text += "\nbinds: " + b.largest().resource + "\npredicted: " + microseconds(b.predicted) + ", " + ratio(b.predicted, b.largest().least) + " times the largest bound of every placement\n";
  if (b.tightest != b.binding)
    text += "in this placement: " + b.in_placement().resource + ", " + ratio(b.predicted, b.in_placement().least) + " times\n";
  text += "between inputs: at least " + microseconds(b.of_interval().least) + ", by " + b.of_interval().resource + "\n";
  return text;
}

}  // namespace raptor::report
