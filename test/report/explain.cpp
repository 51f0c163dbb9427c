#include "raptor/report/explain.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "raptor/lowering/merging.hpp"
#include "raptor/schedule/spread_placement.hpp"
#include "raptor/target/pim.hpp"

using namespace raptor;

namespace {

using names = std::vector<std::string>;

/// x → conv1 → conv2 → relu → y.
model::graph small_network() {
  model::graph g;
  g.name = "net";
  using model::element_type;
  const auto data = [](std::size_t n) { return std::make_shared<const model::constant>(model::constant{std::vector<float>(n, 0.5F)}); };
  const auto x = g.add_tensor({"x", element_type::f32, {1, 4, 12, 12}, nullptr});
  const auto w1 = g.add_tensor({"w1", element_type::f32, {4, 4, 3, 3}, data(144)}), w2 = g.add_tensor({"w2", element_type::f32, {4, 4, 3, 3}, data(144)});
  const auto a = g.add_tensor({"a", element_type::f32, {1, 4, 12, 12}, nullptr}), b = g.add_tensor({"b", element_type::f32, {1, 4, 12, 12}, nullptr});
  const auto y = g.add_tensor({"y", element_type::f32, {1, 4, 12, 12}, nullptr});
  const model::convolution same{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1};
  g.add_node({same, {x, w1}, {a}, {"conv1", "Conv", "", 13}});
  g.add_node({same, {a, w2}, {b}, {"conv2", "Conv", "", 13}});
  g.add_node({model::unary{model::unary_kind::relu, 0, 0}, {b}, {y}, {"relu", "Relu", "", 13}});
  g.inputs = {x}, g.outputs = {y};
  return g;
}

/// x → conv1, conv2 of one pixel each → relu1, relu2: two outputs.
model::graph two_branches() {
  model::graph g;
  g.name = "net";
  using model::element_type;
  const auto x = g.add_tensor({"x", element_type::f32, {1, 80, 6, 6}, nullptr});
  g.inputs = {x};
  std::vector<model::tensor_id> results;
  for (const std::int64_t channels : {24, 40}) {
    const auto number = std::to_string(results.size() + 1);
    const auto data = std::make_shared<const model::constant>(model::constant{std::vector<float>(static_cast<std::size_t>(80 * channels), 0.5F)});
    const auto w = g.add_tensor({"w" + number, element_type::f32, {channels, 80, 1, 1}, data});
    results.push_back(g.add_tensor({"a" + number, element_type::f32, {1, channels, 6, 6}, nullptr}));
    g.add_node({model::convolution{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, {x, w}, {results.back()}, {"conv" + number, "Conv", "", 13}});
  }
  for (const auto a : results) {
    g.outputs.push_back(g.add_tensor({"y", element_type::f32, g.at(a).sizes, nullptr}));
    g.add_node({model::unary{model::unary_kind::relu, 0, 0}, {a}, {g.outputs.back()}, {"relu", "Relu", "", 13}});
  }
  return g;
}
/// Everything in row strips.
layout::plan in_rows(const model::graph& g) {
  auto plan = layout::dense_layout{}(g);
  for (auto& a : plan.chosen) a.operands[0] = a.result = layout::physical::nhwc_row_strip;
  return plan;
}

const lowering::default_convolution_strategies strategies;

struct compiled {
  model::graph model;
  target::pim chip{4, 16, 64};
  program::geometry sizes = chip.chip();
  lowering::lowering_options options;
  layout::plan plan;
  lowering::lowered lowered;
  lowering::compute_graph computes;
  schedule::schedule schedule;

  explicit compiled(const std::string& strategy = "auto") : compiled(strategy, small_network(), layout::descending_layout{}(small_network())) {}
  compiled(const std::string& strategy, model::graph g, layout::plan layouts) : model(std::move(g)), plan(std::move(layouts)) {
    options.convolution = strategy;
    lowered = lowering::lower_model(model, plan, sizes, options, [this](isa::opcode op, std::int64_t n) { return chip.time(op, n); }, strategies, report::energy_of(chip));
    computes = lowering::merge_trivial(communication::chain_accumulation{}(lowered.graph));
    schedule.graph = schedule::make_tiles(chip, computes);
    schedule::spread_placement{}(chip, computes, std::vector<std::int64_t>(computes.size(), 2), schedule);
    schedule::ready_order{}(chip, computes, schedule);
  }
  std::string explain(model::vertex v) const {
    report::strategy_table table(chip, model, plan, lowered, strategies);
    const report::explained<target::pim, lowering::default_convolution_strategies> all{chip, model, plan, lowered, computes, schedule, table};
    return report::explain(all, v);
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("edit distance") {
  CHECK(report::edit_distance("", "") == 0);
  CHECK(report::edit_distance("abc", "") == 3);
  CHECK(report::edit_distance("", "abc") == 3);
  CHECK(report::edit_distance("kitten", "sitting") == 3);
  CHECK(report::edit_distance("conv1", "conv_1") == 1);
}

TEST_CASE("near names: parts first, then by distance, each once") {
  CHECK(report::near_names("conv", {"relu", "conv2", "conv1", "conv1", ""}) == names{"conv1", "conv2", "relu"});
  CHECK(report::near_names("rely", {"relu", "conv2", "tail"}, 2) == names{"relu", "tail"});
  CHECK(report::near_names("x", {}).empty());
}

TEST_CASE("named nodes") {
  const auto g = small_network();
  using vertices = std::vector<model::vertex>;
  CHECK(report::named_nodes(g, g, "conv2") == vertices{1});
  CHECK(report::named_nodes(g, g, "all") == vertices{0, 1, 2});
  CHECK_THROWS_WITH_AS(static_cast<void>(report::named_nodes(g, g, "conv3")), "--explain=conv3: no node has this name; near it: conv1, conv2, relu (or all)", error);
  model::graph imported;
  const auto x = imported.add_tensor({"x", model::element_type::f32, {1}, nullptr}), y = imported.add_tensor({"y", model::element_type::f32, {1}, nullptr});
  imported.add_node({model::unary{model::unary_kind::relu, 0, 0}, {x}, {y}, {"bn1", "BatchNormalization", "", 13}});
  CHECK_THROWS_WITH_AS(static_cast<void>(report::named_nodes(g, imported, "bn1")), "--explain=bn1: the rewrites made this node part of another one; near it: conv1, conv2, relu (or all)", error);
}

TEST_CASE("strategies as they lower a convolution") {
  const compiled c;
  report::strategy_table table(c.chip, c.model, c.plan, c.lowered, strategies);
  const auto& first = table.of(0);
  REQUIRE(first.size() == std::tuple_size_v<lowering::default_convolution_strategies>);
  CHECK(&table.of(0) == &first);
  const auto actual = report::demand_by_node(c.chip, c.model, c.computes, c.schedule.graph);
  for (const model::vertex v : {0u, 1u}) {
    const auto& choice = c.lowered.convolutions.at(v);
    for (const auto& s : table.of(v)) {
      CAPTURE(v);
      CAPTURE(s.name);
      CHECK(s.refused.empty() == std::any_of(choice.candidates.begin(), choice.candidates.end(), [&](const auto& x) { return x.first == s.name; }));
      if (!s.refused.empty()) continue;
      CHECK(s.work.matrix > 0);
      CHECK(s.crossbars > 0);
      CHECK(s.cost > 0);
      // The chosen one, lowered alone, asks for what it asks for in the model.
      if (s.name != choice.strategy) continue;
      CHECK(s.cost == choice.cost);
      CHECK(s.work.products == actual.at(v).products);
      CHECK(s.work.matrix == actual.at(v).matrix);
      CHECK(s.work.copies == actual.at(v).copies);
      if (v == 0) CHECK(s.work.serial() == actual.at(v).serial());  // the relu takes part in the other one
    }
  }
  // Windows that share pixels: fewer products than one a window.
  const auto products = [&](const std::string& name) {
    for (const auto& s : first)
      if (s.name == name) return s.work.products;
    return std::int64_t{0};
  };
  CHECK(products("streamed-patch") == 144);
  CHECK(products("toeplitz") < 144);
  CHECK(products("kernel-in-columns") < 144);
}

TEST_CASE("bounds over all strategies are below those of any one") {
  for (const std::string strategy : {"auto", "legacy", "streamed-patch", "toeplitz", "kernel-in-columns"}) {
    CAPTURE(strategy);
    const compiled c(strategy);
    report::strategy_table table(c.chip, c.model, c.plan, c.lowered, strategies);
    const auto best = report::strategy_bounds(c.chip, table, c.model, c.lowered, c.computes, c.schedule.graph);
    REQUIRE(best.size() == 2);
    CHECK(best[0].resource == "best_matrix");
    CHECK(best[1].resource == "best_work");
    const auto b = report::lower_bounds(c.chip, c.computes, c.schedule, best);
    const auto least = [&](const std::string& resource) {
      for (const auto& x : b.all)
        if (x.resource == resource) return x.least;
      return schedule::picoseconds{-1};
    };
    CHECK(least("best_matrix") <= least("matrix"));
    CHECK(least("best_work") <= least("work"));
    if (strategy == "legacy" || strategy == "streamed-patch") CHECK(least("best_matrix") < least("matrix"));
    CHECK(best[0].of.rfind("convolutions by ", 0) == 0);
    const auto text = report::bounds_report(b);
    CHECK(has(text, "\nof every choice of strategies\n  best_matrix"));
    CHECK(has(text, "\nof this placement\n  network"));
    CHECK(has(text, "\nbetween inputs: at least "));
    CHECK(has(report::bounds_line(b), "predicted "));
  }
}

TEST_CASE("what a convolution got and why") {
  const compiled c;
  const auto text = c.explain(0);
  CAPTURE(text);
  const auto& choice = c.lowered.convolutions.at(0);
  CHECK(text.rfind("Conv \"conv1\" (ai.onnx, opset 13)\n  gives     a, 1x4x12x12\n  layout    ", 0) == 0);
  CHECK(has(text, "            instead "));
  CHECK(has(text, "\n  strategy  " + choice.strategy));
  CHECK(has(text, "; stage 0\n"));
  CHECK(has(text, "\n    this program "));
  CHECK(has(text, "  chosen, cost " + report::microseconds(choice.cost) + "\n"));
  for (const auto& [name, reason] : choice.refused) CHECK(has(text, "\n    " + report::left(name, 24) + " does not apply: " + reason + "\n"));
  for (const auto& [name, cost] : choice.candidates) CHECK(has(text, ", cost " + report::microseconds(cost) + "\n"));
  CHECK_FALSE(has(text, "forced"));
  CHECK(has(compiled("streamed-patch").explain(0), "\n    the strategy was forced by --pim-conv-lowering\n"));
}

TEST_CASE("convolutions that were lowered together are reported with each other") {
  const compiled c("auto", two_branches(), in_rows(two_branches()));
  REQUIRE(c.lowered.convolutions.size() == 2);
  const std::vector<model::vertex> both{0, 1};
  for (const auto& choice : c.lowered.convolutions) CHECK(choice.together == both);
  const auto first = c.explain(0), second = c.explain(1);
  CAPTURE(first);
  CAPTURE(second);
  CHECK(has(first, "\n  together  with conv2: they read the same tensor"));
  CHECK(has(second, "\n  together  with conv1: they read the same tensor, one product gives the channels of all; the computes are those of conv1\n"));
  CHECK(has(first, "\n    this program "));
  CHECK_FALSE(has(second, "\n    this program "));
  for (const auto& text : {first, second}) {
    CHECK(has(text, "  alone, cost "));
    CHECK_FALSE(has(text, "  chosen"));
    CHECK_FALSE(has(text, "computes  none"));
  }
  CHECK(has(second, "\n    its share of what the group costs is " + report::microseconds(c.lowered.convolutions[1].cost) + "\n"));
  const auto list = report::convolution_report(c.model, c.lowered.convolutions, c.sizes, c.options);
  CHECK(has(list, " us\n  together with conv2\n  next "));
  CHECK(has(list, " us\n  together with conv1\n  next "));
  CHECK(has(list, " us, alone\n"));
  // One compute has the names of all.
  bool named = false;
  for (lowering::vertex v = 0; v < c.computes.size(); ++v) named = named || c.computes.at(v).name.rfind("conv1+conv2", 0) == 0;
  CHECK(named);
  // The bounds take the group as one: never more than what it asks for.
  report::strategy_table table(c.chip, c.model, c.plan, c.lowered, strategies);
  const auto best = report::strategy_bounds(c.chip, table, c.model, c.lowered, c.computes, c.schedule.graph);
  const auto b = report::lower_bounds(c.chip, c.computes, c.schedule, best);
  const auto least = [&](const std::string& resource) {
    for (const auto& x : b.all)
      if (x.resource == resource) return x.least;
    return schedule::picoseconds{-1};
  };
  CHECK(least("best_matrix") > 0);
  CHECK(least("best_matrix") <= least("matrix"));
  CHECK(least("best_work") <= least("work"));
}

TEST_CASE("a node without strategies, and one of which nothing is left") {
  const compiled c;
  const auto text = c.explain(2);
  CHECK(text.rfind("Relu \"relu\" (ai.onnx, opset 13)\n", 0) == 0);
  CHECK_FALSE(has(text, "does not apply"));
  compiled none;
  none.computes = {};
  none.schedule = {};
  CHECK(has(none.explain(0), "\n  computes  none: "));
}
