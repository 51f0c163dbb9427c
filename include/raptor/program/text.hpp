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

/// Reads what to_text writes. `constants`: the contents of the file of constants; `file`: the place of errors.
///
/// Guarantees: every index is checked (buffers, weights, origins, cores), so that the program can be walked; whether its operations
/// stay inside their buffers is verify's to say. Errors: malformed with file and line. Memory: proportional to the text.
/// Cost: linear; some 10^6 operations a second.
[[nodiscard]] inline parsed_text parse_text(std::string_view text, std::span<const float> constants = {}, std::string_view file = "program") {
  text_parts::text_reader r(text, file);
  parsed_text result;
  program& p = result.value;
  std::vector<std::pair<std::uint32_t, buffer>> buffers;
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
    b.name = r.quoted();
    b.elements = r.number<std::int64_t>(0);
    if (r.accept("view")) {
      b.view_of = r.buffer();
      use(b.view_of);
      const affine offset = r.bracketed();
      if (!offset.is_constant()) r.fail("a view's offset is a number");
      b.view_offset = offset.constant();
    }
    if (r.accept("data")) {
      auto values = std::make_shared<model::constant>();
      std::vector<float> list;
      while (!r.at_end()) list.push_back(std::bit_cast<float>(r.hex()));
      values->values = std::move(list);
      b.data = std::move(values);
    } else if (r.accept("constants")) {
      const auto position = r.number<std::uint64_t>(0), count = r.number<std::uint64_t>(0);
      if (position > constants.size() || count > constants.size() - position)
        r.fail("constants " + std::to_string(position) + " to " + std::to_string(position) + " + " + std::to_string(count) +
               " of a file of " + std::to_string(constants.size()));
      auto values = std::make_shared<model::constant>();
      const auto from = constants.subspan(static_cast<std::size_t>(position), static_cast<std::size_t>(count));
      values->values = std::vector<float>(from.begin(), from.end());
      b.data = std::move(values);
    }
    r.expect_end();
    buffers.emplace_back(index, std::move(b));
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
    p.origins.push_back(r.quoted());
    r.expect_end();
    line("'global {'");
  }
  while (r.accept("weight")) {
    lowering::weight_matrix m;
    m.rows = field("rows", 0);
    m.columns = field("columns", 1);
    result.weight_files.push_back(r.quoted());
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
    at.name = r.quoted();
    at.buffer = r.buffer();
    if (at.buffer == none) r.fail("an input or output without a buffer");
    use(at.buffer);
    at.sizes = r.sizes();
    r.expect_end();
    (input ? p.inputs : p.outputs).push_back(std::move(at));
    line("'cores'");
  }
  r.expect("cores");
  p.cores.resize(r.number<std::size_t>(0, std::size_t{1} << 20));
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
        open.push_back(std::move(l));
        origins.push_back(header.origin);
      } else {
        operation o = text_parts::read_operation(r);
        text_parts::read_fields(r, o);
        use(o.d.buffer), use(o.a.buffer), use(o.b.buffer);
        item i{std::move(o), none};
        read_origin(i);
        body.push_back(std::move(i));
      }
      r.expect_end();
    }
  }

  std::sort(buffers.begin(), buffers.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  p.buffers.reserve(buffers.size());
  for (auto& [index, b] : buffers) {
    if (index != p.buffers.size())
      throw error(error_code::malformed, index < p.buffers.size() ? "buffer " + std::to_string(index) + " is declared twice"
                                                                  : "buffer " + std::to_string(p.buffers.size()) + " is not declared",
                  std::string(file));
    p.buffers.push_back(std::move(b));
  }
  if (any_use && largest_buffer >= p.buffers.size())
    throw error(error_code::malformed, "buffer " + std::to_string(largest_buffer) + " is used but not declared", std::string(file));
  return result;
}

}  // namespace raptor::program
