#pragma once

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interpreter.hpp"
#include "raptor/lowering/context.hpp"
#include "raptor/model/reference.hpp"
#include "raptor/model/reference_compare.hpp"

/// Lowers a model of one operator, interprets the computes in several tilings and compares with the reference evaluator.
namespace raptor::test {

/// Deterministic elements in (−range, range).
[[nodiscard]] inline std::vector<float> noise(std::int64_t count, std::uint32_t seed = 1, float range = 4) {
  std::vector<float> v(static_cast<std::size_t>(count));
  std::uint32_t state = seed * 2654435761U + 12345U;
  for (auto& x : v) {
    state = state * 1664525U + 1013904223U;
    x = (static_cast<float>(state >> 8) / 8388608.0F - 1) * range;
  }
  return v;
}

/// An operand: computed (a graph input), or constant where it has elements.
struct operand_case {
  shape sizes;
  std::optional<std::vector<float>> constant;
};
[[nodiscard]] inline operand_case given(shape sizes) { return {std::move(sizes), std::nullopt}; }
[[nodiscard]] inline operand_case fixed(shape sizes, std::vector<float> elements) { return {std::move(sizes), std::move(elements)}; }
[[nodiscard]] inline operand_case fixed(shape sizes, std::uint32_t seed = 77) {
  const auto count = element_count(sizes);
  return {std::move(sizes), noise(count, seed)};
}

struct one_node {
  model::graph graph;
  layout::plan plan;
  program::geometry chip;
  lowering::lowering_options options;
  lowering::compute_graph computes;
  std::vector<model::tensor_value> inputs;
  std::uint32_t result = 0;

  template <class Op>
  one_node(const Op& op, const std::vector<operand_case>& operands, const shape& out, layout::physical layout, float range = 4, lowering::lowering_options choices = {})
      : options(std::move(choices)) {
    std::vector<model::tensor_id> ids;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      model::tensor t{"x" + std::to_string(i), model::element_type::f32, operands[i].sizes, nullptr};
      if (operands[i].constant) t.data = std::make_shared<const model::constant>(model::constant{*operands[i].constant});
      ids.push_back(graph.add_tensor(t));
      if (operands[i].constant) continue;
      graph.inputs.push_back(ids.back());
      inputs.push_back(model::make_value(t.sizes, noise(element_count(t.sizes), static_cast<std::uint32_t>(i + 1), range)));
    }
    const auto y = graph.add_tensor({"y", model::element_type::f32, out, nullptr});
    graph.outputs.push_back(y);
    graph.add_node({op, ids, {y}, {"node", model::name(model::operation(op)), "", 13}});
    plan.chosen.push_back({std::vector<layout::physical>(operands.size(), layout), layout, 0});
    lowering::context c(graph, plan, chip, options, [](isa::opcode, std::int64_t n) { return 1000 + n; }, computes);
    lower(op, model::vertex{0}, c);
    result = c.result(y);
  }

  /// Largest difference to the reference over all tilings, relative to the largest element.
  [[nodiscard]] double worst() const {
    const auto expected = model::evaluate(graph, inputs).at(0);
    double worst = 0;
    for (const auto& how : {tiling{1, false, 0}, tiling{1, true, 1}, tiling{2, false, 2}, tiling{2, true, 0}, tiling{3, false, 1}, tiling{1 << 20, true, 0}, tiling{1 << 20, true, 3}}) {
      interpreter machine(computes, inputs);
      machine.run(how);
      const auto d = model::compare(model::make_value(expected.sizes, machine.value(result)), expected);
      worst = std::max(worst, d.relative());
    }
    return worst;
  }
  /// Statements executed with one lane a tile.
  [[nodiscard]] std::int64_t statements() const {
    interpreter machine(computes, inputs);
    machine.run({1, false, 0});
    return machine.statements;
  }
};

/// Relative difference of an operator's lowering to the reference.
template <class Op>
[[nodiscard]] double error_of(const Op& op, const std::vector<operand_case>& operands, const shape& out, layout::physical layout, float range = 4,
                              const lowering::lowering_options& options = {}) {
  return one_node(op, operands, out, layout, range, options).worst();
}

inline constexpr auto dense = layout::physical::dense;
inline constexpr auto rows = layout::physical::nhwc_row_strip;

}  // namespace raptor::test
