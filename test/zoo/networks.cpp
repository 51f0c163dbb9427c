#include "raptor/onnx/zoo.hpp"

#include <doctest/doctest.h>
#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include <map>
#include <set>

using namespace raptor;
using namespace raptor::onnx_io;

namespace {

/// A size at which a network is small enough for a test.
std::int64_t test_size(const network_info& n) {
  if (n.name == "inception_v3") return 96;
  return n.default_size < 64 ? n.default_size : 64;
}

shape sizes_of(const ::onnx::ValueInfoProto& info) {
  shape sizes;
  for (const auto& d : info.type().tensor_type().shape().dim()) sizes.push_back(d.dim_value());
  return sizes;
}

/// Checks a model as ONNX itself does, and that its declared output is what ONNX infers for it.
void check_model(::onnx::ModelProto model) {
  ::onnx::checker::check_model(model);
  const auto declared = sizes_of(model.graph().output(0));
  auto* tensor = model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
  tensor->clear_shape();
  ::onnx::shape_inference::InferShapes(model, ::onnx::OpSchemaRegistry::Instance(), {true, 1, true});
  CHECK(sizes_of(model.graph().output(0)) == declared);
}

std::uint64_t fnv(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

TEST_CASE("every network is a valid model whose shapes ONNX infers alike") {
  for (const auto& n : networks) {
    CAPTURE(n.name);
    const auto model = build_network(n.name, {.size = test_size(n)});
    check_model(model);
    CHECK(model.graph().input_size() == 1);
    CHECK(model.graph().input(0).name() == "input");
    CHECK(sizes_of(model.graph().input(0)) == shape{1, n.channels, test_size(n), test_size(n)});
    CHECK(model.graph().output(0).name() == "output");
    CHECK(element_count(sizes_of(model.graph().output(0))) == (n.default_size < 64 ? 10 : 1000));
  }
}

TEST_CASE("names of nodes and values are unique, and every initializer is read") {
  for (const auto& n : networks) {
    CAPTURE(n.name);
    const auto model = build_network(n.name, {.size = test_size(n)});
    std::set<std::string> nodes, values, read;
    for (const auto& node : model.graph().node()) {
      CHECK(nodes.insert(node.name()).second);
      for (const auto& output : node.output()) CHECK(values.insert(output).second);
      read.insert(node.input().begin(), node.input().end());
    }
    for (const auto& i : model.graph().initializer()) {
      CHECK(values.insert(i.name()).second);
      CHECK(read.contains(i.name()));
    }
  }
}

TEST_CASE("the smallest size works and the next smaller one does not") {
  for (const auto& n : networks) {
    CAPTURE(n.name);
    check_model(build_network(n.name, {.size = n.minimum_size}));
    if (n.minimum_size == 1) continue;
    const auto below = n.minimum_size - 1;
    CHECK_THROWS_AS(build_network(n.name, {.size = below}), error);
    // The table tells the truth: the layers themselves refuse it too.
    CHECK_THROWS_AS(n.build(zoo::layers(std::string(n.name), 0, n.channels, below)), error);
  }
}

TEST_CASE("the same options give the same bytes, another seed gives others") {
  const auto bytes = [](std::uint64_t seed) { return build_network("demo", {.seed = seed}).SerializeAsString(); };
  CHECK(bytes(3) == bytes(3));
  CHECK(bytes(3) != bytes(4));
  // Recorded: the weights do not depend on the machine, the compiler or the standard library.
  std::string weights;
  const auto model = build_network("tiny");
  for (const auto& i : model.graph().initializer()) weights += i.raw_data();
  CHECK(fnv(weights) == 503909957193562997u);
}

TEST_CASE("the weights of a layer do not depend on the input size") {
  const auto small = build_network("resnet18", {.size = 32}), large = build_network("resnet18", {.size = 64});
  REQUIRE(small.graph().initializer_size() == large.graph().initializer_size());
  for (int i = 0; i < small.graph().initializer_size(); ++i)
    CHECK(small.graph().initializer(i).raw_data() == large.graph().initializer(i).raw_data());
}

TEST_CASE("wrong requests say what is right") {
  try {
    (void)build_network("alexnet");
    FAIL("no error");
  } catch (const error& e) {
    CHECK(e.code() == error_code::usage);
    const std::string text = e.what();
    CHECK(text.starts_with("unknown network \"alexnet\"; the networks are tiny, demo, "));
    for (const auto& name : network_names()) CHECK(text.find(name) != std::string::npos);
  }
  for (const std::int64_t size : {std::int64_t{-1}, maximum_size + 1, std::int64_t{1} << 62})
    CHECK_THROWS_AS(build_network("resnet18", {.size = size}), error);
  CHECK_THROWS_WITH_AS(build_network("vgg11", {.size = 16384}), "the weights do not fit one ONNX file of 2 GiB", error);
  CHECK_THROWS_WITH_AS(build_network("squeezenet1.1", {.size = 30}), "an input of 30x30 is too small for squeezenet1.1: choose a size from 31 to 16384",
                       error);
}

TEST_CASE("small networks hold the operators they are there for") {
  const auto operators = [](const char* name) {
    const auto model = build_network(name);
    std::map<std::string, int> count;
    for (const auto& node : model.graph().node()) ++count[node.op_type()];
    return count;
  };
  CHECK(operators("tiny") == std::map<std::string, int>{{"Conv", 1}, {"Relu", 1}, {"MaxPool", 1}, {"Flatten", 1}, {"Gemm", 1}});
  auto demo = operators("demo");
  for (const char* op : {"Conv", "BatchNormalization", "Relu", "Clip", "Add", "MaxPool", "AveragePool", "GlobalAveragePool", "Gemm", "Softmax"})
    CHECK(demo[op] > 0);
  CHECK(operators("lenet5") ==
        std::map<std::string, int>{{"Conv", 2}, {"Tanh", 4}, {"AveragePool", 2}, {"Flatten", 1}, {"Gemm", 3}, {"Softmax", 1}});
  CHECK(operators("vgg11") ==
        std::map<std::string, int>{{"Conv", 8}, {"Relu", 10}, {"MaxPool", 5}, {"Flatten", 1}, {"Gemm", 3}, {"Dropout", 2}});
}
