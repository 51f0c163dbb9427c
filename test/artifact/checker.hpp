#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// A checker of artifact directories, written from ARTIFACTS.md and ISA.md alone: it shares no code with the emitter or the simulator, so
/// that a misunderstanding in the instruction table cannot hide itself.
namespace artifact_test {

/// What the command line or hardware configuration said of the chip.
struct chip {
  std::int64_t cores = 0, crossbars = 0, size = 0;
  std::int64_t adc_count = 16, cell_precision = 32, weight_bits = 32;
  bool json = false;  ///< core_N.json are expected beside the .pim files
};

/// Every rule that the directory breaks, one line each, the rule's name in brackets first; empty: none.
[[nodiscard]] std::vector<std::string> broken_rules(const std::filesystem::path& directory, const chip& expected);

}  // namespace artifact_test
