// What the fuzz targets found, each as its kind.
#include "import_support.hpp"

#include <algorithm>
#include <memory>

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

TEST_CASE("a weight that is read for the first time may move the tensors of the graph") {
  // The number of tensors before the operator decides when their storage grows: every number up to 70.
  for (int before = 0; before <= 70; ++before) {
    CAPTURE(before);
    auto b = at_opset(13);
    auto x = b.input("x", {1, 2, 3, 3});
    for (int i = 0; i < before; ++i) x = b.node("Relu", {x}, "r" + std::to_string(i)).output();
    const auto w = b.he_uniform("w", {2, 3, 2, 2});
    const auto bias = b.uniform("b", {3}, 0.0F, 1.0F);
    const auto y = b.node("ConvTranspose", {x, w, bias}, "y").output();
    const auto scale = b.uniform("s", {3}, 1.0F, 0.5F), shift = b.uniform("t", {3}, 0.0F, 1.0F);
    const auto z = b.node("InstanceNormalization", {y, scale, shift}, "z").output();
    const auto g = import_checked(finish(std::move(b), {z}));
    CHECK(g.at(g.outputs[0]).sizes == shape{1, 3, 4, 4});
  }
}

TEST_CASE("a small file that folds without end is refused before long") {
  // Every ReduceSum reads 2^24 elements and makes one.
  auto b = at_opset(13);
  const auto x = b.input("x", {1});
  auto large = b.node("ConstantOfShape", {b.integers("sizes", {1 << 12, 1 << 12})}, "large").output();
  auto sum = x;
  for (int i = 0; i < 2000; ++i) {
    const auto one = b.node("ReduceSum", {large, b.integers("axes" + std::to_string(i), {0, 1})}, "r" + std::to_string(i)).attribute("keepdims", 0).output();
    sum = b.node("Add", {sum, one}, "a" + std::to_string(i)).output();
  }
  try {
    static_cast<void>(import_model(finish(std::move(b), {sum}), "."));
    FAIL("it was imported");
  } catch (const error& e) {
    std::string all = e.what();
    for (const auto& detail : e.details()) all += "\n" + detail;
    CHECK(all.find("constant folding takes more than 2^29 operations") != std::string::npos);
  }
}

TEST_CASE("large weights may be reordered while they are folded") {
  // 2^24 elements of weights, turned six times: more than folding may create for a file without weights.
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 1 << 12});
  auto w = b.initializer("w", {1 << 12, 1 << 12}, std::span<const float>(std::vector<float>(std::size_t{1} << 24, 1.0F)));
  for (int i = 0; i < 6; ++i) w = b.node("Transpose", {w}, "t" + std::to_string(i)).attribute("perm", {1, 0}).output();
  const auto y = b.node("MatMul", {x, w}, "y").output();
  const auto g = import_model(finish(std::move(b), {y}), ".");
  CHECK(g.node_count() == 1);
}

TEST_CASE("a small file that unrolls without end is refused before long") {
  auto b = at_opset(14);
  auto x = b.input("x", {1024, 1, 1});
  const auto w = b.uniform("w", {2, 1, 1}, 0.0F, 1.0F), r = b.uniform("r", {2, 1, 1}, 0.0F, 1.0F);
  std::vector<std::string> sums;
  for (int i = 0; i < 100; ++i)
    sums.push_back(b.node("RNN", {x, w, r}, "n" + std::to_string(i)).attribute("hidden_size", 1).attribute("direction", "bidirectional").output());
  const auto y = b.node("Sum", sums, "y").output();
  try {
    static_cast<void>(import_model(finish(std::move(b), {y}), "."));
    FAIL("it was imported");
  } catch (const error& e) {
    CHECK(e.code() == error_code::capacity);
    CHECK(mentions(e, "the model becomes more than 268608 operators"));
  }
}

TEST_CASE("nodes that no output needs are left out before anything is made of them") {
  // A transposed convolution of constants that is much larger than its weights, an operator that is not supported, and a chain of both.
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 4});
  const auto w = b.he_uniform("w", {3, 3, 3, 3});
  const auto unneeded = b.node("ConvTranspose", {w, w}, "t").attribute("dilations", {200, 200}).attribute("strides", {3, 3}).output();
  b.node("NonZero", {b.node("Relu", {unneeded}, "r").output()}, "nz");
  const auto y = b.node("Relu", {x}, "y").output();
  import_options options;
  int constants = 0;
  options.observe_constant = [&](const model::tensor&) { ++constants; };
  const auto g = import_model(finish(std::move(b), {y}), ".", options);
  CHECK(g.node_count() == 1);
  CHECK(constants == 0);
  REQUIRE(g.notes.size() == 1);
  CHECK(g.notes[0] == std::string("3 of 4 nodes are left out, no output needs them: \"t\" and others"));
}

TEST_CASE("contents of constants that only folding reads are let go of on the way") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 4});
  auto w = b.initializer("w", {4, 6}, std::span<const float>(counting(24)));
  std::vector<std::string> steps;
  for (int i = 0; i < 6; ++i) steps.push_back(w = b.node("Transpose", {w}, "t" + std::to_string(i)).attribute("perm", {1, 0}).output());
  const auto y = b.node("MatMul", {x, w}, "y").output();
  // One that is read again later, by a node and by the graph.
  const auto late = b.node("Identity", {steps[1]}, "late").output(), shared = b.node("Neg", {late}, "shared").output();
  const auto z = b.node("Mul", {y, b.node("ReduceSum", {steps[0]}, "sum").attribute("keepdims", 0).output()}, "z").output();
  import_options options;
  std::vector<std::weak_ptr<const model::constant>> made;
  std::size_t most = 0;
  options.observe_constant = [&](const model::tensor& t) {
    made.push_back(t.data);
    most = std::max(most, static_cast<std::size_t>(std::count_if(made.begin(), made.end(), [](const auto& c) { return !c.expired(); })));
  };
  const auto m = finish(std::move(b), {z, late, shared});
  const auto g = import_checked(m, options);
  CHECK(made.size() == 9);
  CHECK(most <= 6);
  std::size_t left = 0;
  for (const auto& c : made) left += c.expired() ? std::size_t{0} : std::size_t{1};
  CHECK(left <= 5);  // t5, t1 = late, shared and the sum
  const auto outputs = run(m, {{1, 0, 0, 0}});
  CHECK(outputs[0].floats() == std::vector<float>{300, 600, 900, 1200, 1500, 1800});
  CHECK(outputs[1].floats() == counting(24));
  CHECK(outputs[2].floats()[23] == -24);
}

namespace {

/// A part of a message: its field, its length and its bytes.
std::string part(int field, const std::string& bytes) {
  std::string text(1, static_cast<char>(field << 3 | 2));
  std::size_t left = bytes.size();
  for (; left > 127; left >>= 7) text += static_cast<char>(0x80U | (left & 0x7fU));
  return text + static_cast<char>(left) + bytes;
}
/// How the bytes of a model are refused.
error refusal(const std::string& bytes) {
  try {
    ::onnx::ModelProto m;
    parse_message(m, bytes, "not a model", "input");
  } catch (const error& e) {
    return e;
  }
  FAIL("it was parsed");
  return error(error_code::internal, "");
}

}  // namespace

TEST_CASE("a length that the file does not have is refused before anything is made for it") {
  // Node > op_type says 8 MB, inside of a graph of a few bytes; the same with raw data, and with more than 2 GB.
  for (const std::string& length : {std::string("\xff\xff\xff\x03"), std::string("\xff\xff\xff\xff\x07"), std::string("\xff\xff\xff\xff\xff\xff\x07")}) {
    for (const auto& bytes : {part(7, part(1, "\x22" + length + "Re")), part(7, part(5, "\x4a" + length)), part(7, "\x0a" + length)}) {
      const auto e = refusal(bytes);
      CHECK(e.code() == error_code::malformed);
      CHECK(mentions(e, "not a model: a part of "));
    }
  }
  const temporary_folder folder("lengths");
  try {
    static_cast<void>(load_model(folder.write("long.onnx", part(7, part(1, "\x22\xff\xff\xff\x03Re")))));
    FAIL("it was parsed");
  } catch (const error& e) {
    CHECK(mentions(e, "truncated: a part of 8388607 bytes where 2 are left, at byte 9"));
  }
}

TEST_CASE("a file of millions of empty nodes or dimensions is refused before they are made") {
  std::string empty;
  for (int i = 0; i < 2'000'000; ++i) empty += part(1, "");
  for (const auto& bytes : {part(7, empty), part(7, part(11, part(1, "x") + part(2, part(1, part(2, empty)))))}) {
    const auto e = refusal(bytes);
    CHECK(e.code() == error_code::capacity);
    CHECK(mentions(e, "but describes objects of "));
  }
  // A tensor of a million numbers of one byte each is none of that: its elements are its own.
  ::onnx::ModelProto m;
  parse_message(m, part(7, part(5, part(7, std::string(1'000'000, '\1')))), "not a model", "input");
  CHECK(m.graph().initializer(0).int64_data_size() == 1'000'000);
}

TEST_CASE("graphs inside of graphs without end are refused") {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes = part(1, part(5, part(6, bytes)));
  CHECK(mentions(refusal(part(7, bytes)), "too deep a nesting"));
}

TEST_CASE("the walk over a file refuses nothing that protobuf parses") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 2, 3, 3});
  const auto y = b.node("Conv", {x, b.he_uniform("w", {2, 2, 2, 2})}, "y").attribute("pads", {1, 1, 0, 0}).attribute("auto_pad", "NOTSET").output();
  const auto bytes = finish(std::move(b), {y}).SerializeAsString();
  std::uint32_t state = 7;
  const auto next = [&state](std::size_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
  };
  int parsed = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string changed = bytes;
    const auto changes = 1 + next(3);
    for (std::size_t k = 0; k < changes; ++k) changed[next(changed.size())] = static_cast<char>(next(256));
    ::onnx::ModelProto m, again;
    const bool good = m.ParseFromString(changed);
    bool accepted = true;
    try {
      parse_message(again, changed, "not a model", "input");
    } catch (const error&) {
      accepted = false;
    }
    CHECK(good == accepted);
    ++(good ? parsed : refused);
  }
  CHECK(parsed > 1000);
  CHECK(refused > 1000);
}
