#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "raptor/program/program.hpp"
#include "raptor/program/unrolled.hpp"
#include "raptor/support/error.hpp"

/// Sends and receives meet in pairs.
namespace raptor::verify {

/// Checks that for every two cores the n-th send from one to the other has the size of the n-th receive there, and that there are
/// equally many. Whether their order can block is verify/deadlock.hpp's question. Requires check_bounds.
/// Errors: malformed with both cores and the number of the message. Cost: linear in the unrolled communication; memory:
/// runs of equal sizes.
inline void check_matching(const program::program& p) {
  struct run {
    std::int64_t length = 0, count = 0;
    bool operator==(const run&) const = default;
  };
  struct channel {
    std::vector<run> sent, received;
  };
  std::map<std::pair<std::size_t, std::size_t>, channel> channels;
  const auto append = [](std::vector<run>& runs, std::int64_t length) {
    if (!runs.empty() && runs.back().length == length) ++runs.back().count;
    else runs.push_back({length, 1});
  };
  for (std::size_t c = 0; c < p.cores.size(); ++c) {
    const program::unrolled body(p.cores[c].body, "core " + std::to_string(c));
    program::unrolled::cursor at(body);
    for (; !at.done(); at.advance()) {
      const auto& o = at.current();
      const auto peer = static_cast<std::size_t>(o.peer);
      if (o.op == isa::opcode::send) append(channels[{c, peer}].sent, o.length);
      if (o.op == isa::opcode::recv) append(channels[{peer, c}].received, o.length);
    }
  }
  for (const auto& [cores, channel] : channels) {
    if (channel.sent == channel.received) continue;
    const std::string from = std::to_string(cores.first), to = std::to_string(cores.second);
    std::int64_t message = 0;
    for (std::size_t i = 0; i < std::min(channel.sent.size(), channel.received.size()); ++i) {
      const auto &s = channel.sent[i], &r = channel.received[i];
      if (s.length != r.length)
        throw error(error_code::malformed, "message " + std::to_string(message) + " from core " + from + " to core " + to + " is sent with " +
                                               std::to_string(s.length) + " elements and received with " + std::to_string(r.length));
      if (s.count != r.count) {
        message += std::min(s.count, r.count);
        break;
      }
      message += s.count;
    }
    std::int64_t sent = 0, received = 0;
    for (const auto& s : channel.sent) sent += s.count;
    for (const auto& r : channel.received) received += r.count;
    throw error(error_code::malformed, "core " + from + " sends " + std::to_string(sent) + " messages to core " + to + ", which receives " +
                                           std::to_string(received) + "; they differ from message " + std::to_string(message) + " on");
  }
}

}  // namespace raptor::verify
