#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "raptor/sim/core_lists.hpp"
#include "raptor/sim/program.hpp"
#include "raptor/support/error.hpp"
#include "raptor/support/json_view.hpp"
#include "raptor/support/memory_budget.hpp"

/// config.json of an artifact directory. Source: ARTIFACTS.md.
namespace raptor::sim {

/// The crossbars of the array groups of each core, one list behind the other: `groups[core][group]`.
class group_lists {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] std::span<const std::int32_t> operator[](std::size_t core) const {
    const std::size_t begin = core == 0 ? 0 : ends_[core - 1];
    return std::span(crossbars_).subspan(begin, ends_[core] - begin);
  }
  void reserve(std::size_t cores, std::size_t groups) {
    ends_.reserve(cores);
    crossbars_.reserve(groups);
  }
  /// Appends a group to the list of the next core, which end_core() ends.
  void add(std::int32_t crossbars) { crossbars_.push_back(crossbars); }
  void end_core() { ends_.push_back(crossbars_.size()); }

 private:
  std::vector<std::int32_t> crossbars_;
  std::vector<std::size_t> ends_;  ///< [core]: where its list ends
};

struct artifact_config {
  std::int64_t core_count = 0;
  std::int64_t crossbar_rows = 0;
  std::int64_t crossbar_columns = 0;  ///< cells; a weight takes mbiw / cell_precision of them
  std::int64_t cell_precision = 32;   ///< bits
  std::int64_t weight_bits = 0;       ///< of array groups that no instruction uses; 0: not recorded
  std::int64_t constant_bytes = -1;   ///< of memory.bin, from address 0; -1: not recorded
  group_lists groups;                 ///< [core][array group]: crossbars
  std::vector<tensor_region> inputs;
  std::vector<tensor_region> outputs;
};

namespace detail {

/// Reads fields of one JSON object; every error names file and field.
class config_reader {
 public:
  config_reader(std::string_view text, std::string_view file) : file_(file), budget_(text.size(), 3, std::size_t{1} << 20, file_) {
    const auto root = check_json(text, file_, [this](const std::string& words) { fail("not valid JSON: " + words.substr(0, 300)); });
    if (!root.is_object()) fail("the configuration is not a JSON object");
    root.each_member([&](const std::string& name, json_view value) {
      const auto known = std::find(names.begin(), names.end(), name);
      if (known != names.end()) values_[static_cast<std::size_t>(known - names.begin())] = value;
    });
  }

  [[noreturn]] void fail(const std::string& message) const { throw error(error_code::malformed, message, file_); }

  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  /// What may be kept; the text, which is in memory as well, is not part of it.
  [[nodiscard]] memory_budget& budget() noexcept { return budget_; }
  [[nodiscard]] bool has(const std::string& key) const { return !value_of(key).text().empty(); }
  [[nodiscard]] json_view at(const std::string& key) const {
    if (!has(key)) fail("field '" + key + "' is missing");
    return value_of(key);
  }
  [[nodiscard]] json_view array(const std::string& key) const {
    const auto value = at(key);
    if (!value.is_array()) fail("field '" + key + "' is not an array");
    return value;
  }
  /// An integer of [least, 2^31). `what()`: how errors call it.
  template <class What>
    requires std::is_invocable_r_v<std::string, const What&>
  [[nodiscard]] std::int64_t integer(json_view text, const What& what, std::int64_t least) const {
    if (text.is_object() || text.is_array() || text.is_string()) fail(what() + " is not an integer");
    const auto value = text.value();
    if (!value.is_number_integer()) fail(what() + " is not an integer");
    const bool too_large = value.is_number_unsigned() && value.template get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max();
    if (too_large || value.template get<std::int64_t>() < least || value.template get<std::int64_t>() > std::numeric_limits<std::int32_t>::max())
      fail(what() + " is " + value.dump() + ", it must be " + (least == 0 ? "at least 0" : "positive") + " and below 2^31");
    return value.template get<std::int64_t>();
  }
  [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t least) const {
    return integer(at(key), [&] { return "field '" + key + "'"; }, least);
  }

 private:
  static constexpr std::array<std::string_view, 16> names{"core_cnt", "xbar_size", "cell_precision", "constant_bytes", "weight_bits", "array_group_map",
                                                          "inputs_addresses", "inputs_sizes", "inputs_names", "inputs_shapes", "inputs_types",
                                                          "outputs_addresses", "outputs_sizes", "outputs_names", "outputs_shapes", "outputs_types"};
  std::string file_;
  memory_budget budget_;
  std::array<json_view, names.size()> values_;  ///< of the names; of equal names the last counts

  [[nodiscard]] json_view value_of(const std::string& key) const { return values_.at(static_cast<std::size_t>(std::find(names.begin(), names.end(), key) - names.begin())); }
};

/// `prefix`: "inputs" or "outputs". Addresses and sizes are required; names, shapes and element types are not.
[[nodiscard]] inline std::vector<tensor_region> read_regions(config_reader& config, const std::string& prefix) {
  const auto addresses = config.array(prefix + "_addresses"), sizes = config.array(prefix + "_sizes");
  const std::size_t count = addresses.size();
  if (count != sizes.size())
    config.fail("'" + prefix + "_addresses' has " + std::to_string(count) + " entries, '" + prefix + "_sizes' has " + std::to_string(sizes.size()));
  constexpr std::size_t most = std::size_t{1} << 16;
  if (count > most) throw error(error_code::capacity, "'" + prefix + "_addresses' has " + std::to_string(count) + " entries; " + std::to_string(most) + " are the most", config.file());
  const auto optional = [&](const char* suffix) {
    const std::string key = prefix + suffix;
    if (!config.has(key)) return false;
    if (const auto entries = config.array(key).size(); entries != count)
      config.fail("'" + key + "' has " + std::to_string(entries) + " entries, '" + prefix + "_addresses' has " + std::to_string(count));
    return true;
  };
  const bool names = optional("_names"), shapes = optional("_shapes"), types = optional("_types");
  config.budget().take(count, sizeof(tensor_region));
  std::vector<tensor_region> regions(count);
  /// Calls `read(region, entry, name of the entry)` for each entry of a list.
  const auto read = [&](const char* suffix, const auto& read_entry) {
    std::size_t k = 0;
    config.array(prefix + suffix).each_entry([&](json_view entry) {
      read_entry(regions[k], entry, [&, k] { return "'" + prefix + suffix + "[" + std::to_string(k) + "]'"; });
      ++k;
    });
  };
  const auto read_string = [&](std::string& to, json_view entry, const auto& what) {
    if (!entry.is_string()) config.fail(what() + " is not a string");
    config.budget().take(entry.text().size());
    to = entry.string();
  };
  read("_addresses", [&](tensor_region& region, json_view entry, const auto& what) { region.address = config.integer(entry, what, 0); });
  read("_sizes", [&](tensor_region& region, json_view entry, const auto& what) { region.size = config.integer(entry, what, 0); });
  if (names) read("_names", [&](tensor_region& region, json_view entry, const auto& what) { read_string(region.name, entry, what); });
  else
    for (std::size_t k = 0; k < count; ++k) regions[k].name = prefix.substr(0, prefix.size() - 1) + "_" + std::to_string(k);
  if (types) read("_types", [&](tensor_region& region, json_view entry, const auto& what) { read_string(region.element_type, entry, what); });
  if (shapes)
    read("_shapes", [&](tensor_region& region, json_view entry, const auto& what) {
      if (!entry.is_array()) config.fail(what() + " is not an array");
      const std::size_t rank = entry.size();
      config.budget().take(rank, sizeof(std::int64_t));
      region.sizes.reserve(rank);
      entry.each_entry([&](json_view size) { region.sizes.push_back(config.integer(size, [&] { return "a dimension of " + what(); }, 0)); });
    });
  return regions;
}

}  // namespace detail

/// Parses config.json; `file` is the place of errors. Unknown fields are ignored, whatever they contain.
///
/// Errors: malformed, naming the field, for a missing field, another type, a number out of range (each is below 2^31), lists of
/// different lengths, a core without its list in array_group_map or a list of a core that does not exist; nested too deeply.
/// Capacity, for more inputs or outputs than there may be, or more than the budget below. Memory, beside the text: what is kept, at most
/// three times the text and 1 MB.
[[nodiscard]] inline artifact_config parse_config(std::string_view text, std::string_view file) {
  detail::config_reader reader(text, file);
  artifact_config config;
  config.core_count = reader.integer("core_cnt", 1);
  const auto size = reader.array("xbar_size");
  if (size.size() != 2) reader.fail("field 'xbar_size' is not [rows, columns]");
  std::size_t side = 0;
  size.each_entry([&](json_view entry) {
    (side == 0 ? config.crossbar_rows : config.crossbar_columns) = reader.integer(entry, [&] { return "'xbar_size[" + std::to_string(side) + "]'"; }, 1);
    ++side;
  });
  config.cell_precision = reader.integer("cell_precision", 1);
  if (reader.has("constant_bytes")) config.constant_bytes = reader.integer("constant_bytes", 0);
  if (reader.has("weight_bits")) config.weight_bits = reader.integer("weight_bits", 1);

  const auto map = reader.at("array_group_map");
  if (!map.is_object()) reader.fail("field 'array_group_map' is not an object");
  const core_lists cores(map, config.core_count);
  std::size_t groups = 0;
  for (std::int64_t core = 0; core < config.core_count; ++core) {
    const auto list = cores.find(core);
    const std::string key = "core" + std::to_string(core);
    if (list.text().empty()) reader.fail("'array_group_map." + key + "' is missing: every core has a list, which may be empty");
    if (!list.is_array()) reader.fail("'array_group_map." + key + "' is not an array");
    std::size_t group = 0;
    list.each_entry([&](json_view crossbars) {
      static_cast<void>(reader.integer(crossbars, [&] { return "'array_group_map." + key + "[" + std::to_string(group) + "]'"; }, 1));
      ++group;
    });
    groups += group;
  }
  if (const auto* name = cores.stranger())
    reader.fail("'array_group_map." + name->substr(0, 40) + "' names no core: there are " + std::to_string(config.core_count));
  reader.budget().take(groups, sizeof(std::int32_t));
  reader.budget().take(static_cast<std::size_t>(config.core_count), 2 * sizeof(std::size_t));
  config.groups.reserve(static_cast<std::size_t>(config.core_count), groups);
  for (std::int64_t core = 0; core < config.core_count; ++core) {
    cores.find(core).each_entry([&](json_view crossbars) { config.groups.add(crossbars.value().get<std::int32_t>()); });
    config.groups.end_core();
  }

  config.inputs = detail::read_regions(reader, "inputs");
  config.outputs = detail::read_regions(reader, "outputs");
  return config;
}

}  // namespace raptor::sim
