// Speed of the timing model on a whole-network program, and against pimsim-nn in the same run.
//
//   bench_timing [--program=DIR --hardware=HW.json] [--instructions=N] [--runs=N] [--pimsim-nn=CHIPTEST]
//
// Without a program: a synthetic one with the instruction mix of a compiled convolutional network, a chain of cores each of which receives a
// patch for every position, gathers it, multiplies it by several array groups, adds the partial sums and sends the result on. CHIPTEST is
// the program that pimsim-nn's build makes. Times are user CPU seconds, so that other work on the machine matters little; Raptor's is
// the least of the runs.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "raptor/isa/binary.hpp"
#include "raptor/isa/build.hpp"
#include "raptor/sim/timing_hardware.hpp"
#include "raptor/sim/timing_input.hpp"
#include "raptor/sim/timing_model/chip.hpp"

namespace {

namespace fs = std::filesystem;
namespace build = raptor::isa::build;
namespace timing = raptor::sim::timing;

constexpr std::int32_t cores = 64, groups = 5, bytes = 512;

std::vector<raptor::isa::instruction> core_stream(std::int32_t c, std::int64_t positions) {
  std::vector<raptor::isa::instruction> s{build::setbw(32, 32), build::sldi(6, bytes), build::sldi(8, 0), build::sldi(9, 0)};
  const std::int32_t patch = bytes, sum = patch + groups * bytes, partial = sum + bytes;
  for (std::int64_t p = 0; p < positions; ++p) {
    s.push_back(build::sldi(1, 0));
    s.push_back(c == 0 ? build::ld(1, 8, bytes) : build::recv(1, c - 1, bytes));
    s.push_back(build::sldi(5, sum));
    for (std::int32_t g = 0; g < groups; ++g) {
      for (std::int32_t piece = 0; piece < 4; ++piece) {
        s.push_back(build::sldi(2, patch + g * bytes + piece * bytes / 4));
        s.push_back(build::lmv(2, 1, bytes / 4));
      }
      s.push_back(build::sldi(3, patch + g * bytes));
      s.push_back(build::sldi(4, g == 0 ? sum : partial));
      s.push_back(build::mvmul(4, 3, g));
      if (g != 0) s.push_back(build::vvadd(5, 5, 4, bytes / 4));
    }
    s.push_back(build::vrelu(5, 5, bytes / 4));
    s.push_back(c + 1 == cores ? build::st(8, 5, bytes) : build::send(5, c + 1, bytes));
  }
  return s;
}

/// A program of about so many instructions and its hardware.
void write_synthetic(const fs::path& folder, std::int64_t instructions) {
  const auto positions = std::max<std::int64_t>(1, instructions / cores / static_cast<std::int64_t>(core_stream(1, 1).size() - 4));
  nlohmann::json map, latency;
  for (std::int32_t c = 0; c < cores; ++c) {
    const auto stream = core_stream(c, positions);
    std::vector<std::byte> records;
    raptor::isa::append_records(records, stream);
    const auto header = raptor::isa::header(static_cast<std::uint32_t>(stream.size()));
    std::ofstream out(folder / ("core_" + std::to_string(c) + ".pim"), std::ios::binary);
    out.write(reinterpret_cast<const char*>(header.data()), static_cast<std::streamsize>(header.size()));
    out.write(reinterpret_cast<const char*>(records.data()), static_cast<std::streamsize>(records.size()));
    map["core" + std::to_string(c)] = std::vector<int>(groups, 1);
    for (std::int32_t d = 0; d < cores; ++d) latency[std::to_string(c)][std::to_string(d)] = 1 + std::abs(c % 8 - d % 8) + std::abs(c / 8 - d / 8);
    latency[std::to_string(c)]["-10"] = 2 + c % 8;
  }
  std::ofstream(folder / "config.json") << nlohmann::json{{"core_cnt", cores}, {"array_group_map", map}};
  std::ofstream(folder / "network.json") << nlohmann::json{{"latency", latency}, {"energy", latency}};
  const nlohmann::json memory{{"data_width", 64}, {"read_latency_cycle", 4}, {"write_latency_cycle", 6}};
  const nlohmann::json matrix{{"xbar_array_count", groups}, {"period", 1}, {"xbar_latency", 7}, {"adc_count", 16}};
  const nlohmann::json core{{"rob_size", 4}, {"vector_width", 32}, {"vector_latency_cycle", 4}, {"local_memory_config", memory}, {"matrix_config", matrix}};
  std::ofstream(folder / "hardware.json") << nlohmann::json{
      {"chip_config", {{"core_cnt", cores}, {"core_config", core}, {"global_memory_config", memory}, {"network_config", {{"layout", {8, 8}}, {"bus_width", 32}, {"net_config_file_path", "network.json"}}}}},
      {"sim_config", {{"sim_mode", 1}}}};
}

double user_seconds(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

/// User seconds of pimsim-nn on the program, and the latency that it printed. −1: it failed.
double run_other(const std::string& binary, const fs::path& program, const fs::path& hardware, std::string& latency) {
  const auto out = fs::temp_directory_path() / ("bench_timing_" + std::to_string(::getpid()) + ".txt");
  const double before = user_seconds(RUSAGE_CHILDREN);
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen(out.c_str(), "w", stdout) == nullptr) ::_exit(127);
    ::execl(binary.c_str(), binary.c_str(), program.c_str(), hardware.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::ifstream in(out);
  for (std::string line; std::getline(in, line);)
    if (const auto at = line.find("latency:"); at != std::string::npos) latency = line.substr(line.find_first_not_of(' ', at + 8));
  in.close();
  fs::remove(out);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? user_seconds(RUSAGE_CHILDREN) - before : -1;
}

}  // namespace

int main(int argc, char** argv) try {
  fs::path program, hardware_file;
  std::string other;
  std::int64_t instructions = 3'200'000, runs = 5;
  for (int k = 1; k < argc; ++k) {
    const std::string a = argv[k];
    const auto value = [&](const char* name, std::string& to) {
      if (!a.starts_with(std::string(name) + "=")) return false;
      to = a.substr(std::string(name).size() + 1);
      return true;
    };
    std::string text;
    if (value("--program", text)) program = text;
    else if (value("--hardware", text)) hardware_file = text;
    else if (value("--pimsim-nn", text)) other = text;
    else if (value("--instructions", text)) instructions = std::stoll(text);
    else if (value("--runs", text)) runs = std::stoll(text);
    else return std::cerr << "usage: bench_timing [--program=DIR --hardware=HW.json] [--instructions=N] [--runs=N] [--pimsim-nn=CHIPTEST]\n", 2;
  }
  if (program.empty() != hardware_file.empty()) return std::cerr << "--program and --hardware go together\n", 2;
  const fs::path folder = fs::temp_directory_path() / ("bench_timing_" + std::to_string(::getpid()));
  if (program.empty()) {
    fs::create_directories(folder);
    write_synthetic(folder, instructions);
    program = folder, hardware_file = folder / "hardware.json";
  }
  double load = 1e30, run = 1e30;
  timing::timing_result result;
  for (std::int64_t k = 0; k < runs; ++k) {
    const double start = user_seconds(RUSAGE_SELF);
    auto hardware = timing::read_hardware(hardware_file);
    const auto loaded = timing::load_timed(program, hardware);
    timing::read_network(hardware, hardware_file.parent_path());
    const double ready = user_seconds(RUSAGE_SELF);
    result = timing::chip(loaded, hardware).run();
    run = std::min(run, user_seconds(RUSAGE_SELF) - ready);
    load = std::min(load, ready - start);
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto count = static_cast<double>(result.instructions);
  std::printf("instructions        %lld, %.0f simulated cycles\n", static_cast<long long>(result.instructions), result.elapsed_ns);
  std::printf("raptor              %.3f s load, %.3f s run, %.0f MB: %.3g instructions/s\n", load, run, static_cast<double>(usage.ru_maxrss) / 1024, count / (load + run));
  std::printf("latency             %.10g ms\n", result.latency_ms);
  int status = 0;
  if (!other.empty()) {
    std::string latency;
    const double seconds = run_other(other, program, hardware_file, latency);
    if (seconds < 0) {
      std::fprintf(stderr, "%s failed\n", other.c_str());
      status = 1;
    } else {
      std::printf("pimsim-nn           %.3f s: %.3g instructions/s, latency %s\nratio               %.1f\n", seconds, count / seconds, latency.c_str(), seconds / (load + run));
    }
  }
  if (fs::exists(folder)) fs::remove_all(folder);
  return status;
} catch (const std::exception& e) {
  std::cerr << "bench_timing: " << e.what() << "\n";
  return 1;
}
