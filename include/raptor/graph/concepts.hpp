#pragma once

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/property_map/property_map.hpp>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "raptor/support/checked.hpp"

/// A facade over the Boost.Graph concepts: what the algorithms of raptor::graph and raptor::schedule ask of a graph type.
/// Any type that models VertexListGraph and IncidenceGraph works, boost's own or a foreign one with its free functions in
/// its own namespace. Costs, names and indices are injected as property maps.
namespace raptor::graph {

template <class G>
using vertex_of = typename boost::graph_traits<G>::vertex_descriptor;
template <class G>
using edge_of = typename boost::graph_traits<G>::edge_descriptor;

/// A pair of iterators as a range.
template <class Iterator>
struct iterator_range {
  Iterator first, last;
  [[nodiscard]] Iterator begin() const { return first; }
  [[nodiscard]] Iterator end() const { return last; }
};

/// The graph's own functions, found by argument-dependent lookup alone.
namespace lookup {
// These hide outer names that are equal (a namespace `target` among them), so that only the graph's namespace is searched.
void source();
void target();
void vertices();
void num_vertices();
void out_edges();

template <class G>
[[nodiscard]] auto vertices_of(const G& g) {
  auto [first, last] = vertices(g);
  return iterator_range<decltype(first)>{first, last};
}
template <class G>
[[nodiscard]] std::size_t vertex_count(const G& g) {
  return static_cast<std::size_t>(num_vertices(g));
}
template <class G>
[[nodiscard]] auto out_edges_of(vertex_of<G> v, const G& g) {
  auto [first, last] = out_edges(v, g);
  return iterator_range<decltype(first)>{first, last};
}
template <class G>
[[nodiscard]] vertex_of<G> edge_source(const edge_of<G>& e, const G& g) {
  return source(e, g);
}
template <class G>
[[nodiscard]] vertex_of<G> edge_target(const edge_of<G>& e, const G& g) {
  return target(e, g);
}

template <class G>
concept vertex_list = requires(const G& g) {
  { *vertices(g).first } -> std::convertible_to<vertex_of<G>>;
  { num_vertices(g) } -> std::integral;
};
template <class G>
concept incidence = requires(const G& g, vertex_of<G> v, edge_of<G> e) {
  { *out_edges(v, g).first } -> std::convertible_to<edge_of<G>>;
  { source(e, g) } -> std::convertible_to<vertex_of<G>>;
  { target(e, g) } -> std::convertible_to<vertex_of<G>>;
};
}  // namespace lookup

using lookup::edge_source;
using lookup::edge_target;
using lookup::out_edges_of;
using lookup::vertex_count;
using lookup::vertices_of;

/// VertexListGraph and IncidenceGraph: vertices(g), num_vertices(g), out_edges(v, g), source(e, g), target(e, g), with
/// boost::graph_traits naming the descriptors. Directed; parallel edges are allowed.
template <class G>
concept directed_graph = lookup::vertex_list<G> && lookup::incidence<G>;

/// A readable property map over `Key`: get(map, key), with boost::property_traits.
template <class Map, class Key>
concept maps_from = std::is_void_v<typename boost::property_traits<Map>::key_type> ||
                    std::convertible_to<Key, typename boost::property_traits<Map>::key_type>;
template <class Map, class Key>
concept readable_map = maps_from<Map, Key> && requires(const Map& map, const Key& key) {
  typename boost::property_traits<Map>::value_type;
  { get(map, key) } -> std::convertible_to<typename boost::property_traits<Map>::value_type>;
};
template <class Map>
using value_of = std::remove_cv_t<typename boost::property_traits<Map>::value_type>;

/// Maps each vertex to its own number in [0, num_vertices).
template <class Map, class G>
concept index_map_of = readable_map<Map, vertex_of<G>> && std::integral<value_of<Map>>;

/// The graph's own vertex index, get(boost::vertex_index, g).
template <class G>
using own_index = std::remove_cvref_t<decltype(get(boost::vertex_index, std::declval<const G&>()))>;
template <class G>
[[nodiscard]] own_index<G> index_of(const G& g) {
  return get(boost::vertex_index, g);
}
/// Number of one vertex.
template <class Index, class Vertex>
[[nodiscard]] std::size_t number(const Index& index, const Vertex& v) {
  return static_cast<std::size_t>(get(index, v));
}

/// Sum of two costs; integers throw on overflow.
template <class T>
[[nodiscard]] constexpr T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) return checked::add(a, b);
  else return a + b;
}

}  // namespace raptor::graph
