#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "../temporary_folder.hpp"

/// Runs the built tools as a user does.
namespace tools_test {

namespace fs = std::filesystem;

[[nodiscard]] inline std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

/// Every file and link below a directory: relative path → contents, or where the link points.
[[nodiscard]] inline std::map<std::string, std::string> snapshot(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const auto name = fs::relative(entry.path(), directory).string();
    if (entry.is_symlink()) files[name] = "-> " + fs::read_symlink(entry.path()).string();
    else if (entry.is_regular_file()) files[name] = contents(entry.path());
    else if (entry.is_directory() && fs::is_empty(entry.path())) files[name] = "(empty directory)";
  }
  return files;
}

/// As raptor_test::temporary_folder, with names as command lines take them.
class temporary_folder : public raptor_test::temporary_folder {
 public:
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path() / name).string(); }
  /// Names of what lies directly in it.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(path())) result.push_back(entry.path().filename().string());
    std::sort(result.begin(), result.end());
    return result;
  }
};

struct outcome {
  int status = -1;  ///< exit status; -1: it ended by a signal
  std::string out, err;
};

[[nodiscard]] inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

/// Runs a tool with its arguments; standard error is no terminal.
[[nodiscard]] inline outcome run(const std::string& tool, const std::vector<std::string>& arguments) {
  const auto quoted = [](const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
  };
  const temporary_folder folder;
  std::string command = quoted(std::string(RAPTOR_TOOL_DIR "/") + tool);
  for (const auto& argument : arguments) command += " " + quoted(argument);
  command += " >" + quoted(folder / "out") + " 2>" + quoted(folder / "err") + " </dev/null";
  const int raw = std::system(command.c_str());
  return {WIFEXITED(raw) ? WEXITSTATUS(raw) : -1, contents(folder / "out"), contents(folder / "err")};
}

/// The same with further arguments.
[[nodiscard]] inline std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

[[nodiscard]] inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A network of the zoo in a file. `extra`: further options of raptor-zoo.
inline std::string zoo(const temporary_folder& folder, const std::string& name, const std::vector<std::string>& extra = {}) {
  const auto file = folder / (name + ".onnx");
  const auto result = run("raptor-zoo", std::vector<std::string>{name, "-o", file} + extra);
  REQUIRE(result.status == 0);
  return file;
}

/// Target flags of a small chip.
inline const std::vector<std::string> small_chip{"--core-count=6", "--crossbar-count=16", "--crossbar-size=64"};

}  // namespace tools_test
