#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "raptor/support/error.hpp"

/// Directories that appear complete or not at all.
namespace raptor::emit {

/// Writes files of a directory that is being made. Errors: io with the path.
inline void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!bytes.empty()) out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw error(error_code::io, "the file cannot be written", path.string());
}
inline void write_file(const std::filesystem::path& path, std::string_view text) { write_file(path, std::as_bytes(std::span(text))); }

/// A further file of a directory: a report, summary.json.
struct extra_file {
  std::filesystem::path path;  ///< relative, inside the directory; its folders are made
  std::string contents;
};
/// Errors: io with the path; internal for a path that leaves the directory.
inline void write_extra(const std::filesystem::path& directory, const std::vector<extra_file>& files) {
  for (const auto& file : files) {
    if (file.path.is_absolute() || file.path.empty() || *file.path.begin() == "..")
      throw error(error_code::internal, "a further file outside the directory", file.path.string());
    std::error_code code;
    std::filesystem::create_directories((directory / file.path).parent_path(), code);
    write_file(directory / file.path, file.contents);
  }
}

/// A directory under construction beside its final place.
///
/// `commit` renames it there; without it, or where it fails, nothing is left behind and what was there stays. Something that exists at
/// the final place is replaced only where it is an empty directory, or a directory for which `replaceable` (path → bool) holds.
/// Errors: io with the path.
class atomic_directory {
 public:
  template <class Replaceable>
  atomic_directory(std::filesystem::path target, const Replaceable& replaceable, const char* kind) : target_(std::move(target)) {
    namespace fs = std::filesystem;
    if (target_.filename().empty()) target_ = target_.parent_path();  // "out/" is "out"
    if (target_.filename().empty() || target_.filename() == "." || target_.filename() == "..")
      throw error(error_code::io, "not a name for a new directory", target_.string());
    std::error_code code;
    const auto status = fs::symlink_status(target_, code);
    if (fs::exists(status)) {
      if (!fs::is_directory(status) || (!fs::is_empty(target_, code) && !replaceable(target_)))
        throw error(error_code::io, std::string("exists and is no ") + kind + ", it is not overwritten", target_.string(),
                    "remove it or choose another directory");
      replaces_ = true;
    }
    const fs::path parent = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
    fs::create_directories(parent, code);
    for (int attempt = 0; work_.empty(); ++attempt) {
      if (attempt == 1000) throw error(error_code::io, "no directory can be made beside it", target_.string());
      const fs::path candidate = sibling("new", attempt);
      if (fs::create_directory(candidate, code)) work_ = candidate;
      else if (code && code != std::errc::file_exists)
        throw error(error_code::io, "the directory cannot be made: " + code.message(), target_.string());
    }
  }
  atomic_directory(const atomic_directory&) = delete;
  atomic_directory& operator=(const atomic_directory&) = delete;
  ~atomic_directory() {
    std::error_code ignored;
    if (!work_.empty()) std::filesystem::remove_all(work_, ignored);
  }

  /// Where to write the contents.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return work_; }

  void commit() {
    namespace fs = std::filesystem;
    std::error_code code;
    fs::path old;
    if (replaces_) {
      for (int attempt = 0; old.empty() && attempt < 1000; ++attempt)
        if (!fs::exists(fs::symlink_status(sibling("old", attempt), code))) old = sibling("old", attempt);
      fs::rename(target_, old, code);
      if (code) throw error(error_code::io, "the old directory cannot be replaced: " + code.message(), target_.string());
    }
    fs::rename(work_, target_, code);
    if (code) {
      std::error_code ignored;
      if (replaces_) fs::rename(old, target_, ignored);
      throw error(error_code::io, "the directory cannot be put in its place: " + code.message(), target_.string());
    }
    work_.clear();
    if (replaces_) fs::remove_all(old, code);
  }

 private:
  std::filesystem::path target_, work_;
  bool replaces_ = false;

  [[nodiscard]] std::filesystem::path sibling(const char* what, int attempt) const {
    return target_.parent_path() / ("." + target_.filename().string() + "." + what + std::to_string(attempt));
  }
};

}  // namespace raptor::emit
