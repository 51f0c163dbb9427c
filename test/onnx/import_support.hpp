#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "raptor/model/check.hpp"
#include "raptor/model/print.hpp"
#include "raptor/model/reference.hpp"
#include "raptor/model/rewrite.hpp"
#include "raptor/onnx/builder.hpp"
#include "raptor/onnx/import.hpp"

/// Small ONNX models for tests of the importer.
namespace raptor::onnx_io::testing {

inline model_builder at_opset(std::int64_t opset, std::int64_t ir_version = 8) { return model_builder({.graph_name = "test", .opset = opset, .ir_version = ir_version}); }
/// The model, with graph outputs of unstated shape.
inline ::onnx::ModelProto finish(model_builder b, const std::vector<std::string>& outputs) {
  for (const auto& name : outputs) {
    auto* output = b.proto().mutable_graph()->add_output();
    output->set_name(name);
    output->mutable_type()->mutable_tensor_type()->set_elem_type(::onnx::TensorProto::FLOAT);
  }
  return std::move(b).take();
}
/// Imports and checks the graph, before and after canonicalization.
inline model::graph import_checked(const ::onnx::ModelProto& m, const import_options& options = {}) {
  auto g = import_model(m, ".", options);
  model::check_graph(g, "import");
  model::check_graph(model::canonicalize(g), "canonicalize");
  return g;
}
/// What the model computes for these inputs, in graph order; the canonical graph must compute the same but for rounding.
inline std::vector<model::tensor_value> run(const ::onnx::ModelProto& m, const std::vector<std::vector<float>>& inputs, const import_options& options = {}) {
  const auto g = import_checked(m, options);
  std::vector<model::tensor_value> values;
  REQUIRE(g.inputs.size() == inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values.push_back(model::make_value(g.at(g.inputs[i]).sizes, inputs[i]));
  auto outputs = model::evaluate(g, values);
  const auto again = model::evaluate(model::canonicalize(g), values);
  REQUIRE(again.size() == outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    REQUIRE(again[i].sizes == outputs[i].sizes);
    for (std::size_t k = 0; k < outputs[i].floats().size(); ++k)
      CHECK(again[i].floats()[k] == doctest::Approx(outputs[i].floats()[k]).epsilon(1e-5).scale(1));
  }
  return outputs;
}
/// first, first + 1, …
inline std::vector<float> counting(std::size_t count, float first = 1) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(first + static_cast<float>(i));
  return values;
}
inline void check_close(const std::vector<float>& values, const std::vector<float>& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(values[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  }
}
/// The error that an import ends with.
inline error failure(const ::onnx::ModelProto& m, const import_options& options = {}, const std::filesystem::path& folder = ".") {
  try {
    static_cast<void>(import_model(m, folder, options));
  } catch (const error& e) {
    return e;
  }
  FAIL("the model was imported");
  return error(error_code::internal, "");
}
/// Everything that a tool would print of an error.
inline std::string all_of(const error& e) { return describe(e, 1000); }
inline bool mentions(const error& e, const std::string& text) { return all_of(e).find(text) != std::string::npos; }

/// A folder of its own for a test, removed afterwards.
class temporary_folder {
 public:
  explicit temporary_folder(const std::string& name) : path_(std::filesystem::path(RAPTOR_BINARY_DIR) / "test_onnx_files" / name) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace raptor::onnx_io::testing
