#include "raptor/model/rewrite.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "rewrite_support.hpp"

using namespace raptor;
using namespace raptor::model;
using namespace raptor::model::testing;

namespace {

/// A random graph of image operators: branches, shared results, constants, several outputs.
graph random_graph(std::uint32_t seed) {
  net n;
  n.random = numbers(seed);
  std::vector<tensor_id> images{n.input({1, 4, 6, 6})};
  const auto pick = [&] { return images[n.random.below(images.size())]; };
  const int steps = 4 + static_cast<int>(n.random.below(14));
  for (int i = 0; i < steps; ++i) {
    const auto x = pick();
    const shape sizes = n.g.at(x).sizes;
    switch (n.random.below(16)) {
      case 0: images.push_back(n.conv(x, 4, n.random.below(2) == 0, n.random.below(2) == 0 ? 4 : 1)); break;
      case 1: case 2: images.push_back(n.batch_norm(x)); break;
      case 3: images.push_back(n.add(unary{unary_kind::relu, 0, 0}, {x})); break;
      case 4: images.push_back(n.add(unary{unary_kind::identity, 0, 0}, {x})); break;
      case 5: images.push_back(n.add(binary{binary_kind::add}, {x, pick()})); break;
      case 6: images.push_back(n.add(binary{binary_kind::multiply}, {n.weights({4, 1, 1}), x})); break;
      case 7: images.push_back(n.add(binary{binary_kind::subtract}, {x, n.weights({1, 4, 1, 1})})); break;
      case 8: images.push_back(n.add(binary{binary_kind::divide}, {x, n.constant_of({}, {n.random.next() + 2})})); break;
      case 9: images.push_back(n.add(unary{unary_kind::clip, -0.5F, n.random.next() + 1}, {x})); break;
      case 10: images.push_back(n.add(reshape{}, {n.add(transpose{{0, 2, 1, 3, 4}}, {n.add(reshape{}, {x}, {1, 2, 2, 6, 6})})}, sizes)); break;
      case 11: images.push_back(n.add(transpose{{0, 1, 3, 2}}, {n.add(transpose{{0, 1, 3, 2}}, {x})})); break;
      case 12: {
        const auto padded = n.add(pad{{0, 0, 1, 1}, {0, 0, 1, 1}, pad_mode::constant, 0}, {x});
        images.push_back(n.add(pool{pool_kind::average, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, n.random.below(2) == 0}, {padded}));
        break;
      }
      case 13: images.push_back(n.add(reshape{}, {n.add(matmul{}, {n.add(reshape{}, {x}, {24, 6}), n.weights({6, 6})})}, sizes)); break;
      case 14: {
        const auto flat = n.add(gemm{0.5F, 2, false, true}, {n.add(reshape{}, {x}, {24, 6}), n.weights({6, 6}), n.weights({6})});
        images.push_back(n.add(reshape{}, {flat}, sizes));
        break;
      }
      default: {
        const auto line = n.add(reshape{}, {x}, {1, 4, 36});
        const auto c = n.add(convolution{{3}, {1}, {1}, {1}, {1}, 1}, {line, n.weights({4, 4, 3})});
        images.push_back(n.add(reshape{}, {n.batch_norm(c)}, sizes));
        break;
      }
    }
  }
  std::vector<tensor_id> outputs{images.back()};
  const auto extra = n.random.below(3);
  for (std::size_t i = 0; i < extra; ++i) outputs.push_back(pick());
  return n.done(std::move(outputs));
}

}  // namespace

TEST_CASE("canonical form: the same function, sound after every step, and at rest") {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    const auto g = random_graph(seed);
    check_graph(g);
    const auto result = canonicalize(g, [](std::string_view step, const graph& now) { check_graph(now, std::string(step)); });
    check_graph(result);
    CHECK(difference(g, result) <= 1e-5);
    CHECK(to_text(canonicalize(result)) == to_text(result));
    CHECK(to_text(canonicalize(g)) == to_text(result));
    REQUIRE(result.outputs.size() == g.outputs.size());
    std::set<tensor_id> outputs;
    for (const auto t : result.outputs) {
      CHECK(result.producer(t) != graph::no_vertex);
      CHECK(outputs.insert(t).second);
    }
    CHECK(count(result, "batch_normalization") == 0);
    CHECK(count(result, "matmul") == 0);
    CHECK(count(result, "divide") == 0);
    for (vertex v = 0; v < result.node_count(); ++v)
      if (std::holds_alternative<convolution>(result.at(v).op)) CHECK(result.at(result.at(v).outputs[0]).sizes.size() == 4);
  }
}

TEST_CASE("the table: every rewrite by itself keeps the function") {
  std::set<std::string_view> names;
  for (const auto& row : rewrite_table) {
    CHECK(names.insert(row.name).second);
    for (std::uint32_t seed = 200; seed <= 220; ++seed) {
      CAPTURE(seed);
      const auto g = random_graph(seed);
      const auto result = apply(row, g);
      check_graph(result, std::string(row.name));
      CHECK(difference(g, result) <= 1e-5);
    }
  }
}

TEST_CASE("a graph that is all constant") {
  net n;
  const auto g = canonicalize(n.done({n.add(unary{unary_kind::tanh, 0, 0}, {n.weights({3})})}));
  check_graph(g);
  CHECK(g.node_count() == 1);
  CHECK(count(g, "identity") == 1);
  CHECK(to_text(canonicalize(g)) == to_text(g));
}

TEST_CASE("scalars and empty tensors") {
  net n;
  const auto x = n.input({}), y = n.input({0, 3, 2, 2});
  const auto g = n.done({n.add(binary{binary_kind::multiply}, {n.add(unary{unary_kind::relu, 0, 0}, {x}), n.constant_of({}, {2})}), n.batch_norm(n.conv(y, 3, true))});
  const auto result = canonicalize(g);
  check_graph(result);
  CHECK(difference(g, result) <= 1e-6);
}
