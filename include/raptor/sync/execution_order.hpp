#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "raptor/program/effects.hpp"
#include "raptor/program/unrolled.hpp"
#include "raptor/sync/relations.hpp"

namespace raptor::sync {

/// A valid global order of the top-level items of a program that has no events yet, and when each would run.
///
/// An item begins when the items before it and the stores that it loads are done; sends and receives meet. Among what could go on, the
/// core of the lowest stage does, so that writers are as far ahead of readers as they can be: an event whose signals come before its wait in
/// this order cannot block, together with all others that do. Times count operations, and a core waits for nothing but its dependences.
class execution_order {
 public:
  struct span {
    std::int64_t begin = 0, end = 0;     ///< positions in the order
    std::int64_t start = 0, finish = 0;  ///< times
  };

  /// Requires check_matching. Errors: deadlock, where no order exists, with the cores that are blocked. Deterministic.
  /// Cost: O((items + unrolled communication) · log cores).
  execution_order(const program::program& p, const relations& needs, const std::vector<std::int64_t>& stage) : program_(&p), needs_(&needs), cores_(p.cores.size()) {
    for (std::size_t c = 0; c < cores_.size(); ++c) {
      auto& core = cores_[c];
      core.body = std::make_unique<program::unrolled>(p.cores[c].body, "core " + std::to_string(c));
      core.at = std::make_unique<program::unrolled::cursor>(*core.body);
      core.items.resize(p.cores[c].body.size());
      core.key = {stage.empty() ? 0 : stage[c], c};
      ready_.insert(core.key);
    }
    while (!ready_.empty()) {
      const std::size_t c = ready_.begin()->second;
      ready_.erase(ready_.begin());
      if (step(c)) ready_.insert(cores_[c].key);
    }
    judge();
    for (auto& core : cores_) core.at.reset(), core.body.reset();
  }

  [[nodiscard]] const span& at(std::size_t core, std::size_t item) const { return cores_.at(core).items.at(item); }
  [[nodiscard]] const span& at(const item_of& i) const { return at(i.core, i.item); }

 private:
  struct core_state {
    std::unique_ptr<program::unrolled> body;
    std::unique_ptr<program::unrolled::cursor> at;
    std::vector<span> items;
    std::pair<std::int64_t, std::size_t> key;  ///< stage, core
    std::size_t item = 0;                      ///< current, or next
    bool begun = false;
    std::size_t next_load = 0;                 ///< in relations::loads
    std::int64_t time = 0;
    std::vector<std::size_t> waiting;          ///< readers that wait for a store of this core
  };
  const program::program* program_;
  const relations* needs_;
  std::vector<core_state> cores_;
  std::set<std::pair<std::int64_t, std::size_t>> ready_;
  std::int64_t position_ = 0;

  static std::int64_t operations(const program::item& i) {
    const auto* l = std::get_if<program::loop>(&i.what);
    if (l == nullptr) return 1;
    std::int64_t inside = 0;
    for (const auto& inner : l->body) inside += operations(inner);
    return checked::multiply(inside, l->count);
  }
  [[nodiscard]] bool done(const item_of& i) const { return cores_[i.core].item > i.item; }

  /// Begins, goes on with, or ends the current item of a core; false where it is blocked or at the end.
  bool step(std::size_t c) {
    auto& core = cores_[c];
    if (core.item == core.items.size()) return false;
    auto& now = core.items[core.item];
    if (!core.begun) {
      const auto& loads = needs_->loads[c];
      if (core.next_load < loads.size() && loads[core.next_load].item == core.item) {
        for (const auto& s : loads[core.next_load].sources)
          if (!done(s)) {
            cores_[s.core].waiting.push_back(c);
            return false;
          }
        for (const auto& s : loads[core.next_load].sources) core.time = std::max(core.time, at(s).finish);
        ++core.next_load;
      }
      core.begun = true;
      now.begin = position_++;
      now.start = core.time;
    }
    if (!core.at->done() && core.at->item() == core.item) return meet(c);
    core.time += operations(program_->cores[c].body[core.item]);
    now.end = position_++;
    now.finish = core.time;
    core.begun = false;
    ++core.item;
    for (const auto r : std::exchange(core.waiting, {})) ready_.insert(cores_[r].key);
    return true;
  }

  bool meet(std::size_t c) {
    auto& core = cores_[c];
    const auto& o = core.at->current();
    const auto other = static_cast<std::size_t>(o.peer);
    auto& peer = cores_[other];
    if (!peer.begun || peer.at->done() || peer.at->item() != peer.item) return false;
    const auto& met = peer.at->current();
    if (met.op != (o.op == isa::opcode::send ? isa::opcode::recv : isa::opcode::send) || static_cast<std::size_t>(met.peer) != c) return false;
    core.time = peer.time = std::max(core.time, peer.time) + 1;
    core.at->advance();
    peer.at->advance();
    ready_.insert(peer.key);
    return true;
  }

  void judge() const {
    std::vector<std::string> blocked;
    for (std::size_t c = 0; c < cores_.size(); ++c)
      if (const auto& core = cores_[c]; core.item < core.items.size()) {
        std::string text = "core " + std::to_string(c) + ", item " + std::to_string(core.item);
        if (!core.begun) {
          for (const auto& s : needs_->loads[c][core.next_load].sources)
            if (!done(s)) text += ": loads what core " + std::to_string(s.core) + ", item " + std::to_string(s.item) + " stores";
        } else {
          const auto& o = core.at->current();
          text += o.op == isa::opcode::send ? ": sends to core " : ": receives from core ";
          text += std::to_string(o.peer);
        }
        blocked.push_back(std::move(text));
      }
    if (!blocked.empty())
      throw error(error_code::deadlock, "no order of the top-level items lets every load come after its stores and every message be met", blocked.front(),
                  "a load and the store that it needs must not wait for one another through messages; a store that is loaded early needs a top-level item of its own")
          .with_details(std::move(blocked));
  }
};

}  // namespace raptor::sync
