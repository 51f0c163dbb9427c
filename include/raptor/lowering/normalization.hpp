#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/lowering/elementwise.hpp"
#include "raptor/lowering/functions.hpp"
#include "raptor/lowering/pooling.hpp"

namespace raptor::lowering {

/// Batch normalization that was not folded into its producer: x · s + t by channel, s and t computed at compile time.
/// Errors: unsupported, where scale, bias, mean or variance are computed.
inline void lower(const model::batch_normalization& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape sizes = output_sizes(c, v);
  if (sizes.size() < 2 || n.inputs.size() != 5) throw error(error_code::mismatch, "batch normalization needs channels and five inputs", place_of(c, v));
  for (std::size_t i = 1; i < 5; ++i) {
    const auto& t = c.model.at(n.inputs[i]);
    if (!t.is_constant()) throw error(error_code::unsupported, "batch normalization with computed parameters", place_of(c, v), "make '" + t.name + "' an initializer");
    if (t.sizes != shape{sizes[1]}) throw error(error_code::mismatch, "'" + t.name + "' has not one value a channel", place_of(c, v));
  }
  if (is_empty_shape(sizes)) return add_empty(c, v, result);
  const auto parameter = [&](std::size_t i, std::size_t channel) { return static_cast<double>(c.model.at(n.inputs[i]).data->floats()[channel]); };
  std::vector<float> factor, term;
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(sizes[1]); ++channel) {
    const double f = parameter(1, channel) / std::sqrt(parameter(4, channel) + static_cast<double>(op.epsilon));
    factor.push_back(static_cast<float>(f));
    term.push_back(static_cast<float>(parameter(2, channel) - parameter(3, channel) * f));
  }
  shape by_channel(sizes.size() - 1, 1);
  by_channel[0] = sizes[1];
  element_wise_request request;
  request.sources = {in_rows(c, v) ? row_operand(c, n.inputs[0]) : c.operand(n.inputs[0], layout::physical::dense),
                     c.constant(compute_name(c, v, "factor"), by_channel, std::move(factor)), c.constant(compute_name(c, v, "term"), by_channel, std::move(term))};
  element_wise(c, v, result, request, [](const element_run& r) {
    r.k.vector(isa::opcode::vvmul, r.d, r.in[0], r.in[1], r.length);
    r.k.vector(isa::opcode::vvadd, r.d, r.d, r.in[2], r.length);
  });
}

/// (1 + a · s)^(−beta) · scale for s ≥ 0, by the function that takes least work: falling_power where it fits, else power_function.
class response_power {
 public:
  response_power(kernel_builder& k, double a, double beta, std::int64_t chunk, double scale, const std::string& place) {
    if (falling_power::fits(a, beta, scale)) {
      falling_.emplace(k, a, beta, chunk, scale);
    } else {
      weight_ = filled(k, "alpha", static_cast<float>(a), chunk), one_ = filled(k, "one", 1, chunk);
      any_.emplace(k, -beta, 0, 31, chunk, scale, place);
    }
  }
  /// Appends d = the power of `length` ≤ chunk elements of a temporary s, which is overwritten; d may be s.
  void apply(kernel_builder& k, const operand& d, const operand& s, const affine& length) const {
    if (falling_) return falling_->apply(k, d, s, length);
    k.vector(isa::opcode::vvmul, s, s, k.in(weight_), length);
    k.vector(isa::opcode::vvadd, s, s, k.in(one_), length);
    any_->apply(k, d, s, length);
  }

 private:
  std::optional<falling_power> falling_;
  std::optional<power_function> any_;
  std::uint32_t weight_ = 0, one_ = 0;
};

/// Local response normalization: x · (bias + alpha / size · Σ x²)^-beta. The squares lie in a buffer with zeros around the channels
/// (rows: a block of pixels one after the other, each C and a gap; dense: one channel after the other), so that the sum over
/// the window is a sum of shifted vectors; the power is response_power, of 1 + alpha / (size · bias) · Σ x².
/// Lanes: the images, their rows, and in strips the columns, a block a tile.
/// Errors: unsupported, where bias is not positive or alpha is negative, or the power is beyond power_function's range.
inline void lower(const model::lrn& op, model::vertex v, context& c) {
  require_floats(c, v);
  const auto& n = c.model.at(v);
  const auto result = c.result(n.outputs[0]);
  const shape sizes = output_sizes(c, v);
  const auto rank = sizes.size();
  if (rank < 2 || op.size < 1 || input_sizes(c, v) != sizes) throw error(error_code::mismatch, "LRN needs channels and a size of at least 1", place_of(c, v));
  if (!(op.bias > 0) || !(op.alpha >= 0) || !std::isfinite(op.alpha) || !std::isfinite(op.bias) || !std::isfinite(op.beta))
    throw error(error_code::unsupported, "LRN with a bias that is not positive or a negative alpha", place_of(c, v), "the power needs a positive base");
  if (is_empty_shape(sizes)) return add_empty(c, v, result);

  const bool rows = in_rows(c, v);
  const auto channels = sizes[1];
  const auto before = std::min((op.size - 1) / 2, channels), after = std::min(op.size - 1 - (op.size - 1) / 2, channels);
  // Pixels of a tile; distance of two channels and of two pixels in the buffer.
  const auto gap = std::max(before, after), pitch = rows ? channels + gap : std::int64_t{1};
  constexpr std::int64_t enough = 512;  // elements of a vector
  const auto pixels = rows ? checked::divide_up(sizes[3], checked::divide_up(checked::multiply(sizes[3], pitch), std::max(enough, pitch))) : elements_from(sizes, std::min<std::size_t>(rank, 3));
  const auto unit = rows ? std::int64_t{1} : pixels;
  const auto elements = rows ? before + checked::multiply(pixels, pitch) : checked::multiply(before + channels + after, pixels);
  const affine need = rows ? tile_extent(2) * pitch - gap : affine(channels * pixels);

  shape lanes{sizes[0]};
  if (rank > 2) lanes.push_back(sizes[2]);
  if (rows) lanes.push_back(sizes[3]);
  kernel_builder k(compute_name(c, v), lanes);
  if (rows) k.current().most = {1, 1, pixels}, k.current().granule = {1, 1, pixels};
  affine_box b;
  for (std::size_t d = 0; d < rank; ++d) {
    if (d == 0 || d == 2) b.push(tile_begin(d / 2), tile_end(d / 2));
    else if (d == 3 && rows) b.push(tile_begin(2), tile_end(2));
    else b.push(0, sizes[d]);
  }
  const auto x = k.reads(rows ? row_operand(c, n.inputs[0]) : c.operand(n.inputs[0], layout::physical::dense), b.low, b.high);
  const auto y = k.writes(result, b.low, b.high);

  const auto taps = before + after + 1;
  const auto squares = k.scratch("squares", elements, true);
  k.prologue([&] { k.fill(k.in(squares), 0, elements); });
  const auto sums = taps > 1 ? k.scratch("sums", elements) : squares, more = taps > 3 ? k.scratch("more_sums", elements) : sums;
  // Rows: one chunk. Dense: as many as it takes, of about equal length.
  const auto whole = channels * pixels;
  const auto chunk = rows ? pixels * pitch : checked::divide_up(whole, checked::divide_up(whole, std::int64_t{1024}));
  const double alpha = static_cast<double>(op.alpha) / (static_cast<double>(op.size) * static_cast<double>(op.bias));
  const response_power power(k, alpha, static_cast<double>(op.beta), chunk, std::pow(static_cast<double>(op.bias), -static_cast<double>(op.beta)), place_of(c, v));

  const auto lane = [&](const std::vector<affine>& i) {
    auto at = b.low;
    at[0] += i[0];
    if (rank > 2 && i.size() > 1) at[2] += i[1];
    // Runs that lie together in the tensor: the channels of a pixel (rows), the pixels of a channel (dense), or everything.
    const bool together = !rows && (rank == 2);
    const affine runs = rows ? tile_extent(2) : affine(together ? std::int64_t{1} : channels);
    const auto run = rows || together ? channels : pixels;
    const auto distance = rows ? pitch : unit;
    const auto element = [&](const affine& r) {
      auto from = at;
      if (rows) from[3] += r;
      else if (!together) from[1] += r;
      return from;
    };
    k.loop(runs, [&](const affine& r) {
      k.vector(isa::opcode::vvmul, k.in(squares, r * distance + before * unit), k.at(x, element(r)), k.at(x, element(r)), run);
    });
    auto base = squares;
    if (taps > 1) {
      const auto sum = detail::reduce_taps(k, isa::opcode::vvadd, squares, {sums, more}, unit, taps, need);
      base = sum.a != sum.b && sum.a != squares ? sum.a : (sum.a == sums ? more : sums);
      k.vector(isa::opcode::vvadd, k.in(base), k.in(sum.a), k.in(sum.b, sum.shift), need);
    }
    const auto raise = [&](const affine& first, const affine& count) { power.apply(k, k.in(base, first), k.in(base, first), count); };
    if (rows) {
      raise(0, need);
    } else {
      k.loop(whole / chunk, [&](const affine& i2) { raise(i2 * chunk, chunk); });
      if (whole % chunk != 0) raise(whole / chunk * chunk, whole % chunk);
    }
    k.loop(runs, [&](const affine& r) {
      k.vector(isa::opcode::vvmul, k.at(y, element(r)), k.at(x, element(r)), k.in(base, r * distance), run);
    });
  };
  if (rows) lane({affine(0), affine(0)});  // a tile is of one row: no loop around its instructions
  else nest(k, lane_counts(lanes, lanes.size()), lane);
  c.add(v, k);
}

}  // namespace raptor::lowering
