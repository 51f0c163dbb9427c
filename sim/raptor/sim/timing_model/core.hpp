#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "raptor/sim/timing_model/memory_port.hpp"
#include "raptor/sim/timing_model/pending.hpp"
#include "raptor/sim/timing_model/program.hpp"
#include "raptor/support/error.hpp"
#include "raptor/target/configuration.hpp"

/// One core between its clock edges: front end, hazards, reorder buffer, dispatch and router (TIMING 3 to 6 and 12).
/// What the units do in time is in units.hpp.
namespace raptor::sim::timing {

/// A closed range of local memory (TIMING 4). Empty: first > last.
struct range {
  std::int64_t first = 0, last = -1;
  [[nodiscard]] constexpr bool none() const noexcept { return last < first; }
};
/// Ranges that merely touch do conflict (quirk 6).
[[nodiscard]] constexpr bool overlap(const range& a, const range& b) noexcept { return !(a.last < b.first || a.first > b.last); }

/// A decoded unit instruction on its way through dispatch, the reorder buffer and a unit.
struct flight {
  std::uint64_t number = 0;  ///< identity
  std::int64_t pc = 0;
  const timed_instruction* what = nullptr;
  std::array<range, 2> reads{};
  std::uint8_t read_count = 0;
  bool writes = false;
  range write;
  std::int32_t input_bits = 0, output_bits = 0;
  bool recorded = false;  ///< pushed and not retired
};

[[nodiscard]] inline std::int64_t bytes_of(std::int32_t bits) noexcept { return static_cast<std::int64_t>(std::ceil(bits / 8.0)); }
[[nodiscard]] constexpr std::int32_t wrap(std::int64_t v) noexcept { return static_cast<std::int32_t>(static_cast<std::uint32_t>(v)); }

/// Write-write overlap is never detected (quirk 7).
[[nodiscard]] inline bool conflict(const flight& a, const flight& b) noexcept {
  if (a.writes)
    for (std::size_t i = 0; i < b.read_count; ++i)
      if (overlap(a.write, b.reads[i])) return true;
  if (b.writes)
    for (std::size_t i = 0; i < a.read_count; ++i)
      if (overlap(a.reads[i], b.write)) return true;
  return false;
}

/// What changed at an edge; settling reacts to it.
struct changes {
  bool pc = false, decode = false, widths = false, scalar = false, registers = false;
};

/// Units and their order of starting on one edge: the core's vector or transfer unit before its array groups (TIMING 10.3).
inline constexpr std::int32_t vector_unit = -1, transfer_unit = -2;

class core {
 public:
  core(const timed_core& program, const target::configuration& hardware, std::size_t index)
      : program_(program), c_(hardware.chip_config.core_config), throughput_(hardware.sim_config.sim_mode == 0), index_(index),
        length_(static_cast<std::int64_t>(program.stream.size())), local(c_.local_memory_config), group_busy(program.groups.size(), false),
        group_flight(program.groups.size(), nullptr) {
    // So many flights exist at most: the buffer, one in each port and register, the commits not yet seen, and repeats of decode.
    const auto in_flight = static_cast<std::size_t>(std::min<std::int64_t>(c_.rob_size, length_ + 1)) + program.groups.size() + 16;
    flights_.resize(4 * in_flight);
    const double p = c_.period;
    fetch_energy_ = p * c_.inst_fetch_dynamic_power;
    decode_energy_ = p * (c_.inst_decode_dynamic_power + c_.inst_decode_offset_dynamic_power);
    read_energy_ = p * c_.reg_file_read_dynamic_power;
    write_energy_ = p * c_.reg_file_write_dynamic_power;
    scalar_energy_ = p * c_.scalar_dynamic_power;
  }

  // --- time ---------------------------------------------------------------------------------------------------
  /// Time 0: fetch offers instruction 0, one register read and write are counted.
  void begin(instant now) {
    registers += read_energy_;
    registers += write_energy_;
    fetch(now);
    dispatch();
  }

  /// One clock edge. `started(unit or group)` is called for each unit that starts.
  template <class Started>
  void edge(instant now, const Started& started) {
    flight* const out = out_;
    flight* const router = router_;
    const bool router_moves = router == nullptr || !group_busy[static_cast<std::size_t>(router->what->select)];
    if (out != nullptr) {
      if (out->what->what == kind::transfer && !transfer_busy) {
        transfer_busy = true, transfer_flight = out;
        started(transfer_unit);
      } else if (out->what->what == kind::vector && !vector_busy) {
        vector_busy = true, vector_flight = out;
        started(vector_unit);
      }
    }
    if (router != nullptr && router_moves) {
      const auto g = static_cast<std::size_t>(router->what->select);
      group_busy[g] = true, group_flight[g] = router;
      started(router->what->select);
    }
    // Commits seen in the previous cycle, then those of this edge.
    flight *const matrix = matrix_commit_, *const vector = vector_commit_, *const transfer = transfer_commit_;
    vector_commit_ = transfer_commit_ = nullptr;
    for (const auto& [unit, done] : edge_completions_) {
      if (unit == vector_unit) vector_busy = false, vector_commit_ = done;
      else if (unit == transfer_unit) transfer_busy = false, transfer_commit_ = done;
      else group_busy[static_cast<std::size_t>(unit)] = false;
    }
    if (edge_queue_examined_) {
      if (!commit_queue_.empty()) {
        matrix_commit_ = commit_queue_.front();
        commit_queue_.pop_front();
        queue_examined_ = true;
      } else {
        matrix_commit_ = nullptr;
      }
    }
    if (router_moves) router_ = out != nullptr && out->what->what == kind::matrix ? out : nullptr;
    // The reorder buffer.
    const bool update = update_buffer_;
    update_buffer_ = vector_commit_ != vector || transfer_commit_ != transfer || matrix_commit_ != matrix;
    if (update) {
      if (out != nullptr) {
        if (out->recorded) throw error(error_code::execution, "Performance Counter Repeated");
        out->recorded = true;
        buffer_.push_back({out, true});
      }
      for (flight* const done : {matrix, vector, transfer})
        if (done != nullptr) retire(*done, now);
    }
    // Pipeline registers; the scalar latch is not frozen.
    changed_ = {};
    if (ready_) {
      dispatched_ = decoded_;
      if (fetched_ != in_decode_) in_decode_ = fetched_, changed_.decode = true;
      const std::int64_t next = wraps_ ? 0 : next_pc_;
      if (next != pc_) pc_ = next, changed_.pc = true;
      if (next_widths_ != widths_) widths_ = next_widths_, changed_.widths = true;
    }
    changed_.scalar = scalar_offer_ != scalar_latch_;
    scalar_latch_ = scalar_offer_;
    changed_.registers = written_ != delayed_;
    delayed_ = written_;
  }

  /// The combinational state after the processes of an instant have run once (TIMING 12, counting evaluations).
  void settle(instant now) {
    if (changed_.pc) fetch(now);
    const timed_instruction* const inst = in_decode_ < 0 ? nullptr : &program_.stream[static_cast<std::size_t>(in_decode_)];
    bool redo = false;
    if (changed_.decode || changed_.widths) redo = true, count_decode(now);
    bool values_changed = false;
    if (changed_.registers) {
      values_changed = read_registers();
      array_[delayed_.first] = delayed_.second;
    }
    bool address_changed = false;
    if (changed_.decode && inst != nullptr && inst->op != isa::opcode::nop) {
      const bool pair = inst->op == isa::opcode::sld || inst->op == isa::opcode::ld || inst->op == isa::opcode::st;
      const read_address wanted{inst->rd, inst->rs1, inst->rs2, pair};
      address_changed = wanted != address_;
      address_ = wanted;
    }
    bool port_changed = false;
    if (changed_.scalar && scalar_latch_.active) {
      const auto result = execute(scalar_latch_);
      scalar += scalar_energy_;
      port_changed = result != port_;
      port_ = result;
    }
    if (values_changed) redo = true, count_decode(now);
    bool again = false;
    if (address_changed || port_changed) again = read_registers();
    if (port_changed) {
      written_ = port_;
      registers += write_energy_;
    }
    if (again) redo = true, count_decode(now);
    if (redo) decode_instruction(inst);
    dispatch();
  }

  /// Nothing would change at an edge without outside stimulus (TIMING 10.5).
  [[nodiscard]] bool idle() const noexcept { return !active_ && completions_.empty() && !queue_examined_; }
  /// The clock's turn: completions up to here are taken at this edge (TIMING 10.4).
  void freeze_completions() {
    edge_completions_.swap(completions_);
    completions_.clear();
    edge_queue_examined_ = std::exchange(queue_examined_, false);
  }
  /// A unit's process is done.
  void complete(std::int32_t unit, flight* done) {
    completions_.emplace_back(unit, done);
    if (unit >= 0) commit_queue_.push_back(done), queue_examined_ = true;
  }

  // --- results ------------------------------------------------------------------------------------------------
  [[nodiscard]] const timed_core& program() const noexcept { return program_; }
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  [[nodiscard]] instant finish_time() const noexcept { return finish_time_; }
  [[nodiscard]] std::int64_t rounds() const noexcept { return rounds_; }
  [[nodiscard]] std::int64_t pc() const noexcept { return pc_; }
  [[nodiscard]] std::int64_t length() const noexcept { return length_; }
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] double dynamic_energy() const noexcept {
    double sum = 0;
    for (const double part : {fetch_total, decode_total, registers, scalar, matrix_total, vector_total, 0.0, local.dynamic_energy()}) sum += part;
    return sum;
  }

 private:
  using widths = std::pair<std::int32_t, std::int32_t>;
  using register_write = std::pair<std::uint8_t, std::int32_t>;
  struct read_address {
    std::uint8_t rd = 0, rs1 = 0, rs2 = 0;
    bool pair = false;
    bool operator==(const read_address&) const = default;
  };
  struct read_values {
    std::int32_t rd = 0, rs1 = 0, rs2 = 0;
    std::uint64_t rd_pair = 0, rs1_pair = 0;
    bool operator==(const read_values&) const = default;
  };
  struct scalar_operation {
    bool active = false;
    std::int64_t pc = 0;
    isa::opcode op = isa::opcode::nop;
    std::uint8_t rd = 0;
    std::int32_t rs1 = 0, rs2 = 0, immediate = 0;
    std::uint64_t address = 0;
    bool operator==(const scalar_operation&) const = default;
  };
  struct entry {
    flight* what;
    bool open;  ///< not committed
  };

  void fetch(instant now) {
    if (length_ == 0) {
      fetched_ = -1;
      if (!throughput_) finish(now);
      return;
    }
    if (pc_ == length_) {
      fetched_ = -1;
      return;
    }
    wraps_ = false;
    if (throughput_ && pc_ == length_ - 1) ++rounds_, wraps_ = true;  // rounds count at fetch (quirk 23)
    fetched_ = pc_;
    next_pc_ = pc_ + 1;
    fetch_total += fetch_energy_;
  }
  void finish(instant now) { finished_ = true, finish_time_ = now; }

  /// Evaluations after the first one at the time of the first decode are free (quirk 28).
  void count_decode(instant now) {
    if (in_decode_ < 0) return;
    if (first_decode_ < 0) first_decode_ = now;
    else if (first_decode_ == now) return;
    decode_total += decode_energy_;
  }
  /// One register read; true where the outputs changed.
  bool read_registers() {
    registers += read_energy_;
    const auto value = [&](unsigned r) { return r == port_.first ? port_.second : r == delayed_.first ? delayed_.second : array_[r]; };
    const auto pair = [&](unsigned r) {
      return static_cast<std::uint64_t>(static_cast<std::uint32_t>(value(r))) << 32 | static_cast<std::uint32_t>(value(r + 1));
    };
    read_values now;
    if (address_.pair) now = {0, 0, value(address_.rs2), pair(address_.rd), pair(address_.rs1)};
    else now = {value(address_.rd), value(address_.rs1), value(address_.rs2), 0, 0};
    const bool changed = now != values_;
    values_ = now;
    return changed;
  }
  static register_write execute(const scalar_operation& s) {
    const std::int64_t a = s.rs1, b = s.rs2, i = s.immediate;
    switch (s.op) {
      case isa::opcode::sadd: return {s.rd, wrap(a + b)};
      case isa::opcode::saddi: return {s.rd, wrap(a + i)};
      case isa::opcode::ssub: return {s.rd, wrap(a - b)};
      case isa::opcode::smul: return {s.rd, wrap(a * b)};
      case isa::opcode::smuli: return {s.rd, wrap(a * i)};
      case isa::opcode::sldi: return {s.rd, s.immediate};
      default: return {0, 0};  // sld writes 0 into r0 (quirk 4)
    }
  }

  void decode_instruction(const timed_instruction* inst) {
    decoded_ = nullptr;
    scalar_offer_ = {};
    if (inst == nullptr) return;
    if (inst->what == kind::widths) {
      next_widths_ = {inst->select, inst->value};
      return;
    }
    if (inst->what == kind::scalar) {
      scalar_offer_ = {true, in_decode_, inst->op, inst->rd, values_.rs1, values_.rs2, inst->immediate,
                       inst->op == isa::opcode::sld ? values_.rs1_pair + static_cast<std::uint64_t>(static_cast<std::int64_t>(inst->value)) : 0};
      return;
    }
    flight& x = flights_[next_flight_ % flights_.size()];
    x = {};
    x.number = next_flight_++;
    x.pc = in_decode_, x.what = inst, x.input_bits = widths_.first, x.output_bits = widths_.second;
    ranges(x, *inst);
    decoded_ = &x;
  }
  /// Ranges that an instruction reads and writes (TIMING 2 and 4, quirks 2, 3 and 8).
  void ranges(flight& x, const timed_instruction& i) const {
    const std::int64_t ib = bytes_of(x.input_bits), ob = bytes_of(x.output_bits);
    const std::int64_t od = (i.select & 1) != 0 ? i.value : 0, o1 = (i.value & 2) != 0 ? i.value : 0, o2 = (i.value & 4) != 0 ? i.value : 0;
    const auto reads = [&](std::int64_t from, std::int64_t bytes) { x.reads[x.read_count++] = {from, from + bytes}; };
    const auto writes = [&](std::int64_t from, std::int64_t bytes) { x.writes = true, x.write = {from, from + bytes}; };
    const std::int64_t rd = values_.rd, r1 = values_.rs1, r2 = values_.rs2;
    using isa::opcode;
    if (i.what == kind::matrix) {
      const auto& m = c_.matrix_config;
      const auto columns = static_cast<std::int64_t>(static_cast<double>(m.xbar_size[1] * m.cell_precision) * 1.0 / i.immediate);
      reads(r1, m.xbar_size[0] * ib);
      writes(rd, columns * program_.groups[static_cast<std::size_t>(i.select)] * ob);
    } else if (i.what == kind::vector) {
      const std::int64_t a = i.op == opcode::vmv ? r1 : r1 + ib * o1;
      const bool no_second = i.op == opcode::vavg || i.op == opcode::vmv || i.op == opcode::vrsu || i.op == opcode::vrsl;
      const std::int64_t b = no_second ? r2 : r2 + ib * o2;
      std::int64_t d = rd + ob * od;
      if (i.op == opcode::vvdmul || i.op == opcode::vavg || i.op == opcode::vmv) d = rd;
      else if (i.op == opcode::vvadd || i.op == opcode::vvsub || i.op == opcode::vvmax || i.op == opcode::vrelu) d = rd + ib * od;
      const std::int64_t n = i.length;
      switch (i.op) {
        case opcode::vrelu: case opcode::vtanh: case opcode::vsigm: reads(a, n * ib), writes(d, n * ob); break;
        case opcode::vavg: reads(a, n * ib), writes(d, ob); break;
        case opcode::vmv: break;
        case opcode::vvadd: case opcode::vvsub: case opcode::vvmax: reads(a, n * ib), reads(b, n * ib), writes(d, n * ib); break;
        default: reads(a, n * ib), reads(b, n * ib), writes(d, n * ob); break;
      }
    } else if (i.what == kind::transfer) {
      const std::int64_t a = r1 + o1, d = rd + od, n = i.size;
      switch (i.op) {
        case opcode::ld: case opcode::recv: writes(d, n); break;
        case opcode::st: case opcode::send: reads(a, n); break;
        case opcode::lldi: writes(d, 1); break;
        case opcode::lmv: reads(a, n), writes(d, n); break;
        default: break;
      }
    }
  }

  /// The dispatch verdict (TIMING 6).
  void dispatch() {
    flight* const x = dispatched_;
    bool blocked = static_cast<std::int64_t>(buffer_.size()) == c_.rob_size;
    if (x != nullptr && !blocked)
      for (const auto& e : buffer_)
        if (e.open && conflict(*x, *e.what)) {
          blocked = true;
          break;
        }
    bool ready = !blocked;
    if (ready && x != nullptr) {
      if (x->what->what == kind::vector) ready = !vector_busy;
      else if (x->what->what == kind::transfer) ready = !transfer_busy;
      else if (x->what->what == kind::matrix) ready = router_ == nullptr || !group_busy[static_cast<std::size_t>(router_->what->select)];
    }
    ready_ = ready;
    flight* const out = ready ? x : nullptr;
    if (out != out_ && out != nullptr) update_buffer_ = true;
    out_ = out;
    active_ = update_buffer_ || out != nullptr || scalar_offer_ != scalar_latch_ || written_ != delayed_ ||
              (router_ != nullptr && !group_busy[static_cast<std::size_t>(router_->what->select)]) || vector_commit_ != nullptr ||
              transfer_commit_ != nullptr || matrix_commit_ != nullptr ||
              (ready && (fetched_ != in_decode_ || decoded_ != x || (wraps_ ? 0 : next_pc_) != pc_ || next_widths_ != widths_));
  }

  void retire(flight& done, instant now) {
    std::size_t at = 0;
    while (at < buffer_.size() && buffer_[at].what != &done) ++at;
    if (at == buffer_.size()) throw error(error_code::execution, "Can not find value");
    buffer_[at].open = false;
    std::int64_t last = -1;
    if (at == 0)
      while (!buffer_.empty() && !buffer_.front().open) {
        last = buffer_.front().what->pc;
        buffer_.pop_front();
      }
    if (!throughput_ && last == length_ - 1 && last >= 0) finish(now);
    done.recorded = false;
  }

  const timed_core& program_;
  const target::core_configuration& c_;
  bool throughput_;
  std::size_t index_;
  std::int64_t length_;

 public:
  // What the units' processes use (units.hpp).
  memory_port local;
  bool vector_busy = false, transfer_busy = false;
  std::vector<bool> group_busy;
  flight *vector_flight = nullptr, *transfer_flight = nullptr;
  std::vector<flight*> group_flight;
  /// Energy by component, pJ.
  double fetch_total = 0, decode_total = 0, registers = 0, scalar = 0, matrix_total = 0, vector_total = 0;

 private:
  // Front end.
  std::int64_t pc_ = 0, next_pc_ = 0, fetched_ = -1, in_decode_ = -1;
  bool wraps_ = false;
  widths widths_{0, 0}, next_widths_{0, 0};
  std::array<std::int32_t, 288> array_{};  // registers; pairs may name the one behind the last
  register_write port_{0, 0}, written_{0, 0}, delayed_{0, 0};
  read_address address_;
  read_values values_;
  scalar_operation scalar_offer_, scalar_latch_;
  instant first_decode_ = -1;
  changes changed_;
  // Dispatch and reorder buffer.
  std::vector<flight> flights_;
  std::uint64_t next_flight_ = 0;
  flight *decoded_ = nullptr, *dispatched_ = nullptr, *out_ = nullptr, *router_ = nullptr;
  flight *vector_commit_ = nullptr, *transfer_commit_ = nullptr, *matrix_commit_ = nullptr;
  bool ready_ = true, update_buffer_ = true, active_ = true;
  std::deque<entry> buffer_;
  std::deque<flight*> commit_queue_;
  std::vector<std::pair<std::int32_t, flight*>> completions_, edge_completions_;
  bool queue_examined_ = false, edge_queue_examined_ = false;
  // Results.
  bool finished_ = false;
  instant finish_time_ = 0;
  std::int64_t rounds_ = 0;
  double fetch_energy_ = 0, decode_energy_ = 0, read_energy_ = 0, write_energy_ = 0, scalar_energy_ = 0;
};

}  // namespace raptor::sim::timing
