#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "interpreter.hpp"
#include "one_node.hpp"
#include "raptor/communication/accumulation.hpp"
#include "raptor/lowering/lower.hpp"
#include "raptor/lowering/merging.hpp"

/// Convolutions that read one tensor, lowered, interpreted and compared with the reference evaluator.
namespace raptor::test {

struct branch {
  std::int64_t channels = 1;
  bool bias = false, relu = false;
  std::int64_t kernel = 1, stride = 1;
  bool output = false;  ///< the convolution's own tensor is a graph output too
};

/// x → a convolution a branch (c0, c1, …), each perhaps with a relu behind it; every end is a graph output. All in row strips.
struct branches {
  model::graph graph;
  layout::plan plan;
  program::geometry chip;
  lowering::lowering_options options;
  lowering::instruction_time time = [](isa::opcode op, std::int64_t n) { return (op == isa::opcode::mvmul ? 100000 : 100) + n; };
  lowering::lowered result;

  branches(const shape& x_sizes, const std::vector<branch>& list) {
    chip.core_count = 8, chip.crossbars_per_core = 16, chip.crossbar_rows = chip.crossbar_columns = chip.weight_columns = 16;
    const auto x = graph.add_tensor({"x", model::element_type::f32, x_sizes, nullptr});
    graph.inputs = {x};
    const auto constant = [&](const std::string& name, const shape& sizes, std::uint32_t seed) {
      model::tensor t{name, model::element_type::f32, sizes, nullptr};
      t.data = std::make_shared<const model::constant>(model::constant{noise(element_count(sizes), seed)});
      return graph.add_tensor(t);
    };
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto& b = list[i];
      const auto name = "c" + std::to_string(i);
      const auto seed = static_cast<std::uint32_t>(10 * i + 5);
      std::vector<model::tensor_id> inputs{x, constant(name + ".w", {b.channels, x_sizes[1], b.kernel, b.kernel}, seed)};
      if (b.bias) inputs.push_back(constant(name + ".b", {b.channels}, seed + 1));
      const shape y_sizes{x_sizes[0], b.channels, (x_sizes[2] - b.kernel) / b.stride + 1, (x_sizes[3] - b.kernel) / b.stride + 1};
      auto y = graph.add_tensor({name + ".y", model::element_type::f32, y_sizes, nullptr});
      graph.add_node({model::convolution{{b.kernel, b.kernel}, {b.stride, b.stride}, {1, 1}, {0, 0}, {0, 0}, 1}, inputs, {y}, {name, "Conv", "", 13}});
      plan.chosen.push_back({std::vector<layout::physical>(inputs.size(), dense), rows, 0});
      plan.chosen.back().operands[0] = rows;
      if (b.output || !b.relu) graph.outputs.push_back(y);
      if (!b.relu) continue;
      const auto z = graph.add_tensor({name + ".z", model::element_type::f32, y_sizes, nullptr});
      graph.add_node({model::unary{model::unary_kind::relu, 0, 0}, {y}, {z}, {name + ".relu", "Relu", "", 13}});
      plan.chosen.push_back({{rows}, rows, 0});
      graph.outputs.push_back(z);
    }
  }

  /// Lowers, checks all outputs in several tilings, before and after merging, and gives the groups by the numbers of their branches.
  template <class Strategies = lowering::default_convolution_strategies>
  std::set<std::set<std::string>> groups(const Strategies& strategies = {}) {
    result = lowering::lower_model(graph, plan, chip, options, time, strategies);
    const std::vector<model::tensor_value> inputs{model::make_value(graph.at(graph.inputs[0]).sizes, noise(element_count(graph.at(graph.inputs[0]).sizes)))};
    const auto expected = model::evaluate(graph, inputs);
    for (const auto& computes : {communication::chain_accumulation{}(result.graph), lowering::merge_trivial(communication::chain_accumulation{}(result.graph))})
      for (const auto& how : {tiling{1, false, 0}, tiling{1, true, 1}}) {
        interpreter machine(computes, inputs);
        machine.run(how);
        std::size_t seen = 0;
        for (std::uint32_t v = 0; v < computes.values().size(); ++v) {
          const auto position = computes.values()[v].result;
          if (position < 0) continue;
          ++seen;
          const auto& wanted = expected.at(static_cast<std::size_t>(position));
          CHECK(model::compare(model::make_value(wanted.sizes, machine.value(v)), wanted).relative() < 1e-5);
        }
        CHECK(seen == graph.outputs.size());
      }
    std::set<std::set<std::string>> found;
    for (const auto& choice : result.convolutions) {
      std::set<std::string> names;
      for (const auto v : choice.together) names.insert(graph.at(v).from.node);
      if (names.empty()) continue;
      CHECK(names.count(graph.at(choice.node).from.node) == 1);
      CHECK(names.size() > 1);
      found.insert(names);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> with_weights() const {
    std::vector<std::string> names;
    for (lowering::vertex v = 0; v < result.graph.size(); ++v)
      if (!result.graph.at(v).groups.empty()) names.push_back(result.graph.at(v).name);
    return names;
  }
};

}  // namespace raptor::test
