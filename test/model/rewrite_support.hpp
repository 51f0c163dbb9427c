#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "raptor/model/check.hpp"
#include "raptor/model/edit.hpp"
#include "raptor/model/graph.hpp"
#include "raptor/model/print.hpp"
#include "raptor/model/reference.hpp"

/// Small model graphs for tests, and the comparison of what two of them compute.
namespace raptor::model::testing {

/// Numbers of a fixed sequence, in [-1, 1).
class numbers {
 public:
  explicit numbers(std::uint32_t seed = 1) : state_(seed) {}
  float next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<float>(state_ >> 8) / static_cast<float>(1u << 23) - 1.0F;
  }
  std::size_t below(std::size_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 8) % n;
  }
  std::vector<float> list(const shape& sizes) {
    std::vector<float> values(static_cast<std::size_t>(element_count(sizes)));
    for (auto& v : values) v = next();
    return values;
  }

 private:
  std::uint32_t state_;
};

/// A graph under construction. Node names are n0, n1, …; tensors are named after them.
struct net {
  graph g;
  numbers random;
  int made = 0;

  tensor_id input(shape sizes) {
    const auto t = g.add_tensor({"x" + std::to_string(g.inputs.size()), element_type::f32, std::move(sizes), nullptr});
    g.inputs.push_back(t);
    return t;
  }
  tensor_id constant_of(shape sizes, std::vector<float> values) {
    return g.add_tensor({"c" + std::to_string(made++), element_type::f32, std::move(sizes), std::make_shared<const constant>(constant{std::move(values)})});
  }
  tensor_id weights(const shape& sizes) { return constant_of(sizes, random.list(sizes)); }
  tensor_id add(operation op, std::vector<tensor_id> inputs, shape sizes) {
    const std::string name = "n" + std::to_string(made++);
    const auto t = g.add_tensor({name, element_type::f32, std::move(sizes), nullptr});
    g.add_node({std::move(op), std::move(inputs), {t}, {name, "Test", "", 1}});
    return t;
  }
  tensor_id add(operation op, std::vector<tensor_id> inputs) {
    std::vector<shape> operands;
    for (const auto t : inputs) operands.push_back(g.at(t).sizes);
    auto sizes = infer_shape(op, operands).value();
    return add(std::move(op), std::move(inputs), std::move(sizes));
  }
  /// Convolution with random weights, kernel 3 and padding 1.
  tensor_id conv(tensor_id x, std::int64_t channels, bool bias, std::int64_t groups = 1) {
    convolution op{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, groups};
    std::vector<tensor_id> inputs{x, weights({channels, g.at(x).sizes[1] / groups, 3, 3})};
    if (bias) inputs.push_back(weights({channels}));
    return add(std::move(op), std::move(inputs));
  }
  tensor_id batch_norm(tensor_id x) {
    const shape channels{g.at(x).sizes[1]};
    auto variance = random.list(channels);
    for (auto& v : variance) v = std::fabs(v) + 0.1F;
    const auto scale = weights(channels), shift = weights(channels), mean = weights(channels);
    return add(batch_normalization{1e-3F}, {x, scale, shift, mean, constant_of(channels, std::move(variance))});
  }
  graph done(std::vector<tensor_id> outputs) {
    g.outputs = std::move(outputs);
    return g;
  }
};

/// Largest difference between what two graphs compute on the same numbers, relative to the largest output or 1.
inline double difference(const graph& a, const graph& b, std::uint32_t seed = 7) {
  numbers random(seed);
  std::vector<tensor_value> inputs;
  for (const auto t : a.inputs) inputs.push_back(make_value(a.at(t).sizes, random.list(a.at(t).sizes)));
  const auto x = evaluate(a, inputs), y = evaluate(b, inputs);
  if (x.size() != y.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i].sizes != y[i].sizes) return INFINITY;
    double largest = 1, error = 0;
    for (std::size_t k = 0; k < x[i].floats().size(); ++k) {
      const double left = double{x[i].floats()[k]}, right = double{y[i].floats()[k]};
      if (std::isnan(left) != std::isnan(right)) return INFINITY;
      if (std::isnan(left) || left == right) continue;
      largest = std::max(largest, std::fabs(left));
      error = std::max(error, std::fabs(left - right));
    }
    worst = std::max(worst, error / largest);
  }
  return worst;
}

/// How many nodes of an operator a graph has, by its printed name.
inline int count(const graph& g, const std::string& op) {
  int found = 0;
  for (vertex v = 0; v < g.node_count(); ++v) found += name(g.at(v).op) == op ? 1 : 0;
  return found;
}
/// The first node of type Op; fails the test by an exception where there is none.
template <class Op>
const Op& first(const graph& g) {
  for (vertex v = 0; v < g.node_count(); ++v)
    if (const auto* op = std::get_if<Op>(&g.at(v).op)) return *op;
  throw error(error_code::internal, "no such node in the graph");
}

}  // namespace raptor::model::testing
