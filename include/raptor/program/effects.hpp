#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "raptor/isa/opcode.hpp"
#include "raptor/program/program.hpp"
#include "raptor/support/error.hpp"

/// What the operations of a program read and write, in one place: bounds, initialization, lifetimes and aliasing are judged by it.
namespace raptor::program {

/// `count` elements of a buffer, `step` apart, the first of them at the place's offset. Elements from `low()` to `high()`
/// (exclusive), relative to that offset, contain all of them.
struct effect {
  const place* where = nullptr;
  bool writes = false;
  std::int64_t count = 0;
  std::int64_t step = 1;

  [[nodiscard]] std::int64_t last() const { return checked::multiply(count - 1, step); }
  [[nodiscard]] std::int64_t low() const { return step < 0 && count > 0 ? last() : 0; }
  [[nodiscard]] std::int64_t high() const { return count <= 0 ? 0 : step < 0 ? 1 : checked::add(last(), std::int64_t{1}); }
};

/// At most three effects, reads first.
struct effect_list {
  std::array<effect, 3> list{};
  std::size_t size = 0;
  [[nodiscard]] const effect* begin() const noexcept { return list.data(); }
  [[nodiscard]] const effect* end() const noexcept { return list.data() + size; }
};

/// How an operation treats its places.
enum class pattern : std::uint8_t {
  invalid,      ///< not an operation of a program (scalar instructions, setbw, nop)
  elementwise2, ///< d[k] = f(a[k], b[k])
  elementwise1, ///< d[k] = f(a[k])
  dot,          ///< d[0] from a[k], b[k]
  mean,         ///< d[0] from a[k · stride]
  gather,       ///< d[k] = a[k · stride]
  whole,        ///< d[k] from all a (vsoftmax)
  matrix,       ///< mvmul
  copy,         ///< lmv, ld, st
  fill,         ///< lldi
  give,         ///< send
  take,         ///< recv
  event         ///< wait, sync
};

[[nodiscard]] constexpr pattern pattern_of(isa::opcode op) noexcept {
  using enum isa::opcode;
  switch (op) {
    case vvadd: case vvsub: case vvmul: case vvmax: case vvsll: case vvsra: return pattern::elementwise2;
    case vrelu: case vtanh: case vsigm: case vrsu: case vrsl: return pattern::elementwise1;
    case vvdmul: return pattern::dot;
    case vavg: return pattern::mean;
    case vmv: return pattern::gather;
    case vsoftmax: return pattern::whole;
    case mvmul: return pattern::matrix;
    case ld: case st: case lmv: return pattern::copy;
    case lldi: return pattern::fill;
    case send: return pattern::give;
    case recv: return pattern::take;
    case wait: case sync: return pattern::event;
    default: return pattern::invalid;
  }
}
[[nodiscard]] constexpr bool is_elementwise(isa::opcode op) noexcept {
  return pattern_of(op) == pattern::elementwise1 || pattern_of(op) == pattern::elementwise2;
}
/// send, recv, wait or sync.
[[nodiscard]] constexpr bool is_communication(isa::opcode op) noexcept {
  const auto p = pattern_of(op);
  return p == pattern::give || p == pattern::take || p == pattern::event;
}

/// Columns that a mvmul on a group writes: those of all crossbars of the group. Throws error_code::malformed for a
/// group or weight index that does not exist.
[[nodiscard]] inline std::int64_t group_columns(const program& p, const core_program& core, std::uint32_t group) {
  if (group >= core.groups.size() || core.groups[group] >= p.weights.size())
    throw error(error_code::malformed, "mvmul names array group " + std::to_string(group) + " of " + std::to_string(core.groups.size()));
  return checked::multiply(crossbars(p.weights[core.groups[group]], p.chip), p.chip.weight_columns);
}

/// Reads, then writes, of one operation of `core`. Cost: constant.
[[nodiscard]] inline effect_list effects_of(const program& p, const core_program& core, const operation& o) {
  effect_list result;
  const auto add = [&](const place& where, bool writes, std::int64_t count, std::int64_t step = 1) {
    result.list[result.size++] = {&where, writes, count, step};
  };
  switch (pattern_of(o.op)) {
    case pattern::elementwise2: add(o.a, false, o.length), add(o.b, false, o.length), add(o.d, true, o.length); break;
    case pattern::elementwise1:
    case pattern::whole:
    case pattern::copy: add(o.a, false, o.length), add(o.d, true, o.length); break;
    case pattern::dot: add(o.a, false, o.length), add(o.b, false, o.length), add(o.d, true, 1); break;
    case pattern::mean: add(o.a, false, o.length, o.stride), add(o.d, true, 1); break;
    case pattern::gather: add(o.a, false, o.length, o.stride), add(o.d, true, o.length); break;
    case pattern::matrix: add(o.a, false, p.chip.crossbar_rows), add(o.d, true, group_columns(p, core, o.group)); break;
    case pattern::fill:
    case pattern::take: add(o.d, true, o.length); break;
    case pattern::give: add(o.a, false, o.length); break;
    case pattern::event:
    case pattern::invalid: break;
  }
  return result;
}

/// Where a buffer's storage is: the buffer that owns it and the offset in it.
struct location {
  std::uint32_t root = none;
  std::int64_t offset = 0;
  friend bool operator==(const location&, const location&) = default;
};
/// Views are one level deep (see buffer::view_of).
[[nodiscard]] inline location locate(const program& p, std::uint32_t index) {
  const buffer& b = p.buffers[index];
  return b.view_of == none ? location{index, 0} : location{b.view_of, b.view_offset};
}

/// Calls `f(operation)` once for every operation in the text of a body, whatever the loop counts.
template <class F>
void for_each_operation(const std::vector<item>& body, const F& f) {
  for (const item& i : body) {
    if (const auto* o = std::get_if<operation>(&i.what)) f(*o);
    else for_each_operation(std::get<loop>(i.what).body, f);
  }
}
template <class F>
void for_each_operation(const item& i, const F& f) {
  if (const auto* o = std::get_if<operation>(&i.what)) f(*o);
  else for_each_operation(std::get<loop>(i.what).body, f);
}

}  // namespace raptor::program
