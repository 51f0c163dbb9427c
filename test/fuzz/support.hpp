#pragma once

#include <sanitizer/allocator_interface.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "raptor/support/error.hpp"

/// What the fuzz targets share: an input must end in a value or in a raptor::error, and must not allocate out of proportion.
namespace fuzz {

/// Bytes that are allocated now, and the most that were since the last reset. Counted by the allocator of AddressSanitizer.
class allocation {
 public:
  static void start() {
    static const bool installed = __sanitizer_install_malloc_and_free_hooks(allocated, freed) != 0;
    if (!installed) fail("the allocation hooks cannot be installed");
    live_ = 0;
    peak_ = 0;
  }
  [[nodiscard]] static std::int64_t peak() { return peak_; }

  [[noreturn]] static void fail(const std::string& why) {
    std::fprintf(stderr, "fuzz: %s\n", why.c_str());
    std::abort();
  }

 private:
  static void allocated(const volatile void*, std::size_t size) {
    live_ += static_cast<std::int64_t>(size);
    if (live_ > peak_) peak_ = live_;
  }
  static void freed(const volatile void* block) {
    if (block != nullptr) live_ -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(block));
  }
  static inline std::int64_t live_ = 0, peak_ = 0;
};

/// Runs a body on an input of `size` bytes. Anything but success or a raptor::error is a finding, and so is a peak of memory
/// above four times the input plus `own` plus `slack`. The body is called with `own` = 0 and sets it to the bytes of what the input
/// declares (tensors, nodes, instructions) as soon as it is known. RAPTOR_FUZZ_PEAK in the environment prints the peaks.
template <class Body>
void run(std::size_t size, Body body) {
  constexpr std::int64_t slack = std::int64_t{1} << 20;
  static const bool print = std::getenv("RAPTOR_FUZZ_PEAK") != nullptr;
  allocation::start();
  std::int64_t own = 0;
  std::string verdict = "accepted";
  try {
    body(own);
  } catch (const raptor::error& e) {
    if (e.code() == raptor::error_code::internal) allocation::fail(std::string("an internal error: ") + e.what() + " (" + e.place() + ")");
    if (print) verdict = std::string("refused: ") + e.what();
  } catch (const std::exception& e) {
    allocation::fail(std::string("an exception that is no raptor::error: ") + e.what());
  }
  const auto peak = allocation::peak();
  if (print) std::fprintf(stderr, "fuzz: peak %lld of %zu bytes that declare %lld, %s\n", static_cast<long long>(peak), size, static_cast<long long>(own), verdict.substr(0, 100).c_str());
  else if (peak > 4 * static_cast<std::int64_t>(size) + own + slack)
    allocation::fail("a peak of " + std::to_string(peak) + " bytes for an input of " + std::to_string(size) + " bytes that declares " + std::to_string(own));
}

inline void require(bool condition, const char* what) {
  if (!condition) allocation::fail(what);
}

/// The next part of an input, up to a byte 0x1e (the record separator), which is left out.
[[nodiscard]] inline std::string_view next_part(std::string_view& rest) {
  const auto end = rest.find('\x1e');
  const auto part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}
[[nodiscard]] inline std::string_view text_of(const std::uint8_t* data, std::size_t size) { return {reinterpret_cast<const char*>(data), size}; }

}  // namespace fuzz
