#include "raptor/communication/text.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <random>
#include <string>

#include "../report/scheduled.hpp"
#include "raptor/communication/realize.hpp"
#include "raptor/schedule/rendezvous_order.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

bool same_schedule(const schedule::schedule& a, const schedule::schedule& b) {
  bool same = a.order == b.order && a.steps == b.steps && a.flows == b.flows && a.predicted == b.predicted && a.graph.of_compute == b.graph.of_compute && a.graph.producers == b.graph.producers &&
              a.place.size() == b.place.size() && a.graph.tiles.size() == b.graph.tiles.size();
  for (std::size_t i = 0; same && i < a.place.size(); ++i) {
    const auto &p = a.place[i], &q = b.place[i];
    same = p.core == q.core && p.copy == q.copy && p.stage == q.stage && p.start == q.start && p.finish == q.finish &&
           a.graph.tiles[i].compute == b.graph.tiles[i].compute && a.graph.tiles[i].lanes == b.graph.tiles[i].lanes;
  }
  return same;
}

/// spread() with parts of tiles and transfers in one order.
schedule::schedule stepwise(const lowering::compute_graph& g, schedule::picoseconds atom) {
  auto s = spread(g);
  schedule::rendezvous_order{atom}(round_target{}, g, s);
  return s;
}

std::string message(const std::string& text, std::string* place = nullptr) {
  try {
    static_cast<void>(communication::parse_spatial(text));
  } catch (const error& e) {
    CHECK(e.code() == error_code::malformed);
    if (place != nullptr) *place = e.place();
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("what is set up once on a core is a step that reads back; of a tile that does not exist it is refused") {
  const auto g = small_graph();
  auto s = stepwise(g, 1000);
  s.steps.insert(s.steps.begin(), {schedule::step::kind::prepare, 3, {}, {}});
  const auto form = communication::to_text(g, s);
  const auto at = form.text.find("\nstep prepare 3\n");
  REQUIRE(at != form.text.npos);
  CHECK(same_schedule(communication::parse_spatial(form.text).schedule, s));
  auto wrong = form.text;
  wrong.replace(at + 14, 1, "9999");
  CHECK(message(wrong).find("tile 9999 of ") != std::string::npos);
}

TEST_CASE("a schedule with its transfers prints as it reads") {
  const auto g = small_graph();
  const auto s = spread(g);
  const auto form = communication::to_text(g, s);
  const auto has = [&](const std::string& part) { return form.text.find(part) != form.text.npos; };
  CHECK(has("\nschedule predicted " + std::to_string(s.predicted) + "\ntile 0 compute 0 lanes 0..1 0..1 core 0 copy 0 stage 0 start 0 finish "));
  CHECK(has("\ntile 16 compute 2 lanes 0..1 0..1 core 1 copy 0 stage 0 start "));
  // Rows of the relu go to the core of the last compute, where they are made on the other one.
  const auto position = static_cast<std::size_t>(std::find(s.order.begin(), s.order.end(), 18U) - s.order.begin());
  CHECK(has("\ntransfer 10 %2 core 1 first " + std::to_string(position) + " box 0..1 0..4 2..3 0..8\n"));
  CHECK(!has("\ntransfer 11 "));

  const auto parsed = communication::parse_spatial(form.text);
  CHECK(same_graph(parsed.computes, g));
  CHECK(same_schedule(parsed.schedule, s));
  CHECK(parsed.transfers == communication::collect_transfers(g, s));
  CHECK(communication::to_text(parsed).text == form.text);
  // A schedule alone reads back for its graph.
  const auto alone = schedule::parse_text(schedule::to_text(s), g);
  CHECK(same_schedule(alone, s));
}

TEST_CASE("what is read back can be realized") {
  const auto g = small_graph();
  const auto s = spread(g);
  const auto form = communication::to_text(g, s);
  const auto parsed = communication::parse_spatial(form.text, form.constants);
  const communication::rendezvous_communication realize;
  const auto before = realize(g, s, small_chip()), after = realize(parsed.computes, parsed.schedule, small_chip());
  CHECK(program::to_text(before).text == program::to_text(after).text);
  // The program sends exactly the transfers that the text names.
  std::int64_t sent = 0, named = 0;
  for (const auto& item : before.cores[0].body)
    if (const auto* o = std::get_if<program::operation>(&item.what); o != nullptr && o->op == isa::opcode::send) sent += o->length;
  for (const auto& list : parsed.transfers)
    for (const auto& t : list) named += element_count(t.what);
  CHECK(sent > 0);
  CHECK(sent == named);
}

TEST_CASE("parts of tiles and flows in one order read back, and give the same program") {
  const auto g = small_graph();
  for (const schedule::picoseconds atom : {1, 60, 1'000'000}) {
    CAPTURE(atom);
    const auto s = stepwise(g, atom);
    const auto form = communication::to_text(g, s);
    const auto has = [&](const std::string& part) { return form.text.find(part) != form.text.npos; };
    REQUIRE(s.flows.size() == 4);
    CHECK(has("\nflow 0 tile 8 value 2 core 1 box 0..1 0..4 0..1 0..8\nflow 1 tile 10 "));
    CHECK(has("\nstep flow 3\n"));
    CHECK(has(atom > 60 ? "\nstep tile 0 0:0 2:0\n" : "\nstep tile 0 0:0 0:1\nstep "));
    CHECK(has("\nstep tile 0 0:4 0:5\n") == (atom <= 60));
    const auto parsed = communication::parse_spatial(form.text, form.constants);
    CHECK(same_graph(parsed.computes, g));
    CHECK(same_schedule(parsed.schedule, s));
    CHECK(communication::to_text(parsed).text == form.text);
    CHECK(same_schedule(schedule::parse_text(schedule::to_text(s), g), s));
    const communication::rendezvous_communication realize;
    CHECK(program::to_text(realize(g, s, small_chip())).text == program::to_text(realize(parsed.computes, parsed.schedule, small_chip())).text);
  }
}

TEST_CASE("wrong flows and steps are errors with their line") {
  const auto g = small_graph();
  const auto head = lowering::to_text(g).text;
  const auto lines = std::count(head.begin(), head.end(), '\n');
  std::string place;
  // Two tiles of the convolution, whose kernel is a loop of 6 iterations and a statement.
  const std::string tiles = "schedule predicted 5\ntile 0 compute 0 lanes 0..1 0..1 core 0 copy 0 stage 0 start 0 finish 4\n"
                            "tile 1 compute 0 lanes 0..1 1..2 core 1 copy 0 stage 0 start 0 finish 4\n";
  const auto with = [&](const std::string& rest) { return message(head + tiles + rest, &place); };
  const std::string flow = "flow 0 tile 0 value 1 core 1 box 0..1 0..4 0..1 0..8\n";
  CHECK(with(flow) == "accepted");
  CHECK(with(flow + "step tile 0 0:0 0:3\nstep tile 0 0:3 2:0\nstep flow 0\n") == "accepted");
  CHECK(with("flow 1 tile 0 value 1 core 1 box 0..1 0..4 0..1 0..8\n") == "flows are numbered in order");
  CHECK(place == "spatial, line " + std::to_string(lines + 4));
  CHECK(with(flow + flow) == "flows are numbered in order");
  CHECK(place == "spatial, line " + std::to_string(lines + 5));
  CHECK(with("flow 0 tile 2 value 1 core 1 box 0..1 0..4 0..1 0..8\n") == "tile 2 of 2");
  CHECK(with("flow 0 tile 0 value 4 core 1 box 0..1 0..4 0..1 0..8\n") == "value 4 is not declared");
  CHECK(with("flow 0 tile 0 value 1 core 0 box 0..1 0..4 0..1 0..8\n") == "the flow goes to the core of its tile");
  CHECK(with("flow 0 tile 0 value 1 core 99999999 box 0..1 0..4 0..1 0..8\n") == "number 99999999 is out of range");
  CHECK(with("flow 0 tile 0 value 1 core 1 box 0..1 0..4 0..1 0..9\n") == "the box is empty or reaches beyond its value");
  CHECK(with("flow 0 tile 0 value 1 core 1 box 0..1 0..4 1..1 0..8\n") == "the box is empty or reaches beyond its value");
  CHECK(with("flow 0 tile 0 value 1 core 1 box 0..1 0..4 0..1\n") == "expected a number before ''");
  CHECK(with("flow 0 tile 0 value 1 core 1 box 0..1 0..4 0..1 0..8 9\n").find("'9'") != std::string::npos);
  const auto step = [&](const std::string& rest) { return with(flow + "step " + rest + "\n"); };
  CHECK(step("flow 0") == "accepted");
  CHECK(step("flow 1") == "flow 1 of 1");
  CHECK(place == "spatial, line " + std::to_string(lines + 5));
  CHECK(step("flow -1") == "number -1 is out of range");
  CHECK(step("tile 2 0:0 2:0") == "tile 2 of 2");
  CHECK(step("tile 1 0:5 1:0") == "accepted");
  CHECK(step("tile 0 0:0 3:0") == "a cursor behind the 2 items of the kernel");
  CHECK(step("tile 0 0:0 2:1") == "a cursor behind the 2 items of the kernel");
  CHECK(step("tile 0 0:0 0:6") == "iteration 6 of an item of 6");
  CHECK(step("tile 0 0:7 2:0") == "iteration 7 of an item of 6");
  CHECK(step("tile 0 1:1 2:0") == "iteration 1 of an item of 1");
  CHECK(step("tile 0 0:-1 2:0") == "number -1 is out of range");
  CHECK(step("tile 0 1:0 0:3") == "the part of a tile ends before it begins");
  CHECK(step("tile 0 1:0 1:0") == "the part of a tile ends before it begins");
  CHECK(step("tile 0 0:0") == "expected a number before ''");
  CHECK(step("tile 0 0 2:0") == "expected ':' before '2:0'");
  CHECK(step("core 0") == "expected 'tile' before 'core 0'");
  CHECK(with("step flow 0\n") == "flow 0 of 0");
  CHECK(with(flow + "step flow 0\n" + "flow 1 tile 0 value 1 core 1 box 0..1 0..4 0..1 0..8\n") == "expected a tile or a transfer");
  // A kernel without items has one empty part.
  CHECK_THROWS_AS(static_cast<void>(schedule::parse_text(tiles + flow + "step nothing\n", g)), error);
}

TEST_CASE("wrong schedules and transfers are errors with their line") {
  const auto g = small_graph();
  const auto head = lowering::to_text(g).text;
  std::string place;
  const auto with = [&](const std::string& rest) { return message(head + rest, &place); };
  CHECK(with("") == "the text ends where 'schedule' is expected");
  CHECK(with("schedule predicted 5\n") == "accepted");
  CHECK(with("schedule predicted -5\n") == "number -5 is out of range");
  const std::string tail = " core 0 copy 0 stage 0 start 0 finish 4";
  const auto tile = [&](const std::string& rest) { return with("schedule predicted 5\n" + rest); };
  CHECK(tile("tile 0 compute 0 lanes 0..1 0..1" + tail + "\n") == "accepted");
  CHECK(tile("tile 0 compute 3 lanes 0..1 0..1" + tail + "\n") == "compute 3 of 3");
  CHECK(tile("tile 0 compute 0 lanes 0..1 0..9" + tail + "\n") == "the tile is empty or reaches beyond the lanes of its compute");
  CHECK(tile("tile 0 compute 0 lanes 0..1 1..1" + tail + "\n") == "the tile is empty or reaches beyond the lanes of its compute");
  CHECK(tile("tile 0 compute 0 lanes 0..1" + tail + "\n") == "expected a number before 'core 0 copy 0 stage 0 start 0 finish 4'");
  CHECK(tile("tile 1 compute 0 lanes 0..1 0..1" + tail + "\n") == "tile 0 is missing");
  CHECK(tile("tile 0 compute 0 lanes 0..1 0..1" + tail + "\ntile 0 compute 0 lanes 0..1 1..2" + tail + "\n") == "tile 0 stands twice");
  CHECK(tile("tile 0 compute 1 lanes 0..1 0..1" + tail + "\ntile 1 compute 0 lanes 0..1 1..2" + tail + "\n") == "tile 1 is of an earlier compute than the tile before it");
  CHECK(tile("tile 0 compute 0 lanes 0..1 0..1" + tail + " after 1\n") == "tile 0 is after a tile that does not exist");
  CHECK(tile("tile 0 compute 0 lanes 0..1 0..1" + tail + " after 0\n") == "a tile after itself");
  CHECK(tile("tile 0 compute 0 lanes 0..1 0..1" + tail + " after 3 2\n") == "the tiles behind 'after' are ascending");
  CHECK(tile("tile 0 compute 0 lanes 0..1 0..1 core 0 copy 0 stage 0 start 5 finish 4\n") == "number 4 is out of range");
  CHECK(tile("tile 0 compute 0 lanes 0..1 0..1 core 99999999 copy 0 stage 0 start 0 finish 4\n") == "number 99999999 is out of range");
  const auto transfer = [&](const std::string& rest) { return tile("tile 0 compute 0 lanes 0..1 0..1" + tail + "\ntransfer " + rest); };
  CHECK(transfer("0 %1 core 1 first 0 box 0..1 0..4 0..1 0..8\n") == "accepted");
  CHECK(transfer("1 %1 core 1 first 0 box 0..1 0..4 0..1 0..8\n") == "tile 1 of 1");
  CHECK(transfer("0 %4 core 1 first 0 box 0..1 0..4 0..1 0..8\n") == "the transfer is of a value that is not declared");
  CHECK(transfer("0 %1 core 1 first 1 box 0..1 0..4 0..1 0..8\n") == "position 1 of 1");
  CHECK(transfer("0 %1 core 1 first 0 box 0..1 0..4 0..1 0..9\n") == "the transfer is empty or reaches beyond its value");
  CHECK(transfer("0 %1 core 1 first 0 box 0..1 0..4 0..1 0..8\ngarbage\n") == "expected a tile or a transfer");
  CHECK_THROWS_AS(static_cast<void>(schedule::parse_text("schedule predicted 1\ngarbage\n", g)), error);
}

TEST_CASE("no changed byte of a spatial text does harm") {
  const auto text = communication::to_text(small_graph(), stepwise(small_graph(), 60)).text;
  std::mt19937 dice(7);
  for (int k = 0; k < 4000; ++k) {
    auto changed = text;
    changed[dice() % changed.size()] = static_cast<char>(dice() % 256);
    try {
      static_cast<void>(communication::to_text(communication::parse_spatial(changed)));
    } catch (const error& e) {
      CHECK((e.code() == error_code::malformed || e.code() == error_code::capacity));
    }
  }
}

TEST_CASE("speed: ten thousand tiles") {
  lowering::compute_graph g;
  std::uint32_t before = g.add_value({"v", {1, 8, 100, 8}, layout::physical::nhwc_row_strip, lowering::origin::computed, {}});
  for (int i = 0; i < 100; ++i) {
    lowering::kernel_builder k("c" + std::to_string(i), {1, 100});
    k.current().most = {1, 1};
    const auto h = lowering::tile_begin(1);
    if (i > 0) k.reads(before, {0, 0, h - 1, 0}, {1, 8, h + 2, 8});
    const auto to = g.add_value({"v", {1, 8, 100, 8}, layout::physical::nhwc_row_strip, lowering::origin::computed, {}});
    k.writes(to, {0, 0, h, 0}, {1, 8, h + 1, 8});
    before = to;
    g.add_compute(k.take());
  }
  schedule::schedule s;
  s.graph = schedule::make_tiles(round_target{}, g);
  s.place.resize(s.graph.tiles.size());
  for (std::size_t i = 0; i < s.place.size(); ++i) s.place[i].core = static_cast<std::uint32_t>(i % 2);
  schedule::ready_order{}(round_target{}, g, s);
  const auto start = std::chrono::steady_clock::now();
  const auto form = communication::to_text(g, s);
  const auto parsed = communication::parse_spatial(form.text);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE("print and parse " << s.graph.tiles.size() << " tiles: " << seconds << " s, " << form.text.size() << " bytes");
  CHECK(s.graph.tiles.size() == 10000);
  CHECK(same_schedule(parsed.schedule, s));
}
