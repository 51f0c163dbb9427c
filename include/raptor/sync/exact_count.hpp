#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "raptor/program/program.hpp"
#include "raptor/program/shared_memory.hpp"
#include "raptor/schedule/schedule.hpp"
#include "raptor/sync/execution_order.hpp"
#include "raptor/sync/input_order.hpp"
#include "raptor/sync/insertions.hpp"
#include "raptor/sync/relations.hpp"
#include "raptor/sync/repeating_rendezvous.hpp"
#include "raptor/sync/restart.hpp"
#include "raptor/sync/runs.hpp"

namespace raptor::sync {

/// What holds the iterations of the cores together beside the channels.
enum class restart_scope : std::uint8_t {
  all_cores,     ///< a barrier of all stage-zero cores and a release tree of the others
  input_readers  ///< only the cores that load graph inputs, where messages do not order them (plan_input_order)
};

/// A wait of one core for the stores of others, in front of its item `item`.
struct ready_wait {
  std::uint32_t item = 0;
  std::vector<item_of> sources;  ///< each writer once: its last item that the wait covers
};
/// A wait of one core for the readers of what it overwrites, in front of its item `item`.
struct free_wait {
  std::uint32_t item = 0;
  std::vector<std::uint32_t> readers;
};

/// The waits that channels need, one in front of every item that loads what no wait before it covers; merged into at most `most`
/// waits, as late as that allows. A wait never moves before a store in the given order. Empty result: that is not possible.
[[nodiscard]] inline std::vector<ready_wait> plan_ready(const std::vector<channel_load>& loads, std::size_t core, const execution_order& order, std::size_t most) {
  std::map<std::uint32_t, std::uint32_t> covered;  // writer → item + 1
  std::vector<ready_wait> single;
  for (const auto& l : loads) {
    ready_wait w{l.item, {}};
    for (const auto& s : l.sources)
      if (auto& known = covered[s.core]; s.item >= known) {
        known = s.item + 1;
        w.sources.push_back(s);
      }
    if (!w.sources.empty()) single.push_back(std::move(w));
  }
  const auto delay = [&](std::size_t first, std::size_t k) {
    const auto& begin = order.at(core, single[first].item);
    std::int64_t longest = 0;
    for (const auto& s : single[k].sources) {
      if (order.at(s).end > begin.begin) return impossible_delay;
      longest = std::max(longest, order.at(s).finish - begin.start);
    }
    return longest;
  };
  const auto starts = cut_runs(single.size(), most, delay);
  std::vector<ready_wait> result;
  for (std::size_t r = 0; r < starts.size(); ++r) {
    std::map<std::uint32_t, std::uint32_t> last;
    const auto end = r + 1 < starts.size() ? starts[r + 1] : single.size();
    for (auto k = starts[r]; k < end; ++k)
      for (const auto& s : single[k].sources) last[s.core] = s.item;  // later members have later items
    result.push_back({single[starts[r]].item, {}});
    for (const auto& [writer, item] : last) result.back().sources.push_back({writer, item});
  }
  return result;
}

/// The readers that a core waits for, grouped by its first item that overwrites what they load; merged into at most `most` waits, as late as
/// that allows.
[[nodiscard]] inline std::vector<free_wait> plan_free(const std::vector<overwrite>& overwrites, std::size_t core, const execution_order& order, std::size_t most) {
  std::vector<free_wait> groups;
  for (const auto& o : overwrites) {
    if (groups.empty() || groups.back().item != o.item) groups.push_back({o.item, {}});
    groups.back().readers.push_back(o.reader);
  }
  const auto starts = cut_runs(groups.size(), most, [&](std::size_t first, std::size_t k) { return order.at(core, groups[k].item).start - order.at(core, groups[first].item).start; });
  std::vector<free_wait> result;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    if (result.size() < starts.size() && starts[result.size()] == k) result.push_back({groups[k].item, {}});
    if (result.empty()) return {};
    result.back().readers.insert(result.back().readers.end(), groups[k].readers.begin(), groups[k].readers.end());
  }
  return result;
}

/// Synchronization policy with exact counts for programs that repeat for input after input, with channels through global memory
/// (INVARIANTS: Events, Data that crosses global memory, Restart).
///
/// - READY: after the last store that a wait covers its writer signals the reader, which waits for all its writers before it loads.
/// - FREE: at the begin of its body a reader signals every core whose stores it loads; that core waits before the first store that can
///   overwrite what readers load, once for all readers with the same such store.
/// - Restart: see restart_scope.
/// Registers: those of the restart first, then READY, then FREE. Where they are short, FREE waits of a core merge, down to one; then READY
/// waits, each time so that the longest wait of an item for what it does not need is least.
/// Where all cores meet by rendezvous it is repeating_rendezvous.
///
/// Requires: stages as check_stages has them; a load of a channel and its stores in different top-level items. Guarantees: verify::check_happens_before.
/// Errors: capacity, naming the core, where 32 registers do not suffice; unsupported or malformed for channels that find_relations refuses;
/// deadlock, where no order of the items exists. Deterministic. Cost: O(a · log a + communication · log cores) for a unrolled accesses to channels;
/// times the talking cores for restart_scope::input_readers.
struct exact_count {
  restart_scope restart = restart_scope::all_cores;

  [[nodiscard]] program::program operator()(program::program realized, const schedule::schedule& s) const {
    ensure(!verify::has_events(realized), "the program has events before synchronization is planned");
    const program::shared_memory memory(realized);
    if (memory.empty()) return repeating_rendezvous{}(std::move(realized), s);
    const auto stage = core_stages(realized, s);

    const auto needs = find_relations(realized, memory);
    const execution_order order(realized, needs, stage);
    register_files registers(realized.cores.size());
    insertions plan(realized.cores.size());
    const auto readers = needs.input_readers();
    if (restart == restart_scope::all_cores) {
      plan_all(realized, stage, registers, plan);
    } else if (readers.size() > 1) {
      insertions inputs(realized.cores.size());
      plan_input_order(realized, needs, readers, order, registers, inputs);  // its registers are set aside also where the channels do without
      plan_channels(needs, order, registers, plan);
      auto channels_only = plan.apply(realized);
      if (verify::orders_input_loads(channels_only)) return channels_only;
      plan.append(inputs);
      return plan.apply(std::move(realized));
    }
    plan_channels(needs, order, registers, plan);
    return plan.apply(std::move(realized));
  }

 private:
  static void plan_all(const program::program& p, const std::vector<std::int64_t>& stage, register_files& registers, insertions& plan) {
    std::vector<std::size_t> first, downstream;
    for (std::size_t c = 0; c < stage.size(); ++c) {
      if (stage[c] == 0) first.push_back(c);
      if (stage[c] > 0) downstream.push_back(c);
    }
    std::stable_sort(downstream.begin(), downstream.end(), [&](std::size_t a, std::size_t b) { return stage[a] < stage[b]; });
    plan_barrier(p, first, registers, plan);
    if (!first.empty()) plan_release_tree(p, first.front(), downstream, registers, plan);
  }

  static void plan_channels(const relations& needs, const execution_order& order, register_files& registers, insertions& plan) {
    constexpr auto ready = "channel ready", free = "channel free";
    for (std::size_t c = 0; c < needs.loads.size(); ++c) {
      const std::size_t available = registers.left(c), for_free = needs.overwrites[c].empty() ? 0 : 1;
      const auto waits = available < for_free ? std::vector<ready_wait>{} : plan_ready(needs.loads[c], c, order, available - for_free);
      if (available < for_free || (waits.empty() && !needs.loads[c].empty())) fail(c, available, needs, order);
      for (const auto& w : waits) {
        const auto event = registers.take(c);
        for (const auto& s : w.sources) plan.signal(s.core, s.item + 1, slot::signal, c, event, ready);
        plan.wait(c, w.item, slot::need, event, w.sources.size(), ready);
      }
      for (const auto& w : plan_free(needs.overwrites[c], c, order, registers.left(c))) {
        const auto event = registers.take(c);
        for (const auto r : w.readers) plan.signal(r, 0, slot::entry, c, event, free);
        plan.wait(c, w.item, slot::need, event, w.readers.size(), free);
      }
    }
  }

  [[noreturn]] static void fail(std::size_t core, std::size_t available, const relations& needs, const execution_order& order) {
    std::size_t least = 0;
    while (least <= needs.loads[core].size() && plan_ready(needs.loads[core], core, order, least).empty()) ++least;
    if (needs.loads[core].empty()) least = 0;
    throw error(error_code::capacity,
                "it needs at least " + std::to_string(least) + " event registers for what it loads from other cores" +
                    (needs.overwrites[core].empty() ? "" : " and 1 for what it stores for them") + "; " + std::to_string(available) + " of " +
                    std::to_string(isa::event_count) + " are left",
                "core " + std::to_string(core), "use fewer stages, or rendezvous for some of its channels");
  }
};

}  // namespace raptor::sync
