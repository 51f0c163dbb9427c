#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "raptor/model/graph.hpp"
#include "raptor/model/reference_value.hpp"

/// ONNX Runtime as a second opinion: its shared library is opened at run time and called through the function table that every
/// version has. Nothing of it is needed to build Raptor.
namespace raptor::tools {

class onnx_runtime {
 public:
  /// Opens the library: `path`, else what the environment variable RAPTOR_ONNXRUNTIME names, else libonnxruntime.so.1 where the
  /// loader looks. Errors: io, where it cannot be opened or is none.
  explicit onnx_runtime(const std::string& path = {});
  ~onnx_runtime();
  onnx_runtime(onnx_runtime&&) noexcept;
  onnx_runtime& operator=(onnx_runtime&&) noexcept;

  [[nodiscard]] const std::string& version() const noexcept;

  /// What a model file computes: one thread, no graph optimization. `names` of the graph `g` are the file's; inputs and outputs
  /// are in graph order, f32. Errors: unsupported, where the library refuses the model; malformed, where it fails to run it.
  [[nodiscard]] std::vector<model::tensor_value> evaluate(const std::filesystem::path& file, const model::graph& g,
                                                          std::span<const model::tensor_value> inputs) const;

 private:
  struct library;
  std::unique_ptr<library> library_;
};

}  // namespace raptor::tools
