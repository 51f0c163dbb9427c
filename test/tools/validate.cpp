// raptor-validate and raptor-zoo.
#include "support.hpp"

#include "raptor/onnx/builder.hpp"

using namespace tools_test;
using strings = std::vector<std::string>;

TEST_CASE("one row a model; the exit status tells whether something failed") {
  const temporary_folder folder;
  const auto lenet = zoo(folder, "lenet5", {"--write-input", folder / "input_0.bin"}), tiny = zoo(folder, "tiny");
  const auto good = run("raptor-validate", strings{lenet, tiny} + small_chip);
  CHECK(good.status == 0);
  CHECK(good.err.empty());
  const auto rows = lines(good.out);
  REQUIRE(rows.size() == 4);
  CHECK(contains(rows[0], "max abs err"));
  CHECK(contains(rows[0], "max rel err"));
  CHECK(rows[1].rfind("lenet5  PASS ", 0) == 0);
  CHECK(rows[2].rfind("tiny    PASS ", 0) == 0);
  CHECK(rows[3] == "2 PASS, 0 FAIL, 0 UNSUPPORTED, 0 SKIP");

  CHECK(run("raptor-validate", strings{lenet, "--input-dir", folder.path().string()} + small_chip).status == 0);
  CHECK(run("raptor-validate", strings{lenet, "--pim-disable-spatial-planning", "--pim-conv-lowering=legacy", "--seed=5"} + small_chip).status == 0);

  // The error is not zero, so a tolerance below it fails: the comparison does compare.
  const auto strict = run("raptor-validate", strings{tiny, "--tolerance=1e-12"} + small_chip);
  CHECK(strict.status == 1);
  CHECK(contains(strict.out, "tiny   FAIL "));
  CHECK(contains(strict.out, "the error exceeds 1e-12 of the largest output"));

  // A file that fails does not stop the others; an input of another size fails; a chip too small names both numbers.
  const auto mixed = run("raptor-validate", strings{folder / "none.onnx", tiny} + small_chip);
  CHECK(mixed.status == 1);
  CHECK(contains(mixed.out, "1 PASS, 1 FAIL, 0 UNSUPPORTED, 0 SKIP"));
  const auto other = run("raptor-validate", strings{tiny, "--input-dir", folder.path().string()} + small_chip);
  CHECK(other.status == 1);
  CHECK(contains(other.out, "3136 bytes, the model takes 3072"));
  const auto full = run("raptor-validate", {lenet, "--core-count=1", "--crossbar-count=2", "--crossbar-size=16"});
  CHECK(full.status == 1);
  CHECK(contains(full.out, "crossbars needed, 2 available"));
}

TEST_CASE("--layers compares what survives and names the first operator that is wrong") {
  const temporary_folder folder;
  const auto model = zoo(folder, "transformer");
  const auto good = run("raptor-validate", strings{model, "--layers"} + small_chip);
  CHECK(good.status == 0);
  CHECK(contains(good.out, "layers: "));
  CHECK(contains(good.out, " tensors compared, "));
  CHECK(contains(good.out, "the largest error is "));
  CHECK_FALSE(contains(good.out, "exceeds"));
  CHECK(good.err.empty());
  // The sum with the positions is exact; the normalization behind it is the first that rounds.
  const auto strict = run("raptor-validate", strings{model, "--layers", "-v", "--tolerance=0"} + small_chip);
  CHECK(strict.status == 1);
  CHECK(contains(strict.out, "the first whose error exceeds the tolerance is of LayerNormalization \"layernorm_3\" (ai.onnx, opset 17), tensor \"layernorm_3"));
  CHECK(contains(strict.err, "             0             0  Add \"add_2\" (ai.onnx, opset 17), tensor \"add_2\"\n"));
  // Maps in rows of pixels are turned before they are compared.
  const auto maps = run("raptor-validate", strings{zoo(folder, "demo"), "--layers"} + small_chip);
  CHECK(maps.status == 0);
  CHECK(contains(maps.out, "layers: "));
}

TEST_CASE("--schedules tries other orders of the cores, and says how many there are") {
  const temporary_folder folder;
  const auto model = zoo(folder, "tiny");
  const strings pipeline = strings{model, "--pipeline=3", "--pipeline-channels=memory", "--batch-size=2", "--effort=0"} + small_chip;
  const auto few = run("raptor-validate", pipeline + strings{"--schedules=2,3"});
  CHECK(few.status == 0);
  CHECK(contains(few.out, "schedules: 15 of "));  // greedy, 2 random, 3 of each of 4 kinds
  CHECK(contains(few.out, " tried, 3 loads held back, 0 went wrong"));
  const auto all = run("raptor-validate", pipeline + strings{"--schedules=2,all"});
  CHECK(all.status == 0);
  const auto at = all.out.find("schedules: ") + 11, of = all.out.find(" of ", at), end = all.out.find(" tried", at);
  REQUIRE(end != std::string::npos);
  CHECK(all.out.substr(at, of - at) == all.out.substr(of + 4, end - of - 4));
  CHECK(contains(few.out, "15 of " + all.out.substr(at, of - at) + " tried"));
}

TEST_CASE("ONNX Runtime is a second opinion where it is installed") {
  const temporary_folder folder;
  const auto model = zoo(folder, "demo");
  const auto absent = run("raptor-validate", strings{model, "--reference=onnxruntime", "--onnxruntime=" + (folder / "absent.so")} + small_chip);
  CHECK(absent.status == 0);
  CHECK(absent.out.rfind("SKIPPED: ONNX Runtime cannot be opened: ", 0) == 0);
  CHECK(contains(absent.out, "absent.so"));
  CHECK(contains(absent.out, "--onnxruntime=PATH or in RAPTOR_ONNXRUNTIME"));
  // A library that is another one.
  const auto other = run("raptor-validate", strings{model, "--reference=onnxruntime", "--onnxruntime=libm.so.6"} + small_chip);
  CHECK(contains(other.out, "SKIPPED: the library is not ONNX Runtime"));
  if (std::getenv("RAPTOR_ONNXRUNTIME") == nullptr) {
    MESSAGE("SKIPPED: RAPTOR_ONNXRUNTIME names no library");
    return;
  }
  const auto present = run("raptor-validate", strings{model, zoo(folder, "lstm"), "--reference=onnxruntime"} + small_chip);
  CHECK(present.status == 0);
  CHECK(contains(present.out, "2 PASS, 0 FAIL"));
}

TEST_CASE("what is unsupported is named and is no failure") {
  const temporary_folder folder;
  raptor::onnx_io::model_builder b;
  const auto x = b.input("x", {1, 4});
  b.node("Strange", {x}, "odd", 1, "example");
  b.output("odd", {1, 4});
  write(folder / "odd.onnx", std::move(b).take().SerializeAsString());
  const auto result = run("raptor-validate", strings{folder / "odd.onnx"} + small_chip);
  CHECK(result.status == 0);
  CHECK(contains(result.out, "odd    UNSUPPORTED "));
  CHECK(contains(result.out, "Strange \"odd\""));
  CHECK(contains(result.out, "0 PASS, 0 FAIL, 1 UNSUPPORTED, 0 SKIP"));
}

TEST_CASE("raptor-zoo writes the same bytes for the same seed") {
  const temporary_folder folder;
  const auto list = run("raptor-zoo", {"--list"});
  CHECK(list.status == 0);
  for (const char* name : {"lenet5", "vgg11", "squeezenet1.1", "resnet18", "resnet34", "resnet50", "googlenet", "mobilenetv2", "mobilenetv3_small",
                           "mobilenetv3_large", "inception_v3", "shufflenet", "unet", "yolo11n", "transformer", "lstm"})
    CHECK(contains(list.out, std::string(name) + " "));
  for (const auto& [name, seed] : {std::pair<std::string, std::string>{"a", "3"}, {"b", "3"}, {"c", "4"}})
    REQUIRE(run("raptor-zoo", {"squeezenet1.1", "--size=32", "--seed=" + seed, "-o", folder / name, "--write-input", folder / (name + ".bin")}).status == 0);
  CHECK(contents(folder / "a") == contents(folder / "b"));
  CHECK(contents(folder / "a") != contents(folder / "c"));
  CHECK(contents(folder / "a.bin") == contents(folder / "b.bin"));
  CHECK(contents(folder / "a.bin").size() == 3 * 32 * 32 * 4);
  const auto failed = run("raptor-zoo", {"tiny", "-o", folder / "no/such/folder/x.onnx"});
  CHECK(failed.status == 1);
  CHECK(contains(failed.err, "x.onnx"));
}
