#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "raptor/model/reference.hpp"

/// Constant folding: an operator whose operands are all constant is evaluated once, by the reference evaluator.
namespace raptor::model {

/// Largest constant that folding makes, in elements: shape calculations have a handful, and more is better computed at run time
/// than stored. A reshape only renames, so it has no limit.
inline constexpr std::int64_t fold_element_limit = std::int64_t{1} << 24;
/// Most multiply-adds that folding one operator may take: about a second.
inline constexpr std::int64_t fold_work_limit = std::int64_t{1} << 28;

/// Multiply-adds (or element moves) of one operator, an upper bound that saturates instead of overflowing.
[[nodiscard]] inline std::int64_t fold_work(const operation& op, std::span<const tensor_value> inputs, const shape& result) {
  const auto times = [](std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
  };
  std::int64_t work = element_count(result);
  const auto window = [&](const axis_values& kernel) {
    for (const auto k : kernel) work = times(work, k);
  };
  if (const auto* c = std::get_if<convolution>(&op)) {
    window(c->kernel);
    work = times(work, inputs[1].sizes.at(1));
  }
  if (const auto* p = std::get_if<pool>(&op)) window(p->kernel);
  if (const auto* g = std::get_if<gemm>(&op)) work = times(work, inputs[0].sizes.at(g->transpose_a ? 0 : 1));
  if (std::holds_alternative<matmul>(op)) work = times(work, inputs[0].sizes.back());
  if (const auto* l = std::get_if<lrn>(&op)) work = times(work, l->size);
  return work;
}

/// The value of an operator on constants; nothing, where it would be too large or too expensive. `result`: the shape that
/// inference gave. Errors: as evaluate_node. Cost: at most `fold_work_limit` multiply-adds.
[[nodiscard]] inline std::optional<tensor_value> fold(const operation& op, std::span<const tensor_value> inputs, const shape& result,
                                                      const std::string& place) {
  if (!std::holds_alternative<reshape>(op) && element_count(result) > fold_element_limit) return std::nullopt;
  if (fold_work(op, inputs, result) > fold_work_limit && !std::holds_alternative<reshape>(op)) return std::nullopt;
  const shape outputs[] = {result};
  evaluation_options options;
  options.element_limit = INT64_MAX;  // the operands exist already, the result has been judged
  return evaluate_node(op, inputs, outputs, place, options).front();
}

}  // namespace raptor::model
