#include "raptor/onnx/convert_movement.hpp"

#include "import_support.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

TEST_CASE("shape arithmetic folds to a constant, axes as attribute and as input") {
  for (const std::int64_t opset : {7, 11, 13, 18}) {
    CAPTURE(opset);
    auto b = at_opset(opset);
    const auto x = b.input("x", {2, 3, 4, 5});
    b.node("Shape", {x}, "s");
    b.node("Gather", {"s", b.initializer("zero", {}, std::span<const std::int64_t>(std::vector<std::int64_t>{0}))}, "n").attribute("axis", 0);
    if (opset < 13) b.node("Unsqueeze", {"n"}, "u").attribute("axes", {0});
    else b.node("Unsqueeze", {"n", b.integers("axes", {0})}, "u");
    b.node("Concat", {"u", b.integers("rest", {0, -1})}, "target").attribute("axis", 0);
    b.node("Reshape", {x, "target"}, "y");
    const auto g = import_checked(finish(std::move(b), {"y"}));
    CHECK(g.node_count() == 1);
    CHECK(g.at(g.outputs[0]).sizes == shape{2, 3, 20});
  }
}

TEST_CASE("longer shape arithmetic: Slice, Cast, arithmetic, Range, ConstantOfShape, Where, Equal, reductions") {
  auto b = at_opset(13);
  const auto x = b.input("x", {2, 3, 4, 5});
  b.node("Shape", {x}, "s");
  b.node("Slice", {"s", b.integers("one", {1}), b.integers("four", {INT64_MAX})}, "tail");
  b.node("Cast", {"tail"}, "real").attribute("to", 1);
  b.node("Floor", {"real"}, "floor");
  b.node("Cast", {"floor"}, "whole").attribute("to", 7);
  b.node("ReduceProd", {"whole"}, "product").attribute("keepdims", 1);
  b.node("Div", {"product", b.integers("two", {2})}, "half");
  b.node("Concat", {b.integers("minus", {-1}), "half"}, "first").attribute("axis", 0);
  b.node("Equal", {"first", b.integers("minus_again", {-1})}, "is_open");
  b.node("Where", {"is_open", b.integers("four_rows", {4, 4}), "first"}, "target");
  b.node("Reshape", {x, "target"}, "y");
  b.node("ConstantOfShape", {b.integers("small", {2, 1})}, "zeros");
  b.node("Add", {b.input("z", {2, 30}), "zeros"}, "w");
  const auto range_start = b.initializer("r0", {}, std::span<const std::int64_t>(std::vector<std::int64_t>{3}));
  const auto range_limit = b.initializer("r1", {}, std::span<const std::int64_t>(std::vector<std::int64_t>{-1}));
  const auto range_delta = b.initializer("r2", {}, std::span<const std::int64_t>(std::vector<std::int64_t>{-1}));
  b.node("Range", {range_start, range_limit, range_delta}, "reversed");
  b.node("Gather", {x, "reversed"}, "turned").attribute("axis", 2);
  const auto g = import_checked(finish(std::move(b), {"y", "w", "turned"}));
  CHECK(g.at(g.outputs[0]).sizes == shape{4, 30});
  CHECK(g.at(g.outputs[1]).sizes == shape{2, 30});
  CHECK(g.at(g.outputs[2]).sizes == shape{2, 3, 4, 5});
  const auto& turned = std::get<model::slice>(g.at(g.producer(g.outputs[2])).op);
  CHECK(turned.begin == shape{0, 0, 3, 0});
  CHECK(turned.step == shape{1, 1, -1, 1});
}

TEST_CASE("Shape with start and end, Size") {
  auto b = at_opset(15);
  const auto x = b.input("x", {2, 3, 4, 5});
  b.node("Shape", {x}, "s").attribute("start", -2);
  b.node("Shape", {x}, "t").attribute("end", -3);
  b.node("Size", {x}, "n");
  b.node("Concat", {"t", b.integers("open", {-1}), "s"}, "target").attribute("axis", 0);
  b.node("Reshape", {x, "target"}, "y");
  CHECK(import_checked(finish(std::move(b), {"y"})).node_count() == 1);
}

TEST_CASE("Slice: negative steps, INT64 limits, negative axes, attributes") {
  auto b = at_opset(13);
  const auto x = b.input("x", {2, 5});
  b.node("Slice", {x, b.integers("s", {INT64_MAX}), b.integers("e", {INT64_MIN}), b.integers("a", {-1}), b.integers("t", {-2})}, "y");
  check_close(run(finish(std::move(b), {"y"}), {counting(10)})[0].floats(), {5, 3, 1, 10, 8, 6});
  auto old = at_opset(9);
  old.node("Slice", {old.input("x", {2, 5})}, "y").attribute("starts", {-3}).attribute("ends", {INT64_MAX}).attribute("axes", {1});
  check_close(run(finish(std::move(old), {"y"}), {counting(10)})[0].floats(), {3, 4, 5, 8, 9, 10});
}

TEST_CASE("uneven Split: attribute, input, and the last part smaller since opset 18") {
  for (const std::int64_t opset : {11, 13, 18}) {
    CAPTURE(opset);
    auto b = at_opset(opset);
    const auto x = b.input("x", {5, 1});
    if (opset == 11) b.node("Split", {x}, "y", 2).attribute("split", {2, 3}).attribute("axis", -2);
    if (opset == 13) b.node("Split", {x, b.integers("split", {2, 3})}, "y", 2);
    if (opset == 18) b.node("Split", {x}, "y", 2).attribute("num_outputs", 2);
    const auto y = run(finish(std::move(b), {"y_0", "y_1"}), {counting(5)});
    CHECK(y[0].sizes == shape{opset == 18 ? 3 : 2, 1});
    CHECK(y[1].floats().back() == 5);
  }
  auto b = at_opset(13);
  b.node("Split", {b.input("x", {5})}, "y", 2);
  CHECK(failure(finish(std::move(b), {"y_0", "y_1"})).code() == error_code::mismatch);
}

TEST_CASE("Squeeze, Unsqueeze, Flatten, Transpose, Concat with negative axes and defaults") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 3, 1, 4});
  b.node("Squeeze", {x}, "all");
  b.node("Squeeze", {x, b.integers("a", {-2})}, "one");
  b.node("Unsqueeze", {x, b.integers("b", {-1, 0})}, "more");
  b.node("Flatten", {x}, "flat").attribute("axis", -1);
  b.node("Transpose", {x}, "turned");
  b.node("Concat", {x, x}, "twice").attribute("axis", -1);
  const auto g = import_checked(finish(std::move(b), {"all", "one", "more", "flat", "turned", "twice"}));
  const shape expected[] = {{3, 4}, {1, 3, 4}, {1, 1, 3, 1, 4, 1}, {3, 4}, {4, 1, 3, 1}, {1, 3, 1, 8}};
  for (std::size_t i = 0; i < 6; ++i) CHECK(g.at(g.outputs[i]).sizes == expected[i]);
}

TEST_CASE("Pad: modes, value, crops") {
  auto b = at_opset(13);
  const auto x = b.input("x", {4});
  b.node("Pad", {x, b.integers("p", {2, 1})}, "reflected").attribute("mode", "reflect");
  b.node("Pad", {x, b.integers("q", {1, 1})}, "edge").attribute("mode", "edge");
  b.node("Pad", {x, b.integers("r", {-1, 1}), b.scalar("v", 7)}, "crop");
  const auto y = run(finish(std::move(b), {"reflected", "edge", "crop"}), {counting(4)});
  check_close(y[0].floats(), {3, 2, 1, 2, 3, 4, 3});
  check_close(y[1].floats(), {1, 1, 2, 3, 4, 4});
  check_close(y[2].floats(), {2, 3, 4, 7});
}

TEST_CASE("Tile, Expand and Gather of computed tensors") {
  auto b = at_opset(13);
  const auto x = b.input("x", {2, 1});
  b.node("Tile", {x, b.integers("r", {1, 3})}, "tiled");
  b.node("Expand", {x, b.integers("s", {2, 2, 3})}, "expanded");
  b.node("Gather", {x, b.initializer("i", {2, 2}, std::span<const std::int64_t>(std::vector<std::int64_t>{1, 0, 0, -1}))}, "gathered");
  const auto y = run(finish(std::move(b), {"tiled", "expanded", "gathered"}), {{5, 6}});
  check_close(y[0].floats(), {5, 5, 5, 6, 6, 6});
  check_close(y[1].floats(), {5, 5, 5, 6, 6, 6, 5, 5, 5, 6, 6, 6});
  check_close(y[2].floats(), {6, 5, 5, 6});
  CHECK(y[2].sizes == shape{2, 2, 1});
}

TEST_CASE("scalars and empty tensors") {
  auto b = at_opset(13);
  const auto x = b.input("x", {}), e = b.input("e", {0, 3});
  b.node("Add", {x, b.scalar("one", 1)}, "y");
  b.node("Unsqueeze", {"y", b.integers("a", {0, 1})}, "z");
  b.node("Concat", {e, e}, "f").attribute("axis", 1);
  b.node("Reshape", {"f", b.integers("s", {0, 2, 3})}, "g");
  const auto y = run(finish(std::move(b), {"z", "g"}), {{41}, {}});
  CHECK(y[0].sizes == shape{1, 1});
  CHECK(y[0].floats()[0] == 42);
  CHECK(y[1].sizes == shape{0, 2, 3});
}

TEST_CASE("inputs that are given as constants") {
  auto b = at_opset(13);
  b.node("Reshape", {b.input("x", {2, 3}), b.input("s", {1}, ::onnx::TensorProto::INT64)}, "y");
  const auto m = finish(std::move(b), {"y"});
  CHECK(failure(m).code() == error_code::unsupported);
  CHECK(mentions(failure(m), "must be constant"));
  import_options options;
  options.bindings["s"] = {"s", model::element_type::i64, {1}, std::make_shared<const model::constant>(model::constant{std::vector<std::int64_t>{-1}})};
  const auto g = import_checked(m, options);
  CHECK(g.inputs.size() == 1);
  CHECK(g.at(g.outputs[0]).sizes == shape{6});
}
