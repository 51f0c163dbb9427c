#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/communication/accumulation.hpp"
#include "raptor/lowering/convolution_strategies.hpp"
#include "raptor/lowering/lower.hpp"
#include "raptor/lowering/merging.hpp"
#include "raptor/report/bounds.hpp"
#include "raptor/report/demand.hpp"
#include "raptor/schedule/copies.hpp"

/// What every strategy would make of a convolution: for explanations, and for the bounds over all strategies.
namespace raptor::report {

/// The energy of a target's products, by which strategies compete too; refers to the target, empty where it does not say.
template <class Target>
[[nodiscard]] lowering::product_energy energy_of(const Target& t) {
  if constexpr (requires { t.product_energy(std::int64_t{}); }) return [&t](std::int64_t columns) { return static_cast<double>(t.product_energy(columns)); };
  else return static_cast<void>(t), lowering::product_energy{};
}

/// A convolution under one strategy, as that strategy lowers it, partial sums over several cores and merging included,
/// without the copies that bring operands and results into planned layouts: they belong to no node.
struct strategy_work {
  std::string name;
  std::string refused;         ///< why it does not apply; empty: it does
  double cost = 0;             ///< by which strategies compete: picoseconds of one core, with what its crossbars are worth
  demand work;                 ///< of all tiles
  std::int64_t crossbars = 0;  ///< of one copy
};

/// The strategies of a model's convolutions, made when they are asked for and once for convolutions that are alike. Refers to all that it is given.
template <target::chip_target Target, class Strategies>
class strategy_table {
 public:
  strategy_table(const Target& t, const model::graph& g, const layout::plan& plan, const lowering::lowered& lowered, const Strategies& strategies)
      : target_(t), chip_(t.chip()), model_(g), plan_(plan), lowered_(lowered), strategies_(strategies) {}

  /// A row a strategy, in the order of the list; none where the node has no output elements.
  /// Requires: a convolution that was lowered. Cost: that of lowering it by each strategy and of counting its tiles.
  [[nodiscard]] const std::vector<strategy_work>& of(model::vertex v) {
    const auto& n = model_.at(v);
    const auto s = lowering::shape_of(model_, v);
    const bool bias = n.inputs.size() > 2 && n.inputs[2].valid();
    const auto& x = n.inputs[0];
    const auto [known, fresh] = rows_.try_emplace(
        key{s, plan_.chosen.at(v).operands[0], plan_.chosen[v].result, layout::layout_of(model_, plan_, x), model_.producer(x) == model::graph::no_vertex, bias});
    if (fresh && s.positions() > 0 && s.out_channels > 0)
      std::apply([&](const auto&... strategy) { (known->second.push_back(row(strategy, v, s)), ...); }, strategies_);
    return known->second;
  }

 private:
  using key = std::tuple<lowering::convolution_shape, layout::physical, layout::physical, layout::physical, bool, bool>;

  template <class Strategy>
  [[nodiscard]] strategy_work row(const Strategy& strategy, model::vertex v, const lowering::convolution_shape& s) const {
    strategy_work r;
    r.name = strategy.name;
    if (auto reason = strategy.refuses(s, chip_, lowered_.options)) {
      r.refused = *std::move(reason);
      return r;
    }
    lowering::compute_graph alone;
    lowering::context c(model_, plan_, chip_, lowered_.options,
                        [this](isa::opcode op, std::int64_t n) { return static_cast<std::int64_t>(target_.time(op, n)); }, alone, energy_of(target_));
    c.price = lowered_.price;
    try {
      strategy.lower(c, v);
    } catch (const error& e) {
      if (e.code() != error_code::unsupported && e.code() != error_code::capacity) throw;
      r.refused = e.what();
      return r;
    }
    r.cost = strategy.cost(s, c);
    const auto summed = lowering::merge_trivial(communication::chain_accumulation{}(alone));
    const auto tiles = schedule::make_tiles(target_, summed);
    for (const auto& tile : tiles.tiles)
      if (summed.at(tile.compute).node == v) r.work += demand_of(target_, summed, tile);
    r.crossbars = schedule::total_crossbars(summed, chip_);
    return r;
  }

  const Target& target_;
  const program::geometry chip_;
  const model::graph& model_;
  const layout::plan& plan_;
  const lowering::lowered& lowered_;
  const Strategies& strategies_;
  std::map<key, std::vector<strategy_work>> rows_;
};

/// What the computes of each node of the model ask for, by vertex; computes of no node are not counted. Cost: O(tiles × statements).
template <target::chip_target Target>
[[nodiscard]] std::vector<demand> demand_by_node(const Target& t, const model::graph& model, const lowering::compute_graph& g, const schedule::tile_graph& tiles) {
  std::vector<demand> sum(model.node_count());
  for (const auto& tile : tiles.tiles)
    if (const auto node = g.at(tile.compute).node; node < sum.size()) sum[node] += demand_of(t, g, tile);
  return sum;
}

/// Lower bounds over the strategies, for lower_bounds: every convolution by the strategy that asks least for it, the others as they are.
/// Convolutions that were lowered together are kept so or taken apart, whichever asks less.
///
/// - best_matrix: all products, as `matrix`
/// - best_work: all instructions, as `work` (only with one instruction in flight)
///
/// They hold for every choice of strategies as these lower a convolution at the prices of this compilation, and for what was chosen; they
/// disregard how many crossbars that takes, and computes that belong to no node (copies between layouts). Cost: that of the table.
template <target::chip_target Target, class Strategies>
[[nodiscard]] std::vector<bound> strategy_bounds(const Target& t, strategy_table<Target, Strategies>& table, const model::graph& model, const lowering::lowered& lowered,
                                                 const lowering::compute_graph& g, const schedule::tile_graph& tiles) {
  const auto actual = demand_by_node(t, model, g, tiles);
  demand all;
  for (const auto& d : actual) all += d;
  const auto chip = program::geometry(t.chip());
  const bool one_at_a_time = one_in_flight(t);
  const auto products_of = [&](const demand& d) { return matrix_time(d, one_at_a_time, chip); };
  picoseconds matrix = 0, work = all.serial();
  for (const auto& d : actual) matrix = checked::add(matrix, products_of(d));
  std::map<std::string, std::size_t> by_matrix, by_work;
  for (const auto& choice : lowered.convolutions) {
    if (!choice.together.empty() && choice.together.front() != choice.node) continue;  // the first member speaks for the group
    const demand& own = actual.at(choice.node);
    const auto members = choice.together.empty() ? std::vector<model::vertex>{choice.node} : choice.together;
    const auto chosen = choice.together.empty() ? choice.strategy : choice.strategy + " together";
    const auto least = [&](const auto& measure, std::map<std::string, std::size_t>& by) {
      // What its members ask for apart, each by the strategy that asks least; one that no strategy lowers stays as it is.
      picoseconds apart = 0;
      std::vector<const std::string*> names;
      for (const auto v : members) {
        const strategy_work* best = nullptr;
        for (const auto& s : table.of(v))
          if (s.refused.empty() && (best == nullptr || measure(s.work) < measure(best->work))) best = &s;
        if (best != nullptr) apart += measure(best->work), names.push_back(&best->name);
      }
      const bool better = names.size() == members.size() && apart < measure(own);
      for (std::size_t i = 0; i < members.size(); ++i) ++by[better ? *names[i] : chosen];
      return better ? apart : measure(own);
    };
    matrix -= products_of(own) - least(products_of, by_matrix);
    work -= own.serial() - least([](const demand& d) { return d.serial(); }, by_work);
  }
  const auto list = [](const std::map<std::string, std::size_t>& counts) {
    std::string text;
    for (const auto& [name, count] : counts)
      if (!name.empty()) text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
    return text.empty() ? std::string("no convolutions") : "convolutions by " + text;
  };
  const auto cores = std::max<std::int64_t>(1, chip.core_count);
  std::vector<bound> result{{"best_matrix", matrix / cores, list(by_matrix), bound_scope::strategies}};
  if (one_at_a_time) result.push_back({"best_work", work / cores, list(by_work), bound_scope::strategies});
  return result;
}

}  // namespace raptor::report
