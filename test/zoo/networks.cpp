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
    CHECK(sizes_of(model.graph().input(0)) == n.input_shape(test_size(n)));
    CHECK(model.graph().output(0).name() == "output");
    const std::map<std::string_view, shape> maps{{"unet", {1, 2, 64, 64}}, {"yolo11n", {1, 84, 8 * 8 + 4 * 4 + 2 * 2}}};
    const auto sizes = sizes_of(model.graph().output(0));
    if (maps.contains(n.name)) CHECK(sizes == maps.at(n.name));
    else CHECK(element_count(sizes) == (n.default_size < 64 ? 10 : 1000));
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
    if (n.multiple > 1) continue;  // the refused size would not fit where maps are joined, not a window
    // The table tells the truth: the layers themselves refuse it too.
    CHECK_THROWS_AS(n.build(zoo::layers(std::string(n.name), 0, n.input_shape(below), below)), error);
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
  CHECK_THROWS_WITH_AS(build_network("yolo11n", {.size = 100}),
                       "an input of 100x100 is not one that yolo11n can halve and double again: choose a multiple of 32 from 32 to 16384", error);
  CHECK_THROWS_WITH_AS(build_network("lstm", {.size = -1}), "a sequence of -1 is too small for lstm: choose a size from 1 to 16384", error);
  CHECK_THROWS_WITH_AS(build_network("resnet18", {.depth = 3}), "resnet18 is built as a whole: it has no prefix of a given depth", error);
  CHECK_THROWS_WITH_AS(build_network("yolo11n", {.depth = 25}), "yolo11n has 24 layers, a prefix of 25 cannot be built", error);
  CHECK_THROWS_AS(build_network("yolo11n", {.depth = -1}), error);
}

TEST_CASE("YOLO11n has the parameters of the published network, layer by layer") {
  // Weights and biases (those of BatchNormalization folded) that the network's own summary gives for each layer, without the
  // second vector of each BatchNormalization: a folded layer has one bias a channel.
  const auto parameters = [](std::int64_t depth) {
    std::int64_t sum = 0;
    const auto model = build_network("yolo11n", {.size = 32, .depth = depth});
    for (const auto& i : model.graph().initializer())
      if (i.name().ends_with("_weight") || i.name().ends_with("_bias")) sum += element_count(shape(i.dims().begin(), i.dims().end()));
    return sum;
  };
  const auto convolution = [](std::int64_t in, std::int64_t out, std::int64_t kernel) { return in * out * kernel * kernel + out; };
  CHECK(parameters(1) == convolution(3, 16, 3));
  CHECK(parameters(2) - parameters(1) == convolution(16, 32, 3));
  CHECK(parameters(3) - parameters(2) == convolution(32, 32, 1) + convolution(16, 8, 3) + convolution(8, 16, 3) + convolution(48, 64, 1));
  CHECK(parameters(12) == parameters(11));
  CHECK(parameters(13) == parameters(12));
  // Published: 2 624 080 parameters, of which 16 are the bins of the head and 2 a channel of each BatchNormalization. Folding
  // leaves one of the two.
  std::int64_t folded = 0;
  const auto model = build_network("yolo11n");
  for (const auto& i : model.graph().initializer())
    if (i.name().ends_with("_bias")) folded += i.dims(0);
  const std::int64_t head = 3 * (64 + 80);  // the last convolutions have a bias of their own and no BatchNormalization
  CHECK(parameters(0) + 16 + (folded - head) == 2'624'080);
}

TEST_CASE("a prefix of YOLO11n ends with the map of its last layer") {
  const std::vector<shape> maps{{1, 16, 32, 32}, {1, 32, 16, 16}, {1, 64, 16, 16}, {1, 64, 8, 8},   {1, 128, 8, 8}, {1, 128, 4, 4},
                                {1, 128, 4, 4},  {1, 256, 2, 2},  {1, 256, 2, 2},  {1, 256, 2, 2},  {1, 256, 2, 2}, {1, 256, 4, 4},
                                {1, 384, 4, 4},  {1, 128, 4, 4},  {1, 128, 8, 8},  {1, 256, 8, 8},  {1, 64, 8, 8},  {1, 64, 4, 4},
                                {1, 192, 4, 4},  {1, 128, 4, 4},  {1, 128, 2, 2},  {1, 384, 2, 2},  {1, 256, 2, 2}, {1, 84, 84}};
  for (std::size_t depth = 1; depth <= maps.size(); ++depth) {
    CAPTURE(depth);
    const auto model = build_network("yolo11n", {.size = 64, .depth = static_cast<std::int64_t>(depth)});
    check_model(model);
    CHECK(sizes_of(model.graph().output(0)) == maps[depth - 1]);
  }
  CHECK(build_network("yolo11n", {.size = 64, .depth = 24}).graph().SerializeAsString() == build_network("yolo11n", {.size = 64}).graph().SerializeAsString());
}

TEST_CASE("a network without Softmax is the same but for them") {
  for (const auto& n : networks) {
    CAPTURE(n.name);
    const auto with = build_network(n.name, {.size = test_size(n)}), without = build_network(n.name, {.size = test_size(n), .softmax = false});
    check_model(without);
    int softmax = 0;
    for (const auto& node : with.graph().node()) softmax += node.op_type() == "Softmax" ? 1 : 0;
    for (const auto& node : without.graph().node()) CHECK(node.op_type() != "Softmax");
    CHECK(without.graph().node_size() + softmax == with.graph().node_size());
    if (n.name == "yolo11n") CHECK(softmax == 2);
  }
}

TEST_CASE("MobileNetV3 has the parameters of the published networks") {
  // Published: 2 542 856 and 5 483 032, with two vectors a BatchNormalization; folding leaves one bias a channel.
  const auto check = [](const char* name, std::int64_t published) {
    const auto model = build_network(name, {.size = 32});
    std::int64_t sum = 0;
    std::int64_t normalized = 0;
    // Squeeze and excite has biases of its own: of the convolution behind the pool and of the one before HardSigmoid.
    std::set<std::string> pooled, gates;
    for (const auto& node : model.graph().node()) {
      if (node.op_type() == "GlobalAveragePool") pooled.insert(node.output(0));
      if (node.op_type() == "HardSigmoid") gates.insert(node.input(0));
    }
    for (const auto& i : model.graph().initializer())
      if (i.name().ends_with("_weight") || i.name().ends_with("_bias")) sum += element_count(shape(i.dims().begin(), i.dims().end()));
    for (const auto& node : model.graph().node())
      if (node.op_type() == "Conv" && !pooled.contains(node.input(0)) && !gates.contains(node.output(0)))
        for (const auto& i : model.graph().initializer())
          if (i.name() == node.input(2)) normalized += i.dims(0);
    CHECK(sum + normalized == published);
  };
  check("mobilenetv3_small", 2'542'856);
  check("mobilenetv3_large", 5'483'032);
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
  CHECK(operators("unet")["ConvTranspose"] == 3);
  CHECK(operators("mobilenetv3_small")["HardSwish"] == 19);
  CHECK(operators("mobilenetv3_small")["HardSigmoid"] == 9);
  CHECK(operators("mobilenetv3_large")["HardSigmoid"] == 8);
  CHECK(operators("transformer")["LayerNormalization"] == 5);
  CHECK(operators("transformer")["MatMul"] == 2 * 6);
  CHECK(operators("lstm")["Sigmoid"] == 3 * 8);
  CHECK(operators("vgg11") ==
        std::map<std::string, int>{{"Conv", 8}, {"Relu", 10}, {"MaxPool", 5}, {"Flatten", 1}, {"Gemm", 3}, {"Dropout", 2}});
}
