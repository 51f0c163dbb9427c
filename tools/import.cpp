#include "raptor/model/rewrite.hpp"
#include "raptor/onnx/import.hpp"
#include "raptor/onnx/operators.hpp"
#include "tools/pipeline.hpp"

namespace raptor::tools {

loaded_model load_model(const std::filesystem::path& file, const std::map<std::string, shape>& shapes) {
  onnx_io::import_options options;
  options.shapes = shapes;
  loaded_model result;
  result.imported = onnx_io::import_model(file, options);
  result.canonical = model::canonicalize(result.imported);
  return result;
}

std::pair<std::string, shape> parse_shape(const std::string& text) { return onnx_io::parse_shape_override(text); }

std::string operator_list() { return onnx_io::operator_list(); }

}  // namespace raptor::tools
