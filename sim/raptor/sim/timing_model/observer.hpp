#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "raptor/sim/timing_model/pending.hpp"
#include "raptor/sim/timing_model/program.hpp"

/// What a run tells whoever looks on (trace, profile, breakdown of energy). The model is instantiated with the observer's type;
/// with no_observer nothing of it remains in the code.
namespace raptor::sim::timing {

/// Where energy goes (TIMING 12), in the order in which it is summed.
enum class component : std::uint8_t { fetch, decode, registers, scalar, matrix, vector, local_memory, network, global_memory };
inline constexpr std::size_t component_count = 9;
inline constexpr const char* component_names[component_count] = {"fetch",  "decode",       "register file", "scalar unit",  "matrix unit",
                                                                 "vector unit", "local memory", "network",       "global memory"};

/// Units that an event can belong to: array groups by their number (0, 1, …), the others below 0.
inline constexpr std::int32_t vector_unit = -1, transfer_unit = -2, switch_unit = -3;

/// An observer that is told nothing. An observer of one's own has `enabled` true and all of these functions; cores are given by
/// their index in the program, instructions by their place in the stream, times in ps, energies in pJ.
struct no_observer {
  static constexpr bool enabled = false;
  /// Dynamic energy that an instruction caused in a component; `bytes`: moved by a memory or over the network.
  void spend(std::size_t /*core*/, std::int64_t /*pc*/, component /*part*/, double /*energy*/, std::int64_t /*bytes*/ = 0) noexcept {}
  /// A unit took an instruction at `start` and was done with it at `end`.
  void executed(std::size_t /*core*/, std::int32_t /*unit*/, std::int64_t /*pc*/, const timed_instruction& /*what*/, instant /*start*/, instant /*end*/) noexcept {}
  /// A switch had a message of an instruction on the network, then at the receiver, from `start` to `end`.
  void transmitted(std::size_t /*core*/, std::int64_t /*pc*/, const char* /*what*/, instant /*start*/, instant /*end*/) noexcept {}
  /// A send's data arrived at its recv.
  void delivered(std::size_t /*from*/, std::int64_t /*send_pc*/, instant /*sent*/, std::size_t /*to*/, std::int64_t /*recv_pc*/, instant /*arrived*/) noexcept {}
  /// A sync raised an event counter; a wait passed.
  void signalled(std::size_t /*from*/, std::int64_t /*sync_pc*/, std::size_t /*to*/, std::int32_t /*event*/, instant /*at*/) noexcept {}
  void waited(std::size_t /*core*/, std::int64_t /*wait_pc*/, std::int32_t /*event*/, std::int64_t /*value*/, instant /*at*/) noexcept {}
};

template <class T>
concept observes = requires(T& o, std::size_t core, std::int64_t pc, component part, double energy, std::int32_t unit, const timed_instruction& what, instant at) {
  { T::enabled } -> std::convertible_to<bool>;
  o.spend(core, pc, part, energy, pc);
  o.executed(core, unit, pc, what, at, at);
  o.transmitted(core, pc, "", at, at);
  o.delivered(core, pc, at, core, pc, at);
  o.signalled(core, pc, core, unit, at);
  o.waited(core, pc, unit, pc, at);
};
static_assert(observes<no_observer>);

}  // namespace raptor::sim::timing
