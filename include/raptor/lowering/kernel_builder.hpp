#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/kernel.hpp"

namespace raptor::lowering {

/// The tile's interval in a lane dimension, for access boxes and kernels.
[[nodiscard]] inline affine tile_begin(std::size_t dimension) {
  return symbol{symbol::kind::begin, static_cast<std::uint32_t>(dimension)};
}
[[nodiscard]] inline affine tile_extent(std::size_t dimension) {
  return symbol{symbol::kind::extent, static_cast<std::uint32_t>(dimension)};
}
[[nodiscard]] inline affine tile_end(std::size_t dimension) { return tile_begin(dimension) + tile_extent(dimension); }

/// Writes a compute: declares its accesses and temporaries and appends statements, with loops as nested calls.
///
///     kernel_builder k("relu", lanes);
///     const auto x = k.reads(x_value, low, high), y = k.writes(y_value, low, high);
///     k.loop(tile_extent(0), [&](affine i) { k.vector(isa::opcode::vrelu, k.at(y, {tile_begin(0) + i, 0}), k.at(x, {tile_begin(0) + i, 0}), n); });
///     graph.add_compute(k.take());
class kernel_builder {
 public:
  kernel_builder(std::string name, shape lanes) {
    result_.name = std::move(name);
    result_.granule.assign(lanes.size(), 1);
    result_.most.assign(lanes.size(), 0);
    result_.lanes = std::move(lanes);
    blocks_.push_back(&result_.body);
  }
  kernel_builder(const kernel_builder&) = delete;
  kernel_builder& operator=(const kernel_builder&) = delete;

  std::uint32_t access_box(std::uint32_t value, access_mode mode, std::vector<affine> low, std::vector<affine> high) {
    result_.accesses.push_back({value, mode, std::move(low), std::move(high)});
    return static_cast<std::uint32_t>(result_.accesses.size() - 1);
  }
  std::uint32_t reads(std::uint32_t value, std::vector<affine> low, std::vector<affine> high) {
    return access_box(value, access_mode::read, std::move(low), std::move(high));
  }
  /// Reads a whole tensor.
  std::uint32_t reads_whole(std::uint32_t value, const shape& sizes) {
    std::vector<affine> high;
    for (const auto size : sizes) high.emplace_back(size);
    return reads(value, std::vector<affine>(sizes.size()), std::move(high));
  }
  std::uint32_t writes(std::uint32_t value, std::vector<affine> low, std::vector<affine> high, access_mode mode = access_mode::assign) {
    return access_box(value, mode, std::move(low), std::move(high));
  }
  std::uint32_t scratch(std::string name, affine elements, bool persistent = false) {
    result_.temporaries.push_back({std::move(name), std::move(elements), persistent});
    return static_cast<std::uint32_t>(result_.temporaries.size() - 1);
  }
  std::uint32_t group(weight_matrix matrix) {
    result_.groups.push_back(std::move(matrix));
    return static_cast<std::uint32_t>(result_.groups.size() - 1);
  }

  /// Operand in a tensor, by access index and coordinates.
  [[nodiscard]] static operand at(std::uint32_t access, std::vector<affine> coordinates) {
    return {operand::kind::value, access, std::move(coordinates)};
  }
  /// Operand in a temporary, by offset in elements.
  [[nodiscard]] static operand in(std::uint32_t temporary, affine offset = 0) {
    return {operand::kind::temporary, temporary, {std::move(offset)}};
  }

  /// Repeats what `body(induction variable)` appends. A count of constant 1 makes no loop.
  template <class Body>
  void loop(const affine& count, const Body& body) {
    if (count.is_constant() && count.constant() == 1) {
      body(affine(0));
      return;
    }
    const std::uint32_t variable = loops_++;
    lowering::loop repeated{variable, count, {}};
    blocks_.push_back(&repeated.body);
    body(affine(symbol{symbol::kind::loop, variable}));
    blocks_.pop_back();
    blocks_.back()->push_back({std::move(repeated)});
  }
  /// As loop; but where an iteration takes `time` picoseconds, longer than a core should go on without a pause, the iterations are written out: a tile
  /// can pause between the statements outside of loops, and between iterations (schedule::atoms_of).
  template <class Body>
  void repeat(std::int64_t count, double time, const Body& body) {
    constexpr double long_iteration = 4'000'000;
    if (time <= long_iteration) return loop(count, body);
    for (std::int64_t i = 0; i < count; ++i) body(affine(i));
  }
  /// What `body()` appends goes to the prologue (once a core, before its first tile).
  template <class Body>
  void prologue(const Body& body) {
    blocks_.push_back(&result_.prologue);
    body();
    blocks_.pop_back();
  }

  statement& add(statement s) {
    blocks_.back()->push_back({std::move(s)});
    return std::get<statement>(blocks_.back()->back().what);
  }
  /// Two-operand and one-operand vector operations (b may be empty).
  statement& vector(isa::opcode op, operand d, operand a, operand b, affine length) {
    statement s;
    s.op = op, s.d = std::move(d), s.a = std::move(a), s.b = std::move(b), s.length = std::move(length);
    return add(std::move(s));
  }
  statement& vector(isa::opcode op, operand d, operand a, affine length) {
    return vector(op, std::move(d), std::move(a), operand{}, std::move(length));
  }
  statement& copy(operand d, operand a, affine length) {
    return vector(isa::opcode::lmv, std::move(d), std::move(a), std::move(length));
  }
  /// Gathers with a stride in elements, or along a dimension of a's tensor where `dimension` ≥ 0.
  statement& gather(operand d, operand a, affine length, std::int64_t stride, std::int32_t dimension = -1) {
    auto& s = vector(isa::opcode::vmv, std::move(d), std::move(a), std::move(length));
    s.stride = stride, s.stride_dimension = dimension;
    return s;
  }
  statement& fill(operand d, float element, affine length) {
    auto& s = vector(isa::opcode::lldi, std::move(d), operand{}, std::move(length));
    s.bits = std::bit_cast<std::uint32_t>(element);
    return s;
  }
  /// vrsu (minimum with the bound) or vrsl (maximum with the bound).
  statement& clamp(isa::opcode op, operand d, operand a, float bound, affine length) {
    auto& s = vector(op, std::move(d), std::move(a), std::move(length));
    s.bits = std::bit_cast<std::uint32_t>(bound);
    return s;
  }
  statement& matrix(operand d, operand a, std::uint32_t group, bool relu = false) {
    auto& s = vector(isa::opcode::mvmul, std::move(d), std::move(a), affine(result_.groups.at(group).columns));
    s.group = group, s.bits = relu ? 1 : 0;
    return s;
  }

  [[nodiscard]] compute& current() noexcept { return result_; }
  [[nodiscard]] compute take() { return std::move(result_); }

 private:
  compute result_;
  std::uint32_t loops_ = 0;
  std::vector<std::vector<item>*> blocks_;
};

}  // namespace raptor::lowering
