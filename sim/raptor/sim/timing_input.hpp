#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/isa/binary.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/sim/core_lists.hpp"
#include "raptor/sim/timing_model/program.hpp"
#include "raptor/sim/timing_model/program_json.hpp"
#include "raptor/sim/timing_model/text_source.hpp"
#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"
#include "raptor/support/file_text.hpp"
#include "raptor/support/json_view.hpp"
#include "raptor/target/configuration.hpp"

/// Programs for the timing model: artifact directories, pimsim-nn's directories and its single file (plain, gzip or zlib).
/// Errors carry the texts that pimsim-nn gives for the same fault (TIMING 14.5).
namespace raptor::sim::timing {

/// How a program is given: auto decides by what the path is.
enum class input_mode { automatic, single, directory };

namespace input_parts {

using json = nlohmann::json;

[[nodiscard]] inline error malformed(std::string text) { return error(error_code::malformed, std::move(text)); }

/// A binary core file; anything behind the last record is ignored (TIMING 14.4). The records are converted where they were read.
[[nodiscard]] inline timed_stream read_binary(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) throw error(error_code::io, "Failed to open binary instruction file");
  const auto bytes = static_cast<std::int64_t>(in.tellg());
  in.seekg(0);
  std::array<char, 12> header{};
  const auto word = [&](std::size_t at) {
    std::uint32_t w = 0;
    for (std::size_t b = 4; b-- > 0;) w = w << 8 | static_cast<unsigned char>(header[at + b]);
    return w;
  };
  in.read(header.data(), header.size());
  if (in.gcount() < 4) throw malformed("Failed to read PIM binary header");
  if (std::string_view(header.data(), 4) != "PIMB") throw malformed("Invalid PIM binary magic");
  if (in.gcount() < 8) throw malformed("Failed to read PIM binary record");
  if (word(4) != 1) throw malformed("Unsupported PIM binary version");
  if (!in) throw malformed("Failed to read PIM binary record");
  constexpr auto record = static_cast<std::int64_t>(isa::record_size);
  const std::int64_t count = word(8), complete = std::min(count, (bytes - 12) / record);
  timed_stream stream(static_cast<std::size_t>(complete));
  auto* const raw = reinterpret_cast<std::byte*>(stream.data());
  if (complete > 0 && !in.read(reinterpret_cast<char*>(raw), complete * record)) throw malformed("Failed to read PIM binary record");
  for (std::int64_t i = 0; i < complete; ++i) {
    const auto at = std::span<const std::byte, isa::record_size>(raw + i * record, isa::record_size);
    const auto code = static_cast<unsigned>(at[0]);
    if (code == static_cast<unsigned>(isa::opcode::vsoftmax)) throw error(error_code::unsupported, "pimsim-nn does not support opcode vsoftmax");
    if (code >= isa::opcode_count) throw malformed("Unsupported PIM binary opcode");
    const isa::instruction r = isa::decode_record(at);
    json_parts::check_registers(r.rd, r.r1, kind_of(r.op) == kind::vector ? r.word0 : 0);
    stream.data()[i] = from_record(r);
  }
  if (complete < count) throw malformed(bytes - 12 - complete * record < 4 ? "Failed to read compact PIM binary header fields" : "Failed to read PIM binary record");
  return stream;
}

/// Reads a JSON text into its events. Errors: malformed with the JSON library's words.
inline void read_json(const std::filesystem::path& file, const std::string& what, program_events& events) {
  text_source source(file, what);
  std::istream in(&source);
  in.exceptions(std::ios::badbit);
  json::sax_parse(in, &events);
}
[[nodiscard]] inline timed_stream read_json_core(const std::filesystem::path& file) {
  program_events events(program_events::form::core_file);
  try {
    read_json(file, "Failed to open JSON instruction file", events);
  } catch (const error& e) {
    if (e.code() == error_code::io) throw;
    throw malformed("Failed to parse JSON instruction file '" + file.string() + "': " + e.what());
  }
  if (!events.list) throw malformed("JSON instruction file must contain an array");
  if (events.list->fault) throw error(events.list->fault->code, events.list->fault->text);
  return timed_stream(events.list->instructions);
}

/// The first instruction of a mvmul whose group does not exist, then what the reference leaves undefined (TIMING 14.5 and 15).
inline void check_core(const timed_core& c) {
  const auto groups = static_cast<std::int64_t>(c.groups.size());
  const std::string core = "core" + std::to_string(c.id);
  for (const auto& i : c.stream)
    if (i.op == isa::opcode::mvmul && (i.select < 0 || i.select >= groups))
      throw malformed("Instruction for " + core + " references array group " + std::to_string(i.select) + " outside 'array_group_map." + core + "'");
  const auto refuse = [&](const timed_instruction& i, const std::string& why) {
    return error(error_code::malformed, "Instruction for " + core + " " + why,
                 core + ", instruction " + std::to_string(&i - c.stream.begin()) + ": " + std::string(isa::mnemonic(i.op)));
  };
  for (const auto& i : c.stream) {
    if (i.op == isa::opcode::nop) throw refuse(i, "is a nop, which the simulator cannot execute");
    if (i.op == isa::opcode::mvmul && i.immediate <= 0) throw refuse(i, "has mbiw " + std::to_string(i.immediate) + ", which must be positive");
    if ((i.op == isa::opcode::wait || i.op == isa::opcode::sync) && (i.select < 0 || i.select >= isa::event_count))
      throw refuse(i, "names event register " + std::to_string(i.select) + " outside 0..31");
    if (i.length < 0) throw refuse(i, "has the negative length " + std::to_string(i.length));
    const bool pair = i.op == isa::opcode::ld || i.op == isa::opcode::st || i.op == isa::opcode::sld;
    if (pair && (i.rd == 31 || i.rs1 == 31)) throw refuse(i, "names register 31 in a register pair");
  }
}

/// Most array groups of a core: the model keeps a state of each.
inline constexpr std::size_t most_groups = std::size_t{1} << 16;

/// What a program's configuration says to the timing model; the rest of it is skipped.
class program_config {
 public:
  /// `text`: an object, which must outlive this. `context`: how errors call it. Errors: malformed.
  program_config(json_view text, const std::string& context, std::int64_t most_cores) {
    json_view count;
    if (text.is_object())
      text.each_member([&](const std::string& name, json_view value) {
        if (name == "core_cnt") count = value;
        if (name == "array_group_map") map_ = value;
      });
    const auto number = count.text().empty() || count.is_object() || count.is_array() || count.is_string() ? json() : count.value();
    if (!number.is_number_integer()) throw malformed(context + " field 'core_cnt' must be a positive integer");
    core_count_ = number.get<std::int32_t>();
    if (core_count_ < 1 || core_count_ > most_cores)
      throw malformed(context + " field 'core_cnt' is " + std::to_string(core_count_) + ", but the simulator config supports 1.." + std::to_string(most_cores));
    if (map_.is_object()) lists_.emplace(map_, core_count_);
  }
  [[nodiscard]] std::int64_t core_count() const noexcept { return core_count_; }
  /// Crossbars of the array groups of a core. Errors: malformed; capacity, more than most_groups.
  [[nodiscard]] std::vector<std::int32_t> groups_of(std::int64_t core, std::int64_t available) const {
    const std::string name = "array_group_map.core" + std::to_string(core);
    if (!lists_) throw malformed("Instruction config field 'array_group_map' must be an object");
    const auto list = lists_->find(core);
    if (list.text().empty()) throw malformed("Instruction config is missing '" + name + "'");
    if (!list.is_array()) throw malformed("Instruction config field '" + name + "' must be an array");
    std::int64_t sum = 0;
    std::size_t count = 0;
    const auto crossbars = [&](json_view entry) { return entry.value().get<std::int32_t>(); };
    list.each_entry([&](json_view entry) {
      const bool scalar = !entry.is_object() && !entry.is_array() && !entry.is_string();
      if (!scalar || !entry.value().is_number_integer() || crossbars(entry) <= 0) throw malformed("Instruction config field '" + name + "' must contain positive crossbar counts");
      sum = checked::add(sum, std::int64_t{crossbars(entry)});
      ++count;
    });
    if (sum > available)
      throw malformed("Instruction config field '" + name + "' assigns " + std::to_string(sum) + " crossbars, but hardware provides " + std::to_string(available));
    if (count > most_groups)
      throw error(error_code::capacity, "Instruction config field '" + name + "' has " + std::to_string(count) + " array groups; " + std::to_string(most_groups) + " are the most");
    std::vector<std::int32_t> groups;
    groups.reserve(count);
    list.each_entry([&](json_view entry) { groups.push_back(crossbars(entry)); });
    return groups;
  }

 private:
  std::int64_t core_count_ = 0;
  json_view map_;
  std::optional<core_lists> lists_;
};
/// A core with its groups, checked.
[[nodiscard]] inline timed_core complete_core(std::int64_t id, timed_stream stream, const program_config& config, const target::configuration& hardware) {
  if (stream.size() >= std::size_t{1} << 31) throw malformed("core" + std::to_string(id) + " has more than 2147483647 instructions");
  timed_core core{id, std::move(stream), config.groups_of(id, hardware.chip_config.core_config.matrix_config.xbar_array_count)};
  check_core(core);
  return core;
}

[[nodiscard]] inline timed_program load_single(const std::filesystem::path& file, const target::configuration& hardware) {
  const std::string p = file.string(), failed = "Failed to parse single-file instruction input '" + p + "': ";
  if (file.extension() == ".pim") throw malformed("Instruction input '" + p + "' is a per-core binary .pim file; use a directory for binary instruction input");
  program_events events(program_events::form::single_file, hardware.chip_config.core_cnt);
  try {
    read_json(file, "Failed to open single-file instruction input", events);
  } catch (const error& e) {
    if (e.code() == error_code::io) throw;
    throw malformed(failed + e.what());
  }
  if (events.config.empty()) throw malformed("Single-file instruction input requires an object field 'config'");
  const program_config config(json_view(events.config), "Instruction config", hardware.chip_config.core_cnt);
  timed_program program;
  for (auto& [id, stream] : events.cores) {
    if (id >= config.core_count()) break;
    if (!stream) throw malformed("Single-file instruction field 'core" + std::to_string(id) + "' must be an array");
    if (const auto& fault = stream->fault) throw error(fault->code, (fault->json ? failed : "") + fault->text);
    program.cores.push_back(complete_core(id, timed_stream(stream->instructions), config, hardware));
    stream->instructions = {};
  }
  if (program.cores.empty()) throw malformed("Single-file instruction input contains no configured core instructions");
  return program;
}

/// The id of "core_<id>.json" or "core_<id>.pim"; −1 for another name.
[[nodiscard]] inline std::int64_t core_id(const std::string& file) {
  const std::size_t dot = file.rfind('.');
  if (dot == std::string::npos || dot <= 5) return -1;
  std::string digits = file.substr(5, dot - 5);
  const std::string ending = file.substr(dot);
  if ((ending != ".json" && ending != ".pim") || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return digits.size() > 10 ? 99'999'999'999 : std::stoll(digits);
}

[[nodiscard]] inline timed_program load_directory(const std::filesystem::path& directory, const target::configuration& hardware) {
  namespace fs = std::filesystem;
  const fs::path config_file = directory / "config.json";
  std::ifstream in(config_file, std::ios::binary);
  if (!in) throw error(error_code::io, "Failed to open instruction directory config: " + config_file.string());
  const std::string text = file_text(in, config_file);
  const auto document = check_json(text, config_file.string(), [&](const std::string& words) {
    throw malformed("Failed to parse instruction directory config '" + config_file.string() + "': " + words);
  });
  const program_config config(document, "Instruction directory config", hardware.chip_config.core_cnt);
  const auto count = config.core_count();
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.is_regular_file()) names.insert(entry.path().filename().string());
  std::map<std::int64_t, fs::path> files;
  for (const auto& name : names) {
    if (!name.starts_with("core_")) continue;
    const auto id = core_id(name);
    if (id < 0) throw malformed("Malformed per-core instruction filename '" + name + "' in " + directory.string() + "; expected core_<id>.json or core_<id>.pim");
    if (id >= count)
      throw malformed("Instruction file '" + (directory / name).string() + "' assigns core " + std::to_string(id) + ", but config core_cnt is " + std::to_string(count));
    const auto [at, added] = files.try_emplace(id, directory / name);
    if (!added && name.ends_with(".pim")) at->second = directory / name;
  }
  if (files.empty()) throw malformed("Instruction directory contains no core_<id>.json or core_<id>.pim files: " + directory.string());
  std::int64_t next = 0;
  for (const auto& [id, file] : files)
    if (id == next) ++next;
  if (next < count)
    throw malformed("Instruction directory is missing core_" + std::to_string(next) + ".json or core_" + std::to_string(next) + ".pim: " + directory.string());
  timed_program program;
  for (const auto& [id, file] : files) {
    timed_stream stream;
    try {
      stream = file.extension() == ".pim" ? read_binary(file) : read_json_core(file);
    } catch (const error& e) {
      throw error(e.code(), "Failed to load instructions from '" + file.string() + "': " + e.what());
    }
    program.cores.push_back(complete_core(id, std::move(stream), config, hardware));
  }
  return program;
}

}  // namespace input_parts

/// Loads a program: a directory, or a single file. Errors: as above, with raptor::error_code malformed, io or unsupported.
/// Storage grows with the program's instructions, not with its text. O(text).
[[nodiscard]] inline timed_program load_timed(const std::filesystem::path& path, const target::configuration& hardware, input_mode mode = input_mode::automatic) {
  namespace fs = std::filesystem;
  std::error_code code;
  const bool directory = fs::is_directory(path, code), file = fs::is_regular_file(path, code);
  if (mode == input_mode::single && !file)
    throw error(error_code::io, "Instruction input mode 'single-file' requires a regular file, but got: " + path.string());
  if (mode == input_mode::directory && !directory)
    throw error(error_code::io, "Instruction input mode 'per-core-directory' requires a directory, but got: " + path.string());
  if (directory) return input_parts::load_directory(path, hardware);
  if (file) return input_parts::load_single(path, hardware);
  throw error(error_code::io, "Instruction input path is neither a regular file nor a directory: " + path.string());
}

}  // namespace raptor::sim::timing
