#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/lowering/text.hpp"
#include "raptor/schedule/schedule.hpp"

/// The text form of schedules: lines that follow a compute graph (lowering/text.hpp), one a tile, in the global order:
///
///     schedule predicted 81234000
///     tile 3 compute 1 lanes 0..1 4..5 core 2 copy 0 stage 0 start 1200 finish 5800 after 0 1
///
/// Times are picoseconds; `after`: the tiles that it reads from. Where the order policy decided about transfers too, the flows follow, and the
/// steps of the global order, parts of tiles (from one cursor of the kernel's body, item:iteration, to another) and flows by number:
///
///     flow 0 tile 3 value 4 core 7 box 0..1 0..64 3..4 0..56
///     step tile 3 0:0 1:12
///     step flow 0
///
/// What goes through global memory has a channel, declared before the flows ("channel 0 tile 3 value 4 box …", "flow 1 tile 3 value 4 core 7
/// channel 0 box …"), and two kinds of steps instead of one: "step store 0" (a channel) and "step load 1" (a flow).
///
/// What crosses the chip otherwise follows in communication/text.hpp.
namespace raptor::schedule {

namespace text_parts {

using program::text_parts::text_reader;
using program::text_parts::text_writer;

/// "0..1 4..5" with a space in front; nothing for rank 0.
inline void write_box(text_writer& w, const box& b) {
  for (const auto& i : b) w.word(" ").number(i.begin).word("..").number(i.end);
}
[[nodiscard]] inline box read_box(text_reader& r, std::size_t rank) {
  box b(rank);
  for (auto& i : b) {
    i.begin = r.number<std::int64_t>();
    r.expect("..");
    i.end = r.number<std::int64_t>();
  }
  return b;
}

/// Most cores that a text may name.
inline constexpr std::uint32_t most_cores = 1 << 20;

inline void write_schedule(text_writer& w, const schedule& s) {
  w.word("schedule").field("predicted", s.predicted).line();
  for (const auto i : s.order) {
    const auto& t = s.graph.tiles[i];
    const auto& p = s.place[i];
    w.word("tile ").number(i).field("compute", t.compute).word(" lanes");
    write_box(w, t.lanes);
    w.field("core", p.core).field("copy", p.copy).field("stage", p.stage).field("start", p.start).field("finish", p.finish);
    if (!s.graph.producers[i].empty()) w.word(" after");
    for (const auto producer : s.graph.producers[i]) w.word(" ").number(producer);
    w.line();
  }
  for (std::size_t c = 0; c < s.channels.size(); ++c) {
    const auto& channel = s.channels[c];
    w.word("channel ").number(static_cast<std::int64_t>(c)).field("tile", channel.producer).field("value", channel.value).word(" box");
    write_box(w, channel.what);
    w.line();
  }
  for (std::size_t f = 0; f < s.flows.size(); ++f) {
    const auto& flow = s.flows[f];
    w.word("flow ").number(static_cast<std::int64_t>(f)).field("tile", flow.producer).field("value", flow.value).field("core", flow.core);
    if (flow.channel != no_channel) w.field("channel", flow.channel);
    w.word(" box");
    write_box(w, flow.what);
    w.line();
  }
  const auto position = [&](const cursor& c) { w.word(" ").number(c.item).word(":").number(c.iteration); };
  for (const auto& x : s.steps) {
    const char* const kinds[] = {"step tile ", "step flow ", "step store ", "step load ", "step prepare "};
    w.word(kinds[static_cast<std::size_t>(x.what)]).number(x.index);
    if (x.what == step::kind::compute) position(x.begin), position(x.end);
    w.line();
  }
}

/// Reads the flows and steps behind the tiles; the reader stands on the first line behind them. Returns whether there is one.
[[nodiscard]] inline bool read_steps(text_reader& r, const lowering::compute_graph& g, schedule& s, bool more) {
  const auto tile_number = [&] {
    const auto tile = r.number<std::uint32_t>();
    if (tile >= s.graph.tiles.size()) r.fail("tile " + std::to_string(tile) + " of " + std::to_string(s.graph.tiles.size()));
    return tile;
  };
  const auto value_number = [&] {
    const auto value = r.number<std::uint32_t>();
    if (value >= g.values().size()) r.fail("value " + std::to_string(value) + " is not declared");
    return value;
  };
  const auto value_box = [&](std::uint32_t value) {
    const auto& sizes = g.values()[value].sizes;
    auto what = read_box(r, sizes.size());
    if (is_empty(what) || !contains(whole(sizes), what)) r.fail("the box is empty or reaches beyond its value");
    r.expect_end();
    return what;
  };
  for (; more && r.accept("channel"); more = r.next_line()) {
    if (r.number<std::size_t>() != s.channels.size()) r.fail("channels are numbered in order");
    channel c;
    r.expect("tile");
    c.producer = tile_number();
    r.expect("value");
    c.value = value_number();
    r.expect("box");
    c.what = value_box(c.value);
    s.channels.push_back(std::move(c));
  }
  for (; more && r.accept("flow"); more = r.next_line()) {
    if (r.number<std::size_t>() != s.flows.size()) r.fail("flows are numbered in order");
    flow f;
    r.expect("tile");
    f.producer = tile_number();
    r.expect("value");
    f.value = value_number();
    r.expect("core");
    f.core = r.number<std::uint32_t>(0, most_cores - 1);
    if (f.core == s.place[f.producer].core) r.fail("the flow goes to the core of its tile");
    if (r.accept("channel")) {
      f.channel = r.number<std::uint32_t>();
      if (f.channel >= s.channels.size()) r.fail("channel " + std::to_string(f.channel) + " of " + std::to_string(s.channels.size()));
      if (s.channels[f.channel].producer != f.producer || s.channels[f.channel].value != f.value) r.fail("the flow's channel is of another tile or value");
    }
    r.expect("box");
    f.what = value_box(f.value);
    s.flows.push_back(std::move(f));
  }
  for (; more && r.accept("step"); more = r.next_line()) {
    step x;
    const bool rendezvous = r.accept("flow");
    if (rendezvous || r.accept("load")) {
      x.what = rendezvous ? step::kind::transfer : step::kind::load;
      x.index = r.number<std::uint32_t>();
      if (x.index >= s.flows.size()) r.fail("flow " + std::to_string(x.index) + " of " + std::to_string(s.flows.size()));
      if ((s.flows[x.index].channel == no_channel) != rendezvous) r.fail("a flow with a channel is stored and loaded, one without is a step of its own");
    } else if (r.accept("store")) {
      x.what = step::kind::store;
      x.index = r.number<std::uint32_t>();
      if (x.index >= s.channels.size()) r.fail("channel " + std::to_string(x.index) + " of " + std::to_string(s.channels.size()));
    } else if (r.accept("prepare")) {
      x.what = step::kind::prepare;
      x.index = tile_number();
    } else {
      r.expect("tile");
      x.index = tile_number();
      const auto& body = g.at(s.graph.tiles[x.index].compute).body;
      const auto items = body.size();
      const auto iterations = [&](std::uint32_t item) {
        const auto* l = std::get_if<lowering::loop>(&body[item].what);
        return l == nullptr ? 1 : l->count.evaluate([&](symbol v) { return detail::lane_value(v, s.graph.tiles[x.index].lanes); });
      };
      for (auto* c : {&x.begin, &x.end}) {
        c->item = r.number<std::uint32_t>();
        r.expect(":");
        c->iteration = r.number<std::int64_t>(0);
        if (c->item > items || (c->item == items && c->iteration > 0)) r.fail("a cursor behind the " + std::to_string(items) + " items of the kernel");
        if (c->iteration > 0 && c->iteration >= iterations(c->item)) r.fail("iteration " + std::to_string(c->iteration) + " of an item of " + std::to_string(iterations(c->item)));
      }
      if (!(x.begin < x.end) && items > 0) r.fail("the part of a tile ends before it begins");
    }
    r.expect_end();
    s.steps.push_back(x);
  }
  return more;
}

/// Reads a schedule; the reader stands on its first line. Afterwards it stands on the first line behind; returns false where
/// there is none. Every tile's place in its compute, core and producers are checked.
[[nodiscard]] inline bool read_schedule(text_reader& r, const lowering::compute_graph& g, schedule& s) {
  struct entry {
    tile what;
    placed where;
    std::vector<std::uint32_t> producers;
  };
  std::vector<std::pair<std::uint32_t, entry>> read;
  r.expect("schedule"), r.expect("predicted");
  s.predicted = r.number<picoseconds>(0);
  r.expect_end();
  bool more = r.next_line();
  for (; more && r.accept("tile"); more = r.next_line()) {
    const auto index = r.number<std::uint32_t>(0, ~std::uint32_t{0} - 1);
    entry e;
    r.expect("compute");
    e.what.compute = r.number<std::uint32_t>();
    if (e.what.compute >= g.size()) r.fail("compute " + std::to_string(e.what.compute) + " of " + std::to_string(g.size()));
    const auto& lanes = g.at(e.what.compute).lanes;
    r.expect("lanes");
    e.what.lanes = read_box(r, lanes.size());
    if (is_empty(e.what.lanes) || !contains(whole(lanes), e.what.lanes)) r.fail("the tile is empty or reaches beyond the lanes of its compute");
    r.expect("core");
    e.where.core = r.number<std::uint32_t>(0, most_cores - 1);
    r.expect("copy");
    e.where.copy = r.number<std::uint32_t>();
    r.expect("stage");
    e.where.stage = r.number<std::uint32_t>();
    r.expect("start");
    e.where.start = r.number<picoseconds>(0);
    r.expect("finish");
    e.where.finish = r.number<picoseconds>(e.where.start);
    if (r.accept("after"))
      while (!r.at_end()) {
        e.producers.push_back(r.number<std::uint32_t>());
        if (e.producers.back() == index) r.fail("a tile after itself");
        if (e.producers.size() > 1 && e.producers[e.producers.size() - 2] >= e.producers.back()) r.fail("the tiles behind 'after' are ascending");
      }
    r.expect_end();
    s.order.push_back(index);
    read.emplace_back(index, std::move(e));
  }
  std::sort(read.begin(), read.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  s.graph.of_compute.resize(g.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    auto& [index, e] = read[i];
    if (index != i) r.fail(i > 0 && index == read[i - 1].first ? "tile " + std::to_string(index) + " stands twice" : "tile " + std::to_string(i) + " is missing");
    if (i > 0 && e.what.compute < s.graph.tiles.back().compute) r.fail("tile " + std::to_string(i) + " is of an earlier compute than the tile before it");
    if (!e.producers.empty() && e.producers.back() >= read.size()) r.fail("tile " + std::to_string(i) + " is after a tile that does not exist");
    s.graph.of_compute[e.what.compute].push_back(index);
    s.graph.tiles.push_back(std::move(e.what));
    s.graph.producers.push_back(std::move(e.producers));
    s.place.push_back(e.where);
  }
  return read_steps(r, g, s, more);
}

}  // namespace text_parts

/// Prints a schedule of a compute graph, without the graph. Cost: linear in tiles and dependencies.
[[nodiscard]] inline std::string to_text(const schedule& s) {
  std::string text;
  text_parts::text_writer w(text);
  text_parts::write_schedule(w, s);
  return text;
}
/// Reads what to_text writes, for the graph that it is a schedule of. Errors: malformed with file and line.
/// Guarantees: indices and boxes are checked; whether producers precede consumers is check_schedule's to say.
[[nodiscard]] inline schedule parse_text(std::string_view text, const lowering::compute_graph& g, std::string_view file = "schedule") {
  text_parts::text_reader r(text, file);
  schedule s;
  if (!r.next_line()) r.fail("the text ends where 'schedule' is expected");
  if (text_parts::read_schedule(r, g, s)) r.fail("expected a tile");
  return s;
}

}  // namespace raptor::schedule
