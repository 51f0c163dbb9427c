#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "raptor/emit/atomic_directory.hpp"
#include "raptor/emit/weights.hpp"
#include "raptor/program/program.hpp"
#include "raptor/program/text.hpp"
#include "raptor/support/error.hpp"

/// The bound program on the disk: what --EmitPimBufferized writes and --pim-only-codegen reads.
namespace raptor::emit {

/// True for a directory that write_bound made: it may be replaced.
[[nodiscard]] inline bool is_bound(const std::filesystem::path& directory) {
  std::error_code code;
  return std::filesystem::is_regular_file(directory / "bound.txt", code) && std::filesystem::is_directory(directory / "weights", code);
}

/// Writes bound.txt, weights/ (one file for each distinct content, rows × columns f32 little endian, not padded) and constants.bin.
/// Guarantees and errors: as write_artifact. See also: read_bound.
/// `extra`: files that a later emission passes on (reports), kept under pass/.
inline void write_bound(const program::program& bound, const std::filesystem::path& directory, const std::vector<extra_file>& extra = {}) {
  namespace fs = std::filesystem;
  atomic_directory out(directory, is_bound, "bound program");
  std::error_code code;
  fs::create_directory(out.path() / "weights", code);
  if (code) throw error(error_code::io, "the directory cannot be made: " + code.message(), (directory / "weights").string());
  const auto content = for_each_content(
      bound, [](const lowering::weight_matrix& m) { return group_size{m.rows, m.columns}; },
      [&](std::uint32_t number, std::size_t, group_size, const std::vector<float>& values) {
        write_file(out.path() / program::weight_file_name(number), std::as_bytes(std::span(values)));
      });
  std::vector<std::string> names;
  for (const auto number : content) names.push_back(number == program::none ? std::string() : program::weight_file_name(number));
  const auto form = program::to_text(bound, names);
  write_file(out.path() / "bound.txt", form.text);
  write_file(out.path() / "constants.bin", std::as_bytes(std::span(form.constants)));
  if (!extra.empty()) {
    fs::create_directory(out.path() / "pass", code);
    if (code) throw error(error_code::io, "the directory cannot be made: " + code.message(), (directory / "pass").string());
    write_extra(out.path() / "pass", extra);
  }
  out.commit();
}

namespace bound_parts {

/// Errors: io with the path. Memory: the file's size.
template <class T>
[[nodiscard]] std::vector<T> read_values(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) throw error(error_code::io, "the file does not exist", path.string());
  const auto size = std::filesystem::file_size(path, code);
  if (code) throw error(error_code::io, "the file cannot be read", path.string());
  if (size % sizeof(T) != 0)
    throw error(error_code::malformed, "the file has " + std::to_string(size) + " bytes, not a multiple of " + std::to_string(sizeof(T)), path.string());
  std::vector<T> values(static_cast<std::size_t>(size / sizeof(T)));
  std::ifstream in(path, std::ios::binary);
  if (!values.empty()) in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(size));
  if (!in) throw error(error_code::io, "the file cannot be read to its end", path.string());
  return values;
}

}  // namespace bound_parts

/// Reads a bound program: `path` is the directory that write_bound wrote, or its bound.txt.
///
/// Guarantees: planning and emission of the result give the same bytes as those of the program that was written. Every weight file is
/// read once; each matrix becomes one source and one block. A weight file outside the directory is refused.
/// Errors: io and malformed with the file (and line). See also: verify::check_program, which judges the operations.
[[nodiscard]] inline program::program read_bound(std::filesystem::path path) {
  namespace fs = std::filesystem;
  std::error_code code;
  fs::path file = path;
  if (fs::is_directory(path, code)) file = path / "bound.txt";
  else path = path.has_parent_path() ? path.parent_path() : fs::path(".");
  auto parsed = [&] {
    const auto text = bound_parts::read_values<char>(file);
    std::vector<float> constants;
    if (fs::exists(path / "constants.bin", code)) constants = bound_parts::read_values<float>(path / "constants.bin");
    return program::parse_text({text.data(), text.size()}, constants, file.string());
  }();
  std::map<std::string, model::constant_ptr> files;
  for (std::size_t w = 0; w < parsed.weight_files.size(); ++w) {
    const fs::path name = parsed.weight_files[w];
    if (name.empty()) continue;  // no core holds it
    auto& matrix = parsed.value.weights[w];
    if (name.is_absolute()) throw error(error_code::malformed, "a weight file outside the directory: " + name.string(), file.string());
    for (const auto& part : name)
      if (part == "..") throw error(error_code::malformed, "a weight file outside the directory: " + name.string(), file.string());
    auto& data = files[name.string()];
    if (!data) {
      auto constant = std::make_shared<model::constant>();
      constant->values = bound_parts::read_values<float>(path / name);
      data = std::move(constant);
    }
    const std::int64_t expected = checked::multiply(matrix.rows, matrix.columns);
    if (static_cast<std::int64_t>(data->floats().size()) != expected)
      throw error(error_code::malformed, "the weights have " + std::to_string(data->floats().size()) + " elements, but " + std::to_string(matrix.rows) +
                                             " rows x " + std::to_string(matrix.columns) + " columns make " + std::to_string(expected),
                  (path / name).string());
    matrix.sources = {data};
    matrix.blocks = {{0, 0, 0, matrix.rows, matrix.columns, 0, matrix.columns, 1}};
  }
  return std::move(parsed.value);
}

}  // namespace raptor::emit
