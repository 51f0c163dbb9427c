#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "raptor/model/edit.hpp"
#include "raptor/model/rewrite_movement.hpp"

/// Rewrites around convolutions, pools and activations. All are exact, but for one rounding less in fuse_silu. Cost: linear in nodes and edges.
namespace raptor::model::rewrite {

/// The spatial padding of a pad, where it pads nothing else and crops nothing.
[[nodiscard]] inline bool pads_only_space(const pad& p) {
  if (p.mode != pad_mode::constant || p.begin.size() < 3) return false;
  for (std::size_t i = 0; i < p.begin.size(); ++i)
    if (p.begin[i] < 0 || p.end[i] < 0 || (i < 2 && (p.begin[i] != 0 || p.end[i] != 0))) return false;
  return true;
}
template <class Window>
[[nodiscard]] Window with_padding(Window w, const pad& p) {
  for (std::size_t i = 0; i < w.pads_begin.size(); ++i) {
    w.pads_begin[i] = checked::add(w.pads_begin[i], p.begin[i + 2]);
    w.pads_end[i] = checked::add(w.pads_end[i], p.end[i + 2]);
  }
  return w;
}
/// Takes one Pad before node `n` into it; see absorb_padding.
[[nodiscard]] inline bool absorb_one_pad(graph_edit& e, std::size_t n) {
  if (graph_edit::erased(e.nodes[n])) return false;
  const auto padded = e.nodes[n].inputs[0];
  const auto* found = e.produced_by<pad>(padded);
  if (found == nullptr || !pads_only_space(*found)) return false;
  const pad p = *found;
  auto inputs = e.nodes[n].inputs;
  inputs[0] = e.nodes[e.producer(padded)].inputs[0];
  if (const auto* c = std::get_if<convolution>(&e.nodes[n].op)) {
    if (p.value != 0) return false;
    e.replace(n, with_padding(*c, p), std::move(inputs));
    return true;
  }
  const auto* w = std::get_if<pool>(&e.nodes[n].op);
  if (w == nullptr) return false;
  pool merged = with_padding(*w, p);
  if (w->kind == pool_kind::max) {
    if (p.value != -std::numeric_limits<float>::infinity()) return false;
  } else {
    bool own = false;
    for (std::size_t i = 0; i < w->pads_begin.size(); ++i) own = own || w->pads_begin[i] != 0 || w->pads_end[i] != 0;
    if (p.value != 0 || (own && !w->count_include_pad)) return false;
    merged.count_include_pad = true;
  }
  // With ceil_mode a window may begin in what the Pad appended, but not in padding of the pool itself.
  const shape& source = e.at(inputs[0]).sizes;
  for (std::size_t i = 0; i < merged.kernel.size(); ++i) {
    const auto axis = axis_of(merged, i);
    const auto count = e.at(e.nodes[n].outputs[0]).sizes[i + 2];
    if (count != axis.windows(source[i + 2]) && count != axis.windows(source[i + 2], true)) return false;
  }
  e.replace(n, std::move(merged), std::move(inputs));
  return true;
}
/// A Pad with zeros before a convolution, or before an average pool whose divisor counts padding, becomes its padding; so does one
/// with −infinity before a max pool. An average pool that does not count padding and has none counts the elements of the Pad: it
/// becomes one that counts padding.
[[nodiscard]] inline bool absorb_padding(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n)
    while (absorb_one_pad(e, n)) changed = true;
  return changed;
}

template <class Window>
[[nodiscard]] Window with_unit_row(Window w) {
  w.kernel.insert(w.kernel.begin(), 1);
  w.strides.insert(w.strides.begin(), 1);
  w.dilations.insert(w.dilations.begin(), 1);
  w.pads_begin.insert(w.pads_begin.begin(), 0);
  w.pads_end.insert(w.pads_end.begin(), 0);
  return w;
}
[[nodiscard]] inline shape with_unit_row(const shape& x) { return {x[0], x[1], 1, x[2]}; }
/// Convolutions and pools over [N, C, L] work on [N, C, 1, L]; LRN over other ranks on [N, C, rest, 1].
[[nodiscard]] inline bool raise_to_images(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    if (graph_edit::erased(e.nodes[n])) continue;
    const auto x = e.nodes[n].inputs[0], out = e.nodes[n].outputs[0];
    const shape sizes = e.at(x).sizes, result = e.at(out).sizes;
    const auto* c = std::get_if<convolution>(&e.nodes[n].op);
    const auto* w = std::get_if<pool>(&e.nodes[n].op);
    const auto* l = std::get_if<lrn>(&e.nodes[n].op);
    const bool line = (c != nullptr || w != nullptr) && sizes.size() == 3;
    if (!line && (l == nullptr || sizes.size() == 4)) continue;
    const origin from = e.nodes[n].from;
    operation raised = reshape{};
    shape in_sizes, out_sizes;
    if (line) {
      if (c != nullptr) raised = with_unit_row(*c);
      else raised = with_unit_row(*w);
      in_sizes = with_unit_row(sizes);
      out_sizes = with_unit_row(result);
    } else {
      raised = *l;
      in_sizes = out_sizes = {sizes[0], sizes[1], element_count(std::span(sizes).subspan(2)), 1};
    }
    auto inputs = e.nodes[n].inputs;
    const bool has_weights = std::holds_alternative<convolution>(raised);
    inputs[0] = in_shape(e, x, in_sizes, from, "~image");
    if (has_weights) inputs[1] = in_shape(e, inputs[1], with_unit_row(e.at(inputs[1]).sizes), from, "~image");
    const auto value = e.add_node(std::move(raised), std::move(inputs), from, e.at(out).name + "~image", out_sizes);
    e.replace(n, reshape{}, {value});
    changed = true;
  }
  return changed;
}

/// The one value of a constant whose elements are all equal.
[[nodiscard]] inline std::optional<float> uniform_value(const graph_edit& e, tensor_id t) {
  if (!e.is_constant(t) || e.at(t).type != element_type::f32 || e.at(t).data->floats().empty()) return std::nullopt;
  const auto& values = e.at(t).data->floats();
  for (const auto v : values)
    if (v != values[0]) return std::nullopt;
  return values[0];
}
/// The interval that an operator clips its first operand to: relu, clip, and maximum or minimum with one number.
struct clip_range {
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  friend bool operator==(const clip_range&, const clip_range&) = default;
};
[[nodiscard]] inline std::optional<clip_range> clips_to(const graph_edit& e, const node& n) {
  if (const auto* u = std::get_if<unary>(&n.op)) {
    clip_range range;
    if (u->kind == unary_kind::relu) return clip_range{0, range.high};
    if (u->kind == unary_kind::clip && u->a <= u->b) return clip_range{u->a, u->b};
    return std::nullopt;
  }
  const auto* b = std::get_if<binary>(&n.op);
  if (b == nullptr || (b->kind != binary_kind::maximum && b->kind != binary_kind::minimum)) return std::nullopt;
  const auto value = uniform_value(e, n.inputs[1]);
  if (!value || std::isnan(*value) || e.at(n.inputs[0]).sizes != e.at(n.outputs[0]).sizes) return std::nullopt;
  clip_range range;
  (b->kind == binary_kind::maximum ? range.low : range.high) = *value;
  return range;
}
/// Chains of relu, clip, maximum and minimum with numbers become one clip, or relu; PRelu with one slope becomes leaky relu, and
/// leaky relu with slope 0 relu; a clip to everything vanishes.
[[nodiscard]] inline bool normalize_activations(graph_edit& e) {
  bool changed = false;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    if (graph_edit::erased(e.nodes[n])) continue;
    const auto x = e.nodes[n].inputs[0];
    if (const auto* b = std::get_if<binary>(&e.nodes[n].op); b != nullptr && b->kind == binary_kind::prelu) {
      if (const auto slope = uniform_value(e, e.nodes[n].inputs[1])) {
        e.replace(n, *slope == 0 ? unary{unary_kind::relu, 0, 0} : unary{unary_kind::leaky_relu, *slope, 0}, {x});
        changed = true;
      }
      continue;
    }
    if (const auto* u = std::get_if<unary>(&e.nodes[n].op); u != nullptr && u->kind == unary_kind::leaky_relu && u->a == 0) {
      e.replace(n, unary{unary_kind::relu, 0, 0}, {x});
      changed = true;
      continue;
    }
    auto range = clips_to(e, e.nodes[n]);
    if (!range) continue;
    auto source = x;
    if (const auto before = e.producer(x); before != graph_edit::no_node && e.has_one_use(x))
      if (const auto inner = clips_to(e, e.nodes[before])) {
        // Two projections onto intervals, one after the other, are one: onto the images of the ends.
        const auto project = [&](float v) { return std::min(std::max(v, range->low), range->high); };
        range = clip_range{project(inner->low), project(inner->high)};
        source = e.nodes[before].inputs[0];
      }
    unary result{unary_kind::clip, range->low, range->high};
    if (*range == clip_range{0, infinity}) result = unary{unary_kind::relu, 0, 0};
    if (*range == clip_range{}) result = unary{unary_kind::identity, 0, 0};
    const auto* now = std::get_if<unary>(&e.nodes[n].op);
    if (source == x && now != nullptr && now->kind == result.kind) continue;
    e.replace(n, result, {source});
    changed = true;
  }
  return changed;
}

/// x · sigmoid(x), where nothing else reads the sigmoid, becomes one operator.
[[nodiscard]] inline bool fuse_silu(graph_edit& e) {
  bool changed = false;
  for (std::size_t n = 0; n < e.nodes.size(); ++n) {
    if (graph_edit::erased(e.nodes[n])) continue;
    const auto* product = std::get_if<binary>(&e.nodes[n].op);
    if (product == nullptr || product->kind != binary_kind::multiply) continue;
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
      const auto x = e.nodes[n].inputs[1 - side], gate = e.nodes[n].inputs[side];
      const auto* sigmoid = e.produced_by<unary>(gate);
      if (sigmoid == nullptr || sigmoid->kind != unary_kind::sigmoid || e.nodes[e.producer(gate)].inputs[0] != x || !e.has_one_use(gate)) continue;
      e.replace(n, unary{unary_kind::silu, 0, 0}, {x});
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace raptor::model::rewrite
