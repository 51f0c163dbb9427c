#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raptor/support/error.hpp"
#include "raptor/target/configuration.hpp"

/// Reading the network file of pimsim-nn ({"latency": {from: {to: value}}, "energy": …}) event by event: the table of a large chip is
/// most of what a configuration has, and takes less than four times its text beside a few megabytes.
namespace raptor::target {

/// Whether every object of the format must be there and every value be what it should (the compiler); or a missing object takes its
/// fields' defaults, and values are converted and refused as pimsim-nn does (the simulator).
enum class objects { required, optional };

namespace detail {

/// Collects both tables. In the simulator's reading a list stands for the object of its indices and null for an empty one, a node's
/// name counts as far as it is a number, and faults have the JSON library's words. Of equal keys the last counts. A fault is kept until the
/// text has proved to be JSON.
class network_events : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// `presence` optional: a text that is no JSON is refused with the library's words; required: it has been checked before.
  network_events(std::string file, objects presence) : file_(std::move(file)), required_(presence == objects::required) {}

  /// The tables. Errors: malformed, the first fault or the table that is missing; capacity, more than most_nodes rows or entries of a row.
  [[nodiscard]] network_table take() {
    if (required_ && !document_) throw error(error_code::malformed, file_ + ": not a JSON object", file_);
    for (const auto& p : parts_) {
      if (!p.there) throw error(error_code::malformed, file_ + ": missing object " + p.name, p.name);
      if (p.fault) throw error(*p.fault);
    }
    return {std::move(parts_[0].rows), std::move(parts_[1].rows)};
  }

  bool null() override { return leaf("null", nullptr); }
  bool boolean(bool) override { return leaf("boolean", nullptr); }
  bool number_integer(number_integer_t v) override { return number(static_cast<double>(v)); }
  bool number_unsigned(number_unsigned_t v) override { return number(static_cast<double>(v)); }
  bool number_float(number_float_t v, const string_t&) override { return number(v); }
  bool string(string_t&) override { return leaf("string", nullptr); }
  bool binary(binary_t&) override { return leaf("binary", nullptr); }
  bool key(string_t& name) override {
    if (depth_ == 1 || part_ != nullptr) keys_[std::min<std::size_t>(depth_, 3)] = name;
    return true;
  }
  bool start_object(std::size_t) override { return open("object"); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open("array"); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& why) override {
    throw error(error_code::malformed, why.what());
  }

 private:
  using row = std::vector<std::pair<std::int64_t, double>>;
  struct part {
    const char* name;
    network_table::rows rows;
    std::optional<error> fault;
    bool there = false;
  };

  bool number(double value) { return leaf("number", &value); }
  /// A value that is no object and no list.
  bool leaf(const char* type, const double* value) {
    if (depth_ == 1 && document_) {
      begin_table();
      if (part_ != nullptr) check_rows(type);
      end_table();
    } else if (depth_ == 2 && part_ != nullptr) {
      next_key();
      begin_row();
      check_rows(type);
      end_row();
    } else if (depth_ == 3 && part_ != nullptr) {
      next_key();
      store(type, value);
    }
    return true;
  }
  bool open(const char* type) {
    const bool list = *type == 'a';
    if (depth_ == 0) document_ = !list;
    if (depth_ == 1 && document_) begin_table();
    if (part_ != nullptr && depth_ >= 1 && depth_ <= 3) {
      if (depth_ > 1) next_key();
      if (depth_ == 2) begin_row();
      if (depth_ == 3) store(type, nullptr);
      else check_rows(type);
    }
    ++depth_;
    if (depth_ <= 3) indices_[depth_] = list ? 0 : -1;
    return true;
  }
  bool close() {
    --depth_;
    if (depth_ == 2 && part_ != nullptr) end_row();
    if (depth_ == 1) end_table();
    return true;
  }

  /// Inside a list the key is the index.
  void next_key() {
    auto& index = indices_[depth_];
    if (index >= 0) keys_[depth_] = std::to_string(index++);
  }
  void begin_table() {
    for (auto& p : parts_)
      if (keys_[1] == p.name) {
        part_ = &p;
        p.there = true;
        p.fault.reset();
        table_.clear();
      }
  }
  void end_table() {
    if (part_ != nullptr) part_->rows = ordered<network_table::rows>(table_);
    part_ = nullptr;
  }
  void begin_row() {
    row_.clear();
    from_ = node(keys_[2], part_->name);
  }
  void end_row() {
    if (!part_->fault && table_.size() == most_nodes) refuse_size(part_->name);
    if (!part_->fault) table_.emplace_back(from_, ordered<network_table::rows::mapped_type>(row_));
  }
  void store(const char* type, const double* value) {
    const auto to = node(keys_[3], place(2));
    if (value == nullptr) {
      refuse(required_ ? place(3) + " is not a number" : std::string("[json.exception.type_error.302] type must be number, but is ") + type, place(3));
    } else if (!required_ && !(*value >= 0)) {
      refuse(std::string("the ") + part_->name + " from node " + keys_[2] + " to " + keys_[3] + " is negative", place(3));
    } else if (!part_->fault) {
      if (row_.size() == most_nodes) refuse_size(place(2));
      else row_.emplace_back(to, *value);
    }
  }
  /// Whether rows or entries can follow.
  void check_rows(const char* type) {
    const std::string_view what(type);
    if (what == "object") return;
    const auto where = place(depth_);
    if (required_) refuse(file_ + ": " + where + " is not an object", where);
    else if (what != "array" && what != "null") static_cast<void>(node("", where));
  }
  /// The number of a node.
  [[nodiscard]] std::int64_t node(const std::string& name, const std::string& where) {
    if (!required_) {
      try {
        return std::stoi(name);  // as pimsim-nn; "stoi" is all that it says of others
      } catch (const std::logic_error&) {
        refuse("stoi", "network file, node '" + name.substr(0, 40) + "'", "nodes are named by whole numbers");
        return 0;
      }
    }
    const std::size_t digits = name.starts_with('-') ? 1 : 0;
    if (name.size() == digits || name.size() > 10 || name.find_first_not_of("0123456789", digits) != std::string::npos) {
      refuse(file_ + ": '" + name.substr(0, 40) + "' in " + where + " is not the number of a node", where);
      return 0;
    }
    return std::stoll(name);
  }
  void refuse(std::string message, std::string where, std::string hint = {}) {
    if (!part_->fault) part_->fault.emplace(error_code::malformed, std::move(message), std::move(where), std::move(hint));
  }
  void refuse_size(const std::string& where) {
    part_->fault.emplace(error_code::capacity, file_ + ": " + where + " has more than " + std::to_string(most_nodes) + " entries, one for each node", where, "use fewer cores");
  }
  /// "latency.3.7" up to a depth.
  [[nodiscard]] std::string place(std::size_t depth) const {
    std::string text = part_->name;
    for (std::size_t d = 2; d <= depth; ++d) text += "." + keys_[d].substr(0, 40);
    return text;
  }
  template <class Map, class Entries>
  [[nodiscard]] static Map ordered(Entries& entries) {
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    // Of equal keys the last: the first of them from behind.
    const auto last = std::unique(entries.rbegin(), entries.rend(), [](const auto& a, const auto& b) { return a.first == b.first; });
    return Map(boost::container::ordered_unique_range, std::make_move_iterator(last.base()), std::make_move_iterator(entries.end()));
  }

  static constexpr std::size_t most_nodes = (std::size_t{1} << 16) + 1;  ///< cores and the global memory; lists of them grow to three times their size

  std::string file_;
  bool required_, document_ = false;
  std::array<part, 2> parts_{{{"latency", {}, {}}, {"energy", {}, {}}}};
  part* part_ = nullptr;  ///< the table that is read
  std::size_t depth_ = 0;
  std::array<std::string, 4> keys_;     ///< by depth
  std::array<std::int64_t, 4> indices_{};  ///< by depth: the next index of a list; −1 in an object
  std::vector<std::pair<std::int64_t, network_table::rows::mapped_type>> table_;
  row row_;
  std::int64_t from_ = 0;
};

}  // namespace detail
}  // namespace raptor::target
