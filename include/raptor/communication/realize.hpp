#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "raptor/communication/regions.hpp"
#include "raptor/communication/transfers.hpp"
#include "raptor/program/program.hpp"
#include "raptor/schedule/copies.hpp"
#include "raptor/schedule/schedule.hpp"

namespace raptor::communication {

/// Turns a schedule into a realized program.
///
/// Every tensor that a core touches gets one buffer a fragment, which holds the hull of all boxes that the core's tiles
/// touch: what a core computes and what it receives lies where its consumers read it, so no copy inside the core is needed.
/// Fragments between tiles of different cores travel by rendezvous right after the producing tile, once for each receiving
/// core, in the one global order of the schedule: no cycle can form. Inputs and constants are loaded before the first tile
/// that reads them; results are stored right after the tile that computes them.
///
/// Requires: no access in mode accumulate; a schedule that check_schedule accepts.
/// Errors: internal, where a kernel's run is not contiguous in its buffer or leaves it (names the compute).
/// Cost: O(tiles × statements + transfers). Deterministic.
class realization {
 public:
  realization(const lowering::compute_graph& computes, const schedule::schedule& schedule, const program::geometry& chip)
      : computes_(computes), schedule_(schedule), families_(schedule::family_heads(computes)) {
    program_.name = computes.name;
    program_.chip = chip;
    program_.cores.resize(static_cast<std::size_t>(chip.core_count));
    local_.resize(program_.cores.size());
    scratch_.resize(program_.cores.size());
    loaded_.resize(program_.cores.size());
  }

  [[nodiscard]] program::program run() && {
    for (const auto& p : schedule_.place) program_.cores[p.core].stage = p.stage;
    declare_global();
    collect_regions();
    collect_scratch();
    for (lowering::vertex v = 0; v < computes_.size(); ++v) program_.origins.push_back(computes_.at(v).name);
    if (schedule_.steps.empty()) {
      const auto transfers = collect_transfers(computes_, schedule_);
      for (const auto tile : schedule_.order) {
        emit_part(tile, {}, {static_cast<std::uint32_t>(compute_of(tile).body.size()), 0});
        for (const auto& t : transfers[tile]) send(schedule_.place[tile].core, t.value, t.core, t.what);
      }
    }
    for (const auto& s : schedule_.steps) {
      if (s.what == schedule::step::kind::compute) {
        emit_part(s.index, s.begin, s.end);
        continue;
      }
      if (s.what == schedule::step::kind::store) {
        store_channel(s.index);
        continue;
      }
      if (s.what == schedule::step::kind::prepare) {
        prepare(s.index);
        continue;
      }
      const auto& f = schedule_.flows.at(s.index);
      origin_ = schedule_.graph.tiles[f.producer].compute;
      if (s.what == schedule::step::kind::load) load_channel(f);
      else send(schedule_.place[f.producer].core, f.value, f.core, f.what);
    }
    return std::move(program_);
  }

 private:
  using box_key = std::pair<std::uint32_t, std::int64_t>;  // value, fragment
  static constexpr std::uint32_t pieces_variable = 1u << 20;  // of the loop over the pieces of one statement; kernels number theirs from 0
  struct local_buffer {
    region where;
    std::uint32_t buffer = program::none;
  };
  struct core_scratch {
    std::vector<std::uint32_t> buffers;  // by temporary
    std::vector<std::int64_t> sizes;
    std::uint32_t first_group = 0;
    bool started = false;
  };

  // --- set-up ---------------------------------------------------------------------------------------------------
  void declare_global() {
    const auto& values = computes_.values();
    global_.assign(values.size(), program::none);
    // Graph order: inputs, then outputs; constants follow as they are read.
    std::vector<std::uint32_t> inputs(computes_.inputs.size(), program::none);
    for (std::size_t i = 0; i < computes_.inputs.size(); ++i) {
      const auto& port = computes_.inputs[i];
      inputs[i] = add_buffer(port.name, program::global_memory, element_count(port.sizes));
      program_.inputs.push_back({port.name, port.sizes, inputs[i]});
    }
    for (std::uint32_t v = 0; v < values.size(); ++v)
      if (values[v].from == lowering::origin::input) global_[v] = inputs.at(static_cast<std::size_t>(values[v].input));
    for (const auto& port : computes_.outputs)
      program_.outputs.push_back({port.name, port.sizes, add_buffer(port.name, program::global_memory, element_count(port.sizes))});
    for (std::uint32_t v = 0; v < values.size(); ++v)
      if (values[v].result >= 0) global_[v] = program_.outputs.at(static_cast<std::size_t>(values[v].result)).buffer;
  }

  /// The part of a tile's box that its core stores: padding belongs to a buffer only within the rows of a strip, where windows may lie
  /// wholly in it.
  [[nodiscard]] static box stored(const box& touched, const lowering::value& v) {
    box inside = intersect(touched, whole(v.sizes));
    if (v.layout == layout::physical::nhwc_row_strip) inside[3] = touched[3];
    return inside;
  }

  void collect_regions() {
    for (const auto tile : schedule_.order) {
      const auto core = schedule_.place[tile].core;
      for (const auto& a : compute_of(tile).accesses) {
        const auto& v = computes_.values()[a.value];
        const box touched = stored(schedule::box_of(a, lanes_of(tile)), v);
        if (is_empty(touched)) continue;
        for (auto& [fragment, part] : fragments(touched, v.sizes, v.layout)) {
          auto& known = local_[core][{a.value, fragment}].where.where;
          known = known.empty() ? part : hull(known, part);
        }
      }
    }
    for (auto& core : local_)
      for (auto& [key, buffer] : core) buffer.where = make_region(std::move(buffer.where.where), computes_.values()[key.first].layout);
  }

  void collect_scratch() {
    for (const auto tile : schedule_.order) {
      const auto& c = compute_of(tile);
      auto& scratch = scratch_[schedule_.place[tile].core][schedule_.graph.tiles[tile].compute];
      scratch.sizes.resize(c.temporaries.size(), 0);
      for (std::size_t i = 0; i < c.temporaries.size(); ++i)
        scratch.sizes[i] = std::max(scratch.sizes[i], value_of(c.temporaries[i].elements, lanes_of(tile)));
    }
  }

  /// What a tile's compute needs once a core, and the constants of the tile.
  void prepare(std::uint32_t tile) {
    const auto core = schedule_.place[tile].core;
    const auto& c = compute_of(tile);
    origin_ = schedule_.graph.tiles[tile].compute;
    for (const auto& a : c.accesses)
      if (a.mode == lowering::access_mode::read && computes_.values()[a.value].from == lowering::origin::constant) load(core, a, tile);
    if (auto& scratch = scratch_[core][origin_]; !scratch.started) start(core, c, scratch);
  }

  // --- one tile -------------------------------------------------------------------------------------------------
  /// The part [begin, end) of a tile's body. The first part loads what the tile reads from global memory, the last one stores its results.
  void emit_part(std::uint32_t tile, const schedule::cursor& begin, const schedule::cursor& end) {
    const auto core = schedule_.place[tile].core;
    const auto& c = compute_of(tile);
    origin_ = schedule_.graph.tiles[tile].compute;
    auto& scratch = scratch_[core][origin_];
    if (begin == schedule::cursor{}) {
      for (const auto& a : c.accesses)
        if (a.mode == lowering::access_mode::read && computes_.values()[a.value].from != lowering::origin::computed) load(core, a, tile);
      for (const auto& a : c.accesses)
        if (a.mode != lowering::access_mode::read)
          for (const auto& [fragment, part] : pieces(a, tile)) touch(core, a.value, fragment);
      prepare(tile);
    }
    auto& out = program_.cores[core].body;
    const auto& lanes = lanes_of(tile);
    for (auto i = begin.item; i < c.body.size() && schedule::cursor{i, 0} < end; ++i) {
      const auto* l = std::get_if<lowering::loop>(&c.body[i].what);
      const std::int64_t first = i == begin.item ? begin.iteration : 0;
      if (l == nullptr || (first == 0 && end.item != i)) {
        translate(core, c, scratch, lanes, {&c.body[i], 1}, out, true);
        continue;
      }
      const std::int64_t last = end.item == i ? end.iteration : constant_of(substituted(l->count, lanes), c);
      translate_loop(core, c, scratch, lanes, *l, first, last, out, true);
    }
    if (end.item < c.body.size()) return;
    for (const auto& a : c.accesses)
      if (a.mode != lowering::access_mode::read && computes_.values()[a.value].result >= 0) store(core, a, tile);
  }

  void start(std::uint32_t core, const lowering::compute& c, core_scratch& scratch) {
    scratch.started = true;
    for (std::size_t i = 0; i < c.temporaries.size(); ++i)
      scratch.buffers.push_back(add_buffer(c.name + "." + c.temporaries[i].name, static_cast<std::int32_t>(core), scratch.sizes[i]));
    const auto family = families_[origin_];
    auto& shared = weights_of_[family];
    const auto [held, first_here] = groups_of_.try_emplace({core, family}, static_cast<std::uint32_t>(program_.cores[core].groups.size()));
    scratch.first_group = held->second;
    if (shared.empty())
      for (const auto& g : c.groups) {
        program_.weights.push_back(g);
        shared.push_back(static_cast<std::uint32_t>(program_.weights.size() - 1));
      }
    if (first_here)
      for (const auto w : shared) program_.cores[core].groups.push_back(w);
    translate(core, c, scratch, box(c.lanes.size()), c.prologue, program_.cores[core].body, true);
  }

  /// Makes the buffer of a fragment exist; padding in it becomes zero first.
  local_buffer& touch(std::uint32_t core, std::uint32_t value, std::int64_t fragment) {
    auto& local = local_[core].at({value, fragment});
    if (local.buffer != program::none) return local;
    const auto& v = computes_.values()[value];
    std::string name = v.name;
    if (layout::fragment_dimensions(v.layout) > 0) name += "[" + std::to_string(fragment) + "]";
    const std::int64_t elements = element_count(local.where.where);
    local.buffer = add_buffer(std::move(name), static_cast<std::int32_t>(core), elements);
    if (!v.sizes.empty() && !contains(whole(v.sizes), local.where.where)) {
      // Only rows of strips have padding, to the left and right of the image.
      const auto& width = local.where.where[3];
      const std::int64_t pixel = local.where.strides[3];
      const auto inside = intersect(width, {0, v.sizes[3]});
      const auto zero = [&](std::int64_t from, std::int64_t to) {
        if (to <= from) return;
        program::operation fill;
        fill.op = isa::opcode::lldi;
        fill.d = {local.buffer, affine((from - width.begin) * pixel)};
        fill.length = (to - from) * pixel;
        append(core, program::item{fill});
      };
      if (inside.empty()) {
        zero(width.begin, width.end);
      } else {
        zero(width.begin, inside.begin);
        zero(inside.end, width.end);
      }
    }
    return local;
  }

  // --- global memory --------------------------------------------------------------------------------------------
  void load(std::uint32_t core, const lowering::access& a, std::uint32_t tile) {
    const auto& v = computes_.values()[a.value];
    if (global_[a.value] == program::none) {
      global_[a.value] = add_buffer(v.name, program::global_memory, element_count(v.sizes));
      program_.buffers[global_[a.value]].data = v.data;
    }
    const region dense = make_region(whole(v.sizes), layout::physical::dense);
    for (const auto& [fragment, part] : pieces(a, tile)) {
      auto& local = touch(core, a.value, fragment);
      std::vector<box> missing{intersect(part, whole(v.sizes))};
      auto& known = loaded_[core][{a.value, fragment}];
      for (const auto& k : known) {
        std::vector<box> rest;
        for (const auto& m : missing)
          for (auto& piece : subtract(m, k)) rest.push_back(std::move(piece));
        missing = std::move(rest);
      }
      for (const auto& m : missing) {
        if (is_empty(m)) continue;
        append(core, copy_items(plan_copy(m, dense, local.where), offset_of(dense, m), offset_of(local.where, m),
                                [&](const affine& from, const affine& to, std::int64_t n) {
                                  return two(isa::opcode::ld, {local.buffer, to}, {global_[a.value], from}, n);
                                }));
        known.push_back(m);
      }
    }
  }
  void store(std::uint32_t core, const lowering::access& a, std::uint32_t tile) {
    const auto& v = computes_.values()[a.value];
    const region dense = make_region(whole(v.sizes), layout::physical::dense);
    for (const auto& [fragment, part] : pieces(a, tile)) {
      auto& local = touch(core, a.value, fragment);
      append(core, copy_items(plan_copy(part, local.where, dense), offset_of(local.where, part), offset_of(dense, part),
                              [&](const affine& from, const affine& to, std::int64_t n) {
                                return two(isa::opcode::st, {global_[a.value], to}, {local.buffer, from}, n);
                              }));
    }
  }

  // --- between cores --------------------------------------------------------------------------------------------
  /// One message a fragment. A side whose elements do not lie together packs them in a staging buffer.
  void send(std::uint32_t core, std::uint32_t value, std::uint32_t receiver, const box& what) {
    const auto& v = computes_.values()[value];
    for (const auto& [fragment, part] : fragments(what, v.sizes, v.layout)) {
      auto& from = touch(core, value, fragment);
      auto& to = touch(receiver, value, fragment);
      const region packed = make_region(part, v.layout);
      const std::int64_t elements = element_count(part);
      const auto gather = plan_copy(part, from.where, packed), scatter = plan_copy(part, packed, to.where);
      program::place source{from.buffer, affine(offset_of(from.where, part))}, target{to.buffer, affine(offset_of(to.where, part))};
      if (!gather.single()) {
        const auto staging = add_buffer(v.name + ".packed", static_cast<std::int32_t>(core), elements);
        append(core, copy_items(gather, offset_of(from.where, part), 0, [&](const affine& a, const affine& b, std::int64_t n) {
                 return two(isa::opcode::lmv, {staging, b}, {from.buffer, a}, n);
               }));
        source = {staging, 0};
      }
      program::operation out;
      out.op = isa::opcode::send, out.a = source, out.length = elements, out.peer = static_cast<std::int32_t>(receiver);
      append(core, program::item{out});
      if (!scatter.single()) target = {add_buffer(v.name + ".packed", static_cast<std::int32_t>(receiver), elements), 0};
      program::operation in;
      in.op = isa::opcode::recv, in.d = target, in.length = elements, in.peer = static_cast<std::int32_t>(core);
      append(receiver, program::item{in});
      if (!scatter.single())
        append(receiver, copy_items(scatter, 0, offset_of(to.where, part), [&](const affine& a, const affine& b, std::int64_t n) {
                 return two(isa::opcode::lmv, {to.buffer, b}, {target.buffer, a}, n);
               }));
    }
  }

  // --- through global memory ------------------------------------------------------------------------------------
  /// Each fragment of a channel is a buffer of its own, stored once and loaded by every receiver.
  void store_channel(std::uint32_t index) {
    const auto& c = schedule_.channels.at(index);
    const auto& v = computes_.values()[c.value];
    const auto core = schedule_.place[c.producer].core;
    origin_ = schedule_.graph.tiles[c.producer].compute;
    for (const auto& [fragment, part] : fragments(c.what, v.sizes, v.layout)) {
      auto& from = touch(core, c.value, fragment);
      const region packed = make_region(part, v.layout);
      const auto buffer = add_buffer(v.name + ".channel" + std::to_string(index), program::global_memory, element_count(part));
      channels_[{index, fragment}] = {packed, buffer};
      append(core, copy_items(plan_copy(part, from.where, packed), offset_of(from.where, part), 0,
                              [&](const affine& a, const affine& b, std::int64_t n) { return two(isa::opcode::st, {buffer, b}, {from.buffer, a}, n); }));
    }
  }
  void load_channel(const schedule::flow& f) {
    const auto& v = computes_.values()[f.value];
    for (const auto& [fragment, part] : fragments(f.what, v.sizes, v.layout)) {
      const auto& held = channels_.at({f.channel, fragment});
      auto& to = touch(f.core, f.value, fragment);
      append(f.core, copy_items(plan_copy(part, held.where, to.where), offset_of(held.where, part), offset_of(to.where, part),
                                [&](const affine& a, const affine& b, std::int64_t n) { return two(isa::opcode::ld, {to.buffer, b}, {held.buffer, a}, n); }));
    }
  }

  // --- kernels --------------------------------------------------------------------------------------------------
  void translate(std::uint32_t core, const lowering::compute& c, const core_scratch& scratch, const box& lanes,
                 std::span<const lowering::item> items, std::vector<program::item>& out, bool top) {
    for (const auto& item : items) {
      if (const auto* l = std::get_if<lowering::loop>(&item.what)) {
        translate_loop(core, c, scratch, lanes, *l, 0, constant_of(substituted(l->count, lanes), c), out, top);
        continue;
      }
      const auto& s = std::get<lowering::statement>(item.what);
      program::operation o;
      o.length = constant_of(substituted(s.length, lanes), c);
      if (o.length <= 0) continue;
      o.op = s.op, o.bits = s.bits, o.stride = s.stride, o.group = scratch.first_group + s.group;
      if (s.when_outside != lowering::outside::never && row_outside(c, s.a, lanes)) {
        if (s.when_outside == lowering::outside::skip) continue;
        o.op = isa::opcode::lldi, o.bits = 0;
        o.d = place_of(core, c, scratch, s.d, lanes, o.length, true);
        push(out, program::item{o}, top);
        continue;
      }
      if (s.stride_dimension >= 0) o.stride *= region_of(core, c, s.a, lanes).strides[static_cast<std::size_t>(s.stride_dimension)];
      const bool one_result = s.op == isa::opcode::vvdmul || s.op == isa::opcode::vavg;
      const bool strided = s.op == isa::opcode::vmv || s.op == isa::opcode::vavg;
      const std::int64_t inputs = s.op == isa::opcode::mvmul ? program_.chip.crossbar_rows : o.length;
      const bool divisible = s.op != isa::opcode::mvmul && !one_result && !strided;  // element by element: may be done piece by piece
      std::int64_t piece = o.length;
      if (divisible)
        for (const auto* operand : {&s.d, &s.a, &s.b}) piece = std::min(piece, together(core, c, *operand, lanes, o.length));
      if (s.d.what != lowering::operand::kind::none) o.d = place_of(core, c, scratch, s.d, lanes, one_result ? 1 : piece, true);
      if (s.a.what != lowering::operand::kind::none) o.a = place_of(core, c, scratch, s.a, lanes, strided ? 1 : std::min(inputs, divisible ? piece : inputs), !strided);
      if (s.b.what != lowering::operand::kind::none) o.b = place_of(core, c, scratch, s.b, lanes, piece, true);
      if (piece == o.length) {
        push(out, program::item{o}, top);
        continue;
      }
      program::loop pieces{pieces_variable, o.length / piece, {}};
      ensure(pieces.count * piece == o.length, "a run that does not lie together is no whole number of pieces", c.name);
      const affine index = symbol{symbol::kind::loop, pieces_variable};
      for (const auto& [operand, place] : {std::pair{&s.d, &o.d}, std::pair{&s.a, &o.a}, std::pair{&s.b, &o.b}})
        if (operand->what != lowering::operand::kind::none) place->offset += index * step_of(core, c, *operand, lanes, o.length, piece);
      o.length = piece;
      pieces.body.push_back(program::item{std::move(o)});
      push(out, program::item{std::move(pieces)}, top);
    }
  }

  /// Iterations [first, last) of a loop.
  void translate_loop(std::uint32_t core, const lowering::compute& c, const core_scratch& scratch, const box& lanes, const lowering::loop& l, std::int64_t first,
                      std::int64_t last, std::vector<program::item>& out, bool top) {
    if (last <= first) return;
    if (last - first == 1 || selects_fragment(c, l.body, l.variable)) {
      for (std::int64_t i = first; i < last; ++i) {
        fixed_.emplace_back(l.variable, affine(i));
        translate(core, c, scratch, lanes, l.body, out, top);
        fixed_.pop_back();
      }
      return;
    }
    program::loop repeated{l.variable, last - first, {}};
    if (first > 0) fixed_.emplace_back(l.variable, affine(symbol{symbol::kind::loop, l.variable}) + first);
    translate(core, c, scratch, lanes, l.body, repeated.body, false);
    if (first > 0) fixed_.pop_back();
    if (!repeated.body.empty()) push(out, program::item{std::move(repeated)}, top);
  }

  /// Does a loop variable choose fragments, or rows that may lie outside, somewhere in a body?
  [[nodiscard]] bool selects_fragment(const lowering::compute& c, const std::vector<lowering::item>& items, std::uint32_t variable) const {
    const symbol s{symbol::kind::loop, variable};
    for (const auto& item : items) {
      if (const auto* l = std::get_if<lowering::loop>(&item.what)) {
        if (l->count.coefficient(s) != 0 || selects_fragment(c, l->body, variable)) return true;
        continue;
      }
      const auto& statement = std::get<lowering::statement>(item.what);
      if (statement.length.coefficient(s) != 0) return true;
      for (const auto* o : {&statement.d, &statement.a, &statement.b}) {
        if (o->what != lowering::operand::kind::value) continue;
        const auto& v = value_at(c, *o);
        const auto order = layout::memory_order(v.layout, v.sizes.size());
        for (std::size_t i = 0; i < layout::fragment_dimensions(v.layout); ++i)
          if (o->at[order[i]].coefficient(s) != 0) return true;
        if (statement.when_outside != lowering::outside::never && o == &statement.a && o->at.size() == 4 && o->at[2].coefficient(s) != 0) return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool row_outside(const lowering::compute& c, const lowering::operand& a, const box& lanes) const {
    if (a.what != lowering::operand::kind::value) return false;
    const auto row = constant_of(substituted(a.at.at(2), lanes), c);
    return row < 0 || row >= value_at(c, a).sizes[2];
  }
  [[nodiscard]] const region& region_of(std::uint32_t core, const lowering::compute& c, const lowering::operand& o, const box& lanes) const {
    return local_[core].at({c.accesses[o.index].value, fragment_of(c, o, lanes)}).where;
  }
  [[nodiscard]] std::int64_t fragment_of(const lowering::compute& c, const lowering::operand& o, const box& lanes) const {
    const auto& v = value_at(c, o);
    if (layout::fragment_dimensions(v.layout) == 0) return 0;
    const auto order = layout::memory_order(v.layout, v.sizes.size());
    return constant_of(substituted(o.at[order[0]], lanes), c) * v.sizes[order[1]] + constant_of(substituted(o.at[order[1]], lanes), c);
  }

  program::place place_of(std::uint32_t core, const lowering::compute& c, const core_scratch& scratch, const lowering::operand& o,
                          const box& lanes, std::int64_t length, bool contiguous) {
    if (o.what == lowering::operand::kind::temporary) return {scratch.buffers.at(o.index), substituted(o.at.at(0), lanes)};
    const auto value = c.accesses.at(o.index).value;
    const auto key = box_key{value, fragment_of(c, o, lanes)};
    if (!local_[core].contains(key))
      throw error(error_code::internal, "kernel touches a fragment of '" + computes_.values()[value].name + "' that its access does not declare", c.name);
    auto& local = touch(core, value, key.second);
    affine offset;
    for (std::size_t d = 0; d < o.at.size(); ++d) {
      const auto order_independent = substituted(o.at[d], lanes) - affine(local.where.where[d].begin);
      offset += order_independent * local.where.strides[d];
    }
    if (contiguous) check_run(c, o, local, lanes, length);
    return {local.buffer, std::move(offset)};
  }
  /// Elements of a run that lie together where the core stores more of a tensor than the kernel declared: the run falls into pieces of as
  /// many elements, a step of the next dimension apart.
  [[nodiscard]] std::int64_t together(std::uint32_t core, const lowering::compute& c, const lowering::operand& o, const box& lanes, std::int64_t length) const {
    if (o.what != lowering::operand::kind::value) return length;
    return split_of(core, c, o, lanes, length).first;
  }
  [[nodiscard]] std::int64_t step_of(std::uint32_t core, const lowering::compute& c, const lowering::operand& o, const box& lanes, std::int64_t length,
                                     std::int64_t piece) const {
    if (o.what != lowering::operand::kind::value) return piece;
    const auto [whole, dimension] = split_of(core, c, o, lanes, length);
    if (whole == length) return piece;
    ensure(whole == piece, "operands of one statement fall into different pieces", c.name);
    return region_of(core, c, o, lanes).strides[dimension];
  }
  /// The elements that lie together, and the dimension that the next piece advances.
  [[nodiscard]] std::pair<std::int64_t, std::size_t> split_of(std::uint32_t core, const lowering::compute& c, const lowering::operand& o, const box& lanes,
                                                              std::int64_t length) const {
    const auto known = local_[core].find({c.accesses[o.index].value, fragment_of(c, o, lanes)});
    if (known == local_[core].end()) return {length, 0};
    const auto& a = c.accesses[o.index];
    const auto& v = computes_.values()[a.value];
    const box declared = schedule::box_of(a, lanes);
    const auto order = layout::memory_order(v.layout, v.sizes.size());
    std::int64_t covered = 1;
    for (std::size_t i = order.size(); i-- > 1 && covered < length;) {
      covered *= declared[order[i]].size();
      if (covered < length && known->second.where.where[order[i]].size() != declared[order[i]].size()) return {covered, order[i - 1]};
    }
    return {length, 0};
  }
  /// A run that goes beyond the innermost dimension needs that dimension to be exactly the box that the kernel declared.
  void check_run(const lowering::compute& c, const lowering::operand& o, const local_buffer& local, const box& lanes, std::int64_t length) const {
    const auto& a = c.accesses[o.index];
    const auto& v = computes_.values()[a.value];
    const box declared = schedule::box_of(a, lanes);
    const auto order = layout::memory_order(v.layout, v.sizes.size());
    std::int64_t covered = 1;
    for (std::size_t i = order.size(); i-- > 0 && covered < length;) {
      const auto d = order[i];
      if (covered * declared[d].size() < length)
        if (local.where.where[d].size() != declared[d].size())
          throw error(error_code::internal,
                      "a run of " + std::to_string(length) + " elements of '" + v.name + "' is not contiguous: the core stores " +
                          to_string(local.where.where) + ", the kernel declared " + to_string(declared), c.name);
      covered *= declared[d].size();
    }
  }

  // --- helpers --------------------------------------------------------------------------------------------------
  [[nodiscard]] affine substituted(const affine& a, const box& lanes) const {
    return a.substitute([&](symbol s) -> std::pair<bool, affine> {
      if (s.what == symbol::kind::begin) return {true, affine(lanes[s.index].begin)};
      if (s.what == symbol::kind::extent) return {true, affine(lanes[s.index].size())};
      for (const auto& [variable, value] : fixed_)
        if (variable == s.index) return {true, value};
      return {false, affine{}};
    });
  }
  [[nodiscard]] static std::int64_t value_of(const affine& a, const box& lanes) {
    return a.evaluate([&](symbol s) { return s.what == symbol::kind::begin ? lanes[s.index].begin : lanes[s.index].size(); });
  }
  [[nodiscard]] static std::int64_t constant_of(const affine& a, const lowering::compute& c) {
    ensure(a.is_constant(), "kernel: a length, count or row depends on a loop that was not unrolled", c.name);
    return a.constant();
  }
  [[nodiscard]] const lowering::compute& compute_of(std::uint32_t tile) const { return computes_.at(schedule_.graph.tiles[tile].compute); }
  [[nodiscard]] const box& lanes_of(std::uint32_t tile) const { return schedule_.graph.tiles[tile].lanes; }
  [[nodiscard]] const lowering::value& value_at(const lowering::compute& c, const lowering::operand& o) const {
    return computes_.values()[c.accesses[o.index].value];
  }
  [[nodiscard]] std::vector<std::pair<std::int64_t, box>> pieces(const lowering::access& a, std::uint32_t tile) const {
    const auto& v = computes_.values()[a.value];
    const box touched = stored(schedule::box_of(a, lanes_of(tile)), v);
    if (is_empty(touched)) return {};
    return fragments(touched, v.sizes, v.layout);
  }
  std::uint32_t add_buffer(std::string name, std::int32_t core, std::int64_t elements) {
    program_.buffers.push_back({std::move(name), core, elements, program::none, 0, {}});
    return static_cast<std::uint32_t>(program_.buffers.size() - 1);
  }
  static program::item two(isa::opcode op, program::place d, program::place a, std::int64_t length) {
    program::operation o;
    o.op = op, o.d = std::move(d), o.a = std::move(a), o.length = length;
    return program::item{o};
  }
  void append(std::uint32_t core, program::item item) { push(program_.cores[core].body, std::move(item), true); }
  void push(std::vector<program::item>& out, program::item item, bool top) {
    if (top) item.origin = origin_;
    out.push_back(std::move(item));
  }

  const lowering::compute_graph& computes_;
  const schedule::schedule& schedule_;
  program::program program_;
  std::vector<std::uint32_t> global_;                                   // by value: buffer in global memory
  std::vector<std::map<box_key, local_buffer>> local_;                  // by core
  std::vector<std::map<std::uint32_t, core_scratch>> scratch_;          // by core: compute → scratch
  std::vector<std::map<box_key, std::vector<box>>> loaded_;             // by core: boxes already loaded
  std::map<box_key, local_buffer> channels_;                            // by channel and fragment: buffer in global memory
  std::vector<std::uint32_t> families_;                                 // by compute: head of its family
  std::map<std::uint32_t, std::vector<std::uint32_t>> weights_of_;      // family → weights
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> groups_of_;  // core, family → first array group
  std::vector<std::pair<std::uint32_t, affine>> fixed_;                 // loop variables that are unrolled or shifted
  std::uint32_t origin_ = program::none;
};

/// Communication policy: rendezvous channels, see realization.
struct rendezvous_communication {
  [[nodiscard]] program::program operator()(const lowering::compute_graph& g, const schedule::schedule& s, const program::geometry& chip) const {
    return realization(g, s, chip).run();
  }
};

}  // namespace raptor::communication
