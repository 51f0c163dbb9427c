#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "raptor/layout/fragments.hpp"
#include "raptor/lowering/compute_graph.hpp"
#include "raptor/program/program.hpp"

/// Boxes of tensors as they lie in buffers, and copies between them.
namespace raptor::communication {

using layout::fragments;

/// A box of a tensor stored contiguously in the memory order of a layout.
struct region {
  box where;
  std::vector<std::int64_t> strides;  ///< elements, one a dimension
};

[[nodiscard]] inline region make_region(box where, layout::physical layout) {
  region r{std::move(where), {}};
  r.strides.resize(r.where.size());
  const auto order = layout::memory_order(layout, r.where.size());
  std::int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    r.strides[order[i]] = stride;
    stride = checked::multiply(stride, r.where[order[i]].size());
  }
  return r;
}
/// Offset in elements of the element at `begin` of every interval of a box inside the region.
[[nodiscard]] inline std::int64_t offset_of(const region& r, const box& inner) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < inner.size(); ++d) offset += (inner[d].begin - r.where[d].begin) * r.strides[d];
  return offset;
}

/// A copy of a box between two regions, as runs that are contiguous in both.
struct box_copy {
  std::int64_t run = 1;                ///< elements in a run
  std::vector<std::int64_t> counts;    ///< loops outside a run, outermost first
  std::vector<std::int64_t> from_steps, to_steps;  ///< elements between iterations
  [[nodiscard]] bool single() const noexcept { return counts.empty(); }
};

[[nodiscard]] inline box_copy plan_copy(const box& what, const region& from, const region& to) {
  box_copy copy;
  std::vector<std::size_t> rest;
  for (std::size_t d = 0; d < what.size(); ++d)
    if (what[d].size() != 1) rest.push_back(d);
  for (bool grown = true; grown;) {
    grown = false;
    for (std::size_t i = 0; i < rest.size(); ++i)
      if (from.strides[rest[i]] == copy.run && to.strides[rest[i]] == copy.run) {
        copy.run *= what[rest[i]].size();
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
        grown = true;
        break;
      }
  }
  for (const auto d : rest) {
    copy.counts.push_back(what[d].size());
    copy.from_steps.push_back(from.strides[d]);
    copy.to_steps.push_back(to.strides[d]);
  }
  return copy;
}

/// Program items for a copy: `operation(from offset, to offset, elements)` gives the operation of one run.
template <class Operation>
[[nodiscard]] program::item copy_items(const box_copy& copy, std::int64_t from, std::int64_t to, const Operation& operation) {
  affine from_at = from, to_at = to;
  for (std::uint32_t i = 0; i < copy.counts.size(); ++i) {
    const affine index = symbol{symbol::kind::loop, i};
    from_at += index * copy.from_steps[i];
    to_at += index * copy.to_steps[i];
  }
  program::item result{operation(from_at, to_at, copy.run)};
  for (std::size_t i = copy.counts.size(); i-- > 0;) {
    program::loop outer{static_cast<std::uint32_t>(i), copy.counts[i], {}};
    outer.body.push_back(std::move(result));
    result = program::item{std::move(outer)};
  }
  return result;
}

}  // namespace raptor::communication
