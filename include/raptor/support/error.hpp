#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace raptor {

/// What kind of failure an error reports. Tools map every code to exit status 1 but `usage` to 2.
enum class error_code {
  usage,          ///< a wrong option or argument
  io,             ///< a file cannot be read or written
  malformed,      ///< an input file breaks its format
  unsupported,    ///< a valid input that this build declares unsupported
  capacity,       ///< the program does not fit the chip
  mismatch,       ///< two inputs contradict each other
  execution,      ///< a program did something that the machine forbids
  deadlock,       ///< cores wait for one another
  internal        ///< an invariant of Raptor itself does not hold
};

/// Name of a code as it is printed, for example "unsupported".
[[nodiscard]] constexpr const char* name(error_code code) noexcept {
  switch (code) {
    case error_code::usage: return "usage";
    case error_code::io: return "io";
    case error_code::malformed: return "malformed";
    case error_code::unsupported: return "unsupported";
    case error_code::capacity: return "capacity";
    case error_code::mismatch: return "mismatch";
    case error_code::execution: return "execution";
    case error_code::deadlock: return "deadlock";
    case error_code::internal: return "internal";
  }
  return "unknown";
}

/// The one exception type of the library.
///
/// `place` says where (file; node and operator; or core and instruction index), `what()` says what is wrong and
/// `hint` what to do about it. Empty place or hint: not known.
class error : public std::runtime_error {
 public:
  error(error_code code, std::string message, std::string place = {}, std::string hint = {})
      : std::runtime_error(message), code_(code), place_(std::move(place)), hint_(std::move(hint)) {}

  [[nodiscard]] error_code code() const noexcept { return code_; }
  [[nodiscard]] const std::string& place() const noexcept { return place_; }
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

  /// Several findings of one run (for example all unsupported nodes). Empty: `what()` is the only one.
  [[nodiscard]] const std::vector<std::string>& details() const noexcept { return details_; }
  error& with_details(std::vector<std::string> details) {
    details_ = std::move(details);
    return *this;
  }

 private:
  error_code code_;
  std::string place_;
  std::string hint_;
  std::vector<std::string> details_;
};

/// Text of unknown origin (names of a user's file) for a terminal: line ends and tabs as spaces, other control characters as \xNN.
[[nodiscard]] inline std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\t' || c == '\r') {
      result += ' ';
    } else if (code < 0x20 || code == 0x7f) {
      result += "\\x";
      for (const unsigned digit : {code / 16U, code % 16U}) result += "0123456789abcdef"[digit];
    } else {
      result += c;
    }
  }
  return result;
}

/// The block that tools print: one line of what and where, the details (the first `cap`, then a count), the hint.
[[nodiscard]] inline std::string describe(const error& e, std::size_t cap = 20) {
  std::string text = "error: " + printable(e.what());
  if (!e.place().empty()) text += "\n  at: " + printable(e.place());
  std::size_t shown = 0;
  for (const auto& detail : e.details()) {
    if (shown == cap) {
      text += "\n  ... and " + std::to_string(e.details().size() - cap) + " more";
      break;
    }
    text += "\n  - " + printable(detail);
    ++shown;
  }
  if (!e.hint().empty()) text += "\n  hint: " + printable(e.hint());
  return text;
}

/// Throws error_code::internal unless `condition` holds: for invariants of Raptor itself.
inline void ensure(bool condition, const char* message, std::string place = {}) {
  if (!condition) throw error(error_code::internal, message, std::move(place), "this is a fault in Raptor, please report it");
}

}  // namespace raptor
