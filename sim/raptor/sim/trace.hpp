#pragma once

#include <cstddef>
#include <string>

#include "raptor/isa/table.hpp"
#include "raptor/isa/text.hpp"
#include "raptor/sim/kernels.hpp"

/// The instruction trace: one line an executed instruction, in the order of execution.
///
///     core 2 index 17 | saddi r3, r1, imm=16 | r1=8 -> r3=24
///
/// After the instruction's text come the values that its source registers held (addresses with a selected offset as
/// `r4=1024+16`, bounds as floats too) and, behind the arrow, the register that it wrote.
namespace raptor::sim {

/// The part of a line that is known before the instruction runs: everything up to the arrow.
template <class Registers>
[[nodiscard]] std::string trace_before(std::size_t core, std::size_t index, const isa::instruction& i, const Registers& registers) {
  std::string line = "core " + std::to_string(core) + " index " + std::to_string(index) + " | " + isa::to_text(i) + " |";
  const isa::instruction_info& info = isa::info(i);
  unsigned bit = 1;  // of offset_select: rd, r1, r2 in this order
  for (const isa::slot s : {isa::slot::rd, isa::slot::r1, isa::slot::word0}) {
    const isa::role meaning = info[s];
    if (isa::is_register(meaning) && meaning != isa::role::result && meaning != isa::role::repeated) {
      const auto number = static_cast<std::size_t>(isa::get(i, s));
      line += " r" + std::to_string(number) + "=" + std::to_string(registers[number]);
      if (meaning == isa::role::bound) line += " (" + std::to_string(kernels::bound(registers[number])) + ")";
      if (isa::is_address(meaning) && info[isa::slot::word1] == isa::role::offset_select && (static_cast<unsigned>(i.word1) & bit) != 0)
        line += "+" + std::to_string(i.word2);
    }
    bit *= 2;
  }
  return line;
}

/// The rest of the line: the result register after execution, if the instruction has one.
template <class Registers>
[[nodiscard]] std::string trace_after(const isa::instruction& i, const Registers& registers) {
  if (isa::info(i)[isa::slot::rd] != isa::role::result) return {};
  return " -> r" + std::to_string(i.rd) + "=" + std::to_string(registers[i.rd]);
}

}  // namespace raptor::sim
