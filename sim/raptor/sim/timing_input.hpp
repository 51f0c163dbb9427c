#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/isa/table.hpp"
#include "raptor/sim/timing_model/program.hpp"
#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"
#include "raptor/target/configuration.hpp"
#include "raptor/target/configuration_json.hpp"

/// Programs for the timing model: artifact directories, pimsim-nn's directories and its single file (plain, gzip or zlib).
/// Errors carry the texts that pimsim-nn gives for the same fault (TIMING 14.5).
namespace raptor::sim::timing {

namespace input_parts {

using json = nlohmann::json;

[[nodiscard]] inline error malformed(std::string text) { return error(error_code::malformed, std::move(text)); }

[[nodiscard]] inline std::string read_file(const std::filesystem::path& file, const std::string& what) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw error(error_code::io, what + ": " + file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Inflates gzip or zlib data; other bytes come back as they are. At most `limit` bytes.
[[nodiscard]] inline std::string inflate_if_compressed(std::string bytes, std::size_t limit = std::size_t{4} << 30) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const bool gzip = bytes.size() > 2 && byte(0) == 0x1f && byte(1) == 0x8b;
  const bool zlib = bytes.size() > 2 && byte(0) == 0x78 && (byte(0) * 256 + byte(1)) % 31 == 0;
  if (!gzip && !zlib) return bytes;
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 32) != Z_OK) throw error(error_code::internal, "zlib cannot start");
  std::string out, block(1 << 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(std::min<std::size_t>(bytes.size(), 0xffffffffu));
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(block.data(), block.size() - stream.avail_out);
    if (out.size() > limit) break;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END) throw malformed("the compressed program is damaged or too large");
  return out;
}

/// Register numbers that the model can hold; others are undefined in the reference (TIMING 15) and refused.
inline void check_registers(std::int64_t rd, std::int64_t rs1, std::int64_t rs2) {
  for (const auto r : {rd, rs1, rs2})
    if (r < 0 || r >= isa::register_count) throw malformed("register number " + std::to_string(r) + " is outside 0..31");
}

/// One instruction of the JSON form (TIMING 14.3): every field optional but op, numbers of other kinds converted.
[[nodiscard]] inline timed_instruction from_object(const json& j) {
  const auto name = j.at("op").get<std::string>();
  const auto number = [](const json& object, const char* key) -> std::int32_t {
    const auto at = object.find(key);
    return at == object.end() ? 0 : at->get<int>();
  };
  const auto* info = isa::find(name);
  if (info == nullptr) throw malformed("Opcode::_from_string: invalid argument");
  if (info->op == isa::opcode::vsoftmax) throw error(error_code::unsupported, "pimsim-nn does not support opcode vsoftmax");
  isa::json_fields f;
  f.op = info->op;
  f.rd = number(j, "rd"), f.rs1 = number(j, "rs1"), f.rs2 = number(j, "rs2");
  check_registers(f.rd, f.rs1, f.rs2);
  f.imm = number(j, "imm"), f.len = number(j, "len"), f.size = number(j, "size"), f.core = number(j, "core");
  f.mbiw = number(j, "mbiw"), f.relu = number(j, "relu"), f.group = number(j, "group");
  f.ibiw = number(j, "ibiw"), f.obiw = number(j, "obiw");
  f.event_register = number(j, "event_register"), f.wait_value = number(j, "wait_value");
  if (info->unit == isa::unit::scalar) {
    f.offset_value = number(j, "offset_value");
  } else if (const auto offset = j.find("offset"); offset != j.end()) {
    f.offset_select = number(*offset, "offset_select"), f.offset_value = number(*offset, "offset_value");
  }
  return from_json(f);
}
[[nodiscard]] inline std::vector<timed_instruction> from_array(const json& list) {
  std::vector<timed_instruction> stream;
  stream.reserve(list.size());
  for (const auto& j : list) stream.push_back(from_object(j));
  return stream;
}

/// A binary core file; anything behind the last record is ignored (TIMING 14.4).
[[nodiscard]] inline std::vector<timed_instruction> from_binary(std::string_view bytes) {
  const auto word = [&](std::size_t at) {
    std::uint32_t w = 0;
    std::memcpy(&w, bytes.data() + at, sizeof w);
    return w;
  };
  if (bytes.size() < 12) throw malformed("Failed to read PIM binary header");
  if (bytes.substr(0, 4) != "PIMB") throw malformed("Invalid PIM binary magic");
  if (word(4) != 1) throw malformed("Unsupported PIM binary version");
  const std::size_t count = word(8);
  std::vector<timed_instruction> stream;
  stream.reserve(std::min(count, bytes.size() / 20 + 1));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = 12 + 20 * i;
    if (at + 4 > bytes.size()) throw malformed("Failed to read compact PIM binary header fields");
    if (at + 20 > bytes.size()) throw malformed("Failed to read PIM binary record");
    isa::instruction r;
    const auto code = static_cast<unsigned char>(bytes[at]);
    r.rd = static_cast<std::uint8_t>(bytes[at + 1]), r.r1 = static_cast<std::uint8_t>(bytes[at + 2]);
    const auto field = [&](std::size_t offset) { return static_cast<std::int32_t>(word(at + offset)); };
    r.word0 = field(4), r.word1 = field(8), r.word2 = field(12), r.word3 = field(16);
    if (code == static_cast<unsigned>(isa::opcode::vsoftmax)) throw error(error_code::unsupported, "pimsim-nn does not support opcode vsoftmax");
    if (code >= isa::opcode_count) throw malformed("Unsupported PIM binary opcode");
    r.op = static_cast<isa::opcode>(code);
    check_registers(r.rd, r.r1, kind_of(r.op) == kind::vector ? r.word0 : 0);
    stream.push_back(from_record(r));
  }
  return stream;
}

/// What the reference leaves undefined, or refuses, in a core's stream (TIMING 14.5 and 15).
inline void check_core(const timed_core& c) {
  const std::string core = "core" + std::to_string(c.id);
  for (const auto& i : c.stream) {
    if (i.what == kind::matrix) {
      if (i.select < 0 || i.select >= static_cast<std::int64_t>(c.groups.size()))
        throw malformed("Instruction for " + core + " references array group " + std::to_string(i.select) + " outside 'array_group_map." + core + "'");
      if (i.immediate <= 0) throw malformed("Instruction for " + core + " has mbiw " + std::to_string(i.immediate) + ", which must be positive");
    }
    if ((i.op == isa::opcode::wait || i.op == isa::opcode::sync) && (i.select < 0 || i.select >= isa::event_count))
      throw malformed("Instruction for " + core + " names event register " + std::to_string(i.select) + " outside 0..31");
    if (i.length < 0 || i.size < 0) throw malformed("Instruction for " + core + " has a negative length");
    if (i.op == isa::opcode::nop) throw malformed("Instruction for " + core + " is a nop, which the simulator cannot execute");
    const bool pair = i.op == isa::opcode::ld || i.op == isa::opcode::st || i.op == isa::opcode::sld;
    if (pair && (i.rd == 31 || i.rs1 == 31)) throw malformed("Instruction for " + core + " names register 31 in a register pair");
  }
}

[[nodiscard]] inline std::int64_t core_count(const json& config, const std::string& context, std::int64_t most) {
  const auto at = config.find("core_cnt");
  if (at == config.end() || !at->is_number_integer()) throw malformed(context + " field 'core_cnt' must be a positive integer");
  const auto count = at->get<std::int64_t>();
  if (count < 1 || count > most)
    throw malformed(context + " field 'core_cnt' is " + std::to_string(count) + ", but the simulator config supports 1.." + std::to_string(most));
  return count;
}
[[nodiscard]] inline std::vector<std::int64_t> groups_of(const json& config, std::int64_t core, std::int64_t available) {
  const std::string name = "array_group_map.core" + std::to_string(core);
  const auto map = config.find("array_group_map");
  if (map == config.end() || !map->is_object()) throw malformed("Instruction config field 'array_group_map' must be an object");
  const auto at = map->find("core" + std::to_string(core));
  if (at == map->end()) throw malformed("Instruction config is missing '" + name + "'");
  if (!at->is_array()) throw malformed("Instruction config field '" + name + "' must be an array");
  std::vector<std::int64_t> groups;
  std::int64_t sum = 0;
  for (const auto& g : *at) {
    if (!g.is_number_integer() || g.get<std::int64_t>() <= 0) throw malformed("Instruction config field '" + name + "' must contain positive crossbar counts");
    groups.push_back(g.get<std::int64_t>());
    sum = checked::add(sum, groups.back());
  }
  if (sum > available)
    throw malformed("Instruction config field '" + name + "' assigns " + std::to_string(sum) + " crossbars, but hardware provides " + std::to_string(available));
  return groups;
}

[[nodiscard]] inline timed_program load_single(const std::filesystem::path& file, const target::configuration& hardware) {
  const std::string p = file.string(), failed = "Failed to parse single-file instruction input '" + p + "': ";
  auto text = read_file(file, "Failed to open single-file instruction input");
  if (text.starts_with("PIMB")) throw malformed("Instruction input '" + p + "' is a per-core binary .pim file; use a directory for binary instruction input");
  timed_program program;
  json document;
  try {
    document = json::parse(inflate_if_compressed(std::move(text)));
  } catch (const json::exception& e) {
    throw malformed(failed + e.what());
  }
  const auto config = document.find("config");
  if (!document.is_object() || config == document.end() || !config->is_object()) throw malformed("Single-file instruction input requires an object field 'config'");
  const auto count = core_count(*config, "Instruction config", hardware.chip_config.core_cnt);
  for (std::int64_t k = 0; k < count; ++k) {
    const std::string name = "core" + std::to_string(k);
    const auto at = document.find(name);
    if (at == document.end()) continue;
    if (!at->is_array()) throw malformed("Single-file instruction field '" + name + "' must be an array");
    try {
      program.cores.push_back({k, from_array(*at), {}});
    } catch (const json::exception& e) {
      throw malformed(failed + e.what());
    }
  }
  if (program.cores.empty()) throw malformed("Single-file instruction input contains no configured core instructions");
  for (auto& c : program.cores) c.groups = groups_of(*config, c.id, hardware.chip_config.core_config.matrix_config.xbar_array_count);
  return program;
}

/// The id of "core_<id>.json" or "core_<id>.pim"; −1 for another name.
[[nodiscard]] inline std::int64_t core_id(const std::string& file) {
  const std::size_t dot = file.rfind('.');
  if (dot == std::string::npos || dot <= 5) return -1;
  const std::string digits = file.substr(5, dot - 5), ending = file.substr(dot);
  if ((ending != ".json" && ending != ".pim") || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoll(digits);
}

[[nodiscard]] inline timed_program load_directory(const std::filesystem::path& directory, const target::configuration& hardware) {
  namespace fs = std::filesystem;
  const fs::path config_file = directory / "config.json";
  json config;
  const auto text = read_file(config_file, "Failed to open instruction directory config");
  try {
    config = json::parse(text);
  } catch (const json::exception& e) {
    throw malformed("Failed to parse instruction directory config '" + config_file.string() + "': " + e.what());
  }
  const auto count = core_count(config, "Instruction directory config", hardware.chip_config.core_cnt);
  std::vector<fs::path> files(static_cast<std::size_t>(count));
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    if (!entry.is_directory()) names.insert(entry.path().filename().string());
  bool any = false;
  for (const auto& name : names) {
    if (!name.starts_with("core_")) continue;
    const auto id = core_id(name);
    if (id < 0) throw malformed("Malformed per-core instruction filename '" + name + "' in " + directory.string() + "; expected core_<id>.json or core_<id>.pim");
    if (id >= count)
      throw malformed("Instruction file '" + (directory / name).string() + "' assigns core " + std::to_string(id) + ", but config core_cnt is " + std::to_string(count));
    auto& file = files[static_cast<std::size_t>(id)];
    if (file.empty() || name.ends_with(".pim")) file = directory / name;
    any = true;
  }
  if (!any) throw malformed("Instruction directory contains no core_<id>.json or core_<id>.pim files: " + directory.string());
  timed_program program;
  for (std::int64_t k = 0; k < count; ++k) {
    const auto& file = files[static_cast<std::size_t>(k)];
    const std::string id = std::to_string(k);
    if (file.empty()) throw malformed("Instruction directory is missing core_" + id + ".json or core_" + id + ".pim: " + directory.string());
    const std::string failed = "Failed to load instructions from '" + file.string() + "': ";
    try {
      const auto contents = read_file(file, "Failed to open instruction file");
      if (file.extension() == ".pim") {
        program.cores.push_back({k, from_binary(contents), {}});
        continue;
      }
      json list;
      try {
        list = json::parse(contents);
      } catch (const json::exception& e) {
        throw malformed("Failed to parse JSON instruction file '" + file.string() + "': " + e.what());
      }
      if (!list.is_array()) throw malformed("JSON instruction file must contain an array");
      program.cores.push_back({k, from_array(list), {}});
    } catch (const json::exception& e) {
      throw malformed(failed + e.what());
    } catch (const error& e) {
      throw error(e.code(), failed + e.what());
    }
  }
  for (auto& c : program.cores) c.groups = groups_of(config, c.id, hardware.chip_config.core_config.matrix_config.xbar_array_count);
  return program;
}

}  // namespace input_parts

/// Loads a program: a directory, or a single file. Errors: as above, with raptor::error_code malformed, io or unsupported.
[[nodiscard]] inline timed_program load_timed(const std::filesystem::path& path, const target::configuration& hardware) {
  namespace fs = std::filesystem;
  std::error_code code;
  timed_program program;
  if (fs::is_directory(path, code)) program = input_parts::load_directory(path, hardware);
  else if (fs::is_regular_file(path, code)) program = input_parts::load_single(path, hardware);
  else throw error(error_code::io, "Instruction input path is neither a regular file nor a directory: " + path.string());
  for (const auto& c : program.cores) input_parts::check_core(c);
  return program;
}

/// The simulator's own validation, in its order, first failure wins (TIMING 13); then what it accepts but cannot run.
inline void validate_as_simulator(const target::configuration& c) {
  using input_parts::malformed;
  const auto negative = [](std::initializer_list<double> values) { return std::any_of(values.begin(), values.end(), [](double v) { return v < 0; }); };
  const auto number = [](std::int64_t v) { return static_cast<double>(v); };
  const auto memory = [&](const target::memory_configuration& m) {
    if (negative({number(m.data_width), m.period, m.static_power, number(m.write_latency_cycle), m.write_dynamic_energy, number(m.read_latency_cycle), m.read_dynamic_energy}))
      throw malformed("MemoryConfig not valid");
  };
  const auto& core = c.chip_config.core_config;
  const auto& m = core.matrix_config;
  memory(core.local_memory_config);
  if (negative({number(m.xbar_array_count), m.period, number(m.dac_resolution), number(m.dac_latency_cycle), m.dac_dynamic_power, number(m.dac_count), number(m.xbar_size[0]),
                number(m.xbar_size[1]), number(m.cell_precision), m.xbar_latency, m.xbar_read_power, number(m.sample_hold_latency_cycle), m.sample_hold_dynamic_power,
                number(m.adc_latency_cycle), m.adc_dynamic_power, number(m.adc_count), number(m.shift_adder_latency_cycle), m.shift_adder_dynamic_power,
                number(m.output_buffer_latency_cycle), m.output_buffer_dynamic_power}))
    throw malformed("MatrixConfig not valid");
  if (negative({core.period, number(core.vector_width), number(core.vector_latency_cycle), core.inst_fetch_static_power, core.inst_fetch_dynamic_power,
                core.inst_decode_static_power, core.inst_decode_dynamic_power, core.inst_decode_offset_static_power, core.inst_decode_offset_dynamic_power,
                core.reg_file_static_power, core.reg_file_read_dynamic_power, core.reg_file_write_dynamic_power, core.scalar_static_power, core.scalar_dynamic_power,
                core.vector_alu_static_power, core.vector_alu_dynamic_energy, core.vector_reg_static_power, core.vector_reg_read_dynamic_energy,
                core.vector_reg_write_dynamic_energy, core.transfer_static_power}))
    throw malformed("CoreConfig not valid");
  memory(c.chip_config.global_memory_config);
  const auto& network = c.chip_config.network_config;
  if (network.bus_width <= 0 || network.layout[0] <= 0 || network.layout[1] <= 0) throw malformed("BusConfig not valid");
  if (c.chip_config.core_cnt <= 0) throw malformed("ChipConfig not valid");
  const auto& s = c.sim_config;
  if (s.sim_time <= 0 || s.latency_timeout_ms <= 0 || s.report_verbose_level < 0 || (s.sim_mode != 0 && s.sim_mode != 1)) throw malformed("SimConfig not valid");
  if (core.period <= 0 || core.local_memory_config.data_width == 0 || c.chip_config.global_memory_config.data_width == 0 || core.vector_width == 0 || m.period <= 0 || core.rob_size < 0)
    throw malformed("a period or width of 0, or a negative rob_size: the simulator would hang");
}

/// The hardware file, validated as the simulator does; its network table is read by read_network, after the program.
[[nodiscard]] inline target::configuration read_hardware(const std::filesystem::path& file) {
  const std::string name = file.string();
  const auto text = input_parts::read_file(file, "Failed to open simulator config");
  try {
    [[maybe_unused]] const auto parsed = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    throw input_parts::malformed("Failed to parse simulator config '" + name + "': " + e.what());
  }
  auto c = target::parse_configuration(text, name, target::objects::optional);
  validate_as_simulator(c);
  return c;
}
/// Reads the network file that the hardware file names, relative to its folder.
inline void read_network(target::configuration& c, const std::filesystem::path& folder) {
  auto& network = c.chip_config.network_config;
  const auto file = folder / network.net_config_file_path;
  const auto text = input_parts::read_file(file, "Failed to open network latency/energy file");
  try {
    [[maybe_unused]] const auto parsed = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    throw input_parts::malformed(e.what());
  }
  network.table = target::parse_network(text, file.string());
}

}  // namespace raptor::sim::timing
