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
