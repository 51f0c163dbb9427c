#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/communication/transfers.hpp"
#include "raptor/lowering/text.hpp"
#include "raptor/schedule/text.hpp"

/// The text form that --EmitSpatial writes (`spatial.txt`): the compute graph (lowering/text.hpp), its schedule (schedule/text.hpp), and
/// what is sent right after each tile, in the global order:
///
///     transfer 12 %4 core 7 first 45 box 0..1 0..64 3..4 0..56
///
/// After tile 12 the box of value 4 goes to core 7, where the tile at position 45 of the global order reads it first.
namespace raptor::communication {

/// What a text says; see lowering::parsed_text for the constants.
struct parsed_spatial {
  lowering::compute_graph computes;
  schedule::schedule schedule;
  transfer_lists transfers;
  std::vector<std::int64_t> constants;
};

/// Prints a scheduled compute graph with its transfers. `constant_elements`: see lowering::to_text.
/// Guarantees: parse_spatial gives everything back but the contents of constants, and printing that gives the same text.
/// Cost: linear in statements, tiles, dependencies and transfers.
[[nodiscard]] inline lowering::text_form to_text(const lowering::compute_graph& computes, const schedule::schedule& s, const transfer_lists& transfers,
                                                 std::span<const std::int64_t> constant_elements = {}) {
  auto form = lowering::to_text(computes, constant_elements);
  schedule::text_parts::text_writer w(form.text);
  schedule::text_parts::write_schedule(w, s);
  for (const auto tile : s.order)
    for (const auto& t : transfers[tile]) {
      w.word("transfer ").number(tile).word(" %").number(t.value).field("core", t.core).field("first", static_cast<std::int64_t>(t.first_use)).word(" box");
      schedule::text_parts::write_box(w, t.what);
      w.line();
    }
  return form;
}
/// The same with the transfers of point-to-point channels (collect_transfers).
[[nodiscard]] inline lowering::text_form to_text(const lowering::compute_graph& computes, const schedule::schedule& s) {
  return to_text(computes, s, collect_transfers(computes, s));
}
[[nodiscard]] inline lowering::text_form to_text(const parsed_spatial& p) { return to_text(p.computes, p.schedule, p.transfers, p.constants); }

/// Reads what to_text writes. `constants`: their contents, by number; empty: they get none. `file`: the place of errors.
/// Guarantees: indices and boxes are checked. Errors: malformed with file and line. Memory: proportional to the text. Cost: linear.
[[nodiscard]] inline parsed_spatial parse_spatial(std::string_view text, std::span<const model::constant_ptr> constants = {},
                                                  std::string_view file = "spatial") {
  schedule::text_parts::text_reader r(text, file);
  lowering::parsed_text graph;
  if (!lowering::text_parts::read_graph(r, constants, graph)) r.fail("the text ends where 'schedule' is expected");
  parsed_spatial result{std::move(graph.value), {}, {}, std::move(graph.constants)};
  bool more = schedule::text_parts::read_schedule(r, result.computes, result.schedule);
  const auto& tiles = result.schedule.graph.tiles;
  result.transfers.resize(tiles.size());
  for (; more && r.accept("transfer"); more = r.next_line()) {
    const auto tile = r.number<std::uint32_t>();
    if (tile >= tiles.size()) r.fail("tile " + std::to_string(tile) + " of " + std::to_string(tiles.size()));
    transfer t;
    t.value = r.buffer();
    if (t.value >= result.computes.values().size()) r.fail("the transfer is of a value that is not declared");
    const auto& sizes = result.computes.values()[t.value].sizes;
    r.expect("core");
    t.core = r.number<std::uint32_t>(0, schedule::text_parts::most_cores - 1);
    r.expect("first");
    t.first_use = r.number<std::size_t>();
    if (t.first_use >= tiles.size()) r.fail("position " + std::to_string(t.first_use) + " of " + std::to_string(tiles.size()));
    r.expect("box");
    t.what = schedule::text_parts::read_box(r, sizes.size());
    if (is_empty(t.what) || !contains(whole(sizes), t.what)) r.fail("the transfer is empty or reaches beyond its value");
    r.expect_end();
    result.transfers[tile].push_back(std::move(t));
  }
  if (more) r.fail("expected a tile or a transfer");
  return result;
}

}  // namespace raptor::communication
