#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/lowering/text.hpp"
#include "raptor/schedule/schedule.hpp"

/// The text form of schedules: lines that follow a compute graph (lowering/text.hpp), one a tile, in the global order:
///
///     schedule predicted 81234000
///     tile 3 compute 1 lanes 0..1 4..5 core 2 copy 0 stage 0 start 1200 finish 5800 after 0 1
///
/// Times are picoseconds; `after`: the tiles that it reads from. What crosses the chip follows in communication/text.hpp.
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
  return more;
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
