#pragma once

#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "raptor/model/graph.hpp"

namespace raptor::model {

namespace detail {
[[nodiscard]] inline std::string list(const axis_values& values) {
  std::string text;
  for (const auto v : values) text += (text.empty() ? "" : ",") + std::to_string(v);
  return "[" + text + "]";
}
[[nodiscard]] inline std::string number(float v) {
  std::ostringstream text;
  text << v;
  return text.str();
}
template <class Window>
[[nodiscard]] std::string window_text(const Window& w) {
  return "kernel=" + list(w.kernel) + " strides=" + list(w.strides) + " dilations=" + list(w.dilations) + " pads=" + list(w.pads_begin) + list(w.pads_end);
}
struct attribute_text {
  std::string operator()(const convolution& o) const { return window_text(o) + " groups=" + std::to_string(o.groups); }
  std::string operator()(const gemm& o) const {
    return "alpha=" + number(o.alpha) + " beta=" + number(o.beta) + (o.transpose_a ? " transpose_a" : "") + (o.transpose_b ? " transpose_b" : "");
  }
  std::string operator()(const unary& o) const {
    if (o.kind == unary_kind::clip) return "[" + number(o.a) + "," + number(o.b) + "]";
    if (o.kind == unary_kind::power) return "exponent=" + number(o.a);
    return o.kind == unary_kind::leaky_relu ? "alpha=" + number(o.a) : "";
  }
  std::string operator()(const softmax& o) const { return "axes=[" + std::to_string(o.first) + "," + std::to_string(o.last) + ")"; }
  std::string operator()(const pool& o) const { return window_text(o) + (o.count_include_pad ? " count_include_pad" : ""); }
  std::string operator()(const batch_normalization& o) const { return "epsilon=" + number(o.epsilon); }
  std::string operator()(const lrn& o) const {
    return "size=" + std::to_string(o.size) + " alpha=" + number(o.alpha) + " beta=" + number(o.beta) + " bias=" + number(o.bias);
  }
  std::string operator()(const transpose& o) const { return "permutation=" + list(o.permutation); }
  std::string operator()(const concat& o) const { return "axis=" + std::to_string(o.axis); }
  std::string operator()(const slice& o) const { return "begin=" + list(o.begin) + " step=" + list(o.step); }
  std::string operator()(const pad& o) const {
    constexpr const char* modes[] = {"constant", "reflect", "edge"};
    return std::string(modes[static_cast<std::size_t>(o.mode)]) + " begin=" + list(o.begin) + " end=" + list(o.end) + " value=" + number(o.value);
  }
  std::string operator()(const channel_shuffle& o) const { return "groups=" + std::to_string(o.groups); }
  std::string operator()(const reduce& o) const { return "axes=[" + std::to_string(o.first) + "," + std::to_string(o.last) + ")"; }
  std::string operator()(const upsample& o) const { return "factors=" + list(o.factors); }
  std::string operator()(const matmul&) const { return {}; }
  std::string operator()(const binary&) const { return {}; }
  std::string operator()(const reshape&) const { return {}; }
};
}  // namespace detail

/// A model graph as text, one node a line, without the contents of constants:
///
///     %3 1x8x16x16 = convolution %0 %1 %2 kernel=[3,3] … groups=1   ; Conv "conv1" (ai.onnx, opset 13)
///
/// Tensors are numbered by id and never by name, so that the text of two equal graphs is equal.
[[nodiscard]] inline std::string to_text(const graph& g) {
  std::string text;
  const auto describe = [&](tensor_id t) { return t.valid() ? "%" + std::to_string(t.value) : std::string("-"); };
  const auto declare = [&](const char* what, tensor_id t) {
    text += std::string(what) + " " + describe(t) + " " + name(g.at(t).type) + " " + to_string(g.at(t).sizes) + "   ; \"" + g.at(t).name + "\"\n";
  };
  for (const auto t : g.inputs) declare("input", t);
  for (std::size_t i = 0; i < g.tensors().size(); ++i)
    if (g.tensors()[i].is_constant()) declare("constant", tensor_id(i));
  for (vertex v = 0; v < g.node_count(); ++v) {
    const node& n = g.at(v);
    for (const auto t : n.outputs) text += describe(t) + " " + to_string(g.at(t).sizes) + " ";
    text += "= " + name(n.op);
    for (const auto t : n.inputs) text += " " + describe(t);
    const auto attributes = std::visit(detail::attribute_text{}, n.op);
    if (!attributes.empty()) text += " " + attributes;
    text += "   ; " + n.from.describe() + "\n";
  }
  for (const auto t : g.outputs) declare("output", t);
  for (const auto& note : g.notes) text += "note " + note + "\n";
  return text;
}

}  // namespace raptor::model
