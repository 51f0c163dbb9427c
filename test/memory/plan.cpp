#include "raptor/memory/plan.hpp"

#include <doctest/doctest.h>

#include "../program/support.hpp"
#include "raptor/memory/lifetime.hpp"
#include "raptor/program/binding.hpp"
#include "raptor/report/memory.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

template <class F>
error caught(const F& f) {
  try {
    f();
  } catch (const error& e) {
    return e;
  }
  return error(error_code::usage, "nothing was thrown");
}

}  // namespace

TEST_CASE("lifetimes are first to last item, views count for their owners") {
  auto p = empty_program(1);
  const auto a = add_buffer(p, 0, 8), b = add_buffer(p, 0, 8), v = add_buffer(p, 0, 4), idle = add_buffer(p, 0, 4), g = add_input(p, 8, "x");
  p.buffers[v].view_of = a, p.buffers[v].view_offset = 4;
  add(p, 0, make(opcode::ld, {a, 0}, {g, 0}, 8));
  add(p, 0, repeat(0, 4, {{make(opcode::vrelu, {b, loop_variable(0)}, {a, loop_variable(0)}, 1)}}));
  add(p, 0, make(opcode::vrelu, {b, 0}, {b, 0}, 8));
  add(p, 0, make(opcode::vrelu, {b, 0}, {v, 0}, 4));
  const auto lives = memory::lifetimes(p);
  CHECK(lives[a] == interval{0, 4});
  CHECK(lives[b] == interval{1, 4});
  CHECK(lives[v].empty());
  CHECK(lives[idle].empty());
  CHECK(lives[g].begin == 0);
  CHECK(memory::lifetimes(p, false)[v] == interval{3, 4});
}

TEST_CASE("random programs get plans that hold") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const auto bound = program::bind(random_program(seed).get());
    const auto planned = memory::plan(bound);
    memory::check_plan(planned);
    for (std::size_t b = 0; b < bound.buffers.size(); ++b)
      if (bound.buffers[b].view_of == program::none) CHECK(planned.addresses[b] % 64 == 0);
    for (const auto& core : planned.cores) {
      CHECK(core.peak <= core.bytes);
      CHECK(core.bytes <= core.total);
    }
  }
}

TEST_CASE("a broken plan is noticed") {
  const auto good = memory::plan(program::bind(random_program(1).get()));
  const auto refused = [](const memory::image& planned) { return caught([&] { memory::check_plan(planned); }).code() == error_code::internal; };
  CHECK(!refused(good));
  int noticed = 0;
  const auto lives = memory::lifetimes(good.bound);
  for (std::size_t b = 0; b < good.addresses.size(); ++b) {
    if (good.bound.buffers[b].view_of != program::none) {
      auto moved = good;
      moved.addresses[b] += 4;
      CHECK(refused(moved));
      continue;
    }
    if (lives[b].empty()) continue;
    auto outside = good;
    outside.addresses[b] = std::int64_t{1} << 31;
    CHECK(refused(outside));
    for (std::size_t other = 0; other < b; ++other) {
      if (good.bound.buffers[other].core != good.bound.buffers[b].core || good.bound.buffers[other].view_of != program::none) continue;
      if (intersect(lives[b], lives[other]).empty()) continue;
      auto onto = good;
      onto.addresses[b] = good.addresses[other];
      CHECK(refused(onto));
      ++noticed;
    }
  }
  CHECK(noticed > 30);
}

TEST_CASE("global memory: constants, inputs, outputs, the rest, none overlapping") {
  auto p = empty_program(1);
  const auto rest = add_buffer(p, program::global_memory, 3), out = add_output(p, 5, "y"), in = add_input(p, 17, "x");
  const auto c = add_constant(p, std::vector<float>(20, 1.0f));
  const auto planned = memory::plan(p);
  CHECK(planned.addresses[c] == 0);
  CHECK(planned.addresses[in] == 128);
  CHECK(planned.addresses[out] == 256);
  CHECK(planned.addresses[rest] == 320);
  CHECK(planned.global_bytes == 384);
  CHECK(planned.constant_bytes == 128);
}

TEST_CASE("too small a memory is an error with the core, the need and what there is") {
  auto p = empty_program(2);
  p.chip.local_memory_bytes = 1000;
  const auto a = add_buffer(p, 1, 200, "a"), b = add_buffer(p, 1, 200, "b");
  add(p, 1, fill({a, 0}, 0.0f, 200));
  add(p, 1, fill({b, 0}, 0.0f, 200));
  CHECK(memory::plan(p).cores[1].bytes == 832);  // one after the other
  add(p, 1, fill({a, 0}, 0.0f, 200));
  const auto e = caught([&] { static_cast<void>(memory::plan(p)); });
  CHECK(e.code() == error_code::capacity);
  CHECK(std::string(e.what()) == "local memory of core 1: 1664 bytes needed, 1000 available");
  CHECK(e.place() == "core 1");
}

TEST_CASE("addresses beyond 31 bits are an error") {
  auto p = empty_program(1);
  const auto a = add_buffer(p, 0, (std::int64_t{1} << 29) + 1, "a");
  add(p, 0, fill({a, 0}, 0.0f, 8));
  CHECK(caught([&] { static_cast<void>(memory::plan(p)); }).code() == error_code::capacity);
  p.buffers[a].elements = std::int64_t{1} << 62;
  CHECK(caught([&] { static_cast<void>(memory::plan(p)); }).code() == error_code::capacity);
  p = empty_program(1);
  add_input(p, (std::int64_t{1} << 29) + 1, "x");
  CHECK(std::string(caught([&] { static_cast<void>(memory::plan(p)); }).what()).find("global memory: ") == 0);
}

TEST_CASE("buffers that contradict each other are refused") {
  const auto base = [] {
    auto p = empty_program(2);
    add_buffer(p, 0, 8), add_buffer(p, 0, 4), add_buffer(p, 1, 8), add_input(p, 4, "x");
    return p;
  };
  const auto code = [&](const auto& change) {
    auto p = base();
    change(p);
    return caught([&] { static_cast<void>(memory::plan(p)); }).code();
  };
  using P = program::program;
  CHECK(code([](P&) {}) == error_code::usage);  // nothing thrown
  CHECK(code([](P& p) { p.buffers[1].view_of = 9; }) == error_code::malformed);
  CHECK(code([](P& p) { p.buffers[1].view_of = 2; }) == error_code::malformed);
  CHECK(code([](P& p) { p.buffers[1].view_of = 0, p.buffers[1].view_offset = 5; }) == error_code::malformed);
  CHECK(code([](P& p) { p.buffers[1].view_of = 1; }) == error_code::malformed);
  CHECK(code([](P& p) { p.buffers[1].elements = -1; }) == error_code::malformed);
  CHECK(code([](P& p) { p.buffers[1].core = 2; }) == error_code::malformed);
  CHECK(code([](P& p) { p.buffers[1].data = make_constant({1}); }) == error_code::malformed);
  CHECK(code([](P& p) { p.buffers[3].data = make_constant({1, 2, 3, 4, 5}); }) == error_code::malformed);
  CHECK(code([](P& p) { p.inputs[0].buffer = 0; }) == error_code::malformed);
  CHECK(code([](P& p) { p.inputs[0].sizes = {2, 3}; }) == error_code::malformed);
  CHECK(code([](P& p) { p.cores[0].groups = {0}; }) == error_code::malformed);
  CHECK(code([](P& p) { p.chip.element_bits = 7; }) == error_code::malformed);
}

TEST_CASE("the report has a row for each used core, and totals") {
  auto p = program::bind(random_program(2).get());
  p.cores.emplace_back();
  const auto planned = memory::plan(p);
  const auto text = report::memory_report(planned);
  CHECK(text.find("\n0 ") != text.npos);
  CHECK(text.find("\n2 ") != text.npos);
  CHECK(text.find("\n3 ") == text.npos);
  CHECK(text.find("cores without use: 1 of 4") != text.npos);
  CHECK(text.find("inputs 384") != text.npos);
  CHECK(text.find(std::to_string(planned.cores[1].bytes)) != text.npos);
}
