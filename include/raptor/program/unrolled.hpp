#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/support/error.hpp"

/// A core's body prepared for walking through all iterations: what emission and the exact checks run on.
namespace raptor::program {

/// Loops deeper than this are refused; a lowering nests about six.
inline constexpr std::size_t max_loop_depth = 48;

/// One operation of an unrolled body. `offsets`: elements, of d, a and b (0 where a place is not used).
struct step {
  const operation* op = nullptr;
  std::array<std::int64_t, 3> offsets{};  ///< d, a, b
  std::size_t item = 0;                   ///< top-level item
};

/// Offsets compiled to sums over loop depths. Keeps references to the body, which must outlive it.
///
/// Cost: construction linear in the text of the body; a walk a few nanoseconds an operation; no memory grows with the counts.
class unrolled {
 public:
  /// Smallest and largest value of an offset over all iterations.
  struct range {
    std::int64_t low = 0, high = 0;
  };

  /// Errors: malformed for a symbol that is not the variable of an enclosing loop, for a variable used twice in a nest, a negative count,
  /// or too deep a nest; capacity where a count or an offset overflows.
  explicit unrolled(const std::vector<item>& body, std::string where = {}) : where_(std::move(where)) {
    nodes_.reserve(count_items(body));
    tops_.reserve(body.size() + 1);
    for (std::size_t i = 0; i < body.size(); ++i) {
      item_ = i;
      tops_.push_back(nodes_.size());
      total_ = checked::add(total_, add(body[i]));
    }
    tops_.push_back(nodes_.size());
  }
  unrolled(const unrolled&) = delete;
  unrolled& operator=(const unrolled&) = delete;

  /// Operations over all iterations.
  [[nodiscard]] std::int64_t size() const noexcept { return total_; }

  /// Calls `f(const step&)` for every operation in execution order.
  template <class F>
  void walk(F&& f) const {
    std::array<std::int64_t, max_loop_depth> values{};
    step current;
    for (std::size_t i = 0; i + 1 < tops_.size(); ++i) {
      current.item = i;
      run(tops_[i], tops_[i + 1], 0, values, current, f);
    }
  }

  /// Calls `f(operation, ranges of d, a, b, top-level item)` once for each operation of the text that is executed at all.
  template <class F>
  void each_range(F&& f) const {
    std::vector<std::size_t> nest;  // the enclosing loops
    const auto count_of = [&](std::uint32_t depth) { return nodes_[nest[depth]].count; };
    for (std::size_t i = 0; i + 1 < tops_.size(); ++i)
      for (std::size_t n = tops_[i]; n < tops_[i + 1];) {
        while (!nest.empty() && nodes_[nest.back()].next == n) nest.pop_back();
        const node& here = nodes_[n];
        if (here.op == nullptr) {
          if (here.count > 0) nest.push_back(n);
          n = here.count > 0 ? n + 1 : here.next;
          continue;
        }
        std::array<range, 3> ranges;
        for (std::size_t k = 0; k < 3; ++k) ranges[k] = range_of(here, k, count_of);
        f(*here.op, ranges, i);
        ++n;
      }
  }

  /// Memory that it takes at most for each operation and loop of the body, beside the terms of their offsets.
  static constexpr std::size_t bytes_per_item = 48;

  /// Position in an unrolled body that can be stepped, for simulations in which a body pauses.
  class cursor;

 private:
  struct term {
    std::uint32_t depth = 0;
    std::int64_t coefficient = 0;
  };
  struct node {
    const operation* op = nullptr;  ///< null: a loop of nodes [this + 1, next)
    std::int64_t count = 0;         ///< of a loop
    std::size_t next = 0;
    std::array<std::uint32_t, 4> terms{};  ///< those of place k: [terms[k], terms[k + 1])
  };
  static_assert(sizeof(node) + sizeof(std::size_t) <= bytes_per_item);

  std::string where_;
  std::vector<node> nodes_;
  std::vector<term> terms_;
  std::vector<std::size_t> tops_;
  std::int64_t total_ = 0;
  std::size_t item_ = 0;
  std::vector<std::pair<std::uint32_t, std::int64_t>> nest_;  ///< variable and count of the enclosing loops

  [[nodiscard]] error fail(std::string message) const {
    return error(error_code::malformed, std::move(message), (where_.empty() ? "" : where_ + ", ") + "item " + std::to_string(item_));
  }

  std::int64_t add(const item& i) {
    const std::size_t at = nodes_.size();
    nodes_.emplace_back();
    std::int64_t executed = 1;
    if (const auto* o = std::get_if<operation>(&i.what)) {
      nodes_[at].op = o;
      for (std::size_t k = 0; k < 3; ++k) compile(offset_of(*o, k), nodes_[at], k);
    } else {
      const loop& l = std::get<loop>(i.what);
      if (l.count < 0) throw fail("a loop has count " + std::to_string(l.count));
      if (nest_.size() == max_loop_depth) throw fail("loops are nested deeper than " + std::to_string(max_loop_depth));
      for (const auto& outer : nest_)
        if (outer.first == l.variable) throw fail("loop variable i" + std::to_string(l.variable) + " is used twice in a nest");
      nest_.emplace_back(l.variable, l.count);
      nodes_[at].count = l.count;
      std::int64_t inside = 0;
      for (const item& inner : l.body) inside = checked::add(inside, add(inner));
      nest_.pop_back();
      executed = checked::multiply(inside, l.count);
      if (executed == 0) nodes_[at].count = 0;  // nothing inside runs
    }
    nodes_[at].next = nodes_.size();
    return executed;
  }

  void compile(const affine& offset, node& to, std::size_t k) {
    to.terms[k] = static_cast<std::uint32_t>(terms_.size());
    for (const auto& t : offset.terms()) {
      std::uint32_t depth = 0;
      while (depth < nest_.size() && nest_[depth].first != t.variable.index) ++depth;
      if (t.variable.what != symbol::kind::loop || depth == nest_.size())
        throw fail("offset " + to_string(offset) + " uses " + to_string(t.variable) + ", which no enclosing loop binds");
      terms_.push_back({depth, t.coefficient});
    }
    to.terms[k + 1] = static_cast<std::uint32_t>(terms_.size());
    static_cast<void>(range_of(to, k, [this](std::uint32_t depth) { return nest_[depth].second; }));  // it must not overflow
  }

  [[nodiscard]] static const affine& offset_of(const operation& o, std::size_t k) noexcept { return k == 0 ? o.d.offset : k == 1 ? o.a.offset : o.b.offset; }
  /// The range of place k in loops with the given counts by depth. Errors: capacity, where it overflows.
  template <class Count>
  [[nodiscard]] range range_of(const node& n, std::size_t k, const Count& count_of) const {
    const std::int64_t constant = offset_of(*n.op, k).constant();
    range r{constant, constant};
    for (std::uint32_t t = n.terms[k]; t < n.terms[k + 1]; ++t) {
      const std::int64_t most = checked::multiply(terms_[t].coefficient, std::max(count_of(terms_[t].depth) - 1, std::int64_t{0}));
      (most < 0 ? r.low : r.high) = checked::add(most < 0 ? r.low : r.high, most);
    }
    return r;
  }
  [[nodiscard]] static std::size_t count_items(const std::vector<item>& body) {
    std::size_t count = body.size();
    for (const item& i : body)
      if (const auto* l = std::get_if<loop>(&i.what)) count += count_items(l->body);
    return count;
  }

  void evaluate(const node& n, const std::array<std::int64_t, max_loop_depth>& values, step& to) const {
    to.op = n.op;
    for (std::size_t k = 0; k < 3; ++k) to.offsets[k] = offset_of(*n.op, k).constant();
    if (n.terms[0] == n.terms[3]) return;
    for (std::size_t k = 0; k < 3; ++k)
      for (std::uint32_t t = n.terms[k]; t < n.terms[k + 1]; ++t)
        to.offsets[k] += terms_[t].coefficient * values[terms_[t].depth];
  }

  template <class F>
  void run(std::size_t begin, std::size_t end, std::size_t depth, std::array<std::int64_t, max_loop_depth>& values, step& current,
           F& f) const {
    for (std::size_t n = begin; n < end; n = nodes_[n].next) {
      const node& here = nodes_[n];
      if (here.op != nullptr) {
        evaluate(here, values, current);
        f(static_cast<const step&>(current));
      } else {
        for (std::int64_t v = 0; v < here.count; ++v) {
          values[depth] = v;
          run(n + 1, here.next, depth + 1, values, current, f);
        }
      }
    }
  }
};

/// Steps through some operations of an unrolled body only: those that communicate (send, recv, wait, sync), or those that `stops` chooses;
/// loops without any are passed over at once.
class unrolled::cursor {
 public:
  explicit cursor(const unrolled& body) : cursor(body, [](const operation& o) { return is_communication(o.op); }) {}
  template <class Stops>
  cursor(const unrolled& body, const Stops& stops) : body_(&body), talks_(body.nodes_.size()) {
    for (std::size_t n = body.nodes_.size(); n-- > 0;) {
      const node& here = body.nodes_[n];
      if (here.op != nullptr) {
        talks_[n] = stops(*here.op);
      } else {
        for (std::size_t c = n + 1; c < here.next && !talks_[n]; c = body.nodes_[c].next) talks_[n] = talks_[c];
        if (here.count == 0) talks_[n] = false;
      }
    }
    restart();
  }

  /// Back to the first of them.
  void restart() {
    depth_ = 0;
    node_ = 0;
    passed_ = 0;
    settle();
  }
  [[nodiscard]] bool done() const noexcept { return node_ >= body_->nodes_.size(); }
  /// Requires !done().
  [[nodiscard]] const operation& current() const noexcept { return *body_->nodes_[node_].op; }
  /// The current operation with its offsets and item.
  [[nodiscard]] step here() const {
    std::array<std::int64_t, max_loop_depth> values{};
    for (std::size_t d = 0; d < depth_; ++d) values[d] = frames_[d].count - 1 - frames_[d].left;
    step result;
    body_->evaluate(body_->nodes_[node_], values, result);
    result.item = item();
    return result;
  }
  /// Operations passed since the (re)start.
  [[nodiscard]] std::int64_t passed() const noexcept { return passed_; }
  /// Top-level item of the current operation.
  [[nodiscard]] std::size_t item() const {
    return static_cast<std::size_t>(std::upper_bound(body_->tops_.begin(), body_->tops_.end(), node_) - body_->tops_.begin()) - 1;
  }
  void advance() {
    ++passed_;
    node_ = body_->nodes_[node_].next;
    settle();
  }
  /// Operations of the text from here to the end that can still be executed, each once: `f(operation)`.
  template <class F>
  void rest(const F& f) const {
    // Enclosing loops with iterations left run their whole text again.
    std::size_t from = node_;
    for (std::size_t d = 0; d < depth_; ++d)
      if (frames_[d].left > 0) {
        from = std::min(from, frames_[d].begin);
        break;
      }
    for (std::size_t n = from; n < body_->nodes_.size();) {
      const node& here = body_->nodes_[n];
      if (talks_[n] && here.op != nullptr) f(*here.op);
      n = talks_[n] && here.op == nullptr ? n + 1 : here.next;
    }
  }

 private:
  struct frame {
    std::size_t begin = 0, end = 0;
    std::int64_t left = 0, count = 0;
  };
  const unrolled* body_;
  std::vector<bool> talks_;
  std::array<frame, max_loop_depth> frames_{};
  std::size_t depth_ = 0;
  std::size_t node_ = 0;
  std::int64_t passed_ = 0;

  void settle() {
    for (;;) {
      if (depth_ > 0 && node_ == frames_[depth_ - 1].end) {
        if (frames_[depth_ - 1].left > 0) {
          --frames_[depth_ - 1].left;
          node_ = frames_[depth_ - 1].begin;
        } else {
          --depth_;
        }
      } else if (done()) {
        return;
      } else if (!talks_[node_]) {
        node_ = body_->nodes_[node_].next;
      } else if (body_->nodes_[node_].op != nullptr) {
        return;
      } else {
        frames_[depth_++] = {node_ + 1, body_->nodes_[node_].next, body_->nodes_[node_].count - 1, body_->nodes_[node_].count};
        ++node_;
      }
    }
  }
};

}  // namespace raptor::program
