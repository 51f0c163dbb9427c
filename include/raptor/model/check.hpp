#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "raptor/model/graph.hpp"
#include "raptor/model/shape_inference.hpp"

namespace raptor::model {

/// Everything that is wrong with a model graph; empty: it is sound. The importer and every rewrite guarantee an empty list:
/// - every input and output id names a tensor; a node has one output, its required inputs are there, and it reads no later node;
/// - every tensor has a static shape within the limits, and constants have as many elements as their shape says;
/// - the result of every node has the shape that inference gives for its operands (check_result_shape);
/// - what is computed is f32; the edges of the adjacency list are exactly the uses of computed tensors;
/// - graph inputs are neither computed nor constant, and none is there twice; there is at least one output.
/// Cost: linear in nodes, edges and tensors.
[[nodiscard]] inline std::vector<std::string> find_faults(const graph& g) {
  std::vector<std::string> faults;
  const auto known = [&](tensor_id t) { return t.valid() && t.index() < g.tensors().size(); };
  for (const auto& t : g.tensors()) {
    const std::string place = "tensor \"" + t.name + "\"";
    try {
      const auto count = static_cast<std::size_t>(element_count(checked_shape(t.sizes)));
      if (!t.is_constant()) continue;
      const bool floats = std::holds_alternative<std::vector<float>>(t.data->values);
      if (floats != (t.type == element_type::f32)) faults.push_back(place + ": contents are not of its element type");
      else if ((floats ? t.data->floats().size() : t.data->integers().size()) != count)
        faults.push_back(place + ": contents do not have the size of its shape " + to_string(t.sizes));
    } catch (const error& e) {
      faults.push_back(place + ": " + e.what());
    }
  }
  std::set<tensor_id> inputs;
  for (const auto t : g.inputs) {
    if (!known(t)) { faults.emplace_back("a graph input is no tensor"); continue; }
    if (!inputs.insert(t).second) faults.push_back("graph input \"" + g.at(t).name + "\" is there twice");
    if (g.at(t).is_constant() || g.producer(t) != graph::no_vertex) faults.push_back("graph input \"" + g.at(t).name + "\" is constant or computed");
  }
  if (g.outputs.empty()) faults.emplace_back("the graph has no outputs");
  const auto available = [&](tensor_id t) { return g.at(t).is_constant() || g.producer(t) != graph::no_vertex || inputs.count(t) != 0; };
  for (const auto t : g.outputs) {
    if (!known(t)) faults.emplace_back("a graph output is no tensor");
    else if (!available(t)) faults.push_back("nothing computes graph output \"" + g.at(t).name + "\"");
  }
  using edge = std::pair<vertex, std::pair<std::uint32_t, std::size_t>>;  // producer, tensor, position
  for (vertex v = 0; v < g.node_count(); ++v) {
    const node& n = g.at(v);
    const std::string place = n.from.describe();
    bool sound = n.outputs.size() == 1 && known(n.outputs[0]);
    if (!sound) faults.push_back(place + ": needs one output");
    std::vector<shape> operands;
    std::vector<edge> expected, present;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      const auto t = n.inputs[i];
      if (!known(t)) {
        faults.push_back(place + ": input " + std::to_string(i) + " is no tensor");
        sound = false;
        continue;
      }
      if (!available(t)) faults.push_back(place + ": nothing computes its input \"" + g.at(t).name + "\"");
      if (g.producer(t) != graph::no_vertex) {
        if (g.producer(t) >= v) faults.push_back(place + ": reads \"" + g.at(t).name + "\" before it is computed");
        expected.push_back({g.producer(t), {t.value, i}});
      }
      if (g.at(t).type != element_type::f32) faults.push_back(place + ": computes with tensor \"" + g.at(t).name + "\" of type " + name(g.at(t).type));
      operands.push_back(g.at(t).sizes);
    }
    const auto [first, last] = boost::in_edges(v, g.structure());
    for (auto e = first; e != last; ++e) present.push_back({boost::source(*e, g.structure()), {g.structure()[*e].tensor.value, g.structure()[*e].position}});
    std::sort(expected.begin(), expected.end());
    std::sort(present.begin(), present.end());
    if (expected != present) faults.push_back(place + ": edges are not its operands");
    if (!sound) continue;
    const auto& result = g.at(n.outputs[0]);
    if (g.producer(n.outputs[0]) != v) faults.push_back(place + ": is not the producer of its output");
    if (result.is_constant() || result.type != element_type::f32) faults.push_back(place + ": result is constant or not f32");
    try {
      check_result_shape(n.op, operands, result.sizes);
    } catch (const error& e) {
      faults.push_back(place + ": " + e.what());
    }
  }
  return faults;
}

/// Throws internal with everything that find_faults finds. `stage` says after which step.
inline void check_graph(const graph& g, const std::string& stage = "model graph") {
  auto faults = find_faults(g);
  if (faults.empty()) return;
  const std::string message = faults.size() == 1 ? faults[0] : std::to_string(faults.size()) + " faults";
  if (faults.size() == 1) faults.clear();  // the message says it
  throw error(error_code::internal, message, stage, "this is a fault in Raptor, please report it").with_details(std::move(faults));
}

}  // namespace raptor::model
