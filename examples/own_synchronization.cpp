// A synchronization policy of one's own: the chip works on one input at a time.
#include <cstddef>
#include <iostream>
#include <vector>

#include "raptor/compiler.hpp"
#include "raptor/sync/insertions.hpp"
#include "raptor/target/pim.hpp"
#include "raptor/verify/happens_before.hpp"
#include "small_model.hpp"

namespace mine {

/// At the end of its body every core signals the first one; when all have, that one signals all, and they begin the next body.
/// A program that shares global memory needs more: its loads must wait for stores within a body.
struct one_input_at_a_time {
  [[nodiscard]] raptor::program::program operator()(raptor::program::program realized, const raptor::schedule::schedule& s) const {
    auto p = raptor::sync::rendezvous_only{}(std::move(realized), s);
    std::vector<std::size_t> active;
    for (std::size_t c = 0; c < p.cores.size(); ++c)
      if (!p.cores[c].body.empty()) active.push_back(c);
    if (active.size() < 2) return p;
    using raptor::sync::slot;
    raptor::sync::insertions events(p.cores.size());
    const auto end = [&](std::size_t core) { return p.cores[core].body.size(); };
    const auto first = active.front();
    events.wait(first, end(first), slot::end, 0, active.size() - 1, "all are done");
    for (const auto c : active) {
      if (c == first) continue;
      events.signal(c, end(c), slot::end, first, 0, "all are done");
      events.signal(first, end(first), slot::end, c, 0, "all begin");
      events.wait(c, end(c), slot::end, 0, 1, "all begin");
    }
    return events.apply(std::move(p));
  }
};

}  // namespace mine

int main() {
  const auto model = small_model::convolution_and_relu();
  const raptor::target::pim chip(4, 16, 64);
  const auto policies = raptor::default_policies() | raptor::with<raptor::sync_slot>(mine::one_input_at_a_time{});
  const auto own = raptor::basic_compiler(chip, policies).compile(model);

  // Throws, with the cores and items, if two inputs could ever mix.
  const auto proof = raptor::verify::check_happens_before(own.realized);
  std::cout << proof.communication.signals / 2 << " signals an input\n";
  const double difference = small_model::largest_difference(model, own.image);
  std::cout << "largest difference from the reference: " << difference << "\n";
  return difference < 1e-5 && proof.communication.signals > 0 ? 0 : 1;
}
