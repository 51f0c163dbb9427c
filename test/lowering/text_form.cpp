#include "raptor/lowering/text.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <random>
#include <string>

#include "text_graphs.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

std::string message(const std::string& text, std::string* place = nullptr) {
  try {
    static_cast<void>(lowering::parse_text(text));
  } catch (const error& e) {
    CHECK(e.code() == error_code::malformed);
    if (place != nullptr) *place = e.place();
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a compute graph prints as it reads") {
  const auto g = small_graph();
  const auto form = lowering::to_text(g);
  const auto has = [&](const std::string& line) { return form.text.find(line + "\n") != form.text.npos; };
  CHECK(has("name \"small \\\"net\\\"\""));
  CHECK(has("constant #0 36"));
  CHECK(has("value %0 \"image\" 1x1x8x8 nchw_row_strip input 0"));
  CHECK(has("value %3 \"y\" 1x4x8x8 nchw_row_strip result 0"));
  CHECK(has("compute 0 \"conv1\" op \"convolution\" strategy \"streamed-patch\" node 3 {"));
  CHECK(has("  lanes 1x8 granule 1x1 most 1x1"));
  CHECK(has("  a0 read %0 [b0]..[b0+e0] [0]..[1] [-1+b1]..[1+b1+e1] [0]..[8]"));
  CHECK(has("  t1 temporary \"sum\" [16*e1]"));
  CHECK(has("  group rows 9 columns 4 sources #0 {\n    block 0 at 0 0 size 9 4 from 0 by 1 9\n  }"));
  CHECK(has("  prologue {\n    lldi t0[0] len 16 bits 0x00000000\n  }"));
  CHECK(has("    loop i0 6 {\n      lmv t0[0] <- a0[b0][0][-1+b1][i0] len 3 outside zero"));
  CHECK(has("      mvmul t1[0] <- t0[0] len 4 group 0 bits 0x00000001"));
  CHECK(has("    lldi a1[b0][0][b1][6] len 8 bits 0x80000000"));
  CHECK(has("      vmv a1[b0][i0][b1][0] <- a0[b0][i0][b1][0] len 8 along 3"));

  const auto parsed = lowering::parse_text(form.text);
  CHECK(same_graph(parsed.value, g));
  CHECK(parsed.constants == std::vector<std::int64_t>{36});
  CHECK(lowering::to_text(parsed.value, parsed.constants).text == form.text);
  // With the constants, the graph is whole again.
  const auto full = lowering::parse_text(form.text, form.constants);
  CHECK(full.value.at(0).groups[0].sources[0] == g.at(0).groups[0].sources[0]);
  CHECK(lowering::to_text(full.value).text == form.text);
}

TEST_CASE("random graphs come back equal") {
  std::size_t shared = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const auto g = random_graph(seed);
    const auto form = lowering::to_text(g);
    const auto parsed = lowering::parse_text(form.text);
    CHECK(same_graph(parsed.value, g));
    CHECK(lowering::to_text(parsed.value, parsed.constants).text == form.text);
    for (lowering::vertex v = 1; v < g.size(); ++v) shared += g.at(v).family >= 0 && g.at(v).family == g.at(v - 1).family;
  }
  CHECK(shared > 50);
}

TEST_CASE("families: which computes share their weights") {
  std::string place;
  const std::string head = "raptor computes 1\nname \"n\"\nconstant #0 9\nconstant #1 9\n";
  const auto compute = [](int number, const std::string& family, const std::string& group) {
    return "compute " + std::to_string(number) + " \"c" + std::to_string(number) + "\" op \"o\" strategy \"s\"" + family + " {\nlanes 4 granule 1 most 0\n" + group + "}\n";
  };
  const std::string group = "group rows 3 columns 3 sources #0 {\nblock 0 at 0 0 size 3 3 from 0 by 1 3\n}\n";
  const std::string same = "group rows 3 columns 3 sources #1 {\nblock 0 at 0 0 size 3 3 from 0 by 1 3\n}\n";  // other constants may hold the same elements
  const std::string wider = "group rows 3 columns 4 sources #0 {\nblock 0 at 0 0 size 3 3 from 0 by 1 3\n}\n";
  const std::string moved = "group rows 3 columns 3 sources #0 {\nblock 0 at 0 0 size 3 3 from 1 by 1 3\n}\n";
  const auto two = [&](const std::string& a, const std::string& b) { return message(head + compute(0, " family 4", a) + compute(1, " node 2 family 4", b), &place); };
  CHECK(two(group, group) == "accepted");
  CHECK(two(group, same) == "accepted");
  CHECK(two("", "") == "accepted");
  CHECK(message(head + compute(0, " family 4", group) + compute(1, " family 5", wider)) == "accepted");
  const std::string other = "compute 'c1' has other weights than the first one of its family";
  CHECK(two(group, wider) == other);
  CHECK(place == "computes, line 16");
  CHECK(two(group, moved) == other);
  CHECK(two(group, group + group) == other);
  CHECK(two(group, "") == other);
  CHECK(two("", group) == other);
  const auto one = [&](const std::string& family) { return message(head + compute(0, family, ""), &place); };
  CHECK(one(" family 0") == "accepted");
  CHECK(one(" family 9223372036854775807") == "accepted");
  CHECK(one(" family -1") == "number -1 is out of range");
  CHECK(place == "computes, line 5");
  CHECK(one(" family") == "expected a number before '{'");
  CHECK(one(" family x") == "expected a number before 'x {'");
  CHECK(one(" family 1 node 2") == "expected '{' before 'node 2 {'");
}

TEST_CASE("constants that the caller gives must fit") {
  const auto form = lowering::to_text(small_graph());
  const std::vector<model::constant_ptr> wrong{numbers(35)};
  CHECK_THROWS_WITH_AS(static_cast<void>(lowering::parse_text(form.text, wrong)), "constant 0 has another size than the one given for it", error);
  const std::vector<model::constant_ptr> missing{nullptr};
  CHECK_THROWS_AS(static_cast<void>(lowering::parse_text(form.text, missing)), error);
}

TEST_CASE("wrong texts are errors with their line") {
  std::string place;
  const std::string head = "raptor computes 1\nname \"n\"\ninput \"x\" 4\noutput \"y\" 4\nconstant #0 9\n";
  const std::string values = "value %0 \"x\" 4 dense_nchw input 0\nvalue %1 \"y\" 4 dense_nchw result 0\n";
  const auto with = [&](const std::string& rest) { return message(head + rest, &place); };
  CHECK(message("") == "the text ends where 'raptor computes 1' is expected");
  CHECK(message("raptor computes 2\n") == "version 2, only version 1 is known");
  CHECK(with("") == "accepted");
  CHECK(with(values) == "accepted");
  CHECK(with("value %1 \"x\" 4 dense_nchw\n") == "values are numbered 0, 1, ...");
  CHECK(place == "computes, line 6");
  CHECK(with("value %0 \"x\" 4 dense\n") == "unknown layout 'dense'");
  CHECK(with("value %0 \"x\" 4 nhwc_row_strip\n") == "only images of rank 4 have other layouts than dense_nchw");
  CHECK(with("value %0 \"x\" 4 dense_nchw input 1\n") == "input 1 of 1");
  CHECK(with("value %0 \"x\" 4 dense_nchw constant #1\n") == "constant 1 of 1");
  CHECK(with("value %0 \"x\" 4 dense_nchw result 1\n").find("a result is computed") == 0);
  CHECK(with("value %0 \"x\" 4 dense_nchw input 0 result 0\n").find("a result is computed") == 0);
  CHECK(with("constant #2 9\n") == "constants are numbered 0, 1, ...");
  const auto compute = [&](const std::string& rest) { return with(values + "compute 0 \"c\" op \"o\" strategy \"s\" {\n" + rest); };
  CHECK(compute("") == "the text ends inside compute 'c'");
  CHECK(compute("lanes 4 granule 1 most 0\n}\n") == "accepted");
  CHECK(compute("lanes 4 granule 1x1 most 0\n}\n") == "lanes, granule and most have different ranks");
  CHECK(compute("lanes 4 granule 0 most 0\n}\n") == "a granule is at least 1");
  const auto body = [&](const std::string& rest) { return compute("lanes 4 granule 1 most 0\na0 read %0 [b0]..[b0+e0]\na1 assign %1 [b0]..[b0+e0]\nt0 temporary \"t\" 4\n" + rest); };
  CHECK(body("}\n") == "accepted");
  CHECK(body("a3 read %0 [0]..[4]\n}\n") == "accesses are numbered 0, 1, ...");
  CHECK(body("a2 read %2 [0]..[4]\n}\n") == "the access is of a value that is not declared");
  CHECK(body("a2 assign %0 [0]..[4]\n}\n") == "a compute writes an input or a constant");
  CHECK(body("a2 read %0\n}\n") == "the access has another rank than its value");
  CHECK(body("a2 read %0 [b1]..[4]\n}\n") == "an expression names a lane dimension that does not exist");
  CHECK(body("t0 temporary \"u\" 4\n}\n") == "temporaries are numbered 0, 1, ...");
  CHECK(body("q0\n}\n") == "expected a and a number, not 'q0'");
  CHECK(body("group rows 4 columns 4 sources #1 {\n}\n}\n") == "constant 1 of 1");
  CHECK(body("group rows 4 columns 4 sources #0 {\nblock 1 at 0 0 size 1 1 from 0 by 1 1\n}\n}\n") == "source 1 of 1");
  CHECK(body("body {\nlmv a1[b0] <- a0[b0] len [e0]\n}\n}\n") == "accepted");
  CHECK(body("body {\nlmv a1[b0] <- a0[b0] len [e0]\n}\nbody {\n}\n}\n") == "a second prologue or body");
  CHECK(body("body {\nfoo a1[b0] len 1\n}\n}\n") == "unknown operation 'foo'");
  CHECK(body("body {\nlmv a1[b0][0] <- a0[b0] len 1\n}\n}\n") == "an operand with another number of coordinates than its tensor or temporary");
  CHECK(body("body {\nlmv a1[b0] <- a2[b0] len 1\n}\n}\n") == "a2 is not declared");
  CHECK(body("body {\nlmv t1[0] <- a0[b0] len 1\n}\n}\n") == "t1 is not declared");
  CHECK(body("body {\nmvmul a1[b0] <- a0[b0] len 1 group 0\n}\n}\n") == "array group 0 of 0");
  CHECK(body("body {\nvmv a1[b0] <- t0[0] len 1 along 0\n}\n}\n") == "a stride along a dimension that the operand does not have");
  CHECK(body("body {\nlmv a1[b0] <- a0[b0]\n}\n}\n") == "expected 'len' before ''");
  CHECK(body("body {\nlmv a1[b0] <- a0[b0] len 1 outside never\n}\n}\n") == "expected 'zero' before 'never'");
  CHECK(body("body {\nloop 3 {\n}\n}\n}\n").find("expected i and a number") == 0);
  std::string deep;
  for (int k = 0; k < 100000; ++k) deep += "loop i" + std::to_string(k) + " 2 {\n";
  CHECK(body("body {\n" + deep).find("loops are nested deeper") == 0);
  CHECK(body("}\ngarbage\n") == "expected a compute");
  CHECK(body("}\ncompute 2 \"c\" op \"o\" strategy \"s\" {\n") == "computes are numbered 0, 1, ...");
}

TEST_CASE("a graph with a quadratic number of edges is refused, not built") {
  std::string text = "raptor computes 1\nname \"n\"\nvalue %0 \"x\" 4 dense_nchw\n";
  std::size_t count = 0;
  for (int half = 0; half < 2; ++half)
    for (int k = 0; k < 4000; ++k)
      text += "compute " + std::to_string(count++) + " \"c\" op \"\" strategy \"\" {\nlanes 4 granule 1 most 0\na0 " + (half == 0 ? "assign" : "read") + " %0 [b0]..[b0+e0]\n}\n";
  CHECK(message(text) == "the computes have more dependencies than any network");
}

TEST_CASE("no cut and no changed byte of a text does harm") {
  const auto text = lowering::to_text(random_graph(11)).text;
  for (std::size_t n = 0; n < text.size(); n += 7) static_cast<void>(message(text.substr(0, n)));
  std::mt19937 dice(1);
  for (int k = 0; k < 3000; ++k) {
    auto changed = text;
    changed[dice() % changed.size()] = static_cast<char>(dice() % 256);
    try {
      const auto parsed = lowering::parse_text(changed);
      static_cast<void>(lowering::to_text(parsed.value, parsed.constants));
    } catch (const error& e) {
      CHECK((e.code() == error_code::malformed || e.code() == error_code::capacity));
    }
  }
}

TEST_CASE("speed: a hundred computes of a thousand statements") {
  lowering::compute_graph g;
  const auto x = g.add_value({"x", {1, 64, 56, 56}, layout::physical::nhwc_row_strip, lowering::origin::computed, {}});
  for (int i = 0; i < 100; ++i) {
    lowering::kernel_builder k("conv" + std::to_string(i), {1, 56});
    const auto h = lowering::tile_begin(1);
    const auto a = k.writes(x, {0, 0, h, 0}, {1, 64, h + 1, 56});
    const auto t = k.scratch("patch", 1024);
    k.loop(56, [&](const affine& w) {
      for (std::int64_t s = 0; s < 1000; ++s) k.copy(k.in(t, w + s), k.at(a, {0, 0, h + s, w * 2 - 3}), 64).when_outside = lowering::outside::zero;
    });
    g.add_compute(k.take());
  }
  const auto start = std::chrono::steady_clock::now();
  const auto form = lowering::to_text(g);
  const auto parsed = lowering::parse_text(form.text);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE("print and parse 100000 statements: " << seconds << " s, " << form.text.size() << " bytes");
  CHECK(same_graph(parsed.value, g));
}
