#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/isa/table.hpp"
#include "raptor/program/program.hpp"
#include "raptor/program/text_write.hpp"
#include "raptor/program/unrolled.hpp"
#include "raptor/support/error.hpp"
#include "raptor/support/memory_budget.hpp"

/// The text form of realized (program.txt) and bound (bound.txt) programs, reading side. One line a declaration, operation or brace:
///
///     raptor program 1
///     name "lenet5"
///     chip cores 4 crossbars 16 rows 128 … local_memory 65536
///     origin "conv1"
///     weight rows 25 columns 6 "weights/w00000.bin"
///     global {
///       buffer %0 "image" 784
///       buffer %1 "bias" 2 data 0x3f800000 0x00000000
///       buffer %2 "table" 400 constants 0 400
///     }
///     input "image" %0 1x1x28x28
///     output "y" %3 1x10
///     cores 4
///     core 3 {
///       groups 0 5
///       buffer %12 "conv1.rows" 640
///       buffer %13 "conv1.relu" 640 view %12[0]
///       loop i0 112 @0 {
///         mvmul %12[128*i0] <- %10[0] len 128 group 0 bits 0x00000001
///       }
///       send <- %12[0] len 640 peer 2 @1
///     }
///
/// The cores of a pipeline have a stage: `core 3 stage 1 {`.
/// `%N[offset]`: buffer N and an affine offset in elements. `@N`: origin. Fields that have their usual value are left out.
/// `data`: f32 bit patterns; `constants POSITION COUNT`: in the file of constants. Empty lines and lines that begin with # are skipped.
namespace raptor::program {

/// What a text says. Weight matrices have sizes, but no contents: those are in the named files.
struct parsed_text {
  program value;
  std::vector<std::string> weight_files;  ///< one a weight matrix
};

namespace text_parts {

/// Words of one line after another.
class text_reader {
 public:
  text_reader(std::string_view text, std::string_view file) : rest_(text), file_(file) {}

  /// Goes to the next line with contents; false at the end.
  bool next_line() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
      skip_spaces();
      if (!line_.empty() && line_.front() != '#') return true;
    }
    line_ = {};
    return false;
  }
  [[nodiscard]] std::string place() const { return std::string(file_) + ", line " + std::to_string(number_); }
  [[noreturn]] void fail(const std::string& message) const { throw error(error_code::malformed, message, place()); }
  [[nodiscard]] bool at_end() const noexcept { return line_.empty(); }
  /// Spaces in the rest of the line: a list has at most as many numbers and one.
  [[nodiscard]] std::size_t spaces() const noexcept { return static_cast<std::size_t>(std::count(line_.begin(), line_.end(), ' ')); }
  [[nodiscard]] bool next_is(char c) const noexcept { return !line_.empty() && line_.front() == c; }
  void expect_end() const {
    if (!at_end()) fail("unexpected '" + std::string(line_.substr(0, 40)) + "'");
  }
  /// Consumes a token if the line goes on with it.
  bool accept(std::string_view token) {
    if (line_.substr(0, token.size()) != token) return false;
    // A word ends where something else begins.
    const bool word = !token.empty() && is_word(token.back());
    if (word && line_.size() > token.size() && is_word(line_[token.size()])) return false;
    line_.remove_prefix(token.size());
    skip_spaces();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("expected '" + std::string(token) + "' before '" + std::string(line_.substr(0, 40)) + "'");
  }
  [[nodiscard]] std::string_view word() {
    std::size_t n = 0;
    while (n < line_.size() && is_word(line_[n])) ++n;
    if (n == 0) fail("expected a word before '" + std::string(line_.substr(0, 40)) + "'");
    return take(n);
  }
  template <class T>
  [[nodiscard]] T number(T least = std::numeric_limits<T>::min(), T most = std::numeric_limits<T>::max()) {
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(line_.data(), line_.data() + line_.size(), value);
    if (code != std::errc{}) fail("expected a number before '" + std::string(line_.substr(0, 40)) + "'");
    if (std::cmp_less(value, least) || std::cmp_greater(value, most)) fail("number " + std::to_string(value) + " is out of range");
    const auto used = static_cast<std::size_t>(end - line_.data());
    if (used < line_.size() && is_word(line_[used])) fail("expected a number before '" + std::string(line_.substr(0, 40)) + "'");
    take(used);
    return static_cast<T>(value);
  }
  [[nodiscard]] std::uint32_t hex() {
    if (line_.substr(0, 2) != "0x") fail("expected 0x and a bit pattern");
    std::uint32_t value = 0;
    const auto [end, code] = std::from_chars(line_.data() + 2, line_.data() + line_.size(), value, 16);
    if (code != std::errc{} || end == line_.data() + 2) fail("expected 0x and a bit pattern of 32 bits");
    take(static_cast<std::size_t>(end - line_.data()));
    return value;
  }
  [[nodiscard]] std::string quoted() {
    if (line_.empty() || line_.front() != '"') fail("expected a text in quotes");
    std::string value;
    value.reserve(std::min(line_.find('"', 1), line_.size()) - 1);
    std::size_t n = 1;
    for (; n < line_.size() && line_[n] != '"'; ++n) {
      if (line_[n] != '\\') {
        value.push_back(line_[n]);
      } else if (n + 1 < line_.size() && (line_[n + 1] == '"' || line_[n + 1] == '\\')) {
        value.push_back(line_[++n]);
      } else if (n + 3 < line_.size() && line_[n + 1] == 'x') {
        unsigned byte = 0;
        const auto [end, code] = std::from_chars(line_.data() + n + 2, line_.data() + n + 4, byte, 16);
        if (code != std::errc{} || end != line_.data() + n + 4) fail("a wrong escape in a text");
        value.push_back(static_cast<char>(byte));
        n += 3;
      } else {
        fail("a wrong escape in a text");
      }
    }
    if (n == line_.size()) fail("a text without its closing quote");
    take(n + 1);
    return value;
  }
  /// "%12" or "%none" without what follows.
  [[nodiscard]] std::uint32_t buffer() {
    if (line_.empty() || line_.front() != '%') fail("expected % and a buffer before '" + std::string(line_.substr(0, 40)) + "'");
    line_.remove_prefix(1);
    if (accept("none")) return none;
    return number<std::uint32_t>(0, none - 1);
  }
  [[nodiscard]] affine bracketed() {
    const std::size_t end = line_.find(']');
    if (line_.empty() || line_.front() != '[' || end == line_.npos) fail("expected [offset]");
    const std::string_view inside = line_.substr(1, end - 1);
    std::int64_t value = 0;
    const auto [stop, code] = std::from_chars(inside.data(), inside.data() + inside.size(), value);
    affine result(value);
    if (code != std::errc{} || stop != inside.data() + inside.size()) {
      if (inside.size() > 400) fail("an offset is longer than any program needs");
      try {
        result = parse_affine(inside);
      } catch (const error& e) {
        fail(e.what());
      }
    }
    take(end + 1);
    return result;
  }
  [[nodiscard]] shape sizes() {
    if (accept("scalar")) return {};
    shape result;
    std::string_view text = word();
    while (true) {
      std::int64_t value = 0;
      const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (code != std::errc{} || value < 0) fail("expected sizes such as 1x3x8");
      result.push_back(value);
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      if (text.empty()) return result;
      if (text.front() != 'x' || result.size() > 64) fail("expected sizes such as 1x3x8");
      text.remove_prefix(1);
    }
  }

 private:
  std::string_view rest_, line_, file_;
  std::size_t number_ = 0;

  [[nodiscard]] static constexpr bool is_word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  void skip_spaces() {
    std::size_t n = 0;
    while (n < line_.size() && (line_[n] == ' ' || line_[n] == '\t')) ++n;
    line_.remove_prefix(n);
  }
  std::string_view take(std::size_t n) {
    const std::string_view taken = line_.substr(0, n);
    line_.remove_prefix(n);
    skip_spaces();
    return taken;
  }
};

/// How many things of each kind a text has, so that no list grows while it is read.
struct line_counts {
  std::size_t origins = 0, weights = 0, buffers = 0, inputs = 0, outputs = 0;
  std::vector<std::uint32_t> items;  ///< in each core and loop, in the order in which they begin
  std::size_t most_nodes = 0;        ///< operations and loops of the largest core
};
/// Counts lines by their first word; what else they say is for the reader to judge. O(text).
[[nodiscard]] inline line_counts count_lines(std::string_view text) {
  line_counts counts;
  std::size_t blocks = 0, nodes = 0;
  for (text_reader r(text, {}); r.next_line();) {
    if (r.accept("origin")) ++counts.origins;
    else if (r.accept("weight")) ++counts.weights;
    else if (r.accept("buffer")) ++counts.buffers;
    else if (r.accept("input")) ++counts.inputs;
    else if (r.accept("output")) ++counts.outputs;
    else if (r.accept("core") || r.accept("loop")) ++blocks;
  }
  counts.items.reserve(blocks);
  std::vector<std::size_t> open;  // positions in items, of the core and the loops that are not closed
  for (text_reader r(text, {}); r.next_line();) {
    if (r.accept("core")) {
      open.assign(1, counts.items.size());
      counts.items.push_back(0);
      nodes = 0;
    } else if (open.empty() || r.accept("groups") || r.accept("buffer")) {
      continue;
    } else if (r.accept("}")) {
      open.pop_back();
    } else {
      ++counts.items[open.back()];
      counts.most_nodes = std::max(counts.most_nodes, ++nodes);
      if (!r.accept("loop")) continue;
      if (open.size() <= max_loop_depth) open.push_back(counts.items.size());  // the reader refuses deeper ones
      counts.items.push_back(0);
    }
  }
  return counts;
}

[[nodiscard]] inline operation read_operation(text_reader& r) {
  operation o;
  const std::string_view mnemonic = r.word();
  const auto* info = isa::find(mnemonic);
  if (info == nullptr) r.fail("unknown operation '" + std::string(mnemonic.substr(0, 40)) + "'");
  o.op = info->op;
  const auto at = [&] {
    place p;
    p.buffer = r.buffer();
    p.offset = r.bracketed();
    return p;
  };
  if (r.next_is('%')) o.d = at();
  if (r.accept("<-")) {
    o.a = at();
    if (r.accept(",")) o.b = at();
  }
  return o;
}

/// Fields behind the places, in any order, up to `@` or the end.
inline void read_fields(text_reader& r, operation& o) {
  for (;;) {
    if (r.accept("len")) o.length = r.number<std::int64_t>();
    else if (r.accept("stride")) o.stride = r.number<std::int64_t>();
    else if (r.accept("group")) o.group = r.number<std::uint32_t>();
    else if (r.accept("bits")) o.bits = r.hex();
    else if (r.accept("peer")) o.peer = r.number<std::int32_t>();
    else if (r.accept("event")) o.event = r.number<std::int32_t>();
    else if (r.accept("count")) o.count = r.number<std::int32_t>();
    else return;
  }
}

}  // namespace text_parts

/// Memory that reading, checking and emitting a text may take, beside four times its size and that of its constants. A program that was
/// compiled needs less than those; of the shortest lines, which take ten times their text, two hundred thousand fit.
inline constexpr std::size_t text_allowance = std::size_t{16} << 20;
namespace text_parts {
/// Checks and memory planning keep a location, two sets of elements, a lifetime, an address and more of each.
inline constexpr std::size_t bytes_per_buffer = 128;
}  // namespace text_parts

/// Reads what to_text writes. `constants`: the contents of the file of constants; `file`: the place of errors.
///
/// Guarantees: every index is checked (buffers, weights, origins, cores), so that the program can be walked; whether its operations
/// stay inside their buffers is verify's to say. Errors: malformed with file and line; capacity, where the program, with the text or
/// with what its checks and its emission need, would take more than four times text and constants and `text_allowance`. Memory: the program.
/// Cost: linear; some 10^6 operations a second.
[[nodiscard]] inline parsed_text parse_text(std::string_view text, std::span<const float> constants = {}, std::string_view file = "program") {
  text_parts::text_reader r(text, file);
  parsed_text result;
  program& p = result.value;
  memory_budget budget(text.size() + constants.size_bytes(), 4, text_allowance, std::string(file));
  const auto counts = text_parts::count_lines(text);
  budget.take(counts.origins, sizeof(std::string));
  budget.take(counts.weights, sizeof(lowering::weight_matrix) + sizeof(std::string));
  budget.take(counts.buffers, sizeof(buffer) + sizeof(std::uint32_t));
  budget.take(counts.inputs + counts.outputs, sizeof(port));
  for (const auto items : counts.items) budget.take(items, sizeof(item));
  budget.take(counts.items.size(), sizeof(std::uint32_t));
  // The text is gone when the program is checked and emitted, which is done core by core.
  budget.take(std::max(text.size() + constants.size_bytes(), counts.most_nodes * unrolled::bytes_per_item + counts.buffers * text_parts::bytes_per_buffer));
  p.origins.reserve(counts.origins);
  p.weights.reserve(counts.weights);
  result.weight_files.reserve(counts.weights);
  p.buffers.resize(counts.buffers);
  p.inputs.reserve(counts.inputs);
  p.outputs.reserve(counts.outputs);
  std::size_t next_block = 0;
  const auto reserve_items = [&](std::vector<item>& body) {
    if (next_block < counts.items.size()) body.reserve(counts.items[next_block++]);
  };
  const auto quoted = [&] {
    std::string value = r.quoted();
    budget.take(value.size());
    return value;
  };
  std::vector<std::uint32_t> declared;  // numbers of the buffers, in the order of the text
  declared.reserve(counts.buffers);
  std::uint32_t largest_buffer = 0;
  bool any_use = false;
  const auto use = [&](std::uint32_t b) {
    if (b == none) return;
    largest_buffer = std::max(largest_buffer, b);
    any_use = true;
  };
  const auto line = [&](const char* expected) {
    if (!r.next_line()) r.fail(std::string("the text ends where ") + expected + " is expected");
  };
  const auto read_buffer = [&](std::int32_t core) {
    buffer b;
    const auto index = r.buffer();
    if (index == none) r.fail("a buffer without a number");
    b.core = core;
    b.name = quoted();
    b.elements = r.number<std::int64_t>(0);
    if (r.accept("view")) {
      b.view_of = r.buffer();
      use(b.view_of);
      const affine offset = r.bracketed();
      if (!offset.is_constant()) r.fail("a view's offset is a number");
      b.view_offset = offset.constant();
    }
    if (r.accept("data")) {
      budget.take(r.spaces() + 1, sizeof(float));
      budget.take(sizeof(model::constant) + 2 * sizeof(void*));
      auto values = std::make_shared<model::constant>();
      std::vector<float> list;
      list.reserve(r.spaces() + 1);
      while (!r.at_end()) list.push_back(std::bit_cast<float>(r.hex()));
      values->values = std::move(list);
      b.data = std::move(values);
    } else if (r.accept("constants")) {
      const auto position = r.number<std::uint64_t>(0), count = r.number<std::uint64_t>(0);
      if (position > constants.size() || count > constants.size() - position)
        r.fail("constants " + std::to_string(position) + " to " + std::to_string(position) + " + " + std::to_string(count) +
               " of a file of " + std::to_string(constants.size()));
      budget.take(static_cast<std::size_t>(count), sizeof(float));
      budget.take(sizeof(model::constant) + 2 * sizeof(void*));
      auto values = std::make_shared<model::constant>();
      const auto from = constants.subspan(static_cast<std::size_t>(position), static_cast<std::size_t>(count));
      values->values = std::vector<float>(from.begin(), from.end());
      b.data = std::move(values);
    }
    r.expect_end();
    declared.push_back(index);
    if (index < p.buffers.size()) p.buffers[index] = std::move(b);
  };
  const auto read_origin = [&](item& i) {
    if (!r.accept("@")) return;
    i.origin = r.number<std::uint32_t>(0, none - 1);
    if (i.origin >= p.origins.size()) r.fail("origin " + std::to_string(i.origin) + " of " + std::to_string(p.origins.size()));
  };

  line("'raptor program 1'");
  r.expect("raptor"), r.expect("program");
  if (const auto version = r.number<std::int64_t>(); version != 1) r.fail("version " + std::to_string(version) + ", only version 1 is known");
  r.expect_end();
  line("a name");
  r.expect("name");
  p.name = r.quoted();
  r.expect_end();
  line("the chip");
  r.expect("chip");
  const auto field = [&](std::string_view key, std::int64_t least) {
    r.expect(key);
    return r.number<std::int64_t>(least);
  };
  auto& g = p.chip;
  g.core_count = field("cores", 0);
  g.crossbars_per_core = field("crossbars", 0);
  g.crossbar_rows = field("rows", 1);
  g.crossbar_columns = field("columns", 1);
  g.weight_columns = field("weight_columns", 1);
  g.cell_bits = field("cell_bits", 1);
  g.weight_bits = field("weight_bits", 1);
  g.element_bits = field("element_bits", 1);
  g.adc_count = field("adc", 0);
  g.local_memory_bytes = field("local_memory", 0);
  r.expect_end();

  line("'global {'");
  while (r.accept("origin")) {
    p.origins.push_back(quoted());
    r.expect_end();
    line("'global {'");
  }
  while (r.accept("weight")) {
    lowering::weight_matrix m;
    m.rows = field("rows", 0);
    m.columns = field("columns", 1);
    result.weight_files.push_back(quoted());
    r.expect_end();
    p.weights.push_back(std::move(m));
    line("'global {'");
  }
  r.expect("global"), r.expect("{"), r.expect_end();
  line("'}'");
  while (r.accept("buffer")) {
    read_buffer(global_memory);
    line("'}'");
  }
  r.expect("}"), r.expect_end();
  line("'cores'");
  while (true) {
    const bool input = r.accept("input");
    if (!input && !r.accept("output")) break;
    port at;
    at.name = quoted();
    at.buffer = r.buffer();
    if (at.buffer == none) r.fail("an input or output without a buffer");
    use(at.buffer);
    at.sizes = r.sizes();
    budget.take(at.sizes.size(), sizeof(std::int64_t));
    r.expect_end();
    (input ? p.inputs : p.outputs).push_back(std::move(at));
    line("'cores'");
  }
  r.expect("cores");
  const auto core_count = r.number<std::size_t>(0, std::size_t{1} << 20);
  budget.take(core_count, sizeof(core_program));
  p.cores.resize(core_count);
  r.expect_end();

  std::int64_t previous = -1;
  while (r.next_line()) {
    r.expect("core");
    const auto c = r.number<std::int64_t>(0, static_cast<std::int64_t>(p.cores.size()) - 1);
    if (c <= previous) r.fail("core " + std::to_string(c) + " after core " + std::to_string(previous));
    previous = c;
    core_program& core = p.cores[static_cast<std::size_t>(c)];
    if (r.accept("stage")) core.stage = r.number<std::uint32_t>(0, (std::uint32_t{1} << 20) - 1);
    r.expect("{"), r.expect_end();
    reserve_items(core.body);
    std::vector<loop> open;              // loops under construction, outermost first
    std::vector<std::uint32_t> origins;  // theirs
    for (bool inside = true; inside;) {
      line("'}'");
      auto& body = open.empty() ? core.body : open.back().body;
      if (r.accept("}")) {
        if (open.empty()) {
          inside = false;
        } else {
          item done{std::move(open.back()), origins.back()};
          open.pop_back();
          origins.pop_back();
          (open.empty() ? core.body : open.back().body).push_back(std::move(done));
        }
      } else if (r.accept("groups")) {
        budget.take(r.spaces() + 1, sizeof(std::uint32_t));
        core.groups.reserve(core.groups.size() + r.spaces() + 1);
        while (!r.at_end()) {
          core.groups.push_back(r.number<std::uint32_t>());
          if (core.groups.back() >= p.weights.size()) r.fail("weights " + std::to_string(core.groups.back()) + " of " + std::to_string(p.weights.size()));
        }
      } else if (r.accept("buffer")) {
        read_buffer(static_cast<std::int32_t>(c));
      } else if (r.accept("loop")) {
        loop l;
        const auto variable = r.word();
        const auto [end, code] = std::from_chars(variable.data() + 1, variable.data() + variable.size(), l.variable);
        if (variable.front() != 'i' || code != std::errc{} || end != variable.data() + variable.size()) r.fail("expected a loop variable such as i0");
        l.count = r.number<std::int64_t>(0);
        item header;
        read_origin(header);
        r.expect("{");
        if (open.size() == max_loop_depth) r.fail("loops are nested deeper than " + std::to_string(max_loop_depth));
        reserve_items(l.body);
        open.push_back(std::move(l));
        origins.push_back(header.origin);
      } else {
        operation o = text_parts::read_operation(r);
        text_parts::read_fields(r, o);
        use(o.d.buffer), use(o.a.buffer), use(o.b.buffer);
        // A list of terms, and what the walks make of it.
        for (const auto* at : {&o.d, &o.a, &o.b})
          if (!at->offset.is_constant()) budget.take(2 * at->offset.terms().size() + 1, sizeof(affine::term));
        item i{std::move(o), none};
        read_origin(i);
        body.push_back(std::move(i));
      }
      r.expect_end();
    }
  }

  std::sort(declared.begin(), declared.end());
  for (std::size_t n = 0; n < declared.size(); ++n)
    if (declared[n] != n)
      throw error(error_code::malformed, declared[n] < n ? "buffer " + std::to_string(declared[n]) + " is declared twice" : "buffer " + std::to_string(n) + " is not declared",
                  std::string(file));
  if (any_use && largest_buffer >= p.buffers.size())
    throw error(error_code::malformed, "buffer " + std::to_string(largest_buffer) + " is used but not declared", std::string(file));
  return result;
}

}  // namespace raptor::program
