#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "raptor/program/shared_memory.hpp"
#include "raptor/schedule/schedule.hpp"
#include "raptor/support/error.hpp"

/// Which loads of one core depend on which stores of another through global memory.
namespace raptor::sync {

/// A top-level item of a core.
struct item_of {
  std::uint32_t core = 0;
  std::uint32_t item = 0;
  friend auto operator<=>(const item_of&, const item_of&) = default;
};

/// A top-level item that loads from channels, and for every other core that stores what it loads the last item that does.
struct channel_load {
  std::uint32_t item = 0;
  std::vector<item_of> sources;  ///< by core
};
/// A reader of what a core stores, and the core's first item that overwrites what the reader has loaded.
struct overwrite {
  std::uint32_t item = 0;
  std::uint32_t reader = 0;
  friend auto operator<=>(const overwrite&, const overwrite&) = default;
};

struct relations {
  std::vector<std::vector<channel_load>> loads;     ///< by reader, in the order of its items
  std::vector<std::vector<overwrite>> overwrites;   ///< by writer, by item; every reader once
  std::vector<std::int64_t> last_input;             ///< by core: last item that loads a graph input, -1: none

  [[nodiscard]] std::vector<std::size_t> input_readers() const {
    std::vector<std::size_t> result;
    for (std::size_t c = 0; c < last_input.size(); ++c)
      if (last_input[c] >= 0) result.push_back(c);
    return result;
  }
};

/// By core: last top-level item that loads a graph input, -1 for none. Cost: linear in the text.
[[nodiscard]] inline std::vector<std::int64_t> last_input_items(const program::program& p) {
  std::vector<bool> input(p.buffers.size(), false);
  for (const auto& port : p.inputs) input[port.buffer] = true;
  std::vector<std::int64_t> result(p.cores.size(), -1);
  for (std::size_t c = 0; c < p.cores.size(); ++c)
    program::unrolled(p.cores[c].body, "core " + std::to_string(c)).each_range([&](const program::operation& o, const auto&, std::size_t item) {
      if (o.op == isa::opcode::ld && input[program::locate(p, o.a.buffer).root]) result[c] = static_cast<std::int64_t>(item);
    });
  return result;
}

/// Relations of a realized program. A load gets what the body stores last. What a core stores and loads itself needs no relation.
///
/// Errors: malformed for a load of what no core stores; unsupported for elements that two cores store. Deterministic.
/// Cost: O(a · log a) in the number a of unrolled accesses to channels.
[[nodiscard]] inline relations find_relations(const program::program& p, const program::shared_memory& memory) {
  using role = program::shared_memory::role;
  constexpr std::uint32_t nobody = program::none;
  struct piece {
    std::uint32_t writer = nobody, first = 0, last = 0;
  };
  std::vector<piece> pieces(memory.size());
  relations result;
  result.loads.resize(p.cores.size());
  result.overwrites.resize(p.cores.size());
  result.last_input = last_input_items(p);
  const auto each = [&](bool stores, const auto& f) {
    for (std::uint32_t c = 0; c < p.cores.size(); ++c) {
      const program::unrolled body(p.cores[c].body, "core " + std::to_string(c));
      program::unrolled::cursor at(body, [&](const program::operation& o) { return memory.of(o) == role::channel && (o.op == isa::opcode::st) == stores; });
      for (; !at.done(); at.advance()) {
        const auto s = at.here();
        const auto [first, last] = memory.pieces(program::access_of(p, s));
        for (auto k = first; k < last; ++k) f(c, static_cast<std::uint32_t>(s.item), k);
      }
    }
  };
  const auto place = [](std::uint32_t core, std::uint32_t item) { return "core " + std::to_string(core) + ", item " + std::to_string(item); };
  each(true, [&](std::uint32_t c, std::uint32_t item, std::size_t k) {
    auto& stored = pieces[k];
    if (stored.writer != nobody && stored.writer != c)
      throw error(error_code::unsupported, memory.describe(k) + " are stored by core " + std::to_string(stored.writer) + " and core " + std::to_string(c), place(c, item),
                  "no event orders two writers: give every element of a channel one writer");
    if (stored.writer == nobody) stored = {c, item, item};
    stored.last = item;
  });
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> first_overwrite;  // writer, reader
  each(false, [&](std::uint32_t c, std::uint32_t item, std::size_t k) {
    const auto& stored = pieces[k];
    if (stored.writer == nobody) throw error(error_code::malformed, "it loads " + memory.describe(k) + ", which no core stores", place(c, item));
    if (stored.writer == c) return;
    auto& loads = result.loads[c];
    if (loads.empty() || loads.back().item != item) loads.push_back({item, {}});
    auto& sources = loads.back().sources;
    const auto at = std::lower_bound(sources.begin(), sources.end(), stored.writer, [](const item_of& s, std::uint32_t core) { return s.core < core; });
    if (at != sources.end() && at->core == stored.writer) at->item = std::max(at->item, stored.last);
    else sources.insert(at, {stored.writer, stored.last});
    const auto [known, first] = first_overwrite.try_emplace({stored.writer, c}, stored.first);
    if (!first) known->second = std::min(known->second, stored.first);
  });
  for (const auto& [pair, item] : first_overwrite) result.overwrites[pair.first].push_back({item, pair.second});
  for (auto& list : result.overwrites) std::sort(list.begin(), list.end());
  return result;
}

/// Stage of every core: that of its tiles, -1 without tiles or where the body is empty. Throws internal where a core has tiles of two stages.
[[nodiscard]] inline std::vector<std::int64_t> core_stages(const program::program& p, const schedule::schedule& s) {
  std::vector<std::int64_t> result(p.cores.size(), -1);
  for (const auto& placed : s.place) {
    if (p.cores.at(placed.core).body.empty()) continue;
    auto& stage = result[placed.core];
    ensure(stage < 0 || stage == static_cast<std::int64_t>(placed.stage), "a core has tiles of two stages", "core " + std::to_string(placed.core));
    stage = static_cast<std::int64_t>(placed.stage);
  }
  return result;
}

}  // namespace raptor::sync
