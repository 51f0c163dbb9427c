#include "raptor/verify/graph.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../lowering/text_graphs.hpp"
#include "raptor/lowering/text.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

const std::string good = lowering::to_text(small_graph()).text;

/// The findings of small_graph with the first `from` in its text replaced by `to`.
std::vector<std::string> findings(const std::string& from, const std::string& to, const program::geometry* chip = nullptr) {
  auto text = good;
  const auto at = text.find(from);
  REQUIRE(at != text.npos);
  text.replace(at, from.size(), to);
  return verify::graph_findings(lowering::parse_text(text).value, chip);
}
bool finds(const std::vector<std::string>& found, const std::string& part) {
  for (const auto& f : found)
    if (f.find(part) != f.npos) return true;
  for (const auto& f : found) MESSAGE(f);
  return false;
}
bool finds(const std::string& from, const std::string& to, const std::string& part) { return finds(findings(from, to), part); }

/// One compute over `lanes` that writes value y by the given boxes, without statements.
struct writer {
  shape lanes, granule, most;
  std::vector<affine> low, high;
  lowering::access_mode mode = lowering::access_mode::assign;
};
lowering::compute_graph graph_of(const shape& sizes, const std::vector<writer>& writers) {
  lowering::compute_graph g;
  const auto y = g.add_value({"y", sizes, layout::physical::dense, lowering::origin::computed, {}});
  for (const auto& w : writers) {
    lowering::compute c;
    c.name = "w";
    c.lanes = w.lanes, c.granule = w.granule, c.most = w.most;
    c.accesses.push_back({y, w.mode, w.low, w.high});
    g.add_compute(c);
  }
  return g;
}
std::vector<std::string> written(const shape& sizes, const std::vector<writer>& writers) { return verify::graph_findings(graph_of(sizes, writers)); }

}  // namespace

TEST_CASE("a right graph has no findings") {
  CHECK(verify::graph_findings(small_graph()).empty());
  const auto chip = small_chip();
  CHECK(verify::graph_findings(small_graph(), &chip).empty());
  CHECK_NOTHROW(verify::check_computes(small_graph(), chip));
  CHECK(verify::graph_findings(lowering::parse_text(good).value).empty());
}

TEST_CASE("the error has all findings") {
  auto text = good;
  text.replace(text.find("granule 1x1 most 1x1"), 20, "granule 1x2 most 1x1");
  try {
    verify::check_computes(lowering::parse_text(text).value);
    FAIL("accepted");
  } catch (const error& e) {
    CHECK(e.code() == error_code::internal);
    CHECK(e.details().size() == 1);
    CHECK(e.details().at(0) == "compute 0 'conv1': a granule above the largest extent of a tile");
  }
}

TEST_CASE("boxes") {
  CHECK(finds("a1 assign %1 [b0]..[b0+e0] [0]..[4] [b1]..[b1+e1]", "a1 assign %1 [b0]..[b0+e0] [0]..[5] [b1]..[b1+e1]", "it writes [0,5) of the 4 of dimension 1 of 'conv'"));
  CHECK(finds("a1 assign %1 [b0]..[b0+e0] [0]..[4] [b1]..[b1+e1]", "a1 assign %1 [b0]..[b0+e0] [0]..[4] [b1-1]..[b1+e1]", "it writes [-1,8) of the 8"));
  CHECK(finds("[-1+b1]..[1+b1+e1]", "[-1+b1]..[b1-2*e1]", "a box ends before it begins in dimension 2 of 'image'"));
  CHECK(finds("a1 assign %1 [b0]..[b0+e0] [0]..[4]", "a1 assign %1 [b0]..[b0+e0] [0]..[3]", "192 of its 256 elements are written"));
  CHECK(finds("temporary \"sum\" [16*e1]", "temporary \"sum\" [15-16*e1]", "temporary 'sum' has a negative size"));
  CHECK(finds("temporary \"patch\" 16 persistent", "temporary \"patch\" [16*e1] persistent", "the size of a persistent temporary depends on the tile"));
}

TEST_CASE("order of computes") {
  CHECK(findings("a0 read %1", "a0 read %2").empty());  // the box that the same tile writes
  CHECK(finds("a0 read %1 [b0]..[b0+e0] [0]..[4] [b1]", "a0 read %2 [b0]..[b0+e0] [0]..[4] [b1-1]", "it reads another box of 'relu' than it writes itself"));
  CHECK(finds("a0 read %1", "a0 read %3", "it reads 'y' before compute 2 writes it"));
  lowering::compute_graph g;
  const auto x = g.add_value({"x", {4}, layout::physical::dense, lowering::origin::computed, {}});
  lowering::kernel_builder k("c", {4});
  static_cast<void>(k.reads_whole(x, {4}));
  g.add_compute(k.take());
  CHECK(finds(verify::graph_findings(g), "it reads 'x', which nothing computes"));
}

TEST_CASE("kernels at the corners of tiles and loops") {
  CHECK(finds("loop i0 6 {", "loop i0 7 {", "it touches elements 6 to 8 of 8: lmv t0[3] <- a0[b0][0][b1][i0] len 3 outside zero"));
  CHECK(finds("lmv t0[6] ", "lmv t0[14] ", "it touches elements 14 to 16 of 16"));
  CHECK(finds("a0[b0][0][1+b1][i0]", "a0[b0][0][2+b1][i0]", "it touches row 2 of 'image'"));
  CHECK(finds("lmv t0[0] <- a0[b0][0][-1+b1][i0] len 3 outside zero", "lmv t0[0] <- a0[b0][0][-1+b1][i0] len 3", "it touches row -1 of 'image'"));
  CHECK(finds("loop i0 6 {", "loop i0 [e1-2] {", "a loop of -1 iterations"));
  CHECK(finds("[i0] len 3", "[i0] len [i0-1]", "a length of -1"));
  CHECK(finds("mvmul t1[0] <- t0[0] len 4", "mvmul t1[0] <- t0[0] len 5", "a product has more results than its array group columns"));
  // Without a chip a product reads and writes what its group uses; with one, whole crossbars.
  const auto chip = small_chip();
  CHECK(findings("mvmul t1[0] <- t0[0]", "mvmul t1[12] <- t0[7]").empty());
  CHECK(finds(findings("mvmul t1[0] <- t0[0]", "mvmul t1[1] <- t0[0]", &chip), "it touches elements 1 to 16 of 16"));
  CHECK(finds(findings("mvmul t1[0] <- t0[0]", "mvmul t1[0] <- t0[1]", &chip), "it touches elements 1 to 16 of 16"));
  CHECK(finds("len 8 along 3", "len 9 along 3", "it touches elements 0 to 32 of 32"));
  CHECK(finds("len 8 along 3", "len 8 stride 2 along 3", "it touches elements 0 to 56 of 32"));
}

TEST_CASE("statements and symbols") {
  CHECK(finds("lmv t0[0]", "send t0[0]", "'send' is no operation of a kernel"));
  CHECK(finds("mvmul t1[0] <- t0[0]", "mvmul t1[0] <- t0[0], t0[0]", "operands of another number than the operation has"));
  CHECK(finds("lmv t0[0] <- a0[b0][0][-1+b1][i0]", "lmv t0[0] <- a0[b0][0][-1+b1][i1]", "a loop variable outside its loop"));
  CHECK(finds("lldi t0[0] len 16", "lldi t0[0] len [16*e1]", "the prologue depends on the tile"));
  CHECK(finds("lldi t0[0] len 16", "lldi a1[0][0][0][0] len 8", "the prologue touches what is no constant"));
  CHECK(finds("lmv t0[0] <- a0[b0][0][-1+b1][i0]", "lmv a0[b0][0][b1][0] <- t0[0]", "a statement writes what the compute only reads"));
  CHECK(finds("    loop i0 6 {\n", "    loop i0 1 {\n    loop i0 6 {\n    }\n", "a loop inside a loop of the same variable"));
}

TEST_CASE("weights") {
  const auto chip = small_chip();
  CHECK(finds("block 0 at 0 0 size 9 4", "block 0 at 1 0 size 9 4", "a block of weights outside its array group"));
  CHECK(finds("group rows 9 columns 4", "group rows 9 columns 0", "an array group without rows or columns"));
  CHECK(finds(findings("group rows 9 columns 4", "group rows 17 columns 4", &chip), "an array group with more rows than a crossbar"));
  CHECK(finds(findings("group rows 9 columns 4", "group rows 9 columns 65", &chip), "it needs 5 crossbars, a core has 4"));
  auto g = small_graph();
  auto c = g.at(0);
  c.groups[0].blocks[0].offset = 1;
  lowering::compute_graph other;
  other.inputs = g.inputs, other.outputs = g.outputs;
  for (const auto& v : g.values()) other.add_value(v);
  other.add_compute(c), other.add_compute(g.at(1)), other.add_compute(g.at(2));
  CHECK(finds(verify::graph_findings(other), "a block of weights beyond its source"));
}

TEST_CASE("inputs and outputs") {
  CHECK(finds("8x8 nchw_row_strip result 0", "8x8 nhwc_row_strip result 0", "a result is stored from W x C"));
  CHECK(finds("8x8 nchw_row_strip result 0", "8x8 nchw_row_strip", "output 0 'y' has 0 values"));
  CHECK(finds("input \"image\" 1x1x8x8", "input \"image\" 1x8x8x1", "it has another shape than its input"));
  CHECK(finds("output \"y\" 1x4x8x8", "output \"y\" 1x4x8x9", "it has another size than its output"));
}

TEST_CASE("every element is written exactly once, for every cut") {
  using lowering::tile_begin;
  using lowering::tile_end;
  const auto b = tile_begin(0), e = tile_end(0);
  CHECK(written({10}, {{{10}, {3}, {0}, {b}, {e}}}).empty());
  CHECK(written({10}, {{{5}, {1}, {2}, {b * 2}, {e * 2}}}).empty());
  CHECK(finds(written({10}, {{{9}, {1}, {0}, {b}, {e}}}), "9 of its 10 elements are written"));
  // Right with one lane a tile, wrong with more.
  CHECK(written({10}, {{{5}, {1}, {1}, {b * 2}, {b * 2 + 2}}}).empty());
  CHECK(finds(written({10}, {{{5}, {1}, {0}, {b * 2}, {b * 2 + 2}}}), "2 of its 10 elements are written"));
  CHECK(finds(written({10}, {{{5}, {1}, {1}, {b * 2}, {b * 2 + 3}}}), "it writes [0,11) of the 10"));
  CHECK(finds(written({10, 2}, {{{5}, {1}, {1}, {b * 2 - b, 0}, {b + 2, 2}}}), "are both written"));
  // What nobody reads need not be written.
  const auto partly_read = [&](std::int64_t end) {
    auto g = graph_of({10}, {{{5}, {1}, {0}, {b}, {e}}});
    lowering::kernel_builder k("reader", {1});
    k.reads(0, {1}, {end});
    g.add_compute(k.take());
    return verify::graph_findings(g);
  };
  CHECK(partly_read(5).empty());
  CHECK(finds(partly_read(6), "5 of its 10 elements are written"));
  // Two computes share a value; sums into the same boxes count once.
  CHECK(written({10}, {{{5}, {1}, {0}, {b}, {e}}, {{5}, {1}, {0}, {b + 5}, {e + 5}}}).empty());
  CHECK(finds(written({10}, {{{6}, {1}, {0}, {b}, {e}}, {{5}, {1}, {0}, {b + 5}, {e + 5}}}), "are both written"));
  constexpr auto sum = lowering::access_mode::accumulate;
  CHECK(written({10}, {{{10}, {1}, {0}, {b}, {e}, sum}, {{10}, {1}, {0}, {b}, {e}, sum}}).empty());
  CHECK(finds(written({10}, {{{10}, {1}, {0}, {b}, {e}, sum}, {{10}, {1}, {0}, {0}, {10}, sum}}), "are both written"));
  CHECK(written({}, {{{}, {}, {}, {}, {}}}).empty());
  CHECK(finds(written({}, {{{}, {}, {}, {}, {}}, {{}, {}, {}, {}, {}}}), "are both written"));
  CHECK(written({4, 0}, {{{0}, {1}, {0}, {b, 0}, {e, 0}}}).empty());
  // Lanes beyond counting neither hang nor overflow the stack.
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  CHECK(written({huge}, {{{huge}, {1}, {0}, {b}, {e}}}).empty());
  CHECK(written({huge, 0}, {{{huge, 0}, {1, 1}, {0, 0}, {b, tile_begin(1)}, {e, tile_end(1)}}}).empty());
}

TEST_CASE("corner tiles are the extremes of every affine function of all tiles") {
  for (std::int64_t lanes = 1; lanes <= 13; ++lanes)
    for (std::int64_t granule = 1; granule <= 5; ++granule)
      for (std::int64_t most = 0; most <= 14; ++most) {
        if (most != 0 && most < granule) continue;
        lowering::compute c;
        c.lanes = {lanes}, c.granule = {granule}, c.most = {most};
        for (std::int64_t by_begin = -3; by_begin <= 3; ++by_begin)
          for (std::int64_t by_extent = -3; by_extent <= 3; ++by_extent) {
            const auto f = lowering::tile_begin(0) * by_begin + lowering::tile_extent(0) * by_extent + 7;
            std::pair<std::int64_t, std::int64_t> expected{1000, -1000};
            for (std::int64_t b = 0; b < lanes; b += granule)
              for (std::int64_t e = std::min(b + granule, lanes); ; e = std::min(e + granule, lanes)) {
                if (most != 0 && e - b > most / granule * granule) break;
                const auto v = by_begin * b + by_extent * (e - b) + 7;
                expected = {std::min(expected.first, v), std::max(expected.second, v)};
                if (e == lanes) break;
              }
            REQUIRE(lowering::tile_range(f, c) == expected);
          }
      }
}

TEST_CASE("many findings are counted") {
  lowering::compute_graph g;
  for (int i = 0; i < 30; ++i) {
    lowering::compute c;
    c.lanes = {4}, c.granule = {0}, c.most = {0};
    g.add_compute(c);
  }
  const auto found = verify::graph_findings(g);
  CHECK(found.size() == 21);
  CHECK(found.back() == "... and 10 more");
}
