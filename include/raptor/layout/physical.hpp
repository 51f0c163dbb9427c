#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// Physical layouts (LOWERING, "Physical layouts of an NCHW tensor").
///
/// A layout is an order of the dimensions in memory and a number of leading dimensions of that order that select a
/// fragment: every fragment is a buffer of its own. Within a fragment a core stores a box, in that order.
namespace raptor::layout {

enum class physical : std::uint8_t {
  dense,           ///< row major in one buffer; any rank. Global memory is always dense.
  nhwc_row_strip,  ///< rank 4: one fragment an image row (n, h), stored as W × C
  nchw_row_strip   ///< rank 4: one fragment an image row (n, h), stored as C × W
};

[[nodiscard]] constexpr const char* name(physical layout) noexcept {
  switch (layout) {
    case physical::dense: return "dense_nchw";
    case physical::nhwc_row_strip: return "nhwc_row_strip";
    case physical::nchw_row_strip: return "nchw_row_strip";
  }
  return "?";
}

/// Dimensions from outermost to innermost in memory.
[[nodiscard]] inline std::vector<std::size_t> memory_order(physical layout, std::size_t rank) {
  switch (layout) {
    case physical::nhwc_row_strip: return {0, 2, 3, 1};
    case physical::nchw_row_strip: return {0, 2, 1, 3};
    case physical::dense: break;
  }
  std::vector<std::size_t> order(rank);
  for (std::size_t d = 0; d < rank; ++d) order[d] = d;
  return order;
}
/// How many leading dimensions of memory_order select the fragment.
[[nodiscard]] constexpr std::size_t fragment_dimensions(physical layout) noexcept {
  return layout == physical::dense ? 0 : 2;
}

}  // namespace raptor::layout
