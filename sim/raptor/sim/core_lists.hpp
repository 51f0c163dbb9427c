#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

#include "raptor/support/json_view.hpp"

namespace raptor::sim {

/// The lists in the array_group_map of a config.json, by the number of their core.
///
/// Requires an object. Of equal names the last counts. Memory: one word for each core that the map can have.
class core_lists {
 public:
  core_lists(json_view map, std::int64_t core_count)
      : map_(map), places_(static_cast<std::size_t>(std::min(core_count, static_cast<std::int64_t>(map.size()) + 1)), nowhere) {
    map.each_member([&](const std::string& name, json_view list) {
      std::uint32_t number = 0;
      const auto [end, code] = std::from_chars(name.data() + std::min<std::size_t>(4, name.size()), name.data() + name.size(), number);
      const bool core = name.starts_with("core") && code == std::errc{} && end == name.data() + name.size() && (name[4] != '0' || name.size() == 5);
      if (!core || number >= core_count) {
        if (!has_stranger_ || name < stranger_) stranger_ = name;
        has_stranger_ = true;
      } else if (number < places_.size()) {
        places_[number] = static_cast<std::size_t>(list.text().data() - map.text().data());
      }
    });
  }
  /// The value of "core<number>"; an empty text where the map has none.
  [[nodiscard]] json_view find(std::int64_t core) const {
    const auto at = static_cast<std::size_t>(core);
    return at >= places_.size() || places_[at] == nowhere ? json_view() : json_view(map_.text().substr(places_[at]));
  }
  /// The first name, in alphabetical order, that belongs to no core; null where all do.
  [[nodiscard]] const std::string* stranger() const noexcept { return has_stranger_ ? &stranger_ : nullptr; }

 private:
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  json_view map_;
  std::vector<std::size_t> places_;  ///< [core]: where its list begins in the map's text
  bool has_stranger_ = false;
  std::string stranger_;
};

}  // namespace raptor::sim
