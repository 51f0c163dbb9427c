#include "raptor/onnx/convert_recurrent.hpp"

#include <cmath>
#include <functional>

#include "import_support.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

namespace {

constexpr std::size_t steps = 4, batch = 2, inputs = 3, hidden = 2;
using matrix = std::vector<double>;

/// Deterministic elements in (−1, 1).
std::vector<float> elements(std::size_t count, std::uint32_t seed) {
  std::vector<float> v(count);
  for (auto& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(seed >> 8) / 8388608.0F - 1.0F;
  }
  return v;
}
struct layer {
  std::string op, direction = "forward";
  std::size_t directions = 1;
  bool bias = true, state = true, peepholes = false, linear_first = false, constant = true, batch_first = false;
  std::vector<std::int64_t> lengths;

  [[nodiscard]] std::size_t gates() const { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }
};
/// The weights and states of a layer, as in the file but with directions first.
struct data {
  std::vector<float> x, w, r, b, h, c, p;
  explicit data(const layer& l) {
    const auto d = l.directions, g = l.gates();
    x = elements(steps * batch * inputs, 1), w = elements(d * g * hidden * inputs, 2), r = elements(d * g * hidden * hidden, 3);
    b = elements(d * 2 * g * hidden, 4), h = elements(d * batch * hidden, 5), c = elements(d * batch * hidden, 6), p = elements(d * 3 * hidden, 7);
    if (!l.bias) b.assign(b.size(), 0);
    if (!l.state) h.assign(h.size(), 0), c.assign(c.size(), 0);
    if (!l.peepholes) p.assign(p.size(), 0);
  }
};
double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

struct outputs {
  std::vector<float> y, h, c;
};
/// The equations of the standard, one element after the other. y [steps, directions, batch, hidden].
outputs direct(const layer& l, const data& v) {
  outputs out;
  out.y.assign(steps * l.directions * batch * hidden, 0);
  out.h.resize(l.directions * batch * hidden), out.c.resize(out.h.size());
  const auto g = l.gates();
  for (std::size_t d = 0; d < l.directions; ++d)
    for (std::size_t n = 0; n < batch; ++n) {
      const std::size_t length = l.lengths.empty() ? steps : static_cast<std::size_t>(l.lengths[n]);
      std::vector<double> h(hidden), c(hidden);
      for (std::size_t j = 0; j < hidden; ++j) h[j] = double{v.h[(d * batch + n) * hidden + j]}, c[j] = double{v.c[(d * batch + n) * hidden + j]};
      for (std::size_t i = 0; i < length; ++i) {
        const bool backward = l.direction == "reverse" || d == 1;
        const auto t = backward ? length - 1 - i : i;
        const auto from_input = [&](std::size_t gate, std::size_t j) {
          double sum = double{v.b[d * 2 * g * hidden + gate * hidden + j]};
          for (std::size_t k = 0; k < inputs; ++k) sum += double{v.x[(t * batch + n) * inputs + k]} * double{v.w[((d * g + gate) * hidden + j) * inputs + k]};
          return sum;
        };
        const auto from_state = [&](std::size_t gate, std::size_t j, const std::vector<double>& state) {
          double sum = double{v.b[d * 2 * g * hidden + (g + gate) * hidden + j]};
          for (std::size_t k = 0; k < hidden; ++k) sum += state[k] * double{v.r[((d * g + gate) * hidden + j) * hidden + k]};
          return sum;
        };
        std::vector<double> next(hidden), next_c = c;
        for (std::size_t j = 0; j < hidden; ++j) {
          const auto both = [&](std::size_t gate) { return from_input(gate, j) + from_state(gate, j, h); };
          const auto peek = [&](std::size_t which) { return double{v.p[(d * 3 + which) * hidden + j]}; };
          if (l.op == "RNN") next[j] = std::tanh(both(0));
          if (l.op == "GRU") {
            const double z = sigmoid(both(0));
            std::vector<double> gated(hidden);
            for (std::size_t k = 0; k < hidden; ++k) gated[k] = sigmoid(from_input(1, k) + from_state(1, k, h)) * h[k];
            const double candidate = l.linear_first ? std::tanh(from_input(2, j) + sigmoid(both(1)) * from_state(2, j, h)) : std::tanh(from_input(2, j) + from_state(2, j, gated));
            next[j] = (1 - z) * candidate + z * h[j];
          }
          if (l.op == "LSTM") {
            const double in = sigmoid(both(0) + peek(0) * c[j]), forget = sigmoid(both(2) + peek(2) * c[j]);
            next_c[j] = forget * c[j] + in * std::tanh(both(3));
            next[j] = sigmoid(both(1) + peek(1) * next_c[j]) * std::tanh(next_c[j]);
          }
        }
        h = next, c = next_c;
        for (std::size_t j = 0; j < hidden; ++j) out.y[((t * l.directions + d) * batch + n) * hidden + j] = static_cast<float>(h[j]);
      }
      for (std::size_t j = 0; j < hidden; ++j) {
        out.h[(d * batch + n) * hidden + j] = static_cast<float>(h[j]);
        out.c[(d * batch + n) * hidden + j] = static_cast<float>(c[j]);
      }
    }
  return out;
}
/// [a, b, …] → [b, a, …].
std::vector<float> swapped(const std::vector<float>& v, std::size_t a, std::size_t b) {
  const auto inner = v.size() / (a * b);
  std::vector<float> result(v.size());
  for (std::size_t i = 0; i < a; ++i)
    for (std::size_t j = 0; j < b; ++j)
      for (std::size_t k = 0; k < inner; ++k) result[(j * a + i) * inner + k] = v[(i * b + j) * inner + k];
  return result;
}
void check(const layer& l) {
  CAPTURE(l.op);
  CAPTURE(l.direction);
  CAPTURE(l.bias);
  CAPTURE(l.state);
  CAPTURE(l.peepholes);
  CAPTURE(l.linear_first);
  CAPTURE(l.constant);
  CAPTURE(l.batch_first);
  const data v(l);
  const auto d = static_cast<std::int64_t>(l.directions), g = static_cast<std::int64_t>(l.gates());
  constexpr auto s = static_cast<std::int64_t>(steps), n = static_cast<std::int64_t>(batch), in = static_cast<std::int64_t>(inputs), hid = static_cast<std::int64_t>(hidden);
  auto b = at_opset(14);
  std::vector<std::vector<float>> given;
  const auto add = [&](const std::string& name, const shape& sizes, const std::vector<float>& values, bool constant) {
    if (constant) return b.initializer(name, sizes, std::span<const float>(values));
    given.push_back(values);
    return b.input(name, sizes);
  };
  std::vector<std::string> names{add("x", l.batch_first ? shape{n, s, in} : shape{s, n, in}, l.batch_first ? swapped(v.x, steps, batch) : v.x, false),
                                 add("w", {d, g * hid, in}, v.w, l.constant), add("r", {d, g * hid, hid}, v.r, l.constant)};
  const auto state = [&](const std::string& name, const std::vector<float>& values) {
    return add(name, l.batch_first ? shape{n, d, hid} : shape{d, n, hid}, l.batch_first ? swapped(values, l.directions, batch) : values, false);
  };
  names.push_back(l.bias ? add("b", {d, 2 * g * hid}, v.b, l.constant) : "");
  names.push_back(l.lengths.empty() ? "" : b.integers("lengths", l.lengths));
  names.push_back(l.state ? state("h", v.h) : "");
  if (l.op == "LSTM") {
    names.push_back(l.state ? state("c", v.c) : "");
    if (l.peepholes) names.push_back(add("p", {d, 3 * hid}, v.p, l.constant));
  }
  while (names.back().empty()) names.pop_back();
  auto node = b.node(l.op, names, "y", l.op == "LSTM" ? 3 : 2);
  node.attribute("hidden_size", hid).attribute("direction", l.direction);
  if (l.linear_first) node.attribute("linear_before_reset", 1);
  if (l.batch_first) node.attribute("layout", 1);
  std::vector<std::string> wanted;
  for (int i = 0; i < node.proto().output_size(); ++i) wanted.push_back(node.output(i));
  const auto y = run(finish(std::move(b), wanted), given);
  auto expected = direct(l, v);
  if (l.batch_first) {
    // [steps, directions, batch, hidden] → [batch, steps, directions, hidden]
    expected.y = swapped(expected.y, steps * l.directions, batch);
    expected.h = swapped(expected.h, l.directions, batch), expected.c = swapped(expected.c, l.directions, batch);
    CHECK(y[0].sizes == shape{n, s, d, hid});
    CHECK(y[1].sizes == shape{n, d, hid});
  } else {
    CHECK(y[0].sizes == shape{s, d, n, hid});
    CHECK(y[1].sizes == shape{d, n, hid});
  }
  check_close(y[0].floats(), expected.y);
  check_close(y[1].floats(), expected.h);
  if (l.op == "LSTM") check_close(y[2].floats(), expected.c);
}

}  // namespace

TEST_CASE("recurrent operators compute the equations of the standard") {
  for (const std::string op : {"RNN", "GRU", "LSTM"})
    for (const std::string direction : {"forward", "reverse", "bidirectional"})
      for (const bool everything : {false, true})
        for (const bool constant : {false, true}) {
          layer l;
          l.op = op, l.direction = direction, l.directions = direction == "bidirectional" ? 2 : 1;
          l.bias = l.state = everything, l.peepholes = everything && op == "LSTM", l.constant = constant;
          check(l);
          if (op == "GRU") {
            l.linear_first = true;
            check(l);
            l.linear_first = false;
          }
          l.batch_first = true;
          check(l);
        }
}

TEST_CASE("sequences of different lengths: states stay, outputs are 0 behind the end, reversal is within the length") {
  for (const std::string op : {"RNN", "GRU", "LSTM"})
    for (const bool state : {false, true})
      for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{2, 4}, {3, 1}, {4, 4}, {0, 3}}) {
        layer l;
        l.op = op, l.direction = "bidirectional", l.directions = 2, l.lengths = lengths, l.state = state;
        check(l);
      }
}

TEST_CASE("activations, alpha and beta, clip") {
  auto b = at_opset(14);
  const std::vector<float> one{1};
  const auto x = b.input("x", {1, 1, 1}), w = b.initializer("w", {1, 1, 1}, std::span<const float>(one)), r = b.initializer("r", {1, 1, 1}, std::span<const float>(one));
  auto node = b.node("RNN", {x, w, r}, "y", 1);
  node.attribute("hidden_size", 1).attribute("clip", 2.0F);
  auto* names = node.proto().add_attribute();
  names->set_name("activations"), names->set_type(::onnx::AttributeProto::STRINGS);
  names->add_strings("Affine");
  auto* alpha = node.proto().add_attribute();
  alpha->set_name("activation_alpha"), alpha->set_type(::onnx::AttributeProto::FLOATS);
  alpha->add_floats(3);
  auto* beta = node.proto().add_attribute();
  beta->set_name("activation_beta"), beta->set_type(::onnx::AttributeProto::FLOATS);
  beta->add_floats(0.5F);
  const auto m = finish(std::move(b), {"y"});
  check_close(run(m, {{1}})[0].floats(), {3.5F});
  check_close(run(m, {{7}})[0].floats(), {6.5F});
}

TEST_CASE("recurrent operators that are refused") {
  const auto refused = [](const std::function<void(model_builder&)>& build) {
    auto b = at_opset(14);
    build(b);
    return failure(finish(std::move(b), {"y"}));
  };
  const auto lstm_of = [](model_builder& b, const shape& x) {
    return b.node("LSTM", {b.input("x", x), b.he_uniform("w", {1, 8, 3}), b.he_uniform("r", {1, 8, 2})}, "y", 1);
  };
  CHECK(mentions(refused([&](auto& b) { lstm_of(b, {4, 1, 3}).attribute("input_forget", 1); }), "input_forget"));
  CHECK(refused([&](auto& b) { lstm_of(b, {4, 1, 5}); }).code() == error_code::malformed);
  CHECK(refused([&](auto& b) { lstm_of(b, {4, 1, 3}).attribute("direction", "sideways"); }).code() == error_code::malformed);
  CHECK(mentions(refused([&](auto& b) { lstm_of(b, {5000, 1, 3}); }), "at most 1024"));
  CHECK(refused([&](auto& b) { lstm_of(b, {0, 1, 3}); }).code() == error_code::unsupported);
}
