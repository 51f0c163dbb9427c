#include "raptor/sync/rendezvous_only.hpp"

#include <doctest/doctest.h>

using namespace raptor;

namespace {
program::item transfer(isa::opcode op, program::place d, program::place a) {
  program::operation o;
  o.op = op, o.d = std::move(d), o.a = std::move(a), o.length = 4;
  return program::item{o};
}
}  // namespace

TEST_CASE("loads of inputs and stores of results need no events") {
  program::program p;
  p.cores.resize(2);
  p.buffers = {{"x", -1, 4, program::none, 0, {}}, {"y", -1, 4, program::none, 0, {}}, {"local", 0, 4, program::none, 0, {}}};
  p.cores[0].body = {transfer(isa::opcode::ld, {2, 0}, {0, 0}), transfer(isa::opcode::st, {1, 0}, {2, 0})};
  const auto same = sync::rendezvous_only{}(p, {});
  CHECK(same.cores[0].body.size() == 2);
}

TEST_CASE("a channel through global memory is refused") {
  program::program p;
  p.cores.resize(2);
  p.buffers = {{"shared", -1, 4, program::none, 0, {}}, {"a", 0, 4, program::none, 0, {}}, {"b", 1, 4, program::none, 0, {}}};
  p.cores[0].body = {transfer(isa::opcode::st, {0, 0}, {1, 0})};
  p.cores[1].body = {transfer(isa::opcode::ld, {2, 0}, {0, 0})};
  CHECK_THROWS_AS(static_cast<void>(sync::rendezvous_only{}(p, {})), error);
}

TEST_CASE("without synchronization a program stays as it is") {
  program::program p;
  p.cores.resize(1);
  p.buffers = {{"shared", -1, 4, program::none, 0, {}}, {"a", 0, 4, program::none, 0, {}}};
  p.cores[0].body = {transfer(isa::opcode::st, {0, 0}, {1, 0}), transfer(isa::opcode::ld, {1, 0}, {0, 0})};
  CHECK(sync::no_synchronization{}(p, {}).cores[0].body.size() == 2);
}
