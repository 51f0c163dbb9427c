#include "raptor/lowering/siblings.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "branches.hpp"

using namespace raptor;
using namespace raptor::test;
using namespace raptor::lowering;

namespace {

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

TEST_CASE("results that wait for others in a sum stay alone, those of a concatenation do not") {
  const auto with = [](bool relu_between, const model::operation& op) {
    branches b({1, 20, 6, 6}, {{9, false, relu_between}, {9, false, relu_between}, {11}, {8}});
    const bool sum = std::holds_alternative<model::binary>(op);
    const auto y = b.graph.add_tensor({"y", model::element_type::f32, {1, sum ? 9 : 18, 6, 6}, nullptr});
    b.graph.add_node({op, {b.graph.outputs[0], b.graph.outputs[1]}, {y}, {"y", sum ? "Add" : "Concat", "", 13}});
    b.plan.chosen.push_back({{rows, rows}, rows, 0});
    b.graph.outputs = {y, b.graph.outputs[2], b.graph.outputs[3]};
    return b.groups(windows{});
  };
  for (const bool relu : {false, true}) {
    CHECK(with(relu, model::binary{model::binary_kind::add}) == groups{{"c2", "c3"}});
    CHECK(with(relu, model::concat{1}) == groups{{"c0", "c1", "c2", "c3"}});
  }
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
