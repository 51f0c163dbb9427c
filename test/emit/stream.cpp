#include "raptor/emit/stream.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <set>

#include "../program/support.hpp"
#include "execute.hpp"
#include "raptor/isa/check.hpp"
#include "raptor/isa/text.hpp"
#include "raptor/program/binding.hpp"
#include "raptor/program/equality.hpp"
#include "raptor/program/text.hpp"
#include "raptor/verify/copy_freedom.hpp"
#include "raptor/verify/program.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

/// What ISA.md and ARTIFACTS.md ask of every emitted stream, judged from the instructions alone.
void check_stream(const std::vector<isa::instruction>& stream, std::size_t cores) {
  if (stream.empty()) return;
  CHECK(stream.front() == isa::build::setbw(32, 32));
  const auto unit = isa::info(stream.back()).unit;
  CHECK((unit == isa::unit::matrix || unit == isa::unit::vector || unit == isa::unit::transfer));
  CHECK(stream.back().op != opcode::setbw);
  std::array<std::int32_t, 32> registers{};
  std::set<int> written;
  for (const auto& i : stream) {
    CHECK(isa::find_fault(i, {static_cast<std::int32_t>(cores), 64}).reason == "");
    CHECK(isa::is_canonical(i));
    CHECK(isa::info(i).emitted != isa::emission::never);
    if (i.op == opcode::sldi) {
      const bool repeated = written.count(i.rd) != 0 && registers[i.rd] == i.word0;
      CHECK(!repeated);
      registers[i.rd] = i.word0;
      written.insert(i.rd);
    } else if (isa::info(i)[isa::slot::word1] == isa::role::offset_select) {
      CHECK((i.word1 == 0 && i.word2 == 0));
    }
    if (i.op == opcode::ld || i.op == opcode::st) {
      const auto global = i.op == opcode::ld ? i.r1 : i.rd;
      CHECK((i.rd != 31 && i.r1 != 31));
      CHECK(global % 2 == 0);
      CHECK(registers[global + 1u] == 0);
    }
    if (i.op == opcode::send) CHECK(i.rd == i.r1);
  }
}

std::string text_of(const std::vector<isa::instruction>& stream) {
  std::string text;
  for (const auto& i : stream) text += isa::to_text(i) + "\n";
  return text;
}

}  // namespace

TEST_CASE("random programs compute the same through binding, planning, emission and execution") {
  std::size_t instructions = 0, loads = 0;
  std::int64_t with_reuse = 0, without = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    random_program random(seed, 1 + seed % 4);
    const auto& p = random.get();
    const auto inputs = random.inputs();
    const auto expected = interpret(p, inputs);
    const auto planned = memory::plan(program::bind(p));
    memory::check_plan(planned);
    auto built = emit::build(planned);
    for (const auto& stream : built.streams) {
      check_stream(stream, p.cores.size());
      instructions += stream.size();
      for (const auto& i : stream) loads += i.op == opcode::sldi;
    }
    for (const auto& core : planned.cores) with_reuse += core.bytes, without += core.total;
    REQUIRE(execute(load(std::move(built)), inputs) == expected);
    REQUIRE(execute(load(emit::build(memory::plan(p))), inputs) == expected);  // not bound at all
  }
  MESSAGE(instructions << " instructions, " << loads << " of them sldi; local bytes " << with_reuse << " of " << without << " without reuse");
  CHECK(with_reuse * 2 < without);
}

TEST_CASE("whatever the copy-freedom proof accepts computes the same, whatever it was asked") {
  // Two buffers of a program are given one storage at random: the proof may refuse, but must not accept a wrong one.
  std::mt19937 dice(11);
  int accepted = 0, refused = 0, harmful = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    random_program random(seed % 40, 2, 12);
    const auto& p = random.get();
    auto bound = seed % 2 == 0 ? p : program::bind(p);
    const auto owner = dice() % p.buffers.size(), other = dice() % p.buffers.size();
    auto &x = bound.buffers[owner], &y = bound.buffers[other];
    if (owner == other || x.core < 0 || x.core != y.core || y.elements > x.elements || x.view_of != program::none || y.view_of != program::none) continue;
    bool owns = false;
    for (const auto& b : bound.buffers) owns |= b.view_of == other;
    if (owns) continue;
    y.view_of = static_cast<std::uint32_t>(owner);
    y.view_offset = y.elements < x.elements ? static_cast<std::int64_t>(dice() % static_cast<std::uint32_t>(x.elements - y.elements)) : 0;
    const auto inputs = random.inputs();
    bool proven = true;
    try {
      static_cast<void>(verify::check_copy_freedom(p, bound));
    } catch (const error& e) {
      CHECK(e.code() == error_code::internal);
      proven = false;
    }
    (proven ? accepted : refused) += 1;
    const bool same = interpret(bound, inputs) == interpret(p, inputs);
    harmful += !same;
    if (proven) REQUIRE(same);
  }
  CHECK(accepted > 20);
  CHECK(refused > 20);
  CHECK(harmful > 10);
}

TEST_CASE("the streams of a program that went through its text form are the same") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const random_program random(seed);
    const auto bound = program::bind(random.get());
    const auto form = program::to_text(bound);
    const auto again = program::parse_text(form.text, form.constants).value;
    const auto one = memory::plan(bound), two = memory::plan(again);
    CHECK(one.addresses == two.addresses);
    for (std::size_t c = 0; c < bound.cores.size(); ++c) CHECK(emit::stream_of(one, c) == emit::stream_of(two, c));
  }
}

TEST_CASE("a damaged text is refused somewhere, or makes a program that can be emitted") {
  std::mt19937 dice(7);
  int emitted = 0, refused = 0;
  const std::string digits = "0123456789-*i+";
  for (int k = 0; k < 1500; ++k) {
    const random_program random(static_cast<std::uint32_t>(k % 5), 2, 8);
    auto text = program::to_text(program::bind(random.get())).text;
    for (std::size_t n = dice() % 3 + 1; n > 0; --n) {
      const auto at = text.find_first_of("0123456789", dice() % text.size());
      if (at != text.npos) text[at] = digits[dice() % digits.size()];
    }
    try {
      const auto p = program::parse_text(text, std::vector<float>(64)).value;
      memory::image planned = memory::plan(p);
      memory::check_plan(planned);
      if (planned.global_bytes > 1 << 24) continue;
      emit::stream_options options;
      options.most_operations = 100000;
      static_cast<void>(emit::build(planned, options));
      ++emitted;
      verify::initialized_options few;
      few.most_operations = 100000, few.most_elements = 1 << 24;
      for (std::size_t c = 0; c < p.cores.size(); ++c) verify::check_bounds(p, c);
      verify::check_initialized(p, few);
    } catch (const error& e) {
      CHECK((e.code() == error_code::malformed || e.code() == error_code::capacity));
      ++refused;
    }
  }
  CHECK(emitted > 100);
  CHECK(refused > 100);
}

TEST_CASE("each operation's instructions") {
  auto p = empty_program(2);
  const auto in = add_input(p, 16, "in"), out = add_output(p, 16, "out");
  const auto a = add_buffer(p, 0, 16), b = add_buffer(p, 0, 32);
  add_group(p, 0, 6, 10, std::vector<float>(60, 1.0f));
  add(p, 0, make(opcode::ld, {a, 0}, {in, 0}, 16));
  add(p, 0, fill({b, 0}, 0.0f, 32));
  add(p, 0, fill({b, 8}, 1.0f, 3));
  add(p, 0, fill({b, 8}, 1.0f, 1));
  auto product = make(opcode::mvmul, {b, 16}, {a, 0}, 10);
  product.bits = 1;
  add(p, 0, product);
  add(p, 0, clamp(opcode::vrsu, {b, 0}, {a, 0}, 6.0f, 16));
  auto mean = make(opcode::vavg, {b, 0}, {a, 0}, 4);
  mean.stride = 4;
  add(p, 0, mean);
  add(p, 0, sync_to(1, 7));
  add(p, 0, wait_for(5, 3));
  add(p, 0, send_to(1, {a, 4}, 12));
  add(p, 0, make(opcode::st, {out, 0}, {b, 16}, 16));
  const auto planned = memory::plan(p);
  CHECK(planned.addresses == std::vector<std::int64_t>{0, 64, 0, 64});
  const std::string text = text_of(emit::stream_of(planned, 0));
  const std::vector<isa::instruction> expected = [] {
    namespace i = isa::build;
    return std::vector<isa::instruction>{
        i::setbw(32, 32),
        i::sldi(28, 0), i::ld(28, 28, 64),              // r29 holds 0
        i::sldi(0, 64), i::lldi(0, 0, 128),
        i::sldi(1, 96), i::lldi(1, 0, 12), i::sldi(2, 0x3f800000), i::vrsl(1, 1, 2, 3),  // zeros, raised to one
        i::lldi(1, 0, 4), i::vrsl(1, 1, 2, 1),
        i::sldi(5, 128), i::mvmul(5, 28, 0, 32, 1),
        i::sldi(6, 0x40c00000), i::vrsu(0, 28, 6, 16),
        i::sldi(7, 4), i::vavg(0, 28, 7, 4),
        i::sync(7, 1),
        i::wait(5, 3),
        i::sldi(8, 16), i::send(8, 1, 48),
        i::sldi(30, 64), i::st(30, 5, 64)};
  }();
  // A register that holds the value may be any: compare with registers renamed by what they hold.
  const auto renamed = [&](const std::vector<isa::instruction>& stream) {
    std::array<std::int32_t, 32> held{};
    std::string result;
    for (const auto& i : stream) {
      if (i.op == opcode::sldi) {
        held[i.rd] = i.word0;
        continue;
      }
      result += std::string(isa::mnemonic(i.op));
      for (const auto s : isa::all_slots) {
        const auto role = isa::info(i)[s];
        if (role != isa::role::unused) result += " " + std::to_string(isa::is_register(role) ? held[static_cast<std::size_t>(isa::get(i, s))] : isa::get(i, s));
      }
      result += "\n";
    }
    return result;
  };
  CHECK(renamed(emit::stream_of(planned, 0)) == renamed(expected));
  CHECK(emit::stream_of(planned, 0).size() <= expected.size());
  CHECK(emit::stream_of(planned, 1).empty());
}

TEST_CASE("registers: known values are not loaded again, the one used longest ago goes first") {
  emit::register_file registers(true);
  std::vector<int> loaded;
  const auto load = [&](std::uint8_t r) { loaded.push_back(r); };
  CHECK(registers.local(0, load) == 29);  // holds 0 from the start
  CHECK(loaded.empty());
  for (int v = 1; v <= 28; ++v) {
    registers.next_instruction();
    CHECK(registers.local(v, load) == v - 1);
  }
  CHECK(loaded.size() == 28);
  registers.next_instruction();
  CHECK(registers.local(1, load) == 0);
  CHECK(loaded.size() == 28);
  registers.next_instruction();
  CHECK(registers.local(100, load) == 1);  // 2 was used longest ago
  CHECK(registers.local(101, load) == 2);
  CHECK(registers.local(2, load) == 3);
  registers.next_instruction();
  CHECK(registers.global(64, load) == 28);
  CHECK(registers.global(128, load) == 30);
  registers.next_instruction();
  CHECK(registers.local(128, load) == 30);
  CHECK(registers.local(0, load, 0x7fffffffu) == 29);
  registers.next_instruction();
  CHECK(registers.global(192, load) == 28);
}

TEST_CASE("loops that never run give an empty stream") {
  auto p = empty_program(1);
  const auto b = add_buffer(p, 0, 8);
  add(p, 0, repeat(0, 0, {{fill({b, 0}, 0.0f, 8)}}));
  CHECK(emit::stream_of(memory::plan(p), 0).empty());
}

TEST_CASE("operations that contradict the program are refused with their place") {
  const auto message = [](const auto& change) {
    auto p = empty_program(2);
    const auto b = add_buffer(p, 0, 8, "b");
    const auto other = add_buffer(p, 1, 8, "other");
    add_group(p, 0, 8, 8, std::vector<float>(64));
    add(p, 0, fill({b, 0}, 0.0f, 8));
    add(p, 1, fill({other, 0}, 0.0f, 8));
    change(p);
    try {
      static_cast<void>(emit::build(memory::plan(p)));
    } catch (const error& e) {
      return std::string(name(e.code())) + ": " + e.what() + " (" + e.place() + ")";
    }
    return std::string();
  };
  using P = program::program;
  CHECK(message([](P& p) { add(p, 0, fill({0, 1}, 0.0f, 8)); }) == "malformed: lldi: reaches outside buffer 'b' of 8 elements (core 0, item 1)");
  CHECK(message([](P& p) { add(p, 0, fill({0, -1}, 0.0f, 2)); }) == "malformed: lldi: reaches outside buffer 'b' of 8 elements (core 0, item 1)");
  CHECK(message([](P& p) { add(p, 0, fill({1, 0}, 0.0f, 2)); }) == "malformed: lldi: buffer 'other' lies in another memory (core 0, item 1)");
  CHECK(message([](P& p) { add(p, 0, fill({9, 0}, 0.0f, 2)); }).find("names buffer 9 of 2") != std::string::npos);
  CHECK(message([](P& p) { add(p, 0, make(opcode::nop, {}, {}, 0)); }) == "malformed: nop: not an operation of a program (core 0, item 1)");
  CHECK(message([](P& p) { add(p, 0, make(opcode::sldi, {}, {}, 1)); }) == "malformed: sldi: not an operation of a program (core 0, item 1)");
  CHECK(message([](P& p) { add(p, 0, make(opcode::vrelu, {0, 0}, {0, 0}, 0)); }) == "malformed: vrelu: length 0 (core 0, item 1)");
  CHECK(message([](P& p) { add(p, 0, send_to(2, {0, 0}, 4)); }) == "malformed: send: peer 2 of 2 cores (core 0, item 1)");
  CHECK(message([](P& p) { add(p, 0, wait_for(32, 1)); }) == "malformed: wait: event register 32 (core 0, item 1)");
  CHECK(message([](P& p) {
          auto o = make(opcode::mvmul, {0, 0}, {0, 0}, 8);
          o.group = 1;
          add(p, 0, o);
        }).find("mvmul names array group 1 of 1") != std::string::npos);
  CHECK(message([](P& p) { add(p, 0, repeat(0, std::int64_t{1} << 40, {{fill({0, 0}, 0.0f, 1)}})); }).find("capacity: the stream has") == 0);
  CHECK(message([](P&) {}).empty());
}

TEST_CASE("a stream of five million instructions") {
  auto p = empty_program(1);
  const auto a = add_buffer(p, 0, (1 << 20) + 1024), b = add_buffer(p, 0, (1 << 20) + 1024);
  const auto i = loop_variable(0), j = loop_variable(1), k = loop_variable(2);
  const affine at = i * 4096 + j * 64 + k * 8;
  add(p, 0, repeat(0, 256, {repeat(1, 64, {repeat(2, 60, {{make(opcode::vvadd, {a, at}, {b, at}, {b, at + 256}, 8)},
                                                         {make(opcode::vrelu, {a, at}, {a, at}, 8)}})})}));
  const auto planned = memory::plan(p);
  std::uint64_t hash = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto count = emit::emit_core(planned, 0, [&](const isa::instruction& x) { hash = hash * 31 + static_cast<std::uint32_t>(x.word0) + x.rd; });
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE(count << " instructions in " << seconds << " s, " << hash);
  CHECK(count == 1 + 256 * 64 * 60 * 5);
}
