#pragma once

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../program/support.hpp"
#include "raptor/schedule/schedule.hpp"

/// Random programs of several stages whose cores meet by rendezvous and through global memory, and an interpreter that repeats a program under
/// a schedule of one's choice, with a host that places the next inputs as soon as it may.
namespace raptor::test {

/// A schedule that says only which core has which stage.
inline schedule::schedule stages_of(const std::vector<std::uint32_t>& stage) {
  schedule::schedule s;
  for (std::uint32_t c = 0; c < stage.size(); ++c) {
    schedule::placed at;
    at.core = c, at.stage = stage[c];
    s.place.push_back(at);
  }
  return s;
}

/// Built along one global order: every load of a channel comes after its store, every message is sent and received at one place.
class staged_program {
 public:
  struct shape {
    std::size_t stages = 3, most_cores = 3, steps = 60;
    bool messages = true, channels = true;
  };
  explicit staged_program(std::uint32_t seed) : staged_program(seed, shape{}) {}
  staged_program(std::uint32_t seed, const shape& s) : random_(seed) {
    std::vector<std::size_t> sizes;
    for (std::size_t k = 0; k < s.stages; ++k) sizes.push_back(1 + pick(s.most_cores));
    for (std::uint32_t k = 0; k < s.stages; ++k) stage.insert(stage.end(), sizes[k], k);
    std::shuffle(stage.begin(), stage.end(), random_);  // stages lie anywhere on the chip
    p = empty_program(stage.size());
    for (std::size_t k = 0; k < 1 + seed % 2; ++k) inputs_.push_back(add_input(p, 8 * static_cast<std::int64_t>(stage.size()), "x" + std::to_string(k)));
    live_.resize(stage.size());
    p.origins = {"anything"};
    for (std::size_t c = 0; c < stage.size(); ++c) {
      live_[c].push_back(fresh(c));
      if (stage[c] == 0) load_input(c);
      else push(c, fill({live_[c][0], 0}, static_cast<float>(c), 8));
    }
    for (std::size_t k = 0; k < s.steps; ++k) one_step(s);
    for (std::size_t c = 0; c < stage.size(); ++c) {
      const auto out = add_output(p, 8, "y" + std::to_string(c));
      auto sum = live_[c][0];
      for (std::size_t k = 1; k < live_[c].size(); ++k) {
        const auto next = fresh(c);
        push(c, make(opcode::vvadd, {next, 0}, {sum, 0}, {live_[c][k], 0}, 8));
        sum = next;
      }
      push(c, make(opcode::st, {out, 0}, {sum, 0}, 8));
    }
  }

  program::program p;
  std::vector<std::uint32_t> stage;  ///< by core

 private:
  struct channel {
    std::size_t writer = 0;
    std::uint32_t buffer = 0;
    std::int64_t offset = 0;
  };
  std::mt19937 random_;
  std::vector<std::uint32_t> inputs_;
  std::vector<std::vector<std::uint32_t>> live_;
  std::vector<channel> channels_;

  std::size_t pick(std::size_t n) { return random_() % n; }
  std::uint32_t fresh(std::size_t c) { return add_buffer(p, static_cast<std::int32_t>(c), 8); }
  std::uint32_t any(std::size_t c) { return live_[c][pick(live_[c].size())]; }
  void push(std::size_t c, operation o) { p.cores[c].body.push_back({std::move(o), 0}); }
  void keep(std::size_t c, std::uint32_t b) {
    if (live_[c].size() < 6) live_[c].push_back(b);
    else live_[c][1 + pick(5)] = b;  // the first one stays: it is the core's share of the input
  }
  void load_input(std::size_t c) {
    const auto to = live_[c].size() == 1 && p.cores[c].body.empty() ? live_[c][0] : fresh(c);
    push(c, make(opcode::ld, {to, 0}, {inputs_[pick(inputs_.size())], static_cast<std::int64_t>(8 * pick(stage.size()))}, 8));
    if (to != live_[c][0]) keep(c, to);
  }
  /// 8 elements between two places, in one operation, in two, or in a loop.
  void copy(std::size_t c, opcode op, place d, place a) {
    const auto half = [&](std::int64_t at) { return make(op, {d.buffer, d.offset + affine(at)}, {a.buffer, a.offset + affine(at)}, 4); };
    const affine i = loop_variable(0) * 2;
    switch (pick(3)) {
      case 0: push(c, make(op, d, a, 8)); break;
      case 1: push(c, half(0)), push(c, half(4)); break;
      default: add(p, c, repeat(0, 4, {{make(op, {d.buffer, d.offset + i}, {a.buffer, a.offset + i}, 2)}}));
    }
  }
  [[nodiscard]] std::vector<std::size_t> neighbours(std::size_t c) const {
    std::vector<std::size_t> result;
    for (std::size_t k = 0; k < stage.size(); ++k)
      if (k != c && (stage[k] == stage[c] || stage[k] == stage[c] + 1)) result.push_back(k);
    return result;
  }
  void one_step(const shape& s) {
    const auto c = pick(stage.size());
    switch (pick(6)) {
      case 0: if (stage[c] == 0) load_input(c); break;
      case 1: {
        const auto to = fresh(c);
        push(c, make(pick(2) == 0 ? opcode::vvadd : opcode::vvsub, {to, 0}, {any(c), 0}, {any(c), 0}, 8));
        keep(c, to);
        break;
      }
      case 2: {
        const auto readers = neighbours(c);
        if (readers.empty() || !s.messages) break;
        const auto r = readers[pick(readers.size())];
        const auto to = fresh(r);
        push(c, send_to(static_cast<std::int32_t>(r), {any(c), 0}, 8));
        push(r, receive_from(static_cast<std::int32_t>(c), {to, 0}, 8));
        keep(r, to);
        break;
      }
      case 3: {
        if (!s.channels || neighbours(c).empty()) break;
        // A channel of its own, or the other half of a buffer that another core writes too.
        const bool shared = !channels_.empty() && channels_.back().offset == 0 && pick(2) == 0;
        const channel made{c, shared ? channels_.back().buffer : add_buffer(p, program::global_memory, 16, "channel" + std::to_string(p.buffers.size())), shared ? 8 : 0};
        copy(c, opcode::st, {made.buffer, made.offset}, {any(c), 0});
        channels_.push_back(made);
        break;
      }
      default: {
        if (channels_.empty()) break;
        const auto from = channels_[pick(channels_.size())];
        const auto readers = neighbours(from.writer);
        const auto r = readers[pick(readers.size())];
        const auto to = fresh(r);
        copy(r, opcode::ld, {to, 0}, {from.buffer, from.offset});
        keep(r, to);
      }
    }
  }
};

/// How an execution chooses the core that goes on.
struct chooser {
  std::uint32_t seed = 0;
  std::int64_t starved = -1;  ///< a core that goes on only when no other can
};

/// Results of every iteration, by output; what was never stored is NaN.
using batch_outputs = std::vector<std::vector<std::vector<float>>>;

/// Repeats a program for every batch entry, which holds the elements of all inputs in order. Each core restarts on its own; the host places the next input as soon as every core that loads
/// inputs has done its last such load. Throws std::runtime_error where the program blocks or an event register overshoots.
inline batch_outputs repeat_program(const program::program& p, const std::vector<std::vector<float>>& inputs, const chooser& how) {
  struct pending {
    const operation* op = nullptr;
    std::array<std::int64_t, 3> offsets{};
  };
  struct core {
    std::unique_ptr<program::unrolled> body;
    std::vector<pending> work;
    std::size_t next = 0, iteration = 0, last_input = 0;
    bool reads_input = false;
    std::array<int, 32> events{};
  };
  const float nan = std::bit_cast<float>(0x7fc00000u);
  std::vector<std::vector<float>> memory;
  for (const auto& b : p.buffers) memory.emplace_back(static_cast<std::size_t>(b.elements), nan);
  std::vector<bool> is_input(p.buffers.size(), false);
  for (const auto& port : p.inputs) is_input[port.buffer] = true;
  const auto place_inputs = [&](const std::vector<float>& entry) {
    auto from = entry.begin();
    for (const auto& port : p.inputs) std::copy_n(from, memory[port.buffer].size(), memory[port.buffer].begin()), from += p.buffers[port.buffer].elements;
  };
  std::vector<core> cores(p.cores.size());
  for (std::size_t c = 0; c < cores.size(); ++c) {
    cores[c].body = std::make_unique<program::unrolled>(p.cores[c].body);
    cores[c].body->walk([&](const program::step& s) {
      cores[c].work.push_back({s.op, s.offsets});
      if (s.op->op == opcode::ld && is_input[s.op->a.buffer]) cores[c].last_input = cores[c].work.size(), cores[c].reads_input = true;
    });
    if (cores[c].work.empty()) cores[c].iteration = inputs.size();
  }
  batch_outputs outputs(inputs.size());
  for (auto& entry : outputs)
    for (const auto& port : p.outputs) entry.emplace_back(static_cast<std::size_t>(p.buffers[port.buffer].elements), nan);
  std::size_t placed = 0;
  place_inputs(inputs[0]);
  std::mt19937 random(how.seed);
  std::vector<std::size_t> turn;
  const auto step = [&](std::size_t c) {
    auto& own = cores[c];
    if (own.iteration == inputs.size()) return false;
    const auto& [op, offsets] = own.work[own.next];
    const operation& o = *op;
    const auto advance = [&](std::size_t k) {
      auto& moved = cores[k];
      if (++moved.next == moved.work.size()) moved.next = 0, ++moved.iteration;
    };
    const auto n = static_cast<std::size_t>(o.length);
    const auto at = [&, &where = offsets](const place& x, std::size_t k) { return memory.at(x.buffer).data() + where[k]; };
    switch (o.op) {
      case opcode::wait: {
        auto& value = own.events.at(static_cast<std::size_t>(o.event));
        if (value > o.count) throw std::runtime_error("overshoot");
        if (value < o.count) return false;
        value = 0;
        break;
      }
      case opcode::sync: ++cores.at(static_cast<std::size_t>(o.peer)).events.at(static_cast<std::size_t>(o.event)); break;
      case opcode::send: {
        auto& peer = cores.at(static_cast<std::size_t>(o.peer));
        if (peer.iteration == inputs.size()) return false;
        const auto& met = peer.work[peer.next];
        if (met.op->op != opcode::recv || static_cast<std::size_t>(met.op->peer) != c) return false;
        std::copy_n(at(o.a, 1), n, memory.at(met.op->d.buffer).data() + met.offsets[0]);
        advance(static_cast<std::size_t>(o.peer));
        break;
      }
      case opcode::recv: return false;  // its sender does it
      case opcode::vvadd: for (std::size_t k = 0; k < n; ++k) at(o.d, 0)[k] = at(o.a, 1)[k] + at(o.b, 2)[k]; break;
      case opcode::vvsub: for (std::size_t k = 0; k < n; ++k) at(o.d, 0)[k] = at(o.a, 1)[k] - at(o.b, 2)[k]; break;
      case opcode::lldi: std::fill_n(at(o.d, 0), n, std::bit_cast<float>(o.bits)); break;
      case opcode::ld: std::copy_n(at(o.a, 1), n, at(o.d, 0)); break;
      case opcode::st:
        std::copy_n(at(o.a, 1), n, at(o.d, 0));
        for (std::size_t k = 0; k < p.outputs.size(); ++k)
          if (p.outputs[k].buffer == o.d.buffer) std::copy_n(at(o.a, 1), n, outputs[own.iteration][k].data() + offsets[0]);
        break;
      default: throw std::logic_error("the interpreter does not know this operation");
    }
    advance(c);
    bool all = true;
    for (const auto& k : cores) all = all && (!k.reads_input || k.iteration > placed || (k.iteration == placed && k.next >= k.last_input));
    if (all && placed + 1 < inputs.size()) place_inputs(inputs[++placed]);
    return true;
  };
  for (std::size_t c = 0; c < cores.size(); ++c) turn.push_back(c);
  for (;;) {
    std::shuffle(turn.begin(), turn.end(), random);
    if (how.starved >= 0) std::stable_partition(turn.begin(), turn.end(), [&](std::size_t c) { return static_cast<std::int64_t>(c) != how.starved; });
    bool moved = false;
    for (const auto c : turn)
      if (step(c)) {
        moved = true;
        break;
      }
    if (!moved) break;
  }
  for (const auto& c : cores)
    if (c.iteration != inputs.size()) throw std::runtime_error("the program blocks");
  return outputs;
}

inline std::vector<std::vector<float>> batch_of(const program::program& p, std::size_t entries, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::size_t elements = 0;
  for (const auto& port : p.inputs) elements += static_cast<std::size_t>(p.buffers[port.buffer].elements);
  std::vector<std::vector<float>> result(entries, std::vector<float>(elements));
  for (auto& entry : result)
    for (auto& x : entry) x = static_cast<float>(static_cast<int>(random() % 2001) - 1000);
  return result;
}

/// What a program gives for each batch entry alone.
inline batch_outputs one_by_one(const program::program& p, const std::vector<std::vector<float>>& inputs) {
  batch_outputs result;
  for (const auto& x : inputs) result.push_back(repeat_program(p, {x}, {}).front());
  return result;
}

/// Equal, with no element that was never stored or computed from one.
inline bool same_outputs(const batch_outputs& a, const batch_outputs& b) {
  for (const auto& entry : a)
    for (const auto& output : entry)
      for (const float x : output)
        if (std::isnan(x)) return false;
  return a == b;
}

}  // namespace raptor::test
