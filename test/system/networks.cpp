#include "support.hpp"

#include "tools/write.hpp"

using namespace raptor;
using namespace system_test;

TEST_CASE("every network of the zoo computes what the reference evaluator does") {
  for (const auto& name : onnx_io::network_names()) {
    const bool own_size = onnx_io::find_network(name).default_size < 64;
    CAPTURE(name);
    const auto m = load_network(name, own_size ? 0 : name == "inception_v3" ? 96 : 64);
    CHECK(relative_error(m, compile(m, chip(144, 64, 128)).image) <= 1e-4);
  }
}

TEST_CASE("at full size") {
  struct network {
    const char* name;
    std::int64_t size;
  };
  for (const auto& [name, size] : {network{"resnet18", 224}, {"squeezenet1.1", 224}, {"mobilenetv2", 224}, {"mobilenetv3_small", 224}, {"unet", 128}, {"yolo11n", 320}}) {
    CAPTURE(name);
    const auto m = load_network(name, size);
    CHECK(relative_error(m, compile(m, chip(144, 64, 128)).image) <= 1e-4);
  }
}

TEST_CASE("prefixes of YOLO11n, and the network without Softmax") {
  for (const std::int64_t depth : {1, 3, 7, 11, 13, 17, 23, 24}) {
    CAPTURE(depth);
    const auto m = load(onnx_io::build_network("yolo11n", {.size = 64, .depth = depth, .softmax = false}));
    CHECK(relative_error(m, compile(m, chip(144, 64, 128)).image) <= 1e-4);
  }
}

TEST_CASE("small networks on a small chip, with and without layout planning") {
  for (const char* name : {"tiny", "lenet5", "demo"})
    for (const bool planning : {true, false}) {
      CAPTURE(name);
      CAPTURE(planning);
      auto options = chip(16, 16, 32);
      options.spatial_planning = planning;
      const auto m = load_network(name, 0);
      CHECK(relative_error(m, compile(m, options).image) <= 1e-4);
    }
}

TEST_CASE("without layout planning everything is dense, and right") {
  for (const char* name : {"resnet18", "mobilenetv2", "googlenet", "shufflenet"}) {
    CAPTURE(name);
    auto options = chip(144, 64, 128);
    options.spatial_planning = false;
    const auto m = load_network(name, 64);
    const auto c = compile(m, options);
    for (const auto& a : c.plan.chosen) CHECK(a.result == layout::physical::dense);
    CHECK(relative_error(m, c.image) <= 1e-4);
  }
}

TEST_CASE("a chip too small for the weights: needed and available crossbars") {
  const auto m = load_network("resnet18", 64);
  try {
    static_cast<void>(compile(m, chip(16, 16, 32)));
    FAIL("it should not fit");
  } catch (const error& e) {
    CHECK(e.code() == error_code::capacity);
    CHECK(std::string(e.what()).find("crossbars needed, 256 available") != std::string::npos);
  }
}

TEST_CASE("every stage of a compilation passes its verifiers") {
  for (const char* name : {"demo", "mobilenetv2", "googlenet"}) {
    CAPTURE(name);
    const auto m = load_network(name, 64);
    const auto options = chip(144, 64, 128);
    const auto target = tools::make_target(options);
    std::size_t stages = 0;
    static_cast<void>(tools::compile_model(m.canonical, target, options, [&](stage s, const compilation& c) {
      CHECK_NOTHROW(tools::verify_stage(s, c, m.canonical, target.chip()));
      ++stages;
    }));
    CHECK(stages == 7);
  }
}
