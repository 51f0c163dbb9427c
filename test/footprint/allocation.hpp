#pragma once

#include <cstddef>

/// Bytes that operator new has given: what is allocated now, and the most that was since `restart`.
namespace footprint {

void restart();
[[nodiscard]] std::size_t peak();

}  // namespace footprint
