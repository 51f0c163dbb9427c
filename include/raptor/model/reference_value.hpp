#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "raptor/model/tensor.hpp"
#include "raptor/support/box.hpp"
#include "raptor/support/checked.hpp"
#include "raptor/support/error.hpp"

namespace raptor::model {

/// A tensor with its contents, as the reference evaluator takes and gives them: row major, elements shared, never copied.
/// A default-constructed value stands for an optional input that is absent.
struct tensor_value {
  shape sizes;
  constant_ptr data;

  [[nodiscard]] bool present() const noexcept { return data != nullptr; }
  /// f32 or i64; booleans are i64. Requires present().
  [[nodiscard]] element_type type() const noexcept { return data->values.index() == 0 ? element_type::f32 : element_type::i64; }
  [[nodiscard]] const std::vector<float>& floats() const { return data->floats(); }
  [[nodiscard]] const std::vector<std::int64_t>& integers() const { return data->integers(); }
};

/// A value of a shape and its elements. Errors: mismatch, where the number of elements is not that of the shape.
template <class T>
[[nodiscard]] tensor_value make_value(shape sizes, std::vector<T> elements) {
  for (const auto size : sizes)
    if (size < 0) throw error(error_code::mismatch, "negative size in shape " + to_string(sizes));
  if (element_count(sizes) != static_cast<std::int64_t>(elements.size()))
    throw error(error_code::mismatch, "a tensor of shape " + to_string(sizes) + " with " + std::to_string(elements.size()) + " elements");
  return {std::move(sizes), std::make_shared<const constant>(constant{std::move(elements)})};
}

namespace reference {

/// Largest tensor that the evaluator makes, in elements, unless told otherwise: hostile shapes must not exhaust memory.
inline constexpr std::int64_t default_element_limit = std::int64_t{1} << 28;

/// What one operator is evaluated with.
struct call {
  std::span<const tensor_value> inputs;  ///< in ONNX order; absent ones are not present()
  std::span<const shape> outputs;        ///< shapes that shape inference gave
  std::string place;                     ///< the node, for diagnostics
  std::int64_t element_limit = default_element_limit;

  [[nodiscard]] bool has(std::size_t i) const noexcept { return i < inputs.size() && inputs[i].present(); }

  /// Throws `mismatch` at the node unless `condition` holds: operands, attributes or shapes contradict each other.
  void require(bool condition, const std::string& message) const {
    if (!condition) throw error(error_code::mismatch, message, place);
  }
  [[nodiscard]] const tensor_value& input(std::size_t i) const {
    require(has(i), "input " + std::to_string(i) + " is missing");
    return inputs[i];
  }
  /// An input that the operator takes as f32 only. Errors: unsupported, where it is of integers.
  [[nodiscard]] const std::vector<float>& floats(std::size_t i) const {
    const auto& value = input(i);
    if (value.type() != element_type::f32)
      throw error(error_code::unsupported, "input " + std::to_string(i) + " is of integers, where floats are supported", place);
    return value.floats();
  }
  [[nodiscard]] const shape& output(std::size_t i = 0) const {
    require(i < outputs.size(), "output " + std::to_string(i) + " is missing");
    return outputs[i];
  }
  /// Number of elements of a shape, within the limit. Errors: capacity.
  [[nodiscard]] std::size_t count(std::span<const std::int64_t> sizes) const {
    for (const auto size : sizes) require(size >= 0, "negative size in shape " + to_string(sizes));
    const auto elements = element_count(sizes);
    if (elements > element_limit)
      throw error(error_code::capacity, "a tensor of shape " + to_string(sizes) + " is too large to evaluate", place);
    return static_cast<std::size_t>(elements);
  }
  /// The only output, checked against the shape that the inputs and attributes imply.
  void expect_output(const shape& computed) const {
    require(outputs.size() == 1 && outputs[0] == computed,
            "the output should have shape " + to_string(computed) + (outputs.size() == 1 ? ", not " + to_string(outputs[0]) : ""));
  }
};

/// Index into the contents of a tensor; sizes have been checked before.
[[nodiscard]] constexpr std::size_t at(std::int64_t i) noexcept { return static_cast<std::size_t>(i); }

/// Source of every element of an output, one list an axis: the offset that index i of the axis adds, or `outside`.
using axis_offsets = std::vector<std::vector<std::int64_t>>;
inline constexpr std::int64_t outside = -1;

/// out[i, j, …] = in[offsets[0][i] + offsets[1][j] + …], `fill` where any of them is `outside`. Every broadcast and every
/// movement of data is one gather. Cost: linear in the elements of the output.
template <class T>
[[nodiscard]] std::vector<T> gather(const std::vector<T>& in, const axis_offsets& offsets, T fill = T{}) {
  std::size_t count = 1;
  for (const auto& axis : offsets) count *= axis.size();
  std::vector<T> out;
  if (count == 0) return out;
  out.reserve(count);
  struct {
    const std::vector<T>& in;
    const axis_offsets& offsets;
    std::vector<T>& out;
    T fill;
    void axis(std::size_t a, std::int64_t base, bool inside) {
      if (a == offsets.size()) {
        out.push_back(inside ? in[at(base)] : fill);
      } else if (a + 1 == offsets.size()) {
        for (const auto offset : offsets[a]) out.push_back(inside && offset != outside ? in[at(base + offset)] : fill);
      } else {
        for (const auto offset : offsets[a]) axis(a + 1, base + (offset == outside ? 0 : offset), inside && offset != outside);
      }
    }
  } walk{in, offsets, out, fill};
  walk.axis(0, 0, true);
  return out;
}

/// Applies a gather to a value of either element type. `offsets` must address within the value.
[[nodiscard]] inline tensor_value gather(const tensor_value& in, shape sizes, const axis_offsets& offsets, float fill = 0) {
  if (in.type() == element_type::f32) return make_value(std::move(sizes), gather(in.floats(), offsets, fill));
  return make_value(std::move(sizes), gather(in.integers(), offsets, static_cast<std::int64_t>(fill)));
}

/// NumPy broadcast of two shapes. Errors: mismatch.
[[nodiscard]] inline shape broadcast_shape(const call& c, const shape& a, const shape& b) {
  shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto size_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const auto size_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    c.require(size_a == size_b || size_a == 1 || size_b == 1, "shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    result[result.size() - 1 - i] = size_a == 1 ? size_b : size_a;
  }
  return result;
}

/// The value repeated along its axes of size 1 (and along new leading ones) to a shape that it broadcasts to.
[[nodiscard]] inline tensor_value broadcast_to(const call& c, const tensor_value& in, const shape& sizes) {
  if (in.sizes == sizes) return in;
  c.require(broadcast_shape(c, in.sizes, sizes) == sizes, "shape " + to_string(in.sizes) + " does not broadcast to " + to_string(sizes));
  axis_offsets offsets(sizes.size());
  const auto strides = row_major_strides(in.sizes);
  if (c.count(sizes) != 0) {
    const auto lead = sizes.size() - in.sizes.size();
    for (std::size_t d = 0; d < sizes.size(); ++d)
      for (std::int64_t i = 0; i < sizes[d]; ++i)
        offsets[d].push_back(d < lead || in.sizes[d - lead] == 1 ? 0 : i * strides[d - lead]);
  } else {
    offsets.assign(1, {});  // an empty tensor: no axis list may be as long as its largest size
  }
  return gather(in, sizes, offsets);
}

}  // namespace reference
}  // namespace raptor::model
