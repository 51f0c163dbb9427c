#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace raptor::schedule {

/// Search driver: evaluates the given choices, then for some rounds neighbours of the best ones so far.
///
/// `neighbour(choice, random)` gives a choice near another one, by raw numbers of a std::mt19937_64, which are the same everywhere; `evaluate(choices, first)` gives for each choice from number `first` on a
/// number, less is better, or none where it does not fit: it may work on several at a time.
/// Deterministic: the same seed and choices, the same result; how many are evaluated at a time does not count. Cost: that of all evaluations.
struct local_search {
  std::size_t rounds = 0;
  std::size_t batch = 4;  ///< neighbours in a round
  std::size_t width = 4;  ///< of how many of the best they are neighbours, in turn
  std::uint64_t seed = 1;

  /// Adds the neighbours to `choices`. Returns what fits, the best first: value and number of the choice; the first among equals goes first.
  template <class Choice, class Neighbour, class Evaluate>
  [[nodiscard]] auto operator()(std::vector<Choice>& choices, const Neighbour& neighbour, const Evaluate& evaluate) const {
    using value = typename decltype(evaluate(std::as_const(choices), std::size_t{0}))::value_type::value_type;
    std::vector<std::pair<value, std::size_t>> ranking;
    std::mt19937_64 random(seed);
    std::size_t evaluated = 0;
    for (std::size_t round = 0;; ++round) {
      const auto found = evaluate(std::as_const(choices), evaluated);
      for (std::size_t k = 0; k < found.size(); ++k)
        if (found[k]) ranking.emplace_back(*found[k], evaluated + k);
      std::stable_sort(ranking.begin(), ranking.end());
      evaluated = choices.size();
      if (round == rounds || ranking.empty()) return ranking;
      const auto best = std::min(width, ranking.size());
      for (std::size_t k = 0; k < batch; ++k) {
        constexpr int tries = 16;
        for (int t = 0; t < tries; ++t) {
          auto next = neighbour(choices[ranking[k % best].second], random);
          if (std::find(choices.begin(), choices.end(), next) != choices.end()) continue;
          choices.push_back(std::move(next));
          break;
        }
      }
      if (evaluated == choices.size()) return ranking;  // everything near is known
    }
  }
};

}  // namespace raptor::schedule
