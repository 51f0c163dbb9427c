// What every tool has in common: --help, --version, usage errors.
#include "support.hpp"

using namespace tools_test;

namespace {

constexpr const char* all_tools[] = {"raptor-compile", "raptor-sim", "raptor-validate", "raptor-zoo"};

/// A usage error is exactly one line on standard error, nothing on standard output, and status 2.
void check_usage_error(const std::string& tool, const std::vector<std::string>& arguments, const std::string& part) {
  std::string command = tool;
  for (const auto& a : arguments) command += " " + a;
  CAPTURE(command);
  const auto result = run(tool, arguments);
  CAPTURE(result.err);
  CHECK(result.status == 2);
  CHECK(result.out.empty());
  CHECK(lines(result.err).size() == 1);
  CHECK(result.err.rfind(tool + ": ", 0) == 0);
  CHECK(contains(result.err, part));
}

}  // namespace

TEST_CASE("--help and --version") {
  for (const std::string tool : all_tools) {
    CAPTURE(tool);
    for (const char* option : {"--help", "-h"}) {
      const auto help = run(tool, {option});
      CHECK(help.status == 0);
      CHECK(help.err.empty());
      CHECK(help.out.rfind("usage: " + tool + " ", 0) == 0);
      for (const char* common : {"Common:", "--help", "--version", "--verbose", "--seed"}) CHECK(contains(help.out, common));
    }
    const auto version = run(tool, {"--version"});
    CHECK(version.status == 0);
    CHECK(version.err.empty());
    CHECK(version.out == tool + " " + RAPTOR_TEST_VERSION + "\n");
  }
}

TEST_CASE("raptor-compile --help groups every option of its specification under its heading") {
  const auto text = run("raptor-compile", {"--help"}).out;
  const std::vector<std::pair<std::string, std::vector<std::string>>> groups{
      {"Target:", {"--core-count", "--crossbar-size", "--crossbar-count", "--pim-target-config"}},
      {"Stop early:", {"--EmitSpatial", "--EmitPim ", "--EmitPimBufferized", "--EmitPimCodegen", "--pim-only-codegen"}},
      {"Planning:", {"--pim-disable-spatial-planning", "--pim-conv-lowering", "--pim-conv-im2col-max-elements", "--pim-conv-stream-chunk-positions"}},
      {"Checks and reports:",
       {"--pim-detect-communication-deadlock", "--pim-verify-bufferization-copy-freedom", "--pim-memory-report", "--pim-report-conv-lowering",
        "--pim-export-spatial-dataflow", "--pim-emit-json"}},
      {"Common:", {"--help"}}};
  std::size_t begin = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    CAPTURE(groups[g].first);
    begin = text.find("\n" + groups[g].first, begin);
    REQUIRE(begin != std::string::npos);
    const auto end = g + 1 < groups.size() ? text.find("\n" + groups[g + 1].first, begin) : text.size();
    for (const auto& option : groups[g].second) {
      CAPTURE(option);
      const auto at = text.find(option, begin);
      CHECK(at < end);
    }
  }
}

TEST_CASE("mistakes in the command line") {
  for (const std::string tool : all_tools) {
    check_usage_error(tool, {"--no-such-option"}, "--no-such-option");
    check_usage_error(tool, {"--seed"}, "seed");
    check_usage_error(tool, {"--seed=many"}, "seed");
  }
  const std::vector<std::string> model{"m.onnx", "-o", "out"};
  const std::string compile = "raptor-compile";
  check_usage_error(compile, {}, "no model");
  check_usage_error(compile, {"m.onnx"}, "output");
  check_usage_error(compile, {"m.onnx", "-o"}, "output");
  check_usage_error(compile, {"m.onnx", "second.onnx", "-o", "out"}, "positional");
  check_usage_error(compile, model, "--core-count");
  check_usage_error(compile, model + std::vector<std::string>{"--core-count=4"}, "--crossbar-count");
  check_usage_error(compile, model + std::vector<std::string>{"--core-count=4", "--crossbar-count=2"}, "--crossbar-size");
  check_usage_error(compile, model + std::vector<std::string>{"--core-count=four"}, "four");
  check_usage_error(compile, model + std::vector<std::string>{"--core-count="}, "core-count");
  check_usage_error(compile, model + std::vector<std::string>{"--core-count=4.5"}, "4.5");
  check_usage_error(compile, model + std::vector<std::string>{"--core-count=99999999999999999999"}, "core-count");
  for (const std::string name : {"core-count", "crossbar-count", "crossbar-size", "pim-conv-im2col-max-elements", "pim-conv-stream-chunk-positions"})
    for (const std::string number : {"0", "-1"}) {
      std::vector<std::string> chip;
      for (const auto& flag : small_chip)
        if (flag.rfind("--" + name + "=", 0) != 0) chip.push_back(flag);
      check_usage_error(compile, model + chip + std::vector<std::string>{"--" + name + "=" + number}, "--" + name + " must be positive");
    }
  for (const std::string name : {"pim-conv-lowering", "pim-memory-report", "pim-report-conv-lowering", "pim-export-spatial-dataflow", "graphviz", "softmax"})
    check_usage_error(compile, model + small_chip + std::vector<std::string>{"--" + name + "=wrong"}, "--" + name + "=wrong");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--EmitSpatial", "--EmitPim"}, "--EmitSpatial");
  for (const std::string bits : {"0", "7", "64", "-8"}) check_usage_error(compile, model + small_chip + std::vector<std::string>{"--element-bits=" + bits}, "must be 32, 16 or 8");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--element-bits=half"}, "half");
  for (const std::string effort : {"-1", "4", "9223372036854775807"}) check_usage_error(compile, model + small_chip + std::vector<std::string>{"--effort=" + effort}, "--effort must be from 0 to 3, not " + effort);
  for (const std::string stages : {"0", "-1"}) check_usage_error(compile, model + small_chip + std::vector<std::string>{"--pipeline=" + stages}, "--pipeline must be positive, not " + stages);
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--pipeline=100000"}, "cores, and a stage needs one");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--pipeline-channels=wire"}, "choose one of auto, rendezvous, memory");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--pipeline-restart=some"}, "choose one of all-cores, input-readers");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--objective=beauty"}, "choose one of latency, throughput, energy");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--objective=energy"}, "--objective=energy needs --pim-target-config");
  const std::string validate = "raptor-validate";
  const std::vector<std::string> alone{"m.onnx"};
  check_usage_error(validate, alone + small_chip + std::vector<std::string>{"--pipeline=100000"}, "cores, and a stage needs one");
  for (const std::string schedules : {"0", "x", "3,", "3,0", "3,most"}) check_usage_error(validate, alone + small_chip + std::vector<std::string>{"--schedules=" + schedules}, "expected N, N,M or N,all");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--effort=most"}, "most");
  for (const std::string mode : {"f16", "F32", "int8"}) {
    check_usage_error(compile, model + small_chip + std::vector<std::string>{"--execute-as=" + mode}, "--execute-as=" + mode + ": choose one of f32");
    check_usage_error(compile, model + std::vector<std::string>{"--pim-only-codegen", "--execute-as=" + mode}, "--execute-as=" + mode);
  }
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--execute-as="}, "--execute-as");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--shape=x"}, "shape");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--shape=x=1xx3"}, "shape");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--shape=x=1x3", "--shape=x=1x4"}, "--shape gives \"x\" twice");
  check_usage_error(compile, model + std::vector<std::string>{"--pim-only-codegen", "--core-count=4"}, "--pim-only-codegen");
  // No abbreviations, so that a further option never changes what a script means; the case counts.
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--EmitSpat"}, "EmitSpat");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--emitspatial"}, "emitspatial");

  check_usage_error("raptor-sim", {}, "artifact directory");
  check_usage_error("raptor-sim", {"d", "--mode=fast"}, "--mode");
  check_usage_error("raptor-sim", {"d", "--mode=throughput"}, "--batch-size");
  check_usage_error("raptor-sim", {"d", "--batch-size=0"}, "--batch-size");
  check_usage_error("raptor-sim", {"d", "--batch-size=2"}, "--batch-size");
  check_usage_error("raptor-sim", {"d", "--dump=12"}, "--dump");
  check_usage_error("raptor-sim", {"d", "--dump=a,4"}, "--dump");
  check_usage_error("raptor-validate", small_chip, "no model");
  check_usage_error("raptor-validate", {"m.onnx"}, "--core-count");
  check_usage_error("raptor-validate", {"m.onnx", "--tolerance=tight"}, "tight");
  check_usage_error("raptor-validate", std::vector<std::string>{"m.onnx", "--pim-conv-lowering=wrong"} + small_chip, "--pim-conv-lowering=wrong: choose one of auto");
  check_usage_error("raptor-validate", std::vector<std::string>{"m.onnx", "--shape=x"} + small_chip, "\"x\" is not a shape");
  check_usage_error("raptor-validate", std::vector<std::string>{"m.onnx", "--element-bits=7"} + small_chip, "must be 32, 16 or 8");
  check_usage_error("raptor-validate", std::vector<std::string>{"m.onnx", "--softmax=fast"} + small_chip, "--softmax=fast");
  for (const std::string tolerance : {"nan", "-1", "-1e-30", "inf"}) check_usage_error("raptor-validate", small_chip + std::vector<std::string>{"m.onnx", "--tolerance=" + tolerance}, "--tolerance");
  check_usage_error("raptor-validate", small_chip + std::vector<std::string>{"m.onnx", "--reference=other"}, "--reference=other");
  check_usage_error("raptor-validate", small_chip + std::vector<std::string>{"m.onnx", "--onnxruntime=x"}, "--reference=onnxruntime");
  // An empty text is no path and no name.
  check_usage_error(compile, {"", "-o", "out"}, "model must not be empty");
  check_usage_error(compile, std::vector<std::string>{"m.onnx", "-o", ""} + small_chip, "--output must not be empty");
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--dump-stages="}, "--dump-stages");
  check_usage_error(compile, model + std::vector<std::string>{"--pim-target-config", ""}, "--pim-target-config must not be empty");
  check_usage_error("raptor-sim", {"d", "-o", ""}, "--output must not be empty");
  check_usage_error("raptor-sim", {""}, "must not be empty");
  check_usage_error("raptor-validate", small_chip + std::vector<std::string>{"m.onnx", ""}, "models must not be empty");
  check_usage_error("raptor-validate", small_chip + std::vector<std::string>{"m.onnx", "--input-dir", ""}, "--input-dir must not be empty");
  check_usage_error("raptor-zoo", {"tiny", "-o", ""}, "--output must not be empty");
  // What works on a stage that the compilation does not reach.
  for (const std::string stop : {"EmitSpatial", "EmitPim", "EmitPimBufferized"})
    for (const std::string option : {"pim-emit-json", "pim-memory-report=summary", "execute-as=f32"})
      check_usage_error(compile, model + small_chip + std::vector<std::string>{"--" + stop, "--" + option}, "has no meaning with --" + stop);
  for (const std::string stop : {"EmitSpatial", "EmitPim"})
    for (const std::string option : {"pim-verify-bufferization-copy-freedom", "pim-export-spatial-dataflow=all", "graphviz=spatial1", "pim-report-conv-lowering=true"})
      check_usage_error(compile, model + small_chip + std::vector<std::string>{"--" + stop, "--" + option}, "has no meaning with --" + stop);
  check_usage_error(compile, model + small_chip + std::vector<std::string>{"--EmitSpatial", "--pim-detect-communication-deadlock"}, "has no meaning with --EmitSpatial");
  for (const std::string option : {"pim-conv-lowering=legacy", "graphviz=spatial1", "element-bits=8", "effort=2", "softmax=standard"})
    check_usage_error(compile, model + std::vector<std::string>{"--pim-only-codegen", "--" + option}, "has no meaning with --pim-only-codegen");
  check_usage_error("raptor-zoo", {}, "--list");
  check_usage_error("raptor-zoo", {"tiny", "--size=0"}, "--size");
  check_usage_error("raptor-zoo", {"tiny", "--seed=-1"}, "--seed");
  check_usage_error("raptor-zoo", {"no-such-network"}, "resnet18");
  check_usage_error("raptor-zoo", {"lenet5", "--size=4"}, "12");
}
