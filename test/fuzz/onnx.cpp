// A model file: parsed, imported, rewritten.
#include "support.hpp"

#include <onnx/defs/schema.h>

#include <memory>
#include <set>

#include "raptor/model/rewrite.hpp"
#include "raptor/onnx/import.hpp"

/// What constant folding may make before a model is refused: 2^26 elements of at most 8 bytes.
constexpr std::int64_t folding_budget = std::int64_t{8} << 26;

/// Bytes of the graph that a model declares, without its tensors: objects of protobuf, of the graph and of its copies.
std::int64_t graph_bytes(const onnx::GraphProto& graph) {
  std::int64_t attributes = 0, values = graph.input_size() + graph.output_size() + graph.initializer_size() + graph.value_info_size();
  for (const auto& node : graph.node()) {
    attributes += node.attribute_size();
    values += node.input_size() + node.output_size();
  }
  return 1536 * std::int64_t{graph.node_size()} + 768 * attributes + 384 * values;
}

/// The onnx package makes its tables of operators at the first use: before anything is counted.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  fuzz::require(::onnx::OpSchemaRegistry::Schema("Relu", 13, "") != nullptr, "the onnx package does not know Relu");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace raptor;
  int keep = 0;
  fuzz::run(size, [&](std::int64_t& own) {
    ::onnx::ModelProto proto;
    keep = -1;  // what is no model is not worth a place in the corpus
    own = 144 * static_cast<std::int64_t>(size);  // protobuf: an empty part of two bytes may be an attribute
    onnx_io::parse_message(proto, fuzz::text_of(data, size), "not a model", "input");
    if (!proto.has_graph()) return;
    keep = 0;
    const auto graph = graph_bytes(proto.graph());
    own = graph + folding_budget;
    // Constants that nodes of the file define are tensors of the model, whether anything of them is left in the end or not.
    std::int64_t defined = 0;
    std::set<std::weak_ptr<const model::constant>, std::owner_less<>> known;  // several names may share their contents
    onnx_io::import_options options;
    options.observe_constant = [&](const model::tensor& t) {
      if (known.insert(t.data).second) defined += 8 * element_count(t.sizes);
    };
    const auto imported = onnx_io::import_model(proto, "/nonexistent", options);
    const auto canonical = model::canonicalize(imported);
    own = graph + defined + 1536 * static_cast<std::int64_t>(imported.node_count() + canonical.node_count());  // sequences are unrolled
    for (const auto* g : {&imported, &canonical})
      for (const auto& t : g->tensors())
        if (t.data) own += 4 * 8 * element_count(t.sizes);
  });
  return keep;
}
