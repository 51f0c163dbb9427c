#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "raptor/lowering/compute_graph.hpp"
#include "raptor/lowering/materialize.hpp"
#include "raptor/model/graph.hpp"

namespace raptor::lowering {

/// Makes every tensor of the model that a compute writes a further output of the program, behind the model's own, in the order
/// of the nodes and under its own name: for comparing a program with a reference operator by operator. A tensor that merging or
/// a strategy did away with has no value of its name and is left out.
///
/// Guarantees: kernels, layouts and lanes of the computes stay as they are; a value that is stored as W × C rows is delivered by
/// a compute of its own that turns it. Cost: O(values + accesses). Deterministic.
inline void deliver_intermediates(compute_graph& g, const model::graph& model) {
  std::map<std::string, std::uint32_t> computed;  // the first value of a name: later ones are copies of it in another layout
  for (std::uint32_t v = 0; v < g.values().size(); ++v)
    if (g.values()[v].from == origin::computed && !g.writers(v).empty()) computed.emplace(g.values()[v].name, v);
  for (model::vertex n = 0; n < model.node_count(); ++n)
    for (const auto t : model.at(n).outputs) {
      const auto& tensor = model.at(t);
      const auto found = computed.find(tensor.name);
      if (found == computed.end()) continue;
      const auto v = found->second;
      if (g.values()[v].sizes != tensor.sizes || g.values()[v].result >= 0) continue;
      const auto position = static_cast<std::int32_t>(g.outputs.size());
      g.outputs.push_back({tensor.name, tensor.sizes});
      if (g.values()[v].layout != layout::physical::nhwc_row_strip) {
        g.value_at(v).result = position;
        continue;
      }
      value copy{tensor.name, tensor.sizes, layout::physical::nchw_row_strip, origin::computed, {}};
      copy.result = position;
      const auto to = g.add_value(std::move(copy));
      g.add_compute(materialize(g, v, to));
    }
}

}  // namespace raptor::lowering
