#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "raptor/model/graph.hpp"
#include "raptor/model/shape_inference.hpp"

namespace raptor::model {

/// A model graph taken apart so that rewrites can change it: node slots that can be emptied, tensors that can be replaced.
/// `build` gives a graph again: sorted, without what no output needs. A rewrite is `graph_edit e(g); …; return e.build();`.
///
/// Guarantees: `build` orders nodes topologically and keeps the order of slots where it can; its result depends on nothing else.
/// Errors: malformed, where the nodes form a cycle. Cost: linear in nodes, tensors and edges (sorting: times log of the nodes).
class graph_edit {
 public:
  /// Node slots; an erased node has no outputs. Slots of the original graph have the index of their vertex.
  std::vector<node> nodes;
  std::vector<tensor> tensors;
  std::vector<tensor_id> inputs, outputs;
  std::string name;
  std::vector<std::string> notes;

  graph_edit() = default;
  explicit graph_edit(const graph& g)
      : tensors(g.tensors()), inputs(g.inputs), outputs(g.outputs), name(g.name), notes(g.notes) {
    nodes.reserve(g.node_count());
    for (vertex v = 0; v < g.node_count(); ++v) nodes.push_back(g.at(v));
    index();
  }

  /// Recomputes producers and users. `add`, `erase` and `redirect` keep them up to date by themselves.
  void index() {
    producers_.assign(tensors.size(), no_node);
    users_.assign(tensors.size(), {});
    output_uses_.assign(tensors.size(), 0);
    for (std::size_t n = 0; n < nodes.size(); ++n) attach(n);
    for (const auto t : outputs) ++output_uses_.at(t.index());
  }

  static constexpr std::size_t no_node = static_cast<std::size_t>(-1);
  [[nodiscard]] std::size_t producer(tensor_id t) const { return t.valid() ? producers_.at(t.index()) : no_node; }
  /// Nodes that read the tensor, one entry a position that reads it, in no particular order.
  [[nodiscard]] const std::vector<std::size_t>& users(tensor_id t) const { return users_.at(t.index()); }
  [[nodiscard]] bool is_output(tensor_id t) const { return output_uses_.at(t.index()) != 0; }
  /// Whether exactly one node position reads the tensor, and no graph output does.
  [[nodiscard]] bool has_one_use(tensor_id t) const { return users(t).size() == 1 && !is_output(t); }
  [[nodiscard]] const tensor& at(tensor_id t) const { return tensors.at(t.index()); }
  [[nodiscard]] bool is_constant(tensor_id t) const { return t.valid() && at(t).is_constant(); }
  /// The operator of type Op that computes the tensor, or null.
  template <class Op>
  [[nodiscard]] const Op* produced_by(tensor_id t) const {
    const auto n = producer(t);
    return n == no_node ? nullptr : std::get_if<Op>(&nodes[n].op);
  }
  [[nodiscard]] static bool erased(const node& n) noexcept { return n.outputs.empty(); }

  tensor_id add_tensor(tensor t) {
    tensors.push_back(std::move(t));
    producers_.push_back(no_node);
    users_.emplace_back();
    output_uses_.push_back(0);
    return tensor_id(tensors.size() - 1);
  }
  tensor_id add_constant(std::string tensor_name, shape sizes, std::vector<float> values) {
    return add_tensor({std::move(tensor_name), element_type::f32, std::move(sizes), std::make_shared<const constant>(constant{std::move(values)})});
  }
  /// Adds a node that computes a new f32 tensor and returns the tensor.
  tensor_id add_node(operation op, std::vector<tensor_id> in, origin from, std::string tensor_name, shape sizes) {
    const tensor_id out = add_tensor({std::move(tensor_name), element_type::f32, std::move(sizes), nullptr});
    nodes.push_back({std::move(op), std::move(in), {out}, std::move(from)});
    attach(nodes.size() - 1);
    return out;
  }
  /// Empties a slot; its outputs have no producer then.
  void erase(std::size_t n) {
    detach(n);
    nodes[n].outputs.clear();
    nodes[n].inputs.clear();
  }
  /// Gives a node another operator and inputs; the outputs stay.
  void replace(std::size_t n, operation op, std::vector<tensor_id> in) {
    detach(n);
    nodes[n].op = std::move(op);
    nodes[n].inputs = std::move(in);
    attach(n);
  }
  /// Everyone who reads `from` reads `to` instead, graph outputs included.
  void redirect(tensor_id from, tensor_id to) {
    if (from == to) return;
    for (const auto n : users_[from.index()])
      for (auto& t : nodes[n].inputs)
        if (t == from) t = to;
    auto& moved = users_[from.index()];
    users_[to.index()].insert(users_[to.index()].end(), moved.begin(), moved.end());
    moved.clear();
    for (auto& t : outputs)
      if (t == from) t = to;
    output_uses_[to.index()] += std::exchange(output_uses_[from.index()], 0);
  }
  /// `from`, computed by a node that is to vanish, becomes another name of `to`: readers are redirected and the producer erased.
  /// Where `from` is a graph output its name must survive: then `to` takes it over, if it may. Returns whether it was done.
  bool alias(tensor_id from, tensor_id to) {
    if (is_output(from)) {
      if (is_output(to) || is_constant(to) || producer(to) == no_node) return false;
      tensors[to.index()].name = tensors[from.index()].name;
    }
    const auto n = producer(from);
    redirect(from, to);
    if (n != no_node) erase(n);
    return true;
  }

  /// Sorted, compacted, only with what the outputs need. Graph inputs stay, used or not.
  [[nodiscard]] graph build() const {
    // What the outputs need, backwards.
    std::vector<bool> needed(nodes.size(), false);
    std::vector<std::size_t> stack;
    const auto need = [&](tensor_id t) {
      const auto n = producer(t);
      if (n == no_node || needed[n]) return;
      needed[n] = true;
      stack.push_back(n);
    };
    for (const auto t : outputs) need(t);
    while (!stack.empty()) {
      const auto n = stack.back();
      stack.pop_back();
      for (const auto t : nodes[n].inputs) need(t);
    }
    // Kahn's algorithm; among the ready nodes the lowest slot first.
    std::vector<std::size_t> waiting(nodes.size(), 0);
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    std::size_t total = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (!needed[n]) continue;
      ++total;
      for (const auto t : nodes[n].inputs)
        if (producer(t) != no_node) ++waiting[n];
      if (waiting[n] == 0) ready.push(n);
    }
    graph g;
    g.name = name;
    g.notes = notes;
    std::vector<tensor_id> renamed(tensors.size());
    const auto copy = [&](tensor_id t) {
      if (!t.valid()) return t;
      auto& id = renamed[t.index()];
      if (!id.valid()) id = g.add_tensor(tensors[t.index()]);
      return id;
    };
    for (const auto t : inputs) g.inputs.push_back(copy(t));
    std::size_t placed = 0;
    while (!ready.empty()) {
      const auto n = ready.top();
      ready.pop();
      ++placed;
      node made{nodes[n].op, {}, {}, nodes[n].from};
      for (const auto t : nodes[n].inputs) made.inputs.push_back(copy(t));
      for (const auto t : nodes[n].outputs) made.outputs.push_back(copy(t));
      g.add_node(std::move(made));
      for (const auto t : nodes[n].outputs)
        for (const auto user : users_[t.index()])
          if (needed[user] && --waiting[user] == 0) ready.push(user);
    }
    if (placed != total) throw error(error_code::malformed, "the nodes of the graph form a cycle");
    for (const auto t : outputs) g.outputs.push_back(copy(t));
    return g;
  }

 private:
  void attach(std::size_t n) {
    for (const auto t : nodes[n].outputs) producers_.at(t.index()) = n;
    for (const auto t : nodes[n].inputs)
      if (t.valid()) users_.at(t.index()).push_back(n);
  }
  void detach(std::size_t n) {
    for (const auto t : nodes[n].outputs)
      if (producers_[t.index()] == n) producers_[t.index()] = no_node;
    for (const auto t : nodes[n].inputs)
      if (t.valid()) std::erase(users_[t.index()], n);
  }

  std::vector<std::size_t> producers_;
  std::vector<std::vector<std::size_t>> users_;
  std::vector<std::uint32_t> output_uses_;
};

/// The graph without nodes and tensors that no output needs.
[[nodiscard]] inline graph remove_dead(const graph& g) { return graph_edit(g).build(); }

}  // namespace raptor::model
