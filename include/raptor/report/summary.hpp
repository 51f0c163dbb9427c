#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"
#include "raptor/memory/plan.hpp"
#include "raptor/report/bounds.hpp"
#include "raptor/schedule/copies.hpp"
#include "raptor/schedule/schedule.hpp"

/// summary.json of the artifact directory (CLI, "Common to all tools").
namespace raptor::report {

/// 16 hexadecimal digits that tell contents apart (FNV-1a of 64 bits; not cryptographic). Cost: linear.
[[nodiscard]] inline std::string content_hash(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[15 - i] = "0123456789abcdef"[hash >> (4 * i) & 0xfu];
  return text;
}

/// What the tool knows beside the stage values.
struct summary_header {
  std::string tool, version;
  std::string model;               ///< name of the file or network
  std::string model_hash;          ///< of the file's bytes
  std::string configuration_hash;  ///< of the hardware configuration; empty without one
  std::vector<std::pair<std::string, std::string>> options;  ///< as given, in a fixed order
};

/// The summary as JSON text, keys in a fixed order, no time of day and no path: equal inputs give equal bytes.
///
/// - `operators`: a row a compute: name, operator, strategy, lanes, tiles, copies, cores, crossbars (of one copy), predicted start,
///   finish and busy time in picoseconds
/// - `bounds`: every lower bound in picoseconds, the one that binds whatever the placement, and how many times it the prediction is; the same in
///   this placement; what the interval between inputs is at least
/// with_memory adds `memory` once there is an image.
/// Errors: none for any text (bytes that are no UTF-8 are replaced). Cost: O(computes + tiles · log + cores).
[[nodiscard]] inline std::string summary(const summary_header& header, const lowering::compute_graph& g, const schedule::schedule& s,
                                         const program::geometry& chip, const bounds& b) {
  using json = nlohmann::ordered_json;
  json root{{"tool", header.tool}, {"version", header.version}, {"model", {{"name", header.model}, {"hash", header.model_hash}}}};
  root["configuration"] = header.configuration_hash.empty() ? json(nullptr) : json{{"hash", header.configuration_hash}};
  root["options"] = json::object();
  for (const auto& [name, value] : header.options) root["options"][name] = value;
  root["chip"] = {{"cores", chip.core_count},           {"crossbars_per_core", chip.crossbars_per_core}, {"crossbar_rows", chip.crossbar_rows},
                  {"weight_columns", chip.weight_columns}, {"element_bits", chip.element_bits}};

  std::int64_t crossbars_used = 0;
  json operators = json::array();
  for (lowering::vertex v = 0; v < g.size(); ++v) {
    const auto& c = g.at(v);
    const auto& tiles = s.graph.of_compute.at(v);
    std::set<std::uint32_t> copies, cores;
    schedule::picoseconds start = 0, finish = 0, busy = 0;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const auto& p = s.place[tiles[i]];
      copies.insert(p.copy), cores.insert(p.core);
      start = i == 0 ? p.start : std::min(start, p.start), finish = std::max(finish, p.finish);
      busy += p.finish - p.start;
    }
    const auto crossbars = schedule::crossbars_of(c, chip);
    crossbars_used += crossbars * static_cast<std::int64_t>(cores.size());
    json row{{"name", c.name}, {"operator", c.op}, {"strategy", c.strategy}};
    if (c.node != lowering::compute{}.node) row["node"] = c.node;
    row["lanes"] = c.lanes, row["tiles"] = tiles.size(), row["copies"] = copies.size(), row["cores"] = cores, row["crossbars"] = crossbars;
    row["start_ps"] = start, row["finish_ps"] = finish, row["busy_ps"] = busy;
    operators.push_back(std::move(row));
  }
  root["operators"] = std::move(operators);
  root["crossbars"] = {{"used", crossbars_used}, {"available", chip.core_count * chip.crossbars_per_core}};
  root["tiles"] = s.graph.tiles.size();
  root["predicted_ps"] = s.predicted;

  json least = json::object();
  for (const auto& x : b.all) least[x.resource] = x.least;
  root["bounds"] = {{"least_ps", std::move(least)}};
  if (!b.all.empty()) {
    root["bounds"]["binding"] = b.largest().resource;
    root["bounds"]["predicted_over_bound"] = ratio(b.predicted, b.largest().least);
    root["bounds"]["in_placement"] = {{"binding", b.in_placement().resource}, {"predicted_over_bound", ratio(b.predicted, b.in_placement().least)}};
    root["bounds"]["between_inputs"] = {{"binding", b.of_interval().resource}, {"least_ps", b.of_interval().least}};
  }
  return root.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

/// A summary with `memory`: bytes of each core that is used and of global memory. It is a step of its own because emission may
/// run alone, on a bound program whose summary was written earlier. Errors: malformed, where the text is no JSON object.
[[nodiscard]] inline std::string with_memory(const std::string& summary, const memory::image& image) {
  using json = nlohmann::ordered_json;
  json root = json::parse(summary, nullptr, false);
  if (!root.is_object()) throw error(error_code::malformed, "the summary is no JSON object", "summary.json");
  json cores = json::array();
  for (std::size_t c = 0; c < image.cores.size(); ++c) {
    const auto& u = image.cores[c];
    if (u.buffers == 0 && u.views == 0 && u.crossbars == 0) continue;
    cores.push_back({{"core", c}, {"bytes", u.bytes}, {"peak", u.peak}, {"sum", u.total}, {"buffers", u.buffers}, {"views", u.views}, {"crossbars", u.crossbars}});
  }
  root["memory"] = {{"global_bytes", image.global_bytes}, {"constant_bytes", image.constant_bytes}, {"cores", std::move(cores)}};
  return root.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace raptor::report
