#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "../dice.hpp"
#include "../temporary_folder.hpp"
#include "raptor/isa/build.hpp"
#include "raptor/sim/timing_model/chip.hpp"

namespace timing_test {

using raptor_test::dice;
using raptor_test::temporary_folder;

namespace timing = raptor::sim::timing;
using stream = std::vector<raptor::isa::instruction>;

/// A program from records; every core has `groups` array groups of one crossbar.
inline timing::timed_program program(const std::vector<stream>& streams, std::size_t groups = 0) {
  timing::timed_program p;
  for (std::size_t c = 0; c < streams.size(); ++c)
    p.cores.push_back({static_cast<std::int64_t>(c), timing::from_records(streams[c]), std::vector<std::int32_t>(groups, 1)});
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

}  // namespace timing_test
