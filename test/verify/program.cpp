#include "raptor/verify/program.hpp"

#include <doctest/doctest.h>

#include "../program/support.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

/// Two cores, each with a written buffer of 16 elements and an empty one.
struct two_cores {
  program::program p = empty_program(2);
  std::uint32_t in = add_input(p, 16, "in"), out = add_output(p, 16, "out");
  std::uint32_t a = add_buffer(p, 0, 16, "a"), b = add_buffer(p, 0, 16, "b"), c = add_buffer(p, 1, 16, "c");
  two_cores() {
    add_group(p, 0, 6, 8, std::vector<float>(48, 1.0f));
    add(p, 0, make(opcode::ld, {a, 0}, {in, 0}, 16));
    add(p, 0, make(opcode::st, {out, 0}, {a, 0}, 16));
  }
  std::string check() {
    try {
      verify::check_program(p);
    } catch (const error& e) {
      return std::string(name(e.code())) + ": " + e.what() + (e.place().empty() ? "" : " (" + e.place() + ")");
    }
    return {};
  }
  std::string with(operation o) {
    add(p, 0, std::move(o));
    return check();
  }
  std::string with(item i) {
    add(p, 0, std::move(i));
    return check();
  }
};

}  // namespace

TEST_CASE("right programs pass") {
  CHECK(two_cores().check().empty());
  for (std::uint32_t seed = 1000; seed < 1060; ++seed) {
    const random_program random(seed, 1 + seed % 5);
    CHECK_NOTHROW(verify::check_program(random.get()));
  }
}

TEST_CASE("places outside their buffers, over all loop values") {
  const affine i = loop_variable(0);
  CHECK(two_cores().with(fill({3, 1}, 0.0f, 16)) == "malformed: lldi: writes elements 1 to 17 of buffer 'b', which has 16 (core 0, item 2)");
  CHECK(two_cores().with(repeat(0, 4, {{fill({3, i * 4 + 1}, 0.0f, 4)}})) == "malformed: lldi: writes elements 1 to 17 of buffer 'b', which has 16 (core 0, item 2)");
  CHECK(two_cores().with(repeat(0, 4, {{fill({3, 8 - i * 4}, 0.0f, 4)}})).find("writes elements -4 to 12") != std::string::npos);
  CHECK(two_cores().with(repeat(0, 0, {{fill({3, 99}, 0.0f, 4)}})).empty());  // never runs
  auto gather = make(opcode::vmv, {3, 0}, {2, 0}, 6);
  gather.stride = 3;
  CHECK(two_cores().with(gather).empty());
  gather.length = 7;
  CHECK(two_cores().with(gather).find("reads elements 0 to 19") != std::string::npos);
  gather.length = 2, gather.stride = -1;
  CHECK(two_cores().with(gather).find("reads elements -1 to 1") != std::string::npos);
  // mvmul reads all 8 rows and writes all 8 columns, whatever its length
  CHECK(two_cores().with(make(opcode::mvmul, {3, 8}, {2, 8}, 5)).empty());
  CHECK(two_cores().with(make(opcode::mvmul, {3, 9}, {2, 8}, 5)).find("writes elements 9 to 17") != std::string::npos);
  CHECK(two_cores().with(make(opcode::mvmul, {3, 8}, {2, 9}, 5)).find("reads elements 9 to 17") != std::string::npos);
  CHECK(two_cores().with(make(opcode::mvmul, {3, 8}, {2, 8}, 9)).find("uses 9 columns of 8") != std::string::npos);
}

TEST_CASE("operations that the machine does not have") {
  CHECK(two_cores().with(fill({4, 0}, 0.0f, 16)).find("buffer 'c' lies in another memory") != std::string::npos);
  CHECK(two_cores().with(make(opcode::vrelu, {0, 0}, {2, 0}, 16)).find("buffer 'in' lies in another memory") != std::string::npos);
  CHECK(two_cores().with(make(opcode::ld, {2, 0}, {3, 0}, 16)).find("buffer 'b' lies in another memory") != std::string::npos);
  CHECK(two_cores().with(make(opcode::setbw, {}, {}, 0)).find("not an operation of a program") != std::string::npos);
  CHECK(two_cores().with(make(opcode::vrelu, {3, 0}, {2, 0}, 0)).find("length 0") != std::string::npos);
  CHECK(two_cores().with(send_to(5, {2, 0}, 4)).find("peer 5 of 2 cores") != std::string::npos);
  CHECK(two_cores().with(send_to(0, {2, 0}, 4)).find("a core talks to itself") != std::string::npos);
  CHECK(two_cores().with(wait_for(40, 1)).find("event register 40") != std::string::npos);
  CHECK(two_cores().with(wait_for(4, 0)).find("waits for 0 signals") != std::string::npos);
  auto product = make(opcode::mvmul, {3, 0}, {2, 0}, 8);
  product.group = 1;
  CHECK(two_cores().with(product).find("array group 1 of 1") != std::string::npos);
  two_cores t;
  t.p.chip.crossbars_per_core = 0;
  CHECK(t.check() == "capacity: 1 crossbars needed, 0 available (core 0)");
  two_cores rows;
  rows.p.weights[0].rows = 9;
  CHECK(rows.check().find("holds 9 x 8 weights, a crossbar has 8 rows") != std::string::npos);
}

TEST_CASE("overlapping copies and results") {
  const affine i = loop_variable(0), j = loop_variable(1);
  CHECK(two_cores().with(make(opcode::lmv, {2, 0}, {2, 8}, 8)).empty());
  CHECK(two_cores().with(make(opcode::lmv, {2, 1}, {2, 8}, 8)).find("lmv: its result overlaps an operand in buffer 'a'") != std::string::npos);
  CHECK(two_cores().with(repeat(0, 2, {{make(opcode::lmv, {2, i * 8}, {2, 8 - i * 8}, 8)}})).empty());
  CHECK(two_cores().with(repeat(0, 3, {{make(opcode::lmv, {2, i * 4}, {2, 8 - i * 4}, 4)}})).find("overlaps") != std::string::npos);  // both at 4
  CHECK(two_cores().with(repeat(0, 2, {repeat(1, 2, {{make(opcode::lmv, {2, i * 2 + j}, {2, i * 2 + j + 8}, 1)}})})).empty());
  CHECK(two_cores().with(make(opcode::vrelu, {2, 0}, {2, 0}, 16)).empty());
  CHECK(two_cores().with(make(opcode::vrelu, {2, 1}, {2, 0}, 15)).find("overlaps") != std::string::npos);
  CHECK(two_cores().with(make(opcode::mvmul, {2, 4}, {2, 0}, 8)).find("overlaps") != std::string::npos);
  auto dot = make(opcode::vvdmul, {2, 0}, {2, 0}, {2, 0}, 16);
  CHECK(two_cores().with(dot).empty());
  two_cores view;
  const auto v = add_buffer(view.p, 0, 8, "v");
  view.p.buffers[v].view_of = view.a, view.p.buffers[v].view_offset = 4;
  CHECK(view.with(make(opcode::lmv, {v, 0}, {view.a, 0}, 8)).find("overlaps") != std::string::npos);
}

TEST_CASE("reads of what nothing has written") {
  const affine i = loop_variable(0);
  CHECK(two_cores().with(make(opcode::vrelu, {2, 0}, {3, 0}, 16)) == "malformed: vrelu: reads element 0 of buffer 'b', which nothing has written (core 0, item 2)");
  {
    two_cores t;
    add(t.p, 0, repeat(0, 3, {{fill({t.b, i * 5}, 0.0f, 4)}}));  // leaves 4, 9 and 14, 15
    CHECK(t.with(make(opcode::vrelu, {t.a, 0}, {t.b, 0}, 4)).empty());
    CHECK(t.with(make(opcode::vrelu, {t.a, 0}, {t.b, 5}, 5)).find("reads element 9 of buffer 'b'") != std::string::npos);
  }
  {
    two_cores t;  // the tail that a matrix product reads
    add(t.p, 0, fill({t.b, 0}, 0.0f, 6));
    CHECK(t.with(make(opcode::mvmul, {t.a, 0}, {t.b, 0}, 8)).find("reads element 6") != std::string::npos);
  }
  {
    two_cores t;  // read before the iteration that writes
    const auto o = make(opcode::vvadd, {t.b, i * 4}, {t.b, 12 - i * 4}, {t.a, 0}, 4);
    add(t.p, 0, fill({t.b, 12}, 0.0f, 4));
    CHECK(t.with(repeat(0, 2, {{o}})).find("reads element 8 of buffer 'b'") != std::string::npos);
  }
  {
    two_cores t;  // every second element only
    auto gather = make(opcode::vmv, {t.a, 0}, {t.b, 0}, 8);
    gather.stride = 2;
    add(t.p, 0, repeat(0, 8, {{fill({t.b, i * 2}, 0.0f, 1)}}));
    CHECK(t.with(gather).empty());
    gather.a.offset = 1;
    CHECK(t.with(gather).find("reads element 1 of buffer 'b'") != std::string::npos);
  }
  {
    two_cores t;  // written through a view
    const auto v = add_buffer(t.p, 0, 8, "v");
    t.p.buffers[v].view_of = t.b, t.p.buffers[v].view_offset = 8;
    add(t.p, 0, fill({v, 0}, 0.0f, 8));
    CHECK(t.with(make(opcode::vrelu, {t.a, 0}, {t.b, 8}, 8)).empty());
    CHECK(t.with(make(opcode::vrelu, {t.a, 0}, {t.b, 7}, 8)).find("reads element 7") != std::string::npos);
  }
  {
    two_cores t;  // global memory that no one stores, and an output that is not complete
    const auto g = add_buffer(t.p, program::global_memory, 16, "g");
    add(t.p, 1, make(opcode::ld, {t.c, 0}, {g, 4}, 4));
    CHECK(t.check() == "malformed: element 4 of global buffer 'g' is loaded, but is neither input nor constant and no core stores it");
    add(t.p, 0, make(opcode::st, {g, 4}, {t.a, 0}, 4));
    CHECK(t.check().empty());
    t.p.outputs.push_back({"more", {17}, g});
    CHECK(t.check().find("is larger than its buffer") != std::string::npos);
    t.p.outputs.back().sizes = {8};
    CHECK(t.check() == "malformed: element 0 of output 'more' is stored by no core");
  }
}

TEST_CASE("messages match in number, order and size") {
  const auto with = [](const std::vector<std::int64_t>& sent, const std::vector<std::int64_t>& received) {
    two_cores t;
    for (const auto n : sent) add(t.p, 0, send_to(1, {t.a, 0}, n));
    for (const auto n : received) add(t.p, 1, receive_from(0, {t.c, 0}, n));
    return t.check();
  };
  CHECK(with({4, 4, 8}, {4, 4, 8}).empty());
  CHECK(with({4, 8, 4}, {4, 4, 8}) == "malformed: core 0 sends 3 messages to core 1, which receives 3; they differ from message 1 on");
  CHECK(with({4, 8}, {4, 9}) == "malformed: message 1 from core 0 to core 1 is sent with 8 elements and received with 9");
  CHECK(with({4, 4, 4}, {4, 4}) == "malformed: core 0 sends 3 messages to core 1, which receives 2; they differ from message 2 on");
  CHECK(with({}, {4}).find("sends 0 messages to core 1, which receives 1") != std::string::npos);
  two_cores loops;
  add(loops.p, 0, repeat(0, 6, {{send_to(1, {loops.a, loop_variable(0)}, 2)}}));
  add(loops.p, 1, repeat(0, 2, {repeat(1, 3, {{receive_from(0, {loops.c, loop_variable(1)}, 2)}})}));
  CHECK(loops.check().empty());
}

TEST_CASE("a mutation of a right program is found, or changes nothing that the machine forbids") {
  // Every removal of a top-level item must be noticed where something needed it; the interpreter's NaN marks unwritten memory.
  int found = 0, harmless = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    random_program random(seed, 2, 15);
    const auto& p = random.get();
    for (std::size_t k = 0; k < p.cores[0].body.size(); ++k) {
      auto mutant = p;
      mutant.cores[0].body.erase(mutant.cores[0].body.begin() + static_cast<std::ptrdiff_t>(k));
      try {
        verify::check_program(mutant);
        ++harmless;
        for (const auto& output : interpret(mutant, random.inputs()))
          for (const float v : output) CHECK(v == v);
      } catch (const error& e) {
        CHECK(e.code() == error_code::malformed);
        ++found;
      }
    }
  }
  CHECK(found > 100);
  CHECK(harmless > 10);
}
