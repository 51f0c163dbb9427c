#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "raptor/isa/json_write.hpp"
#include "raptor/isa/table.hpp"

/// Programs as the timing model reads them: only what time and energy depend on.
namespace raptor::sim::timing {

enum class kind : std::uint8_t { none, scalar, widths, matrix, vector, transfer };

namespace program_parts {
inline constexpr auto kinds = [] {
  std::array<kind, isa::infos.size()> all{};
  for (std::size_t op = 0; op < all.size(); ++op) switch (isa::infos[op].unit) {
      case isa::unit::scalar: all[op] = kind::scalar; break;
      case isa::unit::matrix: all[op] = kind::matrix; break;
      case isa::unit::vector: all[op] = kind::vector; break;
      case isa::unit::transfer: all[op] = kind::transfer; break;
      case isa::unit::none: break;
    }
  all[static_cast<std::size_t>(isa::opcode::setbw)] = kind::widths;
  return all;
}();
}  // namespace program_parts

[[nodiscard]] constexpr kind kind_of(isa::opcode op) noexcept { return program_parts::kinds[static_cast<std::size_t>(op)]; }

/// One instruction; as large as a binary record, so that a stream is converted where it was read.
struct timed_instruction {
  isa::opcode op = isa::opcode::nop;
  std::uint8_t rd = 0, rs1 = 0, rs2 = 0;
  std::int32_t immediate = 0;  ///< imm, mbiw or core; of lmv: the bytes of its hazards (JSON's size, 0 in binary programs)
  std::int32_t length = 0;     ///< elements of a vector instruction, bytes of a transfer
  std::int32_t select = 0;     ///< offset_select, group, event register or ibiw
  std::int32_t value = 0;      ///< offset_value, wait value or obiw
  [[nodiscard]] constexpr kind what() const noexcept { return kind_of(op); }
};
static_assert(sizeof(timed_instruction) == isa::record_size);

/// From the JSON form, which has more fields than a binary record.
[[nodiscard]] constexpr timed_instruction from_json(const isa::json_fields& j) noexcept {
  timed_instruction i;
  i.op = j.op;
  i.rd = static_cast<std::uint8_t>(j.rd), i.rs1 = static_cast<std::uint8_t>(j.rs1), i.rs2 = static_cast<std::uint8_t>(j.rs2);
  i.length = j.len, i.select = j.offset_select, i.value = j.offset_value;
  switch (i.what()) {
    case kind::scalar: i.immediate = j.imm; break;
    case kind::widths: i.select = j.ibiw, i.value = j.obiw; break;
    case kind::matrix: i.immediate = j.mbiw, i.select = j.group; break;
    case kind::transfer:
      i.immediate = j.core;
      if (j.op == isa::opcode::lmv) i.immediate = j.size;
      else if (j.op != isa::opcode::lldi) i.length = j.size;
      if (j.op == isa::opcode::wait || j.op == isa::opcode::sync) i.select = j.event_register, i.value = j.wait_value;
      break;
    default: break;
  }
  return i;
}
/// From a binary record (TIMING 14.4). Requires: a valid opcode, registers below 32.
[[nodiscard]] constexpr timed_instruction from_record(const isa::instruction& r) noexcept {
  timed_instruction i;
  i.op = r.op, i.rd = r.rd, i.rs1 = r.r1;
  i.select = r.word1, i.value = r.word2;
  switch (i.what()) {
    case kind::scalar: i.immediate = r.word0, i.select = 0; break;
    case kind::widths: break;
    case kind::matrix: i.immediate = r.word0, i.select = r.word2, i.value = 0; break;
    case kind::vector: i.rs2 = static_cast<std::uint8_t>(r.word0), i.length = r.word3; break;
    case kind::transfer: i.immediate = r.op == isa::opcode::lmv ? 0 : r.word0, i.length = r.word3; break;
    case kind::none: break;
  }
  return i;
}

/// A core's instructions. Filled once; storage is not cleared beforehand, so that reading a large file touches it once.
class timed_stream {
 public:
  timed_stream() = default;
  /// `count` instructions to be written through data().
  explicit timed_stream(std::size_t count)
      : owned_(std::make_unique_for_overwrite<std::byte[]>(count * sizeof(timed_instruction))), count_(count) {}
  explicit timed_stream(const std::deque<timed_instruction>& list) : timed_stream(list.size()) {
    std::copy(list.begin(), list.end(), data());
  }
  [[nodiscard]] timed_instruction* data() noexcept { return reinterpret_cast<timed_instruction*>(owned_.get()); }
  [[nodiscard]] const timed_instruction* data() const noexcept { return reinterpret_cast<const timed_instruction*>(owned_.get()); }
  [[nodiscard]] const timed_instruction* begin() const noexcept { return data(); }
  [[nodiscard]] const timed_instruction* end() const noexcept { return data() + count_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

 private:
  std::unique_ptr<std::byte[]> owned_;
  std::size_t count_ = 0;
};

/// A stream from binary records. Requires: as from_record.
[[nodiscard]] inline timed_stream from_records(const std::vector<isa::instruction>& records) {
  timed_stream stream(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) stream.data()[i] = from_record(records[i]);
  return stream;
}

/// One core that exists in the program.
struct timed_core {
  std::int64_t id = 0;
  timed_stream stream;
  std::vector<std::int32_t> groups;  ///< crossbars of each array group
};
struct timed_program {
  std::vector<timed_core> cores;  ///< ascending ids
};

}  // namespace raptor::sim::timing
