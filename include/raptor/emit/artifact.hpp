#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "raptor/emit/atomic_directory.hpp"
#include "raptor/emit/in_memory.hpp"
#include "raptor/emit/stream.hpp"
#include "raptor/emit/weights.hpp"
#include "raptor/isa/binary.hpp"
#include "raptor/isa/json_write.hpp"
#include "raptor/memory/plan.hpp"

/// The artifact directory. Source: ARTIFACTS.md.
namespace raptor::emit {

static_assert(std::endian::native == std::endian::little, "weight files are little endian and written as they lie in memory");

struct artifact_options {
  bool json = false;              ///< core_N.json beside each core_N.pim
  std::vector<extra_file> extra;
  stream_options stream;
};
/// What was written.
struct artifact_summary {
  std::vector<std::int64_t> instructions;  ///< one a core
  std::size_t contents = 0;                ///< distinct weight files
  std::int64_t memory_bytes = 0;           ///< memory.bin
};

/// True for a directory that write_artifact made (or that has its shape): it may be replaced.
[[nodiscard]] inline bool is_artifact(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::error_code code;
  return fs::is_regular_file(directory / "config.json", code) &&
         (fs::is_regular_file(directory / "core_0.pim", code) || fs::is_regular_file(directory / "core_0.json", code));
}

/// Name of a file of weights/.
[[nodiscard]] inline std::string content_name(std::uint32_t content) {
  const std::string number = std::to_string(content);
  return "w" + std::string(number.size() < 5 ? 5 - number.size() : 0, '0') + number + ".bin";
}

/// The text of config.json. Deterministic: fields in a fixed order.
[[nodiscard]] inline std::string config_text(const memory::image& planned) {
  const auto& p = planned.bound;
  nlohmann::ordered_json config;
  config["core_cnt"] = p.chip.core_count;
  config["xbar_size"] = {p.chip.crossbar_rows, p.chip.crossbar_columns};
  config["adc_count"] = p.chip.adc_count;
  config["cell_precision"] = p.chip.cell_bits;
  config["weight_bits"] = p.chip.weight_bits;
  config["element_bits"] = p.chip.element_bits;
  config["precision"] = p.chip.element_bits == 32 ? "float32" : "int" + std::to_string(p.chip.element_bits);
  config["network"] = p.name;
  config["constant_bytes"] = planned.constant_bytes;  // of memory.bin: what a simulator may take as written
  auto& map = config["array_group_map"] = nlohmann::ordered_json::object();
  for (std::size_t c = 0; c < p.cores.size(); ++c) {
    auto list = nlohmann::ordered_json::array();
    for (const auto weight : p.cores[c].groups) list.push_back(crossbars(p.weights[weight], p.chip));
    map["core" + std::to_string(c)] = std::move(list);
  }
  const auto describe = [&](const std::string& prefix, const std::vector<program::port>& ports) {
    for (const char* key : {"_addresses", "_sizes", "_names", "_shapes", "_types"}) config[prefix + key] = nlohmann::ordered_json::array();
    for (const auto& r : regions_of(planned, ports)) {
      config[prefix + "_addresses"].push_back(r.address);
      config[prefix + "_sizes"].push_back(r.bytes);
      config[prefix + "_names"].push_back(r.name);
      config[prefix + "_shapes"].push_back(r.sizes);
      config[prefix + "_types"].push_back(p.chip.element_bits == 32 ? "float32" : "int" + std::to_string(p.chip.element_bits));
    }
  };
  describe("inputs", p.inputs);
  describe("outputs", p.outputs);
  return config.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

namespace artifact_parts {

/// What a directory says of a chip must agree with its cores; a program from a file may break it.
inline void check_chip(const program::program& p) {
  if (p.chip.core_count != static_cast<std::int64_t>(p.cores.size()) || p.cores.empty())
    throw error(error_code::malformed, "the program has " + std::to_string(p.cores.size()) + " cores, its chip " + std::to_string(p.chip.core_count));
  // The artifact itself says how many columns a group has: crossbars × xbar_size[1] × cell_precision / mbiw.
  if (!p.weights.empty() && checked::multiply(p.chip.crossbar_columns, p.chip.cell_bits) != checked::multiply(p.chip.weight_columns, p.chip.weight_bits))
    throw error(error_code::unsupported,
                "a crossbar row of " + std::to_string(p.chip.crossbar_columns) + " cells of " + std::to_string(p.chip.cell_bits) + " bits does not hold " +
                    std::to_string(p.chip.weight_columns) + " whole weights of " + std::to_string(p.chip.weight_bits) + " bits",
                {}, "choose a width of elements that divides the bits of a crossbar row");
  for (std::size_t c = 0; c < p.cores.size(); ++c) {
    std::int64_t used = 0;
    for (const auto weight : p.cores[c].groups) {
      const auto& matrix = p.weights.at(weight);
      if (matrix.columns < 1) throw error(error_code::malformed, "an array group without columns", "core " + std::to_string(c));
      used = checked::add(used, crossbars(matrix, p.chip));
    }
    if (used > p.chip.crossbars_per_core)
      throw error(error_code::capacity,
                  "core " + std::to_string(c) + ": " + std::to_string(used) + " crossbars needed, " + std::to_string(p.chip.crossbars_per_core) +
                      " available",
                  "core " + std::to_string(c), "use more cores or more crossbars in each");
  }
}

/// Which operators the instructions belong to, as text: reports/instructions.json.
class instruction_map {
 public:
  explicit instruction_map(const program::program& p) {
    text_ = "{\"operators\": [";
    for (const auto& name : p.origins) {
      if (&name != p.origins.data()) text_ += ',';
      text_ += nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    text_ += "],\n\"cores\": {";
  }
  void begin_core(std::size_t core) {
    text_ += (core == 0 ? "\n\"core" : ",\n\"core") + std::to_string(core) + "\": [";
    first_ = true;
  }
  void add(std::int64_t first, std::uint32_t origin) {
    text_ += (first_ ? "[" : ",[") + std::to_string(first) + "," + (origin == program::none ? std::string("-1") : std::to_string(origin)) + "]";
    first_ = false;
  }
  void end_core() { text_ += "]"; }
  [[nodiscard]] std::string finish() && { return std::move(text_ += "}}\n"); }

 private:
  std::string text_;
  bool first_ = true;
};

/// Streams of one core go to the disk in pieces of a few megabytes.
inline std::int64_t write_stream(const memory::image& planned, std::size_t core, const std::filesystem::path& directory,
                                 const artifact_options& options, instruction_map& map) {
  constexpr std::size_t piece = std::size_t{1} << 22;
  const std::string stem = "core_" + std::to_string(core);
  const auto open = [](const std::filesystem::path& path) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (!out) throw error(error_code::io, "the file cannot be written", path.string());
    return out;
  };
  const auto put = [](std::ofstream& out, const auto& bytes) {
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  const auto close = [](std::ofstream& out, const std::filesystem::path& path) {
    out.close();
    if (!out) throw error(error_code::io, "the file cannot be written", path.string());
  };
  const auto binary_path = directory / (stem + ".pim"), json_path = directory / (stem + ".json");
  std::ofstream binary = open(binary_path), json;
  if (options.json) json = open(json_path);
  isa::json_writer writer;
  put(binary, isa::header(0));
  std::vector<std::byte> records;
  std::vector<isa::instruction> block;
  block.reserve(4096);
  const auto flush = [&] {
    isa::append_records(records, block);
    block.clear();
    if (records.size() >= piece) put(binary, records), records.clear();
  };
  map.begin_core(core);
  const std::int64_t count = emit_core(
      planned, core,
      [&](const isa::instruction& i) {
        block.push_back(i);
        if (block.size() == 4096) flush();
        if (options.json) {
          writer.push(i);
          if (writer.pending() >= piece) put(json, writer.take());
        }
      },
      options.stream, [&](std::int64_t first, std::uint32_t origin) { map.add(first, origin); });
  map.end_core();
  flush();
  put(binary, records);
  binary.seekp(0);
  put(binary, isa::header(checked::narrow<std::uint32_t>(count)));
  close(binary, binary_path);
  if (options.json) {
    put(json, writer.finish());
    close(json, json_path);
  }
  return count;
}

}  // namespace artifact_parts

/// Writes the artifact directory: config.json, memory.bin, core_N.pim for every core, weights/, core_N/group_g.bin links, reports/ and
/// the further files of the options. reports/instructions.json tells which operator each instruction belongs to: `operators`, a list of
/// names, and `cores`, for "coreN" a list of [first instruction, index of the operator or -1], each valid up to the next.
///
/// Guarantees: the directory appears complete or not at all; an existing artifact directory (is_artifact) or an empty one is replaced,
/// nothing else is overwritten; the same image gives the same bytes. Errors: io with the path; those of emit_core and
/// materialize; capacity where a core has too few crossbars. Memory: a few megabytes and two array-group contents.
inline artifact_summary write_artifact(const memory::image& planned, const std::filesystem::path& directory, const artifact_options& options = {}) {
  namespace fs = std::filesystem;
  const auto& p = planned.bound;
  artifact_parts::check_chip(p);
  atomic_directory out(directory, is_artifact, "artifact directory");
  artifact_summary summary;
  const auto make = [&](const fs::path& path) {
    std::error_code code;
    fs::create_directory(path, code);
    if (code) throw error(error_code::io, "the directory cannot be made: " + code.message(), path.string());
  };

  write_file(out.path() / "config.json", config_text(planned));
  write_file(out.path() / "memory.bin", constant_memory(planned));
  std::error_code code;
  fs::resize_file(out.path() / "memory.bin", static_cast<std::uintmax_t>(planned.global_bytes), code);
  if (code) throw error(error_code::io, "the file cannot be written: " + code.message(), (directory / "memory.bin").string());
  summary.memory_bytes = planned.global_bytes;

  make(out.path() / "weights");
  const auto content = for_each_content(
      p, [&](const lowering::weight_matrix& m) { return padded_size(m, p.chip); },
      [&](std::uint32_t number, std::size_t, group_size, const std::vector<float>& values) {
        write_file(out.path() / "weights" / content_name(number), std::as_bytes(std::span(values)));
        summary.contents = number + std::size_t{1};
      });
  artifact_parts::instruction_map map(p);
  for (std::size_t c = 0; c < p.cores.size(); ++c) {
    const fs::path folder = out.path() / ("core_" + std::to_string(c));
    make(folder);
    for (std::size_t g = 0; g < p.cores[c].groups.size(); ++g) {
      const fs::path link = folder / ("group_" + std::to_string(g) + ".bin");
      fs::create_symlink(fs::path("..") / "weights" / content_name(content[p.cores[c].groups[g]]), link, code);
      if (code) throw error(error_code::io, "the link cannot be made: " + code.message(), link.string());
    }
    summary.instructions.push_back(artifact_parts::write_stream(planned, c, out.path(), options, map));
  }
  make(out.path() / "reports");
  write_file(out.path() / "reports" / "instructions.json", std::move(map).finish());
  write_extra(out.path(), options.extra);
  out.commit();
  return summary;
}

}  // namespace raptor::emit
