#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/lower.hpp"
#include "raptor/lowering/merging.hpp"
#include "raptor/lowering/observe.hpp"
#include "raptor/policies.hpp"
#include "raptor/program/binding.hpp"
#include "raptor/schedule/search.hpp"

namespace raptor {

/// Every stage value of one compilation, in the order of the chain. What lies behind the last wanted stage is empty.
struct compilation {
  layout::plan plan;
  lowering::lowered lowered;           ///< the compute graph as the strategies made it
  lowering::compute_graph computes;    ///< after accumulation and merging
  schedule::schedule schedule;
  std::vector<std::int64_t> copies;    ///< by compute
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
      c.lowered = lowering::lower_model(model, c.plan, chip, options, time(), policy<convolution_slot>());
      if (schedule::total_crossbars(c.lowered.graph, chip) <= checked::multiply(chip.core_count, chip.crossbars_per_core)) break;
    }
    if (done(stage::lowered)) return c;

    c.computes = lowering::merge_trivial(policy<accumulation_slot>()(c.lowered.graph));
    if (options_.deliver_intermediates) lowering::deliver_intermediates(c.computes, model);
    if (done(stage::merged)) return c;

    const auto stages = policy<partition_slot>()(target_, c.computes);
    schedule::check_stages(c.computes, stages);
    const auto tiles = schedule::make_tiles(target_, c.computes);
    const auto make = [&](const std::vector<std::int64_t>& copies) {
      schedule::schedule s{tiles, {}, {}, {}, {}, 0};
      policy<placement_slot>()(target_, c.computes, copies, s);
      for (std::size_t i = 0; i < s.place.size(); ++i) s.place[i].stage = stages[tiles.tiles[i].compute];
      policy<order_slot>()(target_, c.computes, s);
      return s;
    };
    // Search: the evaluator keeps the best schedule of the copies that the replication policy proposes; where none fits, one copy of everything.
    auto choices = candidates(policy<replication_slot>()(target_, c.computes, tiles));
    auto found = schedule::find_best(choices, make, policy<evaluator_slot>());
    if (!found) {
      choices.assign(1, std::vector<std::int64_t>(c.computes.size(), 1));
      found = schedule::keep_best(choices, make, policy<evaluator_slot>());
    }
    c.schedule = std::move(found->first);
    c.copies = std::move(choices[found->second]);
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
  [[nodiscard]] lowering::instruction_time time() const {
    return [this](isa::opcode op, std::int64_t n) { return static_cast<std::int64_t>(target_.time(op, n)); };
  }

  Target target_;
  Policies policies_;
  lowering::lowering_options options_;
};

}  // namespace raptor
