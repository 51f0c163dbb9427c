#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "raptor/lowering/context.hpp"
#include "raptor/lowering/contraction.hpp"
#include "raptor/lowering/dynamic_matmul.hpp"
#include "raptor/lowering/elementwise.hpp"
#include "raptor/lowering/movement.hpp"
#include "raptor/lowering/normalization.hpp"
#include "raptor/lowering/pooling.hpp"
#include "raptor/lowering/reduction.hpp"
#include "raptor/lowering/siblings.hpp"
#include "raptor/lowering/softmax.hpp"
#include "raptor/lowering/upsampling.hpp"

namespace raptor::lowering {

/// A lowered model and why its convolutions got their strategies.
struct lowered {
  compute_graph graph;
  std::vector<convolution_choice> convolutions;
  lowering_options options;  ///< with which it was lowered
  context::prices price;     ///< at which strategies competed
};

/// Lowers a planned model graph: every node by its family, convolutions alone or together (siblings.hpp), then the graph results, dense, in order.
///
/// Errors: unsupported, naming every node that has no lowering (all of them at once); what the strategies throw.
/// Cost: O(nodes + weight blocks). Deterministic.
template <class... Strategies>
[[nodiscard]] lowered lower_model(const model::graph& g, const layout::plan& plan, const program::geometry& chip, const lowering_options& options,
                                  const instruction_time& time, const std::tuple<Strategies...>& strategies, const product_energy& energy = {}) {
  lowered result;
  result.graph.name = g.name;
  for (const auto t : g.inputs) result.graph.inputs.push_back({g.at(t).name, g.at(t).sizes});
  for (const auto t : g.outputs) result.graph.outputs.push_back({g.at(t).name, g.at(t).sizes});
  context c(g, plan, chip, options, time, result.graph, energy);
  c.price = fair_prices(c, strategies);
  convolution_lowering convolutions(c, strategies);
  result.options = options, result.price = c.price;
  std::vector<std::string> refused;
  std::string hint;
  for (model::vertex v = 0; v < g.node_count(); ++v) {
    const auto& n = g.at(v);
    try {
      if (std::holds_alternative<model::convolution>(n.op)) result.convolutions.push_back(convolutions.lower(v));
      else if (has_resident_weights(g, v)) lower_contraction(c, v);
      else
        std::visit(
            [&](const auto& op) {
              if constexpr (requires { lower(op, v, c); }) lower(op, v, c);
              else throw error(error_code::unsupported, "operator " + name(n.op) + " has no lowering", n.from.describe());
            },
            n.op);
    } catch (const error& e) {
      if (e.code() != error_code::unsupported) throw;
      refused.push_back((e.place().empty() ? n.from.describe() : e.place()) + ": " + e.what());
      if (hint.empty()) hint = e.hint();
    }
  }
  if (!refused.empty())
    throw error(error_code::unsupported, std::to_string(refused.size()) + (refused.size() == 1 ? " node cannot be lowered" : " nodes cannot be lowered"), g.name, hint)
        .with_details(refused);
  for (std::size_t i = 0; i < g.outputs.size(); ++i) c.deliver(g.outputs[i], static_cast<std::int32_t>(i));
  return result;
}

}  // namespace raptor::lowering
