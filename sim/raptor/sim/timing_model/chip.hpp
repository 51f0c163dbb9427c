#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "raptor/sim/timing_model/core.hpp"
#include "raptor/sim/timing_model/result.hpp"

/// The chip: units and switches as processes, the network, the global memory, and the order of all that happens in one
/// instant (TIMING 7, 9, 10, 11).
namespace raptor::sim::timing {

/// Ceiling of the crossbar's counts: plain truncation (quirk 14).
[[nodiscard]] constexpr std::int64_t crossbar_quotient(std::int64_t a, std::int64_t b) noexcept { return b == 0 ? 0 : a / b; }

class chip {
 public:
  /// Both must outlive the chip. Requires: a validated configuration; groups of mvmul exist (check_program).
  chip(const timed_program& program, const target::configuration& hardware) : hardware_(hardware), global_(hardware.chip_config.global_memory_config) {
    const auto& network = hardware.chip_config.network_config;
    period_ = picoseconds(hardware.chip_config.core_config.period);
    std::int64_t highest = -1;
    for (const auto& c : program.cores) highest = std::max(highest, c.id);
    of_id_.assign(static_cast<std::size_t>(highest + 1), -1);
    for (const auto& c : program.cores) {
      of_id_[static_cast<std::size_t>(c.id)] = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back(std::make_unique<node>(c, hardware, nodes_.size()));
      unfinished_ += 1;
    }
    const std::int64_t global_id = hardware.chip_config.core_config.global_memory_switch_id;
    const auto entry = [](const target::network_table::rows& rows, std::int64_t from, std::int64_t to) {
      const auto row = rows.find(from);
      if (row == rows.end()) return 0.0;
      const auto value = row->second.find(to);
      return value == row->second.end() ? 0.0 : value->second;
    };
    links_.resize(nodes_.size() * (nodes_.size() + 1));
    for (std::size_t a = 0; a < nodes_.size(); ++a)
      for (std::size_t b = 0; b <= nodes_.size(); ++b) {
        const auto from = nodes_[a]->state.program().id, to = b == nodes_.size() ? global_id : nodes_[b]->state.program().id;
        links_[a * (nodes_.size() + 1) + b] = {entry(network.table.latency, from, to), entry(network.table.energy, from, to)};
      }
    active_.assign((nodes_.size() + 63) / 64, 0);
  }

  [[nodiscard]] timing_result run();

 private:
  struct message {
    enum class type : std::uint8_t { ready, go, data, sync, read, write } what;
    std::int64_t to;          ///< core id; not consulted for read and write
    std::int64_t bytes;       ///< on the network
    std::int64_t information; ///< tag, event register, or the request's bytes
  };
  enum class signal : std::uint8_t { none, start, message_queued, go, data, sync, request_done };
  struct node;
  /// A unit or a switch. `step`: where its script goes on; `waits_for`: what wakes it.
  struct process {
    node* owner = nullptr;
    std::int32_t unit = 0;  ///< group number, vector_unit, transfer_unit or switch_unit
    std::uint8_t step = 0;
    signal waits_for = signal::none;
    flight* job = nullptr;
    bool one_way = true;
  };
  static constexpr std::int32_t switch_unit = -3;
  struct node {
    node(const timed_core& program, const target::configuration& hardware, std::size_t index)
        : state(program, hardware, index), groups(program.groups.size()) {
      vector = {this, vector_unit, 0, signal::start, nullptr, true};
      transfer = {this, transfer_unit, 0, signal::start, nullptr, true};
      network = {this, switch_unit, 0, signal::message_queued, nullptr, true};
      for (std::size_t g = 0; g < groups.size(); ++g) groups[g] = {this, static_cast<std::int32_t>(g), 0, signal::start, nullptr, true};
    }
    core state;
    process vector, transfer, network;
    std::vector<process> groups;
    std::deque<message> outgoing;
    message current{};
    std::int64_t receive_from = -1, send_to = -1, send_tag = -1;
    std::map<std::int64_t, std::int64_t> waiting;  ///< source → tag of its ready message; -1: none
    std::array<std::int64_t, 32> events{};
    std::int64_t wanted_event = -1, wanted_value = -1;
  };
  struct link {
    double latency = 0, energy = 0;
  };

  // --- waking -------------------------------------------------------------------------------------------------
  void notify(process& p, signal s) {
    if (p.waits_for != s) return;  // a wake-up of a process that does not sleep on it is lost
    p.waits_for = signal::none;
    runnable_.push_back(&p);
  }
  void wait(process& p, instant delay) {
    if (delay == 0) zero_.push_back(&p);
    else pending_.insert(now_ + delay, &p);
  }
  void queue(node& n, message m) {
    n.outgoing.push_back(m);
    notify(n.network, signal::message_queued);
  }
  void mark(const node& n) { active_[n.state.index() / 64] |= std::uint64_t{1} << (n.state.index() % 64); }
  void complete(node& n, std::int32_t unit, flight* job) {
    n.state.complete(unit, job);
    mark(n);
  }

  // --- scripts of the units (TIMING 7); each call goes on until the process is suspended ------------------------
  void run_process(process& p) {
    if (p.unit == vector_unit) run_vector(p);
    else if (p.unit == transfer_unit) run_transfer(p);
    else if (p.unit == switch_unit) run_switch(p);
    else run_group(p);
  }
  void run_vector(process& p) {
    node& n = *p.owner;
    const auto& c = hardware_.chip_config.core_config;
    using isa::opcode;
    switch (p.step) {
      case 0: {
        p.job = n.state.vector_flight;
        const auto& i = *p.job->what;
        const std::int64_t ib = bytes_of(p.job->input_bits);
        instant d = n.state.local.access(now_, true, ib * i.length);
        const bool two = i.op == opcode::vvadd || i.op == opcode::vvsub || i.op == opcode::vvmul || i.op == opcode::vvdmul || i.op == opcode::vvmax ||
                         i.op == opcode::vvsll || i.op == opcode::vvsra;
        if (two) d = n.state.local.access(now_, true, ib * i.length, d);
        const std::int64_t steps = ceiling(i.length, c.vector_width);
        const auto count = static_cast<double>(steps);
        const double alu = c.vector_alu_dynamic_energy * count;
        const double reg = (c.vector_reg_read_dynamic_energy * 2 + c.vector_reg_write_dynamic_energy) * count;
        n.state.vector_total += alu + reg;
        p.step = 1;
        return wait(p, d + picoseconds(static_cast<double>(steps * c.vector_latency_cycle)));
      }
      case 1: {
        const auto& i = *p.job->what;
        const bool output_width = i.op == opcode::vvmul || i.op == opcode::vvsll || i.op == opcode::vvsra || i.op == opcode::vtanh || i.op == opcode::vsigm ||
                                  i.op == opcode::vrsu || i.op == opcode::vrsl;
        p.step = 2;
        return wait(p, n.state.local.access(now_, false, bytes_of(output_width ? p.job->output_bits : p.job->input_bits) * i.length));
      }
      default:
        complete(n, vector_unit, p.job);
        p.step = 0, p.waits_for = signal::start;
    }
  }
  void run_group(process& p) {
    node& n = *p.owner;
    const auto& m = hardware_.chip_config.core_config.matrix_config;
    const auto crossbars = n.state.program().groups[static_cast<std::size_t>(p.unit)];
    switch (p.step) {
      case 0: {
        p.job = n.state.group_flight[static_cast<std::size_t>(p.unit)];
        const instant d = n.state.local.access(now_, true, m.xbar_size[0] * bytes_of(p.job->input_bits) * 8);  // quirk 13
        const auto& [cycles, energy] = crossbar(p.job->input_bits);
        n.state.matrix_total += energy * static_cast<double>(crossbars);
        p.step = 1;
        return wait(p, d + picoseconds(static_cast<double>(cycles) * m.period));
      }
      case 1: {
        const std::int64_t columns = m.cell_precision * m.xbar_size[1] / p.job->what->immediate;
        p.step = 2;
        return wait(p, n.state.local.access(now_, false, columns * bytes_of(p.job->output_bits) * crossbars));
      }
      default:
        complete(n, p.unit, p.job);
        p.step = 0, p.waits_for = signal::start;
    }
  }
  void run_transfer(process& p) {
    node& n = *p.owner;
    using isa::opcode;
    if (p.step == 0) p.job = n.state.transfer_flight;
    const auto& i = *p.job->what;
    const auto sleep = [&](signal s, std::uint8_t next) { p.waits_for = s, p.step = next; };
    const auto pause = [&](instant d, std::uint8_t next) {
      p.step = next;
      wait(p, d);
    };
    constexpr std::uint8_t done = 9;
    if (p.step != done) {
      switch (i.op) {
        case opcode::send:
          if (p.step == 0) {
            n.send_to = i.immediate, n.send_tag = p.job->pc;
            sleep(signal::go, 1);
            return queue(n, {message::type::ready, i.immediate, 1, p.job->pc});
          }
          if (p.step == 1) return pause(n.state.local.access(now_, true, i.size), 2);
          queue(n, {message::type::data, i.immediate, i.size, p.job->pc});
          n.send_to = -1;
          break;
        case opcode::recv:
          if (p.step == 0) {
            n.receive_from = i.immediate;
            sleep(signal::data, 1);
            const auto known = n.waiting.find(i.immediate);
            if (known != n.waiting.end() && known->second != -1) {
              const auto tag = std::exchange(known->second, -1);
              queue(n, {message::type::go, i.immediate, 1, tag});
            }
            return;
          }
          if (p.step == 1) {
            n.receive_from = -1;
            return pause(n.state.local.access(now_, false, i.size), done);
          }
          break;
        case opcode::sync:
          queue(n, {message::type::sync, i.immediate, 1, i.select});
          return pause(period_, done);
        case opcode::wait: {
          auto& counter = n.events[static_cast<std::size_t>(i.select)];
          if (p.step == 0) {
            n.wanted_event = i.select, n.wanted_value = i.value;
            if (counter < i.value) return sleep(signal::sync, 1);
          }
          counter -= i.value;  // the surplus is kept (quirk 26)
          n.wanted_event = n.wanted_value = -1;
          break;
        }
        case opcode::ld:
          if (p.step == 0) {
            sleep(signal::request_done, 1);
            return queue(n, {message::type::read, 0, 1, i.size});
          }
          return pause(n.state.local.access(now_, false, i.size), done);
        case opcode::st:
          if (p.step == 0) return pause(n.state.local.access(now_, true, i.size), 1);
          if (p.step == 1) {
            sleep(signal::request_done, 2);
            return queue(n, {message::type::write, 0, i.size, i.size});
          }
          break;
        case opcode::lldi: return pause(n.state.local.access(now_, false, i.length), done);
        case opcode::lmv: {
          const instant read = n.state.local.access(now_, true, i.length);
          return pause(n.state.local.access(now_, false, i.length, read), done);
        }
        default: break;
      }
    }
    complete(n, transfer_unit, p.job);
    p.step = 0, p.waits_for = signal::start;
  }

  // --- the network (TIMING 9) -----------------------------------------------------------------------------------
  void run_switch(process& p) {
    node& n = *p.owner;
    for (;;) {
      switch (p.step) {
        case 0: {
          if (n.outgoing.empty()) {
            p.waits_for = signal::message_queued;
            return;
          }
          n.current = n.outgoing.front();
          n.outgoing.pop_front();
          p.step = 1;
          return wait(p, picoseconds(static_cast<double>(network_time(n, destination(n.current), n.current.bytes))));
        }
        case 1: {
          const auto& m = n.current;
          p.one_way = m.what != message::type::read && m.what != message::type::write;
          p.step = 2;
          return wait(p, p.one_way ? deliver(n, m) : global_.access(now_, m.what == message::type::read, m.information));
        }
        default:
          p.step = 0;
          if (!p.one_way) notify(n.transfer, signal::request_done);
      }
    }
  }
  /// Index among links: a core's, or the global memory's behind them.
  [[nodiscard]] std::size_t destination(const message& m) const {
    if (m.what == message::type::read || m.what == message::type::write) return nodes_.size();
    if (m.to < 0 || m.to >= static_cast<std::int64_t>(of_id_.size()) || of_id_[static_cast<std::size_t>(m.to)] < 0)
      throw error(error_code::execution, "a message to core " + std::to_string(m.to) + ", which does not exist in the program");
    return static_cast<std::size_t>(of_id_[static_cast<std::size_t>(m.to)]);
  }
  /// Whole ns (quirk 20); charges the energy.
  [[nodiscard]] std::int64_t network_time(const node& from, std::size_t to, std::int64_t bytes) {
    const auto& l = links_[from.state.index() * (nodes_.size() + 1) + to];
    const auto flits = static_cast<double>(ceiling(bytes, hardware_.chip_config.network_config.bus_width));
    network_energy_ += flits * l.energy;
    return static_cast<std::int64_t>(flits * l.latency);
  }
  /// Runs the receiving core's handler; how long it holds the sender's switch.
  [[nodiscard]] instant deliver(const node& from, const message& m) {
    node& n = *nodes_[destination(m)];
    const std::int64_t source = from.state.program().id;
    constexpr instant held = 1000;  // one ns, whatever the period (quirk 18)
    switch (m.what) {
      case message::type::ready:
        if (source == n.receive_from) queue(n, {message::type::go, source, 1, m.information});
        else n.waiting[source] = m.information;
        return held;
      case message::type::data:
        if (source == n.receive_from) {
          notify(n.transfer, signal::data);
          return 0;
        }
        n.waiting[source] = m.information;
        return held;
      case message::type::go:
        if (source != n.send_to) throw error(error_code::execution, "TransferUnit: send-recv not match");
        if (m.information != n.send_tag) throw error(error_code::execution, "TransferUnit: send tag not match");
        notify(n.transfer, signal::go);
        return 0;
      default: {
        auto& counter = n.events[static_cast<std::size_t>(m.information)];
        ++counter;
        if (m.information == n.wanted_event && counter >= n.wanted_value) notify(n.transfer, signal::sync);
        return 0;
      }
    }
  }

  // --- the crossbars (TIMING 7 and 12) --------------------------------------------------------------------------
  [[nodiscard]] const std::pair<std::int64_t, double>& crossbar(std::int32_t input_bits) {
    const auto known = crossbar_.find(input_bits);
    if (known != crossbar_.end()) return known->second;
    const auto& m = hardware_.chip_config.core_config.matrix_config;
    const double p = m.period;
    const std::int64_t inputs = crossbar_quotient(input_bits, m.dac_resolution) * crossbar_quotient(m.xbar_size[0], m.dac_count);
    const std::int64_t conversions = crossbar_quotient(m.xbar_size[1], m.adc_count);
    const std::int64_t front = m.dac_latency_cycle + static_cast<std::int64_t>(std::ceil(m.xbar_latency / p)) + m.sample_hold_latency_cycle;
    const std::int64_t tail = m.shift_adder_latency_cycle + m.output_buffer_latency_cycle;
    const std::int64_t back = m.adc_latency_cycle + tail + (conversions - 1) * std::max(m.adc_latency_cycle, tail);
    const std::int64_t cycles = m.pipeline_mode ? front + back + (inputs - 1) * std::max(front, back) : (front + back) * inputs;
    const auto number = [](std::int64_t n) { return static_cast<double>(n); };
    const double front_energy = p * m.dac_dynamic_power * number(m.dac_latency_cycle) * number(m.dac_count) + m.xbar_read_power * m.xbar_latency +
                                p * m.sample_hold_dynamic_power * number(m.sample_hold_latency_cycle) * number(m.xbar_size[1]);
    const double back_energy = number(conversions) * (p * m.adc_dynamic_power * number(m.adc_latency_cycle) * number(m.adc_count) +
                                                      p * m.shift_adder_dynamic_power * number(m.shift_adder_latency_cycle) +
                                                      p * m.output_buffer_dynamic_power * number(m.output_buffer_latency_cycle));
    return crossbar_.emplace(input_bits, std::pair{cycles, number(inputs) * (front_energy + back_energy)}).first->second;
  }

  // --- one instant (TIMING 10.2) --------------------------------------------------------------------------------
  void update_finished(bool was, const node& n) {
    if (!was && n.state.finished() && --unfinished_ == 0) stopping_ = true;
  }
  void edges();
  [[nodiscard]] bool idle() const {
    return std::all_of(active_.begin(), active_.end(), [](std::uint64_t word) { return word == 0; });
  }
  [[nodiscard]] timing_result report(bool timed_out) const;
  [[nodiscard]] std::vector<std::string> blocked() const;

  const target::configuration& hardware_;
  std::vector<std::unique_ptr<node>> nodes_;
  std::vector<std::int32_t> of_id_;
  std::vector<link> links_;  ///< from × (nodes, then global memory)
  memory_port global_;
  double network_energy_ = 0;
  std::map<std::int32_t, std::pair<std::int64_t, double>> crossbar_;
  instant period_ = 0, now_ = 0;
  pending_set<process*> pending_;  ///< the clock is nullptr
  std::vector<process*> runnable_, zero_, round_;
  std::vector<std::uint64_t> active_;   ///< a bit a core that is not idle
  std::vector<std::uint32_t> edged_;
  std::size_t unfinished_ = 0;
  bool stopping_ = false;
};

inline void chip::edges() {
  for (const auto index : edged_) {
    node& n = *nodes_[index];
    const bool was = n.state.finished();
    std::array<process*, 2> started{};
    std::size_t count = 0;
    n.state.edge(now_, [&](std::int32_t unit) {
      started[count++] = unit == vector_unit ? &n.vector : unit == transfer_unit ? &n.transfer : &n.groups[static_cast<std::size_t>(unit)];
    });
    // Core index ascending; within a core the vector or transfer unit first: the order in which edge reports them (10.3).
    for (std::size_t i = 0; i < count; ++i) notify(*started[i], signal::start);
    update_finished(was, n);
  }
}

/// Cost: proportional to activity; idle edges cost nothing (10.1, 10.5).
inline timing_result chip::run() {
  const bool latency = hardware_.sim_config.sim_mode == 1;
  const auto milliseconds = [](double ms) { return static_cast<instant>(ms * 1e9 + 0.5); };
  const instant end = latency ? milliseconds(hardware_.sim_config.latency_timeout_ms) : 10 * milliseconds(hardware_.sim_config.sim_time / 10);
  for (auto& n : nodes_) {
    n->state.begin(0);
    update_finished(false, *n);
    if (!n->state.idle()) mark(*n);
  }
  bool timed_out = false;
  if (!stopping_) pending_.insert(period_, nullptr);
  while (!stopping_) {
    if (pending_.earliest().entry == nullptr && pending_.size() > 1 && idle()) {
      const instant until = std::min(end, pending_.second());
      const std::int64_t idle_edges = (until - pending_.earliest().time + period_ - 1) / period_ - 1;
      if (idle_edges > 0) pending_.run_idle_edges(period_, idle_edges);
    }
    const instant t = pending_.earliest().time;
    if (t >= end) {
      timed_out = latency;
      now_ = end;
      break;
    }
    now_ = t;
    round_.clear();
    while (!pending_.empty() && pending_.earliest().time == t) round_.push_back(pending_.extract().entry);
    bool settle = false;
    for (;;) {
      bool clock = false;
      for (;;) {
        for (process* const p : round_) {
          if (p != nullptr) {
            run_process(*p);
            continue;
          }
          pending_.insert(t + period_, nullptr);
          clock = true;
          edged_.clear();
          for (std::size_t w = 0; w < active_.size(); ++w)
            for (std::uint64_t bits = active_[w]; bits != 0; bits &= bits - 1) {
              const auto index = static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(__builtin_ctzll(bits));
              nodes_[index]->state.freeze_completions();
              edged_.push_back(index);
            }
        }
        if (std::exchange(clock, false)) {
          edges();
          settle = true;
        }
        if (runnable_.empty()) break;
        round_.swap(runnable_);
        runnable_.clear();
      }
      if (stopping_) break;
      if (std::exchange(settle, false))
        for (const auto index : edged_) {
          auto& state = nodes_[index]->state;
          state.settle(now_);
          const std::uint64_t bit = std::uint64_t{1} << (index % 64);
          if (state.idle()) active_[index / 64] &= ~bit;
        }
      if (zero_.empty()) break;
      round_.assign(zero_.rbegin(), zero_.rend());  // in the reverse of the order in which they suspended
      zero_.clear();
    }
    if (!stopping_ && pending_.size() == 1 && pending_.earliest().entry == nullptr && idle()) {  // nothing will ever happen again
      timed_out = latency;
      now_ = end;
      break;
    }
  }
  return report(timed_out);
}

inline timing_result chip::report(bool timed_out) const {
  timing_result r;
  r.latency_mode = hardware_.sim_config.sim_mode == 1;
  const auto& c = hardware_.chip_config.core_config;
  if (timed_out) {
    std::string unfinished;
    for (const auto& n : nodes_)
      if (!n->state.finished())
        unfinished += (unfinished.empty() ? "core " : ", core ") + std::to_string(n->state.program().id) + " (pc=" + std::to_string(n->state.pc()) +
                      ", max_pc=" + std::to_string(n->state.length() - 1) + ", fetch_complete=" + (n->state.pc() == n->state.length() ? "true" : "false") + ")";
    throw error(error_code::execution, "Latency simulation did not complete within " + fixed(hardware_.sim_config.latency_timeout_ms) + " ms; unfinished cores: " + unfinished)
        .with_details(blocked());
  }
  double dynamic = 0, idle_power = 0;
  for (const auto& n : nodes_) {
    double s = 0;
    for (const double part : {c.inst_fetch_static_power, c.inst_decode_static_power + c.inst_decode_offset_static_power, c.reg_file_static_power,
                              c.scalar_static_power, 0.0, c.vector_reg_static_power + c.vector_alu_static_power, c.transfer_static_power,
                              n->state.local.static_power()})
      s += part;
    dynamic += n->state.dynamic_energy();
    idle_power += s;
  }
  dynamic += network_energy_;
  dynamic += global_.dynamic_energy();
  idle_power += global_.static_power();
  instant elapsed = now_;
  if (r.latency_mode) {
    elapsed = 0;
    for (const auto& n : nodes_) elapsed = std::max(elapsed, n->state.finish_time());
  }
  const double seconds = static_cast<double>(elapsed) * 1000.0 * 1e-15;
  const double ns = seconds * 1e9;
  const double total = idle_power * ns + dynamic;
  r.latency_ms = seconds * 1000;
  r.energy_pj = total;
  r.power_mw = ns == 0 ? idle_power : total / ns;
  for (const auto& n : nodes_)
    r.cores.push_back({n->state.program().id, static_cast<double>(n->state.finish_time()) * 1000.0 * 1e-15 * 1000, n->state.rounds(), n->state.length() > 0});
  if (!r.latency_mode) {
    bool any = false;
    for (const auto& core : r.cores)
      if (core.active) r.samples = any ? std::min(r.samples, core.rounds) : core.rounds, any = true;
    const auto samples = static_cast<double>(r.samples);
    r.latency_ms = r.samples == 0 ? 0 : hardware_.sim_config.sim_time / samples;
    r.energy_pj = r.samples == 0 ? 0 : total / samples;
    r.samples_per_second = samples / (hardware_.sim_config.sim_time / 1e3);
  }
  return r;
}

/// What the cores that never finish wait for, one line each.
inline std::vector<std::string> chip::blocked() const {
  std::vector<std::string> lines;
  for (const auto& n : nodes_) {
    if (n->state.finished() || !n->state.transfer_busy || n->state.transfer_flight == nullptr) continue;
    const auto& f = *n->state.transfer_flight;
    std::string line = "core " + std::to_string(n->state.program().id) + ", instruction " + std::to_string(f.pc) + ": " + std::string(isa::mnemonic(f.what->op));
    if (f.what->op == isa::opcode::send) line += " to core " + std::to_string(f.what->immediate);
    if (f.what->op == isa::opcode::recv) line += " from core " + std::to_string(f.what->immediate);
    if (f.what->op == isa::opcode::wait) line += " for event " + std::to_string(f.what->select) + " = " + std::to_string(f.what->value);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace raptor::sim::timing
