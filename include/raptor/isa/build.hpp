#pragma once

#include <cstdint>

#include "raptor/isa/opcode.hpp"

/// One function an instruction, so that a record is never filled by hand: registers first, then the numbers. Values are stored as they
/// are; isa/check.hpp judges them. The address register of send goes into both rd and r1 (ISA.md).
namespace raptor::isa::build {

using reg = std::uint8_t;
using word = std::int32_t;

/// The offset fields; the default selects nothing.
struct offset {
  word select = 0;
  word value = 0;
};

[[nodiscard]] constexpr instruction nop() { return {}; }
[[nodiscard]] constexpr instruction sldi(reg rd, word imm) { return {opcode::sldi, rd, 0, imm, 0, 0, 0}; }
[[nodiscard]] constexpr instruction sld(reg rd, reg r1, word bytes = 0) { return {opcode::sld, rd, r1, 0, 0, bytes, 0}; }
[[nodiscard]] constexpr instruction sadd(reg rd, reg r1, reg r2) { return {opcode::sadd, rd, r1, r2, 0, 0, 0}; }
[[nodiscard]] constexpr instruction ssub(reg rd, reg r1, reg r2) { return {opcode::ssub, rd, r1, r2, 0, 0, 0}; }
[[nodiscard]] constexpr instruction smul(reg rd, reg r1, reg r2) { return {opcode::smul, rd, r1, r2, 0, 0, 0}; }
[[nodiscard]] constexpr instruction saddi(reg rd, reg r1, word imm) { return {opcode::saddi, rd, r1, imm, 0, 0, 0}; }
[[nodiscard]] constexpr instruction smuli(reg rd, reg r1, word imm) { return {opcode::smuli, rd, r1, imm, 0, 0, 0}; }

[[nodiscard]] constexpr instruction setbw(word ibiw, word obiw) { return {opcode::setbw, 0, 0, 0, ibiw, obiw, 0}; }
[[nodiscard]] constexpr instruction mvmul(reg rd, reg r1, word group, word mbiw = 32, word relu = 0) {
  return {opcode::mvmul, rd, r1, mbiw, relu, group, 0};
}

/// vvadd, vvsub, vvmul, vvdmul, vvmax, vvsll, vvsra: two sources; vavg, vmv: r2 is the stride; vrsu, vrsl: r2 is the bound.
[[nodiscard]] constexpr instruction vector(opcode op, reg rd, reg r1, reg r2, word len, offset o = {}) {
  return {op, rd, r1, r2, o.select, o.value, len};
}
/// vrelu, vtanh, vsigm, vsoftmax.
[[nodiscard]] constexpr instruction vector(opcode op, reg rd, reg r1, word len, offset o = {}) {
  return {op, rd, r1, 0, o.select, o.value, len};
}
[[nodiscard]] constexpr instruction vvadd(reg rd, reg r1, reg r2, word len) { return vector(opcode::vvadd, rd, r1, r2, len); }
[[nodiscard]] constexpr instruction vvsub(reg rd, reg r1, reg r2, word len) { return vector(opcode::vvsub, rd, r1, r2, len); }
[[nodiscard]] constexpr instruction vvmul(reg rd, reg r1, reg r2, word len) { return vector(opcode::vvmul, rd, r1, r2, len); }
[[nodiscard]] constexpr instruction vvdmul(reg rd, reg r1, reg r2, word len) { return vector(opcode::vvdmul, rd, r1, r2, len); }
[[nodiscard]] constexpr instruction vvmax(reg rd, reg r1, reg r2, word len) { return vector(opcode::vvmax, rd, r1, r2, len); }
[[nodiscard]] constexpr instruction vvsll(reg rd, reg r1, reg r2, word len) { return vector(opcode::vvsll, rd, r1, r2, len); }
[[nodiscard]] constexpr instruction vvsra(reg rd, reg r1, reg r2, word len) { return vector(opcode::vvsra, rd, r1, r2, len); }
[[nodiscard]] constexpr instruction vavg(reg rd, reg r1, reg stride, word len) { return vector(opcode::vavg, rd, r1, stride, len); }
[[nodiscard]] constexpr instruction vmv(reg rd, reg r1, reg stride, word len) { return vector(opcode::vmv, rd, r1, stride, len); }
[[nodiscard]] constexpr instruction vrsu(reg rd, reg r1, reg bound, word len) { return vector(opcode::vrsu, rd, r1, bound, len); }
[[nodiscard]] constexpr instruction vrsl(reg rd, reg r1, reg bound, word len) { return vector(opcode::vrsl, rd, r1, bound, len); }
[[nodiscard]] constexpr instruction vrelu(reg rd, reg r1, word len) { return vector(opcode::vrelu, rd, r1, len); }
[[nodiscard]] constexpr instruction vtanh(reg rd, reg r1, word len) { return vector(opcode::vtanh, rd, r1, len); }
[[nodiscard]] constexpr instruction vsigm(reg rd, reg r1, word len) { return vector(opcode::vsigm, rd, r1, len); }
[[nodiscard]] constexpr instruction vsoftmax(reg rd, reg r1, word len) { return vector(opcode::vsoftmax, rd, r1, len); }

[[nodiscard]] constexpr instruction ld(reg rd, reg r1, word size, offset o = {}) {
  return {opcode::ld, rd, r1, 0, o.select, o.value, size};
}
[[nodiscard]] constexpr instruction st(reg rd, reg r1, word size, offset o = {}) {
  return {opcode::st, rd, r1, 0, o.select, o.value, size};
}
[[nodiscard]] constexpr instruction lldi(reg rd, word fill, word len, offset o = {}) {
  return {opcode::lldi, rd, 0, fill, o.select, o.value, len};
}
[[nodiscard]] constexpr instruction lmv(reg rd, reg r1, word len, offset o = {}) {
  return {opcode::lmv, rd, r1, 0, o.select, o.value, len};
}
[[nodiscard]] constexpr instruction send(reg r1, word core, word size, offset o = {}) {
  return {opcode::send, r1, r1, core, o.select, o.value, size};
}
[[nodiscard]] constexpr instruction recv(reg rd, word core, word size, offset o = {}) {
  return {opcode::recv, rd, 0, core, o.select, o.value, size};
}
[[nodiscard]] constexpr instruction wait(word event, word value) { return {opcode::wait, 0, 0, 0, event, value, 0}; }
[[nodiscard]] constexpr instruction sync(word event, word core) { return {opcode::sync, 0, 0, core, event, 0, 0}; }

}  // namespace raptor::isa::build
