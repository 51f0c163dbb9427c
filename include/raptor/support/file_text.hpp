#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <system_error>

namespace raptor {

/// What is left of an open file. `path`: its name; where that is a regular file, no more memory is taken than it has bytes.
[[nodiscard]] inline std::string file_text(std::ifstream& in, const std::filesystem::path& path) {
  std::error_code code;
  std::string text;
  if (std::filesystem::is_regular_file(path, code)) {
    const auto size = std::filesystem::file_size(path, code);
    if (!code) text.resize(static_cast<std::size_t>(size));
  }
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  for (char c = 0; in.get(c);) text.push_back(c);
  return text;
}

}  // namespace raptor
