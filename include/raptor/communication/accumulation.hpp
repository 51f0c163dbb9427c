#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "raptor/lowering/runs.hpp"

namespace raptor::communication {

/// Accumulation policy: a chain. Computes that accumulate into the same boxes of a value pass a running sum along in vertex
/// order; the last one writes the value. Every tile adds its own result to what the tile before it sends.
///
/// Guarantees: the result has no access in mode accumulate; sums associate from the first compute to the last.
/// Errors: internal, where computes accumulate into one value over boxes that overlap but are not the same function.
/// Cost: O(computes). Deterministic.
struct chain_accumulation {
  [[nodiscard]] lowering::compute_graph operator()(const lowering::compute_graph& g) const {
    using namespace lowering;
    compute_graph result;
    result.name = g.name, result.inputs = g.inputs, result.outputs = g.outputs;
    for (const auto& v : g.values()) result.add_value(v);

    // How many computes accumulate into each (value, box function); boxes are compared as functions.
    const auto link_of = [&](const compute& c) -> const access* {
      for (const auto& a : c.accesses)
        if (a.mode == access_mode::accumulate) return &a;
      return nullptr;
    };
    struct chain {
      std::vector<affine> low, high;
      std::size_t links = 0, done = 0;
      std::uint32_t sum = 0;
    };
    std::map<std::uint32_t, std::vector<chain>> chains;
    const auto chain_of = [&](const access& a) -> chain& {
      auto& list = chains[a.value];
      for (auto& c : list)
        if (c.low == a.low && c.high == a.high) return c;
      list.push_back({a.low, a.high, 0, 0, 0});
      return list.back();
    };
    for (vertex v = 0; v < g.size(); ++v)
      if (const auto* a = link_of(g.at(v))) ++chain_of(*a).links;

    for (vertex v = 0; v < g.size(); ++v) {
      compute c = g.at(v);
      for (std::size_t i = 0; i < c.accesses.size(); ++i) {
        if (c.accesses[i].mode != access_mode::accumulate) continue;
        auto& link = chain_of(c.accesses[i]);
        const access target = c.accesses[i];
        const bool first = link.done == 0, last = ++link.done == link.links;
        c.accesses[i].mode = access_mode::assign;
        if (first && last) continue;
        const auto fresh = [&](const char* suffix) {
          value partial = g.values()[target.value];
          partial.name = c.name + suffix, partial.result = -1;
          return result.add_value(std::move(partial));
        };
        if (first) {
          link.sum = c.accesses[i].value = fresh(".sum");
          continue;
        }
        // Own result, then sum so far + own → next sum, or the value itself.
        c.accesses[i].value = fresh(".own");
        const auto next = last ? target.value : fresh(".sum");
        append_addition(c, target, static_cast<std::uint32_t>(i), link.sum, next, result.values()[target.value]);
        link.sum = next;
      }
      result.add_compute(std::move(c));
    }
    return result;
  }

 private:
  static void append_addition(lowering::compute& c, const lowering::access& box, std::uint32_t own_write, std::uint32_t before,
                              std::uint32_t next, const lowering::value& kind) {
    using namespace lowering;
    // Loop variables of the appended statements come after those of the kernel: a builder of its own counts from 0.
    const auto own = static_cast<std::uint32_t>(c.accesses.size());
    c.accesses.push_back({c.accesses[own_write].value, access_mode::read, box.low, box.high});
    c.accesses.push_back({before, access_mode::read, box.low, box.high});
    c.accesses.push_back({next, access_mode::assign, box.low, box.high});
    kernel_builder k("", c.lanes);
    const auto runs = runs_of(box, kind);
    for_each_run(k, box, runs, [&](const std::vector<affine>& at) {
      k.vector(isa::opcode::vvadd, k.at(own + 2, at), k.at(own, at), k.at(own + 1, at), runs.length);
    });
    auto body = k.take().body;
    for (auto& item : body) c.body.push_back(std::move(item));
  }
};

}  // namespace raptor::communication
