#pragma once

#include "raptor/model/graph.hpp"
#include "raptor/model/reference_contraction.hpp"
#include "raptor/model/reference_elementwise.hpp"
#include "raptor/model/reference_movement.hpp"
#include "raptor/model/reference_window.hpp"

/// The reference evaluator: what a model computes, by plain loops over the definitions of the operators. Independent of every
/// layout and lowering. Sums are taken in double; each tensor is rounded to f32 once.
namespace raptor::model {

struct evaluation_options {
  std::int64_t element_limit = reference::default_element_limit;  ///< largest tensor that may be made, in elements
};

/// Evaluates one operator. `inputs` in ONNX order, absent ones default-constructed; `outputs`: the shapes of its results.
/// `place` names the node in errors.
/// Errors: mismatch, where inputs, attributes and output shapes contradict each other; unsupported, for integers where only
/// floats are defined; capacity, where the result exceeds the limit.
/// Cost: the multiply-adds of the definition. Deterministic.
[[nodiscard]] inline std::vector<tensor_value> evaluate_node(const operation& op, std::span<const tensor_value> inputs,
                                                             std::span<const shape> outputs, std::string place = {},
                                                             const evaluation_options& options = {}) {
  const reference::call c{inputs, outputs, place.empty() ? name(op) : std::move(place), options.element_limit};
  const auto run = [&] {
    for (const auto& in : inputs) {
      if (!in.present()) continue;
      const auto elements = in.type() == element_type::f32 ? in.floats().size() : in.integers().size();
      c.require(c.count(in.sizes) == elements, "an input of shape " + to_string(in.sizes) + " with " + std::to_string(elements) + " elements");
    }
    c.require(outputs.size() == 1, "every operator of a model graph has one output");
    return std::visit([&](const auto& o) { return reference::evaluate(o, c); }, op);
  };
  try {
    return {run()};
  } catch (const error& e) {
    if (!e.place().empty()) throw;
    throw error(e.code(), e.what(), c.place, e.hint());  // an overflow of sizes does not know its node
  }
}

/// Evaluates a graph on its inputs, in graph order. Returns the value of every tensor (by tensor id) where `keep_all`,
/// otherwise only of the graph outputs and constants; the other entries are not present().
/// Errors: mismatch, where the inputs do not have the number, shapes and element types that the graph declares; else as
/// evaluate_node, with the node as the place. Memory: a tensor is freed after its last use.
[[nodiscard]] inline std::vector<tensor_value> evaluate_tensors(const graph& g, std::span<const tensor_value> inputs, bool keep_all = true,
                                                                const evaluation_options& options = {}) {
  if (inputs.size() != g.inputs.size())
    throw error(error_code::mismatch,
                std::to_string(inputs.size()) + " inputs given to a model that has " + std::to_string(g.inputs.size()), g.name);
  std::vector<tensor_value> values(g.tensors().size());
  for (std::size_t t = 0; t < values.size(); ++t) {
    const auto& tensor = g.tensors()[t];
    if (tensor.data) values[t] = {tensor.sizes, tensor.data};
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& tensor = g.at(g.inputs[i]);
    const bool floats = tensor.type == element_type::f32;
    if (!inputs[i].present() || inputs[i].sizes != tensor.sizes || (inputs[i].type() == element_type::f32) != floats)
      throw error(error_code::mismatch,
                  "input \"" + tensor.name + "\" should be " + name(tensor.type) + " " + to_string(tensor.sizes) +
                      (inputs[i].present() ? ", not " + std::string(name(inputs[i].type())) + " " + to_string(inputs[i].sizes) : ", not absent"),
                  g.name);
    values[g.inputs[i].index()] = inputs[i];
  }

  std::vector<std::size_t> uses(values.size());  // what is still to read; one more for what is kept
  for (vertex v = 0; v < g.node_count(); ++v)
    for (const auto t : g.at(v).inputs)
      if (t.valid()) ++uses[t.index()];
  for (const auto t : g.outputs) ++uses[t.index()];

  for (vertex v = 0; v < g.node_count(); ++v) {
    const auto& n = g.at(v);
    std::vector<tensor_value> operands;
    for (const auto t : n.inputs) {
      operands.push_back(t.valid() ? values.at(t.index()) : tensor_value{});
      if (t.valid() && !operands.back().present())
        throw error(error_code::mismatch, "tensor \"" + g.at(t).name + "\" is read before anything computes it", n.from.describe());
    }
    std::vector<shape> shapes;
    for (const auto t : n.outputs) shapes.push_back(g.at(t).sizes);
    auto results = evaluate_node(n.op, operands, shapes, n.from.describe(), options);
    for (std::size_t i = 0; i < results.size(); ++i) values[n.outputs[i].index()] = std::move(results[i]);
    if (keep_all) continue;
    for (const auto t : n.outputs)
      if (uses[t.index()] == 0) values[t.index()] = {};
    for (const auto t : n.inputs)
      if (t.valid() && --uses[t.index()] == 0 && !g.at(t).is_constant()) values[t.index()] = {};
  }
  return values;
}

/// Evaluates a graph on its inputs and returns its outputs, both in graph order. Errors and cost as evaluate_tensors.
///
///     const auto outputs = evaluate(g, inputs);
///     outputs[0].floats();  // row major, of shape outputs[0].sizes
[[nodiscard]] inline std::vector<tensor_value> evaluate(const graph& g, std::span<const tensor_value> inputs,
                                                        const evaluation_options& options = {}) {
  const auto values = evaluate_tensors(g, inputs, false, options);
  std::vector<tensor_value> outputs;
  for (const auto t : g.outputs) {
    outputs.push_back(values.at(t.index()));
    if (!outputs.back().present()) throw error(error_code::mismatch, "nothing computes output \"" + g.at(t).name + "\"", g.name);
  }
  return outputs;
}

}  // namespace raptor::model
