#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "raptor/support/error.hpp"

namespace raptor::schedule {

/// Search driver: makes a candidate from every choice in turn and keeps the one that the evaluator finds least (the first
/// among equals). A choice that does not fit the chip is passed over.
///
/// `make(choice)` gives a candidate or throws; `evaluate(candidate)` gives a number, less is better.
/// Returns the candidate and the index of its choice; none where no choice fits. Errors: what `make` throws beside capacity.
/// Cost: that of all candidates; two of them are held at a time. Deterministic.
template <class Choice, class Make, class Evaluate>
[[nodiscard]] auto find_best(const std::vector<Choice>& choices, const Make& make, const Evaluate& evaluate) {
  using candidate = decltype(make(choices.front()));
  using value = decltype(evaluate(std::declval<const candidate&>()));
  std::optional<std::pair<candidate, std::size_t>> best;
  value least{};
  for (std::size_t i = 0; i < choices.size(); ++i) {
    std::optional<candidate> next;
    try {
      next = make(choices[i]);
    } catch (const error& e) {
      if (e.code() != error_code::capacity) throw;
      continue;
    }
    const value worth = evaluate(std::as_const(*next));
    if (!best || worth < least) {
      best.emplace(std::move(*next), i);
      least = worth;
    }
  }
  return best;
}

/// The same where one choice must fit. Errors: what the last choice threw, where none does.
template <class Choice, class Make, class Evaluate>
[[nodiscard]] auto keep_best(const std::vector<Choice>& choices, const Make& make, const Evaluate& evaluate) {
  ensure(!choices.empty(), "search: no choice was given");
  if (auto best = find_best(choices, make, evaluate)) return std::move(*best);
  return std::pair{make(choices.back()), choices.size() - 1};  // throws again what it threw
}

}  // namespace raptor::schedule
