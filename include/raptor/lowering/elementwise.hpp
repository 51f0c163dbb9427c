#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/elementary_functions.hpp"
#include "raptor/lowering/pieces.hpp"

/// Element-wise operators of one and two operands, with NumPy broadcasting, on dense tensors and on image rows.
namespace raptor::lowering {

/// Most elements of a constant that is repeated to fill a vector; longer rows take several instructions instead.
inline constexpr std::int64_t repeated_constant_elements = 4096;

/// What the operation at one run of elements is emitted from: `length` elements at d and at each operand.
struct element_run {
  kernel_builder& k;
  operand d;
  std::vector<operand> in;       ///< one a source
  std::vector<operand> fill;     ///< vectors of one repeated element, as asked for
  std::vector<operand> scratch;  ///< undefined contents
  affine length;
};
/// An element-wise compute: result = f(sources). Sources broadcast to the result.
struct element_wise_request {
  std::vector<std::uint32_t> sources;  ///< values
  std::vector<float> fills;            ///< elements that f needs as vectors
  std::size_t scratch = 0;             ///< vectors that f needs for itself
  std::string part;                    ///< see compute_name
  bool fixed_length = false;           ///< f needs runs of a constant length, as with fills
};

namespace detail {

/// Size of a source in dimension d of a result of `rank` dimensions, aligned at the last.
[[nodiscard]] inline std::int64_t aligned_size(const shape& source, std::size_t rank, std::size_t d) {
  return d + source.size() < rank ? 1 : source[d + source.size() - rank];
}
/// Coordinates in a source for coordinates in the result.
[[nodiscard]] inline std::vector<affine> aligned_coordinates(const shape& source, const std::vector<affine>& at) {
  std::vector<affine> own;
  for (std::size_t d = at.size() - source.size(); d < at.size(); ++d)
    own.push_back(source[d + source.size() - at.size()] == 1 ? affine(0) : at[d]);
  return own;
}

/// Dense: lanes are the leading dimensions, a run is the largest block of trailing dimensions in which every source is either
/// complete or one element (which is then repeated by a gather of stride 0).
template <class Emit>
void element_wise_dense(context& c, model::vertex v, std::uint32_t result, const element_wise_request& request, const Emit& emit) {
  const shape sizes = c.out.values()[result].sizes;
  const auto rank = sizes.size();
  const auto size_of = [&](std::uint32_t value, std::size_t d) { return aligned_size(c.out.values()[value].sizes, rank, d); };

  const auto lanes = dense_lanes(sizes);
  std::size_t run = rank;
  std::vector<bool> complete(request.sources.size(), true), single(request.sources.size(), true);
  while (run > lanes) {
    auto next_complete = complete, next_single = single;
    bool fits = true;
    for (std::size_t s = 0; s < request.sources.size(); ++s) {
      const auto size = size_of(request.sources[s], run - 1);
      next_complete[s] = complete[s] && size == sizes[run - 1];
      next_single[s] = single[s] && size == 1;
      fits = fits && (next_complete[s] || next_single[s]);
    }
    if (!fits) break;
    complete = next_complete, single = next_single;
    --run;
  }
  const auto inner = elements_from(sizes, run);
  // A run may go on over the tile's extent in the last lane dimension where everything is complete there too.
  bool whole_extent = run == lanes && lanes > 0 && request.fills.empty() && !request.fixed_length;
  for (std::size_t s = 0; s < request.sources.size(); ++s)
    whole_extent = whole_extent && complete[s] && size_of(request.sources[s], lanes - 1) == sizes[lanes - 1];

  kernel_builder k(compute_name(c, v, request.part), leading(sizes, lanes));
  std::vector<std::uint32_t> accesses;
  for (const auto value : request.sources) {
    const auto& own = c.out.values()[value].sizes;
    affine_box b;
    for (std::size_t d = rank - own.size(); d < rank; ++d) {
      const auto size = own[d + own.size() - rank];
      d < lanes && size == sizes[d] ? b.push(tile_begin(d), tile_end(d)) : b.push(0, size);
    }
    accesses.push_back(k.reads(value, b.low, b.high));
  }
  const auto box = leading_box(sizes, lanes);
  const auto y = k.writes(result, box.low, box.high);

  const affine length = whole_extent ? tile_extent(lanes - 1) * inner : affine(inner);
  std::vector<operand> fills, scratch;
  for (const auto element : request.fills) fills.push_back(k.in(filled(k, "constant", element, inner)));
  for (std::size_t s = 0; s < request.scratch; ++s) scratch.push_back(k.in(k.scratch("scratch", length)));
  std::vector<std::uint32_t> repeated(accesses.size(), 0);
  for (std::size_t s = 0; s < accesses.size(); ++s)
    if (!complete[s]) repeated[s] = k.scratch("repeated", length);

  auto counts = lane_counts(sizes, lanes - (whole_extent ? 1 : 0));
  if (!whole_extent)
    for (std::size_t d = lanes; d < run; ++d) counts.emplace_back(sizes[d]);
  nest(k, counts, [&](const std::vector<affine>& indices) {
    std::vector<affine> at(rank);
    for (std::size_t d = 0; d < rank; ++d) {
      if (d < lanes) at[d] = sizes[d] == 1 ? affine(0) : tile_begin(d);
      if (d < indices.size()) at[d] += indices[d];
    }
    std::vector<operand> in;
    for (std::size_t s = 0; s < accesses.size(); ++s) {
      in.push_back(k.at(accesses[s], aligned_coordinates(c.out.values()[request.sources[s]].sizes, at)));
      if (complete[s]) continue;
      k.gather(k.in(repeated[s]), in.back(), length, 0);
      in.back() = k.in(repeated[s]);
    }
    emit(element_run{k, k.at(y, at), std::move(in), fills, scratch, length});
  });
  c.add(v, k);
}

/// A constant that broadcasts to an image, rearranged at compile time: one value a channel [C], or rows [N or 1, H or 1, W, C].
[[nodiscard]] inline std::uint32_t constant_rows(context& c, const value& from, const shape& image, bool& by_channel) {
  const auto size = [&](std::size_t d) { return aligned_size(from.sizes, 4, d); };
  const auto strides = row_major_strides(from.sizes);
  const auto stride = [&](std::size_t d) {
    return size(d) == 1 ? std::int64_t{0} : strides[d + from.sizes.size() - 4];
  };
  by_channel = size(0) == 1 && size(2) == 1 && size(3) == 1;
  const shape rows{size(0), size(2), by_channel ? 1 : image[3], image[1]};
  const auto& data = from.data->floats();
  std::vector<float> elements;
  elements.reserve(static_cast<std::size_t>(element_count(rows)));
  for (std::int64_t n = 0; n < rows[0]; ++n)
    for (std::int64_t h = 0; h < rows[1]; ++h)
      for (std::int64_t w = 0; w < rows[2]; ++w)
        for (std::int64_t ch = 0; ch < rows[3]; ++ch)
          elements.push_back(data[static_cast<std::size_t>(n * stride(0) + h * stride(2) + w * stride(3) + ch * stride(1))]);
  return c.constant(from.name + ".rows", rows, std::move(elements));
}

/// The channels and columns of every row that one compute writes.
struct row_part {
  interval channels, columns;
  std::int64_t block = 0;  ///< where the columns are the third lane dimension: how many a tile takes; else 0
  friend auto operator<=>(const row_part&, const row_part&) = default;
};
/// How several computes divide the rows of a value among them; empty where one writes whole rows.
[[nodiscard]] inline std::vector<row_part> row_parts(const context& c, std::uint32_t value) {
  std::vector<row_part> parts;
  std::int64_t covered = 0;
  for (const auto w : c.out.writers(value))
    for (const auto& a : c.out.at(w).accesses) {
      if (a.value != value || a.mode == access_mode::read) continue;
      if (!a.low[1].is_constant() || !a.high[1].is_constant()) return {};
      const interval channels{a.low[1].constant(), a.high[1].constant()};
      if (a.low[3].is_constant() && a.high[3].is_constant()) {
        const row_part part{channels, {a.low[3].constant(), a.high[3].constant()}};
        // What several computes add up is one part.
        if (a.mode == access_mode::accumulate && std::find(parts.begin(), parts.end(), part) != parts.end()) continue;
        parts.push_back(part);
      } else {
        const auto& writer = c.out.at(w);
        if (writer.lanes.size() != 3 || writer.granule[2] != writer.most[2] || a.low[3] != tile_begin(2) || a.high[3] != tile_end(2)) return {};
        parts.push_back({channels, {0, writer.lanes[2]}, writer.most[2]});
      }
      covered += parts.back().channels.size() * parts.back().columns.size();
    }
  const auto& sizes = c.out.values()[value].sizes;
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  std::int64_t distinct = 0;
  for (const auto& p : parts) distinct += p.channels.size() * p.columns.size();
  const bool divided = parts.size() > 1 || (parts.size() == 1 && parts[0].block > 0);
  return divided && covered == distinct && covered == sizes[1] * sizes[3] ? parts : std::vector<row_part>{};
}

/// Image rows whose sources are images of the result's size, divided as one of them is: each compute continues one part.
template <class Emit>
bool element_wise_parts(context& c, model::vertex v, std::uint32_t result, const element_wise_request& request, const Emit& emit) {
  const shape sizes = c.out.values()[result].sizes;
  if (!request.fills.empty() || request.fixed_length) return false;
  std::vector<row_part> parts;
  for (const auto s : request.sources) {
    const auto& from = c.out.values()[s];
    if (from.from == origin::constant || from.sizes != sizes) return false;
    const auto own = row_parts(c, s);
    if (own.size() > parts.size()) parts = own;
  }
  if (parts.empty()) return false;
  const auto n = tile_begin(0), h = tile_begin(1);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto block = parts[p].block;
    kernel_builder k(compute_name(c, v, request.part) + "." + std::to_string(p), block > 0 ? shape{sizes[0], sizes[2], sizes[3]} : shape{sizes[0], sizes[2]});
    one_row_a_tile(k);
    auto [low, high] = row_box(sizes);
    low[1] = parts[p].channels.begin, high[1] = parts[p].channels.end, low[3] = parts[p].columns.begin, high[3] = parts[p].columns.end;
    if (block > 0) {
      k.current().granule[2] = block, k.current().most.push_back(block);
      low[3] = tile_begin(2), high[3] = tile_end(2);
    }
    const std::vector<affine> first{n, parts[p].channels.begin, h, low[3]};
    const affine length = (high[3] - low[3]) * parts[p].channels.size();
    std::vector<operand> in, scratch;
    for (const auto s : request.sources) in.push_back(k.at(k.reads(s, low, high), first));
    const auto y = k.writes(result, low, high);
    for (std::size_t s = 0; s < request.scratch; ++s) scratch.push_back(k.in(k.scratch("scratch", length)));
    emit(element_run{k, k.at(y, first), std::move(in), {}, scratch, length});
    c.add(v, k);
  }
  return true;
}

/// Image rows: one row a tile, in chunks of pixels where a vector of repeated elements would be longer than
/// repeated_constant_elements. Sources: images, one computed value a channel [N, C, 1, 1], constants of any broadcastable shape.
template <class Emit>
void element_wise_rows(context& c, model::vertex v, std::uint32_t result, const element_wise_request& request, const Emit& emit) {
  if (element_wise_parts(c, v, result, request, emit)) return;
  enum class role : std::uint8_t { image, channels, constant_channels, constant_rows };
  const shape sizes = c.out.values()[result].sizes;
  const auto channels = sizes[1], width = sizes[3];
  kernel_builder k(compute_name(c, v, request.part), {sizes[0], sizes[2]});
  one_row_a_tile(k);
  const auto n = tile_begin(0), h = tile_begin(1);
  const auto [low, high] = row_box(sizes);

  std::vector<role> roles;
  std::vector<std::uint32_t> accesses;
  std::vector<shape> constant_sizes(request.sources.size());
  bool repeats = !request.fills.empty() || request.fixed_length;
  for (std::size_t s = 0; s < request.sources.size(); ++s) {
    const value from = c.out.values()[request.sources[s]];
    if (from.from == origin::constant) {
      bool by_channel = false;
      const auto rows = constant_rows(c, from, sizes, by_channel);
      constant_sizes[s] = c.out.values()[rows].sizes;
      const auto pick = [&](std::size_t d) { return constant_sizes[s][d] != 1; };
      roles.push_back(by_channel ? role::constant_channels : role::constant_rows);
      accesses.push_back(by_channel ? k.reads_whole(rows, constant_sizes[s])
                                    : k.reads(rows, {pick(0) ? n : affine(0), pick(1) ? h : affine(0), 0, 0},
                                              {pick(0) ? tile_end(0) : affine(1), pick(1) ? tile_end(1) : affine(1), width, channels}));
    } else if (from.sizes == sizes) {
      roles.push_back(role::image);
      accesses.push_back(k.reads(request.sources[s], low, high));
    } else {
      ensure(from.sizes == shape{sizes[0], channels, 1, 1}, "a row strip takes images and one value a channel", from.name);
      roles.push_back(role::channels);
      accesses.push_back(k.reads(request.sources[s], {n, 0, 0, 0}, {tile_end(0), channels, 1, 1}));
    }
    repeats = repeats || roles.back() == role::channels || roles.back() == role::constant_channels;
  }
  const auto y = k.writes(result, low, high);

  const auto pixels = repeats ? std::clamp<std::int64_t>(repeated_constant_elements / channels, 1, width) : width;
  const auto most = pixels * channels;
  std::vector<operand> fills, scratch;
  for (const auto element : request.fills) fills.push_back(k.in(filled(k, "constant", element, most)));
  for (std::size_t s = 0; s < request.scratch; ++s) scratch.push_back(k.in(k.scratch("scratch", most)));
  std::vector<std::uint32_t> repeated(roles.size(), 0);
  for (std::size_t s = 0; s < roles.size(); ++s) {
    const auto repeat = [&](const operand& first) {
      k.copy(k.in(repeated[s]), first, channels);
      replicate(k, repeated[s], channels, pixels);
    };
    if (roles[s] == role::constant_channels) {
      repeated[s] = k.scratch("channels", most, true);
      k.prologue([&] { repeat(k.at(accesses[s], {0, 0, 0, 0})); });
    } else if (roles[s] == role::channels) {
      repeated[s] = k.scratch("channels", most);
      repeat(k.at(accesses[s], {n, 0, 0, 0}));
    }
  }
  const auto chunk = [&](const affine& w, std::int64_t count) {
    std::vector<operand> in;
    for (std::size_t s = 0; s < roles.size(); ++s) {
      switch (roles[s]) {
        case role::image: in.push_back(k.at(accesses[s], {n, 0, h, w})); break;
        case role::constant_rows:
          in.push_back(k.at(accesses[s], {constant_sizes[s][0] == 1 ? affine(0) : n, constant_sizes[s][1] == 1 ? affine(0) : h, w, 0}));
          break;
        default: in.push_back(k.in(repeated[s]));
      }
    }
    emit(element_run{k, k.at(y, {n, 0, h, w}), std::move(in), fills, scratch, count * channels});
  };
  k.loop(width / pixels, [&](const affine& i) { chunk(i * pixels, pixels); });
  if (width % pixels != 0) chunk(width / pixels * pixels, width % pixels);
  c.add(v, k);
}

}  // namespace detail

/// Adds the compute result = f(sources) in the result's layout. `emit(element_run)` appends f's statements for one run.
/// Requires: the result has elements; sources broadcast to it; for image rows, as detail::element_wise_rows says.
template <class Emit>
void element_wise(context& c, model::vertex v, std::uint32_t result, const element_wise_request& request, const Emit& emit) {
  if (c.out.values()[result].layout == layout::physical::nhwc_row_strip) return detail::element_wise_rows(c, v, result, request, emit);
  detail::element_wise_dense(c, v, result, request, emit);
}

/// Operators of one operand. leaky_relu: max(x, alpha · x) for 0 < alpha ≤ 1, else relu(x) + alpha · min(x, 0).
/// clip: bounds of infinite or largest magnitude are left out. Other functions: elementary_function.
inline void lower(const model::unary& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  if (is_empty_shape(output_sizes(c, v))) return add_empty(c, v, result);
  element_wise_request request;
  request.sources = {in_rows(c, v) ? row_operand(c, n.inputs[0]) : c.operand(n.inputs[0], layout::physical::dense)};
  const auto simple = [&](isa::opcode code) {
    element_wise(c, v, result, request, [&](const element_run& r) { r.k.vector(code, r.d, r.in[0], r.length); });
  };
  switch (op.kind) {
    case model::unary_kind::relu: return simple(isa::opcode::vrelu);
    case model::unary_kind::sigmoid: return simple(isa::opcode::vsigm);
    case model::unary_kind::tanh: return simple(isa::opcode::vtanh);
    case model::unary_kind::identity: return simple(isa::opcode::lmv);
    case model::unary_kind::silu:
      request.scratch = 1;
      return element_wise(c, v, result, request, [](const element_run& r) {
        r.k.vector(isa::opcode::vsigm, r.scratch[0], r.in[0], r.length);
        r.k.vector(isa::opcode::vvmul, r.d, r.in[0], r.scratch[0], r.length);
      });
    case model::unary_kind::leaky_relu:
      if (op.a == 0) return simple(isa::opcode::vrelu);
      if (op.a == 1) return simple(isa::opcode::lmv);
      request.fills = {op.a};
      if (op.a > 0 && op.a < 1)
        return element_wise(c, v, result, request, [](const element_run& r) {
          r.k.vector(isa::opcode::vvmul, r.d, r.in[0], r.fill[0], r.length);
          r.k.vector(isa::opcode::vvmax, r.d, r.d, r.in[0], r.length);
        });
      request.scratch = 1;
      return element_wise(c, v, result, request, [](const element_run& r) {
        r.k.clamp(isa::opcode::vrsu, r.scratch[0], r.in[0], 0.0F, r.length);
        r.k.vector(isa::opcode::vvmul, r.scratch[0], r.scratch[0], r.fill[0], r.length);
        r.k.vector(isa::opcode::vrelu, r.d, r.in[0], r.length);
        r.k.vector(isa::opcode::vvadd, r.d, r.d, r.scratch[0], r.length);
      });
    case model::unary_kind::clip: {
      constexpr float largest = std::numeric_limits<float>::max();
      const bool below = op.a > -largest, above = op.b < largest;  // false for NaN
      if (!below && !above) return simple(isa::opcode::lmv);
      if (op.a == 0 && !above) return simple(isa::opcode::vrelu);
      return element_wise(c, v, result, request, [&](const element_run& r) {
        if (below) r.k.clamp(isa::opcode::vrsl, r.d, r.in[0], op.a, r.length);
        if (above) r.k.clamp(isa::opcode::vrsu, r.d, below ? r.d : r.in[0], op.b, r.length);
      });
    }
    default: break;
  }
  if (elementary_function::covers(op.kind)) {
    request.fixed_length = true;
    std::optional<elementary_function> f;
    return element_wise(c, v, result, request, [&](const element_run& r) {
      if (!f) f.emplace(r.k, op, r.length.constant(), place_of(c, v));
      f->apply_run(r.k, r.d, r.in[0], r.length.constant());
    });
  }
  throw error(error_code::internal, "unknown unary operator", place_of(c, v));
}

/// Element-wise operators of two operands. minimum: −max(−a, −b), or a clamp at a scalar constant; maximum with a scalar constant:
/// a clamp; prelu: relu(a) + b · min(a, 0); division by a constant: product with its reciprocals, relative error below 2^-23
/// for divisors between 2^-126 and 2^126 in magnitude.
/// Errors: unsupported, for divisions by computed values and powers.
inline void lower(const model::binary& op, model::vertex v, context& c) {
  require_floats(c, v);
  using model::binary_kind;
  const auto& n = c.model.at(v);
  const auto refuse = [&](const std::string& what) {
    throw error(error_code::unsupported, what, place_of(c, v), "the vector unit has no instruction for it");
  };
  if (op.kind == binary_kind::power) refuse("power of computed values");
  if (op.kind == binary_kind::divide && !c.model.at(n.inputs[1]).is_constant()) refuse("division by a computed value");

  const auto result = c.result(n.outputs[0]);
  if (is_empty_shape(output_sizes(c, v))) return add_empty(c, v, result);
  element_wise_request request;
  // For each side: the source that has it, or the fill. A scalar constant becomes a fill (or a clamp's bound).
  struct side {
    bool scalar = false;
    float element = 0;
    std::size_t index = 0;
  };
  std::vector<side> sides(2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& t = c.model.at(n.inputs[i]);
    const bool invert = op.kind == binary_kind::divide && i == 1;
    // At least one source: a kernel of constants alone keeps its first operand as one.
    if (t.is_constant() && element_count(t.sizes) == 1 && !(i == 1 && sides[0].scalar)) {
      const float element = t.data->floats().at(0);
      sides[i] = {true, invert ? 1.0F / element : element, 0};
      continue;
    }
    sides[i].index = request.sources.size();
    if (invert) {
      std::vector<float> reciprocals = t.data->floats();
      for (auto& r : reciprocals) r = 1.0F / r;
      request.sources.push_back(c.constant(t.name + ".reciprocal", t.sizes, std::move(reciprocals)));
    } else {
      request.sources.push_back(in_rows(c, v) && !t.is_constant() ? row_operand(c, n.inputs[i]) : c.operand(n.inputs[i], layout::physical::dense));
    }
  }
  const bool clamps = (op.kind == binary_kind::maximum || op.kind == binary_kind::minimum) && (sides[0].scalar || sides[1].scalar);
  if (clamps) {
    const float bound = sides[sides[0].scalar ? 0 : 1].element;
    const auto code = op.kind == binary_kind::maximum ? isa::opcode::vrsl : isa::opcode::vrsu;
    return element_wise(c, v, result, request, [&](const element_run& r) { r.k.clamp(code, r.d, r.in[0], bound, r.length); });
  }
  for (auto& s : sides)
    if (s.scalar) {
      s.index = request.fills.size();
      request.fills.push_back(s.element);
    }
  if (op.kind == binary_kind::minimum) request.fills.push_back(0.0F), request.scratch = 1;
  if (op.kind == binary_kind::prelu) request.scratch = 1;
  element_wise(c, v, result, request, [&](const element_run& r) {
    const auto a = sides[0].scalar ? r.fill[sides[0].index] : r.in[sides[0].index];
    const auto b = sides[1].scalar ? r.fill[sides[1].index] : r.in[sides[1].index];
    auto& k = r.k;
    switch (op.kind) {
      case binary_kind::add: k.vector(isa::opcode::vvadd, r.d, a, b, r.length); break;
      case binary_kind::subtract: k.vector(isa::opcode::vvsub, r.d, a, b, r.length); break;
      case binary_kind::multiply:
      case binary_kind::divide: k.vector(isa::opcode::vvmul, r.d, a, b, r.length); break;
      case binary_kind::maximum: k.vector(isa::opcode::vvmax, r.d, a, b, r.length); break;
      case binary_kind::minimum:
        k.vector(isa::opcode::vvsub, r.scratch[0], r.fill.back(), a, r.length);
        k.vector(isa::opcode::vvsub, r.d, r.fill.back(), b, r.length);
        k.vector(isa::opcode::vvmax, r.d, r.d, r.scratch[0], r.length);
        k.vector(isa::opcode::vvsub, r.d, r.fill.back(), r.d, r.length);
        break;
      case binary_kind::prelu:
        k.clamp(isa::opcode::vrsu, r.scratch[0], a, 0.0F, r.length);
        k.vector(isa::opcode::vvmul, r.scratch[0], r.scratch[0], b, r.length);
        k.vector(isa::opcode::vrelu, r.d, a, r.length);
        k.vector(isa::opcode::vvadd, r.d, r.d, r.scratch[0], r.length);
        break;
      case binary_kind::power: break;  // refused above
    }
  });
}

}  // namespace raptor::lowering
