#include "raptor/program/text.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "raptor/program/equality.hpp"
#include "support.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

program::program round_trip(const program::program& p) {
  const auto form = program::to_text(p);
  auto parsed = program::parse_text(form.text, form.constants);
  CHECK(program::to_text(parsed.value).text == form.text);
  CHECK(parsed.weight_files.size() == p.weights.size());
  return std::move(parsed.value);
}

std::string message(const std::string& text, std::string* place = nullptr) {
  try {
    static_cast<void>(program::parse_text(text));
  } catch (const error& e) {
    CHECK(e.code() == error_code::malformed);
    if (place != nullptr) *place = e.place();
    return e.what();
  }
  return "accepted";
}

const std::string head =
    "raptor program 1\nname \"n\"\nchip cores 2 crossbars 1 rows 8 columns 8 weight_columns 8 cell_bits 32 weight_bits 32 element_bits 32 adc 16 "
    "local_memory 1024\n";

}  // namespace

TEST_CASE("a program by hand prints as it reads") {
  auto p = empty_program(2);
  p.name = "small \"net\" \n\\ é";
  p.chip.local_memory_bytes = 4096;
  p.origins = {"conv"};
  const auto x = add_input(p, 8, "x");
  add_constant(p, {1.0f, -0.0f}, "bias");
  const auto in = add_buffer(p, 1, 8, "rows"), out = add_buffer(p, 1, 16, "sums");
  const auto view = add_buffer(p, 1, 4, "part");
  p.buffers[view].view_of = out, p.buffers[view].view_offset = 4;
  add_group(p, 1, 6, 10, std::vector<float>(60, 1.0f));
  add(p, 1, make(opcode::ld, {in, 0}, {x, 0}, 8));
  auto product = make(opcode::mvmul, {out, 0}, {in, loop_variable(0) * 2 - 3}, 10);
  product.bits = 1;
  p.cores[1].body.push_back({program::loop{0, 3, {{product}}}, 0});
  add(p, 1, wait_for(3, 2));
  add(p, 1, send_to(0, {view, 0}, 4));
  const auto text = program::to_text(p).text;
  CHECK(text.find("  loop i0 3 @0 {\n    mvmul %3[0] <- %2[-3+2*i0] len 10 group 0 bits 0x00000001\n  }\n") != text.npos);
  CHECK(text.find("  buffer %4 \"part\" 4 view %3[4]\n") != text.npos);
  CHECK(text.find("  buffer %1 \"bias\" 2 data 0x3f800000 0x80000000\n") != text.npos);
  CHECK(text.find("  wait event 3 count 2\n  send <- %4[0] len 4 peer 0\n") != text.npos);
  CHECK(text.find("core 0") == text.npos);
  CHECK(program::same_structure(round_trip(p), p));
}

TEST_CASE("random programs come back equal, with their constants") {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const random_program random(seed);
    const auto& p = random.get();
    const auto form = program::to_text(p);
    CHECK(form.constants.size() == 64);  // two tables of 32; the one of 8 stands in the text
    CHECK(program::same_structure(round_trip(p), p));
  }
}

TEST_CASE("every field of every operation comes back") {
  auto p = empty_program(1);
  add_buffer(p, 0, 4);
  for (int op = 0; op < isa::opcode_count; ++op)
    for (int field = 0; field < 10; ++field) {
      operation o;
      o.op = static_cast<opcode>(op);
      if (field == 0) o.d = {0, 3};
      if (field == 1) o.a = {0, affine(symbol{symbol::kind::loop, 7}) * -5};
      if (field == 2) o.b = {0, 9};
      if (field == 3) o.length = -7;
      if (field == 4) o.stride = -1;
      if (field == 5) o.bits = 0xffffffffu;
      if (field == 6) o.group = 9;
      if (field == 7) o.peer = 5;
      if (field == 8) o.event = 31;
      if (field == 9) o.count = -2, o.d = {program::none, 4};
      add(p, 0, o);
    }
  CHECK(program::same_structure(round_trip(p), p));
}

TEST_CASE("wrong texts are errors with their line") {
  std::string place;
  CHECK(message("", &place) == "the text ends where 'raptor program 1' is expected");
  CHECK(message("raptor program 2\n") == "version 2, only version 1 is known");
  CHECK(message("raptor program 1\nname \"x", &place) == "a text without its closing quote");
  CHECK(place == "program, line 2");
  const auto with = [&](const std::string& rest) { return message(head + rest, &place); };
  CHECK(with("global {\n}\ncores 2\n") == "accepted");
  CHECK(with("global {\n}\ncores 2\ncore 2 {\n}\n") == "number 2 is out of range");
  CHECK(place == "program, line 7");
  CHECK(with("global {\n}\ncores 2\ncore 1 {\n}\ncore 0 {\n}\n") == "core 0 after core 1");
  CHECK(with("global {\n}\ncores 99999999999\n") == "number 99999999999 is out of range");
  CHECK(with("global {\n  buffer %0 \"a\" 4\n  buffer %0 \"b\" 4\n}\ncores 2\n") == "buffer 0 is declared twice");
  CHECK(with("global {\n  buffer %4000000000 \"a\" 4\n}\ncores 2\n") == "buffer 0 is not declared");
  CHECK(with("global {\n  buffer %0 \"a\" 4 constants 0 4\n}\ncores 2\n") == "constants 0 to 0 + 4 of a file of 0");
  CHECK(with("global {\n  buffer %0 \"a\" -4\n}\ncores 2\n") == "number -4 is out of range");
  const std::string core = "global {\n}\ncores 2\ncore 0 {\n  buffer %0 \"a\" 4\n";
  CHECK(with(core + "  vfoo %0[0] <- %0[0] len 4\n}\n") == "unknown operation 'vfoo'");
  CHECK(with(core + "  vrelu %1[0] <- %0[0] len 4\n}\n") == "buffer 1 is used but not declared");
  CHECK(with(core + "  vrelu %0[q] <- %0[0] len 4\n}\n").find("not an affine expression") == 0);
  CHECK(with(core + "  vrelu %0[0 <- %0[0 len 4\n}\n") == "expected [offset]");
  CHECK(with(core + "  vrelu %0[0] <- %0[0] len 4 nonsense 3\n}\n") == "unexpected 'nonsense 3'");
  CHECK(with(core + "  vrelu %0[0] <- %0[0] len 4 @0\n}\n") == "origin 0 of 0");
  CHECK(with(core + "  groups 0\n}\n") == "weights 0 of 0");
  CHECK(with(core + "  loop i0 4 {\n    vrelu %0[i0] <- %0[i0] len 1\n") == "the text ends where '}' is expected");
  CHECK(with(core + "  loop x0 4 {\n  }\n}\n") == "expected a loop variable such as i0");
  std::string deep;
  for (int k = 0; k < 100000; ++k) deep += "loop i" + std::to_string(k) + " 2 {\n";
  CHECK(with(core + deep).find("loops are nested deeper") == 0);
  CHECK(with(core + "}\ngarbage\n") == "expected 'core' before 'garbage'");
}

TEST_CASE("no cut and no changed byte of a text does harm") {
  const random_program random(5);
  const auto text = program::to_text(random.get()).text;
  for (std::size_t n = 0; n < text.size(); n += 7) static_cast<void>(message(text.substr(0, n)));
  std::mt19937 dice(1);
  for (int k = 0; k < 3000; ++k) {
    auto changed = text;
    changed[dice() % changed.size()] = static_cast<char>(dice() % 256);
    try {
      static_cast<void>(program::parse_text(changed, std::vector<float>(64)));
    } catch (const error& e) {
      CHECK((e.code() == error_code::malformed || e.code() == error_code::capacity));
    }
  }
}

TEST_CASE("a hundred thousand operations in a second") {
  auto p = empty_program(4);
  for (std::size_t k = 0; k < 100000; ++k) {
    const std::size_t c = k % 4;
    if (k < 4) add_buffer(p, static_cast<std::int32_t>(c), 4096);
    const auto b = static_cast<std::uint32_t>(c);
    const auto i = loop_variable(0);
    add(p, c, repeat(0, 4, {{make(opcode::vvadd, {b, i * 8}, {b, i * 16 + 64}, {b, 128}, 8)}}));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto form = program::to_text(p);
  const auto parsed = program::parse_text(form.text);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE("print and parse 100000 loops: " << seconds << " s, " << form.text.size() << " bytes");
  CHECK(program::same_structure(parsed.value, p));
}
