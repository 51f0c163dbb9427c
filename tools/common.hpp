#pragma once

#include <algorithm>
#include <boost/any.hpp>
#include <boost/program_options.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "raptor/support/error.hpp"

#ifndef RAPTOR_VERSION
#error "RAPTOR_VERSION must be defined as the version string"
#endif

/// What all command-line tools share: options that every tool has, exit statuses, output files. Source: CLI.md, "Common".
namespace raptor::tools {

namespace po = boost::program_options;

/// Exit statuses of every tool.
inline constexpr int exit_success = 0;
inline constexpr int exit_failure = 1;  ///< the work failed or was refused
inline constexpr int exit_usage = 2;

/// A mistake in the command line: printed as one line, exit status 2.
[[nodiscard]] inline error usage_error(std::string message) { return error(error_code::usage, std::move(message)); }

/// The command line of one tool. Add groups of options (with the headings of CLI.md) and positional arguments, then parse.
class command_line {
 public:
  /// `synopsis`: what follows the tool's name, for example "MODEL.onnx -o OUTDIR". `purpose`: one sentence.
  command_line(std::string tool, std::string synopsis, std::string purpose)
      : tool_(std::move(tool)), synopsis_(std::move(synopsis)), purpose_(std::move(purpose)) {}

  /// Adds a group that --help shows.
  void add(const po::options_description& group) { visible_.add(group); }
  /// Adds a positional argument; `count` -1: any number. `value` as in po::value<…>().
  void add_positional(const char* name, const po::value_semantic* value, int count = 1) {
    hidden_.add_options()(name, value, "");
    positional_.add(name, count);
  }

  /// Parses. False where --help or --version has been answered: exit with success.
  /// Errors: usage, one line; an empty text as a value is one too. No abbreviations of options, so that adding one never changes what a script means.
  [[nodiscard]] bool parse(int argc, const char* const* argv) {
    po::options_description common("Common");
    common.add_options()("help,h", "print this text")("version", "print the version")("seed", po::value<std::int64_t>()->default_value(0),
                                                                                        "seed of everything that is random")(
        "verbose,v", "more progress on standard error; -vv: still more");
    visible_.add(common);
    std::vector<std::string> arguments;
    bool only_positional = false;
    for (int k = 1; k < argc; ++k) {
      const std::string_view argument = argv[k];
      if (argument == "--") only_positional = true;
      if (!only_positional && (argument == "-v" || argument == "--verbose")) ++verbosity_;
      else if (!only_positional && argument == "-vv") verbosity_ += 2;
      else arguments.emplace_back(argument);
    }
    po::options_description all;
    all.add(visible_).add(hidden_);
    try {
      const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
      po::store(po::command_line_parser(arguments).options(all).positional(positional_).style(style).run(), values_);
      if (values_.count("help") != 0) {
        std::cout << "usage: " << tool_ << " " << synopsis_ << "\n" << purpose_ << "\n\n" << visible_;
        return false;
      }
      if (values_.count("version") != 0) {
        std::cout << tool_ << " " << RAPTOR_VERSION << "\n";
        return false;
      }
      for (const auto& [name, option] : values_) {
        const auto* one = boost::any_cast<std::string>(&option.value());
        const auto* many = boost::any_cast<std::vector<std::string>>(&option.value());
        const bool empty = (one != nullptr && one->empty()) || (many != nullptr && std::find(many->begin(), many->end(), std::string()) != many->end());
        const bool argument = hidden_.find_nothrow(name, false) != nullptr;
        if (empty && all.find(name, false).semantic()->max_tokens() > 0)  // a flag has no text
          throw usage_error((argument ? "the argument " : "--") + name + " must not be empty");
      }
      po::notify(values_);
    } catch (const po::error& e) {
      throw usage_error(e.what());
    }
    return true;
  }

  [[nodiscard]] const std::string& tool() const noexcept { return tool_; }
  [[nodiscard]] const po::variables_map& values() const noexcept { return values_; }
  /// Given on the command line, or having a default.
  [[nodiscard]] bool has(const char* name) const { return values_.count(name) != 0; }
  /// Given on the command line.
  [[nodiscard]] bool given(const char* name) const { return has(name) && !values_[name].defaulted(); }
  template <class T>
  [[nodiscard]] const T& get(const char* name) const {
    return values_[name].as<T>();
  }
  [[nodiscard]] int verbosity() const noexcept { return verbosity_; }

 private:
  std::string tool_, synopsis_, purpose_;
  po::options_description visible_, hidden_;
  po::positional_options_description positional_;
  po::variables_map values_;
  int verbosity_ = 0;
};

/// Runs the body of a tool and turns exceptions into exit statuses: usage errors into one line and status 2, other errors into
/// the block of raptor::describe and status 1. Standard output that could not be written is a failure.
template <class Body>
[[nodiscard]] int run_tool(const char* tool, Body body) noexcept {
  try {
    const int status = body();
    std::cout.flush();
    if (std::cout) return status;
    std::cerr << tool << ": error: standard output cannot be written\n";
  } catch (const error& e) {
    if (e.code() == error_code::usage) {
      std::cerr << tool << ": " << printable(e.what()) << " (try --help)\n";
      return exit_usage;
    }
    std::cerr << tool << ": " << describe(e) << "\n";
  } catch (const std::bad_alloc&) {
    std::cerr << tool << ": error: out of memory\n";
  } catch (const std::exception& e) {
    std::cerr << tool << ": error: " << printable(e.what()) << "\n";
  }
  return exit_failure;
}

/// Writes a file so that it appears complete or not at all: beside it, then renamed. Something there that is not a regular
/// file (a device, a pipe) is written to as it is. Errors: io, with the path.
inline void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const auto write = [&](const std::filesystem::path& target) {
    std::ofstream stream(target, std::ios::binary | std::ios::trunc);
    if (!bytes.empty()) stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    stream.close();
    return static_cast<bool>(stream);
  };
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (std::filesystem::is_directory(status)) throw error(error_code::io, "a directory stands where the file should be written", path.string());
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    if (!write(path)) throw error(error_code::io, "the file cannot be written", path.string());
    return;
  }
  std::filesystem::path temporary = path;
  temporary += ".tmp" + std::to_string(::getpid());
  if (!write(temporary)) {
    std::filesystem::remove(temporary, code);
    throw error(error_code::io, "the file cannot be written", path.string(), "does its folder exist, and is there room?");
  }
  std::filesystem::rename(temporary, path, code);
  if (code) {
    const std::string reason = code.message();
    std::filesystem::remove(temporary, code);
    throw error(error_code::io, "the file cannot be put in place: " + reason, path.string());
  }
}
inline void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

/// Progress lines are for people: standard error, and only where it is a terminal or -v asks for it.
[[nodiscard]] inline bool shows_progress(const command_line& line) { return line.verbosity() > 0 || ::isatty(STDERR_FILENO) == 1; }

}  // namespace raptor::tools
