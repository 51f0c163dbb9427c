#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "batch.hpp"

/// Random pipelines over global memory, made by hand as INVARIANTS.md wants them: what the tests of schedules share.
namespace raptor::sim::test {

/// Stages of one to three cores. Every core adds up the buffers of some cores of the stage before (of the first stage: the input) and its own number, and
/// stores the sum in a buffer of its own (of the last stage: its part of the output). READY counts the writers of a reader, FREE the readers
/// of a writer; the cores of the first stage meet at a leader at the end of their bodies.
class pipeline {
 public:
  static constexpr int ready = 1, free = 2, arrive = 3, leave = 4;
  static constexpr std::int32_t bytes = 8;

  /// A wait for FREE and one read that it protects, by instruction index.
  struct protection {
    std::size_t writer, wait_index, store_index, reader, load_index;
    std::int64_t address;
  };
  struct mark {
    std::size_t core, index;
  };

  explicit pipeline(unsigned seed, std::size_t least_stages = 2) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::size_t stages = least_stages + below(3);
    std::vector<std::vector<std::size_t>> of_stage(stages);
    for (auto& cores : of_stage)
      for (std::size_t k = 1 + below(3); k != 0; --k) cores.push_back(writers_.size()), writers_.emplace_back();
    readers_.resize(writers_.size());
    for (std::size_t s = 1; s < stages; ++s) {
      for (const std::size_t reader : of_stage[s])
        for (const std::size_t writer : of_stage[s - 1])
          if (below(2) == 0) writers_[reader].push_back(writer);
      for (const std::size_t writer : of_stage[s - 1]) {  // everybody is read by somebody, and reads somebody
        const std::size_t reader = of_stage[s][below(of_stage[s].size())];
        auto& w = writers_[reader];
        if (std::find(w.begin(), w.end(), writer) == w.end()) w.push_back(writer);
      }
      for (const std::size_t reader : of_stage[s])
        if (writers_[reader].empty()) writers_[reader].push_back(of_stage[s - 1].front());
    }
    for (std::size_t reader = 0; reader < writers_.size(); ++reader)
      for (const std::size_t writer : writers_[reader]) readers_[writer].push_back(reader);
    first_ = of_stage.front(), last_ = of_stage.back();
    build();
  }

  loaded_program program;
  std::vector<protection> protections;
  std::vector<mark> ready_waits;

  /// The output of each input.
  [[nodiscard]] std::vector<std::vector<float>> expected(const batch& inputs) const {
    std::vector<std::vector<float>> all;
    for (const auto& input : inputs) {
      std::vector<std::vector<float>> values(writers_.size(), std::vector<float>(bytes / 4, 0.0f));
      for (std::size_t c = 0; c < writers_.size(); ++c)
        for (std::size_t k = 0; k < values[c].size(); ++k) {
          if (writers_[c].empty()) values[c][k] = 2 * to_floats(input)[k];
          for (const std::size_t w : writers_[c]) values[c][k] += values[w][k] + values[w][k];
        }
      auto& out = all.emplace_back();
      for (const std::size_t c : last_) out.insert(out.end(), values[c].begin(), values[c].end());
    }
    return all;
  }
  /// The program without one instruction; the indices of the others stay.
  [[nodiscard]] loaded_program without(std::size_t core, std::size_t index) const {
    loaded_program changed = program;
    changed.cores[core].stream[index] = b::nop();
    return changed;
  }

 private:
  [[nodiscard]] static std::int32_t core_id(std::size_t c) { return static_cast<std::int32_t>(c); }
  [[nodiscard]] bool is_last(std::size_t c) const { return std::find(last_.begin(), last_.end(), c) != last_.end(); }
  [[nodiscard]] std::int32_t address(std::size_t core) const {
    const auto found = std::find(last_.begin(), last_.end(), core);
    const auto slot = found != last_.end() ? static_cast<std::size_t>(found - last_.begin()) : last_.size() + core;
    return bytes * static_cast<std::int32_t>(1 + slot);
  }
  void build() {
    std::vector<std::size_t> store_of(writers_.size()), wait_of(writers_.size());
    std::vector<std::vector<std::size_t>> load_of(writers_.size());
    std::vector<stream> streams;
    for (std::size_t c = 0; c < writers_.size(); ++c) {
      stream s{b::setbw(32, 32)};
      for (const std::size_t w : writers_[c]) s.push_back(b::sync(free, core_id(w)));
      s.insert(s.end(), {b::sldi(1, 0), b::sldi(2, 64), b::sldi(3, 128), b::lldi(2, 0, bytes), b::sldi(5, address(c))});
      if (!writers_[c].empty()) {
        ready_waits.push_back({c, s.size()});
        s.push_back(b::wait(ready, core_id(writers_[c].size())));
      }
      for (const std::size_t w : writers_[c]) {
        s.push_back(b::sldi(4, address(w)));
        load_of[c].push_back(s.size());
        s.insert(s.end(), {b::ld(1, 4, bytes), b::vvadd(3, 1, 1, bytes / 4), b::vvadd(2, 2, 3, bytes / 4)});
      }
      if (writers_[c].empty()) s.insert(s.end(), {b::sldi(4, 0), b::ld(1, 4, bytes), b::vvadd(2, 1, 1, bytes / 4)});
      if (!readers_[c].empty()) {
        wait_of[c] = s.size();
        s.push_back(b::wait(free, core_id(readers_[c].size())));
      }
      store_of[c] = s.size();
      s.push_back(b::st(5, 2, bytes));
      for (const std::size_t r : readers_[c]) s.push_back(b::sync(ready, core_id(r)));
      if (first_.size() > 1 && c == first_.front()) {
        s.push_back(b::wait(arrive, core_id(first_.size() - 1)));
        for (const std::size_t other : first_)
          if (other != c) s.push_back(b::sync(leave, core_id(other)));
      } else if (writers_[c].empty() && first_.size() > 1) {
        s.insert(s.end(), {b::sync(arrive, core_id(first_.front())), b::wait(leave, 1)});
      }
      streams.push_back(std::move(s));
    }
    for (std::size_t r = 0; r < writers_.size(); ++r)
      for (std::size_t k = 0; k < writers_[r].size(); ++k) {
        const std::size_t w = writers_[r][k];
        protections.push_back({w, wait_of[w], store_of[w], r, load_of[r][k], address(w)});
      }
    program = make_program(std::move(streams), bytes / 4, bytes / 4 * static_cast<std::int64_t>(last_.size()));
    program.global_memory.resize(static_cast<std::size_t>(bytes) * (1 + last_.size() + writers_.size()));
  }

  std::vector<std::vector<std::size_t>> writers_;  ///< by core: the cores that it reads; none in the first stage
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<std::size_t> first_, last_;
};

}  // namespace raptor::sim::test
