// The toolkit with ONNX, as a user's program sees it.
#include <raptor/onnx/builder.hpp>

int main() {
  raptor::onnx_io::model_builder builder;
  builder.output(builder.node("Relu", {builder.input("x", {1, 2})}, "y").output(), {1, 2});
  return std::move(builder).take().graph().node_size() == 1 ? 0 : 1;
}
