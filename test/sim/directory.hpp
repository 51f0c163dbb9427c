#pragma once

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "raptor/isa/binary.hpp"
#include "support.hpp"

namespace raptor::sim::test {

/// A folder that lives as long as the object.
class temporary_directory {
 public:
  temporary_directory() {
    static int number = 0;
    path_ = std::filesystem::temp_directory_path() / ("raptor_test_sim_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
    std::filesystem::create_directories(path_);
  }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  ~temporary_directory() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  void write(const std::filesystem::path& file, std::span<const std::byte> bytes) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream out(path_ / file, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void write(const std::filesystem::path& file, std::string_view text) const { write(file, std::as_bytes(std::span(text))); }
  [[nodiscard]] std::string read(const std::filesystem::path& file) const {
    std::ifstream in(path_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path path_;
};

/// config.json of the artifact below.
[[nodiscard]] inline nlohmann::json example_config() {
  return nlohmann::json::parse(R"({"core_cnt": 2, "xbar_size": [2, 3], "adc_count": 16, "cell_precision": 32,
    "array_group_map": {"core0": [1, 2], "core1": [1]}, "inputs_addresses": [0], "inputs_sizes": [8], "outputs_addresses": [8],
    "outputs_sizes": [24], "inputs_names": ["image"], "inputs_shapes": [[1, 2]], "inputs_types": ["float32"], "outputs_names": ["scores"],
    "outputs_shapes": [[1, 6]], "outputs_types": ["float32"]})");
}

/// Writes a small artifact: core 0 multiplies its input by a group of two crossbars (2 × 6) and stores it; core 1 is empty but has
/// a group that links to the weights of core 0's group 0.
inline void write_example(const temporary_directory& directory) {
  directory.write("config.json", example_config().dump());
  directory.write("memory.bin", std::vector<std::byte>(32));
  directory.write("core_0.pim", isa::encode(stream{b::setbw(32, 32), b::sldi(1, 0), b::sldi(2, 64), b::ld(1, 1, 8), b::mvmul(2, 1, 1), b::sldi(3, 8), b::st(3, 2, 24)}));
  directory.write("core_1.pim", isa::encode(stream{}));
  directory.write("weights/a.bin", to_bytes({9, 9, 9, 9, 9, 9}));
  directory.write("weights/b.bin", to_bytes({1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60}));
  for (const char* core : {"core_0", "core_1"}) std::filesystem::create_directories(directory.path() / core);
  std::filesystem::create_symlink("../weights/a.bin", directory.path() / "core_0/group_0.bin");
  std::filesystem::create_symlink("../weights/b.bin", directory.path() / "core_0/group_1.bin");
  std::filesystem::create_symlink("../weights/a.bin", directory.path() / "core_1/group_0.bin");
}

}  // namespace raptor::sim::test
