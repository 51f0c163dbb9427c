// Every case of ../shared/oracle: what pimsim-nn says, to the last printed digit.
#include "raptor/sim/timing_model/chip.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "raptor/sim/timing_hardware.hpp"
#include "raptor/sim/timing_input.hpp"

using namespace raptor;
namespace fs = std::filesystem;

namespace {

bool close(double a, double b, double relative) { return a == b || std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b)); }

/// A number as text, whether the file has it as a number or as a string.
std::string text_of(const nlohmann::json& j) { return j.is_string() ? j.get<std::string>() : j.dump(); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

/// The same reason in the same words: paths as seen from the case's folder; messages of the JSON library up to their place in
/// the text; what killed pimsim-nn is refused in words of our own.
void check_text(const std::string& expected, const std::string& given, const std::string& folder) {
  if (expected.starts_with("CRASH")) return;
  std::string text = replaced(replaced(given, folder + "/./", "./"), folder + "/", "");
  text = replaced(text, folder, ".");
  std::string wanted = expected;
  if (wanted.find("uncaught exception: ") != std::string::npos) wanted = wanted.substr(0, wanted.find('\n'));  // then comes a place in its source
  if (const auto json = wanted.find("[json.exception"); json != std::string::npos) wanted = wanted.substr(0, json + 15);
  CHECK_MESSAGE(text.starts_with(wanted), "expected: " << wanted << "\ngiven:    " << text);
}

}  // namespace

TEST_CASE("the oracle's cases, time and energy to the last printed digit") {
  const fs::path cases = fs::path(RAPTOR_SOURCE_DIR) / ".." / "shared" / "oracle" / "cases";
  if (!fs::is_directory(cases)) {
    std::cout << "SKIPPED: the folder shared/oracle is absent\n";
    return;
  }
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(cases)) all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  std::size_t valid = 0, refused = 0, rounds_compared = 0, finishes_compared = 0;
  for (const auto& folder : all) {
    const auto name = folder.filename().string();
    CAPTURE(name);
    const auto expected = nlohmann::json::parse(std::ifstream(folder / "expected.json"));
    const auto program_name = expected["args"][0].get<std::string>();
    const bool wrong = !expected["error"].is_null();
    try {
      auto hardware = sim::timing::read_hardware(folder / expected["args"][1].get<std::string>());
      auto mode = sim::timing::input_mode::automatic;
      if (expected["args"].size() > 2) {
        const auto option = expected["args"][2].get<std::string>();
        if (option == "--instruction-mode=foo") continue;  // the tool refuses it
        mode = option == "--instruction-mode=single" ? sim::timing::input_mode::single : sim::timing::input_mode::directory;
      }
      const auto program = sim::timing::load_timed(folder / program_name, hardware, mode);
      sim::timing::read_network(hardware, folder);
      const auto r = sim::timing::chip(program, hardware).run();
      if (wrong) {
        FAIL_CHECK("should be refused: " << expected["error"].get<std::string>());
        continue;
      }
      ++valid;
      CHECK(close(r.latency_ms, expected["latency_ms"].get<double>(), 6e-10));
      CHECK(close(r.power_mw, expected["power_mw"].get<double>(), 6e-10));
      CHECK(close(r.energy_pj, expected["energy_pj"].get<double>(), r.latency_mode ? 1e-12 : 6e-10));
      if (!r.latency_mode && expected.contains("samples_exact") && !expected["samples_exact"].is_null()) CHECK(r.samples == expected["samples_exact"].get<std::int64_t>());
      // Rounds by core id, finish times in the order of the cores, printed with five digits.
      if (expected.contains("core_rounds") && expected["core_rounds"].is_object())
        for (const auto& [id, rounds] : expected["core_rounds"].items())
          for (const auto& c : r.cores)
            if (std::to_string(c.core) == id) {
              CHECK(c.rounds == std::stoll(text_of(rounds)));
              ++rounds_compared;
            }
      if (expected.contains("core_finish_ms") && expected["core_finish_ms"].is_array() && expected["core_finish_ms"].size() == r.cores.size())
        for (std::size_t i = 0; i < r.cores.size(); ++i) {
          CHECK(close(r.cores[i].finish_ms, std::stod(text_of(expected["core_finish_ms"][i])), 6e-5));
          ++finishes_compared;
        }
    } catch (const error& e) {
      CHECK_MESSAGE(wrong, "refused: " << e.what());
      ++refused;
      if (wrong) check_text(expected["error"].get<std::string>(), e.what(), folder.string());
    }
  }
  CHECK(valid == 359);
  CHECK(refused > 35);
  CHECK(rounds_compared > 0);
  CHECK(finishes_compared > 0);
  MESSAGE(valid << " cases, " << rounds_compared << " rounds and " << finishes_compared << " finish times");
}
