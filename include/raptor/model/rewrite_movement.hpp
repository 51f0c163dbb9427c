#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "raptor/model/edit.hpp"
#include "raptor/model/fold.hpp"

/// Rewrites of operators that move elements. Each takes a graph apart (graph_edit), changes it and says whether it did.
/// All are exact. Cost: linear in nodes and edges, if nothing is folded.
namespace raptor::model::rewrite {

/// Evaluates every node whose operands are all constant; its result becomes a constant. Limits: those of model/fold.hpp.
[[nodiscard]] inline bool fold_constants(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    const node& current = e.nodes[n];
    if (graph_edit::erased(current) || current.inputs.empty()) continue;
    std::vector<tensor_value> values;
    for (const auto t : current.inputs)
      if (e.is_constant(t)) values.push_back({e.at(t).sizes, e.at(t).data});
    if (values.size() != current.inputs.size()) continue;
    const auto out = current.outputs[0];
    auto value = fold(current.op, values, e.at(out).sizes, current.from.describe());
    if (!value) continue;
    e.erase(n);
    e.tensors[out.index()].type = value->type();
    e.tensors[out.index()].data = std::move(value->data);
    changed = true;
  }
  return changed;
}

/// Whether the operator returns its first operand unchanged.
[[nodiscard]] inline bool is_no_op(const graph_edit& e, const node& n) {
  const shape& in = e.at(n.inputs[0]).sizes;
  const shape& out = e.at(n.outputs[0]).sizes;
  if (const auto* u = std::get_if<unary>(&n.op)) return u->kind == unary_kind::identity;
  if (std::holds_alternative<concat>(n.op)) return n.inputs.size() == 1;
  if (in != out) return false;
  if (const auto* t = std::get_if<transpose>(&n.op)) return std::is_sorted(t->permutation.begin(), t->permutation.end());
  if (const auto* p = std::get_if<pad>(&n.op)) {
    const auto zero = [](std::int64_t v) { return v == 0; };
    return std::all_of(p->begin.begin(), p->begin.end(), zero) && std::all_of(p->end.begin(), p->end.end(), zero);
  }
  if (const auto* s = std::get_if<slice>(&n.op))  // of the size of its operand: it reverses or does nothing
    return std::all_of(s->step.begin(), s->step.end(), [](std::int64_t v) { return v > 0; });
  if (const auto* c = std::get_if<channel_shuffle>(&n.op)) return c->groups == 1 || c->groups == in[1];
  return std::holds_alternative<reshape>(n.op);
}
/// Identity, Dropout, and what moves nothing. A graph output keeps its name: the operator before it takes the name over; where
/// that is impossible (the output is a graph input, a constant or another output) an identity stays.
[[nodiscard]] inline bool remove_no_ops(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    if (graph_edit::erased(e.nodes[n]) || !is_no_op(e, e.nodes[n])) continue;
    const auto in = e.nodes[n].inputs[0], out = e.nodes[n].outputs[0];
    if (e.alias(out, in)) {
      changed = true;
    } else if (!std::holds_alternative<unary>(e.nodes[n].op)) {
      e.replace(n, unary{unary_kind::identity, 0, 0}, {in});
      changed = true;
    }
  }
  return changed;
}

/// Reshape, transpose of [N, g, C/g, …] that swaps axes 1 and 2, reshape: a channel shuffle of an [N, C, H, W] tensor.
[[nodiscard]] inline bool recognize_channel_shuffle(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    if (graph_edit::erased(e.nodes[n]) || !std::holds_alternative<reshape>(e.nodes[n].op)) continue;
    const auto swapped = e.nodes[n].inputs[0];
    const auto* swap = e.produced_by<transpose>(swapped);
    if (swap == nullptr) continue;
    const auto split = e.nodes[e.producer(swapped)].inputs[0];
    if (e.produced_by<reshape>(split) == nullptr) continue;
    const auto source = e.nodes[e.producer(split)].inputs[0];
    const shape& x = e.at(source).sizes;
    const shape& parts = e.at(split).sizes;
    if (x.size() != 4 || e.at(e.nodes[n].outputs[0]).sizes != x || parts.size() < 4) continue;
    if (parts[0] != x[0] || parts[1] * parts[2] != x[1]) continue;
    bool only_swap = swap->permutation[1] == 2 && swap->permutation[2] == 1;
    for (std::size_t i = 0; only_swap && i < parts.size(); ++i) only_swap = i == 1 || i == 2 || swap->permutation[i] == static_cast<std::int64_t>(i);
    if (!only_swap) continue;
    e.replace(n, channel_shuffle{parts[1]}, {source});
    changed = true;
  }
  return changed;
}

/// A reshape of a reshape is one; a transpose of a transpose is one; a transpose that moves only axes of size 1 is a reshape.
[[nodiscard]] inline bool collapse_chains(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    if (graph_edit::erased(e.nodes[n])) continue;
    const auto in = e.nodes[n].inputs[0];
    if (std::holds_alternative<reshape>(e.nodes[n].op) && e.produced_by<reshape>(in) != nullptr) {
      e.replace(n, reshape{}, {e.nodes[e.producer(in)].inputs[0]});
      changed = true;
      continue;
    }
    const auto* outer = std::get_if<transpose>(&e.nodes[n].op);
    if (outer == nullptr) continue;
    if (const auto* inner = e.produced_by<transpose>(in)) {
      transpose both;
      for (const auto axis : outer->permutation) both.permutation.push_back(inner->permutation[static_cast<std::size_t>(axis)]);
      e.replace(n, std::move(both), {e.nodes[e.producer(in)].inputs[0]});
      changed = true;
      continue;
    }
    const shape& x = e.at(in).sizes;
    axis_values moved;  // axes with more than one element, in the order of the result
    for (const auto axis : outer->permutation)
      if (x[static_cast<std::size_t>(axis)] != 1) moved.push_back(axis);
    if (std::is_sorted(moved.begin(), moved.end()) && !std::is_sorted(outer->permutation.begin(), outer->permutation.end())) {
      e.replace(n, reshape{}, {in});
      changed = true;
    }
  }
  return changed;
}

/// A tensor in another shape, for rewrites: constants are reshaped at once, a shape that fits is left alone.
[[nodiscard]] inline tensor_id in_shape(graph_edit& e, tensor_id t, shape target, const origin& from, const std::string& name) {
  if (e.at(t).sizes == target) return t;
  if (e.is_constant(t)) return e.add_tensor({e.at(t).name + name, e.at(t).type, std::move(target), e.at(t).data});
  const std::string full = e.at(t).name + name;
  return e.add_node(reshape{}, {t}, from, full, std::move(target));
}

/// Every graph output is computed by a node, and each by one of its own: outputs that are constants, graph inputs or there twice
/// get an identity. So whoever places graph outputs never meets such a case.
[[nodiscard]] inline bool compute_outputs(graph_edit& e) {
  bool changed = false;
  std::vector<tensor_id> seen;
  for (std::size_t i = 0; i < e.outputs.size(); ++i) {
    const auto t = e.outputs[i];
    const bool again = std::find(seen.begin(), seen.end(), t) != seen.end();
    seen.push_back(t);
    if (e.producer(t) != graph_edit::no_node && !again) continue;
    const origin from{e.at(t).name + "~output", "Identity", "", 0};
    e.outputs[i] = e.add_node(unary{unary_kind::identity, 0, 0}, {t}, from, e.at(t).name + (again ? "~" + std::to_string(i) : ""), e.at(t).sizes);
    changed = true;
  }
  if (changed) e.index();
  return changed;
}

}  // namespace raptor::model::rewrite
