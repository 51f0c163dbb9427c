#pragma once

#include <cstdint>
#include <utility>

#include "raptor/memory/plan.hpp"

namespace raptor::memory {

/// The 32-bit twin of a program of narrow elements: the same image with every address multiplied by 32 / element bits and cells that hold a
/// 32-bit weight where they held a narrow one. Emission then gives the same instructions, with other widths, sizes and addresses only, so
/// that executing the twin proves the program that was timed. Memory limits were judged on the narrow program.
///
/// Errors: capacity, where an address of the twin would not fit 31 bits. Cost: O(buffers + cores).
[[nodiscard]] inline image widen(image narrow) {
  auto& chip = narrow.bound.chip;
  const std::int64_t factor = 4 / element_bytes(chip);
  if (factor == 1 && chip.weight_bits == 32) return narrow;
  chip.cell_bits = checked::multiply(chip.cell_bits, std::int64_t{32}) / chip.weight_bits;
  chip.element_bits = chip.weight_bits = 32;
  chip.local_memory_bytes = address_space;
  const auto scale = [&](std::int64_t& bytes) { bytes = checked::multiply(bytes, factor); };
  for (auto& address : narrow.addresses) scale(address);
  scale(narrow.global_bytes);
  scale(narrow.constant_bytes);
  bool fits = narrow.global_bytes <= address_space;
  for (auto& core : narrow.cores) {
    for (auto* bytes : {&core.bytes, &core.peak, &core.total}) scale(*bytes);
    fits = fits && core.bytes <= address_space;
  }
  if (!fits) throw error(error_code::capacity, "the 32-bit twin of the program needs more than the " + std::to_string(address_space) + " bytes that can be addressed");
  return narrow;
}

}  // namespace raptor::memory
