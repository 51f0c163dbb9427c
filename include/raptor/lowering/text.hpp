#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/isa/table.hpp"
#include "raptor/lowering/compute_graph.hpp"
#include "raptor/lowering/text_write.hpp"
#include "raptor/program/text.hpp"
#include "raptor/support/error.hpp"

/// The text form of compute graphs, reading side. One line a declaration, statement or brace:
///
///     raptor computes 1
///     name "lenet5"
///     input "image" 1x1x28x28
///     output "y" 1x10
///     constant #0 150
///     value %0 "image" 1x1x28x28 nchw_row_strip input 0
///     value %1 "conv1" 1x6x24x24 nhwc_row_strip
///     value %2 "table" 400 dense_nchw constant #1
///     value %3 "y" 1x10 dense_nchw result 0
///     compute 0 "conv1" op "convolution" strategy "streamed-patch" node 0 {
///       lanes 1x24 granule 1x1 most 1x1
///       a0 read %0 [b0]..[b0+e0] [0]..[1] [b1]..[4+b1+e1] [0]..[28]
///       a1 assign %1 [b0]..[b0+e0] [0]..[6] [b1]..[b1+e1] [0]..[24]
///       t0 temporary "patch" 128 persistent
///       group rows 26 columns 6 sources #0 {
///         block 0 at 0 0 size 25 6 from 0 by 1 25
///       }
///       prologue {
///         lldi t0[26] len 102 bits 0x00000000
///       }
///       body {
///         loop i0 24 {
///           lmv t0[0] <- a0[b0][0][b1][i0] len 5 outside zero
///           mvmul a1[b0][0][b1][i0] <- t0[0] len 6 group 0
///         }
///       }
///     }
///
/// `bD`, `eD`: begin and extent of the tile in lane dimension D; `iN`: induction variable. `[low]..[high]`: half-open interval of
/// one dimension. `aN`: in the tensor of access N, one coordinate a dimension; `tN`: offset in temporary N. `along D`: the stride
/// counts in elements of dimension D of the tensor. `block SOURCE at ROW COLUMN size ROWS COLUMNS from OFFSET by ROW_STRIDE
/// COLUMN_STRIDE`: lowering::weight_block. Constants have no contents here. Empty lines and lines that begin with # are skipped.
namespace raptor::lowering {

/// What a text says. Constants are distinct objects without contents, unless the caller gave them.
struct parsed_text {
  compute_graph value;
  std::vector<std::int64_t> constants;  ///< elements, by number
};

namespace text_parts {

using program::text_parts::text_reader;

/// Most work, in edges looked at, that the edges of a graph may take: far beyond any real one, a second at most.
inline constexpr std::uint64_t most_edge_work = std::uint64_t{1} << 28;

[[nodiscard]] inline layout::physical read_layout(text_reader& r) {
  const auto word = r.word();
  for (const auto known : {layout::physical::dense, layout::physical::nhwc_row_strip, layout::physical::nchw_row_strip})
    if (word == layout::name(known)) return known;
  r.fail("unknown layout '" + std::string(word.substr(0, 40)) + "'");
}
/// "a12" or "i0": a letter and a number below `limit`.
[[nodiscard]] inline std::uint32_t read_indexed(text_reader& r, std::string_view word, char letter, std::uint64_t limit) {
  std::uint32_t index = 0;
  const auto* const end = word.data() + word.size();
  const auto [stop, code] = std::from_chars(word.data() + 1, end, index);
  if (word.front() != letter || code != std::errc{} || stop != end) r.fail("expected " + std::string(1, letter) + " and a number, not '" + std::string(word.substr(0, 40)) + "'");
  if (index >= limit) r.fail(std::string(word) + " is not declared");
  return index;
}

/// Reads one compute behind its header. Checks every index, rank and symbol of the tile.
class compute_reader {
 public:
  compute_reader(text_reader& r, const compute_graph& g, const std::vector<model::constant_ptr>& constants) : r_(r), graph_(g), constants_(constants) {}

  [[nodiscard]] compute read() {
    header();
    line();
    lanes();
    line();
    while (!r_.accept("}")) {
      if (r_.accept("group")) group();
      else if (r_.accept("prologue")) block(c_.prologue);
      else if (r_.accept("body")) block(c_.body);
      else declaration();
      line();
    }
    r_.expect_end();
    return std::move(c_);
  }

 private:
  void line() {
    if (!r_.next_line()) r_.fail("the text ends inside compute '" + c_.name + "'");
  }
  void header() {
    c_.name = r_.quoted();
    r_.expect("op");
    c_.op = r_.quoted();
    r_.expect("strategy");
    c_.strategy = r_.quoted();
    if (r_.accept("node")) c_.node = r_.number<std::uint32_t>();
    if (r_.accept("family")) c_.family = r_.number<std::int64_t>(0);
    r_.expect("{"), r_.expect_end();
  }
  void lanes() {
    r_.expect("lanes");
    c_.lanes = r_.sizes();
    r_.expect("granule");
    c_.granule = r_.sizes();
    r_.expect("most");
    c_.most = r_.sizes();
    r_.expect_end();
    if (c_.granule.size() != c_.lanes.size() || c_.most.size() != c_.lanes.size()) r_.fail("lanes, granule and most have different ranks");
    for (const auto g : c_.granule)
      if (g < 1) r_.fail("a granule is at least 1");
  }
  void declaration() {
    const auto word = r_.word();
    if (word.front() == 't') {
      if (read_indexed(r_, word, 't', ~std::uint64_t{0}) != c_.temporaries.size()) r_.fail("temporaries are numbered 0, 1, ...");
      temporary t;
      r_.expect("temporary");
      t.name = r_.quoted();
      t.elements = amount();
      t.persistent = r_.accept("persistent");
      r_.expect_end();
      c_.temporaries.push_back(std::move(t));
      return;
    }
    if (read_indexed(r_, word, 'a', ~std::uint64_t{0}) != c_.accesses.size()) r_.fail("accesses are numbered 0, 1, ...");
    access a;
    if (r_.accept("read")) a.mode = access_mode::read;
    else if (r_.accept("assign")) a.mode = access_mode::assign;
    else if (r_.accept("accumulate")) a.mode = access_mode::accumulate;
    else r_.fail("expected read, assign or accumulate");
    a.value = r_.buffer();
    if (a.value >= graph_.values().size()) r_.fail("the access is of a value that is not declared");
    const auto& v = graph_.values()[a.value];
    if (a.mode != access_mode::read && v.from != origin::computed) r_.fail("a compute writes an input or a constant");
    while (r_.next_is('[')) {
      a.low.push_back(expression());
      r_.expect("..");
      a.high.push_back(expression());
    }
    r_.expect_end();
    if (a.low.size() != v.sizes.size()) r_.fail("the access has another rank than its value");
    c_.accesses.push_back(std::move(a));
  }
  void group() {
    weight_matrix m;
    r_.expect("rows");
    m.rows = r_.number<std::int64_t>(0);
    r_.expect("columns");
    m.columns = r_.number<std::int64_t>(0);
    r_.expect("sources");
    while (r_.accept("#")) {
      if (r_.accept("none")) m.sources.emplace_back();
      else m.sources.push_back(constant());
    }
    r_.expect("{"), r_.expect_end();
    line();
    while (!r_.accept("}")) {
      weight_block b;
      r_.expect("block");
      b.source = r_.number<std::uint32_t>();
      if (b.source >= m.sources.size()) r_.fail("source " + std::to_string(b.source) + " of " + std::to_string(m.sources.size()));
      r_.expect("at");
      b.row = r_.number<std::int64_t>(0), b.column = r_.number<std::int64_t>(0);
      r_.expect("size");
      b.rows = r_.number<std::int64_t>(0), b.columns = r_.number<std::int64_t>(0);
      r_.expect("from");
      b.offset = r_.number<std::int64_t>(0);
      r_.expect("by");
      b.row_stride = r_.number<std::int64_t>(), b.column_stride = r_.number<std::int64_t>();
      r_.expect_end();
      m.blocks.push_back(b);
      line();
    }
    r_.expect_end();
    c_.groups.push_back(std::move(m));
  }
  [[nodiscard]] model::constant_ptr constant() {
    const auto index = r_.number<std::size_t>();
    if (index >= constants_.size()) r_.fail("constant " + std::to_string(index) + " of " + std::to_string(constants_.size()));
    return constants_[index];
  }
  void block(std::vector<item>& items) {
    r_.expect("{"), r_.expect_end();
    if (!items.empty()) r_.fail("a second prologue or body");
    std::vector<loop> open;  // under construction, outermost first
    for (;;) {
      line();
      auto& to = open.empty() ? items : open.back().body;
      if (r_.accept("}")) {
        if (open.empty()) break;
        item done{std::move(open.back())};
        open.pop_back();
        (open.empty() ? items : open.back().body).push_back(std::move(done));
      } else if (r_.accept("loop")) {
        loop l;
        l.variable = read_indexed(r_, r_.word(), 'i', ~std::uint64_t{0});
        l.count = amount();
        r_.expect("{");
        if (open.size() == program::max_loop_depth) r_.fail("loops are nested deeper than " + std::to_string(program::max_loop_depth));
        open.push_back(std::move(l));
      } else {
        to.push_back({read_statement()});
      }
      r_.expect_end();
    }
    r_.expect_end();
  }
  [[nodiscard]] statement read_statement() {
    statement s;
    const auto mnemonic = r_.word();
    const auto* info = isa::find(mnemonic);
    if (info == nullptr) r_.fail("unknown operation '" + std::string(mnemonic.substr(0, 40)) + "'");
    s.op = info->op;
    if (r_.next_is('a') || r_.next_is('t')) s.d = read_operand();
    if (r_.accept("<-")) {
      s.a = read_operand();
      if (r_.accept(",")) s.b = read_operand();
    }
    r_.expect("len");
    s.length = amount();
    while (!r_.at_end()) {
      if (r_.accept("stride")) s.stride = r_.number<std::int64_t>();
      else if (r_.accept("along")) s.stride_dimension = r_.number<std::int32_t>(0);
      else if (r_.accept("group")) s.group = r_.number<std::uint32_t>();
      else if (r_.accept("bits")) s.bits = r_.hex();
      else if (r_.accept("outside")) s.when_outside = r_.accept("skip") ? outside::skip : (r_.expect("zero"), outside::zero);
      else break;
    }
    if (s.op == isa::opcode::mvmul && s.group >= c_.groups.size()) r_.fail("array group " + std::to_string(s.group) + " of " + std::to_string(c_.groups.size()));
    if (s.stride_dimension >= 0 && (s.a.what != operand::kind::value || static_cast<std::size_t>(s.stride_dimension) >= s.a.at.size()))
      r_.fail("a stride along a dimension that the operand does not have");
    return s;
  }
  [[nodiscard]] operand read_operand() {
    operand o;
    if (r_.accept("none")) return o;
    const auto word = r_.word();
    const bool temporary = word.front() == 't';
    o.what = temporary ? operand::kind::temporary : operand::kind::value;
    o.index = read_indexed(r_, word, temporary ? 't' : 'a', temporary ? c_.temporaries.size() : c_.accesses.size());
    while (r_.next_is('[')) o.at.push_back(expression());
    if (o.at.size() != (temporary ? 1 : c_.accesses[o.index].low.size())) r_.fail("an operand with another number of coordinates than its tensor or temporary");
    return o;
  }
  [[nodiscard]] affine expression() {
    affine a = r_.bracketed();
    for (const auto& t : a.terms())
      if (t.variable.what != symbol::kind::loop && t.variable.index >= c_.lanes.size()) r_.fail("an expression names a lane dimension that does not exist");
    return a;
  }
  [[nodiscard]] affine amount() { return r_.next_is('[') ? expression() : affine(r_.number<std::int64_t>()); }

  text_reader& r_;
  const compute_graph& graph_;
  const std::vector<model::constant_ptr>& constants_;
  compute c_;
};

/// Reads a graph from the first line on. Afterwards the reader stands on the first line behind the computes; returns false where there is none.
[[nodiscard]] inline bool read_graph(text_reader& r, std::span<const model::constant_ptr> given, parsed_text& result) {
  compute_graph& g = result.value;
  const auto line = [&](const char* expected) {
    if (!r.next_line()) r.fail(std::string("the text ends where ") + expected + " is expected");
  };
  line("'raptor computes 1'");
  r.expect("raptor"), r.expect("computes");
  if (const auto version = r.number<std::int64_t>(); version != 1) r.fail("version " + std::to_string(version) + ", only version 1 is known");
  r.expect_end();
  line("a name");
  r.expect("name");
  g.name = r.quoted();
  r.expect_end();
  bool more = r.next_line();
  const auto ports = [&](const char* keyword, std::vector<compute_graph::port>& list) {
    for (; more && r.accept(keyword); more = r.next_line()) {
      compute_graph::port port;
      port.name = r.quoted();
      port.sizes = r.sizes();
      r.expect_end();
      list.push_back(std::move(port));
    }
  };
  ports("input", g.inputs);
  ports("output", g.outputs);

  std::vector<model::constant_ptr> constants;
  const auto constant = [&]() -> model::constant_ptr {
    r.expect("#");
    if (r.accept("none")) return nullptr;
    const auto index = r.number<std::size_t>();
    if (index >= constants.size()) r.fail("constant " + std::to_string(index) + " of " + std::to_string(constants.size()));
    return constants[index];
  };
  for (; more && r.accept("constant"); more = r.next_line()) {
    r.expect("#");
    if (r.number<std::size_t>() != constants.size()) r.fail("constants are numbered 0, 1, ...");
    result.constants.push_back(r.number<std::int64_t>(0));
    r.expect_end();
    const auto index = constants.size();
    if (given.empty()) {
      constants.push_back(std::make_shared<const model::constant>());
    } else {
      if (index >= given.size() || !given[index] || std::cmp_not_equal(given[index]->floats().size(), result.constants.back()))
        r.fail("constant " + std::to_string(index) + " has another size than the one given for it");
      constants.push_back(given[index]);
    }
  }
  for (; more && r.accept("value"); more = r.next_line()) {
    if (r.buffer() != g.values().size()) r.fail("values are numbered 0, 1, ...");
    value v;
    v.name = r.quoted();
    v.sizes = r.sizes();
    v.layout = read_layout(r);
    if (v.layout != layout::physical::dense && v.sizes.size() != 4) r.fail("only images of rank 4 have other layouts than dense_nchw");
    if (r.accept("input")) {
      v.from = origin::input;
      v.input = r.number<std::int32_t>(0);
      if (static_cast<std::size_t>(v.input) >= g.inputs.size()) r.fail("input " + std::to_string(v.input) + " of " + std::to_string(g.inputs.size()));
    } else if (r.accept("constant")) {
      v.from = origin::constant;
      v.data = constant();
    }
    if (r.accept("result")) {
      v.result = r.number<std::int32_t>(0);
      if (v.from != origin::computed || static_cast<std::size_t>(v.result) >= g.outputs.size())
        r.fail("a result is computed, and one of the " + std::to_string(g.outputs.size()) + " outputs");
    }
    r.expect_end();
    g.add_value(std::move(v));
  }
  std::uint64_t work = 0;
  std::map<std::int64_t, vertex> families;  // the first compute of each
  for (; more && r.accept("compute"); more = r.next_line()) {
    if (r.number<std::size_t>() != g.size()) r.fail("computes are numbered 0, 1, ...");
    compute c = compute_reader(r, g, constants).read();
    for (const auto& a : c.accesses)
      if (a.mode == access_mode::read)
        for (const auto writer : g.writers(a.value)) work += 1 + boost::out_degree(writer, g.structure());
    if (work > most_edge_work) r.fail("the computes have more dependencies than any network");
    if (c.family >= 0) {
      const auto first = families.try_emplace(c.family, g.size()).first->second;
      const auto same = [](const weight_matrix& a, const weight_matrix& b) {
        return a.rows == b.rows && a.columns == b.columns && a.sources.size() == b.sources.size() && a.blocks == b.blocks;
      };
      if (first != g.size() && !std::equal(c.groups.begin(), c.groups.end(), g.at(first).groups.begin(), g.at(first).groups.end(), same))
        r.fail("compute '" + c.name + "' has other weights than the first one of its family");
    }
    g.add_compute(std::move(c));
  }
  return more;
}

}  // namespace text_parts

/// Reads what to_text writes. `constants`: their contents, by number; empty: they get none. `file`: the place of errors.
///
/// Guarantees: ranks and indices are checked, so that the graph can be walked and tiled; whether kernels and boxes are right
/// is verify's to say (verify/graph.hpp). Errors: malformed with file and line.
/// Memory: proportional to the text. Cost: linear; some 10^6 statements a second.
[[nodiscard]] inline parsed_text parse_text(std::string_view text, std::span<const model::constant_ptr> constants = {}, std::string_view file = "computes") {
  text_parts::text_reader r(text, file);
  parsed_text result;
  if (text_parts::read_graph(r, constants, result)) r.fail("expected a compute");
  return result;
}

}  // namespace raptor::lowering
