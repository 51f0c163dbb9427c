#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <string>
#include <utility>
#include <vector>

#include "raptor/model/operators.hpp"
#include "raptor/model/tensor.hpp"
#include "raptor/support/error.hpp"

namespace raptor::model {

/// Where a node came from, for diagnostics: what the file called it.
struct origin {
  std::string node;    ///< name of the node; made up from the operator and its position where the file has none
  std::string op;      ///< ONNX operator
  std::string domain;  ///< empty: ai.onnx
  std::int64_t opset = 0;

  /// `Conv "conv1" (ai.onnx, opset 13)`
  [[nodiscard]] std::string describe() const {
    return op + " \"" + node + "\" (" + (domain.empty() ? "ai.onnx" : domain) + ", opset " + std::to_string(opset) + ")";
  }
};

/// A vertex: one operator. `inputs` are in ONNX order; a missing optional input is an invalid id.
struct node {
  operation op;
  std::vector<tensor_id> inputs;
  std::vector<tensor_id> outputs;
  origin from;
};

/// An edge: the tensor that flows and the input position at the consumer.
struct use {
  tensor_id tensor;
  std::size_t position = 0;
};

using adjacency = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, node, use>;
using vertex = boost::graph_traits<adjacency>::vertex_descriptor;

/// A model: operators on a Boost.Graph adjacency_list, tensors beside it. Nodes are added in topological order
/// (producers first), so vertex order is a topological order. Rewrites build a new graph; constants are shared.
class graph {
 public:
  static constexpr vertex no_vertex = static_cast<vertex>(-1);

  tensor_id add_tensor(tensor t) {
    tensors_.push_back(std::move(t));
    producers_.push_back(no_vertex);
    return tensor_id(tensors_.size() - 1);
  }
  /// Adds a node and its edges. Errors: internal, where an input is unknown or an output already has a producer.
  vertex add_node(node n) {
    const vertex v = boost::add_vertex(adjacency_);
    for (const auto t : n.outputs) {
      ensure(t.index() < tensors_.size() && producers_[t.index()] == no_vertex, "model graph: output has a producer", n.from.describe());
      producers_[t.index()] = v;
    }
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (!n.inputs[i].valid()) continue;
      const auto producer = producers_.at(n.inputs[i].index());
      ensure(producer != v, "model graph: node reads its own output", n.from.describe());
      if (producer != no_vertex) boost::add_edge(producer, v, use{n.inputs[i], i}, adjacency_);
    }
    adjacency_[v] = std::move(n);
    return v;
  }

  [[nodiscard]] const adjacency& structure() const noexcept { return adjacency_; }
  [[nodiscard]] std::size_t node_count() const noexcept { return boost::num_vertices(adjacency_); }
  [[nodiscard]] const node& at(vertex v) const { return adjacency_[v]; }
  [[nodiscard]] const std::vector<tensor>& tensors() const noexcept { return tensors_; }
  [[nodiscard]] const tensor& at(tensor_id t) const { return tensors_.at(t.index()); }
  [[nodiscard]] tensor& at(tensor_id t) { return tensors_.at(t.index()); }
  /// The vertex that computes a tensor; no_vertex for constants and graph inputs.
  [[nodiscard]] vertex producer(tensor_id t) const { return producers_.at(t.index()); }

  std::string name;
  std::vector<tensor_id> inputs;   ///< in graph order, without initializers
  std::vector<tensor_id> outputs;  ///< in graph order
  std::vector<std::string> notes;  ///< what the importer assumed, for example a symbolic dimension taken as 1

 private:
  adjacency adjacency_;
  std::vector<tensor> tensors_;
  std::vector<vertex> producers_;
};

}  // namespace raptor::model
