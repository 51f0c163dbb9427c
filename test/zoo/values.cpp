// What the bundled networks compute: finite, neither vanishing nor exploding, and dependent on the input.
#include "raptor/onnx/zoo.hpp"

#include <cmath>
#include <doctest/doctest.h>

#include "raptor/model/reference.hpp"
#include "raptor/onnx/import.hpp"

using namespace raptor;
using namespace raptor::onnx_io;

namespace {

std::vector<float> result(const model::graph& g, const network_info& n, std::int64_t size, std::uint64_t seed) {
  uniform_source source(seed, "input");
  std::vector<float> pixels;
  const auto sizes = n.input_shape(size);
  for (std::int64_t i = 0; i < element_count(sizes); ++i) pixels.push_back(source.next(0.0F, 1.0F));
  const std::vector inputs{model::make_value(sizes, pixels)};
  return model::evaluate(g, inputs).at(0).floats();
}

double root_mean_square(const std::vector<float>& values, double center = 0) {
  double sum = 0;
  for (const float v : values) sum += (v - center) * (v - center);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

TEST_CASE("outputs are finite, varied, of a moderate size, and follow the input") {
  for (const auto& n : networks) {
    CAPTURE(n.name);
    const auto size = n.name == "inception_v3" ? n.minimum_size : std::min<std::int64_t>(n.default_size, 32);
    const auto g = import_model(build_network(n.name, {.size = size}), ".");
    const auto a = result(g, n, size, 1), b = result(g, n, size, 2);
    double mean = 0, difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      REQUIRE(std::isfinite(a[i]));
      mean += a[i] / static_cast<double>(a.size());
      difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
    }
    const auto size_of_a = root_mean_square(a), spread = root_mean_square(a, mean);
    CHECK(size_of_a > 1e-4);
    CHECK(size_of_a < 1e2);
    // The mean of a softmax over a thousand classes is 1e-3; what tells the classes apart must not drown in it.
    CHECK(spread > 0.1 * size_of_a);
    CHECK(difference > 0.01 * spread);
  }
}

TEST_CASE("every network takes a batch, and treats its inputs as if each came alone") {
  for (const auto& n : networks) {
    CAPTURE(n.name);
    const auto size = n.name == "inception_v3" ? n.minimum_size : std::min<std::int64_t>(n.default_size, 32);
    const auto model = build_network(n.name, {.size = size});
    const std::size_t batch = n.input == input_kind::steps ? 1 : 0;  // the dimension
    auto sizes = n.input_shape(size);
    sizes[batch] = 2;
    import_options options;
    options.shapes = {{"input", sizes}};
    const auto pairs = import_model(model, ".", options);
    const auto alone = import_model(model, ".");
    auto expected = alone.at(alone.outputs.at(0)).sizes;
    expected.at(0) = 2;
    CHECK(pairs.at(pairs.outputs.at(0)).sizes == expected);
    // The values, of those with a Reshape of their own kind; the others would only cost time.
    if (n.name != "shufflenet" && n.name != "mobilenetv2" && n.name != "transformer" && n.name != "lstm") continue;
    const auto whole = n.input_shape(size);
    const auto length = static_cast<std::size_t>(element_count(whole));
    uniform_source source(3, "input");
    std::vector<float> both(2 * length), separate;
    for (auto& x : both) x = source.next(0.0F, 1.0F);
    for (std::size_t i = 0; i < 2; ++i) {
      // Of a sequence the steps come first: one input is every other row.
      std::vector<float> one(length);
      const auto row = batch == 0 ? length : static_cast<std::size_t>(whole.back());
      for (std::size_t e = 0; e < length; ++e) one[e] = both[(e / row * 2 + i) * row + e % row];
      const auto result = model::evaluate(alone, std::vector{model::make_value(whole, one)}).at(0).floats();
      separate.insert(separate.end(), result.begin(), result.end());
    }
    const auto together = model::evaluate(pairs, std::vector{model::make_value(sizes, both)}).at(0).floats();
    CHECK(std::vector<float>(together.begin(), together.end()) == separate);
  }
}
