// The command line of raptor-sim, as a user sees it.

#include "batch.hpp"
#include "directory.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

using namespace raptor::sim::test;
using nlohmann::json;

namespace {

const std::filesystem::path tool = std::filesystem::path(RAPTOR_BINARY_DIR) / "bin" / "raptor-sim";

bool tool_is_absent() {
  if (std::filesystem::exists(tool)) return false;
  MESSAGE("SKIPPED: raptor-sim has not been built");
  return true;
}

struct outcome {
  int status = -1;
  std::string out, err;
};

/// An artifact, its input and a folder for results; runs the tool in it.
struct session {
  temporary_directory artifact, work;

  session() {
    write_example(artifact);
    work.write("in/input_0.bin", to_bytes({1, 2}));
  }
  outcome run(const std::string& arguments) const {
    const std::string command = "cd '" + work.path().string() + "' && '" + tool.string() + "' " + arguments + " > stdout.txt 2> stderr.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, work.read("stdout.txt"), work.read("stderr.txt")};
  }
  outcome run_artifact(const std::string& arguments) const { return run("'" + artifact.path().string() + "' " + arguments); }
};

std::size_t lines_of(const std::string& text) { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); }

}  // namespace

TEST_CASE("raptor-sim writes the outputs") {
  if (tool_is_absent()) return;
  const session s;
  const auto done = s.run_artifact("-o out.bin --input-dir in");
  CHECK_MESSAGE(done.status == 0, done.err);
  CHECK(s.work.read("out.bin").size() == 24);
  const auto bytes = s.work.read("out.bin");
  std::vector<float> values(6);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  CHECK(values == std::vector<float>{21, 42, 63, 84, 105, 126});
  CHECK(has(done.out, "executed 7 instructions on 1 of 2 cores"));
  CHECK(has(done.out, "output scores: 24 bytes, 1x6, 21 ... 126"));
  CHECK(done.err.empty());
  CHECK(s.run_artifact("--mode=latency --batch-size=1 --input-dir=in").status == 0);
}

TEST_CASE("raptor-sim --dump writes ranges of global memory") {
  if (tool_is_absent()) return;
  const session s;
  CHECK(s.run_artifact("-o out.bin --input-dir in --dump=0,4,28,4").status == 0);
  const auto bytes = s.work.read("out.bin");
  std::vector<float> values(2);
  REQUIRE(bytes.size() == 8);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  CHECK(values == std::vector<float>{1, 126});
  const auto outside = s.run_artifact("-o other.bin --input-dir in --dump=0,33");
  CHECK(outside.status == 1);
  CHECK(has(outside.err, "is not inside global memory of 32 bytes"));
  CHECK_FALSE(std::filesystem::exists(s.work.path() / "other.bin"));
}

TEST_CASE("raptor-sim in throughput mode: a file for every input and every output") {
  if (tool_is_absent()) return;
  const session s;
  s.work.write("in/input_1.bin", to_bytes({3, 4}));
  s.work.write("in/input_2.bin", to_bytes({0, 1}));
  const auto done = s.run_artifact("--mode=throughput --batch-size=3 --input-dir in -o out.bin --batch-output-dir deep/outs");
  CHECK_MESSAGE(done.status == 0, done.err);
  CHECK(has(done.out, "executed 21 instructions on 1 of 2 cores"));
  CHECK(has(done.out, "a batch of 3 inputs; outputs of the last one:\noutput scores: 24 bytes, 1x6, 10 ... 60"));
  CHECK(s.work.read("deep/outs/output_000000.bin").size() == 24);
  CHECK(s.work.read("deep/outs/output_000002.bin") == s.work.read("out.bin"));
  CHECK(s.work.read("deep/outs/output_000001.bin") != s.work.read("out.bin"));
  CHECK(s.run_artifact("--input-dir in -o single.bin --batch-output-dir one").status == 0);
  CHECK(s.work.read("single.bin") == s.work.read("deep/outs/output_000000.bin"));
  CHECK(s.work.read("one/output_000000.bin") == s.work.read("single.bin"));

  const auto report = json::parse(s.run_artifact("--mode=throughput --batch-size=2 --input-dir in --json").out);
  CHECK(report["mode"] == 0);
  CHECK(report["batch_size"] == 2);
  CHECK(report["instructions"] == 14);
  CHECK(s.run_artifact("--mode=throughput --batch-size=3 --input-dir in --dump=0,8 -o dump.bin --batch-output-dir outs").status == 0);
  CHECK(s.work.read("dump.bin").size() == 8);
  CHECK(s.work.read("outs/output_000000.bin") == s.work.read("single.bin"));

  auto text = s.run_artifact("--mode=throughput --batch-size=4 --input-dir in");
  CHECK(text.status == 1);
  CHECK_MESSAGE(has(text.err, "the file does not exist\n  at: in/input_3.bin"), text.err);
  s.work.write("in/input_1.bin", to_bytes({3, 4, 5}));
  text = s.run_artifact("--mode=throughput --batch-size=3 --input-dir in -o bad.bin");
  CHECK(text.status == 1);
  CHECK_MESSAGE(has(text.err, "the input has 12 bytes, the program expects 8\n  at: in/input_1.bin"), text.err);
  CHECK_FALSE(std::filesystem::exists(s.work.path() / "bad.bin"));
  CHECK(s.run_artifact("--mode=throughput --batch-size=1 --input-dir in --batch-output-dir in/input_0.bin").status == 1);
}

TEST_CASE("raptor-sim --json") {
  if (tool_is_absent()) return;
  const session s;
  const auto good = json::parse(s.run_artifact("--json --input-dir in").out);
  CHECK(good["status"] == "ok");
  CHECK(good["error"].is_null());
  CHECK(good["mode"] == 1);
  CHECK(good["instructions"] == 7);
  CHECK(good["opcodes"]["mvmul"] == 1);
  CHECK(good["outputs"][0]["name"] == "scores");
  CHECK(good["cores"].size() == 2);
  CHECK(good["cores"][0]["instructions"] == 7);
  const auto bad = s.run("absent --json");
  CHECK(bad.status == 1);
  CHECK(json::parse(bad.out)["status"] == "error");
  CHECK(has(json::parse(bad.out)["error"].get<std::string>(), "the artifact directory does not exist"));
  CHECK_FALSE(good.contains("provenance"));
  const auto refused = s.run_artifact("--json --input-dir in --provenance-core-stall=2:1");
  CHECK(refused.status == 1);
  CHECK(has(json::parse(refused.out)["error"].get<std::string>(), "the stall names core 2, the program has 2 cores"));
}

TEST_CASE("raptor-sim --trace-instructions") {
  if (tool_is_absent()) return;
  const session s;
  CHECK(s.run_artifact("--input-dir in --trace-instructions=trace.txt").status == 0);
  const auto trace = s.work.read("trace.txt");
  CHECK(lines_of(trace) == 7);
  CHECK(has(trace, "core 0 index 1 | sldi r1, imm=0 | -> r1=0\n"));
  CHECK(s.run_artifact("--input-dir in --trace-instructions=absent/trace.txt").status == 1);
}

TEST_CASE("raptor-sim overrides") {
  if (tool_is_absent()) return;
  const session s;
  json config = example_config();
  config["outputs_sizes"] = {4};
  s.work.write("c.json", config.dump());
  s.work.write("m.bin", std::vector<std::byte>(64));
  CHECK(s.run_artifact("--config=c.json --memory=m.bin --input-dir in -o out.bin").status == 0);
  CHECK(s.work.read("out.bin").size() == 4);
  CHECK(s.run_artifact("--cores=absent --input-dir in").status == 1);
}

TEST_CASE("raptor-sim: failures exit with 1 and say where") {
  if (tool_is_absent()) return;
  const session s;
  s.work.write("short/input_0.bin", to_bytes({1}));
  std::filesystem::create_directory(s.work.path() / "empty");
  auto text = s.run_artifact("--input-dir short");
  CHECK(text.status == 1);
  CHECK(has(text.err, "the input has 4 bytes, the program expects 8"));
  CHECK(s.run_artifact("--input-dir empty").status == 1);
  CHECK(s.run_artifact("--input-dir in -o absent/out.bin").status == 1);
  std::filesystem::create_directory(s.work.path() / "folder");
  CHECK(s.run_artifact("--input-dir in -o folder").status == 1);
  s.artifact.write("core_1.pim", raptor::isa::encode(stream{b::setbw(32, 32), b::recv(0, 0, 4)}));
  text = s.run_artifact("--input-dir in");
  CHECK(text.status == 1);
  CHECK(has(text.err, "deadlock: core 1 waits for ever"));
  CHECK(has(text.err, "at: core 1, instruction 1: recv"));
}

TEST_CASE("raptor-sim: usage errors are one line and exit with 2") {
  if (tool_is_absent()) return;
  const session s;
  const auto is_usage = [&](const outcome& o) { return o.status == 2 && lines_of(o.err) == 1 && o.out.empty(); };
  CHECK(is_usage(s.run("")));
  CHECK(is_usage(s.run_artifact("--unknown")));
  CHECK(is_usage(s.run_artifact("--inp in")));
  CHECK(is_usage(s.run_artifact("second")));
  CHECK(is_usage(s.run_artifact("-o")));
  CHECK(is_usage(s.run_artifact("--mode=fast")));
  CHECK(is_usage(s.run_artifact("--batch-size=x")));
  CHECK(is_usage(s.run_artifact("--batch-size=0")));
  CHECK(is_usage(s.run_artifact("--batch-size=2 --input-dir in")));
  CHECK(is_usage(s.run_artifact("--mode=throughput")));
  CHECK(is_usage(s.run_artifact("--input-dir in --dump=1")));
  CHECK(is_usage(s.run_artifact("--input-dir in --dump=1,")));
  CHECK(is_usage(s.run_artifact("--input-dir in --dump=-1,2")));
  CHECK(is_usage(s.run_artifact("--input-dir in --input-dir in")));
  CHECK(is_usage(s.run_artifact("")));  // inputs, but no --input-dir
  CHECK(is_usage(s.run_artifact("--timing")));  // no --hardware
  CHECK(is_usage(s.run_artifact("--hardware=x")));  // no --timing
  CHECK(is_usage(s.run_artifact("--timing --hardware=x --sim-time=0")));
  CHECK(is_usage(s.run_artifact("--timing --hardware=x --mode=fast")));
  CHECK(is_usage(s.run_artifact("--timing --hardware=x --input-dir in")));
}

TEST_CASE("raptor-sim: diagnosis") {
  if (tool_is_absent()) return;
  const session s;
  for (int n = 1; n < 3; ++n) s.work.write("in/input_" + std::to_string(n) + ".bin", to_bytes({1.0f + static_cast<float>(n), 2}));
  // A chain of two cores without the wait for FREE.
  const chain c{2, 8};
  s.artifact.write("memory.bin", std::vector<std::byte>(24));
  json config = example_config();
  config["outputs_sizes"] = {8};
  config.erase("outputs_shapes");
  s.artifact.write("config.json", config.dump());
  s.artifact.write("core_0.pim", raptor::isa::encode(c.stage(0)));
  s.artifact.write("core_1.pim", raptor::isa::encode(c.stage(1)));
  const std::string batch = "--mode=throughput --batch-size=3 --input-dir in ";
  CHECK(s.run_artifact(batch + "-o greedy.bin").status == 0);
  REQUIRE(s.work.read("greedy.bin").size() == 8);

  auto done = s.run_artifact(batch + "-o y.bin --provenance-trace=trace.jsonl");
  CHECK_MESSAGE(done.status == 0, done.err);
  CHECK(has(done.out, "provenance: 0 results depend on more than one input\n"));
  CHECK(has(done.out, "provenance: 0 stores into an output depend on another input than their own\n"));
  const auto trace = s.work.read("trace.jsonl");
  CHECK(trace.rfind("{\"event\":\"provenance_trace_start\",\"schema\":1,\"core_count\":2}\n", 0) == 0);
  CHECK(lines_of(trace) > 20);
  for (const char* schedule : {"--diagnostic-schedule-policy=randomized --diagnostic-schedule-seed=7", "--diagnostic-schedule-policy=randomized --seed=3",
                               "--provenance-core-stall=1:100", "--diagnostic-target-stall=0:4:50", "--diagnostic-target-stall=0:4:1:50", "--provenance-global-barrier",
                               "--diagnostic-schedule-policy=adversarial --diagnostic-schedule-target=0:7:1:6:16:24 --diagnostic-schedule-deferral-budget=5"}) {
    CHECK(s.run_artifact(batch + schedule + " -o other.bin").status == 0);
    CHECK(s.work.read("other.bin") == s.work.read("greedy.bin"));
  }

  auto broken = c.stage(0);
  broken[6] = b::nop();
  s.artifact.write("core_0.pim", raptor::isa::encode(broken));
  const std::string adversary = "--diagnostic-schedule-policy=adversarial --diagnostic-schedule-target=0:7:1:6:16:24:1:2 --provenance-core-stall=0:30 ";
  done = s.run_artifact(batch + adversary + "--provenance-trace=trace.jsonl --json");
  CHECK_MESSAGE(done.status == 0, done.err);
  const auto report = json::parse(done.out);
  CHECK(report["schedule"]["held_reads"] == 1);
  CHECK(report["schedule"]["overtaken_reads"] == 1);
  CHECK(report["provenance"]["mixes"] == 0);
  CHECK(report["provenance"]["first_mix"].is_null());
  CHECK(report["provenance"]["foreign_output_stores"] == 1);
  CHECK(has(s.run_artifact(batch + adversary).out, "schedule: the target was held back 1 times, 1 times until its writer had written again\n"));
  CHECK(s.run_artifact(batch + "--provenance-trace=absent/x").status == 1);
  CHECK(has(s.run_artifact(batch + "--diagnostic-schedule-policy=adversarial --diagnostic-schedule-target=0:6:1:6:16:24").err, "is no store to global memory"));
}

TEST_CASE("raptor-sim: usage of the diagnosis") {
  if (tool_is_absent()) return;
  const session s;
  const auto usage = [&](const std::string& arguments, const char* part) {
    const auto o = s.run_artifact("--input-dir in " + arguments);
    CHECK_MESSAGE(o.status == 2, arguments);
    CHECK(lines_of(o.err) == 1);
    CHECK_MESSAGE(has(o.err, part), o.err);
  };
  usage("--diagnostic-schedule-policy=fair", "--diagnostic-schedule-policy is greedy, randomized or adversarial, not 'fair'");
  usage("--diagnostic-schedule-policy=adversarial", "adversarial requires --diagnostic-schedule-target");
  usage("--diagnostic-schedule-seed=1", "--diagnostic-schedule-seed needs --diagnostic-schedule-policy=randomized");
  usage("--diagnostic-schedule-policy=randomized --diagnostic-schedule-seed=-1", "must not be negative");
  usage("--diagnostic-schedule-policy=randomized --diagnostic-schedule-seed=x", "diagnostic-schedule-seed");
  usage("--diagnostic-schedule-target=0:0:0:0:0:4", "--diagnostic-schedule-target needs --diagnostic-schedule-policy=adversarial");
  usage("--diagnostic-schedule-deferral-budget=4", "needs --diagnostic-schedule-policy=adversarial");
  for (const char* target : {"0", "0:0:0:0:0", "0:0:0:0:0:4:1", "0:0:0:0:0:4:1:2:3", "0:0:0:0:0:x", "0:0:0:0:0:", ":0:0:0:0:4", "0:0:0:0:-4:4", "0:0:0:0:0:99999999999999999999"})
    usage(std::string("--diagnostic-schedule-policy=adversarial --diagnostic-schedule-target=") + target, "expects WCORE:WPC:RCORE:RPC:BEGIN:END[:RITER:WMIN], not '");
  usage("--diagnostic-schedule-policy=adversarial --diagnostic-schedule-target=0:0:0:0:4:4", "BEGIN must be below END");
  usage("--provenance-core-stall=1", "--provenance-core-stall expects CORE:CYCLES, not '1'");
  usage("--provenance-core-stall=1:2:3", "--provenance-core-stall expects CORE:CYCLES");
  usage("--diagnostic-target-stall=1:2", "--diagnostic-target-stall expects CORE:PC[:ITERATION]:CYCLES");
  usage("--diagnostic-target-stall=1:2:3:4:5", "--diagnostic-target-stall expects CORE:PC[:ITERATION]:CYCLES");
  for (const char* option : {"--provenance-trace=x", "--provenance-global-barrier", "--provenance-core-stall=0:1", "--diagnostic-schedule-policy=randomized", "--diagnostic-target-stall=0:0:1"}) {
    const auto o = s.run_artifact(std::string("--timing --hardware=x ") + option);
    CHECK(o.status == 2);
    CHECK(has(o.err, "has no meaning with --timing"));
  }
}

TEST_CASE("raptor-sim --help and --version") {
  if (tool_is_absent()) return;
  const session s;
  const auto help = s.run("--help");
  CHECK(help.status == 0);
  for (const char* part : {"usage: raptor-sim ARTIFACTS", "Functional execution", "--input-dir", "--trace-instructions", "Common", "--version"})
    CHECK(has(help.out, part));
  CHECK(s.run("--version").out.rfind("raptor-sim ", 0) == 0);
  CHECK(has(s.run_artifact("--input-dir in -v").err, "executed in"));
}
