#pragma once

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/model/fold.hpp"
#include "raptor/model/graph.hpp"
#include "raptor/model/shape_inference.hpp"
#include "raptor/onnx/tensor_data.hpp"

namespace raptor::onnx_io {

using model::tensor_id;

/// What the import of one model has built so far: the graph, and which tensor each name stands for.
class import_state {
 public:
  model::graph graph;
  std::filesystem::path folder;  ///< of the model file, for external data

  void add_initializer(const ::onnx::TensorProto& t) { initializers_[t.name()] = &t; }
  [[nodiscard]] const ::onnx::TensorProto* initializer(const std::string& name) const {
    const auto found = initializers_.find(name);
    return found == initializers_.end() ? nullptr : found->second;
  }
  void bind(const std::string& name, tensor_id t) {
    values_[name] = t;
    if (const auto reads = reads_left_.find(name); reads != reads_left_.end() && reads->second > 0) ++lifetime(t).names;
  }
  /// The tensor of a name; initializers are read when they are first asked for. Invalid, where nothing computes it (yet).
  [[nodiscard]] tensor_id find(const std::string& name) {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    const auto* proto = initializer(name);
    if (proto == nullptr) return {};
    const auto id = graph.add_tensor(read_tensor(*proto, folder));
    read_ = checked::add(read_, element_count(graph.at(id).sizes));
    declare_type(name, proto->data_type());
    bind(name, id);
    return id;
  }
  /// The type that the file gives an integer tensor (TensorProto::DataType); 0 where that is not known. All integers are i64 here.
  void declare_type(const std::string& name, std::int32_t data_type) { types_[name] = data_type; }
  [[nodiscard]] std::int32_t declared_type(const std::string& name) const {
    const auto found = types_.find(name);
    return found == types_.end() ? 0 : found->second;
  }
  // Contents of constants are kept only as long as somebody can read them: folding works on weights in several steps.
  /// One more node, or the graph as an output, will read the tensor of this name. To be said before any node is converted.
  void expect_reader(const std::string& name) { ++reads_left_[name]; }
  [[nodiscard]] bool is_read(const std::string& name) const { return reads_left_.count(name) != 0; }
  /// A node has been converted, from when on the graph had so many tensors and nodes: lets go of the contents that nobody will read.
  void release_constants(const ::onnx::NodeProto& converted, std::size_t tensors_before, std::size_t nodes_before) {
    for (model::vertex v = nodes_before; v < graph.node_count(); ++v)
      for (const auto t : graph.at(v).inputs)
        if (t.valid()) lifetime(t).used = true;
    const auto release = [&](tensor_id t) {
      if (const auto& l = lifetime(t); !l.used && l.names == 0) graph.at(t).data.reset();
    };
    for (const auto& name : converted.input()) {
      const auto reads = reads_left_.find(name);
      if (reads == reads_left_.end() || --reads->second > 0) continue;
      if (const auto t = values_.find(name); t != values_.end() && lifetime(t->second).names > 0 && --lifetime(t->second).names == 0) release(t->second);
    }
    for (auto t = tensors_before; t < graph.tensors().size(); ++t) release(tensor_id(t));
  }
  /// Marks a computed tensor of floats that stands for a quantized one.
  void mark_quantized(const std::string& name, std::int32_t data_type) {
    quantized_.insert(name);
    declare_type(name, data_type);
  }
  [[nodiscard]] bool is_quantized(const std::string& name) const { return quantized_.find(name) != quantized_.end(); }
  // What constant folding may cost: a small file must not grow or compute without limit, while the weights of a large one may be
  // reordered or converted some times.
  /// Counts elements that folding creates. Errors: capacity.
  void charge(std::int64_t elements) {
    folded_ = checked::add(folded_, elements);
    require_budget();
  }
  /// Counts multiply-adds or element moves of folding. Errors: capacity.
  void charge_work(std::int64_t operations) {
    worked_ = operations > INT64_MAX - worked_ ? INT64_MAX : worked_ + operations;
    require_budget();
  }
  /// Nodes of the file: what they may become is limited in proportion, so that a small file does not unroll without limit.
  void expect_nodes(std::int64_t count) { most_nodes_ = free_nodes + 64 * count; }
  /// Errors: capacity, where folding has cost too much already or the graph has become too large.
  void require_budget() const {
    if (static_cast<std::int64_t>(graph.node_count()) > most_nodes_)
      throw error(error_code::capacity, "the model becomes more than " + std::to_string(most_nodes_) + " operators, 2^18 and 64 times those of the file", {},
                  "sequences are unrolled: shorten them");
    if (folded_ > free_elements + 4 * read_) throw error(error_code::capacity, "constant folding creates more than 2^26 elements and four times the weights");
    if (worked_ > free_work + 64 * read_) throw error(error_code::capacity, "constant folding takes more than 2^29 operations and 64 times the weights");
  }

 private:
  /// Why the contents of a tensor are kept.
  struct reasons {
    std::uint32_t names = 0;  ///< by which it will be read
    bool used = false;        ///< by a node of the graph
  };
  [[nodiscard]] reasons& lifetime(tensor_id t) {
    if (lifetimes_.size() <= t.index()) lifetimes_.resize(std::max(t.index() + 1, graph.tensors().size()));
    return lifetimes_[t.index()];
  }

  std::map<std::string, tensor_id> values_;
  std::map<std::string, std::size_t> reads_left_;
  std::vector<reasons> lifetimes_;
  std::map<std::string, std::int32_t> types_;
  std::set<std::string> quantized_;
  std::map<std::string, const ::onnx::TensorProto*> initializers_;
  static constexpr std::int64_t free_elements = std::int64_t{1} << 26, free_work = std::int64_t{1} << 29, free_nodes = std::int64_t{1} << 18;
  std::int64_t read_ = 0;  ///< elements of the file's own tensors so far
  std::int64_t folded_ = 0, worked_ = 0, most_nodes_ = free_nodes;
};

/// One ONNX node while it is converted: typed access to its attributes and operands, and the operators it becomes.
///
/// A conversion reads everything that it understands; an attribute that no one asked for makes the node unsupported, so that
/// an unknown one is never ignored silently. Errors are thrown as raptor::error and reported with the node by the importer.
class node_context {
 public:
  node_context(import_state& state, const ::onnx::NodeProto& proto, model::origin from)
      : state_(state), proto_(proto), from_(std::move(from)), results_(static_cast<std::size_t>(proto.output_size())) {}

  [[nodiscard]] std::int64_t opset() const noexcept { return from_.opset; }
  [[nodiscard]] const std::string& op() const noexcept { return from_.op; }

  [[noreturn]] void unsupported(const std::string& what) const { throw error(error_code::unsupported, what, from_.describe()); }
  [[noreturn]] void malformed(const std::string& what) const { throw error(error_code::malformed, what, from_.describe()); }
  void require(bool condition, const std::string& what) const {
    if (!condition) malformed(what);
  }

  // --- attributes; all of them: malformed, where the attribute has another type ---
  [[nodiscard]] bool has_attribute(std::string_view name) { return attribute(name) != nullptr; }
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise) {
    const auto* a = attribute(name, ::onnx::AttributeProto::INT);
    return a != nullptr ? a->i() : otherwise;
  }
  [[nodiscard]] float real(std::string_view name, float otherwise) {
    const auto* a = attribute(name, ::onnx::AttributeProto::FLOAT);
    return a != nullptr ? a->f() : otherwise;
  }
  [[nodiscard]] std::string text(std::string_view name, std::string otherwise) {
    const auto* a = attribute(name, ::onnx::AttributeProto::STRING);
    return a != nullptr ? a->s() : otherwise;
  }
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::string_view name) {
    const auto* a = attribute(name, ::onnx::AttributeProto::INTS);
    if (a == nullptr) return std::nullopt;
    return std::vector<std::int64_t>(a->ints().begin(), a->ints().end());
  }
  /// The attribute as it is, of type `type` where that is given; null where absent.
  [[nodiscard]] const ::onnx::AttributeProto* attribute(std::string_view name, int type = 0) {
    asked_.emplace(name);
    for (const auto& a : proto_.attribute()) {
      if (a.name() != name) continue;
      if (!a.ref_attr_name().empty()) malformed("attribute " + a.name() + " refers to an attribute of a function");
      // Files of IR version 1 have no type: take what is asked for.
      if (type != 0 && a.has_type() && a.type() != type) malformed("attribute " + a.name() + " has a wrong type");
      return &a;
    }
    return nullptr;
  }
  /// Attributes that do not change what is computed at inference.
  void ignore(std::initializer_list<std::string_view> names) { asked_.insert(names.begin(), names.end()); }
  [[nodiscard]] std::vector<std::string> unread_attributes() const {
    std::vector<std::string> names;
    for (const auto& a : proto_.attribute())
      if (asked_.find(a.name()) == asked_.end()) names.push_back(a.name());
    return names;
  }

  // --- operands ---
  [[nodiscard]] std::size_t input_count() const noexcept { return static_cast<std::size_t>(proto_.input_size()); }
  /// Whether an optional input is there.
  [[nodiscard]] bool has(std::size_t i) const { return i < input_count() && !proto_.input(static_cast<int>(i)).empty(); }
  [[nodiscard]] tensor_id input(std::size_t i) const {
    require(has(i), "input " + std::to_string(i) + " is missing");
    const auto& input_name = proto_.input(static_cast<int>(i));
    const auto id = state_.find(input_name);
    require(id.valid(), "nothing computes its input \"" + input_name + "\"");
    return id;
  }
  // By value: a reference into the graph would not survive the next tensor that is added. The contents are shared.
  [[nodiscard]] model::tensor operand(std::size_t i) const { return state_.graph.at(input(i)); }
  [[nodiscard]] model::tensor at(tensor_id t) const { return state_.graph.at(t); }
  /// A copy: adding operators moves the tensors of the graph.
  [[nodiscard]] shape sizes(std::size_t i) const { return operand(i).sizes; }
  /// Contents of an input that must be known at compile time, as integers. Errors: unsupported, where it is computed.
  [[nodiscard]] std::vector<std::int64_t> constant_integers(std::size_t i, const std::string& what) const {
    const auto& t = operand(i);
    if (!t.is_constant()) unsupported(what + " (input \"" + t.name + "\") is computed at run time, it must be constant");
    require(t.type != model::element_type::f32, what + " (input \"" + t.name + "\") must be of integers");
    require(t.sizes.size() <= 1, what + " (input \"" + t.name + "\") must have rank 0 or 1");
    return t.data->integers();
  }
  /// A constant scalar or one-element tensor of floats.
  [[nodiscard]] float constant_real(std::size_t i, const std::string& what) const {
    const auto& t = operand(i);
    if (!t.is_constant()) unsupported(what + " (input \"" + t.name + "\") is computed at run time, it must be constant");
    require(element_count(t.sizes) == 1, what + " (input \"" + t.name + "\") must have one element");
    return t.type == model::element_type::f32 ? t.data->floats()[0] : static_cast<float>(t.data->integers()[0]);
  }
  /// The file's type of an integer operand; 0 where that is not known.
  [[nodiscard]] std::int32_t data_type(std::size_t i) const { return state_.declared_type(proto_.input(static_cast<int>(i))); }
  [[nodiscard]] bool quantized(std::size_t i) const { return state_.is_quantized(proto_.input(static_cast<int>(i))); }
  /// Attribute `name` up to opset `last`, input `i` afterwards; nothing where it is absent.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> attribute_or_input(std::string_view name, std::int64_t last, std::size_t i) {
    if (opset() <= last) return integers(name);
    if (!has(i)) return std::nullopt;
    return constant_integers(i, std::string(name));
  }

  // --- results ---
  /// Adds an operator; folded at once where all operands are constant and it is cheap enough. Shape as inferred.
  tensor_id add(model::operation op, std::vector<tensor_id> inputs) {
    std::vector<shape> operands;
    for (const auto t : inputs) operands.push_back(at(t).sizes);
    auto result = model::infer_shape(op, operands);
    ensure(result.has_value(), "importer: operator without an inferred shape", from_.describe());
    return add(std::move(op), std::move(inputs), std::move(*result));
  }
  tensor_id add(model::operation op, std::vector<tensor_id> inputs, shape result) {
    result = model::checked_shape(std::move(result));
    std::vector<shape> operands;
    bool constant = true, integers = false;
    for (const auto t : inputs) {
      operands.push_back(at(t).sizes);
      constant = constant && at(t).is_constant();
      integers = integers || at(t).type != model::element_type::f32;
    }
    model::check_result_shape(op, operands, result);
    if (constant) {
      std::vector<model::tensor_value> values;
      for (const auto t : inputs) values.push_back({at(t).sizes, at(t).data});
      const auto work = std::holds_alternative<model::reshape>(op) ? 0 : model::fold_work(op, values, result);
      if (work <= model::fold_work_limit) state_.charge_work(work);
      if (auto value = model::fold(op, values, result, from_.describe())) {
        if (value->data != values[0].data) state_.charge(element_count(result));
        const auto type = value->data == values[0].data ? at(inputs[0]).type : value->type();
        return constant_tensor({next_name(), type, std::move(value->sizes), std::move(value->data)});
      }
    }
    if (integers)
      for (const auto t : inputs)
        if (at(t).type != model::element_type::f32)
          unsupported("tensor \"" + at(t).name + "\" is of type " + model::name(at(t).type) + "; only floating-point tensors are computed at run time");
    const auto out = state_.graph.add_tensor({next_name(), model::element_type::f32, std::move(result), nullptr});
    state_.graph.add_node({std::move(op), std::move(inputs), {out}, from_});
    state_.require_budget();
    return out;
  }
  tensor_id constant_tensor(model::tensor t) { return state_.graph.add_tensor(std::move(t)); }
  tensor_id constant_integer_tensor(shape result, std::vector<std::int64_t> values, model::element_type type = model::element_type::i64) {
    state_.charge(static_cast<std::int64_t>(values.size()));
    return constant_tensor({next_name(), type, std::move(result), std::make_shared<const model::constant>(model::constant{std::move(values)})});
  }
  tensor_id constant_float_tensor(shape result, std::vector<float> values) {
    state_.charge(static_cast<std::int64_t>(values.size()));
    return constant_tensor({next_name(), model::element_type::f32, std::move(result), std::make_shared<const model::constant>(model::constant{std::move(values)})});
  }
  tensor_id scalar(float value) { return constant_float_tensor({}, {value}); }
  /// Something that the user should know about how the node was taken.
  void note(const std::string& what) { state_.graph.notes.push_back(from_.describe() + ": " + what); }
  /// An operand in another shape, without a node where it has that shape already.
  tensor_id reshaped(tensor_id t, shape target) {
    if (at(t).sizes == target) return t;
    return add(model::reshape{}, {t}, std::move(target));
  }
  /// Output `i` of the node is this tensor. A tensor made for the node takes the name of the output.
  void result(tensor_id t, std::size_t i = 0) {
    if (i < results_.size()) results_[i] = t;
  }
  /// The result stands for a quantized tensor of this type: only DequantizeLinear may read it.
  void quantized_result(tensor_id t, std::int32_t data_type) {
    result(t);
    state_.mark_quantized(proto_.output(0), data_type);
  }
  /// The first result is of this type in the file.
  void declare_result_type(std::int32_t data_type) { state_.declare_type(proto_.output(0), data_type); }
  /// What the conversion gave for output `i`; invalid where it gave nothing.
  [[nodiscard]] tensor_id result_of(std::size_t i) const { return results_.at(i); }
  [[nodiscard]] bool wants(std::size_t i) const { return i < results_.size() && !proto_.output(static_cast<int>(i)).empty(); }
  [[nodiscard]] std::size_t output_count() const noexcept { return results_.size(); }
  [[nodiscard]] const model::origin& from() const noexcept { return from_; }
  /// Reads a tensor attribute. Errors: as read_tensor.
  [[nodiscard]] model::tensor read(const ::onnx::TensorProto& t) const { return read_tensor(t, state_.folder); }
  /// The name a tensor made by this node starts with; the importer renames the one that becomes an output.
  [[nodiscard]] std::string next_name() {
    const std::string base = proto_.output_size() > 0 && !proto_.output(0).empty() ? proto_.output(0) : from_.node;
    return base + "~" + std::to_string(++made_);
  }

 private:
  import_state& state_;
  const ::onnx::NodeProto& proto_;
  model::origin from_;
  std::vector<tensor_id> results_;
  std::set<std::string, std::less<>> asked_;
  std::size_t made_ = 0;
};

}  // namespace raptor::onnx_io
