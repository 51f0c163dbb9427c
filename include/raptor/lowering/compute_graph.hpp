#pragma once

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "raptor/layout/physical.hpp"
#include "raptor/lowering/kernel.hpp"
#include "raptor/support/error.hpp"

namespace raptor::lowering {

/// Where a tensor of the compute graph starts its life.
enum class origin : std::uint8_t { computed, input, constant };

/// A tensor between computes. Inputs and constants lie densely in global memory and are loaded by the cores that read
/// them; `layout` is then that of the loaded copy. Results are stored densely to global memory by the cores that compute them.
struct value {
  std::string name;
  shape sizes;
  layout::physical layout = layout::physical::dense;
  origin from = origin::computed;
  model::constant_ptr data;  ///< constants: f32
  std::int32_t input = -1;   ///< inputs: position among the graph's inputs (several values may be copies of one input)
  std::int32_t result = -1;  ///< position among the graph's outputs
};

struct dependency {
  std::uint32_t value = 0;
};
using adjacency = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, compute, dependency>;
using vertex = boost::graph_traits<adjacency>::vertex_descriptor;

/// Computes on a Boost.Graph adjacency_list, tensors beside it. Vertex order is a topological order.
class compute_graph {
 public:
  std::uint32_t add_value(value v) {
    values_.push_back(std::move(v));
    writers_.emplace_back();
    return static_cast<std::uint32_t>(values_.size() - 1);
  }
  /// Adds a compute, with an edge from every compute that writes what it reads.
  vertex add_compute(compute c) {
    const vertex v = boost::add_vertex(adjacency_);
    for (const auto& a : c.accesses) {
      if (a.mode == access_mode::read) {
        for (const auto writer : writers_.at(a.value))
          if (writer != v && !boost::edge(writer, v, adjacency_).second && meets(writer, a)) boost::add_edge(writer, v, dependency{a.value}, adjacency_);
      }
    }
    for (const auto& a : c.accesses)
      if (a.mode != access_mode::read) {
        ensure(values_.at(a.value).from == origin::computed, "compute writes an input or a constant", c.name);
        writers_.at(a.value).push_back(v);
      }
    adjacency_[v] = std::move(c);
    return v;
  }

  [[nodiscard]] const adjacency& structure() const noexcept { return adjacency_; }
  [[nodiscard]] std::size_t size() const noexcept { return boost::num_vertices(adjacency_); }
  [[nodiscard]] const compute& at(vertex v) const { return adjacency_[v]; }
  /// References to a value stay valid when others are added.
  [[nodiscard]] const std::deque<value>& values() const noexcept { return values_; }
  [[nodiscard]] value& value_at(std::uint32_t v) { return values_.at(v); }
  /// Computes that write a value, in vertex order.
  [[nodiscard]] const std::vector<vertex>& writers(std::uint32_t v) const { return writers_.at(v); }

  struct port {
    std::string name;
    shape sizes;
  };
  std::vector<port> inputs, outputs;  ///< of the model, in graph order
  std::string name;

  /// May a compute write something of the box of an access?
  [[nodiscard]] bool meets(vertex writer, const access& box) const {
    const auto& accesses = adjacency_[writer].accesses;
    return std::any_of(accesses.begin(), accesses.end(), [&](const access& a) { return a.mode != access_mode::read && a.value == box.value && !never_meet(a, box); });
  }

 private:
  adjacency adjacency_;
  std::deque<value> values_;
  std::vector<std::vector<vertex>> writers_;
};

}  // namespace raptor::lowering
