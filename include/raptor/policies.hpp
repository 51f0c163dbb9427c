#pragma once

#include <boost/hana/at_key.hpp>
#include <boost/hana/insert.hpp>
#include <boost/hana/erase_key.hpp>
#include <boost/hana/map.hpp>
#include <boost/hana/pair.hpp>
#include <boost/hana/type.hpp>
#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include "raptor/communication/accumulation.hpp"
#include "raptor/communication/realize.hpp"
#include "raptor/layout/planner.hpp"
#include "raptor/lowering/convolution_strategies.hpp"
#include "raptor/memory/plan.hpp"
#include "raptor/schedule/copies.hpp"
#include "raptor/schedule/placement.hpp"
#include "raptor/schedule/rendezvous_order.hpp"
#include "raptor/schedule/schedule.hpp"
#include "raptor/schedule/spread_placement.hpp"
#include "raptor/schedule/stages.hpp"
#include "raptor/sync/rendezvous_only.hpp"
#include "raptor/target/archetype.hpp"

/// The policy slots of the compiler. A slot is a tag with a concept; a bundle holds one policy a slot.
///
///     const auto mine = raptor::default_policies() | raptor::with<raptor::order_slot>(my_order{});
///     raptor::basic_compiler compiler(target, mine);
///
/// A policy is a copyable type with a const call operator; no macro, no registration, no virtual call. Policies that ask
/// the target are templates over it (target::chip_target); the concepts try them on target::archetype.
namespace raptor {

/// Layout: model graph → one alternative a node, a plan that layout::check_plan accepts.
template <class P>
concept layout_policy = std::copyable<P> && requires(const P& p, const model::graph& g) {
  { p(g) } -> std::same_as<layout::plan>;
};
/// Convolution strategies: a std::tuple of strategy types, tried in order (lowering/convolution_strategies.hpp).
template <class P>
concept convolution_policy = std::copyable<P> && requires(const P& p, lowering::context& c, model::vertex v) {
  { lowering::lower_convolution(c, v, p) } -> std::same_as<lowering::convolution_choice>;
};
/// Partition: compute graph → stage of each compute and cores of each stage, or a list of such plans, of which the evaluator chooses one. Edges go
/// forward; what lives longer than into the next stage is passed on by copies (schedule/forwarding.hpp). Optional: rebalance(target, computes,
/// plan, schedule) → the stages' cores anew, or none.
template <class P>
concept partition_policy = std::copyable<P> && requires(const P& p, const target::archetype& t, const lowering::compute_graph& g) {
  requires std::same_as<decltype(p(t, g)), schedule::stage_plan> || std::same_as<decltype(p(t, g)), std::vector<schedule::stage_plan>>;
};
/// Replication: copies of each compute's weights, between 1 and its number of tiles; or a list of such candidates, of which the evaluator
/// chooses one.
template <class P>
concept replication_policy = std::copyable<P> && requires(const P& p, const target::archetype& t, const lowering::compute_graph& g, const schedule::tile_graph& tiles) {
  requires std::same_as<decltype(p(t, g, tiles)), std::vector<std::int64_t>> || std::same_as<decltype(p(t, g, tiles)), std::vector<std::vector<std::int64_t>>>;
};
/// Placement: fills core and copy of every tile; resident weights fit every core.
template <class P>
concept placement_policy = std::copyable<P> && requires(const P& p, const target::archetype& t, const lowering::compute_graph& g, const std::vector<std::int64_t>& copies, schedule::schedule& s) {
  { p(t, g, copies, s) } -> std::same_as<void>;
};
/// Order: fills the global order and the predicted times; producers before consumers. One that also has improve(target, graph, schedule, worth) gets
/// the schedule that the search has found, for a longer look at it; it may only lower what `worth(schedule)` says.
template <class P>
concept order_policy = std::copyable<P> && requires(const P& p, const target::archetype& t, const lowering::compute_graph& g, schedule::schedule& s) {
  { p(t, g, s) } -> std::same_as<void>;
};
/// Accumulation over cores: compute graph → the same without accesses in mode accumulate.
template <class P>
concept accumulation_policy = std::copyable<P> && requires(const P& p, const lowering::compute_graph& g) {
  { p(g) } -> std::same_as<lowering::compute_graph>;
};
/// Communication: schedule → realized program.
template <class P>
concept communication_policy = std::copyable<P> && requires(const P& p, const lowering::compute_graph& g, const schedule::schedule& s, const program::geometry& chip) {
  { p(g, s, chip) } -> std::same_as<program::program>;
};
/// Synchronization: adds the events that the program's channels need.
template <class P>
concept sync_policy = std::copyable<P> && requires(const P& p, program::program realized, const schedule::schedule& s) {
  { p(std::move(realized), s) } -> std::same_as<program::program>;
};
/// Memory: bound program → image with all addresses, which memory::check_plan accepts.
template <class P>
concept memory_policy = std::copyable<P> && requires(const P& p, program::program bound) {
  { p(std::move(bound)) } -> std::same_as<memory::image>;
};
/// Evaluator: what a schedule is worth, in picoseconds; the least is kept. The tools may inject the exact timing model.
template <class P>
concept evaluator_policy = std::copyable<P> && requires(const P& p, const schedule::schedule& s) {
  { p(s) } -> std::same_as<schedule::picoseconds>;
};

struct layout_slot { template <class P> static constexpr bool accepts = layout_policy<P>; };
struct convolution_slot { template <class P> static constexpr bool accepts = convolution_policy<P>; };
struct partition_slot { template <class P> static constexpr bool accepts = partition_policy<P>; };
struct replication_slot { template <class P> static constexpr bool accepts = replication_policy<P>; };
struct placement_slot { template <class P> static constexpr bool accepts = placement_policy<P>; };
struct order_slot { template <class P> static constexpr bool accepts = order_policy<P>; };
struct accumulation_slot { template <class P> static constexpr bool accepts = accumulation_policy<P>; };
struct communication_slot { template <class P> static constexpr bool accepts = communication_policy<P>; };
struct sync_slot { template <class P> static constexpr bool accepts = sync_policy<P>; };
struct memory_slot { template <class P> static constexpr bool accepts = memory_policy<P>; };
struct evaluator_slot { template <class P> static constexpr bool accepts = evaluator_policy<P>; };

/// Memory policy: addresses by lifetime, see memory::plan.
struct lifetime_memory {
  memory::plan_options options;
  [[nodiscard]] memory::image operator()(program::program bound) const { return memory::plan(std::move(bound), options); }
};
/// Evaluator policy: the finish that the cost model predicts.
struct predicted_time {
  [[nodiscard]] schedule::picoseconds operator()(const schedule::schedule& s) const { return s.predicted; }
};

/// One slot's replacement, made by with<slot>(policy).
template <class Slot, class Policy>
struct replacement {
  Policy policy;
};
template <class Slot, class Policy>
[[nodiscard]] constexpr replacement<Slot, Policy> with(Policy policy) {
  static_assert(Slot::template accepts<Policy>,
                "with<slot>(policy): the policy does not meet the slot's concept. WHERE: the Slot and Policy named in this instantiation. "
                "TO FIX: give it the const call operator that the concept of the slot in raptor/policies.hpp asks for.");
  return {std::move(policy)};
}

/// A policy for every slot: a Hana map from slot to policy.
template <class Map>
struct policy_bundle {
  Map policies;

  template <class Slot>
  [[nodiscard]] constexpr const auto& get() const {
    return policies[boost::hana::type_c<Slot>];
  }
  /// The same bundle with one slot replaced.
  template <class Slot, class Policy>
  friend constexpr auto operator|(const policy_bundle& bundle, const replacement<Slot, Policy>& r) {
    namespace hana = boost::hana;
    auto changed = hana::insert(hana::erase_key(bundle.policies, hana::type_c<Slot>), hana::make_pair(hana::type_c<Slot>, r.policy));
    return policy_bundle<decltype(changed)>{std::move(changed)};
  }
};

/// The bundle that the tools start from.
[[nodiscard]] inline auto default_policies() {
  namespace hana = boost::hana;
  auto map = hana::make_map(hana::make_pair(hana::type_c<layout_slot>, layout::descending_layout{}),
                            hana::make_pair(hana::type_c<convolution_slot>, lowering::default_convolution_strategies{}),
                            hana::make_pair(hana::type_c<partition_slot>, schedule::single_stage{}),
                            hana::make_pair(hana::type_c<replication_slot>, schedule::replication_portfolio{}),
                            hana::make_pair(hana::type_c<placement_slot>, schedule::spread_placement{}),
                            hana::make_pair(hana::type_c<order_slot>, schedule::rendezvous_order{}),
                            hana::make_pair(hana::type_c<accumulation_slot>, communication::chain_accumulation{}),
                            hana::make_pair(hana::type_c<communication_slot>, communication::rendezvous_communication{}),
                            hana::make_pair(hana::type_c<sync_slot>, sync::rendezvous_only{}),
                            hana::make_pair(hana::type_c<memory_slot>, lifetime_memory{}),
                            hana::make_pair(hana::type_c<evaluator_slot>, predicted_time{}));
  return policy_bundle<decltype(map)>{std::move(map)};
}

}  // namespace raptor
