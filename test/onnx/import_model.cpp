#include "raptor/onnx/import.hpp"

#include <algorithm>
#include <set>

#include "import_support.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

namespace {

/// A small network: Conv, BatchNormalization, Relu, MaxPool, Flatten, Gemm.
::onnx::ModelProto network(std::int64_t opset = 13, std::int64_t ir_version = 8) {
  auto b = at_opset(opset, ir_version);
  const auto x = b.input("x", {1, 2, 6, 6});
  b.node("Conv", {x, b.he_uniform("w", {4, 2, 3, 3})}, "c").attribute("auto_pad", "SAME_UPPER");
  b.node("BatchNormalization", {"c", b.uniform("scale", {4}, 1, 0.5F), b.uniform("shift", {4}, 0, 1), b.uniform("mean", {4}, 0, 1), b.uniform("var", {4}, 1, 0.5F)}, "n");
  b.node("Relu", {"n"}, "r");
  b.node("MaxPool", {"r"}, "p").attribute("kernel_shape", {2, 2}).attribute("strides", {2, 2});
  b.node("Flatten", {"p"}, "f");
  b.node("Gemm", {"f", b.he_uniform("g", {3, 36}), b.uniform("h", {3}, 0, 1)}, "y").attribute("transB", 1);
  auto m = finish(std::move(b), {"y"});
  if (ir_version < 4)
    for (const auto& t : m.graph().initializer()) {
      auto* input = m.mutable_graph()->add_input();
      input->set_name(t.name());
      auto* type = input->mutable_type()->mutable_tensor_type();
      type->set_elem_type(t.data_type());
      for (const auto dim : t.dims()) type->mutable_shape()->add_dim()->set_dim_value(dim);
    }
  return m;
}
/// Text and constants: what everything later is made from.
std::string everything(const model::graph& g) {
  std::string text = model::to_text(g);
  for (const auto& t : g.tensors())
    if (t.is_constant() && t.type == model::element_type::f32)
      for (const auto v : t.data->floats()) text += " " + std::to_string(std::bit_cast<std::uint32_t>(v));
  return text;
}

}  // namespace

TEST_CASE("a network, opset 7 to 22 and IR version 3 to 10") {
  const auto in = counting(72, -30);
  const auto expected = run(network(), {in})[0].floats();
  for (std::int64_t opset = 7; opset <= 22; ++opset)
    for (std::int64_t ir = 3; ir <= 10; ++ir) {
      CAPTURE(opset);
      CAPTURE(ir);
      const auto g = import_checked(network(opset, ir));
      CHECK(g.inputs.size() == 1);
      CHECK(model::evaluate(g, std::vector{model::make_value({1, 2, 6, 6}, in)})[0].floats() == expected);
    }
}

TEST_CASE("an initializer that is also a graph input is one constant, and changes nothing") {
  const auto reference = everything(import_checked(network()));
  CHECK(everything(import_checked(network(13, 3))) == reference);
  auto m = network(13, 8);
  *m.mutable_graph()->mutable_input() = network(13, 3).graph().input();
  CHECK(everything(import_checked(m)) == reference);
}

TEST_CASE("importing twice gives the same graph") { CHECK(everything(import_checked(network())) == everything(import_checked(network()))); }

TEST_CASE("symbolic batch") {
  auto b = at_opset(13);
  b.input("x", {1, 3, 8, 8});
  auto* batch = b.proto().mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0);
  batch->set_dim_param("N");
  b.node("Relu", {"x"}, "r");
  auto open = b;
  open.node("Reshape", {"r", open.integers("s", {-1, 192})}, "y");
  auto fixed = b;
  fixed.node("Reshape", {"r", fixed.integers("s", {1, 192})}, "y");
  import_options two;
  two.shapes["x"] = {2, 3, 8, 8};

  const auto g = import_checked(finish(open, {"y"}));
  CHECK(g.at(g.inputs[0]).sizes == shape{1, 3, 8, 8});
  REQUIRE(g.notes.size() == 1);
  CHECK(g.notes[0].find("\"N\" taken as 1") != std::string::npos);
  const auto h = import_checked(finish(open, {"y"}), two);
  CHECK(h.at(h.outputs[0]).sizes == shape{2, 192});
  CHECK(h.notes.empty());
  const auto e = failure(finish(fixed, {"y"}), two);
  CHECK(e.code() == error_code::mismatch);
  CHECK(mentions(e, "Reshape \"y\""));
  CHECK(mentions(e, "cannot reshape 384 elements"));
}

TEST_CASE("other symbols need a shape; one that is fixed holds everywhere") {
  auto b = at_opset(13);
  b.input("x", {1, 3, 8, 8});
  b.input("z", {1, 3, 8, 8});
  for (int i = 0; i < 2; ++i) {
    auto* dims = b.proto().mutable_graph()->mutable_input(i)->mutable_type()->mutable_tensor_type()->mutable_shape();
    dims->mutable_dim(2)->set_dim_param("H");
    dims->mutable_dim(3)->set_dim_param("W");
  }
  b.node("Add", {"x", "z"}, "y");
  const auto m = finish(std::move(b), {"y"});
  CHECK(mentions(failure(m), "dimension 2 is the symbol \"H\""));
  CHECK(mentions(failure(m), "--shape x="));
  import_options options;
  options.shapes["x"] = {1, 3, 5, 6};
  const auto g = import_checked(m, options);
  CHECK(g.at(g.inputs[1]).sizes == shape{1, 3, 5, 6});
  options.shapes["x"] = {1, 3, 5};
  CHECK(mentions(failure(m, options), "has rank 3, the file says 4"));
  options.shapes = {{"nobody", {1}}};
  CHECK(failure(m, options).code() == error_code::usage);
  CHECK(mentions(failure(m, options), "its inputs: x z"));
}

TEST_CASE("shape options as text") {
  CHECK(parse_shape_override("x=1x3x224x224") == std::pair<std::string, shape>{"x", {1, 3, 224, 224}});
  CHECK(parse_shape_override("a=b=7") == std::pair<std::string, shape>{"a=b", {7}});
  CHECK(parse_shape_override("s=scalar") == std::pair<std::string, shape>{"s", {}});
  for (const std::string bad : {"", "x", "=1", "x=", "x=1x", "x=x1", "x=1xx2", "x=-1", "x=1,2", "x=99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(static_cast<void>(parse_shape_override(bad)), error);
  }
}

TEST_CASE("everything at once: three diagnostics") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1, 1, 4}), y = b.input("y", {1, 4, 4}), v = b.input("v", {1, 1, 3, 3, 3});
  b.node("NonMaxSuppression", {y, x}, "nms");
  auto* opset = b.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  b.node("FusedGemm", {x, x}, "fused", 1, "com.microsoft");
  b.node("Conv", {v, b.he_uniform("w", {1, 1, 3, 3, 3})}, "conv");
  b.node("Relu", {"fused"}, "after");
  b.node("Relu", {"conv"}, "z");
  const auto e = failure(finish(std::move(b), {"nms", "after", "z"}));
  CHECK(e.code() == error_code::unsupported);
  REQUIRE(e.details().size() == 3);
  CHECK(e.details()[0] == "NonMaxSuppression \"nms\" (ai.onnx, opset 13): the operator is not supported");
  CHECK(e.details()[1] == "FusedGemm \"fused\" (com.microsoft, opset 1): operators of this domain are not supported");
  CHECK(e.details()[2].find("Conv \"conv\" (ai.onnx, opset 13): convolution over data of rank 5") == 0);
}

TEST_CASE("a node behind an unsupported one is still judged") {
  auto b = at_opset(13);
  b.node("NonMaxSuppression", {b.input("x", {1, 4, 4}), b.input("s", {1, 1, 4})}, "nms");
  b.node("Conv", {"nms", b.he_uniform("w", {1, 1, 3, 3, 3})}, "conv");
  b.node("Mystery", {"conv"}, "y");
  const auto e = failure(finish(std::move(b), {"y"}));
  REQUIRE(e.details().size() == 3);
  CHECK(e.details()[1].find("rank 5") != std::string::npos);
  CHECK(e.details()[2].find("Mystery") != std::string::npos);
}

TEST_CASE("nodes out of order, without names, with the same name") {
  auto m = network();
  auto& nodes = *m.mutable_graph()->mutable_node();
  std::reverse(nodes.begin(), nodes.end());
  for (auto& node : nodes) node.clear_name();
  const auto g = import_checked(m);
  std::set<std::string> names;
  for (model::vertex v = 0; v < g.node_count(); ++v) CHECK(names.insert(g.at(v).from.node).second);
  CHECK(names.count("Conv_5") == 1);
  for (auto& node : nodes) node.set_name("same");
  const auto h = import_checked(m);
  names.clear();
  for (model::vertex v = 0; v < h.node_count(); ++v) CHECK(names.insert(h.at(v).from.node).second);
  CHECK(names.count("same") == 1);
}

TEST_CASE("broken structure") {
  const auto broken = [](auto change) {
    auto m = network();
    change(*m.mutable_graph());
    return failure(m);
  };
  using graph = ::onnx::GraphProto;
  const auto cyclic = broken([](graph& g) { g.mutable_node(0)->set_input(0, "r"); });
  CHECK(cyclic.code() == error_code::malformed);
  CHECK(mentions(cyclic, "cyclic"));
  CHECK(mentions(broken([](graph& g) { g.mutable_node(0)->set_input(0, "c"); }), "cyclic"));
  CHECK(mentions(broken([](graph& g) { g.mutable_node(1)->set_output(0, "c"); }), "computed twice"));
  CHECK(mentions(broken([](graph& g) { g.mutable_node(2)->set_input(0, "lost"); }), "nothing computes its input \"lost\""));
  CHECK(mentions(broken([](graph& g) { g.mutable_output(0)->set_name("lost"); }), "output \"lost\""));
  CHECK(mentions(broken([](graph& g) { g.clear_output(); }), "no outputs"));
  CHECK(mentions(broken([](graph& g) { *g.add_input() = g.input(0); }), "there twice"));
  CHECK(mentions(broken([](graph& g) { *g.add_initializer() = g.initializer(0); }), "there twice"));
  CHECK(mentions(broken([](graph& g) { g.mutable_node(2)->set_output(0, "h"); }), "name of an input or initializer"));
  CHECK(mentions(broken([](graph& g) { g.mutable_node(2)->clear_output(); }), "no outputs"));
  CHECK(mentions(broken([](graph& g) { g.mutable_node(2)->clear_input(); }), "0 inputs, 1 expected"));
  CHECK(mentions(broken([](graph& g) { g.mutable_node(1)->set_input(4, ""); }), "4 inputs, 5 expected"));
  CHECK(mentions(broken([](graph& g) { g.mutable_node(5)->mutable_attribute(0)->set_type(::onnx::AttributeProto::FLOAT); }), "has a wrong type"));
  CHECK(mentions(broken([](graph& g) { g.mutable_node(2)->add_attribute()->set_name("novelty"); }), "\"novelty\" is not understood"));
  CHECK(mentions(broken([](graph& g) { g.mutable_initializer(0)->set_dims(0, std::int64_t{1} << 40); }), "more than 2^31 elements"));
  CHECK(mentions(broken([](graph& g) { g.mutable_initializer(0)->set_dims(0, 5); }), "has 288 bytes, needs 360"));
  CHECK(broken([](graph& g) { g.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(2)->set_dim_value(std::int64_t{1} << 40); }).code() == error_code::capacity);
}

TEST_CASE("subgraphs, functions, sequences, strings, sparse weights: clear errors") {
  auto b = at_opset(13);
  b.input("x", {1});
  auto node = b.node("If", {"x"}, "y");
  auto* branch = node.proto().add_attribute();
  branch->set_name("then_branch");
  branch->set_type(::onnx::AttributeProto::GRAPH);
  branch->mutable_g()->set_name("inner");
  CHECK(mentions(failure(finish(std::move(b), {"y"})), "contains a subgraph (attribute \"then_branch\")"));

  auto f = at_opset(13);
  f.node("Mine", {f.input("x", {1})}, "y", 1, "local");
  auto with_function = finish(std::move(f), {"y"});
  auto* function = with_function.add_functions();
  function->set_name("Mine");
  function->set_domain("local");
  CHECK(mentions(failure(with_function), "functions defined in the model"));

  auto s = at_opset(13);
  s.node("Relu", {s.input("x", {1}, ::onnx::TensorProto::STRING)}, "y");
  CHECK(mentions(failure(finish(std::move(s), {"y"})), "element type STRING"));

  auto q = at_opset(13);
  q.input("x", {1});
  q.proto().mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type();
  q.node("Relu", {"x"}, "y");
  CHECK(mentions(failure(finish(std::move(q), {"y"})), "only tensors"));

  auto p = network();
  p.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("thin");
  CHECK(mentions(failure(p), "sparse tensors"));
}

TEST_CASE("integers that are computed at run time, and outputs that are not made") {
  auto b = at_opset(13);
  b.node("Add", {b.input("x", {1}, ::onnx::TensorProto::INT64), b.integers("one", {1})}, "y");
  CHECK(mentions(failure(finish(std::move(b), {"y"})), "only floating-point tensors"));
  auto m = at_opset(13);
  m.node("MaxPool", {m.input("x", {1, 1, 4, 4})}, "y", 2).attribute("kernel_shape", {2, 2});
  CHECK(import_checked(finish(m, {"y_0"})).node_count() == 1);
  CHECK(mentions(failure(finish(m, {"y_0", "y_1"})), "its output 1 (\"y_1\") is not supported"));
}

TEST_CASE("graph outputs that are inputs, constants, or the same tensor twice") {
  auto b = at_opset(13);
  const auto x = b.input("x", {2});
  b.node("Relu", {x}, "y");
  const auto c = b.uniform("c", {3}, 0, 1);
  const auto g = model::canonicalize(import_checked(finish(std::move(b), {"y", "x", "c", "y"})));
  REQUIRE(g.outputs.size() == 4);
  for (const auto t : g.outputs) CHECK(g.producer(t) != model::graph::no_vertex);
}

TEST_CASE("the onnx package is asked about opsets that it knows") {
  auto b = at_opset(13);
  b.node("Flatten", {b.input("x", {1, 2})}, "y").attribute("axis", 1);
  auto m = finish(std::move(b), {"y"});
  m.mutable_graph()->mutable_output(0)->clear_type();  // harmless, as are a missing name and a newer IR version
  m.mutable_graph()->clear_name();
  m.set_ir_version(10);
  CHECK(import_checked(m).node_count() == 1);
  m.mutable_graph()->mutable_node(0)->mutable_attribute(0)->clear_type();
  CHECK(failure(m).code() == error_code::malformed);
  CHECK(mentions(failure(m), "the onnx package refuses the model"));
  import_options unchecked;
  unchecked.check = false;
  CHECK(import_checked(m, unchecked).node_count() == 1);
  m.mutable_opset_import(0)->set_version(22);  // no verdict
  CHECK(import_checked(m).node_count() == 1);
}

TEST_CASE("a domain without an opset") {
  auto b = at_opset(13);
  b.node("Relu", {b.input("x", {1})}, "y");
  auto m = finish(std::move(b), {"y"});
  m.mutable_opset_import(0)->set_domain("other");
  CHECK(mentions(failure(m), "imports no opset"));
  m.mutable_opset_import(0)->set_domain("ai.onnx");  // another name of the default domain
  CHECK(import_checked(m).node_count() == 1);
}

TEST_CASE("folding stays within its limits") {
  auto b = at_opset(13);
  const auto x = b.input("x", {1});
  b.node("ConstantOfShape", {b.integers("s", {1 << 30})}, "big");
  b.node("Add", {x, "big"}, "y");
  CHECK(mentions(failure(finish(std::move(b), {"y"})), "2^24 is the limit"));
  auto d = at_opset(13);
  std::string t = d.integers("t", {1, 2, 3, 4});
  for (int i = 0; i < 40; ++i) t = d.node("Concat", {t, t}, "t" + std::to_string(i)).attribute("axis", 0).output();
  d.node("Reshape", {d.input("x", {1}), t}, "y");
  const auto e = failure(finish(std::move(d), {"y"}));
  CHECK((e.code() == error_code::capacity || e.code() == error_code::unsupported));
}

TEST_CASE("files: empty, truncated, something else, missing; the file is not modified") {
  const temporary_folder folder("files");
  const auto bytes = network().SerializeAsString();
  const auto file = folder.write("model.onnx", bytes);
  CHECK(everything(import_model(file)) == everything(import_checked(network())));
  std::ifstream stream(file, std::ios::binary);
  CHECK(std::string(std::istreambuf_iterator<char>(stream), {}) == bytes);
  const auto broken = [&](const std::filesystem::path& path) {
    try {
      static_cast<void>(import_model(path));
    } catch (const error& e) {
      return e;
    }
    FAIL("imported");
    return error(error_code::internal, "");
  };
  CHECK(mentions(broken(folder.write("empty.onnx", "")), "empty"));
  CHECK(mentions(broken(folder.write("cut.onnx", bytes.substr(0, bytes.size() - 5))), "truncated"));
  CHECK(mentions(broken(folder.write("text.onnx", "this is not a model")), "not an ONNX model"));
  CHECK(broken(folder.path() / "missing.onnx").code() == error_code::io);
  CHECK(broken(folder.path()).code() == error_code::io);
  for (std::size_t length = 1; length < bytes.size(); length += 37) {
    try {
      static_cast<void>(import_model(folder.write("part.onnx", bytes.substr(0, length))));
    } catch (const error& e) {
      CHECK(e.code() != error_code::internal);
    }
  }
}

TEST_CASE("changed bytes never do worse than an error") {
  const auto bytes = network().SerializeAsString();
  std::uint32_t state = 12345;
  const auto next = [&state](std::size_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
  };
  int imported = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string changed = bytes;
    const auto changes = 1 + next(3);
    for (std::size_t k = 0; k < changes; ++k) changed[next(changed.size())] = static_cast<char>(next(256));
    ::onnx::ModelProto m;
    if (!m.ParseFromString(changed)) continue;
    try {
      const auto g = import_model(m, ".");
      model::check_graph(g);
      model::check_graph(model::canonicalize(g));
      ++imported;
    } catch (const error& e) {
      CHECK(e.code() != error_code::internal);
      ++refused;
    }
  }
  CHECK(imported > 100);
  CHECK(refused > 100);
}

TEST_CASE("the operator table is sorted, without overlapping ranges") {
  for (std::size_t i = 1; i < std::size(operator_table); ++i) {
    const auto &before = operator_table[i - 1], &row = operator_table[i];
    CHECK(before.op <= row.op);
    if (before.op == row.op) CHECK((before.until != 0 && before.until < row.since));
  }
  CHECK(find_operator("Conv", 13) != nullptr);
  CHECK(find_operator("HardSwish", 13) == nullptr);
  CHECK(knows_operator("HardSwish"));
  CHECK_FALSE(knows_operator("NonMaxSuppression"));
}
