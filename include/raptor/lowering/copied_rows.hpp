#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"

namespace raptor::lowering {

namespace detail {

/// Rows of one value that a compute does nothing with but copy them to other channels of another value.
struct row_copy_of {
  std::uint32_t read = 0, written = 0;  ///< accesses of the compute
  std::uint32_t from = 0, to = 0;       ///< values
  std::int64_t channel = 0;  ///< of `to` at which channel 0 of `from` lies
};

/// Calls `use(statement)` for every statement of a kernel.
template <class Items, class Use>
void for_each_statement(Items& items, const Use& use) {
  for (auto& i : items) {
    if (auto* l = std::get_if<loop>(&i.what)) for_each_statement(l->body, use);
    else use(std::get<statement>(i.what));
  }
}
/// Removes the statements of which `unwanted(statement)` is true, and loops that become empty.
template <class Unwanted>
void erase_statements(std::vector<item>& items, const Unwanted& unwanted) {
  std::erase_if(items, [&](item& i) {
    auto* l = std::get_if<loop>(&i.what);
    if (l == nullptr) return unwanted(std::get<statement>(i.what));
    erase_statements(l->body, unwanted);
    return l->body.empty();
  });
}
[[nodiscard]] inline bool mentions(const statement& s, std::uint32_t access) {
  const auto is = [&](const operand& o) { return o.what == operand::kind::value && o.index == access; };
  return is(s.d) || is(s.a) || is(s.b);
}
/// Where a copy of image rows moves the channels; none where it is anything else.
[[nodiscard]] inline std::optional<std::int64_t> channel_shift(const statement& s) {
  if (s.op != isa::opcode::lmv || s.d.what != operand::kind::value || s.a.what != operand::kind::value || s.d.at.size() != 4 || s.a.at.size() != 4) return std::nullopt;
  for (const std::size_t d : {std::size_t{0}, std::size_t{2}, std::size_t{3}})
    if (!(s.d.at[d] == s.a.at[d])) return std::nullopt;
  const affine shift = s.d.at[1] - s.a.at[1];
  if (!shift.is_constant()) return std::nullopt;
  return shift.constant();
}

/// The copies that a compute consists of, one for each of its reads; none where it does anything else.
[[nodiscard]] inline std::vector<row_copy_of> row_copies(const compute_graph& g, vertex v) {
  const auto& c = g.at(v);
  if (!c.groups.empty() || !c.prologue.empty() || c.lanes.size() != 2) return {};
  std::vector<row_copy_of> result;
  std::size_t statements = 0, copying = 0;
  for_each_statement(c.body, [&](const statement&) { ++statements; });
  for (std::uint32_t i = 0; i < c.accesses.size(); ++i) {
    const auto& a = c.accesses[i];
    if (a.mode != access_mode::read) continue;
    const auto& from = g.values()[a.value];
    // Whole rows, each by the tile of its lane.
    const bool whole_rows = from.layout == layout::physical::nhwc_row_strip && a.low.size() == 4 && c.lanes == shape{from.sizes[0], from.sizes[2]} && a.low[1] == affine(0) &&
                            a.high[1] == affine(from.sizes[1]) && a.low[3] == affine(0) && a.high[3] == affine(from.sizes[3]);
    if (!whole_rows) return {};
    std::optional<row_copy_of> copy;
    bool only = true;
    for_each_statement(c.body, [&](const statement& s) {
      if (!mentions(s, i)) return;
      ++copying;
      const auto shift = channel_shift(s);
      if (!shift || s.a.index != i || (copy && (copy->channel != *shift || copy->written != s.d.index))) only = false;
      else copy = row_copy_of{i, s.d.index, a.value, c.accesses[s.d.index].value, *shift};
    });
    if (!only || !copy || copy->to == copy->from) return {};
    const auto& to = g.values()[copy->to];
    const bool same_image = to.layout == from.layout && to.from == origin::computed && to.sizes[0] == from.sizes[0] && to.sizes[2] == from.sizes[2] && to.sizes[3] == from.sizes[3];
    if (!same_image || copy->channel < 0 || copy->channel + from.sizes[1] > to.sizes[1]) return {};
    result.push_back(*copy);
  }
  if (copying != statements) return {};
  return result;
}

/// Can a compute write its channels of a row as well among those of a wider row? What cannot be done pixel by pixel must lie within one.
[[nodiscard]] inline bool writes_among_others(const compute& c, std::uint32_t value) {
  for (std::uint32_t i = 0; i < c.accesses.size(); ++i) {
    const auto& a = c.accesses[i];
    if (a.value != value) continue;
    const affine channels = a.high[1] - a.low[1];
    if (!channels.is_constant()) return false;
    bool fits = true;
    for_each_statement(c.body, [&](const statement& s) {
      if (!mentions(s, i)) return;
      const bool pixelwise = s.op != isa::opcode::mvmul && s.op != isa::opcode::vvdmul && s.op != isa::opcode::vavg && s.op != isa::opcode::vmv && s.op != isa::opcode::vsoftmax;
      if (!pixelwise && !(s.length.is_constant() && s.length.constant() <= channels.constant())) fits = false;
    });
    if (!fits) return false;
  }
  return true;
}

/// Leaves only those copies of a compute that are not `gone`; each writes the channels that it copies.
inline void keep_copies(compute& c, const std::vector<row_copy_of>& copies, const std::vector<bool>& gone) {
  std::vector<access> kept;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> number(c.accesses.size());  // by read: those of its copy now
  for (std::size_t k = 0; k < copies.size(); ++k) {
    if (gone[k]) continue;
    number[copies[k].read] = {static_cast<std::uint32_t>(kept.size()), static_cast<std::uint32_t>(kept.size() + 1)};
    access read = c.accesses[copies[k].read], write = c.accesses[copies[k].written];
    write.low[1] = read.low[1] + copies[k].channel, write.high[1] = read.high[1] + copies[k].channel;
    kept.push_back(std::move(read)), kept.push_back(std::move(write));
  }
  erase_statements(c.body, [&](const statement& s) {
    for (std::size_t k = 0; k < copies.size(); ++k)
      if (gone[k] && mentions(s, copies[k].read)) return true;
    return false;
  });
  for_each_statement(c.body, [&](statement& s) { std::tie(s.a.index, s.d.index) = number[s.a.index]; });
  c.accesses = std::move(kept);
}

}  // namespace detail

/// Concatenations without a copy: an image that is only copied into channels of another one is written there by the computes that make it, and
/// whoever reads the other one gets each part from the core that made it.
///
/// Requires: no access in mode accumulate. Guarantees: the same values; vertex order stays topological. A value that is read elsewhere, or that its
/// writers cannot make among other channels, is copied as before. Cost: O(computes × their statements). Deterministic.
[[nodiscard]] inline compute_graph write_where_copied(const compute_graph& g) {
  std::vector<std::size_t> reads(g.values().size(), 0);
  for (vertex v = 0; v < g.size(); ++v)
    for (const auto& a : g.at(v).accesses)
      if (a.mode == access_mode::read) ++reads[a.value];
  struct place {
    std::uint32_t value = 0;
    std::int64_t channel = 0;
  };
  std::vector<place> now(g.values().size());  // where each value lies
  for (std::uint32_t i = 0; i < now.size(); ++i) now[i] = {i, 0};
  std::vector<std::vector<detail::row_copy_of>> copies(g.size());
  std::vector<std::vector<bool>> gone(g.size());  // of the copies
  // From the last copy on, so that a copy into something that is itself copied finds the final place.
  for (vertex v = g.size(); v-- > 0;) {
    copies[v] = detail::row_copies(g, v);
    for (const auto& copy : copies[v]) {
      const auto& from = g.values()[copy.from];
      const auto& writers = g.writers(copy.from);
      const bool needless = from.from == origin::computed && from.result < 0 && reads[copy.from] == 1 && !writers.empty() &&
                            std::all_of(writers.begin(), writers.end(), [&](vertex w) { return detail::writes_among_others(g.at(w), copy.from); });
      gone[v].push_back(needless);
      if (needless) now[copy.from] = {now[copy.to].value, now[copy.to].channel + copy.channel};
    }
  }

  compute_graph result;
  result.name = g.name, result.inputs = g.inputs, result.outputs = g.outputs;
  for (const auto& v : g.values()) result.add_value(v);
  for (vertex v = 0; v < g.size(); ++v) {
    compute c = g.at(v);
    if (std::find(gone[v].begin(), gone[v].end(), true) != gone[v].end()) {
      detail::keep_copies(c, copies[v], gone[v]);
      if (c.body.empty()) continue;
    }
    for (std::uint32_t a = 0; a < c.accesses.size(); ++a) {
      const auto [value, channel] = now[c.accesses[a].value];
      if (value == c.accesses[a].value) continue;
      c.accesses[a].value = value;
      c.accesses[a].low[1] += channel, c.accesses[a].high[1] += channel;
      detail::for_each_statement(c.body, [&](statement& s) {
        for (auto* o : {&s.d, &s.a, &s.b})
          if (o->what == operand::kind::value && o->index == a) o->at[1] += channel;
      });
    }
    result.add_compute(std::move(c));
  }
  return result;
}

}  // namespace raptor::lowering
