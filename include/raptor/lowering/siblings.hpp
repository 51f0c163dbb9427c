#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/lowering/convolution_strategies.hpp"

/// Convolutions that are lowered together: those that read the same tensor through the same windows (the branches of an inception block). With their output channels side by side in one matrix, a product serves all of them.
namespace raptor::lowering {

/// Convolutions to be lowered as one.
struct sibling_group {
  convolution_group members;
  std::string strategy;
  double cost = 0;   ///< as strategies compete by it
  double alone = 0;  ///< the sum of what the members cost alone, more than `cost`
};

namespace detail {

/// May a node be lowered together with others? Row strips, one group, constant weights, no forced strategy, something to do.
[[nodiscard]] inline bool may_join(const context& c, model::vertex v) {
  const auto& n = c.model.at(v);
  if (!std::holds_alternative<model::convolution>(n.op) || c.options.convolution_at(n.from.node) != "auto") return false;
  for (std::size_t i = 1; i < n.inputs.size(); ++i)
    if (n.inputs[i].valid() && !c.model.at(n.inputs[i]).is_constant()) return false;
  const auto& plan = c.chosen(v);
  if (plan.operands[0] != layout::physical::nhwc_row_strip || plan.result != layout::physical::nhwc_row_strip) return false;
  if (c.model.at(n.inputs[0]).sizes.size() != 4 || element_count(c.model.at(n.outputs[0]).sizes) == 0) return false;
  const auto s = shape_of(c.model, v);
  return s.groups == 1 && s.k() > 0;
}

/// By node: does its result wait for others in front of the next convolution, in an operator that combines several computed operands (a sum)?
/// A concatenation combines nothing. Cost: O(edges).
[[nodiscard]] inline std::vector<bool> waiting_results(const model::graph& g) {
  std::vector<bool> waits(g.node_count(), false);
  for (model::vertex v = g.node_count(); v-- > 0;) {
    const auto [first, last] = boost::out_edges(v, g.structure());
    for (auto e = first; e != last; ++e) {
      const auto user = boost::target(*e, g.structure());
      const auto& [inputs, op] = std::tie(g.at(user).inputs, g.at(user).op);
      const auto computed = std::count_if(inputs.begin(), inputs.end(), [&](model::tensor_id t) { return t.valid() && !g.at(t).is_constant(); });
      const bool combines = computed > 1 && !std::holds_alternative<model::concat>(op);
      if (combines || (waits[user] && !std::holds_alternative<model::convolution>(op))) waits[v] = true;
    }
  }
  return waits;
}

/// The cheapest strategy that lowers a group together, and its cost; none where there is no such strategy.
template <class... Strategies>
[[nodiscard]] std::optional<std::pair<std::string, double>> best_together(const context& c, const convolution_group& group, const std::tuple<Strategies...>& strategies) {
  const auto s = shape_of(c.model, group);
  // Each member's channels of a window are copied.
  double copies = 0;
  for (const auto v : group.nodes) copies += static_cast<double>(c.time(isa::opcode::lmv, shape_of(c.model, v).c()));
  copies *= static_cast<double>(s.positions());
  std::optional<std::pair<std::string, double>> best;
  const auto consider = [&]<class Strategy>(const Strategy& strategy) {
    if constexpr (requires(context& x) { strategy.lower(x, group); strategy.together(s, c); }) {
      if (!strategy.together(s, c) || strategy.refuses(s, c.chip, c.options)) return;
      const double cost = strategy.cost(s, c) + copies;
      if (!best || cost < best->second) best.emplace(strategy.name, cost);
    }
  };
  std::apply([&](const auto&... strategy) { (consider(strategy), ...); }, strategies);
  return best;
}

}  // namespace detail

/// Groups of at least two convolutions that cost less together than alone: of those that could be lowered together, the two groups (at first
/// single convolutions) that save most become one, until none saves anything.
///
/// A convolution whose result waits for others in a sum stays alone: sends meet their receivers, so a core that has to wait with one member's
/// channels would hold up those of all.
///
/// Guarantees: groups are disjoint, in the order of their first members. Deterministic. Cost: O(convolutions × most²) costs of strategies, where of
/// more than `most` convolutions of one tensor every `most` consecutive ones are looked at together.
template <class... Strategies>
[[nodiscard]] std::vector<sibling_group> find_siblings(const context& c, const std::tuple<Strategies...>& strategies, std::size_t most = 12) {
  const auto geometry = [&](model::vertex v) {
    const auto& op = std::get<model::convolution>(c.model.at(v).op);
    return std::tuple{c.model.at(v).inputs[0].index(), op.kernel, op.strides, op.dilations, op.pads_begin, op.pads_end};
  };
  if (!c.options.siblings) return {};
  const auto waits = detail::waiting_results(c.model);
  std::map<decltype(geometry(0)), std::vector<std::vector<model::vertex>>> alike;
  for (model::vertex v = 0; v < c.model.node_count(); ++v) {
    if (waits[v] || !detail::may_join(c, v)) continue;
    auto& lists = alike[geometry(v)];
    if (lists.empty() || lists.back().size() == most) lists.emplace_back();
    lists.back().push_back(v);
  }
  std::map<model::vertex, sibling_group> found;  // by first member
  for (const auto& [what, lists] : alike)
    for (const auto& list : lists) {
      if (list.size() < 2) continue;
      std::vector<sibling_group> groups;
      for (const auto v : list) {
        const auto choice = choose_strategy(c, v, strategies);
        groups.push_back({v, choice.strategy, choice.cost, choice.cost});
      }
      for (;;) {
        std::optional<sibling_group> best;
        double saved = 0;
        std::pair<std::size_t, std::size_t> of;
        for (std::size_t a = 0; a < groups.size(); ++a)
          for (std::size_t b = a + 1; b < groups.size(); ++b) {
            auto nodes = groups[a].members.nodes;
            nodes.insert(nodes.end(), groups[b].members.nodes.begin(), groups[b].members.nodes.end());
            std::sort(nodes.begin(), nodes.end());
            sibling_group both{convolution_group(std::move(nodes)), {}, 0, groups[a].alone + groups[b].alone};
            const auto together = detail::best_together(c, both.members, strategies);
            if (!together || groups[a].cost + groups[b].cost - together->second <= saved) continue;
            saved = groups[a].cost + groups[b].cost - together->second;
            std::tie(both.strategy, both.cost) = *together;
            best = std::move(both), of = {a, b};
          }
        if (!best) break;
        groups[of.first] = *std::move(best);
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(of.second));
      }
      for (auto& g : groups)
        if (const auto first = g.members.nodes.front(); g.members.nodes.size() > 1) found.emplace(first, std::move(g));
    }
  std::vector<sibling_group> result;
  for (auto& [first, group] : found) result.push_back(std::move(group));
  return result;
}

/// Lowers the convolutions of a model, alone or together: see lower.
template <class... Strategies>
class convolution_lowering {
 public:
  convolution_lowering(context& c, const std::tuple<Strategies...>& strategies) : c_(c), strategies_(strategies), groups_(find_siblings(c, strategies)) {
    for (std::size_t i = 0; i < groups_.size(); ++i)
      for (const auto v : groups_[i].members.nodes) group_of_.emplace(v, i);
  }
  /// Lowers a convolution and says how; a group is lowered with its first member, as computes of that node. Of a group's cost each member is
  /// given a share by its output channels. Errors: those of lower_convolution.
  convolution_choice lower(model::vertex v) {
    const auto known = group_of_.find(v);
    if (known == group_of_.end()) return lower_convolution(c_, v, strategies_);
    const auto& group = groups_[known->second];
    auto choice = choose_strategy(c_, v, strategies_);
    choice.strategy = group.strategy, choice.together = group.members.nodes;
    choice.cost = group.cost * static_cast<double>(choice.sizes.out_channels) / static_cast<double>(shape_of(c_.model, group.members).out_channels);
    if (v == group.members.nodes.front()) lower_by(c_, group.members, group.strategy, strategies_);
    return choice;
  }

 private:
  context& c_;
  const std::tuple<Strategies...>& strategies_;
  std::vector<sibling_group> groups_;
  std::map<model::vertex, std::size_t> group_of_;
};

}  // namespace raptor::lowering
