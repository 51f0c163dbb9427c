#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tools/pipeline.hpp"

/// What the search of a compilation tries: other lowerings, placements and ways between stages.
namespace raptor::tools {

/// One thing to try; see lowering::lowering_options.
struct variant {
  double crossbar_weight = 0.3;
  std::int64_t tile_time = 20'000'000;  ///< picoseconds
  double late_tiles = 1;
  double crowding = 0.1;           ///< schedule::spread_placement::same
  double part_share = 1;
  std::int64_t join_reads = std::numeric_limits<std::int64_t>::max();
  double energy = 1;               ///< how much more than usual energy counts
  bool by_memory = false;          ///< from stage to stage through global memory
  bool one_input = false;          ///< of a stream: placed and ordered as for one input, in one stage
  friend bool operator==(const variant&, const variant&) = default;

  /// What the options say themselves.
  [[nodiscard]] static variant of(const lowering::lowering_options& o) {
    return {.crossbar_weight = o.crossbar_weight, .tile_time = o.tile_time, .late_tiles = o.late_tiles, .part_share = o.part_share, .join_reads = o.join_reads};
  }

  /// The lowering's options, all others as given.
  [[nodiscard]] lowering::lowering_options lowering(lowering::lowering_options options) const {
    options.crossbar_weight = crossbar_weight;
    options.tile_time = tile_time;
    options.late_tiles = late_tiles;
    options.part_share = part_share;
    options.join_reads = join_reads;
    options.energy_weight *= energy;
    return options;
  }
};

/// What an effort begins with. For one input at a time: variants that were the best ones of networks of different kinds.
[[nodiscard]] std::vector<variant> variants_of(const compile_options& options);

/// A variant that differs in one or two things.
[[nodiscard]] variant neighbour(variant v, std::mt19937_64& random);

}  // namespace raptor::tools
