#pragma once

#include <cstdint>

namespace raptor::isa {

/// The 33 operations of the instruction set; the value is the code in the binary form (ARTIFACTS, core_N.pim).
enum class opcode : std::uint8_t {
  nop, sldi, sld, sadd, ssub, smul, saddi, smuli, setbw, mvmul,
  vvadd, vvsub, vvmul, vvdmul, vvmax, vvsll, vvsra, vavg, vrelu, vtanh, vsigm, vsoftmax, vmv, vrsu, vrsl,
  ld, st, lldi, lmv, send, recv, wait, sync
};
inline constexpr int opcode_count = 33;
inline constexpr int register_count = 32;
inline constexpr int event_count = 32;

/// The unit of a core that executes an instruction.
enum class unit : std::uint8_t { none, scalar, matrix, vector, transfer };

/// One decoded instruction: exactly the fields of the 20-byte binary record.
///
/// The meaning of the four words depends on the opcode (isa/table.hpp names them): for example `word0` is an
/// immediate, a third register, a peer core or mbiw; `word3` is a length in elements or a size in bytes.
struct instruction {
  opcode op = opcode::nop;
  std::uint8_t rd = 0;
  std::uint8_t r1 = 0;
  std::int32_t word0 = 0;  ///< r2_or_imm
  std::int32_t word1 = 0;  ///< generic1
  std::int32_t word2 = 0;  ///< generic2
  std::int32_t word3 = 0;  ///< generic3

  friend constexpr bool operator==(const instruction&, const instruction&) = default;
};

}  // namespace raptor::isa
