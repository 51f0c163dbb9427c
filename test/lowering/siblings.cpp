#include "raptor/lowering/siblings.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "interpreter.hpp"
#include "one_node.hpp"
#include "raptor/lowering/lower.hpp"
#include "raptor/lowering/merging.hpp"

using namespace raptor;
using namespace raptor::test;
using namespace raptor::lowering;

namespace {

struct branch {
  std::int64_t channels = 1;
  bool bias = false, relu = false;
  std::int64_t kernel = 1, stride = 1;
  bool output = false;  ///< the convolution's own tensor is a graph output too
};

/// x → a convolution a branch (c0, c1, …), each perhaps with a relu behind it; every end is a graph output. All in row strips.
struct branches {
  model::graph graph;
  layout::plan plan;
  program::geometry chip;
  lowering_options options;
  instruction_time time = [](isa::opcode op, std::int64_t n) { return (op == isa::opcode::mvmul ? 100000 : 100) + n; };
  lowered result;

  branches(const shape& x_sizes, const std::vector<branch>& list) {
    chip.core_count = 8, chip.crossbars_per_core = 16, chip.crossbar_rows = chip.crossbar_columns = chip.weight_columns = 16;
    const auto x = graph.add_tensor({"x", model::element_type::f32, x_sizes, nullptr});
    graph.inputs = {x};
    const auto constant = [&](const std::string& name, const shape& sizes, std::uint32_t seed) {
      model::tensor t{name, model::element_type::f32, sizes, nullptr};
      t.data = std::make_shared<const model::constant>(model::constant{noise(element_count(sizes), seed)});
      return graph.add_tensor(t);
    };
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto& b = list[i];
      const auto name = "c" + std::to_string(i);
      const auto seed = static_cast<std::uint32_t>(10 * i + 5);
      std::vector<model::tensor_id> inputs{x, constant(name + ".w", {b.channels, x_sizes[1], b.kernel, b.kernel}, seed)};
      if (b.bias) inputs.push_back(constant(name + ".b", {b.channels}, seed + 1));
      const shape y_sizes{x_sizes[0], b.channels, (x_sizes[2] - b.kernel) / b.stride + 1, (x_sizes[3] - b.kernel) / b.stride + 1};
      auto y = graph.add_tensor({name + ".y", model::element_type::f32, y_sizes, nullptr});
      graph.add_node({model::convolution{{b.kernel, b.kernel}, {b.stride, b.stride}, {1, 1}, {0, 0}, {0, 0}, 1}, inputs, {y}, {name, "Conv", "", 13}});
      plan.chosen.push_back({std::vector<layout::physical>(inputs.size(), dense), rows, 0});
      plan.chosen.back().operands[0] = rows;
      if (b.output || !b.relu) graph.outputs.push_back(y);
      if (!b.relu) continue;
      const auto z = graph.add_tensor({name + ".z", model::element_type::f32, y_sizes, nullptr});
      graph.add_node({model::unary{model::unary_kind::relu, 0, 0}, {y}, {z}, {name + ".relu", "Relu", "", 13}});
      plan.chosen.push_back({{rows}, rows, 0});
      graph.outputs.push_back(z);
    }
  }

  /// Lowers, checks all outputs in several tilings, before and after merging, and gives the groups by the numbers of their branches.
  template <class Strategies = default_convolution_strategies>
  std::set<std::set<std::string>> groups(const Strategies& strategies = {}) {
    result = lower_model(graph, plan, chip, options, time, strategies);
    const std::vector<model::tensor_value> inputs{model::make_value(graph.at(graph.inputs[0]).sizes, noise(element_count(graph.at(graph.inputs[0]).sizes)))};
    const auto expected = model::evaluate(graph, inputs);
    for (const auto& computes : {result.graph, merge_trivial(result.graph)})
      for (const auto& how : {tiling{1, false, 0}, tiling{1, true, 1}}) {
        interpreter machine(computes, inputs);
        machine.run(how);
        std::size_t seen = 0;
        for (std::uint32_t v = 0; v < computes.values().size(); ++v) {
          const auto position = computes.values()[v].result;
          if (position < 0) continue;
          ++seen;
          const auto& wanted = expected.at(static_cast<std::size_t>(position));
          CHECK(model::compare(model::make_value(wanted.sizes, machine.value(v)), wanted).relative() < 1e-5);
        }
        CHECK(seen == graph.outputs.size());
      }
    std::set<std::set<std::string>> found;
    for (const auto& choice : result.convolutions) {
      std::set<std::string> names;
      for (const auto v : choice.together) names.insert(graph.at(v).from.node);
      if (names.empty()) continue;
      CHECK(names.count(graph.at(choice.node).from.node) == 1);
      CHECK(names.size() > 1);
      found.insert(names);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> with_weights() const {
    std::vector<std::string> names;
    for (vertex v = 0; v < result.graph.size(); ++v)
      if (!result.graph.at(v).groups.empty()) names.push_back(result.graph.at(v).name);
    return names;
  }
};

using groups = std::set<std::set<std::string>>;
using strings = std::vector<std::string>;
using windows = std::tuple<streamed_patch, output_channel_tiled, input_k_tiled, tiled_2d>;

}  // namespace

TEST_CASE("two and three siblings, with and without bias and relu, strides, numbers of channels that divide nothing") {
  for (const std::int64_t channels : {13, 16, 21, 32})  // a bias row fits, or all rows are full; one slice or two
    for (const std::int64_t stride : {1, 2})
      for (const bool bias : {false, true})
        for (const bool relu : {false, true})
          for (const std::size_t count : {2U, 3U}) {
            CAPTURE(channels);
            CAPTURE(stride);
            CAPTURE(bias);
            CAPTURE(relu);
            std::vector<branch> list{{13, bias, relu, 1, stride}, {5, !bias, false, 1, stride}, {18, bias, true, 1, stride}};
            list.resize(count);
            branches b({2, channels, 5, 6}, list);
            CHECK(b.groups(windows{}) == groups{count == 2 ? std::set<std::string>{"c0", "c1"} : std::set<std::string>{"c0", "c1", "c2"}});
            CHECK(b.with_weights() == strings{count == 2 ? "c0+c1" : "c0+c1+c2"});
          }
}

TEST_CASE("one product a slice serves all siblings") {
  branches b({1, 21, 4, 6}, {{13}, {5}, {18}});
  CHECK(b.groups(windows{}).size() == 1);
  const std::vector<model::tensor_value> inputs{model::make_value(shape{1, 21, 4, 6}, noise(21 * 24))};
  REQUIRE(b.with_weights() == strings{"c0+c1+c2"});
  for (vertex v = 0; v < b.result.graph.size(); ++v) {
    const auto& c = b.result.graph.at(v);
    if (c.groups.empty()) continue;
    CHECK(c.op == "convolution+convolution+convolution");
    REQUIRE(c.groups.size() == 2);  // slices of 16 and 5 rows
    for (const auto& g : c.groups) CHECK(g.columns == 36);
  }
  // The group's cost is divided among its members by their channels, and is less than what they cost alone.
  double sum = 0, alone = 0;
  for (const auto& choice : b.result.convolutions) {
    CHECK(choice.strategy == "tiled-2d");
    CHECK(choice.cost / static_cast<double>(choice.sizes.out_channels) == doctest::Approx(b.result.convolutions[0].cost / 13));
    sum += choice.cost;
    double least = choice.candidates.front().second;
    for (const auto& [name, cost] : choice.candidates) least = std::min(least, cost);
    alone += least;
  }
  CHECK(sum < alone);
}

TEST_CASE("a sibling that is also a graph output, rows cut into stretches") {
  branches b({1, 20, 5, 7}, {{9, true, true, 1, 1, true}, {11, false, true}});
  CHECK(b.groups(windows{}) == groups{{"c0", "c1"}});
  branches cut({1, 20, 5, 24}, {{9, true, true}, {11}});
  cut.options.tile_time = 500000;
  CHECK(cut.groups(windows{}) == groups{{"c0", "c1"}});
  CHECK(cut.with_weights().size() > 1);
  CHECK(cut.with_weights().front() == "c0+c1[0]");
}

TEST_CASE("only what reads the same through the same windows joins") {
  branches b({1, 20, 6, 6}, {{9}, {11, false, false, 1, 2}, {10, false, false, 3}, {8}, {7, true, false, 1, 2}});
  CHECK(b.groups() == groups{{"c0", "c3"}, {"c1", "c4"}});
  branches forced({1, 20, 6, 6}, {{9}, {11}, {8}});
  forced.options.convolution_of["c1"] = "legacy";
  CHECK(forced.groups() == groups{{"c0", "c2"}});
  forced.options.convolution = "input-k-tiled";
  CHECK(forced.groups().empty());
  branches images({1, 20, 6, 6}, {{9}, {11}});
  for (auto& a : images.plan.chosen) a.operands[0] = a.result = dense;
  CHECK(images.groups().empty());
  branches one({1, 20, 6, 6}, {{9}});
  CHECK(one.groups(std::tuple<input_k_tiled>{}).empty());
}

TEST_CASE("the kernel in the columns: slices of channels, parts of the output channels, stretches of rows, several pixels a product") {
  std::size_t of_three = 0, several = 0;  // groups of all; several computes of a group
  const auto check = [&](branches b) {
    const auto found = b.groups(std::tuple<kernel_in_columns>{});
    REQUIRE(found.size() == 1);  // those that save most
    if (found.begin()->size() == 3) ++of_three;
    if (b.with_weights().size() > 4 - found.begin()->size()) ++several;
  };
  for (const std::int64_t channels : {4, 16, 21, 40})
    for (const std::int64_t stride : {1, 2})
      for (const bool bias : {false, true})
        for (const bool relu : {false, true}) {
          CAPTURE(channels);
          CAPTURE(stride);
          CAPTURE(bias);
          CAPTURE(relu);
          const std::vector<branch> list{{13, bias, relu, 1, stride}, {5, !bias, false, 1, stride}, {18, bias, true, 1, stride}};
          branches whole({2, channels, 5, 9}, list);
          check(whole);
          branches parts = whole;  // a part has two crossbars: output channels of one convolution lie in several parts, and of several in one
          parts.options.part_share = 0.13;
          check(parts);
          branches stretches = whole;
          stretches.options.tile_time = 150000;
          check(stretches);
        }
  CHECK(of_three > 60);
  CHECK(several > 40);
}

TEST_CASE("groups fit a core, and cost less than their members alone") {
  // Two slices; 16, 16 and 32 columns are 2, 2 and 4 crossbars. A core of 6 holds two of them, one of 4 the small ones, one of 2 none.
  for (const auto& [crossbars, expected] : {std::pair<std::int64_t, std::size_t>{8, 3}, {6, 2}, {4, 2}, {3, 0}}) {
    CAPTURE(crossbars);
    branches b({1, 20, 6, 6}, {{16}, {16}, {32}});
    b.chip.crossbars_per_core = crossbars;
    const auto found = b.groups(windows{});
    CHECK(found.size() == (expected > 0 ? 1 : 0));
    for (const auto& g : found) CHECK(g.size() == expected);
    if (crossbars == 4) CHECK(found == groups{{"c0", "c1"}});
  }
  // Eight windows of two channels share a product: alone they need fewer products.
  branches packed({1, 2, 6, 16}, {{2}, {2}});
  CHECK(packed.groups(std::tuple<streamed_packed, streamed_patch>{}).empty());
  CHECK(packed.with_weights().size() == 2);
}

TEST_CASE("many siblings: every dozen is looked at together") {
  branches b({1, 20, 3, 4}, std::vector<branch>(30, branch{3, true}));
  std::size_t members = 0;
  for (const auto& g : b.groups()) {
    CHECK(g.size() <= 12);
    members += g.size();
  }
  CHECK(members == 30);
}
