// What raptor-compile leaves on the disk: the same bytes each time, by both ways, readable again.
#include "support.hpp"

#include <set>

#include "raptor/isa/binary.hpp"
#include "raptor/isa/table.hpp"
#include "tools/report.hpp"
#include "tools/write.hpp"

#include <nlohmann/json.hpp>

using namespace raptor;
using namespace system_test;
namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
/// Every file and link of a directory: relative path → contents, or where the link points.
std::map<std::string, std::string> snapshot(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const auto name = fs::relative(entry.path(), directory).string();
    if (entry.is_symlink()) files[name] = "-> " + fs::read_symlink(entry.path()).string();
    else if (entry.is_regular_file()) files[name] = contents(entry.path());
  }
  return files;
}

std::vector<emit::extra_file> reports(const tools::loaded_model& m, const compilation& c, const tools::compile_options& options) {
  tools::report_options wanted;
  wanted.dataflow = "all";
  const auto chip = tools::make_target(options);
  return tools::make_reports(c, m.canonical, chip, options, wanted, tools::bounds_of(c, m.canonical, chip));
}
void write_artifact(const tools::loaded_model& m, const tools::compile_options& options, const fs::path& directory, bool json = false) {
  const auto c = compile(m, options);
  emit::artifact_options out;
  out.json = json;
  out.extra = reports(m, c, options);
  tools::complete_reports(out.extra, c.image, true);
  static_cast<void>(tools::write_artifact(c.image, directory, out));
}

}  // namespace

TEST_CASE("two compiles of one model are byte-identical") {
  for (const char* name : {"demo", "googlenet"}) {
    CAPTURE(name);
    const temporary_folder folder;
    const auto options = chip(144, 64, 128);
    write_artifact(load_network(name, 64), options, folder / "a");
    write_artifact(load_network(name, 64), options, folder / "b");
    const auto a = snapshot(folder / "a"), b = snapshot(folder / "b");
    REQUIRE(a.size() > 150);
    CHECK(a == b);
  }
}

TEST_CASE("a weight that is also a graph input, as IR version 3 lists it, changes no byte of the artifact") {
  const auto network = [](std::int64_t ir_version, bool listed) {
    onnx_io::model_builder b({.graph_name = "listed", .opset = 9, .ir_version = ir_version});
    const auto x = b.input("x", {1, 3, 8, 8});
    if (listed) b.input("w", {4, 3, 3, 3});
    b.node("Conv", {x, b.he_uniform("w", {4, 3, 3, 3})}, "c");
    b.node("Relu", {"c"}, "y");
    b.output("y", {1, 4, 6, 6});
    return load(std::move(b).take());
  };
  const temporary_folder folder;
  const auto options = chip(4, 16, 32);
  write_artifact(network(8, false), options, folder / "plain");
  write_artifact(network(8, true), options, folder / "listed");
  write_artifact(network(3, true), options, folder / "old");
  const auto plain = snapshot(folder / "plain");
  CHECK(network(3, true).imported.inputs.size() == 1);
  CHECK(plain.size() > 4);
  CHECK(snapshot(folder / "listed") == plain);
  CHECK(snapshot(folder / "old") == plain);
}

TEST_CASE("the bound program on the disk gives the same artifact as the direct way") {
  for (const char* name : {"demo", "shufflenet", "resnet18"}) {
    CAPTURE(name);
    const temporary_folder folder;
    const auto options = chip(144, 64, 128);
    const auto m = load_network(name, 64);
    write_artifact(m, options, folder / "direct");

    auto early = options;
    early.last = stage::bound;
    const auto c = compile(m, early);
    tools::write_bound(c, folder / "bound", reports(m, c, options));
    auto input = tools::read_bound(folder / "bound");
    tools::verify_program(input.bound);
    const auto image = memory::plan(std::move(input.bound));
    emit::artifact_options out;
    out.extra = std::move(input.extra);
    tools::complete_reports(out.extra, image, true);
    static_cast<void>(tools::write_artifact(image, folder / "later", out));
    CHECK(snapshot(folder / "direct") == snapshot(folder / "later"));
  }
}

TEST_CASE("the artifact directory has the shape that pimsim-nn reads") {
  const temporary_folder folder;
  const auto options = chip(20, 32, 64);
  for (const char* name : {"tiny", "demo", "lenet5"}) {
    CAPTURE(name);
    const fs::path directory = folder / name;
    write_artifact(load_network(name, 0), options, directory, true);
    const auto config = nlohmann::json::parse(contents(directory / "config.json"));
    CHECK(config["core_cnt"] == 20);
    CHECK(config["xbar_size"] == std::vector<int>{64, 64});
    CHECK(config["adc_count"] == 16);
    CHECK(config["cell_precision"] == 32);
    for (const char* key : {"inputs_addresses", "inputs_sizes", "outputs_addresses", "outputs_sizes"}) CHECK(config[key].is_array());
    CHECK(config["inputs_addresses"].size() == config["inputs_sizes"].size());
    const auto memory = static_cast<std::int64_t>(fs::file_size(directory / "memory.bin"));
    for (const char* kind : {"inputs", "outputs"})
      for (std::size_t i = 0; i < config[std::string(kind) + "_sizes"].size(); ++i)
        CHECK(config[std::string(kind) + "_addresses"][i].get<std::int64_t>() + config[std::string(kind) + "_sizes"][i].get<std::int64_t>() <= memory);

    REQUIRE(config["array_group_map"].size() == 20);
    for (std::size_t core = 0; core < 20; ++core) {
      CAPTURE(core);
      const std::string id = std::to_string(core);
      const auto& groups = config["array_group_map"]["core" + id];
      std::int64_t crossbars = 0;
      for (std::size_t g = 0; g < groups.size(); ++g) {
        CHECK(groups[g].get<std::int64_t>() > 0);
        crossbars += groups[g].get<std::int64_t>();
        const fs::path link = directory / ("core_" + id) / ("group_" + std::to_string(g) + ".bin");
        REQUIRE(fs::is_symlink(link));
        CHECK(fs::read_symlink(link).is_relative());
        CHECK(fs::read_symlink(link).parent_path() == "../weights");
        CHECK(fs::file_size(link) == static_cast<std::uintmax_t>(64 * groups[g].get<std::int64_t>() * 64 * 4));
      }
      CHECK(crossbars <= 32);

      const auto bytes = contents(directory / ("core_" + id + ".pim"));
      const auto stream = isa::decode(std::as_bytes(std::span(bytes)), "core");
      CHECK(bytes.size() == 12 + 20 * stream.size());
      CHECK(nlohmann::json::parse(contents(directory / ("core_" + id + ".json"))).size() == stream.size());
      if (stream.empty()) continue;
      CHECK(stream.front().op == isa::opcode::setbw);
      const auto last = isa::info(stream.back().op).unit;
      CHECK((last == isa::unit::matrix || last == isa::unit::vector || last == isa::unit::transfer));
      bool clean = true;
      for (const auto& i : stream) {
        using isa::opcode;
        clean = clean && i.op != opcode::nop && i.op != opcode::sadd && i.op != opcode::ssub && i.op != opcode::smul && i.op != opcode::sld;
        clean = clean && i.rd < 32 && i.r1 < 32;
        const bool global = i.op == opcode::ld || i.op == opcode::st;
        if (global) clean = clean && i.rd != 31 && i.r1 != 31 && (i.op == opcode::ld ? i.r1 : i.rd) % 2 == 0;
        const auto kind = isa::info(i.op).unit;
        if (kind == isa::unit::vector || global) clean = clean && i.word1 == 0 && i.word2 == 0;
        if (i.op == opcode::mvmul) clean = clean && i.word0 == 32 && i.word2 >= 0 && i.word2 < static_cast<std::int32_t>(groups.size());
        if (i.op == opcode::send) clean = clean && i.rd == i.r1 && i.word0 >= 0 && i.word0 < 20;
      }
      CHECK(clean);
    }
  }
}

TEST_CASE("a directory that is no artifact is not overwritten, and a failure leaves nothing") {
  const temporary_folder folder;
  const auto m = load_network("tiny", 0);
  const auto c = compile(m, chip(4, 16, 64));
  fs::create_directory(folder / "precious");
  std::ofstream(folder / "precious" / "thesis.txt") << "text";
  CHECK_THROWS_AS(static_cast<void>(tools::write_artifact(c.image, folder / "precious", {})), error);
  CHECK(snapshot(folder / "precious") == std::map<std::string, std::string>{{"thesis.txt", "text"}});

  emit::artifact_options broken;
  broken.extra.push_back({"../outside.txt", "x"});
  CHECK_THROWS_AS(static_cast<void>(tools::write_artifact(c.image, folder / "new", broken)), error);
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder / "")) left.insert(entry.path().filename().string());
  CHECK(left == std::set<std::string>{"precious"});
}
