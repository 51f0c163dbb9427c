#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "raptor/isa/build.hpp"
#include "raptor/sim/executor.hpp"

/// Programs made by hand: what the tests of the functional simulator share.
namespace raptor::sim::test {

namespace b = isa::build;
using stream = std::vector<isa::instruction>;

[[nodiscard]] inline std::vector<std::byte> to_bytes(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
[[nodiscard]] inline std::vector<float> to_floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// A program with the input at global address 0 and the output behind it, both of `in` and `out` floats.
[[nodiscard, gnu::noinline]] inline loaded_program make_program(std::vector<stream> streams, std::int64_t in, std::int64_t out) {
  loaded_program program;
  for (auto& s : streams) program.cores.push_back({std::move(s), {}});
  program.global_memory.resize(static_cast<std::size_t>(4 * (in + out)));
  program.inputs = {{"x", 0, 4 * in, {in}}};
  program.outputs = {{"y", 4 * in, 4 * out, {out}}};
  return program;
}

/// One core that loads the input to local address 0, runs `body` and stores `out` floats from local address 256. Before the body r1 is
/// 0 and r2 is 256; the body may use r3 and above.
[[nodiscard, gnu::noinline]] inline loaded_program one_core(const stream& body, std::int64_t in, std::int64_t out) {
  const auto word = [](std::int64_t n) { return static_cast<std::int32_t>(4 * n); };
  stream s{b::setbw(32, 32), b::sldi(1, 0), b::sldi(2, 256)};
  if (in != 0) s.push_back(b::ld(1, 1, word(in)));
  s.insert(s.end(), body.begin(), body.end());
  s.push_back(b::sldi(30, word(in)));
  s.push_back(b::sldi(29, 256));
  s.push_back(b::st(30, 29, word(out)));
  return make_program({std::move(s)}, in, out);
}

/// The outputs of one_core(body) for an input.
[[nodiscard, gnu::noinline]] inline std::vector<float> run(const stream& body, const std::vector<float>& in, std::int64_t out) {
  const auto program = one_core(body, static_cast<std::int64_t>(in.size()), out);
  return execute(program, to_bytes(in)).outputs.at(0).values();
}

/// The error that executing throws, as raptor::describe prints it with its code in front; "" where it throws none.
[[nodiscard, gnu::noinline]] inline std::string failure(const loaded_program& program, const std::vector<std::byte>& input, const execution_options& options = {}) {
  try {
    static_cast<void>(execute(program, input, options));
  } catch (const error& e) {
    return std::string(name(e.code())) + " " + describe(e);
  }
  return {};
}
[[nodiscard, gnu::noinline]] inline std::string failure(const loaded_program& program) {
  return failure(program, std::vector<std::byte>(static_cast<std::size_t>(total_size(program.inputs))));
}
/// The error of one core that runs `body` behind a setbw, without inputs.
[[nodiscard, gnu::noinline]] inline std::string failure_of(stream body) {
  body.insert(body.begin(), b::setbw(32, 32));
  return failure(make_program({std::move(body)}, 0, 0));
}

[[nodiscard]] inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace raptor::sim::test
