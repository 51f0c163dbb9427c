#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/program/unrolled.hpp"
#include "raptor/support/error.hpp"

/// Global memory as the cores of a program share it: what verifies and what plans the order of loads and stores reads it from here.
namespace raptor::program {

/// Elements [begin, end) of a buffer in global memory that a ld or st touches. Views are resolved.
struct global_access {
  std::uint32_t buffer = none;
  std::int64_t begin = 0, end = 0;
  bool store = false;
};

/// True for ld and st.
[[nodiscard]] constexpr bool is_global_access(isa::opcode op) noexcept { return op == isa::opcode::ld || op == isa::opcode::st; }

/// Requires a ld or st.
[[nodiscard]] inline global_access access_of(const program& p, const step& s) {
  const bool store = s.op->op == isa::opcode::st;
  const auto at = locate(p, store ? s.op->d.buffer : s.op->a.buffer);
  const std::int64_t begin = at.offset + s.offsets[store ? 0 : 1];
  return {at.root, begin, begin + s.op->length, store};
}

/// The channels of a program: buffers in global memory that cores load after a core has stored them, or that several cores store. Their
/// elements are cut into pieces that every access covers wholly or not at all; pieces of all channels are numbered from 0.
///
/// Errors: malformed for a store into a graph input or a constant. Cost: O(a · log a) in the number a of unrolled accesses to channels.
class shared_memory {
 public:
  enum class role : std::uint8_t { alone, constant, input, channel };

  explicit shared_memory(const program& p) : program_(&p), roles_(p.buffers.size(), role::alone), first_(p.buffers.size(), 0), cuts_(p.buffers.size()) {
    std::vector<std::unique_ptr<unrolled>> bodies;
    for (std::size_t b = 0; b < p.buffers.size(); ++b)
      if (p.buffers[b].data) roles_[b] = role::constant;
    for (const auto& port : p.inputs) roles_[port.buffer] = role::input;
    find_channels(bodies);
    for (std::size_t c = 0; c < p.cores.size(); ++c)
      for (unrolled::cursor at(*bodies[c], [&](const operation& o) { return of(o) == role::channel; }); !at.done(); at.advance()) {
        const auto a = access_of(p, at.here());
        auto& cuts = cuts_[a.buffer];
        if (!cuts.empty() && cuts.back() == a.begin) cuts.push_back(a.end);  // runs that follow one another
        else cuts.insert(cuts.end(), {a.begin, a.end});
      }
    for (std::size_t b = 0; b < cuts_.size(); ++b) {
      auto& cuts = cuts_[b];
      std::sort(cuts.begin(), cuts.end());
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
      first_[b] = pieces_;
      if (!cuts.empty()) pieces_ += cuts.size() - 1;
    }
  }

  /// Role of the buffer in global memory that an operation loads or stores; `alone` for any other operation.
  [[nodiscard]] role of(const operation& o) const {
    if (!is_global_access(o.op)) return role::alone;
    return roles_[locate(*program_, o.op == isa::opcode::st ? o.d.buffer : o.a.buffer).root];
  }
  [[nodiscard]] std::size_t size() const noexcept { return pieces_; }
  [[nodiscard]] bool empty() const noexcept { return std::find(roles_.begin(), roles_.end(), role::channel) == roles_.end(); }
  /// Pieces [first, second) of an access to a channel. Cost: O(log pieces).
  [[nodiscard]] std::pair<std::size_t, std::size_t> pieces(const global_access& a) const {
    const auto& cuts = cuts_[a.buffer];
    const auto index = [&](std::int64_t x) { return static_cast<std::size_t>(std::lower_bound(cuts.begin(), cuts.end(), x) - cuts.begin()); };
    return {first_[a.buffer] + index(a.begin), first_[a.buffer] + index(a.end)};
  }
  /// Elements of a piece as text, for messages: "elements 4 to 8 of buffer 'x'".
  [[nodiscard]] std::string describe(std::size_t piece) const {
    std::size_t b = 0;
    while (cuts_[b].size() < 2 || piece >= first_[b] + cuts_[b].size() - 1) ++b;
    const auto at = static_cast<std::size_t>(piece - first_[b]);
    return "elements " + std::to_string(cuts_[b][at]) + " to " + std::to_string(cuts_[b][at + 1]) + " of buffer '" + program_->buffers[b].name + "'";
  }

 private:
  const program* program_;
  std::vector<role> roles_;
  std::vector<std::size_t> first_;                ///< by buffer: number of its first piece
  std::vector<std::vector<std::int64_t>> cuts_;   ///< by buffer
  std::size_t pieces_ = 0;

  void find_channels(std::vector<std::unique_ptr<unrolled>>& bodies) {
    std::vector<std::int32_t> writer(roles_.size(), -1);
    std::vector<bool> loaded(roles_.size(), false);
    for (std::size_t c = 0; c < program_->cores.size(); ++c) {
      bodies.push_back(std::make_unique<unrolled>(program_->cores[c].body, "core " + std::to_string(c)));
      bodies.back()->each_range([&](const operation& o, const auto&, std::size_t item) {
        if (!is_global_access(o.op)) return;
        const bool store = o.op == isa::opcode::st;
        const auto b = locate(*program_, store ? o.d.buffer : o.a.buffer).root;
        if (store && (roles_[b] == role::constant || roles_[b] == role::input))
          throw error(error_code::malformed, "st writes " + std::string(roles_[b] == role::input ? "the graph input '" : "the constant '") + program_->buffers[b].name + "'",
                      "core " + std::to_string(c) + ", item " + std::to_string(item));
        if (!store) {
          loaded[b] = true;
          return;
        }
        if (writer[b] >= 0 && writer[b] != static_cast<std::int32_t>(c)) roles_[b] = role::channel;
        writer[b] = static_cast<std::int32_t>(c);
      });
    }
    for (std::size_t b = 0; b < roles_.size(); ++b)
      if (loaded[b] && roles_[b] == role::alone) roles_[b] = role::channel;
  }
};

}  // namespace raptor::program
