#include "tools/variants.hpp"

#include <iterator>
#include <limits>
#include <type_traits>

namespace raptor::tools {

std::vector<variant> variants_of(const compile_options& options) {
  std::vector<variant> list;
  constexpr variant all[] = {
      {.crossbar_weight = 1, .tile_time = 12'000'000, .late_tiles = 0.5, .crowding = 0.03, .part_share = 0.75, .join_reads = 1, .energy = 4},
      {.crossbar_weight = 2, .tile_time = 10'000'000, .late_tiles = 0.5, .crowding = 0.2, .part_share = 0.5, .join_reads = 1, .energy = 4},
      {.crossbar_weight = 0.1, .tile_time = 12'000'000, .late_tiles = 0.5, .crowding = 0.3, .part_share = 0.3, .join_reads = 0},
      {.tile_time = 12'000'000, .crowding = 0.03, .join_reads = 2, .energy = 4},
      {.crossbar_weight = 1, .tile_time = 8'000'000, .late_tiles = 0.5, .crowding = 0, .join_reads = 1, .energy = 4},
  };
  constexpr variant several_inputs[] = {  // at a time: cores have enough to do, larger tiles cost less
      {.crossbar_weight = 0.1, .tile_time = 16'000'000, .late_tiles = 0.25, .crowding = 0.2, .part_share = 0.5, .join_reads = 1, .energy = 4},
      {.crossbar_weight = 0.1, .tile_time = 12'000'000, .crowding = 0.2, .part_share = 0.3, .join_reads = 1},
      {.late_tiles = 0.25, .crowding = 0.2, .part_share = 0.75, .energy = 4},
      {.crossbar_weight = 1, .tile_time = 12'000'000, .crowding = 0, .part_share = 0.3, .energy = 4},
      {.crossbar_weight = 2, .tile_time = 10'000'000, .crowding = 0, .part_share = 0.6, .join_reads = 1, .energy = 4},
      {.crossbar_weight = 0.1, .crowding = 0.2, .part_share = 0.3, .join_reads = 1, .energy = 4},
  };
  constexpr variant smaller[] = {  // tiles: better where they pay, but each takes two or three times as long to compile
      {.tile_time = 6'000'000, .late_tiles = 0.5, .part_share = 0.4, .join_reads = 2},
      {.crossbar_weight = 1, .tile_time = 6'000'000, .late_tiles = 0.25, .part_share = 0.5, .join_reads = 1, .energy = 4},
      {.tile_time = 8'000'000, .late_tiles = 0.5, .part_share = 0.75, .join_reads = 1},
  };
  const auto for_one_input = [&] {
    std::vector<variant> several;
    if (options.effort == 0) several.push_back(variant::of(options.lowering));
    else several.assign(std::begin(all), std::end(all));
    if (options.effort > 1) several.insert(several.end(), std::begin(smaller), std::end(smaller));
    return several;
  };
  if (streams(options)) {  // a schedule of a pipeline takes longer: fewer variants
    list.push_back(options.effort == 0 ? variant::of(options.lowering) : variant{});
    if (options.effort > 0) list.push_back({.crossbar_weight = 0, .crowding = 0.03});
    if (options.effort > 1)
      for (const double weight : {0.0, 0.3, 1.0})
        for (const std::int64_t tile_time : {9'000'000, 12'000'000}) list.push_back({.crossbar_weight = weight, .tile_time = tile_time});
  } else {
    list = for_one_input();
  }
  // Where energy is what counts, a picojoule is also worth more where strategies compete.
  if (options.goal == objective::energy)
    for (std::size_t i = 0, count = list.size(); i < count; ++i) {
      list.push_back(list[i]);
      list.back().energy *= 4;
    }
  // Memory is the better way for few stages only; where their number is open, it is tried at higher efforts.
  if (streams(options)) {
    const bool only = options.channels == channel_choice::memory;
    const bool both = options.channels == channel_choice::automatic && (options.pipeline > 1 || (options.pipeline == 0 && options.effort > 1));
    for (std::size_t i = 0, count = list.size(); i < count; ++i) {
      if (only) list[i].by_memory = true;
      if (!both) continue;
      list.push_back(list[i]);
      list.back().by_memory = true;
    }
  }
  // One stage is also tried as it would be for one input at a time.
  if (streams(options) && options.pipeline <= 1) {
    auto more = for_one_input();
    if (options.effort > 0) more.insert(more.end(), std::begin(several_inputs), std::end(several_inputs));
    for (auto& v : more) {
      v.one_input = true;
      list.push_back(v);
    }
  }
  return list;
}

variant neighbour(variant v, std::mt19937_64& random) {
  const auto one_of = [&](auto& what, auto... choices) {
    const std::remove_reference_t<decltype(what)> list[] = {choices...};
    what = list[random() % sizeof...(choices)];
  };
  for (auto changes = 1 + random() % 2; changes > 0; --changes) switch (random() % 6) {
      case 0: one_of(v.crossbar_weight, 0.0, 0.1, 0.3, 1.0, 2.0); break;
      case 1: one_of(v.tile_time, std::int64_t{6'000'000}, std::int64_t{8'000'000}, std::int64_t{10'000'000}, std::int64_t{12'000'000}, std::int64_t{16'000'000}, std::int64_t{20'000'000}, std::int64_t{24'000'000}); break;
      case 2: one_of(v.late_tiles, 1.0, 0.5, 0.25); break;
      case 3: one_of(v.crowding, 0.0, 0.03, 0.1, 0.2); break;
      case 4: one_of(v.part_share, 1.0, 0.75, 0.6, 0.5, 0.4, 0.3); break;
      default: one_of(v.join_reads, std::int64_t{1}, std::int64_t{2}, std::numeric_limits<std::int64_t>::max()); break;
    }
  return v;
}

}  // namespace raptor::tools
