// A target of one's own: any type that models raptor::target::chip_target.
#include <iostream>

#include "raptor/compiler.hpp"
#include "small_model.hpp"

namespace mine {

/// Eight cores in a ring; a matrix product takes 100 ns, everything else 1 ns and 1 ns for 16 elements.
struct ring {
  [[nodiscard]] raptor::program::geometry chip() const {
    raptor::program::geometry g;
    g.core_count = 8, g.crossbars_per_core = 4, g.crossbar_rows = 32, g.crossbar_columns = 32, g.weight_columns = 32;
    return g;
  }
  [[nodiscard]] raptor::target::picoseconds time(raptor::isa::opcode op, std::int64_t n) const {
    return op == raptor::isa::opcode::mvmul ? 100'000 : 1'000 + n / 16 * 1'000;
  }
  [[nodiscard]] raptor::target::picoseconds transfer_time(std::size_t from, std::size_t to, std::int64_t n) const {
    const std::size_t distance = from < to ? to - from : from - to;
    return static_cast<raptor::target::picoseconds>(std::min(distance, 8 - distance)) * 5'000 + 1'000 + n / 8 * 1'000;
  }
  [[nodiscard]] raptor::target::picoseconds global_time(std::size_t, std::int64_t n, bool) const { return 50'000 + n / 8 * 1'000; }
};
static_assert(raptor::target::chip_target<ring>);

}  // namespace mine

int main() {
  const auto model = small_model::convolution_and_relu();
  const auto result = raptor::basic_compiler(mine::ring{}, raptor::default_policies()).compile(model);
  std::cout << "predicted on the ring: " << result.schedule.predicted / 1000 << " ns\n";
  const double difference = small_model::largest_difference(model, result.image);
  std::cout << "largest difference from the reference: " << difference << "\n";
  return difference < 1e-5 ? 0 : 1;
}
