#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"
#include "raptor/model/reference.hpp"

/// Interprets a compute graph on tensors, independently of the realization: each core holds, for every tensor and fragment, one
/// buffer with the hull of its tiles' boxes. It is stricter than a machine: what is read must have been written, a tile writes
/// exactly its boxes, copies do not overlap, a destination is a source or apart from it.
namespace raptor::test {

/// How the tiles of a compute are made and spread.
struct tiling {
  std::int64_t extent = 1;    ///< of a tile, in every lane dimension (within `most`, a multiple of the granule)
  bool one_core = true;       ///< all tiles on one core; otherwise each on a core of its own
  std::int64_t margin = 0;    ///< the buffers reach this far beyond the boxes, in dimensions that a box does not cover
};

class interpreter {
 public:
  interpreter(const lowering::compute_graph& graph, const std::vector<model::tensor_value>& inputs) : graph_(graph) {
    for (const auto& v : graph.values()) {
      tensor t;
      t.sizes = v.sizes;
      const auto count = static_cast<std::size_t>(element_count(v.sizes));
      if (v.from == lowering::origin::constant) t.data = v.data->floats();
      if (v.from == lowering::origin::input) t.data = inputs.at(static_cast<std::size_t>(v.input)).floats();
      t.data.resize(count);
      t.known.assign(count, v.from != lowering::origin::computed);
      tensors_.push_back(std::move(t));
    }
  }

  void run(const tiling& how) {
    for (lowering::vertex v = 0; v < graph_.size(); ++v) run(graph_.at(v), how);
  }
  /// Contents of a value; throws where an element was never written.
  [[nodiscard]] std::vector<float> value(std::uint32_t v) const {
    check(std::all_of(tensors_.at(v).known.begin(), tensors_.at(v).known.end(), [](bool k) { return k; }), "result not completely written");
    return tensors_[v].data;
  }
  std::int64_t statements = 0;  ///< executed

 private:
  struct tensor {
    shape sizes;
    std::vector<float> data;
    std::vector<bool> known;
  };
  struct storage {
    box bounds;                       ///< of the tensor's dimensions; temporaries: one
    std::vector<std::size_t> order;   ///< memory order
    std::vector<float> data;
    std::vector<bool> known;
  };
  struct core_state {
    std::map<std::vector<std::int64_t>, storage> buffers;  ///< (value, fragment…)
    std::vector<storage> temporaries;
  };
  struct where {
    storage* in = nullptr;  ///< null: outside the tensor
    std::int64_t offset = 0;
    const box* writable = nullptr;  ///< only here; null: anywhere in the storage
    bool may_write = true;
  };

  void check(bool condition, const char* message) const {
    if (!condition) throw error(error_code::internal, message, place_);
  }

  std::int64_t value_of(const affine& a) const {
    return a.evaluate([&](symbol s) -> std::int64_t {
      if (s.what == symbol::kind::loop) return loops_.at(s.index);
      check(tile_ != nullptr, "the prologue depends on a tile");
      const auto& i = tile_->at(s.index);
      return s.what == symbol::kind::begin ? i.begin : i.size();
    });
  }
  box box_of(const lowering::access& a) const {
    box b;
    check(a.low.size() == graph_.values()[a.value].sizes.size() && a.high.size() == a.low.size(), "access of the wrong rank");
    for (std::size_t d = 0; d < a.low.size(); ++d) b.push_back({value_of(a.low[d]), value_of(a.high[d])});
    return b;
  }

  void run(const lowering::compute& c, const tiling& how) {
    place_ = c.name;
    std::vector<box> tiles{{}};
    for (std::size_t d = 0; d < c.lanes.size(); ++d) {
      std::int64_t extent = c.most[d] == 0 ? how.extent : std::min(how.extent, c.most[d]);
      extent = std::max(c.granule[d], extent / c.granule[d] * c.granule[d]);
      std::vector<box> next;
      for (const auto& t : tiles)
        for (std::int64_t b = 0; b < c.lanes[d]; b += extent) {
          next.push_back(t);
          next.back().push_back({b, std::min(b + extent, c.lanes[d])});
        }
      tiles = std::move(next);
    }
    for (std::size_t first = 0; first < tiles.size();) {
      const auto last = how.one_core ? tiles.size() : first + 1;
      run_core(c, {tiles.begin() + static_cast<std::ptrdiff_t>(first), tiles.begin() + static_cast<std::ptrdiff_t>(last)}, how.margin);
      first = last;
    }
  }

  /// One core: buffers, prologue, tiles.
  void run_core(const lowering::compute& c, const std::vector<box>& tiles, std::int64_t margin) {
    core_state core;
    core_ = &core;
    for (const auto& t : tiles)
      for (const auto& a : c.accesses) {
        tile_ = &t;
        box b = box_of(a);
        if (is_empty(b)) continue;
        const auto& v = graph_.values()[a.value];
        const auto fragments = layout::fragment_dimensions(v.layout);
        const auto order = layout::memory_order(v.layout, v.sizes.size());
        if (a.mode != lowering::access_mode::read) check(contains(whole(v.sizes), b), "writes outside the tensor");
        for (std::size_t i = fragments; i < order.size(); ++i) {
          auto& side = b[order[i]];
          if (side.begin > 0 || side.end < v.sizes[order[i]]) side.begin -= margin, side.end += margin;
        }
        each_fragment(b, order, fragments, [&](const std::vector<std::int64_t>& at) {
          std::vector<std::int64_t> key{a.value};
          key.insert(key.end(), at.begin(), at.end());
          box part = b;
          for (std::size_t i = 0; i < fragments; ++i) {
            part[order[i]] = {at[i], at[i] + 1};
            if (at[i] < 0 || at[i] >= v.sizes[order[i]]) return;
          }
          auto& s = core.buffers[key];
          s.bounds = s.bounds.empty() ? part : hull(s.bounds, part);
          s.order = order;
        });
      }
    for (auto& [key, s] : core.buffers) {
      const auto& t = tensors_[static_cast<std::size_t>(key[0])];
      const bool reads = std::any_of(c.accesses.begin(), c.accesses.end(), [&](const auto& a) { return a.value == key[0] && a.mode == lowering::access_mode::read; });
      const auto count = element_count(s.bounds);
      s.data.assign(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
      s.known.assign(static_cast<std::size_t>(count), false);
      if (!reads) continue;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = coordinates(s, i);
        const auto from = index(t.sizes, at);
        s.data[static_cast<std::size_t>(i)] = from < 0 ? 0 : t.data[static_cast<std::size_t>(from)];
        s.known[static_cast<std::size_t>(i)] = from < 0 || t.known[static_cast<std::size_t>(from)];
      }
    }
    tile_ = nullptr;
    loops_.clear();
    core.temporaries.resize(c.temporaries.size());
    for (std::size_t i = 0; i < c.temporaries.size(); ++i)
      if (c.temporaries[i].persistent) core.temporaries[i] = fresh(value_of(c.temporaries[i].elements));
    compute_ = &c;
    execute(c.prologue);
    for (const auto& t : tiles) {
      tile_ = &t;
      for (std::size_t i = 0; i < c.temporaries.size(); ++i)
        if (!c.temporaries[i].persistent) core.temporaries[i] = fresh(value_of(c.temporaries[i].elements));
      boxes_.clear();
      for (const auto& a : c.accesses) boxes_.push_back(box_of(a));
      for (std::size_t i = 0; i < c.accesses.size(); ++i)
        if (c.accesses[i].mode != lowering::access_mode::read) each_element(c.accesses[i], boxes_[i], [&](storage& s, std::size_t at, std::size_t) { s.known[at] = false; });
      execute(c.body);
      for (std::size_t i = 0; i < c.accesses.size(); ++i) {
        const auto& a = c.accesses[i];
        if (a.mode == lowering::access_mode::read) continue;
        each_element(a, boxes_[i], [&](storage& s, std::size_t at, std::size_t to) {
          check(s.known[at], "an element of the tile's box was not written");
          auto& target = tensors_[a.value];
          if (a.mode == lowering::access_mode::assign) check(!target.known[to], "an element is written by two tiles");
          target.data[to] = a.mode == lowering::access_mode::accumulate && target.known[to] ? target.data[to] + s.data[at] : s.data[at];
          target.known[to] = true;
        });
      }
    }
    core_ = nullptr;
  }

  static storage fresh(std::int64_t elements) {
    storage s;
    s.bounds = {{0, elements}};
    s.order = {0};
    s.data.assign(static_cast<std::size_t>(elements), std::numeric_limits<float>::quiet_NaN());
    s.known.assign(static_cast<std::size_t>(elements), false);
    return s;
  }
  template <class Body>
  static void each_fragment(const box& b, const std::vector<std::size_t>& order, std::size_t fragments, const Body& body) {
    if (fragments == 0) return body({});
    for (auto n = b[order[0]].begin; n < b[order[0]].end; ++n)
      for (auto h = b[order[1]].begin; h < b[order[1]].end; ++h) body({n, h});
  }
  /// Storage offset of a coordinate tuple; −1 outside the bounds.
  static std::int64_t offset(const storage& s, const std::vector<std::int64_t>& at) {
    std::int64_t o = 0;
    for (const auto d : s.order) {
      if (!s.bounds[d].contains(at[d])) return -1;
      o = o * s.bounds[d].size() + at[d] - s.bounds[d].begin;
    }
    return o;
  }
  static std::vector<std::int64_t> coordinates(const storage& s, std::int64_t o) {
    std::vector<std::int64_t> at(s.bounds.size());
    for (std::size_t i = s.order.size(); i-- > 0;) {
      const auto d = s.order[i];
      at[d] = s.bounds[d].begin + o % s.bounds[d].size();
      o /= s.bounds[d].size();
    }
    return at;
  }
  static std::int64_t index(const shape& sizes, const std::vector<std::int64_t>& at) {
    std::int64_t o = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (at[d] < 0 || at[d] >= sizes[d]) return -1;
      o = o * sizes[d] + at[d];
    }
    return o;
  }
  template <class Body>
  void each_element(const lowering::access& a, const box& b, const Body& body) {
    if (is_empty(b)) return;
    const auto& v = graph_.values()[a.value];
    const auto order = layout::memory_order(v.layout, v.sizes.size());
    std::vector<std::int64_t> at;
    for (const auto& side : b) at.push_back(side.begin);
    const auto fragments = layout::fragment_dimensions(v.layout);
    std::vector<std::int64_t> key;
    storage* s = nullptr;
    for (;;) {
      bool moved = s == nullptr;
      for (std::size_t i = 0; i < fragments; ++i) moved = moved || key[i + 1] != at[order[i]];
      if (moved) {
        key = {a.value};
        for (std::size_t i = 0; i < fragments; ++i) key.push_back(at[order[i]]);
        s = &core_->buffers.at(key);
      }
      body(*s, static_cast<std::size_t>(offset(*s, at)), static_cast<std::size_t>(index(v.sizes, at)));
      std::size_t d = at.size();
      while (d > 0 && ++at[d - 1] == b[d - 1].end) {
        at[d - 1] = b[d - 1].begin;
        --d;
      }
      if (d == 0) return;
    }
  }

  void execute(const std::vector<lowering::item>& items) {
    for (const auto& i : items) {
      if (const auto* l = std::get_if<lowering::loop>(&i.what)) {
        const auto count = value_of(l->count);
        for (std::int64_t n = 0; n < count; ++n) {
          if (loops_.size() <= l->variable) loops_.resize(l->variable + 1);
          loops_[l->variable] = n;
          execute(l->body);
        }
      } else {
        execute(std::get<lowering::statement>(i.what));
      }
    }
  }

  where resolve(const lowering::operand& o) {
    check(o.what != lowering::operand::kind::none, "an operand is missing");
    if (o.what == lowering::operand::kind::temporary) return {&core_->temporaries.at(o.index), value_of(o.at.at(0)), nullptr, true};
    const auto& a = compute_->accesses.at(o.index);
    const auto& v = graph_.values()[a.value];
    check(o.at.size() == v.sizes.size(), "operand of the wrong rank");
    if (tile_ == nullptr) check(v.from == lowering::origin::constant, "the prologue reads what is no constant");
    std::vector<std::int64_t> at;
    for (const auto& x : o.at) at.push_back(value_of(x));
    const auto order = layout::memory_order(v.layout, v.sizes.size());
    std::vector<std::int64_t> key{a.value};
    for (std::size_t i = 0; i < layout::fragment_dimensions(v.layout); ++i) {
      const auto x = at[order[i]];
      key.push_back(x);
      check(tile_ == nullptr || boxes_.at(o.index)[order[i]].contains(x), "a row outside the box");
      if (x < 0 || x >= v.sizes[order[i]]) return {};
    }
    const auto found = core_->buffers.find(key);
    check(found != core_->buffers.end(), "no box holds the row");
    const auto start = offset(found->second, at);
    check(start >= 0, "operand begins outside the buffer");
    where w{&found->second, start, nullptr, a.mode != lowering::access_mode::read};
    if (w.may_write && !contains(boxes_.at(o.index), found->second.bounds)) w.writable = &boxes_[o.index];
    return w;
  }
  float read(const where& w, std::int64_t i) {
    const auto at = w.offset + i;
    check(w.in != nullptr, "reads outside the tensor");
    check(at >= 0 && at < static_cast<std::int64_t>(w.in->data.size()), "reads beyond the buffer");
    check(w.in->known[static_cast<std::size_t>(at)], "reads what was never written");
    return w.in->data[static_cast<std::size_t>(at)];
  }
  void write(const where& w, std::int64_t i, float x) {
    const auto at = w.offset + i;
    check(w.in != nullptr, "writes outside the tensor");
    check(at >= 0 && at < static_cast<std::int64_t>(w.in->data.size()), "writes beyond the buffer");
    if (w.writable != nullptr) {
      const auto position = coordinates(*w.in, at);
      for (std::size_t d = 0; d < position.size(); ++d) check((*w.writable)[d].contains(position[d]), "writes outside the tile's box");
    }
    w.in->data[static_cast<std::size_t>(at)] = x;
    w.in->known[static_cast<std::size_t>(at)] = true;
  }
  void apart(const where& d, const where& s, std::int64_t length, bool may_be_equal) const {
    if (d.in != s.in || (may_be_equal && d.offset == s.offset)) return;
    check(d.offset + length <= s.offset || s.offset + length <= d.offset, "destination overlaps a source");
  }
  std::int64_t distance(const lowering::statement& s, const where& a) const {
    if (s.stride_dimension < 0) return s.stride;
    std::int64_t step = 1;
    for (std::size_t i = a.in->order.size(); i-- > 0;) {
      if (a.in->order[i] == static_cast<std::size_t>(s.stride_dimension)) return s.stride * step;
      step *= a.in->bounds[a.in->order[i]].size();
    }
    throw error(error_code::internal, "unknown stride dimension", place_);
  }

  void execute(const lowering::statement& s) {
    using isa::opcode;
    ++statements;
    const auto length = value_of(s.length);
    check(length >= 1, "a length below 1");
    const auto d = resolve(s.d);
    check(d.may_write, "writes what it only reads");
    const float element = std::bit_cast<float>(s.bits);
    if (s.op == opcode::lldi) {
      for (std::int64_t i = 0; i < length; ++i) write(d, i, element);
      return;
    }
    const auto a = resolve(s.a);
    if (a.in == nullptr) {
      check(s.when_outside != lowering::outside::never, "a row outside the tensor");
      if (s.when_outside == lowering::outside::zero) {
        check(s.op == opcode::lmv, "only copies become zero outside");
        for (std::int64_t i = 0; i < length; ++i) write(d, i, 0);
      }
      return;
    }
    const bool two = s.op == opcode::vvadd || s.op == opcode::vvsub || s.op == opcode::vvmul || s.op == opcode::vvmax || s.op == opcode::vvdmul;
    const auto b = two ? resolve(s.b) : where{};
    const auto maximum = [](float x, float y) { return x > y || x != x ? x : y; };
    const auto minimum = [](float x, float y) { return x < y || x != x ? x : y; };
    const auto map = [&](auto f) {
      apart(d, a, length, s.op != opcode::lmv);
      if (two) apart(d, b, length, true);
      for (std::int64_t i = 0; i < length; ++i) write(d, i, f(read(a, i), two ? read(b, i) : 0.0F));
    };
    switch (s.op) {
      case opcode::lmv: return map([](float x, float) { return x; });
      case opcode::vvadd: return map([](float x, float y) { return x + y; });
      case opcode::vvsub: return map([](float x, float y) { return x - y; });
      case opcode::vvmul: return map([](float x, float y) { return x * y; });
      case opcode::vvmax: return map(maximum);
      case opcode::vrelu: return map([](float x, float) { return x < 0 ? 0 : x; });
      case opcode::vtanh: return map([](float x, float) { return std::tanh(x); });
      case opcode::vsigm: return map([](float x, float) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); });
      case opcode::vrsu: return map([&](float x, float) { return minimum(x, element); });
      case opcode::vrsl: return map([&](float x, float) { return maximum(x, element); });
      case opcode::vmv: {
        const auto step = distance(s, a);
        if (d.in == a.in)
          check(d.offset + length <= std::min(a.offset, a.offset + (length - 1) * step) || d.offset > std::max(a.offset, a.offset + (length - 1) * step), "gather overlaps");
        for (std::int64_t i = 0; i < length; ++i) write(d, i, read(a, i * step));
        return;
      }
      case opcode::vavg: {
        float sum = 0;
        for (std::int64_t i = 0; i < length; ++i) sum += read(a, i * distance(s, a));
        return write(d, 0, sum / static_cast<float>(length));
      }
      case opcode::vvdmul: {
        float sum = 0;
        for (std::int64_t i = 0; i < length; ++i) sum += read(a, i) * read(b, i);
        return write(d, 0, sum);
      }
      case opcode::vsoftmax: {
        apart(d, a, length, true);
        std::vector<float> e;
        float largest = -std::numeric_limits<float>::infinity(), sum = 0;
        for (std::int64_t i = 0; i < length; ++i) largest = maximum(largest, read(a, i));
        for (std::int64_t i = 0; i < length; ++i) sum += e.emplace_back(std::exp(read(a, i) - largest));
        for (std::int64_t i = 0; i < length; ++i) write(d, i, e[static_cast<std::size_t>(i)] / sum);
        return;
      }
      case opcode::mvmul: {
        const auto& m = compute_->groups.at(s.group);
        std::vector<double> sum(static_cast<std::size_t>(m.columns));
        for (const auto& w : m.blocks)
          for (std::int64_t i = 0; i < w.rows; ++i)
            for (std::int64_t j = 0; j < w.columns; ++j)
              sum[static_cast<std::size_t>(w.column + j)] += static_cast<double>(read(a, w.row + i)) *
                  static_cast<double>(m.sources.at(w.source)->floats().at(static_cast<std::size_t>(w.offset + i * w.row_stride + j * w.column_stride)));
        for (std::int64_t j = 0; j < m.columns; ++j) {
          const auto x = static_cast<float>(sum[static_cast<std::size_t>(j)]);
          write(d, j, s.bits == 1 && x < 0 ? 0 : x);
        }
        return;
      }
      default: check(false, "not an operation of a kernel");
    }
  }

  const lowering::compute_graph& graph_;
  std::vector<tensor> tensors_;
  std::string place_;
  const lowering::compute* compute_ = nullptr;
  const box* tile_ = nullptr;
  core_state* core_ = nullptr;
  std::vector<box> boxes_;
  std::vector<std::int64_t> loops_;
};

}  // namespace raptor::test
