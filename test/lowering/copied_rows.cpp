#include "raptor/lowering/copied_rows.hpp"

#include <doctest/doctest.h>

#include <string>

#include "interpreter.hpp"
#include "one_node.hpp"
#include "raptor/lowering/kernel_builder.hpp"

using namespace raptor;
using namespace raptor::test;
using namespace raptor::lowering;

namespace {

model::constant_ptr numbers(std::int64_t count) { return std::make_shared<const model::constant>(model::constant{noise(count)}); }

constexpr std::int64_t height = 3, width = 4;

/// Images of any number of channels; the first one, of two channels, is the input.
struct strips {
  compute_graph g;
  std::uint32_t x = 0;
  strips() {
    g.inputs.push_back({"x", {1, 2, height, width}});
    value v{"x", {1, 2, height, width}, layout::physical::nhwc_row_strip, origin::input, {}};
    v.input = 0;
    x = g.add_value(v);
  }
  std::uint32_t image(std::int64_t channels) { return g.add_value({"v" + std::to_string(g.values().size()), {1, channels, height, width}, layout::physical::nhwc_row_strip, origin::computed, {}}); }
  [[nodiscard]] std::int64_t channels(std::uint32_t v) const { return g.values()[v].sizes[1]; }
  std::uint32_t reads(kernel_builder& k, std::uint32_t v) { return k.reads(v, {0, 0, tile_begin(1), 0}, {1, channels(v), tile_end(1), width}); }
  std::uint32_t writes(kernel_builder& k, std::uint32_t v) { return k.writes(v, {0, 0, tile_begin(1), 0}, {1, channels(v), tile_end(1), width}); }
  /// to = 2 · from, whose channels are repeated as often as it takes.
  void twice(const std::string& name, std::uint32_t from, std::uint32_t to) {
    kernel_builder k(name, {1, height});
    k.current().most = {1, 1};
    const auto in = reads(k, from), out = writes(k, to);
    k.loop(width, [&](const affine& w) {
      for (std::int64_t c = 0; c < channels(to); ++c)
        k.vector(isa::opcode::vvadd, k.at(out, {0, c, tile_begin(1), w}), k.at(in, {0, c % channels(from), tile_begin(1), w}), k.at(in, {0, c % channels(from), tile_begin(1), w}), 1);
    });
    g.add_compute(k.take());
  }
  void concatenate(const std::string& name, const std::vector<std::uint32_t>& from, std::uint32_t to) {
    kernel_builder k(name, {1, height});
    k.current().most = {1, 1};
    std::vector<std::uint32_t> in;
    for (const auto v : from) in.push_back(reads(k, v));
    const auto out = writes(k, to);
    std::int64_t channel = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      k.loop(width, [&](const affine& w) { k.copy(k.at(out, {0, channel, tile_begin(1), w}), k.at(in[i], {0, 0, tile_begin(1), w}), channels(from[i])); });
      channel += channels(from[i]);
    }
    g.add_compute(k.take());
  }
};

std::vector<std::string> names(const compute_graph& g) {
  std::vector<std::string> list;
  for (vertex v = 0; v < g.size(); ++v) list.push_back(g.at(v).name);
  return list;
}
using name_list = std::vector<std::string>;

void check_same(const compute_graph& a, const compute_graph& b, std::uint32_t v) {
  const std::vector<model::tensor_value> inputs{model::make_value(shape{1, 2, height, width}, noise(2 * height * width))};
  for (const auto& how : {tiling{1, true, 0}, tiling{1, false, 1}}) {
    interpreter x(a, inputs), y(b, inputs);
    x.run(how), y.run(how);
    CHECK(x.value(v) == y.value(v));
  }
}

}  // namespace

TEST_CASE("what is only concatenated is written where it belongs, and the copy is gone") {
  strips r;
  const auto a = r.image(2), b = r.image(3), all = r.image(5), y = r.image(5);
  r.twice("a", r.x, a), r.twice("b", r.x, b), r.concatenate("cat", {a, b}, all), r.twice("y", all, y);
  const auto g = write_where_copied(r.g);
  CHECK(names(g) == name_list{"a", "b", "y"});
  CHECK(g.at(1).accesses[1].value == all);
  CHECK(g.at(1).accesses[1].low[1] == affine(2));
  CHECK(g.at(1).accesses[1].high[1] == affine(5));
  check_same(r.g, g, all);
  check_same(r.g, g, y);
}

TEST_CASE("concatenations of concatenations end in one place") {
  strips r;
  const auto a = r.image(2), b = r.image(3), c = r.image(1), inner = r.image(5), all = r.image(6);
  r.twice("a", r.x, a), r.twice("b", r.x, b), r.concatenate("inner", {a, b}, inner), r.twice("c", r.x, c), r.concatenate("outer", {c, inner}, all);
  const auto g = write_where_copied(r.g);
  CHECK(names(g) == name_list{"a", "b", "c"});
  CHECK(g.at(1).accesses[1].low[1] == affine(3));
  check_same(r.g, g, all);
}

TEST_CASE("what is read elsewhere too is copied as before, the rest is not") {
  strips r;
  const auto a = r.image(2), b = r.image(2), all = r.image(4), y = r.image(2);
  r.twice("a", r.x, a), r.twice("b", r.x, b), r.concatenate("cat", {a, b}, all), r.twice("y", a, y);
  const auto g = write_where_copied(r.g);
  CHECK(names(g) == name_list{"a", "b", "cat", "y"});
  CHECK(g.at(1).accesses[1].value == all);
  REQUIRE(g.at(2).accesses.size() == 2);
  CHECK(g.at(2).accesses[0].value == a);
  CHECK(g.at(2).accesses[1].high[1] == affine(2));  // only what it still copies
  check_same(r.g, g, all);
  check_same(r.g, g, y);
}

TEST_CASE("a value that is concatenated twice, or delivered, stays") {
  strips r;
  const auto a = r.image(2), all = r.image(4);
  r.twice("a", r.x, a), r.concatenate("cat", {a, a}, all);
  CHECK(names(write_where_copied(r.g)) == name_list{"a", "cat"});
  strips s;
  const auto b = s.image(2), c = s.image(2), both = s.image(4);
  s.twice("b", s.x, b), s.twice("c", s.x, c), s.concatenate("cat", {b, c}, both);
  s.g.value_at(b).result = 0;
  CHECK(write_where_copied(s.g).at(2).accesses.size() == 2);
}

TEST_CASE("a copy into a larger image, or beside anything else, is no concatenation") {
  for (const bool larger : {false, true}) {
    strips r;
    const auto a = r.image(2), y = r.g.add_value({"y", {1, 2, height, width + (larger ? 1 : 0)}, layout::physical::nhwc_row_strip, origin::computed, {}});
    r.twice("a", r.x, a);
    kernel_builder k("pad", {1, height});
    k.current().most = {1, 1};
    const auto in = r.reads(k, a), out = k.writes(y, {0, 0, tile_begin(1), 0}, {1, 2, tile_end(1), width + (larger ? 1 : 0)});
    k.loop(width, [&](const affine& w) { k.copy(k.at(out, {0, 0, tile_begin(1), w}), k.at(in, {0, 0, tile_begin(1), w}), 2); });
    if (larger) k.fill(k.at(out, {0, 0, tile_begin(1), width}), 0, 2);
    r.g.add_compute(k.take());
    const auto g = write_where_copied(r.g);
    CHECK(names(g) == (larger ? name_list{"a", "pad"} : name_list{"a"}));
    check_same(r.g, g, y);
  }
}

TEST_CASE("products of several pixels at once are not written among other channels") {
  for (const std::int64_t pixels : {1, 2}) {
    strips r;
    const auto a = r.image(2), b = r.image(2), all = r.image(4);
    kernel_builder k("a", {1, height});
    k.current().most = {1, 1};
    const auto out = r.writes(k, a), from = k.scratch("from", 2, true);
    k.prologue([&] { k.fill(k.in(from), 1, 2); });
    const auto group = k.group({2, 2 * pixels, {numbers(4 * pixels)}, {{0, 0, 0, 2, 2 * pixels, 0, 2 * pixels, 1}}});
    k.loop(width / pixels, [&](const affine& w) { k.matrix(k.at(out, {0, 0, tile_begin(1), pixels * w}), k.in(from), group); });
    r.g.add_compute(k.take());
    r.twice("b", r.x, b), r.concatenate("cat", {a, b}, all);
    CHECK(names(write_where_copied(r.g)) == (pixels == 1 ? name_list{"a", "b"} : name_list{"a", "b", "cat"}));
  }
}
