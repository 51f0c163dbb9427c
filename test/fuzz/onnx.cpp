// A model file: parsed, imported, rewritten.
#include "support.hpp"

#include <google/protobuf/stubs/logging.h>
#include <onnx/defs/schema.h>

#include "raptor/model/rewrite.hpp"
#include "raptor/onnx/import.hpp"

/// What constant folding may make before a model is refused: 2^26 elements of at most 8 bytes.
constexpr std::int64_t folding_budget = std::int64_t{8} << 26;

/// The onnx package makes its tables of operators at the first use: before anything is counted.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  fuzz::require(::onnx::OpSchemaRegistry::Schema("Relu", 13, "") != nullptr, "the onnx package does not know Relu");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace raptor;
  int keep = 0;
  // Protobuf makes an object of some 200 bytes of a node of a few bytes; a model of that size is far below the slack otherwise.
  fuzz::run(size, 64, [&]() -> std::int64_t {
    ::onnx::ModelProto proto;
    google::protobuf::LogSilencer quiet;
    if (size > static_cast<std::size_t>(INT32_MAX) || !proto.ParseFromArray(data, static_cast<int>(size)) || !proto.has_graph()) {
      keep = -1;  // not worth a place in the corpus
      return 0;
    }
    const auto imported = onnx_io::import_model(proto, "/nonexistent");
    const auto canonical = model::canonicalize(imported);
    std::int64_t bytes = 0;
    for (const auto* g : {&imported, &canonical})
      for (const auto& t : g->tensors())
        if (t.data) bytes += 8 * element_count(t.sizes);
    return 4 * bytes;
  }, folding_budget);
  return keep;
}
