#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "raptor/lowering/kernel.hpp"

/// What affine expressions of a compute can be, whatever tiles its lanes are cut into.
namespace raptor::lowering {

/// Tiles of one lane dimension at which every affine function of begin and extent takes its least and greatest value: the corners of
/// the set of all tiles that begin at a multiple of `granule`, end at one or at the end, and have at most `most` lanes, in
/// whole granules (0: no limit). At most six, ascending; empty where there are no lanes. Requires: granule ≥ 1.
[[nodiscard]] inline std::vector<interval> corner_tiles(std::int64_t lanes, std::int64_t granule, std::int64_t most) {
  if (lanes <= 0) return {};
  const std::int64_t longest = most == 0 ? lanes : std::min(lanes, std::max(granule, most / granule * granule));
  const std::int64_t last = (lanes - 1) / granule * granule;  // begin of the last granule
  std::vector<interval> corners;
  const auto add = [&](std::int64_t begin, std::int64_t extent) {
    if (begin >= 0) corners.push_back({begin, std::min(lanes, begin + extent)});
  };
  add(0, granule);
  add(0, longest);
  add((lanes - longest) / granule * granule, longest);                             // the last one of full extent
  add(checked::divide_up(lanes - longest, granule) * granule, longest);            // the longest one that reaches the end
  add(last, granule);
  add(last - granule, granule);
  std::sort(corners.begin(), corners.end());
  corners.erase(std::unique(corners.begin(), corners.end()), corners.end());
  return corners;
}

/// The least and the greatest value of an expression over all tiles of a compute that has lanes. The expression has no loop
/// variables. Cost: O(rank). Errors: capacity on overflow.
[[nodiscard]] inline std::pair<std::int64_t, std::int64_t> tile_range(const affine& a, const compute& c) {
  std::pair<std::int64_t, std::int64_t> range{a.constant(), a.constant()};
  for (std::uint32_t d = 0; d < c.lanes.size(); ++d) {
    const auto by_begin = a.coefficient({symbol::kind::begin, d}), by_extent = a.coefficient({symbol::kind::extent, d});
    if (by_begin == 0 && by_extent == 0) continue;
    bool first = true;
    std::int64_t least = 0, most = 0;
    for (const auto& tile : corner_tiles(c.lanes[d], c.granule[d], c.most[d])) {
      const auto v = checked::add(checked::multiply(by_begin, tile.begin), checked::multiply(by_extent, tile.size()));
      least = first ? v : std::min(least, v), most = first ? v : std::max(most, v);
      first = false;
    }
    range.first = checked::add(range.first, least), range.second = checked::add(range.second, most);
  }
  return range;
}

/// The hull of the boxes that an access touches in all tiles. Requires: lanes.
[[nodiscard]] inline box hull_of(const access& a, const compute& c) {
  box result;
  for (std::size_t d = 0; d < a.low.size(); ++d) result.push_back({tile_range(a.low[d], c).first, tile_range(a.high[d], c).second});
  return result;
}

}  // namespace raptor::lowering
