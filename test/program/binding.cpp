#include "raptor/program/binding.hpp"

#include <doctest/doctest.h>

#include "raptor/verify/copy_freedom.hpp"
#include "raptor/verify/program.hpp"
#include "support.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

/// One core that loads `a` (32 elements), does something, and stores `z`.
struct small {
  program::program p = empty_program(1);
  std::uint32_t in = add_input(p, 32, "in"), out = add_output(p, 32, "out");
  std::uint32_t a = add_buffer(p, 0, 32, "a"), z = add_buffer(p, 0, 32, "z");
  small() { add(p, 0, make(opcode::ld, {a, 0}, {in, 0}, 32)); }
  program::program finish() {
    add(p, 0, make(opcode::st, {out, 0}, {z, 0}, 32));
    verify::check_program(p);
    auto bound = program::bind(p);
    verify::check_program(bound);
    static_cast<void>(verify::check_copy_freedom(p, bound));
    std::vector<float> x(32);
    for (std::size_t k = 0; k < 32; ++k) x[k] = static_cast<float>(k) - 16.0f;
    CHECK(interpret(bound, {x}) == interpret(p, {x}));
    return bound;
  }
};

}  // namespace

TEST_CASE("a whole copy between the last and the first use becomes a view") {
  small s;
  add(s.p, 0, make(opcode::lmv, {s.z, 0}, {s.a, 0}, 32));
  const auto bound = s.finish();
  CHECK(bound.cores[0].body.size() == 2);
  CHECK(bound.buffers[s.z].view_of == s.a);
}

TEST_CASE("a copy stays where its source is used again, or only a part is copied") {
  SUBCASE("used again") {
    small s;
    add(s.p, 0, make(opcode::lmv, {s.z, 0}, {s.a, 0}, 32));
    add(s.p, 0, make(opcode::vvadd, {s.z, 0}, {s.z, 0}, {s.a, 0}, 32));
    CHECK(s.finish().cores[0].body.size() == 4);
  }
  SUBCASE("a part") {
    small s;
    add(s.p, 0, make(opcode::lmv, {s.z, 0}, {s.a, 16}, 16));
    add(s.p, 0, fill({s.z, 16}, 0.0f, 16));
    CHECK(s.finish().buffers[s.z].view_of == program::none);
  }
  SUBCASE("the destination lives before") {
    small s;
    add(s.p, 0, fill({s.z, 0}, 0.0f, 32));
    add(s.p, 0, make(opcode::lmv, {s.z, 0}, {s.a, 0}, 32));
    CHECK(s.finish().buffers[s.z].view_of == program::none);
  }
}

TEST_CASE("an element-wise result takes the place of an operand that dies") {
  const affine i = loop_variable(0), j = loop_variable(1);
  small s;
  bool shared = true;
  SUBCASE("one operation") { add(s.p, 0, make(opcode::vrelu, {s.z, 0}, {s.a, 0}, 32)); }
  SUBCASE("in chunks") { add(s.p, 0, repeat(0, 4, {{make(opcode::vrelu, {s.z, i * 8}, {s.a, i * 8}, 8)}})); }
  SUBCASE("in a nest") {
    add(s.p, 0, repeat(0, 4, {repeat(1, 2, {{make(opcode::vvadd, {s.z, i * 4 + j * 16}, {s.a, i * 4 + j * 16}, {s.a, i * 4 + j * 16}, 4)}})}));
  }
  SUBCASE("read twice") {
    const auto t = add_buffer(s.p, 0, 8);
    add(s.p, 0, repeat(0, 4, {{make(opcode::vrelu, {t, 0}, {s.a, i * 8}, 8)}, {make(opcode::vvmul, {s.z, i * 8}, {s.a, i * 8}, {t, 0}, 8)}}));
  }
  SUBCASE("not reversed") {
    shared = false;
    add(s.p, 0, repeat(0, 4, {{make(opcode::vrelu, {s.z, i * 8}, {s.a, 24 - i * 8}, 8)}}));
  }
  SUBCASE("not shifted") {
    shared = false;
    add(s.p, 0, fill({s.z, 0}, 0.0f, 32));
    add(s.p, 0, repeat(0, 3, {{make(opcode::vrelu, {s.z, i * 8 + 8}, {s.a, i * 8}, 8)}}));
  }
  SUBCASE("not where chunks overlap") {
    shared = false;
    add(s.p, 0, repeat(0, 7, {{make(opcode::vvadd, {s.z, i * 4}, {s.a, i * 4}, {s.a, i * 4}, 8)}}));
  }
  SUBCASE("not where a loop repeats the same chunk") {
    shared = false;
    add(s.p, 0, repeat(0, 4, {repeat(1, 2, {{make(opcode::vvadd, {s.z, i * 8}, {s.a, i * 8}, {s.a, i * 8}, 8)}})}));
  }
  SUBCASE("not where it is written before the operand is read again") {
    shared = false;
    const auto t = add_buffer(s.p, 0, 8);
    add(s.p, 0, repeat(0, 4, {{make(opcode::vrelu, {s.z, i * 8}, {s.a, i * 8}, 8)}, {make(opcode::vrelu, {t, 0}, {s.a, i * 8}, 8)}}));
  }
  SUBCASE("not by a gather") {
    shared = false;
    auto o = make(opcode::vmv, {s.z, 0}, {s.a, 31}, 32);
    o.stride = -1;
    add(s.p, 0, o);
  }
  const auto bound = s.finish();
  CHECK((bound.buffers[s.z].view_of == s.a) == shared);
}

TEST_CASE("two results that are born in one item do not both take the operand's place") {
  small s;
  const affine i = loop_variable(0);
  const auto t = add_buffer(s.p, 0, 32, "t");
  add(s.p, 0, repeat(0, 4, {{make(opcode::vrelu, {t, i * 8}, {s.a, i * 8}, 8)}, {make(opcode::vvsub, {s.z, i * 8}, {s.a, i * 8}, {t, i * 8}, 8)}}));
  const auto bound = s.finish();
  CHECK(bound.buffers[s.z].view_of == s.a);
  CHECK(bound.buffers[t].view_of == program::none);
}

TEST_CASE("a chain in one item shares one storage") {
  small s;
  const affine i = loop_variable(0);
  const auto t = add_buffer(s.p, 0, 32, "t");
  add(s.p, 0, repeat(0, 4, {{make(opcode::vvadd, {t, i * 8}, {s.a, i * 8}, {s.a, i * 8}, 8)}, {make(opcode::vrelu, {s.z, i * 8}, {t, i * 8}, 8)}}));
  const auto bound = s.finish();
  CHECK(bound.buffers[s.z].view_of == s.a);
  CHECK(bound.buffers[t].view_of == s.a);
}

TEST_CASE("binding keeps views of the realized program") {
  small s;
  const auto half = add_buffer(s.p, 0, 16, "half");
  s.p.buffers[half].view_of = s.a, s.p.buffers[half].view_offset = 16;
  add(s.p, 0, make(opcode::vrelu, {s.z, 0}, {s.a, 0}, 32));
  add(s.p, 0, make(opcode::vvadd, {s.z, 0}, {half, 0}, {half, 0}, 16));
  const auto bound = s.finish();
  CHECK(bound.buffers[half].view_of == s.a);
  CHECK(bound.buffers[half].view_offset == 16);
  CHECK(bound.buffers[s.z].view_of == program::none);
}

TEST_CASE("random programs compute the same after binding") {
  std::int64_t removed = 0, in_place = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    random_program random(seed);
    const auto& p = random.get();
    verify::check_program(p);
    const auto bound = program::bind(p);
    verify::check_program(bound);
    const auto report = verify::check_copy_freedom(p, bound);
    removed += report.copies_removed, in_place += report.in_place;
    const auto inputs = random.inputs();
    REQUIRE(interpret(bound, inputs) == interpret(p, inputs));
  }
  CHECK(removed > 100);
  CHECK(in_place > 500);
}
