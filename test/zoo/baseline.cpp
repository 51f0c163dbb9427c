// Compares the bundled networks, layer by layer, with the tables that the published comparisons were made with.
#include "raptor/onnx/zoo.hpp"

#include <doctest/doctest.h>
#include <onnx/shape_inference/implementation.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

using namespace raptor;
using namespace raptor::onnx_io;

namespace {

/// One line of a table; a field that the table leaves empty is not compared.
struct row {
  std::string operation = {}, inputs = {}, output_shape = {}, input_channels = {}, output_channels = {}, kernel = {}, stride = {},
              pads = {}, dilation = {}, group = {}, bias = {}, note = {};
};

std::vector<row> read_table(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<row> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    std::vector<std::string> fields;
    std::stringstream text(line);
    for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
    fields.resize(13);
    REQUIRE(fields[0] == std::to_string(rows.size()));
    rows.push_back({fields[1], fields[2], fields[3], fields[4], fields[5], fields[6], fields[7], fields[8], fields[9], fields[10],
                    fields[11], fields[12]});
  }
  return rows;
}

/// Makes rows of the nodes of a model, with the shapes that ONNX infers: BatchNormalization and a Relu right behind a
/// convolution belong to its row, Reshape-Transpose-Reshape is one shuffle.
class walker {
 public:
  explicit walker(::onnx::ModelProto model) : model_(std::move(model)) {
    ::onnx::shape_inference::InferShapes(model_, ::onnx::OpSchemaRegistry::Instance(), {true, 1, true});
    const auto& graph = model_.graph();
    for (const auto* list : {&graph.input(), &graph.value_info(), &graph.output()})
      for (const auto& info : *list) {
        auto& sizes = shapes_[info.name()];
        for (const auto& d : info.type().tensor_type().shape().dim()) sizes.push_back(d.dim_value());
      }
    for (const auto& i : graph.initializer()) shapes_[i.name()] = shape(i.dims().begin(), i.dims().end());
  }

  std::vector<row> walk() {
    const auto& graph = model_.graph();
    add({.operation = "input"}, graph.input(0).name());
    for (int i = 0; i < graph.node_size(); ++i) {
      const auto& node = graph.node(i);
      const auto& op = node.op_type();
      if (op == "Conv") {
        add_conv(node);
      } else if (op == "BatchNormalization") {
        auto& conv = absorb(node);
        CHECK(conv.note.empty());
        conv.note = "batchnorm";
      } else if (op == "Relu" && rows_[source_.at(node.input(0))].operation == "conv") {
        auto& conv = absorb(node);
        conv.note = conv.note.empty() ? "activation" : "activation " + conv.note;
      } else if (op == "MaxPool" || op == "AveragePool") {
        row r{.operation = "pool", .note = op == "MaxPool" ? "max" : "average"};
        read_window(node, r);
        add(r, node);
      } else if (op == "GlobalAveragePool") {
        const auto& in = shapes_.at(node.input(0));
        add({.operation = "pool",
             .kernel = std::to_string(in[2]) + "x" + std::to_string(in[3]),
             .stride = "1x1",
             .pads = "0 0 0 0",
             .note = "average global"},
            node);
      } else if (op == "Gemm") {
        const auto& weights = shapes_.at(node.input(1));
        CHECK(attribute(node, "transB") != nullptr);
        add({.operation = "fc",
             .input_channels = std::to_string(weights[1]),
             .output_channels = std::to_string(weights[0]),
             .bias = node.input_size() == 3 ? "1" : "0"},
            node);
      } else if (op == "Reshape" && i + 2 < graph.node_size() && graph.node(i + 1).op_type() == "Transpose") {
        const auto &transpose = graph.node(i + 1), &join = graph.node(i + 2);
        CHECK(transpose.input(0) == node.output(0));
        CHECK(join.op_type() == "Reshape");
        CHECK(join.input(0) == transpose.output(0));
        CHECK(ints(transpose, "perm") == shape{0, 2, 1, 3, 4});
        CHECK(shapes_.at(node.output(0))[1] == 4);
        const auto channels = shapes_.at(node.input(0))[1];
        auto& r = add({.operation = "shuffle", .input_channels = std::to_string(channels)}, join.output(0));
        r.inputs = std::to_string(source_.at(node.input(0)));
        i += 2;
      } else if (op == "Add") {
        add({.operation = "eltwise", .note = "2"}, node);
      } else {
        static const std::map<std::string, std::string> names{{"Relu", "relu"},       {"Clip", "clip"},       {"Concat", "concat"},
                                                              {"LRN", "lrn"},         {"Flatten", "flatten"}, {"Reshape", "reshape"},
                                                              {"Dropout", "dropout"}, {"Softmax", "softmax"}};
        REQUIRE_MESSAGE(names.contains(op), op);
        add({.operation = names.at(op)}, node);
      }
    }
    return rows_;
  }

 private:
  static const ::onnx::AttributeProto* attribute(const ::onnx::NodeProto& node, const std::string& name) {
    for (const auto& a : node.attribute())
      if (a.name() == name) return &a;
    return nullptr;
  }
  static shape ints(const ::onnx::NodeProto& node, const std::string& name) {
    const auto* a = attribute(node, name);
    REQUIRE_MESSAGE(a != nullptr, name);
    return {a->ints().begin(), a->ints().end()};
  }
  static std::string join(const shape& values, const char* separator) {
    std::string text;
    for (const auto v : values) text += (text.empty() ? "" : separator) + std::to_string(v);
    return text;
  }
  static void read_window(const ::onnx::NodeProto& node, row& r) {
    r.kernel = join(ints(node, "kernel_shape"), "x");
    r.stride = join(ints(node, "strides"), "x");
    r.pads = join(ints(node, "pads"), " ");
  }
  void add_conv(const ::onnx::NodeProto& node) {
    const auto& weights = shapes_.at(node.input(1));
    row r{.operation = "conv",
          .input_channels = std::to_string(shapes_.at(node.input(0))[1]),
          .output_channels = std::to_string(weights[0]),
          .dilation = join(ints(node, "dilations"), "x"),
          .group = std::to_string(attribute(node, "group")->i()),
          .bias = node.input_size() == 3 ? "1" : "0"};
    read_window(node, r);
    CHECK(r.kernel == std::to_string(weights[2]) + "x" + std::to_string(weights[3]));
    add(r, node);
  }
  row& add(row r, const std::string& output) {
    r.output_shape = to_string(shapes_.at(output));
    source_[output] = rows_.size();
    return rows_.emplace_back(std::move(r));
  }
  void add(row r, const ::onnx::NodeProto& node) {
    for (const auto& input : node.input())
      if (const auto found = source_.find(input); found != source_.end())
        r.inputs.append(r.inputs.empty() ? "" : " ").append(std::to_string(found->second));
    add(std::move(r), node.output(0));
  }
  /// The row that a node belongs to together with the one before it.
  row& absorb(const ::onnx::NodeProto& node) {
    const auto index = source_.at(node.input(0));
    REQUIRE(index + 1 == rows_.size());
    source_[node.output(0)] = index;
    return rows_[index];
  }

  ::onnx::ModelProto model_;
  std::map<std::string, shape> shapes_;
  std::map<std::string, std::size_t> source_;  // row that makes a value
  std::vector<row> rows_;
};

}  // namespace

TEST_CASE("the networks equal the tables of the published comparison") {
  const auto folder = std::filesystem::path(RAPTOR_SOURCE_DIR) / "../shared/baseline/networks";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("SKIPPED: shared folder absent");
    return;
  }
  for (const std::string name :
       {"squeezenet1.1", "resnet18", "resnet34", "resnet50", "googlenet", "mobilenetv2", "inception_v3", "shufflenet"}) {
    CAPTURE(name);
    const auto expected = read_table(folder / (name + ".csv"));
    const auto built = walker(build_network(name, {.size = 224})).walk();
    REQUIRE(built.size() == expected.size());
    REQUIRE(built.size() > 40);
    for (std::size_t i = 0; i < built.size(); ++i) {
      CAPTURE(i);
      const auto &b = built[i], &e = expected[i];
      CHECK(b.operation == e.operation);
      CHECK(b.inputs == e.inputs);
      CHECK(b.output_shape == e.output_shape);
      CHECK(b.note == e.note);
      const auto same = [](const std::string& ours, const std::string& table) { CHECK((table.empty() || ours == table)); };
      same(b.input_channels, e.input_channels);
      same(b.output_channels, e.output_channels);
      same(b.kernel, e.kernel);
      same(b.stride, e.stride);
      same(b.pads, e.pads);
      // A table without dilations or groups means one.
      same(b.dilation, e.operation == "conv" && e.dilation.empty() ? "1x1" : e.dilation);
      same(b.group, e.operation == "conv" && e.group.empty() ? "1" : e.group);
      same(b.bias, e.bias);
    }
  }
}
