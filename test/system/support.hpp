#pragma once

#include <doctest/doctest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../dice.hpp"
#include "../temporary_folder.hpp"
#include "raptor/model/reference.hpp"
#include "raptor/onnx/builder.hpp"
#include "raptor/onnx/zoo.hpp"
#include "tools/pipeline.hpp"

namespace system_test {

using raptor_test::dice;
using raptor_test::temporary_folder;

inline raptor::tools::loaded_model load(const onnx::ModelProto& proto) {
  const temporary_folder folder;
  std::ofstream(folder / "model.onnx", std::ios::binary) << proto.SerializeAsString();
  return raptor::tools::load_model(folder / "model.onnx");
}
inline raptor::tools::loaded_model load_network(const std::string& name, std::int64_t size) {
  raptor::onnx_io::zoo_options options;
  options.size = size;
  return load(raptor::onnx_io::build_network(name, options));
}

/// Elements in [−1, 1) that are the same everywhere.
inline std::vector<float> numbers(std::int64_t count, std::uint32_t seed) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    result.push_back(static_cast<float>(seed >> 8) / 8388608.0F - 1.0F);
  }
  return result;
}

/// Executes a compiled image and compares all outputs with the reference evaluator on the imported graph.
/// Returns the largest error as a part of the largest output.
inline double relative_error(const raptor::tools::loaded_model& m, const raptor::memory::image& image, std::uint32_t seed = 1) {
  using namespace raptor;
  std::vector<model::tensor_value> inputs;
  std::vector<std::byte> bytes;
  for (const auto t : m.imported.inputs) {
    auto elements = numbers(element_count(m.imported.at(t).sizes), seed++);
    const auto at = bytes.size();
    bytes.resize(at + elements.size() * sizeof(float));
    if (!elements.empty()) std::memcpy(bytes.data() + at, elements.data(), elements.size() * sizeof(float));
    inputs.push_back(model::make_value(m.imported.at(t).sizes, std::move(elements)));
  }
  const auto executed = tools::execute_image(image, bytes);
  const auto expected = model::evaluate(m.imported, inputs);
  REQUIRE(executed.outputs.size() == expected.size());
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto got = executed.outputs[i].values();
    const auto& want = expected[i].floats();
    REQUIRE(got.size() == want.size());
    for (std::size_t k = 0; k < want.size(); ++k) {
      if (!(got[k] == want[k])) worst = std::max(worst, std::isfinite(got[k]) ? std::abs(static_cast<double>(got[k]) - static_cast<double>(want[k])) : 1e30);
      largest = std::max(largest, std::abs(static_cast<double>(want[k])));
    }
  }
  return worst / largest;
}

inline raptor::tools::compile_options chip(std::int64_t cores, std::int64_t crossbars, std::int64_t size) {
  raptor::tools::compile_options options;
  options.flags = {cores, crossbars, size};
  return options;
}
inline raptor::compilation compile(const raptor::tools::loaded_model& m, const raptor::tools::compile_options& options) {
  return raptor::tools::compile_model(m.canonical, raptor::tools::make_target(options), options);
}

}  // namespace system_test
