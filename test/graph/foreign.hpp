#pragma once

#include <boost/graph/graph_traits.hpp>
#include <boost/property_map/property_map.hpp>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

/// A graph type that Boost.Graph knows nothing of: compressed rows, with the free functions of VertexListGraph and
/// IncidenceGraph in its own namespace. Its vertices are handles, not numbers, so that nothing may assume numbers.
namespace foreign {

struct node {
  std::size_t id = 0;
  friend bool operator==(node, node) = default;
};
struct arc {
  std::size_t position = 0;
};

struct csr {
  std::vector<std::size_t> first;  ///< of each node, and the end
  std::vector<std::size_t> from, to;
};

/// From arcs sorted by their source.
inline csr make(std::size_t nodes, const std::vector<std::pair<std::size_t, std::size_t>>& arcs) {
  csr g;
  g.first.assign(nodes + 1, 0);
  for (const auto& [a, b] : arcs) {
    ++g.first[a + 1];
    g.from.push_back(a);
    g.to.push_back(b);
  }
  for (std::size_t i = 0; i < nodes; ++i) g.first[i + 1] += g.first[i];
  return g;
}

template <class Handle>
struct counter {
  using iterator_category = std::input_iterator_tag;
  using value_type = Handle;
  using difference_type = std::ptrdiff_t;
  using reference = Handle;
  using pointer = const Handle*;
  std::size_t at = 0;
  Handle operator*() const { return Handle{at}; }
  counter& operator++() {
    ++at;
    return *this;
  }
  counter operator++(int) {
    const auto before = *this;
    ++at;
    return before;
  }
  friend bool operator==(counter, counter) = default;
};

inline std::pair<counter<node>, counter<node>> vertices(const csr& g) { return {{0}, {g.first.size() - 1}}; }
inline std::size_t num_vertices(const csr& g) { return g.first.size() - 1; }
inline std::pair<counter<arc>, counter<arc>> out_edges(node v, const csr& g) { return {{g.first[v.id]}, {g.first[v.id + 1]}}; }
inline node source(arc e, const csr& g) { return {g.from[e.position]}; }
inline node target(arc e, const csr& g) { return {g.to[e.position]}; }

/// The index map that the caller injects.
struct numbering {
  using key_type = node;
  using value_type = std::size_t;
  using reference = std::size_t;
  using category = boost::readable_property_map_tag;
};
inline std::size_t get(numbering, node v) { return v.id; }

}  // namespace foreign

template <>
struct boost::graph_traits<foreign::csr> {
  using vertex_descriptor = foreign::node;
  using edge_descriptor = foreign::arc;
  using vertex_iterator = foreign::counter<foreign::node>;
  using out_edge_iterator = foreign::counter<foreign::arc>;
  using directed_category = boost::directed_tag;
  using edge_parallel_category = boost::allow_parallel_edge_tag;
  struct traversal_category : boost::incidence_graph_tag, boost::vertex_list_graph_tag {};
  using vertices_size_type = std::size_t;
  using edges_size_type = std::size_t;
  using degree_size_type = std::size_t;
};
