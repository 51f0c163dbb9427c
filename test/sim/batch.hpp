#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support.hpp"

/// Programs for batches of inputs, made by hand: what the tests of throughput mode share.
namespace raptor::sim::test {

using batch = std::vector<std::vector<std::byte>>;

/// `count` different inputs of `size` floats: input n holds 100 n + 1, 100 n + 2 …
[[nodiscard]] inline batch numbered_inputs(std::size_t count, std::size_t size) {
  batch inputs;
  for (std::size_t n = 0; n < count; ++n) {
    std::vector<float> values(size);
    for (std::size_t k = 0; k < size; ++k) values[k] = static_cast<float>(100 * n + k + 1);
    inputs.push_back(to_bytes(values));
  }
  return inputs;
}

/// [input] the floats of the first output.
[[nodiscard]] inline std::vector<std::vector<float>> first_outputs(const batch_result& result) {
  std::vector<std::vector<float>> values;
  for (const auto& outputs : result.outputs) values.push_back(outputs.at(0).values());
  return values;
}

/// The error of a batch as raptor::describe prints it with its code in front; "" where there is none.
[[nodiscard]] inline std::string batch_failure(const loaded_program& program, const batch& inputs, const execution_options& options = {}) {
  try {
    static_cast<void>(execute_batch(program, inputs, options));
  } catch (const error& e) {
    return std::string(name(e.code())) + " " + describe(e);
  }
  return {};
}

/// A chain of stages, each on its own core, that double `size` floats and pass them on through buffers in global memory: READY is event
/// 1 of the reader, FREE event 2 of the writer. Every value of the output is 2^stages times that of the input.
/// Global memory: the input, the output, then a buffer between each two stages.
struct chain {
  static constexpr int ready = 1, free = 2;
  std::int32_t stages, bytes;

  [[nodiscard]] std::int32_t buffer(std::int32_t before) const { return (2 + before) * bytes; }  ///< between `before` and its successor
  [[nodiscard]] stream stage(std::int32_t s) const {
    const bool first = s == 0, last = s + 1 == stages;
    stream body{b::setbw(32, 32)};
    if (!first) body.push_back(b::sync(free, s - 1));
    body.insert(body.end(), {b::sldi(1, 0), b::sldi(2, first ? 0 : buffer(s - 1)), b::sldi(4, last ? bytes : buffer(s))});
    if (!first) body.push_back(b::wait(ready, 1));
    body.insert(body.end(), {b::ld(1, 2, bytes), b::vvadd(1, 1, 1, bytes / 4)});
    if (!last) body.push_back(b::wait(free, 1));
    body.push_back(b::st(4, 1, bytes));
    if (!last) body.push_back(b::sync(ready, s + 1));
    return body;
  }
  [[nodiscard]] loaded_program program() const {
    std::vector<stream> streams;
    for (std::int32_t s = 0; s < stages; ++s) streams.push_back(stage(s));
    auto made = make_program(std::move(streams), bytes / 4, bytes / 4);
    made.global_memory.resize(static_cast<std::size_t>((1 + stages) * bytes));
    return made;
  }
  [[nodiscard]] std::vector<std::vector<float>> expected(const batch& inputs) const {
    std::vector<std::vector<float>> values;
    for (const auto& input : inputs) {
      values.push_back(to_floats(input));
      for (auto& x : values.back()) x *= static_cast<float>(1 << stages);
    }
    return values;
  }
};

}  // namespace raptor::sim::test
