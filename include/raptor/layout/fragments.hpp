#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "raptor/layout/physical.hpp"
#include "raptor/support/box.hpp"

namespace raptor::layout {

/// Fragments of a layout that a box touches: pairs of the fragment's number and the part of the box inside it.
/// Fragments outside the tensor are left out.
[[nodiscard]] inline std::vector<std::pair<std::int64_t, box>> fragments(const box& where, const shape& sizes, physical layout) {
  const auto dimensions = fragment_dimensions(layout);
  if (dimensions == 0) return {{0, where}};
  const auto order = memory_order(layout, sizes.size());
  std::vector<std::pair<std::int64_t, box>> result;
  const auto a = order[0], b = order[1];
  const auto outer = intersect(where[a], {0, sizes[a]}), inner = intersect(where[b], {0, sizes[b]});
  for (auto i = outer.begin; i < outer.end; ++i)
    for (auto j = inner.begin; j < inner.end; ++j) {
      box part = where;
      part[a] = {i, i + 1}, part[b] = {j, j + 1};
      result.emplace_back(i * sizes[b] + j, std::move(part));
    }
  return result;
}

}  // namespace raptor::layout
