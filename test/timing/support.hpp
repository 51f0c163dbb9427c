#pragma once

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "raptor/isa/build.hpp"
#include "raptor/sim/timing_model/chip.hpp"

namespace timing_test {

namespace timing = raptor::sim::timing;
using stream = std::vector<raptor::isa::instruction>;

/// A program from records; every core has `groups` array groups of one crossbar.
inline timing::timed_program program(const std::vector<stream>& streams, std::size_t groups = 0) {
  timing::timed_program p;
  for (std::size_t c = 0; c < streams.size(); ++c) {
    std::vector<timing::timed_instruction> list;
    for (const auto& i : streams[c]) list.push_back(timing::from_record(i));
    timing::timed_core core{static_cast<std::int64_t>(c), timing::timed_stream(list), std::vector<std::int64_t>(groups, 1)};
    p.cores.push_back(std::move(core));
  }
  return p;
}

/// A chip in latency mode whose cores are `ns` per flit apart, the global memory too.
inline raptor::target::configuration hardware(std::size_t cores, double ns = 3) {
  raptor::target::configuration c;
  c.sim_config.sim_mode = 1;
  c.sim_config.latency_timeout_ms = 1;
  c.chip_config.core_cnt = static_cast<std::int64_t>(cores);
  c.chip_config.network_config.layout = {1, static_cast<std::int64_t>(cores)};
  for (std::size_t a = 0; a < cores; ++a) {
    auto& row = c.chip_config.network_config.table.latency[static_cast<std::int64_t>(a)];
    for (std::size_t b = 0; b < cores; ++b) row[static_cast<std::int64_t>(b)] = ns;
    row[-10] = ns;
  }
  return c;
}

/// A folder of its own that is removed at the end.
class temporary_folder {
 public:
  temporary_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "raptor_timing_XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// Draws that are the same everywhere.
class dice {
 public:
  explicit dice(std::uint32_t seed) : state_(seed * 2654435761u + 12345u) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    state_ = state_ * 1664525u + 1013904223u;
    return low + static_cast<std::int64_t>((state_ >> 9) % static_cast<std::uint32_t>(high - low + 1));
  }

 private:
  std::uint32_t state_;
};

}  // namespace timing_test
