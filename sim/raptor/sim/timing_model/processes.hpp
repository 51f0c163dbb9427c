#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "raptor/sim/timing_model/core.hpp"

/// What runs beside the clock: units and switches as processes, and who runs next inside one instant (TIMING 10.2).
namespace raptor::sim::timing {

/// What a sleeping process waits for.
enum class signal : std::uint8_t { none, start, message_queued, go, data, sync, request_done };

/// A unit or a switch. `step`: where its script goes on.
struct process {
  std::uint32_t owner = 0;  ///< index of the node
  std::int32_t unit = 0;    ///< group number, vector_unit, transfer_unit or switch_unit
  std::uint8_t step = 0;
  signal waits_for = signal::start;
  flight_number job = no_flight;
  instant started = 0;
  instant until = 0;  ///< when it goes on, where it waits for a time
};

/// What a switch sends: between transfer units, or to the global memory and back (TIMING 7 and 9).
struct message {
  enum class type : std::uint8_t { ready, go, data, sync, read, write } what = type::ready;
  std::int64_t to = 0;           ///< core id; not consulted for read and write
  std::int64_t bytes = 0;        ///< on the network
  std::int64_t information = 0;  ///< tag, event register, or the request's bytes
  std::int64_t pc = 0;           ///< the instruction that it belongs to
  instant queued = 0;
};

/// A core with its processes and what its transfer unit and switch remember.
template <observes Observer>
struct node {
  node(const timed_core& program, const core_constants& shared, std::uint32_t index, Observer& observer)
      : state(program, shared, index, observer), groups(program.groups.size()), group_busy(program.groups.size()) {
    vector = {index, vector_unit};
    transfer = {index, transfer_unit};
    network = {index, switch_unit, 0, signal::message_queued};
    for (std::size_t g = 0; g < groups.size(); ++g) groups[g] = {index, static_cast<std::int32_t>(g)};
  }
  node(node&&) = default;  // a vector wants it; nodes stay where they are once there are processes
  /// No unit of the core does anything before. A sleeping transfer unit can be woken at any time.
  [[nodiscard]] instant quiet_until() const noexcept {
    instant first = never;
    if (state.job(transfer_unit) != no_flight) first = transfer.waits_for == signal::none ? transfer.until : 0;
    if (state.job(vector_unit) != no_flight) first = std::min(first, vector.until);
    if (state.groups_busy() != 0)
      for (std::size_t g = 0; g < groups.size(); ++g)
        if (state.group_is_busy(g)) first = std::min(first, groups[g].until);
    return first;
  }
  [[nodiscard]] std::int64_t id() const noexcept { return state.program().id; }

  core<Observer> state;
  process transfer, vector, network;
  // Time in use, without waiting for memories.
  instant vector_busy = 0, network_busy = 0;
  std::vector<process> groups;
  std::vector<instant> group_busy;
  std::int64_t receive_from = -1, send_to = -1, send_tag = -1;
  queue_of<message> outgoing;
  message current;
  std::map<std::int64_t, message> waiting;  ///< source → its ready (or data) message; information −1: answered
  std::array<std::int64_t, 32> events{};
  std::int64_t wanted_event = -1, wanted_value = -1;
};

/// A set of cores; the smallest comes first.
class core_set {
 public:
  explicit core_set(std::size_t cores) : words_((cores + 63) / 64, 0) {}
  void insert(std::size_t core) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << (core % 64);
    if ((words_[core / 64] & bit) == 0) ++count_;
    words_[core / 64] |= bit;
  }
  /// Requires: it is in the set.
  void erase(std::size_t core) noexcept {
    words_[core / 64] &= ~(std::uint64_t{1} << (core % 64));
    --count_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t first() const noexcept {
    std::size_t w = 0;
    while (words_[w] == 0) ++w;
    return w * 64 + static_cast<std::size_t>(std::countr_zero(words_[w]));
  }
  /// Appends the cores, ascending.
  void list(std::vector<std::uint32_t>& to) const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::uint64_t bits = words_[w]; bits != 0; bits &= bits - 1) to.push_back(static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(std::countr_zero(bits)));
  }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t count_ = 0;
};

/// Who runs next. Processes that are woken run in the next round of the instant; those that wait for no time after settling.
class scheduler {
 public:
  explicit scheduler(std::size_t cores) : active(cores) {}

  /// A wake-up of a process that does not sleep on it is lost.
  void notify(process& p, signal s) {
    if (p.waits_for != s) return;
    p.waits_for = signal::none;
    runnable.push_back(&p);
  }
  void wait(process& p, instant delay) {
    p.until = now + delay;
    if (delay == 0) zero.push_back(&p);
    else pending.insert(p.until, &p);
  }

  instant now = 0;
  pending_set<process*> pending;  ///< the clock is nullptr
  std::vector<process*> runnable, zero;
  core_set active;  ///< cores whose next edges matter
};

}  // namespace raptor::sim::timing
