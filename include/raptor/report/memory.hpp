#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "raptor/memory/plan.hpp"

/// reports/memory_report.txt.
namespace raptor::report {

/// What every core needs of its local memory and crossbars, global memory, and totals, as a table in text.
///
/// Bytes. `used`: addresses [0, used); `peak`: most alive at one time; `sum`: without reuse of addresses. Empty cores are counted,
/// not listed. Deterministic. Cost: linear in the cores.
[[nodiscard]] inline std::string memory_report(const memory::image& planned) {
  const auto& p = planned.bound;
  std::string text = "memory of " + (p.name.empty() ? std::string("the program") : p.name) + ", bytes\n\n";
  const auto column = [&text](const std::string& cell, std::size_t width) {
    text += std::string(cell.size() < width ? width - cell.size() : 1, ' ') + cell;
  };
  const auto row = [&](const std::string& name, const memory::core_usage& u) {
    text += name + std::string(name.size() < 10 ? 10 - name.size() : 1, ' ');
    column(std::to_string(u.bytes), 12);
    column(std::to_string(u.peak), 12);
    column(std::to_string(u.total), 12);
    column(std::to_string(u.buffers), 10);
    column(std::to_string(u.views), 8);
    column(std::to_string(u.crossbars), 11);
    text += '\n';
  };
  text += "core              used        peak         sum   buffers   views  crossbars\n";
  memory::core_usage sum, most;
  std::size_t empty = 0;
  for (std::size_t c = 0; c < planned.cores.size(); ++c) {
    const auto& u = planned.cores[c];
    if (u.buffers == 0 && u.views == 0 && u.crossbars == 0) {
      ++empty;
      continue;
    }
    row(std::to_string(c), u);
    sum.bytes += u.bytes, sum.peak += u.peak, sum.total += u.total, sum.buffers += u.buffers, sum.views += u.views, sum.crossbars += u.crossbars;
    most.bytes = std::max(most.bytes, u.bytes), most.peak = std::max(most.peak, u.peak), most.total = std::max(most.total, u.total);
    most.buffers = std::max(most.buffers, u.buffers), most.views = std::max(most.views, u.views), most.crossbars = std::max(most.crossbars, u.crossbars);
  }
  row("all", sum);
  row("largest", most);
  text += "\ncores without use: " + std::to_string(empty) + " of " + std::to_string(planned.cores.size()) + "\n";
  if (p.chip.local_memory_bytes < memory::address_space) text += "local memory of a core: " + std::to_string(p.chip.local_memory_bytes) + "\n";
  text += "crossbars of a core: " + std::to_string(p.chip.crossbars_per_core) + "\n";
  const std::int64_t width = memory::element_bytes(p.chip);
  const auto total = [&](const auto& ports) {
    std::int64_t bytes = 0;
    for (const auto& port : ports) bytes += p.buffers[port.buffer].elements * width;
    return bytes;
  };
  text += "global memory: " + std::to_string(planned.global_bytes) + ", of which constants " + std::to_string(planned.constant_bytes) + ", inputs " +
          std::to_string(total(p.inputs)) + ", outputs " + std::to_string(total(p.outputs)) + "\n";
  return text;
}

}  // namespace raptor::report
