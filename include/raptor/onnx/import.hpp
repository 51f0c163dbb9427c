#pragma once

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/model/edit.hpp"
#include "raptor/model/graph.hpp"
#include "raptor/onnx/load.hpp"
#include "raptor/onnx/node_context.hpp"
#include "raptor/onnx/operators.hpp"

namespace raptor::onnx_io {

struct import_options {
  /// Shapes of graph inputs, for symbolic dimensions or other sizes than the file says. A symbol that is fixed here is fixed everywhere.
  std::map<std::string, shape> shapes;
  /// Graph inputs that are given as constants, for example the shape input of a Reshape in a backend test.
  std::map<std::string, model::tensor> bindings;
  /// Whether the onnx package is asked for its verdict.
  bool check = true;
  /// Called with every result of a node of the file that is a constant, its contents included; they may be let go of afterwards.
  std::function<void(const model::tensor&)> observe_constant;
};

/// "x=1x3x224x224" as a name and a shape; the name is all before the last '='. Errors: usage.
[[nodiscard]] inline std::pair<std::string, shape> parse_shape_override(const std::string& text) {
  const auto bad = [&] { return error(error_code::usage, "\"" + text + "\" is not a shape", "--shape", "write NAME=1x3x224x224"); };
  const auto equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) throw bad();
  shape sizes;
  const std::string dims = text.substr(equals + 1);
  if (dims == "scalar") return {text.substr(0, equals), sizes};
  for (std::size_t begin = 0; begin <= dims.size();) {
    const auto end = std::min(dims.find('x', begin), dims.size());
    const std::string digits = dims.substr(begin, end - begin);
    if (digits.empty() || digits.size() > 10 || digits.find_first_not_of("0123456789") != std::string::npos) throw bad();
    sizes.push_back(std::stoll(digits));
    begin = end + 1;
  }
  return {text.substr(0, equals), sizes};
}

namespace detail {

/// A problem of one node or tensor; the importer goes on and reports all of them together.
struct finding {
  error_code code;
  std::string place, message;
};

/// The import of one model, step by step.
class importer {
 public:
  importer(const ::onnx::ModelProto& m, std::filesystem::path folder, const import_options& options)
      : model_(m), graph_(m.graph()), options_(options), opsets_(opsets_of(m)) {
    state_.folder = std::move(folder);
    state_.graph.name = graph_.name();
    state_.expect_nodes(graph_.node_size());
    for (const auto& f : m.functions()) functions_.emplace(normal_domain(f.domain()), f.name());
    for (const auto& info : graph_.value_info()) infos_.emplace(info.name(), &info);
  }

  [[nodiscard]] model::graph run() {
    name_nodes();
    const auto order = topological_order(graph_, names_);
    const auto needed = what_outputs_need(order);
    read_initializers();
    fix_symbols();
    for (const auto& input : graph_.input()) read_input(input);
    check_unused_options();
    for (const int n : needed) convert(n);
    read_outputs();
    report();
    if (options_.check)
      if (const auto refusal = onnx_verdict(model_, order)) throw error(error_code::malformed, "the onnx package refuses the model: " + *refusal, graph_.name());
    return model::remove_dead(state_.graph);
  }

 private:
  /// Every node gets a name of its own; where the file has none, or one that is taken, its position makes it one.
  void name_nodes() {
    std::set<std::string> taken;
    for (int n = 0; n < graph_.node_size(); ++n) {
      const auto& proto = graph_.node(n);
      std::string name = proto.name().empty() ? proto.op_type() + "_" + std::to_string(n) : proto.name();
      for (int i = 2; !taken.insert(name).second; ++i) {
        name = (proto.name().empty() ? proto.op_type() : proto.name()) + "_" + std::to_string(n);
        if (i > 2) name += "_" + std::to_string(i);
      }
      names_.push_back(std::move(name));
    }
  }
  /// The nodes that the outputs of the graph need, in order. Only they are converted and judged; what is not valid anywhere is still refused.
  [[nodiscard]] std::vector<int> what_outputs_need(const std::vector<int>& order) {
    std::set<std::string_view> wanted;
    for (const auto& output : graph_.output()) wanted.insert(output.name());
    std::vector<int> needed;
    const std::string* left_out = nullptr;
    for (auto n = order.rbegin(); n != order.rend(); ++n) {
      const auto& node = graph_.node(*n);
      const bool results = node.output_size() != 0;  // without any it is at fault, which converting it says
      if (results && std::none_of(node.output().begin(), node.output().end(), [&](const std::string& name) { return !name.empty() && wanted.count(name) != 0; })) {
        left_out = &names_[static_cast<std::size_t>(*n)];
        continue;
      }
      needed.push_back(*n);
      wanted.insert(node.input().begin(), node.input().end());
    }
    std::reverse(needed.begin(), needed.end());
    for (const int n : needed)
      for (const auto& input : graph_.node(n).input()) state_.expect_reader(input);
    for (const auto& output : graph_.output()) state_.expect_reader(output.name());
    if (left_out != nullptr)
      note(std::to_string(order.size() - needed.size()) + " of " + std::to_string(order.size()) + " nodes are left out, no output needs them: \"" + *left_out + "\"" +
           (order.size() - needed.size() > 1 ? " and others" : ""));
    return needed;
  }
  void read_initializers() {
    for (const auto& t : graph_.initializer()) {
      if (state_.initializer(t.name()) != nullptr) throw error(error_code::malformed, "initializer \"" + t.name() + "\" is there twice");
      state_.add_initializer(t);
    }
    for (const auto& t : graph_.sparse_initializer())
      findings_.push_back({error_code::unsupported, "initializer \"" + t.values().name() + "\"", "sparse tensors are not supported"});
  }
  /// Symbols whose value an override or a binding gives.
  void fix_symbols() {
    for (const auto& input : graph_.input()) {
      const shape* given = given_shape(input.name());
      if (given == nullptr || !input.type().tensor_type().has_shape()) continue;
      const auto& dims = input.type().tensor_type().shape().dim();
      for (int i = 0; i < dims.size() && static_cast<std::size_t>(i) < given->size(); ++i)
        if (dims[i].has_dim_param() && !dims[i].dim_param().empty()) symbols_.emplace(dims[i].dim_param(), (*given)[static_cast<std::size_t>(i)]);
    }
  }
  [[nodiscard]] const shape* given_shape(const std::string& name) const {
    if (const auto found = options_.shapes.find(name); found != options_.shapes.end()) return &found->second;
    if (const auto found = options_.bindings.find(name); found != options_.bindings.end()) return &found->second.sizes;
    return nullptr;
  }
  void read_input(const ::onnx::ValueInfoProto& input) {
    if (state_.initializer(input.name()) != nullptr) return;  // a weight with a default value: constant here
    const std::string place = "input \"" + input.name() + "\"";
    if (!inputs_.insert(input.name()).second) throw error(error_code::malformed, "graph input \"" + input.name() + "\" is there twice");
    try {
      if (const auto bound = options_.bindings.find(input.name()); bound != options_.bindings.end()) {
        auto t = bound->second;
        t.name = input.name();
        if (t.data == nullptr) throw error(error_code::usage, "a bound input needs data", place);
        state_.bind(input.name(), state_.graph.add_tensor(std::move(t)));
        return;
      }
      if (input.has_type() && !input.type().has_tensor_type()) throw error(error_code::unsupported, "only tensors are supported, not sequences, maps or optional values", place);
      const auto& type = input.type().tensor_type();
      model::tensor t{input.name(), format_of(type.elem_type() == 0 ? 1 : type.elem_type(), place).type, input_shape(input), nullptr};
      const auto id = state_.graph.add_tensor(std::move(t));
      state_.bind(input.name(), id);
      state_.graph.inputs.push_back(id);
    } catch (const error& e) {
      findings_.push_back({e.code(), place, e.what() + (e.hint().empty() ? "" : "; " + e.hint())});
      unknown_.insert(input.name());
    }
  }
  [[nodiscard]] shape input_shape(const ::onnx::ValueInfoProto& input) {
    const auto& type = input.type().tensor_type();
    const std::string place = "input \"" + input.name() + "\"", option = "give --shape " + input.name() + "=…";
    const auto given = options_.shapes.find(input.name());
    if (given != options_.shapes.end()) {
      const shape sizes = model::checked_shape(given->second);
      if (type.has_shape() && static_cast<std::size_t>(type.shape().dim_size()) != sizes.size())
        throw error(error_code::mismatch, "shape " + to_string(sizes) + " has rank " + std::to_string(sizes.size()) + ", the file says " +
                                              std::to_string(type.shape().dim_size()), place);
      for (int i = 0; type.has_shape() && i < type.shape().dim_size(); ++i) {
        const auto& dim = type.shape().dim(i);
        if (dim.has_dim_value() && dim.dim_value() >= 0 && dim.dim_value() != sizes[static_cast<std::size_t>(i)])
          note(place + ": dimension " + std::to_string(i) + " is " + std::to_string(sizes[static_cast<std::size_t>(i)]) + " instead of " + std::to_string(dim.dim_value()));
      }
      return sizes;
    }
    if (!type.has_shape()) throw error(error_code::unsupported, "the file does not say its shape", place, option);
    shape sizes;
    for (int i = 0; i < type.shape().dim_size(); ++i) {
      const auto& dim = type.shape().dim(i);
      if (dim.has_dim_value() && dim.dim_value() >= 0) {
        sizes.push_back(dim.dim_value());
        continue;
      }
      const std::string symbol = dim.has_dim_param() ? dim.dim_param() : std::string();
      if (const auto known = symbols_.find(symbol); !symbol.empty() && known != symbols_.end()) {
        sizes.push_back(known->second);
        continue;
      }
      if (i != 0) throw error(error_code::unsupported, "dimension " + std::to_string(i) + (symbol.empty() ? " is unknown" : " is the symbol \"" + symbol + "\""), place, option);
      note(place + ": batch " + (symbol.empty() ? "of unknown size" : "\"" + symbol + "\"") + " taken as 1");
      if (!symbol.empty()) symbols_.emplace(symbol, 1);
      sizes.push_back(1);
    }
    return model::checked_shape(std::move(sizes));
  }
  void check_unused_options() const {
    const auto known = [&](const std::string& name) { return inputs_.count(name) != 0; };
    for (const auto& entry : options_.shapes)
      if (!known(entry.first)) throw error(error_code::usage, "the model has no input \"" + entry.first + "\"", "--shape", input_list());
    for (const auto& entry : options_.bindings)
      if (!known(entry.first)) throw error(error_code::usage, "the model has no input \"" + entry.first + "\" to bind", {}, input_list());
  }
  [[nodiscard]] std::string input_list() const {
    std::string text = "its inputs:";
    for (const auto& name : inputs_) text += " " + name;
    return text;
  }

  void convert(int n) {
    const auto& proto = graph_.node(n);
    model::origin from{names_[static_cast<std::size_t>(n)], proto.op_type(), normal_domain(proto.domain()), 0};
    const auto opset = opsets_.find(from.domain);
    from.opset = opset == opsets_.end() ? 0 : opset->second;
    const std::string place = from.describe();
    const std::size_t tensors = state_.graph.tensors().size(), nodes = state_.graph.node_count();
    try {
      const auto& row = row_for(proto, from);
      bool ready = true;
      for (const auto& input : proto.input()) ready = ready && (input.empty() || unknown_.count(input) == 0);
      if (!ready) {
        judge_without_shapes(proto, from);
        forget(proto);
        return;
      }
      for (const auto& input : proto.input())
        if (state_.is_quantized(input) && proto.op_type() != "DequantizeLinear")
          throw error(error_code::unsupported, "its input \"" + input + "\" is quantized and computed at run time; only DequantizeLinear takes that");
      state_.require_budget();
      node_context context(state_, proto, std::move(from));
      row.convert(context);
      const auto unread = context.unread_attributes();
      if (!unread.empty()) context.unsupported("attribute \"" + unread.front() + "\" is not understood");
      bind_results(proto, context, tensors);
      charge_folding(proto);
      state_.release_constants(proto, tensors, nodes);
    } catch (const error& e) {
      // What reading a tensor or inferring a shape throws knows a place of its own, but not the node.
      const std::string inner = e.place().empty() || e.place() == place ? std::string() : " (" + e.place() + ")";
      findings_.push_back({e.code(), place, e.what() + inner});
      forget(proto);
    }
  }
  /// A node whose result is constant has at least read its operands.
  void charge_folding(const ::onnx::NodeProto& proto) {
    for (const auto& output : proto.output())
      if (const auto t = output.empty() ? tensor_id() : state_.find(output); t.valid() && !state_.graph.at(t).is_constant()) return;
    for (const auto& input : proto.input())
      if (const auto t = input.empty() ? tensor_id() : state_.find(input); t.valid()) state_.charge_work(element_count(state_.graph.at(t).sizes));
  }
  [[nodiscard]] const operator_row& row_for(const ::onnx::NodeProto& proto, const model::origin& from) const {
    if (!from.domain.empty()) {
      if (functions_.count({from.domain, from.op}) != 0) throw error(error_code::unsupported, "functions defined in the model are not supported");
      throw error(error_code::unsupported, "operators of this domain are not supported");
    }
    for (const auto& a : proto.attribute())
      if (a.has_g() || a.graphs_size() != 0) throw error(error_code::unsupported, "it contains a subgraph (attribute \"" + a.name() + "\"), control flow is not supported");
    const auto* row = find_operator(from.op, from.opset);
    if (row == nullptr) {
      if (from.opset == 0) throw error(error_code::malformed, "the model imports no opset of its domain");
      throw error(error_code::unsupported, knows_operator(from.op) ? "the operator is not supported at this opset" : "the operator is not supported");
    }
    int given = proto.input_size();
    while (given > 0 && proto.input(given - 1).empty()) --given;
    if (given < row->least_inputs || given > row->most_inputs)
      throw error(error_code::malformed, std::to_string(given) + " inputs, " + std::to_string(row->least_inputs) +
                                             (row->most_inputs == row->least_inputs ? "" : " or more") + " expected");
    if (proto.output_size() == 0) throw error(error_code::malformed, "no outputs");
    return *row;
  }
  /// What can be said of a node whose operands have no shape because of an earlier finding.
  void judge_without_shapes(const ::onnx::NodeProto& proto, const model::origin& from) {
    if (from.op != "Conv") return;
    int spatial = -1;
    for (const auto& a : proto.attribute())
      if (a.name() == "kernel_shape") spatial = a.ints_size();
    if (proto.input_size() > 1)
      if (const auto* w = state_.initializer(proto.input(1))) spatial = w->dims_size() - 2;
    if (spatial <= 2) return;
    throw error(error_code::unsupported, "convolution over data of rank " + std::to_string(spatial + 2) + "; ranks 3 and 4 are supported");
  }
  void bind_results(const ::onnx::NodeProto& proto, node_context& context, std::size_t tensors_before) {
    for (int i = 0; i < proto.output_size(); ++i) {
      const auto& name = proto.output(i);
      if (name.empty()) continue;
      const auto t = context.result_of(static_cast<std::size_t>(i));
      if (!t.valid()) {
        if (state_.is_read(name)) context.unsupported("its output " + std::to_string(i) + " (\"" + name + "\") is not supported");
        continue;
      }
      if (t.index() >= tensors_before) state_.graph.at(t).name = name;
      if (inputs_.count(name) != 0 || state_.initializer(name) != nullptr) context.malformed("its output \"" + name + "\" has the name of an input or initializer");
      state_.bind(name, t);
      if (options_.observe_constant && state_.graph.at(t).is_constant()) options_.observe_constant(state_.graph.at(t));
    }
  }
  /// The results of a node with a finding. Where the file says their shapes, later nodes can still be judged by them.
  void forget(const ::onnx::NodeProto& proto) {
    for (const auto& name : proto.output()) {
      if (name.empty()) continue;
      if (state_.find(name).valid() && unknown_.count(name) == 0) continue;
      unknown_.insert(name);
      const auto info = infos_.find(name);
      if (info == infos_.end() || !info->second->type().tensor_type().has_shape()) continue;
      const auto& type = info->second->type().tensor_type();
      shape sizes;
      for (const auto& dim : type.shape().dim())
        if (dim.has_dim_value() && dim.dim_value() > 0 && dim.dim_value() <= model::max_elements) sizes.push_back(dim.dim_value());
      if (static_cast<int>(sizes.size()) != type.shape().dim_size() || type.elem_type() != 1) continue;
      state_.bind(name, state_.graph.add_tensor({name, model::element_type::f32, std::move(sizes), nullptr}));
      unknown_.erase(name);
    }
  }
  void read_outputs() {
    if (graph_.output_size() == 0) throw error(error_code::malformed, "the graph has no outputs", graph_.name());
    for (const auto& output : graph_.output()) {
      if (unknown_.count(output.name()) != 0) continue;
      try {
        const auto id = state_.find(output.name());
        if (state_.is_quantized(output.name())) throw error(error_code::unsupported, "it is quantized; only floating-point outputs are supported");
        if (!id.valid()) throw error(error_code::malformed, "nothing computes it");
        if (state_.graph.at(id).type != model::element_type::f32)
          throw error(error_code::unsupported, "it is of type " + std::string(model::name(state_.graph.at(id).type)) + "; only floating-point outputs are supported");
        state_.graph.outputs.push_back(id);
        const auto& type = output.type().tensor_type();
        if (!type.has_shape()) continue;
        const auto& sizes = state_.graph.at(id).sizes;
        bool same = static_cast<std::size_t>(type.shape().dim_size()) == sizes.size();
        for (int i = 0; same && i < type.shape().dim_size(); ++i)
          same = !type.shape().dim(i).has_dim_value() || type.shape().dim(i).dim_value() == sizes[static_cast<std::size_t>(i)];
        if (!same) note("output \"" + output.name() + "\": has shape " + to_string(sizes) + ", the file says another");
      } catch (const error& e) {
        findings_.push_back({e.code(), "output \"" + output.name() + "\"", e.what()});
      }
    }
  }
  void note(std::string text) { state_.graph.notes.push_back(std::move(text)); }

  /// Throws all findings as one error: unsupported only where all of them are.
  void report() const {
    if (findings_.empty()) return;
    error_code code = error_code::unsupported;
    for (const auto& f : findings_)
      if (f.code != error_code::unsupported) {
        code = f.code;
        break;
      }
    if (findings_.size() == 1) throw error(code, findings_[0].message, findings_[0].place);
    std::vector<std::string> details;
    for (const auto& f : findings_) details.push_back(f.place + ": " + f.message);
    throw error(code, std::to_string(findings_.size()) + " parts of the model cannot be compiled", graph_.name()).with_details(std::move(details));
  }

  const ::onnx::ModelProto& model_;
  const ::onnx::GraphProto& graph_;
  const import_options& options_;
  std::map<std::string, std::int64_t> opsets_;
  import_state state_;
  std::vector<std::string> names_;
  std::set<std::pair<std::string, std::string>> functions_;               ///< of the model, by domain and name
  std::map<std::string_view, const ::onnx::ValueInfoProto*> infos_;  ///< what the file says of tensors, by name
  std::map<std::string, std::int64_t> symbols_;
  std::set<std::string> inputs_, unknown_;
  std::vector<finding> findings_;
};

}  // namespace detail

/// A model as a graph: operators in normal form, static shapes everywhere, constants folded, nothing that no output needs.
/// `folder`: where external data is looked for.
///
/// Guarantees: graph inputs and outputs in the order of the file, an input that has an initializer is a constant; nodes in
/// topological order; `notes` says what was assumed and how many nodes were left out because no output needs them (they need not be
/// supported). Contents of constants that only folding read are let go of on the way. Deterministic.
/// Errors: all findings of all nodes in one raptor::error, each with name, operator, domain, opset and what is wrong:
/// unsupported, malformed, mismatch (shapes), capacity (sizes), io (external data). Usage, for options that name no input.
/// Cost: linear in the file and in what folding computes (model/fold.hpp states its limits).
[[nodiscard]] inline model::graph import_model(const ::onnx::ModelProto& m, const std::filesystem::path& folder, const import_options& options = {}) {
  return detail::importer(m, folder, options).run();
}
/// The same from a file, which is only read. External data is looked for beside it.
[[nodiscard]] inline model::graph import_model(const std::filesystem::path& file, const import_options& options = {}) {
  const auto m = load_model(file);
  auto folder = file.parent_path();
  return import_model(m, folder.empty() ? std::filesystem::path(".") : folder, options);
}

}  // namespace raptor::onnx_io
