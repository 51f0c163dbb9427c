#pragma once

#include <onnx/onnx_pb.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/support/box.hpp"
#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"

/// A small builder of ONNX models: graph inputs and outputs, initializers with seeded weights, nodes.
///
///     model_builder b({.graph_name = "example", .seed = 1});
///     const auto x = b.input("x", {1, 3, 8, 8});
///     const auto w = b.he_uniform("w", {4, 3, 3, 3});
///     const auto y = b.node("Conv", {x, w}, "y").attribute("pads", {1, 1, 1, 1}).output();
///     b.output(y, {1, 4, 8, 8});
///     const ::onnx::ModelProto model = std::move(b).take();
///
/// The builder writes what it is told: it checks no operator and no name, so that tests can build broken models too.
namespace raptor::onnx_io {

/// Numbers that are the same with every standard library, compiler and machine: raw output of std::mt19937_64 (whose
/// sequence the standard fixes), one draw a number, and arithmetic that rounds once.
class uniform_source {
 public:
  /// A stream of its own for every (seed, name), so that adding a tensor does not change the others.
  uniform_source(std::uint64_t seed, std::string_view name) : engine_(mix(seed, name)) {}

  /// The next number of [center - spread, center + spread).
  [[nodiscard]] float next(float center, float spread) {
    // 24 bits of the draw: fraction and spread are floats, so their product is exact in double and the sum is the only
    // operation that rounds there, whether or not the compiler contracts it.
    const auto bits = static_cast<std::int32_t>(engine_() >> 40) - (1 << 23);
    const double fraction = static_cast<double>(bits) / static_cast<double>(1 << 23);
    return static_cast<float>(static_cast<double>(center) + static_cast<double>(spread) * fraction);
  }

 private:
  // FNV-1a over the name, then the finalizer of splitmix64.
  [[nodiscard]] static std::uint64_t mix(std::uint64_t seed, std::string_view name) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash += seed * 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 31);
  }

  std::mt19937_64 engine_;
};

/// A node under construction; valid as long as its builder lives. Attributes chain.
class node_handle {
 public:
  explicit node_handle(::onnx::NodeProto& node) : node_(&node) {}

  node_handle& attribute(const std::string& name, std::int64_t value) {
    auto& a = add(name, ::onnx::AttributeProto::INT);
    a.set_i(value);
    return *this;
  }
  node_handle& attribute(const std::string& name, float value) {
    auto& a = add(name, ::onnx::AttributeProto::FLOAT);
    a.set_f(value);
    return *this;
  }
  node_handle& attribute(const std::string& name, const std::string& value) {
    auto& a = add(name, ::onnx::AttributeProto::STRING);
    a.set_s(value);
    return *this;
  }
  node_handle& attribute(const std::string& name, std::span<const std::int64_t> values) {
    auto& a = add(name, ::onnx::AttributeProto::INTS);
    for (const auto v : values) a.add_ints(v);
    return *this;
  }
  node_handle& attribute(const std::string& name, std::initializer_list<std::int64_t> values) {
    return attribute(name, std::span<const std::int64_t>(values.begin(), values.size()));
  }
  node_handle& attribute(const std::string& name, const ::onnx::TensorProto& value) {
    auto& a = add(name, ::onnx::AttributeProto::TENSOR);
    *a.mutable_t() = value;
    return *this;
  }
  // Literals: without these an int would be ambiguous and a string literal would become a span or a string by chance.
  node_handle& attribute(const std::string& name, int value) { return attribute(name, std::int64_t{value}); }
  node_handle& attribute(const std::string& name, double value) { return attribute(name, static_cast<float>(value)); }
  node_handle& attribute(const std::string& name, const char* value) { return attribute(name, std::string(value)); }

  /// Name of the i-th output value.
  [[nodiscard]] std::string output(int i = 0) const { return node_->output(i); }
  [[nodiscard]] ::onnx::NodeProto& proto() const { return *node_; }

 private:
  ::onnx::AttributeProto& add(const std::string& name, ::onnx::AttributeProto::AttributeType type) {
    auto* a = node_->add_attribute();
    a->set_name(name);
    a->set_type(type);
    return *a;
  }

  ::onnx::NodeProto* node_;
};

struct builder_options {
  std::string graph_name = "network";
  std::int64_t opset = 13;
  std::int64_t ir_version = 7;
  std::uint64_t seed = 0;
};

/// Requires: names of values are unique (not checked). Guarantees: nodes and initializers keep the order of the calls; the
/// same calls give the same bytes. Errors: error_code::capacity when the initializers pass the 2 GiB that a protobuf file
/// can hold, before anything is allocated for the one that does; error_code::mismatch when data does not fill its shape.
class model_builder {
 public:
  explicit model_builder(builder_options options = {}) : seed_(options.seed) {
    model_.set_ir_version(options.ir_version);
    model_.set_producer_name("raptor");
    auto* opset = model_.add_opset_import();
    opset->set_domain("");
    opset->set_version(options.opset);
    model_.mutable_graph()->set_name(options.graph_name);
  }

  /// Declares a graph input of static shape; returns its name.
  std::string input(const std::string& name, const shape& sizes,
                    ::onnx::TensorProto::DataType type = ::onnx::TensorProto::FLOAT) {
    declare(*model_.mutable_graph()->add_input(), name, sizes, type);
    return name;
  }
  void output(const std::string& name, const shape& sizes,
              ::onnx::TensorProto::DataType type = ::onnx::TensorProto::FLOAT) {
    declare(*model_.mutable_graph()->add_output(), name, sizes, type);
  }

  std::string initializer(const std::string& name, const shape& sizes, std::span<const float> values) {
    auto raw = reserve(name, sizes, sizeof(float), values.size());
    for (const float v : values) append(raw, std::bit_cast<std::uint32_t>(v));
    return add(name, sizes, ::onnx::TensorProto::FLOAT, std::move(raw));
  }
  std::string initializer(const std::string& name, const shape& sizes, std::span<const std::int64_t> values) {
    auto raw = reserve(name, sizes, sizeof(std::int64_t), values.size());
    for (const std::int64_t v : values) append(raw, std::bit_cast<std::uint64_t>(v));
    return add(name, sizes, ::onnx::TensorProto::INT64, std::move(raw));
  }
  /// A one-dimensional constant of int64, as Reshape, Squeeze and Pad take it.
  std::string integers(const std::string& name, const shape& values) {
    return initializer(name, {static_cast<std::int64_t>(values.size())}, std::span<const std::int64_t>(values));
  }
  /// A constant of rank 0.
  std::string scalar(const std::string& name, float value) { return initializer(name, {}, std::span<const float>(&value, 1)); }

  /// Seeded numbers of [center - spread, center + spread).
  std::string uniform(const std::string& name, const shape& sizes, float center, float spread) {
    const auto count = element_count(sizes);
    auto raw = reserve(name, sizes, sizeof(float), static_cast<std::size_t>(count));
    uniform_source source(seed_, name);
    for (std::int64_t i = 0; i < count; ++i) append(raw, std::bit_cast<std::uint32_t>(source.next(center, spread)));
    return add(name, sizes, ::onnx::TensorProto::FLOAT, std::move(raw));
  }
  /// Seeded weights of variance gain² / fan-in, where sizes = [outputs, inputs, window…] and fan-in is the product of all
  /// but the first. Gain √2 keeps the mean square through a layer that ends in Relu, gain 1 through a linear one
  /// (He et al. 2015, section 2.2).
  std::string he_uniform(const std::string& name, const shape& sizes, double gain = std::numbers::sqrt2) {
    const auto fan_in = element_count(std::span(sizes).subspan(sizes.empty() ? 0 : 1));
    return uniform(name, sizes, 0.0F, static_cast<float>(gain * std::sqrt(3.0 / static_cast<double>(fan_in))));
  }

  /// Appends a node. One output bears the node's name; several are name_0, name_1, … An empty input name is an absent
  /// optional input.
  node_handle node(const std::string& op, const std::vector<std::string>& inputs, const std::string& name,
                   int outputs = 1, const std::string& domain = {}) {
    auto* node = model_.mutable_graph()->add_node();
    node->set_op_type(op);
    node->set_name(name);
    if (!domain.empty()) node->set_domain(domain);
    for (const auto& i : inputs) node->add_input(i);
    for (int i = 0; i < outputs; ++i) node->add_output(outputs == 1 ? name : name + "_" + std::to_string(i));
    return node_handle(*node);
  }

  /// Renames a value wherever nodes write or read it. Cost: linear in the graph.
  void rename_value(const std::string& from, const std::string& to) {
    for (auto& node : *model_.mutable_graph()->mutable_node()) {
      for (auto& value : *node.mutable_output())
        if (value == from) value = to;
      for (auto& value : *node.mutable_input())
        if (value == from) value = to;
    }
  }
  /// Free text that travels with the model.
  void metadata(const std::string& key, const std::string& value) {
    auto* entry = model_.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }

  [[nodiscard]] ::onnx::ModelProto& proto() { return model_; }
  [[nodiscard]] ::onnx::ModelProto take() && { return std::move(model_); }

 private:
  static void declare(::onnx::ValueInfoProto& info, const std::string& name, const shape& sizes,
                      ::onnx::TensorProto::DataType type) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    auto* dimensions = tensor->mutable_shape();
    for (const auto size : sizes) dimensions->add_dim()->set_dim_value(size);
  }

  std::string reserve(const std::string& name, const shape& sizes, std::size_t element, std::size_t count) {
    const auto wanted = checked::narrow<std::size_t>(element_count(sizes));
    if (wanted != count)
      throw error(error_code::mismatch, "initializer of shape " + to_string(sizes) + " given " + std::to_string(count) + " values",
                  name);
    // Some room is left for everything that is not weights.
    constexpr std::size_t limit = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()) - (std::size_t{1} << 24);
    const auto bytes = checked::multiply(count, element);
    if (bytes > limit - bytes_)
      throw error(error_code::capacity, "the weights do not fit one ONNX file of 2 GiB", name, "choose a smaller network or input");
    bytes_ += bytes;
    std::string raw;
    raw.reserve(bytes);
    return raw;
  }
  // ONNX stores raw data little endian, whatever the machine.
  template <class Word>
  static void append(std::string& raw, Word word) {
    char bytes[sizeof(Word)];
    for (std::size_t i = 0; i < sizeof(Word); ++i) bytes[i] = static_cast<char>((word >> (8 * i)) & 0xffu);
    raw.append(bytes, sizeof(Word));
  }
  std::string add(const std::string& name, const shape& sizes, ::onnx::TensorProto::DataType type, std::string raw) {
    auto* tensor = model_.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (const auto size : sizes) tensor->add_dims(size);
    tensor->set_raw_data(std::move(raw));
    return name;
  }

  ::onnx::ModelProto model_;
  std::uint64_t seed_;
  std::size_t bytes_ = 0;  // of all initializers so far
};

}  // namespace raptor::onnx_io
