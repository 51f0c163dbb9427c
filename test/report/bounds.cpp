#include "raptor/report/bounds.hpp"

#include <doctest/doctest.h>

#include <string>

#include "raptor/report/summary.hpp"
#include "raptor/target/pim.hpp"
#include "scheduled.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

schedule::picoseconds least(const report::bounds& b, const std::string& resource) {
  for (const auto& x : b.all)
    if (x.resource == resource) return x.least;
  FAIL("no bound " << resource);
  return 0;
}
bool has(const report::bounds& b, const std::string& resource) {
  for (const auto& x : b.all)
    if (x.resource == resource) return true;
  return false;
}
schedule::schedule tiled(const lowering::compute_graph& g, std::int64_t most = 256) {
  schedule::schedule s;
  s.graph = schedule::make_tiles(round_target{1}, g, {1, most});
  return s;
}

}  // namespace

TEST_CASE("bounds of a graph by hand") {
  const auto g = small_graph();
  const auto b = report::lower_bounds(round_target{2}, g, spread(g));
  // 8 rows of 6 products of 14 ps over two cores; 6 × 36 multiply-accumulates a row.
  CHECK(least(b, "matrix") == 8 * 6 * 14 / 2);
  CHECK(least(b, "dense_matrix") == 8 * 6 * 36 * 11 / (16 * 4 * 16) / 2);
  // A row of the relu takes 10 + 32, of the result 4 × (10 + 8).
  CHECK(least(b, "vector") == (8 * 42 + 8 * 72) / 2);
  // Patches: 3 runs of 13 a window, but one fewer in the first and in the last row, which lie partly outside; the results 14 a window;
  // the tail 10 + 8.
  const schedule::picoseconds copies = 8 * (6 * (3 * 13 + 14) + 18) - 2 * 6 * 13;
  CHECK(least(b, "copies") == copies / 2);
  CHECK(least(b, "work") == (8 * 6 * 14 + 8 * 42 + 8 * 72 + copies) / 2);
  // 64 elements in, 256 out, each as one access.
  CHECK(least(b, "global_memory") == (30 + 64) + (30 + 256));
  // Four rows of 32 go to core 1, beyond the first element of each.
  CHECK(least(b, "network") == 4 * 31);
  // One row through all three computes, an inner one of the convolution.
  CHECK(least(b, "critical_path") == 6 * (3 * 13 + 14 + 14) + 18 + 42 + 72);
  CHECK(!has(b, "local_memory"));  // the target does not say
  // Core 1: half of the rows but one, which is partly outside, all results, and what it receives.
  const schedule::picoseconds row = 6 * (3 * 13 + 14 + 14) + 18 + 42;
  CHECK(least(b, "busiest_core") == 4 * row - 6 * 13 + 8 * 72 + 4 * 31);
  CHECK(b.largest().resource == "work");
  CHECK(b.in_placement().resource == "busiest_core");
  CHECK(b.of_interval().resource == "work");
  CHECK(b.predicted == spread(g).predicted);
  CHECK(b.predicted >= b.largest().least);
  CHECK(report::bounds_report(b).find("\nbinds: work\npredicted: ") != std::string::npos);
}

TEST_CASE("no bound is above what one core and the schedule need") {
  const auto g = small_graph();
  const auto s = spread(g, 1);
  const auto b = report::lower_bounds(round_target{1}, g, s);
  CHECK(least(b, "network") == 0);
  for (const auto& x : b.all)
    if (x.resource != "global_memory") CHECK(x.least <= b.predicted);  // loads and stores are not predicted
  // On one core all work is serial, and only statements outside the image make the bound smaller.
  CHECK(b.predicted - least(b, "work") == 2 * 6 * 13);
}

TEST_CASE("coarser tiles have a longer critical path and the same work") {
  const auto g = small_graph();
  const auto fine = report::lower_bounds(round_target{1}, g, tiled(g)), coarse = report::lower_bounds(round_target{1}, g, tiled(g, 1));
  CHECK(least(fine, "matrix") == least(coarse, "matrix"));
  CHECK(least(fine, "critical_path") < least(coarse, "critical_path"));
}

TEST_CASE("what a tile does before it reads the one before it is no part of the chain") {
  lowering::compute_graph g;
  const auto value = [&](const char* name) { return g.add_value({name, {8}, layout::physical::dense, lowering::origin::computed, {}}); };
  const auto x = value("x"), y = value("y");
  lowering::kernel_builder first("first", {});
  const auto made = first.writes(x, {0}, {8});
  first.fill(first.at(made, {0}), 0, 8);  // 18 ps
  g.add_compute(first.take());
  for (const bool late : {true, false}) {
    CAPTURE(late);
    auto both = g;
    lowering::kernel_builder second("second", {});
    const auto in = second.reads(x, {0}, {8}), out = second.writes(y, {0}, {8});
    const auto scratch = second.scratch("t", 90);
    const auto long_part = [&] { second.fill(second.in(scratch), 0, 90); };  // 100 ps
    if (late) long_part();
    second.copy(second.at(out, {0}), second.at(in, {0}), 8);  // 18 ps
    if (!late) long_part();
    both.add_compute(second.take());
    const auto b = report::lower_bounds(round_target{2}, both, tiled(both));
    CHECK(least(b, "critical_path") == (late ? 118 : 18 + 118));
  }
}

TEST_CASE("an input that is read in part, or twice, counts once") {
  lowering::compute_graph g;
  g.inputs.push_back({"x", {10}});
  lowering::value x{"x", {10}, layout::physical::dense, lowering::origin::input, {}};
  x.input = 0;
  g.add_value(x);
  const auto y = g.add_value({"y", {4}, layout::physical::dense, lowering::origin::computed, {}});
  lowering::kernel_builder k("c", {4});
  static_cast<void>(k.reads(0, {lowering::tile_begin(0) * 2}, {lowering::tile_begin(0) * 2 + 3}));  // [0,3) [2,5) [4,7) [6,9)
  k.current().most = {1};
  static_cast<void>(k.writes(y, {lowering::tile_begin(0)}, {lowering::tile_end(0)}));
  g.add_compute(k.take());
  const auto b = report::lower_bounds(round_target{1}, g, tiled(g));
  CHECK(least(b, "global_memory") == 30 + 9);
}

TEST_CASE("a chip that describes its memories") {
  const auto g = small_graph();
  const target::pim chip(2, 4, 16);
  const auto b = report::lower_bounds(chip, g, tiled(g));
  const auto& parameters = chip.parameters().chip_config;
  // Local memory: 8 ns to read and 10 ns to write 16 bytes (TIMING 8): 48 products read 16 × 4 × 8 bytes and write 64.
  REQUIRE(parameters.core_config.local_memory_config.read_latency_cycle == 8);
  const auto access = [](std::int64_t bytes, std::int64_t cycles) { return (bytes + 15) / 16 * cycles * 1000; };
  const auto read = [&](std::int64_t n) { return access(n * 4, 8); };
  const auto write = [&](std::int64_t n) { return access(n * 4, 10); };
  const auto products = 48 * (access(16 * 4 * 8, 8) + write(16));
  const auto copies = (48 * 3 - 12) * (read(3) + write(3)) + 48 * (read(4) + write(4)) + 8 * write(8);
  const auto vectors = 8 * (read(32) + write(32)) + 32 * (read(8) + write(8));
  CHECK(least(b, "local_memory") == (products + copies + vectors) / 2);
  CHECK(least(b, "global_memory") == access(64 * 4, parameters.global_memory_config.read_latency_cycle) + access(256 * 4, parameters.global_memory_config.write_latency_cycle));
  CHECK(!has(b, "network"));  // not placed
  CHECK(least(b, "work") >= least(b, "local_memory"));
  CHECK(least(b, "work") >= least(b, "matrix"));
}

TEST_CASE("with more than one instruction in flight array groups overlap") {
  const auto g = small_graph();
  target::configuration c = target::pim(2, 4, 16).parameters();
  const auto one = report::lower_bounds(target::pim(2, 4, 16), g, tiled(g));
  c.chip_config.core_config.rob_size = 8;
  c.chip_config.network_config.layout = {1, 2};
  c.chip_config.network_config.table.latency = {{0, {{0, 0}, {1, 4}, {-10, 15}}}, {1, {{0, 4}, {1, 0}, {-10, 15}}}};
  c.chip_config.network_config.table.energy = c.chip_config.network_config.table.latency;
  const auto several = report::lower_bounds(target::pim(c), g, tiled(g));
  CHECK(least(several, "matrix") == least(one, "matrix") * 2 / 4 / 2);
  CHECK(!has(several, "work"));
  CHECK(least(several, "critical_path") < least(one, "critical_path"));
}

TEST_CASE("summary.json") {
  const auto g = small_graph();
  const auto s = spread(g);
  const auto b = report::lower_bounds(round_target{2}, g, s);
  memory::image image;
  image.global_bytes = 1280, image.constant_bytes = 0;
  image.cores.resize(2);
  image.cores[1].bytes = 640, image.cores[1].buffers = 3, image.cores[1].crossbars = 1;
  const report::summary_header header{"raptor-compile", "0.1.0", "net \xff", report::content_hash("model"), "", {{"core-count", "2"}, {"pipeline", "1"}}};
  const auto text = report::with_memory(report::summary(header, g, s, small_chip(), b), image);
  CHECK(text == report::with_memory(report::summary(header, g, s, small_chip(), b), image));
  const auto json = nlohmann::json::parse(text);
  CHECK(json.at("tool") == "raptor-compile");
  CHECK(json.at("model").at("hash") == report::content_hash("model"));
  CHECK(json.at("configuration").is_null());
  CHECK(json.at("options").at("core-count") == "2");
  const auto& row = json.at("operators").at(0);
  CHECK(row.at("name") == "conv1");
  CHECK(row.at("operator") == "convolution");
  CHECK(row.at("strategy") == "streamed-patch");
  CHECK(row.at("node") == 3);
  CHECK(row.at("lanes") == std::vector<int>{1, 8});
  CHECK(row.at("tiles") == 8);
  CHECK(row.at("copies") == 2);
  CHECK(row.at("cores") == std::vector<int>{0, 1});
  CHECK(row.at("crossbars") == 1);
  CHECK(row.at("start_ps") == 0);
  CHECK(json.at("operators").size() == 3);
  CHECK(!json.at("operators").at(1).contains("node"));
  CHECK(json.at("crossbars").at("used") == 2);
  CHECK(json.at("crossbars").at("available") == 8);
  CHECK(json.at("predicted_ps") == s.predicted);
  CHECK(json.at("bounds").at("binding") == "work");
  CHECK(json.at("bounds").at("least_ps").at("network") == 124);
  CHECK(json.at("memory").at("global_bytes") == 1280);
  REQUIRE(json.at("memory").at("cores").size() == 1);
  CHECK(json.at("memory").at("cores").at(0).at("core") == 1);
  CHECK(!nlohmann::json::parse(report::summary(header, g, s, small_chip(), b)).contains("memory"));
}

TEST_CASE("content hashes are those of FNV-1a") {
  CHECK(report::content_hash("") == "cbf29ce484222325");
  CHECK(report::content_hash("a") == "af63dc4c8601ec8c");
  CHECK(report::content_hash("foobar") == "85944171f73967e8");
}
