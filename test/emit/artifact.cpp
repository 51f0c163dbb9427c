#include "raptor/emit/artifact.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "../program/support.hpp"
#include "execute.hpp"
#include "raptor/emit/bound.hpp"
#include "raptor/isa/json.hpp"
#include "raptor/program/binding.hpp"
#include "raptor/program/equality.hpp"
#include "raptor/report/memory.hpp"
#include "raptor/sim/artifact.hpp"

using namespace raptor;
using namespace raptor::test;
namespace fs = std::filesystem;

namespace {

struct scratch {
  fs::path path;
  scratch() {
    static int number = 0;
    path = fs::temp_directory_path() / ("raptor_emit_" + std::to_string(std::random_device{}()) + "_" + std::to_string(number++));
    fs::create_directories(path);
  }
  ~scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Every file with its bytes, links with where they point.
std::map<std::string, std::string> contents(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const auto name = fs::relative(entry.path().parent_path(), directory) / entry.path().filename();
    if (entry.is_symlink()) files[name.string()] = "-> " + fs::read_symlink(entry.path()).string();
    else if (entry.is_regular_file()) files[name.string()] = read(entry.path());
  }
  return files;
}

memory::image image_of(std::uint32_t seed) { return memory::plan(program::bind(random_program(seed).get())); }

template <class F>
std::string message(const F& f) {
  try {
    f();
  } catch (const error& e) {
    return std::string(name(e.code())) + ": " + e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the directory has everything that ARTIFACTS.md lists, and executes") {
  scratch temporary;
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    CAPTURE(seed);
    random_program random(seed);
    const auto planned = memory::plan(program::bind(random.get()));
    const auto out = temporary.path / "out";
    emit::artifact_options options;
    options.json = seed % 2 == 0;
    options.extra.push_back({"reports/memory_report.txt", report::memory_report(planned)});
    options.extra.push_back({"summary.json", "{}\n"});
    const auto summary = emit::write_artifact(planned, out, options);
    const auto files = contents(out);
    CHECK(files.at("./config.json").find("\"core_cnt\": 3") != std::string::npos);
    CHECK(files.at("./summary.json") == "{}\n");
    CHECK(files.at("reports/memory_report.txt").find("memory of test, bytes") == 0);
    CHECK(static_cast<std::int64_t>(files.at("./memory.bin").size()) == planned.global_bytes);
    // Cores 1 and 2 share the content of their second group.
    CHECK(files.at("core_1/group_1.bin") == files.at("core_2/group_1.bin"));
    CHECK(files.at("core_1/group_0.bin") != files.at("core_2/group_0.bin"));
    CHECK(summary.contents == 4);
    CHECK(files.at("weights/w00000.bin").size() == 8 * 16 * 4);
    const auto built = emit::build(planned);
    for (std::size_t c = 0; c < 3; ++c) {
      const std::string stem = "./core_" + std::to_string(c);
      const auto pim = files.at(stem + ".pim");
      CHECK(isa::decode(std::as_bytes(std::span(pim)), "x") == built.streams[c]);
      CHECK(static_cast<std::int64_t>(built.streams[c].size()) == summary.instructions[c]);
      CHECK(files.count(stem + ".json") == (options.json ? 1 : 0));
      if (options.json) CHECK(isa::parse_json(files.at(stem + ".json"), "x") == built.streams[c]);
    }
    const auto inputs = random.inputs();
    CHECK(execute(sim::load_artifact(out), inputs) == interpret(random.get(), inputs));
  }
}

TEST_CASE("empty cores have empty streams, lists and no weights") {
  scratch temporary;
  auto p = empty_program(3);
  const auto b = add_buffer(p, 1, 8);
  add(p, 1, fill({b, 0}, 0.0f, 8));
  emit::write_artifact(memory::plan(p), temporary.path / "out");
  const auto files = contents(temporary.path / "out");
  CHECK(files.at("./core_0.pim").size() == 12);
  CHECK(files.at("./core_2.pim").size() == 12);
  CHECK(files.at("./core_1.pim").size() == 12 + 3 * 20);
  CHECK(files.at("./config.json").find("\"core2\": []") != std::string::npos);
  CHECK(files.size() == 6);
  CHECK(sim::load_artifact(temporary.path / "out").cores.size() == 3);
}

TEST_CASE("the same image gives the same bytes, an old artifact is replaced as a whole") {
  scratch temporary;
  const auto one = temporary.path / "one", two = temporary.path / "two";
  emit::artifact_options with_json;
  with_json.json = true;
  emit::write_artifact(image_of(3), one, with_json);
  emit::write_artifact(image_of(4), two);
  emit::write_artifact(image_of(3), two / "", with_json);
  CHECK(contents(one) == contents(two));
  emit::write_artifact(image_of(3), two);  // no core_N.json of the old one stays
  CHECK(contents(two).count("./core_0.json") == 0);
  CHECK(std::distance(fs::directory_iterator(temporary.path), {}) == 2);  // nothing beside them
}

TEST_CASE("nothing else is overwritten, and a failure leaves nothing") {
  scratch temporary;
  const auto planned = image_of(3);
  const auto out = temporary.path / "out";
  SUBCASE("a directory with something else") {
    fs::create_directories(out);
    std::ofstream(out / "thesis.tex") << "years";
    CHECK(message([&] { emit::write_artifact(planned, out); }) == "io: exists and is no artifact directory, it is not overwritten");
    CHECK(read(out / "thesis.tex") == "years");
    CHECK(contents(temporary.path).size() == 1);
  }
  SUBCASE("a file") {
    std::ofstream(out) << "years";
    CHECK(message([&] { emit::write_artifact(planned, out); }) == "io: exists and is no artifact directory, it is not overwritten");
    CHECK(read(out) == "years");
  }
  SUBCASE("a link to somewhere else") {
    fs::create_directories(temporary.path / "real");
    fs::create_directory_symlink(temporary.path / "real", out);
    CHECK(message([&] { emit::write_artifact(planned, out); }) == "io: exists and is no artifact directory, it is not overwritten");
  }
  SUBCASE("an empty directory is fine") {
    fs::create_directories(out);
    CHECK(message([&] { emit::write_artifact(planned, out); }).empty());
    CHECK(emit::is_artifact(out));
  }
  SUBCASE("a program that cannot be emitted") {
    emit::write_artifact(planned, out);
    const auto before = contents(out);
    auto wrong = planned;
    wrong.bound.cores[2].body.push_back({fill({0, 99999}, 0.0f, 1), program::none});
    CHECK(message([&] { emit::write_artifact(wrong, out); }).find("malformed: lldi") == 0);
    CHECK(contents(out) == before);
    CHECK(std::distance(fs::directory_iterator(temporary.path), {}) == 1);
    CHECK(message([&] { emit::write_artifact(wrong, temporary.path / "new"); }).find("malformed: lldi") == 0);
    CHECK(std::distance(fs::directory_iterator(temporary.path), {}) == 1);
  }
  SUBCASE("a further file outside") {
    emit::artifact_options options;
    options.extra.push_back({"../escape.txt", "x"});
    CHECK(message([&] { emit::write_artifact(planned, out, options); }).find("internal: a further file outside") == 0);
    CHECK(fs::is_empty(temporary.path));
  }
  SUBCASE("cells that do not hold whole weights") {
    auto odd = planned;
    odd.bound.chip.cell_bits = 31;
    CHECK(message([&] { emit::write_artifact(odd, out); }).find("unsupported: a crossbar row of 8 cells of 31 bits") == 0);
    CHECK(fs::is_empty(temporary.path));
  }
  SUBCASE("too few crossbars") {
    auto small = planned;
    small.bound.chip.crossbars_per_core = 3;
    CHECK(message([&] { emit::write_artifact(small, out); }) == "capacity: core 1: 4 crossbars needed, 3 available");
    CHECK(fs::is_empty(temporary.path));
  }
}

TEST_CASE("a bound program read back gives the same artifact") {
  scratch temporary;
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    auto p = program::bind(random_program(seed).get());
    // A weight matrix gathered from two blocks, one of them transposed, and one that no core holds.
    auto& m = p.weights[0];
    m.sources.push_back(m.sources[0]);
    m.blocks = {{0, 0, 0, 3, 10, 0, 10, 1}, {1, 3, 2, 3, 5, 1, 1, 4}};
    p.weights.insert(p.weights.begin() + 1, m);
    for (auto& core : p.cores)
      for (auto& group : core.groups) group += group >= 1;
    emit::write_bound(p, temporary.path / "bound");
    const auto again = emit::read_bound(temporary.path / "bound");
    CHECK(program::same_structure(again, p));
    CHECK(program::same_structure(emit::read_bound(temporary.path / "bound" / "bound.txt"), p));
    emit::write_artifact(memory::plan(p), temporary.path / "direct");
    emit::write_artifact(memory::plan(again), temporary.path / "read");
    CHECK(contents(temporary.path / "direct") == contents(temporary.path / "read"));
    emit::write_bound(again, temporary.path / "bound2");
    CHECK(contents(temporary.path / "bound2") == contents(temporary.path / "bound"));
  }
  CHECK(std::distance(fs::directory_iterator(temporary.path), {}) == 4);
}

TEST_CASE("a bound program that was tampered with is refused") {
  scratch temporary;
  const auto out = temporary.path / "bound";
  emit::write_bound(program::bind(random_program(2).get()), out);
  const auto replace = [&](const std::string& what, const std::string& with) {
    auto text = read(out / "bound.txt");
    const auto at = text.find(what);
    REQUIRE(at != text.npos);
    text.replace(at, what.size(), with);
    std::ofstream(out / "bound.txt", std::ios::binary) << text;
    return message([&] { static_cast<void>(emit::read_bound(out)); });
  };
  SUBCASE("weights elsewhere") { CHECK(replace("\"weights/w00000.bin\"", "\"../secret.bin\"") == "malformed: a weight file outside the directory: ../secret.bin"); }
  SUBCASE("weights at an absolute path") { CHECK(replace("\"weights/w00000.bin\"", "\"/etc/passwd\"") == "malformed: a weight file outside the directory: /etc/passwd"); }
  SUBCASE("weights missing") { CHECK(replace("\"weights/w00000.bin\"", "\"weights/none.bin\"") == "io: the file does not exist"); }
  SUBCASE("weights of another size") { CHECK(replace("rows 6 columns 10", "rows 6 columns 9") == "malformed: the weights have 60 elements, but 6 rows x 9 columns make 54"); }
  SUBCASE("constants missing") {
    fs::resize_file(out / "constants.bin", 8);
    CHECK(message([&] { static_cast<void>(emit::read_bound(out)); }).find("malformed: constants ") == 0);
  }
  SUBCASE("constants cut within a float") {
    fs::resize_file(out / "constants.bin", 7);
    CHECK(message([&] { static_cast<void>(emit::read_bound(out)); }) == "malformed: the file has 7 bytes, not a multiple of 4");
  }
  SUBCASE("no directory") { CHECK(message([&] { static_cast<void>(emit::read_bound(temporary.path / "nothing")); }) == "io: the file does not exist"); }
}

TEST_CASE("weight matrices are made of their blocks, and equal contents are one") {
  lowering::weight_matrix m;
  m.rows = 3, m.columns = 4;
  m.sources.push_back(make_constant({1, 2, 3, 4, 5, 6}));
  m.blocks.push_back({0, 0, 0, 2, 3, 0, 3, 1});
  m.blocks.push_back({0, 2, 1, 1, 3, 5, 0, -2});
  CHECK(emit::materialize(m, 4, 5) == std::vector<float>{1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 0, 6, 4, 2, 0, 0, 0, 0, 0, 0});
  auto wrong = m;
  wrong.blocks[0].columns = 5;
  CHECK(message([&] { static_cast<void>(emit::materialize(wrong, 4, 5)); }) == "malformed: a weight block outside its matrix");
  wrong = m;
  wrong.blocks[0].row_stride = 4;
  CHECK(message([&] { static_cast<void>(emit::materialize(wrong, 4, 5)); }) == "malformed: a weight block outside its constant");
  CHECK(message([&] { static_cast<void>(emit::materialize(m, 2, 5)); }).find("malformed: weights of 3 x 4") == 0);
  CHECK(message([&] { static_cast<void>(emit::materialize(m, 1 << 20, 1 << 20)); }).find("capacity") == 0);

  auto p = empty_program(2);
  add_group(p, 0, 2, 2, {1, 2, 3, 4});
  add_group(p, 0, 2, 2, {0, 0, 0, 0});
  add_group(p, 1, 2, 2, {1, 2, 3, 4});
  add_group(p, 1, 2, 2, {0, 0, 0, -0.0f});
  std::vector<std::size_t> visited;
  const auto content = emit::for_each_content(
      p, [&](const auto& w) { return emit::padded_size(w, p.chip); }, [&](std::uint32_t, std::size_t w, emit::group_size, const auto&) { visited.push_back(w); });
  CHECK(content == std::vector<std::uint32_t>{0, 1, 0, 2});
  CHECK(visited == std::vector<std::size_t>{0, 1, 3});
}
