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

/// What all cores of a chip share: the configuration, and the energy of one event, pJ.
struct core_constants {
  explicit core_constants(const target::configuration& hardware)
      : configuration(hardware.chip_config.core_config), throughput(hardware.sim_config.sim_mode == 0), fetch(configuration.period * configuration.inst_fetch_dynamic_power),
        decode(configuration.period * (configuration.inst_decode_dynamic_power + configuration.inst_decode_offset_dynamic_power)),
        read(configuration.period * configuration.reg_file_read_dynamic_power), write(configuration.period * configuration.reg_file_write_dynamic_power),
        scalar(configuration.period * configuration.scalar_dynamic_power) {}
  const target::core_configuration& configuration;
  bool throughput;
  double fetch, decode, read, write, scalar;
};

template <observes Observer>
class core {
 public:
  /// All must outlive the core. Requires: fewer than 2³¹ instructions.
  core(const timed_core& program, const core_constants& shared, std::size_t index, Observer& observer)
      : stream_(program.stream.data()), shared_(&shared), length_(static_cast<std::int32_t>(program.stream.size())), index_(static_cast<std::uint32_t>(index)),
        throughput_(shared.throughput), buffer_(shared.configuration.rob_size), local_(shared.configuration.local_memory_config), groups_(program.groups.size()),
        program_(&program), observer_(observer) {}

  // --- time ---------------------------------------------------------------------------------------------------
  /// Time 0: fetch offers instruction 0, one register read and write are counted.
  void begin(instant now) {
    spend(registers_total_, shared_->read, component::registers);
    spend(registers_total_, shared_->write, component::registers);
    fetch(now);
    dispatch();
  }

  /// One clock edge. `started(unit or group)` is called for each unit that starts; the vector or transfer unit comes before
  /// an array group (TIMING 10.3).
  template <class Started>
  void edge(instant now, const Started& started) {
    const flight_number out = out_, router = router_;
    if (out != no_flight) {
      if (pool_[out].unit == kind::transfer && transfer_ == no_flight) {
        transfer_ = out;
        started(transfer_unit);
      } else if (pool_[out].unit == kind::vector && vector_ == no_flight) {
        vector_ = out;
        started(vector_unit);
      }
    }
    bool router_moves = true;
    if (router != no_flight && (router_moves = !group_of(router).busy)) {
      group_of(router) = {router, true};
      ++groups_busy_;
      started(instruction(pool_[router]).select);
    }
    // Commits seen in the previous cycle, then those of this edge.
    const flight_number matrix = matrix_commit_, vector = vector_commit_, transfer = transfer_commit_;
    vector_commit_ = std::exchange(take_vector_, false) ? std::exchange(vector_, no_flight) : no_flight;
    transfer_commit_ = std::exchange(take_transfer_, false) ? std::exchange(transfer_, no_flight) : no_flight;
    if (take_groups_ != 0) take_groups();
    if (examine_queue_) {
      matrix_commit_ = no_flight;
      if (!commit_queue_.empty()) matrix_commit_ = commit_queue_.take_front(), queue_changed_ = true;
    }
    if (router_moves) router_ = out != no_flight && pool_[out].unit == kind::matrix ? out : no_flight;
    move_on(now, out, matrix, vector, transfer);
  }
  /// An edge of which next_edge_is_private was true: no unit starts or completes at it.
  void private_edge(instant now) {
    examine_queue_ = std::exchange(queue_changed_, false);
    const flight_number matrix = matrix_commit_, vector = std::exchange(vector_commit_, no_flight), transfer = std::exchange(transfer_commit_, no_flight);
    if (examine_queue_) {
      matrix_commit_ = no_flight;
      if (!commit_queue_.empty()) matrix_commit_ = commit_queue_.take_front(), queue_changed_ = true;
    }
    if (router_ == no_flight) router_ = out_;  // a matrix instruction, or none
    move_on(now, out_, matrix, vector, transfer);
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
        spend(scalar_total_, shared_->scalar, component::scalar, scalar_latch_.pc);
        port_changed = registers_.write(execute_scalar(stream_[scalar_latch_.pc], scalar_latch_));
      }
      if (values_changed) redo = true, count_decode(now);
      bool again = false;
      if (address_changed || port_changed) again = read_registers();
      if (port_changed) spend(registers_total_, shared_->write, component::registers, scalar_latch_.pc);
      if (again) redo = true, count_decode(now);
      if (redo) decode();
    }
    dispatch();
  }

  /// The next edge concerns nothing but this core: no unit starts at it, and it does not finish the core.
  [[nodiscard]] bool next_edge_is_private() noexcept {
    if (vector_done_ || transfer_done_ || !groups_done_.empty()) return false;
    if (out_ != no_flight && pool_[out_].unit != kind::matrix) return false;
    if (router_ != no_flight && !group_of(router_).busy) return false;
    return throughput_ || pc_ != length_ || (vector_commit_ | transfer_commit_ | matrix_commit_) == no_flight;
  }
  [[nodiscard]] std::int32_t groups_busy() const noexcept { return groups_busy_; }
  [[nodiscard]] bool group_is_busy(std::size_t g) const noexcept { return groups_[g].busy; }

  /// Nothing would change at an edge without outside stimulus (TIMING 10.5).
  [[nodiscard]] bool idle() const noexcept { return !(active_ || vector_done_ || transfer_done_ || queue_changed_); }
  /// The clock's turn: completions up to here are taken at this edge (TIMING 10.4).
  void freeze_completions() noexcept {
    take_vector_ = std::exchange(vector_done_, false);
    take_transfer_ = std::exchange(transfer_done_, false);
    take_groups_ = groups_done_.size();
    examine_queue_ = std::exchange(queue_changed_, false);
  }
  /// A unit's process is done.
  void complete(std::int32_t unit) {
    if (unit == vector_unit) {
      vector_done_ = true;
    } else if (unit == transfer_unit) {
      transfer_done_ = true;
    } else {
      groups_done_.push_back(unit);
      commit_queue_.push_back(job(unit));
      queue_changed_ = true;
    }
  }
  /// What a unit works on.
  [[nodiscard]] flight_number job(std::int32_t unit) const noexcept {
    return unit == vector_unit ? vector_ : unit == transfer_unit ? transfer_ : groups_[static_cast<std::size_t>(unit)].job;
  }
  [[nodiscard]] const flight& at(flight_number n) const noexcept { return pool_[n]; }
  [[nodiscard]] const timed_instruction& instruction(const flight& f) const noexcept { return stream_[f.pc]; }
  [[nodiscard]] memory_port& local() noexcept { return local_; }
  [[nodiscard]] const memory_port& local() const noexcept { return local_; }
  void spend_matrix(double energy) noexcept { matrix_total_ += energy; }
  void spend_vector(double energy) noexcept { vector_total_ += energy; }

  // --- results ------------------------------------------------------------------------------------------------
  [[nodiscard]] const timed_core& program() const noexcept { return *program_; }
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
  /// The oldest instruction that has not been retired.
  [[nodiscard]] flight_number oldest() const noexcept { return buffer_.oldest(); }

 private:
  using widths = std::pair<std::int32_t, std::int32_t>;
  struct group {
    flight_number job = no_flight;
    bool busy = false;
  };
  /// What changed at an edge; settling reacts to it.
  struct changes {
    bool pc = false, decode = false, widths = false, scalar = false, registers = false;
    [[nodiscard]] bool any() const noexcept { return static_cast<bool>(pc | decode | widths | scalar | registers); }
  };

  [[nodiscard]] group& group_of(flight_number n) noexcept { return groups_[static_cast<std::size_t>(instruction(pool_[n]).select)]; }
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
    spend(fetch_total_, shared_->fetch, component::fetch, pc_);
  }
  void finish(instant now) { finished_ = true, finish_time_ = now; }

  /// Evaluations after the first one at the time of the first decode are free (quirk 28).
  void count_decode(instant now) {
    if (in_decode_ < 0) return;
    if (first_decode_ < 0) first_decode_ = now;
    else if (first_decode_ == now) return;
    spend(decode_total_, shared_->decode, component::decode, in_decode_);
  }
  /// One register read; true where the outputs changed.
  bool read_registers() {
    spend(registers_total_, shared_->read, component::registers, in_decode_ < 0 ? length_ - 1 : in_decode_);
    return registers_.read();
  }

  void decode() {
    decoded_ = no_flight;
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
      const bool pair = i.op == isa::opcode::sld;
      scalar_offer_ = {pair ? registers_.rs1_pair() + static_cast<std::uint64_t>(static_cast<std::int64_t>(i.value)) : 0, in_decode_, values.rs1, values.rs2};
      return;
    }
    decoded_ = pool_.take();
    flight& x = pool_[decoded_];
    x.pc = in_decode_, x.unit = what, x.input_bits = widths_.first, x.output_bits = widths_.second;
    find_hazards(x, i, values, shared_->configuration.matrix_config, program_->groups);
  }

  /// The dispatch verdict (TIMING 6).
  void dispatch() {
    const flight_number x = dispatched_;
    bool ready = !buffer_.full();
    if (ready && x != no_flight) {
      ready = !conflicts(x);
      if (ready) {
        const kind unit = pool_[x].unit;
        if (unit == kind::transfer) ready = transfer_ == no_flight;
        else if (unit == kind::vector) ready = vector_ == no_flight;
        else ready = router_ == no_flight || !group_of(router_).busy;
      }
    }
    ready_ = ready;
    const flight_number out = ready ? x : no_flight;
    if (out != out_ && out != no_flight) update_buffer_ = true;
    out_ = out;
    active_ = update_buffer_ || (out | vector_commit_ | transfer_commit_ | matrix_commit_) != no_flight || scalar_offer_ != scalar_latch_ ||
              registers_.edge_changes() || (router_ != no_flight && !group_of(router_).busy) ||
              (ready && (fetched_ != in_decode_ || decoded_ != x || (wraps_ ? 0 : next_pc_) != pc_ || next_widths_ != widths_));
  }
  /// Remembers the answer: what blocks an instruction blocks it until it commits, and what did not conflict while it waited never does.
  [[nodiscard]] bool conflicts(flight_number x) noexcept {
    if (free_to_go_ == x) return false;
    if (blocked_ == x && pool_[blocker_].open) return true;
    blocker_ = buffer_.find_conflict(pool_, pool_[x]);
    (blocker_ == no_flight ? free_to_go_ : blocked_) = x;
    return blocker_ != no_flight;
  }

  /// The rest of an edge: the reorder buffer, then the pipeline's registers.
  void move_on(instant now, flight_number out, flight_number matrix, flight_number vector, flight_number transfer) {
    const bool update = update_buffer_;
    update_buffer_ = vector_commit_ != vector || transfer_commit_ != transfer || matrix_commit_ != matrix;
    if (update) {
      if (out != no_flight) {
        buffer_.push(pool_, out);
        free_to_go_ = blocked_ = no_flight;
      }
      if (matrix != no_flight) retire(matrix, now);
      if (vector != no_flight) retire(vector, now);
      if (transfer != no_flight) retire(transfer, now);
    }
    // Pipeline registers; the scalar latch is not frozen.
    changed_ = {};
    if (ready_) {
      dispatched_ = decoded_;
      if (fetched_ != in_decode_) in_decode_ = fetched_, changed_.decode = true;
      const std::int32_t next = wraps_ ? 0 : next_pc_;
      if (next != pc_) pc_ = next, changed_.pc = true;
      if (next_widths_ != widths_) widths_ = next_widths_, changed_.widths = true;
    }
    if (scalar_offer_ != scalar_latch_) scalar_latch_ = scalar_offer_, changed_.scalar = true;
    changed_.registers = registers_.edge();
  }

  void take_groups() noexcept {
    for (std::size_t i = 0; i < take_groups_; ++i) groups_[static_cast<std::size_t>(groups_done_[i])].busy = false, --groups_busy_;
    groups_done_.erase(groups_done_.begin(), groups_done_.begin() + static_cast<std::ptrdiff_t>(take_groups_));
  }
  void retire(flight_number done, instant now) {
    const auto last = buffer_.retire(pool_, done);
    if (!throughput_ && last >= 0 && last == length_ - 1) finish(now);
  }

  // Ordered by use, so that an edge touches few lines of the cache.
  const timed_instruction* stream_;
  const core_constants* shared_;
  std::int32_t length_, pc_ = 0, next_pc_ = 0, fetched_ = -1, in_decode_ = -1;
  std::uint32_t index_;
  bool throughput_, wraps_ = false, ready_ = true, update_buffer_ = true, active_ = true;
  bool vector_done_ = false, transfer_done_ = false, take_vector_ = false, take_transfer_ = false, queue_changed_ = false, examine_queue_ = false;
  changes changed_;
  flight_number decoded_ = no_flight, dispatched_ = no_flight, out_ = no_flight, router_ = no_flight, vector_ = no_flight, transfer_ = no_flight;
  flight_number vector_commit_ = no_flight, transfer_commit_ = no_flight, matrix_commit_ = no_flight;
  flight_number blocked_ = no_flight, blocker_ = no_flight, free_to_go_ = no_flight;
  widths widths_{0, 0}, next_widths_{0, 0};
  scalar_offer scalar_offer_, scalar_latch_;
  reorder_buffer buffer_;
  flight_pool pool_;
  instant first_decode_ = -1;
  // Energy by component, pJ.
  double fetch_total_ = 0, decode_total_ = 0, registers_total_ = 0, scalar_total_ = 0, matrix_total_ = 0, vector_total_ = 0;
  register_file registers_;
  std::int64_t fetches_ = 0, rounds_ = 0;
  memory_port local_;
  // Only with array groups.
  std::size_t take_groups_ = 0;
  std::int32_t groups_busy_ = 0;
  std::vector<std::int32_t> groups_done_;
  std::vector<group> groups_;
  queue_of<flight_number> commit_queue_;
  // Seldom.
  const timed_core* program_;
  instant finish_time_ = 0;
  bool finished_ = false;
  [[no_unique_address]] std::conditional_t<Observer::enabled, Observer&, no_observer> observer_;
};

}  // namespace raptor::sim::timing
