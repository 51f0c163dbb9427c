#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "raptor/emit/stream.hpp"
#include "raptor/emit/weights.hpp"
#include "raptor/memory/plan.hpp"

/// The artifact as values, for execution without the disk.
namespace raptor::emit {

/// An input or output in global memory. Addresses and sizes in bytes.
struct region {
  std::string name;
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  shape sizes;
};
struct array_group {
  std::int64_t crossbars = 0;
  std::uint32_t content = 0;  ///< index into in_memory::contents
};
/// rows × columns of f32, row major, padded to whole crossbars.
struct group_content {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;
};

/// What write_artifact writes, in memory.
struct in_memory {
  std::vector<std::vector<isa::instruction>> streams;  ///< one a core
  std::vector<std::vector<array_group>> groups;        ///< one list a core, index: array group number
  std::vector<group_content> contents;                 ///< distinct; replicas share one
  std::vector<std::byte> global_memory;                ///< initial contents
  std::vector<region> inputs, outputs;                 ///< graph order
};

/// Bytes of an element as it lies in memory: little endian. 32 bits: the float's pattern. Narrow elements exist for time and energy
/// only, and their initial contents stay zero until an issue defines their arithmetic.
inline void store_constants(const memory::image& planned, std::size_t buffer, std::byte* to) {
  if (planned.bound.chip.element_bits != 32) return;
  const auto& values = planned.bound.buffers[buffer].data->floats();
  for (std::size_t k = 0; k < values.size(); ++k) {
    std::uint32_t word = 0;
    std::memcpy(&word, &values[k], sizeof word);
    for (std::size_t b = 0; b < 4; ++b) to[4 * k + b] = static_cast<std::byte>(word >> (8 * b) & 0xffu);
  }
}

/// Global memory up to the last byte that is not zero by construction: the constants.
[[nodiscard]] inline std::vector<std::byte> constant_memory(const memory::image& planned) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(planned.constant_bytes));
  for (std::size_t b = 0; b < planned.bound.buffers.size(); ++b)
    if (planned.bound.buffers[b].data) store_constants(planned, b, bytes.data() + planned.addresses[b]);
  return bytes;
}

[[nodiscard]] inline std::vector<region> regions_of(const memory::image& planned, const std::vector<program::port>& ports) {
  std::vector<region> result;
  for (const auto& port : ports)
    result.push_back({port.name, planned.addresses.at(port.buffer),
                      checked::multiply(element_count(port.sizes), memory::element_bytes(planned.bound.chip)), port.sizes});
  return result;
}

/// Array groups of every core, given the content of each weight matrix (for_each_content).
[[nodiscard]] inline std::vector<std::vector<array_group>> groups_of(const program::program& p, const std::vector<std::uint32_t>& content) {
  std::vector<std::vector<array_group>> result(p.cores.size());
  for (std::size_t c = 0; c < p.cores.size(); ++c)
    for (const auto weight : p.cores[c].groups) result[c].push_back({crossbars(p.weights[weight], p.chip), content[weight]});
  return result;
}

/// Everything at once. Errors: those of emit_core and materialize. Memory: all streams (20 bytes an instruction), the distinct
/// contents, global memory.
[[nodiscard]] inline in_memory build(const memory::image& planned, const stream_options& options = {}) {
  in_memory result;
  const auto& p = planned.bound;
  for (std::size_t c = 0; c < p.cores.size(); ++c) result.streams.push_back(stream_of(planned, c, options));
  const auto content = for_each_content(
      p, [&](const lowering::weight_matrix& m) { return padded_size(m, p.chip); },
      [&](std::uint32_t, std::size_t, group_size size, const std::vector<float>& values) {
        result.contents.push_back({size.rows, size.columns, values});
      });
  result.groups = groups_of(p, content);
  result.global_memory = constant_memory(planned);
  result.global_memory.resize(static_cast<std::size_t>(planned.global_bytes));
  result.inputs = regions_of(planned, p.inputs);
  result.outputs = regions_of(planned, p.outputs);
  return result;
}

}  // namespace raptor::emit
