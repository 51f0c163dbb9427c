// A convolution strategy of one's own in front of the usual ones: it takes the convolutions that it wants, the others fall through.
#include <iostream>
#include <tuple>

#include "raptor/compiler.hpp"
#include "raptor/target/pim.hpp"
#include "small_model.hpp"

namespace mine {

namespace rl = raptor::lowering;

/// At most two windows share a crossbar, and it says that it costs nothing, so that it is always taken where it applies.
struct pairs {
  static constexpr const char* name = "pairs";
  [[nodiscard]] std::optional<std::string> refuses(const rl::convolution_shape& s, const raptor::program::geometry& chip, const rl::lowering_options&) const {
    if (s.groups != 1 || 2 * s.k() > chip.crossbar_rows || 2 * s.c() > chip.weight_columns || s.out_width < 2) return "two windows do not fit one crossbar";
    return std::nullopt;
  }
  [[nodiscard]] double cost(const rl::convolution_shape&, const rl::context&) const { return 0; }
  void lower(rl::context& c, raptor::model::vertex v) const { rl::lower_windows(c, v, rl::plan_windows(c, v, name, 2)); }
};

}  // namespace mine

int main() {
  const auto model = small_model::convolution_and_relu();
  const raptor::target::pim chip(4, 16, 64);
  const auto strategies = std::tuple_cat(std::tuple(mine::pairs{}), raptor::lowering::default_convolution_strategies{});
  const auto policies = raptor::default_policies() | raptor::with<raptor::convolution_slot>(strategies);
  const auto result = raptor::basic_compiler(chip, policies).compile(model);

  std::cout << "strategy: " << result.lowered.convolutions.at(0).strategy << "\n";
  const double difference = small_model::largest_difference(model, result.image);
  std::cout << "largest difference from the reference: " << difference << "\n";
  return difference < 1e-5 && result.lowered.convolutions.at(0).strategy == "pairs" ? 0 : 1;
}
