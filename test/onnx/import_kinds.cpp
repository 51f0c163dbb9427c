// Kinds of fault that concern many operators: each axis attribute may be negative, files may be larger than 2 GB.
#include "raptor/onnx/operators.hpp"

#include <fstream>
#include <functional>

#include "import_support.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

namespace {

/// What an operator over x [2, 3, 4] computes with an axis.
using with_axis = std::function<void(model_builder&, const std::string& x, std::int64_t axis)>;

std::vector<model::tensor_value> computed(std::int64_t opset, const with_axis& build, std::int64_t axis) {
  auto b = at_opset(opset);
  build(b, b.input("x", {2, 3, 4}), axis);
  std::vector<float> x;
  for (int i = 0; i < 24; ++i) x.push_back(static_cast<float>((i * 7) % 24) / 8 - 1);
  std::vector<std::string> outputs;
  for (const auto& name : b.proto().graph().node(b.proto().graph().node_size() - 1).output()) outputs.push_back(name);
  return run(finish(std::move(b), outputs), {x});
}
with_axis attribute(const std::string& op) {
  return [op](model_builder& b, const std::string& x, std::int64_t axis) { b.node(op, {x}, "y").attribute("axis", axis); };
}
with_axis axes_attribute(const std::string& op) {
  return [op](model_builder& b, const std::string& x, std::int64_t axis) { b.node(op, {x}, "y").attribute("axes", {axis}); };
}
with_axis axes_input(const std::string& op) {
  return [op](model_builder& b, const std::string& x, std::int64_t axis) { b.node(op, {x, b.integers("axes", {axis})}, "y"); };
}

struct axis_case {
  std::string name;
  std::int64_t opset;
  with_axis build;
  std::int64_t rank = 3;  ///< what a negative axis counts from
};
std::vector<axis_case> axis_cases() {
  std::vector<axis_case> cases;
  for (const std::string op : {"Softmax", "LogSoftmax"})
    for (const std::int64_t opset : {11, 13}) cases.push_back({op, opset, attribute(op)});
  cases.push_back({"Flatten", 13, attribute("Flatten")});
  cases.push_back({"Concat", 13, [](model_builder& b, const std::string& x, std::int64_t axis) { b.node("Concat", {x, x}, "y").attribute("axis", axis); }});
  cases.push_back({"Gather", 13, [](model_builder& b, const std::string& x, std::int64_t axis) { b.node("Gather", {x, b.integers("i", {1, -1, 0})}, "y").attribute("axis", axis); }});
  cases.push_back({"Split", 18, [](model_builder& b, const std::string& x, std::int64_t axis) { b.node("Split", {x}, "y", 2).attribute("axis", axis).attribute("num_outputs", 2); }});
  cases.push_back({"Slice", 13, [](model_builder& b, const std::string& x, std::int64_t axis) { b.node("Slice", {x, b.integers("s", {-2}), b.integers("e", {INT64_MAX}), b.integers("axes", {axis})}, "y"); }});
  cases.push_back({"Slice", 9, [](model_builder& b, const std::string& x, std::int64_t axis) { b.node("Slice", {x}, "y").attribute("starts", {1}).attribute("ends", {2}).attribute("axes", {axis}); }});
  cases.push_back({"Pad", 18, [](model_builder& b, const std::string& x, std::int64_t axis) { b.node("Pad", {x, b.integers("p", {1, 2}), "", b.integers("axes", {axis})}, "y"); }});
  cases.push_back({"LayerNormalization", 17, [](model_builder& b, const std::string& x, std::int64_t axis) { b.node("LayerNormalization", {x, b.scalar("s", 2)}, "y").attribute("axis", axis); }});
  cases.push_back({"MeanVarianceNormalization", 13, axes_attribute("MeanVarianceNormalization")});
  for (const std::string op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"}) {
    cases.push_back({op, 11, axes_attribute(op)});
    cases.push_back({op, 18, axes_input(op)});
  }
  const auto squeezed = [](bool input) {
    return [input](model_builder& b, const std::string& x, std::int64_t axis) {
      // [2, 3, 4] cut to 1 along the axis, then without it.
      b.node("Slice", {x, b.integers("s", {0}), b.integers("e", {1}), b.integers("cut", {axis})}, "c");
      if (input) b.node("Squeeze", {"c", b.integers("axes", {axis})}, "y");
      else b.node("Squeeze", {"c"}, "y").attribute("axes", {axis});
    };
  };
  cases.push_back({"Squeeze", 11, squeezed(false)});
  cases.push_back({"Squeeze", 13, squeezed(true)});
  cases.push_back({"Unsqueeze", 11, axes_attribute("Unsqueeze"), 4});
  cases.push_back({"Unsqueeze", 13, axes_input("Unsqueeze"), 4});
  cases.push_back({"DequantizeLinear", 13, [](model_builder& b, const std::string& x, std::int64_t axis) {
                     const std::size_t sizes[] = {2, 3, 4};
                     const auto count = sizes[static_cast<std::size_t>(axis < 0 ? axis + 3 : axis)];
                     std::vector<float> scales;
                     for (std::size_t i = 0; i < count; ++i) scales.push_back(i % 2 == 0 ? 0.25F : 0.5F);
                     b.initializer("scales", {static_cast<std::int64_t>(count)}, std::span<const float>(scales));
                     b.node("QuantizeLinear", {x, "scales"}, "q").attribute("axis", axis);
                     b.node("DequantizeLinear", {"q", "scales"}, "y").attribute("axis", axis);
                   }});
  return cases;
}

}  // namespace

TEST_CASE("every axis may be negative, and must exist") {
  for (const auto& c : axis_cases()) {
    CAPTURE(c.name);
    CAPTURE(c.opset);
    for (std::int64_t axis = 0; axis < c.rank; ++axis) {
      CAPTURE(axis);
      const auto positive = computed(c.opset, c.build, axis), negative = computed(c.opset, c.build, axis - c.rank);
      REQUIRE(positive.size() == negative.size());
      for (std::size_t i = 0; i < positive.size(); ++i) {
        CHECK(positive[i].sizes == negative[i].sizes);
        CHECK(positive[i].floats() == negative[i].floats());
      }
    }
    if (c.name == "DequantizeLinear") continue;  // its own scales are made for an axis
    for (const auto axis : {c.rank + 1, -c.rank - 1}) {
      auto b = at_opset(c.opset);
      c.build(b, b.input("x", {2, 3, 4}), axis);
      std::vector<std::string> outputs;
      for (const auto& name : b.proto().graph().node(b.proto().graph().node_size() - 1).output()) outputs.push_back(name);
      import_options unchecked;
      unchecked.check = false;
      CHECK(mentions(failure(finish(std::move(b), outputs), unchecked), "out of range"));
    }
  }
}

TEST_CASE("a file of more than 2 GB is refused with a way out; external data may lie beyond 2 GB") {
  const temporary_folder folder("large");
  std::error_code ec;
  const auto file = folder.write("large.onnx", "x");
  std::filesystem::resize_file(file, (std::uintmax_t{1} << 31) + 1, ec);  // a hole, no space is taken
  if (ec) return;
  try {
    static_cast<void>(import_model(file));
    FAIL("imported");
  } catch (const error& e) {
    CHECK(e.code() == error_code::unsupported);
    CHECK(e.hint().find("external data") != std::string::npos);
  }
  const auto offset = (std::uintmax_t{5} << 29) + 4;
  const auto weights = folder.write("w.bin", "");
  std::filesystem::resize_file(weights, offset, ec);
  if (ec) return;
  const std::vector<float> values{1, -2, 0.5F};
  std::ofstream(weights, std::ios::binary | std::ios::app).write(reinterpret_cast<const char*>(values.data()), 12);
  auto b = at_opset(13);
  const auto x = b.input("x", {3});
  b.node("Add", {x, "w"}, "y");
  auto* t = b.proto().mutable_graph()->add_initializer();
  t->set_name("w");
  t->set_data_type(::onnx::TensorProto::FLOAT);
  t->add_dims(3);
  t->set_data_location(::onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", "w.bin"}, {"offset", std::to_string(offset)}, {"length", "12"}}) {
    auto* entry = t->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  const auto g = import_model(folder.write("small.onnx", finish(std::move(b), {"y"}).SerializeAsString()));
  CHECK(model::evaluate(g, std::vector{model::make_value({3}, std::vector<float>(3, 0.0F))})[0].floats() == values);
}
