#include "checker.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

namespace artifact_test {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::int64_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t b = 0; b < 4; ++b) word |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + b])) << (8 * b);
  return static_cast<std::int32_t>(word);
}

/// One row of the table of ARTIFACTS.md, "core_N.pim": which fields of the record have a meaning, and their names in the JSON form.
struct opcode_row {
  const char* name;
  char unit;  ///< 's' scalar, 'm' matrix, 'v' vector, 't' transfer
  bool rd, r1;
  const char *word0, *word1, *word2, *word3;  ///< "": unused
};
constexpr const char* select = "offset.offset_select";
constexpr const char* value = "offset.offset_value";
constexpr std::array<opcode_row, 33> rows{{
    {"nop", ' ', false, false, "", "", "", ""},
    {"sldi", 's', true, false, "imm", "", "", ""},
    {"sld", 's', true, true, "", "", value, ""},
    {"sadd", 's', true, true, "rs2", "", "", ""},
    {"ssub", 's', true, true, "rs2", "", "", ""},
    {"smul", 's', true, true, "rs2", "", "", ""},
    {"saddi", 's', true, true, "imm", "", "", ""},
    {"smuli", 's', true, true, "imm", "", "", ""},
    {"setbw", 'm', false, false, "", "ibiw", "obiw", ""},
    {"mvmul", 'm', true, true, "mbiw", "relu", "group", ""},
    {"vvadd", 'v', true, true, "rs2", select, value, "len"},
    {"vvsub", 'v', true, true, "rs2", select, value, "len"},
    {"vvmul", 'v', true, true, "rs2", select, value, "len"},
    {"vvdmul", 'v', true, true, "rs2", select, value, "len"},
    {"vvmax", 'v', true, true, "rs2", select, value, "len"},
    {"vvsll", 'v', true, true, "rs2", select, value, "len"},
    {"vvsra", 'v', true, true, "rs2", select, value, "len"},
    {"vavg", 'v', true, true, "rs2", select, value, "len"},
    {"vrelu", 'v', true, true, "", select, value, "len"},
    {"vtanh", 'v', true, true, "", select, value, "len"},
    {"vsigm", 'v', true, true, "", select, value, "len"},
    {"vsoftmax", 'v', true, true, "", select, value, "len"},
    {"vmv", 'v', true, true, "rs2", select, value, "len"},
    {"vrsu", 'v', true, true, "rs2", select, value, "len"},
    {"vrsl", 'v', true, true, "rs2", select, value, "len"},
    {"ld", 't', true, true, "", select, value, "size"},
    {"st", 't', true, true, "", select, value, "size"},
    {"lldi", 't', true, false, "imm", select, value, "len"},
    {"lmv", 't', true, true, "", select, value, "len"},
    {"send", 't', true, true, "core", select, value, "size"},
    {"recv", 't', true, false, "core", select, value, "size"},
    {"wait", 't', false, false, "", "event_register", "wait_value", ""},
    {"sync", 't', false, false, "core", "event_register", "", ""},
}};

struct record {
  std::size_t op = 0;
  std::int64_t rd = 0, r1 = 0, flags = 0;
  std::array<std::int64_t, 4> words{};
  [[nodiscard]] std::string name() const { return rows[op].name; }
};

class checker {
 public:
  checker(const fs::path& directory, const chip& expected) : directory_(directory), chip_(expected) {}

  std::vector<std::string> run() {
    if (!fs::is_regular_file(directory_ / "config.json")) return {"[config] config.json is missing"};
    config_ = json::parse(contents(directory_ / "config.json"), nullptr, false);
    if (!config_.is_object()) return {"[config] config.json is no object"};
    check_names();
    check_config();
    if (!found_.empty()) return found_;  // what follows relies on it
    check_weights();
    for (std::int64_t core = 0; core < chip_.cores; ++core) check_stream(core);
    check_pairs();
    return found_;
  }

 private:
  void broken(const std::string& rule, const std::string& what) { found_.push_back("[" + rule + "] " + what); }
  bool require(bool holds, const std::string& rule, const std::string& what) {
    if (!holds) broken(rule, what);
    return holds;
  }

  void check_names() {
    std::set<std::string> expected{"config.json", "memory.bin", "weights", "reports"};
    for (std::int64_t c = 0; c < chip_.cores; ++c) {
      const auto stem = "core_" + std::to_string(c);
      expected.insert({stem, stem + ".pim"});
      if (chip_.json) expected.insert(stem + ".json");
    }
    std::set<std::string> there;
    for (const auto& entry : fs::directory_iterator(directory_)) there.insert(entry.path().filename().string());
    there.erase("summary.json");
    for (const auto& name : expected) require(there.count(name) == 1, "names", name + " is missing");
    for (const auto& name : there) require(expected.count(name) == 1, "names", name + " does not belong there");
    for (const char* folder : {"weights", "reports"}) require(fs::is_directory(fs::symlink_status(directory_ / folder)), "names", std::string(folder) + " is no directory");
    for (const char* file : {"config.json", "memory.bin"}) require(fs::is_regular_file(fs::symlink_status(directory_ / file)), "names", std::string(file) + " is no file");
  }

  [[nodiscard]] bool is_integers(const json& list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), [](const json& x) { return x.is_number_integer(); });
  }

  void check_config() {
    require(config_["core_cnt"] == chip_.cores, "core_cnt", config_["core_cnt"].dump());
    require(config_["xbar_size"] == json{chip_.size, chip_.size}, "xbar_size", config_["xbar_size"].dump());
    require(config_["adc_count"] == chip_.adc_count, "adc_count", config_["adc_count"].dump());
    require(config_["cell_precision"] == chip_.cell_precision, "cell_precision", config_["cell_precision"].dump());
    require(config_["precision"].is_string(), "precision", "the precision is missing");

    auto& map = config_["array_group_map"];
    if (!require(map.is_object() && map.size() == static_cast<std::size_t>(chip_.cores), "array_group_map", "one list a core")) return;
    for (std::int64_t c = 0; c < chip_.cores; ++c) {
      const auto key = "core" + std::to_string(c);
      if (!require(map.contains(key) && is_integers(map[key]), "array_group_map", key)) continue;
      std::int64_t sum = 0;
      for (const auto& count : map[key]) {
        require(count.get<std::int64_t>() > 0, "array_group_map", key + " has a count that is not positive");
        sum += count.get<std::int64_t>();
      }
      require(sum <= chip_.crossbars, "array_group_map", key + " uses " + std::to_string(sum) + " crossbars");
    }

    memory_ = static_cast<std::int64_t>(fs::file_size(directory_ / "memory.bin"));
    std::vector<std::pair<std::int64_t, std::int64_t>> regions;
    for (const std::string kind : {"inputs", "outputs"}) {
      const auto &addresses = config_[kind + "_addresses"], &sizes = config_[kind + "_sizes"], &names = config_[kind + "_names"], &shapes = config_[kind + "_shapes"],
                 &types = config_[kind + "_types"];
      if (!require(is_integers(addresses) && is_integers(sizes) && names.is_array() && shapes.is_array() && types.is_array(), "ports", kind + " are incomplete")) continue;
      if (!require(sizes.size() == addresses.size() && names.size() == addresses.size() && shapes.size() == addresses.size() && types.size() == addresses.size(), "ports",
                   kind + " have lists of several lengths"))
        continue;
      require(!addresses.empty(), "ports", "no " + kind);
      for (std::size_t i = 0; i < addresses.size(); ++i) {
        const auto address = addresses[i].get<std::int64_t>(), size = sizes[i].get<std::int64_t>();
        require(address >= 0 && size >= 0 && address + size <= memory_, "ports", kind + " " + std::to_string(i) + " lies outside memory.bin");
        require(names[i].is_string() && types[i] == "float32" && is_integers(shapes[i]), "ports", kind + " " + std::to_string(i) + " is not described");
        std::int64_t elements = 1;
        for (const auto& n : shapes[i]) elements *= n.get<std::int64_t>();
        require(size == 4 * elements, "ports", kind + " " + std::to_string(i) + " has a size that is not its shape's");
        regions.emplace_back(address, address + size);
      }
    }
    std::sort(regions.begin(), regions.end());
    for (std::size_t i = 1; i < regions.size(); ++i) require(regions[i - 1].second <= regions[i].first, "ports", "inputs and outputs overlap");
  }

  void check_weights() {
    std::map<std::string, std::string> by_content;
    std::set<std::string> unused;
    for (const auto& entry : fs::directory_iterator(directory_ / "weights")) {
      const auto name = entry.path().filename().string();
      if (!require(fs::is_regular_file(entry.symlink_status()), "weights", name + " is no file")) continue;
      const auto [same, is_new] = by_content.emplace(contents(entry.path()), name);
      require(is_new, "weights", name + " and " + same->second + " have the same content");
      unused.insert(name);
    }
    for (std::int64_t c = 0; c < chip_.cores; ++c) {
      const auto folder = directory_ / ("core_" + std::to_string(c));
      const auto& counts = config_["array_group_map"]["core" + std::to_string(c)];
      std::set<std::string> there;
      for (const auto& entry : fs::directory_iterator(folder)) there.insert(entry.path().filename().string());
      require(there.size() == counts.size(), "links", folder.filename().string() + " has not one file a group");
      for (std::size_t g = 0; g < counts.size(); ++g) {
        const auto name = "group_" + std::to_string(g) + ".bin";
        const auto where = folder.filename().string() + "/" + name;
        if (!require(there.count(name) == 1 && fs::is_symlink(folder / name), "links", where + " is no symbolic link")) continue;
        const auto to = fs::read_symlink(folder / name);
        if (!require(to.is_relative() && to.parent_path() == fs::path("../weights") && fs::is_regular_file(folder / to), "links", where + " points to " + to.string())) continue;
        unused.erase(to.filename().string());
        const auto columns = counts[g].get<std::int64_t>() * chip_.size * chip_.cell_precision / chip_.weight_bits;
        require(static_cast<std::int64_t>(fs::file_size(folder / name)) == chip_.size * columns * 4, "weights", where + " has not crossbar rows x group columns x 4 bytes");
      }
    }
    for (const auto& name : unused) broken("weights", name + " belongs to no array group");
  }

  /// What is known of a register while a stream is walked: streams have no branches, so every value is.
  void check_stream(std::int64_t core) {
    const auto file = "core_" + std::to_string(core) + ".pim";
    const auto bytes = contents(directory_ / file);
    if (!require(bytes.size() >= 12 && bytes.compare(0, 4, "PIMB") == 0, "header", file + ": magic")) return;
    require(little_endian(bytes, 4) == 1, "header", file + ": version");
    const auto count = little_endian(bytes, 8);
    if (!require(static_cast<std::int64_t>(bytes.size()) == 12 + 20 * count, "header", file + ": size is not 12 + 20 x count")) return;
    std::vector<record> stream;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const std::size_t at = 12 + 20 * i;
      record r;
      r.op = static_cast<unsigned char>(bytes[at]);
      r.rd = static_cast<unsigned char>(bytes[at + 1]);
      r.r1 = static_cast<unsigned char>(bytes[at + 2]);
      r.flags = static_cast<unsigned char>(bytes[at + 3]);
      for (std::size_t w = 0; w < 4; ++w) r.words[w] = little_endian(bytes, at + 4 + 4 * w);
      if (!require(r.op < rows.size(), "opcode", file + ": record " + std::to_string(i))) return;
      stream.push_back(r);
    }
    if (chip_.json) check_json(core, stream);
    if (stream.empty()) return;
    require(stream.front().name() == "setbw" && stream.front().words[1] == 32 && stream.front().words[2] == 32, "setbw first", file);
    const char last = rows[stream.back().op].unit;
    require(last == 'm' || last == 'v' || last == 't', "last instruction", file + " ends with " + stream.back().name());
    std::array<std::int64_t, 32> registers{};
    for (std::size_t i = 0; i < stream.size(); ++i) check_record(core, stream[i], file + " record " + std::to_string(i) + " " + stream[i].name(), registers);
  }

  void check_record(std::int64_t core, const record& r, const std::string& where, std::array<std::int64_t, 32>& registers) {
    const auto& row = rows[r.op];
    const std::string name = row.name;
    const std::array<std::string_view, 4> fields{row.word0, row.word1, row.word2, row.word3};
    require(r.flags == 0, "flags", where);
    require((row.rd || r.rd == 0) && (row.r1 || r.r1 == 0 || name == "send"), "unused fields", where);
    std::int64_t length = 1, peer = -1;
    std::size_t second = 0;
    bool registers_exist = r.rd < 32 && r.r1 < 32;
    for (std::size_t w = 0; w < 4; ++w) {
      const auto word = r.words[w];
      if (fields[w].empty()) require(word == 0, "unused fields", where);
      if (fields[w] == select || fields[w] == value) require(word == 0, "offset 0", where);
      if (fields[w] == "len" || fields[w] == "size") length = word;
      if (fields[w] == "core") peer = word;
      if (fields[w] == "event_register") require(word >= 0 && word < 32, "event registers", where);
      if (fields[w] == "wait_value") require(word >= 1, "wait value", where);
      if (fields[w] == "rs2") registers_exist = registers_exist && word >= 0 && word < 32, second = static_cast<std::size_t>(word);
    }
    if (!require(registers_exist, "registers", where)) return;
    require(length > 0, "length", where);
    if (fields[0] == "core") require(peer >= 0 && peer < chip_.cores && (name == "sync" || peer != core), "peer core", where);
    for (const char* forbidden : {"nop", "sld", "sadd", "ssub", "smul"}) require(name != forbidden, "broken in the timing simulator", where);

    const auto rd = static_cast<std::size_t>(r.rd), r1 = static_cast<std::size_t>(r.r1);
    if (name == "sldi") registers[rd] = r.words[0];
    else if (name == "saddi") registers[rd] = static_cast<std::int32_t>(registers[r1] + r.words[0]);
    else if (name == "smuli") registers[rd] = static_cast<std::int32_t>(registers[r1] * r.words[0]);
    else if (name == "mvmul") {
      require(r.words[0] == chip_.weight_bits, "mbiw", where);
      require(r.words[1] == 0 || r.words[1] == 1, "relu", where);
      require(r.words[2] >= 0 && r.words[2] < static_cast<std::int64_t>(config_["array_group_map"]["core" + std::to_string(core)].size()), "array group", where);
    } else if (name == "ld" || name == "st") {
      require(rd != 31 && r1 != 31, "r31 in ld and st", where);
      const auto global = name == "ld" ? r1 : rd;
      if (require(global % 2 == 0 && registers[(global + 1) % 32] == 0, "even register for a global address", where))
        require(registers[global] >= 0 && registers[global] + length <= memory_, "global address", where);
    } else if (name == "send" || name == "recv") {
      if (name == "send") require(rd == r1, "send's register in rd and r1", where);
      (name == "send" ? sends_[{core, peer}] : receives_[{peer, core}]).push_back(length);
    } else if (name == "vvsll" || name == "vvsra") {
      broken("shifts of floats", where);
    }
    // Local addresses are non-negative.
    const bool local_rd = row.unit == 'v' || name == "mvmul" || name == "ld" || name == "lldi" || name == "lmv" || name == "recv";
    const bool local_r1 = row.unit == 'v' || name == "mvmul" || name == "st" || name == "lmv" || name == "send";
    const bool local_r2 = fields[0] == "rs2" && row.unit == 'v' && name != "vavg" && name != "vmv" && name != "vrsu" && name != "vrsl";
    require((!local_rd || registers[rd] >= 0) && (!local_r1 || registers[r1] >= 0) && (!local_r2 || registers[second] >= 0), "local address", where);
    if (name == "lmv") require(registers[rd] + length <= registers[r1] || registers[r1] + length <= registers[rd], "overlap in lmv", where);
  }

  void check_json(std::int64_t core, const std::vector<record>& stream) {
    const auto file = "core_" + std::to_string(core) + ".json";
    const auto list = json::parse(contents(directory_ / file), nullptr, false);
    if (!require(list.is_array() && list.size() == stream.size(), "JSON form", file + " has not one object an instruction")) return;
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const auto& r = stream[i];
      const auto& row = rows[r.op];
      json expected{{"op", row.name}};
      if (row.rd) expected["rd"] = r.rd;
      if (row.r1) expected["rs1"] = r.r1;
      const std::array<std::string, 4> fields{row.word0, row.word1, row.word2, row.word3};
      for (std::size_t w = 0; w < 4; ++w) {
        if (fields[w].empty()) continue;
        const auto dot = fields[w].find('.');
        if (dot == std::string::npos) expected[fields[w]] = r.words[w];
        else expected[fields[w].substr(0, dot)][fields[w].substr(dot + 1)] = r.words[w];
      }
      if (!require(list[i] == expected, "JSON form", file + " object " + std::to_string(i) + ": " + list[i].dump() + ", not " + expected.dump())) return;
    }
  }

  /// The n-th send from a to b meets the n-th recv at b from a.
  void check_pairs() {
    for (const auto& [pair, sizes] : sends_)
      require(receives_[pair] == sizes, "send and recv", "from core " + std::to_string(pair.first) + " to core " + std::to_string(pair.second));
    for (const auto& [pair, sizes] : receives_)
      require(sizes.empty() || sends_.count(pair) == 1, "send and recv", "core " + std::to_string(pair.second) + " receives what core " + std::to_string(pair.first) + " never sends");
  }

  fs::path directory_;
  chip chip_;
  json config_;
  std::int64_t memory_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> sends_, receives_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> broken_rules(const std::filesystem::path& directory, const chip& expected) { return checker(directory, expected).run(); }

}  // namespace artifact_test
