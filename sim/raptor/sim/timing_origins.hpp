#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "raptor/sim/timing_model/program.hpp"
#include "raptor/support/error.hpp"

namespace raptor::sim::timing {

/// Takes the events of reports/instructions.json: {"operators": [name, …], "cores": {"coreN": [[first instruction, operator or −1], …]}}.
/// Other keys and other cores are skipped. Nothing is kept of what no instruction belongs to, so that the map takes no more than the program.
class origin_events : public nlohmann::json_sax<nlohmann::json> {
 public:
  static constexpr std::uint32_t no_operator = std::numeric_limits<std::uint32_t>::max();
  using run = std::pair<std::uint32_t, std::uint32_t>;  ///< first instruction, operator

  explicit origin_events(const timed_program& program) : runs(program.cores.size()), program_(program) {
    for (std::size_t c = 0; c < program.cores.size(); ++c) {
      cores_.emplace("core" + std::to_string(program.cores[c].id), c);
      most_names_ += program.cores[c].stream.size();
    }
  }

  std::vector<std::string> names;
  std::vector<std::vector<run>> runs;  ///< by core

  /// To be called at the end. Errors: malformed, where a part is missing or an operator has no name.
  void check_complete() const {
    if (!has_names_ || !has_cores_) fail(has_names_ ? "no object \"cores\"" : "no list \"operators\"");
    if (largest_ >= static_cast<std::int64_t>(names.size())) fail("an operator " + std::to_string(largest_) + " of " + std::to_string(names.size()));
  }

  bool null() override { return leaf(); }
  bool boolean(bool) override { return leaf(); }
  bool number_integer(number_integer_t v) override { return number(v); }
  bool number_unsigned(number_unsigned_t v) override { return number(v > most ? most : static_cast<std::int64_t>(v)); }
  bool number_float(number_float_t, const string_t&) override { return leaf(); }
  bool binary(binary_t&) override { return leaf(); }
  bool string(string_t& text) override {
    if (part_ != part::names || depth_ != 2) return leaf();
    if (names.size() == most_names_) fail("more operators than instructions");
    names.push_back(text);
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) part_ = name == "operators" ? part::names : name == "cores" ? part::cores : part::other;
    if (depth_ == 2 && part_ == part::cores) {
      const auto found = cores_.find(name);
      core_ = found == cores_.end() ? none : found->second;
    }
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ == 1 && part_ == part::cores) has_cores_ = true;
    else if (depth_ != 0) static_cast<void>(leaf());
    ++depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 1 && part_ == part::names) {
      has_names_ = true, names.clear();
    } else if (depth_ == 2 && part_ == part::cores) {
      last_ = -1;
      if (core_ != none) runs[core_].clear();
    } else if (depth_ == 3 && part_ == part::cores) {
      given_ = 0;
    } else {
      static_cast<void>(leaf());
    }
    ++depth_;
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  [[noreturn]] bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& why) override { fail(why.what()); }

 private:
  enum class part : std::uint8_t { other, names, cores };
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

  [[noreturn]] static void fail(const std::string& why) { throw error(error_code::malformed, why); }
  /// A value where the map has none; inside of a part that is skipped it may be anything.
  bool leaf() {
    if (depth_ == 0 || part_ != part::other) fail("a value at the wrong place");
    return true;
  }
  bool number(std::int64_t value) {
    if (part_ != part::cores || depth_ != 4) return leaf();
    if (given_ == 2) fail("more than two numbers for one run");
    pair_[given_++] = value;
    return true;
  }
  bool close() {
    --depth_;
    if (depth_ == 1) part_ = part::other;
    if (depth_ != 3 || part_ != part::cores) return true;
    const auto [first, name] = pair_;
    if (given_ != 2 || first <= last_ || name < -1) fail("a run that is none");
    last_ = first;
    largest_ = std::max(largest_, name);
    if (core_ != none && first < static_cast<std::int64_t>(program_.cores[core_].stream.size()))
      runs[core_].emplace_back(static_cast<std::uint32_t>(first), name < 0 || name >= no_operator ? no_operator : static_cast<std::uint32_t>(name));
    return true;
  }

  const timed_program& program_;
  std::map<std::string, std::size_t, std::less<>> cores_;
  std::size_t most_names_ = std::size_t{1} << 16;
  std::size_t depth_ = 0, core_ = none, given_ = 0;
  part part_ = part::other;
  std::array<std::int64_t, 2> pair_{};
  std::int64_t last_ = -1, largest_ = -1;
  bool has_names_ = false, has_cores_ = false;
};

/// Which operator each instruction of a program belongs to. Programs without a map (other compilers') are told apart by mnemonic.
class instruction_origins {
 public:
  /// One name for each mnemonic.
  explicit instruction_origins(const timed_program& program) : program_(program), by_mnemonic_(true) {
    for (const auto& i : isa::infos) names_.emplace_back(i.mnemonic);
  }
  /// The map that raptor-compile wrote beside the program (reports/instructions.json). The last name stands for instructions of no
  /// operator. Errors: malformed with the file. Memory: at most that of the program's instructions. O(text).
  instruction_origins(const timed_program& program, const std::filesystem::path& file) : program_(program) {
    origin_events events(program);
    try {
      std::ifstream in(file, std::ios::binary);
      nlohmann::json::sax_parse(in, &events);
      events.check_complete();
    } catch (const error& e) {
      throw error(e.code(), std::string("not a map of instructions: ") + e.what(), file.string(), "compile the network again");
    }
    names_ = std::move(events.names), runs_ = std::move(events.runs);
    names_.emplace_back("(no operator)");
  }
  /// The map beside a program, where there is one.
  [[nodiscard]] static instruction_origins of(const timed_program& program, const std::filesystem::path& path) {
    std::error_code code;
    const auto file = path / "reports" / "instructions.json";
    return std::filesystem::is_regular_file(file, code) ? instruction_origins(program, file) : instruction_origins(program);
  }

  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  /// Index of the name. `core`: index in the program. O(log runs).
  [[nodiscard]] std::size_t find(std::size_t core, std::int64_t pc) const {
    const auto& stream = program_.cores[core].stream;
    if (by_mnemonic_) return pc >= 0 && pc < static_cast<std::int64_t>(stream.size()) ? static_cast<std::size_t>(stream.data()[pc].op) : 0;
    const auto& runs = runs_[core];
    const auto after = std::upper_bound(runs.begin(), runs.end(), pc, [](std::int64_t at, const auto& run) { return at < run.first; });
    return after == runs.begin() || std::prev(after)->second == origin_events::no_operator ? names_.size() - 1 : std::prev(after)->second;
  }

 private:
  const timed_program& program_;
  bool by_mnemonic_ = false;
  std::vector<std::string> names_;
  std::vector<std::vector<origin_events::run>> runs_;  ///< by core
};

}  // namespace raptor::sim::timing
