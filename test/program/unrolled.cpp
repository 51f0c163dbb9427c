#include "raptor/program/unrolled.hpp"

#include <doctest/doctest.h>

#include "raptor/isa/table.hpp"
#include "support.hpp"

using namespace raptor;
using namespace raptor::test;

TEST_CASE("a nest is walked in order, with its offsets") {
  const auto i = loop_variable(3), j = loop_variable(8);
  const std::vector<item> body{
      {make(opcode::vrelu, {0, 5}, {1, 6}, 2)},
      repeat(3, 2, {{make(opcode::vrelu, {0, i * 100}, {1, 0}, 2)}, repeat(8, 3, {{make(opcode::vvadd, {0, i * 100 - j * 2}, {1, j + 7}, {2, 9}, 2)}})}),
      repeat(3, 0, {{make(opcode::vtanh, {0, i}, {1, 0}, 2)}}),
      {make(opcode::vsigm, {0, 1}, {1, 2}, 2)}};
  const program::unrolled unrolled(body);
  CHECK(unrolled.size() == 10);
  std::vector<std::array<std::int64_t, 3>> seen;
  std::vector<std::size_t> items;
  unrolled.walk([&](const program::step& s) {
    seen.push_back(s.offsets);
    items.push_back(s.item);
  });
  using offsets = std::vector<std::array<std::int64_t, 3>>;
  CHECK(seen == offsets{{5, 6, 0}, {0, 0, 0}, {0, 7, 9}, {-2, 8, 9}, {-4, 9, 9}, {100, 0, 0}, {100, 7, 9}, {98, 8, 9}, {96, 9, 9}, {1, 2, 0}});
  CHECK(items == std::vector<std::size_t>{0, 1, 1, 1, 1, 1, 1, 1, 1, 3});
  int operations = 0;
  unrolled.each_range([&](const operation& o, const auto& ranges, std::size_t) {
    ++operations;
    CHECK(o.op != opcode::vtanh);  // it never runs
    if (o.op == opcode::vvadd) {
      CHECK(ranges[0].low == -4);
      CHECK(ranges[0].high == 100);
      CHECK(ranges[1].high == 9);
    }
  });
  CHECK(operations == 4);
}

TEST_CASE("the cursor stops at communication only, and restarts") {
  const auto i = loop_variable(0), j = loop_variable(1);
  const std::vector<item> body{
      {make(opcode::vrelu, {0, 0}, {0, 0}, 1)},
      repeat(0, 1000000000, {repeat(1, 1000000000, {{make(opcode::vrelu, {0, i}, {0, j}, 1)}})}),
      repeat(0, 2, {{sync_to(1, 2)}, repeat(1, 2, {{make(opcode::vrelu, {0, i}, {0, j}, 1)}, {wait_for(3, 1)}})}),
      repeat(0, 0, {{send_to(1, {0, 0}, 1)}}),
      {receive_from(1, {0, 0}, 1)}};
  const program::unrolled unrolled(body);
  program::unrolled::cursor cursor(unrolled);
  for (int round = 0; round < 2; ++round, cursor.restart()) {
    std::string trace;
    for (; !cursor.done(); cursor.advance()) {
      trace += std::string(isa::mnemonic(cursor.current().op)) + std::to_string(cursor.item()) + " ";
      std::string rest;
      cursor.rest([&](const operation& o) { rest += o.op == opcode::sync ? 's' : o.op == opcode::wait ? 'w' : o.op == opcode::recv ? 'r' : '?'; });
      if (cursor.passed() < 3) CHECK(rest == "swr");
      if (cursor.passed() == 3) CHECK(rest == "swr");
      if (cursor.passed() > 3 && cursor.passed() < 6) CHECK(rest == "wr");
    }
    CHECK(trace == "sync2 wait2 wait2 sync2 wait2 wait2 recv4 ");
    CHECK(cursor.passed() == 7);
  }
}

TEST_CASE("nests that cannot be walked are refused") {
  const auto throws = [](const std::vector<item>& body, error_code code) {
    try {
      const program::unrolled unrolled(body);
    } catch (const error& e) {
      return e.code() == code;
    }
    return false;
  };
  const operation o = make(opcode::vrelu, {0, loop_variable(1)}, {0, 0}, 1);
  CHECK(throws({{o}}, error_code::malformed));                                     // no loop binds i1
  CHECK(throws({repeat(0, 2, {{o}})}, error_code::malformed));
  CHECK(throws({repeat(1, 2, {repeat(1, 2, {{o}})})}, error_code::malformed));      // twice in a nest
  CHECK(throws({repeat(1, -1, {{o}})}, error_code::malformed));
  CHECK(throws({{make(opcode::vrelu, {0, affine(symbol{symbol::kind::begin, 0})}, {0, 0}, 1)}}, error_code::malformed));
  const auto large = std::int64_t{1} << 40;
  CHECK(throws({repeat(0, large, {repeat(1, large, {{o}})})}, error_code::capacity));
  CHECK(throws({repeat(1, large, {{make(opcode::vrelu, {0, loop_variable(1) * large}, {0, 0}, 1)}})}, error_code::capacity));
}
