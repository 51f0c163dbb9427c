#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "raptor/onnx/convert_movement.hpp"
#include "raptor/onnx/node_context.hpp"

/// Operators that exist at compile time only: constants, shapes and arithmetic on them. Their results are constants.
/// Source: ONNX Operators.md, Changelog.md.
namespace raptor::onnx_io::convert {

inline void constant_node(node_context& c) {
  int given = 0;
  for (const auto* name : {"value", "value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings", "sparse_value"})
    given += c.has_attribute(name) ? 1 : 0;
  c.require(given == 1, "needs exactly one value");
  if (const auto* a = c.attribute("value", ::onnx::AttributeProto::TENSOR)) {
    auto t = c.read(a->t());
    t.name = c.next_name();
    c.declare_result_type(a->t().data_type());
    return c.result(c.constant_tensor(std::move(t)));
  }
  if (const auto* a = c.attribute("value_float", ::onnx::AttributeProto::FLOAT)) return c.result(c.constant_float_tensor({}, {a->f()}));
  if (const auto* a = c.attribute("value_floats", ::onnx::AttributeProto::FLOATS))
    return c.result(c.constant_float_tensor({a->floats_size()}, std::vector<float>(a->floats().begin(), a->floats().end())));
  if (const auto* a = c.attribute("value_int", ::onnx::AttributeProto::INT)) return c.result(c.constant_integer_tensor({}, {a->i()}));
  if (const auto* a = c.attribute("value_ints", ::onnx::AttributeProto::INTS))
    return c.result(c.constant_integer_tensor({a->ints_size()}, std::vector<std::int64_t>(a->ints().begin(), a->ints().end())));
  c.unsupported(c.has_attribute("sparse_value") ? "sparse constants" : "string constants");
}

inline void shape_of(node_context& c) {
  const shape x = c.sizes(0);
  const auto rank = static_cast<std::int64_t>(x.size());
  const auto bound = [&](std::int64_t i) { return std::clamp(i < 0 ? i + rank : i, std::int64_t{0}, rank); };
  const auto begin = bound(c.integer("start", 0)), end = bound(c.integer("end", rank));
  std::vector<std::int64_t> values;
  for (auto i = begin; i < end; ++i) values.push_back(x[static_cast<std::size_t>(i)]);
  const auto count = static_cast<std::int64_t>(values.size());
  c.result(c.constant_integer_tensor({count}, std::move(values)));
}
inline void size_of(node_context& c) { c.result(c.constant_integer_tensor({}, {element_count(c.sizes(0))})); }

/// Refuses to make a constant that is larger than folding may make.
inline void require_foldable(node_context& c, std::int64_t count) {
  if (count > fold_element_limit) c.unsupported("a constant of " + std::to_string(count) + " elements; 2^24 is the limit");
}
inline void constant_of_shape(node_context& c) {
  const auto target = c.constant_integers(0, "shape");
  const shape result = checked_shape(shape(target.begin(), target.end()));
  require_foldable(c, element_count(result));
  const auto count = static_cast<std::size_t>(element_count(result));
  const auto* a = c.attribute("value", ::onnx::AttributeProto::TENSOR);
  if (a == nullptr) return c.result(c.constant_float_tensor(result, std::vector<float>(count, 0.0F)));
  const auto value = c.read(a->t());
  c.require(element_count(value.sizes) == 1, "value must have one element");
  if (value.type == element_type::f32) return c.result(c.constant_float_tensor(result, std::vector<float>(count, value.data->floats()[0])));
  c.result(c.constant_integer_tensor(result, std::vector<std::int64_t>(count, value.data->integers()[0]), value.type));
}
/// Throws unsupported where an operand is computed: this operator works on constants only.
inline void require_constants(node_context& c) {
  for (std::size_t i = 0; i < c.input_count(); ++i)
    if (c.has(i) && !c.operand(i).is_constant())
      c.unsupported("only constants are supported, its input \"" + c.operand(i).name + "\" is computed at run time");
}
inline void range(node_context& c) {
  require_constants(c);
  const bool real = c.operand(0).type == element_type::f32;
  for (std::size_t i = 0; i < 3; ++i)
    c.require((c.operand(i).type == element_type::f32) == real && element_count(c.sizes(i)) == 1, "start, limit and delta must be scalars of one type");
  if (real) {
    const double start = double{c.constant_real(0, "start")}, limit = double{c.constant_real(1, "limit")}, delta = double{c.constant_real(2, "delta")};
    const double count = std::ceil((limit - start) / delta);
    c.require(std::isfinite(count), "start, limit and delta give no range");
    if (count > static_cast<double>(fold_element_limit)) c.unsupported("a range of more than 2^24 elements");
    std::vector<float> values;
    for (std::int64_t i = 0; static_cast<double>(i) < count; ++i) values.push_back(static_cast<float>(start + static_cast<double>(i) * delta));
    const auto size = static_cast<std::int64_t>(values.size());
    return c.result(c.constant_float_tensor({size}, std::move(values)));
  }
  const auto start = c.operand(0).data->integers()[0], limit = c.operand(1).data->integers()[0], delta = c.operand(2).data->integers()[0];
  c.require(delta != 0, "delta is 0");
  const double estimate = (static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta);
  if (estimate > static_cast<double>(fold_element_limit)) c.unsupported("a range of more than 2^24 elements");
  std::vector<std::int64_t> values;
  if (estimate > 0)
    for (auto v = start; delta > 0 ? v < limit : v > limit;) {
      values.push_back(v);
      if (__builtin_add_overflow(v, delta, &v)) break;
    }
  const auto size = static_cast<std::int64_t>(values.size());
  c.result(c.constant_integer_tensor({size}, std::move(values)));
}

/// Between floating types a computed tensor stays what it is: all of them are f32 here. Other casts fold.
inline void cast(node_context& c) {
  c.ignore({"saturate", "round_mode"});
  std::int32_t to = 0;
  if (c.opset() < 6) {
    ::onnx::TensorProto_DataType type{};
    if (::onnx::TensorProto_DataType_Parse(c.text("to", ""), &type)) to = type;
  } else {
    to = static_cast<std::int32_t>(std::clamp<std::int64_t>(c.integer("to", 0), 0, 1000));
  }
  const auto target = format_of(to, "attribute to").type;
  const auto& x = c.operand(0);
  const bool from_real = x.type == element_type::f32, to_real = target == element_type::f32;
  if (from_real && to_real) {
    if (to == ::onnx::TensorProto::FLOAT16 || to == ::onnx::TensorProto::BFLOAT16) c.note("no rounding to " + std::string(format_of(to, "").name) + ", values stay f32");
    return identity(c);
  }
  if (!x.is_constant()) c.unsupported("conversion of a computed tensor from " + std::string(name(x.type)) + " to " + name(target));
  const shape sizes = x.sizes;
  if (to_real) {
    std::vector<float> values;
    for (const auto v : x.data->integers()) values.push_back(static_cast<float>(v));
    return c.result(c.constant_float_tensor(sizes, std::move(values)));
  }
  std::vector<std::int64_t> values;
  if (from_real) {
    for (const auto v : x.data->floats()) {
      if (target == element_type::boolean) {
        values.push_back(v != 0 ? 1 : 0);
        continue;
      }
      c.require(v > -9.2e18F && v < 9.2e18F, "value " + std::to_string(v) + " does not fit an integer");
      values.push_back(static_cast<std::int64_t>(v));
    }
  } else {
    values = x.data->integers();
    if (target == element_type::boolean)
      for (auto& v : values) v = v != 0 ? 1 : 0;
  }
  c.result(c.constant_integer_tensor(sizes, std::move(values), target));
}

/// Both operands in the shape of the result, as doubles or integers. Comparisons of shapes need no more than that.
inline std::vector<tensor_value> broadcast_constants(node_context& c, std::vector<std::size_t> operands) {
  require_constants(c);
  shape result;
  for (const auto i : operands) result = broadcast_shape(result, c.sizes(i));
  require_foldable(c, element_count(result));
  const std::vector<shape> outputs{result};
  std::vector<tensor_value> values;
  for (const auto i : operands) {
    const tensor_value value{c.sizes(i), c.operand(i).data};
    values.push_back(reference::broadcast_to({{}, outputs, c.from().describe()}, value, result));
  }
  return values;
}
/// Equal, Less, Greater, And, Or, … of constants.
inline void compare(node_context& c) {
  const auto values = broadcast_constants(c, {0, 1});
  c.require(values[0].type() == values[1].type(), "operands of different element types");
  const auto& op = c.op();
  const auto holds = [&op](auto a, auto b) {
    if (op == "Equal") return a == b;
    if (op == "Less") return a < b;
    if (op == "Greater") return a > b;
    if (op == "LessOrEqual") return a <= b;
    if (op == "GreaterOrEqual") return a >= b;
    const bool left = a != decltype(a){}, right = b != decltype(b){};
    if (op == "And") return left && right;
    if (op == "Or") return left || right;
    return left != right;  // Xor
  };
  std::vector<std::int64_t> result(static_cast<std::size_t>(element_count(values[0].sizes)));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = (values[0].type() == element_type::f32 ? holds(values[0].floats()[i], values[1].floats()[i])
                                                       : holds(values[0].integers()[i], values[1].integers()[i])) ? 1 : 0;
  c.result(c.constant_integer_tensor(values[0].sizes, std::move(result), element_type::boolean));
}
inline void where(node_context& c) {
  const auto values = broadcast_constants(c, {0, 1, 2});
  c.require(values[0].type() == element_type::i64 && values[1].type() == values[2].type(), "operands of wrong element types");
  const auto& condition = values[0].integers();
  const auto choose = [&](auto a, const auto& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (condition[i] == 0) a[i] = b[i];
    return a;
  };
  if (values[1].type() == element_type::f32) c.result(c.constant_float_tensor(values[0].sizes, choose(values[1].floats(), values[2].floats())));
  else c.result(c.constant_integer_tensor(values[0].sizes, choose(values[1].integers(), values[2].integers()), c.operand(1).type));
}
/// Element-wise functions of constants. Negation and absolute value also of computed tensors.
inline void constant_function(node_context& c) {
  c.ignore({"consumed_inputs"});
  const auto& op = c.op();
  const auto x = c.input(0);
  if (!c.at(x).is_constant() && c.at(x).type == element_type::f32) {
    if (op == "Neg") return c.result(c.add(binary{binary_kind::multiply}, {x, c.scalar(-1)}));
    if (op == "Abs") return c.result(c.add(binary{binary_kind::maximum}, {x, c.add(binary{binary_kind::multiply}, {x, c.scalar(-1)})}));
  }
  require_constants(c);
  const shape sizes = c.at(x).sizes;
  require_foldable(c, element_count(sizes));
  if (c.at(x).type != element_type::f32) {
    auto values = c.at(x).data->integers();
    for (auto& v : values) {
      const auto negated = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(v));
      if (op == "Neg") v = negated;
      else if (op == "Abs") v = v < 0 ? negated : v;
      else if (op == "Sign") v = v > 0 ? 1 : v < 0 ? -1 : 0;
      else if (op == "Not") v = v == 0 ? 1 : 0;
      else c.malformed("of integers");
    }
    return c.result(c.constant_integer_tensor(sizes, std::move(values), c.at(x).type));
  }
  auto values = c.at(x).data->floats();
  for (auto& v : values) {
    const double d = double{v};
    double r = d;
    if (op == "Neg") r = -d;
    else if (op == "Abs") r = std::fabs(d);
    else if (op == "Sign") r = d > 0 ? 1 : d < 0 ? -1 : 0;
    else if (op == "Floor") r = std::floor(d);
    else if (op == "Ceil") r = std::ceil(d);
    else if (op == "Round") r = std::nearbyint(d);
    else if (op == "Sqrt") r = std::sqrt(d);
    else if (op == "Exp") r = std::exp(d);
    else if (op == "Log") r = std::log(d);
    else if (op == "Reciprocal") r = 1 / d;
    else c.malformed("of floating-point values");
    v = static_cast<float>(r);
  }
  c.result(c.constant_float_tensor(sizes, std::move(values)));
}
inline void modulo(node_context& c) {
  const bool truncated = c.integer("fmod", 0) != 0;
  const auto values = broadcast_constants(c, {0, 1});
  c.require(values[0].type() == values[1].type(), "operands of different element types");
  if (values[0].type() == element_type::f32) {
    c.require(truncated, "Mod of floating-point values needs fmod = 1");
    auto a = values[0].floats();
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::fmod(a[i], values[1].floats()[i]);
    return c.result(c.constant_float_tensor(values[0].sizes, std::move(a)));
  }
  auto a = values[0].integers();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto b = values[1].integers()[i];
    c.require(b != 0, "division by zero");
    const auto r = b == -1 ? 0 : a[i] % b;
    a[i] = !truncated && r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  c.result(c.constant_integer_tensor(values[0].sizes, std::move(a)));
}
/// Sum, product, maximum or minimum of a constant over axes; none given: over all.
inline void constant_reduce(node_context& c) {
  require_constants(c);
  const auto& op = c.op();
  const std::int64_t last = op == "ReduceSum" ? 12 : 17;
  const shape x = c.sizes(0);
  const bool keep = c.integer("keepdims", 1) != 0, nothing = c.integer("noop_with_empty_axes", 0) != 0;
  const auto axes = c.attribute_or_input("axes", last, 1).value_or(std::vector<std::int64_t>{});
  if (axes.empty() && nothing) return identity(c);
  std::vector<bool> reduced(x.size(), axes.empty());
  for (const auto axis : axes) reduced[static_cast<std::size_t>(resolve_axis(axis, x.size()))] = true;
  require_foldable(c, element_count(x));
  const auto apply_kind = [&](auto a, auto b) {
    if (op == "ReduceSum") return a + b;
    if (op == "ReduceProd") return a * b;
    return op == "ReduceMax" ? std::max(a, b) : std::min(a, b);
  };
  shape kept, result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    kept.push_back(reduced[i] ? 1 : x[i]);
    if (!reduced[i] || keep) result.push_back(kept.back());
  }
  const auto in_strides = row_major_strides(x), out_strides = row_major_strides(kept);
  // Doubles for floats; integers wrap as unsigned and are only compared as signed.
  const auto reduce = [&](const auto& in, auto wide) {
    using wide_type = decltype(wide);
    const auto out_count = static_cast<std::size_t>(element_count(kept));
    std::vector<wide_type> out(out_count);
    std::vector<bool> filled(out_count, false);
    for (std::size_t k = 0; k < in.size(); ++k) {
      std::int64_t target = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!reduced[i]) target += static_cast<std::int64_t>(k) / in_strides[i] % x[i] * out_strides[i];
      const auto t = static_cast<std::size_t>(target);
      out[t] = filled[t] ? apply_kind(out[t], static_cast<wide_type>(in[k])) : static_cast<wide_type>(in[k]);
      filled[t] = true;
    }
    for (std::size_t t = 0; t < out_count; ++t) {
      if (filled[t]) continue;
      c.require(op == "ReduceSum" || op == "ReduceProd", "reduction of nothing");
      out[t] = op == "ReduceProd" ? wide_type{1} : wide_type{0};
    }
    return out;
  };
  if (c.operand(0).type == element_type::f32) {
    std::vector<float> values;
    for (const auto v : reduce(c.operand(0).data->floats(), double{})) values.push_back(static_cast<float>(v));
    return c.result(c.constant_float_tensor(result, std::move(values)));
  }
  const bool compares = op == "ReduceMax" || op == "ReduceMin";
  std::vector<std::int64_t> values;
  if (compares) values = reduce(c.operand(0).data->integers(), std::int64_t{});
  else
    for (const auto v : reduce(c.operand(0).data->integers(), std::uint64_t{})) values.push_back(static_cast<std::int64_t>(v));
  c.result(c.constant_integer_tensor(result, std::move(values)));
}

}  // namespace raptor::onnx_io::convert
