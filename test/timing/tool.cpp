// raptor-sim --timing as a user runs it.
#include "raptor/sim/timing_hardware.hpp"
#include "raptor/sim/timing_input.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <sys/wait.h>
#include <utility>

using namespace raptor;
namespace fs = std::filesystem;

namespace {

std::pair<int, std::string> run(const std::string& arguments) {
  const std::string command = std::string(RAPTOR_BINARY_DIR) + "/bin/raptor-sim " + arguments + " 2>/dev/null";
  std::string out;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> block{};
  for (std::size_t n = 0; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;) out.append(block.data(), n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

}  // namespace

TEST_CASE("raptor-sim --timing --json prints one object") {
  const fs::path cases = fs::path(RAPTOR_SOURCE_DIR) / ".." / "shared" / "oracle" / "cases";
  if (!fs::is_directory(cases) || !fs::exists(std::string(RAPTOR_BINARY_DIR) + "/bin/raptor-sim")) {
    std::cout << "SKIPPED: the folder shared/oracle or raptor-sim is absent\n";
    return;
  }
  const auto folder = cases / "case_000";
  const auto [status, text] = run(folder.string() + " --timing --hardware=" + (folder / "hw.json").string() + " --json");
  CHECK(status == 0);
  const auto result = nlohmann::json::parse(text);
  CHECK(result["status"] == "ok");
  CHECK(result["error"].is_null());
  CHECK(result["mode"] == 1);
  CHECK(result["latency_ms"].get<double>() == doctest::Approx(3.6e-05).epsilon(1e-9));
  CHECK(result["energy_pj"] == 629.6050000000001);
  CHECK(result["cores"].size() == 1);
  CHECK(result["cores"][0]["finish_ms"].get<double>() == doctest::Approx(3.6e-05).epsilon(1e-9));

  const auto [throughput, rate] = run(folder.string() + " --timing --hardware=" + (folder / "hw.json").string() + " --json --mode=throughput --sim-time=0.01");
  CHECK(throughput == 0);
  CHECK(nlohmann::json::parse(rate)["mode"] == 0);

  const auto [failed, reason] = run("absent --timing --hardware=" + (folder / "hw.json").string() + " --json");
  CHECK(failed == 1);
  CHECK(nlohmann::json::parse(reason)["status"] == "error");
}
