#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "raptor/emit/artifact.hpp"
#include "tools/pipeline.hpp"

/// What raptor-compile leaves on the disk (write.cpp, verify.cpp): text forms, the bound program, the artifact directory.
namespace raptor::tools {

/// spatial.txt, program.txt (with constants.bin where it refers to one): directories, complete or not at all.
void write_spatial(const compilation& c, const std::filesystem::path& directory);
void write_program(const compilation& c, const std::filesystem::path& directory);
/// bound.txt, weights/ and what a later --pim-only-codegen passes on.
void write_bound(const compilation& c, const std::filesystem::path& directory, const std::vector<emit::extra_file>& extra);
emit::artifact_summary write_artifact(const memory::image& image, const std::filesystem::path& directory, const emit::artifact_options& options);
/// Reads what write_bound wrote: the program and the further files.
struct bound_input {
  program::program bound;
  std::vector<emit::extra_file> extra;
};
[[nodiscard]] bound_input read_bound(const std::filesystem::path& path);

/// Text form of a stage value, for --dump-stages; empty where a stage has none.
[[nodiscard]] std::string text_of(stage s, const compilation& c, const model::graph& model);
[[nodiscard]] const char* name_of(stage s);
/// Every verifier of a stage's value (--verify-each). Errors: what the verifiers throw.
void verify_stage(stage s, const compilation& c, const model::graph& model, const program::geometry& chip);
/// What holds of every program, realized, bound or read from a file. Errors: what the verifiers throw.
void verify_program(const program::program& p);
/// The checks behind --pim-detect-communication-deadlock and --pim-verify-bufferization-copy-freedom; one line of result each.
[[nodiscard]] std::string detect_deadlock(const program::program& p);
[[nodiscard]] std::string prove_copy_freedom(const program::program& realized, const program::program& bound);

}  // namespace raptor::tools
