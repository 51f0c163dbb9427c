// raptor-compile: what it writes, what it refuses, and what it then leaves behind.
#include "support.hpp"

#include <iostream>
#include <set>

#include "raptor/onnx/builder.hpp"

using namespace tools_test;
using raptor::onnx_io::model_builder;
using strings = std::vector<std::string>;

namespace {

/// A failure: status 1, nothing on standard output, the block with its first line on standard error, nothing written at `out`.
outcome check_failure(const strings& arguments, const std::string& part, const std::string& out) {
  const auto result = run("raptor-compile", arguments);
  CAPTURE(result.err);
  CHECK(result.status == 1);
  CHECK(result.out.empty());
  CHECK(result.err.rfind("raptor-compile: error: ", 0) == 0);
  CHECK(contains(result.err, part));
  CHECK_FALSE(fs::exists(out));
  return result;
}

std::string save(const temporary_folder& folder, const std::string& name, model_builder&& b) {
  const auto model = std::move(b).take();
  write(folder / name, model.SerializeAsString());
  return folder / name;
}

const fs::path targets = fs::path(RAPTOR_SOURCE_DIR) / ".." / "shared" / "targets";
bool targets_absent() {
  if (fs::exists(targets / "p144.json")) return false;
  std::cout << "SKIPPED: shared folder absent\n";
  return true;
}

}  // namespace

TEST_CASE("the artifact directory, silent where standard error is no terminal") {
  const temporary_folder folder;
  const auto model = zoo(folder, "lenet5");
  const auto before = contents(model);
  const auto result = run("raptor-compile", strings{model, "-o", folder / "out"} + small_chip);
  CHECK(result.status == 0);
  CHECK(result.out.empty());
  CHECK(result.err.empty());
  CHECK(contents(model) == before);
  CHECK(folder.names() == strings{"lenet5.onnx", "out"});
  std::set<std::string> top;
  for (const auto& entry : fs::directory_iterator(folder / "out")) top.insert(entry.path().filename().string());
  std::set<std::string> expected{"config.json", "memory.bin", "weights", "reports", "summary.json"};
  for (int c = 0; c < 6; ++c) expected.insert({"core_" + std::to_string(c), "core_" + std::to_string(c) + ".pim"});
  CHECK(top == expected);
  CHECK(fs::exists(folder / "out/reports/memory_report.txt"));
  CHECK(fs::exists(folder / "out/reports/conv_lowering.txt"));

  // Again with everything on: the first artifact is replaced as a whole, progress goes to standard error.
  const auto more = run("raptor-compile", strings{model, "--output", folder / "out", "-v", "--pim-emit-json", "--verify-each", "--pim-memory-report=none",
                                                  "--pim-report-conv-lowering=false", "--pim-detect-communication-deadlock",
                                                  "--pim-verify-bufferization-copy-freedom", "--pim-export-spatial-dataflow=all", "--EmitPimCodegen"} +
                                              small_chip);
  CHECK(more.status == 0);
  CHECK(lines(more.out).size() == 2);
  CHECK(contains(more.out, "no communication deadlock\n"));
  CHECK(contains(more.out, "none inserted\n"));
  CHECK(contains(more.err, "raptor-compile: scheduled\n"));
  CHECK(fs::exists(folder / "out/core_5.json"));
  CHECK_FALSE(fs::exists(folder / "out/reports/memory_report.txt"));
  CHECK_FALSE(fs::exists(folder / "out/reports/conv_lowering.txt"));
  for (const std::string n : {"1", "2", "3", "4"})
    for (const std::string kind : {"nodes", "edges"}) CHECK(fs::file_size(folder / ("out/reports/spatial" + n + "_" + kind + ".csv")) > 0);
}

TEST_CASE("the same bytes every time, and by way of the bound program") {
  const temporary_folder folder;
  const auto model = zoo(folder, "demo");
  const auto flags = strings{"--pim-emit-json", "--pim-export-spatial-dataflow=all"} + small_chip;
  for (const char* name : {"a", "b"}) REQUIRE(run("raptor-compile", strings{model, "-o", folder / name} + flags).status == 0);
  REQUIRE(run("raptor-compile", strings{model, "-o", folder / "bound", "--EmitPimBufferized", "--pim-export-spatial-dataflow=all"} + small_chip).status == 0);
  CHECK(fs::exists(folder / "bound/bound.txt"));
  CHECK(fs::is_directory(folder / "bound/weights"));
  const auto later = run("raptor-compile", {folder / "bound", "-o", folder / "c", "--pim-only-codegen", "--pim-emit-json", "--verify-each", "--pim-detect-communication-deadlock"});
  CHECK(later.status == 0);
  CHECK(later.out == "no communication deadlock\n");
  const auto a = snapshot(folder / "a");
  REQUIRE(a.size() > 20);
  CHECK(a == snapshot(folder / "b"));
  CHECK(a == snapshot(folder / "c"));
  // The file of the directory will do, too.
  REQUIRE(run("raptor-compile", {folder / "bound/bound.txt", "-o", folder / "d", "--pim-only-codegen", "--pim-emit-json"}).status == 0);
  CHECK(a == snapshot(folder / "d"));
}

TEST_CASE("stopping early, and the text form after each stage") {
  const temporary_folder folder;
  const auto model = zoo(folder, "tiny");
  for (const auto& [option, file] : {std::pair<std::string, std::string>{"EmitSpatial", "spatial.txt"}, {"EmitPim", "program.txt"}}) {
    CAPTURE(option);
    const auto out = folder / option;
    for (int again = 0; again < 2; ++again) REQUIRE(run("raptor-compile", strings{model, "-o", out, "--" + option} + small_chip).status == 0);
    const auto files = snapshot(out);
    REQUIRE(files.size() == 1);
    REQUIRE(files.count(file) == 1);
    CHECK(files.at(file).size() > 1000);
  }
  REQUIRE(run("raptor-compile", strings{model, "-o", folder / "out", "--dump-stages", folder / "stages"} + small_chip).status == 0);
  const auto stages = snapshot(folder / "stages");
  strings names;
  for (const auto& [name, text] : stages) {
    names.push_back(name);
    CHECK_FALSE(text.empty());
  }
  CHECK(names == strings{"0_planned.txt", "1_lowered.txt", "2_merged.txt", "3_scheduled.txt", "4_realized.txt", "5_bound.txt", "6_image.txt"});
  CHECK(stages.at("3_scheduled.txt") == snapshot(folder / "EmitSpatial").at("spatial.txt"));
  CHECK(stages.at("4_realized.txt") == snapshot(folder / "EmitPim").at("program.txt"));
}

TEST_CASE("everything unsupported is listed in one run, and nothing is written") {
  const temporary_folder folder;
  model_builder b({.graph_name = "odd", .seed = 1});
  const auto x = b.input("x", {1, 2, 4, 4, 4});
  const auto c = b.node("Conv", {x, b.he_uniform("w", {2, 2, 1, 1, 1})}, "volume").output();
  const auto f = b.node("FusedThing", {c}, "fused", 1, "com.microsoft").output();
  b.node("NonMaxSuppression", {f, f}, "suppress");
  b.output("suppress", {1, 3}, ::onnx::TensorProto::INT64);
  const auto model = save(folder, "odd.onnx", std::move(b));
  const auto result = check_failure(strings{model, "-o", folder / "out"} + small_chip, "3", folder / "out");
  strings details;
  for (const auto& line : lines(result.err))
    if (line.rfind("  - ", 0) == 0) details.push_back(line);
  REQUIRE(details.size() == 3);
  CHECK(contains(details[0], "Conv \"volume\" (ai.onnx, opset 13)"));
  CHECK(contains(details[1], "FusedThing \"fused\" (com.microsoft"));
  CHECK(contains(details[2], "NonMaxSuppression \"suppress\" (ai.onnx, opset 13)"));
  CHECK(folder.names() == strings{"odd.onnx"});
}

TEST_CASE("diagnostics of one kind are capped") {
  const temporary_folder folder;
  model_builder b;
  std::string x = b.input("x", {1, 4});
  for (int i = 0; i < 25; ++i) x = b.node("Strange", {x}, "n" + std::to_string(i), 1, "example").output();
  b.output(x, {1, 4});
  const auto result = check_failure(strings{save(folder, "m.onnx", std::move(b)), "-o", folder / "out"} + small_chip, "and 5 more", folder / "out");
  CHECK(contains(result.err, "n19"));
  CHECK_FALSE(contains(result.err, "n20"));
}

TEST_CASE("failures name what is wrong and leave nothing") {
  const temporary_folder folder;
  const auto model = zoo(folder, "lenet5");
  const auto out = folder / "out";
  check_failure(strings{folder / "none.onnx", "-o", out} + small_chip, "none.onnx", out);
  write(folder / "text.onnx", "this is no model");
  check_failure(strings{folder / "text.onnx", "-o", out} + small_chip, "text.onnx", out);
  write(folder / "short.onnx", contents(model).substr(0, 1000));
  check_failure(strings{folder / "short.onnx", "-o", out} + small_chip, "short.onnx", out);
  write(folder / "empty.onnx", "");
  check_failure(strings{folder / "empty.onnx", "-o", out} + small_chip, "empty.onnx", out);
  check_failure({model, "-o", out, "--core-count=1", "--crossbar-count=2", "--crossbar-size=16"}, "crossbars needed, 2 available", out);
  const auto forced = check_failure(strings{model, "-o", out, "--pim-conv-lowering=depthwise"} + small_chip, "depthwise does not apply", out);
  CHECK(contains(forced.err, "conv_1"));
  CHECK(contains(forced.err, "conv_4"));
  check_failure({folder / "none", "-o", out, "--pim-only-codegen"}, "none", out);
  check_failure({folder.path().string(), "-o", out, "--pim-only-codegen"}, "bound.txt", out);
  // A name of an input that the model does not have is a usage error.
  CHECK(run("raptor-compile", strings{model, "-o", out, "--shape=wrong=1x1x28x28"} + small_chip).status == 2);
  CHECK(folder.names() == strings{"empty.onnx", "lenet5.onnx", "short.onnx", "text.onnx"});
}

TEST_CASE("what is no directory of the kind to be written is not overwritten") {
  const temporary_folder folder;
  const auto model = zoo(folder, "tiny");
  fs::create_directory(folder / "mine");
  write(folder / "mine/notes.txt", "keep");
  write(folder / "file", "keep");
  fs::create_directory(folder / "empty");
  for (const std::string stop : {"--EmitPimCodegen", "--EmitSpatial", "--EmitPim", "--EmitPimBufferized"}) {
    for (const char* name : {"mine", "file"}) {
      const auto result = run("raptor-compile", strings{model, "-o", folder / name, stop} + small_chip);
      CHECK(result.status == 1);
      CHECK(contains(result.err, "not overwritten"));
    }
    CHECK(contents(folder / "mine/notes.txt") == "keep");
    CHECK(contents(folder / "file") == "keep");
  }
  // A directory of one kind is none of another.
  REQUIRE(run("raptor-compile", strings{model, "-o", folder / "spatial", "--EmitSpatial"} + small_chip).status == 0);
  CHECK(run("raptor-compile", strings{model, "-o", folder / "spatial"} + small_chip).status == 1);
  CHECK(run("raptor-compile", strings{model, "-o", folder / "empty"} + small_chip).status == 0);
  CHECK(folder.names() == strings{"empty", "file", "mine", "spatial", "tiny.onnx"});
  // Folders above are made.
  CHECK(run("raptor-compile", strings{model, "-o", folder / "a/b/c/"} + small_chip).status == 0);
  CHECK(fs::exists(folder / "a/b/c/config.json"));
}

TEST_CASE("--softmax chooses the instructions of a softmax; both give its values") {
  const temporary_folder folder;
  model_builder b;
  b.node("Softmax", {b.input("x", {3, 40})}, "y").attribute("axis", -1);
  b.output("y", {3, 40});
  const auto model = save(folder, "softmax.onnx", std::move(b));
  const auto instructions = [&](const std::string& name, const strings& options) {
    REQUIRE(run("raptor-compile", strings{model, "-o", folder / name, "--pim-emit-json"} + small_chip + options).status == 0);
    std::string all;
    for (const auto& [file, bytes] : snapshot(folder / name))
      if (file.rfind("core_", 0) == 0 && file.find(".json") != std::string::npos) all += bytes;
    return all;
  };
  const auto extension = instructions("extension", {}), same = instructions("same", {"--softmax=vsoftmax"}), standard = instructions("standard", {"--softmax=standard"});
  CHECK(contains(extension, "vsoftmax"));
  CHECK(extension == same);
  CHECK_FALSE(contains(standard, "vsoftmax"));
  CHECK(contains(standard, "vsigm"));
  for (const std::string choice : {"vsoftmax", "standard"}) CHECK(run("raptor-validate", strings{model, "--softmax=" + choice, "--tolerance=1e-5"} + small_chip).status == 0);
  if (targets_absent()) return;
  const auto hardware = (targets / "p144.json").string();
  for (const std::string choice : {"vsoftmax", "standard"}) {
    CAPTURE(choice);
    const auto out = folder / ("timed_" + choice);
    REQUIRE(run("raptor-compile", {model, "-o", out, "--pim-target-config=" + hardware, "--softmax=" + choice}).status == 0);
    const auto timed = run("raptor-sim", {out, "--timing", "--json", "--hardware=" + hardware});
    CHECK(timed.status == (choice == "standard" ? 0 : 1));
    CHECK(contains(timed.out, choice == "standard" ? "\"ok\"" : "\"unsupported\""));
  }
}

TEST_CASE("a hardware configuration and flags that agree with it") {
  if (targets_absent()) return;
  const temporary_folder folder;
  const auto model = zoo(folder, "tiny");
  const std::string configuration = "--pim-target-config=" + (targets / "p144.json").string();
  REQUIRE(run("raptor-compile", {model, "-o", folder / "a", configuration}).status == 0);
  REQUIRE(run("raptor-compile", {model, "-o", folder / "b", configuration, "--core-count=144", "--crossbar-count=64", "--crossbar-size=128"}).status == 0);
  CHECK(snapshot(folder / "a") == snapshot(folder / "b"));
  CHECK(fs::exists(folder / "a/core_143.pim"));
  const auto out = folder / "out";
  for (const auto& [flag, given, known] : {std::tuple<std::string, std::string, std::string>{"--core-count", "12", "144"}, {"--crossbar-count", "63", "64"}, {"--crossbar-size", "64", "128"}}) {
    const auto result = check_failure({model, "-o", out, configuration, flag + "=" + given}, flag + " is " + given, out);
    CHECK(contains(result.err, "of the configuration is " + known));
  }
  check_failure({model, "-o", out, "--pim-target-config=" + (folder / "none.json")}, "none.json", out);
  write(folder / "bad.json", "{\"chip_config\": {}}");
  check_failure({model, "-o", out, "--pim-target-config=" + (folder / "bad.json")}, "chip_config", out);
  write(folder / "no.json", "not JSON");
  check_failure({model, "-o", out, "--pim-target-config=" + (folder / "no.json")}, "no.json", out);
}

TEST_CASE("planning options choose among programs that all compute the same") {
  const temporary_folder folder;
  const auto model = zoo(folder, "tiny", {"--write-input", folder / "input_0.bin"});
  std::set<std::string> programs;
  std::string first;
  for (const std::string options : {"", "--pim-disable-spatial-planning", "--pim-conv-lowering=legacy"}) {
    CAPTURE(options);
    const auto out = folder / ("out" + options);
    REQUIRE(run("raptor-compile", strings{model, "-o", out} + (options.empty() ? strings{} : strings{options}) + small_chip).status == 0);
    std::string all;
    for (int c = 0; c < 6; ++c) all += contents(out + "/core_" + std::to_string(c) + ".pim");
    programs.insert(all);
    const auto sim = run("raptor-sim", {out, "--input-dir", folder.path().string(), "-o", out + ".bin"});
    REQUIRE(sim.status == 0);
    std::vector<float> values(fs::file_size(out + ".bin") / 4), expected(values.size());
    if (first.empty()) first = contents(out + ".bin");
    REQUIRE(contents(out + ".bin").size() == first.size());
    std::copy_n(contents(out + ".bin").data(), first.size(), reinterpret_cast<char*>(values.data()));
    std::copy_n(first.data(), first.size(), reinterpret_cast<char*>(expected.data()));
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == doctest::Approx(expected[i]).epsilon(1e-4));
  }
  CHECK(programs.size() == 3);
}

TEST_CASE("a narrow program, and its 32-bit twin, which computes what the 32-bit program does") {
  const temporary_folder folder;
  fs::create_directory(folder / "in");
  const auto model = zoo(folder, "lenet5", {"--write-input", folder / "in/input_0.bin"});
  const auto outputs = [&](const std::string& artifact) {
    const auto result = run("raptor-sim", {artifact, "--input-dir", folder / "in", "-o", artifact + ".bin"});
    CAPTURE(result.err);
    REQUIRE(result.status == 0);
    const auto bytes = contents(artifact + ".bin");
    std::vector<float> values(bytes.size() / 4);
    std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(values.data()));
    return values;
  };
  const auto instructions = [&](const std::string& artifact) {
    std::vector<std::size_t> sizes;
    for (int c = 0; c < 6; ++c) sizes.push_back(contents(artifact + "/core_" + std::to_string(c) + ".pim").size());
    return sizes;
  };
  REQUIRE(run("raptor-compile", strings{model, "-o", folder / "plain"} + small_chip).status == 0);
  const auto expected = outputs(folder / "plain");
  for (const std::string bits : {"8", "16"}) {
    CAPTURE(bits);
    const auto narrow = folder / ("narrow" + bits), twin = folder / ("twin" + bits), bound = folder / ("bound" + bits), later = folder / ("later" + bits);
    const strings flags = strings{"--element-bits=" + bits} + small_chip;
    REQUIRE(run("raptor-compile", strings{model, "-o", narrow} + flags).status == 0);
    REQUIRE(run("raptor-compile", strings{model, "-o", twin, "--execute-as=f32"} + flags).status == 0);
    // The narrow program has no arithmetic: it is refused, not executed wrongly.
    const auto refused = run("raptor-sim", {narrow, "--input-dir", folder / "in"});
    CHECK(refused.status == 1);
    CHECK(refused.err.rfind("raptor-sim: error: ", 0) == 0);
    CHECK(instructions(narrow) == instructions(twin));
    CHECK(instructions(twin) != instructions(folder / "plain"));  // it is the program of the narrow chip
    const auto values = outputs(twin);
    REQUIRE(values.size() == expected.size());
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == doctest::Approx(expected[i]).epsilon(1e-4));
    // By way of the bound program, which keeps its width.
    REQUIRE(run("raptor-compile", strings{model, "-o", bound, "--EmitPimBufferized"} + flags).status == 0);
    REQUIRE(run("raptor-compile", {bound, "-o", later, "--pim-only-codegen", "--execute-as=f32"}).status == 0);
    CHECK(snapshot(later) == snapshot(twin));
    REQUIRE(run("raptor-compile", {bound, "-o", later + "n", "--pim-only-codegen"}).status == 0);
    CHECK(snapshot(later + "n") == snapshot(narrow));
  }
  // In 32 bits there is nothing to widen.
  REQUIRE(run("raptor-compile", strings{model, "-o", folder / "same", "--execute-as=f32"} + small_chip).status == 0);
  CHECK(snapshot(folder / "same") == snapshot(folder / "plain"));
}

TEST_CASE("--effort: every one compiles, the same bytes every time, and more is predicted no slower") {
  const temporary_folder folder;
  const auto model = zoo(folder, "tiny");
  const auto predicted = [&](int effort) {
    const auto option = "--effort=" + std::to_string(effort);
    for (const char* name : {"a", "b"})
      REQUIRE(run("raptor-compile", strings{model, "-o", folder / (name + option), "--EmitSpatial", option} + small_chip).status == 0);
    const auto a = snapshot(folder / ("a" + option));
    CHECK(a == snapshot(folder / ("b" + option)));
    const auto& text = a.at("spatial.txt");
    const auto at = text.find("\nschedule predicted ");
    REQUIRE(at != std::string::npos);
    return std::stoll(text.substr(at + 20));
  };
  std::vector<long long> times;
  for (int effort = 0; effort < 4; ++effort) times.push_back(predicted(effort));
  for (std::size_t i = 1; i < times.size(); ++i) CHECK(times[i] <= times[i - 1]);
  REQUIRE(run("raptor-compile", strings{model, "-o", folder / "usual", "--EmitSpatial"} + small_chip).status == 0);
  CHECK(snapshot(folder / "usual") == snapshot(folder / "a--effort=1"));
}

TEST_CASE("--objective=throughput chooses the number of stages, unless it is said, also one") {
  const temporary_folder folder;
  const auto demo = zoo(folder, "demo");
  const strings chip{"--core-count=16", "--crossbar-count=16", "--crossbar-size=64", "--effort=0", "--objective=throughput"};
  const auto title = [&](const strings& more) {
    REQUIRE(run("raptor-compile", strings{demo, "-o", folder / "out"} + chip + more).status == 0);
    return lines(contents(folder / "out/reports/pipeline.txt")).at(0);
  };
  CHECK(title({"--pipeline=1"}) == "Pipeline of 1 stage; times of one input in ns, as predicted");
  CHECK(title({"--pipeline=3"}) == "Pipeline of 3 stages; times of one input in ns, as predicted");
  CHECK(title({}).rfind("Pipeline of 1 stage;", 0) != 0);  // more of them are faster here
  // One stage is also a stream: it restarts by itself, and what waits for the next input is synchronized.
  CHECK(run("raptor-validate", strings{demo, "--pipeline=1", "--batch-size=3"} + chip).status == 0);
}

TEST_CASE("--explain: one node, all of them, none of that name") {
  const temporary_folder folder;
  const auto model = zoo(folder, "demo");
  const auto explain = [&](const std::string& name) { return run("raptor-compile", strings{model, "-o", folder / "out", "--explain=" + name, "--EmitSpatial"} + small_chip); };
  const auto all = explain("all");
  REQUIRE(all.status == 0);
  CHECK(all.err.empty());
  CHECK(contains(all.out, "\n  layout    "));
  CHECK(contains(all.out, "\n  strategy  "));
  CHECK(contains(all.out, "; stage 0\n"));
  CHECK(contains(all.out, "  chosen, cost "));
  CHECK(contains(all.out, " does not apply: "));
  // A paragraph a node; each alone is a part of the whole.
  std::size_t paragraphs = 0, predictions = 0;
  for (const auto& line : lines(all.out)) {
    const auto quote = line.find('"');
    if (line.empty() || line[0] == ' ' || quote == line.npos) continue;
    ++paragraphs;
    const auto one = explain(line.substr(quote + 1, line.find('"', quote + 1) - quote - 1));
    CHECK(one.status == 0);
    // Alone it also says what the whole model would take with another strategy here.
    const auto told = lines(one.out), paragraph = lines(all.out.substr(all.out.find(line)));
    REQUIRE(told.size() <= paragraph.size());
    for (std::size_t i = 0; i < told.size(); ++i) {
      const auto at = told[i].find("; the whole model then: ");
      if (at != std::string::npos) ++predictions;
      CHECK(told[i].substr(0, at) == paragraph[i]);
    }
  }
  CHECK(paragraphs > 3);
  CHECK(predictions > 1);
  CHECK_FALSE(contains(all.out, "the whole model then"));
  const auto unknown = run("raptor-compile", strings{model, "-o", folder / "none", "--explain=conv_x"} + small_chip);
  CHECK(unknown.status == 2);
  CHECK(lines(unknown.err).size() == 1);
  CHECK(contains(unknown.err, "--explain=conv_x: no node has this name; near it: "));
  CHECK_FALSE(fs::exists(folder / "none"));
}

TEST_CASE("bounds in summary.json, in reports/bounds.txt and on the terminal") {
  const temporary_folder folder;
  const auto result = run("raptor-compile", strings{zoo(folder, "demo"), "-o", folder / "out", "-v"} + small_chip);
  REQUIRE(result.status == 0);
  const auto summary = contents(folder / "out/summary.json");
  for (const std::string key : {"dense_matrix", "best_matrix", "best_work", "matrix", "vector", "local_memory", "global_memory", "network", "critical_path", "busiest_core", "binding",
                                "predicted_over_bound", "in_placement", "between_inputs"}) {
    CAPTURE(key);
    CHECK(contains(summary, "\"" + key + "\": "));
  }
  const auto report = contents(folder / "out/reports/bounds.txt");
  CHECK(contains(report, "\nbinds: "));
  CHECK(contains(report, "\nof every choice of strategies\n"));
  const auto at = result.err.find("raptor-compile: predicted ");
  REQUIRE(at != result.err.npos);
  CHECK(contains(result.err.substr(at), " times the bound ("));
}
