#include "raptor/sim/input_feed.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

using namespace raptor::sim::test;
using raptor::sim::input_feed;
using raptor::sim::last_read_of;
using raptor::sim::no_instruction;
using raptor::sim::tensor_region;

namespace {

const std::vector<tensor_region> regions{{"x", 16, 8, {}}, {"empty", 100, 0, {}}, {"z", 40, 4, {}}};

/// The inputs that are placed when a core reads.
std::vector<std::size_t> placed_by(input_feed& feed, std::size_t core) {
  std::vector<std::size_t> placed;
  feed.read(core, [&](std::size_t n) { placed.push_back(n); });
  return placed;
}
using numbers = std::vector<std::size_t>;

}  // namespace

TEST_CASE("the last load that touches an input") {
  CHECK(last_read_of(stream{}, regions) == no_instruction);
  CHECK(last_read_of(stream{b::sldi(1, 16), b::ld(2, 1, 8), b::sldi(1, 24), b::ld(2, 1, 16)}, regions) == 1);
  CHECK(last_read_of(stream{b::sldi(1, 16), b::ld(2, 1, 8), b::sldi(1, 24), b::ld(2, 1, 17)}, regions) == 3);
  CHECK(last_read_of(stream{b::sldi(1, 12), b::ld(2, 1, 4)}, regions) == no_instruction);
  CHECK(last_read_of(stream{b::sldi(1, 12), b::ld(2, 1, 5)}, regions) == 1);
  CHECK(last_read_of(stream{b::sldi(1, 16), b::ld(2, 1, 0)}, regions) == no_instruction);
  CHECK(last_read_of(stream{b::sldi(1, 100), b::ld(2, 1, 4)}, regions) == no_instruction);
  CHECK(last_read_of(stream{b::sldi(1, 16), b::st(1, 2, 8)}, regions) == no_instruction);
}

TEST_CASE("addresses from arithmetic and offsets are followed") {
  CHECK(last_read_of(stream{b::saddi(1, 0, 16), b::ld(2, 1, 4)}, regions) == 1);  // registers start at 0
  CHECK(last_read_of(stream{b::sldi(3, 4), b::smuli(1, 3, 4), b::sadd(4, 1, 0), b::ssub(4, 4, 0), b::smul(5, 3, 3), b::ld(2, 4, 4), b::ld(2, 5, 4)}, regions) == 6);
  CHECK(last_read_of(stream{b::sldi(1, 0), b::ld(2, 1, 4, {2, 20})}, regions) == 1);
  CHECK(last_read_of(stream{b::sldi(1, 20), b::ld(2, 1, 4, {1, 20})}, regions) == 1);
  CHECK(last_read_of(stream{b::sldi(1, 20), b::ld(2, 1, 4, {2, 4})}, regions) == no_instruction);
  CHECK(last_read_of(stream{b::sldi(1, 20), b::sld(2, 1, 2), b::sld(2, 1, 4)}, regions) == 1);  // sld reads four bytes
}

TEST_CASE("an address that depends on memory may be any") {
  CHECK(last_read_of(stream{b::sldi(1, 0), b::sld(3, 1), b::saddi(3, 3, 1), b::ld(2, 3, 4), b::sldi(3, 0), b::ld(2, 3, 4)}, regions) == 3);
  CHECK(last_read_of(stream{b::sldi(1, 0), b::sld(3, 1), b::ld(2, 3, 4)}, {}) == no_instruction);
}

TEST_CASE("registers keep their values over a restart") {
  // r1 is 0 in the first body, 16 and then more in later ones.
  CHECK(last_read_of(stream{b::ld(2, 1, 4), b::saddi(1, 1, 16)}, regions) == 0);
  CHECK(last_read_of(stream{b::ld(2, 1, 4), b::sldi(1, 16)}, regions) == 0);
  CHECK(last_read_of(stream{b::ld(2, 1, 4), b::sldi(1, 0)}, regions) == no_instruction);
  // A chain of such registers: each restart changes one more.
  CHECK(last_read_of(stream{b::ld(2, 1, 4), b::saddi(1, 3, 0), b::saddi(3, 4, 0), b::saddi(4, 5, 0), b::sldi(5, 16)}, regions) == 0);
}

TEST_CASE("an input is placed when all its readers have read the one before") {
  const stream reader{b::sldi(1, 0), b::ld(2, 1, 4)}, other{b::sldi(1, 4), b::ld(2, 1, 4)};
  input_feed feed(make_program({reader, other, reader}, 1, 1), 4);
  CHECK(feed.last_read(0) == 1);
  CHECK(feed.last_read(1) == no_instruction);
  CHECK(placed_by(feed, 0) == numbers{});
  CHECK(placed_by(feed, 2) == numbers{1});
  // One runs ahead: the other one still decides.
  CHECK(placed_by(feed, 2) == numbers{});
  CHECK(placed_by(feed, 2) == numbers{});
  CHECK(placed_by(feed, 0) == numbers{2});
  CHECK(placed_by(feed, 0) == numbers{3});
  CHECK(placed_by(feed, 0) == numbers{});
  CHECK(placed_by(feed, 2) == numbers{});
}

TEST_CASE("without a reader the ends of the bodies count, without a stream nothing") {
  const stream other{b::sldi(1, 4), b::ld(2, 1, 4)};
  input_feed feed(make_program({other, {}, other}, 1, 1), 3);
  CHECK(feed.last_read(0) == 2);
  CHECK(feed.last_read(1) == no_instruction);
  CHECK(placed_by(feed, 0) == numbers{});
  CHECK(placed_by(feed, 2) == numbers{1});
  input_feed empty(make_program({{}}, 1, 1), 3);
  numbers placed;
  empty.finish([&](std::size_t n) { placed.push_back(n); });
  CHECK(placed == numbers{1, 2});
}
