#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "raptor/isa/binary.hpp"
#include "raptor/isa/json.hpp"
#include "raptor/sim/artifact_config.hpp"
#include "raptor/sim/crossbar_matrix.hpp"
#include "raptor/sim/program.hpp"
#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"

/// Loads an artifact directory. Source: ARTIFACTS.md.
namespace raptor::sim {

/// Where the parts of an artifact lie. Empty: the usual place inside the directory.
struct artifact_paths {
  std::filesystem::path directory;
  std::filesystem::path config;  ///< default: directory/config.json
  std::filesystem::path memory;  ///< default: directory/memory.bin
  std::filesystem::path cores;   ///< folder of core_N.pim / core_N.json and core_N/group_g.bin; default: directory
};

/// Reads a whole regular file. Errors: io, with the path. Memory: the file's size.
[[nodiscard]] inline std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) throw error(error_code::io, "the file does not exist", path.string());
  if (!std::filesystem::is_regular_file(status)) throw error(error_code::io, "not a regular file", path.string());
  const auto size = std::filesystem::file_size(path, code);
  std::ifstream stream(path, std::ios::binary);
  if (code || !stream) throw error(error_code::io, "the file cannot be read", path.string());
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  if (!bytes.empty()) stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!stream) throw error(error_code::io, "the file cannot be read to its end", path.string());
  return bytes;
}

namespace detail {

[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The stream of one core: core_N.pim, or else core_N.json.
[[nodiscard]] inline std::vector<isa::instruction> load_stream(const std::filesystem::path& folder, std::size_t core) {
  const std::string stem = "core_" + std::to_string(core);
  const auto binary = folder / (stem + ".pim");
  const auto json = folder / (stem + ".json");
  if (std::filesystem::exists(binary)) return isa::decode(read_file(binary), binary.string());
  if (std::filesystem::exists(json)) return isa::parse_json(as_text(read_file(json)), json.string());
  throw error(error_code::io, "core " + std::to_string(core) + " has no instruction stream", binary.string(),
              "every core id has a core_N.pim or core_N.json, which may be empty");
}

/// Bits of a weight in each array group, as the stream's mvmul say; 0 where no instruction uses the group.
[[nodiscard]] inline std::vector<std::int32_t> weight_bits(const std::vector<isa::instruction>& stream, std::size_t groups, const std::string& file) {
  std::vector<std::int32_t> bits(groups, 0);
  for (std::size_t k = 0; k < stream.size(); ++k) {
    const isa::instruction& i = stream[k];
    if (i.op != isa::opcode::mvmul) continue;
    const std::string place = file + ", instruction " + std::to_string(k);
    if (i.word2 < 0 || static_cast<std::size_t>(i.word2) >= groups)
      throw error(error_code::malformed, "mvmul names array group " + std::to_string(i.word2) + ", the core has " + std::to_string(groups), place);
    std::int32_t& known = bits[static_cast<std::size_t>(i.word2)];
    if (i.word0 <= 0) throw error(error_code::malformed, "mvmul has mbiw " + std::to_string(i.word0) + ", it must be positive", place);
    if (known != 0 && known != i.word0)
      throw error(error_code::malformed, "array group " + std::to_string(i.word2) + " is used with mbiw " + std::to_string(known) + " and " +
                                             std::to_string(i.word0), place);
    known = i.word0;
  }
  return bits;
}

/// Loads weight files, each distinct file once: replicas are links to one.
class weight_cache {
 public:
  /// `columns` 0: whatever the file's size says. Errors: io, malformed with the sizes.
  [[nodiscard]] std::shared_ptr<const crossbar_matrix> load(const std::filesystem::path& path, std::int64_t rows, std::int64_t columns) {
    std::error_code code;
    const auto real = std::filesystem::canonical(path, code);
    if (code) throw error(error_code::io, "the weights of an array group are missing", path.string(), "core_N/group_g.bin links to a file of weights/");
    const auto key = std::pair(real.string(), columns);
    if (const auto found = loaded_.find(key); found != loaded_.end()) return found->second;
    const auto row_bytes = rows * std::int64_t{sizeof(float)};
    const auto size = std::filesystem::is_regular_file(real, code) ? std::filesystem::file_size(real, code) : std::uintmax_t{0};
    if (columns == 0) {
      if (size == 0 || size % static_cast<std::uintmax_t>(row_bytes) != 0)
        throw error(error_code::malformed, "the weights have " + std::to_string(size) + " bytes, not a multiple of " + std::to_string(rows) + " rows of 4 bytes",
                    path.string());
      columns = static_cast<std::int64_t>(size / static_cast<std::uintmax_t>(row_bytes));
    }
    const std::int64_t expected = checked::multiply(row_bytes, columns);
    if (size != static_cast<std::uintmax_t>(expected))
      throw error(error_code::malformed, "the weights have " + std::to_string(size) + " bytes, but " + std::to_string(rows) + " rows x " +
                                             std::to_string(columns) + " columns x 4 make " + std::to_string(expected), path.string());
    const auto bytes = read_file(real);
    if (bytes.size() != static_cast<std::size_t>(expected)) throw error(error_code::io, "the file changed while it was read", path.string());
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    auto matrix = std::make_shared<const crossbar_matrix>(static_cast<std::size_t>(rows), static_cast<std::size_t>(columns), values);
    loaded_.emplace(key, matrix);
    return matrix;
  }

 private:
  std::map<std::pair<std::string, std::int64_t>, std::shared_ptr<const crossbar_matrix>> loaded_;
};

}  // namespace detail

/// Loads an artifact whose parts may lie apart.
///
/// Errors: io (a missing or unreadable file), malformed (a file that breaks its format; weights whose size is not rows ×
/// crossbars × xbar_size[1] × cell_precision / mbiw × 4; regions outside memory.bin), each with the file as place.
/// Cost: linear in the files; memory: the streams, the non-zero parts of the distinct weights, and memory.bin.
[[nodiscard]] inline loaded_program load_artifact(artifact_paths paths) {
  if (!std::filesystem::is_directory(paths.directory))
    throw error(error_code::io, "the artifact directory does not exist", paths.directory.string(), "raptor-compile MODEL.onnx -o DIRECTORY makes one");
  if (paths.config.empty()) paths.config = paths.directory / "config.json";
  if (paths.memory.empty()) paths.memory = paths.directory / "memory.bin";
  if (paths.cores.empty()) paths.cores = paths.directory;
  if (!std::filesystem::is_directory(paths.cores)) throw error(error_code::io, "the folder of the cores does not exist", paths.cores.string());

  artifact_config config = parse_config(detail::as_text(read_file(paths.config)), paths.config.string());
  loaded_program program;
  program.global_memory = read_file(paths.memory);
  detail::weight_cache cache;
  for (std::size_t core = 0; core < config.groups.size(); ++core) {
    const std::string name = "core_" + std::to_string(core);
    core_program& own = program.cores.emplace_back();
    own.stream = detail::load_stream(paths.cores, core);
    const auto bits = detail::weight_bits(own.stream, config.groups[core].size(), (paths.cores / name).string());
    for (std::size_t g = 0; g < config.groups[core].size(); ++g) {
      const std::int64_t crossbars = config.groups[core][g];
      const std::int64_t cell_bits = checked::multiply(checked::multiply(crossbars, config.crossbar_columns), config.cell_precision);
      const auto file = paths.cores / name / ("group_" + std::to_string(g) + ".bin");
      std::int64_t columns = 0;
      const std::int64_t width = bits[g] != 0 ? bits[g] : config.weight_bits;
      if (width != 0) {
        columns = cell_bits / width;
        if (columns == 0 || cell_bits % width != 0)
          throw error(error_code::malformed, "an array group of " + std::to_string(crossbars) + " crossbars of " + std::to_string(config.crossbar_columns) +
                                                 " columns of " + std::to_string(config.cell_precision) + " bits does not hold whole weights of " +
                                                 std::to_string(width) + " bits", file.string());
      }
      own.groups.push_back({crossbars, cache.load(file, config.crossbar_rows, columns)});
    }
  }
  const auto check_inside = [&](const std::vector<tensor_region>& regions, const char* kind) {
    const auto size = static_cast<std::int64_t>(program.global_memory.size());
    for (const auto& region : regions)
      if (region.size > size || region.address > size - region.size)
        throw error(error_code::malformed, std::string(kind) + " '" + region.name + "' at " + std::to_string(region.address) + " of " +
                                               std::to_string(region.size) + " bytes is not inside the " + std::to_string(size) + " bytes of " +
                                               paths.memory.filename().string(), paths.config.string());
  };
  check_inside(config.inputs, "input");
  check_inside(config.outputs, "output");
  program.constant_bytes = config.constant_bytes;
  program.inputs = std::move(config.inputs);
  program.outputs = std::move(config.outputs);
  return program;
}

/// Loads an artifact directory.
[[nodiscard]] inline loaded_program load_artifact(const std::filesystem::path& directory) {
  artifact_paths paths;
  paths.directory = directory;
  return load_artifact(std::move(paths));
}

}  // namespace raptor::sim
