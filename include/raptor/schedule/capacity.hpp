#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "raptor/schedule/packing.hpp"

/// Capacity policies of list scheduling: which processors may still take a task.
namespace raptor::schedule {

/// A capacity policy is a value that a scheduler copies and drives through one run:
/// - `begin(tasks, processors)`: a new run; throws error_code::capacity where no placement exists (or none can be promised)
/// - `take(task, processor)`: true: the task now belongs to the processor; false: it cannot, and nothing has changed
/// Contract: after `begin` some processor takes each task, whatever was taken before. Tasks are vertex numbers.
template <class C>
concept capacity_policy = std::copyable<C> && requires(C capacity, std::size_t task, std::size_t processor) {
  capacity.begin(task, processor);
  { capacity.take(task, processor) } -> std::convertible_to<bool>;
};

/// Every processor takes every task.
struct unlimited {
  void begin(std::size_t, std::size_t) const noexcept {}
  [[nodiscard]] bool take(std::size_t, std::size_t) const noexcept { return true; }
};

/// One array group's content: tasks that name the same id on one processor share it.
struct weight_set {
  std::uint32_t id = 0;
  std::int64_t crossbars = 0;
  friend auto operator<=>(const weight_set&, const weight_set&) = default;
};

/// What tasks need resident and what processors have room for.
struct weight_requirements {
  std::vector<std::vector<weight_set>> task;  ///< by task number; empty: no weights. All sets of a task on its processor
  std::vector<std::int64_t> capacity;         ///< crossbars, by processor
};

/// Resident weights: the distinct sets on a processor never exceed its crossbars.
///
/// Guarantees: where first-fit or best-fit decreasing packs the weights, every task finds a processor, whatever order they
/// come in. Every set that is not placed yet has a reservation; taking another processor moves the reservations there
/// out of the way where they fit elsewhere, and is refused where they do not. A task may always go to its reservation, or to a
/// processor that already holds its weights; a further copy on another processor is granted where the room is not reserved.
/// Errors: capacity with the crossbars needed and available; malformed where the lists do not fit the problem.
/// Cost: begin O(W log W + W·P), W distinct lists of sets; take O(log) where there is room, else at most O(P · sets of the core),
/// which is tried for at most `most_evictions` processors a task.
class resident_weights {
 public:
  static constexpr int most_evictions = 16;

  explicit resident_weights(weight_requirements requirements) : requirements_(std::move(requirements)) {
    std::map<std::vector<std::uint32_t>, std::size_t> item_of;
    for (auto& sets : requirements_.task) {
      std::sort(sets.begin(), sets.end());
      sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
      std::vector<std::uint32_t> ids;
      for (const auto& s : sets) {
        if (s.crossbars < 0) throw error(error_code::malformed, "a set of weights has " + std::to_string(s.crossbars) + " crossbars");
        const auto [known, added] = crossbars_.try_emplace(s.id, s.crossbars);
        if (known->second != s.crossbars)
          throw error(error_code::malformed, "weights " + std::to_string(s.id) + " have " + std::to_string(known->second) + " crossbars and " +
                                                 std::to_string(s.crossbars));
        ids.push_back(s.id);
      }
      if (ids.empty()) {
        item_.push_back(no_item);
        continue;
      }
      const auto [found, added] = item_of.try_emplace(ids, items_.size());
      if (added) items_.push_back(ids);
      item_.push_back(found->second);
    }
    for (const auto& ids : items_) {
      std::int64_t size = 0;
      for (const auto id : ids) size = checked::add(size, crossbars_.at(id));
      sizes_.push_back(size);
    }
  }

  void begin(std::size_t tasks, std::size_t processors) {
    if (tasks != item_.size() || processors != requirements_.capacity.size())
      throw error(error_code::malformed, "weights of " + std::to_string(item_.size()) + " tasks and " + std::to_string(requirements_.capacity.size()) +
                                             " processors for a problem of " + std::to_string(tasks) + " and " + std::to_string(processors));
    if (!reserve(false) && !reserve(true)) {
      std::int64_t needed = 0;
      for (const auto& [id, size] : crossbars_) needed = checked::add(needed, size);
      throw detail::does_not_fit(sizes_, requirements_.capacity, needed);
    }
    last_task_ = no_item;
  }

  [[nodiscard]] bool take(std::size_t task, std::size_t processor) {
    const std::size_t item = item_[task];
    if (item == no_item) return true;
    if (task != last_task_) {
      last_task_ = task;
      evictions_left_ = most_evictions;
    }
    auto& to = cores_[processor];
    if (std::binary_search(to.placed.begin(), to.placed.end(), item)) return true;
    const std::size_t home = home_[item];
    if (home == processor) {
      drop(to.reserved, item);
      put(to.placed, item);
      home_[item] = no_item;
      return true;
    }
    if (home != no_item) remove(home, item);
    if (extra(processor, item) <= to.room || (home != no_item && make_room(processor, item))) {  // a further copy evicts nobody
      if (home != no_item) drop(cores_[home].reserved, item);
      home_[item] = no_item;
      add(processor, item);
      put(to.placed, item);
      return true;
    }
    if (home != no_item) add(home, item);
    return false;
  }

 private:
  static constexpr std::size_t no_item = static_cast<std::size_t>(-1);
  struct core {
    std::int64_t room = 0;
    std::map<std::uint32_t, std::uint32_t> uses;  ///< weights id → items here that need it
    std::vector<std::size_t> placed, reserved;    ///< items, sorted
  };

  static void put(std::vector<std::size_t>& list, std::size_t item) { list.insert(std::lower_bound(list.begin(), list.end(), item), item); }
  static void drop(std::vector<std::size_t>& list, std::size_t item) { list.erase(std::lower_bound(list.begin(), list.end(), item)); }

  /// Crossbars that the item needs beyond what the processor already holds.
  [[nodiscard]] std::int64_t extra(std::size_t processor, std::size_t item) const {
    const auto& c = cores_[processor];
    std::int64_t sum = 0;
    for (const auto id : items_[item])
      if (!c.uses.contains(id)) sum += crossbars_.at(id);
    return sum;
  }
  void add(std::size_t processor, std::size_t item) {
    auto& c = cores_[processor];
    for (const auto id : items_[item])
      if (c.uses[id]++ == 0) c.room -= crossbars_.at(id);
  }
  void remove(std::size_t processor, std::size_t item) {
    auto& c = cores_[processor];
    for (const auto id : items_[item])
      if (const auto use = c.uses.find(id); --use->second == 0) {
        c.uses.erase(use);
        c.room += crossbars_.at(id);
      }
  }

  /// Decreasing packing of all items into the empty processors: first fit, or where `best`, the one with least room left.
  [[nodiscard]] bool reserve(bool best) {
    cores_.assign(requirements_.capacity.size(), {});
    for (std::size_t p = 0; p < cores_.size(); ++p) cores_[p].room = requirements_.capacity[p];
    home_.assign(items_.size(), no_item);
    for (const auto item : by_decreasing_size(sizes_)) {
      std::size_t found = no_item;
      std::int64_t least = 0;
      for (std::size_t p = 0; p < cores_.size() && (best || found == no_item); ++p) {
        const auto left = cores_[p].room - extra(p, item);
        if (left >= 0 && (found == no_item || left < least)) {
          found = p;
          least = left;
        }
      }
      if (found == no_item) return false;
      add(found, item);
      put(cores_[found].reserved, item);
      home_[item] = found;
    }
    return true;
  }

  /// Moves reservations away from the processor until the item fits; undoes all where it cannot.
  [[nodiscard]] bool make_room(std::size_t processor, std::size_t item) {
    auto candidates = cores_[processor].reserved;
    std::int64_t most = cores_[processor].room;  // what moving everything away would leave, at best
    for (const auto other : candidates) most += sizes_[other];
    if (evictions_left_ == 0 || extra(processor, item) > most) return false;
    --evictions_left_;
    std::stable_sort(candidates.begin(), candidates.end(), [&](std::size_t a, std::size_t b) { return sizes_[a] > sizes_[b]; });
    std::vector<std::size_t> moved;
    for (const auto other : candidates) {
      for (std::size_t p = 0; p < cores_.size(); ++p) {
        if (p == processor || extra(p, other) > cores_[p].room) continue;
        remove(processor, other);
        add(p, other);
        home_[other] = p;
        moved.push_back(other);
        break;
      }
      if (extra(processor, item) <= cores_[processor].room) {
        for (const auto m : moved) {
          drop(cores_[processor].reserved, m);
          put(cores_[home_[m]].reserved, m);
        }
        return true;
      }
    }
    for (auto m = moved.rbegin(); m != moved.rend(); ++m) {
      remove(home_[*m], *m);
      add(processor, *m);
      home_[*m] = processor;
    }
    return false;
  }

  weight_requirements requirements_;
  std::map<std::uint32_t, std::int64_t> crossbars_;  ///< of each weights id
  std::vector<std::vector<std::uint32_t>> items_;    ///< distinct lists of ids
  std::vector<std::int64_t> sizes_;                  ///< crossbars of an item alone
  std::vector<std::size_t> item_;                    ///< of each task
  std::vector<core> cores_;
  std::vector<std::size_t> home_;  ///< processor of the reservation; none once the item is placed
  std::size_t last_task_ = no_item;
  int evictions_left_ = 0;
};

static_assert(capacity_policy<unlimited> && capacity_policy<resident_weights>);

}  // namespace raptor::schedule
