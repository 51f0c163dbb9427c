#include "tools/write.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include "raptor/communication/text.hpp"
#include "raptor/emit/bound.hpp"
#include "raptor/program/text.hpp"

namespace raptor::tools {

namespace {

/// A directory that holds one text file, and constants.bin where the text refers to constants by number.
void write_text_directory(const std::filesystem::path& directory, const std::string& file, std::string_view text, std::span<const float> constants = {}) {
  const auto replaceable = [&](const std::filesystem::path& path) { return std::filesystem::is_regular_file(path / file); };
  emit::atomic_directory out(directory, replaceable, ("directory with " + file).c_str());
  emit::write_file(out.path() / file, text);
  if (!constants.empty()) emit::write_file(out.path() / "constants.bin", std::as_bytes(constants));
  out.commit();
}

}  // namespace

const char* name_of(stage s) {
  constexpr const char* names[] = {"planned", "lowered", "merged", "scheduled", "realized", "bound", "image"};
  return names[static_cast<std::size_t>(s)];
}

std::string text_of(stage s, const compilation& c, const model::graph& model) {
  switch (s) {
    case stage::planned: {
      std::string text = "layout plan, " + std::to_string(c.plan.rounds) + " rounds\n";
      for (model::vertex v = 0; v < model.node_count(); ++v) {
        text += model.at(v).from.describe() + ":";
        for (const auto operand : c.plan.chosen[v].operands) text += std::string(" ") + layout::name(operand);
        text += std::string(" -> ") + layout::name(c.plan.chosen[v].result) + "\n";
      }
      return text;
    }
    case stage::lowered: return lowering::to_text(c.lowered.graph).text;
    case stage::merged: return lowering::to_text(c.computes).text;
    case stage::scheduled: return communication::to_text(c.computes, c.schedule).text;
    case stage::realized: return program::to_text(c.realized).text;
    case stage::bound: return program::to_text(c.image.bound).text;
    case stage::image: {
      std::string text;
      for (std::size_t b = 0; b < c.image.addresses.size(); ++b) {
        const auto& buffer = c.image.bound.buffers[b];
        text += std::to_string(c.image.addresses[b]) + " core " + std::to_string(buffer.core) + " elements " + std::to_string(buffer.elements) + " " + buffer.name + "\n";
      }
      return text;
    }
  }
  return {};
}

void write_spatial(const compilation& c, const std::filesystem::path& directory) {
  write_text_directory(directory, "spatial.txt", communication::to_text(c.computes, c.schedule).text);
}
void write_program(const compilation& c, const std::filesystem::path& directory) {
  const auto form = program::to_text(c.realized);
  write_text_directory(directory, "program.txt", form.text, form.constants);
}
void write_bound(const compilation& c, const std::filesystem::path& directory, const std::vector<emit::extra_file>& extra) {
  emit::write_bound(c.image.bound, directory, extra);
}
emit::artifact_summary write_artifact(const memory::image& image, const std::filesystem::path& directory, const emit::artifact_options& options) {
  return emit::write_artifact(image, directory, options);
}

bound_input read_bound(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  bound_input result{emit::read_bound(path), {}};
  const fs::path passed = (fs::is_directory(path) ? path : path.parent_path()) / "pass";
  std::error_code code;
  if (!fs::is_directory(passed, code)) return result;
  for (const auto& entry : fs::recursive_directory_iterator(passed)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    result.extra.push_back({fs::relative(entry.path(), passed), {std::istreambuf_iterator<char>(in), {}}});
    if (in.bad()) throw error(error_code::io, "the file cannot be read", entry.path().string());
  }
  std::sort(result.extra.begin(), result.extra.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return result;
}

}  // namespace raptor::tools
