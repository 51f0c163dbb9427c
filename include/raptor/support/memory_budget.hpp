#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "raptor/support/error.hpp"

namespace raptor {

/// How much memory may be taken for what a file says: `times` its bytes and an allowance, which small files never reach. Whoever makes
/// something of a file takes the bytes first, so that a file of empty parts is refused before they are made.
class memory_budget {
 public:
  /// `size`: bytes of the file, which names the place of errors.
  memory_budget(std::size_t size, std::size_t times, std::size_t allowance, std::string file)
      : size_(size), most_(times * size + allowance), file_(std::move(file)) {}

  /// Errors: capacity, where more has been taken than there is.
  void take(std::size_t count, std::size_t bytes_each = 1) {
    if (count > (most_ - used_) / bytes_each)
      throw error(error_code::capacity, "the file has " + std::to_string(size_) + " bytes, but what it describes takes more than " + std::to_string(most_), file_);
    used_ += count * bytes_each;
  }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }

 private:
  std::size_t size_, most_, used_ = 0;
  std::string file_;
};

}  // namespace raptor
