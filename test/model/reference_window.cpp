#include "raptor/model/reference.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <numeric>
#include <random>

using namespace raptor;
using namespace raptor::model;

namespace {

tensor_value counting(shape sizes) {
  std::vector<float> elements(static_cast<std::size_t>(element_count(sizes)));
  std::iota(elements.begin(), elements.end(), 1.0F);
  return make_value(std::move(sizes), std::move(elements));
}
tensor_value ones(shape sizes) {
  std::vector<float> elements(static_cast<std::size_t>(element_count(sizes)), 1.0F);
  return make_value(std::move(sizes), std::move(elements));
}
tensor_value run(const operation& op, const std::vector<tensor_value>& inputs, const shape& out) {
  return evaluate_node(op, inputs, std::vector<shape>{out}).at(0);
}
error_code code_of(const operation& op, const std::vector<tensor_value>& inputs, const shape& out) {
  try {
    static_cast<void>(run(op, inputs, out));
  } catch (const error& e) {
    return e.code();
  }
  FAIL("nothing was thrown");
  return error_code::internal;
}
convolution conv2(std::int64_t kh, std::int64_t kw, axis_values strides, axis_values begin, axis_values end) {
  return {{kh, kw}, std::move(strides), {1, 1}, std::move(begin), std::move(end), 1};
}
using floats = std::vector<float>;

/// The definition, one output element at a time with every index written out, for two spatial axes.
floats direct(const convolution& op, const tensor_value& x, const tensor_value& w, const tensor_value& b, const shape& out) {
  floats y;
  const auto maps = w.sizes[0] / op.groups;
  for (std::int64_t n = 0; n < out[0]; ++n)
    for (std::int64_t m = 0; m < out[1]; ++m)
      for (std::int64_t oh = 0; oh < out[2]; ++oh)
        for (std::int64_t ow = 0; ow < out[3]; ++ow) {
          double sum = b.floats()[static_cast<std::size_t>(m)];
          for (std::int64_t c = 0; c < w.sizes[1]; ++c)
            for (std::int64_t kh = 0; kh < op.kernel[0]; ++kh)
              for (std::int64_t kw = 0; kw < op.kernel[1]; ++kw) {
                const auto ih = oh * op.strides[0] + kh * op.dilations[0] - op.pads_begin[0];
                const auto iw = ow * op.strides[1] + kw * op.dilations[1] - op.pads_begin[1];
                if (ih < 0 || ih >= x.sizes[2] || iw < 0 || iw >= x.sizes[3]) continue;
                const auto channel = m / maps * w.sizes[1] + c;
                const auto xi = ((n * x.sizes[1] + channel) * x.sizes[2] + ih) * x.sizes[3] + iw;
                const auto wi = ((m * w.sizes[1] + c) * op.kernel[0] + kh) * op.kernel[1] + kw;
                sum += double{x.floats()[static_cast<std::size_t>(xi)]} * double{w.floats()[static_cast<std::size_t>(wi)]};
              }
          y.push_back(static_cast<float>(sum));
        }
  return y;
}

}  // namespace

TEST_CASE("convolution: a 3x3 kernel of ones sums the neighbourhood") {
  const auto x = counting({1, 1, 3, 3});
  CHECK(run(conv2(3, 3, {1, 1}, {0, 0}, {0, 0}), {x, ones({1, 1, 3, 3})}, {1, 1, 1, 1}).floats() == floats{45});
  CHECK(run(conv2(3, 3, {1, 1}, {1, 1}, {1, 1}), {x, ones({1, 1, 3, 3})}, {1, 1, 3, 3}).floats() ==
        floats{12, 21, 16, 27, 45, 33, 24, 39, 28});
}

TEST_CASE("convolution: SAME with an even kernel pads at the beginning or at the end") {
  const auto x = counting({1, 1, 5, 5});
  const auto lower = run(conv2(2, 2, {2, 2}, {1, 1}, {0, 0}), {x, ones({1, 1, 2, 2})}, {1, 1, 3, 3});
  CHECK(lower.floats() == floats{1, 5, 9, 17, 40, 48, 37, 80, 88});
  const auto upper = run(conv2(2, 2, {2, 2}, {0, 0}, {1, 1}), {x, ones({1, 1, 2, 2})}, {1, 1, 3, 3});
  CHECK(upper.floats() == floats{16, 24, 15, 56, 64, 35, 43, 47, 25});
}

TEST_CASE("convolution: bias, groups and channels") {
  // Two groups of one channel, two maps each: map m is channel m / 2 times m + 1, plus a bias.
  const auto x = make_value(shape{1, 2, 1, 2}, floats{1, 2, 10, 20});
  const auto w = make_value(shape{4, 1, 1, 1}, floats{1, 2, 3, 4});
  const auto b = make_value(shape{4}, floats{0, 100, 0, -1});
  convolution op{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 2};
  CHECK(run(op, {x, w, b}, {1, 4, 1, 2}).floats() == floats{1, 2, 102, 104, 30, 60, 39, 79});
  CHECK(run(op, {x, w}, {1, 4, 1, 2}).floats() == floats{1, 2, 2, 4, 30, 60, 40, 80});
  // One group: channels are summed.
  op.groups = 1;
  CHECK(run(op, {x, make_value(shape{1, 2, 1, 1}, floats{1, 0.5F})}, {1, 1, 1, 2}).floats() == floats{6, 12});
}

TEST_CASE("convolution: one and three spatial axes") {
  convolution line{{3}, {1}, {2}, {0}, {0}, 1};
  CHECK(run(line, {counting({1, 1, 6}), make_value(shape{1, 1, 3}, floats{1, 10, 100})}, {1, 1, 2}).floats() == floats{531, 642});
  convolution cube{{2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 1};
  CHECK(run(cube, {counting({1, 1, 2, 2, 2}), counting({1, 1, 2, 2, 2})}, {1, 1, 1, 1, 1}).floats() == floats{204});
}

TEST_CASE("convolution agrees with its definition, element by element, for every combination of attributes") {
  std::mt19937 random(7);
  const auto pick = [&](std::int64_t from, std::int64_t to) { return from + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(to - from + 1)); };
  const auto noise = [&](shape sizes) {
    floats elements(static_cast<std::size_t>(element_count(sizes)));
    for (auto& e : elements) e = static_cast<float>(pick(-64, 64)) / 16;
    return make_value(std::move(sizes), std::move(elements));
  };
  int tried = 0;
  while (tried < 300) {
    const auto groups = pick(1, 3);
    convolution op{{pick(1, 3), pick(1, 4)}, {pick(1, 3), pick(1, 3)}, {pick(1, 2), pick(1, 3)}, {pick(0, 3), pick(0, 3)}, {pick(0, 3), pick(0, 3)}, groups};
    const shape in{pick(1, 2), groups * pick(1, 2), pick(1, 7), pick(1, 7)};
    shape out{in[0], groups * pick(1, 2), 0, 0};
    bool fits = true;
    for (std::size_t a = 0; a < 2; ++a) {
      const auto room = in[a + 2] + op.pads_begin[a] + op.pads_end[a] - (op.kernel[a] - 1) * op.dilations[a] - 1;
      fits = fits && room >= 0;
      out[a + 2] = room / op.strides[a] + 1;
    }
    if (!fits) continue;
    ++tried;
    const auto x = noise(in);
    const auto w = noise({out[1], in[1] / groups, op.kernel[0], op.kernel[1]});
    const auto b = noise({out[1]});
    CHECK(run(op, {x, w, b}, out).floats() == direct(op, x, w, b, out));
  }
}

TEST_CASE("convolution: empty and contradicting operands") {
  const auto op = conv2(1, 1, {1, 1}, {0, 0}, {0, 0});
  CHECK(run(op, {counting({0, 1, 2, 2}), ones({3, 1, 1, 1})}, {0, 3, 2, 2}).floats().empty());
  CHECK(run(op, {counting({1, 0, 1, 1}), ones({1, 0, 1, 1}), ones({1})}, {1, 1, 1, 1}).floats() == floats{1});
  const auto x = counting({1, 2, 3, 3});
  CHECK(code_of(op, {x, ones({1, 1, 1, 1})}, {1, 1, 3, 3}) == error_code::mismatch);              // channels
  CHECK(code_of(op, {x, ones({1, 2, 3, 3})}, {1, 1, 3, 3}) == error_code::mismatch);              // kernel
  CHECK(code_of(op, {x, ones({1, 2, 1, 1})}, {1, 1, 2, 3}) == error_code::mismatch);              // output
  CHECK(code_of(op, {x, ones({1, 2, 1, 1}), ones({2})}, {1, 1, 3, 3}) == error_code::mismatch);   // bias
  CHECK(code_of(op, {x}, {1, 1, 3, 3}) == error_code::mismatch);                                  // no weights
  CHECK(code_of(op, {make_value(shape{1, 1, 1, 1}, std::vector<std::int64_t>{1}), ones({1, 1, 1, 1})}, {1, 1, 1, 1}) == error_code::unsupported);
  auto bad = op;
  bad.strides = {0, 1};
  CHECK(code_of(bad, {x, ones({1, 2, 1, 1})}, {1, 1, 3, 3}) == error_code::mismatch);
  bad = op;
  bad.pads_end = {std::numeric_limits<std::int64_t>::max(), 0};
  CHECK(code_of(bad, {x, ones({1, 2, 1, 1})}, {1, 1, 3, 3}) == error_code::mismatch);
  bad.pads_end = {std::int64_t{1} << 39, std::int64_t{1} << 39};
  CHECK(code_of(bad, {x, ones({1, 2, 1, 1})}, {1, 1, (std::int64_t{1} << 39) + 3, (std::int64_t{1} << 39) + 3}) == error_code::capacity);
}

TEST_CASE("pool: maxima, with pads that never win") {
  const auto x = make_value(shape{1, 1, 2, 2}, floats{-4, -3, -2, -1});
  pool op{pool_kind::max, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  CHECK(run(op, {x}, {1, 1, 3, 3}).floats() == floats{-4, -3, -3, -2, -1, -1, -2, -1, -1});
  op = {pool_kind::max, {2, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
  CHECK(run(op, {x}, {1, 1, 1, 1}).floats() == floats{-1});
  op = {pool_kind::max, {2}, {1}, {2}, {0}, {0}};
  CHECK(run(op, {make_value(shape{1, 1, 4}, floats{5, 9, 1, 2})}, {1, 1, 2}).floats() == floats{5, 9});
}

TEST_CASE("pool: the divisor of an average") {
  const auto x = counting({1, 1, 3, 3});
  pool op{pool_kind::average, {2, 2}, {2, 2}, {1, 1}, {1, 1}, {0, 0}};
  CHECK(run(op, {x}, {1, 1, 2, 2}).floats() == floats{1, 2.5F, 5.5F, 7});
  op.count_include_pad = true;
  CHECK(run(op, {x}, {1, 1, 2, 2}).floats() == floats{0.25F, 1.25F, 2.75F, 7});
  // What ceil_mode adds beyond the pads is never counted.
  op = {pool_kind::average, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}, true};
  CHECK(run(op, {counting({1, 1, 1, 5})}, {1, 1, 1, 3}).floats() == floats{1.5F, 3.5F, 5});
  // Pads and ceil_mode at once: the last window covers element 4, one pad, and one place beyond.
  op = {pool_kind::average, {3}, {3}, {1}, {0}, {1}, true};
  CHECK(run(op, {counting({1, 1, 4})}, {1, 1, 2}).floats() == floats{2, 2});
  op.count_include_pad = false;
  CHECK(run(op, {counting({1, 1, 4})}, {1, 1, 2}).floats() == floats{2, 4});
  // Dilated: elements 0 and 2, 1 and 3.
  op = {pool_kind::average, {2}, {1}, {2}, {0}, {0}};
  CHECK(run(op, {counting({1, 1, 4})}, {1, 1, 2}).floats() == floats{2, 3});
}

TEST_CASE("pool: ceil_mode leaves out a last window that begins in the padding at the end") {
  // Eight windows fit; the last one begins behind the data.
  const pool op{pool_kind::max, {2}, {1}, {1}, {3}, {3}};
  CHECK(pool_shape(op, {1, 1, 3}, true) == shape{1, 1, 7});
  constexpr float lowest = std::numeric_limits<float>::lowest();
  CHECK(run(op, {counting({1, 1, 3})}, {1, 1, 7}).floats() == floats{lowest, lowest, 1, 2, 3, 3, lowest});
  CHECK(run(op, {counting({1, 1, 3})}, {1, 1, 8}).floats() == floats{lowest, lowest, 1, 2, 3, 3, lowest, lowest});
  CHECK(code_of(op, {counting({1, 1, 3})}, {1, 1, 6}) == error_code::mismatch);
  // Stride 3 over 2 elements and pads 2: a third window would begin at 4, in the padding at the end.
  const pool wide{pool_kind::average, {2}, {3}, {1}, {2}, {3}, true};
  const auto out = pool_shape(wide, {1, 1, 2}, true);
  CHECK(run(wide, {counting({1, 1, 2})}, out).sizes == out);
}

TEST_CASE("pool: windows wholly in padding, whole images, three spatial axes") {
  pool op{pool_kind::max, {1}, {1}, {1}, {1}, {0}};
  CHECK(run(op, {counting({1, 1, 1})}, {1, 1, 2}).floats() == floats{std::numeric_limits<float>::lowest(), 1});
  op.kind = pool_kind::average;
  CHECK(run(op, {counting({1, 1, 1})}, {1, 1, 2}).floats() == floats{0, 1});
  op = {pool_kind::average, {2, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
  CHECK(run(op, {counting({2, 2, 2, 3})}, {2, 2, 1, 1}).floats() == floats{3.5F, 9.5F, 15.5F, 21.5F});
  op = {pool_kind::max, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}};
  CHECK(run(op, {counting({1, 1, 2, 2, 4})}, {1, 1, 1, 1, 2}).floats() == floats{14, 16});
}

TEST_CASE("pool: hostile kernels end at the image") {
  const std::int64_t huge = std::int64_t{1} << 39;
  pool op{pool_kind::average, {huge, huge, huge}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {huge, huge, huge}, true};
  const auto x = counting({1, 1, 1, 1, 1});
  CHECK(code_of(op, {x}, {1, 1, 2, 2, 2}) == error_code::capacity);  // the divisor overflows
  op.count_include_pad = false;
  CHECK(run(op, {x}, {1, 1, 2, 2, 2}).floats() == floats{1, 0, 0, 0, 0, 0, 0, 0});
  op.kernel[0] = std::numeric_limits<std::int64_t>::max();
  CHECK(code_of(op, {x}, {1, 1, 2, 2, 2}) == error_code::mismatch);
  op = {pool_kind::max, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
  CHECK(code_of(op, {counting({1, 1, 2, 2})}, {1, 1, 1, 1}) == error_code::mismatch);  // no window fits
  CHECK(code_of(op, {counting({1, 1, 3, 3})}, {1, 2, 1, 1}) == error_code::mismatch);
  op.kernel = {3};
  CHECK(code_of(op, {counting({1, 1, 3, 3})}, {1, 1, 1, 1}) == error_code::mismatch);
}
