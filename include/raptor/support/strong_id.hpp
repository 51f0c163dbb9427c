#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace raptor {

/// An index that cannot be confused with an index of another kind. `Tag` is any (incomplete) type.
/// The default value is "none" and compares greater than every valid index.
template <class Tag>
struct strong_id {
  static constexpr std::uint32_t none_value = 0xffffffffu;
  std::uint32_t value = none_value;

  constexpr strong_id() = default;
  constexpr explicit strong_id(std::size_t index) : value(static_cast<std::uint32_t>(index)) {}

  [[nodiscard]] constexpr bool valid() const noexcept { return value != none_value; }
  /// The index, to be used with the container it belongs to.
  [[nodiscard]] constexpr std::size_t index() const noexcept { return value; }

  friend constexpr auto operator<=>(const strong_id&, const strong_id&) = default;
};

}  // namespace raptor

template <class Tag>
struct std::hash<raptor::strong_id<Tag>> {
  std::size_t operator()(raptor::strong_id<Tag> id) const noexcept { return id.value; }
};
