#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/sim/program.hpp"
#include "raptor/support/error.hpp"
#include "raptor/support/json_extent.hpp"

/// config.json of an artifact directory. Source: ARTIFACTS.md.
namespace raptor::sim {

struct artifact_config {
  std::int64_t core_count = 0;
  std::int64_t crossbar_rows = 0;
  std::int64_t crossbar_columns = 0;  ///< cells; a weight takes mbiw / cell_precision of them
  std::int64_t cell_precision = 32;   ///< bits
  std::int64_t weight_bits = 0;       ///< of array groups that no instruction uses; 0: not recorded
  std::int64_t constant_bytes = -1;   ///< of memory.bin, from address 0; -1: not recorded
  std::vector<std::vector<std::int64_t>> groups;  ///< [core][array group]: crossbars
  std::vector<tensor_region> inputs;
  std::vector<tensor_region> outputs;
};

namespace detail {

/// Reads fields of one JSON object; every error names file and field.
class config_reader {
 public:
  config_reader(std::string_view text, std::string_view file) : file_(file) {
    check_json_extent(text, file_);
    try {
      root_ = nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception& e) {
      throw error(error_code::malformed, "not valid JSON: " + std::string(e.what()).substr(0, 300), file_);
    }
    if (!root_.is_object()) fail("the configuration is not a JSON object");
  }

  [[noreturn]] void fail(const std::string& message) const { throw error(error_code::malformed, message, file_); }

  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  [[nodiscard]] bool has(const std::string& key) const { return root_.contains(key); }
  [[nodiscard]] const nlohmann::json& at(const std::string& key) const {
    const auto found = root_.find(key);
    if (found == root_.end()) fail("field '" + key + "' is missing");
    return *found;
  }
  [[nodiscard]] const nlohmann::json& array(const std::string& key) const {
    const auto& value = at(key);
    if (!value.is_array()) fail("field '" + key + "' is not an array");
    return value;
  }
  /// An integer of [least, 2^31).
  [[nodiscard]] std::int64_t integer(const nlohmann::json& value, const std::string& what, std::int64_t least) const {
    if (!value.is_number_integer()) fail(what + " is not an integer");
    const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max();
    if (too_large || value.get<std::int64_t>() < least || value.get<std::int64_t>() > std::numeric_limits<std::int32_t>::max())
      fail(what + " is " + value.dump() + ", it must be " + (least == 0 ? "at least 0" : "positive") + " and below 2^31");
    return value.get<std::int64_t>();
  }
  [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t least) const {
    return integer(at(key), "field '" + key + "'", least);
  }

 private:
  std::string file_;
  nlohmann::json root_;
};

/// `prefix`: "inputs" or "outputs". Addresses and sizes are required; names, shapes and element types are not.
[[nodiscard]] inline std::vector<tensor_region> read_regions(const config_reader& config, const std::string& prefix) {
  const auto& addresses = config.array(prefix + "_addresses");
  const auto& sizes = config.array(prefix + "_sizes");
  if (addresses.size() != sizes.size())
    config.fail("'" + prefix + "_addresses' has " + std::to_string(addresses.size()) + " entries, '" + prefix + "_sizes' has " +
                std::to_string(sizes.size()));
  constexpr std::size_t most = std::size_t{1} << 16;
  if (addresses.size() > most) throw error(error_code::capacity, "'" + prefix + "_addresses' has " + std::to_string(addresses.size()) + " entries; " + std::to_string(most) + " are the most", config.file());
  const auto optional = [&](const char* suffix) -> const nlohmann::json* {
    const std::string key = prefix + suffix;
    if (!config.has(key)) return nullptr;
    const auto& list = config.array(key);
    if (list.size() != addresses.size())
      config.fail("'" + key + "' has " + std::to_string(list.size()) + " entries, '" + prefix + "_addresses' has " + std::to_string(addresses.size()));
    return &list;
  };
  const auto* names = optional("_names");
  const auto* shapes = optional("_shapes");
  const auto* types = optional("_types");
  std::vector<tensor_region> regions;
  for (std::size_t k = 0; k < addresses.size(); ++k) {
    const std::string index = "[" + std::to_string(k) + "]";
    tensor_region region;
    region.name = prefix.substr(0, prefix.size() - 1) + "_" + std::to_string(k);
    region.address = config.integer(addresses[k], "'" + prefix + "_addresses" + index + "'", 0);
    region.size = config.integer(sizes[k], "'" + prefix + "_sizes" + index + "'", 0);
    if (names) {
      if (!(*names)[k].is_string()) config.fail("'" + prefix + "_names" + index + "' is not a string");
      region.name = (*names)[k].get<std::string>();
    }
    if (types) {
      if (!(*types)[k].is_string()) config.fail("'" + prefix + "_types" + index + "' is not a string");
      region.element_type = (*types)[k].get<std::string>();
    }
    if (shapes) {
      if (!(*shapes)[k].is_array()) config.fail("'" + prefix + "_shapes" + index + "' is not an array");
      for (const auto& size : (*shapes)[k]) region.sizes.push_back(config.integer(size, "a dimension of '" + prefix + "_shapes" + index + "'", 0));
    }
    regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace detail

/// Parses config.json; `file` is the place of errors. Unknown fields are ignored.
///
/// Errors: malformed, naming the field, for a missing field, another type, a number out of range (each is below 2^31), lists of
/// different lengths, a core without its list in array_group_map or a list of a core that does not exist.
/// Capacity, for more values than json_extent.hpp allows. Nothing is allocated in proportion to a number of the file, only to its length.
[[nodiscard]] inline artifact_config parse_config(std::string_view text, std::string_view file) {
  const detail::config_reader reader(text, file);
  artifact_config config;
  config.core_count = reader.integer("core_cnt", 1);
  const auto& size = reader.array("xbar_size");
  if (size.size() != 2) reader.fail("field 'xbar_size' is not [rows, columns]");
  config.crossbar_rows = reader.integer(size[0], "'xbar_size[0]'", 1);
  config.crossbar_columns = reader.integer(size[1], "'xbar_size[1]'", 1);
  config.cell_precision = reader.integer("cell_precision", 1);
  if (reader.has("constant_bytes")) config.constant_bytes = reader.integer("constant_bytes", 0);
  if (reader.has("weight_bits")) config.weight_bits = reader.integer("weight_bits", 1);

  const auto& map = reader.at("array_group_map");
  if (!map.is_object()) reader.fail("field 'array_group_map' is not an object");
  for (std::int64_t core = 0; core < config.core_count; ++core) {
    const std::string key = "core" + std::to_string(core);
    const auto found = map.find(key);
    if (found == map.end()) reader.fail("'array_group_map." + key + "' is missing: every core has a list, which may be empty");
    if (!found->is_array()) reader.fail("'array_group_map." + key + "' is not an array");
    auto& groups = config.groups.emplace_back();
    for (const auto& crossbars : *found)
      groups.push_back(reader.integer(crossbars, "'array_group_map." + key + "[" + std::to_string(groups.size()) + "]'", 1));
  }
  if (map.size() != config.groups.size())
    for (const auto& [key, value] : map.items()) {
      std::int64_t number = -1;
      if (key.rfind("core", 0) == 0) std::from_chars(key.data() + 4, key.data() + key.size(), number);
      const bool known = number >= 0 && number < config.core_count && key == "core" + std::to_string(number);
      if (!known) reader.fail("'array_group_map." + key.substr(0, 40) + "' names no core: there are " + std::to_string(config.core_count));
    }

  config.inputs = detail::read_regions(reader, "inputs");
  config.outputs = detail::read_regions(reader, "outputs");
  return config;
}

}  // namespace raptor::sim
