#include "raptor/report/convolutions.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace raptor;

namespace {

model::graph one_convolution(const std::string& name) {
  model::graph g;
  g.name = "net";
  model::tensor x{"x", model::element_type::f32, {1, 3, 8, 8}, nullptr}, w{"w", model::element_type::f32, {4, 3, 3, 3}, nullptr};
  w.data = std::make_shared<const model::constant>(model::constant{std::vector<float>(108)});
  const auto in = g.add_tensor(x), weights = g.add_tensor(w), out = g.add_tensor({"y", model::element_type::f32, {1, 4, 8, 8}, nullptr});
  g.inputs = {in}, g.outputs = {out};
  g.add_node({model::convolution{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, {in, weights}, {out}, {name, "Conv", "", 13}});
  return g;
}
program::geometry chip_of(std::int64_t size) {
  program::geometry g;
  g.core_count = 4, g.crossbars_per_core = 4, g.crossbar_rows = size, g.crossbar_columns = size, g.weight_columns = size;
  return g;
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("chunk positions follow the formula") {
  lowering::convolution_shape s;
  s.channels = 3, s.out_channels = 4, s.kernel_h = s.kernel_w = 3, s.out_height = s.out_width = 10;  // k = 27, p = 100
  lowering::lowering_options o;
  CHECK(report::chunk_positions(s, 1, o) == 100);
  CHECK(report::chunk_positions(s, 8, o) == 96);  // a multiple of pack
  o.stream_chunk_positions = 30;
  CHECK(report::chunk_positions(s, 4, o) == 28);
  CHECK(report::chunk_positions(s, 64, o) == 30);  // not larger than pack: as it is
  o.im2col_max_elements = 270;
  CHECK(report::chunk_positions(s, 1, o) == 10);
  o.im2col_max_elements = 1;
  CHECK(report::chunk_positions(s, 1, o) == 1);
}

TEST_CASE("the report of a convolution that was lowered") {
  const auto g = one_convolution("conv1");
  lowering::lowering_options options;
  layout::plan plan = layout::dense_layout{}(g);
  lowering::compute_graph computes;
  const auto chip = chip_of(64);
  lowering::context c(g, plan, chip, options, [](isa::opcode, std::int64_t n) { return 1000 + n; }, computes);
  const auto choice = lowering::lower_convolution(c, 0, lowering::default_convolution_strategies{});
  const auto text = report::convolution_report(g, {choice}, chip, options);
  CHECK(has(text, "convolutions of net: 1\ncrossbar 64 x 64, strategy auto, im2col limit 1048576 elements, chunks of at most 1024 positions\n"));
  CHECK(has(text, "\nConv \"conv1\" (ai.onnx, opset 13)\n  1x3x8x8 -> 1x4x8x8, kernel 3x3, strides 1x1\n  k = 27, c = 4, p = 64, pack = 2, chunk = 64 positions\n"));
  CHECK(has(text, "\n  chosen   " + choice.strategy + "  " + report::microseconds(choice.cost) + " us\n"));
  CHECK(has(text, "\n  refused  depthwise: group = 1 is not the number of input channels, 3\n"));
  CHECK(has(text, "\n  refused  tiled-2d: it needs k and c beyond one crossbar: k = 27, c = 4, crossbar 64 x 64\n"));
  // Every strategy is chosen, next, a candidate or refused; the runner-up is the cheapest other candidate.
  double next = std::numeric_limits<double>::infinity();
  std::string name;
  for (const auto& candidate : choice.candidates)
    if (candidate.first != choice.strategy && candidate.second < next) name = candidate.first, next = candidate.second;
  REQUIRE(!name.empty());
  CHECK(has(text, "\n  next     " + name + "  " + report::microseconds(next) + " us\n"));
  CHECK(choice.candidates.size() + choice.refused.size() == std::tuple_size_v<lowering::default_convolution_strategies>);
}

TEST_CASE("the report is bounded") {
  const auto g = one_convolution(std::string(5000, 'x'));
  lowering::convolution_choice c{0, lowering::shape_of(g, 0), "legacy", 1.5e6, {{"legacy", 1.5e6}}, {}};
  for (int i = 0; i < 50; ++i) c.refused.emplace_back("s" + std::to_string(i), std::string(1000, 'r'));
  const std::vector<lowering::convolution_choice> many(300, c);
  const auto text = report::convolution_report(g, many, chip_of(16), {});
  CHECK(text.size() < 1000000);
  CHECK(!has(text, std::string(201, 'r')));
  CHECK(has(text, "\n... and 100 more convolutions\n"));
  CHECK(has(text, "  refused  ... and 38 more\n"));
  CHECK(has(text, "legacy                           300                    450.000\n"));
  CHECK(has(text, "  next     none, no other strategy applies\n"));
}

TEST_CASE("a model without convolutions, one without output elements, costs that are no numbers") {
  const auto g = one_convolution("c");
  CHECK(has(report::convolution_report(g, {}, chip_of(16), {}), "convolutions of net: 0\n"));
  lowering::convolution_choice empty{0, lowering::shape_of(g, 0), "", 0, {}, {}};
  CHECK(has(report::convolution_report(g, {empty}, chip_of(16), {}), "  chosen   none: it has no output elements\n"));
  lowering::convolution_choice odd{0, lowering::shape_of(g, 0), "mine", std::numeric_limits<double>::quiet_NaN(), {}, {}};
  CHECK(has(report::convolution_report(g, {odd}, chip_of(16), {}), "  chosen   mine  unknown us\n"));
}
