#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"
#include "raptor/lowering/kernel_builder.hpp"

/// Small compute graphs for the tests of text forms, reports and verifiers.
namespace raptor::test {

[[nodiscard]] inline model::constant_ptr numbers(std::size_t count) {
  return std::make_shared<const model::constant>(model::constant{std::vector<float>(count, 0.5F)});
}

/// image 1x1x8x8 → 3 x 3 convolution of `channels` channels, strips → relu, strips → result, rows as C x W. A crossbar has 16 rows.
[[nodiscard]] inline lowering::compute_graph small_graph(std::int64_t channels = 4) {
  using namespace lowering;
  compute_graph g;
  g.name = "small \"net\"";
  g.inputs.push_back({"image", {1, 1, 8, 8}});
  g.outputs.push_back({"y", {1, channels, 8, 8}});
  value image{"image", {1, 1, 8, 8}, layout::physical::nchw_row_strip, origin::input, {}};
  image.input = 0;
  const auto x = g.add_value(image);
  const auto conv = g.add_value({"conv", {1, channels, 8, 8}, layout::physical::nhwc_row_strip, origin::computed, {}});
  const auto relu = g.add_value({"relu", {1, channels, 8, 8}, layout::physical::nhwc_row_strip, origin::computed, {}});
  value y{"y", {1, channels, 8, 8}, layout::physical::nchw_row_strip, origin::computed, {}};
  y.result = 0;
  const auto result = g.add_value(y);

  const auto n = tile_begin(0), h = tile_begin(1);
  {
    kernel_builder k("conv1", {1, 8});
    auto& c = k.current();
    c.op = "convolution", c.strategy = "streamed-patch", c.node = 3, c.most = {1, 1};
    const auto in = k.reads(x, {n, 0, h - 1, 0}, {tile_end(0), 1, tile_end(1) + 1, 8});
    const auto out = k.writes(conv, {n, 0, h, 0}, {tile_end(0), channels, tile_end(1), 8});
    const auto patch = k.scratch("patch", 16, true), sum = k.scratch("sum", tile_extent(1) * 16);
    weight_matrix m{9, channels, {numbers(static_cast<std::size_t>(9 * channels))}, {}};
    m.blocks.push_back({0, 0, 0, 9, channels, 0, 1, 9});
    const auto group = k.group(std::move(m));
    k.prologue([&] { k.fill(k.in(patch), 0, 16); });
    k.loop(6, [&](const affine& w) {
      for (std::int64_t r = 0; r < 3; ++r) k.copy(k.in(patch, r * 3), k.at(in, {n, 0, h + (r - 1), w}), 3).when_outside = outside::zero;
      k.matrix(k.in(sum), k.in(patch), group, true);
      k.copy(k.at(out, {n, 0, h, w}), k.in(sum), channels);
    });
    k.fill(k.at(out, {n, 0, h, 6}), -0.0F, 2 * channels);
    g.add_compute(k.take());
  }
  {
    kernel_builder k("relu1", {1, 8});
    k.current().op = "relu";
    const auto in = k.reads(conv, {n, 0, h, 0}, {tile_end(0), channels, tile_end(1), 8});
    const auto out = k.writes(relu, {n, 0, h, 0}, {tile_end(0), channels, tile_end(1), 8});
    k.loop(tile_extent(1), [&](const affine& i) { k.clamp(isa::opcode::vrsl, k.at(out, {n, 0, h + i, 0}), k.at(in, {n, 0, h + i, 0}), 0, 8 * channels); });
    g.add_compute(k.take());
  }
  {
    kernel_builder k("y", {1, 8});
    k.current().op = "materialize", k.current().most = {1, 1};
    const auto in = k.reads(relu, {n, 0, h, 0}, {tile_end(0), channels, tile_end(1), 8});
    const auto out = k.writes(result, {n, 0, h, 0}, {tile_end(0), channels, tile_end(1), 8});
    k.loop(channels, [&](const affine& i) { k.gather(k.at(out, {n, i, h, 0}), k.at(in, {n, i, h, 0}), 8, 1, 3); });
    g.add_compute(k.take());
  }
  return g;
}

/// The smallest part of the chip that small_graph needs: crossbars of 16 x 16.
[[nodiscard]] inline program::geometry small_chip(std::int64_t cores = 2) {
  program::geometry g;
  g.core_count = cores, g.crossbars_per_core = 4, g.crossbar_rows = 16, g.crossbar_columns = 16, g.weight_columns = 16;
  return g;
}

/// A graph of random shape that uses every field; indices are valid, what it computes makes no sense.
[[nodiscard]] inline lowering::compute_graph random_graph(std::uint32_t seed, std::size_t computes = 6) {
  using namespace lowering;
  std::mt19937 dice(seed), relations(seed + 1);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(dice() % n); };
  compute_graph g;
  g.name = "random\n" + std::to_string(seed);
  const std::vector<model::constant_ptr> constants{numbers(12), numbers(7), numbers(1)};
  g.inputs = {{"a", {2, 3}}, {"b \\", {}}};
  g.outputs = {{"y", {4}}};
  for (std::uint32_t i = 0; i < 2 * computes + 4; ++i) {
    value v;
    v.name = "v" + std::to_string(i);
    const bool image = below(2) == 0;
    for (auto rank = image ? 4 : below(4); rank > 0; --rank) v.sizes.push_back(below(9));
    if (image) v.layout = static_cast<layout::physical>(below(3));
    if (i == 0) v.from = origin::input, v.input = 1;
    if (i == 1) v.from = origin::constant, v.data = constants[1];
    if (i == 2) v.result = 0;
    g.add_value(v);
  }
  for (std::size_t i = 0; i < computes; ++i) {
    compute c;
    c.name = "c" + std::to_string(i), c.op = "op+op", c.strategy = below(2) == 0 ? "" : "tiled-2d";
    if (below(2) == 0) c.node = static_cast<std::uint32_t>(below(100));
    for (auto rank = below(4); rank > 0; --rank) c.lanes.push_back(below(20)), c.granule.push_back(1 + below(3)), c.most.push_back(below(5));
    const auto expression = [&](bool loops) {
      affine a = below(50) - 10;
      if (!c.lanes.empty()) {
        a += affine(symbol{symbol::kind::begin, static_cast<std::uint32_t>(below(static_cast<std::uint32_t>(c.lanes.size())))}) * (below(9) - 4);
        a += affine(symbol{symbol::kind::extent, static_cast<std::uint32_t>(below(static_cast<std::uint32_t>(c.lanes.size())))}) * below(3);
      }
      if (loops) a += affine(symbol{symbol::kind::loop, static_cast<std::uint32_t>(below(3))}) * (below(700) - 100);
      return a;
    };
    for (auto count = 1 + below(4); count > 0; --count) {
      access a;
      a.value = static_cast<std::uint32_t>(below(static_cast<std::uint32_t>(g.values().size())));
      if (g.values()[a.value].from == origin::computed) a.mode = static_cast<access_mode>(below(3));
      for (std::size_t d = 0; d < g.values()[a.value].sizes.size(); ++d) a.low.push_back(expression(false)), a.high.push_back(expression(false));
      c.accesses.push_back(a);
    }
    for (auto count = below(3); count > 0; --count) c.temporaries.push_back({"t \"", expression(false), below(2) == 0});
    for (auto count = below(3); count > 0; --count) {
      weight_matrix m{1 + below(40), 1 + below(40), {}, {}};
      for (auto sources = 1 + below(2); sources > 0; --sources) m.sources.push_back(constants[static_cast<std::size_t>(below(3))]);
      for (auto blocks = below(4); blocks > 0; --blocks)
        m.blocks.push_back({static_cast<std::uint32_t>(below(static_cast<std::uint32_t>(m.sources.size()))), below(5), below(5), below(5), below(5), below(90), below(20) - 9, below(20) - 9});
      c.groups.push_back(m);
    }
    // Families: new ones, and the one of the compute before, with its weights.
    if (const auto kind = relations() % 3; kind == 0) {
      c.family = static_cast<std::int64_t>(relations() % 2 == 0 ? i : 1'000'000'000'000 + i);
    } else if (kind == 1 && i > 0 && g.at(i - 1).family >= 0) {
      c.family = g.at(i - 1).family, c.groups = g.at(i - 1).groups;
    }
    const auto place = [&](bool may_be_none) {
      operand o;
      const auto kind = below(may_be_none ? 3 : 2);
      if (kind == 2) return o;
      if (kind == 1 && !c.temporaries.empty()) {
        o.what = operand::kind::temporary, o.index = static_cast<std::uint32_t>(below(static_cast<std::uint32_t>(c.temporaries.size())));
        o.at = {expression(true)};
      } else {
        o.what = operand::kind::value, o.index = static_cast<std::uint32_t>(below(static_cast<std::uint32_t>(c.accesses.size())));
        for (std::size_t d = 0; d < c.accesses[o.index].low.size(); ++d) o.at.push_back(expression(true));
      }
      return o;
    };
    const auto items = [&](const auto& self, int depth) -> std::vector<item> {
      std::vector<item> list;
      for (auto count = 1 + below(4); count > 0; --count) {
        if (depth < 3 && below(3) == 0) {
          list.push_back({loop{static_cast<std::uint32_t>(depth), expression(false), self(self, depth + 1)}});
          continue;
        }
        statement s;
        do s.op = static_cast<isa::opcode>(below(isa::opcode_count));
        while (s.op == isa::opcode::mvmul && c.groups.empty());
        s.d = place(true), s.a = place(true), s.b = place(true);
        s.length = expression(true), s.bits = static_cast<std::uint32_t>(below(3)) * 0x7fffffffU, s.stride = below(5) - 1;
        if (s.a.what == operand::kind::value && !s.a.at.empty() && below(2) == 0) s.stride_dimension = static_cast<std::int32_t>(below(static_cast<std::uint32_t>(s.a.at.size())));
        if (!c.groups.empty()) s.group = static_cast<std::uint32_t>(below(static_cast<std::uint32_t>(c.groups.size())));
        s.when_outside = static_cast<outside>(below(3));
        list.push_back({std::move(s)});
      }
      return list;
    };
    if (below(2) == 0) c.prologue = items(items, 0);
    c.body = items(items, 0);
    g.add_compute(std::move(c));
  }
  return g;
}

/// Structural equality, but for the contents of constants and which objects hold them.
[[nodiscard]] inline bool same_items(const std::vector<lowering::item>& a, const std::vector<lowering::item>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].what.index() != b[i].what.index()) return false;
    if (const auto* s = std::get_if<lowering::statement>(&a[i].what)) {
      if (*s != std::get<lowering::statement>(b[i].what)) return false;
    } else {
      const auto &l = std::get<lowering::loop>(a[i].what), &m = std::get<lowering::loop>(b[i].what);
      if (l.variable != m.variable || l.count != m.count || !same_items(l.body, m.body)) return false;
    }
  }
  return true;
}
[[nodiscard]] inline bool same_graph(const lowering::compute_graph& a, const lowering::compute_graph& b) {
  const auto same_ports = [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& p, const auto& q) { return p.name == q.name && p.sizes == q.sizes; });
  };
  if (a.name != b.name || !same_ports(a.inputs, b.inputs) || !same_ports(a.outputs, b.outputs) || a.size() != b.size() || a.values().size() != b.values().size()) return false;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    const auto &v = a.values()[i], &w = b.values()[i];
    if (v.name != w.name || v.sizes != w.sizes || v.layout != w.layout || v.from != w.from || v.input != w.input || v.result != w.result || (v.data == nullptr) != (w.data == nullptr)) return false;
  }
  for (lowering::vertex v = 0; v < a.size(); ++v) {
    const auto &c = a.at(v), &d = b.at(v);
    if (c.name != d.name || c.op != d.op || c.strategy != d.strategy || c.node != d.node || c.family != d.family || c.lanes != d.lanes || c.granule != d.granule || c.most != d.most) return false;
    if (c.accesses.size() != d.accesses.size() || c.temporaries.size() != d.temporaries.size() || c.groups.size() != d.groups.size()) return false;
    for (std::size_t i = 0; i < c.accesses.size(); ++i) {
      const auto &x = c.accesses[i], &y = d.accesses[i];
      if (x.value != y.value || x.mode != y.mode || x.low != y.low || x.high != y.high) return false;
    }
    for (std::size_t i = 0; i < c.temporaries.size(); ++i)
      if (c.temporaries[i].name != d.temporaries[i].name || c.temporaries[i].elements != d.temporaries[i].elements || c.temporaries[i].persistent != d.temporaries[i].persistent) return false;
    for (std::size_t i = 0; i < c.groups.size(); ++i)
      if (c.groups[i].rows != d.groups[i].rows || c.groups[i].columns != d.groups[i].columns || c.groups[i].blocks != d.groups[i].blocks || c.groups[i].sources.size() != d.groups[i].sources.size()) return false;
    if (!same_items(c.prologue, d.prologue) || !same_items(c.body, d.body)) return false;
    const auto edges = [](const lowering::compute_graph& g, lowering::vertex at) {
      std::vector<std::pair<lowering::vertex, std::uint32_t>> list;
      const auto [first, last] = boost::out_edges(at, g.structure());
      for (auto e = first; e != last; ++e) list.emplace_back(boost::target(*e, g.structure()), g.structure()[*e].value);
      return list;
    };
    if (edges(a, v) != edges(b, v)) return false;
  }
  return true;
}

}  // namespace raptor::test
