#include "harness.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "stages.hpp"

using namespace raptor;

namespace {

/// Runs everything once for all tests of this file; empty where the data is not installed.
const std::vector<backend::row>& results() {
  static const std::vector<backend::row> rows = [] {
    const auto stages = backend::all_stages();
    return backend::run_all(backend::default_root, stages);
  }();
  return rows;
}
bool available() {
  if (std::filesystem::is_directory(backend::default_root)) return true;
  std::cout << "SKIPPED: ONNX backend tests absent (package libonnx-testdata)\n";
  return false;
}

}  // namespace

TEST_CASE("no ONNX backend test fails: it passes, or is unsupported for a stated reason") {
  if (!available()) return;
  for (const auto& r : results()) {
    const auto& v = backend::outcome(r);
    CAPTURE(r.suite);
    CAPTURE(r.test);
    CAPTURE(r.form);
    CAPTURE(v.reason);
    CHECK(v.result != backend::status::fail);
    CHECK((v.result == backend::status::pass || !v.reason.empty()));
  }
}

TEST_CASE("with all inputs constant, what the importer folds agrees with the recordings") {
  if (!available()) return;
  const std::vector<backend::stage> stages{backend::reference_stage()};
  int passed = 0;
  for (const auto& test : onnx_io::list_backend_tests(backend::default_root)) {
    try {
      const auto model = onnx_io::load_model(test.folder / "model.onnx");
      const auto [folded, data] = onnx_io::with_constants(model, onnx_io::read_test_data(test.folder / "test_data_set_0", model.graph()), 0);
      const auto r = backend::run_form(test, folded, data, "folded", stages);
      const auto& v = backend::outcome(r);
      CAPTURE(test.name);
      CAPTURE(v.reason);
      CHECK(v.result != backend::status::fail);
      passed += v.result == backend::status::pass ? 1 : 0;
    } catch (const error& e) {
      CAPTURE(test.name);
      CAPTURE(e.what());
      CHECK(e.code() == error_code::unsupported);  // a recording that is no tensor
    }
  }
  CHECK(passed > 350);
}

TEST_CASE("docs/BACKEND_TESTS.md is up to date") {
  if (!available()) return;
  std::ifstream file(std::filesystem::path(RAPTOR_SOURCE_DIR) / "docs" / "BACKEND_TESTS.md", std::ios::binary);
  std::ostringstream written;
  written << file.rdbuf();
  const auto stages = backend::all_stages();
  std::istringstream expected(backend::markdown(results(), stages));
  std::istringstream found(written.str());
  std::string a;
  std::string b;
  for (int line = 1;; ++line) {
    const bool more = static_cast<bool>(std::getline(expected, a));
    const bool more_found = static_cast<bool>(std::getline(found, b));
    CAPTURE(line);
    REQUIRE_MESSAGE(more == more_found, "run raptor_backend_table > docs/BACKEND_TESTS.md");
    if (!more) break;
    REQUIRE_MESSAGE(a == b, "run raptor_backend_table > docs/BACKEND_TESTS.md");
  }
}
