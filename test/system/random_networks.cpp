// Random small networks as ONNX models, through importer, rewrites, compiler and simulator, against the reference evaluator.
#include "support.hpp"

#include <array>
#include <cstdlib>
#include <optional>

#include "tools/write.hpp"

using namespace raptor;
using namespace system_test;

namespace {

/// A network of up to `most` operators, drawn from a seed. Fewer operators: the beginning of the same network, so that a failure can be
/// cut down by counting.
class random_network {
 public:
  random_network(std::uint32_t seed, int most) : draw_(seed), b_({.graph_name = "random", .opset = 13, .seed = seed}) {
    const shape sizes{draw_(1, 2), draw_(1, 10), draw_(1, 11), draw_(1, 11)};
    values_.push_back({b_.input("x", sizes), sizes});
    const int operators = static_cast<int>(draw_(2, 8));
    for (int i = 0; i < std::min(operators, most); ++i) grow();
  }
  /// The model: its outputs are the last value and one that others read.
  ::onnx::ModelProto take() {
    if (values_.size() == 1) return_as(b_.node("Identity", {values_[0].name}, fresh()).output(), values_[0].sizes);
    else return_as(values_.back().name, values_.back().sizes);
    if (values_.size() > 3) return_as(values_[values_.size() - 2].name, values_[values_.size() - 2].sizes);
    return std::move(b_).take();
  }

 private:
  struct value {
    std::string name;
    shape sizes;
  };

  std::string fresh() { return "n" + std::to_string(names_++); }
  bool coin() { return draw_(0, 1) == 0; }
  void return_as(const std::string& name, const shape& sizes) { b_.output(name, sizes); }
  void add(const std::string& name, shape sizes) { values_.push_back({name, std::move(sizes)}); }
  /// Mostly the last value, sometimes an earlier one.
  const value pick() { return coin() || coin() ? values_.back() : values_[static_cast<std::size_t>(draw_(0, static_cast<std::int64_t>(values_.size()) - 1))]; }

  void grow() {
    const value x = pick();
    if (x.sizes.size() != 4) return grow_flat(x);
    switch (draw_(0, 15)) {
      case 0: case 1: case 2: case 3: return convolution(x);
      case 4: case 5: return pool(x);
      case 6: case 7: return unary(x);
      case 8: return with_constant(x);
      case 9: case 10: return with_value(x);
      case 11: return concat(x);
      case 12: return normalize(x);
      case 13: return move(x);
      case 14: return channels(x);
      default: return flatten(x);
    }
  }

  void convolution(const value& x) {
    const std::int64_t c = x.sizes[1];
    std::int64_t groups = 1;
    if (c > 1 && draw_(0, 2) == 0) groups = coin() ? c : (c % 2 == 0 ? 2 : c);
    const std::int64_t out = groups * draw_(1, groups == c ? 2 : 8);
    shape kernel{draw_(1, 3), draw_(1, 3)}, strides{draw_(1, 2), draw_(1, 2)}, dilations{draw_(1, 2), draw_(1, 2)}, result{x.sizes[0], out};
    const bool same = draw_(0, 4) == 0;
    shape pads{draw_(0, 2), draw_(0, 2), draw_(0, 2), draw_(0, 2)};
    for (std::size_t d = 0; d < 2; ++d) {
      if (same) {
        dilations[d] = 1;
        result.push_back((x.sizes[2 + d] + strides[d] - 1) / strides[d]);
        continue;
      }
      std::int64_t rest = x.sizes[2 + d] + pads[d] + pads[2 + d] - ((kernel[d] - 1) * dilations[d] + 1);
      if (rest < 0) kernel[d] = 1, rest = x.sizes[2 + d] + pads[d] + pads[2 + d] - 1;
      result.push_back(rest / strides[d] + 1);
    }
    const auto name = fresh();
    std::vector<std::string> inputs{x.name, b_.he_uniform(name + ".w", {out, c / groups, kernel[0], kernel[1]}, 1.0)};
    if (coin()) inputs.push_back(b_.uniform(name + ".b", {out}, 0.0F, 0.5F));
    auto n = b_.node("Conv", inputs, name);
    n.attribute("strides", strides).attribute("group", groups);
    if (same) n.attribute("auto_pad", coin() ? "SAME_UPPER" : "SAME_LOWER");
    else n.attribute("pads", pads).attribute("dilations", dilations);
    add(name, result);
  }

  void pool(const value& x) {
    const auto name = fresh();
    const auto kind = draw_(0, 4);
    if (kind == 0) {
      b_.node("GlobalAveragePool", {x.name}, name);
      return add(name, {x.sizes[0], x.sizes[1], 1, 1});
    }
    shape kernel{draw_(1, 3), draw_(1, 3)}, strides{draw_(1, 3), draw_(1, 3)}, pads(4), result{x.sizes[0], x.sizes[1]};
    const bool ceil = draw_(0, 2) == 0;
    for (std::size_t d = 0; d < 2; ++d) {
      kernel[d] = std::min(kernel[d], x.sizes[2 + d]);
      for (const std::size_t side : {d, d + 2}) pads[side] = kernel[d] == 1 ? 0 : draw_(0, kernel[d] - 1);
      const auto rest = x.sizes[2 + d] + pads[d] + pads[2 + d] - kernel[d];
      std::int64_t size = rest / strides[d] + 1;
      // A window that would begin behind the padded image is left out.
      if (ceil && rest % strides[d] != 0 && size * strides[d] < x.sizes[2 + d] + pads[d]) ++size;
      result.push_back(size);
    }
    auto n = b_.node(kind < 3 ? "MaxPool" : "AveragePool", {x.name}, name);
    n.attribute("kernel_shape", kernel).attribute("strides", strides).attribute("pads", pads).attribute("ceil_mode", ceil ? 1 : 0);
    if (kind >= 3) n.attribute("count_include_pad", coin() ? 1 : 0);
    add(name, result);
  }

  void unary(const value& x) {
    const auto name = fresh();
    switch (draw_(0, 6)) {
      case 0: b_.node("Relu", {x.name}, name); break;
      case 1: b_.node("LeakyRelu", {x.name}, name).attribute("alpha", 0.2); break;
      case 2: b_.node("Sigmoid", {x.name}, name); break;
      case 3: b_.node("Tanh", {x.name}, name); break;
      case 4: b_.node("Clip", {x.name, b_.scalar(name + ".low", -0.5F), coin() ? b_.scalar(name + ".high", 0.75F) : ""}, name); break;
      case 5: b_.node("Identity", {x.name}, name); break;
      default: b_.node("Softmax", {x.name}, name).attribute("axis", draw_(-1, static_cast<std::int64_t>(x.sizes.size()) - 1));
    }
    add(name, x.sizes);
  }

  void with_constant(const value& x) {
    const auto name = fresh();
    shape sizes;
    for (std::size_t d = static_cast<std::size_t>(draw_(0, static_cast<std::int64_t>(x.sizes.size()))); d < x.sizes.size(); ++d) sizes.push_back(coin() ? 1 : x.sizes[d]);
    const auto c = b_.uniform(name + ".c", sizes, 1.5F, 1.0F);
    const auto op = draw_(0, 4);
    if (op == 3) b_.node("Div", {x.name, c}, name);
    else if (op == 4) b_.node("Sub", {c, x.name}, name);
    else b_.node(op == 0 ? "Add" : op == 1 ? "Sub" : "Mul", {x.name, c}, name);
    add(name, x.sizes);
  }

  void with_value(const value& x) {
    const auto name = fresh();
    std::optional<value> other;
    for (const auto& v : values_)
      if (v.name != x.name && v.sizes.size() == x.sizes.size()) {
        bool fits = true;
        for (std::size_t d = 0; d < x.sizes.size(); ++d) fits = fits && (v.sizes[d] == x.sizes[d] || v.sizes[d] == 1);
        if (fits && (!other || coin())) other = v;
      }
    const auto& y = other ? other->name : x.name;
    std::string op = draw_(0, 2) == 0 ? "Mul" : coin() ? "Add" : "Sub";
    if (y == x.name && op == "Sub") op = "Add";  // zeros everywhere would leave nothing to measure errors against
    b_.node(op, coin() ? std::vector<std::string>{x.name, y} : std::vector<std::string>{y, x.name}, name);
    add(name, x.sizes);
  }

  void concat(const value& x) {
    const auto name = fresh();
    const auto axis = static_cast<std::size_t>(draw_(0, 3));
    std::vector<std::string> inputs{x.name};
    shape sizes = x.sizes;
    for (const auto& v : values_) {
      if (v.sizes.size() != 4 || inputs.size() == 3) continue;
      bool fits = true;
      for (std::size_t d = 0; d < 4; ++d) fits = fits && (d == axis || v.sizes[d] == x.sizes[d]);
      if (!fits) continue;
      inputs.push_back(v.name);
      sizes[axis] += v.sizes[axis];
    }
    b_.node("Concat", inputs, name).attribute("axis", coin() ? static_cast<std::int64_t>(axis) : static_cast<std::int64_t>(axis) - 4);
    add(name, sizes);
  }

  void normalize(const value& x) {
    const auto name = fresh();
    if (coin()) {
      const shape c{x.sizes[1]};
      b_.node("BatchNormalization", {x.name, b_.uniform(name + ".s", c, 1.0F, 0.5F), b_.uniform(name + ".b", c, 0.0F, 0.5F), b_.uniform(name + ".m", c, 0.0F, 0.5F),
                                     b_.uniform(name + ".v", c, 1.0F, 0.5F)}, name);
    } else {
      b_.node("LRN", {x.name}, name).attribute("size", draw_(1, 5)).attribute("alpha", 0.3).attribute("beta", 0.75).attribute("bias", 1.5);
    }
    add(name, x.sizes);
  }

  void move(const value& x) {
    const auto name = fresh();
    switch (draw_(0, 2)) {
      case 0: {
        shape order{0, 1, 2, 3}, sizes;
        for (std::size_t d = 3; d > 0; --d) std::swap(order[d], order[static_cast<std::size_t>(draw_(0, static_cast<std::int64_t>(d)))]);
        for (const auto d : order) sizes.push_back(x.sizes[static_cast<std::size_t>(d)]);
        b_.node("Transpose", {x.name}, name).attribute("perm", order);
        return add(name, sizes);
      }
      case 1: {
        const shape pads{0, 0, draw_(0, 2), draw_(0, 2), 0, 0, draw_(0, 2), draw_(0, 2)};
        b_.node("Pad", {x.name, b_.integers(name + ".p", pads), b_.scalar(name + ".v", coin() ? 0.0F : 0.25F)}, name);
        return add(name, {x.sizes[0], x.sizes[1], x.sizes[2] + pads[2] + pads[6], x.sizes[3] + pads[3] + pads[7]});
      }
      default: {
        const shape sizes{x.sizes[0], x.sizes[1] * x.sizes[2], x.sizes[3], 1};
        b_.node("Reshape", {x.name, b_.integers(name + ".s", {0, -1, sizes[2], 1})}, name);
        return add(name, sizes);
      }
    }
  }

  /// Split by channels, or a shuffle of them.
  void channels(const value& x) {
    const auto name = fresh();
    const auto [n, c, h, w] = std::array{x.sizes[0], x.sizes[1], x.sizes[2], x.sizes[3]};
    if (c < 2) return unary(x);
    if (c % 2 == 0 && coin()) {
      b_.node("Reshape", {x.name, b_.integers(name + ".a", {n, 2, c / 2, h, w})}, name + ".r");
      b_.node("Transpose", {name + ".r"}, name + ".t").attribute("perm", {0, 2, 1, 3, 4});
      b_.node("Reshape", {name + ".t", b_.integers(name + ".b", x.sizes)}, name);
      return add(name, x.sizes);
    }
    const auto first = draw_(1, c - 1);
    auto split = b_.node("Split", {x.name, b_.integers(name + ".s", {first, c - first})}, name, 2).attribute("axis", 1);
    add(split.output(0), {n, first, h, w});
    add(split.output(1), {n, c - first, h, w});
  }

  void flatten(const value& x) {
    const auto name = fresh();
    b_.node("Flatten", {x.name}, name).attribute("axis", 1);
    add(name, {x.sizes[0], x.sizes[1] * x.sizes[2] * x.sizes[3]});
  }

  void grow_flat(const value& x) {
    const auto choice = draw_(0, 4);
    if (choice == 0) return unary(x);
    if (choice == 1) return with_constant(x);
    if (choice == 2) return with_value(x);
    const auto name = fresh();
    const auto k = x.sizes[1], n = draw_(1, 20);
    if (choice == 3) {
      b_.node("MatMul", {x.name, b_.he_uniform(name + ".w", {k, n}, 1.0)}, name);
    } else {
      const bool turned = coin();
      std::vector<std::string> inputs{x.name, b_.uniform(name + ".w", turned ? shape{n, k} : shape{k, n}, 0.0F, 0.3F)};
      if (coin()) inputs.push_back(b_.uniform(name + ".b", coin() ? shape{n} : shape{1, n}, 0.0F, 1.0F));
      b_.node("Gemm", inputs, name).attribute("transB", turned ? 1 : 0).attribute("alpha", coin() ? 1.0 : 0.5);
    }
    add(name, {x.sizes[0], n});
  }

  dice draw_;
  onnx_io::model_builder b_;
  std::vector<value> values_;
  int names_ = 0;
};

/// Why a network of that seed and size is wrong; empty: it is right, or does not fit its chip.
std::string fault(std::uint32_t seed, int most, bool planning, std::size_t& compiled) {
  dice draw(seed + 1000);
  const std::int64_t size = std::vector<std::int64_t>{16, 32, 48, 128}[static_cast<std::size_t>(draw(0, 3))];
  auto options = chip(draw(1, 9), 16384 / size, size);
  options.spatial_planning = planning;
  try {
    const auto m = load(random_network(seed, most).take());
    const auto target = tools::make_target(options);
    const auto c = tools::compile_model(m.canonical, target, options, [&](stage s, const compilation& done) { tools::verify_stage(s, done, m.canonical, target.chip()); });
    const auto error = relative_error(m, c.image, seed);
    ++compiled;
    return error <= 1e-4 ? std::string() : "relative error " + std::to_string(error);
  } catch (const error& e) {
    return e.code() == error_code::capacity ? std::string() : describe(e);
  }
}

}  // namespace

TEST_CASE("random networks of many operators compute what the reference evaluator does") {
  std::size_t compiled = 0;
  // More on request: RAPTOR_RANDOM_NETWORKS=5000 test_system
  const char* wanted = std::getenv("RAPTOR_RANDOM_NETWORKS");
  const auto seeds = wanted == nullptr ? 300u : static_cast<std::uint32_t>(std::strtoul(wanted, nullptr, 10));
  for (std::uint32_t seed = 0; seed < seeds; ++seed)
    for (const bool planning : {true, false}) {
      auto what = fault(seed, 100, planning, compiled);
      if (what.empty()) continue;
      // The shortest beginning of the network that fails.
      int operators = 1;
      for (std::size_t ignored = 0; operators < 100; ++operators) {
        const auto shorter = fault(seed, operators, planning, ignored);
        if (!shorter.empty()) {
          what = shorter;
          break;
        }
      }
      FAIL_CHECK("seed " << seed << ", first " << operators << " operators, planning " << planning << ": " << what);
    }
  CHECK(compiled > seeds);  // of twice as many: few do not fit their chip
}

TEST_CASE("windows that lie wholly in padding") {
  const auto with = [](const auto& build) {
    onnx_io::model_builder b({.graph_name = "padding", .opset = 13, .seed = 1});
    build(b);
    const auto m = load(std::move(b).take());
    for (const bool planning : {true, false}) {
      CAPTURE(planning);
      auto options = chip(3, 128, 128);
      options.spatial_planning = planning;
      CHECK(relative_error(m, compile(m, options).image) <= 1e-5);
    }
  };
  // A convolution whose only output column is padding, behind one that leaves its result in rows.
  with([](onnx_io::model_builder& b) {
    b.node("Conv", {b.input("x", {1, 6, 5, 1}), b.he_uniform("v", {12, 1, 3, 3})}, "v_out").attribute("group", 6).attribute("pads", {1, 1, 1, 1});
    b.node("Conv", {"v_out", b.he_uniform("w", {7, 12, 3, 1}), b.uniform("bias", {7}, 0.0F, 1.0F)}, "y").attribute("pads", {0, 1, 0, 0}).attribute("strides", {2, 2});
    b.output("y", {1, 7, 2, 1});
  });
  // An average pool that takes over the padding of a Pad, so that no window meets the image any more; and one that meets it in part.
  for (const std::int64_t pads : {1, 0})
    with([=](onnx_io::model_builder& b) {
      b.node("Conv", {b.input("x", {2, 2, 5, 1}), b.he_uniform("w", {3, 2, 3, 1})}, "c").attribute("pads", {1, 0, 1, 0});
      b.node("Pad", {"c", b.integers("p", {0, 0, 1, 1, 0, 0, 0, 0})}, "wide");
      b.node("AveragePool", {"wide"}, "a").attribute("kernel_shape", {1, 2}).attribute("strides", {1, 2}).attribute("pads", {0, pads, 0, 0}).attribute("count_include_pad", 1);
      b.node("Add", {"a", b.uniform("k", {3, 1, 1}, 0.0F, 1.0F)}, "y");
      b.output("y", {2, 3, 6, 1});
    });
}
