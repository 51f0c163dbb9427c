#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "raptor/target/configuration_json.hpp"

/// Reads files for the tests; the shared folder lies beside the project and may be absent.
namespace files {

inline std::string shared(const std::string& name) { return std::string(RAPTOR_SOURCE_DIR "/../shared/") + name; }
inline bool exists(const std::string& name) { return std::filesystem::exists(shared(name)); }
inline std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw raptor::error(raptor::error_code::io, "cannot read " + path, path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace files
