#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "raptor/isa/table.hpp"
#include "raptor/support/error.hpp"

/// core_N.pim: a header of 12 bytes ("PIMB", version, count) and records of 20 bytes, little endian. Source: ARTIFACTS.
///
/// Cost: encoding and decoding are linear and run at the speed of memory; nothing is allocated but the result.
namespace raptor::isa {

inline constexpr std::size_t header_size = 12;
inline constexpr std::uint32_t format_version = 1;
inline constexpr std::string_view format_magic = "PIMB";

namespace binary_parts {

constexpr void store_u32(std::byte* to, std::uint32_t value) noexcept {
  for (int b = 0; b < 4; ++b) to[b] = static_cast<std::byte>((value >> (8 * b)) & 0xffu);
}
[[nodiscard]] constexpr std::uint32_t load_u32(const std::byte* from) noexcept {
  std::uint32_t value = 0;
  for (int b = 0; b < 4; ++b) value |= std::to_integer<std::uint32_t>(from[b]) << (8 * b);
  return value;
}

// On a little-endian machine a record is an `instruction` with a zero in its padding byte.
static_assert(sizeof(instruction) == record_size && std::is_trivially_copyable_v<instruction>);
static_assert(offsetof(instruction, op) == opcode_bytes.offset && offsetof(instruction, rd) == slot_bytes[0].offset &&
              offsetof(instruction, r1) == slot_bytes[1].offset && offsetof(instruction, word0) == slot_bytes[2].offset &&
              offsetof(instruction, word1) == slot_bytes[3].offset && offsetof(instruction, word2) == slot_bytes[4].offset &&
              offsetof(instruction, word3) == slot_bytes[5].offset);
static_assert(std::endian::native == std::endian::little || std::endian::native == std::endian::big);

}  // namespace binary_parts

/// Writes the record of one instruction. The field values are stored as they are: isa/check.hpp judges them.
constexpr void encode_record(std::span<std::byte, record_size> to, const instruction& i) noexcept {
  using binary_parts::store_u32;
  to[opcode_bytes.offset] = static_cast<std::byte>(i.op);
  to[flags_bytes.offset] = std::byte{0};
  for (const slot s : all_slots) {
    const auto range = slot_bytes[static_cast<std::size_t>(s)];
    const auto value = static_cast<std::uint32_t>(get(i, s));
    if (range.size == 1) to[range.offset] = static_cast<std::byte>(value & 0xffu);
    else store_u32(to.data() + range.offset, value);
  }
}

/// Reads one record; an opcode out of range is kept and is the caller's to judge. The flags byte is ignored.
[[nodiscard]] constexpr instruction decode_record(std::span<const std::byte, record_size> from) noexcept {
  instruction i;
  i.op = static_cast<opcode>(from[opcode_bytes.offset]);
  for (const slot s : all_slots) {
    const auto range = slot_bytes[static_cast<std::size_t>(s)];
    set(i, s, range.size == 1 ? std::to_integer<std::int32_t>(from[range.offset])
                              : static_cast<std::int32_t>(binary_parts::load_u32(from.data() + range.offset)));
  }
  return i;
}

/// The header of a file with `count` records.
[[nodiscard]] constexpr std::array<std::byte, header_size> header(std::uint32_t count) noexcept {
  std::array<std::byte, header_size> bytes{};
  for (std::size_t c = 0; c < format_magic.size(); ++c) bytes[c] = static_cast<std::byte>(format_magic[c]);
  binary_parts::store_u32(bytes.data() + 4, format_version);
  binary_parts::store_u32(bytes.data() + 8, count);
  return bytes;
}

namespace binary_parts {

/// Writes records to consecutive memory.
constexpr void encode_records(std::byte* to, std::span<const instruction> program) noexcept {
  if (!std::is_constant_evaluated() && std::endian::native == std::endian::little) {
    std::memcpy(to, program.data(), program.size() * record_size);
    for (std::size_t n = 0; n < program.size(); ++n) to[n * record_size + flags_bytes.offset] = std::byte{0};
  } else {
    for (std::size_t n = 0; n < program.size(); ++n)
      encode_record(std::span<std::byte, record_size>(to + n * record_size, record_size), program[n]);
  }
}

}  // namespace binary_parts

/// Appends one record to a growing file image; see also append_records.
constexpr void append_record(std::vector<std::byte>& out, const instruction& i) {
  const auto at = out.size();
  out.resize(at + record_size);
  binary_parts::encode_records(out.data() + at, {&i, 1});
}

/// Appends the records of consecutive instructions.
constexpr void append_records(std::vector<std::byte>& out, std::span<const instruction> program) {
  if (program.empty()) return;
  const auto at = out.size();
  out.resize(at + program.size() * record_size);
  binary_parts::encode_records(out.data() + at, program);
}

/// A whole file. Throws error_code::capacity beyond 2^32 - 1 instructions.
[[nodiscard]] constexpr std::vector<std::byte> encode(std::span<const instruction> program) {
  if (program.size() > std::numeric_limits<std::uint32_t>::max())
    throw error(error_code::capacity, "a stream of " + std::to_string(program.size()) + " instructions does not fit core_N.pim");
  std::vector<std::byte> bytes;
  bytes.reserve(header_size + program.size() * record_size);
  for (const std::byte b : header(static_cast<std::uint32_t>(program.size()))) bytes.push_back(b);
  append_records(bytes, program);
  return bytes;
}

/// Builds a file image instruction by instruction, for a stream whose length is not known before.
///
/// Guarantees: `finish` returns exactly what `encode` returns for the same instructions.
class binary_writer {
 public:
  constexpr binary_writer() { reset(); }

  constexpr void push(const instruction& i) { append_record(bytes_, i); }
  constexpr void push(std::span<const instruction> part) { append_records(bytes_, part); }

  /// Instructions so far.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return (bytes_.size() - header_size) / record_size; }

  /// The file; the writer starts anew and may be used for the next core. Throws as `encode` does.
  [[nodiscard]] constexpr std::vector<std::byte> finish() {
    if (size() > std::numeric_limits<std::uint32_t>::max())
      throw error(error_code::capacity, "a stream of " + std::to_string(size()) + " instructions does not fit core_N.pim");
    const auto start = header(static_cast<std::uint32_t>(size()));
    std::copy(start.begin(), start.end(), bytes_.begin());
    std::vector<std::byte> result = std::move(bytes_);
    reset();
    return result;
  }

 private:
  std::vector<std::byte> bytes_;

  constexpr void reset() {
    const auto start = header(0);
    bytes_.assign(start.begin(), start.end());
  }
};

/// Reads a whole file.
///
/// Errors: error_code::malformed with `file_name` as place, for a size that is not 12 + 20 × count, another magic or version, and an
/// opcode out of range (the message has its index). Nothing is allocated before the size is known to be right.
[[nodiscard]] constexpr std::vector<instruction> decode(std::span<const std::byte> bytes, std::string_view file_name) {
  const auto fail = [&](std::string message, std::string hint = {}) {
    return error(error_code::malformed, std::move(message), std::string(file_name), std::move(hint));
  };
  if (bytes.size() < header_size)
    throw fail("wrong size: " + std::to_string(bytes.size()) + " bytes, the header alone has 12");
  for (std::size_t c = 0; c < format_magic.size(); ++c)
    if (bytes[c] != static_cast<std::byte>(format_magic[c]))
      throw fail("wrong magic: the file does not start with \"PIMB\"", "a core_N.pim file is expected");
  const auto version = binary_parts::load_u32(bytes.data() + 4);
  if (version != format_version)
    throw fail("wrong version: " + std::to_string(version) + ", only version 1 is known");
  const std::uint64_t count = binary_parts::load_u32(bytes.data() + 8);
  const std::uint64_t expected = header_size + record_size * count;
  if (bytes.size() != expected)
    throw fail("wrong size: " + std::to_string(bytes.size()) + " bytes, but the header announces " + std::to_string(count) +
                   " instructions, which make " + std::to_string(expected),
               bytes.size() < expected ? "the file is truncated" : "there are bytes after the last record");

  // Blocks that stay in the cache: one pass over memory to convert, check and store.
  constexpr std::size_t block = 512;
  std::array<instruction, block> buffer{};
  std::vector<instruction> program;
  program.reserve(static_cast<std::size_t>(count));
  const std::byte* from = bytes.data() + header_size;
  for (std::size_t left = static_cast<std::size_t>(count); left != 0;) {
    const std::size_t n = std::min(left, block);
    if (!std::is_constant_evaluated() && std::endian::native == std::endian::little) {
      std::memcpy(buffer.data(), from, n * record_size);
    } else {
      for (std::size_t k = 0; k < n; ++k)
        buffer[k] = decode_record(std::span<const std::byte, record_size>(from + k * record_size, record_size));
    }
    int largest = 0;
    for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, static_cast<int>(buffer[k].op));
    if (largest >= opcode_count) {
      const auto bad = std::find_if(buffer.begin(), buffer.end(), [](const instruction& i) { return !is_valid(i.op); });
      throw error(error_code::malformed,
                  "opcode out of range: " + std::to_string(static_cast<int>(bad->op)) + ", the largest is " +
                      std::to_string(opcode_count - 1),
                  std::string(file_name) + ", instruction " +
                      std::to_string(program.size() + static_cast<std::size_t>(bad - buffer.begin())));
    }
    program.insert(program.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(n));
    from += n * record_size;
    left -= n;
  }
  return program;
}

}  // namespace raptor::isa
