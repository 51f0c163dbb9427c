// Models of up to 2 GB: how much memory the import takes. The files are sparse, so that they cost no room on the disk.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "../temporary_folder.hpp"
#include "raptor/model/rewrite.hpp"
#include "raptor/onnx/builder.hpp"
#include "raptor/onnx/import.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using raptor_test::temporary_folder;

namespace {

/// A field of a file of /proc in bytes; 0 where the system has none.
std::int64_t memory(const std::string& field, const char* file = "/proc/self/status") {
  std::ifstream status(file);
  for (std::string word; status >> word;)
    if (word == field + ":") {
      std::int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024;
    }
  return 0;
}
/// What can be taken without swapping.
std::int64_t available_memory() { return memory("MemAvailable", "/proc/meminfo"); }
/// Makes VmHWM, the peak of the resident memory, start from now. False where it would tell nothing.
bool restart_peak() {
#ifdef __SANITIZE_ADDRESS__
  return false;  // what has been freed stays resident for a while
#endif
  std::ofstream out("/proc/self/clear_refs");
  out << "5" << std::flush;
  return static_cast<bool>(out);
}

/// A matrix product with rows × columns weights. `external`: they lie in weights.bin, all zero but the last.
void write_model(const std::filesystem::path& folder, std::int64_t rows, std::int64_t columns, bool external) {
  model_builder b;
  const auto x = b.input("x", {1, rows});
  auto& weights = *b.proto().mutable_graph()->add_initializer();
  weights.set_name("w");
  weights.set_data_type(::onnx::TensorProto::FLOAT);
  weights.add_dims(rows);
  weights.add_dims(columns);
  const auto bytes = static_cast<std::size_t>(rows * columns) * sizeof(float);
  const std::string one("\0\0\x80\x3f", 4);
  if (external) {
    weights.set_data_location(::onnx::TensorProto::EXTERNAL);
    auto& location = *weights.add_external_data();
    location.set_key("location");
    location.set_value("weights.bin");
    std::ofstream file(folder / "weights.bin", std::ios::binary);
    file.seekp(static_cast<std::streamoff>(bytes - 4));
    file.write(one.data(), 4);
    REQUIRE(file);
  } else {
    auto& raw = *weights.mutable_raw_data();
    raw.resize(bytes);
    raw.replace(bytes - 4, 4, one);
  }
  b.node("MatMul", {x, "w"}, "y");
  b.output("y", {1, columns});
  std::ofstream file(folder / "model.onnx", std::ios::binary);
  REQUIRE(b.proto().SerializeToOstream(&file));
}

void check_import(std::int64_t rows, std::int64_t columns, bool external) {
  const temporary_folder folder;
  write_model(folder.path(), rows, columns, external);
  const bool measured = restart_peak();
  const auto before = memory("VmRSS");
  const auto g = model::canonicalize(import_model(folder.path() / "model.onnx"));
  const auto peak = memory("VmHWM") - before;
  REQUIRE(g.node_count() > 0);
  std::size_t found = 0;
  for (const auto& t : g.tensors())
    if (t.data && element_count(t.sizes) == rows * columns) {
      ++found;
      CHECK(t.data->floats().front() == 0.0F);
      CHECK(t.data->floats().back() == 1.0F);
    }
  CHECK(found == 1);
  const auto size = rows * columns * std::int64_t{sizeof(float)};
  CAPTURE(size);
  CAPTURE(peak);
  if (measured && before > 0) {
    CHECK(peak >= size);
    CHECK(peak <= 4 * size);
  } else {
    MESSAGE("SKIPPED: the peak of memory cannot be measured here");
  }
}

}  // namespace

TEST_CASE("a model of 64 MB takes at most four times its size to import") {
  SUBCASE("weights in the file") { check_import(4096, 4096, false); }
  SUBCASE("weights beside the file") { check_import(4096, 4096, true); }
}

// 23168 × 23168 × 4 bytes: a little less than 2^31, within 4 × 2^31 of memory and as much room for the file as it has bytes.
TEST_CASE("a model of 2 GB takes at most four times its size to import") {
  constexpr std::int64_t side = 23168, size = side * side * std::int64_t{sizeof(float)};
  const auto available = available_memory();
  const auto room = std::filesystem::space(std::filesystem::temp_directory_path()).available;
  if (available < 4 * size || room < 2 * static_cast<std::uintmax_t>(size)) {
    MESSAGE("SKIPPED: it takes " << 4 * size << " bytes of memory and " << 2 * size << " of disk, " << available << " and " << room << " are free");
    return;
  }
  SUBCASE("weights in the file") { check_import(side, side, false); }
  SUBCASE("weights beside the file") { check_import(side, side, true); }
}
