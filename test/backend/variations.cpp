#include "stages.hpp"

#include <doctest/doctest.h>

#include <iostream>

using namespace raptor;

namespace {

/// Compiles and executes every backend test with other settings than those of the table. Returns how many rows pass; none may fail.
/// `only`: an operator that the model must have; empty: any.
int run(const backend::compile_settings& settings, const std::string& only = {}) {
  if (!std::filesystem::is_directory(backend::default_root)) {
    std::cout << "SKIPPED: ONNX backend tests absent (package libonnx-testdata)\n";
    return -1;
  }
  const std::vector<backend::stage> stages{backend::executed_stage(settings)};
  int passed = 0;
  for (const auto& test : onnx_io::list_backend_tests(backend::default_root)) {
    const auto model = onnx_io::load_model(test.folder / "model.onnx");
    const auto& nodes = model.graph().node();
    if (!only.empty() && std::none_of(nodes.begin(), nodes.end(), [&](const auto& n) { return n.op_type() == only; })) continue;
    for (const auto& r : backend::run_test(test, stages)) {
      const auto& v = backend::outcome(r);
      CAPTURE(r.suite);
      CAPTURE(r.test);
      CAPTURE(r.form);
      CAPTURE(v.reason);
      CHECK(v.result != backend::status::fail);
      passed += v.result == backend::status::pass ? 1 : 0;
    }
  }
  return passed;
}

}  // namespace

TEST_CASE("each convolution strategy gives the recorded outputs or says why it does not apply") {
  for (const auto* strategy : {"legacy", "depthwise", "packed-im2col", "streamed-packed", "streamed-patch", "output-channel-tiled", "input-k-tiled", "tiled-2d"}) {
    CAPTURE(std::string(strategy));
    int passed = 0;
    for (const std::int64_t crossbar_size : {4, 16, 128}) {
      CAPTURE(crossbar_size);
      const int now = run({4, 4096, crossbar_size, strategy, true}, "Conv");
      if (now < 0) return;
      passed += now;
    }
    MESSAGE(std::string(strategy) << ": " << passed << " pass");
    // No recorded convolution has more outputs than window elements, so column tiling alone never applies to them;
    // test/system/strategies.cpp runs it on drawn convolutions.
    CHECK((passed > 0 || std::string(strategy) == "output-channel-tiled"));
  }
}

TEST_CASE("one core, many cores, tiny crossbars, dense layouts") {
  const int usual = run({});
  if (usual < 0) return;
  CHECK(run({1, 1024, 128, "auto", true}) == usual);
  CHECK(run({16, 16, 32, "auto", true}) == usual);
  CHECK(run({7, 4096, 5, "auto", true}) == usual);
  CHECK(run({4, 64, 32, "auto", false}) == usual);
}
