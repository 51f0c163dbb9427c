#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "raptor/isa/table.hpp"
#include "raptor/lowering/compute_graph.hpp"
#include "raptor/program/text_write.hpp"

/// The text form of compute graphs, writing side. Reading: text.hpp, where the grammar is.
namespace raptor::lowering {

/// A compute graph as text. Constants (weights, biases, tables) stand in it by number and size; `constants` holds them by number.
struct text_form {
  std::string text;
  std::vector<model::constant_ptr> constants;
};

namespace text_parts {

using program::text_parts::text_writer;

/// Numbers of the distinct constants of a graph, in order of first appearance: values first, then weights.
class constant_numbers {
 public:
  explicit constant_numbers(const compute_graph& g) {
    for (const auto& v : g.values()) add(v.data);
    for (vertex v = 0; v < g.size(); ++v)
      for (const auto& group : g.at(v).groups)
        for (const auto& source : group.sources) add(source);
  }
  [[nodiscard]] std::size_t of(const model::constant_ptr& c) const { return numbers_.at(c.get()); }
  [[nodiscard]] const std::vector<model::constant_ptr>& list() const noexcept { return list_; }

 private:
  void add(const model::constant_ptr& c) {
    if (c && numbers_.emplace(c.get(), list_.size()).second) list_.push_back(c);
  }
  std::unordered_map<const model::constant*, std::size_t> numbers_;  // looked up only
  std::vector<model::constant_ptr> list_;
};

/// A plain number, or an expression in brackets.
inline void write_amount(text_writer& w, const affine& a) {
  if (a.is_constant()) w.number(a.constant());
  else w.word("[").value(a).word("]");
}
/// "a2[b0][0][3+i1][0]", "t0[64*i0]", "none".
inline void write_operand(text_writer& w, const operand& o) {
  if (o.what == operand::kind::none) {
    w.word("none");
    return;
  }
  w.word(o.what == operand::kind::value ? "a" : "t").number(o.index);
  for (const auto& at : o.at) w.word("[").value(at).word("]");
}
inline void write_statement(text_writer& w, const statement& s) {
  static const statement usual;
  const auto present = [](const operand& o) { return o.what != operand::kind::none; };
  w.word(isa::mnemonic(s.op));
  if (present(s.d)) w.word(" "), write_operand(w, s.d);
  if (present(s.a) || present(s.b)) w.word(" <- "), write_operand(w, s.a);
  if (present(s.b)) w.word(", "), write_operand(w, s.b);
  w.word(" len "), write_amount(w, s.length);
  if (s.stride != usual.stride) w.field("stride", s.stride);
  if (s.stride_dimension != usual.stride_dimension) w.field("along", s.stride_dimension);
  if (s.group != usual.group || s.op == isa::opcode::mvmul) w.field("group", s.group);
  if (s.bits != usual.bits || s.op == isa::opcode::lldi) w.word(" bits ").hex(s.bits);
  if (s.when_outside != outside::never) w.word(s.when_outside == outside::skip ? " outside skip" : " outside zero");
}
inline void write_items(text_writer& w, const std::vector<item>& items, std::size_t depth) {
  for (const auto& i : items) {
    w.indent(depth);
    if (const auto* s = std::get_if<statement>(&i.what)) {
      write_statement(w, *s);
      w.line();
    } else {
      const auto& l = std::get<loop>(i.what);
      w.word("loop i").number(l.variable).word(" ");
      write_amount(w, l.count);
      w.word(" {").line();
      write_items(w, l.body, depth + 1);
      w.indent(depth).word("}").line();
    }
  }
}
inline void write_group(text_writer& w, const weight_matrix& m, const constant_numbers& numbers) {
  w.indent(1).word("group").field("rows", m.rows).field("columns", m.columns).word(" sources");
  for (const auto& source : m.sources) {
    w.word(" #");
    if (source) w.number(static_cast<std::int64_t>(numbers.of(source)));
    else w.word("none");
  }
  w.word(" {").line();
  for (const auto& b : m.blocks)
    w.indent(2).word("block ").number(b.source).word(" at ").number(b.row).word(" ").number(b.column).word(" size ").number(b.rows).word(" ")
        .number(b.columns).word(" from ").number(b.offset).word(" by ").number(b.row_stride).word(" ").number(b.column_stride).line();
  w.indent(1).word("}").line();
}
inline void write_compute(text_writer& w, std::size_t index, const compute& c, const constant_numbers& numbers) {
  w.word("compute ").number(static_cast<std::int64_t>(index)).word(" ").quoted(c.name).word(" op ").quoted(c.op).word(" strategy ").quoted(c.strategy);
  if (c.node != compute{}.node) w.field("node", c.node);
  if (c.family >= 0) w.field("family", c.family);
  w.word(" {").line();
  w.indent(1).word("lanes ").word(to_string(c.lanes)).word(" granule ").word(to_string(c.granule)).word(" most ").word(to_string(c.most)).line();
  for (std::size_t i = 0; i < c.accesses.size(); ++i) {
    constexpr const char* modes[] = {" read %", " assign %", " accumulate %"};
    const auto& a = c.accesses[i];
    w.indent(1).word("a").number(static_cast<std::int64_t>(i)).word(modes[static_cast<std::size_t>(a.mode)]).number(a.value);
    for (std::size_t d = 0; d < a.low.size() && d < a.high.size(); ++d) w.word(" [").value(a.low[d]).word("]..[").value(a.high[d]).word("]");
    w.line();
  }
  for (std::size_t i = 0; i < c.temporaries.size(); ++i) {
    const auto& t = c.temporaries[i];
    w.indent(1).word("t").number(static_cast<std::int64_t>(i)).word(" temporary ").quoted(t.name).word(" ");
    write_amount(w, t.elements);
    if (t.persistent) w.word(" persistent");
    w.line();
  }
  for (const auto& group : c.groups) write_group(w, group, numbers);
  const auto block = [&](const char* name, const std::vector<item>& items) {
    if (items.empty()) return;
    w.indent(1).word(name).word(" {").line();
    write_items(w, items, 2);
    w.indent(1).word("}").line();
  };
  block("prologue", c.prologue);
  block("body", c.body);
  w.word("}").line();
}

}  // namespace text_parts

/// Prints a compute graph. `constant_elements`: sizes of the constants by number, for a graph that was read from a text and has
/// no contents; empty: as they are.
/// Guarantees: parse_text gives an equal graph back, but for the contents of constants, and printing that gives the same text.
/// Cost: linear; some 10^6 statements a second.
[[nodiscard]] inline text_form to_text(const compute_graph& g, std::span<const std::int64_t> constant_elements = {}) {
  const text_parts::constant_numbers numbers(g);
  text_form result;
  result.constants = numbers.list();
  text_parts::text_writer w(result.text);
  w.word("raptor computes 1").line().word("name ").quoted(g.name).line();
  for (const auto& port : g.inputs) w.word("input ").quoted(port.name).word(" ").word(to_string(port.sizes)).line();
  for (const auto& port : g.outputs) w.word("output ").quoted(port.name).word(" ").word(to_string(port.sizes)).line();
  for (std::size_t i = 0; i < numbers.list().size(); ++i) {
    const auto elements = i < constant_elements.size() ? constant_elements[i] : static_cast<std::int64_t>(numbers.list()[i]->floats().size());
    w.word("constant #").number(static_cast<std::int64_t>(i)).word(" ").number(elements).line();
  }
  for (std::size_t i = 0; i < g.values().size(); ++i) {
    const auto& v = g.values()[i];
    w.word("value %").number(static_cast<std::int64_t>(i)).word(" ").quoted(v.name).word(" ").word(to_string(v.sizes)).word(" ").word(layout::name(v.layout));
    if (v.from == origin::input) w.field("input", v.input);
    if (v.from == origin::constant) {
      w.word(" constant #");
      if (v.data) w.number(static_cast<std::int64_t>(numbers.of(v.data)));
      else w.word("none");
    }
    if (v.result >= 0) w.field("result", v.result);
    w.line();
  }
  for (vertex v = 0; v < g.size(); ++v) text_parts::write_compute(w, v, g.at(v), numbers);
  return result;
}

}  // namespace raptor::lowering
