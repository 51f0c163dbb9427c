#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "raptor/onnx/convert_functions.hpp"
#include "raptor/onnx/convert_layers.hpp"
#include "raptor/onnx/convert_movement.hpp"

/// Operators that change the resolution or regroup space and channels, and convolutions that are made of others.
/// Source: ONNX Operators.md, Changelog.md.
namespace raptor::onnx_io::convert {

inline tensor_id transposed(node_context& c, tensor_id t, axis_values permutation) { return c.add(transpose{std::move(permutation)}, {t}); }

inline void depth_to_space(node_context& c) {
  const shape x = c.sizes(0);
  const auto b = c.integer("blocksize", 0);
  const std::string mode = c.text("mode", "DCR");
  c.require(x.size() == 4 && b > 0 && b <= 1 << 15 && x[1] % (b * b) == 0, "the data does not fit the block size");
  c.require(mode == "DCR" || mode == "CRD", "mode \"" + mode + "\" is unknown");
  const auto channels = x[1] / (b * b);
  const bool depth_first = mode == "DCR";
  auto t = c.reshaped(c.input(0), depth_first ? shape{x[0], b, b, channels, x[2], x[3]} : shape{x[0], channels, b, b, x[2], x[3]});
  t = transposed(c, t, depth_first ? axis_values{0, 3, 4, 1, 5, 2} : axis_values{0, 1, 4, 2, 5, 3});
  c.result(c.reshaped(t, {x[0], channels, x[2] * b, x[3] * b}));
}
inline void space_to_depth(node_context& c) {
  const shape x = c.sizes(0);
  const auto b = c.integer("blocksize", 0);
  c.require(x.size() == 4 && b > 0 && b <= 1 << 15 && x[2] % b == 0 && x[3] % b == 0, "the data does not fit the block size");
  auto t = c.reshaped(c.input(0), {x[0], x[1], x[2] / b, b, x[3] / b, b});
  t = transposed(c, t, {0, 3, 5, 1, 2, 4});
  c.result(c.reshaped(t, {x[0], x[1] * b * b, x[2] / b, x[3] / b}));
}

/// How one axis is resampled: the weights [in, out], row major, of a product with the data.
struct resampling {
  std::string mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic = -0.75, extrapolation = 0;
  bool exclude_outside = false;
};
/// Coordinate in the input of element `o` of the output.
[[nodiscard]] inline double source_coordinate(const resampling& r, std::int64_t o, std::int64_t in, std::int64_t out, double scale, double begin, double end) {
  const auto x = static_cast<double>(o), size = static_cast<double>(in), length = static_cast<double>(out);
  if (r.coordinates == "asymmetric") return x / scale;
  if (r.coordinates == "align_corners") return out == 1 ? 0 : x * (size - 1) / (length - 1);
  if (r.coordinates == "pytorch_half_pixel") return out > 1 ? (x + 0.5) / scale - 0.5 : 0;
  if (r.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (r.coordinates == "tf_crop_and_resize") return out > 1 ? begin * (size - 1) + x * (end - begin) * (size - 1) / (length - 1) : 0.5 * (begin + end) * (size - 1);
  if (r.coordinates == "half_pixel_symmetric") return size / 2 * (1 - length / (scale * size)) + (x + 0.5) / scale - 0.5;
  return (x + 0.5) / scale - 0.5;
}
/// Index of the nearest element, cut to the axis.
[[nodiscard]] inline std::int64_t nearest_index(const resampling& r, double x, std::int64_t in) {
  double index = std::floor(x + 0.5);
  if (r.nearest == "floor") index = std::floor(x);
  else if (r.nearest == "ceil") index = std::ceil(x);
  else if (r.nearest == "round_prefer_floor") index = std::ceil(x - 0.5);
  return std::clamp(static_cast<std::int64_t>(std::clamp(index, -1.0, static_cast<double>(in))), std::int64_t{0}, in - 1);
}
/// Weight of each tap around x, as (index, weight) pairs.
[[nodiscard]] inline std::vector<std::pair<std::int64_t, double>> resampling_taps(const resampling& r, double x, std::int64_t in) {
  std::vector<std::pair<std::int64_t, double>> taps;
  if (r.mode == "nearest") return {{nearest_index(r, x, in), 1.0}};
  const auto base = static_cast<std::int64_t>(std::floor(std::clamp(x, -8.0, static_cast<double>(in) + 8)));
  const double f = std::clamp(x, -8.0, static_cast<double>(in) + 8) - static_cast<double>(base);
  if (r.mode == "linear") {
    taps = {{base, 1 - f}, {base + 1, f}};
  } else {
    const double a = r.cubic;
    const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    taps = {{base - 1, far(1 + f)}, {base, near(f)}, {base + 1, near(1 - f)}, {base + 2, far(2 - f)}};
  }
  if (r.exclude_outside) {
    double sum = 0;
    for (auto& [index, weight] : taps) {
      if (index < 0 || index >= in) weight = 0;
      sum += weight;
    }
    for (auto& tap : taps) tap.second = sum == 0 ? 0 : tap.second / sum;
  }
  for (auto& tap : taps) tap.first = std::clamp(tap.first, std::int64_t{0}, in - 1);
  return taps;
}
/// Resampling of one axis: an enlargement where it repeats every element equally often, else a product with a constant matrix.
/// `outside` gets the elements that lie beyond the data and are to be extrapolated; they are 0 here.
inline tensor_id resampled(node_context& c, tensor_id t, std::size_t axis, std::int64_t out, double scale, const resampling& r, double begin, double end,
                           std::vector<bool>& outside) {
  const shape sizes = c.at(t).sizes;
  const auto in = sizes[axis], rank = static_cast<std::int64_t>(sizes.size());
  const auto coordinate = [&](std::int64_t o) { return source_coordinate(r, o, in, out, scale, begin, end); };
  bool repeats = out % in == 0 && r.mode == "nearest";
  for (std::int64_t o = 0; o < out; ++o) {
    const double x = coordinate(o);
    c.require(std::isfinite(x), "the coordinates are not finite");
    outside.push_back(r.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(in - 1)));
    repeats = repeats && !outside.back() && nearest_index(r, x, in) == o / (out / in);
  }
  if (repeats) {
    upsample op{axis_values(sizes.size(), 1)};
    op.factors[axis] = out / in;
    return c.add(std::move(op), {t});
  }
  if (checked::multiply(in, out) > fold_element_limit) c.unsupported("resampling from " + std::to_string(in) + " to " + std::to_string(out) + " elements");
  std::vector<float> weights(static_cast<std::size_t>(in * out), 0.0F);
  for (std::int64_t o = 0; o < out; ++o) {
    if (outside[static_cast<std::size_t>(o)]) continue;
    for (const auto& [index, weight] : resampling_taps(r, coordinate(o), in)) weights[static_cast<std::size_t>(index * out + o)] += static_cast<float>(weight);
  }
  axis_values swap;
  for (std::int64_t d = 0; d < rank; ++d) swap.push_back(d);
  std::swap(swap[axis], swap.back());
  const bool turns = axis + 1 != sizes.size();
  if (turns) t = transposed(c, t, swap);
  t = c.add(matmul{}, {t, c.constant_float_tensor({in, out}, std::move(weights))});
  return turns ? transposed(c, t, swap) : t;
}
/// Scales of all axes, and sizes where they are given; merges enlargements of several axes into one operator.
inline void resample_all(node_context& c, const std::vector<double>& scales, const shape& target, const resampling& r, const std::vector<double>& roi = {}) {
  const shape sizes = c.sizes(0);
  const auto rank = sizes.size();
  auto t = c.input(0);
  if (is_empty(whole(target)) || is_empty(whole(sizes))) c.unsupported("empty data");
  for (std::size_t d = 0; d < rank; ++d)
    if (target[d] != sizes[d] && target[d] > fold_element_limit) c.unsupported("resampling to more than 2^24 elements of an axis");
  upsample all{axis_values(rank, 1)};
  bool simple = r.mode == "nearest";
  for (std::size_t d = 0; d < rank && simple; ++d) {
    simple = target[d] % sizes[d] == 0;
    if (!simple || (target[d] == sizes[d] && scales[d] == 1)) continue;
    all.factors[d] = target[d] / sizes[d];
    for (std::int64_t o = 0; o < target[d] && simple; ++o)
      simple = r.coordinates != "tf_crop_and_resize" && nearest_index(r, source_coordinate(r, o, sizes[d], target[d], scales[d], 0, 1), sizes[d]) == o / all.factors[d];
  }
  if (simple && target != sizes) return c.result(c.add(std::move(all), {t}));
  std::vector<std::vector<bool>> outside(rank);
  shape beyond(rank, 1);  // of what is added outside: 1 for axes that have no outside
  bool extrapolates = false;
  for (std::size_t d = 0; d < rank; ++d) {
    const bool crops = r.coordinates == "tf_crop_and_resize";
    const double begin = crops ? roi.at(d) : 0, end = crops ? roi.at(d + rank) : 1;
    if (target[d] == sizes[d] && scales[d] == 1 && begin == 0 && end == 1) continue;
    t = resampled(c, t, d, target[d], scales[d], r, begin, end, outside[d]);
    if (std::find(outside[d].begin(), outside[d].end(), true) == outside[d].end()) {
      outside[d].assign(1, false);
    } else {
      beyond[d] = target[d];
      extrapolates = r.extrapolation != 0;
    }
  }
  if (extrapolates) {
    const auto count = element_count(beyond);
    if (count > fold_element_limit) c.unsupported("extrapolation to more than 2^24 elements");
    std::vector<float> added(static_cast<std::size_t>(count), 0.0F);
    const auto strides = row_major_strides(beyond);
    for (std::int64_t i = 0; i < count; ++i)
      for (std::size_t d = 0; d < rank; ++d)
        if (!outside[d].empty() && outside[d][static_cast<std::size_t>(i / strides[d] % beyond[d])]) added[static_cast<std::size_t>(i)] = static_cast<float>(r.extrapolation);
    t = plus(c, t, c.constant_float_tensor(beyond, std::move(added)));
  }
  c.result(t == c.input(0) ? function(c, unary_kind::identity, t) : t);
}
[[nodiscard]] inline shape scaled_shape(node_context& c, const shape& sizes, const std::vector<double>& scales) {
  c.require(scales.size() == sizes.size(), "scales must have one value an axis");
  shape target;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    c.require(scales[d] > 0 && scales[d] < 1e6, "scales must be positive");
    target.push_back(static_cast<std::int64_t>(std::floor(static_cast<double>(sizes[d]) * scales[d])));
  }
  return checked_shape(std::move(target));
}
/// Contents of a constant input of floats.
[[nodiscard]] inline std::vector<double> constant_reals(node_context& c, std::size_t i, const std::string& what) {
  const auto& t = c.operand(i);
  if (!t.is_constant()) c.unsupported(what + " (input \"" + t.name + "\") is computed at run time, it must be constant");
  c.require(t.type == element_type::f32, what + " must be floats");
  return {t.data->floats().begin(), t.data->floats().end()};
}
/// Upsample (opset 7 to 9): floor of the asymmetric coordinates.
inline void upsample_node(node_context& c) {
  resampling r;
  r.mode = c.text("mode", "nearest");
  r.coordinates = "asymmetric", r.nearest = "floor";
  if (r.mode != "nearest" && r.mode != "linear" && r.mode != "bilinear") c.unsupported("mode \"" + r.mode + "\"");
  if (r.mode == "bilinear") r.mode = "linear";
  std::vector<double> scales;
  if (c.opset() >= 9) {
    scales = constant_reals(c, 1, "scales");
  } else {
    const auto* a = c.attribute("scales", ::onnx::AttributeProto::FLOATS);
    c.require(a != nullptr, "scales are missing");
    scales.assign(a->floats().begin(), a->floats().end());
  }
  const shape target = scaled_shape(c, c.sizes(0), scales);
  resample_all(c, scales, target, r);
}
inline void resize(node_context& c) {
  const shape sizes = c.sizes(0);
  resampling r;
  r.mode = c.text("mode", "nearest");
  if (r.mode != "nearest" && r.mode != "linear" && r.mode != "cubic") c.unsupported("mode \"" + r.mode + "\"");
  std::vector<double> scales, roi;
  shape target;
  if (c.opset() < 11) {
    r.coordinates = "asymmetric", r.nearest = "floor";
    scales = constant_reals(c, 1, "scales");
    target = scaled_shape(c, sizes, scales);
    return resample_all(c, scales, target, r);
  }
  r.coordinates = c.text("coordinate_transformation_mode", "half_pixel");
  r.nearest = c.text("nearest_mode", "round_prefer_floor");
  r.cubic = double{c.real("cubic_coeff_a", -0.75F)};
  r.extrapolation = double{c.real("extrapolation_value", 0)};
  r.exclude_outside = c.integer("exclude_outside", 0) != 0;
  constexpr const char* known[] = {"half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  if (std::find(std::begin(known), std::end(known), r.coordinates) == std::end(known)) c.unsupported("coordinates \"" + r.coordinates + "\"");
  if (c.integer("antialias", 0) != 0) c.unsupported("antialias");
  if (c.has_attribute("axes")) c.unsupported("axes");
  if (c.text("keep_aspect_ratio_policy", "stretch") != "stretch") c.unsupported("keep_aspect_ratio_policy");
  if (r.coordinates == "tf_crop_and_resize") {
    c.require(c.has(1), "roi is missing");
    roi = constant_reals(c, 1, "roi");
    c.require(roi.size() == 2 * sizes.size(), "roi must have two values an axis");
  }
  const bool by_scale = c.has(2) && element_count(c.sizes(2)) > 0;
  if (by_scale) {
    scales = constant_reals(c, 2, "scales");
    target = scaled_shape(c, sizes, scales);
  } else {
    c.require(c.has(3), "scales or sizes are missing");
    const auto given = c.constant_integers(3, "sizes");
    c.require(given.size() == sizes.size(), "sizes must have one value an axis");
    target = checked_shape(shape(given.begin(), given.end()));
    for (std::size_t d = 0; d < sizes.size(); ++d) scales.push_back(static_cast<double>(target[d]) / static_cast<double>(std::max<std::int64_t>(sizes[d], 1)));
  }
  resample_all(c, scales, target, r, roi);
}

/// A convolution whose weights are computed: one slice of the padded data a tap, put together as patches [N, groups, K, P], and a product
/// of computed matrices with them. Errors: unsupported beyond 1024 taps.
inline tensor_id convolution_of_computed(node_context& c, tensor_id x, tensor_id w, const convolution& op) {
  const shape in = c.at(x).sizes, weights = c.at(w).sizes, out = convolution_shape(op, in, weights);
  const auto spatial = in.size() - 2;
  const auto taps = element_count(op.kernel);
  if (taps > 1024) c.unsupported("computed weights with more than 1024 taps");
  pad around{axis_values(in.size(), 0), axis_values(in.size(), 0), pad_mode::constant, 0};
  bool pads = false;
  for (std::size_t i = 0; i < spatial; ++i) {
    around.begin[i + 2] = op.pads_begin[i], around.end[i + 2] = op.pads_end[i];
    pads = pads || op.pads_begin[i] > 0 || op.pads_end[i] > 0;
  }
  if (pads) x = c.add(around, {x});
  shape positions(out.begin() + 2, out.end());
  const auto p = element_count(positions);
  std::vector<tensor_id> patches;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    slice part{axis_values(in.size(), 0), axis_values(in.size(), 1)};
    shape sizes = in;
    auto rest = tap;
    for (std::size_t i = spatial; i-- > 0; rest /= op.kernel[i]) {
      part.begin[i + 2] = rest % op.kernel[i] * op.dilations[i];
      part.step[i + 2] = op.strides[i];
      sizes[i + 2] = out[i + 2];
    }
    patches.push_back(c.reshaped(c.add(std::move(part), {x}, std::move(sizes)), {in[0], op.groups, in[1] / op.groups, 1, p}));
  }
  const auto k = in[1] / op.groups * taps;
  const auto all = taps == 1 ? patches[0] : c.add(concat{3}, std::move(patches));
  const auto product = c.add(matmul{}, {c.reshaped(w, {1, op.groups, weights[0] / op.groups, k}), c.reshaped(all, {in[0], op.groups, k, p})});
  return c.reshaped(product, out);
}
/// Adds a bias of one value a channel, where there is one.
inline tensor_id with_bias(node_context& c, tensor_id t, std::size_t input) {
  return c.has(input) ? plus(c, t, by_channel(c, input, c.at(t).sizes)) : t;
}
inline void any_conv(node_context& c) {
  bool constant = c.operand(1).is_constant() && (!c.has(2) || c.operand(2).is_constant());
  if (constant || c.sizes(1).size() != c.sizes(0).size() || (c.sizes(0).size() != 3 && c.sizes(0).size() != 4)) return conv(c);
  const shape x = c.sizes(0), w = c.sizes(1);
  convolution op;
  op.groups = c.integer("group", 1);
  read_window(c, op, x, shape(w.begin() + 2, w.end()));
  static_cast<void>(convolution_shape(op, x, w));
  const auto value = c.operand(1).is_constant() ? c.add(op, {c.input(0), c.input(1)}) : convolution_of_computed(c, c.input(0), c.input(1), op);
  c.result(with_bias(c, value, 2));
}
/// Transposed convolution: the data with zeros between its elements, convolved with the weights turned around.
inline void conv_transpose(node_context& c) {
  const shape x = c.sizes(0), w = c.sizes(1);
  require_image(c, x, "transposed convolution");
  c.require(x.size() == w.size() && x[1] == w[0], "data and weights do not fit");
  const auto spatial = x.size() - 2;
  const auto groups = c.integer("group", 1);
  c.require(groups > 0 && w[0] % groups == 0, "group does not divide the channels");
  const auto per_axis = [&](std::string_view attribute, std::size_t count, std::int64_t otherwise, std::int64_t least) {
    auto values = c.integers(attribute).value_or(axis_values(count, otherwise));
    c.require(values.size() == count, std::string(attribute) + " must have " + std::to_string(count) + " values");
    for (const auto v : values) c.require(v >= least && v <= max_elements, std::string(attribute) + " is out of range");
    return values;
  };
  const auto kernel = per_axis("kernel_shape", spatial, 0, 0);
  const shape own(w.begin() + 2, w.end());
  c.require(!c.has_attribute("kernel_shape") || kernel == own, "kernel_shape does not agree with the weights");
  const auto strides = per_axis("strides", spatial, 1, 1), dilations = per_axis("dilations", spatial, 1, 1), extra = per_axis("output_padding", spatial, 0, 0);
  auto pads = per_axis("pads", 2 * spatial, 0, 0);
  const std::string mode = c.text("auto_pad", "NOTSET");
  const auto wanted = c.integers("output_shape");
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER") c.malformed("auto_pad \"" + mode + "\" is unknown");
  if (wanted) c.require(wanted->size() == spatial || wanted->size() == x.size(), "output_shape must have one value a spatial axis");
  auto t = c.input(0);
  convolution op;
  op.groups = groups;
  op.kernel = own, op.dilations = dilations, op.strides = axis_values(spatial, 1);
  op.pads_begin = op.pads_end = axis_values(spatial, 0);
  pad around{axis_values(x.size(), 0), axis_values(x.size(), 0), pad_mode::constant, 0};
  for (std::size_t i = 0; i < spatial; ++i) {
    c.require(own[i] > 0 && x[i + 2] > 0, "empty data or weights");
    const auto span = checked::add(checked::multiply(own[i] - 1, dilations[i]), std::int64_t{1});
    const auto full = checked::add(checked::add(checked::multiply(x[i + 2] - 1, strides[i]), span), extra[i]);
    const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (wanted || same) {
      const auto size = wanted ? (*wanted)[wanted->size() - spatial + i] : checked::multiply(x[i + 2], strides[i]);
      c.require(size >= 0, "output_shape is negative");
      const auto total = full - size, half = total >= 0 ? total / 2 : -((1 - total) / 2);
      // The odd element at the end for SAME_UPPER, else at the beginning.
      pads[i] = mode == "SAME_UPPER" ? half : total - half;
      pads[i + spatial] = total - pads[i];
    } else if (mode == "VALID") {
      pads[i] = pads[i + spatial] = 0;
    }
    if (strides[i] > 1) {  // [.., s, ..] → [.., s, 1, ..] → zeros after each → [.., s · stride, ..] → without the last ones
      const shape now = c.at(t).sizes;
      shape apart = now;
      apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(i) + 3, 1);
      pad zeros{axis_values(apart.size(), 0), axis_values(apart.size(), 0), pad_mode::constant, 0};
      zeros.end[i + 3] = strides[i] - 1;
      shape joined = now;
      joined[i + 2] = checked::multiply(now[i + 2], strides[i]);
      t = c.reshaped(c.add(std::move(zeros), {c.reshaped(t, apart)}), std::move(joined));
      around.end[i + 2] -= strides[i] - 1;
    }
    around.begin[i + 2] += span - 1 - pads[i];
    around.end[i + 2] += span - 1 - pads[i + spatial] + extra[i];
  }
  bool pads_any = false;
  for (std::size_t d = 0; d < x.size(); ++d) pads_any = pads_any || around.begin[d] != 0 || around.end[d] != 0;
  if (pads_any) t = c.add(around, {t});
  // [C, M / groups, k…] turned around in space → [M, C / groups, k…].
  slice turned{axis_values(w.size(), 0), axis_values(w.size(), 1)};
  for (std::size_t i = 2; i < w.size(); ++i) turned.begin[i] = w[i] - 1, turned.step[i] = -1;
  auto weights = c.add(std::move(turned), {c.input(1)}, w);
  shape grouped{groups, w[0] / groups, w[1]}, result{w[1] * groups, w[0] / groups};
  axis_values permutation{0, 2, 1};
  for (std::size_t i = 2; i < w.size(); ++i) {
    grouped.push_back(w[i]), result.push_back(w[i]);
    permutation.push_back(static_cast<std::int64_t>(i) + 1);
  }
  weights = c.reshaped(transposed(c, c.reshaped(weights, grouped), permutation), result);
  static_cast<void>(convolution_shape(op, c.at(t).sizes, result));
  const auto value = c.at(weights).is_constant() ? c.add(op, {t, weights}) : convolution_of_computed(c, t, weights, op);
  c.result(with_bias(c, value, 2));
}

}  // namespace raptor::onnx_io::convert
