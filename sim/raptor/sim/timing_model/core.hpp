#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "raptor/sim/timing_model/flights.hpp"
#include "raptor/sim/timing_model/hazards.hpp"
#include "raptor/sim/timing_model/memory_port.hpp"
#include "raptor/sim/timing_model/observer.hpp"
#include "raptor/sim/timing_model/pending.hpp"
#include "raptor/sim/timing_model/program.hpp"
#include "raptor/sim/timing_model/registers.hpp"
#include "raptor/target/configuration.hpp"

/// One core between its clock edges: front end, dispatch, router and commits (TIMING 3 to 6 and 12). What the units do in time
/// is in units.hpp.
namespace raptor::sim::timing {

template <observes Observer>
class core {
 public:
  /// All must outlive the core.
  core(const timed_core& program, const target::configuration& hardware, std::size_t index, Observer& observer)
      : stream_(program.stream.data()), length_(static_cast<std::int64_t>(program.stream.size())), index_(index),
        throughput_(hardware.sim_config.sim_mode == 0), buffer_(hardware.chip_config.core_config.rob_size), groups_(program.groups.size()), program_(program),
        c_(hardware.chip_config.core_config), observer_(observer), local_(c_.local_memory_config) {
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
    spend(registers_total_, read_energy_, component::registers);
    spend(registers_total_, write_energy_, component::registers);
    fetch(now);
    dispatch();
  }

  /// One clock edge. `started(unit or group)` is called for each unit that starts; the vector or transfer unit comes before
  /// an array group (TIMING 10.3).
  template <class Started>
  void edge(instant now, const Started& started) {
    flight *const out = out_, *const router = router_;
    const bool router_moves = router == nullptr || !group_of(*router).busy;
    if (out != nullptr) {
      if (out->unit == kind::transfer && transfer_ == nullptr) {
        transfer_ = out;
        started(transfer_unit);
      } else if (out->unit == kind::vector && vector_ == nullptr) {
        vector_ = out;
        started(vector_unit);
      }
    }
    if (router != nullptr && router_moves) {
      group_of(*router) = {router, true};
      started(router->what->select);
    }
    // Commits seen in the previous cycle, then those of this edge.
    flight *const matrix = matrix_commit_, *const vector = vector_commit_, *const transfer = transfer_commit_;
    vector_commit_ = transfer_commit_ = nullptr;
    if (frozen_ != 0) take_completions();
    if (examine_queue_) {
      matrix_commit_ = nullptr;
      if (!commit_queue_.empty()) {
        matrix_commit_ = commit_queue_.front();
        commit_queue_.pop_front();
        queue_changed_ = true;
      }
    }
    if (router_moves) router_ = out != nullptr && out->unit == kind::matrix ? out : nullptr;
    const bool update = update_buffer_;
    update_buffer_ = vector_commit_ != vector || transfer_commit_ != transfer || matrix_commit_ != matrix;
    if (update) {
      if (out != nullptr) {
        buffer_.push(*out);
        free_to_go_ = blocked_ = nullptr;
      }
      if (matrix != nullptr) retire(*matrix, now);
      if (vector != nullptr) retire(*vector, now);
      if (transfer != nullptr) retire(*transfer, now);
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
    if (scalar_offer_ != scalar_latch_) scalar_latch_ = scalar_offer_, changed_.scalar = true;
    changed_.registers = registers_.edge();
  }

  /// The combinational state after the processes of an instant have run once (TIMING 12, "Counting evaluations").
  void settle(instant now) {
    if (changed_.any()) {
      if (changed_.pc) fetch(now);
      bool redo = false;
      if (changed_.decode || changed_.widths) redo = true, count_decode(now);
      bool values_changed = false;
      if (changed_.registers) {
        registers_.store();
        values_changed = read_registers();
      }
      bool address_changed = false;
      if (changed_.decode && in_decode_ >= 0) address_changed = registers_.address(stream_[in_decode_]);
      bool port_changed = false;
      if (changed_.scalar && scalar_latch_.pc >= 0) {
        spend(scalar_total_, scalar_energy_, component::scalar, scalar_latch_.pc);
        port_changed = registers_.write(execute_scalar(stream_[scalar_latch_.pc], scalar_latch_));
      }
      if (values_changed) redo = true, count_decode(now);
      bool again = false;
      if (address_changed || port_changed) again = read_registers();
      if (port_changed) spend(registers_total_, write_energy_, component::registers, scalar_latch_.pc);
      if (again) redo = true, count_decode(now);
      if (redo) decode();
    }
    dispatch();
  }

  /// Nothing would change at an edge without outside stimulus (TIMING 10.5).
  [[nodiscard]] bool idle() const noexcept { return !active_ && completions_.empty() && !queue_changed_; }
  /// The clock's turn: completions up to here are taken at this edge (TIMING 10.4).
  void freeze_completions() noexcept {
    frozen_ = completions_.size();
    examine_queue_ = std::exchange(queue_changed_, false);
  }
  /// A unit's process is done.
  void complete(std::int32_t unit, flight* done) {
    completions_.emplace_back(unit, done);
    if (unit >= 0) commit_queue_.push_back(done), queue_changed_ = true;
  }
  /// What a unit works on.
  [[nodiscard]] flight* job(std::int32_t unit) const noexcept {
    return unit == vector_unit ? vector_ : unit == transfer_unit ? transfer_ : groups_[static_cast<std::size_t>(unit)].job;
  }
  [[nodiscard]] memory_port& local() noexcept { return local_; }
  [[nodiscard]] const memory_port& local() const noexcept { return local_; }
  void spend_matrix(double energy) noexcept { matrix_total_ += energy; }
  void spend_vector(double energy) noexcept { vector_total_ += energy; }

  // --- results ------------------------------------------------------------------------------------------------
  [[nodiscard]] const timed_core& program() const noexcept { return program_; }
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  [[nodiscard]] instant finish_time() const noexcept { return finish_time_; }
  [[nodiscard]] std::int64_t rounds() const noexcept { return rounds_; }
  [[nodiscard]] std::int64_t pc() const noexcept { return pc_; }
  [[nodiscard]] std::int64_t length() const noexcept { return length_; }
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  /// Instructions that fetch has offered.
  [[nodiscard]] std::int64_t fetches() const noexcept { return fetches_; }
  /// Dynamic energy of one of the core's components, pJ.
  [[nodiscard]] double energy(component part) const noexcept {
    switch (part) {
      case component::fetch: return fetch_total_;
      case component::decode: return decode_total_;
      case component::registers: return registers_total_;
      case component::scalar: return scalar_total_;
      case component::matrix: return matrix_total_;
      case component::vector: return vector_total_;
      case component::local_memory: return local_.dynamic_energy();
      default: return 0;
    }
  }
  [[nodiscard]] double dynamic_energy() const noexcept {
    double sum = 0;
    for (std::size_t part = 0; part <= static_cast<std::size_t>(component::local_memory); ++part) sum += energy(static_cast<component>(part));
    return sum;
  }
  /// The oldest instruction that has not been retired; nullptr: none.
  [[nodiscard]] const flight* oldest() noexcept { return buffer_.oldest(); }

 private:
  using widths = std::pair<std::int32_t, std::int32_t>;
  struct group {
    flight* job = nullptr;
    bool busy = false;
  };
  /// What changed at an edge; settling reacts to it.
  struct changes {
    bool pc = false, decode = false, widths = false, scalar = false, registers = false;
    [[nodiscard]] bool any() const noexcept { return pc || decode || widths || scalar || registers; }
  };

  [[nodiscard]] group& group_of(const flight& f) noexcept { return groups_[static_cast<std::size_t>(f.what->select)]; }
  void spend(double& total, double energy, component part, std::int64_t pc = 0) {
    total += energy;
    if constexpr (Observer::enabled) observer_.spend(index_, pc, part, energy);
  }

  void fetch(instant now) {
    fetched_ = -1;
    if (pc_ == length_) {
      if (length_ == 0 && !throughput_) finish(now);
      return;
    }
    wraps_ = false;
    if (throughput_ && pc_ == length_ - 1) ++rounds_, wraps_ = true;  // rounds count at fetch (quirk 23)
    fetched_ = pc_;
    next_pc_ = pc_ + 1;
    ++fetches_;
    spend(fetch_total_, fetch_energy_, component::fetch, pc_);
  }
  void finish(instant now) { finished_ = true, finish_time_ = now; }

  /// Evaluations after the first one at the time of the first decode are free (quirk 28).
  void count_decode(instant now) {
    if (in_decode_ < 0) return;
    if (first_decode_ < 0) first_decode_ = now;
    else if (first_decode_ == now) return;
    spend(decode_total_, decode_energy_, component::decode, in_decode_);
  }
  /// One register read; true where the outputs changed.
  bool read_registers() {
    spend(registers_total_, read_energy_, component::registers, in_decode_ < 0 ? length_ - 1 : in_decode_);
    return registers_.read();
  }

  void decode() {
    decoded_ = nullptr;
    scalar_offer_ = {};
    if (in_decode_ < 0) return;
    const timed_instruction& i = stream_[in_decode_];
    const kind what = i.what();
    if (what == kind::widths) {
      next_widths_ = {i.select, i.value};
      return;
    }
    const auto& values = registers_.values();
    if (what == kind::scalar) {
      scalar_offer_ = {in_decode_, values.rs1, values.rs2,
                       i.op == isa::opcode::sld ? registers_.rs1_pair() + static_cast<std::uint64_t>(static_cast<std::int64_t>(i.value)) : 0};
      return;
    }
    flight& x = pool_.take();
    x.what = &i, x.pc = in_decode_, x.unit = what, x.input_bits = widths_.first, x.output_bits = widths_.second;
    find_hazards(x, values, c_.matrix_config, program_.groups);
    decoded_ = &x;
  }

  /// The dispatch verdict (TIMING 6).
  void dispatch() {
    flight* const x = dispatched_;
    bool ready = !buffer_.full();
    if (ready && x != nullptr) {
      ready = (blocker_ == nullptr || !blocker_->open || blocked_ != x) && !conflicts(*x);
      if (ready) {
        if (x->unit == kind::transfer) ready = transfer_ == nullptr;
        else if (x->unit == kind::vector) ready = vector_ == nullptr;
        else ready = router_ == nullptr || !group_of(*router_).busy;
      }
    }
    ready_ = ready;
    flight* const out = ready ? x : nullptr;
    if (out != out_ && out != nullptr) update_buffer_ = true;
    out_ = out;
    active_ = update_buffer_ || out != nullptr || vector_commit_ != nullptr || transfer_commit_ != nullptr || matrix_commit_ != nullptr ||
              scalar_offer_ != scalar_latch_ || registers_.edge_changes() || (router_ != nullptr && !group_of(*router_).busy) ||
              (ready && (fetched_ != in_decode_ || decoded_ != x || (wraps_ ? 0 : next_pc_) != pc_ || next_widths_ != widths_));
  }
  /// Remembers the answer: what blocks an instruction blocks it until it commits, and what did not conflict while it waited never does.
  [[nodiscard]] bool conflicts(const flight& x) {
    if (free_to_go_ == &x) return false;
    blocked_ = &x;
    blocker_ = buffer_.find_conflict(x);
    if (blocker_ == nullptr) free_to_go_ = &x;
    return blocker_ != nullptr;
  }

  void take_completions() {
    for (std::size_t i = 0; i < frozen_; ++i) {
      const auto& [unit, done] = completions_[i];
      if (unit == vector_unit) vector_ = nullptr, vector_commit_ = done;
      else if (unit == transfer_unit) transfer_ = nullptr, transfer_commit_ = done;
      else groups_[static_cast<std::size_t>(unit)].busy = false;
    }
    completions_.erase(completions_.begin(), completions_.begin() + static_cast<std::ptrdiff_t>(frozen_));
    frozen_ = 0;
  }
  void retire(flight& done, instant now) {
    const auto last = buffer_.retire(done);
    if (!throughput_ && last >= 0 && last == length_ - 1) finish(now);
  }

  // Front end.
  const timed_instruction* stream_;
  std::int64_t length_;
  std::size_t index_;
  bool throughput_, wraps_ = false, ready_ = true, update_buffer_ = true, active_ = true, finished_ = false;
  changes changed_;
  std::int64_t pc_ = 0, next_pc_ = 0, fetched_ = -1, in_decode_ = -1;
  widths widths_{0, 0}, next_widths_{0, 0};
  scalar_offer scalar_offer_, scalar_latch_;
  // Dispatch, units and commits.
  flight *decoded_ = nullptr, *dispatched_ = nullptr, *out_ = nullptr, *router_ = nullptr, *vector_ = nullptr, *transfer_ = nullptr;
  flight *vector_commit_ = nullptr, *transfer_commit_ = nullptr, *matrix_commit_ = nullptr;
  const flight *blocked_ = nullptr, *blocker_ = nullptr, *free_to_go_ = nullptr;
  bool queue_changed_ = false, examine_queue_ = false;
  std::size_t frozen_ = 0;
  std::vector<std::pair<std::int32_t, flight*>> completions_;
  reorder_buffer buffer_;
  register_file registers_;
  std::vector<group> groups_;
  flight_queue commit_queue_;
  flight_pool pool_;
  const timed_core& program_;
  const target::core_configuration& c_;
  [[no_unique_address]] std::conditional_t<Observer::enabled, Observer&, no_observer> observer_;
  memory_port local_;
  // Energy by component, pJ, and of one event.
  double fetch_total_ = 0, decode_total_ = 0, registers_total_ = 0, scalar_total_ = 0, matrix_total_ = 0, vector_total_ = 0;
  double fetch_energy_ = 0, decode_energy_ = 0, read_energy_ = 0, write_energy_ = 0, scalar_energy_ = 0;
  // Results.
  instant first_decode_ = -1, finish_time_ = 0;
  std::int64_t rounds_ = 0, fetches_ = 0;
};

}  // namespace raptor::sim::timing
