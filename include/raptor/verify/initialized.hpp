#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "raptor/isa/table.hpp"
#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/program/unrolled.hpp"
#include "raptor/support/error.hpp"

/// Every local element that an operation reads was written before on that core, in every iteration: an exact walk.
namespace raptor::verify {

/// A set of elements, one bit each.
class element_set {
 public:
  element_set() = default;
  explicit element_set(std::int64_t elements) : words_(static_cast<std::size_t>((elements + 63) / 64), 0) {}

  void insert(std::int64_t begin, std::int64_t end) {
    each_word(begin, end, [this](std::size_t w, std::uint64_t mask) {
      words_[w] |= mask;
      return true;
    });
  }
  /// First element of [begin, end) that is not in the set; `end` where all are.
  [[nodiscard]] std::int64_t first_missing(std::int64_t begin, std::int64_t end) const {
    std::int64_t missing = end;
    each_word(begin, end, [&](std::size_t w, std::uint64_t mask) {
      const std::uint64_t absent = mask & ~words_[w];
      if (absent == 0) return true;
      missing = static_cast<std::int64_t>(w) * 64 + std::countr_zero(absent);
      return false;
    });
    return missing;
  }
  [[nodiscard]] bool empty() const noexcept { return words_.empty(); }
  [[nodiscard]] bool contains(std::int64_t element) const {
    return (words_[static_cast<std::size_t>(element / 64)] >> (element % 64) & 1u) != 0;
  }

 private:
  std::vector<std::uint64_t> words_;

  template <class F>
  static void each_word(std::int64_t begin, std::int64_t end, const F& f) {
    while (begin < end) {
      const std::int64_t w = begin / 64, stop = std::min(end, (w + 1) * 64);
      const auto bits = static_cast<unsigned>(stop - begin), shift = static_cast<unsigned>(begin % 64);
      const std::uint64_t mask = (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1) << shift;
      if (!f(static_cast<std::size_t>(w), mask)) return;
      begin = stop;
    }
  }
};

struct initialized_options {
  std::int64_t most_operations = 400'000'000;   ///< of all cores; beyond it the program is refused
  std::int64_t most_elements = std::int64_t{1} << 32;  ///< of all buffers together (one bit each)
};

/// Walks all iterations of all cores. Requires check_bounds.
///
/// Local memory: a read of an element that no earlier operation of the core wrote is an error (views count as their owner). Global
/// memory: what is loaded must be an input, a constant's contents, or be stored by some core; every element of an output must be
/// stored by some core. Cores run at their own pace, so that the order of stores and loads is the synchronization's to prove.
/// Errors: malformed with buffer, element, core and item; capacity. Cost: some nanoseconds an operation and 64 elements; one bit an element.
inline void check_initialized(const program::program& p, const initialized_options& options = {}) {
  std::int64_t elements = 0, operations = 0;
  for (const auto& b : p.buffers)
    if (b.view_of == program::none) elements = checked::add(elements, b.elements);
  if (elements > options.most_elements) throw error(error_code::capacity, "the buffers have " + std::to_string(elements) + " elements");
  std::vector<element_set> written(p.buffers.size());
  std::vector<program::location> places(p.buffers.size());
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    places[b] = program::locate(p, static_cast<std::uint32_t>(b));
    if (p.buffers[b].core == program::global_memory && p.buffers[b].view_of == program::none) written[b] = element_set(p.buffers[b].elements);
    if (p.buffers[b].data) written[b].insert(0, static_cast<std::int64_t>(p.buffers[b].data->floats().size()));
  }
  for (const auto& input : p.inputs) {
    const auto at = places[input.buffer];
    written[at.root].insert(at.offset, at.offset + p.buffers[input.buffer].elements);
  }
  std::vector<element_set> loaded(p.buffers.size());

  for (std::size_t c = 0; c < p.cores.size(); ++c) {
    const auto& core = p.cores[c];
    const std::string name = "core " + std::to_string(c);
    const program::unrolled body(core.body, name);
    operations = checked::add(operations, body.size());
    if (operations > options.most_operations)
      throw error(error_code::capacity, "the program has more than " + std::to_string(options.most_operations) + " operations", name);
    std::vector<std::size_t> touched;
    const auto storage = [&](std::vector<element_set>& sets, std::uint32_t root) -> element_set& {
      if (sets[root].empty()) {
        sets[root] = element_set(p.buffers[root].elements);
        if (p.buffers[root].core != program::global_memory) touched.push_back(root);
      }
      return sets[root];
    };
    body.walk([&](const program::step& s) {
      const program::operation& o = *s.op;
      for (const auto& e : program::effects_of(p, core, o)) {
        const std::size_t k = e.where == &o.d ? 0 : e.where == &o.a ? 1 : 2;
        const auto at = places[e.where->buffer];
        const std::int64_t first = at.offset + s.offsets[k];
        const bool is_global = p.buffers[at.root].core == program::global_memory;
        element_set& set = storage(is_global && !e.writes ? loaded : written, at.root);
        if (e.writes || is_global) {
          if (e.step == 1) set.insert(first, first + e.count);
          else
            for (std::int64_t n = 0; n < e.count; ++n) set.insert(first + n * e.step, first + n * e.step + 1);
          continue;
        }
        std::int64_t missing = -1;
        if (e.step == 1) {
          if (const auto m = set.first_missing(first, first + e.count); m != first + e.count) missing = m;
        } else {
          for (std::int64_t n = 0; n < e.count && missing < 0; ++n)
            if (!set.contains(first + n * e.step)) missing = first + n * e.step;
        }
        if (missing >= 0)
          throw error(error_code::malformed,
                      std::string(isa::mnemonic(o.op)) + ": reads element " + std::to_string(missing - at.offset) + " of buffer '" +
                          p.buffers[e.where->buffer].name + "', which nothing has written",
                      name + ", item " + std::to_string(s.item));
      }
    });
    for (const std::size_t b : touched) written[b] = {};  // local memory of this core is done with
  }
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    if (loaded[b].empty()) continue;
    for (std::int64_t e = 0; e < p.buffers[b].elements; ++e)
      if (loaded[b].contains(e) && !written[b].contains(e))
        throw error(error_code::malformed, "element " + std::to_string(e) + " of global buffer '" + p.buffers[b].name +
                                               "' is loaded, but is neither input nor constant and no core stores it");
  }
  for (const auto& output : p.outputs) {
    const auto at = places[output.buffer];
    const std::int64_t end = at.offset + element_count(output.sizes);
    if (const auto missing = written[at.root].first_missing(at.offset, end); missing != end)
      throw error(error_code::malformed, "element " + std::to_string(missing - at.offset) + " of output '" + output.name + "' is stored by no core");
  }
}

}  // namespace raptor::verify
