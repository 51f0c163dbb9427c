#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "raptor/sim/timing_model/program.hpp"
#include "raptor/support/error.hpp"

namespace raptor::sim::timing {

/// Which operator each instruction of a program belongs to. Programs without a map (other compilers') are told apart by mnemonic.
class instruction_origins {
 public:
  /// One name for each mnemonic.
  explicit instruction_origins(const timed_program& program) : program_(program), by_mnemonic_(true) {
    for (const auto& i : isa::infos) names_.emplace_back(i.mnemonic);
  }
  /// The map that raptor-compile wrote beside the program (reports/instructions.json). The last name stands for instructions of no
  /// operator. Errors: malformed with the file.
  instruction_origins(const timed_program& program, const std::filesystem::path& file) : program_(program), runs_(program.cores.size()) {
    try {
      std::ifstream in(file, std::ios::binary);
      const auto document = nlohmann::json::parse(in);
      names_ = document.at("operators").get<std::vector<std::string>>();
      const auto count = static_cast<std::int64_t>(names_.size());
      for (std::size_t c = 0; c < runs_.size(); ++c) {
        const auto& cores = document.at("cores");
        const auto list = cores.find("core" + std::to_string(program.cores[c].id));
        if (list == cores.end()) continue;
        std::int64_t last = -1;
        for (const auto& pair : *list) {
          const auto first = pair.at(0).get<std::int64_t>(), name = pair.at(1).get<std::int64_t>();
          if (first <= last || name < -1 || name >= count) throw error(error_code::malformed, "not a map of instructions", file.string());
          runs_[c].emplace_back(last = first, static_cast<std::size_t>(name < 0 ? count : name));
        }
      }
    } catch (const nlohmann::json::exception& e) {
      throw error(error_code::malformed, std::string("not a map of instructions: ") + e.what(), file.string(), "compile the network again");
    }
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
    return after == runs.begin() ? names_.size() - 1 : std::prev(after)->second;
  }

 private:
  const timed_program& program_;
  bool by_mnemonic_ = false;
  std::vector<std::string> names_;
  std::vector<std::vector<std::pair<std::int64_t, std::size_t>>> runs_;  ///< by core: first instruction, name
};

}  // namespace raptor::sim::timing
