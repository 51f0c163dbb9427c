#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raptor/onnx/convert_functions.hpp"
#include "raptor/onnx/convert_movement.hpp"
#include "raptor/onnx/node_context.hpp"

/// RNN, GRU and LSTM, unrolled: the length of a sequence is static. The products with the input are one matrix product for all steps.
/// Source: ONNX Operators.md, Changelog.md.
namespace raptor::onnx_io::convert {

/// Most steps that are unrolled.
inline constexpr std::int64_t most_steps = 1024;

/// One activation of a recurrent operator, with its own values of alpha and beta.
struct recurrent_activation {
  std::string name;  ///< in lower case
  float alpha = 0, beta = 0;
};
[[nodiscard]] inline tensor_id activated(node_context& c, const recurrent_activation& f, tensor_id x) {
  if (f.name == "sigmoid") return function(c, unary_kind::sigmoid, x);
  if (f.name == "tanh") return function(c, unary_kind::tanh, x);
  if (f.name == "relu") return function(c, unary_kind::relu, x);
  if (f.name == "leakyrelu") return function(c, unary_kind::leaky_relu, x, f.alpha);
  if (f.name == "hardsigmoid") return hard_sigmoid_of(c, x, f.alpha, f.beta);
  if (f.name == "affine") return plus(c, times(c, x, f.alpha), f.beta);
  if (f.name == "scaledtanh") return times(c, function(c, unary_kind::tanh, times(c, x, f.beta)), f.alpha);
  if (f.name == "softplus") return function(c, unary_kind::softplus, x);
  if (f.name == "elu") return plus(c, positive_part(c, x), times(c, function(c, unary_kind::exponential_minus_one, negative_part(c, x)), f.alpha));
  c.unsupported("activation \"" + f.name + "\"");
}

/// What the three operators share: sizes, one direction after the other, the operands cut to one of them.
struct recurrent_layer {
  node_context& c;
  std::int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1, gates = 1;
  bool batch_first = false;
  bool reverse = false;  ///< the only direction
  float clip = 0;        ///< 0: none
  std::vector<recurrent_activation> activations;  ///< of all directions
  std::vector<std::int64_t> lengths;              ///< one a sequence; empty: all as long as the data
  tensor_id x;                                    ///< [steps · batch, inputs]

  /// `functions`: default activations of one direction.
  recurrent_layer(node_context& context, std::int64_t gate_count, std::vector<std::string> functions) : c(context), gates(gate_count) {
    const shape data = c.sizes(0), w = c.sizes(1), r = c.sizes(2);
    batch_first = c.integer("layout", 0) != 0;
    c.require(data.size() == 3 && w.size() == 3 && r.size() == 3, "data and weights must have rank 3");
    steps = data[batch_first ? 1 : 0], batch = data[batch_first ? 0 : 1], inputs = data[2];
    directions = w[0], hidden = r[2];
    const std::string direction = c.text("direction", "forward");
    c.require(direction == "forward" || direction == "reverse" || direction == "bidirectional", "direction \"" + direction + "\" is unknown");
    reverse = direction == "reverse";
    c.require(directions == (direction == "bidirectional" ? 2 : 1), "the weights have another number of directions");
    c.require(c.integer("hidden_size", hidden) == hidden, "hidden_size does not agree with the weights");
    c.require(w == shape{directions, gates * hidden, inputs} && r == shape{directions, gates * hidden, hidden}, "the weights do not fit the data");
    c.require(!c.has(3) || c.sizes(3) == shape{directions, 2 * gates * hidden}, "the bias has a wrong shape");
    if (steps < 1 || batch < 1 || inputs < 1 || hidden < 1) c.unsupported("an empty sequence or state");
    if (steps > most_steps) c.unsupported("a sequence of " + std::to_string(steps) + " steps; at most " + std::to_string(most_steps) + " are unrolled");
    clip = c.real("clip", 0);
    read_activations(std::move(functions));
    read_lengths();
    auto all = c.input(0);
    if (batch_first) all = c.add(transpose{{1, 0, 2}}, {all});
    x = c.reshaped(all, {steps * batch, inputs});
  }

  /// Input `i`, [directions, …], cut to one direction without that axis.
  [[nodiscard]] tensor_id of_direction(std::size_t i, std::int64_t d) const {
    const auto t = directions == 1 ? c.input(i) : cut(c, c.input(i), 0, d, 1);
    const shape sizes = c.at(t).sizes;
    return c.reshaped(t, shape(sizes.begin() + 1, sizes.end()));
  }
  /// An initial state, [batch, hidden]; nothing where the node has none: zeros.
  [[nodiscard]] std::optional<tensor_id> state(std::size_t i, std::int64_t d) const {
    if (!c.has(i)) return std::nullopt;
    c.require(c.sizes(i) == (batch_first ? shape{batch, directions, hidden} : shape{directions, batch, hidden}), "the initial state has a wrong shape");
    const auto t = directions == 1 ? c.input(i) : cut(c, c.input(i), batch_first ? 1 : 0, d, 1);
    return c.reshaped(t, {batch, hidden});
  }
  /// Half of a direction's bias (0: of the input, 1: of the state), cut to gates [first, first + count).
  [[nodiscard]] tensor_id bias(std::int64_t d, std::int64_t half, std::int64_t first, std::int64_t count) const {
    return cut(c, of_direction(3, d), 0, (half * gates + first) * hidden, count * hidden);
  }
  /// Weights of a product. Constants are transposed once, so that all steps share one matrix.
  struct weights {
    tensor_id matrix;
    bool transposed = true;
  };
  [[nodiscard]] weights prepared(tensor_id w) const {
    if (!c.at(w).is_constant()) return {w, true};
    const auto turned = c.add(transpose{{1, 0}}, {w});
    return c.at(turned).is_constant() ? weights{turned, false} : weights{w, true};  // too large to fold
  }
  /// a · wᵀ (+ bias).
  [[nodiscard]] tensor_id product(tensor_id a, const weights& w, std::optional<tensor_id> added = std::nullopt) const {
    std::vector<tensor_id> operands{a, w.matrix};
    if (added) operands.push_back(*added);
    return c.add(gemm{1, 1, false, w.transposed}, std::move(operands));
  }
  [[nodiscard]] tensor_id activate(std::int64_t d, std::size_t which, tensor_id t) const {
    if (clip > 0) t = function(c, unary_kind::clip, t, -clip, clip);
    return activated(c, activations[static_cast<std::size_t>(d) * (activations.size() / static_cast<std::size_t>(directions)) + which], t);
  }
  /// Columns of one gate.
  [[nodiscard]] tensor_id gate(tensor_id t, std::int64_t g) const { return gates == 1 ? t : cut(c, t, 1, g * hidden, hidden); }
  /// Rows of one step of what all steps have.
  [[nodiscard]] tensor_id at_step(tensor_id all, std::int64_t t) const { return steps == 1 ? all : cut(c, all, 0, t * batch, batch); }
  /// 1 for the sequences that have a step, [batch, 1]; nothing where all of them do.
  [[nodiscard]] std::optional<tensor_id> present(std::int64_t t) const {
    std::vector<float> ones;
    bool all = true;
    for (const auto length : lengths) {
      ones.push_back(t < length ? 1.0F : 0.0F);
      all = all && t < length;
    }
    if (all) return std::nullopt;
    return c.constant_float_tensor({batch, 1}, std::move(ones));
  }
  /// What a sequence's state becomes: the new one, or the old one where it has no such step.
  [[nodiscard]] tensor_id advanced(tensor_id now, std::optional<tensor_id> before, std::optional<tensor_id> mask) const {
    if (!mask) return now;
    now = times(c, now, *mask);
    return before ? plus(c, now, times(c, *before, plus(c, times(c, *mask, -1.0F), 1.0F))) : now;
  }
  /// Runs `step(direction, t, mask) → state` over all steps of all directions and makes the outputs: all states, the last ones, and the last
  /// ones of `others` where `step` leaves such in it.
  template <class Begin, class Step>
  void run(const Begin& begin, const Step& step) {
    std::vector<tensor_id> all_directions, last, other_last;
    for (std::int64_t d = 0; d < directions; ++d) {
      begin(d);
      const bool backward = reverse || d == 1;
      std::vector<tensor_id> states(static_cast<std::size_t>(steps));
      std::pair<tensor_id, std::optional<tensor_id>> now;
      for (std::int64_t i = 0; i < steps; ++i) {
        const auto t = backward ? steps - 1 - i : i;
        const auto mask = present(t);
        now = step(d, t, mask);
        states[static_cast<std::size_t>(t)] = c.reshaped(mask ? times(c, now.first, *mask) : now.first, {1, 1, batch, hidden});
      }
      all_directions.push_back(joined(std::move(states), 0));
      last.push_back(c.reshaped(now.first, {1, batch, hidden}));
      if (now.second) other_last.push_back(c.reshaped(*now.second, {1, batch, hidden}));
    }
    if (c.wants(0)) {
      auto y = joined(std::move(all_directions), 1);
      if (batch_first) y = c.add(transpose{{2, 0, 1, 3}}, {y});
      c.result(y, 0);
    }
    const auto deliver = [&](std::vector<tensor_id> states, std::size_t output) {
      if (!c.wants(output) || states.empty()) return;
      auto y = joined(std::move(states), 0);
      if (batch_first) y = c.add(transpose{{1, 0, 2}}, {y});
      c.result(y, output);
    };
    deliver(std::move(last), 1);
    deliver(std::move(other_last), 2);
  }

 private:
  [[nodiscard]] tensor_id joined(std::vector<tensor_id> parts, std::int64_t axis) const {
    return parts.size() == 1 ? parts[0] : c.add(concat{axis}, std::move(parts));
  }
  void read_activations(std::vector<std::string> functions) {
    if (const auto* given = c.attribute("activations", ::onnx::AttributeProto::STRINGS)) {
      c.require(given->strings_size() == static_cast<int>(functions.size()) * static_cast<int>(directions), "activations: one function a gate and direction is needed");
      functions.assign(given->strings().begin(), given->strings().end());
    } else if (directions == 2) {
      const auto once = functions;
      functions.insert(functions.end(), once.begin(), once.end());
    }
    const auto reals = [&](const char* name) {
      const auto* a = c.attribute(name, ::onnx::AttributeProto::FLOATS);
      return a == nullptr ? std::vector<float>{} : std::vector<float>(a->floats().begin(), a->floats().end());
    };
    const auto alphas = reals("activation_alpha"), betas = reals("activation_beta");
    std::size_t alpha = 0, beta = 0;  // those that a function takes are given in the functions' order
    struct defaults {
      std::optional<float> alpha, beta;
    };
    const std::map<std::string, defaults> with_values{{"leakyrelu", {0.01F, {}}}, {"hardsigmoid", {0.2F, 0.5F}}, {"affine", {1.0F, 0.0F}}, {"scaledtanh", {1.0F, 1.0F}}, {"elu", {1.0F, {}}}};
    for (auto name : functions) {
      std::transform(name.begin(), name.end(), name.begin(), [](char ch) { return ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch - 'A' + 'a') : ch; });
      recurrent_activation f{name, 0, 0};
      if (const auto found = with_values.find(name); found != with_values.end()) {
        if (found->second.alpha) f.alpha = alpha < alphas.size() ? alphas[alpha++] : *found->second.alpha;
        if (found->second.beta) f.beta = beta < betas.size() ? betas[beta++] : *found->second.beta;
      }
      activations.push_back(std::move(f));
    }
  }
  void read_lengths() {
    if (!c.has(4)) return;
    lengths = c.constant_integers(4, "sequence_lens");
    c.require(static_cast<std::int64_t>(lengths.size()) == batch, "sequence_lens must have one value a sequence");
    for (const auto length : lengths) c.require(length >= 0 && length <= steps, "sequence_lens has a value that is no length");
  }
};

using optional_tensor = std::optional<tensor_id>;

/// Hₜ = f(X·Wᵀ + Hₜ₋₁·Rᵀ + biases).
inline void rnn(node_context& c) {
  recurrent_layer l(c, 1, {"Tanh"});
  optional_tensor h;
  tensor_id x;
  recurrent_layer::weights r;
  l.run(
      [&](std::int64_t d) {
        optional_tensor bias;
        if (c.has(3)) bias = plus(c, l.bias(d, 0, 0, 1), l.bias(d, 1, 0, 1));
        x = l.product(l.x, l.prepared(l.of_direction(1, d)), bias);
        r = l.prepared(l.of_direction(2, d));
        h = l.state(5, d);
      },
      [&](std::int64_t d, std::int64_t t, optional_tensor mask) {
        auto sum = l.at_step(x, t);
        if (h) sum = plus(c, sum, l.product(*h, r));
        h = l.advanced(l.activate(d, 0, sum), h, mask);
        return std::pair{*h, optional_tensor{}};
      });
}

/// Gates z, r, h: zₜ = f(…), rₜ = f(…), candidate = g(X·Wₕᵀ + (rₜ ⊙ Hₜ₋₁)·Rₕᵀ + biases), or with linear_before_reset
/// g(X·Wₕᵀ + Wbₕ + rₜ ⊙ (Hₜ₋₁·Rₕᵀ + Rbₕ)); Hₜ = (1 − zₜ) ⊙ candidate + zₜ ⊙ Hₜ₋₁.
inline void gru(node_context& c) {
  recurrent_layer l(c, 3, {"Sigmoid", "Tanh"});
  const bool linear_first = c.integer("linear_before_reset", 0) != 0;
  optional_tensor h, candidate_bias;
  tensor_id x;
  recurrent_layer::weights r_gates, r_candidate;
  l.run(
      [&](std::int64_t d) {
        optional_tensor bias;
        candidate_bias = std::nullopt;
        if (c.has(3)) {
          auto state_part = l.bias(d, 1, 0, 3);
          if (linear_first) {
            candidate_bias = l.bias(d, 1, 2, 1);
            state_part = c.add(concat{0}, {l.bias(d, 1, 0, 2), c.constant_float_tensor({l.hidden}, std::vector<float>(static_cast<std::size_t>(l.hidden), 0.0F))});
          }
          bias = plus(c, l.bias(d, 0, 0, 3), state_part);
        }
        x = l.product(l.x, l.prepared(l.of_direction(1, d)), bias);
        const auto r = l.of_direction(2, d);
        r_gates = l.prepared(cut(c, r, 0, 0, 2 * l.hidden));
        r_candidate = l.prepared(cut(c, r, 0, 2 * l.hidden, l.hidden));
        h = l.state(5, d);
      },
      [&](std::int64_t d, std::int64_t t, optional_tensor mask) {
        const auto now = l.at_step(x, t);
        auto z = l.gate(now, 0), reset = l.gate(now, 1), candidate = l.gate(now, 2);
        if (h) {
          const auto before = l.product(*h, r_gates);
          z = plus(c, z, l.gate(before, 0));
          reset = plus(c, reset, l.gate(before, 1));
        }
        z = l.activate(d, 0, z);
        if (h || candidate_bias) {
          reset = l.activate(d, 0, reset);
          if (!linear_first) candidate = plus(c, candidate, l.product(times(c, reset, *h), r_candidate));
          else if (h) candidate = plus(c, candidate, times(c, reset, l.product(*h, r_candidate, candidate_bias)));
          else candidate = plus(c, candidate, times(c, reset, *candidate_bias));
        }
        candidate = l.activate(d, 1, candidate);
        auto next = minus(c, candidate, times(c, z, candidate));
        if (h) next = plus(c, next, times(c, z, *h));
        h = l.advanced(next, h, mask);
        return std::pair{*h, optional_tensor{}};
      });
}

/// Gates i, o, f, c with peepholes P: iₜ = f(… + Pᵢ ⊙ Cₜ₋₁), fₜ = f(… + P_f ⊙ Cₜ₋₁), Cₜ = fₜ ⊙ Cₜ₋₁ + iₜ ⊙ g(…), oₜ = f(… + Pₒ ⊙ Cₜ),
/// Hₜ = oₜ ⊙ h(Cₜ).
inline void lstm(node_context& c) {
  recurrent_layer l(c, 4, {"Sigmoid", "Tanh", "Tanh"});
  if (c.integer("input_forget", 0) != 0) c.unsupported("coupled input and forget gates (input_forget)");
  c.require(!c.has(7) || c.sizes(7) == shape{l.directions, 3 * l.hidden}, "the peepholes have a wrong shape");
  optional_tensor h, cell;
  tensor_id x;
  recurrent_layer::weights r;
  std::vector<tensor_id> peepholes;
  l.run(
      [&](std::int64_t d) {
        optional_tensor bias;
        if (c.has(3)) bias = plus(c, l.bias(d, 0, 0, 4), l.bias(d, 1, 0, 4));
        x = l.product(l.x, l.prepared(l.of_direction(1, d)), bias);
        r = l.prepared(l.of_direction(2, d));
        h = l.state(5, d);
        cell = l.state(6, d);
        peepholes.clear();
        for (std::int64_t g = 0; c.has(7) && g < 3; ++g) peepholes.push_back(cut(c, l.of_direction(7, d), 0, g * l.hidden, l.hidden));
      },
      [&](std::int64_t d, std::int64_t t, optional_tensor mask) {
        auto gates = l.at_step(x, t);
        if (h) gates = plus(c, gates, l.product(*h, r));
        const auto peek = [&](tensor_id sum, std::size_t p, optional_tensor state) {
          return peepholes.empty() || !state ? sum : plus(c, sum, times(c, *state, peepholes[p]));
        };
        const auto input = l.activate(d, 0, peek(l.gate(gates, 0), 0, cell));
        auto next = times(c, input, l.activate(d, 1, l.gate(gates, 3)));
        if (cell) next = plus(c, next, times(c, l.activate(d, 0, peek(l.gate(gates, 2), 2, cell)), *cell));
        const auto output = l.activate(d, 0, peek(l.gate(gates, 1), 1, next));
        const auto state = times(c, output, l.activate(d, 2, next));
        h = l.advanced(state, h, mask);
        cell = l.advanced(next, cell, mask);
        return std::pair{*h, cell};
      });
}

}  // namespace raptor::onnx_io::convert
