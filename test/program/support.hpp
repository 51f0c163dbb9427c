#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "raptor/emit/weights.hpp"
#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/program/unrolled.hpp"

/// Programs by hand, random programs, and a direct interpreter of programs: what the back end's tests compare with.
namespace raptor::test {

using program::item;
using program::operation;
using program::place;
using isa::opcode;

inline affine loop_variable(std::uint32_t v) { return affine(symbol{symbol::kind::loop, v}); }

inline operation make(opcode op, place d, place a, place b, std::int64_t length) {
  operation o;
  o.op = op, o.d = std::move(d), o.a = std::move(a), o.b = std::move(b), o.length = length;
  return o;
}
inline operation make(opcode op, place d, place a, std::int64_t length) { return make(op, std::move(d), std::move(a), {}, length); }
inline operation fill(place d, float value, std::int64_t length) {
  auto o = make(opcode::lldi, std::move(d), {}, length);
  o.bits = std::bit_cast<std::uint32_t>(value);
  return o;
}
inline operation clamp(opcode op, place d, place a, float bound, std::int64_t length) {
  auto o = make(op, std::move(d), std::move(a), length);
  o.bits = std::bit_cast<std::uint32_t>(bound);
  return o;
}
inline operation send_to(std::int32_t peer, place a, std::int64_t length) {
  auto o = make(opcode::send, {}, std::move(a), length);
  o.peer = peer;
  return o;
}
inline operation receive_from(std::int32_t peer, place d, std::int64_t length) {
  auto o = make(opcode::recv, std::move(d), {}, length);
  o.peer = peer;
  return o;
}
inline operation sync_to(std::int32_t peer, std::int32_t event) {
  operation o;
  o.op = opcode::sync, o.peer = peer, o.event = event;
  return o;
}
inline operation wait_for(std::int32_t event, std::int32_t count) {
  operation o;
  o.op = opcode::wait, o.event = event, o.count = count;
  return o;
}
inline item repeat(std::uint32_t variable, std::int64_t count, std::vector<item> body) {
  return {program::loop{variable, count, std::move(body)}, program::none};
}

/// A chip of small cores: 8 × 8 crossbars.
inline program::program empty_program(std::size_t cores) {
  program::program p;
  p.name = "test";
  p.chip.core_count = static_cast<std::int64_t>(cores);
  p.chip.crossbars_per_core = 16;
  p.chip.crossbar_rows = p.chip.crossbar_columns = p.chip.weight_columns = 8;
  p.cores.resize(cores);
  return p;
}
inline std::uint32_t add_buffer(program::program& p, std::int32_t core, std::int64_t elements, std::string name = {}) {
  if (name.empty()) name = "b" + std::to_string(p.buffers.size());
  p.buffers.push_back({std::move(name), core, elements, program::none, 0, nullptr});
  return static_cast<std::uint32_t>(p.buffers.size() - 1);
}
inline model::constant_ptr make_constant(std::vector<float> values) {
  auto c = std::make_shared<model::constant>();
  c->values = std::move(values);
  return c;
}
inline std::uint32_t add_constant(program::program& p, std::vector<float> values, std::string name = {}) {
  const auto b = add_buffer(p, program::global_memory, static_cast<std::int64_t>(values.size()), std::move(name));
  p.buffers[b].data = make_constant(std::move(values));
  return b;
}
inline std::uint32_t add_input(program::program& p, std::int64_t elements, std::string name) {
  const auto b = add_buffer(p, program::global_memory, elements, name);
  p.inputs.push_back({std::move(name), {1, elements}, b});
  return b;
}
inline std::uint32_t add_output(program::program& p, std::int64_t elements, std::string name) {
  const auto b = add_buffer(p, program::global_memory, elements, name);
  p.outputs.push_back({std::move(name), {1, elements}, b});
  return b;
}
/// An array group of a core with the given weights, row major.
inline std::uint32_t add_group(program::program& p, std::size_t core, std::int64_t rows, std::int64_t columns, std::vector<float> values) {
  lowering::weight_matrix m;
  m.rows = rows, m.columns = columns;
  m.sources.push_back(make_constant(std::move(values)));
  m.blocks.push_back({0, 0, 0, rows, columns, 0, columns, 1});
  p.weights.push_back(std::move(m));
  p.cores[core].groups.push_back(static_cast<std::uint32_t>(p.weights.size() - 1));
  return static_cast<std::uint32_t>(p.cores[core].groups.size() - 1);
}
inline void add(program::program& p, std::size_t core, operation o) { p.cores[core].body.push_back({std::move(o), program::none}); }
inline void add(program::program& p, std::size_t core, item i) { p.cores[core].body.push_back(std::move(i)); }

/// Executes a program over named buffers, with no addresses and no instructions: views share storage, everything else is apart.
/// One core after the other as far as it gets. Returns the outputs, in order. Only operations whose result does not depend
/// on an order of summation or a transcendental function.
inline std::vector<std::vector<float>> interpret(const program::program& p, const std::vector<std::vector<float>>& inputs) {
  std::vector<std::vector<float>> memory(p.buffers.size());
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    memory[b].assign(static_cast<std::size_t>(p.buffers[b].elements), std::bit_cast<float>(0x7fc00000u));
    if (p.buffers[b].data) std::copy(p.buffers[b].data->floats().begin(), p.buffers[b].data->floats().end(), memory[b].begin());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) std::copy(inputs[i].begin(), inputs[i].end(), memory[p.inputs[i].buffer].begin());
  std::map<std::uint32_t, std::vector<float>> weights;
  struct pending {
    const operation* op;
    std::array<std::int64_t, 3> offsets;
  };
  std::vector<std::vector<pending>> work(p.cores.size());
  std::vector<std::size_t> next(p.cores.size(), 0);
  for (std::size_t c = 0; c < p.cores.size(); ++c) {
    const program::unrolled body(p.cores[c].body);
    body.walk([&](const program::step& s) { work[c].push_back({s.op, s.offsets}); });
  }
  std::map<std::pair<std::size_t, std::size_t>, std::deque<std::vector<float>>> mail;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t c = 0; c < p.cores.size(); ++c)
      for (; next[c] < work[c].size(); ++next[c], moved = true) {
        const auto& [op, offsets] = work[c][next[c]];
        const operation& o = *op;
        const auto at = [&, &where = offsets](const place& x, std::size_t k) {
          const auto l = program::locate(p, x.buffer);
          return memory.at(l.root).data() + l.offset + where[k];
        };
        const auto n = static_cast<std::size_t>(o.length);
        const auto each = [&](const auto& f) {
          for (std::size_t k = 0; k < n; ++k) f(k);
        };
        if (o.op == opcode::recv) {
          auto& box = mail[{static_cast<std::size_t>(o.peer), c}];
          if (box.empty()) break;
          std::copy(box.front().begin(), box.front().end(), at(o.d, 0));
          box.pop_front();
          continue;
        }
        if (o.op == opcode::send) {
          mail[{c, static_cast<std::size_t>(o.peer)}].emplace_back(at(o.a, 1), at(o.a, 1) + n);
          continue;
        }
        if (program::is_communication(o.op)) continue;
        float* d = at(o.d, 0);
        const float* a = o.op == opcode::lldi ? nullptr : at(o.a, 1);
        const float* b = program::pattern_of(o.op) == program::pattern::elementwise2 ? at(o.b, 2) : nullptr;
        const float bound = std::bit_cast<float>(o.bits);
        switch (o.op) {
          case opcode::vvadd: each([&](std::size_t k) { d[k] = a[k] + b[k]; }); break;
          case opcode::vvsub: each([&](std::size_t k) { d[k] = a[k] - b[k]; }); break;
          case opcode::vvmul: each([&](std::size_t k) { d[k] = a[k] * b[k]; }); break;
          case opcode::vvmax: each([&](std::size_t k) { d[k] = std::max(a[k], b[k]); }); break;
          case opcode::vrelu: each([&](std::size_t k) { d[k] = std::max(a[k], 0.0f); }); break;
          case opcode::vrsu: each([&](std::size_t k) { d[k] = std::min(a[k], bound); }); break;
          case opcode::vrsl: each([&](std::size_t k) { d[k] = std::max(a[k], bound); }); break;
          case opcode::lldi: each([&](std::size_t k) { d[k] = bound; }); break;
          case opcode::vmv: each([&](std::size_t k) { d[k] = a[static_cast<std::int64_t>(k) * o.stride]; }); break;
          case opcode::lmv: case opcode::ld: case opcode::st: each([&](std::size_t k) { d[k] = a[k]; }); break;
          case opcode::mvmul: {
            const auto index = p.cores[c].groups.at(o.group);
            const auto size = emit::padded_size(p.weights[index], p.chip);
            auto& m = weights[index];
            if (m.empty()) m = emit::materialize(p.weights[index], size.rows, size.columns);
            std::vector<float> sums(static_cast<std::size_t>(size.columns), 0.0f);
            for (std::size_t i = 0; i < static_cast<std::size_t>(size.rows); ++i)
              for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += a[i] * m[i * sums.size() + j];
            for (std::size_t j = 0; j < sums.size(); ++j) d[j] = o.bits != 0 ? std::max(sums[j], 0.0f) : sums[j];
            break;
          }
          default: throw std::logic_error("the interpreter does not know this operation");
        }
      }
  }
  for (std::size_t c = 0; c < p.cores.size(); ++c)
    if (next[c] != work[c].size()) throw std::logic_error("the program blocks");
  std::vector<std::vector<float>> outputs;
  for (const auto& port : p.outputs) outputs.push_back(memory[port.buffer]);
  return outputs;
}

/// A random program that is right: every read was written, all messages match in one global order. It is made of what binding,
/// planning and emission must get right: loops of several shapes, results in the place of operands and just not, copies
/// whole and partial, values that live long and short, fills, gathers, matrix products, messages.
class random_program {
 public:
  explicit random_program(std::uint32_t seed, std::size_t cores = 3, std::size_t steps = 60) : random_(seed) {
    p_ = empty_program(cores);
    live_.resize(cores);
    next_variable_.assign(cores, 0);
    p_.origins = {"first", "second \"quoted\""};
    for (std::size_t c = 0; c < cores; ++c) {
      const auto input = add_input(p_, 32, "x" + std::to_string(c));
      const auto table = add_constant(p_, some_values(c == 0 ? 8 : 32), "t" + std::to_string(c));
      const auto x = fresh(c, 32), t = fresh(c, 32);
      add(p_, c, make(opcode::ld, {x, 0}, {input, 0}, 32));
      if (c == 0) add(p_, c, fill({t, 0}, -1.5f, 32));
      add(p_, c, make(opcode::ld, {t, 0}, {table, 0}, p_.buffers[table].elements));
      live_[c] = {x, t};
      add_group(p_, c, 6, 10, some_values(60));
      if (c != 0) add_group(p_, c, 6, 10, std::vector<float>(60, 0.5f));
    }
    for (std::size_t s = 0; s < steps; ++s) one_step(pick(cores));
    for (std::size_t c = 0; c < cores; ++c) {
      const auto out = add_output(p_, static_cast<std::int64_t>(32 * live_[c].size()), "y" + std::to_string(c));
      for (std::size_t k = 0; k < live_[c].size(); ++k)
        add(p_, c, make(opcode::st, {out, static_cast<std::int64_t>(32 * k)}, {live_[c][k], 0}, 32));
    }
  }
  [[nodiscard]] const program::program& get() const { return p_; }
  [[nodiscard]] std::vector<std::vector<float>> inputs() {
    std::vector<std::vector<float>> result;
    for (std::size_t k = 0; k < p_.inputs.size(); ++k) result.push_back(some_values(32));
    return result;
  }

 private:
  std::mt19937 random_;
  program::program p_;
  std::vector<std::vector<std::uint32_t>> live_;  ///< buffers of 32 written elements a core
  std::vector<std::uint32_t> next_variable_;

  std::size_t pick(std::size_t n) { return random_() % n; }
  std::vector<float> some_values(std::size_t n) {
    std::vector<float> values(n);
    for (auto& v : values) v = static_cast<float>(static_cast<int>(pick(65)) - 32) / 16.0f;
    return values;
  }
  std::uint32_t fresh(std::size_t c, std::int64_t n) { return add_buffer(p_, static_cast<std::int32_t>(c), n); }
  std::uint32_t any(std::size_t c) { return live_[c][pick(live_[c].size())]; }
  void push(std::size_t c, item i) {
    if (pick(4) == 0) i.origin = static_cast<std::uint32_t>(pick(2));
    p_.cores[c].body.push_back(std::move(i));
  }
  void keep(std::size_t c, std::uint32_t b) {
    if (live_[c].size() < 4) live_[c].push_back(b);
    else live_[c][pick(live_[c].size())] = b;
  }
  void one_step(std::size_t c) {
    constexpr opcode binary[] = {opcode::vvadd, opcode::vvsub, opcode::vvmax};
    const auto x = any(c), y = any(c), z = fresh(c, 32);
    const auto op = binary[pick(3)];
    const auto v = next_variable_[c]++;
    const affine i = loop_variable(v);
    switch (pick(14)) {
      case 0: push(c, {make(op, {z, 0}, {x, 0}, {y, 0}, 32)}); break;
      case 1: push(c, repeat(v, 4, {{make(op, {z, i * 8}, {x, i * 8}, {y, i * 8}, 8)}})); break;
      case 2: push(c, repeat(v, 4, {{make(op, {z, i * 8}, {x, 24 - i * 8}, {y, i * 8}, 8)}})); break;  // reversed: not in place
      case 3: push(c, repeat(v, 4, {{make(op, {z, 24 - i * 8}, {x, 24 - i * 8}, {y, 0}, 8)}})); break;
      case 4:  // several operations on the same chunk
        push(c, repeat(v, 2, {{make(opcode::vvmul, {z, i * 16}, {x, i * 16}, {y, i * 16}, 16)},
                              {clamp(opcode::vrsu, {z, i * 16}, {z, i * 16}, 3.5f, 16)},
                              {clamp(opcode::vrsl, {z, i * 16 + 4}, {z, i * 16 + 4}, -2.25f, 12)}}));
        break;
      case 5: {  // a nest, the chunks interleaved
        const auto w = next_variable_[c]++;
        const affine at = i * 4 + loop_variable(w) * 16;
        push(c, repeat(v, 4, {repeat(w, 2, {{make(op, {z, at}, {x, at}, {y, at}, 4)}, {make(opcode::vrelu, {z, at}, {z, at}, 4)}})}));
        break;
      }
      case 6: push(c, {make(opcode::lmv, {z, 0}, {x, 0}, 32)}); break;
      case 7:
        push(c, {make(opcode::lmv, {z, 16}, {x, 0}, 16)});
        push(c, {make(opcode::lmv, {z, 0}, {y, 16}, 16)});
        break;
      case 8:
        push(c, {fill({z, 0}, pick(2) != 0 ? 0.0f : 1.25f, 32)});
        push(c, repeat(v, 5, {{make(op, {z, i * 4}, {x, i * 4}, {y, i * 4 + 4}, 4)}}));
        break;
      case 9: {  // gathers: by a stride, and backwards
        auto forward = make(opcode::vmv, {z, 0}, {x, 0}, 16), backward = make(opcode::vmv, {z, 16}, {y, 31}, 16);
        forward.stride = 2, backward.stride = -1;
        push(c, {forward}), push(c, {backward});
        break;
      }
      case 10: {  // overlapping chunks: an iteration reads what the one before wrote around
        push(c, {make(opcode::lmv, {z, 0}, {x, 0}, 8)});
        push(c, repeat(v, 3, {{make(op, {z, i * 8 + 8}, {x, i * 8 + 8}, {z, i * 8}, 8)}}));
        break;
      }
      case 11: {  // clamp, zero the tail, multiply: columns beyond the used ones are written too
        const auto in = fresh(c, 8), out = fresh(c, 16);
        push(c, {fill({z, 0}, 0.0f, 32)});
        push(c, {fill({in, 6}, 0.0f, 2)});
        std::vector<item> body{{clamp(opcode::vrsu, {in, 0}, {x, i * 8}, 4.0f, 6)}, {clamp(opcode::vrsl, {in, 0}, {in, 0}, -4.0f, 6)}};
        auto product = make(opcode::mvmul, {out, 0}, {in, 0}, 10);
        product.group = static_cast<std::uint32_t>(pick(p_.cores[c].groups.size())), product.bits = static_cast<std::uint32_t>(pick(2));
        body.push_back({product});
        body.push_back({make(opcode::lmv, {z, i * 8}, {out, 2}, 8)});
        push(c, repeat(v, 4, std::move(body)));
        break;
      }
      case 12: {  // silu-like: the operand is read twice, the second time where the result is written
        const auto t = fresh(c, 8);
        push(c, repeat(v, 4, {{clamp(opcode::vrsu, {t, 0}, {x, i * 8}, 0.75f, 8)}, {make(op, {z, i * 8}, {x, i * 8}, {t, 0}, 8)}}));
        break;
      }
      default: {
        const auto to = pick(p_.cores.size());
        if (to == c) {
          push(c, {make(opcode::vrelu, {z, 0}, {x, 0}, 32)});
          break;
        }
        const auto received = fresh(to, 32);
        const auto w = next_variable_[to]++;
        push(c, repeat(v, 2, {{send_to(static_cast<std::int32_t>(to), {x, i * 16}, 16)}}));
        push(to, repeat(w, 2, {{receive_from(static_cast<std::int32_t>(c), {received, loop_variable(w) * 16}, 16)}}));
        keep(to, received);
        return;
      }
    }
    keep(c, z);
  }
};

}  // namespace raptor::test
