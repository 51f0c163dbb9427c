#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "raptor/memory/allocate.hpp"
#include "raptor/memory/lifetime.hpp"
#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/support/error.hpp"

/// Memory planning: from the bound program to the image, in which every buffer has its address.
namespace raptor::memory {

struct plan_options {
  std::int64_t alignment = 64;     ///< bytes; a power of two that holds whole elements
  std::size_t affordable = 1024;   ///< buffers of one core up to which the quadratic allocation is tried as well
};

/// What one core needs of its local memory, in bytes.
struct core_usage {
  std::int64_t bytes = 0;      ///< addresses [0, bytes) are used
  std::int64_t peak = 0;       ///< most bytes alive at one time; no plan can use fewer
  std::int64_t total = 0;      ///< without reuse of addresses
  std::size_t buffers = 0;     ///< that own storage and are touched
  std::size_t views = 0;
  std::int64_t crossbars = 0;
};

/// The bound program with all addresses. The stream of instructions is produced from it, core by core (emit/stream.hpp).
struct image {
  program::program bound;
  std::vector<std::int64_t> addresses;  ///< bytes, one a buffer; views resolved. 0 for a local buffer that nothing touches
  std::vector<core_usage> cores;
  std::int64_t global_bytes = 0;
  std::int64_t constant_bytes = 0;      ///< of global memory, before inputs, outputs and channels
};

/// Bytes of one element.
[[nodiscard]] inline std::int64_t element_bytes(const program::geometry& chip) { return checked::divide_up(chip.element_bits, std::int64_t{8}); }

/// Addresses are non-negative 32-bit values.
inline constexpr std::int64_t address_space = std::int64_t{1} << 31;

namespace plan_parts {

[[nodiscard]] inline std::int64_t align(std::int64_t bytes, std::int64_t alignment) {
  return checked::multiply(checked::divide_up(bytes, alignment), alignment);
}

/// Constants first, then inputs, outputs, and what else lies in global memory, each in the order of the program.
[[nodiscard]] inline std::vector<std::uint32_t> global_order(const program::program& p) {
  std::vector<int> rank(p.buffers.size(), 3);
  for (const auto& output : p.outputs) rank.at(output.buffer) = 2;
  for (const auto& input : p.inputs) rank.at(input.buffer) = 1;
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].data) rank[b] = 0;
  std::vector<std::uint32_t> order;
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].core == program::global_memory && p.buffers[b].view_of == program::none)
      order.push_back(static_cast<std::uint32_t>(b));
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return rank[a] < rank[b]; });
  return order;
}

/// Sizes, indices and views that planning relies on; a program from a file may break any of them.
inline void check_buffers(const program::program& p) {
  const auto fail = [&](std::size_t b, const std::string& what) {
    throw error(error_code::malformed, "buffer " + std::to_string(b) + " '" + p.buffers[b].name + "' " + what);
  };
  if (p.chip.element_bits != 8 && p.chip.element_bits != 16 && p.chip.element_bits != 32)
    throw error(error_code::malformed, "elements have " + std::to_string(p.chip.element_bits) + " bits, expected 8, 16 or 32");
  if (p.chip.weight_columns < 1 || p.chip.crossbar_rows < 1)
    throw error(error_code::malformed, "a crossbar has no rows or no columns");
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const auto& buffer = p.buffers[b];
    if (buffer.elements < 0) fail(b, "has a negative size");
    if (buffer.core != program::global_memory && (buffer.core < 0 || static_cast<std::size_t>(buffer.core) >= p.cores.size()))
      fail(b, "lies on core " + std::to_string(buffer.core) + " of " + std::to_string(p.cores.size()));
    if (buffer.data && buffer.core != program::global_memory) fail(b, "has initial contents but lies in local memory");
    if (buffer.data && checked::narrow<std::int64_t>(buffer.data->floats().size()) > buffer.elements)
      fail(b, "is smaller than its initial contents");
    if (buffer.view_of == program::none) continue;
    if (buffer.view_of >= p.buffers.size()) fail(b, "is a view of a buffer that does not exist");
    const auto& owner = p.buffers[buffer.view_of];
    if (owner.core != buffer.core) fail(b, "is a view of a buffer in another memory");
    if (owner.view_of != program::none) fail(b, "is a view of a view");
    if (buffer.data) fail(b, "is a view with initial contents");
    if (buffer.view_offset < 0 || checked::add(buffer.view_offset, buffer.elements) > owner.elements)
      fail(b, "reaches outside the buffer that it is a view of");
  }
  for (const auto* ports : {&p.inputs, &p.outputs})
    for (const auto& port : *ports) {
      if (port.buffer >= p.buffers.size() || p.buffers[port.buffer].core != program::global_memory)
        throw error(error_code::malformed, "input or output '" + port.name + "' has no buffer in global memory");
      if (element_count(port.sizes) > p.buffers[port.buffer].elements)
        throw error(error_code::malformed, "input or output '" + port.name + "' is larger than its buffer");
    }
}

}  // namespace plan_parts

/// Gives every buffer its address.
///
/// Guarantees: buffers of one core that are alive in the same top-level item do not overlap, buffers in global memory never do; every
/// address is a multiple of the alignment (views apart) and, with the whole buffer, lies in [0, 2^31). Local addresses
/// start at 0 on each core. Errors: capacity with the core and the bytes needed and available; malformed for a program
/// whose buffers contradict each other. Cost: O(n log n) in the buffers of a core, quadratic up to `affordable` of them.
/// Deterministic. See also: check_plan.
[[nodiscard]] inline image plan(program::program bound, const plan_options& options = {}) {
  using namespace plan_parts;
  check_buffers(bound);
  image result;
  result.bound = std::move(bound);
  const auto& p = result.bound;
  const std::int64_t width = element_bytes(p.chip);
  if (options.alignment < width || options.alignment % width != 0)
    throw error(error_code::usage, "an alignment of " + std::to_string(options.alignment) + " bytes does not hold whole elements");
  const auto bytes_of = [&](std::uint32_t b) { return align(checked::multiply(p.buffers[b].elements, width), options.alignment); };
  result.addresses.assign(p.buffers.size(), 0);
  result.cores.assign(p.cores.size(), {});

  for (const std::uint32_t b : global_order(p)) {
    result.addresses[b] = result.global_bytes;
    result.global_bytes = checked::add(result.global_bytes, bytes_of(b));
    if (p.buffers[b].data) result.constant_bytes = result.global_bytes;
  }
  if (result.global_bytes > address_space)
    throw error(error_code::capacity,
                "global memory: " + std::to_string(result.global_bytes) + " bytes needed, " + std::to_string(address_space) + " can be addressed");

  const auto lives = lifetimes(p);
  std::vector<std::vector<std::uint32_t>> owned(p.cores.size());
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const auto& buffer = p.buffers[b];
    if (buffer.core == program::global_memory) continue;
    if (buffer.view_of != program::none) ++result.cores[static_cast<std::size_t>(buffer.core)].views;
    else if (!lives[b].empty()) owned[static_cast<std::size_t>(buffer.core)].push_back(static_cast<std::uint32_t>(b));
  }
  const std::int64_t limit = std::min(p.chip.local_memory_bytes, address_space);
  for (std::size_t c = 0; c < p.cores.size(); ++c) {
    std::vector<block> blocks;
    for (const std::uint32_t b : owned[c]) blocks.push_back({bytes_of(b), lives[b]});
    const allocation placed = allocate(blocks, limit, options.affordable);
    auto& usage = result.cores[c];
    usage.bytes = placed.used;
    usage.peak = peak_demand(blocks);
    usage.buffers = blocks.size();
    for (const auto& b : blocks) usage.total = checked::add(usage.total, b.size);
    for (const auto group : p.cores[c].groups) {
      if (group >= p.weights.size())
        throw error(error_code::malformed, "an array group holds weights " + std::to_string(group) + " of " + std::to_string(p.weights.size()),
                    "core " + std::to_string(c));
      usage.crossbars = checked::add(usage.crossbars, crossbars(p.weights[group], p.chip));
    }
    if (placed.used > limit)
      throw error(error_code::capacity,
                  "local memory of core " + std::to_string(c) + ": " + std::to_string(placed.used) + " bytes needed, " + std::to_string(limit) +
                      " available",
                  "core " + std::to_string(c), "use more cores, or a target with a larger local memory");
    for (std::size_t i = 0; i < blocks.size(); ++i) result.addresses[owned[c][i]] = placed.addresses[i];
  }
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (const auto& buffer = p.buffers[b]; buffer.view_of != program::none)
      result.addresses[b] = result.addresses[buffer.view_of] + buffer.view_offset * width;
  return result;
}

/// Verifies a plan independently of how it was made: buffers alive at the same time never overlap, everything lies in its memory,
/// views lie in their owners. Throws error_code::internal with the buffers. Cost: O(n log n).
inline void check_plan(const image& planned) {
  const auto& p = planned.bound;
  const std::int64_t width = element_bytes(p.chip);
  ensure(planned.addresses.size() == p.buffers.size() && planned.cores.size() == p.cores.size(), "a plan without all addresses");
  const auto lives = lifetimes(p);
  const auto describe = [&](std::size_t b) { return "buffer " + std::to_string(b) + " '" + p.buffers[b].name + "'"; };
  struct change {
    std::int64_t core, time;
    bool begins;
    std::uint32_t buffer;
    auto operator<=>(const change&) const = default;
  };
  std::vector<change> changes;
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const auto& buffer = p.buffers[b];
    const std::int64_t end = checked::add(planned.addresses[b], checked::multiply(buffer.elements, width));
    const std::int64_t memory = buffer.core == program::global_memory ? planned.global_bytes : planned.cores[static_cast<std::size_t>(buffer.core)].bytes;
    const bool idle = buffer.core != program::global_memory && lives[program::locate(p, static_cast<std::uint32_t>(b)).root].empty();
    if (planned.addresses[b] < 0 || end > address_space || (end > memory && !idle))
      throw error(error_code::internal, describe(b) + " lies outside its memory");
    if (buffer.view_of != program::none) {
      if (planned.addresses[b] != planned.addresses[buffer.view_of] + buffer.view_offset * width)
        throw error(error_code::internal, describe(b) + " does not lie in the buffer that it is a view of");
      continue;
    }
    if (idle || buffer.elements == 0) continue;
    changes.push_back({buffer.core, lives[b].begin, true, static_cast<std::uint32_t>(b)});
    changes.push_back({buffer.core, lives[b].end, false, static_cast<std::uint32_t>(b)});
  }
  std::sort(changes.begin(), changes.end());  // what ends at a time comes before what begins
  std::map<std::int64_t, std::uint32_t> alive;  // by address, of the core in turn
  const auto end_of = [&](std::uint32_t b) { return planned.addresses[b] + p.buffers[b].elements * width; };
  for (const auto& now : changes) {
    const std::int64_t at = planned.addresses[now.buffer];
    if (!now.begins) {
      alive.erase(at);
      continue;
    }
    const auto [entry, fresh] = alive.emplace(at, now.buffer);
    const bool before = entry != alive.begin() && end_of(std::prev(entry)->second) > at;
    const bool after = std::next(entry) != alive.end() && std::next(entry)->first < end_of(now.buffer);
    if (!fresh || before || after) {
      const auto other = !fresh ? entry->second : before ? std::prev(entry)->second : std::next(entry)->second;
      throw error(error_code::internal, describe(now.buffer) + " overlaps " + describe(other) + ", which is alive at the same time",
                  now.core < 0 ? "global memory" : "core " + std::to_string(now.core));
    }
  }
  for (std::size_t c = 0; c < p.cores.size(); ++c)
    if (planned.cores[c].bytes > p.chip.local_memory_bytes)
      throw error(error_code::internal, "the plan exceeds the local memory", "core " + std::to_string(c));
}

}  // namespace raptor::memory
