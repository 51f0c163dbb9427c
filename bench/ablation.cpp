// What each part of the compiler is worth: the latency of networks with one part left out at a time.
//
//   bench_ablation HW.json MODEL.onnx...
//
// CSV on standard output: left_out, network, ms, mj, reason (why there is no figure). 8-bit elements, one input, timed by the exact model. The
// first rows of a network are what raptor-compile makes; the others leave a further part out of the policies of the third.
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "raptor/report/format.hpp"
#include "tools/pipeline.hpp"
#include "tools/variants.hpp"

namespace {

using namespace raptor;

/// Which parts take part.
struct parts {
  bool planning = true, copies = true, placement = true, order = true, shared_pixels = true, siblings = true, search = true;
};

// Policies that leave their part out on request, so that one instantiation of the compiler serves all rows.
struct chosen_layout {
  bool planned;
  [[nodiscard]] layout::plan operator()(const model::graph& g) const { return planned ? layout::descending_layout{}(g) : layout::dense_layout{}(g); }
};
struct chosen_copies {
  bool used;
  schedule::replication_portfolio portfolio = {};
  template <target::chip_target Target>
  [[nodiscard]] std::vector<std::vector<std::int64_t>> operator()(const Target& t, const lowering::compute_graph& g, const schedule::tile_graph& tiles) const {
    if (used) return portfolio(t, g, tiles);
    return {schedule::no_replication{}(t, g, tiles)};
  }
};
struct chosen_placement {
  bool spread;
  template <target::chip_target Target>
  void operator()(const Target& t, const lowering::compute_graph& g, const std::vector<std::int64_t>& copies, schedule::schedule& s) const {
    if (spread) schedule::spread_placement{}(t, g, copies, s);
    else schedule::peft_placement{}(t, g, copies, s);
  }
};
struct chosen_order {
  bool rendezvous;
  template <target::chip_target Target>
  void operator()(const Target& t, const lowering::compute_graph& g, schedule::schedule& s) const {
    if (rendezvous) schedule::rendezvous_order{}(t, g, s);
    else schedule::ready_order{}(t, g, s);
  }
};
template <class Strategy>
struct chosen_strategy : Strategy {
  bool used = true;
  [[nodiscard]] std::optional<std::string> refuses(const lowering::convolution_shape& s, const program::geometry& chip, const lowering::lowering_options& options) const {
    if (!used) return "it is left out";
    return Strategy::refuses(s, chip, options);
  }
};
template <class... Strategies>
auto chosen_strategies(const std::tuple<Strategies...>&, bool shared_pixels) {
  std::tuple<chosen_strategy<Strategies>...> result;
  std::get<chosen_strategy<lowering::toeplitz>>(result).used = std::get<chosen_strategy<lowering::kernel_in_columns>>(result).used = shared_pixels;
  return result;
}

/// The best predicted of the lowerings that effort 1 tries.
compilation compile(const model::graph& model, const target::pim& chip, const tools::compile_options& options, const parts& use) {
  chosen_copies copies{use.copies};
  if (!use.search) copies.portfolio.candidates.resize(1);
  const auto policies = default_policies() | with<layout_slot>(chosen_layout{use.planning}) | with<replication_slot>(copies) |
                        with<placement_slot>(chosen_placement{use.placement}) | with<order_slot>(chosen_order{use.order}) |
                        with<convolution_slot>(chosen_strategies(lowering::default_convolution_strategies{}, use.shared_pixels));
  auto choices = tools::variants_of(options);
  if (!use.search) choices.resize(1);
  auto lowering = options.lowering;
  lowering.siblings = use.siblings;
  return schedule::keep_best(
             choices,
             [&](const tools::variant& v) { return basic_compiler(chip, policies, v.lowering(lowering)).compile(model); },
             [](const compilation& c) { return c.schedule.predicted; })
      .first;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) return std::cerr << "usage: bench_ablation HW.json MODEL.onnx...\n", 2;
  tools::compile_options options;
  options.target_configuration = argv[1];
  options.element_bits = 8;
  options.lowering.softmax = lowering::softmax_lowering::standard;
  const auto chip = tools::make_target(options);
  const std::tuple<const char*, std::optional<parts>, int> rows[] = {{"nothing (raptor-compile --effort=2)", std::nullopt, 2},
                                                {"local search (raptor-compile)", std::nullopt, 1},
                                                {"local search, exact judge, paces", parts{}, 1},
                                                {"layout planning", parts{.planning = false}, 1},
                                                {"copies of weights", parts{.copies = false}, 1},
                                                {"placement (PEFT instead)", parts{.placement = false}, 1},
                                                {"order (by readiness instead)", parts{.order = false}, 1},
                                                {"placement and order (PEFT only)", parts{.placement = false, .order = false}, 1},
                                                {"toeplitz and kernel-in-columns", parts{.shared_pixels = false}, 1},
                                                {"convolutions lowered together", parts{.siblings = false}, 1},
                                                {"search over lowerings and copies", parts{.search = false}, 1}};
  std::cout << "left_out,network,ms,mj,reason\n";
  for (int k = 2; k < argc; ++k) {
    const std::filesystem::path file = argv[k];
    const auto model = tools::load_model(file);
    for (const auto& [name, use, effort] : rows) {
      options.effort = effort;
      std::cout << name << "," << report::csv_field(file.stem().string()) << ",";
      try {
        const auto time = tools::time_image((use ? compile(model.canonical, chip, options, *use) : tools::compile_model(model.canonical, chip, options)).image, argv[1]);
        if (time.skipped.empty()) std::cout << time.latency_ms << "," << time.energy_pj * 1e-9 << ",";
        else std::cout << ",," << report::csv_field(time.skipped);
      } catch (const error& e) {
        if (e.code() != error_code::capacity) throw;  // an error of capacity is a result: without this part the network does not fit
        std::cout << ",," << report::csv_field(e.what());
      }
      std::cout << std::endl;
    }
  }
  return 0;
} catch (const raptor::error& e) {
  std::cerr << "bench_ablation: " << raptor::describe(e) << "\n";
  return 1;
}
