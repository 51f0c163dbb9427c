#include "raptor/target/pim.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <string>

#include "files.hpp"

using namespace raptor;
using isa::opcode;

namespace {
error failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    return e;
  }
  return error(error_code::internal, "no error");
}
}  // namespace

TEST_CASE("pim: sizes without a hardware configuration") {
  const target::pim chip(144, 64, 128);
  const program::geometry& g = chip.chip();
  CHECK(g.core_count == 144);
  CHECK(g.crossbars_per_core == 64);
  CHECK(g.crossbar_rows == 128);
  CHECK(g.crossbar_columns == 128);
  CHECK(g.weight_columns == 128);
  CHECK(g.cell_bits == 32);
  CHECK(g.weight_bits == 32);
  CHECK(g.adc_count == 16);
  CHECK(target::pim(4, 8, 64, 8).chip().weight_columns == 64);
}

TEST_CASE("pim: the default mesh") {
  const target::pim chip(144, 64, 128);  // 12 × 12
  CHECK(chip.flit_time(0, 0) == 0);
  CHECK(chip.flit_time(0, 1) == 4);
  CHECK(chip.flit_time(0, 12) == 4);
  CHECK(chip.flit_time(0, 143) == 46);
  CHECK(chip.flit_time(143, 0) == 46);
  CHECK(chip.global_flit_time(77) == 15);
  CHECK_THROWS_AS((void)chip.flit_time(0, 144), error);
  CHECK(target::pim(10, 1, 16).flit_time(3, 8) == 12);  // 4 wide: from row 0, column 3 to row 2, column 0
}

TEST_CASE("pim: instruction times by hand") {
  // 1 ns clock; local memory 16 bytes in 8 (read) and 10 (write) ns; 16 elements in 8 ns; two edges to the next start.
  const target::pim chip(4, 8, 64);
  CHECK(chip.time(opcode::sldi, 0) == 1'000);
  CHECK(chip.time(opcode::setbw, 0) == 1'000);
  CHECK(chip.time(opcode::vvadd, 64) == (2 * 16 * 8 + 4 * 8 + 16 * 10 + 2) * 1'000);
  CHECK(chip.time(opcode::vrelu, 64) == (16 * 8 + 4 * 8 + 16 * 10 + 2) * 1'000);
  CHECK(chip.time(opcode::lmv, 4) == (8 + 10 + 2) * 1'000);
  CHECK(chip.time(opcode::lldi, 5) == (2 * 10 + 2) * 1'000);
  CHECK(chip.global_time(0, 8, false) == (15 + 2 * 8 + 2 * 10 + 2) * 1'000);
  CHECK(chip.global_time(0, 8, true) == (2 * 8 + 2 * 15 + 2 * 10 + 1 + 2) * 1'000);
  CHECK(chip.transfer_time(0, 1, 8) == (4 + 4 + 2 * 8 + 2 * 4 + 2 * 10 + 2) * 1'000);
  CHECK(chip.transfer_time(0, 3, 8) == (6 + 6 + 2 * 8 + 2 * 6 + 2 * 10 + 2) * 1'000);
  CHECK(chip.transfer_time(2, 2, 8) == chip.time(opcode::lmv, 8));
  // mvmul: 64 rows × 4 bytes × 8 read; 32 bits × 1 DAC step, 4 ADC steps; 64 columns written; router.
  const double cycle = 1 / 1.28, front = 1 + 39 + 1, back = 1 + 2 + 3 * 2;
  const auto compute = static_cast<std::int64_t>((front + back + 31 * front) * cycle * 1000 + 0.5);
  const std::int64_t execution = 128 * 8'000 + compute + 16 * 10'000;
  CHECK(chip.time(opcode::mvmul, 64) == ((execution + 999) / 1000 + 3) * 1'000);
  CHECK(chip.time(opcode::mvmul, 65) == ((execution + 160'000 + 999) / 1000 + 3) * 1'000);  // a second crossbar
}

TEST_CASE("pim: every time is positive and monotone in the length") {
  for (const auto& chip : {target::pim(1, 1, 1), target::pim(3, 2, 16), target::pim(144, 64, 128), target::pim(9, 4, 200, 8)})
    for (int op = 0; op < isa::opcode_count; ++op) {
      target::picoseconds last = 0;
      for (const std::int64_t n : {0, 1, 2, 15, 16, 17, 100, 4096, 1 << 30}) {
        const auto now = chip.time(static_cast<opcode>(op), n);
        CHECK(now > 0);
        CHECK(now >= last);
        last = now;
      }
    }
  const target::pim chip(2, 1, 8);
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  CHECK(chip.transfer_time(0, 1, huge) > 0);
  CHECK(chip.global_time(1, huge, true) > 0);
  CHECK(chip.time(opcode::vvadd, huge) > 0);
  CHECK(chip.time(opcode::mvmul, huge) > 0);
}

TEST_CASE("pim: flags out of range") {
  CHECK(failure([] { target::pim(0, 64, 128); }).what() == std::string("--core-count is 0, but must be from 1 to 65536"));
  CHECK(failure([] { target::pim(4, -1, 128); }).code() == error_code::usage);
  CHECK(failure([] { target::pim(4, 1, std::numeric_limits<std::int64_t>::max()); }).place() == "--crossbar-size");
  CHECK(failure([] { target::pim(4, 1, 128, 7); }).place() == "--element-bits");
  const auto missing = failure([] { (void)target::make_pim_target({.core_count = 4, .crossbar_count = {}, .crossbar_size = 128}); });
  CHECK(missing.code() == error_code::usage);
  CHECK(missing.what() == std::string("missing --crossbar-count"));
}

TEST_CASE("pim: flags must agree with the configuration") {
  target::configuration c;
  c.chip_config.core_cnt = 2;
  c.chip_config.core_config.matrix_config.xbar_array_count = 3;
  c.chip_config.network_config.layout = {1, 2};
  c.chip_config.network_config.table.latency = {{0, {{1, 5}, {-10, 7}}}, {1, {{0, 6}}}};
  const auto chip = target::make_pim_target({.core_count = 2, .crossbar_count = 3, .crossbar_size = 128}, c);
  CHECK(chip.chip().weight_columns == 8);
  CHECK(target::make_pim_target({}, c, 8).chip().weight_columns == 32);
  CHECK(chip.flit_time(0, 1) == 5);
  CHECK(chip.flit_time(1, 0) == 6);
  CHECK(chip.flit_time(1, 1) == 0);
  CHECK(chip.global_flit_time(0) == 7);
  CHECK(chip.global_flit_time(1) == 0);
  const auto wrong = failure([&] { (void)target::make_pim_target({.core_count = 5, .crossbar_count = {}, .crossbar_size = {}}, c); });
  CHECK(wrong.code() == error_code::mismatch);
  CHECK(wrong.what() == std::string("--core-count is 5, but chip_config.core_cnt of the configuration is 2"));
  c.chip_config.core_config.matrix_config.xbar_size = {128, 64};
  CHECK(failure([&] { (void)target::make_pim_target({.core_count = {}, .crossbar_count = {}, .crossbar_size = 128}, c); }).what() ==
        std::string("--crossbar-size is 128, but chip_config.core_config.matrix_config.xbar_size[1] of the configuration is 64"));
  c.chip_config.core_config.matrix_config.xbar_size = {128, 15};
  CHECK(failure([&] { (void)target::make_pim_target({}, c); }).code() == error_code::capacity);
}

TEST_CASE("pim: the shared configurations") {
  if (!files::exists("targets/p144.json")) {
    MESSAGE("SKIPPED: shared folder absent");
    return;
  }
  const auto load = [](const std::string& path) { return files::read(path); };
  // Expected: the increase of the timing model's latency for one more instruction of the kind in a stream.
  const target::pim large(target::read_configuration(files::shared("targets/p144.json"), load));
  CHECK(large.chip().core_count == 144);
  CHECK(large.chip().crossbars_per_core == 64);
  CHECK(large.chip().weight_columns == 8);
  CHECK(large.chip().cell_bits == 2);
  CHECK(large.chip().adc_count == 16);
  CHECK(large.time(opcode::mvmul, 8) == 6'506'000);
  CHECK(large.time(opcode::mvmul, 24) == 6'536'000);
  CHECK(large.time(opcode::vvadd, 128) == 578'000);
  CHECK(large.time(opcode::vrelu, 100) == 368'000);
  CHECK(large.time(opcode::vavg, 9) == 56'000);
  CHECK(large.time(opcode::vvmul, 1) == 76'000);
  CHECK(large.time(opcode::lldi, 128) == 242'000);
  CHECK(large.time(opcode::lmv, 128) == 402'000);
  CHECK(large.global_time(0, 128, false) == 897'000);
  CHECK(large.global_time(0, 128, true) == 1'203'000);
  CHECK(large.flit_time(0, 143) == 46);
  // 8 bits: 8 · (22.24 mW · 7 ns + 8 · 1.135 mW · 20 ns · 16 converters) for each crossbar.
  const target::pim narrow(target::read_configuration(files::shared("targets/p144.json"), load), 8);
  CHECK(narrow.product_energy(1) == doctest::Approx(24490.24));
  CHECK(narrow.product_energy(32) == narrow.product_energy(1));
  CHECK(narrow.product_energy(33) == doctest::Approx(2 * 24490.24));
  CHECK(large.product_energy(8) == doctest::Approx(4 * 24490.24));
  const target::pim small(target::read_configuration(files::shared("targets/p64.json"), load));
  CHECK(small.chip().weight_columns == 32);
  CHECK(target::pim(target::read_configuration(files::shared("targets/p64.json"), load), 8).chip().weight_columns == 128);
  CHECK(small.time(opcode::mvmul, 32) == 20'645'000);
  CHECK(small.time(opcode::mvmul, 96) == 20'649'000);
  CHECK(small.time(opcode::vvadd, 128) == 58'000);
  CHECK(small.time(opcode::vavg, 9) == 8'000);
  CHECK(small.time(opcode::lldi, 128) == 10'000);
  CHECK(small.global_time(0, 128, false) == 57'000);
  CHECK(small.global_time(0, 128, true) == 1'003'000);
}
