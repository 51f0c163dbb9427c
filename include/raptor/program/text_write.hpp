#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/isa/table.hpp"
#include "raptor/program/program.hpp"
#include "raptor/support/error.hpp"

/// The text form of realized and bound programs, writing side. Reading: text.hpp, where the grammar is.
namespace raptor::program {

/// Number of constant elements up to which they stand in the text itself.
inline constexpr std::size_t most_inline_constants = 16;

/// A program as text, and the constants that are too long for it: they belong into a file beside it (constants.bin, f32
/// little endian), at the positions that the text names.
struct text_form {
  std::string text;
  std::vector<float> constants;
};

namespace text_parts {

/// Appends to a growing text without temporaries.
class text_writer {
 public:
  explicit text_writer(std::string& out) : out_(out) {}

  text_writer& word(std::string_view w) {
    out_.append(w);
    return *this;
  }
  text_writer& number(std::int64_t value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out_.append(digits, end);
    return *this;
  }
  text_writer& hex(std::uint32_t bits) {
    out_.append("0x");
    for (int shift = 28; shift >= 0; shift -= 4) out_.push_back("0123456789abcdef"[bits >> shift & 0xfu]);
    return *this;
  }
  /// In double quotes; quotes, backslashes and control characters escaped, all other bytes as they are.
  text_writer& quoted(std::string_view s) {
    out_.push_back('"');
    for (const char c : s) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out_.push_back('\\');
        out_.push_back(c);
      } else if (byte < 0x20 || byte == 0x7f) {
        out_.append("\\x");
        out_.push_back("0123456789abcdef"[byte >> 4]);
        out_.push_back("0123456789abcdef"[byte & 0xfu]);
      } else {
        out_.push_back(c);
      }
    }
    out_.push_back('"');
    return *this;
  }
  text_writer& value(const affine& a) {
    if (a.is_constant()) return number(a.constant());
    return word(to_string(a));
  }
  text_writer& at(const place& p) {
    word("%");
    if (p.buffer == none) word("none");
    else number(p.buffer);
    word("[");
    value(p.offset);
    return word("]");
  }
  text_writer& field(std::string_view key, std::int64_t v) { return word(" ").word(key).word(" ").number(v); }
  text_writer& indent(std::size_t depth) {
    out_.append(2 * depth, ' ');
    return *this;
  }
  text_writer& line() {
    out_.push_back('\n');
    return *this;
  }

 private:
  std::string& out_;
};

inline void write_operation(text_writer& w, const operation& o) {
  static const operation usual;
  w.word(isa::mnemonic(o.op));
  if (o.d != usual.d) w.word(" ").at(o.d);
  if (o.a != usual.a) w.word(" <- ").at(o.a);
  if (o.b != usual.b) w.word(o.a != usual.a ? ", " : " <- %none[0], ").at(o.b);
  if (o.length != usual.length) w.field("len", o.length);
  if (o.stride != usual.stride) w.field("stride", o.stride);
  if (o.group != usual.group || o.op == isa::opcode::mvmul) w.field("group", o.group);
  if (o.bits != usual.bits || o.op == isa::opcode::lldi) w.word(" bits ").hex(o.bits);
  if (o.peer != usual.peer) w.field("peer", o.peer);
  if (o.event != usual.event || o.op == isa::opcode::wait || o.op == isa::opcode::sync) w.field("event", o.event);
  if (o.count != usual.count) w.field("count", o.count);
}

inline void write_body(text_writer& w, const std::vector<item>& body, std::size_t depth) {
  for (const item& i : body) {
    w.indent(depth);
    const auto origin = [&] {
      if (i.origin != none) w.word(" @").number(i.origin);
    };
    if (const auto* o = std::get_if<operation>(&i.what)) {
      write_operation(w, *o);
      origin();
      w.line();
    } else {
      const loop& l = std::get<loop>(i.what);
      w.word("loop i").number(l.variable).word(" ").number(l.count);
      origin();
      w.word(" {").line();
      write_body(w, l.body, depth + 1);
      w.indent(depth).word("}").line();
    }
  }
}

inline void write_buffer(text_writer& w, const program& p, std::size_t index, std::vector<float>& constants) {
  const buffer& b = p.buffers[index];
  w.indent(1).word("buffer %").number(static_cast<std::int64_t>(index)).word(" ").quoted(b.name).word(" ").number(b.elements);
  if (b.view_of != none) w.word(" view %").number(b.view_of).word("[").number(b.view_offset).word("]");
  if (b.data) {
    const auto& values = b.data->floats();
    if (values.size() <= most_inline_constants) {
      w.word(" data");
      for (const float v : values) w.word(" ").hex(std::bit_cast<std::uint32_t>(v));
    } else {
      w.word(" constants ").number(static_cast<std::int64_t>(constants.size())).word(" ").number(static_cast<std::int64_t>(values.size()));
      constants.insert(constants.end(), values.begin(), values.end());
    }
  }
  w.line();
}

}  // namespace text_parts

/// "weights/w00003.bin": the usual name of the file of a weight matrix.
[[nodiscard]] inline std::string weight_file_name(std::size_t index) {
  const std::string number = std::to_string(index);
  return "weights/w" + std::string(number.size() < 5 ? 5 - number.size() : 0, '0') + number + ".bin";
}

/// Prints a program. `weight_files`: for each weight matrix the file that holds it; empty: weight_file_name of its index.
/// Guarantees: parse_text gives an equal program back (same_structure), and printing that gives the same text.
/// Cost: linear; some 10^6 operations a second.
[[nodiscard]] inline text_form to_text(const program& p, std::span<const std::string> weight_files = {}) {
  text_form result;
  text_parts::text_writer w(result.text);
  const auto& g = p.chip;
  w.word("raptor program 1").line();
  w.word("name ").quoted(p.name).line();
  w.word("chip").field("cores", g.core_count).field("crossbars", g.crossbars_per_core).field("rows", g.crossbar_rows);
  w.field("columns", g.crossbar_columns).field("weight_columns", g.weight_columns).field("cell_bits", g.cell_bits);
  w.field("weight_bits", g.weight_bits).field("element_bits", g.element_bits).field("adc", g.adc_count);
  w.field("local_memory", g.local_memory_bytes).line();
  for (const auto& origin : p.origins) w.word("origin ").quoted(origin).line();
  for (std::size_t i = 0; i < p.weights.size(); ++i) {
    w.word("weight").field("rows", p.weights[i].rows).field("columns", p.weights[i].columns).word(" ");
    w.quoted(i < weight_files.size() ? weight_files[i] : weight_file_name(i)).line();
  }
  // Buffers stand with the memory that they lie in; their numbers are those of the program.
  std::vector<std::vector<std::size_t>> owned(p.cores.size());
  std::vector<std::size_t> global;
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const auto core = p.buffers[b].core;
    if (core == global_memory) {
      global.push_back(b);
    } else {
      ensure(core >= 0 && static_cast<std::size_t>(core) < p.cores.size(), "a buffer on a core that does not exist", p.buffers[b].name);
      owned[static_cast<std::size_t>(core)].push_back(b);
    }
  }
  w.word("global {").line();
  for (const auto b : global) text_parts::write_buffer(w, p, b, result.constants);
  w.word("}").line();
  const auto ports = [&](std::string_view kind, const std::vector<port>& list) {
    for (const auto& port : list) {
      w.word(kind).word(" ").quoted(port.name).word(" %").number(port.buffer).word(" ").word(to_string(port.sizes)).line();
    }
  };
  ports("input", p.inputs);
  ports("output", p.outputs);
  w.word("cores ").number(static_cast<std::int64_t>(p.cores.size())).line();
  const bool staged = std::any_of(p.cores.begin(), p.cores.end(), [](const core_program& core) { return core.stage != 0; });
  for (std::size_t c = 0; c < p.cores.size(); ++c) {
    const auto& core = p.cores[c];
    if (core.body.empty() && core.groups.empty() && owned[c].empty()) continue;
    w.word("core ").number(static_cast<std::int64_t>(c));
    if (staged) w.field("stage", core.stage);
    w.word(" {").line();
    if (!core.groups.empty()) {
      w.indent(1).word("groups");
      for (const auto group : core.groups) w.word(" ").number(group);
      w.line();
    }
    for (const auto b : owned[c]) text_parts::write_buffer(w, p, b, result.constants);
    text_parts::write_body(w, core.body, 1);
    w.word("}").line();
  }
  return result;
}

}  // namespace raptor::program
