#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/copied_rows.hpp"
#include "raptor/lowering/lower.hpp"
#include "raptor/lowering/merging.hpp"
#include "raptor/lowering/observe.hpp"
#include "raptor/policies.hpp"
#include "raptor/program/binding.hpp"
#include "raptor/schedule/forwarding.hpp"
#include "raptor/schedule/search.hpp"
#include "raptor/schedule/staged.hpp"

namespace raptor {

/// Every stage value of one compilation, in the order of the chain. What lies behind the last wanted stage is empty.
struct compilation {
  layout::plan plan;
  lowering::lowered lowered;           ///< the compute graph as the strategies made it
  lowering::compute_graph merged;      ///< after accumulation and merging
  lowering::compute_graph computes;    ///< the same, with the copies that pass values on from stage to stage
  schedule::schedule schedule;
  schedule::stage_plan stages;
  std::vector<std::int64_t> copies;    ///< by compute
  schedule::picoseconds worth = 0;     ///< what the evaluator says of the schedule
  program::program realized;
  memory::image image;                 ///< holds the bound program
};

enum class stage : std::uint8_t { planned, lowered, merged, scheduled, realized, bound, image };

/// An observer that does nothing; see basic_compiler::compile.
struct no_observer {
  void operator()(stage, const compilation&) const noexcept {}
};

/// The compiler: a chain of pure functions from one stage value to the next; what varies is a policy.
///
/// Requires: a model graph in canonical form (model::canonicalize), every operator lowerable.
/// Errors: raptor::error from the stage that found it. Deterministic: same graph, target and policies, same image.
/// Cost: O(nodes + tiles × statements + transfers); instructions are not unrolled here but by emission.
template <target::chip_target Target, class Policies>
class basic_compiler {
 public:
  basic_compiler(Target target, Policies policies, lowering::lowering_options options = {})
      : target_(std::move(target)), policies_(std::move(policies)), options_(std::move(options)) {}

  /// Runs the chain up to and including `last`. `observe(stage, compilation)` is called after every stage: it may print,
  /// verify, or throw to stop.
  template <class Observer = no_observer>
  [[nodiscard]] compilation compile(const model::graph& model, stage last = stage::image, const Observer& observe = {}) const {
    return complete(decide(model, last, observe), last, observe);
  }

  /// The first half of the chain: all that is decided, up to `last` or stage::scheduled, whichever comes first.
  template <class Observer = no_observer>
  [[nodiscard]] compilation decide(const model::graph& model, stage last = stage::scheduled, const Observer& observe = {}) const {
    compilation c;
    const auto chip = program::geometry(target_.chip());
    const auto done = [&](stage s) {
      observe(s, std::as_const(c));
      return s == last;
    };

    c.plan = policy<layout_slot>()(model);
    if (done(stage::planned)) return c;

    // Where the strategies that are fastest take more crossbars than there are, crossbars become dearer.
    auto options = options_;
    constexpr int most_rounds = 5;
    for (int round = 0; round < most_rounds; ++round, options.crossbar_weight = std::max(1.0, 4 * options.crossbar_weight)) {
      c.lowered = lowering::lower_model(model, c.plan, chip, options, time(), policy<convolution_slot>(), energy());
      if (schedule::total_crossbars(c.lowered.graph, chip) <= checked::multiply(chip.core_count, chip.crossbars_per_core)) break;
    }
    if (done(stage::lowered)) return c;

    c.computes = lowering::merge_trivial(lowering::write_where_copied(policy<accumulation_slot>()(c.lowered.graph)), options_.join_reads);
    if (options_.deliver_intermediates) lowering::deliver_intermediates(c.computes, model);
    if (done(stage::merged)) return c;

    // Search: of all partitions into stages, and of the copies that the replication policy proposes for each, the evaluator keeps the best.
    c.merged = std::move(c.computes);
    std::optional<schedule::picoseconds> least;
    std::optional<error> reason;
    for (auto plan : candidates(policy<partition_slot>()(target_, c.merged))) {
      std::optional<schedule::picoseconds> least_of_plan;
      for (int round = 0; round < most_balancing; ++round) {
        auto staged = schedule::forward_values(c.merged, plan);
        schedule::check_stages(staged.computes, staged.plan, chip.core_count);
        try {
          auto found = best_schedule(staged);
          const auto worth = policy<evaluator_slot>()(std::as_const(found.first));
          if (least_of_plan && worth >= *least_of_plan) break;
          least_of_plan = worth;
          const auto cores = rebalanced(staged, found.first);
          if (!least || worth < *least) {
            least = worth;
            c.computes = std::move(staged.computes), c.stages = std::move(staged.plan);
            c.schedule = std::move(found.first), c.copies = std::move(found.second), c.worth = worth;
          }
          if (!cores) break;
          plan.cores = *cores;
        } catch (const error& e) {
          if (e.code() != error_code::capacity) throw;
          reason = e;
          break;
        }
      }
    }
    if (!least) throw *reason;
    schedule::check_schedule(c.schedule, chip.core_count);
    done(stage::scheduled);
    return c;
  }

  /// The second half: from a compilation that decide has brought to stage::scheduled (any other is returned as it is) up to `last`.
  template <class Observer = no_observer>
  [[nodiscard]] compilation complete(compilation c, stage last = stage::image, const Observer& observe = {}) const {
    if (last <= stage::scheduled) return c;
    const auto chip = program::geometry(target_.chip());
    const auto done = [&](stage s) {
      observe(s, std::as_const(c));
      return s == last;
    };
    c.realized = policy<sync_slot>()(policy<communication_slot>()(c.computes, c.schedule, chip), c.schedule);
    if (done(stage::realized)) return c;

    c.image.bound = program::bind(c.realized);
    if (done(stage::bound)) return c;

    c.image = policy<memory_slot>()(std::move(c.image.bound));
    done(stage::image);
    return c;
  }

  [[nodiscard]] const Target& target() const noexcept { return target_; }

 private:
  template <class Slot>
  [[nodiscard]] const auto& policy() const {
    return policies_.template get<Slot>();
  }
  [[nodiscard]] static std::vector<std::vector<std::int64_t>> candidates(std::vector<std::int64_t> copies) { return {std::move(copies)}; }
  [[nodiscard]] static std::vector<std::vector<std::int64_t>> candidates(std::vector<std::vector<std::int64_t>> several) { return several; }
  [[nodiscard]] static std::vector<schedule::stage_plan> candidates(schedule::stage_plan plan) { return {std::move(plan)}; }
  [[nodiscard]] static std::vector<schedule::stage_plan> candidates(std::vector<schedule::stage_plan> several) { return several; }

  static constexpr int most_balancing = 4;  ///< how often cores move from stage to stage
  /// What the partition policy says about the cores of the stages once it sees a schedule; none where it has no opinion.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> rebalanced(const schedule::staged_graph& staged, const schedule::schedule& s) const {
    if constexpr (requires { policy<partition_slot>().rebalance(target_, staged.computes, staged.plan, s); })
      return policy<partition_slot>().rebalance(target_, staged.computes, staged.plan, s);
    else
      return std::nullopt;
  }
  /// The best schedule of the copies that the replication policy proposes, and these copies; where none fits, one copy of everything.
  [[nodiscard]] std::pair<schedule::schedule, std::vector<std::int64_t>> best_schedule(const schedule::staged_graph& staged) const {
    const auto& g = staged.computes;
    const auto tiles = schedule::make_tiles(target_, g);
    const auto make = [&](const std::vector<std::int64_t>& copies) {
      schedule::schedule s{};
      s.graph = tiles;
      schedule::place_stages(policy<placement_slot>(), target_, g, staged.plan, copies, s);
      policy<order_slot>()(target_, g, s);
      return s;
    };
    auto choices = schedule::replicate_stages([&](const auto& t, const auto& computes, const auto& of_stage) { return candidates(policy<replication_slot>()(t, computes, of_stage)); },
                                              target_, g, staged.plan, tiles);
    auto found = schedule::find_best(choices, make, policy<evaluator_slot>());
    if (!found) {
      choices.assign(1, std::vector<std::int64_t>(g.size(), 1));
      found = schedule::keep_best(choices, make, policy<evaluator_slot>());
    }
    if constexpr (requires { policy<placement_slot>().refinements; }) {
      auto last = found->first;
      for (int round = 0; round < policy<placement_slot>().refinements; ++round) {
        schedule::place_stages(policy<placement_slot>(), target_, g, staged.plan, choices[found->second], last);
        policy<order_slot>()(target_, g, last);
        if (policy<evaluator_slot>()(std::as_const(last)) < policy<evaluator_slot>()(std::as_const(found->first))) found->first = last;
      }
    }
    if constexpr (requires { policy<order_slot>().improve(target_, g, found->first, policy<evaluator_slot>()); })
      policy<order_slot>().improve(target_, g, found->first, policy<evaluator_slot>());
    return {std::move(found->first), std::move(choices[found->second])};
  }
  [[nodiscard]] lowering::instruction_time time() const {
    return [this](isa::opcode op, std::int64_t n) { return static_cast<std::int64_t>(target_.time(op, n)); };
  }
  [[nodiscard]] lowering::product_energy energy() const {
    if constexpr (requires(const Target& t) { t.product_energy(std::int64_t{}); })
      return [this](std::int64_t columns) { return static_cast<double>(target_.product_energy(columns)); };
    else
      return {};
  }

  Target target_;
  Policies policies_;
  lowering::lowering_options options_;
};

}  // namespace raptor
