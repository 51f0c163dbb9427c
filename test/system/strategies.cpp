// Random small networks through every strategy and layout, against the reference evaluator.
#include "support.hpp"

#include "raptor/memory/widen.hpp"

using namespace raptor;
using namespace system_test;

namespace {

model::constant_ptr constant_of(std::int64_t count, std::uint32_t seed) {
  return std::make_shared<const model::constant>(model::constant{numbers(count, seed)});
}

/// x → convolution with everything drawn → (relu) → (max pool) → y.
model::graph random_convolution(std::uint32_t seed) {
  dice draw(seed);
  model::graph g;
  g.name = "random " + std::to_string(seed);
  const std::int64_t groups = draw(0, 2) == 0 ? draw(2, 6) : 1;
  const bool depthwise = groups > 1 && draw(0, 1) == 0;
  const std::int64_t in = depthwise ? groups : groups * draw(1, 9), out = groups * draw(1, depthwise ? 2 : 9);
  const std::int64_t h = draw(1, 12), w = draw(1, 12), kh = draw(1, 4), kw = draw(1, 4), sh = draw(1, 3), sw = draw(1, 3), dh = draw(1, 2), dw = draw(1, 2);
  const std::int64_t top = draw(0, 2), left = draw(0, 2), bottom = draw(0, 2), right = draw(0, 2), batch = draw(1, 2);
  const std::int64_t rows = h + top + bottom - ((kh - 1) * dh + 1), columns = w + left + right - ((kw - 1) * dw + 1);
  if (rows < 0 || columns < 0) return random_convolution(seed + 100000);
  const shape y_sizes{batch, out, rows / sh + 1, columns / sw + 1};
  using model::element_type;
  const auto x = g.add_tensor({"x", element_type::f32, {batch, in, h, w}, nullptr});
  const auto weights = g.add_tensor({"w", element_type::f32, {out, in / groups, kh, kw}, constant_of(out * in / groups * kh * kw, seed)});
  const auto y = g.add_tensor({"y", element_type::f32, y_sizes, nullptr});
  std::vector<model::tensor_id> inputs{x, weights};
  if (draw(0, 1) == 0) inputs.push_back(g.add_tensor({"b", element_type::f32, {out}, constant_of(out, seed + 1)}));
  g.add_node({model::convolution{{kh, kw}, {sh, sw}, {dh, dw}, {top, left}, {bottom, right}, groups}, inputs, {y}, {"conv", "Conv", "", 13}});
  auto last = y;
  if (draw(0, 1) == 0) {
    const auto z = g.add_tensor({"z", element_type::f32, y_sizes, nullptr});
    g.add_node({model::unary{model::unary_kind::relu, 0, 0}, {last}, {z}, {"relu", "Relu", "", 13}});
    last = z;
  }
  if (draw(0, 1) == 0) {
    const std::int64_t pool_stride = draw(1, 2);
    const auto p = g.add_tensor({"p", element_type::f32, {batch, out, (y_sizes[2] + 2 - 2) / pool_stride + 1 - (pool_stride == 1 ? 0 : 0), (y_sizes[3] + 2 - 2) / pool_stride + 1}, nullptr});
    g.add_node({model::pool{draw(0, 1) == 0 ? model::pool_kind::max : model::pool_kind::average, {2, 2}, {pool_stride, pool_stride}, {1, 1}, {1, 1}, {1, 1}, draw(0, 1) == 0}, {last}, {p}, {"pool", "Pool", "", 13}});
    last = p;
  }
  g.inputs = {x};
  g.outputs = draw(0, 3) == 0 && last != y ? std::vector{last, y} : std::vector{last};
  return g;
}

constexpr const char* strategies[] = {"auto", "legacy", "depthwise", "depthwise-vector", "packed-im2col", "streamed-patch", "streamed-packed", "output-channel-tiled", "input-k-tiled", "tiled-2d", "toeplitz", "kernel-in-columns"};

}  // namespace

TEST_CASE("random convolutions, every strategy, both layouts, several chips") {
  std::map<std::string, std::size_t> compiled;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const auto g = random_convolution(seed);
    const tools::loaded_model m{g, g};
    for (const char* strategy : strategies)
      for (const bool planning : {true, false}) {
        CAPTURE(seed);
        const std::string forced = strategy;
        CAPTURE(forced);
        CAPTURE(planning);
        dice draw(seed + 7);
        const std::int64_t size = std::vector<std::int64_t>{8, 16, 33, 64}[static_cast<std::size_t>(draw(0, 3))];
        auto options = chip(draw(1, 12), 1024 / size, size);
        options.spatial_planning = planning;
        options.lowering.convolution = forced;
        options.lowering.part_share = std::vector<double>{1, 0.75, 0.3}[static_cast<std::size_t>(draw(0, 2))];
        try {
          const auto c = compile(m, options);
          CHECK(relative_error(m, c.image, seed) <= 1e-5);
          ++compiled[forced];
        } catch (const error& e) {
          // A forced strategy may say that it does not apply, a chip may be too small; nothing else.
          const bool refused = (e.code() == error_code::unsupported && forced != "auto") || e.code() == error_code::capacity;
          if (!refused) FAIL_CHECK(describe(e));
        }
      }
  }
  for (const char* strategy : strategies) {
    const std::string name = strategy;
    CAPTURE(name);
    CHECK(compiled[name] > 0);
  }
}

namespace {

/// x → two convolutions of different kernels and the same result → their sum → relu → y. Rows are long and channels many for a small crossbar, so
/// that rows are cut into stretches and input channels into slices.
model::graph wide_convolutions(std::uint32_t seed) {
  dice draw(seed);
  model::graph g;
  g.name = "wide " + std::to_string(seed);
  using model::element_type;
  const std::int64_t in = draw(0, 1) == 0 ? draw(1, 4) : draw(5, 40), out = draw(0, 1) == 0 ? draw(1, 8) : draw(9, 40), h = draw(3, 7), w = draw(17, 40), sh = draw(1, 2), sw = draw(1, 2), batch = draw(1, 2);
  const shape y_sizes{batch, out, (h - 1) / sh + 1, (w - 1) / sw + 1};
  const auto x = g.add_tensor({"x", element_type::f32, {batch, in, h, w}, nullptr});
  std::vector<model::tensor_id> made;
  for (std::uint32_t k = 0; k < 2; ++k) {
    // Kernels of odd sizes in the middle of their padding.
    const std::int64_t half_h = draw(0, 1), half_w = draw(0, 2), dilation = draw(1, 2), kh = 2 * half_h + 1, kw = 2 * half_w + 1;
    const auto name = "conv" + std::to_string(k);
    const auto weights = g.add_tensor({name + ".w", element_type::f32, {out, in, kh, kw}, constant_of(out * in * kh * kw, seed + k)});
    std::vector<model::tensor_id> inputs{x, weights};
    if (draw(0, 1) == 0) inputs.push_back(g.add_tensor({name + ".b", element_type::f32, {out}, constant_of(out, seed + k + 7)}));
    made.push_back(g.add_tensor({name + ".y", element_type::f32, y_sizes, nullptr}));
    g.add_node({model::convolution{{kh, kw}, {sh, sw}, {dilation, dilation}, {half_h * dilation, half_w * dilation}, {half_h * dilation, half_w * dilation}, 1}, inputs, {made.back()}, {name, "Conv", "", 13}});
  }
  const auto sum = g.add_tensor({"sum", element_type::f32, y_sizes, nullptr}), y = g.add_tensor({"y", element_type::f32, y_sizes, nullptr});
  g.add_node({model::binary{model::binary_kind::add}, made, {sum}, {"add", "Add", "", 13}});
  g.add_node({model::unary{model::unary_kind::relu, 0, 0}, {sum}, {y}, {"relu", "Relu", "", 13}});
  g.inputs = {x};
  g.outputs = {y};
  return g;
}

}  // namespace

TEST_CASE("rows cut into stretches, slices of input channels, phases of rows: in 32 bits, and narrow programs executed as their twins") {
  struct seen {
    std::size_t compiled = 0, stretches = 0, slices = 0, phases = 0, parts = 0;
  };
  std::map<std::string, seen> of;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const auto g = wide_convolutions(seed);
    const tools::loaded_model m{g, g};
    for (const char* strategy : {"auto", "toeplitz", "kernel-in-columns", "streamed-packed", "tiled-2d"})
      for (const std::int64_t bits : {32, 8}) {
        const std::string forced = strategy;
        CAPTURE(seed);
        CAPTURE(forced);
        CAPTURE(bits);
        dice draw(seed + 3);
        const std::int64_t size = draw(0, 1) == 0 ? 16 : 32;
        auto options = chip(draw(12, 48), (draw(0, 1) == 0 ? 128 : 512) / size, size);
        options.element_bits = bits;
        options.lowering.convolution = forced;
        options.lowering.tile_time = draw(0, 1) == 0 ? 200'000 : 50'000;
        options.effort = 0;
        if (draw(0, 2) == 0) options.lowering.tile_time = 16'000'000;
        options.lowering.part_share = 1.0 / static_cast<double>(draw(1, 3));
        options.lowering.join_reads = draw(1, 4);
        try {
          const auto c = compile(m, options);
          CHECK(relative_error(m, memory::widen(c.image), seed) <= 1e-5);
          auto& s = of[forced];
          ++s.compiled;
          const auto named = [&](const std::string& part) {
            for (lowering::vertex v = 0; v < c.lowered.graph.size(); ++v)
              if (c.lowered.graph.at(v).name.find(part) != std::string::npos) return true;
            return false;
          };
          s.stretches += named("[2]"), s.phases += named(".scatter1"), s.parts += named("conv0.1");
          s.slices += named(".scatterc1") || named(".scatter0c1") || named(".scatter1c1");
        } catch (const error& e) {
          const bool refused = (e.code() == error_code::unsupported && forced != "auto") || e.code() == error_code::capacity;
          if (!refused) FAIL_CHECK(describe(e));
        }
      }
  }
  for (const auto& [name, s] : of) MESSAGE(name << ": " << s.compiled << " compiled, " << s.stretches << " with stretches, " << s.slices << " with slices, " << s.phases << " with phases, " << s.parts << " with parts");
  for (const char* strategy : {"auto", "toeplitz", "kernel-in-columns", "tiled-2d", "streamed-packed"}) {
    const std::string name = strategy;
    CAPTURE(name);
    CHECK(of[name].compiled > 4);
    if (name != "streamed-packed") CHECK(of[name].stretches > 0);
  }
  CHECK(of["kernel-in-columns"].slices > 0);
  CHECK(of["kernel-in-columns"].phases > 0);
  CHECK(of["kernel-in-columns"].parts > 0);
}
