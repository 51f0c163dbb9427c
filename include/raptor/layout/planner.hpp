#pragma once

#include <string>
#include <vector>

#include "raptor/layout/alternatives.hpp"
#include "raptor/support/error.hpp"

namespace raptor::layout {

/// The chosen alternative of every node, by vertex of the model graph.
struct plan {
  std::vector<alternative> chosen;
  std::size_t rounds = 0;  ///< rounds until nothing changed
};

/// Layout of a tensor as its producer gives it: dense for graph inputs and constants.
[[nodiscard]] inline physical layout_of(const model::graph& g, const plan& p, model::tensor_id t) {
  const auto producer = g.producer(t);
  return producer == model::graph::no_vertex ? physical::dense : p.chosen[producer].result;
}

/// Rough number of instructions to bring a tensor from one layout into another: a gather a pixel, or a channel and row.
[[nodiscard]] inline double materialization_cost(const model::tensor& t, physical from, physical to) {
  if (from == to || t.is_constant()) return 0;
  if (t.sizes.size() != 4) return 0;
  const double rows = static_cast<double>(t.sizes[0] * t.sizes[2]);
  return rows * static_cast<double>(from == physical::dense ? t.sizes[3] : t.sizes[1]) * 2;
}

/// Throws internal unless every node has one of its alternatives.
inline void check_plan(const model::graph& g, const plan& p) {
  ensure(p.chosen.size() == g.node_count(), "layout plan: one alternative a node");
  for (model::vertex v = 0; v < g.node_count(); ++v) {
    bool known = false;
    for (const auto& a : alternatives_of(g, v))
      known = known || (a.operands == p.chosen[v].operands && a.result == p.chosen[v].result);
    ensure(known, "layout plan: not an alternative of the node", g.at(v).from.describe());
  }
}

/// Layout policy: the first, dense alternative everywhere (--pim-disable-spatial-planning).
///
/// Guarantees: a plan that check_plan accepts. Cost: O(nodes). Deterministic.
struct dense_layout {
  [[nodiscard]] plan operator()(const model::graph& g) const {
    plan p;
    for (model::vertex v = 0; v < g.node_count(); ++v) p.chosen.push_back(alternatives_of(g, v).front());
    return p;
  }
};

/// Layout policy: descent on one global potential, the sum of the alternatives' costs and of the materializations on the
/// edges (graph results are dense). It starts once with everything dense and once with the last alternatives, visits the
/// nodes alternately forward and backward, stops at the first round without a change, within 2 × nodes + 1 rounds (every
/// step lowers the potential, so it ends), and keeps the better end.
///
/// Guarantees: a plan that check_plan accepts, never of higher potential than dense_layout's. Cost: O(rounds × edges).
struct descending_layout {
  [[nodiscard]] plan operator()(const model::graph& g) const {
    plan p = dense_layout{}(g);
    std::vector<std::vector<alternative>> all;
    for (model::vertex v = 0; v < g.node_count(); ++v) all.push_back(alternatives_of(g, v));

    // Second start: the last alternative everywhere; keep the better of the two local minima.
    plan strips = p;
    for (model::vertex v = 0; v < g.node_count(); ++v) strips.chosen[v] = all[v].back();
    descend(g, all, p);
    descend(g, all, strips);
    return potential(g, strips) < potential(g, p) ? strips : p;
  }

  /// Costs of all chosen alternatives and of all materializations.
  [[nodiscard]] static double potential(const model::graph& g, const plan& p) {
    double sum = 0;
    for (model::vertex v = 0; v < g.node_count(); ++v) sum += local(g, p, v, p.chosen[v], false);
    for (const auto output : g.outputs) sum += materialization_cost(g.at(output), layout_of(g, p, output), physical::dense);
    return sum;
  }

 private:
  /// Cost of a node under an alternative with its operands' materializations and, where asked, its users'.
  static double local(const model::graph& g, const plan& p, model::vertex v, const alternative& a, bool with_users) {
    const auto& n = g.at(v);
    double cost = a.cost;
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i].valid())
        cost += materialization_cost(g.at(n.inputs[i]), layout_of(g, p, n.inputs[i]), a.operands[i]);
    if (!with_users) return cost;
    const auto [first, last] = boost::out_edges(v, g.structure());
    for (auto e = first; e != last; ++e) {
      const auto& use = g.structure()[*e];
      cost += materialization_cost(g.at(use.tensor), a.result, p.chosen[boost::target(*e, g.structure())].operands[use.position]);
    }
    for (const auto output : g.outputs)
      if (g.producer(output) == v) cost += materialization_cost(g.at(output), a.result, physical::dense);
    return cost;
  }

  static void descend(const model::graph& g, const std::vector<std::vector<alternative>>& all, plan& p) {
    const std::size_t count = g.node_count();
    bool changed = true;
    for (p.rounds = 0; changed && p.rounds < 2 * count + 1; ++p.rounds) {
      changed = false;
      for (std::size_t i = 0; i < count; ++i) {
        const model::vertex v = p.rounds % 2 == 0 ? i : count - 1 - i;
        for (const auto& candidate : all[v]) {
          if (local(g, p, v, candidate, true) < local(g, p, v, p.chosen[v], true)) {
            p.chosen[v] = candidate;
            changed = true;
          }
        }
      }
    }
  }
};

}  // namespace raptor::layout
