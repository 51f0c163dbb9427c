#pragma once

#include <vector>

#include "harness.hpp"
#include "raptor/model/check.hpp"
#include "raptor/model/rewrite.hpp"

namespace raptor::backend {

/// Where the package libonnx-testdata installs its data.
inline constexpr const char* default_root = "/usr/share/libonnx-testdata/data";

/// The rewrites, each result checked, and the reference evaluator on what comes out.
[[nodiscard]] inline stage rewritten_stage() {
  return {"rewritten",
          [](const model::graph& g, std::span<const model::tensor_value> inputs) {
            const auto rewritten = model::canonicalize(g, [](std::string_view, const model::graph& step) { model::check_graph(step); });
            return model::evaluate(rewritten, inputs);
          },
          1e-5};
}

/// The stages of the table, in the order of its columns.
[[nodiscard]] inline std::vector<stage> all_stages() { return {reference_stage(), rewritten_stage()}; }

}  // namespace raptor::backend
