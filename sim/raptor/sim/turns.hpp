#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "raptor/isa/opcode.hpp"
#include "raptor/sim/memory_access.hpp"
#include "raptor/sim/schedule_options.hpp"

/// Which core runs next, and for how long.
namespace raptor::sim {

/// Turns in the order in which cores became able to run, each until the core blocks.
class ready_queue {
 public:
  /// A core became able to run.
  void add(std::size_t core) { ready_.push_back(core); }
  /// The core whose turn it is; none where no core can run.
  [[nodiscard]] std::optional<std::size_t> next() {
    if (ready_.empty()) return {};
    const std::size_t core = ready_.front();
    ready_.pop_front();
    return core;
  }

 private:
  std::deque<std::size_t> ready_;
};

/// What a diagnostic schedule did.
struct schedule_event {
  enum class kind : std::uint8_t { core_stall, instruction_stall, decision };
  kind what = kind::decision;
  const char* reason = "";          ///< of a decision
  std::size_t core = 0;             ///< that is stalled, or selected
  std::size_t index = 0;            ///< of its next instruction, of stalls
  std::size_t iteration = 0;        ///< of stalls
  std::uint64_t remaining_cycles = 0;  ///< of stalls
  std::uint64_t deferrals = 0;         ///< of decisions: turns that others got so far
};

/// The turns of a diagnostic schedule. A cycle is one executed instruction; where all that could run are stalled, time passes at once.
///
/// Determinism: randomized draws 64 bits d of std::mt19937_64 a turn: of n cores that can run, in the order in which they became able to, the
/// one at d mod n gets 2^((d / 2^32) mod 12) instructions, so that both close interleavings and long leads occur.
class schedule_turns {
 public:
  using observer = std::function<void(const schedule_event&)>;

  /// Requires: check_schedule has passed. `cores`: that have a stream.
  schedule_turns(const schedule_options& options, std::size_t cores, std::size_t iterations)
      : options_(options), cores_(cores), iterations_(iterations), random_(options.seed) {}
  void observe(observer to) { observe_ = std::move(to); }

  [[nodiscard]] std::uint64_t cycle() const noexcept { return cycle_; }
  /// Reads of the target that were held back, and those of them before which the writer had written again.
  [[nodiscard]] std::uint64_t held_reads() const noexcept { return held_reads_; }
  [[nodiscard]] std::uint64_t overtaken_reads() const noexcept { return overtaken_reads_; }

  void add(std::size_t core) { ready_.push_back(core); }
  [[nodiscard]] std::optional<std::size_t> next() {
    quantum_ = std::numeric_limits<std::uint64_t>::max();
    wake();
    if (ready_.empty() && !stalled_.empty()) {
      cycle_ = std::max(cycle_, std::min_element(stalled_.begin(), stalled_.end())->first);
      wake();
    }
    if (held_) {
      if (overwritten_) return release("the writer has written again");
      if (ready_.empty()) return release("no other core can run");
      if (deferrals_ >= options_.deferral_budget) return release("the deferral budget is used up");
      ++deferrals_;
      const auto writer = std::find(ready_.begin(), ready_.end(), options_.target->writer_core);
      const bool prefers = writer != ready_.end();
      const std::size_t core = take(prefers ? static_cast<std::size_t>(writer - ready_.begin()) : 0);
      report_decision(prefers ? "the writer runs while the reader is held" : "another core runs while the reader is held", core);
      return core;
    }
    if (ready_.empty()) return {};
    if (options_.policy != schedule_policy::randomized) return take(0);
    const std::uint64_t draw = random_();
    quantum_ = std::uint64_t{1} << ((draw >> 32) % 12);
    return take(static_cast<std::size_t>(draw % ready_.size()));
  }

  /// Asked before each instruction of the core whose turn it is. False: its turn ends, and it comes back by next().
  [[nodiscard]] bool may_execute(const core_state& core) {
    if (core.next == 0 && options_.stalled_core && options_.stalled_core->core == core.id && core_stalls_ == core.iteration) {
      ++core_stalls_;
      stall(core, schedule_event::kind::core_stall, options_.stalled_core->cycles);
      return false;
    }
    if (is_stalled_instruction(core)) {
      instruction_stalled_in_ = core.iteration;
      stall(core, schedule_event::kind::instruction_stall, options_.stalled_instruction->cycles);
      return false;
    }
    if (is_target_read(core)) {
      held_ = core.id, held_in_ = core.iteration, deferrals_ = 0;
      ++held_reads_;
      overwritten_ = written_ > 0 && written_ - 1 >= goal();
      report_decision("the reader is held", core.id);
      return false;
    }
    const bool must_yield = held_ && overwritten_;  // the writer has done its worst: now the reader
    if (quantum_ == 0 || must_yield) {
      ready_.push_back(core.id);
      return false;
    }
    --quantum_;
    return true;
  }
  /// Told after each instruction, while the core stands at it.
  void executed(const core_state& core) {
    ++cycle_;
    if (options_.policy != schedule_policy::adversarial || core.id != options_.target->writer_core || core.next != options_.target->writer_index) return;
    const isa::instruction& i = core.stream[core.next];
    if (!touches_target(memory_access::address(core, i, i.rd, memory_access::rd_bit, 1), i.word3)) return;
    written_ = core.iteration + 1;
    if (held_ && core.iteration >= goal()) overwritten_ = true;
  }

  [[nodiscard]] bool has_barrier() const noexcept { return options_.global_barrier; }
  /// Told when a core has ended a body that is not its last and waits at the barrier: the cores that may go on, all or none.
  [[nodiscard]] std::vector<std::size_t> arrive(std::size_t core) {
    arrived_.push_back(core);
    if (arrived_.size() < cores_) return {};
    std::sort(arrived_.begin(), arrived_.end());
    return std::exchange(arrived_, {});
  }

 private:
  [[nodiscard]] std::size_t take(std::size_t at) {
    const std::size_t core = ready_[at];
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
    return core;
  }
  [[nodiscard]] std::size_t release(const char* reason) {
    const std::size_t core = *std::exchange(held_, std::nullopt);
    released_ = held_in_;
    if (std::exchange(overwritten_, false)) ++overtaken_reads_;
    report_decision(reason, core);
    return core;
  }
  void report_decision(const char* reason, std::size_t core) const {
    if (observe_) observe_({schedule_event::kind::decision, reason, core, 0, 0, 0, deferrals_});
  }

  void stall(const core_state& core, schedule_event::kind what, std::uint64_t cycles) {
    stalled_.emplace_back(cycle_ + cycles, core.id);
    if (observe_) observe_({what, "", core.id, core.next, core.iteration, cycles, 0});
  }
  /// Cores whose stall is over can run, the one that was over first in front.
  void wake() {
    if (stalled_.empty()) return;
    std::sort(stalled_.begin(), stalled_.end());
    const auto end = std::find_if(stalled_.begin(), stalled_.end(), [&](const auto& s) { return s.first > cycle_; });
    for (auto s = stalled_.begin(); s != end; ++s) ready_.push_back(s->second);
    stalled_.erase(stalled_.begin(), end);
  }
  [[nodiscard]] bool is_stalled_instruction(const core_state& core) const {
    const auto& s = options_.stalled_instruction;
    return s && s->core == core.id && s->index == core.next && (!s->iteration || *s->iteration == core.iteration) && instruction_stalled_in_ != core.iteration;
  }

  /// The iteration in which the writer would overwrite what the held read needs.
  [[nodiscard]] std::size_t goal() const { return options_.target->least_writer_iteration.value_or(held_in_ + 1); }
  [[nodiscard]] bool touches_target(std::int64_t address, std::int64_t bytes) const {
    return bytes != 0 && address < options_.target->end && options_.target->begin < address + bytes;
  }
  /// True before a read of the target that can be held back: it has not been, and the writer has bodies left.
  [[nodiscard]] bool is_target_read(const core_state& core) const {
    if (options_.policy != schedule_policy::adversarial) return false;
    const dependency_target& t = *options_.target;
    if (core.id != t.reader_core || core.next != t.reader_index || released_ == core.iteration) return false;
    if (t.reader_iteration && *t.reader_iteration != core.iteration) return false;
    if (t.least_writer_iteration.value_or(core.iteration + 1) >= iterations_) return false;
    const isa::instruction& i = core.stream[core.next];
    if (i.op == isa::opcode::sld) return touches_target(std::int64_t{core.registers[i.r1]} + i.word2, memory_access::word);
    return touches_target(memory_access::address(core, i, i.r1, memory_access::r1_bit, 1), i.word3);
  }

  const schedule_options& options_;
  std::size_t cores_;
  std::size_t iterations_;
  std::mt19937_64 random_;
  observer observe_;
  std::deque<std::size_t> ready_;
  std::vector<std::pair<std::uint64_t, std::size_t>> stalled_;  ///< until which cycle, core
  std::vector<std::size_t> arrived_;                            ///< at the barrier
  std::uint64_t cycle_ = 0;
  std::uint64_t quantum_ = 0;                                   ///< instructions left in this turn
  std::size_t core_stalls_ = 0;                                 ///< bodies of the stalled core that have been delayed
  std::optional<std::size_t> instruction_stalled_in_;           ///< the last iteration in which the stalled instruction has been delayed
  std::optional<std::size_t> held_;                             ///< the reader, while it is held back
  std::size_t held_in_ = 0;                                     ///< its iteration
  std::optional<std::size_t> released_;                         ///< the last iteration whose read was held back
  std::uint64_t deferrals_ = 0;
  std::uint64_t held_reads_ = 0;
  std::uint64_t overtaken_reads_ = 0;
  std::size_t written_ = 0;                                     ///< iterations up to the last in which the writer has written the target
  bool overwritten_ = false;                                    ///< the held read has lost its data
};

}  // namespace raptor::sim
