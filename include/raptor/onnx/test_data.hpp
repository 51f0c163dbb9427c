#pragma once

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "raptor/model/reference_value.hpp"
#include "raptor/onnx/tensor_data.hpp"
#include "raptor/support/error.hpp"

/// The ONNX backend tests as the package libonnx-testdata installs them: folders with model.onnx and recorded inputs and
/// outputs as TensorProto files. Their weights are often graph inputs; `with_constants` makes constants of them.
namespace raptor::onnx_io {

/// One folder of the ONNX backend tests.
struct backend_test {
  std::string suite;  ///< node, simple, pytorch-converted or pytorch-operator
  std::string name;   ///< of the folder
  std::filesystem::path folder;
};

/// The suites that hold models with their recorded data, in the order in which they are listed.
inline constexpr const char* backend_suites[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

/// All tests below `root`, by suite and name; empty where the folder does not exist.
[[nodiscard]] inline std::vector<backend_test> list_backend_tests(const std::filesystem::path& root) {
  std::vector<backend_test> tests;
  for (const auto* suite : backend_suites) {
    std::error_code ec;
    std::vector<backend_test> found;
    for (const auto& entry : std::filesystem::directory_iterator(root / suite, ec))
      if (std::filesystem::exists(entry.path() / "model.onnx", ec)) found.push_back({suite, entry.path().filename().string(), entry.path()});
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    tests.insert(tests.end(), found.begin(), found.end());
  }
  return tests;
}

/// Recorded inputs and outputs of one run, in graph order.
struct test_data {
  std::vector<::onnx::TensorProto> inputs, outputs;
};

/// Graph inputs that no initializer stands for, in order: what a caller has to give.
[[nodiscard]] inline std::vector<const ::onnx::ValueInfoProto*> free_inputs(const ::onnx::GraphProto& graph) {
  std::set<std::string> initialized;
  for (const auto& t : graph.initializer()) initialized.insert(t.name());
  std::vector<const ::onnx::ValueInfoProto*> inputs;
  for (const auto& in : graph.input())
    if (initialized.count(in.name()) == 0) inputs.push_back(&in);
  return inputs;
}

/// Reads `<folder>/input_<i>.pb` and `output_<i>.pb` for the free inputs and the outputs of a model and gives each the name
/// that the graph has for it. Errors: io, malformed; unsupported, where an input or output is no tensor.
[[nodiscard]] inline test_data read_test_data(const std::filesystem::path& folder, const ::onnx::GraphProto& graph) {
  const auto read = [&](const ::onnx::ValueInfoProto& value, const std::string& file) {
    if (!value.type().has_tensor_type()) throw error(error_code::unsupported, "\"" + value.name() + "\" is not a tensor", file);
    ::onnx::TensorProto tensor;
    parse_message_file(tensor, folder / file, "not an ONNX tensor");
    tensor.set_name(value.name());
    // Recordings of bfloat16 are stored as the same bits under the type uint16.
    if (value.type().tensor_type().elem_type() == ::onnx::TensorProto::BFLOAT16 && tensor.data_type() == ::onnx::TensorProto::UINT16)
      tensor.set_data_type(::onnx::TensorProto::BFLOAT16);
    return tensor;
  };
  test_data data;
  for (const auto* in : free_inputs(graph)) data.inputs.push_back(read(*in, "input_" + std::to_string(data.inputs.size()) + ".pb"));
  for (const auto& out : graph.output()) data.outputs.push_back(read(out, "output_" + std::to_string(data.outputs.size()) + ".pb"));
  return data;
}

/// A tensor of test data as a value for the reference evaluator or a simulator. Errors: as read_tensor.
[[nodiscard]] inline model::tensor_value value_of(const ::onnx::TensorProto& tensor) {
  const auto t = read_tensor(tensor, {});
  return {t.sizes, t.data};
}

/// The model with every free input after the first `kept` made an initializer that holds the recorded data, as weights are in
/// the files of real networks. The data keeps the inputs that remain.
[[nodiscard]] inline std::pair<::onnx::ModelProto, test_data> with_constants(::onnx::ModelProto model, test_data data, std::size_t kept = 1) {
  auto& graph = *model.mutable_graph();
  for (std::size_t i = kept; i < data.inputs.size(); ++i) {
    const auto& name = data.inputs[i].name();
    for (int k = graph.input_size(); k-- > 0;)
      if (graph.input(k).name() == name) graph.mutable_input()->DeleteSubrange(k, 1);
    *graph.add_initializer() = data.inputs[i];
  }
  // An initializer need not be a graph input from IR version 4 on.
  model.set_ir_version(std::max<std::int64_t>(model.ir_version(), 4));
  if (data.inputs.size() > kept) data.inputs.resize(kept);
  return {std::move(model), std::move(data)};
}

}  // namespace raptor::onnx_io
