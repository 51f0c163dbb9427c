#pragma once

#include <string_view>

#include "raptor/model/check.hpp"
#include "raptor/model/edit.hpp"
#include "raptor/model/graph.hpp"
#include "raptor/model/rewrite_affine.hpp"
#include "raptor/model/rewrite_movement.hpp"
#include "raptor/model/rewrite_window.hpp"

namespace raptor::model {

/// A named rewrite. `apply` says whether it changed anything.
struct rewrite_row {
  std::string_view name;
  bool (*apply)(graph_edit&);
};

/// The rewrites, in the order in which canonicalize runs them.
inline constexpr rewrite_row rewrite_table[] = {
    {"fold-constants", rewrite::fold_constants},
    {"remove-no-ops", rewrite::remove_no_ops},
    {"recognize-channel-shuffle", rewrite::recognize_channel_shuffle},
    {"collapse-chains", rewrite::collapse_chains},
    {"matmul-to-gemm", rewrite::matmul_to_gemm},
    {"normalize-gemm", rewrite::normalize_gemm},
    {"normalize-arithmetic", rewrite::normalize_arithmetic},
    {"fold-batch-norm", rewrite::fold_batch_norm},
    {"fold-scale-and-shift", rewrite::fold_scale_and_shift},
    {"absorb-padding", rewrite::absorb_padding},
    {"normalize-activations", rewrite::normalize_activations},
    {"fuse-silu", rewrite::fuse_silu},
    {"raise-to-images", rewrite::raise_to_images},
};

/// One rewrite as a pure function: the graph after it, without what became dead.
[[nodiscard]] inline graph apply(const rewrite_row& row, const graph& g) {
  graph_edit e(g);
  static_cast<void>(row.apply(e));
  return e.build();
}

/// The graph in the form that layout and lowering take: all rewrites, again and again until none changes anything, then every
/// output computed by a node of its own. The result computes the same function; weights may differ by rounding.
///
/// Guarantees: a second run changes nothing; no identity but for outputs that are inputs, constants or the same tensor; no
/// BatchNormalization with constant parameters; Gemm in normal form; convolutions and pools over [N, C, H, W]; constants
/// to the right of commutative operators. `observe(name, graph)` is called after each rewrite that changed something.
/// Errors: those of evaluating constants; internal, where rewrites do not come to rest. Cost: a few times the sum of the rewrites' costs.
template <class Observer>
[[nodiscard]] graph canonicalize(const graph& g, Observer&& observe) {
  // One rewrite can make room for another, at worst once a node; real networks rest after two or three rounds.
  const std::size_t round_limit = 64 + 2 * g.node_count();
  graph_edit e(g);
  bool changed = true;
  for (std::size_t round = 0; changed; ++round) {
    ensure(round < round_limit, "rewrites do not come to rest", g.name);
    changed = false;
    for (const auto& row : rewrite_table) {
      if (!row.apply(e)) continue;
      changed = true;
      const graph now = e.build();
      observe(row.name, now);
      e = graph_edit(now);
    }
  }
  static_cast<void>(rewrite::compute_outputs(e));
  graph result = e.build();
  observe(std::string_view("compute-outputs"), result);
  return result;
}
[[nodiscard]] inline graph canonicalize(const graph& g) {
  return canonicalize(g, [](std::string_view, const graph&) {});
}

}  // namespace raptor::model
