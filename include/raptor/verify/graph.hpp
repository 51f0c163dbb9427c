#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "raptor/lowering/compute_graph.hpp"
#include "raptor/lowering/text_write.hpp"
#include "raptor/lowering/tile_range.hpp"
#include "raptor/program/effects.hpp"
#include "raptor/program/program.hpp"
#include "raptor/schedule/tiles.hpp"
#include "raptor/support/error.hpp"

/// What must hold of a compute graph, whatever tiles it is cut into.
namespace raptor::verify {

namespace graph_parts {

/// A tile with the loop variables around a statement.
struct point {
  const box* lanes = nullptr;
  std::vector<std::pair<std::uint32_t, std::int64_t>> loops;

  [[nodiscard]] std::int64_t value(const affine& a) const {
    return a.evaluate([&](symbol s) -> std::int64_t {
      if (s.what == symbol::kind::begin) return (*lanes)[s.index].begin;
      if (s.what == symbol::kind::extent) return (*lanes)[s.index].size();
      for (const auto& [variable, v] : loops)
        if (variable == s.index) return v;
      return 0;
    });
  }
};

/// How many elements a place is touched from on: `count` of them, `step` apart.
struct reach {
  std::int64_t count = 0, step = 1;
};

class graph_checker {
 public:
  graph_checker(const lowering::compute_graph& g, const program::geometry* chip, std::size_t most) : graph_(g), chip_(chip), most_(most) {}

  [[nodiscard]] std::vector<std::string> run() && {
    ports();
    sound_.assign(graph_.size(), false);
    for (lowering::vertex v = 0; v < graph_.size(); ++v) {
      const auto before = count_;
      place_ = "compute " + std::to_string(v) + " '" + graph_.at(v).name + "'";
      structure(graph_.at(v));
      sound_[v] = count_ == before;
      if (sound_[v]) order(v);
      if (sound_[v] && has_lanes(graph_.at(v))) boxes(graph_.at(v)), kernels(graph_.at(v));
    }
    for (std::uint32_t i = 0; i < graph_.values().size(); ++i) coverage(i);
    if (count_ > found_.size()) found_.push_back("... and " + std::to_string(count_ - found_.size()) + " more");
    return std::move(found_);
  }

 private:
  using access_mode = lowering::access_mode;
  using operand = lowering::operand;
  static constexpr std::int64_t most_steps = 1 << 17;        ///< statements and loops evaluated in one compute
  static constexpr std::int64_t most_boxes = 1 << 15;        ///< boxes of one value that are compared with each other
  static constexpr std::int64_t most_comparisons = 1 << 22;

  void complain(const std::string& what) {
    if (found_.size() < most_) found_.push_back(place_ + ": " + what);
    ++count_;
  }
  bool require(bool condition, const char* what) {
    if (!condition) complain(what);
    return condition;
  }

  [[nodiscard]] static bool has_lanes(const lowering::compute& c) {
    return std::none_of(c.lanes.begin(), c.lanes.end(), [](auto lanes) { return lanes == 0; });
  }

  // --- the model's inputs and outputs ----------------------------------------------------------------------------
  void ports() {
    std::vector<std::size_t> delivered(graph_.outputs.size(), 0);
    for (std::size_t i = 0; i < graph_.values().size(); ++i) {
      const auto& v = graph_.values()[i];
      place_ = "value " + std::to_string(i) + " '" + v.name + "'";
      require(std::all_of(v.sizes.begin(), v.sizes.end(), [](auto s) { return s >= 0; }), "a negative size");
      require(v.layout == layout::physical::dense || v.sizes.size() == 4, "a layout for images of a tensor of another rank");
      if (v.from == lowering::origin::input) {
        if (require(v.input >= 0 && static_cast<std::size_t>(v.input) < graph_.inputs.size(), "it is no input of the graph"))
          require(graph_.inputs[static_cast<std::size_t>(v.input)].sizes == v.sizes, "it has another shape than its input");
        require(v.layout != layout::physical::nhwc_row_strip, "an input is loaded as W x C, which takes a copy on the core");
      }
      if (v.from == lowering::origin::constant && v.data && !v.data->floats().empty())
        require(std::cmp_equal(v.data->floats().size(), element_count(v.sizes)), "a constant with another number of elements than its shape");
      if (v.result < 0) continue;
      require(v.from == lowering::origin::computed, "a result that is not computed");
      require(v.layout != layout::physical::nhwc_row_strip, "a result is stored from W x C, which takes a copy on the core");
      if (require(static_cast<std::size_t>(v.result) < graph_.outputs.size(), "it is no output of the graph")) {
        ++delivered[static_cast<std::size_t>(v.result)];
        require(element_count(graph_.outputs[static_cast<std::size_t>(v.result)].sizes) == element_count(v.sizes), "it has another size than its output");
      }
    }
    place_ = "graph '" + graph_.name + "'";
    for (std::size_t i = 0; i < delivered.size(); ++i)
      if (delivered[i] != 1) complain("output " + std::to_string(i) + " '" + graph_.outputs[i].name + "' has " + std::to_string(delivered[i]) + " values");
  }

  // --- indices, ranks, symbols -----------------------------------------------------------------------------------
  void structure(const lowering::compute& c) {
    compute_ = &c;
    loops_.clear();
    prologue_ = false;
    if (!require(c.granule.size() == c.lanes.size() && c.most.size() == c.lanes.size(), "lanes, granule and most have different ranks")) return;
    for (std::size_t d = 0; d < c.lanes.size(); ++d) {
      require(c.lanes[d] >= 0, "a negative number of lanes");
      require(c.granule[d] >= 1, "a granule below 1");
      require(c.most[d] >= 0, "a negative largest extent");
      require(c.most[d] == 0 || c.granule[d] <= c.most[d] || c.granule[d] >= c.lanes[d], "a granule above the largest extent of a tile");
    }
    for (const auto& a : c.accesses) {
      if (!require(a.value < graph_.values().size(), "an access of a value that does not exist")) continue;
      const auto& v = graph_.values()[a.value];
      require(a.low.size() == v.sizes.size() && a.high.size() == v.sizes.size(), "an access of another rank than its value");
      require(a.mode == access_mode::read || v.from == lowering::origin::computed, "it writes an input or a constant");
      for (const auto* side : {&a.low, &a.high})
        for (const auto& x : *side) symbols(x);
    }
    for (const auto& t : c.temporaries) {
      symbols(t.elements);
      require(!t.persistent || t.elements.is_constant(), "the size of a persistent temporary depends on the tile");
    }
    groups(c);
    prologue_ = true;
    items(c.prologue);
    prologue_ = false;
    items(c.body);
  }
  void groups(const lowering::compute& c) {
    std::int64_t crossbars = 0;
    for (const auto& m : c.groups) {
      if (!require(m.rows >= 1 && m.columns >= 1, "an array group without rows or columns")) continue;
      if (chip_ != nullptr) {
        require(m.rows <= chip_->crossbar_rows, "an array group with more rows than a crossbar");
        crossbars = checked::add(crossbars, program::crossbars(m, *chip_));
      }
      for (const auto& b : m.blocks) {
        const bool inside = b.row >= 0 && b.column >= 0 && b.rows >= 0 && b.columns >= 0 && b.rows <= m.rows && b.columns <= m.columns &&
                            b.row <= m.rows - b.rows && b.column <= m.columns - b.columns;
        if (!require(inside, "a block of weights outside its array group")) continue;
        if (!require(b.source < m.sources.size() && m.sources[b.source] != nullptr, "a block of weights without a source")) continue;
        const auto& data = m.sources[b.source]->floats();
        if (data.empty() || b.rows == 0 || b.columns == 0) continue;  // read from a text, without contents
        const auto row = checked::multiply(b.rows - 1, b.row_stride), column = checked::multiply(b.columns - 1, b.column_stride);
        const auto least = checked::add(b.offset, std::min<std::int64_t>(0, row) + std::min<std::int64_t>(0, column));
        const auto greatest = checked::add(b.offset, std::max<std::int64_t>(0, row) + std::max<std::int64_t>(0, column));
        require(least >= 0 && std::cmp_less(greatest, data.size()), "a block of weights beyond its source");
      }
    }
    if (chip_ != nullptr && crossbars > chip_->crossbars_per_core)
      complain("it needs " + std::to_string(crossbars) + " crossbars, a core has " + std::to_string(chip_->crossbars_per_core));
  }
  void symbols(const affine& a) {
    for (const auto& t : a.terms()) {
      const auto s = t.variable;
      if (s.what == symbol::kind::loop) require(std::find(loops_.begin(), loops_.end(), s.index) != loops_.end(), "a loop variable outside its loop");
      else if (require(!prologue_, "the prologue depends on the tile")) require(s.index < compute_->lanes.size(), "an expression names a lane dimension that does not exist");
    }
  }
  void items(const std::vector<lowering::item>& list) {
    for (const auto& i : list) {
      if (const auto* l = std::get_if<lowering::loop>(&i.what)) {
        symbols(l->count);
        if (!require(loops_.size() < 64, "loops nested deeper than 64")) continue;
        require(std::find(loops_.begin(), loops_.end(), l->variable) == loops_.end(), "a loop inside a loop of the same variable");
        loops_.push_back(l->variable);
        items(l->body);
        loops_.pop_back();
      } else {
        check(std::get<lowering::statement>(i.what));
      }
    }
  }
  void check(const lowering::statement& s) {
    using program::pattern;
    const auto p = program::pattern_of(s.op);
    const bool two = p == pattern::elementwise2 || p == pattern::dot;
    const bool one = p == pattern::elementwise1 || p == pattern::mean || p == pattern::gather || p == pattern::whole || p == pattern::matrix || s.op == isa::opcode::lmv;
    if (!(two || one || p == pattern::fill)) return complain("'" + std::string(isa::mnemonic(s.op)) + "' is no operation of a kernel");
    const auto present = [](const operand& o) { return o.what != operand::kind::none; };
    if (!present(s.d) || present(s.a) != (two || one) || present(s.b) != two) return complain("operands of another number than the operation has: " + text(s));
    symbols(s.length);
    operands(s.d, true), operands(s.a, false), operands(s.b, false);
    if (p == pattern::matrix) require(s.group < compute_->groups.size(), "mvmul on an array group that does not exist");
    if (s.stride_dimension >= 0)
      require(s.a.what == operand::kind::value && static_cast<std::size_t>(s.stride_dimension) < s.a.at.size(), "a stride along a dimension that the operand does not have");
    if (s.when_outside != lowering::outside::never)
      require(s.a.what != operand::kind::value || s.a.at.size() == 4, "a statement about rows outside an image, of a tensor that is no image");
  }
  void operands(const operand& o, bool written) {
    if (o.what == operand::kind::none) return;
    for (const auto& x : o.at) symbols(x);
    if (o.what == operand::kind::temporary) {
      require(o.index < compute_->temporaries.size(), "a temporary that does not exist");
      require(o.at.size() == 1, "a place in a temporary is one offset");
      return;
    }
    if (!require(o.index < compute_->accesses.size(), "an operand of an access that does not exist")) return;
    const auto& a = compute_->accesses[o.index];
    if (a.value >= graph_.values().size()) return;
    require(o.at.size() == graph_.values()[a.value].sizes.size(), "an operand of another rank than its tensor");
    require(!written || a.mode != access_mode::read, "a statement writes what the compute only reads");
    require(!prologue_ || graph_.values()[a.value].from == lowering::origin::constant, "the prologue touches what is no constant");
  }

  // --- order of computes -----------------------------------------------------------------------------------------
  void order(lowering::vertex v) {
    const auto& c = graph_.at(v);
    for (const auto& a : c.accesses) {
      if (a.mode != access_mode::read || graph_.values()[a.value].from != lowering::origin::computed) continue;
      const auto& value = graph_.values()[a.value];
      const auto& writers = graph_.writers(a.value);
      if (writers.empty() && element_count(value.sizes) > 0) complain("it reads '" + value.name + "', which nothing computes");
      for (const auto w : writers) {
        if (w > v && graph_.meets(w, a)) complain("it reads '" + value.name + "' before compute " + std::to_string(w) + " writes it");
        if (w == v && std::none_of(c.accesses.begin(), c.accesses.end(), [&](const lowering::access& own) {
              return own.mode != access_mode::read && own.value == a.value && own.low == a.low && own.high == a.high;
            }))
          complain("it reads another box of '" + value.name + "' than it writes itself");
      }
    }
  }

  // --- boxes over all tiles --------------------------------------------------------------------------------------
  void boxes(const lowering::compute& c) {
    for (const auto& a : c.accesses) {
      const auto& v = graph_.values()[a.value];
      for (std::size_t d = 0; d < a.low.size(); ++d) {
        const std::string where = "dimension " + std::to_string(d) + " of '" + v.name + "'";
        if (lowering::tile_range(a.high[d] - a.low[d], c).first < 0) complain("a box ends before it begins in " + where);
        if (a.mode == access_mode::read) continue;
        const auto low = lowering::tile_range(a.low[d], c).first, high = lowering::tile_range(a.high[d], c).second;
        if (low < 0 || high > v.sizes[d])
          complain("it writes [" + std::to_string(low) + "," + std::to_string(high) + ") of the " + std::to_string(v.sizes[d]) + " of " + where);
      }
    }
    for (const auto& t : c.temporaries)
      if (lowering::tile_range(t.elements, c).first < 0) complain("temporary '" + t.name + "' has a negative size");
  }

  // --- statements, at the corners of tiles and loops -------------------------------------------------------------
  void kernels(const lowering::compute& c) {
    compute_ = &c;
    std::vector<std::vector<interval>> corners;
    std::size_t tiles = 1;
    for (std::size_t d = 0; d < c.lanes.size(); ++d) {
      corners.push_back(lowering::corner_tiles(c.lanes[d], c.granule[d], c.most[d]));
      if (tiles * corners.back().size() > 64) corners.back() = {corners.back().front()};
      tiles *= corners.back().size();
    }
    steps_ = 0;
    const auto before = count_;
    box lanes(c.lanes.size());
    const auto visit = [&](const auto& self, std::size_t d) -> void {
      if (count_ != before || steps_ > most_steps) return;  // one tile's findings are enough
      if (d == lanes.size()) {
        point at{&lanes, {}};
        stored_.clear();
        for (const auto& a : c.accesses) stored_.push_back(stored(a, lanes));
        evaluate(c.prologue, at);
        evaluate(c.body, at);
        return;
      }
      for (const auto& tile : corners[d]) {
        lanes[d] = tile;
        self(self, d + 1);
      }
    };
    visit(visit, 0);
  }
  void evaluate(const std::vector<lowering::item>& list, point& at) {
    for (const auto& i : list) {
      if (++steps_ > most_steps) return;
      if (const auto* l = std::get_if<lowering::loop>(&i.what)) {
        const auto count = at.value(l->count);
        if (count < 0) complain("a loop of " + std::to_string(count) + " iterations");
        if (count <= 0) continue;
        at.loops.emplace_back(l->variable, 0);
        evaluate(l->body, at);
        if (count > 1) {
          at.loops.back().second = count - 1;
          evaluate(l->body, at);
        }
        at.loops.pop_back();
      } else {
        evaluate(std::get<lowering::statement>(i.what), at);
      }
    }
  }
  void evaluate(const lowering::statement& s, const point& at) {
    using program::pattern;
    const auto length = at.value(s.length);
    if (length < 0) return complain("a length of " + std::to_string(length) + ": " + text(s));
    if (length == 0) return;
    auto p = program::pattern_of(s.op);
    if (s.when_outside != lowering::outside::never && s.a.what == operand::kind::value) {
      const auto row = at.value(s.a.at[2]);
      if (row < 0 || row >= graph_.values()[compute_->accesses[s.a.index].value].sizes[2]) {
        if (s.when_outside == lowering::outside::skip) return;
        p = pattern::fill;
      }
    }
    const bool one_result = p == pattern::dot || p == pattern::mean;
    const auto* group = p == pattern::matrix ? &compute_->groups[s.group] : nullptr;
    const auto rows = group == nullptr ? 0 : chip_ != nullptr ? chip_->crossbar_rows : group->rows;
    const auto columns = group == nullptr ? 0 : chip_ != nullptr ? checked::multiply(program::crossbars(*group, *chip_), chip_->weight_columns) : group->columns;
    if (group != nullptr && length > group->columns) complain("a product has more results than its array group columns: " + text(s));
    touches(s, s.d, at, {group != nullptr ? columns : one_result ? 1 : length, 1});
    if (p == pattern::fill) return;
    const bool strided = p == pattern::gather || p == pattern::mean;
    touches(s, s.a, at, {group != nullptr ? rows : length, strided ? s.stride : 1}, strided ? s.stride_dimension : -1);
    if (s.b.what != operand::kind::none) touches(s, s.b, at, {length, 1});
  }
  void touches(const lowering::statement& s, const operand& o, const point& at, reach r, std::int32_t along = -1) {
    std::int64_t offset = 0, size = 0;
    if (o.what == operand::kind::temporary) {
      offset = at.value(o.at[0]);
      size = at.value(compute_->temporaries[o.index].elements);
    } else {
      const auto& a = compute_->accesses[o.index];
      const auto& v = graph_.values()[a.value];
      const box& b = stored_[o.index];
      const auto order = layout::memory_order(v.layout, v.sizes.size());
      const auto fragment = layout::fragment_dimensions(v.layout);
      size = 1;
      for (std::size_t i = order.size(); i-- > 0;) {
        const auto d = order[i];
        const auto x = at.value(o.at[d]);
        if (i < fragment) {
          if (!b[d].contains(x)) return complain("it touches row " + std::to_string(x) + " of '" + v.name + "', its box has " + to_string(b) + ": " + text(s));
          continue;
        }
        if (along >= 0 && static_cast<std::size_t>(along) == d) r.step = checked::multiply(r.step, size);
        offset = checked::add(offset, checked::multiply(checked::add(x, -b[d].begin), size));
        size = checked::multiply(size, b[d].size());
      }
    }
    const auto last = checked::add(offset, checked::multiply(r.count - 1, r.step));
    if (std::min(offset, last) < 0 || std::max(offset, last) >= size)
      complain("it touches elements " + std::to_string(std::min(offset, last)) + " to " + std::to_string(std::max(offset, last)) + " of " + std::to_string(size) + ": " + text(s));
  }
  /// What a core stores of an access's box: the part inside the tensor; rows of W × C strips keep their padding.
  [[nodiscard]] box stored(const lowering::access& a, const box& lanes) const {
    const auto& v = graph_.values()[a.value];
    const box touched = schedule::box_of(a, lanes);
    box result = intersect(touched, whole(v.sizes));
    if (v.layout == layout::physical::nhwc_row_strip) result[3] = touched[3];
    return result;
  }

  // --- every value is written exactly once -----------------------------------------------------------------------
  /// A function from tiles to boxes. Accesses that accumulate into the same boxes count once: their sum is one result.
  struct writer {
    const lowering::compute* c;
    const lowering::access* a;
  };
  void coverage(std::uint32_t value) {
    const auto& v = graph_.values()[value];
    if (v.from != lowering::origin::computed || graph_.writers(value).empty()) return;
    place_ = "value " + std::to_string(value) + " '" + v.name + "'";
    std::vector<writer> writers;
    auto vertices = graph_.writers(value);
    vertices.erase(std::unique(vertices.begin(), vertices.end()), vertices.end());
    for (const auto w : vertices) {
      if (!sound_[w]) return;
      for (const auto& a : graph_.at(w).accesses) {
        if (a.mode == access_mode::read || a.value != value) continue;
        const bool known = a.mode == access_mode::accumulate && std::any_of(writers.begin(), writers.end(), [&](const writer& other) {
                             return other.a->mode == access_mode::accumulate && other.a->low == a.low && other.a->high == a.high && other.c->lanes == graph_.at(w).lanes;
                           });
        if (!known) writers.push_back({&graph_.at(w), &a});
      }
    }
    // The smallest tiles and the largest: a box function that is right for both is affine and right between.
    const auto before = count_;
    covered_by(value, writers, false);
    if (count_ == before) covered_by(value, writers, true);
  }
  void covered_by(std::uint32_t value, const std::vector<writer>& writers, bool largest) {
    const auto& v = graph_.values()[value];
    std::int64_t tiles = 0;
    std::vector<shape> extents;
    for (const auto& w : writers) {
      std::int64_t count = has_lanes(*w.c) ? 1 : 0;
      extents.emplace_back();
      for (std::size_t d = 0; d < w.c->lanes.size(); ++d) {
        const auto lanes = w.c->lanes[d], granule = w.c->granule[d], most = w.c->most[d];
        const auto longest = most == 0 ? std::max<std::int64_t>(1, lanes) : std::max(granule, most / granule * granule);
        extents.back().push_back(largest ? longest : granule);
        count = std::min(most_boxes + 1, checked::multiply(count, std::min(most_boxes + 1, checked::divide_up(lanes, extents.back().back()))));
      }
      tiles += count;
      if (tiles > most_boxes) return;  // too many to be compared
    }
    std::vector<box> written;
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < writers.size(); ++i) {
      if (!has_lanes(*writers[i].c)) continue;
      box lanes;
      const auto visit = [&](const auto& self) -> void {
        const std::size_t d = lanes.size();
        if (d == writers[i].c->lanes.size()) {
          box b = schedule::box_of(*writers[i].a, lanes);
          if (is_empty(b)) return;
          elements = checked::add(elements, element_count(b));
          written.push_back(std::move(b));
          return;
        }
        for (std::int64_t begin = 0; begin < writers[i].c->lanes[d]; begin += extents[i][d]) {
          lanes.push_back({begin, std::min(writers[i].c->lanes[d], begin + extents[i][d])});
          self(self);
          lanes.pop_back();
        }
      };
      visit(visit);
    }
    if (const auto* both = overlapping(written)) return complain("the boxes " + to_string(both[0]) + " and " + to_string(both[1]) + " are both written");
    if (elements == element_count(v.sizes)) return;
    // A value between computes may have parts that nobody writes, where nobody reads them.
    bool read = false, complete = v.result < 0;
    for (lowering::vertex c = 0; complete && c < graph_.size(); ++c)
      for (const auto& a : graph_.at(c).accesses) {
        if (a.mode != access_mode::read || a.value != value || !sound_[c] || !has_lanes(graph_.at(c))) continue;
        read = true;
        const box wanted = intersect(lowering::hull_of(a, graph_.at(c)), whole(v.sizes));
        std::int64_t covered = 0;
        for (const auto& b : written) covered += element_count(intersect(b, wanted));
        complete = complete && (is_empty(wanted) || covered == element_count(wanted));
      }
    if (!read || !complete) complain(std::to_string(elements) + " of its " + std::to_string(element_count(v.sizes)) + " elements are written");
  }
  /// Two boxes that overlap, one behind the other, or null. Sorts them along the dimension in which they differ most.
  [[nodiscard]] const box* overlapping(std::vector<box>& boxes) {
    if (boxes.size() < 2) return nullptr;
    if (boxes[0].empty()) return boxes.data();  // a scalar written twice
    std::size_t key = 0, most = 0;
    for (std::size_t d = 0; d < boxes[0].size(); ++d) {
      std::vector<std::int64_t> begins;
      for (const auto& b : boxes) begins.push_back(b[d].begin);
      std::sort(begins.begin(), begins.end());
      const auto distinct = static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
      if (distinct > most) most = distinct, key = d;
    }
    std::sort(boxes.begin(), boxes.end(), [&](const box& a, const box& b) { return a[key].begin < b[key].begin; });
    std::int64_t comparisons = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i)
      for (std::size_t j = i + 1; j < boxes.size() && boxes[j][key].begin < boxes[i][key].end; ++j) {
        if (++comparisons > most_comparisons) return nullptr;
        if (is_empty(intersect(boxes[i], boxes[j]))) continue;
        std::swap(boxes[i + 1], boxes[j]);
        return &boxes[i];
      }
    return nullptr;
  }

  [[nodiscard]] static std::string text(const lowering::statement& s) {
    std::string result;
    lowering::text_parts::text_writer w(result);
    lowering::text_parts::write_statement(w, s);
    return result;
  }

  const lowering::compute_graph& graph_;
  const program::geometry* chip_;
  std::size_t most_, count_ = 0;
  std::vector<std::string> found_;
  std::string place_;
  std::vector<bool> sound_;                 // by compute: indices are right, so that it can be evaluated
  const lowering::compute* compute_ = nullptr;
  std::vector<std::uint32_t> loops_;        // variables of the enclosing loops
  bool prologue_ = false;
  std::vector<box> stored_;                 // by access, for the tile in turn
  std::int64_t steps_ = 0;
};

}  // namespace graph_parts

/// The violations found in a compute graph, the first `most` and a count; empty: correct.
///
/// - indices, ranks and symbols are valid; lanes, granules and largest extents make sense; kernels use operations that kernels have
/// - boxes never end before they begin; what is written lies inside its tensor and is not an input or constant
/// - the tiles of all writers of a value write every element of it exactly once (accumulation into the same boxes counts once; what no
///   compute reads of a value that is no result need not be written): for the smallest and the largest tiles, where they are at most 32768
/// - a value is read after the computes that write it, or in the box that the same tile writes
/// - at the corners of tiles and loops: counts and lengths are not negative, statements stay inside their boxes and temporaries
/// - weight blocks lie in their array group and source; with a chip: rows fit a crossbar, the groups of a compute fit a core, and
///   mvmul's whole rows and columns are judged, not only the used ones
/// - every output is delivered once, in a layout that a core can store.
/// Errors: capacity where sizes overflow. Cost: O(statements × corners + boxes · log), bounded a compute.
[[nodiscard]] inline std::vector<std::string> graph_findings(const lowering::compute_graph& g, const program::geometry* chip = nullptr, std::size_t most = 20) {
  return graph_parts::graph_checker(g, chip, most).run();
}

/// Throws internal with all findings unless the graph is correct, see graph_findings.
inline void check_computes(const lowering::compute_graph& g, const program::geometry* chip = nullptr) {
  auto found = graph_findings(g, chip);
  if (!found.empty())
    throw error(error_code::internal, "the compute graph is not correct", g.name, "this is a fault in a lowering, please report it").with_details(std::move(found));
}
inline void check_computes(const lowering::compute_graph& g, const program::geometry& chip) { check_computes(g, &chip); }

}  // namespace raptor::verify
