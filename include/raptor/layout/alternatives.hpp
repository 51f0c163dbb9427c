#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "raptor/layout/physical.hpp"
#include "raptor/model/graph.hpp"

/// Which layouts an operation accepts and gives, with what the choice costs (LOWERING, the table of alternatives).
namespace raptor::layout {

/// Exact layouts for every operand and one for all results. Constants have no layout: their entry is not consulted.
/// `cost`: rough number of instructions that the layout makes the operation take, beyond what every layout needs.
struct alternative {
  std::vector<physical> operands;
  physical result = physical::dense;
  double cost = 0;
};

namespace detail {

[[nodiscard]] inline bool is_image(const model::graph& g, model::tensor_id t) {
  return g.at(t).sizes.size() == 4 && g.at(t).type == model::element_type::f32;
}

/// A constant that a row strip can take element-wise: a scalar, one value a channel, or a whole image.
[[nodiscard]] inline bool row_strip_constant(const shape& constant, const shape& image) {
  if (element_count(constant) == 1) return true;
  shape padded(4 - std::min<std::size_t>(4, constant.size()), 1);
  padded.insert(padded.end(), constant.begin(), constant.end());
  return padded.size() == 4 && padded[0] == 1 && padded[1] == image[1] && padded[2] == 1 && padded[3] == 1;
}

/// Does every computed operand have the shape of the result, or one value a channel?
[[nodiscard]] inline bool element_wise_row_strip(const model::graph& g, const model::node& n) {
  const auto& result = g.at(n.outputs[0]).sizes;
  if (!is_image(g, n.outputs[0])) return false;
  for (const auto input : n.inputs) {
    const auto& t = g.at(input);
    if (t.is_constant()) {
      if (!row_strip_constant(t.sizes, result)) return false;
    } else if (t.sizes != result && t.sizes != shape{result[0], result[1], 1, 1}) {
      return false;
    }
  }
  return true;
}

}  // namespace detail

/// All alternatives of a node. The first is dense for every operand and the result.
[[nodiscard]] inline std::vector<alternative> alternatives_of(const model::graph& g, model::vertex v) {
  const auto& n = g.at(v);
  const auto operands = n.inputs.size();
  const auto uniform = [&](physical in, physical out, double cost) {
    return alternative{std::vector<physical>(operands, in), out, cost};
  };
  const auto& sizes = g.at(n.outputs[0]).sizes;
  const bool image = detail::is_image(g, n.outputs[0]) && n.inputs[0].valid() && detail::is_image(g, n.inputs[0]);
  constexpr auto dense = physical::dense, strip = physical::nhwc_row_strip;
  const double pixels = image ? static_cast<double>(sizes[0] * sizes[2] * sizes[3]) : 0;

  std::vector<alternative> result{uniform(dense, dense, 0)};
  if (!image) return result;

  if (const auto* c = std::get_if<model::convolution>(&n.op)) {
    // A patch costs one copy a kernel row from strips, one gather a tap from dense images, whose results are also transposed.
    const double taps = static_cast<double>(element_count(c->kernel));
    result[0].cost = pixels * taps + static_cast<double>(sizes[0] * sizes[1] * sizes[2]);
    const bool contiguous = c->dilations[1] == 1 && c->groups == 1;
    result.push_back(uniform(strip, strip, pixels * (contiguous ? static_cast<double>(c->kernel[0]) : taps)));
  } else if (const auto* p = std::get_if<model::pool>(&n.op)) {
    // Strips take a tap of all channels at once.
    const double taps = static_cast<double>(element_count(p->kernel));
    result[0].cost = static_cast<double>(sizes[1]) * pixels;
    result.push_back(uniform(strip, strip, pixels * taps));
  } else if (std::holds_alternative<model::unary>(n.op) || std::holds_alternative<model::binary>(n.op)) {
    // SiLU prefers strips more than others do: it comes between convolutions.
    const auto* function = std::get_if<model::unary>(&n.op);
    const bool silu = function != nullptr && function->kind == model::unary_kind::silu;
    if (detail::element_wise_row_strip(g, n)) result.push_back(uniform(strip, strip, silu ? 0 : static_cast<double>(sizes[0] * sizes[2])));
  } else if (const auto* cat = std::get_if<model::concat>(&n.op)) {
    bool fits = cat->axis == 1;
    for (const auto input : n.inputs) fits = fits && !g.at(input).is_constant();
    if (fits) result.push_back(uniform(strip, strip, pixels * static_cast<double>(operands)));
  } else if (const auto* s = std::get_if<model::slice>(&n.op)) {
    if (std::all_of(s->step.begin(), s->step.end(), [](auto step) { return step == 1; }))
      result.push_back(uniform(strip, strip, pixels));
  } else if (const auto* d = std::get_if<model::pad>(&n.op)) {
    if (d->mode == model::pad_mode::constant && d->begin[0] == 0 && d->end[0] == 0)
      result.push_back(uniform(strip, strip, pixels));
  } else if (std::holds_alternative<model::lrn>(n.op)) {
    result[0].cost = pixels * 8;
    result.push_back(uniform(strip, strip, pixels * 4));
  } else if (const auto* up = std::get_if<model::upsample>(&n.op)) {
    result[0].cost = pixels * static_cast<double>(sizes[1]);
    if (up->factors[0] == 1 && up->factors[1] == 1) result.push_back(uniform(strip, strip, pixels));
  } else if (const auto* shuffle = std::get_if<model::channel_shuffle>(&n.op)) {
    result.push_back(uniform(strip, strip, pixels * static_cast<double>(shuffle->groups)));
  }
  return result;
}

}  // namespace raptor::layout
