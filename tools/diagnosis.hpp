#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "raptor/sim/schedule_options.hpp"
#include "tools/common.hpp"

/// The options that choose a diagnostic schedule. Source: CLI.md, "Diagnosis".
namespace raptor::tools {

namespace detail {

/// "1:2:3" as numbers. Errors: usage, with the option and the form that it wants.
[[nodiscard]] inline std::vector<std::size_t> parse_numbers(const char* option, const std::string& text, const char* form, std::initializer_list<std::size_t> counts) {
  const auto refuse = [&] { return usage_error(std::string("--") + option + " expects " + form + ", not '" + text + "'"); };
  std::vector<std::size_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;; ++at) {
    std::int64_t value = -1;
    const auto [next, failure] = std::from_chars(at, end, value);
    if (failure != std::errc{} || value < 0 || (next != end && *next != ':')) throw refuse();
    numbers.push_back(static_cast<std::size_t>(value));
    at = next;
    if (at == end) break;
  }
  if (std::find(counts.begin(), counts.end(), numbers.size()) == counts.end()) throw refuse();
  return numbers;
}

}  // namespace detail

inline void add_diagnosis_options(command_line& line) {
  po::options_description diagnosis("Diagnosis");
  diagnosis.add_options()
      ("provenance-trace", po::value<std::string>()->value_name("FILE"), "write where every result's data came from, one JSON object a line")
      ("provenance-global-barrier", po::bool_switch(), "no core starts its next body before all have ended theirs")
      ("provenance-core-stall", po::value<std::string>()->value_name("CORE:CYCLES"), "delay a core at the start of each of its bodies")
      ("diagnostic-schedule-policy", po::value<std::string>()->value_name("greedy|randomized|adversarial")->default_value("greedy"), "order of the cores")
      ("diagnostic-schedule-seed", po::value<std::int64_t>()->value_name("N"), "seed of randomized; default: --seed")
      ("diagnostic-schedule-target", po::value<std::string>()->value_name("WCORE:WPC:RCORE:RPC:BEGIN:END[:RITER:WMIN]"),
       "adversarial: hold back the load RPC of core RCORE (in iteration RITER only) until the store WPC of core WCORE has overwritten [BEGIN, END) (in iteration WMIN or later)")
      ("diagnostic-schedule-deferral-budget", po::value<std::int64_t>()->value_name("N")->default_value(10000), "adversarial: most turns of others while one load is held back")
      ("diagnostic-target-stall", po::value<std::string>()->value_name("CORE:PC[:ITERATION]:CYCLES"), "delay an instruction");
  line.add(diagnosis);
}

/// The names of all of them.
inline constexpr const char* diagnosis_options[] = {
    "provenance-trace", "provenance-global-barrier", "provenance-core-stall", "diagnostic-schedule-policy", "diagnostic-schedule-seed",
    "diagnostic-schedule-target", "diagnostic-schedule-deferral-budget", "diagnostic-target-stall"};

/// Errors: usage, for a value of another form and for an option of another policy.
[[nodiscard]] inline sim::schedule_options parse_schedule(const command_line& line) {
  sim::schedule_options schedule;
  const auto& policy = line.get<std::string>("diagnostic-schedule-policy");
  if (policy == "randomized") schedule.policy = sim::schedule_policy::randomized;
  else if (policy == "adversarial") schedule.policy = sim::schedule_policy::adversarial;
  else if (policy != "greedy") throw usage_error("--diagnostic-schedule-policy is greedy, randomized or adversarial, not '" + policy + "'");

  const auto natural = [&](const char* option) {
    const std::int64_t value = line.get<std::int64_t>(option);
    if (value < 0) throw usage_error(std::string("--") + option + " must not be negative");
    return static_cast<std::uint64_t>(value);
  };
  const auto needs_policy = [&](const char* option, sim::schedule_policy needed, const char* name) {
    if (line.given(option) && schedule.policy != needed) throw usage_error(std::string("--") + option + " needs --diagnostic-schedule-policy=" + name);
  };
  needs_policy("diagnostic-schedule-seed", sim::schedule_policy::randomized, "randomized");
  needs_policy("diagnostic-schedule-target", sim::schedule_policy::adversarial, "adversarial");
  needs_policy("diagnostic-schedule-deferral-budget", sim::schedule_policy::adversarial, "adversarial");
  schedule.seed = line.given("diagnostic-schedule-seed") ? natural("diagnostic-schedule-seed") : static_cast<std::uint64_t>(line.get<std::int64_t>("seed"));
  schedule.deferral_budget = natural("diagnostic-schedule-deferral-budget");

  if (line.has("diagnostic-schedule-target")) {
    const auto& text = line.get<std::string>("diagnostic-schedule-target");
    const auto n = detail::parse_numbers("diagnostic-schedule-target", text, "WCORE:WPC:RCORE:RPC:BEGIN:END[:RITER:WMIN]", {6, 8});
    auto& target = schedule.target.emplace(sim::dependency_target{n[0], n[1], n[2], n[3], static_cast<std::int64_t>(n[4]), static_cast<std::int64_t>(n[5]), {}, {}});
    if (n.size() == 8) target.reader_iteration = n[6], target.least_writer_iteration = n[7];
    if (target.begin >= target.end) throw usage_error("--diagnostic-schedule-target: BEGIN must be below END, in '" + text + "'");
  } else if (schedule.policy == sim::schedule_policy::adversarial) {
    throw usage_error("--diagnostic-schedule-policy=adversarial requires --diagnostic-schedule-target");
  }
  if (line.has("provenance-core-stall")) {
    const auto n = detail::parse_numbers("provenance-core-stall", line.get<std::string>("provenance-core-stall"), "CORE:CYCLES", {2});
    schedule.stalled_core = sim::core_stall{n[0], n[1]};
  }
  if (line.has("diagnostic-target-stall")) {
    const auto n = detail::parse_numbers("diagnostic-target-stall", line.get<std::string>("diagnostic-target-stall"), "CORE:PC[:ITERATION]:CYCLES", {3, 4});
    auto& stall = schedule.stalled_instruction.emplace(sim::instruction_stall{n[0], n[1], {}, n.back()});
    if (n.size() == 4) stall.iteration = n[2];
  }
  schedule.global_barrier = line.get<bool>("provenance-global-barrier");
  return schedule;
}

}  // namespace raptor::tools
