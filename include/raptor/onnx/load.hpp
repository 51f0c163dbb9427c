#pragma once

#include <onnx/checker.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/onnx/wire.hpp"
#include "raptor/support/error.hpp"

/// Reading a model file, sorting its nodes, and asking the onnx package whether it is a valid model.
namespace raptor::onnx_io {

/// Parses a model file. Errors: io, where it cannot be read; malformed, where it is empty, truncated or something else;
/// unsupported, where it is larger than protobuf can read (2 GB); capacity, where its objects are out of proportion (wire.hpp). The
/// file is opened for reading only.
[[nodiscard]] inline ::onnx::ModelProto load_model(const std::filesystem::path& file) {
  ::onnx::ModelProto model;
  parse_message_file(model, file, "not an ONNX model, or truncated");
  if (!model.has_graph()) throw error(error_code::malformed, "the file holds no graph", file.string());
  return model;
}

/// `domain` as it is printed and compared: "ai.onnx" is the empty domain.
[[nodiscard]] inline std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? std::string() : domain; }

/// Opset of each domain that a model imports. Without any: opset 1, as files of IR version 1 and 2 mean.
[[nodiscard]] inline std::map<std::string, std::int64_t> opsets_of(const ::onnx::ModelProto& model) {
  std::map<std::string, std::int64_t> opsets;
  for (const auto& entry : model.opset_import()) opsets[normal_domain(entry.domain())] = entry.version();
  if (model.opset_import_size() == 0) opsets[""] = 1;
  return opsets;
}

/// Positions of the nodes in topological order, the order of the file where it allows that. `names`: how to call each node.
/// Errors: malformed, where a tensor is computed twice or the graph is cyclic. Cost: nodes and edges, times log of the nodes.
[[nodiscard]] inline std::vector<int> topological_order(const ::onnx::GraphProto& graph, const std::vector<std::string>& names) {
  std::map<std::string, int> producers;
  for (int n = 0; n < graph.node_size(); ++n)
    for (const auto& output : graph.node(n).output())
      if (!output.empty() && !producers.emplace(output, n).second)
        throw error(error_code::malformed, "tensor \"" + output + "\" is computed twice", names[static_cast<std::size_t>(n)]);
  const auto count = static_cast<std::size_t>(graph.node_size());
  std::vector<std::vector<int>> users(count), sources(count);
  for (int n = 0; n < graph.node_size(); ++n)
    for (const auto& input : graph.node(n).input()) {
      const auto found = input.empty() ? producers.end() : producers.find(input);
      if (found == producers.end()) continue;
      users[static_cast<std::size_t>(found->second)].push_back(n);
      sources[static_cast<std::size_t>(n)].push_back(found->second);
    }
  std::vector<std::size_t> waiting(count);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t n = 0; n < count; ++n) {
    waiting[n] = sources[n].size();
    if (waiting[n] == 0) ready.push(static_cast<int>(n));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int n = ready.top();
    ready.pop();
    order.push_back(n);
    for (const int user : users[static_cast<std::size_t>(n)])
      if (--waiting[static_cast<std::size_t>(user)] == 0) ready.push(user);
  }
  if (order.size() == count) return order;
  // Walk backwards among the nodes that are left until one comes again: it lies on a cycle.
  std::size_t at = 0;
  while (waiting[at] == 0) ++at;
  std::vector<bool> seen(count, false);
  while (!seen[at]) {
    seen[at] = true;
    for (const int source : sources[at])
      if (waiting[static_cast<std::size_t>(source)] != 0) {
        at = static_cast<std::size_t>(source);
        break;
      }
  }
  throw error(error_code::malformed, "the graph is cyclic", names[at], "a node needs, directly or not, its own result");
}

/// The verdict of the onnx package: what is wrong with the model, or nothing. It is asked about a copy whose quirks are
/// harmless here: IR version clamped to what it knows, nodes sorted, names and types that it insists on filled in, and weights replaced by
/// empty tensors (they are read and checked by the importer, and a copy of them would be large). There is no verdict on opsets
/// that it does not know.
[[nodiscard]] inline std::optional<std::string> onnx_verdict(const ::onnx::ModelProto& model, const std::vector<int>& order) {
  constexpr std::int64_t known_ir = 8, known_opset = 17;
  for (const auto& entry : model.opset_import())
    if (normal_domain(entry.domain()).empty() && entry.version() > known_opset) return std::nullopt;
  ::onnx::ModelProto copy;
  copy.set_ir_version(std::clamp<std::int64_t>(model.ir_version(), 3, known_ir));
  *copy.mutable_opset_import() = model.opset_import();
  for (auto& entry : *copy.mutable_opset_import()) entry.set_domain(normal_domain(entry.domain()));
  if (model.opset_import_size() == 0) copy.add_opset_import()->set_version(1);
  auto& graph = *copy.mutable_graph();
  graph.set_name(model.graph().name().empty() ? "graph" : model.graph().name());
  for (const int n : order) *graph.add_node() = model.graph().node(n);
  for (auto& node : *graph.mutable_node()) node.set_domain(normal_domain(node.domain()));
  *graph.mutable_input() = model.graph().input();
  *graph.mutable_output() = model.graph().output();
  for (auto& output : *graph.mutable_output())
    if (!output.has_type()) output.mutable_type()->mutable_tensor_type()->set_elem_type(::onnx::TensorProto::FLOAT);
  for (auto* values : {graph.mutable_input(), graph.mutable_output()})
    for (auto& value : *values)
      if (value.type().has_tensor_type() && !value.type().tensor_type().has_shape()) value.mutable_type()->mutable_tensor_type()->mutable_shape();
  std::set<std::string_view> inputs;
  for (const auto& input : graph.input()) inputs.insert(input.name());
  for (const auto& t : model.graph().initializer()) {
    auto& empty = *graph.add_initializer();
    empty.set_name(t.name());
    empty.set_data_type(t.data_type());
    empty.add_dims(0);
    if (copy.ir_version() < 4 && inputs.count(t.name()) == 0) copy.set_ir_version(4);  // weights that are not graph inputs: allowed since IR version 4, and harmless before
  }
  try {
    ::onnx::checker::check_model(copy);
  } catch (const std::exception& e) {
    return std::string(e.what());
  }
  return std::nullopt;
}

}  // namespace raptor::onnx_io
