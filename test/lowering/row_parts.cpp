#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "branches.hpp"

using namespace raptor;
using namespace raptor::test;
using namespace raptor::lowering;

TEST_CASE("what follows a convolution of several parts is done by the computes that finish its rows, stretch by stretch") {
  branches b({1, 300, 4, 12}, {{9, true, true}});
  b.options.tile_time = 1500000;
  CHECK(b.groups(std::tuple<input_k_tiled>{}).empty());
  std::size_t parts = 0;
  for (const auto& name : b.with_weights()) parts += name.find("[0]") != std::string::npos ? 1U : 0U;
  CHECK(parts > 1);
  REQUIRE(b.with_weights().size() > parts);
  // Each stretch has a relu of its own, which joins the last of the computes that add up.
  const auto merged = merge_trivial(communication::chain_accumulation{}(b.result.graph));
  std::size_t with_relu = 0;
  for (vertex v = 0; v < merged.size(); ++v) {
    const auto& c = merged.at(v);
    if (c.op.find("relu") == std::string::npos) continue;
    ++with_relu;
    CHECK(!c.groups.empty());
  }
  CHECK(with_relu == b.with_weights().size() / parts);
}

TEST_CASE("iterations that take long are written out, so that tiles can pause within them") {
  const auto loops = [](std::int64_t channels) {
    branches b({1, channels, 4, 6}, {{9}});
    b.time = [](isa::opcode op, std::int64_t) { return op == isa::opcode::mvmul ? 1'750'000 : 100'000; };
    b.options.tile_time = 1'000'000'000;
    CHECK(b.groups(std::tuple<streamed_patch, input_k_tiled>{}).empty());
    std::size_t count = 0;
    REQUIRE(b.with_weights().size() == 1);
    for (vertex v = 0; v < b.result.graph.size(); ++v)
      for (const auto& item : b.result.graph.at(v).body)
        if (!b.result.graph.at(v).groups.empty()) count += std::holds_alternative<loop>(item.what) ? 1U : 0U;
    return count;
  };
  CHECK(loops(32) == 1);  // two products a pixel
  CHECK(loops(48) == 0);  // three
}
