#include <cstdio>

#include "harness.hpp"
#include "stages.hpp"

/// Prints docs/BACKEND_TESTS.md. Usage: raptor_backend_table [FOLDER of the test data].
int main(int argc, char** argv) {
  const std::filesystem::path root = argc > 1 ? argv[1] : raptor::backend::default_root;
  if (!std::filesystem::is_directory(root)) {
    std::fprintf(stderr, "error: no backend tests at %s\n  hint: install libonnx-testdata\n", root.c_str());
    return 1;
  }
  const auto stages = raptor::backend::all_stages();
  std::fputs(raptor::backend::markdown(raptor::backend::run_all(root, stages), stages).c_str(), stdout);
}
