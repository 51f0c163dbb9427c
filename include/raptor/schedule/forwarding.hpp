#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/kernel_builder.hpp"
#include "raptor/lowering/tile_range.hpp"
#include "raptor/schedule/stages.hpp"

namespace raptor::schedule {

struct staged_graph {
  lowering::compute_graph computes;
  stage_plan plan;
};

namespace detail {

/// A compute that copies a box from one value to another of the same sizes and layout: rows of strips, or the first dimension, as lanes.
[[nodiscard]] inline lowering::compute copy_of_box(const lowering::compute_graph& g, std::uint32_t from, std::uint32_t to, const box& where) {
  using lowering::tile_begin;
  const auto& v = g.values()[to];
  const auto rank = v.sizes.size();
  const auto order = layout::memory_order(v.layout, rank);
  const auto outer = std::min(rank, std::max<std::size_t>(layout::fragment_dimensions(v.layout), 1));
  shape lanes;
  for (std::size_t i = 0; i < outer; ++i) lanes.push_back(where[order[i]].size());
  lowering::kernel_builder k(v.name, lanes);
  if (layout::fragment_dimensions(v.layout) > 0) k.current().most.assign(outer, 1);
  k.current().op = "forward";
  std::vector<affine> low(rank), high(rank), at(rank);
  for (std::size_t d = 0; d < rank; ++d) low[d] = at[d] = where[d].begin, high[d] = where[d].end;
  for (std::size_t i = 0; i < outer; ++i) {
    const auto d = order[i];
    low[d] = at[d] = tile_begin(i) + where[d].begin;
    high[d] = lowering::tile_end(i) + where[d].begin;
  }
  const auto x = k.reads(from, low, high), y = k.writes(to, low, high);
  // What follows the lanes is one run from the dimension on behind which everything is complete.
  auto run = rank;
  std::int64_t length = 1;
  while (run > outer) {
    --run;
    length *= where[order[run]].size();
    if (where[order[run]].size() != v.sizes[order[run]]) break;
  }
  bool extent = run == outer && outer == 1 && layout::fragment_dimensions(v.layout) == 0;  // rows of a dense tensor lie together too
  for (auto i = outer; i < rank; ++i) extent = extent && where[order[i]].size() == v.sizes[order[i]];
  const auto nest = [&](const auto& self, std::size_t i) -> void {
    if (i < run) return k.loop(where[order[i]].size(), [&](const affine& n) {
      at[order[i]] = n + where[order[i]].begin;
      self(self, i + 1);
    });
    if (extent || outer == 0 || layout::fragment_dimensions(v.layout) > 0) {
      k.copy(k.at(y, at), k.at(x, at), extent ? lowering::tile_extent(0) * length : affine(length));
      return;
    }
    k.loop(lowering::tile_extent(0), [&](const affine& n) {
      auto here = at;
      here[order[0]] += n;
      k.copy(k.at(y, here), k.at(x, here), length);
    });
  };
  nest(nest, outer);
  return k.take();
}

}  // namespace detail

/// Where a value lives longer than into the next stage, copies of it are made, one stage after another, and its readers read the copy of
/// the stage before theirs; parts that were written in different stages are gathered in the reader's stage. Graph inputs that a later
/// stage reads are copied in stage 0.
///
/// Requires: edges that go forward; no access in mode accumulate. Guarantees: what check_stages asks of edges and readers of inputs.
/// Vertex order stays topological; a graph in which nothing is to be forwarded is unchanged.
/// Cost: O(accesses + copies). Deterministic.
[[nodiscard]] inline staged_graph forward_values(const lowering::compute_graph& g, const stage_plan& plan) {
  using lowering::access;
  using lowering::access_mode;
  // By value, stages of writers; for each stage with readers the stages that they need something of. An input counts as written in stage 0.
  struct use {
    std::set<std::uint32_t> writers;
    std::map<std::uint32_t, std::set<std::uint32_t>> needs;  // reader's stage → stages of writers
    bool far = false;
  };
  std::vector<use> uses(g.values().size());
  for (lowering::vertex v = 0; v < g.size(); ++v)
    for (const auto& a : g.at(v).accesses) {
      auto& u = uses[a.value];
      if (a.mode != access_mode::read) {
        u.writers.insert(plan.stage[v]);
        continue;
      }
      const auto from = g.values()[a.value].from;
      if (from == lowering::origin::input) {
        u.needs[plan.stage[v]].insert(0);
        u.far = u.far || plan.stage[v] > 0;
      }
      if (from != lowering::origin::computed) continue;
      for (const auto w : g.writers(a.value)) {
        if (w == v || !g.meets(w, a)) continue;
        ensure(plan.stage[w] <= plan.stage[v], "stages: an edge goes backward", g.at(v).name);
        u.needs[plan.stage[v]].insert(plan.stage[w]);
        u.far = u.far || plan.stage[w] + 1 < plan.stage[v];
      }
    }

  staged_graph result;
  auto& out = result.computes;
  result.plan.cores = plan.cores;
  out.inputs = g.inputs, out.outputs = g.outputs, out.name = g.name;
  for (const auto& v : g.values()) out.add_value(v);

  // held[v][p][s]: the value in which stage s finds or passes on what stage p wrote; gathered[v][q]: what stage q reads where it needs several.
  struct copies {
    std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> held;
    std::map<std::uint32_t, std::uint32_t> gathered;
  };
  std::map<std::uint32_t, copies> of_value;
  const auto another = [&](std::uint32_t v, const std::string& suffix) {
    auto copy = g.values()[v];
    copy.name += suffix;
    copy.from = lowering::origin::computed, copy.input = copy.result = -1, copy.data = nullptr;
    return out.add_value(std::move(copy));
  };
  for (std::uint32_t v = 0; v < uses.size(); ++v) {
    auto& u = uses[v];
    if (!u.far) continue;
    auto& c = of_value[v];
    const bool input = g.values()[v].from == lowering::origin::input;
    if (input) u.writers = {0};
    for (const auto p : u.writers) {
      // The last writers keep the value; what earlier ones write is a value of its own, delivered where the value is a result. Of an input,
      // stage 0 makes a copy to pass on.
      auto& chain = c.held[p];
      chain[p] = !input && p == *u.writers.rbegin() ? v : another(v, "@" + std::to_string(p));
      if (!input) out.value_at(chain[p]).result = g.values()[v].result;
      std::uint32_t last = p;
      for (const auto& [q, needed] : u.needs)
        if (needed.contains(p) && q > p) last = std::max(last, q - 1);
      for (auto s = p + 1; s <= last; ++s) chain[s] = another(v, "@" + std::to_string(s));
    }
    for (const auto& [q, needed] : u.needs)
      if (needed.size() > 1) c.gathered[q] = another(v, "@" + std::to_string(q) + ".all");
  }
  const auto source = [&](const copies& c, std::uint32_t p, std::uint32_t q) { return c.held.at(p).at(q == p ? p : q - 1); };

  const auto add = [&](lowering::compute c, std::uint32_t stage, std::uint32_t node) {
    c.node = node;
    out.add_compute(std::move(c));
    result.plan.stage.push_back(stage);
  };
  // Passes on what stage p wrote into `where`.
  const auto pass_on = [&](std::uint32_t v, std::uint32_t p, const box& where, std::uint32_t node) {
    const auto& c = of_value.at(v);
    const auto& chain = c.held.at(p);
    for (auto s = chain.begin(); std::next(s) != chain.end(); ++s) add(detail::copy_of_box(out, s->second, std::next(s)->second, where), std::next(s)->first, node);
    for (const auto& [q, all] : c.gathered)
      if (uses[v].needs.at(q).contains(p)) add(detail::copy_of_box(out, source(c, p, q), all, where), q, node);
  };
  // Behind which compute which boxes are passed on: each behind its writer, or, where the writers' boxes mix, all behind the last one.
  std::vector<std::vector<std::pair<std::uint32_t, box>>> written(g.size());
  for (const auto& [v, c] : of_value)
    for (const auto& [p, chain] : c.held) {
      std::vector<std::pair<lowering::vertex, box>> boxes;
      for (const auto w : g.writers(v))
        if (plan.stage[w] == p && element_count(g.at(w).lanes) > 0)
          for (const auto& a : g.at(w).accesses) {
            if (a.mode == access_mode::read || a.value != v) continue;
            box where = intersect(lowering::hull_of(a, g.at(w)), whole(g.values()[v].sizes));
            if (!is_empty(where) && std::find(boxes.begin(), boxes.end(), std::pair{w, where}) == boxes.end()) boxes.emplace_back(w, std::move(where));
          }
      const bool mixed = std::any_of(boxes.begin(), boxes.end(), [&](const auto& a) {
        return std::any_of(boxes.begin(), boxes.end(), [&](const auto& b) { return &a != &b && !is_empty(intersect(a.second, b.second)); });
      });
      if (mixed) {
        for (std::size_t i = 1; i < boxes.size(); ++i) boxes[0] = {std::max(boxes[0].first, boxes[i].first), hull(boxes[0].second, boxes[i].second)};
        boxes.resize(1);
      }
      for (auto& [w, where] : boxes) written[w].emplace_back(v, std::move(where));
    }
  for (const auto& [v, c] : of_value)
    if (g.values()[v].from == lowering::origin::input) {
      const box all = whole(g.values()[v].sizes);
      if (is_empty(all)) continue;
      add(detail::copy_of_box(out, v, c.held.at(0).at(0), all), 0, 0xffffffffu);
      pass_on(v, 0, all, 0xffffffffu);
    }

  for (lowering::vertex v = 0; v < g.size(); ++v) {
    auto compute = g.at(v);
    const auto stage = plan.stage[v];
    for (auto& a : compute.accesses) {
      const auto known = of_value.find(a.value);
      if (known == of_value.end()) continue;
      const auto& c = known->second;
      if (a.mode != access_mode::read) {
        a.value = c.held.at(stage).at(stage);
      } else if (const auto all = c.gathered.find(stage); all != c.gathered.end()) {
        a.value = all->second;
      } else if (g.values()[a.value].from == lowering::origin::input) {
        if (stage > 0) a.value = source(c, 0, stage);
      } else if (const auto needed = uses[a.value].needs.find(stage); needed != uses[a.value].needs.end()) {
        a.value = source(c, *needed->second.begin(), stage);
      } else if (const auto own = c.held.find(stage); own != c.held.end()) {  // what it writes itself
        a.value = own->second.at(stage);
      }
    }
    out.add_compute(std::move(compute));
    result.plan.stage.push_back(stage);
    for (const auto& [value, where] : written[v]) pass_on(value, stage, where, g.at(v).node);
  }
  return result;
}

}  // namespace raptor::schedule
