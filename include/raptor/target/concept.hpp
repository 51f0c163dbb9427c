#pragma once

#include <concepts>
#include <cstdint>

#include "raptor/isa/opcode.hpp"
#include "raptor/program/program.hpp"

namespace raptor::target {

/// Predicted durations are whole picoseconds.
using picoseconds = std::int64_t;

/// What the chain asks of a chip. A target is a value type; the algorithms know nothing else of the hardware.
///
/// - `chip()`: sizes (cores, crossbars, element width …), see program::geometry.
/// - `time(op, length)`: duration of one instruction on an otherwise idle core, issue included, `length` in elements as in
///   lowering::statement. Transfers (ld, st, send, recv) are asked through the two functions below.
/// - `transfer_time(from, to, elements)`: a matched send and receive between two cores.
/// - `global_time(core, elements, store)`: one ld or st, without contention.
/// All durations are positive and monotone in the number of elements.
/// A target may also answer `global_port_time(elements, store)`, how long one ld or st keeps others from global memory (else: as long as it takes), and
/// `product_energy(columns)`, the picojoules of one mvmul of so many weight columns: then energy counts where
/// convolution strategies compete.
template <class T>
concept chip_target = std::copyable<T> && requires(const T& t, isa::opcode op, std::int64_t n, std::size_t core) {
  { t.chip() } -> std::convertible_to<program::geometry>;
  { t.time(op, n) } -> std::convertible_to<picoseconds>;
  { t.transfer_time(core, core, n) } -> std::convertible_to<picoseconds>;
  { t.global_time(core, n, true) } -> std::convertible_to<picoseconds>;
};

}  // namespace raptor::target
