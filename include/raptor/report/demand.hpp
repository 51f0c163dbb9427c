#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"
#include "raptor/program/effects.hpp"
#include "raptor/schedule/tiles.hpp"
#include "raptor/target/concept.hpp"

/// What kernels ask of the units of a core, added up without unrolling them: the basis of lower bounds and explanations.
namespace raptor::report {

using target::picoseconds;

/// Does the target say what its memories cost, as target::pim does?
template <class Target>
concept knows_memories = requires(const Target& t) {
  t.parameters().chip_config.core_config.local_memory_config.data_width;
  t.parameters().chip_config.global_memory_config.data_width;
  t.parameters().chip_config.core_config.rob_size;
};

/// Port time of one access (TIMING 8).
template <class Memory>
[[nodiscard]] picoseconds port_time(const Memory& m, bool read, double bytes) {
  const auto cycles = static_cast<double>(read ? m.read_latency_cycle : m.write_latency_cycle);
  return static_cast<picoseconds>(std::min(std::trunc(std::ceil(bytes / static_cast<double>(m.data_width)) * cycles * m.period * 1000 + 0.5), 1e17));
}

/// What a tile (or a whole graph) asks of each unit of the cores that do it.
struct demand {
  picoseconds matrix = 0, vector = 0, copies = 0;  ///< instruction by instruction, issue included
  picoseconds local = 0;                           ///< port of the local memory
  picoseconds crossbars = 0;                       ///< products, each as often as it drives crossbars
  std::int64_t products = 0;
  double multiply_accumulates = 0;
  picoseconds longest = 0;                         ///< one instruction

  demand& operator+=(const demand& o) {
    matrix = checked::add(matrix, o.matrix), vector = checked::add(vector, o.vector), copies = checked::add(copies, o.copies);
    local = checked::add(local, o.local), crossbars = checked::add(crossbars, o.crossbars), products = checked::add(products, o.products);
    multiply_accumulates += o.multiply_accumulates, longest = std::max(longest, o.longest);
    return *this;
  }
  [[nodiscard]] demand times(std::int64_t n) const {
    return {checked::multiply(matrix, n), checked::multiply(vector, n), checked::multiply(copies, n), checked::multiply(local, n),
            checked::multiply(crossbars, n), checked::multiply(products, n), multiply_accumulates * static_cast<double>(n), n > 0 ? longest : 0};
  }
  [[nodiscard]] picoseconds serial() const { return checked::add(checked::add(matrix, vector), copies); }
};

/// Port time of the local memory for one statement (TIMING 7).
template <class Target>
[[nodiscard]] picoseconds local_time(const Target& t, const lowering::statement& s, std::int64_t n, std::int64_t group_columns) {
  if constexpr (knows_memories<Target>) {
    using program::pattern;
    const program::geometry chip = t.chip();
    const auto& m = t.parameters().chip_config.core_config.local_memory_config;
    const double width = static_cast<double>(chip.element_bits) / 8, bytes = static_cast<double>(n) * width;
    switch (program::pattern_of(s.op)) {
      case pattern::matrix:
        return port_time(m, true, static_cast<double>(chip.crossbar_rows) * width * 8) + port_time(m, false, static_cast<double>(group_columns) * width);
      case pattern::elementwise2:
      case pattern::dot: return 2 * port_time(m, true, bytes) + port_time(m, false, bytes);
      case pattern::fill: return port_time(m, false, bytes);
      default: return port_time(m, true, bytes) + port_time(m, false, bytes);
    }
  } else {
    static_cast<void>(t), static_cast<void>(s), static_cast<void>(n), static_cast<void>(group_columns);
    return 0;
  }
}

/// Adds up a kernel for one tile without unrolling it. Loop variables count as 0 in lengths and counts, as in schedule::tile_time.
/// A statement that some iteration leaves out (rows outside the image) is not counted, so that the sum stays a lower bound.
template <target::chip_target Target>
class demand_counter {
 public:
  demand_counter(const Target& t, const lowering::compute_graph& g, const lowering::compute& c, const box& lanes)
      : target_(t), chip_(t.chip()), graph_(g), compute_(c), lanes_(lanes) {}

  [[nodiscard]] demand run() { return count(compute_.body); }
  /// By item of the body: it and all that follow; one more, for none.
  [[nodiscard]] std::vector<demand> from_items() {
    std::vector<demand> result(compute_.body.size() + 1);
    for (std::size_t k = compute_.body.size(); k-- > 0;) {
      result[k] = count(compute_.body[k]);
      result[k] += result[k + 1];
    }
    return result;
  }

 private:
  [[nodiscard]] std::int64_t value(const affine& a) const {
    return a.evaluate([&](symbol s) -> std::int64_t {
      if (s.what == symbol::kind::loop) return 0;
      return s.what == symbol::kind::begin ? lanes_[s.index].begin : lanes_[s.index].size();
    });
  }
  [[nodiscard]] demand count(const std::vector<lowering::item>& items) {
    demand sum;
    for (const auto& i : items) sum += count(i);
    return sum;
  }
  [[nodiscard]] demand count(const lowering::item& i) {
    const auto* l = std::get_if<lowering::loop>(&i.what);
    if (l == nullptr) return count(std::get<lowering::statement>(i.what));
    const auto n = value(l->count);
    if (n <= 0) return {};
    loops_.emplace_back(l->variable, n);
    const demand sum = count(l->body).times(n);
    loops_.pop_back();
    return sum;
  }
  [[nodiscard]] demand count(const lowering::statement& s) const {
    demand d;
    const auto length = value(s.length);
    if (length <= 0 || may_be_outside(s)) return d;
    const picoseconds time = target_.time(s.op, length);
    d.longest = time;
    std::int64_t columns = 0;
    if (s.op == isa::opcode::mvmul) {
      const auto& group = compute_.groups.at(s.group);
      columns = program::crossbars(group, chip_) * chip_.weight_columns;
      d.matrix = time, d.products = 1;
      d.crossbars = checked::multiply(time, program::crossbars(group, chip_));
      for (const auto& b : group.blocks) d.multiply_accumulates += static_cast<double>(b.rows) * static_cast<double>(b.columns);
    } else if (s.op == isa::opcode::lmv || s.op == isa::opcode::lldi) {
      d.copies = time;
    } else {
      d.vector = time;
    }
    d.local = local_time(target_, s, length, columns);
    return d;
  }
  [[nodiscard]] bool may_be_outside(const lowering::statement& s) const {
    if (s.when_outside == lowering::outside::never || s.a.what != lowering::operand::kind::value || s.a.at.size() != 4) return false;
    const auto& row = s.a.at[2];
    std::int64_t least = value(row), most = least;
    for (const auto& [variable, n] : loops_) {
      const auto reach = checked::multiply(row.coefficient({symbol::kind::loop, variable}), n - 1);
      (reach < 0 ? least : most) = checked::add(reach < 0 ? least : most, reach);
    }
    return least < 0 || most >= graph_.values()[compute_.accesses[s.a.index].value].sizes[2];
  }

  const Target& target_;
  const program::geometry chip_;
  const lowering::compute_graph& graph_;
  const lowering::compute& compute_;
  const box& lanes_;
  std::vector<std::pair<std::uint32_t, std::int64_t>> loops_;  // variable, count
};

/// The demand of one tile. Cost: O(statements).
template <target::chip_target Target>
[[nodiscard]] demand demand_of(const Target& t, const lowering::compute_graph& g, const schedule::tile& tile) {
  return demand_counter<Target>(t, g, g.at(tile.compute), tile.lanes).run();
}

/// What the matrix units of one core need at least for a demand: one product at a time, or with several instructions in flight all crossbars at once.
[[nodiscard]] inline picoseconds matrix_time(const demand& d, bool one_at_a_time, const program::geometry& chip) {
  return one_at_a_time ? d.matrix : d.crossbars / std::max<std::int64_t>(1, chip.crossbars_per_core);
}

/// Does a core do one instruction at a time? A target that does not say is taken to.
template <target::chip_target Target>
[[nodiscard]] bool one_in_flight(const Target& t) {
  if constexpr (knows_memories<Target>) return t.parameters().chip_config.core_config.rob_size <= 1;
  else return static_cast<void>(t), true;
}

}  // namespace raptor::report
