#include "raptor/verify/copy_freedom.hpp"

#include <doctest/doctest.h>

#include "../program/support.hpp"
#include "raptor/program/binding.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

std::string refused(const program::program& realized, const program::program& bound) {
  try {
    static_cast<void>(verify::check_copy_freedom(realized, bound));
  } catch (const error& e) {
    CHECK(e.code() == error_code::internal);
    return e.what();
  }
  return {};
}

/// in → a; b = relu(a); a copied to c; c + b → out
struct chain {
  program::program p = empty_program(1);
  std::uint32_t in = add_input(p, 32, "in"), out = add_output(p, 32, "out");
  std::uint32_t a = add_buffer(p, 0, 32, "a"), b = add_buffer(p, 0, 32, "b"), c = add_buffer(p, 0, 32, "c");
  chain() {
    add(p, 0, make(opcode::ld, {a, 0}, {in, 0}, 32));
    add(p, 0, make(opcode::vrelu, {b, 0}, {a, 0}, 32));
    add(p, 0, make(opcode::lmv, {c, 0}, {a, 0}, 32));
    add(p, 0, make(opcode::vvadd, {c, 0}, {c, 0}, {b, 0}, 32));
    add(p, 0, make(opcode::st, {out, 0}, {c, 0}, 32));
  }
  void view(program::program& bound, std::uint32_t of, std::uint32_t owner, std::int64_t offset = 0) const {
    bound.buffers[of].view_of = owner, bound.buffers[of].view_offset = offset;
  }
};

}  // namespace

TEST_CASE("the identity and the default binding are proven") {
  const chain t;
  const auto same = verify::check_copy_freedom(t.p, t.p);
  CHECK(same.copies_kept == 1);
  CHECK(same.copies_removed == 0);
  CHECK(same.shared_buffers == 0);
  const auto report = verify::check_copy_freedom(t.p, program::bind(t.p));
  CHECK(report.copies_kept == 0);
  CHECK(report.copies_removed == 1);
  CHECK(report.shared_buffers == 1);
  CHECK(report.in_place == 0);
}

TEST_CASE("wrong bindings are refused") {
  const chain t;
  auto bound = t.p;
  auto& body = bound.cores[0].body;
  SUBCASE("a copy less without shared storage") {
    body.erase(body.begin() + 2);
    CHECK(refused(t.p, bound).find("a copy is missing between buffers that do not share storage") != std::string::npos);
  }
  SUBCASE("an item less that is no copy") {
    body.erase(body.begin() + 1);
    CHECK(refused(t.p, bound).find("an item is missing that is no copy") != std::string::npos);
  }
  SUBCASE("a copy more") {
    body.insert(body.begin() + 2, body[2]);
    CHECK(refused(t.p, bound).find("was changed") != std::string::npos);
  }
  SUBCASE("a copy more at the end") {
    body.push_back(body[2]);
    CHECK(refused(t.p, bound).find("an item was inserted") != std::string::npos);
  }
  SUBCASE("an operation changed") {
    std::get<operation>(body[3].what).length = 31;
    CHECK(refused(t.p, bound).find("was changed") != std::string::npos);
  }
  SUBCASE("storage shared in a way that clobbers") {
    t.view(bound, t.b, t.a);  // b is born while a is still to be copied
    CHECK(refused(t.p, bound).find("buffers 'a' and 'b' share storage and are in use at the same time") != std::string::npos);
  }
  SUBCASE("a buffer that grew") {
    bound.buffers[t.b].elements = 64;
    CHECK(refused(t.p, bound).find("it changed a buffer") != std::string::npos);
  }
  SUBCASE("an output elsewhere") {
    bound.outputs[0].buffer = t.in;
    CHECK(refused(t.p, bound).find("it changed the chip, an input or an output") != std::string::npos);
  }
  SUBCASE("global memory aliased") {
    t.view(bound, t.out, t.in);
    CHECK(refused(t.p, bound).find("it aliases buffers in global memory") != std::string::npos);
  }
  SUBCASE("a view outside its owner") {
    t.view(bound, t.b, t.a, 1);
    CHECK(refused(t.p, bound).find("a view outside its owner") != std::string::npos);
  }
}

TEST_CASE("a copy that leaves a part of its destination must stay") {
  auto p = empty_program(1);
  const auto in = add_input(p, 32, "in"), out = add_output(p, 16, "out");
  const auto a = add_buffer(p, 0, 32, "a"), b = add_buffer(p, 0, 32, "b");
  add(p, 0, make(opcode::ld, {a, 0}, {in, 0}, 32));
  add(p, 0, make(opcode::lmv, {b, 0}, {a, 0}, 16));
  add(p, 0, make(opcode::st, {out, 0}, {b, 0}, 16));
  auto bound = p;
  bound.cores[0].body.erase(bound.cores[0].body.begin() + 1);
  bound.buffers[b].view_of = a;
  CHECK(refused(p, bound).find("a removed copy does not fill 'b'") != std::string::npos);
}

TEST_CASE("order inside a loop: what may share storage, and what not") {
  const affine i = loop_variable(0), j = loop_variable(1);
  const auto shares = [](std::vector<item> body) {  // 'b' born in the item in which 'a' dies
    auto p = empty_program(1);
    const auto in = add_input(p, 32, "in"), out = add_output(p, 32, "out");
    const auto a = add_buffer(p, 0, 32, "a"), b = add_buffer(p, 0, 32, "b");
    add(p, 0, make(opcode::ld, {a, 0}, {in, 0}, 32));
    add(p, 0, repeat(0, 4, std::move(body)));
    add(p, 0, make(opcode::st, {out, 0}, {b, 0}, 32));
    auto bound = p;
    bound.buffers[b].view_of = a;
    const bool proven = refused(p, bound).empty();
    if (proven) {
      std::vector<float> x(32);
      for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k);
      const auto expected = interpret(p, {x}), got = interpret(bound, {x});
      for (std::size_t k = 0; k < 32; ++k)  // what the program writes; the rest of `b` is undefined
        if (expected[0][k] == expected[0][k]) CHECK(got[0][k] == expected[0][k]);
    }
    return proven;
  };
  constexpr std::uint32_t a = 2, b = 3;
  const auto relu = [](affine to, affine from, std::int64_t n) { return item{make(opcode::vrelu, {b, std::move(to)}, {a, std::move(from)}, n)}; };
  CHECK(shares({relu(i * 8, i * 8, 8)}));
  CHECK(shares({repeat(1, 2, {relu(i * 8 + j * 4, i * 8 + j * 4, 4)})}));
  CHECK(shares({repeat(1, 2, {relu(i * 4 + j * 16, i * 4 + j * 16, 4)})}));
  CHECK(!shares({relu(i * 8, 24 - i * 8, 8)}));            // reads what an earlier iteration wrote
  CHECK(!shares({relu(i * 6, i * 6, 8)}));                 // chunks overlap
  CHECK(!shares({relu(i * 8, i * 8 + affine(1), 7), relu(i * 8 + 7, i * 8, 1)}));
  CHECK(shares({relu(i * 8, i * 8 + 4, 4), relu(i * 8 + 4, 0, 1)}) == false);  // element 0 is gone after the first iteration
  // Beyond what binding looks for: writes that stay behind the reads are proven as well.
  auto shift = make(opcode::vmv, {b, i * 4}, {a, i * 8}, 4);
  CHECK(!shares({{shift}}));                               // the gather itself may write what it has not yet read
  CHECK(shares({{make(opcode::vrelu, {b, i * 4}, {a, i * 8 + 4}, 4)}}));  // writes [4i, 4i+4), reads from 8i+4 on
  CHECK(!shares({{make(opcode::vrelu, {b, i * 8 + 4}, {a, i * 4}, 4)}}));
}

TEST_CASE("whole-number bounds of distances") {
  using verify::dependence_parts::reaches;
  using verify::dependence_parts::unknown;
  CHECK(reaches(5, {}, 4, 6));
  CHECK(!reaches(5, {}, 5, 9));
  CHECK(!reaches(0, {{4, 1, 3}, {16, -1, 1}}, -4, 4));   // 4 d + 16 e never comes closer than 4
  CHECK(reaches(0, {{4, 1, 4}, {16, -1, 1}}, -4, 4));    // 4 · 4 - 16 = 0
  CHECK(!reaches(1, {{2, -100, 100}}, -1, 1));           // odd: never 0
  CHECK(reaches(1, {{-2, -100, 100}, {3, 0, 1}}, -1, 1));
  CHECK(!reaches(0, {{0, 0, 9}, {7, 1, 5}}, 0, 7));
  // By trying all values.
  std::mt19937 dice(3);
  for (int k = 0; k < 2000; ++k) {
    const auto pick = [&](int low, int high) { return static_cast<std::int64_t>(dice() % static_cast<std::uint32_t>(high - low + 1)) + low; };
    const std::vector<unknown> u{{pick(-9, 9), pick(-3, 0), pick(0, 3)}, {pick(-30, 30), 0, pick(0, 4)}, {pick(-3, 3), 1, pick(1, 5)}};
    const auto constant = pick(-40, 40), low = pick(-20, 5), high = low + pick(1, 12);
    bool expected = false;
    for (auto x = u[0].low; x <= u[0].high; ++x)
      for (auto y = u[1].low; y <= u[1].high; ++y)
        for (auto z = u[2].low; z <= u[2].high; ++z) {
          const auto v = constant + u[0].coefficient * x + u[1].coefficient * y + u[2].coefficient * z;
          expected |= low < v && v < high;
        }
    REQUIRE(reaches(constant, u, low, high) == expected);
  }
}
