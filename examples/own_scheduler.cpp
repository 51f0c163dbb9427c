// A scheduler of one's own: the order slot is replaced by a policy that lives in the user's namespace.
#include <iostream>
#include <numeric>

#include "raptor/compiler.hpp"
#include "raptor/target/pim.hpp"
#include "small_model.hpp"

namespace mine {

/// Tiles in the order of their numbers, which is topological; every tile starts when the one before it has finished.
struct one_after_another {
  template <raptor::target::chip_target Target>
  void operator()(const Target& chip, const raptor::lowering::compute_graph& computes, raptor::schedule::schedule& s) const {
    s.order.resize(s.graph.tiles.size());
    std::iota(s.order.begin(), s.order.end(), 0u);
    s.predicted = 0;
    for (const auto i : s.order) {
      const auto& tile = s.graph.tiles[i];
      s.place[i].start = s.predicted;
      s.predicted += raptor::schedule::tile_time(chip, computes.at(tile.compute), tile.lanes);
      s.place[i].finish = s.predicted;
    }
  }
};

}  // namespace mine

int main() {
  const auto model = small_model::convolution_and_relu();
  const raptor::target::pim chip(4, 16, 64);
  const auto policies = raptor::default_policies() | raptor::with<raptor::order_slot>(mine::one_after_another{});
  const auto usual = raptor::basic_compiler(chip, raptor::default_policies()).compile(model);
  const auto own = raptor::basic_compiler(chip, policies).compile(model);

  std::cout << "predicted: " << usual.schedule.predicted / 1000 << " ns, one after another: " << own.schedule.predicted / 1000 << " ns\n";
  const double difference = small_model::largest_difference(model, own.image);
  std::cout << "largest difference from the reference: " << difference << "\n";
  return difference < 1e-5 && own.schedule.predicted >= usual.schedule.predicted ? 0 : 1;
}
