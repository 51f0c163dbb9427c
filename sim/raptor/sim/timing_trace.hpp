#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "raptor/sim/timing_origins.hpp"
#include "raptor/sim/timing_model/observer.hpp"
#include "raptor/support/error.hpp"

namespace raptor::sim::timing {

/// A run as a trace for Perfetto and chrome://tracing: a process for each core, a track for each unit that worked (transfer unit, vector
/// unit, array groups, network switch), a slice for each instruction named after its operator, an arrow from each send to its recv.
/// Times in µs with six decimals, which are whole ps. Written as the run goes; memory does not grow with it.
class trace_writer {
 public:
  /// Errors: io with the path.
  trace_writer(const std::filesystem::path& file, const timed_program& program, const instruction_origins& origins)
      : path_(file.string()), out_(file, std::ios::binary | std::ios::trunc), program_(program), origins_(origins) {
    text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    for (const auto& name : origins.names()) names_.push_back(nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    check();
  }

  void slice(std::size_t core, std::int32_t unit, std::int64_t pc, std::string_view what, instant start, instant end) {
    track(core, unit);
    open("X", core, unit, start);
    text_ += ",\"dur\":";
    time(end - start);
    text_ += ",\"name\":" + names_[origins_.find(core, pc)] + ",\"cat\":\"";
    text_.append(what) += "\",\"args\":{\"instruction\":" + std::to_string(pc) + ",\"operation\":\"";
    text_.append(what) += "\"}}";
    flush_if_full();
  }
  /// An arrow between two slices of transfer units, from inside the first to inside the second.
  void arrow(std::size_t from, instant sent, std::size_t to, instant arrived) {
    ++arrows_;
    open("s", from, transfer_unit, sent - 1);  // a send is done when its data are on their way
    text_ += ",\"id\":" + std::to_string(arrows_) + ",\"name\":\"data\",\"cat\":\"message\"}";
    open("f", to, transfer_unit, arrived);
    text_ += ",\"bp\":\"e\",\"id\":" + std::to_string(arrows_) + ",\"name\":\"data\",\"cat\":\"message\"}";
    flush_if_full();
  }
  /// Completes the file. Errors: io with the path.
  void finish() {
    text_ += "\n]}\n";
    flush();
    out_.close();
    check();
  }

 private:
  [[nodiscard]] static std::string unit_name(std::int32_t unit) {
    return unit == transfer_unit ? "transfer unit" : unit == vector_unit ? "vector unit" : unit == switch_unit ? "network switch" : "array group " + std::to_string(unit);
  }
  /// Tracks are numbered from 0: switch, transfer unit, vector unit, array groups.
  [[nodiscard]] static std::int32_t number(std::int32_t unit) noexcept { return unit + 3; }
  void next() {
    text_ += any_ ? ",\n" : "\n";
    any_ = true;
  }
  /// Names a track before its first slice.
  void track(std::size_t core, std::int32_t unit) {
    auto& known = known_[core];
    if (known.empty()) {
      next();
      text_ += "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + std::to_string(program_.cores[core].id) + ",\"args\":{\"name\":\"core " +
               std::to_string(program_.cores[core].id) + "\"}}";
    }
    if (!known.try_emplace(unit, true).second) return;
    next();
    text_ += "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" + std::to_string(program_.cores[core].id) + ",\"tid\":" + std::to_string(number(unit)) +
             ",\"args\":{\"name\":\"" + unit_name(unit) + "\"}}";
  }
  void open(const char* phase, std::size_t core, std::int32_t unit, instant at) {
    next();
    text_ += std::string("{\"ph\":\"") + phase + "\",\"pid\":" + std::to_string(program_.cores[core].id) + ",\"tid\":" + std::to_string(number(unit)) + ",\"ts\":";
    time(at);
  }
  void time(instant ps) {
    const std::string part = std::to_string(ps % 1'000'000);
    text_ += std::to_string(ps / 1'000'000) + "." + std::string(6 - part.size(), '0') + part;
  }
  void flush_if_full() {
    if (text_.size() > (std::size_t{1} << 20)) flush();
  }
  void flush() {
    out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
    check();
  }
  void check() const {
    if (!out_) throw error(error_code::io, "the trace cannot be written", path_);
  }

  std::string path_;
  std::ofstream out_;
  const timed_program& program_;
  const instruction_origins& origins_;
  std::vector<std::string> names_;  ///< as JSON texts
  std::map<std::size_t, std::map<std::int32_t, bool>> known_;
  std::string text_;
  bool any_ = false;
  std::uint64_t arrows_ = 0;
};

}  // namespace raptor::sim::timing
