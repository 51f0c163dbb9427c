#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "raptor/emit/in_memory.hpp"
#include "raptor/model/graph.hpp"
#include "raptor/model/reference.hpp"
#include "raptor/sim/executor.hpp"
#include "raptor/sim/from_emitted.hpp"

/// What the examples share: a small model made by hand, and a run of a compiled image.
namespace small_model {

/// Elements that look random but are the same everywhere.
inline std::vector<float> numbers(std::int64_t count, std::uint32_t seed) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    result.push_back(static_cast<float>(seed >> 8) / 16777216.0F - 0.5F);
  }
  return result;
}

/// Convolution 3 × 3 (3 → 8 channels) and Relu on a 1 × 3 × 16 × 16 image.
inline raptor::model::graph convolution_and_relu() {
  using namespace raptor::model;
  graph g;
  g.name = "convolution and relu";
  const auto constant_of = [](std::vector<float> v) { return std::make_shared<const constant>(constant{std::move(v)}); };
  const auto x = g.add_tensor({"x", element_type::f32, {1, 3, 16, 16}, nullptr});
  const auto w = g.add_tensor({"w", element_type::f32, {8, 3, 3, 3}, constant_of(numbers(8 * 3 * 3 * 3, 1))});
  const auto b = g.add_tensor({"b", element_type::f32, {8}, constant_of(numbers(8, 2))});
  const auto y = g.add_tensor({"y", element_type::f32, {1, 8, 16, 16}, nullptr});
  const auto z = g.add_tensor({"z", element_type::f32, {1, 8, 16, 16}, nullptr});
  g.add_node({convolution{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, {x, w, b}, {y}, {"conv", "Conv", "", 13}});
  g.add_node({unary{unary_kind::relu, 0, 0}, {y}, {z}, {"relu", "Relu", "", 13}});
  g.inputs = {x};
  g.outputs = {z};
  return g;
}

/// Largest difference between an executed image and the reference evaluator, on one input.
inline double largest_difference(const raptor::model::graph& g, const raptor::memory::image& image) {
  using namespace raptor;
  const auto program = sim::from_emitted(emit::build(image));
  const auto elements = numbers(element_count(g.at(g.inputs[0]).sizes), 3);
  const auto result = sim::execute(program, std::as_bytes(std::span(elements))).outputs[0].values();
  const auto expected = model::evaluate(g, std::vector{model::make_value(g.at(g.inputs[0]).sizes, elements)});
  double difference = 0;
  for (std::size_t i = 0; i < result.size(); ++i)
    difference = std::max(difference, std::abs(static_cast<double>(result[i]) - static_cast<double>(expected[0].floats()[i])));
  return difference;
}

}  // namespace small_model
