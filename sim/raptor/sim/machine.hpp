#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "raptor/isa/check.hpp"
#include "raptor/isa/table.hpp"
#include "raptor/isa/text.hpp"
#include "raptor/sim/semantics.hpp"

/// A small machine that runs at compile time: several cores with memories of fixed size, for proofs about programs by static_assert and as
/// the plain model that the fast executor is compared with. Nothing is allocated in it.
namespace raptor::sim {

/// Sizes of a machine. Every core has `groups` array groups, each of at most `columns` weight columns.
struct machine_size {
  std::size_t cores = 1;
  std::size_t local_bytes = 64;
  std::size_t global_bytes = 64;
  std::size_t rows = 2;
  std::size_t columns = 2;
  std::size_t groups = 1;
};

/// How a run ended.
enum class run_state : std::uint8_t { finished, faulted, deadlocked };

/// Takes the first of the cores that can go on; a scheduler of one's own is any such function object.
struct lowest_core_first {
  constexpr std::size_t operator()(std::span<const std::size_t> runnable) const noexcept { return runnable.front(); }
};

template <machine_size Size>
class machine {
 public:
  static constexpr std::size_t core_count = Size.cores;

  /// The end of a run. `core` and `index` say where a fault happened. For a deadlock, `chain` has `chain_length` cores: each waits for the
  /// next, and the last for the first where `is_cycle`; otherwise nobody can ever release the last.
  struct result {
    run_state state = run_state::finished;
    fault what = fault::none;
    std::size_t core = 0;
    std::size_t index = 0;
    std::array<std::size_t, Size.cores> chain{};
    std::size_t chain_length = 0;
    bool is_cycle = false;

    [[nodiscard]] constexpr bool finished() const noexcept { return state == run_state::finished; }
  };

  /// Sets the stream of a core. The machine keeps a view.
  constexpr machine& load(std::size_t core, std::span<const isa::instruction> program) {
    cores_.at(core).program = program;
    return *this;
  }
  /// Sets the weights of an array group, row major, `rows` × `columns`.
  constexpr machine& weights(std::size_t core, std::size_t group, std::size_t columns, std::span<const float> values) {
    auto& target = cores_.at(core).groups.at(group);
    target.columns = columns;
    for (std::size_t k = 0; k < Size.rows * columns; ++k) target.values.at(k) = values[k];
    return *this;
  }
  /// Writes floats into global memory.
  constexpr machine& global(std::int64_t address, std::span<const float> values) {
    for (const float value : values) {
      const auto bits = std::bit_cast<std::uint32_t>(value);
      for (int k = 0; k < 4; ++k, ++address) global_.store(address, static_cast<std::byte>((bits >> (8 * k)) & 0xffu));
    }
    return *this;
  }
  /// Reports reads of global memory that nothing has written.
  constexpr machine& check_global_initialization(bool on = true) {
    check_global_ = on;
    return *this;
  }

  [[nodiscard]] constexpr float global_float(std::int64_t address) const { return global_.as_float(address); }
  [[nodiscard]] constexpr float local_float(std::size_t core, std::int64_t address) const {
    return cores_.at(core).local.as_float(address);
  }
  [[nodiscard]] constexpr std::byte local_byte(std::size_t core, std::int64_t address) const {
    return cores_.at(core).local.load(address);
  }
  [[nodiscard]] constexpr bool is_written(std::size_t core, std::int64_t address) const {
    return cores_.at(core).local.is_written(address, 1);
  }
  [[nodiscard]] constexpr std::int32_t reg(std::size_t core, std::size_t number) const { return cores_.at(core).registers.at(number); }
  [[nodiscard]] constexpr std::int64_t event(std::size_t core, std::size_t number) const { return cores_.at(core).events.at(number); }

  /// Runs all streams once to their end, a fault or a deadlock. `pick` chooses, for every step, one of the cores that can go on; a program
  /// whose cores meet properly ends alike under every choice. Cost: O(cores) a step beside the step itself.
  template <class Pick = lowest_core_first>
  constexpr result run(Pick pick = {}) {
    for (auto& core : cores_) core.next = 0;
    for (;;) {
      std::array<std::size_t, Size.cores> runnable{};
      std::size_t count = 0;
      bool all_finished = true;
      for (std::size_t c = 0; c < Size.cores; ++c) {
        if (cores_[c].finished()) continue;
        all_finished = false;
        if (!is_blocked(c)) runnable[count++] = c;
      }
      if (all_finished) return {};
      if (count == 0) return deadlock();
      const std::size_t chosen = pick(std::span<const std::size_t>(runnable.data(), count));
      if (const auto f = step(chosen); f != fault::none)
        return {.state = run_state::faulted, .what = f, .core = chosen, .index = cores_[chosen].next};
    }
  }

 private:
  /// Bytes and which of them have been written. Addresses have been checked before.
  template <std::size_t Bytes>
  struct memory {
    std::array<std::byte, Bytes> bytes{};
    std::array<bool, Bytes> written{};

    [[nodiscard]] static constexpr bool contains(std::int64_t address, std::int64_t size) noexcept {
      if (size == 0) return true;  // touches nothing, wherever it is
      return address >= 0 && size > 0 && address <= static_cast<std::int64_t>(Bytes) &&
             size <= static_cast<std::int64_t>(Bytes) - address;
    }
    [[nodiscard]] constexpr bool is_written(std::int64_t address, std::int64_t size) const {
      for (std::int64_t k = address; k < address + size; ++k)
        if (!written.at(static_cast<std::size_t>(k))) return false;
      return true;
    }
    [[nodiscard]] constexpr std::byte load(std::int64_t address) const { return bytes.at(static_cast<std::size_t>(address)); }
    constexpr void store(std::int64_t address, std::byte value) {
      bytes.at(static_cast<std::size_t>(address)) = value;
      written.at(static_cast<std::size_t>(address)) = true;
    }
    [[nodiscard]] constexpr float as_float(std::int64_t address) const {
      std::uint32_t bits = 0;
      for (int k = 0; k < 4; ++k) bits |= std::to_integer<std::uint32_t>(load(address + k)) << (8 * k);
      return std::bit_cast<float>(bits);
    }
  };

  struct array_group {
    std::size_t columns = 0;
    std::array<float, Size.rows * Size.columns> values{};
  };

  struct core_state {
    std::span<const isa::instruction> program;
    std::size_t next = 0;
    std::array<std::int32_t, isa::register_count> registers{};
    std::array<std::int64_t, isa::event_count> events{};
    std::int32_t input_bits = 0;
    std::int32_t output_bits = 0;
    memory<Size.local_bytes> local;
    std::array<array_group, Size.groups> groups{};

    [[nodiscard]] constexpr bool finished() const noexcept { return next >= program.size(); }
    [[nodiscard]] constexpr const isa::instruction& current() const { return program[next]; }
  };

  /// A core as the semantics see it: its own state and the shared memory.
  class view {
   public:
    constexpr view(core_state& own, machine& whole) : own_(own), whole_(whole) {}

    [[nodiscard]] constexpr std::int32_t reg(int n) const { return own_.registers.at(static_cast<std::size_t>(n)); }
    constexpr void set_reg(int n, std::int32_t value) { own_.registers.at(static_cast<std::size_t>(n)) = value; }
    [[nodiscard]] constexpr std::int64_t event(int n) const { return own_.events.at(static_cast<std::size_t>(n)); }
    constexpr void set_event(int n, std::int64_t value) { own_.events.at(static_cast<std::size_t>(n)) = value; }
    [[nodiscard]] constexpr std::int32_t input_bits() const { return own_.input_bits; }
    [[nodiscard]] constexpr std::int32_t output_bits() const { return own_.output_bits; }
    constexpr void set_widths(std::int32_t in, std::int32_t out) {
      own_.input_bits = in;
      own_.output_bits = out;
    }
    [[nodiscard]] constexpr fault check_local_read(std::int64_t address, std::int64_t size) const {
      if (!own_.local.contains(address, size)) return fault::local_range;
      return own_.local.is_written(address, size) ? fault::none : fault::unwritten_local;
    }
    [[nodiscard]] constexpr fault check_local_write(std::int64_t address, std::int64_t size) const {
      return own_.local.contains(address, size) ? fault::none : fault::local_range;
    }
    [[nodiscard]] constexpr fault check_global_read(std::int64_t address, std::int64_t size) const {
      if (!whole_.global_.contains(address, size)) return fault::global_range;
      return !whole_.check_global_ || whole_.global_.is_written(address, size) ? fault::none : fault::unwritten_global;
    }
    [[nodiscard]] constexpr fault check_global_write(std::int64_t address, std::int64_t size) const {
      return whole_.global_.contains(address, size) ? fault::none : fault::global_range;
    }
    [[nodiscard]] constexpr std::byte load_local(std::int64_t address) const { return own_.local.load(address); }
    constexpr void store_local(std::int64_t address, std::byte value) { own_.local.store(address, value); }
    [[nodiscard]] constexpr std::byte load_global(std::int64_t address) const { return whole_.global_.load(address); }
    constexpr void store_global(std::int64_t address, std::byte value) { whole_.global_.store(address, value); }
    [[nodiscard]] constexpr std::int64_t rows() const { return static_cast<std::int64_t>(Size.rows); }
    [[nodiscard]] constexpr std::int64_t columns(int n) const {
      return static_cast<std::int64_t>(own_.groups.at(static_cast<std::size_t>(n)).columns);
    }
    [[nodiscard]] constexpr float weight(int n, std::int64_t row, std::int64_t column) const {
      const auto& g = own_.groups.at(static_cast<std::size_t>(n));
      return g.values.at(static_cast<std::size_t>(row) * g.columns + static_cast<std::size_t>(column));
    }

   private:
    core_state& own_;
    machine& whole_;
  };
  static_assert(machine_core<view>);

  std::array<core_state, Size.cores> cores_{};
  memory<Size.global_bytes> global_;
  bool check_global_ = false;

  static constexpr isa::limits chip{.core_count = static_cast<std::int32_t>(Size.cores),
                                    .group_count = static_cast<std::int32_t>(Size.groups)};

  [[nodiscard]] static constexpr fault judge(const isa::instruction& i) {
    if (!isa::is_valid(i.op)) return fault::unknown_opcode;
    return isa::find_fault(i, chip) ? fault::bad_field : fault::none;
  }

  /// True where the peer stands at the other half of this core's send or recv. An instruction with a fault meets nobody.
  [[nodiscard]] constexpr bool meets_peer(std::size_t core) const {
    const auto& i = cores_[core].current();
    const auto& peer = cores_[static_cast<std::size_t>(i.word0)];
    if (peer.finished()) return false;
    const auto& other = peer.current();
    const auto wanted = i.op == isa::opcode::send ? isa::opcode::recv : isa::opcode::send;
    return other.op == wanted && static_cast<std::size_t>(other.word0) == core && judge(other) == fault::none;
  }

  /// True where the current instruction cannot go on. One at fault can: its step reports the fault.
  [[nodiscard]] constexpr bool is_blocked(std::size_t core) const {
    const auto& i = cores_[core].current();
    if (judge(i) != fault::none) return false;
    if (i.op == isa::opcode::send || i.op == isa::opcode::recv) return !meets_peer(core);
    if (i.op == isa::opcode::wait)
      return judge_wait(cores_[core].events.at(static_cast<std::size_t>(i.word1)), i.word2) == wait_state::blocks;
    return false;
  }

  /// Executes the current instruction of a core that is not blocked. On a fault the core stays at it.
  constexpr fault step(std::size_t core) {
    core_state& own = cores_[core];
    const isa::instruction i = own.current();
    if (const auto f = judge(i); f != fault::none) return f;
    view here(own, *this);
    const fault f = isa::dispatch(i.op, [&]<isa::opcode Op>(std::integral_constant<isa::opcode, Op>) -> fault {
      using enum isa::opcode;
      if constexpr (Op == send || Op == recv) {
        core_state& peer = cores_[static_cast<std::size_t>(i.word0)];
        view there(peer, *this);
        const fault met = Op == send ? exchange(here, i, there, peer.current()) : exchange(there, peer.current(), here, i);
        if (met == fault::none) ++peer.next;
        return met;
      } else if constexpr (Op == wait) {
        if (judge_wait(here.event(i.word1), i.word2) == wait_state::overshoots) return fault::overshoot;
        here.set_event(i.word1, 0);
        return fault::none;
      } else if constexpr (Op == sync) {
        view there(cores_[static_cast<std::size_t>(i.word0)], *this);
        there.set_event(i.word1, there.event(i.word1) + 1);
        return fault::none;
      } else {
        return execute<Op>(here, i);
      }
    });
    if (f == fault::none) ++own.next;
    return f;
  }

  /// The core that a blocked core waits for, or `Size.cores`: the peer of a send or recv; for a wait the first core that still has a sync
  /// for that event.
  [[nodiscard]] constexpr std::size_t awaited(std::size_t core) const {
    const auto& i = cores_[core].current();
    if (i.op != isa::opcode::wait) {
      const auto peer = static_cast<std::size_t>(i.word0);
      return cores_[peer].finished() ? Size.cores : peer;
    }
    for (std::size_t c = 0; c < Size.cores; ++c)
      for (std::size_t n = cores_[c].next; n < cores_[c].program.size(); ++n) {
        const auto& other = cores_[c].program[n];
        if (other.op == isa::opcode::sync && static_cast<std::size_t>(other.word0) == core && other.word1 == i.word1) return c;
      }
    return Size.cores;
  }

  /// Follows the waiting from the first blocked core until a core repeats or nobody is awaited.
  [[nodiscard]] constexpr result deadlock() const {
    result r{.state = run_state::deadlocked};
    std::array<std::size_t, Size.cores> path{};
    std::array<std::size_t, Size.cores> position{};
    position.fill(Size.cores);
    std::size_t length = 0;
    std::size_t at = 0;
    while (cores_[at].finished()) ++at;
    std::size_t start = 0;
    while (at != Size.cores) {
      if (position[at] != Size.cores) {
        r.is_cycle = true;
        start = position[at];
        break;
      }
      position[at] = length;
      path[length++] = at;
      at = awaited(at);
    }
    for (std::size_t k = start; k < length; ++k) r.chain[r.chain_length++] = path[k];
    r.core = r.chain[0];
    r.index = cores_[r.core].next;
    return r;
  }

 public:
  /// One line about the end of a run: "finished"; the fault with core, index and instruction; or who waits for whom.
  [[nodiscard]] constexpr std::string describe(const result& r) const {
    const auto place = [&](std::size_t core) {
      std::string text = "core ";
      isa::append_number(text, static_cast<std::int64_t>(core));
      text.append(", instruction ");
      isa::append_number(text, static_cast<std::int64_t>(cores_.at(core).next));
      const auto& i = cores_.at(core).current();
      if (isa::is_valid(i.op)) text.append(" (").append(isa::to_text(i)).append(")");
      return text;
    };
    if (r.finished()) return "finished";
    if (r.state == run_state::faulted) return place(r.core) + ": " + std::string(sim::describe(r.what));
    std::string text = "deadlock: ";
    for (std::size_t k = 0; k < r.chain_length; ++k) text.append(k == 0 ? "" : " waits for ").append(place(r.chain[k]));
    return text.append(r.is_cycle ? (r.chain_length == 1 ? " waits for itself" : " waits for the first") : " waits for nobody who could release it");
  }
};

}  // namespace raptor::sim
