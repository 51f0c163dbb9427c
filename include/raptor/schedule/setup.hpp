#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <vector>

#include "raptor/layout/fragments.hpp"
#include "raptor/schedule/tiles.hpp"

/// What a core does beside the bodies of its tiles: it reads inputs and constants from global memory, and sets up once what each compute's
/// tiles find there (rows of a bias, padding, tables).
namespace raptor::schedule {

/// One load from global memory: the time that it takes the memory's one port, and all the rest of it.
struct global_read {
  picoseconds port = 0, rest = 0;
  std::uint32_t value = 0;  ///< what it reads
};

/// A load of `elements` of a value by a core. The port's share is what the target says of it, else everything.
template <target::chip_target Target>
[[nodiscard]] global_read read_of(const Target& t, std::size_t core, std::int64_t elements, std::uint32_t value) {
  const picoseconds all = t.global_time(core, elements, false);
  if constexpr (requires { { t.global_port_time(elements, false) } -> std::convertible_to<picoseconds>; }) {
    const picoseconds port = std::min<picoseconds>(all, t.global_port_time(elements, false));
    return {port, all - port, value};
  } else {
    return {all, 0, value};
  }
}

/// The loads of what a tile reads from values of an origin (inputs or constants), which lie densely in global memory: one for each run of
/// consecutive elements in each fragment.
template <target::chip_target Target>
[[nodiscard]] std::vector<global_read> reads_of(const Target& t, const lowering::compute_graph& g, std::size_t core, const tile& what, lowering::origin from) {
  std::vector<global_read> reads;
  for (const auto& a : g.at(what.compute).accesses) {
    const auto& v = g.values()[a.value];
    if (a.mode != lowering::access_mode::read || v.from != from) continue;
    const box needed = intersect(box_of(a, what.lanes), whole(v.sizes));
    if (is_empty(needed)) continue;
    for (const auto& [number, part] : layout::fragments(needed, v.sizes, v.layout)) {
      std::int64_t run = 1, d = static_cast<std::int64_t>(part.size());
      while (d-- > 0) {
        const auto& extent = part[static_cast<std::size_t>(d)];
        run = checked::multiply(run, extent.size());
        if (extent.size() != v.sizes[static_cast<std::size_t>(d)]) break;
      }
      const auto one = read_of(t, core, run, a.value);
      reads.insert(reads.end(), static_cast<std::size_t>(element_count(part) / run), one);
    }
  }
  return reads;
}

/// What a compute needs once on a core: constants, unless another one has loaded them, then the prologue of its kernel.
struct setup {
  std::uint32_t compute = 0, tile = 0;  ///< the first tile of the compute there
  std::vector<global_read> reads;
  picoseconds time = 0;                 ///< of the prologue
  [[nodiscard]] bool empty() const noexcept { return reads.empty() && time == 0; }
};
template <target::chip_target Target>
[[nodiscard]] setup setup_of(const Target& t, const lowering::compute_graph& g, const tile_graph& tiles, std::uint32_t tile, std::size_t core) {
  const auto compute = tiles.tiles[tile].compute;
  const auto& c = g.at(compute);
  return {compute, tile, reads_of(t, g, core, tiles.tiles[tile], lowering::origin::constant), detail::time_of(t, c.prologue, box(c.lanes.size()))};
}

}  // namespace raptor::schedule
