#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/sim/provenance_tags.hpp"
#include "raptor/sim/schedule_options.hpp"
#include "raptor/sim/turns.hpp"

/// The JSON lines of a provenance trace. Source: PROVENANCE.md.
namespace raptor::sim {

/// Where and when something happened. The host's core is -1; it has no instruction.
struct event_place {
  std::uint64_t cycle = 0;
  std::int64_t core = -1;
  std::size_t index = 0;
  std::size_t iteration = 0;
};

/// One write of global memory; number k in a run is version k + 1.
struct global_write {
  event_place place;
  tag value = tag_table::uninitialized;
};

/// Builds one line at a time; nothing is built without a receiver.
class provenance_events {
 public:
  using receiver = std::function<void(std::string_view)>;

  provenance_events(const tag_table& tags, receiver to) : tags_(tags), to_(std::move(to)) {}

  [[nodiscard]] bool is_on() const noexcept { return static_cast<bool>(to_); }

  /// Starts a line. The fields follow, then end().
  provenance_events& begin(const char* event) {
    line_.clear();
    put("{{\"event\":\"{}\"", event);
    return *this;
  }
  provenance_events& begin(const char* event, const event_place& at) {
    begin(event);
    put(",\"cycle\":{},\"core\":{}", at.cycle, at.core);
    if (at.core >= 0) put(",\"pc\":{},\"core_iteration\":{}", at.index, at.iteration);
    return *this;
  }
  template <class Integer>
  provenance_events& number(const char* name, Integer value) {
    put(",\"{}\":{}", name, value);
    return *this;
  }
  provenance_events& text(const char* name, std::string_view value) {
    put(",\"{}\":\"{}\"", name, value);
    return *this;
  }
  provenance_events& numbers(const char* name, std::span<const std::uint64_t> values) {
    put(",\"{}\":[{}]", name, fmt::join(values, ","));
    return *this;
  }
  provenance_events& raw(const char* name, std::string_view json) {
    put(",\"{}\":{}", name, json);
    return *this;
  }
  /// The writers of versions; version 0 has none.
  provenance_events& writers(const char* name, std::span<const std::uint64_t> versions, std::span<const global_write> writes) {
    put(",\"{}\":[", name);
    const char* separator = "";
    for (const std::uint64_t version : versions) {
      if (version == 0) continue;
      const global_write& write = writes[version - 1];
      put("{}{{\"version\":{},\"cycle\":{},\"core\":{}", std::exchange(separator, ","), version, write.place.cycle, write.place.core);
      if (write.place.core >= 0) put(",\"pc\":{},\"core_iteration\":{}", write.place.index, write.place.iteration);
      provenance(write.value);
      line_.push_back('}');
    }
    line_.push_back(']');
    return *this;
  }
  /// What the data depends on. `mixed`: a single byte of it depends on more than one sample.
  provenance_events& data(tag merged, bool mixed) {
    provenance(merged);
    put(",\"mixed\":{}", mixed);
    return *this;
  }
  provenance_events& operands(std::span<const tag> merged) {
    put(",\"operand_provenance\":[");
    for (std::size_t k = 0; k < merged.size(); ++k) {
      line_.append(k == 0 ? "{" : ",{");
      put("\"operand\":{}", k);
      provenance(merged[k]);
      line_.push_back('}');
    }
    line_.push_back(']');
    return *this;
  }
  void end() {
    line_.push_back('}');
    to_(line_);
  }

 private:
  template <class... Arguments>
  void put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(line_), format, std::forward<Arguments>(arguments)...);
  }
  void provenance(tag t) {
    line_.append(",\"provenance\":[");
    const char* separator = "";
    for (std::uint64_t left = tags_.samples(t); left != 0; left &= left - 1) put("{}{}", std::exchange(separator, ","), std::countr_zero(left));
    put("],\"provenance_state\":\"{}\"", t == tag_table::uninitialized ? "uninitialized" : t == tag_table::unknown ? "unknown" : "known");
  }

  const tag_table& tags_;
  receiver to_;
  std::string line_;
};

/// The schedule as an event of the trace.
inline void write_schedule(provenance_events& events, const schedule_options& schedule) {
  constexpr const char* names[] = {"greedy", "randomized", "adversarial"};
  const auto or_null = [](bool is_known, std::string json) { return is_known ? json : std::string("null"); };
  std::string target = "null", stall = "null", target_stall = "null";
  if (const auto& t = schedule.target)
    target = fmt::format("{{\"writer_core\":{},\"writer_pc\":{},\"reader_core\":{},\"reader_pc\":{},\"begin\":{},\"end\":{},\"reader_iteration\":{},\"least_writer_iteration\":{}}}",
                         t->writer_core, t->writer_index, t->reader_core, t->reader_index, t->begin, t->end,
                         or_null(t->reader_iteration.has_value(), std::to_string(t->reader_iteration.value_or(0))),
                         or_null(t->least_writer_iteration.has_value(), std::to_string(t->least_writer_iteration.value_or(0))));
  if (const auto& s = schedule.stalled_core) stall = fmt::format("{{\"core\":{},\"cycles\":{}}}", s->core, s->cycles);
  if (const auto& s = schedule.stalled_instruction)
    target_stall = fmt::format("{{\"core\":{},\"pc\":{},\"iteration\":{},\"cycles\":{}}}", s->core, s->index,
                               or_null(s->iteration.has_value(), std::to_string(s->iteration.value_or(0))), s->cycles);
  events.begin("scheduler_config")
      .text("schedule_policy", names[static_cast<std::size_t>(schedule.policy)])
      .number("schedule_seed", schedule.seed)
      .raw("target_dependency", target)
      .number("deferral_budget", schedule.deferral_budget)
      .raw("fixed_stall", stall)
      .raw("fixed_target_stall", target_stall)
      .number("global_barrier", schedule.global_barrier)
      .end();
}

}  // namespace raptor::sim
