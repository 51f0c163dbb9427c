#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "raptor/emit/registers.hpp"
#include "raptor/isa/build.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/memory/plan.hpp"
#include "raptor/program/effects.hpp"
#include "raptor/program/unrolled.hpp"
#include "raptor/support/error.hpp"

/// Instructions from the image, core by core, as a stream: the unrolled program is never in memory.
namespace raptor::emit {

struct stream_options {
  std::int64_t most_operations = 200'000'000;  ///< of one core, all iterations: beyond it the program is refused
};

namespace stream_parts {

/// Everything that the fast path relies on, once for each operation of the text. Errors: malformed, capacity.
inline void check_operations(const memory::image& planned, std::size_t core, const program::unrolled& body, bool& uses_global) {
  const auto& p = planned.bound;
  const auto& own = p.cores[core];
  const std::int64_t width = memory::element_bytes(p.chip);
  body.each_range([&](const program::operation& o, const auto& ranges, std::size_t item) {
    const auto fail = [&](const std::string& what) {
      throw error(error_code::malformed, std::string(isa::mnemonic(o.op)) + ": " + what,
                  "core " + std::to_string(core) + ", item " + std::to_string(item));
    };
    const auto kind = program::pattern_of(o.op);
    if (kind == program::pattern::invalid) fail("not an operation of a program");
    if (kind != program::pattern::event && (o.length < 1 || o.length > std::numeric_limits<std::int32_t>::max() / width))
      fail("length " + std::to_string(o.length));
    if (o.stride < std::numeric_limits<std::int32_t>::min() || o.stride > std::numeric_limits<std::int32_t>::max())
      fail("stride " + std::to_string(o.stride));
    if (program::is_communication(o.op) && o.op != isa::opcode::wait &&
        (o.peer < 0 || static_cast<std::size_t>(o.peer) >= p.cores.size()))
      fail("peer " + std::to_string(o.peer) + " of " + std::to_string(p.cores.size()) + " cores");
    if (kind == program::pattern::event && (o.event < 0 || o.event >= isa::event_count)) fail("event register " + std::to_string(o.event));
    for (const auto& e : program::effects_of(p, own, o)) {
      const std::size_t place = e.where == &o.d ? 0 : e.where == &o.a ? 1 : 2;
      if (e.where->buffer >= p.buffers.size()) fail("buffer " + std::to_string(e.where->buffer) + " does not exist");
      const auto& buffer = p.buffers[e.where->buffer];
      const bool global = (o.op == isa::opcode::ld && place == 1) || (o.op == isa::opcode::st && place == 0);
      if (buffer.core != (global ? program::global_memory : static_cast<std::int32_t>(core)))
        fail("buffer '" + buffer.name + "' lies in another memory");
      if (checked::add(ranges[place].low, e.low()) < 0 || checked::add(ranges[place].high, e.high()) > buffer.elements)
        fail("reaches outside buffer '" + buffer.name + "' of " + std::to_string(buffer.elements) + " elements");
      uses_global |= global;
    }
  });
}

}  // namespace stream_parts

/// Calls `sink(const isa::instruction&)` for each instruction of a core's stream, in order; returns how many there were.
///
/// Guarantees: a core without operations has an empty stream; any other stream starts with setbw of the program's element width and ends
/// with a matrix, vector or transfer instruction; offsets are 0; an sldi whose value a register already holds is left out; global
/// addresses stand in an even register whose successor holds 0; ld and st never name r31; the address register of send
/// stands in both rd and r1; nop, sld, sadd, ssub, smul do not occur. Errors: malformed for an operation that reaches
/// outside its buffers or contradicts the program; capacity beyond `most_operations`.
/// `belongs(first, origin)` is told where instructions of another origin begin (index into program::origins, or none), so that
/// instructions can be named after operators.
/// Cost: linear in the stream, some 20 ns an instruction; memory independent of the loop counts. Deterministic.
template <class Sink, class Belongs>
std::int64_t emit_core(const memory::image& planned, std::size_t core, Sink&& sink, const stream_options& options, Belongs&& belongs) {
  namespace build = isa::build;
  using enum isa::opcode;
  const auto& p = planned.bound;
  const std::string name = "core " + std::to_string(core);
  const program::unrolled body(p.cores.at(core).body, name);
  if (body.size() == 0) return 0;
  if (body.size() > options.most_operations)
    throw error(error_code::capacity, "the stream has " + std::to_string(body.size()) + " operations, at most " +
                                          std::to_string(options.most_operations) + " are emitted", name);
  bool uses_global = false;
  stream_parts::check_operations(planned, core, body, uses_global);

  const std::int64_t width = memory::element_bytes(p.chip);
  const auto bits = static_cast<std::int32_t>(p.chip.element_bits);
  const auto weight_bits = checked::narrow<std::int32_t>(p.chip.weight_bits);
  constexpr std::uint32_t not_31 = 0x7fffffffu;
  std::int64_t count = 0;
  const auto put = [&](const isa::instruction& i) {
    ++count;
    sink(i);
  };
  register_file registers(uses_global);
  const auto load = [&](std::int32_t value) {
    return [&put, value](std::uint8_t r) { put(build::sldi(r, value)); };
  };
  const auto number = [&](std::int64_t value) {
    const auto word = static_cast<std::int32_t>(value);
    return registers.number(word, load(word));
  };

  put(build::setbw(bits, bits));
  std::uint32_t origin = program::none;
  std::size_t item = std::numeric_limits<std::size_t>::max();
  body.walk([&](const program::step& s) {
    const program::operation& o = *s.op;
    if (s.item != item) {
      item = s.item;
      const std::uint32_t next = p.cores[core].body[item].origin;
      if (next != origin) belongs(count == 1 ? std::int64_t{0} : count, next);
      origin = next;
    }
    registers.next_instruction();
    const auto element = [&](const program::place& where, std::size_t k) { return planned.addresses[where.buffer] / width + s.offsets[k]; };
    const auto local = [&](const program::place& where, std::size_t k, std::uint32_t allowed = ~0u) {
      const auto at = element(where, k);
      return registers.local(at, load(static_cast<std::int32_t>(at * width)), allowed);
    };
    const auto global = [&](const program::place& where, std::size_t k) {
      const auto at = element(where, k);
      return registers.global(at, load(static_cast<std::int32_t>(at * width)));
    };
    const auto length = static_cast<std::int32_t>(o.length);
    const auto bytes = static_cast<std::int32_t>(o.length * width);
    switch (o.op) {
      case mvmul: {
        const auto a = local(o.a, 1), d = local(o.d, 0);
        put(build::mvmul(d, a, static_cast<std::int32_t>(o.group), weight_bits, o.bits != 0 ? 1 : 0));
        break;
      }
      case vvadd: case vvsub: case vvmul: case vvdmul: case vvmax: case vvsll: case vvsra: {
        const auto a = local(o.a, 1), b = local(o.b, 2), d = local(o.d, 0);
        put(build::vector(o.op, d, a, b, length));
        break;
      }
      case vrelu: case vtanh: case vsigm: case vsoftmax: {
        const auto a = local(o.a, 1), d = local(o.d, 0);
        put(build::vector(o.op, d, a, length));
        break;
      }
      case vmv: case vavg: {
        const auto a = local(o.a, 1), d = local(o.d, 0), stride = number(o.stride);
        put(build::vector(o.op, d, a, stride, length));
        break;
      }
      case vrsu: case vrsl: {
        const auto a = local(o.a, 1), d = local(o.d, 0), bound = number(std::bit_cast<std::int32_t>(o.bits));
        put(build::vector(o.op, d, a, bound, length));
        break;
      }
      case ld: {
        const auto a = global(o.a, 1), d = local(o.d, 0, not_31);
        put(build::ld(d, a, bytes));
        break;
      }
      case st: {
        const auto a = local(o.a, 1, not_31), d = global(o.d, 0);
        put(build::st(d, a, bytes));
        break;
      }
      case lmv: {
        const auto a = local(o.a, 1), d = local(o.d, 0);
        put(build::lmv(d, a, bytes));
        break;
      }
      case lldi: {
        // Equal bytes: one fill. Any other element: zeros, raised to it or lowered to it. Judged on 32 bits, so that a program of narrow
        // elements has the instructions of its 32-bit twin.
        const std::uint32_t byte = o.bits & 0xffu;
        const auto d = local(o.d, 0);
        if (o.bits == byte * 0x01010101u) {
          put(build::lldi(d, static_cast<std::int32_t>(byte), bytes));
          break;
        }
        const bool comparable = (o.bits & 0x7fffffffu) <= 0x7f800000u && o.bits != 0x80000000u;
        if (comparable) {
          put(build::lldi(d, 0, bytes));
          const auto bound = number(std::bit_cast<std::int32_t>(o.bits));
          put(build::vector((o.bits & 0x80000000u) != 0 ? vrsu : vrsl, d, d, bound, length));
          break;
        }
        // Negative zero and no numbers: the first element byte by byte, then a gather with stride 0 spreads it.
        if (width != 4) throw error(error_code::unsupported, "a fill with negative zero or with no number needs elements of 32 bits", name);
        for (std::int64_t k = 0; k < width; ++k) {
          const auto byte_of = static_cast<std::int32_t>(o.bits >> (8 * k) & 0xffu);
          put(build::lldi(k == 0 ? d : number((element(o.d, 0)) * width + k), byte_of, 1));
        }
        if (length > 1) {
          const auto rest = number((element(o.d, 0) + 1) * width), stride = number(0);
          put(build::vmv(rest, d, stride, length - 1));
        }
        break;
      }
      case send: put(build::send(local(o.a, 1), o.peer, bytes)); break;
      case recv: put(build::recv(local(o.d, 0), o.peer, bytes)); break;
      case wait: put(build::wait(o.event, o.count)); break;
      case sync: put(build::sync(o.event, o.peer)); break;
      default: ensure(false, "an operation that check_operations refuses", name);
    }
  });
  return count;
}

template <class Sink>
std::int64_t emit_core(const memory::image& planned, std::size_t core, Sink&& sink, const stream_options& options = {}) {
  return emit_core(planned, core, std::forward<Sink>(sink), options, [](std::int64_t, std::uint32_t) {});
}

/// A core's stream in memory.
[[nodiscard]] inline std::vector<isa::instruction> stream_of(const memory::image& planned, std::size_t core, const stream_options& options = {}) {
  std::vector<isa::instruction> stream;
  emit_core(planned, core, [&](const isa::instruction& i) { stream.push_back(i); }, options);
  return stream;
}

}  // namespace raptor::emit
