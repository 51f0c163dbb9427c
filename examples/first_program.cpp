// A program that includes the toolkit: compiles a small model for four cores, executes it, compares with the reference.
#include <iostream>

#include "raptor/compiler.hpp"
#include "raptor/target/pim.hpp"
#include "small_model.hpp"

int main() {
  const auto model = small_model::convolution_and_relu();
  const raptor::target::pim chip(/*cores*/ 4, /*crossbars*/ 16, /*crossbar size*/ 64);
  const auto result = raptor::basic_compiler(chip, raptor::default_policies()).compile(model);

  std::cout << result.computes.size() << " computes in " << result.schedule.graph.tiles.size() << " tiles, predicted "
            << result.schedule.predicted / 1000 << " ns\n";
  const double difference = small_model::largest_difference(model, result.image);
  std::cout << "largest difference from the reference: " << difference << "\n";
  return difference < 1e-5 ? 0 : 1;
}
