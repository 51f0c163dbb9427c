#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "raptor/isa/check.hpp"
#include "raptor/isa/table.hpp"

/// What each instruction does, written once, over an abstract core (ISA.md). The constexpr machine runs it at compile time; the fast
/// executor is compared with it.
namespace raptor::sim {

/// Why an instruction cannot be executed.
enum class fault : std::uint8_t {
  none,
  unknown_opcode,
  bad_field,          ///< isa::find_fault says which
  local_range,        ///< beyond local memory
  global_range,       ///< beyond global memory
  unwritten_local,    ///< reads local memory that nothing has written
  unwritten_global,   ///< the same of global memory, where that is checked
  widths_not_set,     ///< no setbw before
  unsupported_width,  ///< 8- and 16-bit elements are for time and energy only
  integers_only,      ///< a shift of floats
  overlap,            ///< a destination that overlaps a source where that is not allowed
  no_elements,        ///< a mean or a dot product of nothing
  size_mismatch,      ///< send and recv disagree
  overshoot           ///< an event register above what its wait expects
};

[[nodiscard]] constexpr std::string_view describe(fault f) noexcept {
  switch (f) {
    case fault::none: return "no fault";
    case fault::unknown_opcode: return "unknown opcode";
    case fault::bad_field: return "a field of the instruction is out of range";
    case fault::local_range: return "access beyond local memory";
    case fault::global_range: return "access beyond global memory";
    case fault::unwritten_local: return "reads local memory that nothing has written";
    case fault::unwritten_global: return "reads global memory that nothing has written";
    case fault::widths_not_set: return "no setbw has chosen the element widths";
    case fault::unsupported_width: return "8- and 16-bit elements have no functional definition yet";
    case fault::integers_only: return "shifts are for integers; the elements are 32-bit floats";
    case fault::overlap: return "the destination overlaps a source";
    case fault::no_elements: return "a mean or dot product of no elements";
    case fault::size_mismatch: return "send and recv disagree about the size";
    case fault::overshoot: return "the event register is above the expected count";
  }
  return "unknown fault";
}

/// Elementary functions that also work at compile time. At run time they are the standard library's.
namespace constexpr_math {

/// exp to about 15 digits: Taylor after reduction to |r| ≤ ln 2 / 2.
[[nodiscard]] constexpr double exp(double x) noexcept {
  if (!std::is_constant_evaluated()) return std::exp(x);
  if (x != x) return x;
  if (x > 709.0) return std::numeric_limits<double>::infinity();
  if (x < -745.0) return 0.0;
  constexpr double ln2 = 0.693147180559945309417232121458;
  const int k = static_cast<int>(x / ln2 + (x < 0 ? -0.5 : 0.5));
  const double r = x - k * ln2;
  double term = 1.0;
  double sum = 1.0;
  for (int n = 1; n < 20; ++n) {
    term *= r / n;
    sum += term;
  }
  for (int n = 0; n < k; ++n) sum *= 2.0;
  for (int n = 0; n > k; --n) sum *= 0.5;
  return sum;
}

[[nodiscard]] constexpr double tanh(double x) noexcept {
  if (!std::is_constant_evaluated()) return std::tanh(x);
  const double a = x < 0 ? -x : x;
  if (a < 1e-4) return x - x * x * x / 3;  // 1 - e would cancel
  const double e = constexpr_math::exp(-2 * a);
  const double t = (1 - e) / (1 + e);
  return x < 0 ? -t : t;
}

}  // namespace constexpr_math

/// True for the vector instructions whose k-th output depends on the k-th inputs alone.
[[nodiscard]] constexpr bool is_element_wise(isa::opcode op) noexcept {
  using enum isa::opcode;
  switch (op) {
    case vvadd: case vvsub: case vvmul: case vvmax: case vrelu: case vtanh: case vsigm: case vrsu: case vrsl: return true;
    default: return false;
  }
}

/// One element of an element-wise instruction on 32-bit floats; b is the second source or the bound, ignored where there is none.
/// A NaN input gives NaN, in clamps too, so that a fault does not disappear.
template <isa::opcode Op>
  requires(is_element_wise(Op))
[[nodiscard]] constexpr float element(float a, [[maybe_unused]] float b = 0.0f) noexcept {
  using enum isa::opcode;
  if constexpr (Op == vvadd) return a + b;
  else if constexpr (Op == vvsub) return a - b;
  else if constexpr (Op == vvmul) return a * b;
  else if constexpr (Op == vvmax || Op == vrsl) return a > b || a != a ? a : b;
  else if constexpr (Op == vrsu) return a < b || a != a ? a : b;
  else if constexpr (Op == vrelu) return a < 0.0f ? 0.0f : a;
  else if constexpr (Op == vtanh) return static_cast<float>(constexpr_math::tanh(static_cast<double>(a)));
  else {
    // exp of a positive number could overflow.
    const double e = constexpr_math::exp(a < 0.0f ? static_cast<double>(a) : -static_cast<double>(a));
    return static_cast<float>((a < 0.0f ? e : 1.0) / (1.0 + e));
  }
}

/// What the semantics need of a core. Addresses and sizes are 64-bit, so that nothing wraps before it is checked. The check
/// functions return fault::none or what is wrong with [address, address + size), nothing where the size is 0; loads and stores follow a check.
template <class Core>
concept machine_core = requires(Core& core, const Core& constant, std::int64_t n, int r, std::byte b) {
  { constant.reg(r) } -> std::same_as<std::int32_t>;
  core.set_reg(r, std::int32_t{});
  { constant.event(r) } -> std::same_as<std::int64_t>;
  core.set_event(r, std::int64_t{});
  { constant.input_bits() } -> std::same_as<std::int32_t>;
  { constant.output_bits() } -> std::same_as<std::int32_t>;
  core.set_widths(std::int32_t{}, std::int32_t{});
  { constant.check_local_read(n, n) } -> std::same_as<fault>;
  { constant.check_local_write(n, n) } -> std::same_as<fault>;
  { constant.check_global_read(n, n) } -> std::same_as<fault>;
  { constant.check_global_write(n, n) } -> std::same_as<fault>;
  { constant.load_local(n) } -> std::same_as<std::byte>;
  core.store_local(n, b);
  { constant.load_global(n) } -> std::same_as<std::byte>;
  core.store_global(n, b);
  { constant.rows() } -> std::same_as<std::int64_t>;
  { constant.columns(r) } -> std::same_as<std::int64_t>;
  { constant.weight(r, n, n) } -> std::same_as<float>;
};

namespace semantics_parts {

inline constexpr std::int64_t float_bytes = 4;

template <machine_core Core>
[[nodiscard]] constexpr std::uint32_t load_word(const Core& core, std::int64_t address) {
  std::uint32_t bits = 0;
  for (int k = 0; k < 4; ++k) bits |= std::to_integer<std::uint32_t>(core.load_local(address + k)) << (8 * k);
  return bits;
}
template <machine_core Core>
[[nodiscard]] constexpr float load_float(const Core& core, std::int64_t address) {
  return std::bit_cast<float>(load_word(core, address));
}
template <machine_core Core>
constexpr void store_float(Core& core, std::int64_t address, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (int k = 0; k < 4; ++k) core.store_local(address + k, static_cast<std::byte>((bits >> (8 * k)) & 0xffu));
}

[[nodiscard]] constexpr std::int32_t wrap(std::int64_t value) noexcept {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(value)));
}

/// The address that a field stands for: the register's value, plus the offset where its select bit is set. Bit 0 is for rd, bit 1
/// for r1, bit 2 for the third register; offsets count elements for vector instructions, else bytes.
template <isa::opcode Op, isa::slot Slot, machine_core Core>
[[nodiscard]] constexpr std::int64_t address(const Core& core, const isa::instruction& i) {
  constexpr auto entry = isa::infos[static_cast<std::size_t>(Op)];
  const std::int64_t base = core.reg(isa::get(i, Slot));
  if constexpr (entry[isa::slot::word1] != isa::role::offset_select) {
    return base;
  } else {
    constexpr int bit = Slot == isa::slot::rd ? 0 : Slot == isa::slot::r1 ? 1 : 2;
    constexpr std::int64_t unit = entry.unit == isa::unit::vector ? float_bytes : 1;
    return ((i.word1 >> bit) & 1) != 0 ? base + unit * i.word2 : base;
  }
}

/// The first fault of several.
template <class... Faults>
[[nodiscard]] constexpr fault first(Faults... faults) noexcept {
  fault result = fault::none;
  ((result = result == fault::none ? faults : result), ...);
  return result;
}

/// The bytes that `count` elements with a stride reach: from the lowest to one past the highest.
struct extent {
  std::int64_t address;
  std::int64_t size;
};
[[nodiscard]] constexpr extent strided(std::int64_t base, std::int64_t count, std::int64_t stride) noexcept {
  if (count == 0) return {base, 0};
  const std::int64_t span = (count - 1) * stride * float_bytes;
  return span < 0 ? extent{base + span, float_bytes - span} : extent{base, span + float_bytes};
}

/// A destination may equal a source, or be apart from it.
[[nodiscard]] constexpr bool overlaps_partly(std::int64_t to, std::int64_t from, std::int64_t size) noexcept {
  return to != from && to < from + size && from < to + size;
}

/// A read of single elements with a stride: only they must have been written, not what lies between.
template <machine_core Core>
[[nodiscard]] constexpr fault check_strided(const Core& core, std::int64_t base, std::int64_t count, std::int64_t stride) {
  const auto reach = strided(base, count, stride);
  if (const auto f = core.check_local_write(reach.address, reach.size); f != fault::none) return f;
  for (std::int64_t k = 0; k < count; ++k)
    if (const auto f = core.check_local_read(base + k * stride * float_bytes, float_bytes); f != fault::none) return f;
  return fault::none;
}

template <isa::opcode Op, machine_core Core>
constexpr fault execute_scalar(Core& core, const isa::instruction& i) {
  using enum isa::opcode;
  const auto value = [&](int n) -> std::int64_t { return core.reg(n); };
  if constexpr (Op == sldi) core.set_reg(i.rd, i.word0);
  else if constexpr (Op == saddi) core.set_reg(i.rd, wrap(value(i.r1) + i.word0));
  else if constexpr (Op == smuli) core.set_reg(i.rd, wrap(value(i.r1) * i.word0));
  else if constexpr (Op == sadd) core.set_reg(i.rd, wrap(value(i.r1) + value(i.word0)));
  else if constexpr (Op == ssub) core.set_reg(i.rd, wrap(value(i.r1) - value(i.word0)));
  else if constexpr (Op == smul) core.set_reg(i.rd, wrap(value(i.r1) * value(i.word0)));
  else {
    static_assert(Op == sld);
    const std::int64_t from = value(i.r1) + i.word2;
    if (const auto f = core.check_global_read(from, 4); f != fault::none) return f;
    std::uint32_t bits = 0;
    for (int k = 0; k < 4; ++k) bits |= std::to_integer<std::uint32_t>(core.load_global(from + k)) << (8 * k);
    core.set_reg(i.rd, static_cast<std::int32_t>(bits));
  }
  return fault::none;
}

template <machine_core Core>
[[nodiscard]] constexpr fault check_widths(const Core& core) noexcept {
  if (core.input_bits() == 0) return fault::widths_not_set;
  return core.input_bits() == 32 && core.output_bits() == 32 ? fault::none : fault::unsupported_width;
}

template <machine_core Core>
constexpr fault execute_mvmul(Core& core, const isa::instruction& i) {
  const std::int64_t in = core.reg(i.r1);
  const std::int64_t out = core.reg(i.rd);
  const std::int64_t rows = core.rows();
  const std::int64_t columns = core.columns(i.word2);
  if (const auto f = first(check_widths(core), core.check_local_read(in, rows * float_bytes),
                           core.check_local_write(out, columns * float_bytes));
      f != fault::none)
    return f;
  // All inputs are read before an output is written, so that the two may overlap.
  std::vector<float> sums(static_cast<std::size_t>(columns), 0.0f);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float x = load_float(core, in + r * float_bytes);
    for (std::int64_t c = 0; c < columns; ++c) sums[static_cast<std::size_t>(c)] += x * core.weight(i.word2, r, c);
  }
  for (std::int64_t c = 0; c < columns; ++c) {
    const float sum = sums[static_cast<std::size_t>(c)];
    store_float(core, out + c * float_bytes, i.word1 != 0 ? element<isa::opcode::vrelu>(sum) : sum);
  }
  return fault::none;
}

template <isa::opcode Op, machine_core Core>
constexpr fault execute_vector(Core& core, const isa::instruction& i) {
  using enum isa::opcode;
  using isa::role;
  using isa::slot;
  constexpr auto entry = isa::infos[static_cast<std::size_t>(Op)];
  if (const auto f = check_widths(core); f != fault::none) return f;
  const std::int64_t length = i.word3;
  const std::int64_t out = address<Op, slot::rd>(core, i);
  const std::int64_t a = address<Op, slot::r1>(core, i);

  if constexpr (entry.elements == isa::element_class::setbw_integer) {
    return fault::integers_only;
  } else if constexpr (is_element_wise(Op)) {
    constexpr bool two_sources = entry[slot::word0] == role::local_source;
    std::int64_t b = out;
    float bound = 0.0f;
    if constexpr (two_sources) {
      b = address<Op, slot::word0>(core, i);
      if (const auto f = core.check_local_read(b, length * float_bytes); f != fault::none) return f;
    } else if constexpr (entry[slot::word0] == role::bound) {
      bound = std::bit_cast<float>(core.reg(i.word0));
    }
    if (const auto f = first(core.check_local_read(a, length * float_bytes), core.check_local_write(out, length * float_bytes));
        f != fault::none)
      return f;
    if (overlaps_partly(out, a, length * float_bytes) || overlaps_partly(out, b, length * float_bytes)) return fault::overlap;
    for (std::int64_t k = 0; k < length * float_bytes; k += float_bytes)
      store_float(core, out + k, element<Op>(load_float(core, a + k), two_sources ? load_float(core, b + k) : bound));
  } else if constexpr (Op == vvdmul) {
    const std::int64_t b = address<Op, slot::word0>(core, i);
    if (length == 0) return fault::no_elements;
    if (const auto f = first(core.check_local_read(a, length * float_bytes), core.check_local_read(b, length * float_bytes),
                             core.check_local_write(out, float_bytes));
        f != fault::none)
      return f;
    float sum = 0.0f;
    for (std::int64_t k = 0; k < length * float_bytes; k += float_bytes) sum += load_float(core, a + k) * load_float(core, b + k);
    store_float(core, out, sum);
  } else if constexpr (Op == vavg) {
    const std::int64_t stride = core.reg(i.word0);
    if (length == 0) return fault::no_elements;
    if (const auto f = first(check_strided(core, a, length, stride), core.check_local_write(out, float_bytes)); f != fault::none)
      return f;
    float sum = 0.0f;
    for (std::int64_t k = 0; k < length; ++k) sum += load_float(core, a + k * stride * float_bytes);
    store_float(core, out, sum / static_cast<float>(length));
  } else if constexpr (Op == vmv) {
    const std::int64_t stride = core.reg(i.word0);
    if (const auto f = first(check_strided(core, a, length, stride), core.check_local_write(out, length * float_bytes));
        f != fault::none)
      return f;
    // In place and forwards, every element is read before it is overwritten.
    const auto reach = strided(a, length, stride);
    if (out < reach.address + reach.size && reach.address < out + length * float_bytes && (out != a || stride < 1))
      return fault::overlap;
    for (std::int64_t k = 0; k < length; ++k)
      store_float(core, out + k * float_bytes, load_float(core, a + k * stride * float_bytes));
  } else {
    static_assert(Op == vsoftmax);
    if (const auto f = first(core.check_local_read(a, length * float_bytes), core.check_local_write(out, length * float_bytes));
        f != fault::none)
      return f;
    if (overlaps_partly(out, a, length * float_bytes)) return fault::overlap;
    if (length == 0) return fault::none;
    // Shifted by the largest element, so that exp cannot overflow.
    float largest = load_float(core, a);
    for (std::int64_t k = 1; k < length; ++k) largest = element<vvmax>(largest, load_float(core, a + k * float_bytes));
    float sum = 0.0f;
    for (std::int64_t k = 0; k < length * float_bytes; k += float_bytes) {
      const auto e = static_cast<float>(constexpr_math::exp(static_cast<double>(load_float(core, a + k) - largest)));
      store_float(core, out + k, e);
      sum += e;
    }
    for (std::int64_t k = 0; k < length * float_bytes; k += float_bytes)
      store_float(core, out + k, load_float(core, out + k) / sum);
  }
  return fault::none;
}

/// ld, st, lldi, lmv: what concerns one core and the global memory.
template <isa::opcode Op, machine_core Core>
constexpr fault execute_copy(Core& core, const isa::instruction& i) {
  using enum isa::opcode;
  using isa::slot;
  const std::int64_t size = i.word3;
  const std::int64_t to = address<Op, slot::rd>(core, i);
  if constexpr (Op == lldi) {
    if (const auto f = core.check_local_write(to, size); f != fault::none) return f;
    for (std::int64_t k = 0; k < size; ++k) core.store_local(to + k, static_cast<std::byte>(i.word0 & 0xff));
  } else {
    const std::int64_t from = address<Op, slot::r1>(core, i);
    if constexpr (Op == ld) {
      if (const auto f = first(core.check_global_read(from, size), core.check_local_write(to, size)); f != fault::none) return f;
      for (std::int64_t k = 0; k < size; ++k) core.store_local(to + k, core.load_global(from + k));
    } else if constexpr (Op == st) {
      if (const auto f = first(core.check_local_read(from, size), core.check_global_write(to, size)); f != fault::none) return f;
      for (std::int64_t k = 0; k < size; ++k) core.store_global(to + k, core.load_local(from + k));
    } else {
      static_assert(Op == lmv);
      if (const auto f = first(core.check_local_read(from, size), core.check_local_write(to, size)); f != fault::none) return f;
      if (from < to + size && to < from + size) return fault::overlap;
      for (std::int64_t k = 0; k < size; ++k) core.store_local(to + k, core.load_local(from + k));
    }
  }
  return fault::none;
}

}  // namespace semantics_parts

/// True for the instructions that concern a second core, or may block: `execute` does not run them.
[[nodiscard]] constexpr bool is_communication(isa::opcode op) noexcept {
  using enum isa::opcode;
  return op == send || op == recv || op == wait || op == sync;
}

/// Executes one instruction of one core. Requires fields that isa::find_fault accepts.
///
/// Guarantees: on a fault, neither registers nor memory have changed.
template <isa::opcode Op, machine_core Core>
  requires(!is_communication(Op))
constexpr fault execute(Core& core, const isa::instruction& i) {
  constexpr auto entry = isa::infos[static_cast<std::size_t>(Op)];
  if constexpr (Op == isa::opcode::nop) {
    return fault::none;
  } else if constexpr (Op == isa::opcode::setbw) {
    core.set_widths(i.word1, i.word2);
    return fault::none;
  } else if constexpr (Op == isa::opcode::mvmul) {
    return semantics_parts::execute_mvmul(core, i);
  } else if constexpr (entry.unit == isa::unit::scalar) {
    return semantics_parts::execute_scalar<Op>(core, i);
  } else if constexpr (entry.unit == isa::unit::vector) {
    return semantics_parts::execute_vector<Op>(core, i);
  } else {
    return semantics_parts::execute_copy<Op>(core, i);
  }
}

/// The meeting of a send and its recv: copies, or says why not.
template <machine_core Sender, machine_core Receiver>
constexpr fault exchange(const Sender& sender, const isa::instruction& send, Receiver& receiver, const isa::instruction& recv) {
  using semantics_parts::address;
  if (send.word3 != recv.word3) return fault::size_mismatch;
  const std::int64_t size = send.word3;
  const std::int64_t from = address<isa::opcode::send, isa::slot::r1>(sender, send);
  const std::int64_t to = address<isa::opcode::recv, isa::slot::rd>(receiver, recv);
  if (const auto f = semantics_parts::first(sender.check_local_read(from, size), receiver.check_local_write(to, size));
      f != fault::none)
    return f;
  for (std::int64_t k = 0; k < size; ++k) receiver.store_local(to + k, sender.load_local(from + k));
  return fault::none;
}

/// What a wait finds.
enum class wait_state : std::uint8_t { passes, blocks, overshoots };
[[nodiscard]] constexpr wait_state judge_wait(std::int64_t count, std::int32_t expected) noexcept {
  return count == expected ? wait_state::passes : count < expected ? wait_state::blocks : wait_state::overshoots;
}

}  // namespace raptor::sim
