#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "raptor/sim/timing_model/observer.hpp"
#include "raptor/sim/timing_model/result.hpp"
#include "raptor/sim/timing_origins.hpp"
#include "raptor/sim/timing_trace.hpp"

/// What a run spent on each operator and on each class of instructions, and the trace.
namespace raptor::sim::timing {

/// What one operator took.
struct operator_cost {
  std::int64_t instructions = 0;             ///< of units, executed
  instant busy = 0;                          ///< sum of the times that units had its instructions, waiting included
  instant first = never, last = 0;           ///< from the start of the first instruction to the end of the last
  double energy = 0;                         ///< dynamic, pJ
  std::int64_t local = 0, network = 0, global = 0;  ///< bytes moved
};

/// An observer that adds up; and writes a trace where there is a writer for one.
class recorder {
 public:
  static constexpr bool enabled = true;
  static constexpr std::size_t class_count = 6;
  static constexpr const char* class_names[class_count] = {"none", "scalar", "setbw", "matrix", "vector", "transfer"};

  recorder(const timed_program& program, const instruction_origins& origins, trace_writer* trace)
      : program_(program), origins_(origins), trace_(trace), operators_(origins.names().size()), recent_(program.cores.size()) {}

  void spend(std::size_t core, std::int64_t pc, component part, double energy, std::int64_t bytes = 0) {
    const auto& stream = program_.cores[core].stream;
    const auto what = pc >= 0 && pc < static_cast<std::int64_t>(stream.size()) ? stream.data()[pc].what() : kind::none;
    classes_[static_cast<std::size_t>(what)][static_cast<std::size_t>(part)] += energy;
    auto& o = at(core, pc);
    o.energy += energy;
    if (part == component::local_memory) o.local += bytes;
    if (part == component::network) o.network += bytes;
    if (part == component::global_memory) o.global += bytes;
  }
  void executed(std::size_t core, std::int32_t unit, std::int64_t pc, const timed_instruction& what, instant start, instant end) {
    auto& o = at(core, pc);
    ++o.instructions;
    o.busy += end - start;
    o.first = std::min(o.first, start);
    o.last = std::max(o.last, end);
    if (trace_ != nullptr) trace_->slice(core, unit, pc, isa::mnemonic(what.op), start, end);
  }
  void transmitted(std::size_t core, std::int64_t pc, const char* what, instant start, instant end) {
    if (trace_ != nullptr) trace_->slice(core, switch_unit, pc, what, start, end);
  }
  void delivered(std::size_t from, std::int64_t, instant sent, std::size_t to, std::int64_t, instant arrived) {
    if (trace_ != nullptr) trace_->arrow(from, sent, to, arrived);
  }
  void signalled(std::size_t, std::int64_t, std::size_t, std::int32_t, instant) noexcept {}
  void waited(std::size_t, std::int64_t, std::int32_t, std::int64_t, instant) noexcept {}

  /// By kind of instruction and component, pJ.
  [[nodiscard]] const std::array<std::array<double, component_count>, class_count>& classes() const noexcept { return classes_; }
  /// In the order of the origins' names.
  [[nodiscard]] const std::vector<operator_cost>& operators() const noexcept { return operators_; }

  /// The profile as CSV: one row for each operator that did anything, in the order of the map, then the static energy. `share` is the
  /// part of all cycles, `energy_share` of all energy. Times in cycles of the core's clock.
  [[nodiscard]] std::string csv(const timing_result& result, instant period) const {
    std::string text = "operator,instructions,cycles,share,first_cycle,last_cycle,energy_pj,energy_share,local_bytes,network_bytes,global_bytes\n";
    double busy = 0;
    for (const auto& o : operators_) busy += static_cast<double>(o.busy);
    const double idle = result.static_power_mw * result.elapsed_ns;
    double energy = idle;
    for (const auto& o : operators_) energy += o.energy;
    const auto part = [](double of, double all) { return number(all > 0 ? of / all : 0); };
    const auto cycles = [&](instant t) { return number(static_cast<double>(t) / static_cast<double>(period)); };
    for (std::size_t k = 0; k < operators_.size(); ++k) {
      const auto& o = operators_[k];
      if (o.instructions == 0 && o.energy == 0) continue;
      text += quoted(origins_.names()[k]) + "," + std::to_string(o.instructions) + "," + cycles(o.busy) + "," + part(static_cast<double>(o.busy), busy) + "," +
              cycles(o.instructions == 0 ? 0 : o.first) + "," + cycles(o.last) + "," + number(o.energy) + "," + part(o.energy, energy) + "," +
              std::to_string(o.local) + "," + std::to_string(o.network) + "," + std::to_string(o.global) + "\n";
    }
    return text + "(static power),0,0,0,0," + number(result.elapsed_ns * 1000 / static_cast<double>(period)) + "," + number(idle) + "," + part(idle, energy) + ",0,0,0\n";
  }

 private:
  struct last_found {
    std::int64_t pc = -1;
    std::size_t name = 0;
  };
  [[nodiscard]] operator_cost& at(std::size_t core, std::int64_t pc) {
    auto& r = recent_[core];
    if (r.pc != pc) r = {pc, origins_.find(core, pc)};
    return operators_[r.name];
  }
  /// Shortest text that reads back exactly.
  [[nodiscard]] static std::string number(double v) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, v).ptr;
    return std::string(text, end);
  }
  [[nodiscard]] static std::string quoted(const std::string& name) {
    if (name.find_first_of(",\"\n\r") == std::string::npos) return name;
    std::string text = "\"";
    for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
    return text + "\"";
  }

  const timed_program& program_;
  const instruction_origins& origins_;
  trace_writer* trace_;
  std::array<std::array<double, component_count>, class_count> classes_{};
  std::vector<operator_cost> operators_;
  std::vector<last_found> recent_;
};

}  // namespace raptor::sim::timing
