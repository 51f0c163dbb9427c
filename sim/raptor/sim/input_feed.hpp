#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "raptor/isa/opcode.hpp"
#include "raptor/sim/global_access.hpp"
#include "raptor/sim/program.hpp"

/// When the host places the next input of a batch. Source: INVARIANTS.md, Restart.
namespace raptor::sim {

/// "No instruction".
inline constexpr std::size_t no_instruction = static_cast<std::size_t>(-1);

/// The index of the last instruction of a stream that may read global memory of one of the regions, however often the stream restarts;
/// no_instruction where none does. Requires: the stream has passed check_stream. Cost: that of for_each_global_access, times the regions.
[[nodiscard]] inline std::size_t last_read_of(std::span<const isa::instruction> stream, const std::vector<tensor_region>& regions) {
  std::size_t last = no_instruction;
  for_each_global_access(stream, [&](const global_access& access) {
    if (access.is_store) return;
    for (const auto& region : regions)
      if (region.size != 0 && access.may_touch(region.address, region.address + region.size)) last = access.index;
  });
  return last;
}

/// Says when input n + 1 of a batch may replace input n in global memory: as soon as every core that reads a graph input has done its
/// last read of body n. Nothing after that needs input n; a core that reads sooner than its input was placed finds what lies there.
/// Where no core reads an input, every core that runs counts as a reader until the end of its body.
class input_feed {
 public:
  /// For `inputs` ≥ 1. Requires: the streams have passed check_stream. Cost: of last_read_of for each core, none for one input.
  input_feed(const loaded_program& program, std::size_t inputs) : inputs_(inputs), last_reads_(program.cores.size(), no_instruction), done_(program.cores.size(), 0) {
    if (inputs_ == 1) return;
    for (std::size_t c = 0; c < last_reads_.size(); ++c) {
      last_reads_[c] = last_read_of(program.cores[c].stream, program.inputs);
      if (last_reads_[c] != no_instruction) readers_.push_back(c);
    }
    if (readers_.empty())
      for (std::size_t c = 0; c < last_reads_.size(); ++c)
        if (!program.cores[c].stream.empty()) last_reads_[c] = program.cores[c].stream.size(), readers_.push_back(c);
    behind_ = readers_.size();
  }

  /// The index of the instruction of a core after which it does not need the input of its body; the stream's size: at its end.
  [[nodiscard]] std::size_t last_read(std::size_t core) const { return last_reads_[core]; }

  /// Notes that a core has done the last read of one more body, and calls place(n) for every input that may be placed now, in order.
  /// Cost: O(readers) for each input.
  template <class Place>
  void read(std::size_t core, Place place) {
    if (done_[core]++ != placed_) return;
    --behind_;
    while (behind_ == 0 && placed_ + 1 < inputs_) {
      place(++placed_);
      for (const std::size_t reader : readers_)
        if (done_[reader] <= placed_) ++behind_;
    }
  }
  /// The inputs that no core will ever make room for: all behind the first where nothing runs.
  template <class Place>
  void finish(Place place) {
    while (readers_.empty() && placed_ + 1 < inputs_) place(++placed_);
  }

 private:
  std::size_t inputs_;
  std::size_t placed_ = 0;               ///< the input that lies in global memory
  std::vector<std::size_t> last_reads_;  ///< by core
  std::vector<std::size_t> done_;        ///< by core: bodies whose input it has read
  std::vector<std::size_t> readers_;
  std::size_t behind_ = 0;               ///< readers that still need the placed input
};

}  // namespace raptor::sim
