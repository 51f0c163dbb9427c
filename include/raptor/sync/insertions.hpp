#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "raptor/isa/table.hpp"
#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/support/error.hpp"

/// How a synchronization policy puts signals and waits between the top-level items of the cores.
namespace raptor::sync {

/// Place among the events at one boundary, in execution order. What never blocks comes before what may.
enum class slot : std::uint8_t {
  signal,   ///< says that the item before the boundary is done
  entry,    ///< signals at the begin of a body, before anything that can block
  restart,  ///< more of these, behind those of the channels
  passage,  ///< waits and signals that belong to the item before
  need,     ///< waits that the item behind the boundary needs
  end       ///< waits and signals at the end of a body
};

/// Signals and waits to put into a program. Boundary b of a core lies before its top-level item b. `why` outlives the object.
class insertions {
 public:
  explicit insertions(std::size_t cores) : cores_(cores) {}

  void signal(std::size_t core, std::size_t boundary, slot where, std::size_t target, std::int32_t event, const char* why) {
    program::operation o;
    o.op = isa::opcode::sync, o.peer = static_cast<std::int32_t>(target), o.event = event;
    cores_.at(core).push_back({boundary, where, o, why});
  }
  void wait(std::size_t core, std::size_t boundary, slot where, std::int32_t event, std::size_t count, const char* why) {
    program::operation o;
    o.op = isa::opcode::wait, o.event = event, o.count = static_cast<std::int32_t>(count);
    cores_.at(core).push_back({boundary, where, o, why});
  }

  void append(const insertions& more) {
    for (std::size_t c = 0; c < cores_.size(); ++c) cores_[c].insert(cores_[c].end(), more.cores_.at(c).begin(), more.cores_[c].end());
  }

  /// The program with everything put in; what was added at one boundary and slot first comes first. The reason becomes the origin.
  /// Cost: O(items + n · log n).
  [[nodiscard]] program::program apply(program::program p) const {
    std::vector<std::pair<std::string, std::uint32_t>> origins;
    const auto origin = [&](const char* why) {
      for (const auto& [name, index] : origins)
        if (name == why) return index;
      origins.emplace_back(why, static_cast<std::uint32_t>(p.origins.size()));
      p.origins.emplace_back(why);
      return origins.back().second;
    };
    for (std::size_t c = 0; c < cores_.size(); ++c) {
      if (cores_[c].empty()) continue;
      auto events = cores_[c];
      std::stable_sort(events.begin(), events.end(), [](const inserted& a, const inserted& b) { return std::tie(a.boundary, a.where) < std::tie(b.boundary, b.where); });
      std::vector<program::item> body;
      body.reserve(p.cores[c].body.size() + events.size());
      std::size_t next = 0;
      for (std::size_t b = 0; b <= p.cores[c].body.size(); ++b) {
        for (; next < events.size() && events[next].boundary == b; ++next) body.push_back({events[next].what, origin(events[next].why)});
        if (b < p.cores[c].body.size()) body.push_back(std::move(p.cores[c].body[b]));
      }
      ensure(next == events.size(), "an event lies behind the end of a body");
      p.cores[c].body = std::move(body);
    }
    return p;
  }

 private:
  struct inserted {
    std::size_t boundary = 0;
    slot where = slot::signal;
    program::operation what;
    const char* why = "";
  };
  std::vector<std::vector<inserted>> cores_;
};

/// The event registers of the cores, given out from 0 upwards.
class register_files {
 public:
  explicit register_files(std::size_t cores) : next_(cores, 0) {}
  [[nodiscard]] std::size_t left(std::size_t core) const { return isa::event_count - static_cast<std::size_t>(next_.at(core)); }
  /// Errors: capacity, naming the core.
  [[nodiscard]] std::int32_t take(std::size_t core) {
    if (left(core) == 0) throw error(error_code::capacity, "more than " + std::to_string(isa::event_count) + " event registers needed", "core " + std::to_string(core));
    return next_[core]++;
  }

 private:
  std::vector<std::int32_t> next_;
};

}  // namespace raptor::sync
