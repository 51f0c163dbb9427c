#pragma once

#include "raptor/model/operators.hpp"
#include "raptor/model/reference_value.hpp"

/// Reference evaluation of the operators that move elements without arithmetic. They take floats and integers alike.
namespace raptor::model::reference {

/// Fills `offsets` axis by axis with `source(axis, index)`, in elements of the axis; nothing for an empty output.
template <class Source>
[[nodiscard]] tensor_value gather_axes(const call& c, const tensor_value& in, const std::vector<std::int64_t>& strides, float fill,
                                       Source source) {
  const auto& out = c.output();
  axis_offsets offsets(out.size());
  if (c.count(out) == 0) {
    offsets.assign(1, {});
  } else {
    for (std::size_t d = 0; d < out.size(); ++d)
      for (std::int64_t i = 0; i < out[d]; ++i) {
        const std::int64_t index = source(d, i);
        offsets[d].push_back(index == outside ? outside : index * strides[d]);
      }
  }
  return gather(in, out, offsets, fill);
}

[[nodiscard]] inline tensor_value evaluate(const reshape&, const call& c) {
  c.require(element_count(c.input(0).sizes) == element_count(c.output()),
            "a tensor of shape " + to_string(c.input(0).sizes) + " cannot take shape " + to_string(c.output()));
  return {c.output(), c.input(0).data};
}

[[nodiscard]] inline tensor_value evaluate(const transpose& op, const call& c) {
  const auto& in = c.input(0);
  const auto rank = in.sizes.size();
  c.require(op.permutation.size() == rank, "the permutation has not one value an axis");
  std::vector<bool> used(rank);
  const auto in_strides = row_major_strides(in.sizes);
  shape sizes;
  std::vector<std::int64_t> strides;
  for (const auto axis : op.permutation) {
    c.require(axis >= 0 && at(axis) < rank && !used[at(axis)], "not a permutation of the axes");
    used[at(axis)] = true;
    sizes.push_back(in.sizes[at(axis)]);
    strides.push_back(in_strides[at(axis)]);
  }
  c.expect_output(sizes);
  return gather_axes(c, in, strides, 0, [](std::size_t, std::int64_t i) { return i; });
}

[[nodiscard]] inline tensor_value evaluate(const upsample& op, const call& c) {
  const auto& in = c.input(0);
  shape sizes = in.sizes;
  c.require(op.factors.size() == sizes.size(), "not one factor an axis");
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    c.require(op.factors[d] > 0, "a factor is not positive");
    sizes[d] = checked::multiply(sizes[d], op.factors[d]);
  }
  c.expect_output(sizes);
  return gather_axes(c, in, row_major_strides(in.sizes), 0, [&](std::size_t d, std::int64_t i) { return i / op.factors[d]; });
}

[[nodiscard]] inline tensor_value evaluate(const channel_shuffle& op, const call& c) {
  const auto& in = c.input(0);
  c.require(in.sizes.size() >= 2 && op.groups > 0 && in.sizes[1] % op.groups == 0, "the groups do not divide the channels");
  c.expect_output(in.sizes);
  // Output channel j · groups + g is input channel g · (C / groups) + j.
  const auto per_group = in.sizes[1] / op.groups;
  return gather_axes(c, in, row_major_strides(in.sizes), 0, [&](std::size_t d, std::int64_t i) {
    return d == 1 ? i % op.groups * per_group + i / op.groups : i;
  });
}

[[nodiscard]] inline tensor_value evaluate(const slice& op, const call& c) {
  const auto& in = c.input(0);
  const auto& out = c.output();
  const auto rank = in.sizes.size();
  c.require(op.begin.size() == rank && op.step.size() == rank && out.size() == rank, "begin, step and output have not one value an axis");
  for (std::size_t d = 0; d < rank; ++d) {
    if (out[d] <= 0) continue;
    const auto last = checked::add(op.begin[d], checked::multiply(out[d] - 1, op.step[d]));
    c.require(op.begin[d] >= 0 && op.begin[d] < in.sizes[d] && last >= 0 && last < in.sizes[d],
              "axis " + std::to_string(d) + " of the slice leaves the input of shape " + to_string(in.sizes));
  }
  return gather_axes(c, in, row_major_strides(in.sizes), 0,
                     [&](std::size_t d, std::int64_t i) { return op.begin[d] + i * op.step[d]; });
}

/// Reflect repeats the pattern where a pad is longer than the axis, as NumPy does.
[[nodiscard]] inline tensor_value evaluate(const pad& op, const call& c) {
  const auto& in = c.input(0);
  const auto rank = in.sizes.size();
  c.require(op.begin.size() == rank && op.end.size() == rank, "the pads have not one value an axis");
  shape sizes;
  constexpr std::int64_t most = std::int64_t{1} << 62;
  for (std::size_t d = 0; d < rank; ++d) {
    c.require(op.begin[d] > -most && op.begin[d] < most, "a pad of " + std::to_string(op.begin[d]) + " elements");
    sizes.push_back(checked::add(checked::add(op.begin[d], in.sizes[d]), op.end[d]));
    c.require(sizes[d] >= 0, "axis " + std::to_string(d) + " is cropped to less than nothing");
    c.require(op.mode == pad_mode::constant || in.sizes[d] > 0 || sizes[d] == 0, "an empty axis cannot be reflected or repeated");
  }
  c.expect_output(sizes);
  return gather_axes(c, in, row_major_strides(in.sizes), op.value, [&](std::size_t d, std::int64_t i) {
    const std::int64_t size = in.sizes[d];
    std::int64_t index = i - op.begin[d];
    if (index >= 0 && index < size) return index;
    if (op.mode == pad_mode::constant) return outside;
    if (op.mode == pad_mode::edge) return std::clamp(index, std::int64_t{0}, size - 1);
    if (size == 1) return std::int64_t{0};
    const std::int64_t period = 2 * (size - 1);
    index = (index % period + period) % period;
    return index < size ? index : period - index;
  });
}

[[nodiscard]] inline tensor_value evaluate(const concat& op, const call& c) {
  const auto& first = c.input(0);
  c.require(op.axis >= 0 && at(op.axis) < first.sizes.size(), "axis " + std::to_string(op.axis) + " does not exist");
  const auto axis = at(op.axis);
  shape sizes = first.sizes;
  sizes[axis] = 0;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    shape other = c.input(i).sizes;
    c.require(other.size() == sizes.size(), "inputs of different ranks");
    c.require(c.input(i).type() == first.type(), "inputs of different element types");
    sizes[axis] = checked::add(sizes[axis], other[axis]);
    other[axis] = sizes[axis];
    c.require(other == sizes, "input " + std::to_string(i) + " of shape " + to_string(c.input(i).sizes) + " does not fit the others");
  }
  c.expect_output(sizes);
  const auto total = c.count(sizes);
  const auto outer = total == 0 ? 0 : element_count(std::span(sizes).first(axis));
  const auto inner = total == 0 ? 0 : element_count(std::span(sizes).subspan(axis + 1));
  const auto join = [&](auto elements) {
    std::decay_t<decltype(elements(first))> out;
    out.reserve(total);
    for (std::int64_t o = 0; o < outer; ++o)
      for (const auto& in : c.inputs) {
        const auto length = in.sizes[axis] * inner;
        out.insert(out.end(), elements(in).begin() + o * length, elements(in).begin() + (o + 1) * length);
      }
    return make_value(sizes, std::move(out));
  };
  if (first.type() == element_type::f32) return join([](const tensor_value& v) -> const std::vector<float>& { return v.floats(); });
  return join([](const tensor_value& v) -> const std::vector<std::int64_t>& { return v.integers(); });
}

}  // namespace raptor::model::reference
