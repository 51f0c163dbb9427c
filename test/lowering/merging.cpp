#include "raptor/lowering/merging.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <random>
#include <string>

#include "interpreter.hpp"
#include "one_node.hpp"
#include "raptor/lowering/kernel_builder.hpp"

using namespace raptor;
using namespace raptor::test;
using namespace raptor::lowering;

namespace {

model::constant_ptr numbers(std::int64_t count) { return std::make_shared<const model::constant>(model::constant{noise(count)}); }

constexpr std::int64_t channels = 4, height = 3, width = 6;

/// Channels and columns of every row.
struct part {
  interval c{0, channels}, w{0, width};
};

/// A graph of images of 4 channels, 3 rows and 6 columns; the first one is the input.
struct images {
  compute_graph g;
  std::uint32_t x = 0;
  images() {
    g.inputs.push_back({"x", {1, channels, height, width}});
    value v{"x", {1, channels, height, width}, layout::physical::nhwc_row_strip, origin::input, {}};
    v.input = 0;
    x = g.add_value(v);
  }
  std::uint32_t image() { return g.add_value({"v" + std::to_string(g.values().size()), {1, channels, height, width}, layout::physical::nhwc_row_strip, origin::computed, {}}); }
  struct touched {
    std::uint32_t value;
    part where;
  };
  /// Adds a compute that adds up what it reads, pixel by pixel, and 1, and writes it to each of its targets, which are as large as its sources.
  vertex add(const std::string& name, const std::vector<touched>& sources, const std::vector<touched>& targets, const std::function<void(kernel_builder&)>& change = {}) {
    kernel_builder k(name, {1, height});
    k.current().most = {1, 1};
    const auto h = tile_begin(1);
    const auto low = [&](const part& p) { return std::vector<affine>{0, p.c.begin, h, p.w.begin}; };
    const auto high = [&](const part& p) { return std::vector<affine>{1, p.c.end, tile_end(1), p.w.end}; };
    std::vector<std::uint32_t> in, out;
    for (const auto& s : sources) in.push_back(k.reads(s.value, low(s.where), high(s.where)));
    for (const auto& t : targets) out.push_back(k.writes(t.value, low(t.where), high(t.where)));
    const auto one = k.scratch("one", channels, true), sum = k.scratch("sum", channels);
    k.prologue([&] { k.fill(k.in(one), 1, channels); });
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const auto& to = targets[t].where;
      k.loop(to.w.size(), [&](const affine& w) {
        k.copy(k.in(sum), k.in(one), to.c.size());
        for (std::size_t s = 0; s < sources.size(); ++s) {
          const auto& from = sources[s].where;
          k.vector(isa::opcode::vvadd, k.in(sum), k.in(sum), k.at(in[s], {0, from.c.begin, h, from.w.begin + w}), to.c.size());
        }
        k.copy(k.at(out[t], {0, to.c.begin, h, to.w.begin + w}), k.in(sum), to.c.size());
      });
    }
    if (change) change(k);
    return g.add_compute(k.take());
  }
};

/// Names of the computes, in order.
std::vector<std::string> names(const compute_graph& g) {
  std::vector<std::string> list;
  for (vertex v = 0; v < g.size(); ++v) list.push_back(g.at(v).name);
  return list;
}
using strings = std::vector<std::string>;

const part low{{0, 2}, {0, width}}, high{{2, 4}, {0, width}}, left{{0, channels}, {0, 3}}, right{{0, channels}, {3, 6}};

/// All values that the graphs compute.
void check_same_values(const compute_graph& a, const compute_graph& b) {
  const std::vector<model::tensor_value> inputs{model::make_value(shape{1, channels, height, width}, noise(channels * height * width))};
  for (const auto& how : {tiling{1, true, 0}, tiling{1, false, 1}}) {
    interpreter x(a, inputs), y(b, inputs);
    x.run(how), y.run(how);
    for (std::uint32_t v = 0; v < a.values().size(); ++v) CHECK(x.value(v) == y.value(v));
  }
}

}  // namespace

TEST_CASE("boxes never meet where one dimension has constant bounds that do not overlap") {
  const auto b = tile_begin(0);
  const auto box = [](affine low0, affine high0, affine low1, affine high1) { return lowering::access{0, access_mode::read, {low0, low1}, {high0, high1}}; };
  CHECK(never_meet(box(b, b + 1, 0, 2), box(b, b + 1, 2, 4)));
  CHECK(never_meet(box(b, b + 1, 2, 4), box(b, b + 1, 0, 2)));
  CHECK(!never_meet(box(b, b + 1, 0, 3), box(b, b + 1, 2, 4)));
  CHECK(!never_meet(box(b, b + 1, 0, 2), box(b + 1, b + 2, 0, 2)));  // tiles of other lanes may
  CHECK(!never_meet(box(0, 1, 0, b), box(0, 1, b, 4)));
  CHECK(never_meet(box(0, 1, 0, b), box(1, 2, b, 4)));
  CHECK(!never_meet(lowering::access{}, lowering::access{}));
}

TEST_CASE("parts of one image merge with those that read exactly them") {
  for (const auto& [first, second] : {std::pair{low, high}, {left, right}}) {
    images m;
    const auto y = m.image(), z = m.image();
    m.add("a", {{m.x, first}}, {{y, first}});
    m.add("b", {{m.x, second}}, {{y, second}});
    m.add("c", {{y, first}}, {{z, first}});
    m.add("d", {{y, second}}, {{z, second}});
    const auto merged = merge_trivial(m.g);
    CHECK(names(merged) == strings{"a+c", "b+d"});
    check_same_values(m.g, merged);
  }
}

TEST_CASE("what reads more than some values does not join weights, and joins others still") {
  for (const bool weights : {false, true}) {
    images m;
    const auto y = m.image(), z = m.image(), sum = m.image();
    m.add("a", {{m.x, {}}}, {{y, {}}}, [&](kernel_builder& k) {
      if (weights) static_cast<void>(k.group({1, 1, {numbers(1)}, {}}));
    });
    m.add("b", {{m.x, {}}}, {{z, {}}}, [&](kernel_builder& k) { static_cast<void>(k.group({1, 1, {numbers(1)}, {}})); });
    m.add("c", {{y, {}}, {z, {}}}, {{sum, {}}});
    CHECK(names(merge_trivial(m.g, 2)).size() == 2);
    CHECK(names(merge_trivial(m.g, 1)) == (weights ? strings{"a", "b", "c"} : strings{"b", "a+c"}));
    check_same_values(m.g, merge_trivial(m.g, 1));
  }
}

TEST_CASE("chains merge one by one, with temporaries and prologues of their own") {
  images m;
  std::uint32_t last = m.x;
  for (int i = 0; i < 4; ++i) {
    const auto next = m.image();
    m.add("c" + std::to_string(i), {{last, {}}}, {{next, {}}});
    last = next;
  }
  const auto merged = merge_trivial(m.g);
  CHECK(names(merged) == strings{"c0+c1+c2+c3"});
  CHECK(merged.at(0).temporaries.size() == 8);
  check_same_values(m.g, merged);
}

TEST_CASE("a chain of thousands merges in a moment") {
  images m;
  std::uint32_t last = m.x;
  constexpr int length = 4000;
  for (int i = 0; i < length; ++i) {
    const auto next = m.image();
    m.add("c", {{last, {}}}, {{next, {}}});
    last = next;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto merged = merge_trivial(m.g);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  REQUIRE(merged.size() == 1);
  CHECK(merged.at(0).accesses.size() == 2 * length);
  CHECK(seconds < 20);  // a few hundredths; minutes, where every merge looks at all that has been merged
}

TEST_CASE("what is not exactly one reader of exactly one writer's box stays apart") {
  const auto unchanged = [](const std::function<void(images&)>& build) {
    images m;
    build(m);
    const auto merged = merge_trivial(m.g);
    CHECK(names(merged) == names(m.g));
    return merged.size();
  };
  SUBCASE("a wider read, a narrower read, a shifted read") {
    for (const auto& read : {part{}, part{{0, 1}, {0, width}}, part{{1, 3}, {0, width}}, part{{0, 2}, {1, 3}}})
      unchanged([&](images& m) {
        const auto y = m.image(), z = m.image();
        m.add("a", {{m.x, low}}, {{y, low}});
        m.add("b", {{m.x, high}}, {{y, high}});
        m.add("c", {{y, read}}, {{z, read}});
        if (read.c.size() < channels || read.w.size() < width) m.add("d", {}, {{m.image(), {}}});
      });
  }
  SUBCASE("a second reader of some of it, a second read of the same") {
    unchanged([&](images& m) {
      const auto y = m.image();
      m.add("a", {{m.x, {}}}, {{y, {}}});
      m.add("c", {{y, {}}}, {{m.image(), {}}});
      m.add("d", {{y, {{3, 4}, {5, 6}}}}, {{m.image(), {{3, 4}, {5, 6}}}});
    });
    unchanged([&](images& m) {
      const auto y = m.image();
      m.add("a", {{m.x, {}}}, {{y, {}}});
      m.add("c", {{y, {}}, {y, {}}}, {{m.image(), {}}});
    });
  }
  SUBCASE("a result, an accumulated value, weights of the reader, other lanes") {
    unchanged([&](images& m) {
      const auto y = m.image();
      m.g.value_at(y).result = 0;
      m.add("a", {{m.x, {}}}, {{y, {}}});
      m.add("c", {{y, {}}}, {{m.image(), {}}});
    });
    unchanged([&](images& m) {
      const auto y = m.image();
      m.add("a", {{m.x, {}}}, {{y, {}}}, [](kernel_builder& k) { k.current().accesses.back().mode = access_mode::accumulate; });
      m.add("c", {{y, {}}}, {{m.image(), {}}});
    });
    unchanged([&](images& m) {
      const auto y = m.image();
      m.add("a", {{m.x, {}}}, {{y, {}}});
      m.add("c", {{y, {}}}, {{m.image(), {}}}, [](kernel_builder& k) { k.group({1, 1, {}, {}}); });
    });
    unchanged([&](images& m) {
      const auto y = m.image();
      m.add("a", {{m.x, {}}}, {{y, {}}}, [](kernel_builder& k) { k.current().lanes = {1, height + 1}; });
      m.add("c", {{y, {}}}, {{m.image(), {}}});
    });
  }
  SUBCASE("another result of the producer that somebody in between reads, of another value or of the same, who gives the reader something") {
    for (const bool same : {false, true})
      for (const bool swapped : {false, true})
        unchanged([&](images& m) {
          const auto y = m.image(), z = same ? y : m.image(), u = m.image();
          std::vector<images::touched> results{{y, low}, {z, high}};
          if (swapped) std::swap(results[0], results[1]);
          m.add("p", {{m.x, low}}, results);
          m.add("between", {{z, high}, {m.x, high}}, {{u, low}}, [](kernel_builder& k) { k.group({1, 1, {}, {}}); });
          m.add("c", {{y, low}, {u, low}}, {{m.image(), low}});
          m.add("d", {{u, low}}, {{m.image(), low}});
        });
  }
}

TEST_CASE("each reader of one of several results merges with their producer where its other operands exist there") {
  images m;
  const auto q = m.image(), y = m.image(), z = m.image(), u = m.image(), w = m.image();
  m.add("q", {{m.x, {}}}, {{q, {}}});
  m.add("p", {{q, {}}}, {{y, {}}, {z, low}, {z, high}});
  m.add("wide", {{z, high}, {q, high}}, {{u, high}});
  m.add("c", {{y, {}}, {q, {}}}, {{w, {}}});
  m.add("d", {{w, {}}}, {{m.image(), {}}});
  m.add("e", {{z, low}, {m.x, low}}, {{u, low}});
  m.add("later", {{u, {}}, {q, {}}}, {{m.image(), {}}});
  const auto merged = merge_trivial(m.g);
  CHECK(names(merged) == strings{"q", "p+wide+c+d+e", "later"});
  check_same_values(m.g, merged);
}

TEST_CASE("limits of both hold for what is merged") {
  images m;
  const auto y = m.image();
  m.add("a", {{m.x, {}}}, {{y, {}}}, [](kernel_builder& k) { k.current().most = {0, 12}, k.current().granule = {1, 2}, k.current().family = 3; });
  m.add("b", {{y, {}}}, {{m.image(), {}}}, [](kernel_builder& k) { k.current().most = {5, 9}, k.current().granule = {1, 3}; });
  const auto merged = merge_trivial(m.g);
  REQUIRE(merged.size() == 1);
  CHECK(merged.at(0).most == shape{5, 9});
  CHECK(merged.at(0).granule == shape{1, 6});  // whole granules of both
  CHECK(merged.at(0).family == 3);
}

TEST_CASE("random graphs of parts compute the same when merged") {
  std::size_t merges = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    images m;
    std::vector<std::uint32_t> known{m.x};
    const std::vector<std::vector<part>> divisions{{{}}, {low, high}, {left, right}, {{{0, 1}, {0, width}}, {{1, 4}, {0, width}}}, {{{0, 2}, {0, 3}}, {{0, 2}, {3, 6}}, high}};
    std::vector<std::size_t> division{0};
    for (int layer = 0; layer < 5; ++layer) {
      const auto y = m.image();
      // Mostly the division of the image before, so that there is something to merge.
      const auto from = dice() % 3 == 0 ? dice() % known.size() : known.size() - 1;
      const auto d = dice() % 3 == 0 ? dice() % divisions.size() : division[from];
      auto parts = divisions[d];
      if (dice() % 2 == 0) std::reverse(parts.begin(), parts.end());
      if (dice() % 4 == 0 && parts.size() == 2 && parts[0].c.size() == parts[1].c.size() && parts[0].w.size() == parts[1].w.size()) {
        m.add("both" + std::to_string(layer), {{known[from], parts[dice() % 2]}}, {{y, parts[0]}, {y, parts[1]}});
      } else {
        for (std::size_t p = 0; p < parts.size(); ++p) {
          std::vector<images::touched> sources{{known[from], parts[p]}};
          if (dice() % 4 == 0) sources.push_back({known[dice() % known.size()], parts[p]});
          m.add("c" + std::to_string(layer) + "." + std::to_string(p), sources, {{y, parts[p]}});
        }
      }
      known.push_back(y), division.push_back(d);
    }
    const auto merged = merge_trivial(m.g);
    merges += m.g.size() - merged.size();
    check_same_values(m.g, merged);
    for (vertex v = 0; v < merged.size(); ++v)  // topological: what is read is written by it or before it
      for (const auto& a : merged.at(v).accesses)
        if (a.mode == access_mode::read)
          for (const auto w : merged.writers(a.value)) CHECK((w <= v || !merged.meets(w, a)));
  }
  CHECK(merges > 300);
}
