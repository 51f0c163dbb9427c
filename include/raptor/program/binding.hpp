#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/support/box.hpp"
#include "raptor/support/error.hpp"

/// Binding: from the realized to the bound program. Aliasing and in-place use of every local buffer are decided here, and
/// never again.
namespace raptor::program {

struct bind_options {
  bool remove_copies = true;  ///< a full copy whose source dies where its destination is born becomes a view
  bool in_place = true;       ///< an element-wise result may take the place of an operand that dies
};

namespace binding_parts {

/// A loop around an operation, or the top-level item itself (no loop).
struct context {
  const std::vector<item>* block = nullptr;  ///< the loop body that holds the operation; null: it is the item itself
  std::size_t index = 0;                     ///< its position there
  std::vector<const loop*> loops;            ///< outermost first
};

/// Calls `f(operation, context)` for every operation of an item.
template <class F>
void walk(const item& i, context& where, const F& f) {
  if (const auto* o = std::get_if<operation>(&i.what)) {
    f(*o, std::as_const(where));
    return;
  }
  const loop& l = std::get<loop>(i.what);
  const context outer = where;
  where.loops.push_back(&l);
  where.block = &l.body;
  for (std::size_t k = 0; k < l.body.size(); ++k) {
    where.index = k;
    walk(l.body[k], where, f);
  }
  where = outer;
}

/// True where `length` elements from an affine offset are disjoint for any two different iterations of the loops: every
/// loop moves it farther than all loops inside (in the order of their steps) reach together.
[[nodiscard]] inline bool disjoint_iterations(const affine& offset, const std::vector<const loop*>& loops, std::int64_t length) {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // |coefficient|, count
  for (const loop* l : loops) {
    if (l->count <= 1) continue;
    const std::int64_t c = offset.coefficient({symbol::kind::loop, l->variable});
    if (c == std::numeric_limits<std::int64_t>::min()) return false;
    steps.emplace_back(std::abs(c), l->count);
  }
  std::sort(steps.begin(), steps.end());
  std::int64_t reach = length;
  for (const auto& [step, count] : steps) {
    if (step < reach) return false;
    reach = checked::add(reach, checked::multiply(step, count - 1));
  }
  return true;
}

/// May `later` (born in the item) lie in the place of `earlier` (dies in the item), both of one size?
///
/// Yes where no write of `later` can come before an access of `earlier` to the same element. Proven where both stand in one loop
/// body, a constant distance apart, with iterations that touch disjoint elements, and the access of `earlier` comes first in the
/// text; or it is the same element-wise operation at the same offset, which reads each element before it writes it.
/// Accesses whose elements are disjoint over all iterations do not matter. Everything else: no.
[[nodiscard]] inline bool may_be_in_place(const program& p, const core_program& core, const item& i, std::uint32_t earlier, std::uint32_t later) {
  struct touch {
    const operation* op;
    effect what;
    context where;
  };
  std::vector<touch> first, second;
  context where;
  walk(i, where, [&](const operation& o, const context& here) {
    for (const auto& e : effects_of(p, core, o)) {
      if (e.where->buffer == earlier) first.push_back({&o, e, here});
      if (e.where->buffer == later && e.writes) second.push_back({&o, e, here});
    }
  });
  const auto reach = [](const touch& t) {
    interval all{t.what.low(), t.what.high()};
    all.begin = checked::add(all.begin, t.what.where->offset.constant());
    all.end = checked::add(all.end, t.what.where->offset.constant());
    for (const loop* l : t.where.loops) {
      const auto move = checked::multiply(t.what.where->offset.coefficient({symbol::kind::loop, l->variable}), std::max(l->count - 1, std::int64_t{0}));
      (move < 0 ? all.begin : all.end) = checked::add(move < 0 ? all.begin : all.end, move);
    }
    return all;
  };
  const auto safe = [&](const touch& access, const touch& write) {
    if (intersect(reach(access), reach(write)).empty()) return true;
    if (access.where.block != write.where.block || access.where.loops != write.where.loops || access.where.index > write.where.index) return false;
    const affine distance = access.what.where->offset - write.what.where->offset;
    if (!distance.is_constant()) return false;
    if (access.op == write.op && !(is_elementwise(access.op->op) && !access.what.writes && distance.constant() == 0)) return false;
    const interval both = hull({write.what.low(), write.what.high()},
                               {distance.constant() + access.what.low(), distance.constant() + access.what.high()});
    return disjoint_iterations(write.what.where->offset, write.where.loops, both.size());
  };
  for (const auto& access : first)
    for (const auto& write : second)
      if (!safe(access, write)) return false;
  return true;
}

/// Local storage of a core under merging: every buffer that owns storage starts as a class of its own.
struct classes {
  std::vector<std::uint32_t> owner;   ///< of each root: the root that it was merged into (path compressed)
  std::vector<interval> life;         ///< of each class, at its owner
  std::vector<bool> uniform;          ///< whole storage only: the class can be merged

  [[nodiscard]] std::uint32_t find(std::uint32_t b) {
    while (owner[b] != b) b = owner[b] = owner[owner[b]];
    return b;
  }
  /// `second` takes the storage of `first`.
  void merge(std::uint32_t first, std::uint32_t second) {
    life[first] = hull(life[first], life[second]);
    owner[second] = first;
  }
};

}  // namespace binding_parts

/// Decides aliasing and in-place use.
///
/// Requires: a realized program (verify::check_program). Guarantees: nothing is inserted, no operation changes but by its buffers' places;
/// a top-level copy of a whole buffer disappears where its source is touched last and its destination first, and both
/// share storage then; an element-wise result that is born in the item in which an operand of its size dies shares storage with it
/// where no element can be overwritten before it is read. Buffers that are views of parts of others in the realized
/// program, and their owners, stay as they are. Each step keeps the values of all reads: verify/copy_freedom.hpp proves it again,
/// independently. Cost: near linear in the text of the program. Deterministic: first come, first served in item order.
[[nodiscard]] inline program bind(program p, const bind_options& options = {}) {
  using namespace binding_parts;
  classes storage;
  storage.owner.resize(p.buffers.size());
  storage.life.resize(p.buffers.size());
  storage.uniform.assign(p.buffers.size(), true);
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    storage.owner[b] = static_cast<std::uint32_t>(b);
    const auto& buffer = p.buffers[b];
    if (buffer.core == global_memory) storage.uniform[b] = false;
    if (buffer.view_of == none) continue;
    ensure(buffer.view_of < p.buffers.size() && p.buffers[buffer.view_of].view_of == none, "a view of a view", buffer.name);
    storage.uniform[b] = storage.uniform[buffer.view_of] = false;
  }
  const auto touch = [&](std::uint32_t b, std::size_t i) {
    ensure(b < p.buffers.size(), "an operation names a buffer that does not exist");
    auto& life = storage.life[locate(p, b).root];
    life = hull(life, {static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1});
  };
  for (const auto& core : p.cores)
    for (std::size_t i = 0; i < core.body.size(); ++i)
      for_each_operation(core.body[i], [&](const operation& o) {
        for (const auto& e : effects_of(p, core, o)) touch(e.where->buffer, i);
      });

  /// Both whole, of one core and size, the first's class ending in item i where the second's begins.
  const auto meets = [&](std::uint32_t first, std::uint32_t second, std::size_t i) {
    const auto now = static_cast<std::int64_t>(i);
    const auto &x = p.buffers[first], &y = p.buffers[second];
    if (!storage.uniform[first] || !storage.uniform[second] || x.core != y.core || x.elements != y.elements) return false;
    const auto a = storage.find(first), b = storage.find(second);
    return a != b && storage.life[a].end == now + 1 && storage.life[b].begin == now && storage.life[a].begin <= now;
  };
  for (auto& core : p.cores) {
    std::vector<item> kept;
    kept.reserve(core.body.size());
    for (std::size_t i = 0; i < core.body.size(); ++i) {
      item& now = core.body[i];
      if (const auto* o = std::get_if<operation>(&now.what); o != nullptr && o->op == isa::opcode::lmv && options.remove_copies) {
        const auto source = o->a.buffer, destination = o->d.buffer;
        if (o->a.offset == affine(0) && o->d.offset == affine(0) && o->length == p.buffers[source].elements && meets(source, destination, i)) {
          storage.merge(storage.find(source), storage.find(destination));
          continue;
        }
      }
      if (options.in_place) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> candidates;  // operand, result
        std::vector<std::uint32_t> touched;
        for_each_operation(now, [&](const operation& o) {
          for (const auto& e : effects_of(p, core, o)) touched.push_back(e.where->buffer);
          if (!is_elementwise(o.op)) return;
          candidates.emplace_back(o.a.buffer, o.d.buffer);
          if (pattern_of(o.op) == pattern::elementwise2) candidates.emplace_back(o.b.buffer, o.d.buffer);
        });
        std::sort(touched.begin(), touched.end());
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        // Both storages may have been shared in this item already: every pair that meets in it has to be safe.
        const auto all_safe = [&](std::uint32_t a, std::uint32_t b) {
          for (const auto x : touched)
            for (const auto y : touched)
              if (storage.uniform[x] && storage.uniform[y] && storage.find(x) == a && storage.find(y) == b && !may_be_in_place(p, core, now, x, y))
                return false;
          return true;
        };
        for (const auto& [operand, result] : candidates) {
          if (!meets(operand, result, i)) continue;
          const auto a = storage.find(operand), b = storage.find(result);
          if (all_safe(a, b)) storage.merge(a, b);
        }
      }
      kept.push_back(std::move(now));
    }
    core.body = std::move(kept);
  }
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const auto owner = storage.find(static_cast<std::uint32_t>(b));
    if (owner != b) p.buffers[b].view_of = owner, p.buffers[b].view_offset = 0;
  }
  return p;
}

}  // namespace raptor::program
